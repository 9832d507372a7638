//! UDP sockets for both ends: ECN both ways, addresses in one form, and fragmentation as the wire requires.
//!
//! They do not interpret datagrams. `quinn-udp` reads and writes the control messages that std and rustix
//! cannot.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::ops::Range;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit};
use rove_ssp::{Arrival, Remote};
use rove_streams::carried::{StreamPorts, address_of};
use rove_streams::datagrams::Datagrams;
use rove_streams::network::RouteMtu;
use rove_streams::server::{Batch, QuicInbox};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Type};

use crate::os::local_socket;
use crate::os::udp::{Large, route_mtu, set_large};
use crate::os::watched::Watched;

/// The longest datagram taken; longer ones are dropped (the mosh wire has the same limit, §2.1).
pub const DATAGRAM_BYTES_MAX: usize = 2048;

/// The most octets of one read: the kernel joins datagrams of one sender up to an IP packet's size (UDP
/// GRO).
const BATCH_BYTES_MAX: usize = 65_536;

/// The kernel's buffer to request for a port with QUIC on it: 20 ms at 200 MB/s. It grants as much as the
/// administrator allows (`net.core.rmem_max`).
const QUIC_BUFFER_BYTES: usize = 4 << 20;

/// How streams learn how large packets the route to a peer takes.
pub(crate) const ROUTE_MTU: RouteMtu = RouteMtu::new(route_mtu);

/// The source address of a socket's datagrams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    /// The address of the current route: a client moves between networks.
    Route,
    /// The address to which the peer last wrote: a server with several must answer from that one, or the NAT
    /// and the firewall before the client drop the answer.
    AsReached,
}

/// A non-blocking UDP socket. Datagrams go out marked ECT(0); `Arrival` tells whether one came in
/// marked CE.
pub(crate) struct Socket {
    socket: UdpSocket,
    datagrams: Datagrams,
    family: Family,
    source: Source,
    /// Where the peer was last heard, and which of our addresses it wrote to.
    reached: Cell<Option<(SocketAddr, IpAddr)>>,
    inbox: RefCell<Inbox>,
    /// The inboxes for QUIC's datagrams, one for each client with streams. Each takes those that are sealed for it.
    lanes: RefCell<Vec<QuicInbox>>,
    /// Other clients may begin streams.
    admits: Cell<bool>,
    /// The session's streams beside this port.
    streams: StreamPorts,
}

/// Set in the first octet of every QUIC datagram (`docs/streams.md` §5), and of none of the session's.
const QUIC_BIT: u8 = 0x40;

/// Set besides in those that may begin a connection (RFC 9000 §17.2).
const LONG_HEADER_BIT: u8 = 0x80;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Family {
    V4,
    V6,
}

/// One read of the kernel's queue: datagrams of `stride` octets each, the last one may be shorter.
struct Inbox {
    bytes: Box<[u8]>,
    unread: Range<usize>,
    meta: RecvMeta,
}

impl Socket {
    /// Binds a socket; port 0 lets the system choose. `[::]` serves IPv4 peers too.
    pub(crate) fn bind(address: SocketAddr, source: Source) -> io::Result<Socket> {
        let (domain, family) = match address {
            SocketAddr::V4(_) => (Domain::IPV4, Family::V4),
            SocketAddr::V6(_) => (Domain::IPV6, Family::V6),
        };
        let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        if family == Family::V6 {
            socket.set_only_v6(address.ip() != Ipv6Addr::UNSPECIFIED)?;
        }
        local_socket::keep_port(&socket)?;
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        let datagrams = Datagrams::new(&socket)?;
        // The sizes of the mosh wire count on fragments being allowed (§2.3): a path narrower than
        // 1280 octets without ICMP would otherwise swallow every large frame.
        set_large(&socket, Large::Cut)?;
        let inbox = RefCell::new(Inbox::new());
        let reached = Cell::new(None);
        let (lanes, admits) = (RefCell::default(), Cell::new(false));
        let streams = StreamPorts::default();
        Ok(Socket { socket, datagrams, family, source, reached, inbox, lanes, admits, streams })
    }

