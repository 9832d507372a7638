//! The lines above the screen, as far as a client is told of them (host extensions 19 and 20), so that its terminal's
//! history is that of a local terminal.
//!
//! Lines that left the primary screen have positions, and the screen's row 0 would take the next one, its depth. A
//! [`Past`] says how deep the screen is and up to which line the client is told. At the server it holds the lines that
//! the client may not have yet; at the client those that came with the last diff.

mod rows;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rove_term::screen::Buffer;
use rove_term::{Ability, Dialect, History, LineEdge, LineId, Pool, Screen, write_line};

use crate::messages::{DepthFields, EVENTS_MAX, HostEvent, RowsFields, write_host};

pub(crate) use crate::past::rows::Reading;
use crate::work::{LINES_CELLS_MAX, LINES_OCTETS_MAX};

/// Lines that a client may miss at most and still be told: as many as terminals keep.
pub const LINES_MAX: u64 = 10_000;

/// Lines, and octets of their text, that a client may not have. A diff from what it is known to have tells all of them,
/// in as many events where each has another width than the one before, and a client takes [`EVENTS_MAX`] events,
/// 10,240 lines and 512 KiB from one.
const UNACKED_ROWS_MAX: usize = EVENTS_MAX - OTHER_EVENTS_MAX;
const UNACKED_OCTETS_MAX: usize = 256 << 10;
/// Octets of styles, links and clusters that lines which are told at once share: a screen of usual ones has a few hundred.
const POOL_OCTETS_MAX: usize = 64 << 10;

/// Events of a diff that bring no lines: one of each other kind.
const OTHER_EVENTS_MAX: usize = 16;

/// A row whose text is longer is told without its links. With them it may have 2 MB.
const ROW_OCTETS_MAX: usize = 16 << 10;

/// Times of which it is known from which line on lines were to be told again.
const FALLS_MAX: usize = 8;

/// The lines above a screen.
#[derive(Clone, Debug, Default)]
pub struct Past {
    fields: DepthFields,
    /// The history's own count of [falls](History::falls) that is taken into account.
    history_falls: u64,
    /// For each of the last few falls its number, and from which line on lines are told again.
    fallen: VecDeque<(u64, u64)>,
    /// Lines up to those told that the client may not have, without a gap.
    batches: VecDeque<Arc<Batch>>,
    /// Lines that came with the last diff.
    news: Option<Arc<History>>,
}

/// Lines that were told together.
#[derive(Debug)]
struct Batch {
    first: u64,
    rows: Vec<ToldRow>,
    octets: usize,
}

#[derive(Debug)]
struct ToldRow {
    id: LineId,
    cols: u16,
    above: LineEdge,
    ends: LineEdge,
    text: Box<[u8]>,
}

impl Batch {
    fn end(&self) -> u64 {
        self.first + self.rows.len() as u64
    }
}

impl Past {
    /// The lines above this screen. The newest `wanted` of them will be told.
    pub(crate) fn new(history: &History, screen: &Screen, wanted: u64) -> Self {
        let mut past = Self { history_falls: history.falls(), ..Self::default() };
        past.follow(history, screen);
        past.give_up(history, wanted);
        past
    }

    /// What a client is told of positions.
    pub(crate) fn fields(&self) -> DepthFields {
        self.fields
    }

    /// The position of the screen's row 0.
    pub fn depth(&self) -> u64 {
        self.fields.depth
    }

    /// Lines before this position are told.
    pub fn told(&self) -> u64 {
        self.fields.told
    }

    /// Lines before this position were erased.
    pub fn erased(&self) -> u64 {
        self.fields.erased
    }

    /// The lines that came with the last diff. Only at a client.
    pub fn news(&self) -> Option<&History> {
        self.news.as_deref()
    }

    /// Lines left the screen that are not told.
    pub(crate) fn is_behind(&self) -> bool {
        self.fields.told < self.fields.depth
    }

    /// Octets of lines that the client may not have.
    pub fn octets(&self) -> usize {
        self.batches.iter().map(|batch| batch.octets).sum()
    }

    /// No more lines are told before the client has some of those that were.
    pub(crate) fn is_full(&self) -> bool {
        self.unacked_rows() >= UNACKED_ROWS_MAX || self.octets() >= UNACKED_OCTETS_MAX
    }

    fn unacked_rows(&self) -> usize {
        self.batches.iter().map(|batch| batch.rows.len()).sum()
    }

    /// See [`State::weight`](rove_ssp::State::weight).
    pub(crate) fn weight(&self) -> usize {
        self.octets() + self.news.as_ref().map_or(0, |news| news.bytes())
    }

