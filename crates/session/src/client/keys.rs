//! Typed keys on their way from the terminal to the user stream: reads them in the terminal's form,
//! finds commands to the client, and writes them in the form that the program asked for.
//!
//! `rove-term` knows how keys look; this file knows the escape key and how long to wait.

use alloc::vec::Vec;
use core::time::Duration;

use rove_ssp::Time;
use rove_term::{Keyboard, KeyboardProtocol, Typed};

use crate::escape::{Action, Commands, Escape, Filter, ServerState};

/// How long a lone escape may be the beginning of a sequence: no longer than a person notices.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);

/// How long the rest of what no key begins with may take: a packet of another remote shell, if the
/// terminal is behind one.
const REST_WAIT: Duration = Duration::from_millis(250);

/// Keys begin like sequences in this many octets: `ESC [` is Alt with a bracket.
const KEY_OCTETS: usize = 2;

/// Pasted text comes without such pauses, unless a connection stood still between the terminal and us. After
/// one, what comes like a key is a key: the closing bracket was lost, and the escape key must work again.
const PASTE_PAUSE_MAX: Duration = Duration::from_secs(5);

/// What comes so soon after pasted text was pasted with it: no person is as fast. Some terminals let the closing
/// bracket through inside of what they paste, and what follows must not be a command to the client.
const PASTE_TRAIL: Duration = Duration::from_millis(100);

/// How long after pasted text input that looks like keys is taken to be pasted too, however quickly it comes: key
/// repeat and mouse reports also come without pauses, and must not keep the escape key from working.
const PASTE_TRAIL_OF_KEYS_MAX: Duration = Duration::from_secs(1);

/// Octets of the longest key. What a paste goes on with comes in more of them, or with the closing bracket.
const KEY_OCTETS_MAX: usize = 16;

/// What ends a paste.
const PASTE_END: &[u8] = b"\x1b[201~";

/// Ctrl-L, which also repaints the user's terminal.
const CTRL_L: u8 = 0x0c;

/// A step that the client takes because of typed keys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// Send these octets.
    Typed(Vec<u8>),
    /// Send these octets, which nobody typed: a key was let go.
    Untyped(Vec<u8>),
    /// Paint everything anew.
    Repaint,
    /// Show the commands.
    Help,
    /// Show the way out while nothing answers.
    HelpStuck,
    /// Show the status panel.
    ShowStatus,
    /// Take it away.
    HideStatus,
    /// End the session.
    Quit,
    /// Leave the session, which goes on; else send this octet, the escape key, and then the key.
    Detach(u8),
    /// Hand the user back their local shell.
    Suspend,
}

/// The way of what is typed.
#[derive(Clone, Debug)]
pub(crate) struct KeyInput {
    filter: Filter,
    keyboard: Keyboard,
    /// When the terminal last sent something.
    read_at: Time,
    /// When pasted text last came, or a read right after it that was too long for a key.
    pasted_at: Option<Time>,
    /// The same, or when something that looks like a key came right after.
    trail_at: Option<Time>,
    taken: Taken,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
struct Taken {
    /// The keys for the host, in the form of a terminal without any protocol. Commands to the client are not
    /// among them.
    plain: Vec<u8>,
    /// Octets of the step that comes next.
    sent: Vec<u8>,
    steps: Vec<Step>,
}

impl KeyInput {
    pub(crate) fn new(escape: Escape, commands: Commands) -> Self {
        Self {
            filter: Filter::new(escape, commands),
            keyboard: Keyboard::default(),
            read_at: Time::ZERO,
            pasted_at: None,
            trail_at: None,
            taken: Taken::default(),
        }
    }

    /// Takes what came from the terminal in one read.
    pub(crate) fn read(&mut self, now: Time, octets: &[u8], manner: &KeyboardProtocol) {
        let paused = now.since(self.read_at) > PASTE_PAUSE_MAX;
        if self.keyboard.is_pasting() && paused && is_like_a_key(octets) {
            self.keyboard.end_paste();
        }
        let is_trail = self.trail_at.is_some_and(|at| now.since(at) < PASTE_TRAIL);
        if is_trail && !is_like_a_key(octets) {
            self.pasted_at = Some(now);
        }
        let lasts = self.pasted_at.is_some_and(|at| now.since(at) < PASTE_TRAIL_OF_KEYS_MAX);
        if is_trail && lasts {
            self.trail_at = Some(now);
        }
        self.read_at = now;
        let Self { filter, keyboard, pasted_at, trail_at, taken, .. } = self;
        keyboard.read(octets, manner, &mut |typed| match typed {
            Typed::Pasted(octets) => {
                (*pasted_at, *trail_at) = (Some(now), Some(now));
                taken.pass(octets, octets, filter, manner);
            }
            typed if trail_at.is_some_and(|at| now.since(at) < PASTE_TRAIL) => {
                taken.take_pasted(typed, filter, manner);
            }
            typed => taken.take(typed, filter, manner),
        });
    }

