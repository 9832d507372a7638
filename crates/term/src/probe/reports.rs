//! Collects a terminal's reports of itself. They correct its dialect and give programs the terminal's properties.

use crate::dialect::{Ability, Colors, Dialect, Notices};
use crate::probe::answer::Answer;
use crate::screen::properties::{Scheme, TerminalProperties};

/// A terminal's reports of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceReports {
    around: TerminalProperties,
    /// XTVERSION, or what DA2 means.
    name: Option<Name>,
    /// Whether it wraps its lines anew in a window of another width.
    wraps: Option<bool>,
    /// Whether it takes lines back from its history when its window grows.
    takes_back: Option<bool>,
    /// DA1 came: it answers at all.
    answers: bool,
    synchronized: Option<bool>,
    scheme_reports: bool,
    mouse_pixels: bool,
    keyboard: Option<u8>,
    shape: Option<u8>,
    direct: Option<bool>,
    underlines: Option<bool>,
    underline_color: bool,
}

/// A terminal known by the name that it reports.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Name {
    begins: &'static str,
    abilities: &'static [Ability],
    colors: Option<Colors>,
    notices: Notices,
}

/// Abilities of the terminals written since 2015 that xterm lacks. They count even against an old terminfo entry.
const MODERN: &[Ability] = &[
    Ability::Italic,
    Ability::Faint,
    Ability::EraseCharacters,
    Ability::Links,
    Ability::Overline,
    Ability::UnderlineStyles,
    Ability::UnderlineColor,
    Ability::Palette,
];

const DIRECT: Option<Colors> = Some(Colors::Direct);

/// Those that answer XTVERSION; `docs/terminals.md` has the sources. tmux makes of each feature what the
/// terminal around it has.
const NAMES: [Name; 10] = [
    Name { begins: "kitty(", abilities: MODERN, colors: DIRECT, notices: Notices::Kitty },
    Name { begins: "foot(", abilities: MODERN, colors: DIRECT, notices: Notices::Titled },
    Name { begins: "WezTerm ", abilities: MODERN, colors: DIRECT, notices: Notices::Titled },
    Name { begins: "ghostty ", abilities: MODERN, colors: DIRECT, notices: Notices::Plain },
    Name { begins: "contour ", abilities: MODERN, colors: DIRECT, notices: Notices::Titled },
    Name { begins: "iTerm2 ", abilities: MODERN, colors: DIRECT, notices: Notices::Plain },
    Name { begins: "VTE(", abilities: MODERN, colors: DIRECT, notices: Notices::Titled },
    Name { begins: "rove(", abilities: MODERN, colors: DIRECT, notices: Notices::Titled },
    Name {
        begins: "Konsole ",
        abilities: &[Ability::Links],
        colors: DIRECT,
        notices: Notices::Titled,
    },
    Name {
        begins: "tmux ",
        abilities: &[
            Ability::Italic,
            Ability::Strike,
            Ability::EraseCharacters,
            Ability::Overline,
            Ability::UnderlineStyles,
            Ability::UnderlineColor,
            Ability::ModifyOtherKeys,
            Ability::SavesErased,
            Ability::SavesErasedFromHome,
        ],
        colors: DIRECT,
        notices: Notices::None,
    },
];

/// Those among them without xterm's modifyOtherKeys.
const WITHOUT_MODIFIERS: [&str; 3] = ["kitty(", "VTE(", "Konsole "];

/// Those among them that put a screen into the history when ED 2 erases it; tmux, which does so with ED 0 as well, has
/// that in its abilities.
const SAVES_ERASED: [&str; 4] = ["VTE(", "iTerm2 ", "contour ", "Konsole "];

/// Some releases of these show any OSC 9 as a notification, progress too.
const PROGRESS_AS_TEXT: [&str; 3] = ["foot(", "WezTerm ", "iTerm2 "];

/// Whether a terminal takes lines back from its history when its window grows, by what it calls itself. kitty does with
/// its option `scrollback_fill_enlarged_window`.
const TAKES_BACK: [(&str, bool); 4] =
    [("XTerm(", true), ("tmux ", true), ("rove(", true), ("kitty(", false)];