    /// Takes what became of the history until this screen was taken. Lines that came back
    /// are told again.
    pub(crate) fn follow(&mut self, history: &History, screen: &Screen) {
        if let Some(lowest) = history.lowest_since(self.history_falls) {
            self.fall(lowest);
            self.history_falls = history.falls();
        }
        self.fields.depth = screen.depth();
        if self.fields.told > screen.depth() {
            self.fall(screen.depth());
        }
        self.fields.erased = history.erased().min(screen.depth());
    }

    /// Gives up lines that are forgotten, and those before the last `wanted`.
    pub(crate) fn give_up(&mut self, history: &History, wanted: u64) {
        let DepthFields { depth, erased, .. } = self.fields;
        let floor = history.first().max(erased).max(depth.saturating_sub(wanted)).min(depth);
        if self.fields.told < floor {
            self.fields.told = floor;
            self.batches.clear();
        }
    }

    /// Tells lines, from the first that is not told on. Rows that `shown` shows unchanged are free. The text of the
    /// others takes at most `octets_max` octets, unless `rows_min` rows take more.
    pub(crate) fn tell(
        &mut self,
        history: &History,
        shown: &Screen,
        octets_max: usize,
        rows_min: usize,
    ) {
        if history.falls() != self.history_falls || !self.is_behind() {
            return;
        }
        let first = self.fields.told;
        let mut above = self.last_edge(history);
        let (mut rows, mut octets, mut spent) = (Vec::new(), 0, 0);
        let mut pool = Pool::new();
        let rows_max = UNACKED_ROWS_MAX.saturating_sub(self.unacked_rows());
        let room = UNACKED_OCTETS_MAX.saturating_sub(self.octets());
        while rows.len() < rows_max
            && octets < room
            && first + (rows.len() as u64) < self.fields.depth
        {
            let position = first + rows.len() as u64;
            let Some(row) = told_row(history, position, above, shown.size().cols, &mut pool) else {
                break;
            };
            if !row.stands_on(shown, shown.depth(), position) {
                spent += row.text.len();
                if spent > octets_max && rows.len() >= rows_min {
                    break;
                }
            }
            // What one line brings must not leave another without.
            if pool.weight() > POOL_OCTETS_MAX {
                pool = Pool::new();
            }
            above = row.ends;
            octets += row.text.len();
            rows.push(row);
        }
        self.fields.told += rows.len() as u64;
        if !rows.is_empty() {
            self.batches.push_back(Arc::new(Batch { first, rows, octets }));
        }
    }

    /// Takes back what the client may not have been told, for a screen that is to be told shortly.
    pub(crate) fn shed(&mut self) {
        if let Some(first) = self.batches.front().map(|batch| batch.first) {
            self.fall(first);
        }
    }

    /// Lines from this position on are to be told again, also to one who has a state of before.
    fn fall(&mut self, position: u64) {
        self.fields.falls += 1;
        self.fallen.push_back((self.fields.falls, position));
        if self.fallen.len() > FALLS_MAX
            && let (Some((_, oldest)), Some((_, next))) =
                (self.fallen.pop_front(), self.fallen.front_mut())
        {
            *next = oldest.min(*next);
        }
        self.fields.told = self.fields.told.min(position);
        while let Some(batch) = self.batches.back().filter(|batch| batch.end() > position) {
            let rows = position.saturating_sub(batch.first) as usize;
            let batch = self.batches.pop_back();
            if let Some(batch) = batch.filter(|_| rows > 0) {
                let rows: Vec<_> = batch.rows[..rows].iter().map(ToldRow::copy).collect();
                let octets = rows.iter().map(|row| row.text.len()).sum();
                self.batches.push_back(Arc::new(Batch { first: batch.first, rows, octets }));
            }
        }
    }

    fn last_edge(&self, history: &History) -> LineEdge {
        let last = self.batches.back().and_then(|batch| batch.rows.last());
        if let Some(last) = last {
            return last.ends;
        }
        let above = self.fields.told.checked_sub(1);
        match above.and_then(|above| history.is_wrapped_at(above)) {
            Some(true) => LineEdge::Wrapped,
            _ => LineEdge::Hard,
        }
    }

    /// Up to where one who has `base` was told what is still true.
    fn shared_with(&self, base: &Self) -> u64 {
        let falls = self.fallen.iter().filter(|(falls, _)| *falls > base.fields.falls);
        let lowest = falls.map(|(_, lowest)| *lowest).min().unwrap_or(u64::MAX);
        base.fields.told.min(self.fields.told).min(lowest)
    }

    /// See [`State::subtract`](rove_ssp::State::subtract).
    pub(crate) fn subtract(&mut self, known: &Self) {
        let shared = self.shared_with(known);
        while self.batches.front().is_some_and(|batch| batch.end() <= shared) {
            self.batches.pop_front();
        }
    }

