//! The person at a simulated terminal: types on and on, now and then a password or a line to a program that does not
//! echo as the line discipline does, and now and then changes the size of the window.

use std::time::Duration;

use rove_session::{Client, LineMode};
use rove_ssp::Time;
use rove_term::{Screen, Size};

use crate::rng::{Chance, Rng};
use crate::tty::Tty;

/// A person.
#[derive(Debug)]
pub struct User {
    rng: Rng,
    next_key: Option<Time>,
    next_resize: Option<Time>,
    resizes: Chance,
    /// A size that the window has, and when it is told.
    untold: Option<(Time, Size)>,
    told_late: u64,
    errands: Errands,
    errand: Errand,
    shows_status: bool,
    typed: Vec<u8>,
    keys: u64,
    secrets: u64,
}

/// Whether a person starts programs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Errands {
    /// Never: the keys are those of a line.
    None,
    /// Now and then, as [`crate::host`] has them.
    Some,
    /// The same, and one whose question for a password ends by itself.
    Hasty,
}

/// What the person is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Errand {
    None,
    /// They wait for the program's question, for this many pauses at most.
    Waits {
        patience: u32,
    },
    /// The same for a question that ends by itself: before they see it they type nothing.
    Awaits {
        patience: u32,
    },
    /// They type a password, of which these letters are left.
    Secret {
        left: u32,
    },
    /// The same as long as the question is there.
    Brief {
        left: u32,
    },
    /// They type to a program that writes other letters; these are left.
    Contrary {
        left: u32,
    },
}

impl User {
    /// A user who begins to type at once. Before each key the size changes with this chance.
    pub fn new(rng: Rng, start: Time, resizes: Chance, errands: Errands) -> User {
        User {
            rng,
            next_key: Some(start + MS),
            next_resize: None,
            resizes,
            untold: None,
            told_late: 0,
            errands,
            errand: Errand::None,
            shows_status: false,
            typed: Vec::new(),
            keys: 0,
            secrets: 0,
        }
    }

    /// A user who waits for commands.
    pub fn silent() -> User {
        let user = User::new(Rng::new(0), Time::ZERO, Chance::NEVER, Errands::None);
        User { next_key: None, ..user }
    }

    /// Takes the status panel away, if it is shown.
    pub fn hide_status(&self, now: Time, client: &mut Client, tty: &mut Tty) {
        tty.type_keys(now, client, SHOW_STATUS);
        tty.type_keys(now, client, HIDE_STATUS.as_bytes());
    }

    /// Stops typing.
    pub fn stop(&mut self) {
        self.next_key = None;
        self.next_resize = None;
    }

    /// Types this at once.
    pub fn type_now(&mut self, now: Time, client: &mut Client, tty: &mut Tty, keys: &[u8]) {
        self.typed.extend_from_slice(keys);
        self.keys += 1;
        tty.type_keys(now, client, keys);
    }

    /// All that was typed.
    pub fn typed(&self) -> &[u8] {
        &self.typed
    }

    /// Keys typed; one may be several octets.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Sizes of the window that the client learnt late.
    pub fn told_late(&self) -> u64 {
        self.told_late
    }

    /// Letters of passwords typed.
    pub fn secrets(&self) -> u64 {
        self.secrets
    }

    /// The client has wiped this many octets, those after the first `sent`, and has told the person. Later ones may be
    /// typed already: the client holds those that may begin an answer.
    pub(crate) fn forget(&mut self, sent: u64, octets: usize) {
        if octets == 0 {
            return;
        }
        let sent = sent as usize;
        self.typed.drain(sent..sent + octets);
        self.errand = Errand::None;
    }

