//! Lines that scrolled off the top of the primary screen, packed: text in one or three bytes a
//! character, renditions and links where they change. Outside of snapshots; named by line numbers.
//!
//! A packed line is one head byte and then text. Control characters never stand in cells, so they mark what
//! is not text: a cluster, a change of rendition, a change of link.

use std::collections::VecDeque;

use crate::cell::{Cell, Glyph, LINK_MASK, LinkId, STYLE_MASK, TEXT_MASK, Width};
use crate::pool::Pool;
use crate::row::{Ending, LineId, Row};
use crate::style::Style;
use crate::width;

/// Lines kept, as many terminals keep; the oldest go.
pub const HISTORY_LINES_MAX: usize = 10_000;
/// Bytes kept; the oldest lines go. A line of 200 columns with a colour a cell takes 4 KB.
pub const HISTORY_BYTES_MAX: usize = 8 << 20;
/// Lines of one block: what is forgotten at once.
const BLOCK_LINES: usize = 512;
/// Bytes after which a block takes no further line.
const BLOCK_BYTES: usize = 256 << 10;

/// The most a line can take: a thousand cells with a rendition, a link and a cluster each.
const LINE_BYTES_MAX: usize = 1000 * (15 + 3 + 2400 + 66);

/// The line goes on in the next one.
const WRAPPED: u8 = 1;
/// It does, and its last column was left free for want of room for a wide character.
const WRAPPED_EARLY: u8 = 8;
/// Nothing but ASCII in the plain style follows.
const PLAIN: u8 = 2;
/// Nothing but narrow characters up to U+FFFF in the plain style follows, two bytes each.
const PLAIN_PAIRS: u8 = 4;
/// A cluster: its length in bytes and its text follow.
const CLUSTER_MARK: u8 = 1;
/// A rendition follows, 14 bytes.
const STYLE_MARK: u8 = 2;
/// A link follows: its length in two bytes, then `id TAB uri`, nothing for none.
const LINK_MARK: u8 = 3;

#[derive(Clone, Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// Number and start of each line.
    lines: Vec<(LineId, u32)>,
}

/// The lines above the primary screen, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Full blocks.
    blocks: VecDeque<Block>,
    /// The block that takes lines.
    open: Block,
    /// Lines and bytes of the full blocks.
    lines: usize,
    bytes: usize,
}

impl History {
    /// How many lines are kept.
    pub fn len(&self) -> usize {
        self.lines + self.open.lines.len()
    }

    /// No line is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes the packed lines take.
    pub fn bytes(&self) -> usize {
        self.bytes + self.open.bytes.len()
    }

    /// The number of a line, from 0 for the oldest.
    pub fn id(&self, index: usize) -> Option<LineId> {
        let (block, line) = self.locate(index)?;
        Some(block.lines[line].0)
    }

    /// Where a line stands; the newest of that number.
    pub fn find(&self, id: LineId) -> Option<usize> {
        let mut end = self.len();
        for block in std::iter::once(&self.open).chain(self.blocks.iter().rev()) {
            end -= block.lines.len();
            if let Some(line) = block.lines.iter().rposition(|(known, _)| *known == id) {
                return Some(end + line);
            }
        }
        None
    }

    /// A line as a row of at least `cols` columns, its numbers those of `pool`.
    pub fn row(&self, index: usize, cols: u16, pool: &mut Pool) -> Option<Row> {
        let (block, line) = self.locate(index)?;
        let (id, start) = block.lines[line];
        let end = block.lines.get(line + 1).map_or(block.bytes.len(), |next| next.1 as usize);
        let [head, text @ ..] = block.bytes.get(start as usize..end)? else { return None };
        let cells = if head & PLAIN_PAIRS != 0 { unpack_pairs(text) } else { unpack(text, pool) };
        let mut row = Row::blank(cells.len().max(cols.into()), id);
        row.cells[..cells.len()].copy_from_slice(&cells);
        row.occupy(cells.len());
        row.ending = match (head & WRAPPED != 0, head & WRAPPED_EARLY != 0) {
            (false, _) => Ending::Hard,
            (true, false) => Ending::Wrapped,
            (true, true) => Ending::WrappedEarly,
        };
        Some(row)
    }

