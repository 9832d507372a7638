//! The emulator at work on one chunk of bytes: the parts of a screen borrowed apart, the pen resolved to
//! cell bits, and the writing of text. Control functions are in the modules beside it.

use triomphe::Arc;

use crate::cell::{Cell, Glyph, PROTECTED, StyleId, TEXT_MASK, Width};
use crate::grid::{Fill, Grid};
use crate::history::History;
use crate::memo::JoinMemo;
use crate::pool::{Pool, Sweep};
use crate::profile::{Profile, Text};
use crate::row::{Ending, LineSize};
use crate::screen::{Charset, Extras, State};
use crate::style::{Color, Style};
use crate::width::{self, Class, JOINERS, Properties};

/// Octets of UTF-8 after which a stock cell takes no more marks (`mosh-protocol.md` §6).
const STOCK_CELL_BYTES: usize = 32;
/// Bytes of answers kept until they are taken; later answers are dropped whole. A program that asks so
/// much without reading gets what it reads for.
const REPLIES_MAX: usize = 64 << 10;

/// One chunk's view of a terminal.
pub(crate) struct Emulator<'a> {
    pub state: &'a mut State,
    pub grid: &'a mut Grid,
    pub hidden: &'a mut Option<Arc<Grid>>,
    pub pool: &'a mut Pool,
    pub extras: &'a mut Arc<Extras>,
    pub replies: &'a mut Vec<u8>,
    pub profile: &'static Profile,
    pub history: &'a mut History,
    /// Cells written, moved or erased, for the tests of threats row 1.
    pub cells_touched: &'a mut u64,
    pub scratch: &'a mut String,
    pub pen: Brush,
    pub memo: &'a mut JoinMemo,
    /// No charset, insert mode or foreign rule stands between characters and cells.
    pub direct: bool,
    /// DECRQCRA is answered.
    pub checksums: bool,
}

/// The pen as bits of cells, each resolved when it is first needed.
#[derive(Clone, Copy)]
pub(crate) struct Brush {
    /// A written cell without its glyph.
    template: Option<u64>,
    /// An erased cell.
    blank: Option<Cell>,
}

impl Brush {
    /// To be resolved.
    pub(crate) const STALE: Self = Self { template: None, blank: None };
}

