//! Where the session's picture stands on the user's terminal: below rows that are the user's, where the cursor was when
//! the session began. A terminal that is asked for its cursor tells that; and after a change of its window, how many
//! lines went to its history or came back from there.

use alloc::boxed::Box;

use rove_term::{Screen, Size};

/// The reason to ask before the next picture.
#[derive(Clone, Debug)]
pub(crate) enum Unknown {
    /// Where the picture begins.
    Start,
    /// Where this picture is in a window of another size.
    Resized {
        /// The last one of the old size.
        shown: Box<Screen>,
        /// The line at its top, if all above it were in the terminal's history.
        top: Option<u64>,
    },
}

/// The question where the cursor is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    unknown: Option<Unknown>,
    is_asked: bool,
}

impl Question {
    /// The terminal was taken: the picture begins at the cursor.
    pub(crate) fn start(&mut self) {
        *self = Self { unknown: Some(Unknown::Start), is_asked: false };
    }

    /// The window with this picture has another size. An earlier reason to ask counts on.
    pub(crate) fn resized(&mut self, shown: Screen, top: Option<u64>) {
        self.unknown =
            self.unknown.take().or(Some(Unknown::Resized { shown: Box::new(shown), top }));
        self.is_asked = false;
    }

    /// The window has changed once more before that. Whether anything is to be learnt.
    pub(crate) fn ask_again(&mut self) -> bool {
        self.is_asked = false;
        self.unknown.is_some()
    }

    /// Whether to ask. Asked once.
    pub(crate) fn asks(&mut self) -> bool {
        self.unknown.is_some() && !core::mem::replace(&mut self.is_asked, true)
    }

    /// Whether it is not known where the picture begins.
    pub(crate) fn is_start(&self) -> bool {
        matches!(self.unknown, Some(Unknown::Start))
    }

    /// Takes the reason: the answer is here, or none will come.
    pub(crate) fn take(&mut self) -> Option<Unknown> {
        self.unknown.take()
    }
}

/// The row of a resized window at which the picture's row 0 is, if the terminal has its cursor in the row `cursor`;
/// less than 0 if it went to the history. `above` rows of the picture before were not the session's.
///
/// Where the width changed and it is not known whether the terminal `wraps` its lines anew, the lower row counts: that
/// leaves a line twice rather than none.
pub(crate) fn top(shown: &Screen, above: u16, size: Size, cursor: u16, wraps: Option<bool>) -> i32 {
    let below = shown.cursor().row.saturating_sub(above);
    let rewrapped = || shown.raised(above).cursor_row_at(size.cols);
    let below = match wraps {
        _ if shown.size().cols == size.cols => below,
        Some(false) => below,
        Some(true) => rewrapped(),
        None => rewrapped().min(below),
    };
    i32::from(cursor) - i32::from(below)
}

/// How many lines come back from the history of a terminal that `takes_back` lines, if it has as many. Its cursor shows
/// fewer if the picture was drawn anew in the larger window before that was told.
pub(crate) fn back(shown: &Screen, size: Size, takes_back: Option<bool>) -> u16 {
    let old = shown.size();
    let is_full = shown.cursor().row + 1 == old.rows;
    match takes_back {
        Some(true) if is_full && old.cols == size.cols => size.rows.saturating_sub(old.rows),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rove_term::{Dialect, Terminal};

    /// Only where a terminal is known to, the picture filled its window, and the width stayed.
    #[test]
    fn lines_that_come_back() {
        let size = |rows: u16, cols: u16| Size::clamped(rows, cols);
        for (lines, window, takes_back, back) in [
            (30, size(30, 20), Some(true), 6),
            (30, size(30, 20), Some(false), 0),
            (30, size(30, 20), None, 0),
            (30, size(20, 20), Some(true), 0),
            (30, size(30, 21), Some(true), 0),
            (10, size(30, 20), Some(true), 0),
        ] {
            let mut terminal = Terminal::new(size(24, 20), Dialect::ROVE);
            terminal.advance("line\r\n".repeat(lines).as_bytes());
            let shown = terminal.into_screen();
            assert_eq!(super::back(&shown, window, takes_back), back, "{lines} {window:?}");
        }
    }

    /// What the terminal did with its lines does not matter where its height alone changed.
    #[test]
    fn the_place_of_a_picture_in_another_window() {
        let size = |rows: u16, cols: u16| Size::clamped(rows, cols);
        for (window, cursor, wraps, row) in [
            (size(30, 20), 5, None, 3),
            (size(30, 20), 11, Some(true), 9),
            (size(10, 20), 1, Some(false), -1),
            (size(24, 10), 7, Some(true), 3),
            (size(24, 10), 5, Some(false), 3),
            (size(24, 10), 5, None, 3),
            (size(24, 40), 4, Some(true), 3),
            (size(24, 40), 5, Some(false), 3),
            (size(24, 40), 4, None, 3),
        ] {
            let mut terminal = Terminal::new(size(24, 20), Dialect::ROVE);
            terminal.advance(b"a line that is more than twenty letters\r\nlast");
            let shown = terminal.into_screen().lowered(3);
            assert_eq!(shown.cursor().row, 5);
            assert_eq!(top(&shown, 3, window, cursor, wraps), row, "{window:?} {wraps:?}");
        }
    }
}
