//! Erases the rest of the display where that is shorter: if most rows change, one ED and new text take fewer octets
//! than the changes and an EL for each row.

use triomphe::Arc;

use crate::render::paint::{Painter, Pair};
use crate::render::scroll::Standing;
use crate::render::view::UNSEEN;
use crate::screen::cell::Cell;
use crate::screen::row::Row;
use crate::screen::style::Style;

/// Octets of ED and of the motion to it.
const ERASE_COST: usize = 8;
/// Octets of a motion over cells that stay in a row.
const MOTION_COST: usize = 4;
/// Octets of EL.
const ROW_END_COST: usize = 3;
/// Octets of the motion to the next row.
const NEXT_ROW_COST: usize = 2;

impl Painter<'_, '_> {
    /// Erases the display from the row on that saves most octets, if any does.
    pub(super) fn erase_stale(&mut self, standing: &mut [Standing<'_>], wanted: &[&Arc<Row>]) {
        let (mut kept, mut anew) = (0, ERASE_COST);
        let mut best = None;
        for (row, (old, new)) in standing.iter().zip(wanted).enumerate().rev() {
            kept += match old {
                Some(old) if Arc::ptr_eq(old, new) || self.shows_the_same(old, new) => 0,
                Some(old) => cost(old.occupied(), new),
                None => cost(&[], new),
            };
            anew += cost(&[], new);
            if kept > anew && best.is_none_or(|(_, saved)| kept - anew > saved) {
                best = Some((row, kept - anew));
            }
        }
        let Some((row, _)) = best else { return };
        self.go(row, 0);
        self.prepare_erasing(Style::PLAIN);
        self.erase_below();
        standing[row..].fill(None);
    }

    fn shows_the_same(&self, old: &Row, new: &Row) -> bool {
        let pair = Pair { old: old.cells(), new: new.cells(), spoilt: 0 };
        self.next_change(&pair, 0).is_none()
    }
}

/// About how many octets draw a row over one that shows `old` and then nothing.
fn cost(old: &[Cell], new: &Row) -> usize {
    let new = new.occupied();
    let (mut cost, mut stays) = (0, 0);
    for (col, cell) in new.iter().enumerate() {
        let before = old.get(col).copied().unwrap_or(Cell::BLANK);
        if (before.bits() ^ cell.bits()) & !UNSEEN == 0 {
            stays += 1;
        } else {
            cost += 1 + MOTION_COST.min(stays);
            stays = 0;
        }
    }
    if old.len() > new.len() {
        cost += ROW_END_COST.min(old.len() - new.len());
    }
    cost + if cost > 0 { NEXT_ROW_COST } else { 0 }
}
