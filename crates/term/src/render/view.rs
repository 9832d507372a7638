//! Shows cells as a reader of one dialect sees them: the text that a stock emulator, a rove peer or the user's
//! terminal shows for a cell, and whether that reader surely gives it as many columns as we do.

use alloc::vec::Vec;
use core::cell::Cell as Slot;
use core::ops::Range;

use crate::dialect::{Ability, Dialect, Emulation, Reader};
use crate::flag;
use crate::render::{degrade, extras};
use crate::screen::cell::{
    CLUSTER, Cell, ClusterId, Glyph, LINK_MASK, LinkId, PROTECTED, SEMANTIC_MASK, STYLE_MASK,
    StyleId, WIDTH_MASK,
};
use crate::screen::pool::{Link, Pool};
use crate::screen::row::{LineSize, Row};
use crate::screen::style::Style;
use crate::width;

/// A screen's tables, seen through a dialect.
pub(super) struct ReaderView<'a> {
    pool: &'a Pool,
    dialect: Dialect,
    /// The style looked up last: neighbours share theirs.
    recent: Slot<(StyleId, Style)>,
    recent_link: Slot<(LinkId, Option<Link<'a>>)>,
}

/// The text and style shown in one column, or two.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Look<'a> {
    pub text: Text<'a>,
    /// 1 or 2.
    pub columns: usize,
    pub style: Style,
    pub link: Option<Link<'a>>,
}

/// The text of a cell. A cluster has at least two code points, so that equal texts are equal values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Text<'a> {
    Char(char),
    Cluster(&'a str),
    /// A mark on a no-break space, or without any base: a reader needs to see it on one.
    Mark(char),
    /// Several of them.
    Marks(&'a str),
}

/// How a reader takes a cell of ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reading<'a> {
    /// One cell, as wide as ours.
    Whole(Text<'a>),
    /// Our wide cell is two narrow ones to it.
    Split(Text<'a>, Text<'a>),
}

/// Octets of text after which a stock cell takes no more marks (mosh-protocol.md §6).
const STOCK_CELL_FULL: usize = 32;

impl<'a> ReaderView<'a> {
    pub(super) fn new(pool: &'a Pool, dialect: &Dialect) -> Self {
        Self {
            pool,
            dialect: *dialect,
            recent: Slot::new((StyleId::PLAIN, Style::PLAIN)),
            recent_link: Slot::new((LinkId::NONE, None)),
        }
    }

    /// The style as the reader shows it.
    pub(super) fn style(&self, id: StyleId) -> Style {
        let (recent, style) = self.recent.get();
        if recent == id {
            return style;
        }
        let style = degrade::style(self.pool.style(id), &self.dialect);
        self.recent.set((id, style));
        style
    }

    /// The link, if the reader may have it.
    pub(super) fn link(&self, cell: Cell) -> Option<Link<'a>> {
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
        id && uri && !link.uri.is_empty() && self.dialect.may_link(link.uri)
    }

    /// The text shown at `col`; `None` if the wide text before it covers that column. The right half of a wide cell
    /// that is gone is blank.
    pub(super) fn look(&self, cells: &[Cell], col: usize) -> Option<Look<'a>> {
        let cell = cells[col];
        if is_covered(cells, col) {
            return match self.read(cells[col - 1]) {
                Reading::Whole(_) => None,
                Reading::Split(_, second) => Some(self.dress(cells[col - 1], second, 1)),
            };
        }
        let torn = cell.is_tail() || cell.is_wide() && col + 1 == cells.len();
        if torn {
            return Some(self.dress(cell, BLANK, 1));
        }
        Some(match self.read(cell) {
            Reading::Whole(text) => self.dress(cell, text, if cell.is_wide() { 2 } else { 1 }),
            Reading::Split(first, _) => self.dress(cell, first, 1),
        })
    }

    fn dress(&self, cell: Cell, text: Text<'a>, columns: usize) -> Look<'a> {
        Look { text, columns, style: self.style(cell.style()), link: self.link(cell) }
    }

    fn read(&self, cell: Cell) -> Reading<'a> {
        let columns = if cell.is_wide() { 2 } else { 1 };
        match (cell.glyph(), self.dialect.emulation()) {
            (Glyph::Char(c), _) if c.is_ascii() && columns == 1 => Reading::Whole(Text::Char(c)),
            (Glyph::Char(c), _) if flag::is_tag(c) => read_char(c, None, columns),
            (Glyph::Char(c), Emulation::Full) => read_char(c, shown_width(c), columns),
            (Glyph::Char(c), Emulation::Mosh) => read_char(c, width::stock(c), columns),
            (Glyph::Cluster(id), Emulation::Full) => {
                read_cluster(self.in_order(self.cluster(id)), columns)
            }
            (Glyph::Cluster(id), Emulation::Mosh) => {
                read_cluster_as_stock(self.cluster(id), columns)
            }
        }
    }

    /// A cluster's text, without tags that are no part of a flag (threats row 6). While a program writes
    /// one, a cell may hold half a flag, and a stock emulator's may hold any tag.
    fn cluster(&self, id: ClusterId) -> &'a str {
        flag::before_strays(self.pool.cluster(id))
    }

    /// A tty gets no characters that change the order of what is around them (threats row 35), nor the marks that a
    /// stock emulator may have put on a cell after one of those.
    fn in_order<'t>(&self, text: &'t str) -> &'t str {
        let tty = self.dialect.reader() == Reader::Tty;
        match text.find(extras::is_reordering) {
            Some(end) if tty && end > 0 => &text[..end],
            _ => text,
        }
    }

    /// Erasing with this pen's background leaves exactly such a cell.
    pub(super) fn is_erased(&self, cell: Cell) -> bool {
        if !cell.is_space() || self.link(cell).is_some() {
            return false;
        }
        let style = self.style(cell.style());
        self.is_erasure(style)
    }

    /// A blank of this style can be had by erasing.
    pub(super) fn is_erasure(&self, style: Style) -> bool {
        if style == Style::PLAIN {
            return true;
        }
        style == Style::background(style.bg) && self.dialect.can(Ability::BackColorErase)
    }

    /// The reader keeps a mark at the row's end that its text goes on in the next row. Not on the
    /// last row, whose wrap would scroll; and not where the end is of disputable width.
    pub(super) fn marks_wrap(&self, row: &Row, site: CellSite) -> bool {
        if !row.is_wrapped() || site == CellSite::Last || !self.dialect.can(Ability::SoftWrap) {
            return false;
        }
        let whole = row.size() == LineSize::Single || !self.dialect.can(Ability::LineSize);
        whole && self.last(row.cells()).1.text.is_steady()
    }

    /// The text that ends where `col` begins.
    pub(super) fn before(&self, cells: &[Cell], col: usize) -> Option<Text<'a>> {
        let last = col.checked_sub(1).filter(|last| *last < cells.len())?;
        let look = self.look(cells, last).or_else(|| self.look(cells, last.checked_sub(1)?))?;
        Some(look.text)
    }

    /// The last thing shown in a row, and its column.
    pub(super) fn last(&self, cells: &[Cell]) -> (usize, Look<'a>) {
        let last = cells.len() - 1;
        let blank = || self.dress(Cell::BLANK, BLANK, 1);
        match self.look(cells, last) {
            Some(look) => (last, look),
            None => (last - 1, self.look(cells, last - 1).unwrap_or_else(blank)),
        }
    }
}