    /// When they act next by themselves.
    pub fn next(&self) -> Option<Time> {
        let told = self.untold.map(|(at, _)| at);
        [self.next_key, self.next_resize, told].into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn act(&mut self, now: Time, client: &mut Client, tty: &mut Tty) {
        if self.next_resize.is_some_and(|at| at <= now) {
            self.next_resize = None;
            let size =
                Size::clamped(self.rng.within(5, 50) as i64, self.rng.within(10, 140) as i64);
            tty.resize(size);
            let is_late = self.untold.is_some() || self.rng.happens(Chance::percent(30));
            let wait = if is_late { self.rng.span_within(MS, TOLD_WITHIN) } else { Duration::ZERO };
            let at = self.untold.map_or(now + wait, |(at, _)| at);
            self.untold = Some((at, size));
            self.told_late += u64::from(is_late);
        }
        if let Some((_, size)) = self.untold.take_if(|(at, _)| *at <= now) {
            tty.tells_size();
            client.handle_resize(now, size);
        }
        if self.next_key.is_some_and(|at| at <= now) {
            // What the program reads is the same with a look at the status and without.
            let looks = self.errands != Errands::None && self.rng.happens(Chance::percent(1));
            if looks && !self.shows_status {
                tty.type_keys(now, client, SHOW_STATUS);
                self.shows_status = true;
            } else if let Some(key) = self.choose_key(tty.screen(), client.view().line()) {
                if core::mem::take(&mut self.shows_status) && key.starts_with(HIDE_STATUS) {
                    tty.type_keys(now, client, HIDE_STATUS.as_bytes());
                }
                self.type_now(now, client, tty, key.as_bytes());
            }
            let pause = self.rng.span_within(KEY_PAUSE.0, KEY_PAUSE.1);
            self.next_key = Some(now + pause);
            if self.next_resize.is_none() && self.rng.happens(self.resizes) {
                self.next_resize = Some(now + self.rng.span_within(MS, pause));
            }
        }
    }

    /// The next key; `None` while they wait for a question.
    fn choose_key(&mut self, screen: &Screen, line: Option<LineMode>) -> Option<&'static str> {
        let (key, errand) = match self.errand {
            Errand::None => return Some(self.begin_errand()),
            Errand::Waits { patience } => {
                let asked = screen.row_text(screen.cursor().row).contains(QUESTION);
                let left = self.rng.within(4, 10) as u32;
                let waits = !asked && patience > 0;
                match waits {
                    true => (None, Errand::Waits { patience: patience - 1 }),
                    false => (None, Errand::Secret { left }),
                }
            }
            Errand::Awaits { patience: 0 } => (None, Errand::None),
            Errand::Awaits { patience } if line != Some(LineMode::Hidden) => {
                (None, Errand::Awaits { patience: patience - 1 })
            }
            Errand::Awaits { .. } => (None, Errand::Brief { left: self.rng.within(4, 30) as u32 }),
            Errand::Secret { left: 0 } => (Some("\r"), Errand::None),
            Errand::Secret { left } => {
                self.secrets += 1;
                let slip = self.rng.happens(Chance::percent(10));
                let key = if slip { "\x7f" } else { self.rng.pick(&SECRET_KEYS) };
                (Some(key), Errand::Secret { left: left - 1 })
            }
            Errand::Brief { left } => match line == Some(LineMode::Hidden) && left > 0 {
                true => {
                    self.secrets += 1;
                    (Some(self.rng.pick(&SECRET_KEYS)), Errand::Brief { left: left - 1 })
                }
                // Another one reads now, or they do not know the password after all.
                false => (None, Errand::None),
            },
            Errand::Contrary { left: 0 } => (Some("q"), Errand::None),
            Errand::Contrary { left } => {
                (Some(self.rng.pick(&["a", "a", "b", " "])), Errand::Contrary { left: left - 1 })
            }
        };
        self.errand = errand;
        key
    }

    /// A key of a line, or the line that starts a program.
    fn begin_errand(&mut self) -> &'static str {
        if self.errands == Errands::None || !self.rng.happens(Chance::percent(2)) {
            return self.rng.pick(&KEYS);
        }
        let command = match self.errands {
            Errands::Hasty => self.rng.pick(&["su\r", "su\r", "pw\r", "vi\r", "to\r", "to\r"]),
            _ => self.rng.pick(&["su\r", "pw\r", "vi\r"]),
        };
        self.errand = match command {
            "to\r" => Errand::Awaits { patience: 10 },
            "vi\r" => Errand::Contrary { left: self.rng.within(3, 12) as u32 },
            // A hasty one types the password ahead.
            _ => match self.rng.happens(Chance::percent(50)) {
                true => Errand::Secret { left: self.rng.within(4, 10) as u32 },
                false => Errand::Waits { patience: 30 },
            },
        };
        command
    }
}

const MS: Duration = Duration::from_millis(1);

/// So late tmux tells of a new size at the most.
const TOLD_WITHIN: Duration = Duration::from_millis(250);

/// Five keys a second, at the pace of a person.
const KEY_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(350));

/// What shows the status panel, until another key is typed ...
const SHOW_STATUS: &[u8] = b"\x1es";
/// ... of which this one is not sent.
const HIDE_STATUS: &str = "s";

/// Typed text: no key that the client interprets (Ctrl-^) or that the server rewrites (arrow keys), so that the
/// program must read exactly this.
const KEYS: [&str; 20] = [
    "a", "b", "q", "z", "A", "7", " ", " ", "-", "/", "\r", "\r", "\x7f", "\x03", "\x0c", "\t",
    "é", "漢", "😀", "ls -la\r",
];

/// The longest of them, in octets; a driver that obeys `wants_keys` exceeds the limit by no more.
pub(crate) const KEY_OCTETS_MAX: u64 = 8;

/// Keys of passwords, which [`crate::host`] knows as well.
const SECRET_KEYS: [&str; 4] = ["Z", "J", "V", "X"];

/// The end of the question for a password.
const QUESTION: &str = "assword:";
