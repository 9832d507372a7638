//! The sockets of forwardings, the same at both ends: where connections come in, and where they go
//! on. A Unix socket is its user's alone, and only what was made here is ever removed.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::task::Poll;
use std::time::Duration;

use rove_streams::Channel;
use rove_streams::clock;
use socket2::{Domain, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::os::local_socket::{self, BACKLOG, LocalListener, LocalStream};
use crate::os::lookup;
use crate::os::socket_file::SocketFile;
use crate::services::forward::spec::{Bind, Endpoint, Listen};
use crate::services::pump::pump;

/// Connections served at a time from all listening sockets of one end; more wait to be taken. Fewer than
/// a session has channels ([`rove_streams::CHANNELS_MAX`]): commands and the agent go on beside them.
pub(crate) const CONNECTIONS_MAX: usize = 192;

/// The pause after a connection could not be taken, for want of files mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Silence after which the system probes a connection's peer: one that vanished would hold its place among
/// [`CONNECTIONS_MAX`] for the life of the session.
const ASK_AFTER: Duration = Duration::from_secs(60);

/// A connection of any kind.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {
    /// What it reads, and what is written to it, each of which may end before the other.
    fn halves(self: Box<Self>) -> Halves;
}

/// What a connection reads, and what is written to it.
pub(crate) struct Halves(Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

impl Duplex for TcpStream {
    fn halves(self: Box<Self>) -> Halves {
        let (read, write) = self.into_split();
        Halves(Box::new(read), Box::new(write))
    }
}

impl Duplex for LocalStream {
    fn halves(self: Box<Self>) -> Halves {
        let (read, write) = self.into_split();
        Halves(Box::new(read), Box::new(write))
    }
}

impl Duplex for Channel {
    fn halves(self: Box<Self>) -> Halves {
        let (read, write) = self.split();
        Halves(Box::new(read), Box::new(write))
    }
}

/// Joins two connections until both directions have ended. One that breaks leaves the other alone, and
/// what was read before it broke arrives.
pub(crate) async fn relay(a: Box<dyn Duplex>, b: Box<dyn Duplex>) -> io::Result<()> {
    let (Halves(from_a, to_a), Halves(from_b, to_b)) = (a.halves(), b.halves());
    let (there, back) = tokio::join!(carry(from_a, to_b), carry(from_b, to_a));
    there.and(back)
}

/// Moves octets one way until their end, which the other side is told.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let moved = pump(&mut from, &mut to).await;
    // Nobody is left to be told if it was writing that failed.
    let _ = to.shutdown().await;
    moved
}

/// Reaches a TCP port.
pub(crate) async fn connect(to: &Endpoint) -> io::Result<Box<dyn Duplex>> {
    let stream = TcpStream::connect((to.host.as_str(), to.port)).await?;
    prepare(&stream);
    Ok(Box::new(stream))
}

/// What all connections want. Without it they work all the same.
fn prepare(stream: &TcpStream) {
    // Whoever wrote gathered already what belongs together.
    let _ = stream.set_nodelay(true);
    let asking = TcpKeepalive::new().with_time(ASK_AFTER);
    let _ = SockRef::from(stream).set_tcp_keepalive(&asking);
}

/// Reaches a Unix socket.
pub(crate) async fn connect_unix(path: &Path) -> io::Result<Box<dyn Duplex>> {
    Ok(Box::new(local_socket::connect(path).await?))
}

/// Where connections come in, on one address or several.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) sockets: Vec<Incoming>,
    pub(crate) port: u16,
    /// A Unix socket goes when its listener does.
    pub(crate) place: Option<SocketFile>,
}

/// One of its sockets.
#[derive(Debug)]
pub(crate) enum Incoming {
    Tcp(TcpListener),
    Unix(LocalListener),
}

impl Listener {
    /// Starts to listen. Of the addresses those that this machine does not have are left out, if
    /// others are left. What stands at a Unix socket's path already stays there.
    ///
    /// # Errors
    /// The system's; none of the addresses is here, or something else listens on one.
    pub(crate) async fn bind(listen: &Listen) -> io::Result<Listener> {
        match listen {
            Listen::Unix(path) => {
                let (listener, place) = local_socket::listen(path)?;
                let sockets = vec![Incoming::Unix(listener)];
                Ok(Listener { sockets, port: 0, place: Some(place) })
            }
            Listen::Tcp { bind, port } => {
                let addresses: Vec<SocketAddr> = match bind {
                    Bind::Unsaid | Bind::Loopback => {
                        vec![(Ipv4Addr::LOCALHOST, 0).into(), (Ipv6Addr::LOCALHOST, 0).into()]
                    }
                    Bind::Any => {
                        vec![(Ipv4Addr::UNSPECIFIED, 0).into(), (Ipv6Addr::UNSPECIFIED, 0).into()]
                    }
                    Bind::Host(host) => lookup::look_up(host).await?,
                };
                Listener::bind_tcp(&addresses, *port)
            }
        }
    }

