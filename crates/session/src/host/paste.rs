//! Who is pasting: the program takes all that comes between the brackets of a paste for pasted text, so what another
//! viewer types meanwhile waits until the paste is whole.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use rove_ssp::Time;

use crate::host::id::ViewerId;

/// How long keys wait for another's paste at most: its end may have been lost with its client.
const HOLD_MAX: Duration = Duration::from_secs(1);

/// What begins and ends a paste, but for the octet that tells the two apart and the last.
const BRACKET: &[u8] = b"\x1b[20";

/// Finds the brackets of pastes in what one viewer types.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PasteScanner {
    /// Octets of a bracket that have passed, and whether it is a closing one once that is known.
    matched: usize,
    closes: bool,
    is_open: bool,
}

impl PasteScanner {
    /// Reads on. Returns whether a paste is open then.
    pub(super) fn read(&mut self, octets: &[u8]) -> bool {
        for &octet in octets {
            self.matched = match (self.matched, octet) {
                (matched, _) if BRACKET.get(matched) == Some(&octet) => matched + 1,
                (matched, b'0' | b'1') if matched == BRACKET.len() => {
                    self.closes = octet == b'1';
                    matched + 1
                }
                (matched, b'~') if matched > BRACKET.len() => {
                    self.is_open = !self.closes;
                    0
                }
                (_, octet) => usize::from(octet == BRACKET[0]),
            };
        }
        self.is_open
    }
}

/// The paste that is open, and the keys that wait for its end.
#[derive(Debug, Default)]
pub(super) struct PasteHold {
    pasting: Option<ViewerId>,
    held: VecDeque<(ViewerId, Vec<u8>)>,
    octets: usize,
    /// When the first of them has waited long enough.
    due: Option<Time>,
}

impl PasteHold {
    /// Whether what this viewer types has to wait.
    pub(super) fn concerns(&self, from: ViewerId) -> bool {
        self.pasting.is_some_and(|pasting| pasting != from)
    }

    /// Whether keys of this viewer wait.
    pub(super) fn holds(&self, from: ViewerId) -> bool {
        self.held.iter().any(|(viewer, _)| *viewer == from)
    }

    /// Holds keys until the paste ends.
    pub(super) fn hold(&mut self, now: Time, from: ViewerId, octets: &[u8]) {
        self.due.get_or_insert(now + HOLD_MAX);
        self.octets += octets.len();
        self.held.push_back((from, octets.to_vec()));
    }

    /// What this viewer typed has left a paste open, or has not.
    pub(super) fn typed(&mut self, from: ViewerId, is_open: bool) {
        if is_open {
            self.pasting = Some(from);
        } else {
            self.forget(from);
        }
    }

    /// This viewer pastes no more.
    pub(super) fn forget(&mut self, viewer: ViewerId) {
        self.pasting.take_if(|pasting| *pasting == viewer);
    }

    /// Nobody waits for the paste that is open.
    pub(super) fn give_up(&mut self) {
        self.pasting = None;
    }

    /// The next keys that need not wait any longer.
    pub(super) fn release(&mut self, now: Time) -> Option<(ViewerId, Vec<u8>)> {
        let (from, _) = self.held.front()?;
        if self.concerns(*from) && self.due.is_some_and(|due| now < due) {
            return None;
        }
        let released = self.held.pop_front()?;
        self.octets -= released.1.len();
        if self.held.is_empty() {
            self.due = None;
        }
        Some(released)
    }

    /// When keys need not wait any longer.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }

    /// Octets that wait.
    pub(super) fn len(&self) -> usize {
        self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_any_pieces() {
        for (typed, is_open) in [
            ("ls\r", false),
            ("\x1b[200~", true),
            ("a\x1b[200~b\x1b[201", true),
            ("\x1b[200~b\x1b[201~c", false),
            ("\x1b[200~\x1b[200~\x1b[201~", false),
            ("\x1b\x1b[200~", true),
            ("\x1b[20\x1b[200~", true),
            ("\x1b[202~", false),
            ("\x1b[2000~", false),
        ] {
            let mut whole = PasteScanner::default();
            assert_eq!(whole.read(typed.as_bytes()), is_open, "{typed:?}");
            let mut pieces = PasteScanner::default();
            let last = typed.bytes().map(|octet| pieces.read(&[octet])).last();
            assert_eq!(last, Some(is_open), "{typed:?} octet by octet");
        }
    }
}