    /// A line's text.
    pub fn text(&self, index: usize) -> Option<String> {
        let mut pool = Pool::new();
        let row = self.row(index, 0, &mut pool)?;
        let mut text = String::new();
        row.cells().iter().for_each(|cell| pool.push_text(*cell, &mut text));
        Some(text)
    }

    /// Forgets everything (ED 3).
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The text of the newest line goes on on the screen.
    pub(crate) fn goes_on(&self) -> bool {
        let newest = |block: &Block| block.lines.last().and_then(|(_, start)| block.head(*start));
        let head = newest(&self.open).or_else(|| self.blocks.back().and_then(newest));
        head.is_some_and(|head| head & WRAPPED != 0)
    }

    /// Gives the newest line back, as wide as it was when it left if its text goes on.
    pub(crate) fn take_last(&mut self, pool: &mut Pool) -> Option<Row> {
        if self.open.lines.is_empty() {
            let block = self.blocks.pop_back()?;
            self.lines -= block.lines.len();
            self.bytes -= block.bytes.len();
            self.open = block;
        }
        let row = self.row(self.len().checked_sub(1)?, 0, pool);
        let (_, start) = self.open.lines.pop()?;
        self.open.bytes.truncate(start as usize);
        row
    }

    /// Keeps a line that is about to leave the screen.
    #[inline]
    pub(crate) fn push(&mut self, row: &Row, pool: &Pool) {
        if self.open.is_full() {
            self.close_block();
        }
        self.open.push(row, pool);
    }

    /// Files the open block and starts another, in the memory of the oldest if that must go. What the new
    /// block may come to hold is made room for now: its last line may exceed its bytes by a line's most.
    #[cold]
    fn close_block(&mut self) {
        let full = std::mem::take(&mut self.open);
        self.lines += full.lines.len();
        self.bytes += full.bytes.len();
        self.blocks.push_back(full);
        let mut spare = Block::default();
        while self.lines + BLOCK_LINES > HISTORY_LINES_MAX
            || self.bytes + BLOCK_BYTES + LINE_BYTES_MAX > HISTORY_BYTES_MAX
        {
            let Some(oldest) = self.blocks.pop_front() else { break };
            self.lines -= oldest.lines.len();
            self.bytes -= oldest.bytes.len();
            spare = oldest;
        }
        spare.lines.clear();
        spare.bytes.clear();
        self.open = spare;
    }

    fn locate(&self, index: usize) -> Option<(&Block, usize)> {
        let mut line = index;
        for block in self.blocks.iter().chain(std::iter::once(&self.open)) {
            if line < block.lines.len() {
                return Some((block, line));
            }
            line -= block.lines.len();
        }
        None
    }
}

impl Block {
    fn head(&self, start: u32) -> Option<u8> {
        self.bytes.get(start as usize).copied()
    }

    fn is_full(&self) -> bool {
        self.lines.len() >= BLOCK_LINES || self.bytes.len() >= BLOCK_BYTES
    }

    #[inline]
    fn push(&mut self, row: &Row, pool: &Pool) {
        self.lines.push((row.id, self.bytes.len() as u32));
        let (wrapped, cells) = match row.ending {
            Ending::Hard => (0, row.occupied()),
            // Blanks at the end are part of the text.
            Ending::Wrapped => (WRAPPED, row.cells()),
            Ending::WrappedEarly => (WRAPPED | WRAPPED_EARLY, row.cells()),
        };
        let all = cells.iter().fold(0, |all, cell| all | cell.0);
        if all < 0x80 {
            self.bytes.reserve(1 + cells.len());
            self.bytes.push(wrapped | PLAIN);
            self.bytes.extend(cells.iter().map(|cell| cell.0 as u8));
        } else if all < 0x1_0000 {
            self.bytes.push(wrapped | PLAIN_PAIRS);
            let start = self.bytes.len();
            self.bytes.resize(start + 2 * cells.len(), 0);
            for (pair, cell) in self.bytes[start..].chunks_exact_mut(2).zip(cells) {
                pair.copy_from_slice(&(cell.0 as u16).to_le_bytes());
            }
        } else {
            self.bytes.push(wrapped);
            let cells = if row.is_wrapped() { cells } else { row.trimmed() };
            self.pack(cells, pool);
        }
    }

