//! A cell's contents in a form that outlives its screen.
//!
//! The numbers in a `Cell` mean something only beside their screen's pool, and two frames may
//! descend from different pools. Guesses live across frames, so they hold the resolved style and
//! the text itself.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use rove_term::cell::{Cell, Glyph};
use rove_term::{Screen, Style, Width, width};

/// The text of a cell: a character, or (above the last code point) a cluster kept in [`Clusters`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Appearance(u32);

impl Appearance {
    pub(crate) const BLANK: Self = Self(' ' as u32);
    const CLUSTERS: u32 = char::MAX as u32 + 1;

    pub(crate) const fn of(c: char) -> Self {
        Self(c as u32)
    }

    /// A space or NBSP. Blanks all match one another, as in stock (mosh-protocol §9.1).
    pub(crate) fn is_blank(self) -> bool {
        self == Self::BLANK || self == Self::of('\u{a0}')
    }

    pub(crate) fn matches(self, other: Self) -> bool {
        self == other || self.is_blank() && other.is_blank()
    }

    /// It is a letter or a digit, or a cluster: part of a word for the motions by word.
    pub(crate) fn is_word(self) -> bool {
        char::from_u32(self.0).is_none_or(char::is_alphanumeric)
    }
}

/// The text and style of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub(crate) text: Appearance,
    pub(crate) width: Width,
    pub(crate) style: Style,
}

impl Look {
    pub(crate) const BLANK: Self =
        Self { text: Appearance::BLANK, width: Width::Narrow, style: Style::PLAIN };
}

/// Clusters of several code points met in guesses, beyond which they all look alike.
const CLUSTERS_MAX: usize = 256;

/// The clusters that [`Appearance`]s name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clusters(Vec<Box<str>>);

impl Clusters {
    /// Forgets all; no `Appearance` of a cluster may be kept.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The text and style of a cell of `screen`.
    pub(crate) fn look(&mut self, screen: &Screen, cell: Cell) -> Look {
        let style = screen.pool().style(cell.style());
        Look { text: self.text(screen, cell), width: cell.width(), style }
    }

    /// The text of a cell of `screen`.
    pub(crate) fn text(&mut self, screen: &Screen, cell: Cell) -> Appearance {
        match cell.glyph() {
            Glyph::Char(c) => Appearance::of(c),
            Glyph::Cluster(_) => {
                let mut text = String::new();
                screen.pool().push_text(cell, &mut text);
                self.intern(&text)
            }
        }
    }

    /// The text with a combining character added; `None` when it does not combine.
    pub(crate) fn join(&mut self, first: Appearance, c: char) -> Option<Appearance> {
        let mut text = match char::from_u32(first.0) {
            Some(first) => first.to_string(),
            None => self.0.get((first.0 - Appearance::CLUSTERS) as usize)?.to_string(),
        };
        if first.is_blank() || !width::joins(&text, c) {
            return None;
        }
        text.push(c);
        Some(self.intern(&text))
    }

    fn intern(&mut self, text: &str) -> Appearance {
        // One number for one text, so that comparing two is comparing numbers.
        let at = self.0.iter().position(|known| &**known == text).unwrap_or_else(|| {
            if self.0.len() < CLUSTERS_MAX {
                // A hostile host may show any number of clusters.
                self.0.push(text.into());
            }
            self.0.len() - 1
        });
        Appearance(Appearance::CLUSTERS + at as u32)
    }

    /// Writes a look into a snapshot.
    pub(crate) fn paint(&self, screen: &mut Screen, row: u16, col: u16, look: Look) {
        match char::from_u32(look.text.0) {
            Some(_) if look.width == Width::Tail => {} // Comes with its left half.
            Some(c) => screen.set_char(row, col, c, look.width, look.style),
            None => {
                let text = self.0.get((look.text.0 - Appearance::CLUSTERS) as usize);
                screen.put(row, col, text.map_or("", |text| text), look.style);
            }
        }
    }
}
