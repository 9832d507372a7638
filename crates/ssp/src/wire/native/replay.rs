//! Which datagrams were opened already (`docs/wire.md` §4). It must not know what they held.

use crate::wire::Seq;

/// Numbers below the newest that are told apart; an older one counts as a replay. A datagram that late has
/// long been replaced by newer ones.
pub(crate) const WINDOW: u64 = 1024;

const WORD: u64 = u64::BITS as u64;
const WORDS: usize = (WINDOW / WORD) as usize;

/// A bit for each of the last [`WINDOW`] numbers, at the number's place modulo that.
#[derive(Debug, Default)]
pub(crate) struct Window {
    seen: [u64; WORDS],
    /// One past the newest; one past the last number fits a `u64`.
    end: u64,
}

impl Window {
    /// Whether this number has not been seen, as far as that is known.
    pub(super) fn admits(&self, seq: Seq) -> bool {
        let number = seq.get();
        let (word, bit) = place(number);
        number >= self.end || (self.end - number <= WINDOW && self.seen[word] & bit == 0)
    }

    /// Notes an authentic datagram.
    pub(super) fn note(&mut self, seq: Seq) {
        let number = seq.get();
        if number >= self.end {
            // The places of the numbers between are those of numbers that leave the window.
            for skipped in self.end..number.min(self.end.saturating_add(WINDOW)) {
                let (word, bit) = place(skipped);
                self.seen[word] &= !bit;
            }
            // All that was remembered is too old by now.
            if number - self.end >= WINDOW {
                self.seen = [0; WORDS];
            }
            self.end = number + 1;
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
    }

    /// One past the newest number seen.
    pub(super) fn end(&self) -> u64 {
        self.end
    }
}

fn place(number: u64) -> (usize, u64) {
    let index = number % WINDOW;
    ((index / WORD) as usize, 1 << (index % WORD))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn agrees_with_a_set_of_all_numbers() {
        let mut rng = Rng::new(11);
        let (mut window, mut seen, mut newest) = (Window::default(), BTreeSet::new(), 0);
        for turn in 0..200_000 {
            let back = u64::from(rng.below(if turn % 3 == 0 { 1200 } else { 8 }));
            let ahead = u64::from(match turn % 1000 {
                0 => rng.below(5000),
                _ => rng.below(5),
            });
            let number = (newest + ahead).saturating_sub(back);
            let seq = Seq::new(number);
            let expected = !seen.contains(&number) && newest.saturating_sub(number) < WINDOW;
            assert_eq!(window.admits(seq), expected || seen.is_empty(), "turn {turn}: {number}");
            if window.admits(seq) {
                window.note(seq);
                seen.insert(number);
                newest = newest.max(number);
            }
        }
    }

    #[test]
    fn the_last_number_is_the_last() {
        let mut window = Window::default();
        window.note(Seq::MAX);
        assert!(!window.admits(Seq::MAX));
        assert!(window.admits(Seq::new(Seq::MAX.get() - WINDOW + 1)));
        assert!(!window.admits(Seq::new(Seq::MAX.get() - WINDOW)));
    }
}