    /// A character beyond ASCII: three bytes, of which the first has its high bit set.
    #[inline]
    fn push_char(&mut self, code: u32) {
        self.bytes.extend_from_slice(&[0x80 | code as u8, (code >> 7) as u8, (code >> 15) as u8]);
    }

    fn pack(&mut self, cells: &[Cell], pool: &Pool) {
        let mut before = Cell::BLANK;
        let mut rest = cells;
        while let Some(&cell) = rest.first() {
            if (cell.0 ^ before.0) & (STYLE_MASK | LINK_MASK) != 0 {
                self.push_changes(before, cell, pool);
                before = cell;
            }
            let mut taken = 1 + usize::from(cell.is_wide());
            match cell.glyph() {
                Glyph::Char('\0'..='\x7f') => {
                    // With all that follows and is no different but in its letters.
                    let alike = |other: &&Cell| (other.0 ^ cell.0) < 0x80;
                    taken = rest.iter().take_while(alike).count();
                    self.bytes.extend(rest[..taken].iter().map(|cell| cell.0 as u8));
                }
                Glyph::Char(c) => self.push_char(c.into()),
                Glyph::Cluster(id) => {
                    let text = pool.cluster(id);
                    self.bytes.push(CLUSTER_MARK);
                    self.bytes.push(text.len() as u8);
                    self.bytes.extend_from_slice(text.as_bytes());
                }
            }
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    fn push_changes(&mut self, before: Cell, cell: Cell, pool: &Pool) {
        if cell.style() != before.style() {
            self.bytes.push(STYLE_MARK);
            self.bytes.extend_from_slice(&pool.style(cell.style()).to_bytes());
        }
        if cell.link() != before.link() {
            let link = pool.link(cell.link());
            let text = link.map_or(String::new(), |link| [link.id, "\t", link.uri].concat());
            self.bytes.push(LINK_MARK);
            self.bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
            self.bytes.extend_from_slice(text.as_bytes());
        }
    }
}

/// The cells of a packed line. Whatever does not look like one ends it: the bytes are our own.
fn unpack(mut bytes: &[u8], pool: &mut Pool) -> Vec<Cell> {
    let mut cells = Vec::with_capacity(bytes.len());
    let mut pen = Cell(Cell::BLANK.0 & !TEXT_MASK);
    while let Some((&mark, rest)) = bytes.split_first() {
        let (glyph, columns, used) = match mark {
            STYLE_MARK => {
                let Some((style, rest)) = rest.split_first_chunk() else { break };
                pen = pen.with_style(pool.intern_style(Style::from_bytes(style)));
                bytes = rest;
                continue;
            }
            LINK_MARK => {
                let Some((link, rest)) = unpack_link(rest, pool) else { break };
                pen = pen.with_link(link);
                bytes = rest;
                continue;
            }
            CLUSTER_MARK => {
                let Some((text, used)) = unpack_cluster(rest) else { break };
                let cluster = pool.intern_cluster(text);
                (cluster.map_or(Glyph::Char(' '), Glyph::Cluster), width::cluster(text), used)
            }
            _ => {
                let Some((c, used)) = unpack_char(bytes) else { break };
                (Glyph::Char(c), width::of(c), used)
            }
        };
        if columns == 2 {
            cells.push(pen.with_glyph(glyph, Width::Wide));
            cells.push(pen.with_glyph(Glyph::Char(' '), Width::Tail));
        } else {
            cells.push(pen.with_glyph(glyph, Width::Narrow));
        }
        bytes = bytes.get(used..).unwrap_or_default();
    }
    cells
}

/// The cells of a line of [`PLAIN_PAIRS`].
fn unpack_pairs(bytes: &[u8]) -> Vec<Cell> {
    let code = |pair: &[u8]| u32::from(pair[0]) | u32::from(pair[1]) << 8;
    bytes
        .chunks_exact(2)
        .map(|pair| Cell::narrow(char::from_u32(code(pair)).unwrap_or(' ')))
        .collect()
}

fn unpack_link<'a>(bytes: &'a [u8], pool: &mut Pool) -> Option<(LinkId, &'a [u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
    let link = std::str::from_utf8(text).ok().and_then(|text| text.split_once('\t'));
    Some((link.map_or(LinkId::NONE, |(id, uri)| pool.intern_link(id, uri)), rest))
}

/// The text of a cluster behind its mark, and how many bytes there are with the mark.
fn unpack_cluster(bytes: &[u8]) -> Option<(&str, usize)> {
    let (&len, rest) = bytes.split_first()?;
    let text = std::str::from_utf8(rest.get(..len.into())?).ok()?;
    Some((text, 2 + usize::from(len)))
}

fn unpack_char(bytes: &[u8]) -> Option<(char, usize)> {
    let (code, used) = match *bytes {
        [ascii @ 0..0x80, ..] => (ascii.into(), 1),
        [low, middle, high, ..] => {
            (u32::from(low & 0x7f) | u32::from(middle) << 7 | u32::from(high) << 15, 3)
        }
        _ => return None,
    };
    Some((char::from_u32(code)?, used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::screen::Size;
    use crate::terminal::Terminal;

    #[test]
    fn lines_come_back_as_they_left() {
        let lines = [
            "plain",
            "",
            "\x1b[1;31mred\x1b[m and \x1b[48;2;1;2;3;4:3mbg\x1b[m",
            "\u{43c}\u{438}\u{440} d\u{e9}j\u{e0} \u{2026}",
            "\u{4e16}\u{754c} e\u{301} \u{1f468}\u{200d}\u{1f469}!",
            "\x1b]8;id=a;http://x/\x07link\x1b]8;;\x07 text",
            "\x1b[44m\x1b[K",
        ];
        let mut terminal = Terminal::new(Size::clamped(9, 30), Dialect::ROVE);
        for line in lines {
            terminal.advance(format!("{line}\x1b[m\r\n").as_bytes());
        }
        let before = terminal.screen().clone();
        terminal.advance(b"\x1b[9;1H\n\n\n\n\n\n\n");
        assert_eq!(terminal.history().len(), lines.len());
        let mut pool = before.pool().clone();
        for (index, line) in lines.iter().enumerate() {
            let row = terminal.history().row(index, 30, &mut pool).unwrap();
            let want = before.row(index as u16);
            assert_eq!((row.cells(), row.id()), (want.cells(), want.id()), "{line:?}");
            assert_eq!(terminal.history().find(row.id()), Some(index));
        }
        terminal.advance(b"\x1b[3J");
        assert!(terminal.history().is_empty());
    }

    #[test]
    fn only_the_whole_primary_screen_scrolls_into_it() {
        for (input, lines) in [
            ("\x1b[3;1H\n\n", 2),
            ("\x1b[1;2r\x1b[2;1H\n", 1),
            ("\x1b[2;3r\x1b[3;1H\n", 0),
            ("\x1b[2S", 2),
            ("\x1b[2T", 0),
            ("\x1b[2M", 0),
            ("\x1b[?1049h\x1b[3;1H\n\n", 0),
            ("\x1b[?69h\x1b[2;5s\x1b[3;3H\n", 0),
        ] {
            let mut terminal = Terminal::new(Size::clamped(3, 10), Dialect::ROVE);
            terminal.advance(input.as_bytes());
            assert_eq!(terminal.history().len(), lines, "{input:?}");
        }
    }

    #[test]
    fn bounded() {
        let mut terminal = Terminal::new(Size::clamped(3, 200), Dialect::ROVE);
        for n in 0..30_000 {
            terminal.advance(format!("{n}\r\n").as_bytes());
        }
        assert!((9_000..=HISTORY_LINES_MAX).contains(&terminal.history().len()));
        let newest = terminal.history().len() - 1;
        assert_eq!(terminal.history().text(newest).as_deref(), Some("29997"));
        for n in 0..3_000u32 {
            for col in 0..200u32 {
                let (r, g, b) = (n % 256, col, n / 256);
                terminal.advance(format!("\x1b[38;2;{r};{g};{b}mx").as_bytes());
            }
        }
        assert!(terminal.history().bytes() <= HISTORY_BYTES_MAX);
    }
}
