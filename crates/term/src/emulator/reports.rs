//! Answers queries at once. No answer ever holds text that a program stored (threats row 5): titles come back empty,
//! and names in answers are constants of this file.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use crate::emulator::Emulator;
use crate::emulator::csi::functions::Function as F;
use crate::emulator::profile::Functions;
use crate::parser::{Params, Sequence};
use crate::screen::encode;
use crate::screen::modes::{CursorShape, Guard};

/// The answer to XTVERSION.
const VERSION: &[u8] = concat!("\x1bP>|rove(", env!("CARGO_PKG_VERSION"), ")\x1b\\").as_bytes();
/// DECRPTUI: a unit id nobody tracks, as xterm answers.
const UNIT_ID: &[u8] = b"\x1bP!|00000000\x1b\\";

/// Terminfo names XTGETTCAP answers, and their values.
const CAPABILITIES: [(&str, &str); 22] = [
    ("Co", "256"),
    ("colors", "256"),
    ("TN", "xterm-256color"),
    ("name", "xterm-256color"),
    ("RGB", "8/8/8"),
    ("Tc", ""),
    ("Su", ""),
    ("Smulx", "\x1b[4:%p1%dm"),
    ("Setulc", "\x1b[58:2::%p1%{65536}%/%d:%p1%{256}%/%{255}%&%d:%p1%{255}%&%dm"),
    ("Sync", "\x1b[?2026%?%p1%{1}%-%tl%eh%;"),
    ("Ss", "\x1b[%p1%d q"),
    ("Se", "\x1b[ q"),
    ("Cs", "\x1b]12;%p1%s\x07"),
    ("Cr", "\x1b]112\x07"),
    ("Ms", "\x1b]52;%p1%s;%p2%s\x07"),
    ("setrgbf", "\x1b[38:2:%p1%d:%p2%d:%p3%dm"),
    ("setrgbb", "\x1b[48:2:%p1%d:%p2%d:%p3%dm"),
    ("Smol", "\x1b[53m"),
    ("BE", "\x1b[?2004h"),
    ("BD", "\x1b[?2004l"),
    ("PS", "\x1b[200~"),
    ("PE", "\x1b[201~"),
];

/// Keys XTGETTCAP answers as xterm does: names of terminfo and of termcap, and what the key sends.
const KEYS: [(&str, &str, &str); 23] = [
    ("kcuu1", "ku", "\x1b[A"),
    ("kcud1", "kd", "\x1b[B"),
    ("kcuf1", "kr", "\x1b[C"),
    ("kcub1", "kl", "\x1b[D"),
    ("khome", "kh", "\x1b[H"),
    ("kend", "@7", "\x1b[F"),
    ("kich1", "kI", "\x1b[2~"),
    ("kdch1", "kD", "\x1b[3~"),
    ("kpp", "kP", "\x1b[5~"),
    ("knp", "kN", "\x1b[6~"),
    ("kcbt", "kB", "\x1b[Z"),
    ("kf1", "k1", "\x1bOP"),
    ("kf2", "k2", "\x1bOQ"),
    ("kf3", "k3", "\x1bOR"),
    ("kf4", "k4", "\x1bOS"),
    ("kf5", "k5", "\x1b[15~"),
    ("kf6", "k6", "\x1b[17~"),
    ("kf7", "k7", "\x1b[18~"),
    ("kf8", "k8", "\x1b[19~"),
    ("kf9", "k9", "\x1b[20~"),
    ("kf10", "k;", "\x1b[21~"),
    ("kf11", "F1", "\x1b[23~"),
    ("kf12", "F2", "\x1b[24~"),
];
/// Those of them that DECCKM changes.
const CURSOR_KEYS: [&str; 6] = ["kcuu1", "kcud1", "kcuf1", "kcub1", "khome", "kend"];

/// The answers to XTQMODKEYS for xterm's resources from modifyKeyboard on. Programs can change only modifyOtherKeys
/// (4); 65535 is xterm's number for none.
const KEY_MODIFIERS: [u16; 9] = [0, 2, 2, 0, 0, 0, 65535, 65535, 65535];

