//! Passes a forwarding's listening socket from one session of a user to the next: a client that was killed
//! leaves a server that waits for it for days, with its ports. A session that finds a port taken asks the
//! holder at its door, a Unix socket without a file, named by the user and the address. While its client is
//! away the holder hands over its very sockets, the door's among them, and keeps them until they have been
//! taken: nobody else can have the port in between, and waiting connections stay.
//!
//! Each sees by the socket's credentials that the other belongs to the same user. The names are open to
//! everybody in the same network namespace: another user who takes one first only keeps that port from
//! passing on; a program of the same user that is shut in, but not from the host's network, may ask as well.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rove_streams::Streams;
use rove_streams::clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;

use crate::os::handover::{self, NamedSocket};
use crate::os::local_socket::is_own_peer;
use crate::services::forward::listen::Listener;
use crate::services::forward::spec::{Bind, Listen};

/// The silence after which a client counts as away. Longer than the agent's limit: a short outage costs
/// nobody a port, and a user who starts a client anew can wait.
const AWAY_AFTER: Duration = Duration::from_secs(60);

/// How long to wait for an answer: until the holder is sure of its client, and some more.
const ANSWER_WAIT: Duration = Duration::from_secs(75);

/// The pause after a failed accept, mostly for lack of files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The holder's answer, with the sockets or without.
const ANSWER: u8 = 0;

/// The asker's confirmation that it has the sockets.
const TAKEN: u8 = 1;

/// The socket at which the holder of listening sockets can be asked for them.
#[derive(Debug)]
pub(super) struct HandoverSocket(Option<NamedSocket>);

impl HandoverSocket {
    /// Opens the door of this address. If that fails, nobody can ask.
    pub(super) fn open(listen: &Listen) -> HandoverSocket {
        HandoverSocket(NamedSocket::listen(&name(listen)).ok())
    }

    /// Waits until another session has asked for this listener while the client of `streams` was away, and
    /// has got it and the door.
    pub(super) async fn passed(&self, listener: &Listener, streams: &Streams) {
        let Some(door) = &self.0 else { return std::future::pending().await };
        loop {
            let Ok((mut asker, _)) = door.listener.accept().await else {
                clock::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            if !is_own_peer(&asker) {
                continue;
            }
            let is_there = tokio::select! {
                biased;
                // Gone again, and nobody wants it any more.
                _ = asker.read_u8() => continue,
                is_there = streams.is_there(AWAY_AFTER) => is_there,
            };
            if is_there {
                let _ = asker.write_u8(ANSWER).await;
                continue;
            }
            let mut sockets = vec![door.listener.as_fd()];
            sockets.extend(listener.sockets());
            if give(&asker, &sockets).await.is_ok() && asker.read_u8().await.is_ok() {
                return;
            }
        }
    }

    /// Leaves it to the session to which it has [passed](HandoverSocket::passed).
    pub(super) fn leave(self) {
        if let Some(door) = self.0 {
            door.leave();
        }
    }
}

/// Asks the holder of this address for it. `None` if there is none, or it does not hand it over.
pub(super) async fn ask(listen: &Listen) -> Option<(Listener, HandoverSocket)> {
    clock::within(ANSWER_WAIT, take(listen)).await.ok()?.ok()
}

async fn take(listen: &Listen) -> io::Result<(Listener, HandoverSocket)> {
    let name = name(listen);
    let mut holder = UnixStream::connect(handover::place(&name)?).await?;
    if !is_own_peer(&holder) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut sockets = receive(&holder).await?.into_iter();
    let door = sockets.next().ok_or(io::ErrorKind::AddrInUse)?;
    let listener = Listener::of(listen, sockets.collect())?;
    let door = NamedSocket::of(door, &name)?;
    holder.write_u8(TAKEN).await?;
    Ok((listener, HandoverSocket(Some(door))))
}

/// Answers with sockets; with none, if they are more than can pass.
async fn give(asker: &UnixStream, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    asker.async_io(Interest::WRITABLE, || handover::give(asker, ANSWER, sockets)).await
}

/// Waits for an answer, and the sockets with it.
async fn receive(holder: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    holder.async_io(Interest::READABLE, || handover::receive(holder)).await
}

/// The name of a door.
fn name(listen: &Listen) -> String {
    let what = match listen {
        Listen::Tcp { bind: Bind::Unsaid | Bind::Loopback, port } => port.to_string().into_bytes(),
        Listen::Tcp { .. } => listen.to_string().into_bytes(),
        Listen::Unix(path) => path.as_os_str().as_encoded_bytes().to_vec(),
    };
    // A path may be longer than a name.
    blake3::hash(&what).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tokio::net::TcpStream;

    use super::*;

    /// What listens, its door, and where it is.
    async fn holder() -> (Listener, HandoverSocket, Listen) {
        let chosen = Listen::Tcp { bind: Bind::Loopback, port: 0 };
        let listener = Listener::bind(&chosen).await.unwrap();
        let listen = chosen.at(listener.port());
        assert!(ask(&listen).await.is_none(), "nobody is there to be asked");
        let door = HandoverSocket::open(&listen);
        (listener, door, listen)
    }

    /// The streams of a server whose client was never heard.
    fn away() -> Streams {
        let (streams, _link, _carrier) =
            rove_streams::client::start(&[7; 32], rove_streams::SecretMemory::ORDINARY);
        streams
    }

    /// Asks while the holder holds, who lets go if it comes to that.
    async fn asked(
        (listener, door, listen): (Listener, HandoverSocket, Listen),
        streams: &Streams,
    ) -> Option<(Listener, HandoverSocket)> {
        let hold = async {
            door.passed(&listener, streams).await;
            listener.leave();
            door.leave();
        };
        tokio::pin!(hold);
        let passed = tokio::select! {
            biased;
            passed = ask(&listen) => passed,
            () = &mut hold => unreachable!("it waits until all is taken"),
        };
        if passed.is_some() {
            hold.await;
        }
        passed
    }

    #[tokio::test]
    async fn a_port_passes_on_only_while_its_client_is_away() {
        let (_client, near) = rove_streams::in_memory();
        assert!(asked(holder().await, &near).await.is_none());

        let held = holder().await;
        let listen = held.2.clone();
        // Nobody has taken this one yet, and it is not broken off.
        let mut waits = TcpStream::connect(("127.0.0.1", held.0.port())).await.unwrap();
        let (listener, door) = asked(held, &away()).await.unwrap();
        waits.write_all(b"hello").await.unwrap();
        let mut accepted = listener.accept().await;
        let mut said = [0; 5];
        accepted.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"hello");
        // And on, by the same door.
        let (again, _door) = asked((listener, door, listen), &away()).await.unwrap();
        let connected = TcpStream::connect(("127.0.0.1", again.port()));
        let (connected, _accepted) = tokio::join!(connected, again.accept());
        connected.unwrap();
    }

