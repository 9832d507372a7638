//! How much work one diff and one turn may be, in cells as [`Terminal::cells_touched`] counts them, so that
//! neither a hostile server nor a program keeps an end from its keys and signals (threats rows 1, 2, 9 and 10).
//!
//! [`Terminal::cells_touched`]: rove_term::Terminal::cells_touched

use rove_term::Size;

/// Cells after which an emulator stops, until keys and signals were looked at: a large screen five times. At 0.1 to
/// 10 ns a cell (`cargo run --release -p rove-term --example work_bench`) they take 10 ms at most. What the last
/// sequence adds takes 10 ms too, or 30 where DECRARA changes a screen whose cells all differ in rendition.
pub const TURN_CELLS: u64 = 1_000_000;

/// Octets after which it stops, since a cell is not all that takes time: parsing them takes 5 ms at most. A server
/// reads no more at a time.
pub const TURN_OCTETS: usize = 64 << 10;

/// Screens that a diff may go through, of the larger of the two sizes if it resizes. Of all sessions that there are
/// tests of, recorded, random and made up to be large, no frame of ours or of stock's goes through more than 9:
/// a resize goes through both grids twice, and then all rows are erased, scrolled, copied and written. So none
/// comes within a factor of 4 of what may be (`lab/tests/work.rs`).
const DIFF_SCREENS: u64 = 64;

/// Cells that each octet of a diff may touch beside those, since a sequence of a few may touch a row. Text writes
/// less than one cell an octet.
const DIFF_OCTET_CELLS: u64 = 4;

/// Octets of links that a frame may hold; a screen with more is sent, and painted, without its links. Writing them
/// takes some 10 ms, where those of a hostile screen would take a second and 400 MB. A listing that fills the
/// largest screen with names that are links has less than half of that.
pub const LINK_OCTETS_MAX: usize = 2 << 20;

/// Cells and octets of the text of one event with lines, so that it is about the work of a turn.
pub(crate) const LINES_CELLS_MAX: u64 = 100_000;
pub(crate) const LINES_OCTETS_MAX: usize = 128 << 10;

/// How many cells a diff of this many octets may touch, from a screen of one size to one of the other. A diff that
/// touches more cannot be read.
pub fn diff_cells_max(old: Size, new: Size, octets: usize) -> u64 {
    DIFF_SCREENS * old.work().max(new.work()) + DIFF_OCTET_CELLS * octets as u64
}
