//! Holds the parts of a screen that seldom change and that snapshots share until then: titles, clipboard, colours,
//! notifications, tab stops, saved and pushed state.

use alloc::string::String;
use alloc::sync::Arc as StdArc;
use alloc::vec::Vec;

use crate::screen::cursor::SavedCursor;
use crate::screen::palettes::{Palette, Palettes, SPECIAL_COLORS};
use crate::screen::style::Style;

/// Titles kept on the title stack, as xterm keeps; the oldest goes.
pub(crate) const TITLE_STACK_MAX: usize = 10;
/// Kitty keyboard flags kept a screen; the oldest goes.
pub(crate) const KEYBOARD_STACK_MAX: usize = 16;

/// The data that a program last put on the clipboard (OSC 52).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Clipboard {
    /// How often it was set: setting the same text twice is two events.
    pub count: u64,
    /// The selections named: characters of `cpqs01234567`.
    pub selection: String,
    /// Base64, as the program sent it.
    pub data: String,
}

impl Clipboard {
    /// Emptied: one more event.
    pub(crate) fn cleared(&self) -> Clipboard {
        if self.data.is_empty() {
            return self.clone();
        }
        Clipboard { count: self.count + 1, selection: self.selection.clone(), data: String::new() }
    }
}

/// The last notification of a program (OSC 9, OSC 99, OSC 777).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Notification {
    /// How many there were.
    pub count: u64,
    /// Empty for OSC 9.
    pub title: String,
    /// The text.
    pub body: String,
}

/// The parts of a notification so far (OSC 99).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct PendingNotice {
    /// The id that its parts have in common.
    pub id: String,
    pub title: String,
    pub body: String,
}

/// The progress a program reports (OSC 9;4): state 0 to 4 and percent.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// 0 none, 1 running, 2 error, 3 indeterminate, 4 paused.
    pub state: u8,
    /// 0 to 100.
    pub percent: u8,
}

/// Window title and icon name; `None` until a program sets one.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Titles {
    /// Window title.
    pub window: Option<StdArc<str>>,
    /// Icon name.
    pub icon: Option<StdArc<str>>,
}

/// Tab stops, one bit a column.
pub(crate) type TabStops = [u64; 16];

/// State that seldom changes, shared between snapshots until it does.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extras {
    pub titles: Titles,
    pub title_stack: Vec<Titles>,
    pub clipboard: StdArc<Clipboard>,
    pub notification: StdArc<Notification>,
    /// A notification of which parts are to come (OSC 99).
    pub pending_notice: Option<StdArc<PendingNotice>>,
    pub progress: Progress,
    pub palette: StdArc<Palette>,
    /// The colours of bold, underlined, blinking, reverse and italic text (OSC 5), kept for queries.
    pub special: [Option<(u8, u8, u8)>; SPECIAL_COLORS],
    /// OSC 7.
    pub directory: StdArc<str>,
    pub tabs: TabStops,
    /// DECSC, for each grid.
    pub saved: [SavedCursor; 2],
    /// Private modes saved by XTSAVE.
    pub saved_modes: alloc::collections::BTreeMap<u16, bool>,
    /// Kitty keyboard flags below the current ones, for each grid.
    pub keyboard: [Vec<u8>; 2],
    /// The other grid's current kitty keyboard flags.
    pub hidden_keyboard_flags: u8,
    /// SGR pushed by XTPUSHSGR.
    pub sgr_stack: Vec<Style>,
    /// Colours pushed by XTPUSHCOLORS.
    pub palettes: Palettes,
}

/// A stop every eight columns.
pub(crate) fn default_tabs() -> TabStops {
    [0x0101_0101_0101_0101; 16]
}
