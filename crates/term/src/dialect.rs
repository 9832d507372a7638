//! Describes which escape sequences a reader understands: the tables of terminals, and the degradations that follow
//! from them. Does not know screens or how a frame is drawn.
//!
//! There are three kinds of reader: a stock mosh 1.4.0 peer, a rove peer, and the user's own
//! terminal. All are given to [`frame`](crate::frame) as a [`Dialect`], so that the differ never
//! asks who reads.

mod ability;
mod families;
pub mod terminfo;

use crate::screen::properties::SavesErased;
use crate::uri::{self, LocalNames};
use terminfo::Terminfo;

pub use ability::{Ability, Colors};
pub(crate) use ability::{Notices, Questions};
use families::{Family, MOSH_ABILITIES, UNKNOWN, bits, colors_of_suffix, family_of};

/// A reader's abilities: what [`frame`](crate::frame) may send it, and what a screen looks like to
/// it.
///
/// A value, cheap to copy. [`Dialect::MOSH`] and [`Dialect::ROVE`] are the two peers;
/// [`Dialect::tty`] describes the user's terminal.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Dialect {
    reader: Reader,
    colors: Colors,
    abilities: u64,
    notices: Notices,
    questions: Questions,
    local: Option<&'static LocalNames>,
}

/// Which of the two emulators models the reader (ARCHITECTURE.md §4, "Two emulators, one code").
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Emulation {
    /// Exactly what stock mosh 1.4.0 implements (mosh-protocol.md §6).
    Mosh,
    /// Everything this crate implements.
    Full,
}

/// Who reads: decides who keeps what between frames, never what can be shown.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Reader {
    /// A stock mosh client's emulator: keeps the pen, has exactly the repertoire of
    /// mosh-protocol.md §5.2.
    StockPeer,
    /// Our own emulator, in another process: same width table, same repertoire.
    RovePeer,
    /// A terminal on a local tty: its widths may differ from ours, bytes are cheap, robustness is
    /// not.
    Tty,
}

impl Dialect {
    /// A stock mosh 1.4.0 peer. Frames hold what its emulator implements (mosh-protocol.md §6), which
    /// is more than stock's own frames use (§5.2), as far as its first releases had it.
    pub const MOSH: Dialect = Dialect {
        reader: Reader::StockPeer,
        colors: Colors::Direct,
        abilities: bits(MOSH_ABILITIES),
        notices: Notices::None,
        questions: Questions::None,
        local: None,
    };

    /// A rove peer: everything this crate's emulator models.
    pub const ROVE: Dialect = Dialect {
        reader: Reader::RovePeer,
        colors: Colors::Direct,
        abilities: u64::MAX,
        notices: Notices::Titled,
        questions: Questions::None,
        local: None,
    };

    /// The user's terminal, from the words it puts into its environment.
    ///
    /// `term` is `TERM`, `colorterm` is `COLORTERM` (empty when unset). An unknown or empty `term`
    /// gives the subset that every terminal of the xterm family has, so that nobody is turned away
    /// by a name.
    pub fn tty(term: &str, colorterm: &str) -> Dialect {
        let family = family_of(term).unwrap_or(&UNKNOWN);
        let named = match colorterm {
            "truecolor" | "24bit" => Colors::Direct,
            _ => colors_of_suffix(term),
        };
        let colors = family.colors.max(named).min(family.colors_max);
        let Family { abilities, notices, questions, .. } = *family;
        Dialect { reader: Reader::Tty, colors, abilities, notices, questions, local: None }
    }

    /// The same with the terminal's terminfo entry. The entry decides what it can describe; the tables decide the
    /// rest.
    pub fn tty_described(term: &str, colorterm: &str, entry: &Terminfo) -> Dialect {
        let family = family_of(term).unwrap_or(&UNKNOWN);
        let shown = match (entry.colors, family.colors, colorterm) {
            (Colors::Monochrome, ..) => Colors::Monochrome,
            // Entries count the palette.
            (_, Colors::Direct, _) | (_, _, "truecolor" | "24bit") => Colors::Direct,
            (colors, ..) => colors,
        };
        let mut dialect = Dialect::tty(term, colorterm).with_colors(shown.min(family.colors_max));
        dialect.abilities |= entry.has;
        dialect.abilities &= !entry.lacks;
        dialect
    }

    /// Whether the tables have the terminal that calls itself `term`; [`tty`](Self::tty) gives others
    /// little.
    pub fn knows(term: &str) -> bool {
        family_of(term).is_some()
    }

    /// This dialect, with an ability that the terminal itself reported.
    #[must_use]
    pub const fn with(mut self, ability: Ability) -> Dialect {
        self.abilities |= ability as u64;
        self
    }

    /// This dialect, with an ability taken away: reported missing, or switched off by the user.
    #[must_use]
    pub const fn without(mut self, ability: Ability) -> Dialect {
        self.abilities &= !(ability as u64);
        self
    }

    /// This dialect with another number of colours.
    #[must_use]
    pub const fn with_colors(mut self, colors: Colors) -> Dialect {
        self.colors = colors;
        self
    }

    /// This dialect with the names of the machine that the terminal runs on. Without them the terminal is
    /// given no URI of a file. They last as long as the program that has them.
    #[must_use]
    pub const fn with_local_names(mut self, names: &'static LocalNames) -> Dialect {
        self.local = Some(names);
        self
    }

