//! Carries streams beside a shell's session, in a thread of its own, so that neither keys nor the users of
//! the streams wait for the other (`docs/streams.md`).

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rove_streams::Streams;
use rove_streams::carried::StreamPorts;
use rove_streams::client::{self, PathHints};
use tokio::sync::mpsc;

use crate::net::udp::ROUTE_MTU;
use crate::notice::{Notice, OnFailure};
use crate::os::locked;
use crate::os::sandbox::{Reach, confine};
use crate::os::threads;
use crate::services::forward::apart::Serving;
use crate::ssh::{Reached, Secret};
use crate::trace::Trace;

/// Streams beside a session, and the notices of their forwardings.
pub struct StreamsHandle {
    /// Gets the session's knowledge of the path.
    pub(crate) link: PathHints,
    /// Notices for the user.
    pub(crate) news: mpsc::Receiver<Notice>,
    /// Whether a failed forwarding ends the session.
    pub(crate) on_failure: OnFailure,
    /// Where QUIC's datagrams wait for the session's stream.
    pub(crate) ports: StreamPorts,
    /// Held, since dropping it ends the forwardings with the session.
    pub(crate) _serving: Serving,
}

/// The streams beside a shell's session, and their driver's handle. `lost` is called if a fault of ours ends
/// them first. Their thread has given up all but UDP. `None` on the mosh wire, which has no streams.
pub fn beside(
    found: &Reached,
    lost: impl FnOnce() + Send + 'static,
    trace: &Trace,
) -> io::Result<Option<(Streams, PathHints, StreamPorts)>> {
    let Secret::Native(secrets, _) = &found.secret else { return Ok(None) };
    let (streams, link, carrier) = client::start(secrets.streams(), locked::MEMORY);
    let ports = StreamPorts::default();
    let carrier = carrier.with_system(ROUTE_MTU, ports.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let path = link.clone();
    let (tell, told) = std::sync::mpsc::channel();
    let work = move || {
        // The receiver waits for this, so the send cannot fail.
        let _ = tell.send(confine(&Reach::Datagrams));
        drop(runtime.block_on(carrier.run()));
    };
    threads::spawn("streams", move || carry(work, &path, lost))?;
    let confined = told.recv().map_err(io::Error::other)?;
    trace.step(format_args!("what carries streams is confined: {confined}"));
    Ok(Some((streams, link, ports)))
}

/// Carries streams until they end. A panic, perhaps a library's, ends them but not the session.
fn carry(work: impl FnOnce(), link: &PathHints, lost: impl FnOnce()) {
    let _closing = Closing(link.clone());
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        lost();
    }
}

/// Closes the streams when dropped.
struct Closing(PathHints);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Does work that streams depend on, and closes them after it or its panic, so that nobody waits for it.
pub(super) async fn closing<T>(link: PathHints, work: impl Future<Output = T>) -> T {
    let _closing = Closing(link);
    work.await
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_streams_alone() {
        let (streams, link, _carrier) = client::start(&[7; 32], locked::MEMORY);
        let (tell, lost) = oneshot::channel();
        // As `beside` has it: on a thread, which the panic does not get out of.
        let work = move || carry(|| panic!("as planned"), &link, || tell.send(()).unwrap());
        threads::spawn("apart", work).unwrap().join().unwrap();
        lost.await.unwrap();
        assert!(streams.accept().await.is_none(), "nobody waits for what does not come");
    }

    #[tokio::test]
    async fn a_panic_of_what_carries_a_session_ends_its_streams() {
        let (streams, link, _carrier) = client::start(&[7; 32], locked::MEMORY);
        let carried = tokio::spawn(closing(link, async { panic!("as planned") }));
        assert!(carried.await.unwrap_err().is_panic());
        assert!(streams.accept().await.is_none(), "nobody waits for what does not come");
    }
}
