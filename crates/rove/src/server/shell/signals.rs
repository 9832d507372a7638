//! The signals that a session with a program handles.

use std::io;
use std::task::Context;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that mean something here.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    user: Signal,
    child: Signal,
    came: Came,
}

/// Which signals came since the last turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    pub terminate: bool,
    pub user: bool,
    pub child: bool,
}

impl Signals {
    pub(super) fn new() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            user: signal(SignalKind::user_defined1())?,
            child: signal(SignalKind::child())?,
            came: Came::default(),
        })
    }

    /// The signals since the last call.
    pub(super) fn take(&mut self) -> Came {
        std::mem::take(&mut self.came)
    }

    /// Notes signals that came. Returns whether any did.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let came = &mut self.came;
        came.terminate |= self.terminate.poll_recv(cx).is_ready();
        came.terminate |= self.interrupt.poll_recv(cx).is_ready();
        came.user |= self.user.poll_recv(cx).is_ready();
        came.child |= self.child.poll_recv(cx).is_ready();
        came.terminate || came.user || came.child
    }
}
