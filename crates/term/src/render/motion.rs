//! Tracks the reader's cursor, how surely its position is known, and finds the cheapest motion to another one.

use alloc::vec::Vec;

use crate::dialect::{Ability, Dialect};
use crate::render::pen::{number_len, put_number};

/// How surely the reader's cursor stands where we think.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CursorKnowledge {
    /// At this row and column; the next character prints there.
    Firm,
    /// The last column was just printed: the next character wraps. Where BS or any relative motion
    /// leads from here differs between emulators (mosh-protocol.md §11, weakness 9).
    Deferred,
    /// Something of disputable width was printed, or nothing is known: only an address helps.
    Lost,
}

/// The reader's cursor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    pub row: usize,
    pub col: usize,
    pub footing: CursorKnowledge,
}

/// Steps by BS or LF that are tried, as in stock frames.
const STEPS_MAX: usize = 4;

impl Cursor {
    /// Nothing is known.
    pub(super) const LOST: Self = Self { row: 0, col: 0, footing: CursorKnowledge::Lost };
    /// Where `CSI H` and `CSI r` lead.
    pub(super) const HOME: Self = Self { row: 0, col: 0, footing: CursorKnowledge::Firm };

    /// In the first cell of the screen.
    pub(super) fn is_home(&self) -> bool {
        (self.row, self.col) == (0, 0)
    }

    /// The next character prints at this place.
    pub(super) fn is_at(&self, row: usize, col: usize) -> bool {
        self.footing == CursorKnowledge::Firm && (self.row, self.col) == (row, col)
    }

    /// Goes there by the fewest bytes, and stands firm.
    pub(super) fn go(&mut self, row: usize, col: usize, dialect: &Dialect, out: &mut Vec<u8>) {
        if self.is_at(row, col) {
            return;
        }
        let there = Self { row, col, footing: CursorKnowledge::Firm };
        let stepping = self
            .steps_to(there, dialect)
            .filter(|steps| steps.cost() <= there.address_cost(dialect));
        match stepping {
            Some(steps) => steps.write(out),
            None => there.write_address(dialect, out),
        }
        *self = there;
    }

    /// The octets that [`Cursor::go`] would write.
    pub(super) fn cost_to(&self, row: usize, col: usize, dialect: &Dialect) -> usize {
        if self.is_at(row, col) {
            return 0;
        }
        let there = Self { row, col, footing: CursorKnowledge::Firm };
        let stepping = self.steps_to(there, dialect).map_or(usize::MAX, |steps| steps.cost());
        stepping.min(there.address_cost(dialect))
    }

    fn steps_to(&self, there: Self, dialect: &Dialect) -> Option<MotionCost> {
        if self.footing == CursorKnowledge::Lost {
            return None;
        }
        let across = self.across(there.col, dialect)?;
        let down = self.down(there.row, dialect)?;
        Some(MotionCost { across, down })
    }

    fn across(&self, col: usize, dialect: &Dialect) -> Option<Step> {
        if col == 0 {
            return Some(if self.is_at(self.row, 0) { Step::None } else { Step::Return });
        }
        let address = dialect.can(Ability::Motion).then_some(Step::Column(col));
        if self.footing != CursorKnowledge::Firm {
            return address;
        }
        let relative = match col.checked_sub(self.col) {
            Some(0) => Some(Step::None),
            Some(forth) => dialect.can(Ability::Motion).then_some(Step::Forth(forth)),
            None if self.col - col <= STEPS_MAX => Some(Step::Backspaces(self.col - col)),
            None => dialect.can(Ability::Motion).then_some(Step::Back(self.col - col)),
        };
        cheaper(relative, address)
    }

    fn down(&self, row: usize, dialect: &Dialect) -> Option<Step> {
        let address = dialect.can(Ability::Motion).then_some(Step::Row(row));
        let relative = match row.checked_sub(self.row) {
            Some(0) => Some(Step::None),
            Some(down) if down <= STEPS_MAX => Some(Step::LineFeeds(down)),
            Some(down) => dialect.can(Ability::Motion).then_some(Step::Down(down)),
            None => dialect.can(Ability::Motion).then_some(Step::Up(self.row - row)),
        };
        cheaper(relative, address)
    }

    fn address_cost(&self, dialect: &Dialect) -> usize {
        match (self.row, self.col) {
            (0, 0) if dialect.can(Ability::Motion) => 3,
            (row, 0) if dialect.can(Ability::Motion) => 3 + number_len(row + 1),
            (row, col) => 4 + number_len(row + 1) + number_len(col + 1),
        }
    }