    #[tokio::test]
    async fn what_is_asked_for_in_vain_stays() {
        let (listener, door, listen) = holder().await;
        let Listen::Tcp { port, .. } = listen else { unreachable!("a port") };
        let streams = away();
        let passed = door.passed(&listener, &streams);
        tokio::pin!(passed);
        let in_vain = async {
            // Somebody who goes away again, at once or with the answer.
            drop(UnixStream::connect(handover::place(&name(&listen)).unwrap()).await.unwrap());
            let asker =
                UnixStream::connect(handover::place(&name(&listen)).unwrap()).await.unwrap();
            assert_eq!(receive(&asker).await.unwrap().len(), 1 + listener.sockets().len());
            drop(asker);
            // Somebody who wants another address of the same port.
            let other = Listen::Tcp { bind: Bind::Any, port };
            assert!(ask(&other).await.is_none());
            // The answers come one after the other: all of these are settled.
            let asker =
                UnixStream::connect(handover::place(&name(&listen)).unwrap()).await.unwrap();
            receive(&asker).await.unwrap();
        };
        tokio::select! {
            () = &mut passed => panic!("nobody has taken it"),
            () = in_vain => {}
        }
        let connected = TcpStream::connect(("127.0.0.1", port));
        let (connected, _accepted) = tokio::join!(connected, listener.accept());
        connected.unwrap();
    }

    #[tokio::test]
    async fn a_unix_socket_keeps_its_file() {
        let path = PathBuf::from(format!("rove-handover-{}", std::process::id()));
        let path = std::env::temp_dir().join(path);
        let _ = std::fs::remove_file(&path);
        let listen = Listen::Unix(path.clone());
        let listener = Listener::bind(&listen).await.unwrap();
        let held = (listener, HandoverSocket::open(&listen), listen.clone());
        let (listener, door) = asked(held, &away()).await.unwrap();
        let (connected, _) = tokio::join!(UnixStream::connect(&path), listener.accept());
        connected.unwrap();
        // What has taken its place is nobody's to hand over.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        assert!(asked((listener, door, listen), &away()).await.is_none());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn doors_have_names_of_their_own() {
        let path = |path: &str| Listen::Unix(path.into());
        let port = |port| Listen::Tcp { bind: Bind::Any, port };
        let host = |host: &str| Listen::Tcp { bind: Bind::Host(host.into()), port: 80 };
        let near = |bind| Listen::Tcp { bind, port: 80 };
        assert_eq!(name(&near(Bind::Unsaid)), name(&near(Bind::Loopback)));
        let names = [
            port(80),
            port(65_535),
            near(Bind::Unsaid),
            host("192.0.2.1"),
            path("/a"),
            path(&"/b".repeat(2000)),
        ];
        let names = names.map(|listen| name(&listen));
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
            // FreeBSD's and macOS' paths of sockets are the shortest.
            let place = handover::place(name).unwrap();
            assert!(place.as_os_str().len() < 104, "{place:?}");
        }
    }
}
