//! A session without a terminal at the client, for the users of its streams (`docs/streams.md`). A thread of
//! its own drives it, so that neither waits for the other.

use std::io;
use std::net::SocketAddr;

use rove_streams::Streams;
use rove_streams::carried::StreamPorts;
use rove_streams::client;
use tokio::sync::oneshot;

use crate::client::headless::{Goodbye, HeadlessConfig, drive};
use crate::client::streams::closing;
use crate::failure::Failure;
use crate::net::udp::ROUTE_MTU;
use crate::os::clock::Clock;
use crate::os::signals::asked_to_end;
use crate::os::{self, locked};
use crate::ssh::{Reached, Secret};
use crate::trace::Trace;

/// A session without a terminal, for streams only. Dropping it closes the session without waiting for the peer.
pub struct Session {
    /// Its streams.
    pub streams: Streams,
    goodbye: Option<oneshot::Sender<Goodbye>>,
    over: oneshot::Receiver<()>,
}

impl Session {
    /// Begins the session with a server that was started for streams alone, and waits until the server is
    /// heard. A signal that ends programs ends the wait and the server.
    pub async fn start(clock: Clock, found: Reached, trace: &Trace) -> Result<Session, Failure> {
        let Secret::Native(secrets, conn) = found.secret else {
            return Err(Failure::new(
                "the server there speaks the mosh wire, which has no streams",
                "Install the same rove there.",
            ));
        };
        let failed = |error: io::Error| Failure::new(format!("cannot begin: {error}"), "");
        os::process::keep_freed_memory();
        let server = found.candidates.addresses[0];
        let (streams, link, carrier) = client::start(secrets.streams(), locked::MEMORY);
        let ports = StreamPorts::default();
        let carrier = carrier.with_system(ROUTE_MTU, ports.clone());
        match (found.is_ssh_alone, &found.stream) {
            (false, _) => link.expect(server),
            (true, Some(_)) => {}
            (true, None) => return Err(no_stream()),
        }
        let (goodbye, said) = oneshot::channel();
        let (tell, contact) = oneshot::channel();
        let (done, over) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let own = link.clone();
        let seat = HeadlessConfig {
            clock,
            candidates: found.candidates,
            secrets,
            conn,
            link: own,
            stream: found.stream,
            ports,
            is_ssh_alone: found.is_ssh_alone,
        };
        let carry = move || {
            runtime.block_on(async move {
                let carried = tokio::spawn(closing(seat.link.clone(), carrier.run()));
                // Whoever waits learns by the end of the streams that there is no session.
                let _ = closing(link, drive(seat, tell, said)).await;
                let _ = carried.await;
            });
            let _ = done.send(());
        };
        os::threads::spawn("session", carry).map_err(failed)?;
        let session = Session { streams, goodbye: Some(goodbye), over };
        tokio::select! {
            contact = contact => match contact {
                Ok(from) => trace.step(format_args!("first heard from {from}")),
                Err(_) => return Err(no_contact(server)),
            },
            Ok(_) = asked_to_end() => {
                session.close().await;
                return Err(Failure::new("interrupted before the server was heard", ""));
            }
        }
        Ok(session)
    }

    /// Says goodbye and waits a little for the answer. Undelivered octets are lost.
    pub async fn close(self) {
        self.part(Goodbye::Answered).await;
    }

    /// Says goodbye after all work is done, without a round trip for the answer. A server that loses each of
    /// these datagrams stays as if its client was killed, so this is not for one with work left to end.
    pub async fn leave(self) {
        self.part(Goodbye::Said).await;
    }

    async fn part(mut self, how: Goodbye) {
        if let Some(goodbye) = self.goodbye.take() {
            let _ = goodbye.send(how);
        }
        let _ = (&mut self.over).await;
    }
}

/// Nothing but ssh is to be used, and that ended.
fn no_stream() -> Failure {
    Failure::new("the server there cannot go on over ssh", "A newer one can: rove install HOST")
}

fn no_contact(server: SocketAddr) -> Failure {
    let (ip, port) = (server.ip(), server.port());
    Failure::new(
        format!("nothing came back from {ip} on UDP port {port}"),
        format!(
            "ssh got there but UDP did not: open UDP port {port} in the firewalls before it, or \
             choose ports they let through with --udp-port."
        ),
    )
}