    /// The terminal was not read between the last read and now. That is no pause in what it sends, so a paste that
    /// was under way goes on.
    pub(crate) fn was_put_off(&mut self, now: Time) {
        let gap = now.since(self.read_at);
        if self.trail_at == Some(self.read_at) {
            self.pasted_at = self.pasted_at.map(|at| at + gap);
            self.trail_at = Some(now);
        }
        self.read_at = now;
    }

    /// The server answers, or does not any more.
    pub(crate) fn set_server(&mut self, server: ServerState, manner: &KeyboardProtocol) {
        if let Some(held) = self.filter.set_server(server) {
            self.taken.write_escape(held, manner);
        }
    }

    /// Whether it answers, as last said.
    pub(crate) fn server(&self) -> ServerState {
        self.filter.server()
    }

    /// The rest of what is held will not come.
    pub(crate) fn release(&mut self, manner: &KeyboardProtocol) {
        let Self { filter, keyboard, taken, .. } = self;
        keyboard.release(manner, &mut |typed| taken.take(typed, filter, manner));
    }

    /// When to [`release`](Self::release).
    pub(crate) fn due(&self) -> Option<Time> {
        let wait = match self.keyboard.held() {
            0 => return None,
            1..=KEY_OCTETS => ESCAPE_WAIT,
            _ => REST_WAIT,
        };
        Some(self.read_at + wait)
    }

    /// Returns the keys for the host since the last call, in the form of terminals without any protocol, and the
    /// steps to take.
    pub(crate) fn take(&mut self) -> (Vec<u8>, Vec<Step>) {
        let mut taken = core::mem::take(&mut self.taken);
        taken.send();
        (taken.plain, taken.steps)
    }
}

fn is_like_a_key(octets: &[u8]) -> bool {
    let closes = octets.windows(PASTE_END.len()).any(|window| window == PASTE_END);
    octets.len() <= KEY_OCTETS_MAX && !closes
}

impl Taken {
    fn take(&mut self, typed: Typed<'_>, filter: &mut Filter, manner: &KeyboardProtocol) {
        match typed {
            Typed::Octets(octets) => {
                for octet in octets {
                    self.take_octet(*octet, &[*octet], filter, manner);
                }
            }
            Typed::Key { plain: &[octet], sent } => self.take_octet(octet, sent, filter, manner),
            typed => self.take_pasted(typed, filter, manner),
        }
    }

    /// Takes a key whose octets for the program are `sent`.
    fn take_octet(
        &mut self,
        octet: u8,
        sent: &[u8],
        filter: &mut Filter,
        manner: &KeyboardProtocol,
    ) {
        if let Some(held) = filter.unhold_before(octet) {
            self.write_escape(held, manner);
        }
        let action = filter.next(octet);
        self.act(action, octet, sent, manner);
    }

    /// The same for octets that look like keys and were pasted.
    fn take_pasted(&mut self, typed: Typed<'_>, filter: &mut Filter, manner: &KeyboardProtocol) {
        match typed {
            Typed::Key { plain: [], sent } => self.step(Step::Untyped(sent.to_vec())),
            Typed::Key { plain, sent } => self.pass(plain, sent, filter, manner),
            Typed::Octets(octets) | Typed::Pasted(octets) => {
                self.pass(octets, octets, filter, manner);
            }
        }
    }

    /// Takes what no command is made of.
    fn pass(&mut self, plain: &[u8], sent: &[u8], filter: &mut Filter, manner: &KeyboardProtocol) {
        if let Some(escape) = filter.pass() {
            self.write_escape(escape, manner);
        }
        self.plain.extend_from_slice(plain);
        self.sent.extend_from_slice(sent);
    }

