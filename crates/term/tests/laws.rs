//! Laws that hold for all input: how the stream is cut does not matter, a snapshot is all there is, and no
//! screen is ever malformed.

use rove_term::{Dialect, Screen, Size, Terminal};

/// A generator whose stream is fixed: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// How many of the pieces, from the first, are text and line ends.
const TEXT_PIECES: usize = 21;

const PIECES: [&str; 96] = [
    "a",
    "bc",
    "hello world ",
    "\u{e9}\u{e8}",
    "\u{4e16}",
    "\u{754c}\u{4e16}",
    "e\u{301}",
    "\u{301}",
    "\u{1f468}\u{200d}\u{1f469}",
    "\u{1f1e9}\u{1f1ea}",
    "\u{1f1e9}",
    "\u{2764}\u{fe0f}",
    "\u{fe0f}",
    "\u{200d}",
    "\u{1112}\u{1161}\u{11ab}",
    "\u{ad}",
    "\u{e01}\u{e33}",
    "\u{915}\u{94d}\u{937}",
    "\r",
    "\n",
    "\r\n",
    "\t",
    "\x08",
    "\x08\x08\x08",
    "\x0b",
    "\x07",
    "\x0e",
    "\x0f",
    "\x1b7",
    "\x1b8",
    "\x1bD",
    "\x1bM",
    "\x1bE",
    "\x1bH",
    "\x1bc",
    "\x1b#8",
    "\x1b#6",
    "\x1b#5",
    "\x1b#3",
    "\x1b6",
    "\x1b9",
    "\x1b(0",
    "\x1b(B",
    "\x1bN",
    "\x1b[m",
    "\x1b[1;31m",
    "\x1b[4:3;58:2::1:2:3m",
    "\x1b[44m",
    "\x1b[H",
    "\x1b[3;7H",
    "\x1b[6;20H",
    "\x1b[2;19H",
    "\x1b[A",
    "\x1b[5B",
    "\x1b[3C",
    "\x1b[2D",
    "\x1b[J",
    "\x1b[1J",
    "\x1b[2J",
    "\x1b[K",
    "\x1b[1K",
    "\x1b[2K",
    "\x1b[3X",
    "\x1b[2@",
    "\x1b[3P",
    "\x1b[2L",
    "\x1b[2M",
    "\x1b[2S",
    "\x1b[2T",
    "\x1b[30b",
    "\x1b[2;4r",
    "\x1b[r",
    "\x1b[?69h",
    "\x1b[?69l",
    "\x1b[3;11s",
    "\x1b[?6h",
    "\x1b[?6l",
    "\x1b[4h",
    "\x1b[4l",
    "\x1b[?7l",
    "\x1b[?7h",
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b[?47h",
    "\x1b[?47l",
    "\x1b[2'}",
    "\x1b[2'~",
    "\x1b[1\"q",
    "\x1b[?2J",
    "\x1b[1;2;4;9$x",
    "\x1b[1;1;3;9;1;2;4;1$v",
    "\x1b[2;3;4;9$z",
    "\x1b[1;1;5;9;1$r",
    "\x1b]8;;http://x/\x07",
    "\x1b]8;;\x07",
    "\x1b[?45h",
];

fn script(random: &mut Random, pieces: usize) -> Vec<u8> {
    (0..pieces).flat_map(|_| random.pick(&PIECES).bytes()).collect()
}

/// Everything a screen holds, as text.
fn whole(screen: &Screen) -> String {
    format!("{screen:?}")
}

fn size() -> Size {
    Size::clamped(6, 20)
}

fn dialects() -> [Dialect; 2] {
    [Dialect::ROVE, Dialect::MOSH]
}

#[test]
fn chunks_do_not_matter() {
    for seed in 0..1500 {
        let mut random = Random(seed);
        let mut bytes = script(&mut random, 60);
        // Long runs of text take other ways than single characters do.
        for _ in 0..200 {
            let piece = &PIECES[random.below(TEXT_PIECES)];
            bytes.extend(piece.bytes());
        }
        for dialect in dialects() {
            let mut at_once = Terminal::new(size(), dialect);
            at_once.advance(&bytes);
            let mut in_pieces = Terminal::new(size(), dialect);
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (piece, later) = rest.split_at((1 + random.below(7)).min(rest.len()));
                in_pieces.advance(piece);
                rest = later;
            }
            let (a, b) = (whole(at_once.screen()), whole(in_pieces.screen()));
            let differ = a.bytes().zip(b.bytes()).position(|(a, b)| a != b).unwrap_or(a.len());
            let around = |text: &str| -> String {
                text.chars().skip(differ.saturating_sub(60)).take(90).collect()
            };
            assert!(
                a == b && at_once.take_replies() == in_pieces.take_replies(),
                "SEED={seed} {dialect:?} {:?}\n{}\n{}",
                String::from_utf8_lossy(&bytes),
                around(&a),
                around(&b)
            );
        }
    }
}

#[test]
fn a_snapshot_is_all_there_is() {
    for seed in 0..1500 {
        let mut random = Random(seed);
        for dialect in dialects() {
            let (before, after) = (script(&mut random, 40), script(&mut random, 20));
            let mut terminal = Terminal::new(size(), dialect);
            terminal.advance(&before);
            assert!(terminal.is_idle());
            let mut resumed = Terminal::resume(terminal.screen().clone(), dialect);
            terminal.advance(&after);
            resumed.advance(&after);
            assert!(whole(terminal.screen()) == whole(resumed.screen()), "SEED={seed} {dialect:?}");
        }
    }
}

#[test]
fn screens_are_well_formed() {
    for seed in 0..3000 {
        let mut random = Random(seed);
        for dialect in dialects() {
            let mut terminal = Terminal::new(size(), dialect);
            for _ in 0..80 {
                let piece = random.pick(&PIECES);
                let held = terminal.screen().clone();
                let before = held.text();
                terminal.advance(piece.as_bytes());
                if random.below(40) == 0 {
                    terminal.resize(Size::clamped(
                        1 + random.below(9) as i64,
                        1 + random.below(30) as i64,
                    ));
                }
                if let Some(fault) = terminal.screen().fault() {
                    panic!("SEED={seed} {dialect:?} after {piece:?} on {held:?}: {fault}");
                }
                assert_eq!(held.text(), before, "SEED={seed}: a snapshot changed");
            }
        }
    }
}

/// Separators and format characters take no cell, whichever way the text around them takes.
#[test]
fn controls_among_text_take_no_cell() {
    for dropped in ["\u{2028}", "\u{fff9}", "\u{1343f}", "\u{200b}", "\u{e0001}"] {
        for (before, text) in [("", "a"), ("\x1b[4h", "\u{4e16}"), ("\x1b[?2027l", "\u{e9}")] {
            let mut terminal = Terminal::new(size(), Dialect::ROVE);
            terminal.advance(format!("{before}{text}{dropped}{text}{dropped}").as_bytes());
            let row = terminal.screen().row_text(0);
            assert_eq!(row, text.repeat(2), "{dropped:?} after {before:?}");
        }
    }
}
