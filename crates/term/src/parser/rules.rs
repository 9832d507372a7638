//! What one emulator's parser does otherwise than another's.

use crate::utf8::Utf8Rule;

/// What two emulators read differently.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// How ill-formed UTF-8 is cut up.
    pub utf8: Utf8Rule,
    /// Whether `:` separates numbers.
    pub colons: Colons,
    /// What becomes of numbers above 65,535.
    pub numbers: Numbers,
    /// What becomes of C1 controls that come as characters, U+0080 to U+009F.
    pub c1: C1,
    /// Characters of the numbers part that count; later ones are as if not sent.
    pub parameter_chars_max: u32,
    /// What ends a string, and what becomes of one that is too long.
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
    /// Whatever leaves the string ends it, and long ones are cut after so many bytes.
    Lenient(usize),
}

/// See [`Rules::c1`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum C1 {
    /// They do what `ESC` and a letter do.
    Obeyed,
    /// They are as if not sent, wherever they come: only their `ESC` form is a control (xterm, ctlseqs).
    Dropped,
}