impl Emulator<'_> {
    /// Charset, insert mode or the like may have changed.
    #[inline]
    pub(crate) fn text_rules_changed(&mut self) {
        let charsets = &self.state.charsets;
        self.direct = !self.state.modes.insert
            && charsets.single.is_none()
            && charsets.current() == Charset::Us;
    }

    /// The pen's style, link or protection changed.
    #[inline]
    pub(crate) fn pen_changed(&mut self) {
        self.pen = Brush::STALE;
    }

    #[inline]
    fn template(&mut self) -> u64 {
        match self.pen.template {
            Some(template) => template,
            None => self.resolve_template(),
        }
    }

    /// An erased cell: the pen's background and nothing else.
    #[inline]
    pub(crate) fn blank(&mut self) -> Cell {
        match self.pen.blank {
            Some(blank) => blank,
            None => self.resolve_blank(),
        }
    }

    /// A narrow cell as written by the pen.
    pub(crate) fn written(&mut self, c: char) -> Cell {
        Cell(self.template() | u64::from(c))
    }

    fn resolve_template(&mut self) -> u64 {
        let pen = self.state.pen;
        let style = self.pool.intern_style(pen.style);
        let protection = if pen.protected { PROTECTED } else { 0 };
        let bare = Cell(protection).with_link(pen.link).with_semantic(pen.semantic);
        let template = bare.with_style(style).0;
        self.pen.template = Some(template);
        template
    }

    fn resolve_blank(&mut self) -> Cell {
        let background = match self.state.pen.style.bg {
            Color::DEFAULT => StyleId::PLAIN,
            bg => self.pool.intern_style(Style::background(bg)),
        };
        let blank = Cell::BLANK.with_style(background);
        self.pen.blank = Some(blank);
        blank
    }

    /// Gives new numbers to what cells still use, and forgets the rest, when that pays. Called before
    /// numbers are taken, never while some are held.
    #[inline]
    pub(crate) fn sweep_if_due(&mut self) {
        if self.pool.needs_sweep() {
            self.sweep();
        }
    }

    #[cold]
    fn sweep(&mut self) {
        let old = self.pool.clone();
        let mut sweep = Sweep::new(&old);
        let mut renumber = |row: &mut crate::row::Row| {
            let occupied = usize::from(row.occupied);
            for cell in &mut row.cells[..occupied] {
                *cell = sweep.renumber(*cell);
            }
        };
        self.grid.for_each_mut(&mut renumber);
        if let Some(hidden) = self.hidden {
            Arc::make_mut(hidden).for_each_mut(&mut renumber);
        }
        self.state.pen.link = sweep.link(self.state.pen.link);
        for saved in &mut Arc::make_mut(self.extras).saved {
            saved.pen.link = sweep.link(saved.pen.link);
        }
        *self.pool = sweep.finish();
        self.memo.clear();
        self.pen = Brush::STALE;
    }

    /// Answers a query at once.
    pub(crate) fn reply(&mut self, bytes: &[u8]) {
        if self.replies.len() + bytes.len() <= REPLIES_MAX {
            self.replies.extend_from_slice(bytes);
        }
    }

    #[inline]
    pub(crate) fn touched(&mut self, cells: usize) {
        *self.cells_touched += cells as u64;
    }

    /// New blank lines for a scroll.
    #[inline]
    pub(crate) fn fill(&mut self) -> (&mut Grid, Fill<'_>) {
        let blank = self.blank();
        (self.grid, Fill { blank, next_line: &mut self.state.next_line })
    }

    /// One past the last column the cursor's line can be written to.
    #[inline]
    pub(crate) fn right_limit(&self) -> usize {
        let cursor = &self.state.cursor;
        let limit = if cursor.col < self.state.margins.right {
            self.state.margins.right
        } else {
            self.state.size.cols
        };
        if self.state.double_lines { self.double_limit(limit) } else { limit.into() }
    }

    fn double_limit(&self, limit: u16) -> usize {
        let row = self.grid.row(self.state.cursor.row.into());
        match row.size {
            LineSize::Single => limit.into(),
            _ => usize::from(limit.min((self.state.size.cols / 2).max(1))),
        }
    }

    /// Printable ASCII.
    #[inline]
    pub(crate) fn write_ascii(&mut self, run: &[u8]) {
        if !self.write_within_line(run) {
            self.write_across_lines(run);
        }
    }

    /// The usual case: a run that ends before the margin and breaks no wide cell. `false`, with nothing
    /// written, when it is another.
    #[inline]
    fn write_within_line(&mut self, run: &[u8]) -> bool {
        let Some(template) = self.pen.template else { return false };
        let cursor = self.state.cursor;
        let start = usize::from(cursor.col);
        let end = start + run.len();
        let unusual = cursor.pending_wrap || !self.direct || self.state.double_lines;
        if unusual || end >= usize::from(self.state.margins.right) {
            return false;
        }
        let row = self.grid.row_mut(cursor.row.into());
        let Some([cells @ .., next]) = row.cells.get_mut(start..=end) else { return false };
        if next.is_tail() || cells.first().is_none_or(|first| first.is_tail()) {
            return false;
        }
        for (cell, byte) in cells.iter_mut().zip(run) {
            *cell = Cell(template | u64::from(*byte));
        }
        row.occupy(end);
        *self.cells_touched += run.len() as u64;
        self.state.cursor.col = end as u16;
        self.state.last_cell = Some((cursor.row, end as u16 - 1));
        self.state.last_char = run.last().map(|byte| char::from(*byte));
        true
    }

    fn write_across_lines(&mut self, run: &[u8]) {
        if !self.direct {
            for byte in run {
                self.write_char(char::from(*byte));
            }
            return;
        }
        let template = self.template();
        let mut rest = run;
        while !rest.is_empty() {
            if self.state.cursor.pending_wrap {
                self.wrap(Ending::Wrapped);
            }
            let limit = self.right_limit();
            let cursor = self.state.cursor;
            let start = usize::from(cursor.col).min(limit - 1);
            let len = rest.len().min(limit - start);
            let row = self.grid.row_mut(cursor.row.into());
            if row.cells[start].is_tail() {
                row.split(start);
            }
            let end = start + len;
            if row.cells.get(end).is_some_and(|next| next.is_tail()) {
                row.split(end);
            }
            let cells = &mut row.cells[start..end];
            for (cell, byte) in cells.iter_mut().zip(rest) {
                *cell = Cell(template | u64::from(*byte));
            }
            if end == row.cells.len() {
                row.ending = Ending::Hard;
            }
            row.occupy(end);
            *self.cells_touched += len as u64;
            rest = self.advance_ascii(end, limit, &rest[len..]);
        }
        self.state.last_char = run.last().map(|byte| char::from(*byte));
    }

    /// Moves the cursor behind a run that ends before `end`, and returns what is left to write. Without
    /// autowrap the last byte overwrites the last column.
    #[inline]
    fn advance_ascii<'b>(&mut self, end: usize, limit: usize, rest: &'b [u8]) -> &'b [u8] {
        self.state.last_cell = Some((self.state.cursor.row, end as u16 - 1));
        if end < limit {
            self.state.cursor.col = end as u16;
            return rest;
        }
        self.state.cursor.col = limit as u16 - 1;
        self.state.cursor.pending_wrap = self.state.modes.autowrap;
        if self.state.modes.autowrap { rest } else { &rest[rest.len().saturating_sub(1)..] }
    }

    /// Characters, ASCII among them.
    pub(crate) fn write_chars(&mut self, run: &[char]) {
        let plain = self.direct && self.profile.text == Text::Clusters;
        let mut rest = run;
        while let Some(&c) = rest.first() {
            let written = if plain { self.write_plain(rest) } else { 0 };
            rest = &rest[written..];
            if written == 0 {
                self.write_char(c);
                rest = &rest[1..];
            }
        }
    }

    /// Writes as many characters as continue no cluster, at most to the end of the line.
    fn write_plain(&mut self, run: &[char]) -> usize {
        let first = Properties::of(run[0]);
        let mut joiners = 0;
        if !first.is_plain() && !first.is_plain_wide() {
            match self.joiners_of_last() {
                Some(mask) if first.width() > 0 && mask >> first.class_bit() & 1 == 0 => {
                    joiners = mask
                }
                _ => return 0,
            }
        }
        let template = self.template();
        if self.state.cursor.pending_wrap {
            self.wrap(Ending::Wrapped);
        }
        let limit = self.right_limit();
        let cursor = self.state.cursor;
        let start = usize::from(cursor.col).min(limit - 1);
        let row = self.grid.row_mut(cursor.row.into());
        if row.cells[start].is_tail() {
            row.split(start);
        }
        let cells = &mut row.cells[start..limit];
        // Alphabets first, in a loop of their own: nothing in it depends on the turn before.
        let mut at = 0usize;
        for (cell, &c) in cells.iter_mut().zip(run) {
            if !Properties::of(c).is_plain() {
                break;
            }
            *cell = Cell(template | u64::from(c));
            at += 1;
        }
        let mut last = at.saturating_sub(1);
        let mut written = at;
        if at > 0 {
            joiners = JOINERS[Class::Other as usize];
        }
        for &c in &run[written..] {
            let properties = Properties::of(c);
            let width = usize::from(properties.width());
            let special = !properties.is_plain() && !properties.is_plain_wide();
            if special && (width == 0 || joiners >> properties.class_bit() & 1 == 1) {
                break;
            }
            if width == 1 {
                let Some(cell) = cells.get_mut(at) else { break };
                *cell = Cell(template | u64::from(c));
            } else {
                let Some([head, tail]) = cells.get_mut(at..at + 2) else { break };
                *head = Cell(template | u64::from(c) | crate::cell::WIDE);
                *tail = Cell(template | u64::from(b' ') | crate::cell::TAIL);
            }
            joiners = JOINERS[properties.class_bit()];
            (last, at) = (at, at + width);
            written += 1;
        }
        if written == 0 {
            return 0;
        }
        let end = start + at;
        if let Some(next) = row.cells.get_mut(end)
            && next.is_tail()
        {
            // The head it belonged to was overwritten.
            *next = Cell(next.0 & !TEXT_MASK | u64::from(b' '));
        }
        if end == row.cells.len() {
            row.ending = Ending::Hard;
        }
        row.occupy(end);
        *self.cells_touched += at as u64;
        self.state.last_cell = Some((cursor.row, (start + last) as u16));
        self.state.last_char = Some(run[written - 1]);
        self.settle(end, limit);
        written
    }

    /// The classes that may continue what was written last; `None` where that takes a closer look.
    fn joiners_of_last(&self) -> Option<u16> {
        let Some((row, col)) = self.state.last_cell else { return Some(0) };
        let last = match self.grid.row(row.into()).cells.get(usize::from(col))?.glyph() {
            Glyph::Char(c) => c,
            Glyph::Cluster(id) => self.pool.cluster(id).chars().next_back()?,
        };
        Some(JOINERS[Properties::of(last).class_bit()])
    }

    /// Puts the cursor behind what was written up to `end`.
    #[inline]
    fn settle(&mut self, end: usize, limit: usize) {
        if end < limit {
            self.state.cursor.col = end as u16;
            self.state.cursor.pending_wrap = false;
        } else {
            self.state.cursor.col = limit as u16 - 1;
            self.state.cursor.pending_wrap = self.state.modes.autowrap;
        }
    }

    /// Any one character, with charsets, insert mode, clusters and marks.
    pub(crate) fn write_char(&mut self, c: char) {
        let c = self.translate(c);
        if self.profile.text == Text::Stock {
            match width::stock(c) {
                None => {}
                Some(0) => self.write_stock_mark(c),
                Some(columns) => self.place(Glyph::Char(c), columns),
            }
            return;
        }
        if width::is_dropped(c) {
            return;
        }
        let class = Properties::of(c).class();
        if matches!(class, Class::Other) && width::of(c) > 0 {
            return self.place(Glyph::Char(c), width::of(c));
        }
        if !self.state.modes.graphemes && matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}') {
            return;
        }
        if self.join(c, class) {
            return;
        }
        match width::of(c) {
            0 => self.attach(c),
            columns => self.place(Glyph::Char(c), columns),
        }
    }

    /// The character in the charset in use, which a single shift changes for one character.
    fn translate(&mut self, c: char) -> char {
        let charset = self.state.charsets.current();
        self.state.charsets.single = None;
        match (charset, c) {
            (Charset::Uk, '#') => '\u{a3}',
            (Charset::Graphics, '_'..='~') => GRAPHICS[c as usize - '_' as usize],
            _ => c,
        }
    }

    /// Writes a glyph of 1 or 2 columns at the cursor.
    pub(crate) fn place(&mut self, glyph: Glyph, columns: u8) {
        if let Glyph::Char(c) = glyph {
            self.state.last_char = Some(c);
        }
        let columns = usize::from(columns);
        if self.state.cursor.pending_wrap {
            self.wrap(Ending::Wrapped);
        }
        let template = self.template();
        let mut limit = self.right_limit();
        let mut col = usize::from(self.state.cursor.col).min(limit - 1);
        if col + columns > limit {
            if self.state.modes.autowrap && usize::from(self.state.cursor.col) + 1 == limit {
                let blank = self.blank();
                let row = self.grid.row_mut(self.state.cursor.row.into());
                row.split(col);
                row.split(col + 1);
                row.cells[col] = blank;
                row.occupy(col + 1);
                // Stock does not remember that a wide character did not fit.
                self.wrap(match self.profile.text {
                    Text::Clusters => Ending::Wrapped,
                    Text::Stock => Ending::Hard,
                });
                limit = self.right_limit();
                col = usize::from(self.state.cursor.col);
            } else {
                col = match self.profile.text {
                    Text::Clusters => limit.saturating_sub(columns),
                    Text::Stock => return self.blank_last(col),
                };
            }
            if col + columns > limit {
                return;
            }
        }
        if self.state.modes.insert {
            self.shift_right(col, columns, limit);
        }
        let bits = Cell(template);
        let tail = match self.profile.text {
            Text::Stock if columns == 2 => self.blank(),
            _ => bits.with_glyph(Glyph::Char(' '), Width::Tail),
        };
        let row = self.grid.row_mut(self.state.cursor.row.into());
        row.split(col);
        row.split(col + columns);
        if columns == 1 {
            row.cells[col] = bits.with_glyph(glyph, Width::Narrow);
        } else {
            row.cells[col] = bits.with_glyph(glyph, Width::Wide);
            row.cells[col + 1] = tail;
        }
        let end = col + columns;
        if end == row.cells.len() {
            row.ending = Ending::Hard;
        }
        row.occupy(end);
        self.touched(columns);
        self.state.last_cell = Some((self.state.cursor.row, col as u16));
        self.settle(end, limit);
    }

    /// Stock puts half of a wide character into the last column. Nothing shows it.
    fn blank_last(&mut self, col: usize) {
        let blank = self.blank();
        let row = self.grid.row_mut(self.state.cursor.row.into());
        row.cells[col] = blank;
        row.ending = Ending::Hard;
        row.occupy(col + 1);
        self.touched(1);
        self.state.last_cell = Some((self.state.cursor.row, col as u16));
    }

    /// Opens a gap of `columns` at `col`, pushing cells out at the right limit.
    pub(crate) fn shift_right(&mut self, col: usize, columns: usize, limit: usize) {
        let row = self.grid.row_mut(self.state.cursor.row.into());
        row.split(col);
        row.split(limit - columns);
        row.split(limit);
        row.cells.copy_within(col..limit - columns, col + columns);
        row.trim_last();
        if limit == row.cells.len() {
            row.ending = Ending::Hard;
        }
        row.occupy(limit);
        self.touched(limit - col);
    }

    /// Continues the cluster written last, if `c` does so and the cursor was not moved since.
    fn join(&mut self, c: char, class: Class) -> bool {
        let Some((row, col)) = self.state.last_cell else { return false };
        let Some(&cell) = self.grid.row(row.into()).cells.get(usize::from(col)) else {
            return false;
        };
        if let Some((glyph, columns)) = self.memo.get(cell, c)
            && self.state.modes.graphemes
        {
            self.put_cluster(row.into(), col.into(), cell, glyph, columns);
            return true;
        }
        self.scratch.clear();
        self.pool.push_text(cell, self.scratch);
        let last = self.scratch.chars().next_back().map(|last| Properties::of(last).class());
        // A prefix keeps a cell of its own (no GB9b): what follows must not depend on what came before,
        // since most text is written without looking.
        let prefixed = last == Some(Class::Prepend)
            && !matches!(
                class,
                Class::Extend
                    | Class::ExtendIndic
                    | Class::Linker
                    | Class::Joiner
                    | Class::SpacingMark
            );
        if prefixed || !width::joins(self.scratch, c) {
            return false;
        }
        let sequence = matches!(class, Class::Pictographic | Class::Regional);
        if sequence && !self.state.modes.graphemes {
            return false;
        }
        self.extend_cluster(row.into(), col.into(), cell, c);
        true
    }

    /// Appends `c` to the text of `cell`, which is in `scratch`. Beyond the limits of a cell `c` is dropped.
    fn extend_cluster(&mut self, row: usize, col: usize, cell: Cell, c: char) {
        if self.scratch.chars().count() >= width::CLUSTER_CHARS_MAX
            || self.scratch.len() + c.len_utf8() > width::CLUSTER_BYTES_MAX
        {
            return;
        }
        self.scratch.push(c);
        let columns = width::cluster(self.scratch);
        self.sweep_if_due();
        let cell = self.grid.row(row).cells.get(col).copied().unwrap_or(cell);
        let Some(cluster) = self.pool.intern_cluster(self.scratch) else { return };
        self.memo.put(cell, c, cluster, columns);
        self.put_cluster(row, col, cell, Glyph::Cluster(cluster), columns);
    }

    /// Gives a cell its longer text, and widens it where that makes it wide.
    fn put_cluster(&mut self, row: usize, col: usize, cell: Cell, glyph: Glyph, columns: u8) {
        if columns < 2 || cell.is_wide() {
            let width = if cell.is_wide() { Width::Wide } else { Width::Narrow };
            let target = self.grid.row_mut(row);
            target.cells[col] = cell.with_glyph(glyph, width);
            target.occupy(col + 1);
            self.touched(1);
            return;
        }
        self.widen(row, col, cell, glyph);
    }

    /// Writes the narrow cell left of the cursor anew as a wide one; where there is no room it wraps.
    fn widen(&mut self, row: usize, col: usize, cell: Cell, glyph: Glyph) {
        let follows = if self.state.cursor.pending_wrap { col } else { col + 1 };
        if usize::from(self.state.cursor.row) != row
            || usize::from(self.state.cursor.col) != follows
        {
            return;
        }
        if self.state.cursor.pending_wrap && !self.state.modes.autowrap {
            return;
        }
        let last = self.state.last_char;
        let pen = self.pen;
        self.pen.template = Some(cell.0 & !TEXT_MASK);
        self.state.cursor.col = col as u16;
        self.state.cursor.pending_wrap = false;
        if self.state.modes.insert && follows == col + 1 {
            self.shift_right(col, 1, self.right_limit());
        }
        let insert = std::mem::take(&mut self.state.modes.insert);
        self.place(glyph, 2);
        self.state.modes.insert = insert;
        self.state.last_char = last;
        self.pen = pen;
    }

    /// A mark of no width that continues nothing written: it goes to the cell left of the cursor.
    fn attach(&mut self, c: char) {
        if matches!(c, '\u{fe0e}' | '\u{fe0f}' | '\u{200d}') {
            return;
        }
        let Some((row, col)) = self.mark_target() else { return };
        let cell = self.grid.row(row).cells[col];
        self.scratch.clear();
        self.pool.push_text(cell, self.scratch);
        let before = width::cluster(self.scratch);
        self.scratch.push(c);
        let same = width::cluster(self.scratch) == before;
        self.scratch.pop();
        if same {
            self.extend_cluster(row, col, cell, c);
        }
    }

    /// The cell written last, or after a move the one left of the cursor.
    fn mark_target(&self) -> Option<(usize, usize)> {
        let cursor = self.state.cursor;
        let (row, mut col) = match self.state.last_cell {
            Some((row, col)) => (row.into(), usize::from(col)),
            None if cursor.pending_wrap => (cursor.row.into(), cursor.col.into()),
            None => (cursor.row.into(), usize::from(cursor.col.checked_sub(1)?)),
        };
        if self.grid.row(row).cells.get(col)?.is_tail() {
            col = col.checked_sub(1)?;
        }
        Some((row, col))
    }

    /// Stock's marks: onto the cell written last, else the one under the cursor; alone on an empty cell
    /// they get a no-break space, and the cursor moves on.
    fn write_stock_mark(&mut self, c: char) {
        let cursor = self.state.cursor;
        let (row, col) = self.state.last_cell.unwrap_or((cursor.row, cursor.col));
        let (row, col) = (usize::from(row), usize::from(col));
        let Some(&cell) = self.grid.row(row).cells.get(col) else { return };
        self.scratch.clear();
        self.pool.push_text(cell, self.scratch);
        if self.scratch.len() >= STOCK_CELL_BYTES {
            return;
        }
        // A space that was written is not empty, but looks so once the cursor has moved.
        let written = self.state.last_cell.is_some() && self.state.last_char == Some(' ');
        let empty = cell.is_space() && !written;
        if empty {
            self.scratch.clear();
            self.scratch.push('\u{a0}');
        }
        self.scratch.push(c);
        self.sweep_if_due();
        let cell = self.grid.row(row).cells[col];
        let Some(cluster) = self.pool.intern_cluster(self.scratch) else { return };
        let width = if cell.is_wide() { Width::Wide } else { Width::Narrow };
        let target = self.grid.row_mut(row);
        target.cells[col] = cell.with_glyph(Glyph::Cluster(cluster), width);
        target.occupy(col + 1);
        self.touched(1);
        if empty {
            // Not where this mark went, if what was written last has been erased.
            self.state.last_cell = Some((cursor.row, cursor.col));
            self.settle(usize::from(cursor.col) + 1, usize::from(self.state.size.cols));
        }
    }

    /// Goes to the start of the next line because this one is full, and ends so.
    fn wrap(&mut self, ending: Ending) {
        self.state.cursor.pending_wrap = false;
        if !self.state.modes.autowrap {
            return;
        }
        let margins = self.state.margins;
        let cursor = self.state.cursor;
        let to_edge = cursor.col + 1 == self.state.size.cols;
        if to_edge {
            self.grid.row_mut(cursor.row.into()).ending = ending;
        }
        self.index();
        let inside = (margins.left..margins.right).contains(&cursor.col);
        self.state.cursor.col = if inside { margins.left } else { 0 };
    }
}

/// DEC special graphics from `_` to `~`.
const GRAPHICS: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─',
    '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];
