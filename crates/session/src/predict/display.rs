//! Decides when guesses are worth showing, and when to mark them as guesses: on slow paths and
//! after glitches.

use core::time::Duration;

use rove_ssp::Time;
use rove_term::style::Underline;

use crate::predict::look::Look;

/// Thresholds of mosh-protocol.md §9.2; intervals are the transport's send interval, half of SRTT.
const SRTT_ON: Duration = Duration::from_millis(30);
const SRTT_OFF: Duration = Duration::from_millis(20);
const FLAG_ON: Duration = Duration::from_millis(80);
const FLAG_OFF: Duration = Duration::from_millis(50);
/// A guess unanswered for this long is a glitch ...
const GLITCH: Duration = Duration::from_millis(250);
/// ... that this many quick confirmations heal, ...
const GLITCH_REPAIRS: u32 = 10;
/// ... not faster than one in this time.
const GLITCH_REPAIR_INTERVAL: Duration = Duration::from_millis(150);
/// A guess unanswered for this long is flagged, ...
const GLITCH_FLAG: Duration = Duration::from_millis(5000);
/// ... until the count has come down to [`GLITCH_REPAIRS`] again.
const GLITCH_FLAG_REPAIRS: u32 = 20;
/// How often pending guesses are looked at while a trigger might still go off.
const REDRAW: Duration = Duration::from_millis(50);

/// Guesses are underlined, because they will stand unconfirmed for long.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Flagging {
    On,
    #[default]
    Off,
}

impl Flagging {
    /// How a guess is to look.
    pub(crate) fn flag(self, mut look: Look) -> Look {
        if self == Self::On && look.style.attrs.underline() == Underline::None {
            look.style.attrs = look.style.attrs.with_underline(Underline::Single);
        }
        look
    }
}

/// When guesses are shown and flagged. Two thresholds each, so that a path between them does not
/// make guesses flicker.
#[derive(Clone, Debug, Default)]
pub(crate) struct DisplayPolicy {
    slow_path: bool,
    flagging: Flagging,
    glitch: u32,
    last_repair: Option<Time>,
    right: u64,
}

impl DisplayPolicy {
    /// The path's send interval, before guesses are judged by stock's rules, and after that by ours.
    pub(crate) fn path(&mut self, interval: Duration, active: bool) {
        if interval > SRTT_ON {
            self.slow_path = true;
        // Guesses on the screen stay until they are answered, though the path is quick again.
        } else if interval <= SRTT_OFF && !active {
            self.slow_path = false;
        }
        if interval > FLAG_ON {
            self.flagging = Flagging::On;
        } else if interval <= FLAG_OFF {
            self.flagging = Flagging::Off;
        }
        // A flag raised by a glitch falls with the next short interval, as in stock.
        if self.glitch > GLITCH_REPAIRS {
            self.flagging = Flagging::On;
        }
    }

    /// How many guesses were right.
    pub(crate) fn right(&self) -> u64 {
        self.right
    }

    /// A guess made at `made` was right.
    pub(crate) fn confirmed(&mut self, now: Time, made: Time) {
        self.right += 1;
        let due = self.last_repair.is_none_or(|last| now.since(last) >= GLITCH_REPAIR_INTERVAL);
        // Keys echoed in one frame are one sign that the path is quick again, not many.
        if now.since(made) < GLITCH && self.glitch > 0 && due {
            self.glitch -= 1;
            self.last_repair = Some(now);
        }
    }

    /// A guess made at `made` is still unanswered.
    pub(crate) fn pending(&mut self, now: Time, made: Time) {
        let age = now.since(made);
        if age >= GLITCH_FLAG {
            self.glitch = GLITCH_FLAG_REPAIRS;
        } else if age >= GLITCH && self.glitch < GLITCH_REPAIRS {
            self.glitch = GLITCH_REPAIRS;
        }
    }

    /// The path is slow, or was a moment ago.
    pub(crate) fn show(&self) -> bool {
        self.slow_path || self.glitch > 0
    }

    pub(crate) fn flagging(&self) -> Flagging {
        self.flagging
    }

    /// How soon to look again at guesses that are pending.
    pub(crate) fn redraw(&self) -> Option<Duration> {
        let settled = self.glitch > 0 && self.flagging == Flagging::On;
        (!settled).then_some(REDRAW)
    }
}
