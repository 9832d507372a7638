//! Signals that ask a program to end or that it hands on, on every system.

use std::future::poll_fn;
use std::io;

pub(crate) use crate::os::family::signals::{
    CAN_SUSPEND, Signal, Signals, handle_children, leave_to_first, outlive_size_limits, suspend,
    wipe_frames,
};

/// The signals to pass on to the command.
pub(crate) const HANDED_ON: [Signal; 6] =
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2];

/// Waits for a signal that ends programs, except those that this program was started to ignore.
pub(crate) async fn asked_to_end() -> io::Result<Signal> {
    let mut watched = Signals::heed(&HANDED_ON[..4])?;
    Ok(poll_fn(|cx| watched.poll(cx)).await)
}
