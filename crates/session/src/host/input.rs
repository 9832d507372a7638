//! The program's input: typed octets and the terminal's answers, in one bounded queue. Viewers fill it and
//! the pty empties it, so a program that does not read blocks nothing else.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use rove_ssp::Time;

/// Octets kept for a program that does not read them: four times what a rove client ever leaves
/// unacknowledged. Beyond it typed octets are lost, as they are in a kernel's terminal whose buffer is
/// full, and counted; the session lives on.
pub const QUEUE_OCTETS_MAX: usize = 4 << 20;

/// The queue's length up to which the terminal answers queries: a program that asks without reading
/// must not push typed keys out.
const REPLY_QUEUE_OCTETS_MAX: usize = 64 << 10;

/// Octets handed to the driver at once, as many as Linux' pty line discipline holds.
pub const CHUNK_OCTETS_MAX: usize = 4096;

/// How long an `O` after an escape is held, in case the rest of an arrow key comes with the next state.
/// A split key is one send interval of the client apart; a vi user who opens a line sees it in time.
const ARROW_HOLD: Duration = Duration::from_millis(50);

const ESC: u8 = 0x1b;

/// What arrow keys are to look like, as the program asked (DECCKM).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CursorKeys {
    /// `ESC [ A`.
    Normal,
    /// `ESC O A`, which is how clients send them.
    Application,
}

/// Octets on their way into the pty.
#[derive(Debug, Default)]
pub(crate) struct PtyInput {
    queue: VecDeque<u8>,
    arrow: Arrow,
    lost: u64,
}

/// How much of `ESC O x` has passed. It lasts across states (`mosh-protocol.md` §7).
#[derive(Clone, Copy, Debug, Default)]
enum Arrow {
    #[default]
    Nothing,
    /// ESC, already queued.
    Escape,
    /// ESC and then `O`, which is not queued yet.
    Held { since: Time },
}

impl PtyInput {
    /// Queues typed octets, arrow keys in the form the program asked for.
    pub(crate) fn keys(&mut self, now: Time, octets: &[u8], form: CursorKeys) {
        let fits = QUEUE_OCTETS_MAX.saturating_sub(self.queue.len()).min(octets.len());
        self.lost += (octets.len() - fits) as u64;
        for &octet in &octets[..fits] {
            self.key(now, octet, form);
        }
    }

    fn key(&mut self, now: Time, octet: u8, form: CursorKeys) {
        match self.arrow {
            Arrow::Escape if octet == b'O' && form == CursorKeys::Normal => {
                self.arrow = Arrow::Held { since: now };
                return;
            }
            Arrow::Held { .. } if matches!(octet, b'A'..=b'D') => {
                self.queue.push_back(b'[');
                self.queue.push_back(octet);
                self.arrow = Arrow::Nothing;
                return;
            }
            Arrow::Held { .. } => self.queue.push_back(b'O'),
            _ => {}
        }
        self.queue.push_back(octet);
        self.arrow = if octet == ESC { Arrow::Escape } else { Arrow::Nothing };
    }

    /// Queues what the terminal answers. Answers are dropped while the program is far behind.
    pub(crate) fn reply(&mut self, octets: &[u8]) {
        if self.queue.len() + octets.len() <= REPLY_QUEUE_OCTETS_MAX {
            self.queue.extend(octets);
        }
    }

    /// When a held `O` goes on by itself.
    pub(crate) fn timeout(&self) -> Option<Time> {
        match self.arrow {
            Arrow::Held { since } => Some(since + ARROW_HOLD),
            _ => None,
        }
    }

    /// Lets a held `O` go if it was held long enough.
    pub(crate) fn expire(&mut self, now: Time) {
        if self.timeout().is_some_and(|time| time <= now) {
            self.release();
        }
    }

    /// Lets a held `O` go: the next key does not go on with it.
    pub(crate) fn release(&mut self) {
        if let Arrow::Held { .. } = self.arrow {
            self.queue.push_back(b'O');
        }
        self.arrow = Arrow::Nothing;
    }

    /// Moves at most [`CHUNK_OCTETS_MAX`] octets to `out`.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        let count = self.queue.len().min(CHUNK_OCTETS_MAX);
        out.extend(self.queue.drain(..count));
    }

    /// Octets waiting.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Typed octets that did not fit.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(input: &mut PtyInput) -> Vec<u8> {
        let mut all = Vec::new();
        while input.len() > 0 {
            input.take(&mut all);
        }
        all
    }

    #[test]
    fn arrow_keys() {
        use CursorKeys::{Application, Normal};
        for (states, form, expected) in [
            (&["\x1bOA"][..], Normal, "\x1b[A"),
            (&["\x1bOA"], Application, "\x1bOA"),
            (&["x\x1bOB\x1bOC\x1bODy"], Normal, "x\x1b[B\x1b[C\x1b[Dy"),
            (&["\x1bOP\x1bOE"], Normal, "\x1bOP\x1bOE"),
            (&["\x1b", "O", "A"], Normal, "\x1b[A"),
            (&["\x1b", "OA"], Application, "\x1bOA"),
            (&["\x1b\x1bOA"], Normal, "\x1b\x1b[A"),
            (&["\x1bO\x1bOA"], Normal, "\x1bO\x1b[A"),
            (&["OA", "\x1b[A"], Normal, "OA\x1b[A"),
        ] {
            let mut input = PtyInput::default();
            for state in states {
                input.keys(Time::ZERO, state.as_bytes(), form);
            }
            assert_eq!(drain(&mut input), expected.as_bytes(), "{states:?} {form:?}");
        }
    }

    #[test]
    fn an_open_line_of_vi_is_held_for_50_ms() {
        let mut input = PtyInput::default();
        input.keys(Time::ZERO, b"\x1bO", CursorKeys::Normal);
        assert_eq!(drain(&mut input), b"\x1b");
        input.expire(Time::from_millis(49));
        assert_eq!(drain(&mut input), b"");
        assert_eq!(input.timeout(), Some(Time::from_millis(50)));
        input.expire(Time::from_millis(50));
        assert_eq!(drain(&mut input), b"O");
        assert_eq!(input.timeout(), None);
    }

    #[test]
    fn a_program_that_does_not_read() {
        let mut input = PtyInput::default();
        for _ in 0..200_000 {
            input.reply(b"\x1b[0n");
        }
        assert!(input.queue.len() <= REPLY_QUEUE_OCTETS_MAX);
        input.keys(Time::ZERO, b"\x03", CursorKeys::Normal);
        assert_eq!(input.queue.back(), Some(&3));
        input.keys(Time::ZERO, &vec![b'x'; QUEUE_OCTETS_MAX], CursorKeys::Normal);
        assert_eq!(input.queue.len(), QUEUE_OCTETS_MAX);
        assert_eq!(input.lost(), REPLY_QUEUE_OCTETS_MAX as u64 + 1);
        assert_eq!(drain(&mut input).len(), QUEUE_OCTETS_MAX);
    }
}
