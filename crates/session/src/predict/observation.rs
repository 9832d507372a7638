//! The facts that come with a key or a frame.

use core::time::Duration;

use rove_ssp::StateNum;
use rove_term::Screen;

use crate::line_mode::LineMode;

/// The facts that come with a key or a frame.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The newest frame received, without overlays.
    pub screen: &'a Screen,
    /// Its echo ack: the frame shows all effects that the keys up to this state had within 50 ms.
    pub echo_ack: StateNum,
    /// The last state sent; keys typed now go out with the next. Neither this nor the echo ack is
    /// ever a part of a long paste: keys need not go out with the next part.
    pub sent: StateNum,
    /// The transport's send interval: half of SRTT, within bounds.
    pub interval: Duration,
    /// The terminal line's mode as of that frame; `None` from a server that does not report it.
    pub line: Option<LineMode>,
}
