//! The routes to the server: which of its addresses we use, and from which of our ports.
//!
//! The session knows one server and decides when to change the port; this file does so with
//! sockets.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::task::{Context, Poll};
use std::time::Duration;

use rove_ssp::{Arrival, Time};

use crate::net::choice::AddressChoice;
use crate::net::udp::{self, Socket, Source, is_too_big};
use crate::os::watched::Watched;
use crate::ssh::Candidates;

/// Sockets listened on at once; the oldest goes first (mosh-protocol.md §2.4).
const SOCKETS_MAX: usize = 10;

/// How long to listen for answers on an older port once the newest has been in use (§2.4).
const OLD_SOCKETS_STAY: Duration = Duration::from_secs(60);

/// Whether routers may fragment datagrams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Datagrams {
    /// Any router may, as on the mosh wire.
    MayBeCut,
    /// They arrive whole or not at all.
    Whole,
}

/// The result of sending a datagram.
#[derive(Debug)]
pub(crate) enum Sent {
    /// It is on its way, or lost in a full queue, which is the same to us.
    Gone,
    /// It is too large for every route.
    TooBig,
    /// No route took it.
    Failed(io::Error),
}

/// Our sockets, and the choice between the server's addresses.
#[derive(Debug)]
pub(crate) struct Routes {
    choice: AddressChoice,
    datagrams: Datagrams,
    /// The address of ours that the route to each of the server's suggests.
    sources: Vec<Option<IpAddr>>,
    /// The newest last.
    sockets: VecDeque<Opened>,
    /// The socket to read first, so that none starves.
    first: usize,
}

#[derive(Debug)]
struct Opened {
    socket: Watched<Socket>,
    at: Time,
}

impl Routes {
    /// Opens a first socket. Needs a tokio runtime with I/O.
    pub(crate) fn open(
        now: Time,
        candidates: Candidates,
        datagrams: Datagrams,
    ) -> io::Result<Routes> {
        let mut paths = Routes {
            choice: AddressChoice::new(now, candidates),
            datagrams,
            sources: Vec::new(),
            sockets: VecDeque::new(),
            first: 0,
        };
        paths.network_changed(now)?;
        Ok(paths)
    }

    /// The address by which the session knows the server.
    pub(crate) fn server(&self) -> SocketAddr {
        self.choice.server()
    }

    /// Opens a new socket, hence a new port, and sends from it from now on.
    pub(crate) fn rebind(&mut self, now: Time) -> io::Result<()> {
        let socket = self.bind()?;
        if self.datagrams == Datagrams::Whole {
            socket.keep_whole();
        }
        let socket = Watched::new(socket)?;
        if self.sockets.len() == SOCKETS_MAX {
            self.sockets.pop_front();
        }
        self.sockets.push_back(Opened { socket, at: now });
        Ok(())
    }

    /// Starts over after a change of the network: from a fresh socket, to every address, until one answers.
    pub(crate) fn network_changed(&mut self, now: Time) -> io::Result<()> {
        self.choice.start_over();
        self.sources = self.find_sources();
        self.rebind(now)
    }

    /// Whether the route to the server now starts at another address of ours: then the one in use is gone.
    /// While no address is reachable, there is nothing to act on.
    pub(crate) fn has_moved(&self) -> bool {
        let sources = self.find_sources();
        sources != self.sources && sources.iter().any(Option::is_some)
    }