    /// Appends what a client that has `base`, whose screen is `screen`, is to be told.
    pub(crate) fn diff_from(&self, base: Option<&Self>, screen: &Screen, out: &mut Vec<u8>) {
        if base == Some(self) {
            return;
        }
        let shared = base.map_or(0, |base| self.shared_with(base));
        let end = self.batches.back().map(|batch| batch.end()).filter(|end| *end > shared);
        let implied = base.zip(end);
        let implied =
            implied.map(|(base, end)| DepthFields { depth: end, told: end, ..base.fields });
        if implied != Some(self.fields) {
            write_host(HostEvent::Depth(self.fields), out);
        }
        let told = self.batches.iter().flat_map(|batch| (batch.first..).zip(&batch.rows));
        let mut run = Run { next: base.map(Self::told), ..Run::default() };
        for (position, row) in told.filter(|(position, _)| *position >= shared) {
            let kept = base.is_some_and(|base| row.stands_on(screen, base.fields.depth, position));
            run.add(position, row, kept, out);
        }
        run.end(out);
    }

    /// The lines of a diff are read.
    pub(crate) fn receive(&mut self, fields: DepthFields, news: Option<History>) {
        self.fields = fields;
        self.news = news.map(Arc::new);
    }

    /// The lines of the last diff are not those of the next.
    pub(crate) fn forget_news(&mut self) {
        self.news = None;
    }
}

/// What a diff can tell.
impl PartialEq for Past {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl ToldRow {
    fn copy(&self) -> Self {
        Self { text: self.text.clone(), ..*self }
    }

    /// Whether the primary screen of this depth shows the row as it was when it left.
    fn stands_on(&self, screen: &Screen, depth: u64, position: u64) -> bool {
        let rows = screen.size().rows;
        let at = position.checked_sub(depth).and_then(|at| u16::try_from(at).ok());
        let Some(at) = at.filter(|at| *at < rows && screen.buffer() == Buffer::Primary) else {
            return false;
        };
        let row = screen.row(at);
        // A reader has no mark on the last row that it goes on.
        // A ground up to the edge is the same text in each width.
        let is_other = row.id() != self.id || row.cells().len() != usize::from(self.cols);
        if is_other || at + 1 == rows && row.is_wrapped() {
            return false;
        }
        let mut text = Vec::with_capacity(self.text.len());
        let ends = write_line(row, self.above, screen.pool(), &Dialect::ROVE, &mut text);
        ends == self.ends && text == *self.text
    }
}

/// The line at a position as a screen of these columns had it. `pool` takes its styles, links and clusters.
fn told_row(
    history: &History,
    position: u64,
    above: LineEdge,
    cols: u16,
    pool: &mut Pool,
) -> Option<ToldRow> {
    let cols = if history.is_wrapped_at(position)? { 0 } else { cols };
    let row = history.row_at(position, cols, pool)?;
    let (id, cols) = (row.id(), row.cells().len() as u16);
    let mut text = Vec::new();
    let mut ends = write_line(&row, above, pool, &Dialect::ROVE, &mut text);
    if text.len() > ROW_OCTETS_MAX {
        text.clear();
        ends = write_line(&row, above, pool, &Dialect::ROVE.without(Ability::Links), &mut text);
    }
    Some(ToldRow { id, cols, above, ends, text: text.into() })
}

/// Lines that go into one event: some that are kept, and then others of one width.
#[derive(Default)]
struct Run {
    /// The position that a reader expects next, if it expects any.
    next: Option<u64>,
    first: u64,
    kept: u64,
    count: u64,
    cols: u16,
    text: Vec<u8>,
    open: bool,
}

impl Run {
    fn add(&mut self, position: u64, row: &ToldRow, kept: bool, out: &mut Vec<u8>) {
        let is_long = (self.count + 1) * u64::from(row.cols) > LINES_CELLS_MAX
            || self.text.len() + row.text.len() > LINES_OCTETS_MAX;
        let ends = self.count > 0 && (kept || row.cols != self.cols || is_long);
        if ends || position != self.first + self.kept + self.count {
            self.end(out);
            self.first = position;
        }
        if kept {
            self.kept += 1;
        } else {
            self.count += 1;
            self.cols = row.cols;
            self.open = row.ends == LineEdge::Wrapped;
            self.text.extend_from_slice(&row.text);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        let Self { next, first, kept, count, cols, text, open } = core::mem::take(self);
        self.next = next;
        if kept + count > 0 {
            self.next = Some(first + kept + count);
            let first = (Some(first) != next).then_some(first);
            let (cols, text) = (cols.into(), text.as_slice());
            write_host(HostEvent::Rows(RowsFields { first, kept, text, count, cols, open }), out);
        }
    }
}
