//! The lines above the screen in the terminal's own history. When the window grows they come back
//! onto it: lines of the session, which the server brings back as well, or lines that the user had
//! before, which the next picture would erase.
//!
//! Terminals agree on no more than this: a taller window shows as many lines of the history as it
//! grew by.

use rove_term::screen::Buffer;
use rove_term::{Screen, Size};

/// A guess where a terminal does not tell: a wrong one leaves a line twice, or none of the user's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TtyScrollback {
    /// Lines of the session at the end of the terminal's history.
    ours: u64,
    /// Lines of the user's on the screen, at its top.
    theirs: u16,
}

impl TtyScrollback {
    /// The window went from one size to another, with `used` rows in use. Returns how many are in use then.
    pub(crate) fn resized(&mut self, old: Size, new: Size, used: u16) -> u16 {
        // Rows below the last one in use go first.
        let gone = used.min(old.rows).saturating_sub(new.rows);
        self.leave(gone);
        let grown = new.rows.saturating_sub(old.rows);
        let back = self.ours.min(grown.into());
        self.ours -= back;
        self.theirs = (self.theirs + grown - back as u16).min(new.rows);
        (used + grown).min(new.rows)
    }

    /// As many rows left at the top of the screen: the user's first.
    fn leave(&mut self, rows: u16) {
        let theirs = self.theirs.min(rows);
        self.theirs -= theirs;
        self.ours += u64::from(rows - theirs);
    }

    /// The picture's first row is in this row of the screen; less than 0 if it left at the top. Lines that came back
    /// are the session's, as many as it had there, and above them the user's. Of the session's at least `back` came back,
    /// if there were as many.
    pub(crate) fn moved_to(&mut self, top: i32, back: u16) {
        let top = match self.ours.min(back.into()) as u16 {
            0 => top,
            back => top.max((self.theirs + back).into()),
        };
        let before = i32::from(self.theirs);
        match u16::try_from(top) {
            // Only the user's have left.
            Ok(top) if i32::from(top) <= before => self.theirs = top,
            Ok(top) => {
                let back = top - self.theirs;
                let ours = self.ours.min(back.into());
                self.ours -= ours;
                self.theirs += back - ours as u16;
            }
            Err(_) => {
                self.theirs = 0;
                self.ours += u64::from(top.unsigned_abs());
            }
        }
    }

    /// How many rows at the top of the screen are the user's.
    pub(crate) fn theirs(&self) -> u16 {
        self.theirs
    }

    /// Sets that number.
    pub(crate) fn set_theirs(&mut self, rows: u16) {
        self.theirs = rows;
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
            (0, 20, &[24, 20], 0, 0),
            (0, 24, &[24, 1000, 10], 0, 14),
        ] {
            let mut above = TtyScrollback { ours, theirs: 0 };
            let mut in_use = used;
            for pair in rows.windows(2) {
                in_use = above.resized(size(pair[0]), size(pair[1]), in_use);
            }
            assert_eq!((above.theirs, above.ours), (theirs, left), "{ours} {used} {rows:?}");
        }
    }

    #[test]
    fn a_picture_that_moved() {
        for (theirs, ours, top, back, left) in [
            (5, 0, 5, 0, (5, 0)),
            (5, 0, 2, 0, (2, 0)),
            (5, 0, -3, 0, (0, 3)),
            (5, 0, 9, 4, (9, 0)),
            (0, 10, 4, 4, (0, 6)),
            (0, 10, 0, 4, (0, 6)),
            (2, 3, 2, 4, (2, 0)),
            (0, 3, 4, 0, (1, 0)),
            (0, 3, -2, 0, (0, 5)),
        ] {
            let mut above = TtyScrollback { ours, theirs };
            above.moved_to(top, back);
            assert_eq!((above.theirs, above.ours), left, "{theirs} {ours} {top} {back}");
        }
    }
}
