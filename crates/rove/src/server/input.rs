//! Typed octets that the terminal has no room for yet, and the interrupting keys among them.

use std::collections::VecDeque;

use rustix::process::Signal;

use crate::os::pty::{Forgotten, Interrupts};

/// Octets taken from the session that the terminal has not taken yet.
#[derive(Debug, Default)]
pub(super) struct PendingInput {
    octets: VecDeque<u8>,
    /// The first octets up to here hold no interrupting key: the wire decides how often there is a search,
    /// so none checks an octet twice.
    searched: usize,
    /// The keys of that search; other keys start a new one.
    keys: Option<Interrupts>,
}

impl PendingInput {
    /// Adds newer octets at the end.
    pub(super) fn extend(&mut self, octets: &[u8]) {
        self.octets.extend(octets);
    }

    /// Notes that the terminal took the first `count` octets.
    pub(super) fn took(&mut self, count: usize) {
        self.octets.drain(..count);
        self.searched = self.searched.saturating_sub(count);
    }

    /// Removes the interrupting keys, and where they make the terminal forget, all octets before them.
    /// Returns each signal once, however often its key came: at most three.
    pub(super) fn take_interrupts(&mut self, keys: Interrupts) -> Vec<Signal> {
        if self.keys.replace(keys) != Some(keys) {
            self.searched = 0;
        }
        let mut signals = Vec::new();
        for octet in self.octets.split_off(self.searched) {
            let Some(signal) = keys.signal(octet) else {
                self.octets.push_back(octet);
                continue;
            };
            if !signals.contains(&signal) {
                signals.push(signal);
            }
            if keys.forgets() == Forgotten::All {
                self.octets.clear();
            }
        }
        self.searched = self.octets.len();
        signals
    }

    /// How many octets wait.
    pub(super) fn len(&self) -> usize {
        self.octets.len()
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }

    /// The first octets: some, if there are any.
    pub(super) fn first(&self) -> &[u8] {
        self.octets.as_slices().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_out() {
        for (forgets, typed, left, signals) in [
            (
                Forgotten::Nothing,
                &b"ab\x03c\x1ad\x03"[..],
                &b"abcd"[..],
                &[Signal::INT, Signal::TSTP][..],
            ),
            (Forgotten::All, b"ab\x03c\x1ad\x03e", b"e", &[Signal::INT, Signal::TSTP]),
            (Forgotten::All, b"abc", b"abc", &[]),
            (Forgotten::All, b"", b"", &[]),
        ] {
            let mut waiting = PendingInput::default();
            waiting.extend(typed);
            assert_eq!(waiting.take_interrupts(Interrupts::usual(forgets)), signals, "{typed:?}");
            assert_eq!(waiting.octets, left, "{typed:?}");
        }
    }

    #[test]
    fn no_octet_is_looked_at_twice() {
        let keys = Interrupts::usual(Forgotten::Nothing);
        let mut waiting = PendingInput::default();
        waiting.extend(&vec![b'x'; 2 << 20]);
        assert_eq!(waiting.take_interrupts(keys), []);
        for round in 0..100_000 {
            assert_eq!(waiting.searched, waiting.len(), "{round}");
            waiting.extend(b"\x03\x03");
            assert_eq!(waiting.take_interrupts(keys), [Signal::INT], "{round}");
        }
        waiting.took(1 << 20);
        assert_eq!((waiting.searched, waiting.len()), (1 << 20, 1 << 20));
        // Other keys may be in what was searched.
        waiting.extend(b"\x03");
        waiting.take_interrupts(Interrupts::usual(Forgotten::All));
        assert_eq!((waiting.searched, waiting.len()), (0, 0));
    }
}