    /// Datagrams arrive whole or not at all from here on: the protocol probes how much the path takes
    /// (`docs/wire.md` §9). It ignores what routers report, since anybody can forge that (RFC 8899 §3).
    ///
    /// A kernel that refuses this keeps fragmenting, which is merely worse: no reason to fail.
    pub(crate) fn keep_whole(&self) {
        set_large(&self.socket, Large::Whole).ok();
    }

    /// Sends QUIC's datagrams to `lane` from here on. Returns a clone of the socket for the answers.
    pub(crate) fn share(&self, lane: QuicInbox) -> io::Result<UdpSocket> {
        let port = self.socket.try_clone()?;
        // A single client's bulk may come at any rate, and what does not fit is lost.
        let _ = socket2::SockRef::from(&self.socket).set_recv_buffer_size(QUIC_BUFFER_BYTES);
        let mut lanes = self.lanes.borrow_mut();
        lanes.retain(|lane| !lane.is_closed());
        lanes.push(lane);
        Ok(port)
    }

    /// Passes on the last datagram that came from there, which was nobody's yet.
    pub(crate) fn hand_on(&self, from: Remote, datagram: &[u8]) {
        match from {
            Remote::Udp(_) => self.pass(&self.inbox.borrow().meta, datagram),
            Remote::Stream(stream) => self.pass_batch(&Batch {
                octets: datagram.to_vec(),
                stride: datagram.len(),
                from: address_of(stream.number()),
                to: None,
                ecn: 0,
            }),
        }
    }

    /// Whether QUIC's datagrams like this one are passed on. Else it may be the first of a client's.
    pub(crate) fn takes(&self, datagram: &[u8]) -> bool {
        let begins = datagram.first().is_some_and(|first| first & LONG_HEADER_BIT != 0);
        !(self.lanes.borrow().is_empty() || self.admits.get() && begins)
    }

    /// The session's streams, by which QUIC's datagrams go too.
    pub(crate) fn streams(&self) -> &StreamPorts {
        &self.streams
    }

    /// Whether datagrams that begin a connection are not passed on but returned: another client may want streams.
    pub(crate) fn admit(&self, admits: bool) {
        self.admits.set(admits);
    }

    fn pass(&self, meta: &RecvMeta, octets: &[u8]) {
        self.pass_batch(&batch(meta, octets.to_vec()));
    }

    fn pass_batch(&self, batch: &Batch) {
        for lane in &*self.lanes.borrow() {
            lane.pass(batch.clone());
        }
    }

