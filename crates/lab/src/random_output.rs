//! Random octets as hostile or broken programs write them: every control function of a stock terminal
//! (`mosh-protocol.md` §6) and many others with invalid parameters, between text of all widths and octets that are
//! not UTF-8. A seed makes one stream.

use crate::rng::{Chance, Rng};

/// A stream in pieces that make sense alone, so that a failing one can be made shorter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RandomOutput {
    /// In order.
    pub pieces: Vec<Vec<u8>>,
}

impl RandomOutput {
    /// The stream of a seed.
    pub fn new(seed: u64) -> RandomOutput {
        let mut rng = Rng::new(seed);
        let count = rng.within(1, PIECES_MAX);
        // Streams of one theme go deeper than a mix of everything.
        let favourite = rng.below(2 * KINDS.len() as u64) as usize;
        let pieces = (0..count).map(|_| {
            let kind = match KINDS.get(favourite) {
                Some(kind) if rng.happens(Chance::percent(50)) => kind,
                _ => &KINDS[rng.below(KINDS.len() as u64) as usize],
            };
            kind(&mut rng)
        });
        RandomOutput { pieces: pieces.collect() }
    }

    /// All of it.
    pub fn octets(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    /// The shortest stream found by leaving out pieces that still `fails`; makes at most `tries` tries.
    pub fn shrink(
        mut self,
        tries: usize,
        mut fails: impl FnMut(&RandomOutput) -> bool,
    ) -> RandomOutput {
        let mut left = tries;
        let mut span = self.pieces.len().div_ceil(2);
        while span > 0 {
            let mut start = 0;
            while start < self.pieces.len() && left > 0 {
                let mut fewer = self.clone();
                fewer.pieces.drain(start..(start + span).min(fewer.pieces.len()));
                left -= 1;
                if !fewer.pieces.is_empty() && fails(&fewer) {
                    self = fewer;
                } else {
                    start += span;
                }
            }
            span /= 2;
        }
        self
    }
}

/// Text counts thrice: controls need something to work on.
const KINDS: &[fn(&mut Rng) -> Vec<u8>] = &[
    ascii,
    ascii,
    ascii,
    odd_text,
    any_text,
    broken_text,
    control,
    high_control,
    escape,
    motion,
    motion,
    edit,
    edit,
    rendition,
    mode,
    string,
    sequence,
];

fn ascii(rng: &mut Rng) -> Vec<u8> {
    let length = match rng.below(8) {
        0 => rng.within(20, 60),
        _ => rng.within(1, 8),
    };
    (0..length).map(|_| rng.within(0x20, 0x7e) as u8).collect()
}

/// Characters at the borders of their class.
fn odd_text(rng: &mut Rng) -> Vec<u8> {
    const ODD: &str = "éß\u{a0}\u{ad}\u{300}\u{301}\u{20dd}\u{fe0f}\u{fe0e}\u{200b}\u{200d}\u{200e}\
        \u{2028}\u{feff}\u{fffd}\u{ffff}日本한\u{1100}\u{1160}\u{11a8}Ａｱ😀👨\u{1f3fd}\u{1f1e9}\u{1f1ea}❤☎\u{e000}\
        \u{10ffff}\u{378}\u{627}\u{e33}\u{e34}\u{0903}Ωя…│█\u{1d173}\u{e0001}\u{2060}\
        \u{3000}〱\u{302a}\u{a9fe}\u{ffa0}";
    let odd: Vec<char> = ODD.chars().collect();
    let mut text = String::new();
    for _ in 0..rng.within(1, 5) {
        text.push(rng.pick(&odd));
        if rng.below(4) == 0 {
            text.push('a');
        }
    }
    text.into_bytes()
}

/// Any character at all.
fn any_text(rng: &mut Rng) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..rng.within(1, 4) {
        let bound = rng.pick(&[0x300, 0x3000, 0x1_0000, 0x2_0000, 0x3_0000]);
        text.extend(char::from_u32(rng.within(0xa0, bound) as u32));
    }
    text.into_bytes()
}

