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

/// Which commands the escape key begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Commands {
    /// Stock mosh's.
    Stock,
    /// Those, and ours.
    Rove,
}

impl Commands {
    /// Of the program of this name.
    pub(crate) fn of(name: &str) -> Self {
        if name == "mosh" { Self::Stock } else { Self::Rove }
    }
}

/// Sorts typed octets into those for the host and commands for the client.
#[derive(Clone, Debug)]
pub struct Filter {
    key: Option<u8>,
    commands: Commands,
    state: EscapeState,
    server: ServerState,
    panel: Panel,
}

/// Whether the status panel is over the picture.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Panel {
    Open,
    Closed,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum EscapeState {
    /// After CR or LF, where a printable escape key counts.
    LineStart,
    WithinLine,
    /// After the escape key.
    Command,
    /// After Enter and `~`, while the server is silent.
    Stuck,
}

/// Whether the server answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ServerState {
    /// It does, or nothing says that it does not.
    Answers,
    /// The user is told that it does not.
    Silent,
}

/// What one typed octet asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Action {
    /// Send this octet.
    Send,
    /// Nothing to send yet: show the commands.
    Help,
    /// Nothing to send yet: show the way out of a session that stands still.
    HelpStuck,
    /// Nothing to send: show the status panel.
    ShowStatus,
    /// Nothing to send: take it away. All else that is typed does so too.
    HideStatus,
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
    pub fn new(escape: Escape, commands: Commands) -> Self {
        let (state, server) = (EscapeState::WithinLine, ServerState::Answers);
        Self { key: escape.key(), commands, state, server, panel: Panel::Closed }
    }

    /// The server answers, or does not any more. While it is silent, `~.` after Enter ends the session, as in ssh, and
    /// `~d` leaves it: nobody who is stuck has to know our key. While it answers these keys are the program's, which
    /// may be an ssh. Who has chosen a key, or none, knows it. Returns what was held and is to be sent after all.
    pub(crate) fn set_server(&mut self, server: ServerState) -> Option<u8> {
        self.server = server;
        match server {
            ServerState::Answers => self.unhold(),
            ServerState::Silent => None,
        }
    }

    /// Whether the server answers, as last said.
    pub(crate) fn server(&self) -> ServerState {
        self.server
    }

    /// The held octet to send before `octet`, which ends no command.
    pub(crate) fn unhold_before(&mut self, octet: u8) -> Option<u8> {
        if matches!(octet, b'.' | b'd') { None } else { self.unhold() }
    }

    fn unhold(&mut self) -> Option<u8> {
        if self.state != EscapeState::Stuck {
            return None;
        }
        self.state = EscapeState::WithinLine;
        Some(SSH_KEY)
    }

    /// Something came that no command is made of: a function key, pasted text. Returns the escape key if it
    /// was typed before and is to be sent after all.
    pub fn pass(&mut self) -> Option<u8> {
        let state = core::mem::replace(&mut self.state, EscapeState::WithinLine);
        self.panel = Panel::Closed;
        match state {
            EscapeState::Command => self.key,
            EscapeState::Stuck => Some(SSH_KEY),
            EscapeState::LineStart | EscapeState::WithinLine => None,
        }
    }

    /// Takes the next octet typed.
    pub fn next(&mut self, octet: u8) -> Action {
        let panel = core::mem::replace(&mut self.panel, Panel::Closed);
        let state = self.state;
        if panel == Panel::Open && octet == STATUS_KEY && state != EscapeState::Command {
            return Action::HideStatus;
        }
        self.state = match octet {
            b'\r' | b'\n' => EscapeState::LineStart,
            _ => EscapeState::WithinLine,
        };
        let Some(key) = self.key else { return Action::Send };
        match (state, octet) {
            (EscapeState::Stuck, b'.') => return Action::Quit,
            (EscapeState::Stuck, b'd') => return Action::Detach(SSH_KEY),
            _ => {}
        }
        let is_stuck = self.server == ServerState::Silent && key == DEFAULT_KEY;
        if is_stuck && state == EscapeState::LineStart && octet == SSH_KEY {
            self.state = EscapeState::Stuck;
            return Action::HelpStuck;
        }
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
            STATUS_KEY if self.commands == Commands::Rove => {
                self.panel = Panel::Open;
                Action::ShowStatus
            }
            _ if is_pass_key(key, octet) => Action::SendEscape(key),
            _ => Action::SendBoth(key),
        }
    }
}

