//! Packs lines into few bytes: a head byte with the line's end and form, and then the line, in the first of four
//! forms that can hold it. A line may refer to the clusters of the lines before it in its block.
//!
//! Most text is plain, so the plain forms are made for speed: no branch depends on what stands in a cell.

use alloc::string::String;
use alloc::vec::Vec;

use crate::screen::cell::{
    CLUSTER, Cell, ClusterId, GLYPH_MASK, Glyph, LINK_MASK, LinkId, STYLE_MASK, TAIL, TEXT_MASK,
    Width,
};
use crate::screen::pool::Pool;
use crate::screen::prompt_marks::{Ended, Marks, Prompt};
use crate::screen::row::{Ending, LineSize, Row};
use crate::screen::style::Style;
use crate::width;

/// The most a line can take: a thousand cells with a rendition, a link and a cluster each.
pub(super) const LINE_BYTES_MAX: usize = 1000 * (15 + 3 + 2400 + 66) + 1 + Trim::BYTES;

/// The line goes on in the next one.
const WRAPPED: u8 = 1;
/// It does, and its last column was left free for want of room for a wide character.
const WRAPPED_EARLY: u8 = 8;
/// Nothing but ASCII in the plain style follows.
const PLAIN: u8 = 2;
/// Nothing but narrow characters up to U+FFFF in the plain style follows, two bytes each.
const PLAIN_PAIRS: u8 = 4;
/// Characters and clusters in the plain style follow, each in three bytes: its glyph, width and kind as in a
/// cell, but of a cluster the offset of its text in the block. Then come the texts that the block had not
/// before, each behind its length, and at the end in two bytes how many triples there are.
const PLAIN_TRIPLES: u8 = 16;

/// Behind all else stand the line's size and marks ([`Trim`]).
const TRIMMED: u8 = 32;

/// A cluster: its length in bytes and its text follow.
const CLUSTER_MARK: u8 = 1;
/// A rendition follows, 14 bytes.
const STYLE_MARK: u8 = 2;
/// A link follows: its length in two bytes, then `id TAB uri`, nothing for none.
const LINK_MARK: u8 = 3;

/// Room to work in, and where clusters lately met in a block have their texts.
#[derive(Clone, Debug, Default)]
pub(super) struct RowPacker {
    /// Where in a line its clusters are.
    marks: Vec<u16>,
    /// By the last bits of a cluster's number: that number, and the offset of its text. Empty until used.
    offsets: Vec<(u32, u32)>,
}

impl RowPacker {
    /// A power of two.
    const OFFSETS: usize = 256;
    const FREE: (u32, u32) = (u32::MAX, 0);

    /// Another block begins, or this one lost its end, or clusters have other numbers.
    pub(super) fn forget(&mut self) {
        self.offsets.clear();
    }

    /// Where `out` has the text of a cluster, which is appended if it is not known to be there.
    fn offset_of(&mut self, id: u32, pool: &Pool, out: &mut Vec<u8>) -> u32 {
        let slot = id as usize % Self::OFFSETS;
        if let Some(&(known, offset)) = self.offsets.get(slot)
            && known == id
        {
            return offset;
        }
        let offset = out.len() as u32;
        let text = pool.cluster_octets(ClusterId(id));
        out.push(text.len() as u8);
        out.extend_from_slice(text);
        self.offsets.resize(Self::OFFSETS, Self::FREE);
        self.offsets[slot] = (id, offset);
        offset
    }
}

/// Appends a row of which [`Row::plain`] is known to a block.
#[inline]
pub(super) fn pack_plain(row: &Row, out: &mut Vec<u8>) {
    pack_ascii(0, row.occupied(), out);
}

/// Appends a row to a block.
pub(super) fn pack(row: &Row, pool: &Pool, desk: &mut RowPacker, out: &mut Vec<u8>) {
    let (wrapped, cells) = match row.ending {
        Ending::Hard => (0, row.occupied()),
        // Blanks at the end are part of the text.
        Ending::Wrapped => (WRAPPED, row.cells()),
        Ending::WrappedEarly => (WRAPPED | WRAPPED_EARLY, row.cells()),
    };
    let start = out.len();
    pack_cells(wrapped, row, cells, pool, desk, out);
    if row.size != LineSize::Single || !row.marks.is_none() {
        out[start] |= TRIMMED;
        out.extend_from_slice(&Trim { size: row.size, marks: row.marks }.to_bytes());
    }
}

/// A line's attributes beside its cells and its end.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Trim {
    pub size: LineSize,
    pub marks: Marks,
}