fn broken_text(rng: &mut Rng) -> Vec<u8> {
    const BROKEN: &[&[u8]] = &[
        b"\x80",
        b"\xbf\xbf",
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xc3",
        b"\xe2\x82",
        b"\xe0\x80\x80",
        b"\xe0\x9f",
        b"\xed\xa0\x80",
        b"\xed\xb0",
        b"\xf0\x9f\x98",
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xfe",
        b"\xff",
        b"\xe2\x28\xa1",
        b"\xf0\x28",
        b"\xc3\xc3\xa9",
        b"\xe6\x97\xe6\x97\xa5",
    ];
    let mut octets = rng.pick(BROKEN).to_vec();
    if rng.below(2) == 0 {
        octets.extend((0..rng.within(1, 4)).map(|_| rng.within(0x80, 0xff) as u8));
    }
    octets
}

fn control(rng: &mut Rng) -> Vec<u8> {
    const KNOWN: &[u8] = b"\x07\x08\x09\x0a\x0b\x0c\x0d\x0a\x0d\x09\x08";
    let one = |rng: &mut Rng| match rng.below(4) {
        0 => rng.pick(b"\x00\x01\x05\x0e\x0f\x11\x13\x18\x1a\x1c\x1f\x7f"),
        _ => rng.pick(KNOWN),
    };
    (0..rng.within(1, 4)).map(|_| one(rng)).collect()
}

/// C1 controls as characters.
fn high_control(rng: &mut Rng) -> Vec<u8> {
    let code = match rng.below(3) {
        0 => rng.within(0x80, 0x9f) as u8,
        _ => rng.pick(b"\x84\x85\x88\x8d\x84\x85\x8d\x9b"),
    };
    let mut octets = vec![0xc2, code];
    match code {
        0x9b => octets.extend(sequence(rng).get(2..).unwrap_or_default()),
        0x90 | 0x98 | 0x9d..=0x9f => octets.extend(b"junk\x07\x1b\\"),
        _ => {}
    }
    octets
}

fn escape(rng: &mut Rng) -> Vec<u8> {
    const KNOWN: &[&str] = &["7", "8", "7", "8", "D", "E", "H", "M", "c", "#8", "M", "D"];
    const OTHERS: &[&str] = &[
        "=", ">", "(0", "(B", ")A", "n", "o", "#3", "#5", "%G", "%@", "6", "9", "~", "\\", " F",
        "Z", "N",
    ];
    let words = if rng.below(3) == 0 { OTHERS } else { KNOWN };
    let word = rng.pick(words);
    // A full reset leaves nothing to compare; now and then is enough.
    let word = if word == "c" && rng.below(3) > 0 { "E" } else { word };
    format!("\x1b{word}").into_bytes()
}

/// A parameter that fits a small screen, mostly.
fn number(rng: &mut Rng) -> String {
    match rng.below(12) {
        0 => String::new(),
        1 => "0".into(),
        2 => rng
            .pick(&["65535", "65536", "2147483648", "9223372036854775808", "99999999999999999999"])
            .into(),
        3 => rng.pick(&["00000000003", "1:2", "-1", "+3", "1?", "007"]).into(),
        4 => rng.within(10, 100).to_string(),
        5 => "0".repeat(rng.within(95, 105) as usize) + "2",
        _ => rng.within(1, 21).to_string(),
    }
}

fn tame(rng: &mut Rng) -> String {
    match rng.below(6) {
        0 => number(rng),
        _ => rng.within(0, 20).to_string(),
    }
}

fn motion(rng: &mut Rng) -> Vec<u8> {
    match rng.pick(b"HHHHHfABCDG`dIZrg") {
        last @ (b'H' | b'f' | b'r') => {
            let (row, col) = (tame(rng), tame(rng));
            format!("\x1b[{row};{col}{}", char::from(last)).into_bytes()
        }
        last => format!("\x1b[{}{}", tame(rng), char::from(last)).into_bytes(),
    }
}

fn edit(rng: &mut Rng) -> Vec<u8> {
    let last = char::from(rng.pick(b"@PXKJLMSTKJLM"));
    format!("\x1b[{}{last}", tame(rng)).into_bytes()
}

