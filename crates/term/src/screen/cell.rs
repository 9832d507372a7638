//! One cell of the grid, packed into eight bytes, and the numbers it refers to.
//!
//! A cell knows nothing of the tables behind its numbers: styles, links and clusters live in the
//! [`Pool`](crate::screen::pool::Pool) of the screen that holds it.

use core::fmt;

/// The number of a [`Style`](crate::screen::style::Style) in a screen's pool; 0 is the plain style.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StyleId(pub(crate) u32);

/// The number of a hyperlink in a screen's pool; 0 is none.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub(crate) u16);

/// The number of a grapheme cluster of several code points in a screen's pool.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ClusterId(pub(crate) u32);

impl StyleId {
    /// The style without colours or attributes.
    pub const PLAIN: Self = Self(0);

    /// The index into the pool.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// No hyperlink.
    pub const NONE: Self = Self(0);

    /// The index into the pool.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl ClusterId {
    /// The index into the pool.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How many columns a cell's text takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Width {
    /// One column.
    Narrow,
    /// Two columns; the next cell is its [`Width::Tail`].
    Wide,
    /// The right half of the wide cell before it; has no text.
    Tail,
}

/// The content of a cell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Glyph {
    /// One code point; a space in blank cells and in tails.
    Char(char),
    /// Several code points, to be looked up in the pool.
    Cluster(ClusterId),
}

/// The part of a shell's dialogue a cell was written in (OSC 133).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Semantic {
    /// A program's output, and everything written by programs that send no marks.
    #[default]
    Output,
    /// The shell's prompt.
    Prompt,
    /// The user's input at the prompt.
    Input,
}

/// One cell. Equality is integer equality, meaningful between cells of pools that agree
/// ([`Pool::common`](crate::screen::pool::Pool::common)).
///
/// From the low end: 21 bits code point or cluster number, 2 width, 1 "is a cluster", 1 protected,
/// 2 semantic, 20 style, 16 link, 1 spare. There is one representation of a blank: a space, whether it
/// was written or erased.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct Cell(pub(crate) u64);

pub(crate) const GLYPH_MASK: u64 = (1 << 21) - 1;
pub(crate) const WIDTH_SHIFT: u32 = 21;
pub(crate) const WIDTH_MASK: u64 = 3 << WIDTH_SHIFT;
pub(crate) const WIDE: u64 = 1 << WIDTH_SHIFT;
pub(crate) const TAIL: u64 = 2 << WIDTH_SHIFT;
pub(crate) const CLUSTER: u64 = 1 << 23;
pub(crate) const PROTECTED: u64 = 1 << 24;
pub(crate) const SEMANTIC_SHIFT: u32 = 25;
pub(crate) const SEMANTIC_MASK: u64 = 3 << SEMANTIC_SHIFT;
pub(crate) const STYLE_SHIFT: u32 = 27;
pub(crate) const STYLE_MASK: u64 = ((1 << 20) - 1) << STYLE_SHIFT;
pub(crate) const LINK_SHIFT: u32 = 47;
pub(crate) const LINK_MASK: u64 = 0xffff << LINK_SHIFT;
/// Glyph, cluster flag and width: the text of a cell without its style.
pub(crate) const TEXT_MASK: u64 = GLYPH_MASK | WIDTH_MASK | CLUSTER;

impl Cell {
    /// An unstyled blank.
    pub const BLANK: Self = Self(b' ' as u64);

    /// A narrow cell of one character in the plain style.
    pub const fn narrow(c: char) -> Self {
        Self(c as u64)
    }

    /// This cell with another style.
    pub(crate) const fn with_style(self, style: StyleId) -> Self {
        Self(self.0 & !STYLE_MASK | (style.0 as u64) << STYLE_SHIFT)
    }

    /// This cell with another link.
    pub(crate) const fn with_link(self, link: LinkId) -> Self {
        Self(self.0 & !LINK_MASK | (link.0 as u64) << LINK_SHIFT)
    }

