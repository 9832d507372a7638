//! Streams beside a session, at the server: threads of their own, made when the client first asks, so that a
//! key never waits for bulk and a session without streams pays nothing for them.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rove_ssp::Remote;
use rove_streams::server::{Dormant, QuicInbox};

use crate::net::udp::{ROUTE_MTU, Socket};
use crate::os::locked;
use crate::os::threads;
use crate::server::service_config::ServiceConfig;
use crate::server::services::{self, Requested};

/// The streams of a session, if the wire allows any.
pub(super) struct StreamService {
    /// Their keys and services, until they begin.
    idle: Option<(Dormant, ServiceConfig)>,
    lane: Option<QuicInbox>,
    services: Option<JoinHandle<()>>,
    asked: Arc<Requested>,
}

impl StreamService {
    /// Streams that can begin, if there is a secret.
    pub(super) fn new(secret: Option<&[u8; 32]>, config: ServiceConfig) -> StreamService {
        let idle = secret.map(|secret| (Dormant::new(secret, locked::MEMORY), config));
        StreamService { idle, lane: None, services: None, asked: Arc::default() }
    }

    /// Whether they have not begun, and a datagram shows that the client asks for them. Strangers get no
    /// answer and start nothing.
    pub(super) fn is_asked_for(&self, datagram: &[u8]) -> bool {
        self.idle.as_ref().is_some_and(|(idle, _)| idle.is_asked_for(datagram))
    }

    /// Begins, once: from here on the session's port is shared. `first` is the last datagram, which asked
    /// for streams, if there is one: its sender need not ask again.
    pub(super) fn begin(
        &mut self,
        socket: &Socket,
        first: Option<(Remote, &[u8])>,
    ) -> io::Result<()> {
        let Some((idle, config)) = self.idle.take() else { return Ok(()) };
        let (streams, lane, carrier) = idle.start();
        let carrier = carrier.with_streams(socket.streams().clone());
        let port = socket.share(lane.clone())?;
        lane.heard();
        if let Some((from, first)) = first {
            socket.hand_on(from, first);
        }
        // A port that cannot be written to is of no use to the session either, whose end it is. A panic, a
        // library's perhaps, ends the streams, and not the session.
        let end = End(lane.clone());
        let carry = async move || {
            let _end = end;
            let _ = carrier.run(port, ROUTE_MTU).await;
        };
        self.lane = Some(lane);
        spawn("streams", carry)?;
        let asked = Arc::clone(&self.asked);
        self.services =
            Some(spawn("services", async move || services::serve(streams, config, asked).await)?);
        Ok(())
    }

    /// How long what the client asked for is kept while it is silent.
    pub(super) fn kept(&self) -> Duration {
        self.asked.kept()
    }

    /// Whether they have not begun.
    pub(super) fn is_idle(&self) -> bool {
        self.idle.is_some()
    }

    /// Whether programs here are waiting for the client's agent, so that it begins as soon as there is a client.
    pub(super) fn has_agent(&self) -> bool {
        self.idle.as_ref().is_some_and(|(_, config)| config.agent.is_some())
    }

    /// An authentic datagram of the session has come.
    pub(super) fn heard(&self) {
        if let Some(lane) = &self.lane {
            lane.heard();
        }
    }

    /// A key has come: bulk yields for a moment.
    pub(super) fn stir(&self) {
        if let Some(lane) = &self.lane {
            lane.mark_interactive();
        }
    }
}

/// Ends the streams when dropped, so that nobody waits for a carrier that is gone.
struct End(QuicInbox);

impl Drop for End {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for StreamService {
    fn drop(&mut self) {
        if let Some(lane) = &self.lane {
            lane.close();
        }
        // What runs for the client is given up in good order.
        if let Some(services) = self.services.take() {
            let _ = services.join();
        }
    }
}

impl fmt::Debug for StreamService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("begun", &self.lane.is_some()).finish_non_exhaustive()
    }
}

/// Runs a future in a thread of its own.
fn spawn<F: Future<Output = ()>>(
    name: &str,
    work: impl FnOnce() -> F + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    threads::spawn(name, move || {
        runtime.block_on(work());
        // A disk that does not answer keeps nobody.
        runtime.shutdown_background();
    })
}

#[cfg(test)]
mod tests;