fn rendition(rng: &mut Rng) -> Vec<u8> {
    const WORDS: &str = "0 1 2 3 4 5 6 7 8 9 21 22 23 24 25 27 28 29 31 37 38 39 42 47 48 49 53 \
        58;5;3 90 97 100 107 38;5;1 38;5;9 38;5;200 48;5;7 48;5;16 48;5;255 \
        38;2;1;2;3 48;2;255;0;9 38;5;256 38;2;300;0;0 38;5 38;2;1;2 38;7 48;5; 4:3 \
        38:5:1 38:2::1:2:3 65536 99 38;5;-1 10 39;49";
    let known: Vec<&str> = std::iter::once("").chain(WORDS.split(' ')).collect();
    let words: Vec<&str> = (0..rng.within(1, 4)).map(|_| rng.pick(&known)).collect();
    format!("\x1b[{}m", words.join(";")).into_bytes()
}

fn mode(rng: &mut Rng) -> Vec<u8> {
    const PRIVATE: &[&str] = &[
        "1", "3", "5", "6", "6", "7", "7", "7", "25", "9", "1000", "1001", "1002", "1003", "1004",
        "1005", "1006", "1007", "1015", "2004", "47", "1047", "1049", "12", "45", "69", "1016",
        "2026", "0", "65536", "",
    ];
    let last = char::from(rng.pick(b"hl"));
    let text = match rng.below(5) {
        0 => format!("\x1b[4{last}"),
        1 => format!("\x1b[{}{last}", number(rng)),
        2 => format!("\x1b[?{};{}{last}", rng.pick(PRIVATE), rng.pick(PRIVATE)),
        _ => format!("\x1b[?{}{last}", rng.pick(PRIVATE)),
    };
    text.into_bytes()
}

fn string(rng: &mut Rng) -> Vec<u8> {
    const OPENERS: &[&str] = &[
        "]0;", "]1;", "]2;", "];", "]", "]52;c;", "]52;p;", "]52;c", "]52;;", "]4;1;", "]8;;",
        "]10;", "]01;", "]02;", "]002;", "P", "P1$", "_", "^", "X", "]a;", "]2", "]-1;", "]112",
    ];
    const ENDS: &[&str] = &["\x07", "\x07", "\x1b\\", "\u{9c}", "\x1bE", "\x18", "\x1a", ""];
    let mut octets = format!("\x1b{}", rng.pick(OPENERS)).into_bytes();
    match rng.below(8) {
        0 => {}
        1 => octets.extend(b"aGVsbG8="),
        2 => octets.extend(odd_text(rng)),
        3 => octets.extend(broken_text(rng)),
        4 => octets.extend(b"x".repeat(rng.within(250, 270) as usize)),
        5 => octets.extend(b"a\rb\tc\x7fd\xc2\x85e"),
        _ => octets.extend(ascii(rng)),
    }
    octets.extend(rng.pick(ENDS).as_bytes());
    octets
}

/// Any control sequence, well formed or not.
fn sequence(rng: &mut Rng) -> Vec<u8> {
    let mut text = String::from("\x1b[");
    text += rng.pick(&["", "", "", "", "?", ">", "=", "<", "!", "??"]);
    let count = if rng.below(20) == 0 { 40 } else { rng.below(4) };
    let numbers: Vec<String> = (0..count).map(|_| number(rng)).collect();
    text += &numbers.join(";");
    text +=
        rng.pick(&["", "", "", "", "", "", "!", " ", "$", "?", "\n", "\x08", "\x18", "\x1b[", "é"]);
    text.push(char::from(match rng.below(3) {
        0 => rng.within(0x40, 0x7e) as u8,
        1 => rng.pick(b"cnphlmgr"),
        _ => rng.pick(b"@ABCDHIJKLMPSTXZ`bdf"),
    }));
    text.into_bytes()
}

/// Pieces in one stream.
const PIECES_MAX: u64 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_stream() {
        for seed in 0..100 {
            assert_eq!(RandomOutput::new(seed), RandomOutput::new(seed));
            assert!(!RandomOutput::new(seed).pieces.is_empty());
        }
        assert_ne!(RandomOutput::new(1), RandomOutput::new(2));
    }

    #[test]
    fn shrinking_keeps_what_fails() {
        let output = RandomOutput { pieces: (0..20).map(|n| vec![n]).collect() };
        let short = output.shrink(1000, |b| b.octets().contains(&7) && b.octets().contains(&13));
        assert_eq!(short.octets(), [7, 13]);
    }
}