/// VTE before 0.70 has no XTVERSION; DA2 says 65 and its version, 5200 for 0.52, the first with styles.
const VTE_KIND: u32 = 65;
const VTE_MODERN: u32 = 5200;
/// Above it 65 is another terminal's version.
const VTE_VERSION_MAX: u32 = 9999;

const SYNCHRONIZED: u32 = 2026;
pub(super) const SCHEME_REPORTS: u32 = 2031;
const MOUSE_PIXELS: u32 = 1016;

/// The capabilities asked for, in hexadecimal: RGB, Smulx, Setulc, Su.
const CAPABILITY_RGB: &str = "524742";
const CAPABILITY_SMULX: &str = "536D756C78";
const CAPABILITY_SETULC: &str = "536574756C63";
const CAPABILITY_SU: &str = "5375";

impl DeviceReports {
    /// The name by which it is known, if it has told one.
    pub fn known_name(&self) -> Option<&'static str> {
        self.name.map(|name| name.begins.trim_end_matches(['(', ' ']))
    }

    /// Whether it has answered anything that was asked of it.
    pub fn has_answered(&self) -> bool {
        self.answers
    }

    /// Whether it knows mode 2026, if it has told.
    pub fn synchronizes(&self) -> Option<bool> {
        self.synchronized
    }

    /// The properties that programs may learn.
    pub fn properties(&self) -> &TerminalProperties {
        &self.around
    }

    /// The kitty keyboard flags as the terminal had them, if it has any.
    pub fn keyboard(&self) -> Option<u8> {
        self.keyboard
    }

    /// The cursor's shape as the terminal had it, as DECSCUSR counts.
    pub fn cursor_shape(&self) -> Option<u8> {
        self.shape
    }

    /// Whether it wraps its lines anew when its window has another width; `None` if that is not known.
    pub fn wraps_anew(&self) -> Option<bool> {
        self.wraps
    }

    /// Whether it takes lines back from its history when its window grows; `None` if that is not known.
    pub fn takes_lines_back(&self) -> Option<bool> {
        self.takes_back
    }

    /// Whether its programs may learn of a new size long after it has it: tmux waits for 250 ms after the last one it told.
    pub fn tells_size_late(&self) -> bool {
        self.known_name() == Some("tmux")
    }

    /// Whether it tells when its colour scheme changes.
    pub fn reports_scheme(&self) -> bool {
        self.scheme_reports
    }

    /// Whether this scheme is another than the one before.
    pub(super) fn is_news(&self, scheme: Scheme) -> bool {
        self.around.scheme.is_some_and(|before| before != scheme)
    }

    pub(super) fn note(&mut self, answer: &Answer) {
        match answer {
            Answer::Primary => self.answers = true,
            Answer::Secondary(VTE_KIND, VTE_MODERN..=VTE_VERSION_MAX) => self.name("VTE("),
            Answer::Secondary(..) => {}
            Answer::Version(text) => {
                self.name(text);
                let known = TAKES_BACK.iter().find(|(begins, _)| text.starts_with(begins));
                self.takes_back = known.map(|(_, takes)| *takes);
                let is_xterm = text.starts_with("XTerm(");
                self.wraps = if is_xterm { Some(false) } else { self.name.map(|_known| true) };
            }
            // 1 set, 2 reset, 3 always set; 0 is unknown and 4 never to be set (DECRPM).
            Answer::Mode(SYNCHRONIZED, state) => {
                self.synchronized = Some(matches!(state, 1..=3));
            }
            Answer::Mode(SCHEME_REPORTS, state) => self.scheme_reports = matches!(state, 1 | 2),
            Answer::Mode(MOUSE_PIXELS, state) => self.mouse_pixels = matches!(state, 1 | 2),
            Answer::Mode(..) => {}
            Answer::Keyboard(flags) => self.keyboard = Some(*flags),
            Answer::Scheme(scheme) => self.around.scheme = Some(*scheme),
            // What a cell measures says more.
            Answer::Area(..) => {}
            Answer::Cell(width, height) => {
                self.around.cell = (*width > 0 && *height > 0).then_some((*width, *height));
            }
            Answer::Capability(capability) => {
                self.capability(capability.as_deref().unwrap_or_default());
            }
            Answer::Setting(setting) => self.setting(setting.as_deref().unwrap_or_default()),
            Answer::Dynamic(10, rgb) => self.around.foreground = Some(*rgb),
            Answer::Dynamic(11, rgb) => self.around.background = Some(*rgb),
            Answer::Dynamic(_, rgb) => self.around.cursor = Some(*rgb),
            Answer::Palette(index, rgb) => {
                if let Some(entry) = self.around.palette.get_mut(usize::from(*index)) {
                    *entry = Some(*rgb);
                }
            }
        }
    }

    fn name(&mut self, text: &str) {
        self.name = NAMES.into_iter().find(|name| text.starts_with(name.begins)).or(self.name);
    }

    fn capability(&mut self, text: &str) {
        let name = text.split('=').next().unwrap_or_default().to_ascii_uppercase();
        match name.as_str() {
            CAPABILITY_RGB => self.direct = Some(true),
            CAPABILITY_SMULX => self.underlines = Some(true),
            CAPABILITY_SETULC => self.underline_color = true,
            CAPABILITY_SU => (self.underlines, self.underline_color) = (Some(true), true),
            _ => {}
        }
    }

    /// Reads the setting of a direct colour and a curly underline, or the cursor's shape.
    fn setting(&mut self, text: &str) {
        if let Some(shape) = text.strip_suffix(" q") {
            self.shape = shape.parse().ok().filter(|shape| *shape <= 6);
        } else if let Some(rendition) = text.strip_suffix('m') {
            let direct = rendition.contains("38:2:") || rendition.contains("38;2;1;2;3");
            let nearest = rendition.contains("38:5:") || rendition.contains("38;5;");
            let curly = rendition.split(';').any(|word| word == "4:3");
            if direct || nearest {
                self.direct = Some(direct);
            }
            if direct || nearest || curly {
                self.underlines = Some(curly);
            }
        }
    }
}

