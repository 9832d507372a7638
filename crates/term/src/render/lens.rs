//! Cells as a reader of one dialect sees them: what a stock emulator, a rove peer or the user's terminal
//! shows for them, and whether the reader is sure to give them as many columns as we do.

use std::cell::Cell as Slot;

use crate::cell::{Cell, Glyph, LinkId, PROTECTED, SEMANTIC_MASK, StyleId};
use crate::dialect::{Ability, Dialect, Emulation, Reader};
use crate::pool::{Link, Pool};
use crate::render::{degrade, extras};
use crate::row::{LineSize, Row};
use crate::style::Style;
use crate::width;

/// A screen's tables, seen through a dialect.
pub(super) struct Lens<'a> {
    pool: &'a Pool,
    dialect: Dialect,
    /// The style looked up last: neighbours share theirs.
    recent: Slot<(StyleId, Style)>,
    recent_link: Slot<(LinkId, Option<Link<'a>>)>,
}

/// What one or two neighbouring columns show.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Look<'a> {
    pub text: Text<'a>,
    pub second: Second<'a>,
    pub style: Style,
    pub link: Option<Link<'a>>,
}

/// What a cell says. A cluster has at least two code points, so that equal texts are equal values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Text<'a> {
    Char(char),
    Cluster(&'a str),
    /// Marks without a base, which a reader needs to see on a no-break space.
    Marks(&'a str),
}

/// What the column after [`Look::text`] has to do with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Second<'a> {
    /// Nothing: the text is narrow.
    Apart,
    /// The text is wide and covers it.
    Covered,
    /// What is one wide cell to us is two narrow ones to the reader.
    Split(Text<'a>),
}

/// Octets of text after which a stock cell takes no more marks (mosh-protocol.md §6).
const STOCK_CELL_FULL: usize = 32;

/// Schemes of links that a tty may be given (threats row 6): what is opened by a click.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

impl<'a> Lens<'a> {
    pub fn new(pool: &'a Pool, dialect: &Dialect) -> Self {
        Self {
            pool,
            dialect: *dialect,
            recent: Slot::new((StyleId::PLAIN, Style::PLAIN)),
            recent_link: Slot::new((LinkId::NONE, None)),
        }
    }

    /// The style as the reader shows it.
    pub fn style(&self, id: StyleId) -> Style {
        let (recent, style) = self.recent.get();
        if recent == id {
            return style;
        }
        let style = degrade::style(self.pool.style(id), &self.dialect);
        self.recent.set((id, style));
        style
    }

    /// The link, if the reader may have it.
    pub fn link(&self, cell: Cell) -> Option<Link<'a>> {
        if !self.dialect.can(Ability::Links) {
            return None;
        }
        let (recent, link) = self.recent_link.get();
        if recent == cell.link() {
            return link;
        }
        let link = self.pool.link(cell.link()).filter(|link| self.may_have(link));
        self.recent_link.set((cell.link(), link));
        link
    }

    /// OSC 8 allows printable ASCII alone in links and, of that, no separators in their ids.
    fn may_have(&self, link: &Link<'_>) -> bool {
        let id =
            link.id.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b':' | b';'));
        let uri = link.uri.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let trusted = self.dialect.reader() != Reader::Tty
            || SCHEMES.iter().any(|scheme| starts_with_scheme(link.uri, scheme));
        id && uri && trusted && !link.uri.is_empty()
    }

    /// What is shown from `col` on, and over how many columns. A wide cell covers its neighbour whatever
    /// is stored there; the right half of a wide cell that is gone is blank.
    #[inline]
    pub fn look(&self, cells: &[Cell], col: usize) -> (Look<'a>, usize) {
        let cell = cells[col];
        let wide = cell.is_wide() && col + 1 < cells.len();
        let (text, second) = match cell.glyph() {
            _ if cell.is_tail() || cell.is_wide() && !wide => (Text::Char(' '), Second::Apart),
            Glyph::Char(c) if c.is_ascii() => (Text::Char(c), Second::Apart),
            glyph => self.read(glyph, wide),
        };
        let look = Look { text, second, style: self.style(cell.style()), link: self.link(cell) };
        (look, if wide { 2 } else { 1 })
    }

    fn read(&self, glyph: Glyph, wide: bool) -> (Text<'a>, Second<'a>) {
        let width = if wide { 2 } else { 1 };
        let text = match glyph {
            Glyph::Char(c) if self.dialect.emulation() == Emulation::Full => Text::Char(c),
            Glyph::Char(c) => return read_as_stock_char(c, width),
            Glyph::Cluster(id) => {
                let text = self.pool.cluster(id);
                if self.dialect.emulation() == Emulation::Mosh {
                    return read_as_stock(text, width);
                }
                Text::of(self.without_reordering(text))
            }
        };
        (text, if wide { Second::Covered } else { Second::Apart })
    }

    /// A tty gets no characters that change the order of what is around them (threats row 35).
    fn without_reordering<'t>(&self, text: &'t str) -> &'t str {
        match text.find(extras::is_reordering) {
            Some(end) if end > 0 && self.dialect.reader() == Reader::Tty => &text[..end],
            _ => text,
        }
    }

    /// Erasing with this pen's background leaves exactly such a cell.
    pub fn is_erased(&self, cell: Cell) -> bool {
        if !cell.is_space() || self.link(cell).is_some() {
            return false;
        }
        let style = self.style(cell.style());
        self.is_erasure(style)
    }

    /// A blank of this style can be had by erasing.
    pub fn is_erasure(&self, style: Style) -> bool {
        if style == Style::PLAIN {
            return true;
        }
        style == Style::background(style.bg) && self.dialect.can(Ability::BackColorErase)
    }

    /// How many columns of a row are shown: lines of double width show half of them.
    pub fn columns(&self, row: &Row) -> usize {
        let all = row.cells().len();
        match row.size() {
            LineSize::Single => all,
            _ if !self.dialect.can(Ability::LineSize) => all,
            _ => all.div_ceil(2),
        }
    }

    /// The reader keeps a mark at the row's end that its text goes on in the next row. Not on the last
    /// row, whose wrap would scroll; and not where the end is of disputable width.
    pub fn marks_wrap(&self, row: &Row, place: Place) -> bool {
        if !row.is_wrapped() || place == Place::Last || !self.dialect.can(Ability::SoftWrap) {
            return false;
        }
        let (look, _) = self.look(row.cells(), last_start(row.cells()));
        let whole = row.size() == LineSize::Single || !self.dialect.can(Ability::LineSize);
        whole && look.text.is_steady() && !matches!(look.second, Second::Split(_))
    }
}

