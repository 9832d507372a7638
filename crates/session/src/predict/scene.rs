//! What keys do to a screen, as far as that can be foreseen: the cursor and the lines they edit.
//!
//! A [`Scene`] is cheap to clone, so that one can be kept for each key in flight. It knows nothing of
//! time, acknowledgements or confidence.

use std::sync::Arc;

use rove_term::style::Attrs;
use rove_term::{Color, Screen, Style, Width, width};

use super::keys::Key;
use super::look::{Clusters, Look, Mark};
use super::margin::{Fate, Margin, Reflow};
use super::{Editing, Flagging};

/// The cursor, and every line that keys have changed, on top of a base screen.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    row: u16,
    col: u16,
    /// The last column was just written: the cursor may show there or on the next row.
    edge: Edge,
    lines: Vec<Line>,
}

/// Whether the next character belongs on the next row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Edge {
    Within,
    Reached,
}

#[derive(Clone, Debug)]
struct Line {
    row: u16,
    slots: Arc<Vec<Slot>>,
}

/// One cell of an edited line.
#[derive(Clone, Copy, Debug)]
struct Slot {
    look: Look,
    kind: Kind,
}

/// How a slot's content came about, hence how much is claimed about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// As in the base screen.
    Real,
    /// A key put it there: the frame that shows the key must show it.
    Typed,
    /// Other text moved there, or it was erased: likely.
    Moved,
    /// It changes, nobody knows to what.
    Unknown,
}

/// Whether a key's effect can be foreseen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Effect {
    /// It writes or erases the cell at this row and column.
    Writes(u16, u16),
    /// It moves the cursor, or does nothing.
    Moves,
    /// It may do anything: where later keys act is unknown until a frame shows it.
    Lost,
}

/// How a scene stands against a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Likeness {
    /// Cursor and everything typed are as foreseen, whatever other text did.
    Same,
    /// Something else happened.
    Other,
}

/// What a scene needs to know of its surroundings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) base: &'a Screen,
    pub(crate) editing: Editing,
    /// Where the line being edited begins, after the prompt.
    pub(crate) origin: Option<(u16, u16)>,
    /// What the text right of the cursor is.
    pub(crate) tail: Tail,
    /// What lines do at their margin.
    pub(crate) margin: Margin,
}

/// What stands right of the cursor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tail {
    /// Text that was typed, or nothing.
    Text,
    /// A suggestion: it came by itself, and typing writes over it.
    Suggestion,
}

/// Blanks in a row that part text from what does not move with it: a right prompt, another window.
const GAP_COLS: usize = 4;

/// Columns before the cursor that are compared to find text that moved, ...
const MOVED_COLS: u16 = 12;
/// ... and how many letters must be alike, back from it.
const MOVED_LETTERS_MIN: u16 = 4;

impl Scene {
    /// The screen as it is.
    pub(crate) fn of(screen: &Screen) -> Self {
        let cursor = screen.cursor();
        let edge = if cursor.pending_wrap { Edge::Reached } else { Edge::Within };
        Self { row: cursor.row, col: cursor.col, edge, lines: Vec::new() }
    }

    pub(crate) fn cursor(&self) -> (u16, u16) {
        (self.row, self.col)
    }