const CTRL_Z: u8 = 0x1a;

/// Shows and hides the status panel.
const STATUS_KEY: u8 = b's';

/// What ssh's own commands begin with.
const SSH_KEY: u8 = b'~';

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
        check_with(ServerState::Answers, setting, keys, expected);
    }

    fn check_with(server: ServerState, setting: &[u8], keys: &[u8], expected: &[u8]) {
        let mut filter = Filter::new(Escape::from_setting(setting), Commands::Rove);
        assert_eq!(filter.set_server(server), None);
        let mut done = Vec::new();
        for &octet in keys {
            done.extend(filter.unhold_before(octet));
            match filter.next(octet) {
                Action::Send => done.push(octet),
                Action::Help => done.extend(b"<h>"),
                Action::HelpStuck => done.extend(b"<s>"),
                Action::ShowStatus => done.extend(b"<o>"),
                Action::HideStatus => done.extend(b"<c>"),
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
            (default, b"as\x1essa", b"as<h><o><c>a"),
            (default, b"\x1essss", b"<h><o><c>ss"),
            (default, b"\x1esass", b"<h><o>ass"),
            (default, b"\x1es\x1es.", b"<h><o><h><o>."),
            (default, b"\x1es\x1e.", b"<h><o><h><q>"),
            (default, b"s\r\x1essx", b"s\r<h><o><c>x"),
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
    fn stock_has_no_status() {
        let mut filter = Filter::new(Escape::Default, Commands::Stock);
        assert_eq!(filter.next(0x1e), Action::Help);
        assert_eq!(filter.next(b's'), Action::SendBoth(0x1e));
        assert_eq!(filter.next(b's'), Action::Send);
    }

    /// ssh's own way out of a session that stands still, which is the program's while it does not.
    #[test]
    fn ways_out_while_nothing_answers() {
        let default = b"too long".as_slice();
        for (server, setting, keys, expected) in [
            (ServerState::Answers, default, b"\r~.".as_slice(), b"\r~.".as_slice()),
            (ServerState::Silent, default, b"\r~.", b"\r<s><q>"),
            (ServerState::Silent, default, b"\r~d", b"\r<s><d>"),
            (ServerState::Answers, default, b"\r~d", b"\r~d"),
            (ServerState::Silent, default, b"~.", b"~."),
            (ServerState::Silent, default, b"a~.", b"a~."),
            (ServerState::Silent, default, b"\r~x~.", b"\r<s>~x~."),
            (ServerState::Silent, default, b"\r~~.", b"\r<s>~~."),
            (ServerState::Silent, default, b"\r~\r~.", b"\r<s>~\r<s><q>"),
            (ServerState::Silent, default, b"\r~\x1e.", b"\r<s>~<h><q>"),
            (ServerState::Silent, b"", b"\r~.", b"\r~."),
            (ServerState::Silent, b"\x01", b"\r~.", b"\r~."),
            (ServerState::Silent, b"~", b"\r~.", b"\r<h><q>"),
        ] {
            check_with(server, setting, keys, expected);
        }
        let mut filter = Filter::new(Escape::Default, Commands::Rove);
        filter.set_server(ServerState::Silent);
        filter.next(b'\r');
        filter.next(b'~');
        assert_eq!(filter.set_server(ServerState::Answers), Some(b'~'));
        assert_eq!((filter.unhold_before(b'.'), filter.next(b'.')), (None, Action::Send));
        let mut filter = Filter::new(Escape::Default, Commands::Rove);
        filter.set_server(ServerState::Silent);
        filter.next(b'\r');
        filter.next(b'~');
        assert_eq!((filter.pass(), filter.pass()), (Some(b'~'), None));
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
