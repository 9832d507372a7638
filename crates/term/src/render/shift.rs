//! Finds text that moved along its row after an insertion or deletion before it. ICH and DCH move it in the reader,
//! and move the text behind it back. A wrong guess costs bytes and never a wrong picture: the row is compared again
//! afterwards.

use alloc::vec::Vec;
use core::ops::Range;

use crate::dialect::Reader;
use crate::render::motion::sequence;
use crate::render::paint::{Alike, Painter};
use crate::render::view::{UNSEEN, differing, is_covered};
use crate::screen::cell::Cell;
use crate::screen::style::{Color, Style};

/// Columns that text is looked for from where it was: a word.
const COUNT_MAX: usize = 32;
/// Cells that must agree before a whole row is compared.
const SAMPLE: usize = 4;
/// Octets of ICH or DCH.
const SHIFT_COST: usize = 4;
/// Octets of moving the text behind back: another one, and the motion there.
const RETURN_COST: usize = 10;

/// The cells `start..end` move by `count`, so that as many blanks come in at one end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Shift {
    start: usize,
    end: usize,
    count: usize,
    kind: ShiftKind,
    behind: Behind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ShiftKind {
    Insert,
    Delete,
}

/// The content behind the cells that move.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Behind {
    Blanks,
    Text,
}

impl Shift {
    /// The shift that leaves least to be printed, if it is worth its octets. Both rows are of one pool, and as
    /// long.
    fn find(old: &[Cell], new: &[Cell]) -> Option<Self> {
        let differ = |(a, b): (&Cell, &Cell)| seen(*a) != seen(*b);
        let Range { start, end } = differing(old, new)?;
        if end - start <= SHIFT_COST {
            return None;
        }
        let blank = |cell: &Cell| seen(*cell) == Cell::BLANK.bits();
        let behind = if old[end..].iter().all(blank) { Behind::Blanks } else { Behind::Text };
        let pairs = old[start..end].iter().zip(&new[start..end]);
        let changed = pairs.filter(|(a, b)| seen(**a) != seen(**b)).count();
        let mut best = None;
        for kind in [ShiftKind::Insert, ShiftKind::Delete] {
            let (longer, shorter) = if kind == ShiftKind::Insert { (new, old) } else { (old, new) };
            let first = seen(shorter[start]);
            if shorter[start..end].iter().take(SAMPLE).all(blank) {
                continue;
            }
            for count in 1..(end - start).min(COUNT_MAX + 1) {
                let sample = start..(start + SAMPLE).min(end - count);
                let pairs = || shorter[sample.clone()].iter().zip(&longer[start + count..]);
                let shift = Self { start, end, count, kind, behind };
                if first != seen(longer[start + count])
                    || pairs().any(differ)
                    || !shift.is_clean(old)
                {
                    continue;
                }
                let cost = shift.cost(old, new);
                if cost < best.map_or(changed, |(least, _)| least) {
                    best = Some((cost, shift));
                }
            }
        }
        best.map(|(_, shift)| shift)
    }

    /// It splits no wide cell.
    fn is_clean(&self, old: &[Cell]) -> bool {
        let Self { start, end, count, .. } = *self;
        let mut borders = [start, start + count, end - count, end].into_iter();
        borders.all(|col| col >= old.len() || !old[col].is_tail() && !is_covered(old, col))
    }

    /// An estimate of the octets of the shift and of the cells that still differ after it.
    fn cost(&self, old: &[Cell], new: &[Cell]) -> usize {
        let left = self.apply(old).iter().zip(new).filter(|(a, b)| seen(**a) != seen(**b)).count();
        left + SHIFT_COST + if self.behind == Behind::Text { RETURN_COST } else { 0 }
    }

    /// The row as the reader has it then.
    fn apply(&self, old: &[Cell]) -> Vec<Cell> {
        let Self { start, end, count, .. } = *self;
        let mut cells = old.to_vec();
        let moving = match self.behind {
            Behind::Blanks => &mut cells[start..],
            Behind::Text => &mut cells[start..end],
        };
        let blanks = match self.kind {
            ShiftKind::Insert => {
                moving.rotate_right(count);
                &mut moving[..count]
            }
            ShiftKind::Delete => {
                moving.rotate_left(count);
                let kept = moving.len() - count;
                &mut moving[kept..]
            }
        };
        blanks.fill(Cell::BLANK);
        cells
    }
}

impl Painter<'_, '_> {
    /// Moves text along a row that ends in no soft wrap, and returns the row as the reader has it then.
    pub(super) fn shift(&mut self, row: usize, old: &[Cell], new: &[Cell]) -> Option<Vec<Cell>> {
        let is_peer = self.dialect.reader() != Reader::Tty;
        if !is_peer || self.is_wrapping() || !matches!(self.alike, Alike::Always) {
            return None;
        }
        let shift = Shift::find(old, new)?;
        // Where a stock peer may have taken a character for wider than we do, nobody knows what would move.
        let steady = |col: usize| self.old.look(old, col).is_none_or(|look| look.text.is_steady());
        if self.dialect.reader() == Reader::StockPeer && !(shift.start..old.len()).all(steady) {
            return None;
        }
        if self.pen.style.bg != Color::DEFAULT {
            // Blanks come in with the pen's background.
            self.set_style(Style::PLAIN);
        }
        let Shift { start, end, count, .. } = shift;
        let steps = match shift.kind {
            ShiftKind::Insert => [(end - count, b'P'), (start, b'@')],
            ShiftKind::Delete => [(start, b'P'), (end - count, b'@')],
        };
        for (col, function) in steps {
            if shift.behind == Behind::Text || col == start {
                self.go(row, col);
                sequence(count, function, self.out);
            }
        }
        Some(shift.apply(old))
    }
}

fn seen(cell: Cell) -> u64 {
    cell.bits() & !UNSEEN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, want: Option<(ShiftKind, usize, usize, Behind)>) {
        let cells = |text: &str| -> Vec<Cell> {
            let padded = text.chars().chain(std::iter::repeat(' ')).take(40);
            padded.map(Cell::narrow).collect()
        };
        let (old, new) = (cells(old), cells(new));
        let found = Shift::find(&old, &new);
        let found = found.map(|shift| (shift.kind, shift.start, shift.count, shift.behind));
        assert_eq!(found, want, "{old:?} {new:?}");
    }

    #[test]
    fn shifts_are_found() {
        use Behind::{Blanks, Text};
        use ShiftKind::{Delete, Insert};
        for (old, new, want) in [
            ("the quick brown fox", "the quick brown fox", None),
            ("the quick brown fox", "tthe quick brown fox", Some((Insert, 1, 1, Blanks))),
            ("the quick brown fox", "the very quick brown fox", Some((Insert, 4, 5, Blanks))),
            ("the quick brown fox", "he quick brown fox", Some((Delete, 0, 1, Blanks))),
            ("the quick brown fox", "the brown fox", Some((Delete, 4, 6, Blanks))),
            (
                "a quick brown fox jumps  | x",
                "a quicker brown fox jumps| x",
                Some((Insert, 7, 2, Text)),
            ),
            (
                "a quicker brown fox jumps| x",
                "a quick brown fox jumps  | x",
                Some((Delete, 7, 2, Text)),
            ),
            ("ab", "xab", None),
            ("", "the quick brown fox", None),
            ("the quick brown fox", "", None),
        ] {
            check(old, new, want);
        }
    }
}
