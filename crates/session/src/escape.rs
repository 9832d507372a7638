//! The escape key: how the user talks to the client rather than to the host (`mosh-protocol.md` §8.2).

use core::fmt;

/// The key that begins a command.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Escape {
    /// Ctrl-^.
    #[default]
    Default,
    /// Another octet, 1..=127.
    Key(u8),
    /// No key: all that is typed goes to the host.
    None,
}

/// Ctrl-^.
const DEFAULT_KEY: u8 = 0x1e;

/// Keys too useful to be taken: Ctrl-C, Ctrl-D, LF, Ctrl-L, CR.
const REFUSED: [u8; 5] = [0x03, 0x04, 0x0a, 0x0c, 0x0d];

impl Escape {
    /// Reads a setting as `MOSH_ESCAPE_KEY` is read: nothing means none, one ASCII octet that key, and
    /// what cannot be used the default.
    pub fn from_setting(setting: &[u8]) -> Self {
        match *setting {
            [] => Self::None,
            [key @ 1..=127] if !REFUSED.contains(&key) => Self::Key(key),
            _ => Self::Default,
        }
    }

    /// The octet, if there is one.
    pub fn key(self) -> Option<u8> {
        match self {
            Self::Default => Some(DEFAULT_KEY),
            Self::Key(key) => Some(key),
            Self::None => None,
        }
    }
}

/// A key's name for people: `Ctrl-^`, `~`.
impl fmt::Display for Escape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key() {
            None => f.write_str("none"),
            Some(0x7f) => f.write_str("Del"),
            Some(key @ ..0x20) => write!(f, "Ctrl-{}", char::from(key + CONTROL)),
            Some(key) => write!(f, "{}", char::from(key)),
        }
    }
}

/// What a control key lies below the key it is typed with.
const CONTROL: u8 = 0x40;

/// Sorts typed octets into those for the host and commands for the client.
#[derive(Clone, Debug)]
pub struct Filter {
    key: Option<u8>,
    state: EscapeState,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum EscapeState {
    /// After CR or LF, where a printable escape key counts.
    LineStart,
    WithinLine,
    /// After the escape key.
    Command,
}

/// What one typed octet asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// Send this octet.
    Send,
    /// Nothing to send yet: show the commands.
    Help,
    /// End the session.
    Quit,
    /// Leave the session, which goes on; where there is no such thing, send this octet, the escape key, and then the
    /// one just typed.
    Detach(u8),
    /// Hand the user back their local shell.
    Suspend,
    /// Send this octet, which is the escape key.
    SendEscape(u8),
    /// No command: send this octet, the escape key, and then the one just typed.
    SendBoth(u8),
}

impl Filter {
    /// A filter at the start of a session; that is no line start yet.
    pub fn new(escape: Escape) -> Self {
        Self { key: escape.key(), state: EscapeState::WithinLine }
    }

    /// Something came that no command is made of: a function key, pasted text. Returns the escape key if it
    /// was typed before and is to be sent after all.
    pub fn pass(&mut self) -> Option<u8> {
        let state = core::mem::replace(&mut self.state, EscapeState::WithinLine);
        self.key.filter(|_| state == EscapeState::Command)
    }

    /// Takes the next octet typed.
    pub fn next(&mut self, octet: u8) -> Action {
        let state = self.state;
        self.state = match octet {
            b'\r' | b'\n' => EscapeState::LineStart,
            _ => EscapeState::WithinLine,
        };
        let Some(key) = self.key else { return Action::Send };
        if state != EscapeState::Command {
            let is_printable = (0x20..0x7f).contains(&key);
            if octet != key || (is_printable && state != EscapeState::LineStart) {
                return Action::Send;
            }
            self.state = EscapeState::Command;
            return Action::Help;
        }
        match octet {
            b'.' => Action::Quit,
            b'd' => Action::Detach(key),
            CTRL_Z => Action::Suspend,
            _ if is_pass_key(key, octet) => Action::SendEscape(key),
            _ => Action::SendBoth(key),
        }
    }
}