    /// Foresees what `key` does.
    pub(crate) fn press(
        &mut self,
        key: Key,
        setting: Setting<'_>,
        clusters: &mut Clusters,
    ) -> Effect {
        match key {
            Key::Char(c) => self.write(c, setting, clusters),
            Key::Backspace => self.erase_left(setting, clusters),
            Key::Delete | Key::DeleteChar => self.erase_right(setting, clusters),
            Key::Left | Key::BackwardChar => self.step_left(setting, clusters),
            Key::Right | Key::ForwardChar => self.step_right(setting, clusters),
            Key::Up | Key::PreviousLine => self.step_rows(-1, setting),
            Key::Down | Key::NextLine => self.step_rows(1, setting),
            Key::Home | Key::LineBegin => self.jump(self.begin(setting).unwrap_or(0)),
            Key::End | Key::LineEnd => {
                let end = self.text_end(setting, clusters);
                self.jump(end)
            }
            Key::WordLeft => {
                let to = self.word_left(setting, clusters, Mark::is_word);
                self.jump(to)
            }
            Key::WordRight => self.word_right(setting, clusters),
            Key::KillRight => self.kill_right(setting, clusters),
            Key::KillLeft => match self.begin(setting) {
                Some(begin) => self.kill_left(begin, setting, clusters),
                None => Effect::Lost,
            },
            Key::KillWord => {
                let to = self.word_left(setting, clusters, |mark| !mark.is_blank());
                self.kill_left(to, setting, clusters)
            }
            Key::PasteBegin | Key::PasteEnd if setting.base.modes().bracketed_paste => {
                Effect::Moves
            }
            Key::PasteBegin | Key::PasteEnd | Key::Enter | Key::Escape | Key::Other => Effect::Lost,
        }
    }

    /// Compares with a frame that may show the keys up to here.
    pub(crate) fn likeness(&self, screen: &Screen, clusters: &mut Clusters) -> Likeness {
        let real = screen.cursor();
        let wrapped = self.edge == Edge::Reached && (real.row, real.col) == (self.row + 1, 0);
        if (real.row, real.col) != (self.row, self.col) && !wrapped {
            return Likeness::Other;
        }
        for line in &self.lines {
            for (slot, col) in line.slots.iter().zip(0..) {
                if slot.kind != Kind::Typed {
                    continue;
                }
                let Some(cell) = screen.cell(line.row, col) else { return Likeness::Other };
                if !slot.look.mark.matches(clusters.mark(screen, cell)) {
                    return Likeness::Other;
                }
            }
        }
        Likeness::Same
    }

    /// How many letters before the cursor stand before the frame's cursor too, at another place; 0 when
    /// too few to tell.
    pub(crate) fn moved(&self, base: &Screen, screen: &Screen, clusters: &mut Clusters) -> u16 {
        let real = screen.cursor();
        let cols = MOVED_COLS.min(self.col).min(real.col);
        let line = self.lines.iter().find(|line| line.row == self.row);
        let mut letters = 0;
        for back in 1..=cols {
            let col = self.col - back;
            let foreseen = match line {
                Some(line) => Some(line.slots[usize::from(col)].look.mark),
                None => base.cell(self.row, col).map(|cell| clusters.mark(base, cell)),
            };
            let is = screen.cell(real.row, real.col - back);
            let is = is.map(|cell| clusters.mark(screen, cell));
            match (foreseen, is) {
                (Some(foreseen), Some(is)) if foreseen.matches(is) => {
                    letters += u16::from(!is.is_blank());
                }
                _ => break,
            }
        }
        if letters >= MOVED_LETTERS_MIN { letters } else { 0 }
    }

    /// Some cell of the frame is neither what it was nor what was typed there.
    pub(crate) fn contradicts(
        &self,
        base: &Screen,
        screen: &Screen,
        clusters: &mut Clusters,
    ) -> bool {
        for line in &self.lines {
            for (slot, col) in line.slots.iter().zip(0..) {
                let cells = (base.cell(line.row, col), screen.cell(line.row, col));
                let (Kind::Typed, (Some(was), Some(is))) = (slot.kind, cells) else { continue };
                let is = clusters.mark(screen, is);
                if !is.matches(slot.look.mark) && !is.matches(clusters.mark(base, was)) {
                    return true;
                }
            }
        }
        false
    }

    /// Text came up right of the cursor, where none was foreseen.
    pub(crate) fn is_followed(&self, screen: &Screen, clusters: &mut Clusters) -> bool {
        let Some(line) = self.lines.iter().find(|line| line.row == self.row) else { return false };
        let at = usize::from(self.col);
        let near = at..(at + GAP_COLS).min(line.slots.len());
        let foreseen = line.slots[near.clone()].iter().any(|slot| !slot.look.mark.is_blank());
        let cells = &screen.row(self.row).cells()[near];
        !foreseen && cells.iter().any(|cell| !clusters.mark(screen, *cell).is_blank())
    }