    /// The address of ours that the route to each of the server's suggests.
    fn find_sources(&self) -> Vec<Option<IpAddr>> {
        let source = |to: &SocketAddr| {
            let any: IpAddr = match to {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            // Nothing is sent by that.
            let socket = UdpSocket::bind((any, 0)).ok()?;
            socket.connect(to).ok()?;
            Some(socket.local_addr().ok()?.ip())
        };
        self.choice.addresses().iter().map(source).collect()
    }

    /// Binds one socket for both families, if the system has both.
    fn bind(&self) -> io::Result<Socket> {
        let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        let v6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        if self.choice.addresses().iter().all(SocketAddr::is_ipv4) {
            return Socket::bind(v4, Source::Route);
        }
        Socket::bind(v6, Source::Route).or_else(|_| Socket::bind(v4, Source::Route))
    }

    /// Sends a datagram to the server's likely addresses.
    pub(crate) fn send(&mut self, now: Time, datagram: &[u8]) -> Sent {
        self.close_old(now);
        let targets = self.choice.targets(now);
        let sent = self.send_to(&targets, datagram);
        if matches!(sent, Sent::Failed(_))
            && let Some(targets) = self.choice.targets_instead(now)
        {
            return self.send_to(&targets, datagram);
        }
        sent
    }

    fn send_to(&self, targets: &[SocketAddr], datagram: &[u8]) -> Sent {
        let socket = self.sockets.back().expect("a socket is open").socket.get_ref();
        let mut outcome = Sent::Gone;
        let mut gone = false;
        for to in targets {
            match socket.try_send(*to, datagram) {
                Ok(()) => gone = true,
                Err(error) if is_too_big(&error) => outcome = Sent::TooBig,
                Err(error) if !matches!(outcome, Sent::TooBig) => outcome = Sent::Failed(error),
                Err(_) => {}
            }
        }
        // With several addresses, the families of some may not exist here.
        if gone { Sent::Gone } else { outcome }
    }

    fn close_old(&mut self, now: Time) {
        if self.sockets.back().is_some_and(|newest| now.since(newest.at) > OLD_SOCKETS_STAY) {
            let newest = self.sockets.len() - 1;
            self.sockets.drain(..newest);
        }
    }

    /// See [`AddressChoice::server_by`].
    pub(crate) fn server_by(&self, from: SocketAddr) -> SocketAddr {
        self.choice.server_by(from)
    }

    /// See [`AddressChoice::heard`].
    pub(crate) fn heard(&mut self, now: Time, from: SocketAddr) -> Option<SocketAddr> {
        self.choice.heard(now, from)
    }

    /// Ready while any of the sockets may have something.
    pub(crate) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        for Opened { socket, .. } in &self.sockets {
            if let Poll::Ready(ready) = socket.poll_readable(cx) {
                return Poll::Ready(ready);
            }
        }
        Poll::Pending
    }

