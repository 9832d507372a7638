//! Lists the terminals known by their names, and the abilities that each may be trusted with.

use super::ability::{Ability, Colors, Notices, Questions};

/// Terminals that share a repertoire, by the beginnings of their `TERM`.
pub(super) struct Family {
    pub names: &'static [&'static str],
    /// The colours of the bare name.
    pub colors: Colors,
    /// The most colours that a suffix of the name or `COLORTERM` can claim. Programs inside a terminal inherit
    /// `COLORTERM`, so it may describe another terminal.
    pub colors_max: Colors,
    pub abilities: u64,
    pub notices: Notices,
    pub questions: Questions,
}

/// The abilities that stock 1.4.0 understands (mosh-protocol.md §5.2, §6) and keeps (§5.1).
pub(super) const MOSH_ABILITIES: &[Ability] = &[
    Ability::EraseCharacters,
    Ability::BackColorErase,
    Ability::Motion,
    Ability::Titles,
    Ability::Clipboard,
    Ability::SoftWrap,
    Ability::Italic,
    Ability::Blink,
    Ability::Invisible,
    Ability::Mouse,
    Ability::FocusAndPaste,
    Ability::ReverseVideo,
];

/// The abilities that xterm has had since the nineties and that all terminals of its name copied.
const XTERM_ABILITIES: &[Ability] = &[
    Ability::EraseCharacters,
    Ability::BackColorErase,
    Ability::Titles,
    Ability::Clipboard,
    Ability::CursorShape,
    Ability::Alternate,
    Ability::SoftWrap,
    Ability::Italic,
    Ability::Faint,
    Ability::Blink,
    Ability::Invisible,
    Ability::Strike,
    Ability::Mouse,
    Ability::FocusAndPaste,
    Ability::AlternateScroll,
    Ability::ReverseVideo,
    // Terminals that do not know it ignore it: mode 2026 was chosen to be harmless.
    Ability::Synchronized,
    // A terminal without it shows the text alone; `OSC 8` was chosen to be harmless too.
    Ability::Links,
    // Those with one clipboard ignore the other selections.
    Ability::Selections,
    // Unknown numbers of OSC are ignored by all of them.
    Ability::Shell,
    Ability::ShellMarks,
];

/// The abilities that terminals written since then add: all of them pass their authors' tests for these.
const MODERN_ABILITIES: &[Ability] =
    &[Ability::Overline, Ability::UnderlineStyles, Ability::UnderlineColor, Ability::Palette];

/// The terminals that are named after themselves.
const MODERN: u64 = bits(XTERM_ABILITIES) | bits(MODERN_ABILITIES) | bits(&[Ability::KittyKeys]);

/// tmux and screen: back-colour erase is off in their default entries, and titles name their
/// window.
const MULTIPLEXER_ABILITIES: &[Ability] = &[
    Ability::Titles,
    Ability::Clipboard,
    Ability::CursorShape,
    Ability::Alternate,
    Ability::SoftWrap,
    Ability::Faint,
    Ability::Blink,
    Ability::Invisible,
    Ability::Mouse,
    Ability::FocusAndPaste,
    Ability::ReverseVideo,
];

/// The Linux console: no titles, no mouse, and strings it does not know would be shown.
const CONSOLE_ABILITIES: &[Ability] = &[
    Ability::EraseCharacters,
    Ability::BackColorErase,
    Ability::Faint,
    Ability::Blink,
    Ability::ReverseVideo,
    Ability::SoftWrap,
];

/// The abilities assumed for an unknown name: sequences that every terminal since the VT220 parses, if only to ignore
/// them. Soft wraps are left out, so that frames never rely on the right margin.
pub(super) const UNKNOWN: Family = Family {
    names: &[],
    colors: Colors::Eight,
    colors_max: Colors::Direct,
    abilities: bits(&[
        Ability::Alternate,
        Ability::Mouse,
        Ability::FocusAndPaste,
        Ability::ReverseVideo,
    ]),
    notices: Notices::None,
    questions: Questions::Plain,
};

