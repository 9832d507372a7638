//! Keeps the lines that scrolled off the top of the primary screen. They are no part of snapshots, and line numbers
//! name them. `pack` defines their packed form.
//!
//! Each line that leaves takes the next *position*, from 0. A screen's [depth](crate::Screen::depth) is the position
//! that its row 0 would take. A window that grows takes lines back, and their positions are used again.

mod pack;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use crate::screen::cell::{Cell, PROTECTED};
use crate::screen::pool::Pool;
use crate::screen::row::{Ending, LineId, Row};

use pack::{LINE_BYTES_MAX, RowPacker, Trim};

/// Lines kept; the oldest go. Whole blocks are forgotten, so that 10,240 are left: as many as terminals keep, and
/// some more.
pub const HISTORY_LINES_MAX: usize = 10_752;
/// Bytes kept; the oldest lines go. A line of 200 columns with a colour a cell takes 4 KB.
pub const HISTORY_BYTES_MAX: usize = 8 << 20;
/// Times of which it is known how many lines were left when some were taken back.
const FALLS_MAX: usize = 8;
/// Lines of one block. Whole blocks are forgotten at once.
const BLOCK_LINES: usize = 512;
/// Bytes after which a block takes no further line.
const BLOCK_BYTES: usize = 256 << 10;
/// Octets of a packed line that cost as much as a cell: each of its cells may have a link of two thousand.
const PACKED_A_CELL: usize = 64;

/// Whether lines that scroll off the primary screen are kept.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Keeping {
    /// They go to the history.
    #[default]
    Lines,
    /// They are gone.
    Nothing,
}

#[derive(Clone, Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// Number and start of each line.
    lines: Vec<(LineId, u32)>,
}

/// The lines above the primary screen, oldest first.
#[derive(Clone, Debug, Default)]
pub struct History {
    keeping: Keeping,
    /// Full blocks.
    blocks: VecDeque<Block>,
    /// The block that takes lines.
    open: Block,
    /// Lines and bytes of the full blocks.
    lines: usize,
    bytes: usize,
    /// Working memory for packing.
    desk: RowPacker,
    /// The position of the next line.
    end: u64,
    /// Lines before this position were erased.
    erased: u64,
    /// How often lines were taken back.
    falls: u64,
    /// The position of the first line taken back, for the last few times: the newest is the last.
    fallen: VecDeque<u64>,
}

impl History {
    pub(crate) fn new(keeping: Keeping) -> Self {
        Self { keeping, ..Self::default() }
    }

    /// Nothing yet, above a screen of this depth.
    pub(crate) fn above(keeping: Keeping, depth: u64) -> Self {
        Self { end: depth, erased: depth, ..Self::new(keeping) }
    }

    /// Whether lines are to be [pushed](Self::push).
    #[inline]
    pub(crate) fn keeps_lines(&self) -> bool {
        self.keeping == Keeping::Lines
    }

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

    /// The position that the next line will take.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The position of the oldest line that is kept.
    pub fn first(&self) -> u64 {
        self.end - self.len() as u64
    }

    /// Lines before this position were erased (ED 3, a reset), or left before this terminal began. Those from
    /// here to [`first`](Self::first) were forgotten to make room.
    pub fn erased(&self) -> u64 {
        self.erased
    }

    /// How often lines were taken back.
    pub fn falls(&self) -> u64 {
        self.falls
    }

    /// Lines from this position on are not what they were when [`falls`](Self::falls) had this value. `None`: no
    /// line was taken back since.
    pub fn lowest_since(&self, falls: u64) -> Option<u64> {
        let since = usize::try_from(self.falls.saturating_sub(falls)).unwrap_or(usize::MAX);
        self.fallen.iter().rev().take(since).copied().min()
    }

    /// The line at a position as a row: see [`row`](Self::row).
    pub fn row_at(&self, position: u64, cols: u16, pool: &mut Pool) -> Option<Row> {
        let index = position.checked_sub(self.first())?;
        self.row(usize::try_from(index).ok()?, cols, pool)
    }

