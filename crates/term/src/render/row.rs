//! Draws the differences within one row in the cheapest form: text, ECH, EL, REP, or printing equal cells again
//! instead of jumping over them.

use core::ops::Range;

use crate::dialect::{Ability, Reader};
use crate::render::motion::{Cursor, CursorKnowledge, sequence};
use crate::render::paint::{Alike, Below, Ending, Painter, Pair};
use crate::render::pen::{Pen, number_len, put_number};
use crate::render::view::{Look, Text, UNSEEN, equal_len, equal_plain_len, is_covered};
use crate::screen::cell::{Cell, LINK_MASK, STYLE_MASK, TEXT_MASK, WIDTH_MASK};
use crate::screen::style::{Attrs, Style};

/// The bits of a cell that the pen sets.
const PEN_MASK: u64 = STYLE_MASK | LINK_MASK;
/// Octets of a typical change of rendition.
const RENDITION_COST: usize = 7;
/// Repetitions from which REP is considered: `CSI n b` takes four octets.
const REPEATS_MIN: usize = 5;
/// Columns that may be drawn again rather than jumped over: an address takes ten octets at most.
const GAP_MAX: usize = 10;
/// Octets of the shortest motion forward, `CSI C`.
const FORWARD_COST_MIN: usize = 3;

impl<'a> Painter<'a, '_> {
    /// Draws the changes from `col` on; returns whether the last column was written.
    pub(super) fn changes(
        &mut self,
        row: usize,
        pair: &mut Pair<'_>,
        mut col: usize,
        ending: Ending,
    ) -> bool {
        let cols = pair.new.len();
        let tail = match ending {
            Ending::Free => self.blank_tail(pair.new),
            // Erasing would take the mark away.
            Ending::Marked => cols,
        };
        let mut end_written = col == cols;
        while let Some(start) = self.next_change(pair, col) {
            let is_tail = start >= tail;
            // A terminal copies the blanks before that one, too, if they were printed once.
            let start = if is_tail && self.dialect.reader() == Reader::Tty { tail } else { start };
            let first = pair.new[start];
            let next = Pen { style: self.new.style(first.style()), link: self.new.link(first) };
            self.reach(row, pair.new, start, next);
            if is_tail && self.erase_to_end(pair, start) {
                return true;
            }
            col = self.change(row, pair, start);
            end_written |= col == cols;
        }
        end_written
    }

    /// The next column from `col` on whose picture differs.
    pub(super) fn next_change(&self, pair: &Pair<'_>, mut col: usize) -> Option<usize> {
        let cols = pair.new.len();
        loop {
            if col < pair.spoilt.min(cols) {
                return Some(col);
            }
            let plain = !is_covered(pair.old, col) && !is_covered(pair.new, col);
            if plain {
                let (old, new) = (&pair.old[col..], &pair.new[col..]);
                col += match self.alike {
                    Alike::Always => equal_len(old, new),
                    Alike::Below(_) => equal_plain_len(old, new),
                };
            }
            if col >= cols {
                return None;
            }
            match self.equal_columns(pair, col) {
                Some(equal) => col += equal,
                None => return Some(col),
            }
        }
    }

    /// How many columns look alike at `col`: those of one cell, or none.
    fn equal_columns(&self, pair: &Pair<'_>, col: usize) -> Option<usize> {
        let (old, new) = (pair.old[col], pair.new[col]);
        // A covered cell may show as a half of the covering one.
        let plain = !is_covered(pair.old, col) && !is_covered(pair.new, col);
        if plain && old.is_ascii() && new.is_ascii() && !old.has_text_of(new) {
            return None;
        }
        let trusted = self.alike.vouches_for(old) && self.alike.vouches_for(new);
        if trusted && plain && (old.bits() ^ new.bits()) & !UNSEEN == 0 {
            return Some(1);
        }
        match (self.old.look(pair.old, col), self.new.look(pair.new, col)) {
            (Some(old_look), Some(new_look)) if old_look == new_look => {
                // Right halves are equal whatever they are halves of, so they are looked at from
                // here.
                let split = (new.is_wide() || old.is_wide()) && col + 1 < pair.new.len();
                let halves_differ = new_look.columns == 1
                    && split
                    && self.old.look(pair.old, col + 1) != self.new.look(pair.new, col + 1);
                (!halves_differ).then_some(new_look.columns)
            }
            (Some(_), Some(_)) => None,
            // Covered by what looks alike, or was drawn just now.
            (_, None) => Some(1),
            (None, Some(_)) => None,
        }
    }

    /// Where the blanks begin that one EL can make.
    fn blank_tail(&self, cells: &[Cell]) -> usize {
        let Some(&last) = cells.last() else { return 0 };
        if !self.new.is_erased(last) {
            return cells.len();
        }
        let seen = |cell: &Cell| cell.bits() & !UNSEEN;
        let blank = cells.iter().rev().take_while(|cell| seen(cell) == seen(&last));
        let start = cells.len() - blank.count();
        // A blank behind a stock emulator's wide cell shows what that cell does.
        start + usize::from(is_covered(cells, start))
    }

    /// Erases the blanks from `start`, which the cursor stands at, to the end of the row. For an emulator of ours or
    /// of a peer those that changed are printed where that is shorter. A terminal remembers which blanks were printed,
    /// and copies them with the line, out of its scrollback too.
    fn erase_to_end(&mut self, pair: &Pair<'_>, start: usize) -> bool {
        let style = self.new.style(pair.new[start].style());
        let count = last_change(pair, start) - start;
        let shorter = 3 + self.cost_to_erase(style) <= count + self.cost_to_print(style, None);
        if !shorter && self.dialect.reader() != Reader::Tty {
            return false;
        }
        self.prepare_erasing(style);
        let below = self.below == Below::Leftovers && style == Style::PLAIN;
        if below && !self.erasing_feeds_history() {
            self.erase_below();
            self.below = Below::Erased;
        } else {
            self.out.extend_from_slice(b"\x1b[K");
        }
        true
    }

    /// Erasing with this pen leaves blanks of that style. Peers' emulators take nothing but the
    /// background; of some terminals it is known that attributes come along.
    fn erases(&self, style: Style) -> bool {
        let attrs = self.dialect.reader() == Reader::Tty && self.pen.style.attrs != Attrs::NONE;
        self.pen.style.bg == style.bg && !attrs
    }

    pub(super) fn prepare_erasing(&mut self, style: Style) {
        if !self.erases(style) {
            self.set_style(style);
        }
    }

    fn cost_to_erase(&self, style: Style) -> usize {
        if self.erases(style) { 0 } else { RENDITION_COST }
    }

    /// The next text printed changes the rendition anyway, if it has that style.
    fn cost_to_print(&self, style: Style, next: Option<Style>) -> usize {
        if self.pen.style == style || next == Some(style) { 0 } else { RENDITION_COST }
    }

    /// Draws what changed at `start`, which the cursor stands at, and returns where it ends.
    fn change(&mut self, row: usize, pair: &mut Pair<'_>, start: usize) -> usize {
        if let Some(end) = self.erase(row, pair, start) {
            return end;
        }
        let end = self.print_changed(row, pair, start);
        let plain = end == start + 1 && !is_covered(pair.new, start);
        if !plain || self.cursor.footing != CursorKnowledge::Firm {
            return end;
        }
        let end = self.repeat(pair, start).unwrap_or(end);
        self.run_on(pair, end)
    }

    /// Prints the cell at `start`, and returns where it ends.
    pub(super) fn print_changed(&mut self, row: usize, pair: &mut Pair<'_>, start: usize) -> usize {
        let cols = pair.new.len();
        let Some(look) = self.new.look(pair.new, start) else { return start + 1 };
        let end = start + look.columns;
        self.clear_right_half(row, pair, start, &look);
        self.print(row, start, &look, cols);
        if !look.text.is_steady() && self.dialect.reader() != Reader::RovePeer {
            // If the reader took it for wider than we do, the next cell is damaged.
            pair.spoilt = pair.spoilt.max(end + 1);
        }
        self.spoil_half(pair, end);
        end
    }

    /// Blanks what a wide character will cover, in case the reader takes it for narrow.
    fn clear_right_half(&mut self, row: usize, pair: &Pair<'_>, start: usize, look: &Look<'a>) {
        let disputable = look.columns == 2 && !look.text.is_steady();
        if !disputable || self.dialect.reader() == Reader::RovePeer || self.is_wrapping() {
            return;
        }
        let old = pair.old[start + 1];
        if old.is_space() && !old.is_tail() && start + 1 >= pair.spoilt {
            return;
        }
        let blank = Look { text: Text::Char(' '), columns: 1, ..*look };
        self.print(row, start + 1, &blank, pair.new.len());
    }

    /// Text that ends at `end` may have covered the left half of a wide cell: the right half is gone too.
    fn spoil_half(&self, pair: &mut Pair<'_>, end: usize) {
        if end < pair.old.len() && (pair.old[end].is_tail() || is_covered(pair.old, end)) {
            pair.spoilt = pair.spoilt.max(end + 1);
        }
    }

    /// Erases a run of blanks if that is shorter than printing them, and returns where it ends.
    fn erase(&mut self, row: usize, pair: &mut Pair<'_>, start: usize) -> Option<usize> {
        let blank = pair.new[start];
        if !blank.is_space() || !self.dialect.can(Ability::EraseCharacters) {
            return None;
        }
        if is_covered(pair.new, start) {
            return None;
        }
        if !self.new.is_erased(blank) {
            return None;
        }
        let style = self.new.style(blank.style());
        let count = changed_run(pair, start);
        let end = start + count;
        let onward = self.cursor.cost_to(row, end.min(pair.new.len() - 1), &self.dialect);
        let erasing = 3 + number_len(count) + onward + self.cost_to_erase(style);
        let next = (end < pair.new.len()).then(|| self.new.style(pair.new[end].style()));
        if erasing >= count + self.cost_to_print(style, next) {
            return None;
        }
        self.prepare_erasing(style);
        sequence(count, b'X', self.out);
        self.spoil_half(pair, end);
        Some(end)
    }

    /// Repeats the character just printed at `start` as often as it follows, and returns where that
    /// ends.
    fn repeat(&mut self, pair: &mut Pair<'_>, start: usize) -> Option<usize> {
        if !self.dialect.can(Ability::Repeat) {
            return None;
        }
        let count = changed_run(pair, start) - 1;
        let look = self.new.look(pair.new, start)?;
        if count < REPEATS_MIN || !look.text.is_steady() {
            return None;
        }
        self.out.extend_from_slice(b"\x1b[");
        put_number(self.out, count);
        self.out.push(b'b');
        self.advance(count, pair.new.len());
        let end = start + 1 + count;
        self.spoil_half(pair, end);
        Some(end)
    }

    /// Prints ASCII as long as it differs, through changes of rendition: most of all text, by the shortest code.
    /// Leaves the last column, and blanks that could be erased, to other methods.
    fn run_on(&mut self, pair: &mut Pair<'_>, start: usize) -> usize {
        if self.cursor.footing != CursorKnowledge::Firm || is_covered(pair.new, start) {
            return start;
        }
        let mut pen = pair.new[start - 1].bits() & PEN_MASK;
        let mut end = start;
        loop {
            let from = end;
            end = self.run_end(pair, from, pen);
            self.out.extend(pair.new[from..end].iter().map(|cell| cell.bits() as u8));
            if !goes_on_in_other_style(pair, end, pen) {
                break;
            }
            pen = pair.new[end].bits() & PEN_MASK;
            self.set_style(self.new.style(pair.new[end].style()));
        }
        if end > start {
            self.advance(end - start, pair.new.len());
            self.stands_behind(Some(Text::Char(char::from(pair.new[end - 1].bits() as u8))));
            self.spoil_half(pair, end);
        }
        end
    }

    /// Where ASCII ends that was written with this pen and differs.
    fn run_end(&self, pair: &Pair<'_>, start: usize, pen: u64) -> usize {
        let repeats = self.dialect.can(Ability::Repeat);
        let text = |cell: Cell| matches!((cell.bits() & !UNSEEN) ^ pen, 0x20..=0x7e);
        let prints = |(col, (new, old)): &(usize, (&[Cell], &[Cell]))| {
            let (&[new, next], &[old, old_next]) = (*new, *old) else { return false };
            if !text(new) || new == next && (repeats || new.is_space()) {
                return false;
            }
            // No motion is shorter than one character.
            new != old || *col < pair.spoilt || next != old_next && text(next)
        };
        let pairs = pair.new[start..].windows(2).zip(pair.old[start..].windows(2));
        start + (start..).zip(pairs).take_while(prints).count()
    }

    /// Goes to a place where the pen will be `next`, in a row that looks as it should up to there:
    /// by a motion, or by printing again the equal cells between the cursor or the margin and that
    /// place, if that is as short.
    pub(super) fn reach(&mut self, row: usize, cells: &[Cell], start: usize, next: Pen<'a>) {
        if self.cursor.is_at(row, start) || self.is_wrapping() {
            return;
        }
        let from_here = match self.cursor {
            Cursor { footing: CursorKnowledge::Firm, row: here, col }
                if here == row && col < start =>
            {
                self.redraw_cost(cells, col..start, next)
            }
            _ => usize::MAX,
        };
        let from = if from_here <= FORWARD_COST_MIN {
            Some(self.cursor.col)
        } else {
            let to_margin = self.cursor.cost_to(row, 0, &self.dialect);
            let from_margin = self.redraw_cost(cells, 0..start, next).saturating_add(to_margin);
            let motion = self.cursor.cost_to(row, start, &self.dialect);
            let pays = from_here.min(from_margin) <= motion;
            pays.then_some(if from_here <= from_margin { self.cursor.col } else { 0 })
        };
        if let Some(from) = from {
            self.redraw(row, cells, from..start);
        }
        self.go(row, start);
    }

    fn redraw(&mut self, row: usize, cells: &[Cell], columns: Range<usize>) {
        let mut col = columns.start;
        while col < columns.end {
            let Some(look) = self.new.look(cells, col) else { break };
            self.print(row, col, &look, cells.len());
            col += look.columns;
        }
    }

    /// The octets of printing these columns again, without the change to the next pen, which is needed anyway. Only
    /// steady text written with this pen, and then with the next, is considered.
    fn redraw_cost(&self, cells: &[Cell], columns: Range<usize>, next: Pen<'_>) -> usize {
        if columns.len() > GAP_MAX {
            return usize::MAX;
        }
        let mut pen = self.pen;
        let mut cost = 0;
        let mut col = columns.start;
        while col < columns.end {
            let Some(look) = self.new.look(cells, col) else { return usize::MAX };
            let needed = Pen { style: look.style, link: look.link };
            if needed != pen && needed != next {
                return usize::MAX;
            }
            pen = needed;
            if col + look.columns > columns.end || !look.text.is_steady() {
                return usize::MAX;
            }
            cost += look.text.first().len_utf8();
            col += look.columns;
        }
        cost
    }
}