    /// Does what the filter made of `octet`, whose octets for the program are `sent`.
    fn act(&mut self, action: Action, octet: u8, sent: &[u8], manner: &KeyboardProtocol) {
        match action {
            Action::Send => {
                self.plain.push(octet);
                self.sent.extend_from_slice(sent);
                if octet == CTRL_L {
                    self.step(Step::Repaint);
                }
            }
            Action::SendEscape(escape) => self.write_escape(escape, manner),
            Action::SendBoth(escape) => {
                self.write_escape(escape, manner);
                self.plain.push(octet);
                self.sent.extend_from_slice(sent);
            }
            Action::Help => self.step(Step::Help),
            Action::Detach(escape) => self.step(Step::Detach(escape)),
            Action::HelpStuck => self.step(Step::HelpStuck),
            Action::ShowStatus => self.step(Step::ShowStatus),
            Action::HideStatus => self.step(Step::HideStatus),
            Action::Suspend => self.step(Step::Suspend),
            Action::Quit => self.step(Step::Quit),
        }
    }

    /// The escape key is sent after all.
    fn write_escape(&mut self, escape: u8, manner: &KeyboardProtocol) {
        self.plain.push(escape);
        Keyboard::write_octet(escape, manner, &mut self.sent);
    }

    /// Sends the keys so far before the next step.
    fn send(&mut self) {
        if !self.sent.is_empty() {
            self.steps.push(Step::Typed(core::mem::take(&mut self.sent)));
        }
    }