    /// Takes the next datagram from any of the sockets; `None` when none waits.
    pub(crate) fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<Option<(usize, Arrival)>> {
        let count = self.sockets.len();
        for index in (self.first..self.first + count).map(|index| index % count) {
            if let Some(received) = udp::try_recv(&self.sockets[index].socket, buffer)? {
                self.first = index + 1;
                return Ok(Some(received));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::net::choice::{NAMED_ALONE, SILENCE_MAX, TRY_EACH};

    fn server() -> (UdpSocket, SocketAddr) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let address = server.local_addr().unwrap();
        (server, address)
    }

    fn take(server: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut buffer = [0; 100];
        let (len, from) = server.recv_from(&mut buffer).unwrap();
        (buffer[..len].to_vec(), from)
    }

    fn is_idle(server: &UdpSocket) -> bool {
        server.set_nonblocking(true).unwrap();
        let idle = server.recv_from(&mut [0; 100]).is_err();
        server.set_nonblocking(false).unwrap();
        idle
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        runtime.unwrap().block_on(test);
    }

    #[test]
    fn the_address_that_answers_first_is_used_until_it_falls_silent() {
        run(async {
            let (named, told) = (server(), server());
            let addresses = vec![named.1, told.1];
            let start = Time::from_millis(5);
            let mut paths =
                Routes::open(start, Candidates { addresses, named: 1 }, Datagrams::Whole).unwrap();

            assert!(matches!(paths.send(start, b"1"), Sent::Gone));
            assert_eq!(take(&named.0).0, b"1");
            assert!(is_idle(&told.0), "only the named address at first");

            let later = start + NAMED_ALONE;
            assert!(matches!(paths.send(later, b"2"), Sent::Gone));
            assert_eq!((take(&named.0).0, take(&told.0).0), (b"2".to_vec(), b"2".to_vec()));

            assert_eq!(paths.heard(later, "127.0.0.9:9".parse().unwrap()), None, "a stranger");
            assert_eq!(paths.heard(later, told.1), Some(told.1));
            assert_eq!(paths.heard(later, named.1), None, "the first stays");
            assert!(matches!(paths.send(later, b"3"), Sent::Gone));
            assert_eq!(take(&told.0).0, b"3");
            assert!(is_idle(&named.0));

            let silent = later + SILENCE_MAX;
            assert!(matches!(paths.send(silent, b"4"), Sent::Gone));
            assert_eq!((take(&named.0).0, take(&told.0).0), (b"4".to_vec(), b"4".to_vec()));
            assert_eq!(paths.heard(silent, named.1), Some(named.1));
        });
    }

    /// Strangers who have one of the server's private addresses get few datagrams, and soon none.
    #[test]
    fn other_addresses_get_five_datagrams_a_second_apart_and_then_hardly_any() {
        run(async {
            let servers = [server(), server(), server()];
            let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.1).collect();
            let start = Time::from_millis(5);
            let candidates = Candidates { addresses: addresses.clone(), named: 2 };
            let mut paths = Routes::open(start, candidates, Datagrams::Whole).unwrap();
            let mut sent = 0;
            let stranger = "127.0.0.9:9".parse().unwrap();
            for turn in 0..200 {
                let now = start + TRY_EACH / 2 * turn;
                assert!(matches!(paths.send(now, b"x"), Sent::Gone));
                sent += 1;
                // Neither another port nor what comes from elsewhere is news of these.
                if turn % 20 == 19 {
                    paths.rebind(now).unwrap();
                }
                assert_eq!(paths.heard(now, stranger), None);
            }
            let got = |server: &UdpSocket| {
                server.set_nonblocking(true).unwrap();
                std::iter::from_fn(|| server.recv_from(&mut [0; 9]).ok()).count()
            };
            let counts = servers.each_ref().map(|(server, _)| got(server));
            // At 0 to 4 s, the third from 1 s on, and 10, 20 and 40 s after one another.
            assert_eq!(counts, [sent, 8, 8]);
            // The network has changed.
            paths.network_changed(start + TRY_EACH * 101).unwrap();
            assert!(matches!(paths.send(start + TRY_EACH * 101, b"x"), Sent::Gone));
            assert_eq!(servers.each_ref().map(|(server, _)| got(server)), [1, 1, 1]);
        });
    }

    #[test]
    fn old_ports_are_heard_for_a_while() {
        run(async {
            let (server, address) = server();
            let mut now = Time::ZERO;
            let candidates = Candidates { addresses: vec![address], named: 1 };
            let mut paths = Routes::open(now, candidates, Datagrams::Whole).unwrap();
            let mut ports = Vec::new();
            for hop in 0..=SOCKETS_MAX {
                paths.send(now, b"x");
                ports.push(take(&server).1);
                if hop < SOCKETS_MAX {
                    now = now + SILENCE_MAX;
                    paths.rebind(now).unwrap();
                }
            }
            assert_eq!(paths.sockets.len(), SOCKETS_MAX, "the oldest is closed");
            let mut buffer = [0; 100];
            for port in &ports[1..] {
                server.send_to(b"answer", port).unwrap();
                let (len, arrival) = loop {
                    poll_fn(|cx| paths.poll_readable(cx)).await.unwrap();
                    if let Some(received) = paths.try_recv(&mut buffer).unwrap() {
                        break received;
                    }
                };
                assert_eq!((&buffer[..len], arrival.from), (b"answer".as_slice(), address.into()));
            }
            paths.send(now + OLD_SOCKETS_STAY + Duration::from_millis(1), b"x");
            assert_eq!(paths.sockets.len(), 1);
            assert_eq!(take(&server).1, ports[SOCKETS_MAX]);
        });
    }

    #[test]
    fn a_failed_send_counts_only_if_no_address_took_it() {
        run(async {
            let (server, address) = server();
            // EACCES: broadcast is not asked for.
            let nowhere = "255.255.255.255:9".parse().unwrap();
            for (addresses, works) in [(vec![nowhere, address], true), (vec![nowhere], false)] {
                let named = addresses.len();
                let mut paths =
                    Routes::open(Time::ZERO, Candidates { addresses, named }, Datagrams::Whole)
                        .unwrap();
                assert_eq!(matches!(paths.send(Time::ZERO, b"x"), Sent::Gone), works);
            }
            assert_eq!(take(&server).0, b"x");

            let addresses = vec![nowhere, address];
            let mut paths =
                Routes::open(Time::ZERO, Candidates { addresses, named: 2 }, Datagrams::Whole)
                    .unwrap();
            assert_eq!(paths.heard(Time::ZERO, nowhere), Some(nowhere));
            assert!(matches!(paths.send(Time::ZERO, b"y"), Sent::Gone), "the others step in");
            assert_eq!(take(&server).0, b"y");
            assert_eq!(paths.heard(Time::ZERO, address), Some(address));

            let candidates = Candidates { addresses: vec![address], named: 1 };
            let mut paths = Routes::open(Time::ZERO, candidates, Datagrams::Whole).unwrap();
            assert!(matches!(paths.send(Time::ZERO, &[0; 65_536]), Sent::TooBig));
        });
    }
}