    fn bind_tcp(addresses: &[SocketAddr], mut port: u16) -> io::Result<Listener> {
        let mut sockets = Vec::new();
        let mut absent = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match listen_on(SocketAddr::new(address.ip(), port)) {
                Ok(socket) => {
                    // All addresses get the port that the first was given.
                    port = socket.local_addr()?.port();
                    sockets.push(Incoming::Tcp(socket));
                }
                Err(error) if is_absent(&error) => absent = error,
                Err(error) => return Err(error),
            }
        }
        if sockets.is_empty() { Err(absent) } else { Ok(Listener { sockets, port, place: None }) }
    }

    /// The same listener, watched by the runtime that this is called in.
    pub(crate) fn moved_here(self) -> io::Result<Listener> {
        let Listener { sockets, port, place } = self;
        let moved = |socket| {
            Ok(match socket {
                Incoming::Tcp(it) => Incoming::Tcp(TcpListener::from_std(it.into_std()?)?),
                Incoming::Unix(it) => Incoming::Unix(local_socket::moved_here(it)?),
            })
        };
        let sockets = sockets.into_iter().map(moved).collect::<io::Result<_>>()?;
        Ok(Listener { sockets, port, place })
    }

    /// The TCP port; 0 for a Unix socket.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> Box<dyn Duplex> {
        loop {
            match self.try_accept().await {
                Ok(connection) => return connection,
                Err(_busy) => clock::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn try_accept(&self) -> io::Result<Box<dyn Duplex>> {
        poll_fn(|cx| {
            for socket in &self.sockets {
                match socket {
                    Incoming::Tcp(listener) => {
                        if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                            return Poll::Ready(accepted.map(|(stream, _)| {
                                prepare(&stream);
                                Box::new(stream) as Box<dyn Duplex>
                            }));
                        }
                    }
                    Incoming::Unix(listener) => {
                        if let Poll::Ready(accepted) = local_socket::poll_accept(listener, cx) {
                            return Poll::Ready(
                                accepted.map(|stream| Box::new(stream) as Box<dyn Duplex>),
                            );
                        }
                    }
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Whether the machine has no such address, which is no reason to do without the others.
fn is_absent(error: &io::Error) -> bool {
    let absent = [rustix::io::Errno::ADDRNOTAVAIL, rustix::io::Errno::AFNOSUPPORT];
    absent.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.is_ipv6() {
        // IPv4 has a socket of its own.
        socket.set_only_v6(true)?;
    }
    local_socket::take_port(&socket)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("rove-listen-{name}-{}", std::process::id()))
    }

    #[tokio::test]
    async fn loopback_unless_told_otherwise() {
        let listener = Listener::bind(&Listen::Tcp { bind: Bind::Unsaid, port: 0 }).await.unwrap();
        assert_ne!(listener.port(), 0);
        for socket in &listener.sockets {
            let Incoming::Tcp(socket) = socket else { panic!("a Unix socket") };
            let address = socket.local_addr().unwrap();
            assert!(address.ip().is_loopback(), "{address}");
            assert_eq!(address.port(), listener.port());
        }
        let to = Endpoint { host: "127.0.0.1".into(), port: listener.port() };
        let (connected, mut accepted) = tokio::join!(connect(&to), listener.accept());
        connected.unwrap().write_all(b"hello").await.unwrap();
        let mut said = String::new();
        accepted.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "hello");
        let again = Listen::Tcp { bind: Bind::Unsaid, port: listener.port() };
        assert_eq!(Listener::bind(&again).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    /// The system's timer is keepalive's (proc(5), "tr") at both ends of a connection with nothing on its way.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_peer_that_vanishes_is_found_out() {
        let listener = Listener::bind(&Listen::Tcp { bind: Bind::Unsaid, port: 0 }).await.unwrap();
        let to = Endpoint { host: "127.0.0.1".into(), port: listener.port() };
        let (connected, _accepted) = tokio::join!(connect(&to), listener.accept());
        let _connected = connected.unwrap();
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let port = format!(":{:04X}", listener.port());
        let ends: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .filter(|row: &Vec<_>| row[1].ends_with(&port) || row[2].ends_with(&port))
            .filter(|row| row[3] == "01")
            .collect();
        assert_eq!(ends.len(), 2, "{table}");
        for end in ends {
            assert!(end[5].starts_with("02:"), "{end:?}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn unix_sockets_are_private_and_take_nobodys_place() {
        use std::os::unix::fs::PermissionsExt;

        let path = scratch("socket");
        let _ = std::fs::remove_file(&path);
        let listen = Listen::Unix(path.clone());
        let listener = Listener::bind(&listen).await.unwrap();
        let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(Listener::bind(&listen).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let (connected, _accepted) = tokio::join!(connect_unix(&path), listener.accept());
        connected.unwrap();
        drop(listener);
        assert!(!path.exists());

        // What has taken the socket's place is not ours.
        let listener = Listener::bind(&listen).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        drop(listener);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        assert_eq!(Listener::bind(&listen).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        std::fs::remove_file(&path).unwrap();
    }

    /// Where others may write, somebody can put a link in the place of a socket as soon as it is there.
    #[cfg(unix)]
    #[test]
    fn no_link_is_followed_from_a_sockets_place() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let directory = scratch("links");
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir(&directory).unwrap();
        let [place, lure, target] = ["place", "lure", "target"].map(|name| directory.join(name));
        std::fs::write(&target, "").unwrap();
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&target, open).unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let modes: Vec<u32> = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    if symlink(&target, &lure).is_ok() && place.exists() {
                        let _ = std::fs::rename(&lure, &place);
                    }
                }
            });
            let bound = (0..5_000).map(|_| {
                let _ = std::fs::remove_file(&place);
                let _ = local_socket::bind_unix(&place);
                std::fs::metadata(&target).unwrap().permissions().mode() & 0o777
            });
            let modes = bound.collect();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            modes
        });
        std::fs::remove_dir_all(&directory).unwrap();
        let changed = modes.iter().position(|mode| *mode != 0o644);
        assert_eq!(changed, None, "the target's mode after so many sockets");
    }
}
