//! Renditions: colours and attributes of text (SGR).

use core::fmt;

/// A colour as a program named it, packed: the default, one of 256, or direct.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Color(u32);

/// A [`Color`] taken apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ColorKind {
    /// The terminal's own default.
    Default,
    /// An entry of the 256 colour palette.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

impl Color {
    /// The default colour.
    pub const DEFAULT: Self = Self(0);

    /// An entry of the palette.
    pub const fn indexed(index: u8) -> Self {
        Self(1 << 24 | index as u32)
    }

    /// A direct colour.
    pub const fn rgb(red: u8, green: u8, blue: u8) -> Self {
        Self(2 << 24 | (red as u32) << 16 | (green as u32) << 8 | blue as u32)
    }

    /// The parts.
    pub const fn kind(self) -> ColorKind {
        match self.0 >> 24 {
            0 => ColorKind::Default,
            1 => ColorKind::Indexed(self.0 as u8),
            _ => ColorKind::Rgb((self.0 >> 16) as u8, (self.0 >> 8) as u8, self.0 as u8),
        }
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }
}

impl Default for Color {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Debug for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

/// The shape of an underline (SGR 4:n).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Underline {
    /// No underline.
    #[default]
    None,
    /// SGR 4.
    Single,
    /// SGR 21 or 4:2.
    Double,
    /// SGR 4:3.
    Curly,
    /// SGR 4:4.
    Dotted,
    /// SGR 4:5.
    Dashed,
}

/// A set of attributes; the underline's shape takes three of its bits.
#[derive(Clone, Copy, Default, Eq, Hash, PartialEq)]
pub struct Attrs(u16);

const UNDERLINE_SHIFT: u32 = 8;
const UNDERLINE_MASK: u16 = 7 << UNDERLINE_SHIFT;

impl Attrs {
    /// No attribute.
    pub const NONE: Self = Self(0);
    /// SGR 1.
    pub const BOLD: Self = Self(1);
    /// SGR 2.
    pub const FAINT: Self = Self(1 << 1);
    /// SGR 3.
    pub const ITALIC: Self = Self(1 << 2);
    /// SGR 5 and 6.
    pub const BLINK: Self = Self(1 << 3);
    /// SGR 7.
    pub const INVERSE: Self = Self(1 << 4);
    /// SGR 8.
    pub const INVISIBLE: Self = Self(1 << 5);
    /// SGR 9.
    pub const STRIKE: Self = Self(1 << 6);
    /// SGR 53.
    pub const OVERLINE: Self = Self(1 << 7);

    /// Holds every attribute of `other`.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without those of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The attributes in exactly one of the two sets.
    pub(crate) const fn toggled(self, other: Self) -> Self {
        Self(self.0 ^ other.0)
    }

    /// The shape of the underline.
    pub const fn underline(self) -> Underline {
        match (self.0 & UNDERLINE_MASK) >> UNDERLINE_SHIFT {
            0 => Underline::None,
            1 => Underline::Single,
            2 => Underline::Double,
            3 => Underline::Curly,
            4 => Underline::Dotted,
            _ => Underline::Dashed,
        }
    }

    /// This set with another underline.
    pub const fn with_underline(self, underline: Underline) -> Self {
        Self(self.0 & !UNDERLINE_MASK | (underline as u16) << UNDERLINE_SHIFT)
    }

    /// The packed bits.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

impl fmt::Debug for Attrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Attrs, &str); 8] = [
            (Attrs::BOLD, "bold"),
            (Attrs::FAINT, "faint"),
            (Attrs::ITALIC, "italic"),
            (Attrs::BLINK, "blink"),
            (Attrs::INVERSE, "inverse"),
            (Attrs::INVISIBLE, "invisible"),
            (Attrs::STRIKE, "strike"),
            (Attrs::OVERLINE, "overline"),
        ];
        let mut set = f.debug_set();
        for (attr, name) in NAMES {
            if self.contains(attr) {
                set.entry(&name);
            }
        }
        if self.underline() != Underline::None {
            set.entry(&self.underline());
        }
        set.finish()
    }
}

/// How text looks: three colours and the attributes.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Style {
    /// Colour of the text.
    pub fg: Color,
    /// Colour behind the text.
    pub bg: Color,
    /// Colour of the underline; the default follows the text.
    pub underline_color: Color,
    /// Everything that is not a colour.
    pub attrs: Attrs,
}

impl Style {
    /// No colours, no attributes.
    pub const PLAIN: Self = Self {
        fg: Color::DEFAULT,
        bg: Color::DEFAULT,
        underline_color: Color::DEFAULT,
        attrs: Attrs::NONE,
    };

    pub(crate) fn to_bytes(self) -> [u8; 14] {
        let [a, b, c, d] = self.fg.0.to_le_bytes();
        let [e, f, g, h] = self.bg.0.to_le_bytes();
        let [i, j, k, l] = self.underline_color.0.to_le_bytes();
        let [m, n] = self.attrs.0.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, m, n]
    }

    pub(crate) fn from_bytes(bytes: &[u8; 14]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = *bytes;
        Self {
            fg: Color(u32::from_le_bytes([a, b, c, d])),
            bg: Color(u32::from_le_bytes([e, f, g, h])),
            underline_color: Color(u32::from_le_bytes([i, j, k, l])),
            attrs: Attrs(u16::from_le_bytes([m, n])),
        }
    }

    /// Only a background: what erased cells take (background colour erase).
    pub const fn background(bg: Color) -> Self {
        Self { bg, ..Self::PLAIN }
    }
}