/// Whether `col` holds ASCII that certainly differs and that has another style than `pen` but the same link. Not for
/// a blank, which might be erased.
fn goes_on_in_other_style(pair: &Pair<'_>, col: usize, pen: u64) -> bool {
    let (Some(&new), Some(&old)) = (pair.new.get(col), pair.old.get(col)) else { return false };
    let change = (new.bits() & PEN_MASK) ^ pen;
    let graphic = matches!(new.bits() & TEXT_MASK, 0x21..=0x7e);
    graphic && change != 0 && change & LINK_MASK == 0 && !old.has_text_of(new)
}

/// How many cells from `start` on are all the same as that one, up to the last of them that
/// changes.
fn changed_run(pair: &Pair<'_>, start: usize) -> usize {
    let seen = |cell: &Cell| cell.bits() & !UNSEEN;
    let first = pair.new[start];
    if first.bits() & WIDTH_MASK != 0 {
        return 1;
    }
    let run = pair.new[start..].iter().take_while(|cell| seen(cell) == seen(&first)).count();
    let changes = |at: &usize| start + at < pair.spoilt || pair.old[start + at] != first;
    1 + (0..run).rev().find(changes).unwrap_or(0)
}

/// The last column from `start` on that may have to change, plus one.
fn last_change(pair: &Pair<'_>, start: usize) -> usize {
    let mut columns = (start..pair.new.len()).rev();
    let last = columns.find(|&col| col < pair.spoilt || pair.old[col] != pair.new[col]);
    last.map_or(start, |last| last + 1)
}