impl Trim {
    const BYTES: usize = 8;
    /// No column: larger than any screen.
    const NOWHERE: u16 = u16::MAX;

    /// Cuts it off the end of a line's bytes.
    pub(super) fn split(head: u8, bytes: &[u8]) -> (&[u8], Self) {
        match bytes.split_last_chunk() {
            Some((rest, trim)) if head & TRIMMED != 0 => (rest, Self::from_bytes(*trim)),
            _ => (bytes, Self::default()),
        }
    }

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let Marks { ended, prompt, input, output } = self.marks;
        let prompt = match prompt {
            None => 0,
            Some(Prompt::First) => 1,
            Some(Prompt::Next) => 2,
        };
        let (ended, status) = match ended {
            None => (0, 0),
            Some(Ended::Untold) => (1, 0),
            Some(Ended::With(status)) => (2, status),
        };
        let [input, output] = [input, output].map(|col| col.unwrap_or(Self::NOWHERE).to_le_bytes());
        [self.size as u8, prompt, ended, status, input[0], input[1], output[0], output[1]]
    }

    fn from_bytes([size, prompt, ended, status, input @ .., o, p]: [u8; Self::BYTES]) -> Self {
        let column = |bytes| Some(u16::from_le_bytes(bytes)).filter(|col| *col != Self::NOWHERE);
        Self {
            size: match size {
                1 => LineSize::DoubleWidth,
                2 => LineSize::DoubleTop,
                3 => LineSize::DoubleBottom,
                _ => LineSize::Single,
            },
            marks: Marks {
                ended: match ended {
                    1 => Some(Ended::Untold),
                    2 => Some(Ended::With(status)),
                    _ => None,
                },
                prompt: match prompt {
                    1 => Some(Prompt::First),
                    2 => Some(Prompt::Next),
                    _ => None,
                },
                input: column(input),
                output: column([o, p]),
            },
        }
    }
}

#[inline]
fn pack_ascii(wrapped: u8, cells: &[Cell], out: &mut Vec<u8>) {
    out.push(wrapped | PLAIN);
    out.extend(cells.iter().map(|cell| cell.0 as u8));
}

fn pack_cells(
    wrapped: u8,
    row: &Row,
    cells: &[Cell],
    pool: &Pool,
    desk: &mut RowPacker,
    out: &mut Vec<u8>,
) {
    let all = cells.iter().fold(0, |all, cell| all | cell.0);
    if all < 0x80 {
        pack_ascii(wrapped, cells, out);
    } else if all < 0x1_0000 {
        out.push(wrapped | PLAIN_PAIRS);
        let start = out.len();
        out.resize(start + 2 * cells.len(), 0);
        for (pair, cell) in out[start..].chunks_exact_mut(2).zip(cells) {
            pair.copy_from_slice(&(cell.0 as u16).to_le_bytes());
        }
    } else if all & (STYLE_MASK | LINK_MASK) == 0 {
        out.push(wrapped | PLAIN_TRIPLES);
        pack_triples(cells, pool, desk, out);
    } else {
        out.push(wrapped);
        pack_any(if wrapped == 0 { row.trimmed() } else { cells }, pool, out);
    }
}

/// How the packed line ends.
pub(super) fn ending(head: u8) -> Ending {
    match (head & WRAPPED != 0, head & WRAPPED_EARLY != 0) {
        (false, _) => Ending::Hard,
        (true, false) => Ending::Wrapped,
        (true, true) => Ending::WrappedEarly,
    }
}

/// The cells of a line packed in `block`, their numbers those of `pool`. Malformed bytes end it: the bytes are our
/// own.
pub(super) fn unpack(head: u8, text: &[u8], block: &[u8], pool: &mut Pool) -> Vec<Cell> {
    if head & PLAIN_PAIRS != 0 {
        unpack_pairs(text)
    } else if head & PLAIN_TRIPLES != 0 {
        unpack_triples(text, block, pool).unwrap_or_default()
    } else {
        unpack_any(text, pool)
    }
}

