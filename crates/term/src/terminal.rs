//! A terminal: parser, screen and answers.

use alloc::string::String;
use alloc::vec::Vec;

use triomphe::Arc;

use crate::dialect::Dialect;
use crate::emulator::memo::ClusterCache;
use crate::emulator::profile::{Profile, Reflow};
use crate::emulator::state::{Updates, Window};
use crate::emulator::xtwinops::Resizing;
use crate::emulator::{Emulator, ResolvedPen};
use crate::parser::Parser;
use crate::screen::history::{History, Keeping};
use crate::screen::properties::TerminalProperties;
use crate::screen::{Screen, Size};

/// Whether programs may ask for checksums of the screen's content (DECRQCRA).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Checksums {
    /// The query is ignored: a checksum of one cell tells what stands there.
    #[default]
    Ignored,
    /// The query is answered. For conformance tests.
    Answered,
}

/// An emulator that turns a program's bytes into a [`Screen`].
#[derive(Clone, Debug)]
pub struct Terminal {
    screen: Screen,
    parser: Parser,
    profile: &'static Profile,
    replies: Vec<u8>,
    cells_touched: u64,
    checksums: Checksums,
    window: Option<Window>,
    scratch: String,
    memo: ClusterCache,
    history: History,
    around: TerminalProperties,
    updates: Updates,
}

impl Terminal {
    /// A terminal just reset, emulating what `dialect`'s reader emulates.
    pub fn new(size: Size, dialect: Dialect) -> Self {
        Self::resume(Screen::new(size), dialect)
    }

    /// A terminal that goes on from a snapshot.
    pub fn resume(screen: Screen, dialect: Dialect) -> Self {
        let profile = Profile::of(&dialect);
        let history = History::above(profile.history, screen.depth());
        Self {
            screen,
            parser: Parser::new(profile.parser),
            profile,
            replies: Vec::new(),
            cells_touched: 0,
            checksums: Checksums::Ignored,
            window: None,
            scratch: String::new(),
            memo: ClusterCache::default(),
            history,
            around: TerminalProperties::default(),
            updates: Updates::default(),
        }
    }

    /// Decides about DECRQCRA.
    pub fn set_checksums(&mut self, checksums: Checksums) {
        self.checksums = checksums;
    }

    /// Decides about lines that scroll off the primary screen from now on. By default they are kept, but for a
    /// stock mosh's terminal, which has no history.
    pub fn set_history(&mut self, keeping: Keeping) {
        self.history = History::above(keeping, self.screen.depth());
    }

    /// Decides whether programs may change the size.
    pub fn set_resizing(&mut self, resizing: Resizing) {
        self.window = match resizing {
            Resizing::Ignored => None,
            Resizing::Obeyed => Some(Window::default()),
        };
    }

    /// Sets the properties of the user's terminal. Reports a changed colour scheme to a program that asked for
    /// reports (mode 2031), and sizes in pixels to one that asked for those (mode 2048).
    pub fn set_properties(&mut self, around: TerminalProperties) {
        let before = core::mem::replace(&mut self.around, around);
        let modes = self.screen.modes();
        if before.scheme() != around.scheme() && modes.scheme_reports {
            self.replies.extend_from_slice(crate::screen::encode::scheme_report(around.scheme()));
        }
        if before.cell != around.cell && modes.resize_reports {
            self.replies.extend(crate::screen::encode::in_band_size(self.screen.size(), &around));
        }
    }

    /// Reads a chunk of what a program wrote. How the stream is cut into chunks does not matter.
    pub fn advance(&mut self, bytes: &[u8]) {
        self.advance_within(bytes, u64::MAX);
    }

