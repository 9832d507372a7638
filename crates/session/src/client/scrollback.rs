//! The lines above the screen in the terminal's own history. When the window grows they come back
//! onto it: lines of the session, which the server brings back as well, or lines that the user had
//! before, which the next picture would erase.
//!
//! Terminals agree on no more than this: a taller window shows as many lines of the history as it
//! grew by.

use rove_term::screen::Buffer;
use rove_term::{Screen, Size};

/// A guess, since no terminal tells: a wrong one leaves a line twice, or none of the user's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TtyScrollback {
    /// Lines of the session at the end of the terminal's history.
    ours: u64,
    /// Lines of the user's on the screen, at its top.
    theirs: u16,
}

impl TtyScrollback {
    /// The window went from one size to another, with `used` rows in use.
    pub(crate) fn resized(&mut self, old: Size, new: Size, used: u16) {
        // Rows below the last one in use go first.
        self.ours += u64::from(used.min(old.rows).saturating_sub(new.rows));
        let grown = new.rows.saturating_sub(old.rows);
        let back = self.ours.min(grown.into());
        self.ours -= back;
        self.theirs = (self.theirs + grown - back as u16).min(new.rows);
    }

    /// Sets the number of the session's lines at the end of the terminal's history, where it is known.
    pub(crate) fn set_ours(&mut self, lines: u64) {
        self.ours = lines;
    }

    /// How many lines of the session are there.
    pub(crate) fn ours(&self) -> u64 {
        self.ours
    }

    /// One picture of the primary screen follows another: what scrolled away went to the history.
    pub(crate) fn scrolled(&mut self, shown: &Screen, wanted: &Screen) {
        let primary = |screen: &Screen| screen.buffer() == Buffer::Primary;
        let top = wanted.row(0).id();
        if primary(shown) && primary(wanted) && shown.row(0).id() != top {
            self.ours += shown.rows().position(|row| row.id() == top).unwrap_or(0) as u64;
        }
    }

    /// How many lines must leave at the top before anything is erased. Asked once.
    pub(crate) fn take_theirs(&mut self) -> u16 {
        core::mem::take(&mut self.theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_come_back() {
        let size = |rows: u16| Size::clamped(rows, 80_i32);
        for (ours, used, rows, theirs, left) in [
            (0, 24, &[24, 30][..], 6, 0),
            (4, 24, &[24, 30], 2, 0),
            (10, 24, &[24, 30], 0, 4),
            (0, 24, &[24, 20, 24], 0, 0),
            (0, 3, &[24, 20, 24], 4, 0),
            (0, 22, &[24, 20, 24], 2, 0),
            (0, 24, &[24, 20, 30], 6, 0),
            (0, 24, &[24, 1000, 10], 10, 14),
        ] {
            let mut above = TtyScrollback { ours, theirs: 0 };
            for pair in rows.windows(2) {
                above.resized(size(pair[0]), size(pair[1]), used);
            }
            assert_eq!((above.theirs, above.ours), (theirs, left), "{ours} {used} {rows:?}");
        }
    }
}