fn pack_triples(cells: &[Cell], pool: &Pool, desk: &mut RowPacker, out: &mut Vec<u8>) {
    let start = out.len();
    // One more, since four bytes are written at a time.
    out.resize(start + 3 * cells.len() + 1, 0);
    let mut marks = core::mem::take(&mut desk.marks);
    marks.resize(cells.len() + 1, 0);
    let (mut at, mut clusters) = (0, 0);
    let room = &mut out[start..];
    for cell in cells {
        // The next cell writes over the last byte, and over all of a tail.
        if let Some(room) = room.get_mut(at..at + 4) {
            room.copy_from_slice(&((cell.0 & TEXT_MASK) as u32).to_le_bytes());
        }
        marks[clusters] = at as u16;
        clusters += bit(cell.0, CLUSTER);
        at += 3 - 3 * bit(cell.0, TAIL);
    }
    out.truncate(start + at);
    for mark in &marks[..clusters] {
        let triple = start + usize::from(*mark);
        let [low, middle, high] = [out[triple], out[triple + 1], out[triple + 2]];
        let text = u32::from_le_bytes([low, middle, high, 0]);
        let offset = desk.offset_of(text & GLYPH_MASK as u32, pool, out);
        let [low, middle, high, _] = (text & !(GLYPH_MASK as u32) | offset).to_le_bytes();
        out[triple..triple + 3].copy_from_slice(&[low, middle, high]);
    }
    desk.marks = marks;
    out.extend_from_slice(&((at / 3) as u16).to_le_bytes());
}

/// 1 if a flag of one bit is set.
fn bit(bits: u64, flag: u64) -> usize {
    (bits >> flag.trailing_zeros() & 1) as usize
}

fn unpack_triples(bytes: &[u8], block: &[u8], pool: &mut Pool) -> Option<Vec<Cell>> {
    let (rest, count) = bytes.split_last_chunk()?;
    let triples = rest.get(..3 * usize::from(u16::from_le_bytes(*count)))?;
    let mut cells = Vec::with_capacity(triples.len() / 2);
    for &[low, middle, high] in triples.as_chunks().0 {
        let mut cell = Cell(u64::from(u32::from_le_bytes([low, middle, high, 0])));
        if cell.0 & CLUSTER != 0 {
            let (&len, text) = block.get((cell.0 & GLYPH_MASK) as usize..)?.split_first()?;
            let text = core::str::from_utf8(text.get(..len.into())?).ok()?;
            let glyph = pool.intern_cluster(text).map_or(Glyph::Char(' '), Glyph::Cluster);
            cell = cell.with_glyph(glyph, cell.width());
        }
        cells.push(cell);
        if cell.is_wide() {
            cells.push(Cell::BLANK.with_glyph(Glyph::Char(' '), Width::Tail));
        }
    }
    Some(cells)
}

fn pack_any(cells: &[Cell], pool: &Pool, out: &mut Vec<u8>) {
    let mut before = Cell::BLANK;
    let mut rest = cells;
    while let Some(&cell) = rest.first() {
        if (cell.0 ^ before.0) & (STYLE_MASK | LINK_MASK) != 0 {
            push_changes(before, cell, pool, out);
            before = cell;
        }
        let mut taken = 1 + usize::from(cell.is_wide());
        match cell.glyph() {
            Glyph::Char('\0'..='\x7f') => {
                // With all that follows and is no different but in its letters.
                let alike = |other: &&Cell| (other.0 ^ cell.0) < 0x80;
                taken = rest.iter().take_while(alike).count();
                out.extend(rest[..taken].iter().map(|cell| cell.0 as u8));
            }
            Glyph::Char(c) => push_char(c.into(), out),
            Glyph::Cluster(id) => {
                let text = pool.cluster_octets(id);
                out.push(CLUSTER_MARK);
                out.push(text.len() as u8);
                out.extend_from_slice(text);
            }
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
}

/// A character beyond ASCII: three bytes, of which the first has its high bit set.
#[inline]
fn push_char(code: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x80 | code as u8, (code >> 7) as u8, (code >> 15) as u8]);
}

fn push_changes(before: Cell, cell: Cell, pool: &Pool, out: &mut Vec<u8>) {
    if cell.style() != before.style() {
        out.push(STYLE_MARK);
        out.extend_from_slice(&pool.style(cell.style()).to_bytes());
    }
    if cell.link() != before.link() {
        let link = pool.link(cell.link());
        let text = link.map_or(String::new(), |link| [link.id, "\t", link.uri].concat());
        out.push(LINK_MARK);
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
}

fn unpack_any(mut bytes: &[u8], pool: &mut Pool) -> Vec<Cell> {
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
    let link = core::str::from_utf8(text).ok().and_then(|text| text.split_once('\t'));
    Some((link.map_or(LinkId::NONE, |(id, uri)| pool.intern_link(id, uri)), rest))
}

/// The text of a cluster behind its mark, and how many bytes there are with the mark.
fn unpack_cluster(bytes: &[u8]) -> Option<(&str, usize)> {
    let (&len, rest) = bytes.split_first()?;
    let text = core::str::from_utf8(rest.get(..len.into())?).ok()?;
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