/// How many columns of a row are shown: lines of double width show half of them.
pub(super) fn columns(row: &Row, dialect: &Dialect) -> usize {
    let all = row.cells().len();
    match row.size() {
        LineSize::Single => all,
        _ if !dialect.can(Ability::LineSize) => all,
        _ => (all / 2).max(1),
    }
}

/// Where a row stands on the screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CellSite {
    Inner,
    Last,
}

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Self {
        if let Some(marks) = text.strip_prefix(BASE).filter(|marks| !marks.is_empty()) {
            return Self::of_marks(marks);
        }
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(c), None) => Text::Char(c),
            _ => Text::Cluster(text),
        }
    }

    fn of_marks(marks: &'a str) -> Self {
        let mut chars = marks.chars();
        match (chars.next(), chars.next()) {
            (Some(mark), None) => Text::Mark(mark),
            _ => Text::Marks(marks),
        }
    }

    /// The text to print.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut utf8 = [0; 4];
        match self {
            Text::Char(c) => out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes()),
            Text::Cluster(text) => out.extend_from_slice(text.as_bytes()),
            Text::Mark(mark) => {
                out.extend_from_slice(BASE.as_bytes());
                out.extend_from_slice(mark.encode_utf8(&mut utf8).as_bytes());
            }
            Text::Marks(marks) => {
                out.extend_from_slice(BASE.as_bytes());
                out.extend_from_slice(marks.as_bytes());
            }
        }
    }

    /// The first code point printed.
    pub(super) fn first(&self) -> char {
        match self {
            Text::Char(c) => *c,
            Text::Cluster(text) => text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER),
            Text::Mark(_) | Text::Marks(_) => '\u{a0}',
        }
    }

    /// Every reader gives it as many columns as we do, and joins it with no neighbour.
    pub(super) fn is_steady(&self) -> bool {
        matches!(self, Text::Char(c) if is_steady(*c))
    }

    /// Printed after `self`, without any control function between, `next` would become part of it.
    pub(super) fn is_joined_by(&self, next: Text<'_>) -> bool {
        let mut utf8 = [0; 4];
        match self {
            Text::Char(c) | Text::Mark(c) => width::joins(c.encode_utf8(&mut utf8), next.first()),
            Text::Cluster(text) | Text::Marks(text) => width::joins(text, next.first()),
        }
    }
}

