//! Lists the differences between stock mosh's emulator and ours as values. Other code reads these values and never
//! asks which emulator it runs.

use crate::dialect::{Dialect, Emulation};
use crate::parser::{C1, Colons, Numbers, Rules, Strings};
use crate::screen::history::Keeping;
use crate::utf8::Utf8Rule;

/// How characters become cells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Text {
    /// Grapheme clusters, whose wide ones have a tail and are broken by overwriting either half.
    Clusters,
    /// Single characters of glibc's width; marks of width 0 pile up to 32 octets a cell; a wide cell hides the
    /// content of the next one.
    Stock,
}

/// Which controls end the deferred wrap, besides those that write and move.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum DeferredWrap {
    /// Controls that move the cursor or erase to the end of the line.
    Moves,
    /// Every control dispatched, known or not, but for a few.
    Controls,
}

/// Which functions are known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Functions {
    /// All of the tables.
    All,
    /// Those marked as known to stock mosh.
    Stock,
}

/// One emulator's rules.
#[derive(Debug)]
pub(crate) struct Profile {
    pub parser: Rules,
    pub text: Text,
    pub deferred_wrap: DeferredWrap,
    pub functions: Functions,
    /// `CSI c`, `CSI > c`.
    pub attributes: &'static [u8],
    pub secondary_attributes: &'static [u8],
    /// Resizing reflows wrapped lines of the primary screen.
    pub reflow: Reflow,
    pub history: Keeping,
}

/// How wrapped lines change with the width.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reflow {
    /// They are wrapped anew.
    Lines,
    /// Rows are cut or extended, and no row counts as wrapped any more.
    Cut,
}

/// Ours: a VT500 with xterm's manners.
static FULL: Profile = Profile {
    parser: Rules {
        utf8: Utf8Rule::MaximalSubpart,
        colons: Colons::Parts,
        numbers: Numbers::Clamp,
        c1: C1::Dropped,
        parameter_chars_max: u32::MAX,
        strings: Strings::Strict,
    },
    text: Text::Clusters,
    deferred_wrap: DeferredWrap::Moves,
    functions: Functions::All,
    // A VT520 like xterm 379's, of whose extensions there are: selective erase, state reports, horizontal
    // scrolling, colour, rectangles; and writing to the clipboard.
    attributes: b"\x1b[?65;6;17;21;22;28;52c",
    secondary_attributes: b"\x1b[>64;379;0c",
    reflow: Reflow::Lines,
    history: Keeping::Lines,
};

/// Stock mosh 1.4.0 (`mosh-protocol.md` §6).
static STOCK: Profile = Profile {
    parser: Rules {
        utf8: Utf8Rule::Glibc,
        colons: Colons::Drop,
        numbers: Numbers::Missing,
        c1: C1::Obeyed,
        parameter_chars_max: 100,
        strings: Strings::Lenient(16384),
    },
    text: Text::Stock,
    deferred_wrap: DeferredWrap::Controls,
    functions: Functions::Stock,
    attributes: b"\x1b[?62c",
    secondary_attributes: b"\x1b[>1;10;0c",
    reflow: Reflow::Cut,
    history: Keeping::Nothing,
};

impl Profile {
    pub(crate) fn of(dialect: &Dialect) -> &'static Self {
        match dialect.emulation() {
            Emulation::Full => &FULL,
            Emulation::Mosh => &STOCK,
        }
    }
}
