//! The lines above the screen at the client: which the server has told, and which are in the terminal's own history.

use alloc::format;
use core::ops::Range;

use rove_term::{Dialect, History, Pool, Size, Terminal};

use crate::past::Past;

/// Lines that one paint brings to the terminal's history: a picture of the screen as it is follows soon. In lines and not in
/// octets, since a paint ends with a whole line; of the usual length these are 24 KiB, which a key's picture may have to
/// wait for. While a key does wait, few lines come that would be printed (`results/scrollback.md`).
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
    /// How deep the screen is that the server told last.
    depth: u64,
    /// Up to where lines were erased.
    erased: u64,
    /// The terminal is to forget its history.
    erases: bool,
    /// Lines that are missing before `printed`.
    missing: u64,
}

impl Backlog {
    /// What a server tells first. Lines of the session before that are missing, unless `wants_fewer` says that no others
    /// were asked for.
    pub(crate) fn new(past: &Past, wants_fewer: bool) -> Self {
        let lines = past.news().cloned();
        let lines = lines.unwrap_or_else(|| History::starting_at(past.told()));
        let printed = lines.first();
        let erased = past.erased();
        let depth = past.depth();
        let missing = if wants_fewer { 0 } else { printed.saturating_sub(erased) };
        Self { lines, printed, first: printed, depth, erased, erases: false, missing }
    }

    /// Takes what a newer state tells.
    pub(crate) fn take(&mut self, past: &Past) {
        self.depth = past.depth();
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
        let last = self.lines.end().min(depth);
        let end = last.min(self.printed + PAINT_LINES_MAX);
        // A line is not cut in two, unless it goes on at the top of the screen or is too long: its second part comes
        // behind another picture.
        let mut pool = Pool::new();
        let mut goes_on = |end: u64| {
            let row = end.checked_sub(1).and_then(|at| self.lines.row_at(at, 0, &mut pool));
            end < depth && row.is_some_and(|row| row.is_wrapped())
        };
        let whole = (self.printed + 1..=end).rev().find(|&end| !goes_on(end));
        let is_held_back = end == last && end < self.printed + PAINT_LINES_MAX;
        let cut = if is_held_back { self.printed } else { end };
        self.printed..whole.unwrap_or(cut.max(self.printed))
    }

    /// How many lines above a screen of this depth have not arrived.
    pub(crate) fn lacks(&self, depth: u64) -> u64 {
        depth.saturating_sub(self.printed.max(self.lines.end()))
    }

    /// Whether anything is to be done for the terminal's history.
    pub(crate) fn brings(&self, depth: u64) -> bool {
        self.erases || self.missing > 0 || !self.due(depth).is_empty()
    }

    /// Lines up to this position are in the terminal's history.
    pub(crate) fn print(&mut self, end: u64) {
        self.printed = end;
    }

    /// Lines from this position on may not be there as they were printed: they are brought again, but for those that were
    /// erased meanwhile.
    pub(crate) fn unprint(&mut self, position: u64) {
        let held = position.max(self.lines.first()).max(self.first);
        self.printed = self.printed.min(held);
    }

    /// Up to where lines are in the terminal's history.
    pub(crate) fn printed_to(&self) -> u64 {
        self.printed
    }

    /// How many lines above a screen of this depth are not there, also of those that have not arrived.
    pub(crate) fn behind(&self, depth: u64) -> u64 {
        depth.saturating_sub(self.printed)
    }

    /// How many lines of the session are in the terminal's history.
    pub(crate) fn printed(&self) -> u64 {
        self.printed.saturating_sub(self.first)
    }

    /// The line at the top of the picture; `None` while lines wait that belong before it.
    pub(crate) fn top(&self) -> Option<u64> {
        let is_complete = self.lines.end().min(self.depth) <= self.printed;
        // It may have been printed before.
        is_complete.then(|| self.printed.min(self.depth))
    }

    /// A resize or the user's hand changed the number of the session's lines in the terminal's history to `now`, when the
    /// picture had this [top](Self::top): what left it is not brought again. Lines that waited would have come before it.
    pub(crate) fn moved(&mut self, now: u64, top: Option<u64>) {
        if now < self.printed() {
            self.printed = self.first + now;
        } else if let Some(top) = top {
            self.printed = self.printed.max(top + (now - self.printed()));
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
            depth: 0,
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
