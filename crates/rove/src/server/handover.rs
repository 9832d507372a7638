//! How a listening socket of a forwarding passes from one session of a user's to the next: a client that was
//! killed leaves a server that waits for it for days, with its ports. Whoever finds one taken asks its holder, over a
//! Unix socket without a file, named by the user and the port; the holder lets go if its own client is not there.
//!
//! Each sees by the socket's credentials that the other is the same user's. Where there are no such sockets (they are
//! Linux's), nobody can be asked.

use std::io;
use std::time::Duration;

use rove_streams::Streams;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::forward::spec::Listen;

/// How long an answer is awaited. The holder is sure of its client within 17 s.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// The pause after somebody who asks could not be taken, for want of files mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The holder's answer, whether the socket is free now or the holder's client is there: trying shows which.
const ANSWER: u8 = 0;

/// Where the holder of a listening socket is asked for it.
#[derive(Debug)]
pub struct Door(Option<UnixListener>);

/// Who asked, and waits.
#[derive(Debug)]
pub struct Asker(UnixStream);

impl Door {
    /// Opens the door of what listens here. Where it cannot be had, nobody comes.
    pub fn open(listen: &Listen) -> Door {
        Door(UnixListener::bind(name(listen)).ok())
    }

    /// Waits until somebody asks while the client of `streams` is not there. The door is closed then.
    pub async fn asked(self, streams: &Streams) -> Asker {
        let Some(listener) = self.0 else { return std::future::pending().await };
        loop {
            let Ok((mut asker, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            if !is_ours(&asker) {
                continue;
            }
            let is_there = tokio::select! {
                biased;
                // Gone again, and nobody wants it any more.
                _ = asker.read_u8() => continue,
                is_there = streams.is_there() => is_there,
            };
            if !is_there {
                return Asker(asker);
            }
            let _ = asker.write_u8(ANSWER).await;
        }
    }
}

impl Asker {
    /// Tells that the socket is free.
    pub async fn let_go(mut self) {
        // Whoever does not hear it finds the socket free all the same.
        let _ = self.0.write_u8(ANSWER).await;
    }
}

/// Asks whoever holds what is to be listened on, and waits for the answer. It may be free then.
pub async fn ask(listen: &Listen) {
    let answer = async {
        let mut holder = UnixStream::connect(name(listen)).await?;
        if !is_ours(&holder) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        holder.read_u8().await
    };
    let _ = tokio::time::timeout(ANSWER_WAIT, answer).await;
}

/// The name of a door; the octet before it makes it one without a file.
fn name(listen: &Listen) -> String {
    let user = rustix::process::geteuid().as_raw();
    let what = match listen {
        Listen::Tcp { port, .. } => port.to_string(),
        // A path may be longer than a name.
        Listen::Unix(path) => {
            blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex()[..32].to_owned()
        }
    };
    format!("\0rove/{user}/{what}")
}

fn is_ours(peer: &UnixStream) -> bool {
    peer.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forward::listen::Listener;
    use crate::forward::spec::Bind;

    /// Asks for a port whose holder has these streams, as a server does.
    async fn asked(streams: &Streams) -> io::Result<Listener> {
        let chosen = Listen::Tcp { bind: Bind::Loopback, port: 0 };
        let holder = Listener::bind(&chosen).await.unwrap();
        let listen = Listen::Tcp { bind: Bind::Loopback, port: holder.port() };
        ask(&listen).await;
        let taken = Listener::bind(&listen).await.unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse, "nobody is there to be asked");
        let door = Door::open(&listen);
        let hold = async {
            let asker = door.asked(streams).await;
            drop(holder);
            asker.let_go().await;
            std::future::pending::<()>().await;
        };
        tokio::pin!(hold);
        let want = async {
            // Somebody who goes away again changes nothing.
            drop(UnixStream::connect(name(&listen)).await.unwrap());
            ask(&listen).await;
            Listener::bind(&listen).await
        };
        tokio::select! {
            found = want => found,
            () = &mut hold => unreachable!("it goes on for ever"),
        }
    }

    #[tokio::test]
    async fn a_port_passes_on_only_while_its_client_is_away() {
        // Never heard.
        let (away, _link, _carrier) = rove_streams::client::start(&[7; 32]);
        asked(&away).await.unwrap();
        // Near.
        let (_client, server) = rove_streams::in_memory();
        assert_eq!(asked(&server).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn doors_have_names_of_their_own() {
        let path = |path: &str| Listen::Unix(path.into());
        let port = |port| Listen::Tcp { bind: Bind::Any, port };
        let names =
            [port(80), port(65_535), path("/a"), path(&"/b".repeat(2000))].map(|l| name(&l));
        for (at, name) in names.iter().enumerate() {
            assert!(name.len() <= 107 && !names[..at].contains(name), "{name}");
        }
    }
}