    fn step(&mut self, step: Step) {
        self.send();
        self.steps.push(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rove_term::{Ability, Dialect, Size, Terminal, TerminalProperties};

    fn manner(program: &str, tty: &Dialect) -> KeyboardProtocol {
        let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
        terminal.advance(program.as_bytes());
        KeyboardProtocol::of(terminal.screen().modes(), tty, &TerminalProperties::default())
    }

    /// Steps as text: the octets sent, and `<h>`, `<q>`, `<z>`, `<l>`; `(...)` for what nobody typed.
    fn taken(typing: &mut KeyInput) -> String {
        let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
        let steps = typing.take().1.into_iter().map(|step| match step {
            Step::Typed(octets) => text(octets),
            Step::Untyped(octets) => format!("({})", text(octets)),
            Step::Repaint => "<l>".to_owned(),
            Step::Help => "<h>".to_owned(),
            Step::HelpStuck => "<s>".to_owned(),
            Step::ShowStatus => "<o>".to_owned(),
            Step::HideStatus => "<c>".to_owned(),
            Step::Quit => "<q>".to_owned(),
            Step::Detach(_) => "<d>".to_owned(),
            Step::Suspend => "<z>".to_owned(),
        });
        steps.collect()
    }

    #[test]
    fn the_escape_key_in_each_protocol() {
        let kitty = Dialect::tty("xterm", "").with(Ability::KittyKeys);
        let plain = Dialect::tty("xterm", "").without(Ability::ModifyOtherKeys);
        for (program, tty, typed, want) in [
            ("", plain, "a\x1e.", "a<h><q>"),
            ("\x1b[>1u", kitty, "a\x1b[94;5u.", "a<h><q>"),
            ("\x1b[>1u", kitty, "\x1b[54;6u\x1b[122;5u", "<h><z>"),
            ("\x1b[>1u", kitty, "\x1b[94;5u^x", "<h>\x1b[94;5ux"),
            ("\x1b[>1u", kitty, "\x1b[94;5ux", "<h>\x1b[94;5ux"),
            ("\x1b[>1u", kitty, "\x1b[94;5u\x1b[A", "<h>\x1b[94;5u\x1b[A"),
            ("\x1b[>31u", kitty, "\x1b[54:94;6u\x1b[54;6:3u\x1b[46u", "<h>(\x1b[54;6:3u)<q>"),
            (
                "\x1b[>31u",
                kitty,
                "\x1b[57442;5u\x1b[94;5u\x1b[94;5:3u",
                "(\x1b[57442;5u)<h>(\x1b[94;5:3u)",
            ),
            ("\x1b[>1u", plain, "\x1e\x1ax", "<h><z>x"),
            ("\x1b[>1u", plain, "\x1e\x18", "<h>\x1b[94;5u\x1b[120;5u"),
            ("\x1b[>4;2m", kitty, "\x1b[54:94;6u.", "<h><q>"),
            ("\x1b[>1u", kitty, "\x1b[108;5ux", "\x1b[108;5u<l>x"),
            (
                "\x1b[?2004h",
                plain,
                "\x1b[200~\x1e.\x0c\x1b[201~\x1e.",
                "\x1b[200~\x1e.\x0c\x1b[201~\x1e.",
            ),
            ("\x1b[?2004h", plain, "\x1e\x1b[200~.", "<h>\x1e\x1b[200~."),
        ] {
            let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
            typing.read(Time::ZERO, typed.as_bytes(), &manner(program, &tty));
            assert_eq!(taken(&mut typing), want, "{typed:?} for {program:?}");
        }
    }

    /// Predictions are made from the keys that the host gets, which commands to the client are not.
    #[test]
    fn what_is_told_is_what_is_sent() {
        let manner = manner("\x1b[?2004h", &Dialect::tty("xterm", ""));
        for (typed, told) in [
            ("ab\x1e", "ab"),
            ("\x1e\x1ac", "c"),
            ("\x1e^c", "\x1ec"),
            ("\x1ex", "\x1ex"),
            ("\x1e\x1b[A", "\x1e\x1b[A"),
            ("\x1e\x1b[200~x\x1b[201~", "\x1e\x1b[200~x\x1b[201~"),
        ] {
            let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
            typing.read(Time::ZERO, typed.as_bytes(), &manner);
            assert_eq!(typing.take().0, told.as_bytes(), "{typed:?}");
        }
    }

    #[test]
    fn nothing_is_held_for_long() {
        let plain = manner("\x1b[>1u", &Dialect::tty("vt220", ""));
        for (typed, wait, want) in [
            ("a", None, "a"),
            ("a\x1b", Some(50), "a\x1b[27u"),
            ("\x1b[", Some(50), "\x1b[91;3u"),
            ("\x1b[1;5", Some(250), "\x1b[1;5"),
        ] {
            let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
            typing.read(Time::from_millis(7), typed.as_bytes(), &plain);
            assert_eq!(typing.due(), wait.map(|ms| Time::from_millis(7 + ms)), "{typed:?}");
            typing.release(&plain);
            assert_eq!(taken(&mut typing), want);
            assert_eq!(typing.due(), None);
        }
    }

    /// What a paste goes on with after an outage is no command.
    #[test]
    fn a_paste_that_stood_still() {
        let manner = manner("\x1b[?2004h", &Dialect::tty("xterm", ""));
        for rest in
            ["\x1e.\x1b[201~", "\x1e.and so on and so on", "\x1e.and so on and so on\x1b[201~"]
        {
            let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
            typing.read(Time::ZERO, b"\x1b[200~some", &manner);
            typing.read(Time::from_millis(60_000), rest.as_bytes(), &manner);
            assert_eq!(taken(&mut typing), format!("\x1b[200~some{rest}"));
        }
    }

    /// The closing bracket inside of what is pasted: what follows at once is no command, in however many reads it
    /// comes, and in no protocol. Keys typed after it are.
    #[test]
    fn a_paste_that_closes_itself() {
        let kitty = Dialect::tty("xterm", "").with(Ability::KittyKeys);
        for (program, tty, key) in [
            ("\x1b[?2004h", Dialect::tty("xterm", ""), "\x1e"),
            ("\x1b[?2004h\x1b[>1u", kitty, "\x1b[94;5u"),
        ] {
            let manner = manner(program, &tty);
            let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
            let mut now = Time::ZERO;
            for (wait_ms, typed, want) in [
                (0, format!("\x1b[200~a\x1b[201~{key}.b"), format!("\x1b[200~a\x1b[201~{key}.b")),
                (99, format!("{key}."), format!("{key}.")),
                (99, key.to_owned(), key.to_owned()),
                (99, ".".to_owned(), ".".to_owned()),
                (99, "\x1b[201~".to_owned(), "\x1b[201~".to_owned()),
                (100, format!("{key}."), "<h><q>".to_owned()),
            ] {
                now = now + Duration::from_millis(wait_ms);
                typing.read(now, typed.as_bytes(), &manner);
                assert_eq!(taken(&mut typing), want, "{typed:?} for {program:?}");
            }
        }
    }

    /// Key repeat and mouse reports after a paste do not keep the escape key from working for more than a second.
    #[test]
    fn keys_that_repeat_after_a_paste() {
        let manner = manner("\x1b[?2004h\x1b[?1003h\x1b[?1006h", &Dialect::tty("xterm", ""));
        for repeated in ["a", "\x1b[A", "\x1b[<35;120;40M"] {
            let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
            typing.read(Time::ZERO, b"\x1b[200~pasted\x1b[201~", &manner);
            for ms in (20..=5000).step_by(20) {
                typing.read(Time::from_millis(ms), repeated.as_bytes(), &manner);
                typing.take();
                let mut typing = typing.clone();
                typing.read(Time::from_millis(ms + 20), b"\x1e.", &manner);
                let want = if ms < 1080 { "\x1e." } else { "<h><q>" };
                // The last key that counts comes before 1 s, and what is pasted at most 100 ms after it.
                if !(1000..1080).contains(&ms) {
                    assert_eq!(taken(&mut typing), want, "{repeated:?} for {ms} ms");
                }
            }
        }
    }

    /// A paste that closes itself and goes on in long reads may take as long as it likes.
    #[test]
    fn a_long_paste_that_closes_itself() {
        let manner = manner("\x1b[?2004h", &Dialect::tty("xterm", ""));
        let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
        typing.read(Time::ZERO, b"\x1b[200~pasted\x1b[201~", &manner);
        for ms in (50..=5000).step_by(50) {
            typing.read(Time::from_millis(ms), b"more of what was pasted", &manner);
        }
        typing.take();
        typing.read(Time::from_millis(5050), b"\x1e.", &manner);
        assert_eq!(taken(&mut typing), "\x1e.");
    }

    /// Nobody read the terminal for a while: the rest of a paste in it is pasted. A pause of the terminal's own
    /// counts as before.
    #[test]
    fn a_paste_that_was_put_off() {
        let manner = manner("\x1b[?2004h", &Dialect::tty("xterm", ""));
        for pasted in ["\x1b[200~some", "\x1b[200~some\x1b[201~", "\x1b[200~so\x1b[201~\x1b[201~me"]
        {
            let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
            typing.read(Time::ZERO, pasted.as_bytes(), &manner);
            typing.was_put_off(Time::from_millis(10_000));
            typing.read(Time::from_millis(10_050), b"\x1e.", &manner);
            assert_eq!(taken(&mut typing), format!("{pasted}\x1e."));
            typing.read(Time::from_millis(16_000), b"\x1e.", &manner);
            assert_eq!(taken(&mut typing), "<h><q>", "after {pasted:?}");
        }
        // What was typed last before the pause was no part of the paste.
        let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
        typing.read(Time::ZERO, b"\x1b[200~some\x1b[201~", &manner);
        typing.read(Time::from_millis(200), b"a", &manner);
        typing.was_put_off(Time::from_millis(10_000));
        typing.read(Time::from_millis(10_000), b"\x1e.", &manner);
        assert_eq!(taken(&mut typing), "\x1b[200~some\x1b[201~a<h><q>");
    }

    /// Letting go of a key right after a paste types nothing.
    #[test]
    fn a_key_that_is_let_go_after_a_paste() {
        let kitty = Dialect::tty("xterm", "").with(Ability::KittyKeys);
        let manner = manner("\x1b[?2004h\x1b[>31u", &kitty);
        let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
        typing.read(Time::ZERO, b"\x1b[200~a\x1b[201~\x1b[118;5:3u", &manner);
        assert_eq!(taken(&mut typing), "\x1b[200~a\x1b[201~(\x1b[118;5:3u)");
    }

    /// A bracket that nobody closes does not keep the user from leaving.
    #[test]
    fn a_paste_that_never_ends() {
        let manner = manner("\x1b[?2004h", &Dialect::tty("xterm", ""));
        let mut typing = KeyInput::new(Escape::Default, Commands::Rove);
        let mut now = Time::ZERO;
        for (wait_ms, typed, want) in
            [(0, "\x1b[200~a", "\x1b[200~a"), (5000, "\x1e.", "\x1e."), (5001, "\x1e.", "<h><q>")]
        {
            now = now + Duration::from_millis(wait_ms);
            typing.read(now, typed.as_bytes(), &manner);
            assert_eq!(taken(&mut typing), want);
        }
    }
}