    /// The same, but stops once the work reaches `cells` ([`cells_touched`](Self::cells_touched)). Returns the number
    /// of octets read: all, or at least one. The caller passes the rest again.
    ///
    /// A sequence that has begun is carried out. It touches at most four screens ([`Size::work`]) and some 4,000
    /// cells (`tests/limits.rs`), but DECCARA and DECRARA 20 for each cell that has a rendition of its own.
    pub fn advance_within(&mut self, bytes: &[u8], cells: u64) -> usize {
        let Screen { state, grid, hidden, pool, extras } = &mut self.screen;
        let grid = Arc::make_mut(grid);
        // What others did to this snapshot is no work of ours.
        grid.take_touched();
        let mut emulator = Emulator {
            state,
            grid,
            hidden,
            pool,
            extras,
            replies: &mut self.replies,
            profile: self.profile,
            history: &mut self.history,
            cells_max: cells,
            scratch: &mut self.scratch,
            pen: ResolvedPen::STALE,
            memo: &mut self.memo,
            direct: false,
            checksums: self.checksums == Checksums::Answered,
            window: &mut self.window,
            updates: &mut self.updates,
            around: &self.around,
        };
        emulator.text_rules_changed();
        let read = self.parser.advance(&mut emulator, bytes);
        self.cells_touched += emulator.grid.take_touched();
        read
    }

    /// Changes the size, which must have been clamped by [`Size`].
    pub fn resize(&mut self, size: Size) {
        if size == self.screen.size() {
            return;
        }
        self.updates.forget();
        let grids = 1 + u64::from(self.screen.hidden().is_some());
        self.cells_touched += grids * (self.screen.size().work() + size.work());
        self.screen = match self.profile.reflow {
            Reflow::Lines => self.screen.reflowed(size, &mut self.history),
            Reflow::Cut => self.screen.resized(size),
        };
        if self.screen.modes().resize_reports {
            self.replies.extend(crate::screen::encode::in_band_size(size, &self.around));
        }
    }

    /// Takes the terminal's answers to queries, which the caller sends to the program as input.
    pub fn take_replies(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.replies)
    }

    /// The current screen. Cloning it takes a snapshot.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// The screen before the update that a program has begun and not ended (mode 2026): its last whole picture.
    /// `None` while none is under way, or if the size has changed in it.
    pub fn before_update(&self) -> Option<Screen> {
        self.updates.before(self.screen.pool())
    }

    /// How many updates programs have begun.
    pub fn updates_begun(&self) -> u64 {
        self.updates.begun
    }

    /// The lines above the primary screen.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// No sequence is cut in half: resuming from the screen now loses nothing.
    pub fn is_idle(&self) -> bool {
        self.parser.is_idle()
    }

    /// The work done so far, counted in cells: those that were written, erased, moved, copied or looked at, and 16
    /// for each row. Other work counts as the cells that take as long: 0.1 to 10 ns each. Parsing is not
    /// counted; it takes up to 80 ns for each octet (`examples/work_bench`).
    pub fn cells_touched(&self) -> u64 {
        self.cells_touched
    }

    /// The screen alone. A sequence cut in half is forgotten.
    pub fn into_screen(self) -> Screen {
        self.screen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_band() {
        let around = |cell| TerminalProperties { cell, ..TerminalProperties::default() };
        let small = Some(Size::clamped(10, 40));
        for (mode, cell, resized, later, want) in [
            ("\x1b[?2048h", None, None, None, "\x1b[48;24;80;0;0t"),
            ("\x1b[?2048h", None, None, Some((8, 16)), "\x1b[48;24;80;0;0t\x1b[48;24;80;384;640t"),
            (
                "\x1b[?2048h",
                Some((8, 16)),
                small,
                Some((8, 16)),
                "\x1b[48;24;80;384;640t\x1b[48;10;40;160;320t",
            ),
            ("", None, small, Some((8, 16)), ""),
        ] {
            let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
            terminal.set_properties(around(cell));
            terminal.advance(mode.as_bytes());
            resized.into_iter().for_each(|size| terminal.resize(size));
            terminal.set_properties(around(later));
            let replies = String::from_utf8(terminal.take_replies()).unwrap();
            assert_eq!(replies, want, "{mode:?} {cell:?} {resized:?} {later:?}");
        }
    }
}