    fn write_address(&self, dialect: &Dialect, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[");
        // Some terminals want both numbers.
        let shorten = dialect.can(Ability::Motion);
        if self.row > 0 || self.col > 0 || !shorten {
            put_number(out, self.row + 1);
        }
        if self.col > 0 || !shorten {
            out.push(b';');
            put_number(out, self.col + 1);
        }
        out.push(b'H');
    }
}

fn cheaper(a: Option<Step>, b: Option<Step>) -> Option<Step> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if a.cost() <= b.cost() { a } else { b }),
        (a, b) => a.or(b),
    }
}

/// One motion along the row, then one along the column.
struct MotionCost {
    across: Step,
    down: Step,
}

impl MotionCost {
    fn cost(&self) -> usize {
        self.across.cost() + self.down.cost()
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.across.write(out);
        self.down.write(out);
    }
}

#[derive(Clone, Copy)]
enum Step {
    None,
    Return,
    Backspaces(usize),
    LineFeeds(usize),
    Forth(usize),
    Back(usize),
    Up(usize),
    Down(usize),
    /// CHA, from 0.
    Column(usize),
    /// VPA, from 0.
    Row(usize),
}

impl Step {
    fn cost(self) -> usize {
        match self {
            Step::None => 0,
            Step::Return => 1,
            Step::Backspaces(count) | Step::LineFeeds(count) => count,
            // RI is one byte shorter than CUU.
            Step::Up(1) => 2,
            Step::Forth(1) | Step::Back(1) | Step::Down(1) => 3,
            Step::Forth(count) | Step::Back(count) | Step::Up(count) | Step::Down(count) => {
                3 + number_len(count)
            }
            Step::Column(at) | Step::Row(at) => 3 + number_len(at + 1),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Step::None => {}
            Step::Return => out.push(b'\r'),
            Step::Backspaces(count) => out.extend(core::iter::repeat_n(b'\x08', count)),
            Step::LineFeeds(count) => out.extend(core::iter::repeat_n(b'\n', count)),
            Step::Up(1) => out.extend_from_slice(b"\x1bM"),
            Step::Forth(count) => sequence(count, b'C', out),
            Step::Back(count) => sequence(count, b'D', out),
            Step::Up(count) => sequence(count, b'A', out),
            Step::Down(count) => sequence(count, b'B', out),
            Step::Column(at) => sequence(at + 1, b'G', out),
            Step::Row(at) => sequence(at + 1, b'd', out),
        }
    }
}

/// `CSI count final`, without the count where it is 1.
pub(super) fn sequence(count: usize, last: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b[");
    if count != 1 {
        put_number(out, count);
    }
    out.push(last);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        dialect: Dialect,
        from: (usize, usize, CursorKnowledge),
        to: (usize, usize),
        want: &str,
    ) {
        let (row, col, footing) = from;
        let mut cursor = Cursor { row, col, footing };
        let cost = cursor.cost_to(to.0, to.1, &dialect);
        let mut out = Vec::new();
        cursor.go(to.0, to.1, &dialect, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), want, "{from:?} -> {to:?}");
        assert_eq!(cost, out.len(), "{from:?} -> {to:?}");
        assert!(cursor.is_at(to.0, to.1));
    }

    #[test]
    fn peers_are_moved_by_the_shortest() {
        use CursorKnowledge::{Deferred, Firm, Lost};
        for (from, to, want) in [
            ((5, 9, Firm), (5, 9), ""),
            ((5, 9, Firm), (5, 7), "\x08\x08"),
            ((5, 9, Firm), (5, 0), "\r"),
            ((5, 9, Firm), (7, 0), "\r\n\n"),
            ((5, 9, Firm), (6, 9), "\n"),
            ((5, 79, Deferred), (6, 0), "\r\n"),
            ((5, 9, Firm), (5, 10), "\x1b[C"),
            ((5, 9, Firm), (5, 40), "\x1b[31C"),
            ((5, 99, Firm), (5, 4), "\x1b[5G"),
            ((5, 9, Firm), (4, 9), "\x1bM"),
            ((5, 9, Firm), (0, 0), "\x1b[H"),
            ((5, 9, Firm), (1, 0), "\x1b[2H"),
            ((30, 9, Firm), (1, 9), "\x1b[2d"),
            ((5, 79, Deferred), (5, 79), "\x1b[80G"),
            ((5, 9, Lost), (5, 9), "\x1b[6;10H"),
        ] {
            check(Dialect::ROVE, from, to, want);
            check(Dialect::MOSH, from, to, want);
        }
    }
}
