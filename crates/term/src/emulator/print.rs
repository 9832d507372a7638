//! Writes runs of characters into cells, and wraps at the end of a line.

use crate::emulator::Emulator;
use crate::emulator::profile::Text;
use crate::screen::Charset;
use crate::screen::cell::{Cell, Glyph, TAIL, WIDTH_SHIFT, Width};
use crate::screen::row::Ending;
use crate::width::{self, Class, Joiners, Properties};

impl Emulator<'_> {
    /// Printable ASCII. Returns how many octets it wrote: all, unless the limit of work is reached.
    #[inline]
    pub(crate) fn write_ascii(&mut self, run: &[u8]) -> usize {
        if self.write_within_line(run) { run.len() } else { self.write_across_lines(run) }
    }

    /// The usual case: a run that ends before the margin and breaks no wide cell, in a row that no snapshot shares.
    /// In other cases writes nothing and returns `false`.
    #[inline]
    fn write_within_line(&mut self, run: &[u8]) -> bool {
        let template = self.template();
        let line = self.state.cursor.row;
        let start = usize::from(self.state.cursor.col);
        let end = start + run.len();
        let unusual = self.state.cursor.pending_wrap || !self.direct || self.state.double_lines;
        if unusual || end >= usize::from(self.state.margins.right) {
            return false;
        }
        let Some(row) = self.grid.unshared_text_row_mut(line.into()) else { return false };
        let Some([cells @ .., next]) = row.cells.get_mut(start..=end) else { return false };
        if next.is_tail() || cells.first().is_none_or(|first| first.is_tail()) {
            return false;
        }
        for (cell, byte) in cells.iter_mut().zip(run) {
            *cell = Cell(template | u64::from(*byte));
        }
        row.plain &= template == 0;
        row.occupy(end);
        self.touched(run.len());
        self.state.cursor.col = end as u16;
        self.state.last_cell = Some((line, end as u16 - 1));
        self.state.last_char = run.last().map(|byte| char::from(*byte));
        true
    }

    fn write_across_lines(&mut self, run: &[u8]) -> usize {
        if !self.direct {
            return self.write_one_by_one(run);
        }
        let template = self.template();
        let mut rest = run;
        while !rest.is_empty() {
            if self.state.cursor.pending_wrap {
                self.wrap(Ending::Wrapped);
            }
            let limit = self.right_limit();
            let start = usize::from(self.state.cursor.col).min(limit - 1);
            let len = rest.len().min(limit - start);
            let row = self.grid.text_row_mut(self.state.cursor.row.into());
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
            row.plain &= template == 0;
            row.written_to(end);
            self.touched(len);
            rest = self.advance_ascii(end, limit, &rest[len..]);
            if self.is_spent() {
                break;
            }
        }
        let written = run.len() - rest.len();
        self.state.last_char = run[..written].last().map(|byte| char::from(*byte));
        written
    }

    fn write_one_by_one(&mut self, run: &[u8]) -> usize {
        for (index, byte) in run.iter().enumerate() {
            self.write_char(char::from(*byte));
            if self.is_spent() {
                return index + 1;
            }
        }
        run.len()
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

    /// Writes characters up to the end of the line, or to the first that needs the slow path.
    fn write_plain(&mut self, run: &[char]) -> usize {
        let first = Properties::of(run[0]);
        let joiners = match first.is_plain() || first.is_plain_wide() {
            true => Joiners::NONE,
            false => match self.joiners_of_last() {
                Some(joiners) if !first.traits().continues(joiners) => joiners,
                _ => return 0,
            },
        };
        let template = self.template();
        if self.state.cursor.pending_wrap {
            self.wrap(Ending::Wrapped);
        }
        let limit = self.right_limit();
        let line = self.state.cursor.row;
        let start = usize::from(self.state.cursor.col).min(limit - 1);
        if start + 1 == limit && first.traits().wide {
            return 0;
        }
        let row = self.grid.row_mut(line.into());
        if row.cells[start].is_tail() {
            row.split(start);
        }
        let cells = &mut row.cells[start..limit];
        let tail = template | u64::from(b' ') | TAIL;
        let mut written = write_letters(cells, run, template);
        let mut at = written;
        let mut last = at.saturating_sub(1);
        let mut last_char = if at > 0 { Some(run[last]) } else { self.state.last_char };
        let mut joiners = if at > 0 { Joiners::OTHER } else { joiners };
        for &c in &run[written..] {
            let traits = Properties::of(c).traits();
            if traits.continues(joiners) {
                let known = self.memo.get(cells[last], c).filter(|_| self.state.modes.graphemes);
                let Some(joined) = known else { break };
                let grows = joined.is_wide() && !cells[last].is_wide();
                if grows && at == cells.len() {
                    break;
                }
                cells[last] = joined;
                if grows {
                    cells[at] = Cell(tail);
                    at += 1;
                }
            } else {
                let wide = traits.wide;
                if at + usize::from(wide) >= cells.len() {
                    break;
                }
                let head = template | u64::from(c) | u64::from(wide) << WIDTH_SHIFT;
                // Without a branch, since widths mix freely: the tail of a narrow cell is the cell itself.
                cells[at] = Cell(head);
                cells[at + usize::from(wide)] = Cell(if wide { tail } else { head });
                (last, at) = (at, at + 1 + usize::from(wide));
                last_char = Some(c);
            }
            joiners = traits.joiners;
            written += 1;
        }
        if written == 0 {
            return 0;
        }
        let end = start + at;
        row.free_tail(end);
        row.written_to(end);
        self.touched(at);
        self.state.last_cell = Some((line, (start + last) as u16));
        self.state.last_char = last_char;
        self.settle(end, limit);
        written
    }

    /// The classes that may continue the character written last; `None` if only the slow path can tell.
    fn joiners_of_last(&self) -> Option<Joiners> {
        let Some((row, col)) = self.state.last_cell else { return Some(Joiners::NONE) };
        let last = match self.grid.row(row.into()).cells.get(usize::from(col))?.glyph() {
            Glyph::Char(c) => c,
            Glyph::Cluster(id) => self.pool.cluster(id).chars().next_back()?,
        };
        Some(Properties::of(last).traits().joiners)
    }

    /// Puts the cursor behind a run that ends before `end`.
    #[inline]
    pub(crate) fn settle(&mut self, end: usize, limit: usize) {
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
            if !self.state.modes.autowrap {
                // What does not fit is dropped, as xterm does.
                if self.profile.text == Text::Stock {
                    self.blank_last(col);
                }
                return;
            }
            self.wrap_early(col, limit);
            limit = self.right_limit();
            col = usize::from(self.state.cursor.col);
            if col + columns > limit {
                return;
            }
        }
        if self.state.modes.insert && self.inside_columns() {
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
        row.written_to(end);
        self.touched(columns);
        self.state.last_cell = Some((self.state.cursor.row, col as u16));
        self.settle(end, limit);
    }

    /// Goes to the next line because a wide character has no room in column `col`, the last one before
    /// `limit`. The last column of the screen is then no part of the text, and is blanked.
    fn wrap_early(&mut self, col: usize, limit: usize) {
        if limit == self.cols() {
            let blank = self.blank();
            let row = self.grid.row_mut(self.state.cursor.row.into());
            row.split(col);
            row.cells[col] = blank;
            row.occupy(limit);
        }
        // Stock does not remember that a wide character did not fit.
        self.wrap(match self.profile.text {
            Text::Clusters => Ending::WrappedEarly,
            Text::Stock => Ending::Hard,
        });
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
        row.written_to(limit);
        self.touched(limit - col);
    }

    /// Goes to the start of the next line because this one is full, and ends so.
    pub(crate) fn wrap(&mut self, ending: Ending) {
        self.state.cursor.pending_wrap = false;
        if !self.state.modes.autowrap {
            return;
        }
        let cursor = self.state.cursor;
        let to_edge = cursor.col + 1 == self.state.size.cols;
        if to_edge {
            self.grid.row_mut(cursor.row.into()).ending = ending;
        }
        self.index();
        // Also from beyond the right margin (xterm).
        self.state.cursor.col = self.state.margins.left;
    }
}

/// Writes the letters of alphabets at the start of a run. They have a loop of their own, in which nothing depends on
/// the turn before.
#[inline]
fn write_letters(cells: &mut [Cell], run: &[char], template: u64) -> usize {
    let mut written = 0usize;
    for (cell, &c) in cells.iter_mut().zip(run) {
        if !Properties::is_plain_letter(c) {
            break;
        }
        *cell = Cell(template | u64::from(c));
        written += 1;
    }
    written
}

/// DEC special graphics from `_` to `~`.
const GRAPHICS: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─',
    '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];