    /// Whether the reader may have this URI as a link. A peer may have any: the client decides what its
    /// terminal is given.
    pub(crate) fn may_link(&self, uri: &str) -> bool {
        self.reader != Reader::Tty || uri::may_link(uri, self.local)
    }

    /// The same, as the working directory.
    pub(crate) fn may_enter(&self, uri: &str) -> bool {
        self.reader != Reader::Tty || uri::may_enter(uri, self.local)
    }

    /// The emulator that models this reader.
    pub const fn emulation(&self) -> Emulation {
        match self.reader {
            Reader::StockPeer => Emulation::Mosh,
            Reader::RovePeer | Reader::Tty => Emulation::Full,
        }
    }

    /// How many colours the reader tells apart.
    pub const fn colors(&self) -> Colors {
        self.colors
    }

    /// This dialect with another form of notifications.
    #[must_use]
    pub(crate) const fn with_notices(mut self, notices: Notices) -> Dialect {
        self.notices = notices;
        self
    }

    pub(crate) const fn notices(&self) -> Notices {
        self.notices
    }

    pub(crate) const fn reader(&self) -> Reader {
        self.reader
    }

    pub(crate) const fn questions(&self) -> Questions {
        self.questions
    }

    /// What becomes of a screen that is erased on the user's terminal.
    pub const fn saves_erased(&self) -> SavesErased {
        let is_tty = matches!(self.reader, Reader::Tty);
        match (self.can(Ability::SavesErased), self.can(Ability::SavesErasedFromHome)) {
            (true, false) if is_tty => SavesErased::All,
            (true, true) if is_tty => SavesErased::FromHome,
            _ => SavesErased::Never,
        }
    }

    /// Whether the reader understands `ability`.
    pub const fn can(&self, ability: Ability) -> bool {
        self.abilities & ability as u64 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_follow_the_names_of_terminfo() {
        for (term, colorterm, colors) in [
            ("xterm", "", Colors::Eight),
            ("xterm", "truecolor", Colors::Direct),
            ("xterm-256color", "", Colors::Indexed),
            ("xterm-256color", "truecolor", Colors::Direct),
            ("xterm-direct", "", Colors::Direct),
            ("xterm-kitty", "", Colors::Direct),
            ("screen", "", Colors::Eight),
            ("screen-256color", "truecolor", Colors::Indexed),
            ("tmux-256color", "", Colors::Indexed),
            ("rxvt-unicode-256color", "", Colors::Indexed),
            ("linux", "", Colors::Eight),
            ("vt100", "truecolor", Colors::Monochrome),
            ("", "", Colors::Eight),
            ("no-such-terminal", "", Colors::Eight),
        ] {
            assert_eq!(Dialect::tty(term, colorterm).colors(), colors, "{term} {colorterm}");
        }
    }

    #[test]
    fn names_that_the_tables_have() {
        for (term, known) in [
            ("xterm-256color", true),
            ("tmux", true),
            ("dumb", true),
            ("", false),
            ("no-such-terminal", false),
        ] {
            assert_eq!(Dialect::knows(term), known, "{term}");
        }
    }

    #[test]
    fn titles_go_only_to_those_known_to_take_them() {
        for (term, titles) in [
            ("xterm-256color", true),
            ("rxvt-unicode", true),
            ("kterm", true),
            ("Eterm", true),
            ("alacritty", true),
            ("screen.xterm-256color", true),
            ("tmux-256color", true),
            ("linux", false),
            ("vt220", false),
            ("unheard-of", false),
        ] {
            assert_eq!(Dialect::tty(term, "").can(Ability::Titles), titles, "{term}");
        }
    }

    #[test]
    fn what_is_no_picture_goes_to_those_that_take_it() {
        use Ability::{LineSize, Progress, Selections, Shell};
        for (term, wanted, notices) in [
            ("xterm-256color", &[Shell, Selections, Progress, LineSize][..], Notices::Titled),
            ("xterm", &[Shell, Selections, LineSize], Notices::Titled),
            ("xterm-kitty", &[Shell, Selections, Progress], Notices::Kitty),
            ("xterm-ghostty", &[Shell, Selections, Progress], Notices::Plain),
            ("foot", &[Shell, Selections], Notices::Titled),
            ("wezterm", &[Shell, Selections, LineSize], Notices::Titled),
            ("alacritty", &[Shell, Selections], Notices::None),
            ("tmux-256color", &[Shell, Selections], Notices::None),
            ("screen", &[], Notices::None),
            ("rxvt-unicode", &[], Notices::Titled),
            ("linux", &[], Notices::None),
            ("vt220", &[], Notices::None),
            ("unheard-of", &[], Notices::None),
        ] {
            let dialect = Dialect::tty(term, "");
            for ability in [Shell, Selections, Progress, LineSize] {
                assert_eq!(dialect.can(ability), wanted.contains(&ability), "{term} {ability:?}");
            }
            assert_eq!(dialect.notices(), notices, "{term}");
            assert!(!dialect.can(Ability::SchemeReports), "{term}");
        }
    }

    #[test]
    fn an_answer_of_the_terminal_changes_the_table() {
        let told = Dialect::tty("xterm-256color", "").with(Ability::UnderlineStyles);
        assert!(told.can(Ability::UnderlineStyles));
        assert!(!told.without(Ability::UnderlineStyles).can(Ability::UnderlineStyles));
        assert_eq!(told.emulation(), Emulation::Full);
        assert_eq!(Dialect::MOSH.emulation(), Emulation::Mosh);
    }
}
