//! Reads the lines of a diff: what a terminal of one row that is sent their text puts into its history.

use alloc::vec::Vec;

use rove_term::screen::Buffer;
use rove_term::{Dialect, History, Pool, Screen, Size, Terminal};

use crate::messages::{DepthFields, RowsFields};
use crate::work::{LINES_CELLS_MAX, LINES_OCTETS_MAX};

/// Lines and octets of text that are taken from one diff.
const ROWS_MAX: u64 = 10_240;
const TEXT_OCTETS_MAX: usize = 512 << 10;
/// No session comes so far: a position beyond it counts as this one, so that no sum of positions overflows.
const POSITION_MAX: u64 = 1 << 62;
/// Columns that a line may have.
const COLS_MAX: u64 = 1000;
/// What an event with text costs beside that text, in cells: an emulator is made for it.
const EVENT_WORK: u64 = 10_000;
/// How often the text of a row may go over all of its cells. Ours does so twice at most.
const ROW_PASSES: u64 = 8;

/// The lines of a diff, as far as they are read.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// What the base's client was told.
    base: DepthFields,
    depth: Option<DepthFields>,
    lines: Option<History>,
    /// Where the lines told so far end, taken or not.
    end: Option<u64>,
    rows: u64,
    octets: usize,
    /// The work since it was last taken, in cells.
    work: u64,
}

impl Reading {
    /// Starts reading a diff from a base with these fields.
    pub(crate) fn new(base: DepthFields) -> Self {
        Self { base, depth: None, lines: None, end: None, rows: 0, octets: 0, work: 0 }
    }

    pub(crate) fn depth(&mut self, fields: DepthFields) {
        let DepthFields { depth, told, erased, falls } = fields;
        let [depth, told, erased] = [depth, told, erased].map(|n| n.min(POSITION_MAX));
        self.depth = Some(DepthFields { depth, told, erased, falls });
    }

    /// Takes the lines of one event, `base` being the screen that the diff starts from and its depth. Returns whether
    /// they are what they are said to be; others are left out.
    pub(crate) fn rows(&mut self, fields: &RowsFields<'_>, base: (&Screen, u64)) -> bool {
        self.rows = self.rows.saturating_add(fields.kept).saturating_add(fields.count);
        self.octets = self.octets.saturating_add(fields.text.len());
        let first = fields.first.or(self.end).unwrap_or(self.base.told);
        let end = first.saturating_add(fields.kept).saturating_add(fields.count);
        self.end = Some(end.min(POSITION_MAX));
        if self.rows > ROWS_MAX || self.octets > TEXT_OCTETS_MAX || first > POSITION_MAX {
            return false;
        }
        let Some(text) = printed(fields, &mut self.work) else { return false };
        let lines = self.lines.get_or_insert_with(|| History::starting_at(first));
        let is_next = lines.end() == first;
        let is_kept = is_next && keep(lines, fields.kept, base);
        if is_kept {
            append(lines, &text);
        }
        is_kept
    }

    /// The work since it was last asked for, in cells as [`Terminal::cells_touched`] counts them.
    pub(crate) fn take_work(&mut self) -> u64 {
        core::mem::take(&mut self.work)
    }

    /// The depth and the lines that were read, if the diff has any. Without a depth the screen begins where the lines would
    /// end if all were taken.
    pub(crate) fn finish(self) -> Option<(DepthFields, Option<History>)> {
        let implied = self.end.map(|end| DepthFields { depth: end, told: end, ..self.base });
        Some((self.depth.or(implied)?, self.lines))
    }
}

/// Appends rows that stood on the base's screen.
fn keep(lines: &mut History, kept: u64, (screen, depth): (&Screen, u64)) -> bool {
    if kept == 0 {
        return true;
    }
    let rows = u64::from(screen.size().rows);
    let top = lines.end().checked_sub(depth);
    let Some(top) = top.filter(|top| top.saturating_add(kept) <= rows) else { return false };
    if screen.buffer() != Buffer::Primary {
        return false;
    }
    for at in top..top + kept {
        lines.append(screen.row(at as u16), screen.pool());
    }
    true
}

/// The lines that the text of an event prints.
fn printed(fields: &RowsFields<'_>, work: &mut u64) -> Option<History> {
    let count = fields.count;
    if count == 0 {
        return fields.text.is_empty().then(History::default);
    }
    if count.saturating_mul(fields.cols) > LINES_CELLS_MAX || fields.text.len() > LINES_OCTETS_MAX {
        return None;
    }
    let cols = u16::try_from(fields.cols).ok().filter(|_| (1..=COLS_MAX).contains(&fields.cols))?;
    let mut terminal = Terminal::new(Size::clamped(1, cols), Dialect::ROVE);
    let mut text = Vec::from(fields.text);
    if fields.open {
        // Makes the last row wrap, which sends it to the history.
        text.push(b'.');
    }
    let cells = (count + 2) * u64::from(terminal.screen().size().cols) * ROW_PASSES;
    let read = terminal.advance_within(&text, cells + ROW_PASSES * text.len() as u64);
    *work += EVENT_WORK + terminal.cells_touched();
    let lines = terminal.history();
    (read == text.len() && lines.len() as u64 == count).then(|| lines.clone())
}

fn append(lines: &mut History, more: &History) {
    let mut pool = Pool::new();
    for position in more.first()..more.end() {
        if let Some(row) = more.row_at(position, 0, &mut pool) {
            lines.append(&row, &pool);
        }
    }
}