impl Emulator<'_> {
    pub(crate) fn perform_report(&mut self, function: F, params: &Params) {
        let first = params.get(0);
        // Stock answers every number.
        let stock = self.profile.functions == Functions::Stock;
        match function {
            F::Attributes if first == 0 || stock => self.reply(self.profile.attributes),
            F::SecondaryAttributes if first == 0 || stock => {
                self.reply(self.profile.secondary_attributes)
            }
            F::TertiaryAttributes if first == 0 => self.reply(UNIT_ID),
            F::Report => self.report_status(first),
            F::ReportPrivate => self.report_private_status(params),
            F::QueryMode => {
                let state = self.ansi_mode_state(first) as u8;
                self.reply(format!("\x1b[{first};{state}$y").as_bytes());
            }
            F::QueryPrivate => {
                let state = self.private_mode_state(first) as u8;
                self.reply(format!("\x1b[?{first};{state}$y").as_bytes());
            }
            F::Version if first == 0 => self.reply(VERSION),
            F::QueryKeyboard => {
                let flags = self.state.modes.keyboard_flags;
                self.reply(format!("\x1b[?{flags}u").as_bytes());
            }
            F::QueryKeyModifiers => {
                let told = KEY_MODIFIERS.get(usize::from(first)).copied();
                let own = (first == 4).then(|| self.state.modes.modify_other_keys.into());
                if let Some(value) = own.or(told) {
                    self.reply(format!("\x1b[>{first};{value}m").as_bytes());
                }
            }
            // Of a VT100 only.
            F::TerminalParameters if first <= 1 && self.state.modes.level == 1 => {
                self.reply(format!("\x1b[{};1;1;128;128;1;0x", first + 2).as_bytes());
            }
            F::Window => self.window(params),
            F::ChecksumRectangle => self.checksum_rectangle(params),
            F::QueryRendition => self.report_rectangle_rendition(params),
            F::PresentationState => self.report_presentation(first),
            _ => {}
        }
    }

    /// The cursor's place as DSR reports it, from 1: in origin mode within the margins. Stock mosh reports
    /// it on the screen always.
    pub(crate) fn reported_place(&self) -> (u16, u16) {
        let cursor = self.state.cursor;
        let margins = self.state.margins;
        if self.state.modes.origin
            && self.profile.functions == crate::emulator::profile::Functions::All
        {
            let row = cursor.row.saturating_sub(margins.top);
            return (row + 1, cursor.col.saturating_sub(margins.left) + 1);
        }
        (cursor.row + 1, cursor.col + 1)
    }

    fn report_status(&mut self, what: u16) {
        match what {
            5 => self.reply(b"\x1b[0n"),
            6 => {
                let (row, col) = self.reported_place();
                self.reply(format!("\x1b[{row};{col}R").as_bytes());
            }
            _ => {}
        }
    }

    fn report_private_status(&mut self, params: &Params) {
        let level = self.state.modes.level;
        let constant: &[u8] = match params.get(0) {
            6 => {
                let (row, col) = self.reported_place();
                // The page came with the VT300.
                let page = if level >= 3 { ";1" } else { "" };
                return self.reply(format!("\x1b[?{row};{col}{page}R").as_bytes());
            }
            5 => b"\x1b[?0n",
            15 if level >= 2 => b"\x1b[?13n",
            25 if level >= 2 => b"\x1b[?20n",
            26 => match level {
                1 => return,
                2 => b"\x1b[?27;1n",
                3 => b"\x1b[?27;1;0n",
                _ => b"\x1b[?27;1;0;0n",
            },
            53 | 55 if level >= 3 => b"\x1b[?50n",
            56 if level >= 3 => b"\x1b[?57;0n",
            62 if level >= 4 => b"\x1b[0000*{",
            63 if level >= 4 => {
                let id = params.get(1);
                return self.reply(format!("\x1bP{id}!~0000\x1b\\").as_bytes());
            }
            75 if level >= 4 => b"\x1b[?70n",
            85 if level >= 4 => b"\x1b[?83n",
            996 => return self.reply(encode::scheme_report(self.around.scheme())),
            _ => return,
        };
        self.reply(constant);
    }

    /// DCS: DECRQSS and XTGETTCAP.
    pub(crate) fn device_control(&mut self, sequence: &Sequence, data: &[u8]) {
        match (sequence.marker, sequence.intermediate, sequence.last) {
            (0, b'$', b'q') => self.report_setting(data),
            (0, b'+', b'q') => self.report_capabilities(data),
            (0, b'$', b't') if self.state.modes.level >= 3 => {
                self.restore_presentation(sequence.params.get(0), data);
            }
            _ => {}
        }
    }

    /// DECRQSS.
    fn report_setting(&mut self, what: &[u8]) {
        let margins = self.state.margins;
        let modes = &self.state.modes;
        let answer = match what {
            b"m" => format!("{}m", encode::describe(&self.state.pen.style)),
            b"r" => format!("{};{}r", margins.top + 1, margins.bottom),
            b"s" if modes.level >= 4 => format!("{};{}s", margins.left + 1, margins.right),
            b"t" => format!("{}t", self.state.size.rows),
            b"$|" => format!("{}$|", self.state.size.cols),
            b"*|" => format!("{}*|", self.state.size.rows),
            // A VT100 has no levels.
            b"\"p" if modes.level == 1 => return,
            // Answers are 7-bit always.
            b"\"p" => format!("6{};1\"p", modes.level),
            // An ISO guarded area is not protected by DECSCA.
            b"\"q" => {
                let protected = self.state.pen.protected && modes.guard == Guard::Dec;
                format!("{}\"q", u8::from(protected))
            }
            b" q" => format!("{} q", cursor_style(modes.cursor_shape, modes.cursor_blink)),
            b"*x" => format!("{}*x", modes.rectangle_extent),
            _ => return self.reply(b"\x1bP0$r\x1b\\"),
        };
        self.reply(format!("\x1bP1$r{answer}\x1b\\").as_bytes());
    }

    /// XTGETTCAP: one answer for each known name, and a refusal at the first unknown one.
    fn report_capabilities(&mut self, names: &[u8]) {
        for name in names.split(|byte| *byte == b';') {
            let Some(value) = self.capability(name) else {
                return self.reply(b"\x1bP0+r\x1b\\");
            };
            let assign = if value.is_empty() { String::new() } else { format!("={}", hex(&value)) };
            // The name in the digits of the question: one of the constants above, in either case.
            let name = String::from_utf8_lossy(name);
            self.reply(format!("\x1bP1+r{name}{assign}\x1b\\").as_bytes());
        }
    }

    /// Decodes a name in hexadecimal.
    fn capability(&self, name: &[u8]) -> Option<String> {
        let name = unhex(name)?;
        if let Some((_, value)) = CAPABILITIES.iter().find(|(known, _)| *known == name) {
            return Some((*value).to_owned());
        }
        let (key, _, sent) = KEYS.iter().find(|(info, cap, _)| *info == name || *cap == name)?;
        let application = self.state.modes.application_cursor && CURSOR_KEYS.contains(key);
        Some(if application { sent.replace('[', "O") } else { (*sent).to_owned() })
    }
}

/// The parameter of DECSCUSR for a shape.
fn cursor_style(shape: CursorShape, blink: bool) -> u8 {
    let steady = match shape {
        CursorShape::Default if !blink => return 0,
        CursorShape::Default | CursorShape::Block => 2,
        CursorShape::Underline => 4,
        CursorShape::Bar => 6,
    };
    steady - u8::from(blink)
}

/// The ASCII that pairs of digits stand for.
fn unhex(digits: &[u8]) -> Option<String> {
    let digit = |octet: u8| char::from(octet).to_digit(16);
    let pair = |pair: &[u8]| match *pair {
        [high, low] => char::from_u32(digit(high)? << 4 | digit(low)?).filter(char::is_ascii),
        _ => None,
    };
    digits.chunks(2).map(pair).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02X}")).collect()
}
