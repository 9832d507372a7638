//! How two ends find out that both know more than stock's protocol (instruction field 8,
//! `mosh-protocol.md` §10). Stock skips the field, and gets nothing else that it does not know.
//! This file does not know what the extensions are.

/// What an instruction says about its sender. Stock says nothing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Announcement(u8);

impl Announcement {
    /// No word: from stock, or from an end that has nothing more to ask or to answer.
    pub const NONE: Announcement = Announcement(0);
    /// The sender understands extensions, and asks whether its peer does.
    pub const ASKS: Announcement = Announcement(1);
    /// The sender understands extensions, and knows that its peer does.
    pub const KNOWS: Announcement = Announcement(2);

    /// The octets `rove`, in the number's upper part: field 8 may be used by others, for what they like.
    const NAME: u64 = 0x726f_7665;
    /// Room for the words, some yet unspoken.
    const WORD_BITS: u32 = 4;

    /// Reads the number in the field. One that is not ours says nothing, and so do unknown words.
    pub const fn from_number(number: u64) -> Announcement {
        // Another program may use the same field for something else.
        if number >> Self::WORD_BITS != Self::NAME {
            return Announcement::NONE;
        }
        Announcement(number as u8 & (Self::ASKS.0 | Self::KNOWS.0))
    }

    /// The number for the field; `None`: the field is left out.
    pub const fn to_number(self) -> Option<u64> {
        match self.0 {
            0 => None,
            words => Some(Self::NAME << Self::WORD_BITS | words as u64),
        }
    }

    /// Whether it says all that `other` says.
    pub const fn says(self, other: Announcement) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both said together.
    pub const fn and(self, other: Announcement) -> Announcement {
        Announcement(self.0 | other.0)
    }
}

/// Instructions of a peer that says nothing, after which it is taken for stock and asked no more. A
/// rove asks with each instruction until it is answered, so even one is nearly proof.
const SILENT_INSTRUCTIONS_MAX: u32 = 16;

/// Where one end stands.
#[derive(Debug, Default)]
pub(crate) struct Extensions {
    /// All that the peer has said so far. An end that says anything understands extensions.
    heard: Announcement,
    /// The peer has asked since our last instruction.
    asked: bool,
    /// Instructions that came before the peer announced itself.
    silent: u32,
}

impl Extensions {
    /// An instruction of the peer came. Repeats and late ones do no harm.
    pub(crate) fn hear(&mut self, announcement: Announcement) {
        self.heard = self.heard.and(announcement);
        if self.heard == Announcement::NONE {
            self.silent = self.silent.saturating_add(1);
        }
        // Our answer may have been lost, so each question is answered.
        self.asked |= announcement.says(Announcement::ASKS);
    }

    /// What the next instruction is to say. An end asks until it is answered, and answers only questions: so
    /// both fall silent in the end, although any instruction may be lost.
    pub(crate) fn say(&mut self) -> Announcement {
        let is_heard = self.heard != Announcement::NONE;
        // The question costs octets in each instruction, and stock never answers.
        let hopeless = !is_heard && self.silent >= SILENT_INSTRUCTIONS_MAX;
        let asks = !self.is_mutual() && !hopeless;
        let answers = core::mem::take(&mut self.asked) || asks && is_heard;
        match (asks, answers) {
            (false, false) => Announcement::NONE,
            (true, false) => Announcement::ASKS,
            (false, true) => Announcement::KNOWS,
            (true, true) => Announcement::ASKS.and(Announcement::KNOWS),
        }
    }

    /// Whether both ends have announced themselves, and this one knows.
    pub(crate) fn is_mutual(&self) -> bool {
        self.heard.says(Announcement::KNOWS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any of the first instructions may be lost: two ends come to know each other, and then fall silent.
    #[test]
    fn ends_meet() {
        for losses in 0_u32..1 << 10 {
            let mut ends = [Extensions::default(), Extensions::default()];
            for turn in 0..20 {
                let word = ends[turn % 2].say();
                let lost = turn < 10 && losses >> turn & 1 == 1;
                if !lost {
                    ends[1 - turn % 2].hear(word);
                }
            }
            assert!(ends.iter().all(Extensions::is_mutual), "{losses:b}");
            let last = ends.map(|mut end| end.say());
            assert_eq!(last, [Announcement::NONE; 2], "{losses:b}");
        }
    }

    #[test]
    fn stock_is_asked_a_while() {
        let mut end = Extensions::default();
        for instruction in 0..2 * SILENT_INSTRUCTIONS_MAX {
            let asked = instruction < SILENT_INSTRUCTIONS_MAX;
            let word = if asked { Announcement::ASKS } else { Announcement::NONE };
            assert_eq!(end.say(), word, "{instruction}");
            end.hear(Announcement::NONE);
            assert!(!end.is_mutual());
        }
        // It was no stock after all.
        end.hear(Announcement::ASKS);
        assert_eq!(end.say(), Announcement::ASKS.and(Announcement::KNOWS));
    }

    #[test]
    fn numbers() {
        let both = Announcement::ASKS.and(Announcement::KNOWS);
        for (number, means) in [
            (0, Announcement::NONE),
            (3, Announcement::NONE),
            (u64::MAX, Announcement::NONE),
            (0x7_26f7_6650, Announcement::NONE),
            (0x7_26f7_6651, Announcement::ASKS),
            (0x7_26f7_6652, Announcement::KNOWS),
            (0x7_26f7_665f, both), // words of a later version
        ] {
            assert_eq!(Announcement::from_number(number), means, "{number:x}");
        }
        for word in [Announcement::ASKS, Announcement::KNOWS, both] {
            assert_eq!(word.to_number().map(Announcement::from_number), Some(word));
        }
        assert_eq!(Announcement::NONE.to_number(), None);
    }
}