    /// Paints what differs from the frame below.
    pub(crate) fn paint(&self, screen: &mut Screen, clusters: &Clusters, flagging: Flagging) {
        let mut scratch = clusters.clone();
        for line in &self.lines {
            for (slot, col) in line.slots.iter().zip(0..) {
                if matches!(slot.kind, Kind::Real | Kind::Unknown) {
                    continue;
                }
                let Some(cell) = screen.cell(line.row, col) else { continue };
                if slot.look.mark.matches(scratch.mark(screen, cell)) {
                    continue;
                }
                let look = match slot.look.mark.is_blank() {
                    true => slot.look,
                    false => flagging.mark(slot.look),
                };
                clusters.paint(screen, line.row, col, look);
            }
        }
        screen.set_cursor(self.row, self.col);
    }

    fn cols(setting: Setting<'_>) -> u16 {
        setting.base.size().cols
    }

    /// The slots of the cursor's line, to be changed.
    fn line(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> &mut Vec<Slot> {
        let row = self.row;
        let at = self.lines.iter().position(|line| line.row == row).unwrap_or_else(|| {
            let cells = setting.base.row(row).cells().iter();
            let real =
                |cell: &_| Slot { look: clusters.look(setting.base, *cell), kind: Kind::Real };
            self.lines.push(Line { row, slots: Arc::new(cells.map(real).collect()) });
            self.lines.len() - 1
        });
        Arc::make_mut(&mut self.lines[at].slots)
    }

    fn jump(&mut self, col: u16) -> Effect {
        self.col = col;
        self.edge = Edge::Within;
        Effect::Moves
    }

    fn begin(&self, setting: Setting<'_>) -> Option<u16> {
        setting.origin.filter(|(row, col)| *row == self.row && *col <= self.col).map(|at| at.1)
    }

    fn write(&mut self, c: char, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        let columns = u16::from(width::of(c));
        if columns == 0 {
            return self.combine(c, setting, clusters);
        }
        if self.edge == Edge::Reached {
            if self.row + 1 >= setting.base.size().rows {
                return Effect::Lost;
            }
            self.row += 1;
            self.jump(0);
        }
        let col = self.col;
        if col + columns > Self::cols(setting) {
            return Effect::Lost;
        }
        let fate = setting.margin.fate(c, col);
        if let Fate::Reflows(Reflow::LetterWraps(indent) | Reflow::SpaceWraps(indent)) = fate
            && self.wrap(indent, setting, clusters) == Effect::Lost
        {
            return Effect::Lost;
        }
        let effect = self.put(c, columns, setting, clusters);
        match fate {
            Fate::Reflows(Reflow::Scrolls { kept, by }) => self.scroll(kept, by, setting, clusters),
            _ => effect,
        }
    }

    /// Puts a character at the cursor, where it fits.
    fn put(
        &mut self,
        c: char,
        columns: u16,
        setting: Setting<'_>,
        clusters: &mut Clusters,
    ) -> Effect {
        let (row, col, cols) = (self.row, self.col, Self::cols(setting));
        let pen = setting.base.pen().style;
        let line = self.line(setting, clusters);
        let at = usize::from(col);
        let style = match at.checked_sub(1).map(|left| line[left]) {
            Some(left) if left.kind == Kind::Typed || !left.look.mark.is_blank() => left.look.style,
            _ => match line[at].look.style {
                _ if at == 0 => pen,
                under => Style { fg: line[at - 1].look.style.fg, ..under },
            },
        };
        let moves = setting.editing == Editing::Insert && !suggests(setting, line, at);
        for _ in 0..columns {
            if moves {
                open(line, at);
            }
        }
        let wide = if columns == 2 { Width::Wide } else { Width::Narrow };
        let look = Look { mark: Mark::of(c), width: wide, style };
        line[at] = Slot { look, kind: Kind::Typed };
        if columns == 2 {
            let look = Look { mark: Mark::BLANK, width: Width::Tail, style };
            line[at + 1] = Slot { look, kind: Kind::Typed };
        }
        self.col = (col + columns).min(cols - 1);
        self.edge = if col + columns == cols { Edge::Reached } else { Edge::Within };
        Effect::Writes(row, col)
    }

    /// Moves the word before the cursor to the next row, if that is empty.
    fn wrap(&mut self, indent: u16, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        let begin = self.last_word(setting, clusters);
        let (row, col) = (self.row, self.col);
        let room = indent + (col - begin) + 2 < Self::cols(setting);
        if begin == 0 || !room || row + 1 >= setting.base.size().rows {
            return Effect::Lost;
        }
        let old = self.line(setting, clusters);
        let word: Vec<Slot> = old[usize::from(begin)..usize::from(col)].to_vec();
        for slot in &mut old[usize::from(begin)..] {
            *slot = blank(slot.look.style, Kind::Moved);
        }
        self.row += 1;
        let new = self.line(setting, clusters);
        if new.iter().any(|slot| !slot.look.mark.is_blank()) {
            return Effect::Lost;
        }
        for (slot, to) in word.iter().zip(usize::from(indent)..) {
            new[to] = Slot { kind: Kind::Typed, ..*slot };
        }
        self.jump(indent + (col - begin))
    }

    /// Moves the line left, but for the first columns that are `kept`.
    fn scroll(
        &mut self,
        kept: u16,
        by: u16,
        setting: Setting<'_>,
        clusters: &mut Clusters,
    ) -> Effect {
        if self.edge == Edge::Reached || self.col < kept + by + 1 {
            return Effect::Lost;
        }
        let line = self.line(setting, clusters);
        let (kept, shift) = (usize::from(kept), usize::from(by));
        // Where the line is cut there may be a sign of it.
        line[kept].kind = Kind::Unknown;
        for to in kept + 1..line.len() {
            line[to] = match line.get(to + shift).copied() {
                Some(Slot { look, kind: Kind::Real }) => Slot { look, kind: Kind::Moved },
                Some(from) => from,
                None => blank(line[to].look.style, Kind::Unknown),
            };
        }
        self.col -= by;
        Effect::Writes(self.row, self.col - 1)
    }

    /// Takes the cursor back over what was just written.
    pub(crate) fn back(&mut self, columns: u16) {
        self.col = self.col.saturating_sub(columns);
    }

    /// Where the word that ends at the cursor begins.
    pub(crate) fn last_word(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> u16 {
        let col = usize::from(self.col);
        let line = self.line(setting, clusters);
        let gap = line[..col].iter().rposition(|slot| slot.look.mark.is_blank());
        gap.map_or(0, |gap| gap as u16 + 1)
    }

    /// How many columns from the left are as in the frame, in the cursor's line: a prompt, which ends in
    /// a blank. Text that happens to be the same after it does not count.
    pub(crate) fn kept(
        &mut self,
        screen: &Screen,
        setting: Setting<'_>,
        clusters: &mut Clusters,
    ) -> u16 {
        let row = self.row;
        let marks: Vec<Mark> = self.line(setting, clusters).iter().map(|s| s.look.mark).collect();
        let cells = screen.row(row).cells().iter().zip(&marks);
        let same = cells.take_while(|(cell, mark)| mark.matches(clusters.mark(screen, **cell)));
        let same = same.count();
        let blank = marks[..same].iter().rposition(|mark| mark.is_blank());
        blank.map_or(0, |blank| blank as u16 + 1)
    }

    /// A combining mark joins the cell before the cursor.
    fn combine(&mut self, c: char, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        let (row, col) = match (self.edge, self.col.checked_sub(1)) {
            (Edge::Reached, _) => (self.row, self.col),
            (Edge::Within, Some(left)) => (self.row, left),
            (Edge::Within, None) => return Effect::Lost,
        };
        let line = self.line(setting, clusters);
        let mut at = usize::from(col);
        if line[at].look.width == Width::Tail {
            at = at.saturating_sub(1);
        }
        let Some(mark) = clusters.join(line[at].look.mark, c) else { return Effect::Lost };
        let look = Look { mark, ..line[at].look };
        self.line(setting, clusters)[at] = Slot { look, kind: Kind::Typed };
        Effect::Writes(row, at as u16)
    }

    fn erase_left(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        if self.edge == Edge::Within && setting.origin == Some((self.row, self.col)) {
            return Effect::Moves; // A shell goes no further than its prompt.
        }
        if self.edge == Edge::Within && self.step_left(setting, clusters) == Effect::Lost {
            return Effect::Lost;
        }
        self.edge = Edge::Within;
        self.erase_at_cursor(setting, clusters)
    }

    fn erase_right(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        if self.text_end(setting, clusters) <= self.col {
            return Effect::Lost; // Joins lines in an editor, ends the input of a shell.
        }
        self.erase_at_cursor(setting, clusters)
    }

    fn erase_at_cursor(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        let at = usize::from(self.col);
        let editing = setting.editing;
        let line = self.line(setting, clusters);
        let columns = if line[at].look.width == Width::Wide { 2 } else { 1 };
        for _ in 0..columns {
            match editing {
                Editing::Insert if !suggests(setting, line, at + 1) => close(line, at),
                _ => line[at] = blank(line[at].look.style, Kind::Moved),
            }
        }
        Effect::Writes(self.row, self.col)
    }

    fn step_left(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        let Some(mut col) = self.col.checked_sub(1) else { return Effect::Lost };
        if self.line(setting, clusters)[usize::from(col)].look.width == Width::Tail {
            col = col.saturating_sub(1);
        }
        self.jump(col)
    }

    fn step_right(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        let at = usize::from(self.col);
        let line = self.line(setting, clusters);
        if suggests(setting, line, at) {
            return Effect::Lost; // Takes the suggestion, or part of it.
        }
        if line[at..].iter().all(|slot| slot.look.mark.is_blank()) {
            return Effect::Moves; // At the end of the text it stays.
        }
        let columns = if line[at].look.width == Width::Wide { 2 } else { 1 };
        let col = self.col + columns;
        if col >= Self::cols(setting) { Effect::Lost } else { self.jump(col) }
    }

    fn step_rows(&mut self, rows: i32, setting: Setting<'_>) -> Effect {
        let Ok(row) = u16::try_from(i32::from(self.row) + rows) else { return Effect::Lost };
        if row >= setting.base.size().rows {
            return Effect::Lost;
        }
        self.row = row;
        self.edge = Edge::Within;
        Effect::Moves
    }

    /// One past the last text of the cursor's line, leaving out what stands apart at the right.
    fn text_end(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> u16 {
        let at = usize::from(self.col);
        let line = self.line(setting, clusters);
        let mut end = if at > 0 { stretch_end(line, at - 1) } else { stretch_end(line, at) };
        while end > at && line[end - 1].look.mark.is_blank() {
            end -= 1;
        }
        end.min(line.len() - 1) as u16
    }

    /// Where the word before the cursor begins.
    fn word_left(
        &mut self,
        setting: Setting<'_>,
        clusters: &mut Clusters,
        is_word: fn(Mark) -> bool,
    ) -> u16 {
        let begin = usize::from(self.begin(setting).unwrap_or(0));
        let mut at = usize::from(self.col);
        let line = self.line(setting, clusters);
        let word = |at: usize| is_word(line[at].look.mark);
        while at > begin && !word(at - 1) {
            at -= 1;
        }
        while at > begin && word(at - 1) {
            at -= 1;
        }
        at as u16
    }

    fn word_right(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        let end = usize::from(self.text_end(setting, clusters));
        let mut at = usize::from(self.col);
        let line = self.line(setting, clusters);
        if suggests(setting, line, at) {
            return Effect::Lost;
        }
        let word = |at: usize| line[at].look.mark.is_word();
        while at < end && !word(at) {
            at += 1;
        }
        while at < end && word(at) {
            at += 1;
        }
        self.jump(at as u16)
    }

    fn kill_right(&mut self, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        let end = usize::from(self.text_end(setting, clusters));
        let at = usize::from(self.col);
        if end <= at {
            return Effect::Lost; // Joins lines in an editor.
        }
        for slot in &mut self.line(setting, clusters)[at..=end] {
            *slot = blank(slot.look.style, Kind::Moved);
        }
        Effect::Writes(self.row, self.col)
    }

    fn kill_left(&mut self, to: u16, setting: Setting<'_>, clusters: &mut Clusters) -> Effect {
        let count = self.col - to.min(self.col);
        if count == 0 {
            return Effect::Moves;
        }
        self.jump(to);
        let line = self.line(setting, clusters);
        for _ in 0..count {
            close(line, usize::from(to));
        }
        Effect::Writes(self.row, self.col)
    }
}

fn blank(style: Style, kind: Kind) -> Slot {
    let style = Style::background(style.bg);
    Slot { look: Look { mark: Mark::BLANK, width: Width::Narrow, style }, kind }
}

/// Where the stretch of text that moves together with the cell at `at` ends: at the first gap.
fn stretch_end(line: &[Slot], at: usize) -> usize {
    let mut blanks = 0;
    for (col, slot) in line.iter().enumerate().skip(at) {
        blanks = if slot.look.mark.is_blank() { blanks + 1 } else { 0 };
        if blanks == GAP_COLS {
            return col + 1 - GAP_COLS;
        }
    }
    line.len() - blanks
}

/// Moves the stretch of text at `at` right by one column.
fn open(line: &mut [Slot], at: usize) {
    let end = stretch_end(line, at);
    if end <= at {
        return;
    }
    let last = line.len() - 1;
    for to in (at + 1..=end.min(last)).rev() {
        let from = line[to - 1];
        let kind = if from.kind == Kind::Unknown { Kind::Unknown } else { Kind::Moved };
        // Nobody knows what happens to text at the edge: it may wrap, scroll, or be marked as cut.
        let kind = if to + 1 >= last { Kind::Unknown } else { kind };
        line[to] = Slot { kind, ..from };
    }
}

/// Takes out the cell at `at`; the stretch of text behind it moves left.
fn close(line: &mut [Slot], at: usize) {
    let end = stretch_end(line, at + 1).max(at + 1);
    let last = line.len() - 1;
    for to in at..end - 1 {
        let from = line[to + 1];
        let kind = if from.kind == Kind::Unknown { Kind::Unknown } else { Kind::Moved };
        let kind = if to + 2 >= last { Kind::Unknown } else { kind };
        line[to] = Slot { kind, ..from };
    }
    let kind = if end > last { Kind::Unknown } else { Kind::Moved };
    line[end - 1] = blank(line[end - 1].look.style, kind);
}

/// The text at `at` is a shell's suggestion of how the line might go on: known from how it came, or
/// from being dim.
fn suggests(setting: Setting<'_>, line: &[Slot], at: usize) -> bool {
    if setting.tail == Tail::Suggestion {
        return true;
    }
    let Some(here) = line.get(at).filter(|here| !here.look.mark.is_blank()) else { return false };
    let dim = |style: Style| {
        let grey = |n: u8| style.fg == Color::indexed(n);
        style.attrs.contains(Attrs::FAINT) || grey(8) || (232..=247).any(grey)
    };
    dim(here.look.style) && at.checked_sub(1).is_none_or(|left| !dim(line[left].look.style))
}