    /// This cell showing another glyph; its width must be set along with it.
    pub(crate) const fn with_glyph(self, glyph: Glyph, width: Width) -> Self {
        let text = match glyph {
            Glyph::Char(c) => c as u64,
            Glyph::Cluster(id) => id.0 as u64 | CLUSTER,
        };
        let width = match width {
            Width::Narrow => 0,
            Width::Wide => WIDE,
            Width::Tail => TAIL,
        };
        Self(self.0 & !TEXT_MASK | text | width)
    }

    /// The content of the cell.
    pub fn glyph(self) -> Glyph {
        let text = (self.0 & GLYPH_MASK) as u32;
        if self.0 & CLUSTER != 0 {
            return Glyph::Cluster(ClusterId(text));
        }
        Glyph::Char(char::from_u32(text).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    /// How many columns the cell takes.
    pub const fn width(self) -> Width {
        match self.0 & WIDTH_MASK {
            WIDE => Width::Wide,
            TAIL => Width::Tail,
            _ => Width::Narrow,
        }
    }

    /// The right half of a wide cell.
    pub const fn is_tail(self) -> bool {
        self.0 & WIDTH_MASK == TAIL
    }

    /// The left half of a wide cell.
    pub const fn is_wide(self) -> bool {
        self.0 & WIDTH_MASK == WIDE
    }

    /// Shows a space, in any style.
    pub(crate) const fn is_space(self) -> bool {
        self.0 & TEXT_MASK == b' ' as u64
    }

    /// Shows one ASCII character in one column.
    pub(crate) const fn is_ascii(self) -> bool {
        self.0 & TEXT_MASK < 0x80
    }

    /// Shows the same glyph as `other`, in any style.
    pub(crate) const fn has_text_of(self, other: Self) -> bool {
        (self.0 ^ other.0) & TEXT_MASK == 0
    }

    /// The number of the style.
    pub const fn style(self) -> StyleId {
        StyleId(((self.0 & STYLE_MASK) >> STYLE_SHIFT) as u32)
    }

    /// The number of the hyperlink.
    pub const fn link(self) -> LinkId {
        LinkId(((self.0 & LINK_MASK) >> LINK_SHIFT) as u16)
    }

    /// Guarded from selective erase (DECSCA) or from all erasure (SPA).
    pub(crate) const fn is_protected(self) -> bool {
        self.0 & PROTECTED != 0
    }

    /// The packed bits, for hashing and comparing many at once.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// A blank in the same rendition, as DECSERA leaves it.
    pub(crate) const fn without_character(self) -> Self {
        Self(self.0 & (STYLE_MASK | PROTECTED) | b' ' as u64)
    }

    pub(crate) const fn with_semantic(self, semantic: Semantic) -> Self {
        Self(self.0 & !SEMANTIC_MASK | (semantic as u64) << SEMANTIC_SHIFT)
    }
}

impl Default for Cell {
    fn default() -> Self {
        Self::BLANK
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?} s{} l{}", self.glyph(), self.width(), self.style().0, self.link().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_overlap() {
        let cell = Cell::narrow('\u{10FFFF}')
            .with_style(StyleId((1 << 20) - 1))
            .with_link(LinkId(u16::MAX))
            .with_semantic(Semantic::Input);
        assert_eq!(cell.glyph(), Glyph::Char('\u{10FFFF}'));
        assert_eq!(cell.style(), StyleId((1 << 20) - 1));
        assert_eq!(cell.link(), LinkId(u16::MAX));
        assert_eq!(cell.with_semantic(Semantic::Input), cell);
        assert_ne!(cell.with_semantic(Semantic::Prompt), cell);
        assert_eq!(cell.width(), Width::Narrow);
        let wide = cell.with_glyph(Glyph::Cluster(ClusterId(7)), Width::Wide);
        assert_eq!((wide.glyph(), wide.width()), (Glyph::Cluster(ClusterId(7)), Width::Wide));
        assert_eq!((wide.style(), wide.link()), (cell.style(), cell.link()));
    }
}