    /// The address the socket is bound to.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Takes one datagram into `buffer`, which should hold `DATAGRAM_BYTES_MAX`; `None` when none waits.
    ///
    /// An IPv4 sender has its IPv4 address on any socket. Empty and oversized datagrams are dropped here. A
    /// length of 0 means that datagrams of QUIC were passed on: more of either kind may wait. An error
    /// concerns an earlier send; the socket stays usable.
    pub(crate) fn try_recv(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Arrival)>> {
        let mut inbox = self.inbox.borrow_mut();
        loop {
            while let Some(datagram) = inbox.next() {
                let from = canonical(inbox.meta.addr);
                let first = [inbox.bytes[datagram.start]];
                if is_quic(&first) && self.takes(&first) {
                    // The kernel joins what one sender sent, and each of its ports speaks one protocol.
                    let end = inbox.unread.end;
                    inbox.unread.start = end;
                    self.pass(&inbox.meta, &inbox.bytes[datagram.start..end]);
                    return Ok(Some((0, Arrival { from: from.into(), congested: false })));
                }
                let len = datagram.len();
                if len > buffer.len().min(DATAGRAM_BYTES_MAX) {
                    continue;
                }
                buffer[..len].copy_from_slice(&inbox.bytes[datagram]);
                let congested = inbox.meta.ecn == Some(EcnCodepoint::Ce);
                return Ok(Some((len, Arrival { from: from.into(), congested })));
            }
            match inbox.fill(&self.datagrams, &self.socket) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// The last datagram was the peer's: send from the address it came to. Only the session knows this:
    /// anybody can write to a port, and the peer's QUIC comes from another port of its own.
    pub(crate) fn answer_from_there(&self) {
        let meta = self.inbox.borrow().meta;
        if let (Source::AsReached, Some(at)) = (self.source, meta.dst_ip) {
            self.reached.set(Some((canonical(meta.addr), at)));
        }
    }

    /// Sends one datagram. It is lost if the kernel has no room for it: the protocol resends.
    ///
    /// `EMSGSIZE` is returned unchanged, for `datagram_too_big`; other errors are for the user's notice.
    pub(crate) fn try_send(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let reached = self.reached.get().filter(|(peer, _)| *peer == to).map(|(_, at)| at);
        let sent = self.send_from(reached, to, datagram);
        let refused = matches!(&sent, Err(error) if !is_too_big(error));
        if refused && reached.is_some() {
            // The address we were reached at may have gone with its network.
            self.reached.set(None);
            return self.send_from(None, to, datagram);
        }
        sent
    }

    fn send_from(&self, from: Option<IpAddr>, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let destination = match (self.family, to) {
            (Family::V6, SocketAddr::V4(v4)) => mapped(v4),
            _ => to,
        };
        let transmit = Transmit {
            destination,
            ecn: Some(EcnCodepoint::Ect0),
            contents: datagram,
            segment_size: None,
            src_ip: from,
        };
        match self.datagrams.try_send(&self.socket, &transmit) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }
}

impl AsRef<UdpSocket> for Socket {
    fn as_ref(&self) -> &UdpSocket {
        &self.socket
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// Takes one datagram from a socket; `None` when none waits. Octets left over from a read keep the socket
/// readable for the next call.
pub(crate) fn try_recv(
    socket: &Watched<Socket>,
    buffer: &mut [u8],
) -> io::Result<Option<(usize, Arrival)>> {
    let taken =
        socket.try_read(|socket| socket.try_recv(buffer)?.ok_or(io::ErrorKind::WouldBlock.into()));
    match taken {
        Ok(taken) => Ok(Some(taken)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether it is a datagram of QUIC.
pub fn is_quic(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & QUIC_BIT != 0)
}

/// Whether the datagram was larger than the path takes in one piece.
pub(crate) fn is_too_big(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error())
}

impl Inbox {
    fn new() -> Inbox {
        let bytes = vec![0; BATCH_BYTES_MAX].into_boxed_slice();
        Inbox { bytes, unread: 0..0, meta: RecvMeta::default() }
    }

    fn fill(&mut self, datagrams: &Datagrams, socket: &UdpSocket) -> io::Result<()> {
        let mut meta = [RecvMeta::default()];
        datagrams.recv(socket, &mut [IoSliceMut::new(&mut self.bytes)], &mut meta)?;
        [self.meta] = meta;
        self.unread = 0..self.meta.len;
        Ok(())
    }

    /// Where the next datagram of the read lies.
    fn next(&mut self) -> Option<Range<usize>> {
        if self.unread.is_empty() {
            return None;
        }
        let len = self.meta.stride.clamp(1, self.unread.len());
        let datagram = self.unread.start..self.unread.start + len;
        self.unread.start = datagram.end;
        Some(datagram)
    }
}

/// The datagrams of one read in quinn's form.
fn batch(meta: &RecvMeta, octets: Vec<u8>) -> Batch {
    Batch {
        octets,
        stride: meta.stride,
        from: meta.addr,
        to: meta.dst_ip,
        ecn: meta.ecn.map_or(0, |mark| mark as u8),
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => SocketAddr::new(v4.into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

fn mapped(address: SocketAddrV4) -> SocketAddr {
    SocketAddr::new(address.ip().to_ipv6_mapped().into(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(socket: &Socket) -> (Vec<u8>, Arrival) {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        loop {
            if let Some((len, arrival)) = socket.try_recv(&mut buffer).unwrap() {
                return (buffer[..len].to_vec(), arrival);
            }
            let mut fds =
                [rustix::event::PollFd::new(&socket.socket, rustix::event::PollFlags::IN)];
            let limit = rustix::event::Timespec { tv_sec: 5, tv_nsec: 0 };
            assert_eq!(rustix::event::poll(&mut fds, Some(&limit)), Ok(1), "nothing arrived");
        }
    }

    #[cfg(unix)]
    #[test]
    fn both_families_reach_a_dual_stack_socket_and_are_answered() {
        let server = Socket::bind("[::]:0".parse().unwrap(), Source::AsReached).unwrap();
        let port = server.local_addr().unwrap().port();
        for (local, remote) in
            [("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "::1"), ("[::]:0", "127.0.0.3")]
        {
            let client = Socket::bind(local.parse().unwrap(), Source::Route).unwrap();
            let to = SocketAddr::new(remote.parse().unwrap(), port);
            client.try_send(to, b"ask").unwrap();
            let (asked, arrival) = receive(&server);
            assert_eq!((asked.as_slice(), arrival.congested), (b"ask".as_slice(), false));
            assert_eq!(
                arrival.from.udp().unwrap().is_ipv4(),
                to.is_ipv4(),
                "addresses come in canonical form"
            );
            server.answer_from_there();
            // What strangers send to another address of ours changes nothing.
            let stranger = Socket::bind("0.0.0.0:0".parse().unwrap(), Source::Route).unwrap();
            let elsewhere = SocketAddr::new("127.0.0.9".parse().unwrap(), port);
            stranger.try_send(elsewhere, b"noise").unwrap();
            assert_eq!(receive(&server).0, b"noise");
            server.try_send(arrival.from.udp().unwrap(), b"answer").unwrap();
            let (answer, arrival) = receive(&client);
            assert_eq!((answer.as_slice(), arrival.from), (b"answer".as_slice(), to.into()));
        }
    }

    #[cfg(unix)]
    #[test]
    fn datagrams_go_out_as_ect0_and_come_in_with_their_mark() {
        for host in ["127.0.0.1", "::1"] {
            let server = Socket::bind(SocketAddr::new(host.parse().unwrap(), 0), Source::AsReached);
            let server = server.unwrap();
            let to = server.local_addr().unwrap();
            for (tos, congested) in [(2, false), (3, true), (0, false)] {
                let plain = UdpSocket::bind(SocketAddr::new(host.parse().unwrap(), 0)).unwrap();
                let socket = socket2::SockRef::from(&plain);
                match to {
                    SocketAddr::V4(_) => socket.set_tos_v4(tos).unwrap(),
                    SocketAddr::V6(_) => socket.set_tclass_v6(tos).unwrap(),
                }
                plain.send_to(b"x", to).unwrap();
                assert_eq!(receive(&server).1.congested, congested, "{host} {tos}");
            }
            let client = Socket::bind(SocketAddr::new(host.parse().unwrap(), 0), Source::Route);
            client.unwrap().try_send(to, b"x").unwrap();
            receive(&server);
            assert_eq!(server.inbox.borrow().meta.ecn, Some(EcnCodepoint::Ect0));
        }
    }

    #[test]
    fn oversized_and_empty_datagrams_are_dropped() {
        let server = Socket::bind("127.0.0.1:0".parse().unwrap(), Source::AsReached).unwrap();
        let to = server.local_addr().unwrap();
        let client = Socket::bind("0.0.0.0:0".parse().unwrap(), Source::Route).unwrap();
        for len in [0, DATAGRAM_BYTES_MAX + 1, 40_000, DATAGRAM_BYTES_MAX] {
            client.try_send(to, &vec![7; len]).unwrap();
        }
        assert_eq!(receive(&server).0.len(), DATAGRAM_BYTES_MAX);
        assert!(is_too_big(&client.try_send(to, &[0; 65_536]).unwrap_err()));
    }

    /// Streams have datagrams as large as a path takes, which the session's own never are.
    #[test]
    fn large_datagrams_of_quic_are_handed_on() {
        let server = Socket::bind("127.0.0.1:0".parse().unwrap(), Source::AsReached).unwrap();
        let (_streams, lane, _carrier) =
            rove_streams::server::Dormant::new(&[7; 32], rove_streams::SecretMemory::ORDINARY)
                .start();
        server.share(lane).unwrap();
        let client = Socket::bind("127.0.0.1:0".parse().unwrap(), Source::Route).unwrap();
        client.try_send(server.local_addr().unwrap(), &[QUIC_BIT; 6_550]).unwrap();
        let (taken, arrival) = receive(&server);
        assert!(taken.is_empty(), "it is not the session's");
        assert_eq!(arrival.from, client.local_addr().unwrap());
    }
}