const BLANK: Text<'static> = Text::Char(' ');

const BASE: &str = width::NO_BREAK_SPACE;

/// One character in a cell of that many columns, to a reader who gives it `width`, or drops it.
fn read_char<'a>(c: char, width: Option<u8>, columns: u8) -> Reading<'a> {
    match (width, columns) {
        (Some(2), 2) | (Some(1), 1) => Reading::Whole(Text::Char(c)),
        (Some(1), _) => Reading::Split(Text::Char(c), BLANK),
        (Some(0), 1) => Reading::Whole(Text::Mark(c)),
        (Some(0), _) => Reading::Split(Text::Mark(c), BLANK),
        (_, 1) => Reading::Whole(Text::Char(char::REPLACEMENT_CHARACTER)),
        (_, _) => Reading::Split(Text::Char(char::REPLACEMENT_CHARACTER), BLANK),
    }
}

/// The text that the full emulator writes for a character; `None` if it drops it.
fn shown_width(c: char) -> Option<u8> {
    (!width::is_dropped(c)).then(|| width::of(c))
}

/// A cluster, to a reader that knows clusters: as much of it as the reader will put into one cell. In a
/// cell too narrow for that, which only a stock emulator makes, it is cut short until it fits.
fn read_cluster(text: &str, columns: u8) -> Reading<'_> {
    let first = text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
    if width::is_dropped(first) {
        return read_char(first, None, columns);
    }
    let mut fitting = &text[..width::sticking(text)];
    while width::cluster(fitting) > columns {
        let Some((last, _)) = fitting.char_indices().next_back().filter(|(at, _)| *at > 0) else {
            return Reading::Whole(Text::Char(char::REPLACEMENT_CHARACTER));
        };
        fitting = &fitting[..last];
    }
    match (width::cluster(fitting), columns) {
        (0, 1) => Reading::Whole(Text::of_marks(fitting)),
        (0, _) => Reading::Split(Text::of_marks(fitting), BLANK),
        (1, 2) => Reading::Split(Text::of(fitting), BLANK),
        _ => Reading::Whole(Text::of(fitting)),
    }
}

/// A cluster, to a stock emulator: it knows characters and the marks that follow them, so some
/// clusters are two cells to it, and of joined emoji it shows the first.
fn read_cluster_as_stock(text: &str, columns: u8) -> Reading<'_> {
    let first = text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
    if first == ' ' || width::stock(first) == Some(0) {
        // On a space, too, stock puts a mark as if nothing stood there. What follows a space in our
        // cell need not be a mark to stock.
        let (marks, rest) = split_marks(text.strip_prefix(' ').unwrap_or(text), BASE.len());
        let marks = if marks.is_empty() { BLANK } else { Text::of_marks(marks) };
        return match columns {
            2 => Reading::Split(marks, read_rest_as_stock(rest)),
            _ => Reading::Whole(marks),
        };
    }
    let (cell, rest) = split_stock_cell(text);
    let known = |text: Text<'_>| text == Text::Char(first);
    match read_char(first, width::stock(first), columns) {
        Reading::Whole(alone) if known(alone) => Reading::Whole(Text::of(cell)),
        Reading::Split(alone, _) if known(alone) => {
            Reading::Split(Text::of(cell), read_rest_as_stock(rest))
        }
        unknown => unknown,
    }
}

/// The text of the second of two cells that are one to us: the next character, if that is narrow too.
fn read_rest_as_stock(rest: &str) -> Text<'_> {
    match rest.chars().next().and_then(width::stock) {
        Some(1) => Text::of(split_stock_cell(rest).0),
        _ => BLANK,
    }
}

/// Cuts off the first character with its marks, as many as a stock cell takes.
fn split_stock_cell(text: &str) -> (&str, &str) {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let (marks, rest) = split_marks(&text[first..], first);
    (&text[..first + marks.len()], rest)
}