impl Dialect {
    /// This dialect of the user's terminal, corrected by what the terminal says of itself.
    #[must_use]
    pub fn told(mut self, told: &DeviceReports) -> Dialect {
        if let Some(name) = &told.name {
            self = name.abilities.iter().fold(self, |dialect, ability| dialect.with(*ability));
            self = self.with_colors(self.colors().max(name.colors.unwrap_or(Colors::Monochrome)));
            self = self.with_notices(name.notices);
            if PROGRESS_AS_TEXT.contains(&name.begins) {
                self = self.without(Ability::Progress);
            }
            if SAVES_ERASED.contains(&name.begins) {
                self = self.with(Ability::SavesErased);
            }
        }
        match told.direct {
            Some(true) => self = self.with_colors(Colors::Direct),
            Some(false) => self = self.with_colors(self.colors().min(Colors::Indexed)),
            None => {}
        }
        let known = told.name.is_some();
        let mut set = |ability, has: Option<bool>| match has {
            Some(true) => self = self.with(ability),
            Some(false) => self = self.without(ability),
            None => {}
        };
        set(Ability::UnderlineStyles, told.underlines.filter(|has| *has || !known));
        set(Ability::UnderlineColor, told.underline_color.then_some(true));
        set(Ability::Synchronized, told.synchronized);
        set(Ability::CursorShape, told.shape.map(|_shape| true));
        // A terminal with the flags reports them before DA1.
        set(Ability::KittyKeys, told.answers.then_some(told.keyboard.is_some()));
        // Nobody says whether it has modifyOtherKeys, and many who do not call themselves xterm.
        let lacks = told
            .name
            .map_or(told.keyboard.is_some(), |name| WITHOUT_MODIFIERS.contains(&name.begins));
        set(Ability::ModifyOtherKeys, lacks.then_some(false));
        // Places in pixels are of use to those who know what a cell measures.
        let pixels = told.mouse_pixels && told.around.cell.is_some();
        set(Ability::MousePixels, told.answers.then_some(pixels));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(answers: &[Answer]) -> DeviceReports {
        let mut told = DeviceReports::default();
        answers.iter().for_each(|answer| told.note(answer));
        told
    }

    fn setting(text: &str) -> Answer {
        Answer::Setting(Some(text.to_owned()))
    }

    #[test]
    fn colors_follow_the_answers() {
        for (term, colorterm, answers, colors) in [
            ("xterm", "", vec![setting("0;38:2::1:2:3m")], Colors::Direct),
            ("xterm", "", vec![setting("0;38;2;1;2;3m")], Colors::Direct),
            ("xterm", "truecolor", vec![setting("0;38:5:16m")], Colors::Indexed),
            ("xterm", "truecolor", vec![setting("0m")], Colors::Direct),
            ("xterm-256color", "", vec![Answer::Setting(None)], Colors::Indexed),
            ("xterm", "", vec![Answer::Capability(Some("524742=38".into()))], Colors::Direct),
            ("xterm", "", vec![Answer::Version("foot(1.13)".into())], Colors::Direct),
            ("xterm", "", vec![Answer::Version("unheard of".into())], Colors::Eight),
            ("screen", "", vec![Answer::Version("tmux 3.3a".into())], Colors::Direct),
            ("xterm-256color", "", vec![Answer::Secondary(65, 6800)], Colors::Direct),
            ("xterm-256color", "", vec![Answer::Secondary(65, 100)], Colors::Indexed),
        ] {
            let dialect = Dialect::tty(term, colorterm).told(&told(&answers));
            assert_eq!(dialect.colors(), colors, "{term} {colorterm} {answers:?}");
        }
    }

    #[test]
    fn abilities_follow_the_answers() {
        use Ability::{
            EraseCharacters, Faint, Italic, KittyKeys, SavesErased, SavesErasedFromHome,
            Synchronized, UnderlineColor, UnderlineStyles,
        };
        for (term, answers, ability, has) in [
            ("xterm-256color", vec![setting("0;4:3;38:2::1:2:3m")], UnderlineStyles, true),
            ("xterm-kitty", vec![setting("0;4;38:2::1:2:3m")], UnderlineStyles, false),
            ("xterm-kitty", vec![setting("0m")], UnderlineStyles, true),
            ("xterm", vec![Answer::Capability(Some("5375".into()))], UnderlineColor, true),
            ("xterm", vec![Answer::Capability(None)], UnderlineColor, false),
            ("xterm", vec![Answer::Mode(2026, 0)], Synchronized, false),
            ("xterm", vec![Answer::Mode(2026, 2)], Synchronized, true),
            ("xterm", vec![Answer::Mode(2026, 4)], Synchronized, false),
            ("xterm-256color", vec![], SavesErased, false),
            ("xterm-256color", vec![Answer::Version("XTerm(390)".into())], SavesErased, false),
            ("xterm-256color", vec![Answer::Version("kitty(0.32)".into())], SavesErased, false),
            ("xterm-256color", vec![Answer::Secondary(65, 6800)], SavesErased, true),
            ("xterm-256color", vec![Answer::Secondary(65, 6800)], SavesErasedFromHome, false),
            (
                "xterm-256color",
                vec![Answer::Version("tmux 3.3a".into())],
                SavesErasedFromHome,
                true,
            ),
            ("tmux-256color", vec![], SavesErasedFromHome, true),
            ("alacritty", vec![], SavesErased, true),
            ("screen", vec![], SavesErased, false),
            ("vt220", vec![Answer::Version("foot(1.13)".into())], Italic, true),
            ("vt220", vec![Answer::Version("foot(1.13)".into())], Faint, true),
            ("vt100", vec![Answer::Version("foot(1.13)".into())], EraseCharacters, true),
            ("foot", vec![], KittyKeys, true),
            ("foot", vec![Answer::Primary], KittyKeys, false),
            ("xterm", vec![Answer::Keyboard(0), Answer::Primary], KittyKeys, true),
        ] {
            let dialect = Dialect::tty(term, "").told(&told(&answers));
            assert_eq!(dialect.can(ability), has, "{term} {answers:?}");
        }
    }
}
