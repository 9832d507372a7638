//! Lists the differences between the parsers of stock mosh and ours.

use crate::utf8::Utf8Rule;

/// The rules in which the two parsers differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// How ill-formed UTF-8 is cut up.
    pub utf8: Utf8Rule,
    /// Whether `:` separates numbers.
    pub colons: Colons,
    /// How numbers above 65,535 read.
    pub numbers: Numbers,
    /// How C1 controls are treated that arrive as characters, U+0080 to U+009F.
    pub c1: C1,
    /// Characters of the numbers part that count; later ones are ignored.
    pub parameter_chars_max: u32,
    /// Which bytes end a string, and how one that is too long is treated.
    pub strings: Strings,
}

/// See [`Rules::colons`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Colons {
    /// `38:2::1:2:3` is one parameter with parts.
    Parts,
    /// The whole sequence is dropped.
    Drop,
}

/// See [`Rules::numbers`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Numbers {
    /// They read as 65,535.
    Clamp,
    /// They read as missing.
    Missing,
}

/// See [`Rules::strings`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Strings {
    /// Only BEL and ST end them (anything else cancels), and long ones are ignored whole, as xterm does.
    Strict,
    /// Every byte that leaves the string also ends it, and long ones are cut after this number of bytes.
    Lenient(usize),
}

/// See [`Rules::c1`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum C1 {
    /// They do what `ESC` and a letter do.
    Obeyed,
    /// They are ignored everywhere: only their `ESC` form is a control (xterm, ctlseqs).
    Dropped,
}
