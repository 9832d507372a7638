//! Finds text that moved up or down within some columns, as in windows side by side. One scroll between margins moves
//! it in a reader that has left and right margins. The numbers of lines do not show such a move, so this compares
//! cells. A wrong guess costs bytes and never a wrong picture: the rows are compared again afterwards.

use alloc::vec::Vec;
use core::ops::Range;

use triomphe::Arc;

use crate::dialect::Reader;
use crate::render::motion::{Cursor, sequence};
use crate::render::paint::{Alike, CHANGES_MIN, Painter};
use crate::render::pen::put;
use crate::render::scroll::{Direction, Standing};
use crate::render::view::{UNSEEN, differing, is_covered};
use crate::screen::cell::Cell;
use crate::screen::row::{LineSize, Row};
use crate::screen::style::{Color, Style};

/// Rows that text is looked for from where it was: a turn of the wheel.
const COUNT_MAX: usize = 6;
/// Octets of margins set and reset, and of the scroll.
const BLOCK_COST: usize = 36;
/// Changed rows at the bottom that may belong to something else: a status line.
const OTHERS_MAX: usize = 2;

/// Rows `top..bottom` of columns `left..right` move by `count`, and blanks come in at the other end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Block {
    top: usize,
    bottom: usize,
    left: usize,
    right: usize,
    count: usize,
    direction: Direction,
}

/// Rows from `top` on as the reader has them after a scroll.
pub(super) struct Moved {
    pub top: usize,
    pub rows: Vec<Arc<Row>>,
}

impl Painter<'_, '_> {
    /// Scrolls a block if that saves more octets than it takes.
    pub(super) fn scroll_block(
        &mut self,
        standing: &[Standing<'_>],
        wanted: &[&Arc<Row>],
    ) -> Option<Moved> {
        if self.dialect.reader() != Reader::RovePeer || !matches!(self.alike, Alike::Always) {
            return None;
        }
        let block = Block::find(standing, wanted)?;
        if self.pen.style.bg != Color::DEFAULT {
            // Blanks come in with the pen's background.
            self.set_style(Style::PLAIN);
        }
        let Block { top, bottom, left, right, count, direction } = block;
        put(
            self.out,
            format_args!("\x1b[?69h\x1b[{};{right}s\x1b[{};{bottom}r", left + 1, top + 1),
        );
        let function = if direction == Direction::Up { b'S' } else { b'T' };
        sequence(count, function, self.out);
        self.out.extend_from_slice(b"\x1b[r\x1b[?69l");
        self.cursor = Cursor::HOME;
        self.stands_behind(None);
        let rows = (top..bottom).filter_map(|row| {
            let mut moved = Row::clone(standing[row]?);
            let from = block.source(row).and_then(|from| standing[from]);
            match from {
                Some(from) => {
                    moved.cells[left..right].copy_from_slice(&from.cells()[left..right]);
                }
                None => moved.cells[left..right].fill(Cell::BLANK),
            }
            moved.occupied = moved.cells.len() as u16;
            Some(Arc::new(moved))
        });
        Some(Moved { top, rows: rows.collect() })
    }
}

impl Block {
    fn find(standing: &[Standing<'_>], wanted: &[&Arc<Row>]) -> Option<Self> {
        let pairs = standing.iter().zip(wanted);
        let spans: Vec<Option<Range<usize>>> =
            pairs.map(|(old, new)| changed_span((*old)?, new)).collect();
        let mut rows: Vec<usize> = (0..spans.len()).filter(|row| spans[*row].is_some()).collect();
        for _ in 0..=OTHERS_MAX {
            if rows.len() < CHANGES_MIN {
                return None;
            }
            let changed = || rows.iter().filter_map(|row| spans[*row].as_ref());
            let left = changed().map(|span| span.start).min()?;
            let right = changed().map(|span| span.end).max()?;
            // DECSLRM takes no region of one column.
            if right - left < 2 {
                return None;
            }
            let (top, bottom) = (*rows.first()?, *rows.last()? + 1);
            let region = Self { top, bottom, left, right, count: 0, direction: Direction::Up };
            let best = region.candidates().max_by_key(|block| block.matches(standing, wanted))?;
            if best.matches(standing, wanted) > 0
                && best.is_clean(standing, wanted)
                && best.pays(standing, wanted)
            {
                return Some(best);
            }
            rows.pop();
        }
        None
    }

    fn candidates(self) -> impl Iterator<Item = Self> {
        let counts = 1..=COUNT_MAX.min(self.bottom - self.top - 1);
        counts.flat_map(move |count| {
            [Direction::Up, Direction::Down].map(|direction| Self { count, direction, ..self })
        })
    }

    /// The row, before the scroll, of the text that stands at `row` after it.
    fn source(&self, row: usize) -> Option<usize> {
        let from = match self.direction {
            Direction::Up => row + self.count,
            Direction::Down => row.checked_sub(self.count)?,
        };
        (self.top..self.bottom).contains(&from).then_some(from)
    }

    /// The number of changed rows that it corrects.
    fn matches(&self, standing: &[Standing<'_>], wanted: &[&Arc<Row>]) -> usize {
        let right = |row: &usize| {
            let new = &wanted[*row].cells()[self.left..self.right];
            let Some(from) = self.source(*row).and_then(|from| standing[from]) else {
                return false;
            };
            from.cells()[self.left..self.right] == *new
                && new.iter().any(|cell| *cell != Cell::BLANK)
        };
        (self.top..self.bottom).filter(right).count()
    }

    /// It splits no wide cell, and no row of it continues in the next one.
    fn is_clean(&self, standing: &[Standing<'_>], wanted: &[&Arc<Row>]) -> bool {
        (self.top..self.bottom).all(|row| {
            let Some(old) = standing[row] else { return false };
            let torn = |col: usize| {
                col < old.cells().len()
                    && (old.cells()[col].is_tail() || is_covered(old.cells(), col))
            };
            let plain = |row: &Row| !row.is_wrapped() && row.size() == LineSize::Single;
            !torn(self.left) && !torn(self.right) && plain(old) && plain(wanted[row])
        })
    }

    fn pays(&self, standing: &[Standing<'_>], wanted: &[&Arc<Row>]) -> bool {
        let (mut before, mut after) = (0, BLOCK_COST);
        for row in self.top..self.bottom {
            let new = &wanted[row].cells()[self.left..self.right];
            before += self.distance(standing[row], new);
            after += self.distance(self.source(row).and_then(|from| standing[from]), new);
        }
        before > after
    }

    fn distance(&self, old: Standing<'_>, new: &[Cell]) -> usize {
        match old {
            Some(old) => {
                let old = &old.cells()[self.left..self.right];
                old.iter().zip(new).filter(|(a, b)| differ(**a, **b)).count()
            }
            None => new.iter().filter(|cell| differ(**cell, Cell::BLANK)).count(),
        }
    }
}

/// The columns that changed.
fn changed_span(old: &Arc<Row>, new: &Arc<Row>) -> Option<Range<usize>> {
    if Arc::ptr_eq(old, new) {
        return None;
    }
    differing(old.cells(), new.cells())
}

fn differ(a: Cell, b: Cell) -> bool {
    (a.bits() ^ b.bits()) & !UNSEEN != 0
}
