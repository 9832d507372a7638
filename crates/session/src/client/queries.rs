//! Decides when to ask the user's terminal what it is, and how long to wait for its answers.
//! `rove-term` reads them.

use alloc::vec::Vec;
use core::time::Duration;

use rove_ssp::Time;
use rove_term::Dialect;
use rove_term::probe::{CursorReport, DeviceReports, Listener};

/// How long answers are expected. A terminal answers in milliseconds; one behind a network in its round
/// trip. What comes later is still taken for an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// How long a picture waits for the place of the cursor.
const CURSOR_WAIT: Duration = Duration::from_millis(100);

/// How long a lone escape may be the beginning of an answer: no longer than a person notices.
const ESCAPE_WAIT: Duration = Duration::from_millis(50);

/// How long the rest of what no key begins with may take.
const REST_WAIT: Duration = Duration::from_secs(1);

/// How long after that answers are still told from keys. A terminal that leaves a question unanswered
/// leaves it for good, and what looks like its answer then is not one.
const LATE_WAIT: Duration = Duration::from_secs(10);

/// Keys begin like answers in this many octets: `ESC [ 4` is the beginning of End and of a size.
const KEY_OCTETS: usize = 3;

/// The one conversation with the user's terminal.
#[derive(Clone, Debug)]
pub(crate) struct TerminalQueries {
    listener: Listener,
    /// When the last question was asked.
    asked: Option<Time>,
    /// When it was asked where the cursor is.
    cursor_asked: Option<Time>,
    /// A picture waits for the answer.
    awaits_cursor: bool,
    held_since: Time,
}

impl TerminalQueries {
    pub(crate) fn new(tty: &Dialect) -> Self {
        Self {
            listener: Listener::new(tty),
            asked: None,
            cursor_asked: None,
            awaits_cursor: false,
            held_since: Time::ZERO,
        }
    }

    /// Appends questions that are not asked yet.
    pub(crate) fn ask(&mut self, now: Time, out: &mut Vec<u8>) {
        let before = out.len();
        self.listener.take_questions(out);
        if out.len() > before {
            self.asked = Some(now);
        }
    }

    /// Appends the question where the cursor is.
    pub(crate) fn ask_cursor(&mut self, now: Time, out: &mut Vec<u8>) {
        self.listener.ask_cursor(out);
        self.cursor_asked = Some(now);
        self.awaits_cursor = true;
    }

    /// Until when the answer to that may come; `None` once it has, or will not.
    pub(crate) fn cursor_due(&self) -> Option<Time> {
        let awaits = self.awaits_cursor && self.listener.is_expecting_cursor();
        Some(self.cursor_asked.filter(|_| awaits)? + CURSOR_WAIT)
    }

    /// The answer, if it has come. Asked once.
    pub(crate) fn take_cursor(&mut self) -> Option<CursorReport> {
        self.listener.take_cursor()
    }

    /// Takes what came from the terminal, and returns what of it was typed.
    pub(crate) fn read(&mut self, now: Time, octets: &[u8]) -> Vec<u8> {
        let mut keys = Vec::with_capacity(octets.len());
        self.listener.read(octets, &mut keys);
        self.held_since = now;
        keys
    }

    /// Does what has become due, and returns what was typed after all.
    pub(crate) fn tick(&mut self, now: Time) -> Vec<u8> {
        let mut keys = Vec::new();
        if self.rest_due().is_some_and(|time| time <= now) {
            self.listener.release(&mut keys);
        }
        if self.answers_due().is_some_and(|time| time <= now) {
            self.listener.give_up();
        }
        if self.cursor_due().is_some_and(|time| time <= now) {
            self.awaits_cursor = false;
        }
        if self.cursor_late().is_some_and(|time| time <= now) {
            self.listener.give_up_cursor();
        }
        if self.late_due().is_some_and(|time| time <= now) {
            self.listener.forget();
        }
        keys
    }

    /// When [`tick`](Self::tick) has something to do.
    pub(crate) fn due(&self) -> Option<Time> {
        let cursor = self.cursor_due().or(self.cursor_late());
        let answers = [self.answers_due(), cursor, self.late_due()];
        answers.into_iter().chain([self.rest_due()]).flatten().min()
    }

    /// All that the terminal has said.
    pub(crate) fn told(&self) -> &DeviceReports {
        self.listener.told()
    }

    /// Whether more answers are expected soon.
    pub(crate) fn is_expecting(&self) -> bool {
        self.listener.is_expecting()
    }

    fn rest_due(&self) -> Option<Time> {
        let wait = match self.listener.held() {
            0 => return None,
            _ if self.listener.holds_key() => ESCAPE_WAIT,
            1..=KEY_OCTETS => ESCAPE_WAIT,
            _ => REST_WAIT,
        };
        Some(self.held_since + wait)
    }

    /// How long answers are expected, while they are.
    pub(crate) fn answers_due(&self) -> Option<Time> {
        Some(self.asked.filter(|_| self.listener.is_expecting())? + ANSWER_WAIT)
    }

    /// Until when a part of an answer may come that no picture waits for.
    fn cursor_late(&self) -> Option<Time> {
        Some(self.cursor_asked.filter(|_| self.listener.is_expecting_cursor())? + ANSWER_WAIT)
    }

    fn late_due(&self) -> Option<Time> {
        let asked = self.asked.max(self.cursor_asked);
        Some(asked.filter(|_| self.listener.is_owed())? + ANSWER_WAIT + LATE_WAIT)
    }
}
