//! The size of the user's window.

use rove_term::Size;

use crate::os::tty;
use crate::trace::Trace;

/// The window's size; the usual one if the terminal does not know its own.
pub(super) fn window(trace: &Trace) -> Size {
    tty::window().unwrap_or_else(|| {
        let (rows, cols) = tty::SIZE_UNKNOWN;
        trace.step(format_args!("the terminal does not know its size; taking {cols} by {rows}"));
        Size::clamped(rows, cols)
    })
}