/// Where a row stands on the screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    Inner,
    Last,
}

/// Where the last cell of a row begins.
pub(super) fn last_start(cells: &[Cell]) -> usize {
    let last = cells.len() - 1;
    if last > 0 && cells[last - 1].is_wide() { last - 1 } else { last }
}

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Self {
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Text::Char(c),
            _ => Text::Cluster(text),
        }
    }

    /// What is printed.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Text::Char(c) => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Text::Cluster(text) => out.extend_from_slice(text.as_bytes()),
            Text::Marks(marks) => {
                out.extend_from_slice("\u{a0}".as_bytes());
                out.extend_from_slice(marks.as_bytes());
            }
        }
    }

    /// The first code point printed.
    pub fn first(&self) -> char {
        match self {
            Text::Char(c) => *c,
            Text::Cluster(text) => text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER),
            Text::Marks(_) => '\u{a0}',
        }
    }

    /// Every reader gives it as many columns as we do, and joins it with no neighbour.
    pub fn is_steady(&self) -> bool {
        match self {
            Text::Char(c) => is_steady(*c),
            Text::Cluster(_) | Text::Marks(_) => false,
        }
    }

    /// Printed after `self`, without any control function between, `next` would become part of it.
    pub fn is_joined_by(&self, next: Text<'_>) -> bool {
        match self {
            Text::Char(c) if is_steady(*c) => false,
            Text::Char(c) => width::joins(c.encode_utf8(&mut [0; 4]), next.first()),
            Text::Cluster(text) | Text::Marks(text) => width::joins(text, next.first()),
        }
    }
}

/// A stock emulator's reading of one character in `columns` columns.
fn read_as_stock_char<'a>(c: char, columns: u8) -> (Text<'a>, Second<'a>) {
    match (width::stock(c), columns) {
        (Some(2), 2) => (Text::Char(c), Second::Covered),
        (Some(1), 1) => (Text::Char(c), Second::Apart),
        (Some(1), _) => (Text::Char(c), Second::Split(Text::Char(' '))),
        (_, 2) => (Text::Char('\u{fffd}'), Second::Split(Text::Char(' '))),
        _ => (Text::Char('\u{fffd}'), Second::Apart),
    }
}

