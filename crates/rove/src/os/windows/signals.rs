//! What asks a program to end: Ctrl-C, Ctrl-Break, a closed window, a logoff, the system's end. They have the names of
//! signals, as the other systems' and a command on a host have them.

use std::io;
use std::mem;
use std::task::{Context, Poll};

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close,
    ctrl_logoff, ctrl_shutdown,
};

use crate::os::windows::console::Resizes;

/// A signal by the number that it has on Linux.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Signal(i32);

#[allow(missing_docs, reason = "the names are those of signal(7)")]
impl Signal {
    pub const HUP: Signal = Signal(1);
    pub const INT: Signal = Signal(2);
    pub const QUIT: Signal = Signal(3);
    pub const ILL: Signal = Signal(4);
    pub const TRAP: Signal = Signal(5);
    pub const ABORT: Signal = Signal(6);
    pub const BUS: Signal = Signal(7);
    pub const FPE: Signal = Signal(8);
    pub const KILL: Signal = Signal(9);
    pub const USR1: Signal = Signal(10);
    pub const SEGV: Signal = Signal(11);
    pub const USR2: Signal = Signal(12);
    pub const PIPE: Signal = Signal(13);
    pub const ALARM: Signal = Signal(14);
    pub const TERM: Signal = Signal(15);
    pub const CONT: Signal = Signal(18);
    pub const STOP: Signal = Signal(19);
    pub const XCPU: Signal = Signal(24);
    pub const XFSZ: Signal = Signal(25);
    pub const VTALARM: Signal = Signal(26);
    pub const PROF: Signal = Signal(27);
    pub const WINCH: Signal = Signal(28);
    pub const SYS: Signal = Signal(31);

    /// Its number.
    pub const fn as_raw(self) -> i32 {
        self.0
    }
}

/// Nothing: no handler interrupts a thread.
pub(crate) fn wipe_frames() {}

/// Nothing: no handler interrupts a thread.
pub(crate) fn leave_to_first() {}

/// Nothing: no signal tells of a child's end.
pub(crate) fn handle_children() {}

/// Signals that this process watches.
pub(crate) struct Signals {
    watched: Vec<(Signal, Source)>,
    /// Those that [`Signals::gather`] has seen.
    came: Vec<Signal>,
}

/// Where a signal comes from.
enum Source {
    Interrupt(CtrlC),
    Break(CtrlBreak),
    Close(CtrlClose),
    Logoff(CtrlLogoff),
    Shutdown(CtrlShutdown),
    Window(Resizes),
}

impl Source {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let came = match self {
            Source::Interrupt(source) => source.poll_recv(cx),
            Source::Break(source) => source.poll_recv(cx),
            Source::Close(source) => source.poll_recv(cx),
            Source::Logoff(source) => source.poll_recv(cx),
            Source::Shutdown(source) => source.poll_recv(cx),
            Source::Window(source) => return source.poll(cx),
        };
        match came {
            Poll::Ready(Some(())) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }
}

impl Signals {
    /// Watches for signals of these kinds; some never come here.
    pub(crate) fn watch(kinds: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        let mut watched = Vec::new();
        for kind in kinds {
            match kind {
                Signal::INT => watched.push((kind, Source::Interrupt(ctrl_c()?))),
                Signal::QUIT => watched.push((kind, Source::Break(ctrl_break()?))),
                Signal::HUP => watched.push((kind, Source::Close(ctrl_close()?))),
                Signal::TERM => {
                    watched.push((kind, Source::Logoff(ctrl_logoff()?)));
                    watched.push((kind, Source::Shutdown(ctrl_shutdown()?)));
                }
                Signal::WINCH => watched.push((kind, Source::Window(Resizes::default()))),
                _ => {}
            }
        }
        Ok(Signals { watched, came: Vec::new() })
    }

    /// The same: no signal is ignored here.
    pub(crate) fn heed(kinds: &[Signal]) -> io::Result<Signals> {
        Signals::watch(kinds.iter().copied())
    }

    /// The next of them to arrive.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        for (kind, source) in &mut self.watched {
            if source.poll(cx).is_ready() {
                return Poll::Ready(*kind);
            }
        }
        Poll::Pending
    }

    /// Notes those that have arrived. Returns whether there are any to [`take`](Self::take).
    pub(crate) fn gather(&mut self, cx: &mut Context<'_>) -> bool {
        while let Poll::Ready(signal) = self.poll(cx) {
            self.came.push(signal);
        }
        !self.came.is_empty()
    }

    /// Those that came since the last call.
    pub(crate) fn take(&mut self) -> Vec<Signal> {
        mem::take(&mut self.came)
    }
}

/// Refuses: a program of Windows cannot be stopped for later.
pub(crate) fn suspend() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "programs are not suspended on Windows"))
}

/// Nothing: no limit on the size of files ends a program.
pub(crate) fn outlive_size_limits() {}

/// Whether programs can be stopped, and go on later.
pub(crate) const CAN_SUSPEND: bool = false;