    /// Whether the line at a position goes on in the next one.
    pub fn is_wrapped_at(&self, position: u64) -> Option<bool> {
        let index = usize::try_from(position.checked_sub(self.first())?).ok()?;
        let (block, line) = self.locate(index)?;
        block.head(block.lines[line].1).map(|head| pack::ending(head) != Ending::Hard)
    }

    /// The number of a line, from 0 for the oldest.
    pub fn id(&self, index: usize) -> Option<LineId> {
        let (block, line) = self.locate(index)?;
        Some(block.lines[line].0)
    }

    /// Where a line stands; the newest of that number.
    pub fn find(&self, id: LineId) -> Option<usize> {
        let mut end = self.len();
        for block in core::iter::once(&self.open).chain(self.blocks.iter().rev()) {
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
        let (text, trim) = Trim::split(*head, text);
        let cells = pack::unpack(*head, text, &block.bytes, pool);
        let mut row = Row::blank(cells.len().max(cols.into()), id);
        row.cells[..cells.len()].copy_from_slice(&cells);
        row.occupy(cells.len());
        row.ending = pack::ending(*head);
        row.size = trim.size;
        row.marks = trim.marks;
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

    /// No lines, and the next takes this position: for one who is told of the lines of another's history.
    pub fn starting_at(position: u64) -> Self {
        Self::above(Keeping::Lines, position)
    }

    /// Adds a line, whose numbers are those of `pool`.
    pub fn append(&mut self, row: &Row, pool: &Pool) {
        self.desk.forget();
        self.push(row, pool);
        self.desk.forget();
    }

    /// Whether the lines at a position of the two look alike. `None`: one of them has none there.
    pub fn agrees(&self, other: &Self, position: u64) -> Option<bool> {
        let mut pool = Pool::new();
        let ours = self.row_at(position, 0, &mut pool)?;
        let theirs = other.row_at(position, ours.cells.len() as u16, &mut pool)?;
        let (longer, shorter) = (theirs.cells(), ours.cells());
        let seen = |cell: Option<&Cell>| cell.map_or(Cell::BLANK, |cell| *cell).bits() & !PROTECTED;
        let alike = (0..longer.len()).all(|col| seen(longer.get(col)) == seen(shorter.get(col)));
        Some(alike && ours.is_wrapped() == theirs.is_wrapped() && ours.size == theirs.size)
    }

    /// Forgets the lines from this position on. The next one takes it, unless it was ahead.
    pub fn cut(&mut self, position: u64) {
        let mut pool = Pool::new();
        while self.end > position && self.take_last(&mut pool).is_some() {}
        if self.is_empty() && self.end > position {
            *self = Self::starting_at(position);
        }
    }

    /// Forgets everything (ED 3).
    pub(crate) fn clear(&mut self) {
        let before = core::mem::replace(self, Self::above(self.keeping, self.end));
        self.falls = before.falls;
        self.fallen = before.fallen;
    }

    /// Lines were taken back, so that this is the end. The oldest of too many times is counted with the one after it.
    pub(crate) fn fell(&mut self) {
        self.falls += 1;
        self.fallen.push_back(self.end);
        if self.fallen.len() > FALLS_MAX
            && let (Some(oldest), Some(next)) = (self.fallen.pop_front(), self.fallen.front_mut())
        {
            *next = oldest.min(*next);
        }
    }

    /// The text of the newest line continues on the screen.
    pub(crate) fn goes_on(&self) -> bool {
        let newest = |block: &Block| block.lines.last().and_then(|(_, start)| block.head(*start));
        let head = newest(&self.open).or_else(|| self.blocks.back().and_then(newest));
        head.is_some_and(|head| pack::ending(head) != Ending::Hard)
    }

    /// Takes the newest line out again, as wide as it was when it left if its text continues below.
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
        self.desk.forget();
        self.end -= 1;
        row
    }

    /// Keeps a line that is about to leave the screen. Returns what packing it costs beside going through its cells,
    /// in cells. Always in line, since short lines cost little more.
    #[inline(always)]
    pub(crate) fn push(&mut self, row: &Row, pool: &Pool) -> usize {
        if self.open.is_full() {
            self.close_block();
        }
        self.end += 1;
        self.open.push(row, pool, &mut self.desk)
    }

    /// The numbers of the pool that lines are pushed with mean something else from now on.
    pub(crate) fn renumbered(&mut self) {
        self.desk.forget();
    }

    /// Files the open block and starts another, in the memory of the oldest if that must go. Reserves memory for the
    /// new block at once: its last line may exceed the limit by the longest line.
    #[cold]
    fn close_block(&mut self) {
        let full = core::mem::take(&mut self.open);
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
        self.desk.forget();
    }

    fn locate(&self, index: usize) -> Option<(&Block, usize)> {
        let mut line = index;
        for block in self.blocks.iter().chain(core::iter::once(&self.open)) {
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

    #[inline(always)]
    fn push(&mut self, row: &Row, pool: &Pool, desk: &mut RowPacker) -> usize {
        let start = self.bytes.len();
        self.lines.push((row.id, start as u32));
        if row.plain {
            pack::pack_plain(row, &mut self.bytes);
            return 0;
        }
        pack::pack(row, pool, desk, &mut self.bytes);
        (self.bytes.len() - start) / PACKED_A_CELL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect;
    use crate::screen::Size;
    use crate::screen::cell::Semantic;
    use crate::terminal::Terminal;

    #[test]
    fn lines_come_back_as_they_left() {
        let lines = [
            "plain",
            "",
            "\x1b[1;31mred\x1b[m and \x1b[48;2;1;2;3;4:3mbg\x1b[m",
            "\u{43c}\u{438}\u{440} d\u{e9}j\u{e0} \u{2026}",
            "\u{4e16}\u{754c} e\u{301} \u{1f468}\u{200d}\u{1f469}!",
            "\u{4e16}\u{754c} \u{4e16}\x08\x08 x",
            "\x1b[7mn\u{303}\u{1f1e9}\u{1f1ea}\x1b[m \u{6587}",
            "\x1b]8;id=a;http://x/\x07link\x1b]8;;\x07 text",
            "\x1b[44m\x1b[K",
            "e\u{301}\u{1f1e9}\u{1f1ea} and the same again, n\u{303}",
            "\x1b#6double",
            "\x1b#4e\u{301}",
            "\x1b]133;D;7\x07\x1b]133;A\x07$ \x1b]133;B\x07",
            "\x1b]133;D\x07\x1b]133;A;k=s\x07\x1b]133;C\x07\u{4e16}",
        ];
        let mut terminal = Terminal::new(Size::clamped(16, 30), Dialect::ROVE);
        for line in lines {
            terminal.advance(format!("{line}\x1b[m\r\n").as_bytes());
        }
        let before = terminal.screen().clone();
        terminal.advance(b"\x1b[16;1H");
        terminal.advance("\n".repeat(lines.len()).as_bytes());
        assert_eq!(terminal.history().len(), lines.len());
        let mut pool = before.pool().clone();
        for (index, line) in lines.iter().enumerate() {
            let row = terminal.history().row(index, 30, &mut pool).unwrap();
            let want = before.row(index as u16);
            // Which cells were a prompt's is of no use there.
            let cells = want.cells().iter().map(|cell| cell.with_semantic(Semantic::Output));
            assert_eq!(
                (row.cells(), row.id()),
                (&*cells.collect::<Vec<_>>(), want.id()),
                "{line:?}"
            );
            assert_eq!((row.marks(), row.size()), (want.marks(), want.size()), "{line:?}");
            assert_eq!(terminal.history().find(row.id()), Some(index));
        }
        terminal.advance(b"\x1b[3J");
        assert!(terminal.history().is_empty());
    }

    #[test]
    fn clusters_keep_their_texts_when_they_get_other_numbers() {
        let line = |n: u32| format!("e\u{301}{}\u{301}", char::from_u32(0x4e00 + n).unwrap());
        let mut terminal = Terminal::new(Size::clamped(3, 20), Dialect::ROVE);
        let mut numbers = 0;
        for n in 0..9_000 {
            terminal.advance(format!("{}\r\n", line(n)).as_bytes());
            numbers = numbers.max(terminal.screen().pool().lens().clusters);
        }
        assert!(numbers < 9_000, "they were never given anew");
        let history = terminal.history();
        for index in 0..history.len() {
            let n = 8_998 - (history.len() - index) as u32;
            assert_eq!(history.text(index).as_deref().map(str::trim_end), Some(&*line(n)));
        }
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
        assert!((10_240..=HISTORY_LINES_MAX).contains(&terminal.history().len()));
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

    fn positions(terminal: &Terminal) -> (u64, u64, u64, u64) {
        let history = terminal.history();
        assert_eq!(history.end(), terminal.screen().depth());
        (history.erased(), history.first(), history.end(), history.falls())
    }

    #[test]
    fn each_line_that_leaves_takes_a_position() {
        let mut terminal = Terminal::new(Size::clamped(4, 10), Dialect::ROVE);
        let six = "1\r\n2\r\n3\r\n4\r\n5\r\n6";
        for (input, want) in [
            (six, (0, 0, 2, 0)),
            ("\x1b[1;2r\x1b[2;1H\n\x1b[r", (0, 0, 3, 0)),
            ("\x1b[2S", (0, 0, 5, 0)),
            ("\x1b[?1049h\x1b[4;1H\n\n\x1b[?1049l", (0, 0, 5, 0)),
            ("\x1b[3J", (5, 5, 5, 0)),
            ("\x1b[4;1H\n", (5, 5, 6, 0)),
            ("\x1bc", (6, 6, 6, 0)),
        ] {
            terminal.advance(input.as_bytes());
            assert_eq!(positions(&terminal), want, "{input:?}");
        }
        let mut resumed = Terminal::resume(terminal.into_screen(), Dialect::ROVE);
        assert_eq!(positions(&resumed), (6, 6, 6, 0));
        resumed.advance(b"\x1b[2Sx");
        assert_eq!(positions(&resumed), (6, 6, 8, 0));
    }

    #[test]
    fn positions_are_used_again_for_lines_that_came_back() {
        let mut terminal = Terminal::new(Size::clamped(4, 10), Dialect::ROVE);
        terminal.advance("0\r\n1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7".as_bytes());
        assert_eq!(positions(&terminal), (0, 0, 4, 0));
        terminal.resize(Size::clamped(5, 10));
        assert_eq!(positions(&terminal), (0, 0, 3, 1));
        terminal.resize(Size::clamped(3, 10));
        assert_eq!(positions(&terminal), (0, 0, 5, 1));
        terminal.resize(Size::clamped(6, 10));
        assert_eq!(positions(&terminal), (0, 0, 2, 2));
        let history = terminal.history();
        assert_eq!([0, 1, 2].map(|falls| history.lowest_since(falls)), [Some(2), Some(2), None]);
        let text = |position| {
            let row = terminal.history().row_at(position, 10, &mut Pool::new())?;
            Some(char::from(row.cells()[0].bits() as u8))
        };
        assert_eq!([0, 1, 2, u64::MAX].map(text), [Some('0'), Some('1'), None, None]);
    }

    /// Of older times no more is known than the lowest position.
    #[test]
    fn lines_came_back_often() {
        let mut history = History::above(Keeping::Lines, 100);
        for end in [7, 50, 60, 70, 80, 90, 95, 96, 97, 98] {
            history.end = end;
            history.fell();
        }
        assert_eq!(history.fallen.len(), FALLS_MAX);
        let lowest = [0, 1, 2, 3, 9, 10].map(|falls| history.lowest_since(falls));
        assert_eq!(lowest, [Some(7), Some(7), Some(7), Some(70), Some(98), None]);
    }

    /// The picture before an update has the depth that it had.
    #[test]
    fn the_picture_before_an_update_keeps_its_depth() {
        let mut terminal = Terminal::new(Size::clamped(4, 10), Dialect::ROVE);
        terminal.advance(b"1\r\n2\r\n3\r\n4\r\n5\x1b[?2026h\r\n6\r\n7");
        assert_eq!(terminal.before_update().map(|screen| screen.depth()), Some(1));
        assert_eq!(terminal.screen().depth(), 3);
    }
}
