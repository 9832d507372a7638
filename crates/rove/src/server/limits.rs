//! How long a server waits, and for what; and what its driver runs on.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rove_ssp::StreamId;

use crate::net::stdio::Stdio;
use crate::os;

/// How long a session lasts without a client (mosh-protocol.md §1.3).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Limits {
    /// From the start to the client's first state. Then the server ends.
    pub unclaimed: Duration,
    /// From the client's newest state; then the session shuts down. `None`: it waits for ever.
    pub network: Option<Duration>,
    /// From the last client's last datagram; then the session ends. `None`: what `shell/orphan.rs` says.
    pub orphan: Option<Duration>,
    /// Silence after which SIGUSR1 ends the session; `None`: it always does.
    pub signal: Option<Duration>,
}

impl Limits {
    /// The same, but a silent client is waited for so long at most, if that is said.
    pub(super) fn keeping(self, keep: Option<Duration>) -> Limits {
        Limits { orphan: [self.orphan, keep].into_iter().flatten().min(), ..self }
    }

    /// Whether SIGUSR1 ends a session after so long a silence; `None` for a client that was never heard.
    pub(super) fn obey_signal(&self, silence: Option<Duration>) -> bool {
        self.signal.is_none_or(|least| silence.is_none_or(|silence| silence >= least))
    }
}

/// Runs a driver, whose files a runtime has to watch.
pub(crate) fn in_runtime(driver: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    os::signals::handle_children();
    drop(entered);
    runtime.block_on(driver)
}

/// A way over ssh.
pub(crate) fn server_stream(id: StreamId, socket: OwnedFd) -> io::Result<Stdio> {
    Stdio::new(id, socket.try_clone()?, socket, b"")
}

/// How long a session that clients come back to says goodbye to one that does not answer, where it ends for another reason
/// than its program's end. A client that is at rest when its way fails notices that 10 s later, and runs ssh after 10 s more.
pub(super) const GOODBYE_WAIT: Duration = Duration::from_secs(60);

/// The same where the server was told to end: a machine that goes down waits for that.
pub(super) const GOODBYE_WAIT_TOLD: Duration = Duration::from_secs(10);

/// How often a client's goodbye is answered; stock does so once. At 30 % loss one client in three waits
/// in vain for a single answer; nobody waits for us.
pub(crate) const GOODBYES: u32 = 4;