/// Cuts off the marks that a stock cell takes which holds `held` octets already, and drops a joiner that
/// would be left without anything to join.
fn split_marks(text: &str, held: usize) -> (&str, &str) {
    let mark = |(at, c): &(usize, char)| width::stock(*c) == Some(0) && held + at < STOCK_CELL_FULL;
    let end = text.char_indices().take_while(mark).last().map_or(0, |(at, c)| at + c.len_utf8());
    let (marks, rest) = text.split_at(end);
    (marks.trim_end_matches('\u{200d}'), rest)
}

/// The column is the right half of a wide cell. In a stock emulator a wide cell hides the next one, even if that is
/// wide, which then hides nothing.
#[inline]
pub(super) fn is_covered(cells: &[Cell], col: usize) -> bool {
    cells[..col].iter().rev().take_while(|cell| cell.is_wide()).count() % 2 == 1
}

/// Blocks whose every character has the same width in every width table in use (glibc, musl, macOS,
/// and terminals' own) and stands for itself. Sorted.
#[rustfmt::skip]
const STEADY: [(char, char); 22] = [
    (' ', '~'),
    ('\u{a0}', '\u{ac}'), ('\u{ae}', '\u{2ff}'), // Latin, without the soft hyphen
    ('\u{370}', '\u{377}'), ('\u{37a}', '\u{37f}'), ('\u{384}', '\u{38a}'), ('\u{38e}', '\u{3a1}'),
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

/// Bits that refer to a pool, or to another column.
const DRESSED: u64 = STYLE_MASK | LINK_MASK | CLUSTER | WIDTH_MASK;

/// Cells compared at once.
const CHUNK: usize = 8;

/// Whether two stretches of cells of one pool look alike. Without a branch, for the compiler to turn into
/// vector instructions.
fn alike(old: &[Cell], new: &[Cell]) -> bool {
    let differences = old.iter().zip(new).map(|(old, new)| old.bits() ^ new.bits());
    differences.fold(0, |all, bits| all | bits) & !UNSEEN == 0
}

/// How many cells of one pool look alike from the first one on; a few may be missing.
pub(super) fn equal_len(old: &[Cell], new: &[Cell]) -> usize {
    let chunks = old.chunks_exact(CHUNK).zip(new.chunks_exact(CHUNK));
    CHUNK * chunks.take_while(|(old, new)| alike(old, new)).count()
}

/// The same for cells of two pools, as far as they are narrow characters in the plain style, which mean the same in
/// all pools.
pub(super) fn equal_plain_len(old: &[Cell], new: &[Cell]) -> usize {
    let is_plain = |new: &[Cell]| new.iter().fold(0, |all, cell| all | cell.bits()) & DRESSED == 0;
    let chunks = old.chunks_exact(CHUNK).zip(new.chunks_exact(CHUNK));
    CHUNK * chunks.take_while(|(old, new)| alike(old, new) && is_plain(new)).count()
}

/// The columns from the first to the last in which two rows of one pool, equally long, look different.
pub(super) fn differing(old: &[Cell], new: &[Cell]) -> Option<Range<usize>> {
    let differ = |(old, new): (&Cell, &Cell)| (old.bits() ^ new.bits()) & !UNSEEN != 0;
    let skipped = equal_len(old, new);
    let first = old[skipped..].iter().zip(&new[skipped..]).position(differ)?;
    let chunks = old.rchunks_exact(CHUNK).zip(new.rchunks_exact(CHUNK));
    let end = old.len() - CHUNK * chunks.take_while(|(old, new)| alike(old, new)).count();
    let last = old[..end].iter().zip(&new[..end]).rposition(differ)?;
    Some(skipped + first..last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::cell::{Semantic, Width};

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

    /// Rows that are mostly alike: random cells, of which the second row has a few others.
    fn two_rows(seed: u64) -> [Vec<Cell>; 2] {
        let mut state = seed;
        // SplitMix64 (Steele, Lea, Flood 2014).
        let mut below = |limit: u64| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ mixed >> 31) % limit
        };
        let mut cell = |odd_per_mille: u64| {
            let letter = char::from(b'a' + below(3) as u8);
            let cell = Cell::narrow(letter);
            if below(1_000) >= odd_per_mille {
                return cell;
            }
            match below(8) {
                0 => cell.with_style(StyleId(1 << below(20))),
                1 => cell.with_link(LinkId(1 << below(16))),
                2 => cell.with_glyph(Glyph::Cluster(ClusterId(below(3) as u32)), Width::Narrow),
                3 => cell.with_glyph(Glyph::Char('\u{4e16}'), Width::Wide),
                4 => cell.with_glyph(Glyph::Char(' '), Width::Tail),
                5 => Cell::narrow('\u{10fffd}'),
                6 => cell.with_semantic(Semantic::Prompt),
                _ => Cell(cell.bits() | PROTECTED),
            }
        };
        let odd = [0, 5, 30, 300][seed as usize % 4];
        let cols = 1 + (seed / 4) as usize % 90;
        let old: Vec<Cell> = (0..cols).map(|_| cell(odd)).collect();
        let mut new = old.clone();
        // Where: in each column of a chunk, and in the rest of a row that is no whole number of chunks.
        for change in 0..seed / 360 % 3 {
            new[(seed as usize + 31 * change as usize) % cols] = cell(500);
        }
        // None of them is seen.
        for cell in new.iter_mut().step_by(7) {
            *cell = cell.with_semantic(Semantic::Input);
        }
        [old, new]
    }

    /// Chunks of cells are compared as their cells are, one by one: no chunk is taken for equal that is not, and none
    /// for other that is equal.
    #[test]
    fn many_cells_are_compared_as_each_is() {
        let same_text = |old: Cell, new: Cell| {
            (old.glyph(), old.width()) == (new.glyph(), new.width())
                && (old.style(), old.link()) == (new.style(), new.link())
        };
        let is_plain = |cell: Cell| {
            matches!(cell.glyph(), Glyph::Char(_))
                && cell.width() == Width::Narrow
                && (cell.style(), cell.link()) == (StyleId::PLAIN, LinkId::NONE)
        };
        let mut stops = [0; 2];
        for seed in 0..20_000 {
            let [old, new] = two_rows(seed);
            let leading = |alike: &dyn Fn(Cell, Cell) -> bool| {
                old.iter().zip(&new).take_while(|(old, new)| alike(**old, **new)).count()
            };
            let equal = leading(&same_text);
            let plain = leading(&|old, new| same_text(old, new) && is_plain(new));
            assert_eq!(equal_len(&old, &new), equal / CHUNK * CHUNK, "{old:?} {new:?}");
            assert_eq!(equal_plain_len(&old, &new), plain / CHUNK * CHUNK, "{old:?} {new:?}");
            let pairs = || old.iter().zip(&new);
            let first = pairs().position(|(old, new)| !same_text(*old, *new));
            let last = pairs().rposition(|(old, new)| !same_text(*old, *new));
            let differ = first.zip(last).map(|(first, last)| first..last + 1);
            assert_eq!(differing(&old, &new), differ, "{old:?} {new:?}");
            stops[0] += usize::from(equal < old.len());
            stops[1] += usize::from(plain < equal);
        }
        assert!(stops.iter().all(|count| *count > 2_000), "too few rows differ: {stops:?}");
    }

    #[test]
    fn clusters_as_stock_reads_them() {
        use Reading::{Split, Whole};
        let split = |a, b| Split(Text::Char(a), Text::Char(b));
        for (text, columns, reading) in [
            ("e\u{301}", 1, Whole(Text::Cluster("e\u{301}"))),
            ("\u{1f468}\u{200d}\u{1f469}", 2, Whole(Text::Char('\u{1f468}'))),
            ("\u{2764}\u{fe0f}", 2, Split(Text::Cluster("\u{2764}\u{fe0f}"), BLANK)),
            ("\u{1f1e9}\u{1f1ea}", 2, split('\u{1f1e9}', '\u{1f1ea}')),
            ("\u{301}\u{302}", 1, Whole(Text::Marks("\u{301}\u{302}"))),
            (" \u{301}", 1, Whole(Text::Mark('\u{301}'))),
        ] {
            assert_eq!(read_cluster_as_stock(text, columns), reading, "{text:?}");
        }
        let zalgo = "a".to_string() + &"\u{301}".repeat(20);
        assert_eq!(read_cluster_as_stock(&zalgo, 1), Whole(Text::Cluster(&zalgo[..33])));
    }

    #[test]
    fn clusters_of_a_stock_cell_are_cut_to_fit() {
        use Reading::{Split, Whole};
        for (text, columns, reading) in [
            ("\u{2764}\u{fe0f}", 2, Whole(Text::Cluster("\u{2764}\u{fe0f}"))),
            ("\u{2764}\u{fe0f}", 1, Whole(Text::Char('\u{2764}'))),
            ("e\u{301}", 2, Split(Text::Cluster("e\u{301}"), BLANK)),
        ] {
            assert_eq!(read_cluster(text, columns), reading, "{text:?}");
        }
    }
}
