//! Finds scrolls from the numbers of lines: a block of rows that stands elsewhere, which the reader can move instead
//! of reading it again. All rows are compared after a scroll, so a wrong guess costs bytes and never a wrong picture.

use alloc::vec::Vec;

use triomphe::Arc;

use crate::screen::row::{LineId, Row};

/// A row as the reader has it now; `None` came in blank by a scroll or an erase.
pub(super) type Standing<'a> = Option<&'a Arc<Row>>;

/// Rows `top..bottom` move by `count`, and blank rows come in at the other end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Scroll {
    pub top: usize,
    pub bottom: usize,
    pub count: usize,
    pub direction: Direction,
}

impl Scroll {
    /// How many rows go from one place to another.
    fn moved(&self) -> usize {
        self.bottom - self.top - self.count
    }

    /// Whether it moves a whole screen of `rows` rows up, as running text does.
    fn is_text(&self, rows: usize) -> bool {
        self.direction == Direction::Up && (self.top, self.bottom) == (0, rows)
    }

    /// Where the row that comes to `row` stood; `None` if a blank one comes in.
    fn source(&self, row: usize) -> Option<usize> {
        let from = match self.direction {
            Direction::Up => row.checked_add(self.count),
            Direction::Down => row.checked_sub(self.count),
        };
        from.filter(|from| (self.top..self.bottom).contains(from))
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// Scrolls tried in one frame: split windows that all moved. Beyond it rows are drawn anew.
pub(super) const SCROLLS_MAX: usize = 8;

/// Octets that a scroll takes: margins set, moved, reset. It must save more.
const SCROLL_COST: usize = 20;
/// Octets that a scroll of the whole screen takes beside its line feeds: the way to the last row.
const TEXT_SCROLL_COST: usize = 8;

/// The purpose of scrolls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// Fewer octets.
    Brevity,
    /// Also to feed the lines that leave the screen at its top to the reader's own history, at any cost.
    History,
    /// Fewer octets, and no line is to reach that history: row 0 moves in no scroll.
    InPlace,
}

/// Whether any line has moved: otherwise there is no scroll.
pub(super) fn any_moved(standing: &[Standing<'_>], wanted: &[&Arc<Row>]) -> bool {
    let same = |old: &Arc<Row>, new: &Arc<Row>| Arc::ptr_eq(old, new) || old.id() == new.id();
    standing.iter().zip(wanted).any(|(old, new)| !old.is_some_and(|old| same(old, new)))
}

/// The largest scroll that serves its purpose.
pub(super) fn find(
    standing: &[Standing<'_>],
    wanted: &[&Arc<Row>],
    purpose: Purpose,
) -> Option<Scroll> {
    let mut blocks = blocks(standing, wanted);
    blocks.sort_by_key(|scroll| core::cmp::Reverse(scroll.moved()));
    let keeps = |scroll: &Scroll| purpose == Purpose::History && scroll.is_text(standing.len());
    let may = |scroll: &Scroll| purpose != Purpose::InPlace || scroll.top > 0;
    blocks
        .into_iter()
        .find(|scroll| may(scroll) && (keeps(scroll) || pays(scroll, standing, wanted)))
}

/// Moves the rows as the reader does.
pub(super) fn apply(scroll: &Scroll, standing: &mut [Standing<'_>]) {
    let region = &mut standing[scroll.top..scroll.bottom];
    match scroll.direction {
        Direction::Up => {
            region.rotate_left(scroll.count);
            let left = region.len() - scroll.count;
            region[left..].fill(None);
        }
        Direction::Down => {
            region.rotate_right(scroll.count);
            region[..scroll.count].fill(None);
        }
    }
}

/// The scrolls that bring each longest run of lines, all moved by as much, to where it belongs.
fn blocks(standing: &[Standing<'_>], wanted: &[&Arc<Row>]) -> Vec<Scroll> {
    let indices = indices(standing);
    let old_row = |row: &Row| {
        let found = indices.binary_search_by_key(&row.id(), |(id, _)| *id).ok()?;
        Some(indices[found].1)
    };
    let mut blocks = Vec::new();
    let mut row = 0;
    while row < wanted.len() {
        let first = row;
        row += 1;
        let Some(from) = old_row(wanted[first]).filter(|&from| from != first) else { continue };
        while row < wanted.len() && old_row(wanted[row]) == Some(from + (row - first)) {
            row += 1;
        }
        let last = from + (row - first);
        blocks.push(if from > first {
            let count = from - first;
            Scroll { top: first, bottom: last, count, direction: Direction::Up }
        } else {
            let count = first - from;
            Scroll { top: from, bottom: row, count, direction: Direction::Down }
        });
    }
    blocks
}

/// Where each line stands, by number.
fn indices(standing: &[Standing<'_>]) -> Vec<(LineId, usize)> {
    let numbered = standing.iter().enumerate();
    let mut indices: Vec<_> =
        numbered.filter_map(|(at, row)| row.map(|row| (row.id(), at))).collect();
    // Mostly in order already, which the sort takes in one pass.
    indices.sort_unstable();
    indices
}

/// Whether the region takes fewer octets after the scroll, by more than the scroll costs.
fn pays(scroll: &Scroll, standing: &[Standing<'_>], wanted: &[&Arc<Row>]) -> bool {
    let region = || scroll.top..scroll.bottom;
    let after = |row: usize| {
        let moved = scroll.source(row).and_then(|from| standing[from]);
        distance(moved, wanted[row])
    };
    let cost = match scroll.is_text(standing.len()) {
        true => TEXT_SCROLL_COST + scroll.count,
        false => SCROLL_COST,
    };
    let mut saved_min = cost + region().map(after).sum::<usize>();
    for row in region() {
        let before = distance(standing[row], wanted[row]);
        if before > saved_min {
            return true;
        }
        saved_min -= before;
    }
    false
}

/// About how many octets lead from one row to another: the cells that differ. Numbers of two pools
/// may mean different things; here that only makes the estimate worse.
fn distance(old: Standing<'_>, new: &Arc<Row>) -> usize {
    let Some(old) = old else { return new.occupied().len() };
    if Arc::ptr_eq(old, new) {
        return 0;
    }
    let longer = old.occupied().len().max(new.occupied().len());
    let cells = old.cells().iter().zip(new.cells()).take(longer);
    cells.filter(|(old, new)| old != new).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::cell::Cell;

    /// Rows of ten letters, one row a letter; a space is a blank row whose number is its place +
    /// 1000.
    fn rows(letters: &str) -> Vec<Arc<Row>> {
        let row = |(index, letter): (usize, char)| {
            let id = if letter == ' ' { index as u64 + 1000 } else { letter as u64 };
            let mut row = Row::blank(40, LineId(id));
            if letter != ' ' {
                row.cells.fill(Cell::narrow(letter));
                row.occupied = 40;
            }
            Arc::new(row)
        };
        letters.chars().enumerate().map(row).collect()
    }

    fn check(old: &str, new: &str, want: &[(usize, usize, usize, Direction)]) {
        let (old, new) = (rows(old), rows(new));
        let mut standing: Vec<Standing<'_>> = old.iter().map(Some).collect();
        let wanted: Vec<_> = new.iter().collect();
        let mut found = Vec::new();
        while let Some(scroll) = find(&standing, &wanted, Purpose::Brevity) {
            apply(&scroll, &mut standing);
            found.push((scroll.top, scroll.bottom, scroll.count, scroll.direction));
        }
        assert_eq!(found, want);
    }

    /// What moves below the first row keeps the first row where it is.
    #[test]
    fn scrolls_that_leave_the_history_alone() {
        for (old, new, found) in
            [("abcdef", "bcdefg", false), ("abcdef", "zabcde", false), ("habcde", "hbcdez", true)]
        {
            let (old_rows, new_rows) = (rows(old), rows(new));
            let standing: Vec<Standing<'_>> = old_rows.iter().map(Some).collect();
            let wanted: Vec<_> = new_rows.iter().collect();
            assert_eq!(find(&standing, &wanted, Purpose::InPlace).is_some(), found, "{old} {new}");
        }
    }

    #[test]
    fn scrolls_are_found() {
        use Direction::{Down, Up};
        check("abcdef", "abcdef", &[]);
        check("abcdef", "bcdefg", &[(0, 6, 1, Up)]);
        check("abcdef", "cdefgh", &[(0, 6, 2, Up)]);
        check("abcdef", "zabcde", &[(0, 6, 1, Down)]);
        check("habcde", "hbcdez", &[(1, 6, 1, Up)]);
        check("habcds", "hzabcs", &[(1, 5, 1, Down)]);
        check("abc-defs", "bcx-yzds", &[(0, 3, 1, Up), (4, 7, 2, Down)]);
        check("a     ", "     a", &[(0, 6, 5, Down)]);
        check("abcdef", "fabcde", &[(0, 6, 1, Down)]);
    }

    /// Lines that are cheap to draw anew are lines of the history like others.
    #[test]
    fn scrolls_that_are_lines_of_a_history() {
        let numbered = |letters: &str, first: u64| -> Vec<Arc<Row>> {
            let mut rows = rows(letters);
            for (row, number) in rows.iter_mut().zip(first..) {
                let row = Arc::make_mut(row);
                row.id = LineId(number);
                row.cells[1..].fill(Cell::BLANK);
                row.occupied = row.occupied.min(1);
            }
            rows
        };
        for (old, new, purpose, found) in [
            ("a     ", "      ", Purpose::Brevity, false),
            ("a     ", "      ", Purpose::History, true),
            ("      ", "      ", Purpose::Brevity, false),
            ("yyyyyy", "yyyyyz", Purpose::History, true),
            ("yyyyyy", "yyyyyz", Purpose::InPlace, false),
        ] {
            let (old_rows, new_rows) = (numbered(old, 0), numbered(new, 1));
            let standing: Vec<Standing<'_>> = old_rows.iter().map(Some).collect();
            let wanted: Vec<_> = new_rows.iter().collect();
            let scroll = find(&standing, &wanted, purpose);
            assert_eq!(scroll.is_some(), found, "{old:?} to {new:?}, {purpose:?}");
        }
    }
}
