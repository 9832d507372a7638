//! The lines above the screen at the client: which the server has told, and which are in the terminal's own history.

use alloc::format;
use core::ops::Range;

use rove_term::{Dialect, History, Pool, Size, Terminal};

use crate::past::Past;

/// Lines that one paint brings to the terminal's history: a picture of the screen as it is follows soon.
const PAINT_LINES_MAX: u64 = 300;

/// Lines of the server's, by position. Those before `printed` are in the terminal's history.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// The lines told last, as many as a history keeps.
    lines: History,
    /// Up to where the terminal's history is right.
    printed: u64,
    /// The first line of the session that was printed, or would be.
    first: u64,
    /// Up to where lines were erased.
    erased: u64,
    /// The terminal is to forget its history.
    erases: bool,
    /// Lines that are missing before `printed`.
    missing: u64,
}

impl Backlog {
    /// What a server tells first. Lines before that are none of this client's.
    pub(crate) fn new(past: &Past) -> Self {
        let lines = past.news().cloned();
        let lines = lines.unwrap_or_else(|| History::starting_at(past.told()));
        let printed = lines.first();
        let erased = past.erased();
        Self { lines, printed, first: printed, erased, erases: false, missing: 0 }
    }

    /// Takes what a newer state tells.
    pub(crate) fn take(&mut self, past: &Past) {
        match past.news() {
            Some(news) => self.add(news),
            None if past.told() > self.lines.end() => self.skip_to(past.told()),
            None => {}
        }
        if past.erased() > self.erased {
            self.erase(past.erased());
        }
    }

    fn add(&mut self, news: &History) {
        if news.first() > self.lines.end() {
            self.skip_to(news.first());
        }
        // What is told again may be what was printed.
        let mut pool = Pool::new();
        // What was not told before went there by a resize or by the user's hand.
        let mut again = news.first()..news.end().min(self.printed);
        let other = again.find(|&position| news.agrees(&self.lines, position) == Some(false));
        self.printed = other.unwrap_or(self.printed);
        self.lines.cut(news.first());
        for position in news.first()..news.end() {
            if let Some(row) = news.row_at(position, 0, &mut pool) {
                self.lines.append(&row, &pool);
            }
        }
        // A terminal that takes lines more slowly than they come lacks those that had to make room.
        let first = self.lines.first();
        self.missing = self.missing.saturating_add(first.saturating_sub(self.printed));
        self.printed = self.printed.max(first);
    }

    /// The lines up to this position are not told any more.
    fn skip_to(&mut self, position: u64) {
        self.missing = self.missing.saturating_add(position.saturating_sub(self.printed));
        self.printed = self.printed.max(position);
        self.lines = History::starting_at(position);
    }

    /// The program has erased the lines up to this position.
    fn erase(&mut self, position: u64) {
        self.erased = position;
        self.erases = true;
        self.missing = 0;
        self.printed = self.printed.max(position);
        self.first = self.first.max(position);
        if self.lines.end() < position {
            self.lines = History::starting_at(position);
        }
    }

    /// All that is held.
    pub(crate) fn lines(&self) -> &History {
        &self.lines
    }

    /// The lines that go to the terminal's history next, above a screen of this depth.
    pub(crate) fn due(&self, depth: u64) -> Range<u64> {
        let end = self.lines.end().min(depth).min(self.printed + PAINT_LINES_MAX);
        self.printed..end.max(self.printed)
    }

    /// Lines up to this position are in the terminal's history.
    pub(crate) fn print(&mut self, end: u64) {
        self.printed = end;
    }

    /// How many lines of the session are in the terminal's history.
    pub(crate) fn printed(&self) -> u64 {
        self.printed.saturating_sub(self.first)
    }

    /// A resize or the user's hand changed the number of the session's lines in the terminal's history to `now`. Lines
    /// that wait belong before those that went there.
    pub(crate) fn moved(&mut self, now: u64) {
        if now < self.printed() || self.lines.end() <= self.printed {
            self.printed = self.first + now;
        }
    }

    /// Whether the terminal is to forget its history. Asked once.
    pub(crate) fn take_erases(&mut self) -> bool {
        core::mem::take(&mut self.erases)
    }

    /// One line that says how many are missing, if any are. Asked once.
    pub(crate) fn take_gap(&mut self, size: Size) -> Option<History> {
        let missing = core::mem::take(&mut self.missing);
        if missing == 0 {
            return None;
        }
        let mut terminal = Terminal::new(Size::clamped(1, size.cols), Dialect::ROVE);
        let lines = if missing == 1 { "line is" } else { "lines are" };
        let text = format!("\x1b[2m--- rove: {missing} {lines} missing here ---\x1b[m\r\n");
        terminal.advance(text.as_bytes());
        Some(terminal.history().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines from this position on.
    fn lines(positions: Range<u64>) -> History {
        let mut terminal = Terminal::new(Size::clamped(1, 80), Dialect::ROVE);
        for position in positions.clone() {
            terminal.advance(format!("{position}\r\n").as_bytes());
        }
        let mut lines = History::starting_at(positions.start);
        let mut pool = Pool::new();
        for position in 0..positions.end - positions.start {
            let row = terminal.history().row_at(position, 0, &mut pool).unwrap();
            lines.append(&row, &pool);
        }
        lines
    }

    /// What a terminal lacks that takes lines more slowly than they come is counted, and once.
    #[test]
    fn lines_that_make_room_are_missing() {
        let mut backlog = Backlog {
            lines: lines(0..100),
            printed: 0,
            first: 0,
            erased: 0,
            erases: false,
            missing: 0,
        };
        backlog.print(60);
        for start in (100..20_000).step_by(100) {
            backlog.add(&lines(start..start + 100));
        }
        let first = backlog.lines().first();
        assert!(first > 60, "{first}: nothing had to make room");
        assert_eq!((backlog.printed, backlog.missing), (first, first - 60));
        assert_eq!(backlog.due(20_000).start, first);
        assert!(backlog.take_gap(Size::clamped(24, 80)).is_some());
        assert!(backlog.take_gap(Size::clamped(24, 80)).is_none());
    }
}
