//! Generators of flood output, one for each kind of program that writes much. Tests and measurements feed them to
//! sessions.

use std::fmt::Write as _;

use crate::rng::Rng;

/// A way of writing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Full lines of ASCII.
    Dense,
    /// Uneven lines, as logs have.
    Text,
    /// Another rendition every few cells.
    Rendition,
    /// Ideographs, accents and emoji.
    Unicode,
    /// A word here, a word there.
    Cursor,
    /// Whole screens drawn over the alternate screen.
    Alternate,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] =
        [Kind::Dense, Kind::Text, Kind::Rendition, Kind::Unicode, Kind::Cursor, Kind::Alternate];

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Dense => "dense",
            Kind::Text => "text",
            Kind::Rendition => "sgr",
            Kind::Unicode => "unicode",
            Kind::Cursor => "cursor",
            Kind::Alternate => "altscreen",
        }
    }

    /// At least this much of it.
    pub fn octets(self, bytes: usize, seed: u64) -> Vec<u8> {
        let mut rng = Rng::new(seed);
        let mut text = String::with_capacity(bytes + 4096);
        while text.len() < bytes {
            self.push(&mut rng, &mut text);
        }
        text.into_bytes()
    }

    fn push(self, rng: &mut Rng, text: &mut String) {
        match self {
            Kind::Dense => line(rng, 79, text),
            Kind::Text => {
                let length = rng.within(5, 75);
                line(rng, length, text);
            }
            Kind::Rendition => {
                for _ in 0..14 {
                    let (color, count) = (rng.within(30, 37), rng.within(2, 8));
                    let _ = write!(text, "\x1b[{};{color}m", rng.below(2));
                    letters(rng, count, text);
                }
                text.push_str("\x1b[m\n");
            }
            Kind::Unicode => {
                for _ in 0..30 {
                    text.push_str(rng.pick(&[
                        "日", "本", "語", "é", "ü", "ß", "😀", "👍", "e\u{301}", "한", "word ",
                    ]));
                }
                text.push('\n');
            }
            Kind::Cursor => {
                let _ = write!(text, "\x1b[{};{}H", rng.within(1, 24), rng.within(1, 70));
                letters(rng, 8, text);
            }
            Kind::Alternate => {
                text.push_str("\x1b[?1049h\x1b[H");
                for _ in 0..23 {
                    line(rng, 78, text);
                }
                text.push_str("\x1b[?1049l");
            }
        }
    }
}

fn line(rng: &mut Rng, length: u64, text: &mut String) {
    letters(rng, length, text);
    text.push('\n');
}

fn letters(rng: &mut Rng, count: u64, text: &mut String) {
    text.extend((0..count).map(|_| char::from(rng.within(0x21, 0x7e) as u8)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floods_are_as_long_as_asked_for_and_come_back() {
        for kind in Kind::ALL {
            let octets = kind.octets(10_000, 7);
            assert!((10_000..14_096).contains(&octets.len()), "{kind:?}");
            assert_eq!(octets, kind.octets(10_000, 7), "{kind:?}");
        }
    }
}
