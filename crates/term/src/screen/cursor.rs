//! Holds where and how the next character is written, which DECSC saves.

use crate::screen::cell::{LinkId, Semantic};
use crate::screen::size::Size;
use crate::screen::style::Style;

/// Where the next character goes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cursor {
    /// From 0 at the top.
    pub row: u16,
    /// From 0 at the left.
    pub col: u16,
    /// The last column was just written: the next character wraps first.
    pub pending_wrap: bool,
}

/// The attributes of newly written cells.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pen {
    /// Colours and attributes.
    pub style: Style,
    /// The open hyperlink, a number of the screen's pool.
    pub link: LinkId,
    /// DECSCA or SPA is on.
    pub protected: bool,
    /// The part of the shell's dialogue.
    pub semantic: Semantic,
}

/// The scrolling region; `bottom` and `right` are the first row and column outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Margins {
    /// First row.
    pub top: u16,
    /// One past the last row.
    pub bottom: u16,
    /// First column.
    pub left: u16,
    /// One past the last column.
    pub right: u16,
}

impl Margins {
    pub(crate) fn whole(size: Size) -> Self {
        Self { top: 0, bottom: size.rows, left: 0, right: size.cols }
    }
}

/// A character set that can be designated (SCS).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Charset {
    /// ASCII and, through UTF-8, all of Unicode.
    #[default]
    Us,
    /// `#` is a pound sign.
    Uk,
    /// DEC special graphics: line drawing.
    Graphics,
}

impl Charset {
    /// The set that this last byte of SCS designates, if it designates any. The other sets xterm knows by one
    /// byte, most of them national ones, are ASCII.
    pub(crate) fn designated_by(last: u8) -> Option<Self> {
        match last {
            b'0' => Some(Self::Graphics),
            b'A' => Some(Self::Uk),
            b'1' | b'2' | b'4'..=b'7' | b'9' | b'<'..=b'>' => Some(Self::Us),
            b'B' | b'C' | b'E' | b'H' | b'K' | b'Q' | b'R' | b'Y' | b'Z' | b'`' | b'f' => {
                Some(Self::Us)
            }
            _ => None,
        }
    }
}

/// The four designated sets, and which of them is in use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Charsets {
    /// G0 to G3.
    pub designated: [Charset; 4],
    /// The set for GL: 0 after SI, 1 after SO.
    pub left: u8,
    /// The set for one character (SS2, SS3).
    pub single: Option<u8>,
}

impl Charsets {
    /// The set the next character is read with.
    pub fn current(&self) -> Charset {
        self.designated[usize::from(self.single.unwrap_or(self.left) & 3)]
    }
}

/// The state that DECSC saves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SavedCursor {
    /// Position and pending wrap.
    pub cursor: Cursor,
    /// Style and protection.
    pub pen: Pen,
    /// Charsets.
    pub charsets: Charsets,
    /// DECOM.
    pub origin: bool,
    /// DECAWM, which stock mosh saves along.
    pub autowrap: bool,
}

impl Default for SavedCursor {
    fn default() -> Self {
        Self {
            cursor: Cursor::default(),
            pen: Pen::default(),
            charsets: Charsets::default(),
            origin: false,
            autowrap: true,
        }
    }
}