const CTRL_Z: u8 = 0x1a;

/// Whether `octet`, typed after the escape key, stands for the escape key itself. After Ctrl-^ that is
/// `^`; a letter counts in both cases.
fn is_pass_key(key: u8, octet: u8) -> bool {
    if key < 0x20 { octet.eq_ignore_ascii_case(&(key + CONTROL)) } else { octet == key }
}

/// The key to type after the escape key to send it, as the help names it.
pub(crate) fn pass_key(escape: Escape) -> Option<char> {
    escape.key().map(|key| char::from(if key < 0x20 { key + CONTROL } else { key }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types `keys` and writes down what comes of it: octets sent, and `<q>`, `<z>`, `<h>`.
    fn check(setting: &[u8], keys: &[u8], expected: &[u8]) {
        let mut filter = Filter::new(Escape::from_setting(setting));
        let mut done = Vec::new();
        for &octet in keys {
            match filter.next(octet) {
                Action::Send => done.push(octet),
                Action::Help => done.extend(b"<h>"),
                Action::Quit => done.extend(b"<q>"),
                Action::Detach(_) => done.extend(b"<d>"),
                Action::Suspend => done.extend(b"<z>"),
                Action::SendEscape(key) => done.push(key),
                Action::SendBoth(key) => done.extend([key, octet]),
            }
        }
        assert_eq!(done, expected, "{:?} with {setting:?}", String::from_utf8_lossy(keys));
    }

    #[test]
    fn commands() {
        let default = b"too long".as_slice();
        for (setting, keys, expected) in [
            (default, b"ls\r".as_slice(), b"ls\r".as_slice()),
            (default, b"a\x1e.", b"a<h><q>"),
            (default, b"\x1e\x1a", b"<h><z>"),
            (default, b"d\x1edd", b"d<h><d>d"),
            (default, b"\x1e^x", b"<h>\x1ex"),
            (default, b"\x1ex.", b"<h>\x1ex."),
            (default, b"\x1e\x1e.", b"<h>\x1e\x1e."),
            (b"", b"\x1e.", b"\x1e."),
            (b"~", b"a~.", b"a~."),
            (b"~", b"~.", b"~."),
            (b"~", b"a\r~.", b"a\r<h><q>"),
            (b"~", b"\n~~~.", b"\n<h>~~."),
            (b"~", b"\r~\r~.", b"\r<h>~\r<h><q>"),
            (b"\x01", b"x\x01ax", b"x<h>\x01x"),
            (b"\x01", b"\x01Ax", b"<h>\x01x"),
            (b"\x7f", b"\x7f\x7f\x7f.", b"<h>\x7f<h><q>"),
        ] {
            check(setting, keys, expected);
        }
    }

    #[test]
    fn settings() {
        for (setting, expected, name) in [
            (b"".as_slice(), Escape::None, "none"),
            (b"~", Escape::Key(b'~'), "~"),
            (b"\x1d", Escape::Key(0x1d), "Ctrl-]"),
            (b"\x7f", Escape::Key(0x7f), "Del"),
            (b"\0", Escape::Default, "Ctrl-^"),
            (b"\x80", Escape::Default, "Ctrl-^"),
            (b"ab", Escape::Default, "Ctrl-^"),
            (b"\x03", Escape::Default, "Ctrl-^"),
            (b"\x04", Escape::Default, "Ctrl-^"),
            (b"\n", Escape::Default, "Ctrl-^"),
            (b"\x0c", Escape::Default, "Ctrl-^"),
            (b"\r", Escape::Default, "Ctrl-^"),
        ] {
            let escape = Escape::from_setting(setting);
            assert_eq!(escape, expected, "{setting:?}");
            assert_eq!(escape.to_string(), name, "{setting:?}");
        }
    }
}