/// The first family with a matching beginning wins, so longer names stand before shorter ones. The sources
/// of what is beside the picture are in `docs/terminals.md`.
///
/// Titles as in mosh-protocol.md §8.1: xterm, rxvt, kterm, Eterm, alacritty, screen and tmux;
/// kitty, foot, wezterm, ghostty and contour have been found to take them as well.
const FAMILIES: &[Family] = &[
    Family {
        names: &["xterm-kitty", "kitty"],
        colors: Colors::Direct,
        colors_max: Colors::Direct,
        abilities: MODERN | bits(&[Ability::Progress]),
        notices: Notices::Kitty,
        questions: Questions::All,
    },
    Family {
        names: &["xterm-ghostty", "ghostty"],
        colors: Colors::Direct,
        colors_max: Colors::Direct,
        abilities: MODERN | bits(&[Ability::ModifyOtherKeys, Ability::Progress]),
        notices: Notices::Plain,
        questions: Questions::All,
    },
    Family {
        names: &["foot", "contour"],
        colors: Colors::Direct,
        colors_max: Colors::Direct,
        // Before it knew progress, foot showed `OSC 9 ; 4` as a notification.
        abilities: MODERN | bits(&[Ability::ModifyOtherKeys]),
        notices: Notices::Titled,
        questions: Questions::All,
    },
    Family {
        names: &["wezterm"],
        colors: Colors::Direct,
        colors_max: Colors::Direct,
        // So did WezTerm.
        abilities: MODERN | bits(&[Ability::ModifyOtherKeys, Ability::LineSize]),
        notices: Notices::Titled,
        questions: Questions::All,
    },
    Family {
        names: &["alacritty"],
        colors: Colors::Direct,
        colors_max: Colors::Direct,
        abilities: bits(XTERM_ABILITIES)
            | bits(&[Ability::UnderlineStyles, Ability::UnderlineColor, Ability::KittyKeys])
            | bits(&[Ability::Palette, Ability::SavesErased]),
        notices: Notices::None,
        questions: Questions::All,
    },
    // VTE, Konsole, iTerm, Windows Terminal and others all say xterm-256color: what only some of
    // them know waits for an answer of theirs (`Dialect::with`).
    Family {
        names: &["xterm-256color", "xterm-direct"],
        colors: Colors::Indexed,
        colors_max: Colors::Direct,
        abilities: bits(XTERM_ABILITIES)
            | bits(&[Ability::Overline, Ability::Palette, Ability::ModifyOtherKeys])
            | bits(&[Ability::LineSize, Ability::Progress]),
        notices: Notices::Titled,
        questions: Questions::All,
    },
    Family {
        names: &["xterm-color", "xterm-16color", "xterm", "kterm"],
        colors: Colors::Eight,
        colors_max: Colors::Direct,
        abilities: bits(XTERM_ABILITIES) | bits(&[Ability::ModifyOtherKeys, Ability::LineSize]),
        notices: Notices::Titled,
        questions: Questions::All,
    },
    Family {
        names: &["tmux"],
        colors: Colors::Eight,
        colors_max: Colors::Direct,
        abilities: bits(MULTIPLEXER_ABILITIES)
            | bits(&[Ability::Italic, Ability::Strike, Ability::EraseCharacters, Ability::Links])
            | bits(&[Ability::Shell, Ability::ShellMarks])
            | bits(&[Ability::Selections, Ability::ModifyOtherKeys])
            | bits(&[Ability::SavesErased, Ability::SavesErasedFromHome]),
        notices: Notices::None,
        questions: Questions::All,
    },
    Family {
        names: &["screen"],
        colors: Colors::Eight,
        colors_max: Colors::Indexed,
        abilities: bits(MULTIPLEXER_ABILITIES),
        notices: Notices::None,
        questions: Questions::Plain,
    },
    Family {
        names: &["rxvt", "Eterm"],
        colors: Colors::Eight,
        colors_max: Colors::Direct,
        abilities: bits(&[
            Ability::EraseCharacters,
            Ability::BackColorErase,
            Ability::Titles,
            Ability::CursorShape,
            Ability::Alternate,
            Ability::SoftWrap,
            Ability::Italic,
            Ability::Blink,
            Ability::Mouse,
            Ability::FocusAndPaste,
            Ability::ReverseVideo,
        ]),
        notices: Notices::Titled,
        questions: Questions::Plain,
    },
    Family {
        names: &["linux"],
        colors: Colors::Eight,
        colors_max: Colors::Sixteen,
        abilities: bits(CONSOLE_ABILITIES),
        notices: Notices::None,
        questions: Questions::None,
    },
    Family {
        names: &["vt1", "vt2", "vt3", "vt4", "vt5", "ansi", "dumb"],
        colors: Colors::Monochrome,
        colors_max: Colors::Monochrome,
        abilities: bits(&[Ability::ReverseVideo]),
        notices: Notices::None,
        questions: Questions::None,
    },
];

pub(super) fn family_of(term: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.names.iter().any(|name| term.starts_with(name)))
}

/// `TERM=screen-256color`, `rxvt-16color`, `tmux-direct`: the convention of terminfo's names.
pub(super) fn colors_of_suffix(term: &str) -> Colors {
    match term.rsplit('-').next() {
        Some("direct") => Colors::Direct,
        Some("256color") => Colors::Indexed,
        Some("16color") => Colors::Sixteen,
        Some("88color") => Colors::Sixteen,
        _ => Colors::Monochrome,
    }
}

pub(super) const fn bits(abilities: &[Ability]) -> u64 {
    let mut all = 0;
    let mut index = 0;
    while index < abilities.len() {
        all |= abilities[index] as u64;
        index += 1;
    }
    all
}