/// A stock emulator's reading of a cluster: it knows characters and the marks that follow them, so some
/// clusters are two cells to it, and of joined emoji it shows the first.
fn read_as_stock(text: &str, columns: u8) -> (Text<'_>, Second<'_>) {
    let first = text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
    if width::stock(first) == Some(0) {
        let (marks, _) = split_stock_cell(text, "\u{a0}".len());
        let second = if columns == 2 { Second::Split(Text::Char(' ')) } else { Second::Apart };
        return (Text::Marks(marks), second);
    }
    let (cell, rest) = split_stock_cell(text, 0);
    let (alone, second) = read_as_stock_char(first, columns);
    if alone != Text::Char(first) {
        return (alone, second);
    }
    let Second::Split(_) = second else { return (Text::of(cell), second) };
    let narrow = |c: &char| width::stock(*c) == Some(1);
    let other = match rest.chars().next().filter(narrow) {
        Some(_) => Text::of(split_stock_cell(rest, 0).0),
        None => Text::Char(' '),
    };
    (Text::of(cell), Second::Split(other))
}

/// Cuts off the first character with its marks, as many as a stock cell takes that holds `held` octets
/// already. A joiner that would be left without anything to join is dropped.
fn split_stock_cell(text: &str, held: usize) -> (&str, &str) {
    let mut end = 0;
    for (index, c) in text.char_indices() {
        let continues = held + index > 0 && width::stock(c) == Some(0);
        if index > 0 && !continues || held + index >= STOCK_CELL_FULL {
            break;
        }
        end = index + c.len_utf8();
    }
    let (cell, rest) = text.split_at(end);
    (cell.trim_end_matches('\u{200d}'), rest)
}

fn starts_with_scheme(uri: &str, scheme: &str) -> bool {
    uri.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// Blocks whose every character has the same width in every width table in use (glibc, musl, macOS, and
/// terminals' own) and stands for itself. Sorted.
#[rustfmt::skip]
const STEADY: [(char, char); 22] = [
    (' ', '~'),
    ('\u{a0}', '\u{ac}'), ('\u{ae}', '\u{2ff}'), // Latin, without the soft hyphen
    ('\u{370}', '\u{377}'), ('\u{37a}', '\u{37f}'), ('\u{384}', '\u{38a}'), ('\u{38e}', '\u{3a1}'), // Greek
    ('\u{3a3}', '\u{482}'), ('\u{48a}', '\u{52f}'), // Greek, Cyrillic
    ('\u{1e00}', '\u{1eff}'), // Latin
    ('\u{2010}', '\u{2027}'), ('\u{2030}', '\u{205e}'), // punctuation
    ('\u{20a0}', '\u{20bf}'), // currency
    ('\u{2500}', '\u{259f}'), // boxes and blocks
    ('\u{2800}', '\u{28ff}'), // Braille, which draws graphs
    ('\u{3001}', '\u{3029}'), ('\u{3041}', '\u{3096}'), ('\u{309b}', '\u{30ff}'), // kana
    ('\u{3400}', '\u{4dbf}'), ('\u{4e00}', '\u{9ffc}'), // ideographs
    ('\u{ac00}', '\u{d7a3}'), // hangul syllables
    ('\u{ff01}', '\u{ff60}'), // full-width forms
];

#[inline]
fn is_steady(c: char) -> bool {
    if c.is_ascii() {
        return true;
    }
    let after = STEADY.partition_point(|(_, last)| *last < c);
    STEADY.get(after).is_some_and(|(first, _)| *first <= c)
}

/// Bits that no reader shows.
pub(super) const UNSEEN: u64 = PROTECTED | SEMANTIC_MASK;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_characters_are_what_stock_takes_them_for() {
        assert!(STEADY.windows(2).all(|pair| pair[0].1 < pair[1].0));
        for (first, last) in STEADY {
            for c in first..=last {
                assert_eq!(Some(width::of(c)), width::stock(c), "{c:?}");
                assert!(matches!(width::of(c), 1 | 2), "{c:?}");
                assert!(!width::joins("a", c), "{c:?}");
            }
        }
    }

    #[test]
    fn clusters_as_stock_reads_them() {
        let blank = Second::Split(Text::Char(' '));
        for (text, columns, shown, second) in [
            ("e\u{301}", 1, Text::Cluster("e\u{301}"), Second::Apart),
            ("\u{1f468}\u{200d}\u{1f469}", 2, Text::Char('\u{1f468}'), Second::Covered),
            ("\u{2764}\u{fe0f}", 2, Text::Cluster("\u{2764}\u{fe0f}"), blank),
            (
                "\u{1f1e9}\u{1f1ea}",
                2,
                Text::Char('\u{1f1e9}'),
                Second::Split(Text::Char('\u{1f1ea}')),
            ),
            ("\u{301}\u{302}", 1, Text::Marks("\u{301}\u{302}"), Second::Apart),
        ] {
            assert_eq!(read_as_stock(text, columns), (shown, second), "{text:?}");
        }
        let zalgo = "a".to_string() + &"\u{301}".repeat(20);
        assert_eq!(read_as_stock(&zalgo, 1), (Text::Cluster(&zalgo[..33]), Second::Apart));
    }
}
