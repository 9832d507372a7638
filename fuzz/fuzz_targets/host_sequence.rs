//! Instructions for a screen, each of which is valid, in any order and with hostile values (threats rows 1, 6 and
//! 10): each diff takes no more work than it may, and who follows by diffs from one screen to the next, or from the
//! first to the newest, has what they lead to.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rove_session::messages::{Dimensions, HostEvent, write_host};
use rove_session::work::diff_cells_max;
use rove_session::{LineMode, Peer, View};
use rove_ssp::State;
use rove_term::{Dialect, Size, announces, same};

/// Numbers at which something changes: edges of the screen, of types, and of what is kept.
const NUMBERS: [i64; 16] =
    [0, 1, 2, 3, 4, 5, 11, 12, 13, 255, 256, 1000, 65_535, 65_536, i32::MAX as i64, i64::MAX];
/// Sides of a screen, most of them small: large ones take long.
const SIDES: [i32; 16] = [4, 12, 1, 2, 3, 5, 7, 11, 13, 24, 30, 0, -1, i32::MIN, 200, i32::MAX];
const PREFIXES: [&str; 8] = ["", "", "", "?", "?", ">", "=", "<"];
const BETWEEN: [&str; 8] = ["", "", "", "", " ", "$", "*", "\""];
/// Texts that each differ in how they are laid out.
const TEXTS: [&str; 16] = [
    "a",
    "abcdefghijklm",
    "\u{4e2d}\u{6587}",
    "e\u{301}\u{302}",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    "\u{1f1e9}\u{1f1ea}",
    "\u{2764}\u{fe0f}",
    "\u{5d0}\u{202e}b",
    "\u{ad}\u{200b}\u{feff}",
    "\r\n",
    "\t",
    "\x08",
    "\x0b\x0c",
    "\x0e\x0f",
    "\x07",
    "\u{e0001}\u{e0041}",
];
const ESCAPES: [&str; 16] =
    ["7", "8", "D", "E", "M", "H", "c", "=", ">", "(0", ")0", "(B", "#8", "#3", "n", "N"];
const STRINGS: [&str; 16] = [
    "]0;",
    "]2;",
    "]4;1;rgb:1/2/3",
    "]7;file://other/a",
    "]8;;http://example.org/",
    "]8;id=a;http://example.org/b",
    "]8;;",
    "]9;4;1;50",
    "]9;",
    "]10;red",
    "]22;pointer",
    "]52;c;aGk=",
    "]112",
    "]133;A",
    "]133;D;0",
    "P$q",
];

fuzz_target!(|octets: &[u8]| {
    let [rows, cols, steps @ ..] = octets else { return };
    let size = Size::clamped(i64::from(rows % 8) + 1, i64::from(cols % 16) + 1);
    for peer in [Peer::Stock, Peer::Rove] {
        run(Pair::new(size, peer), steps);
    }
});

fn run(mut pair: Pair, steps: &[u8]) {
    let mut diff = Diff::default();
    let mut steps = steps.iter().copied();
    while let Some(step) = steps.next() {
        let high = step >> 3;
        let mut next = || steps.next().unwrap_or_default();
        match step % 8 {
            0 => {
                if !pair.apply(&diff.finish()) {
                    return;
                }
            }
            1 => {
                let [width, height] = [next(), next()].map(|side| SIDES[usize::from(side % 16)]);
                diff.event(HostEvent::Resize(Dimensions { width, height }));
            }
            2 => {
                let number = NUMBERS[usize::from(next() % 16)] as u64;
                diff.event(HostEvent::EchoAck(number + u64::from(high)));
            }
            3 => diff.event(match high % 4 {
                0 => HostEvent::Line(LineMode::Cooked.into()),
                1 => HostEvent::Line(LineMode::Hidden.into()),
                2 => HostEvent::Line(LineMode::Raw.into()),
                _ => HostEvent::ExitStatus(SIDES[usize::from(next() % 16)]),
            }),
            4 => diff.text(TEXTS[usize::from(high % 16)]),
            5 | 6 => {
                let (last, how) = (next(), next());
                let numbers: Vec<u8> = (0..how % 5).map(|_| next()).collect();
                diff.control(high, last, how, &numbers);
            }
            _ => {
                let which = next();
                diff.escape(high, which % 16, TEXTS[usize::from(which >> 4)]);
            }
        }
    }
    pair.apply(&diff.finish());
}

/// A diff in the making.
#[derive(Default)]
struct Diff {
    message: Vec<u8>,
    /// Host bytes that follow one another are one event.
    bytes: Vec<u8>,
}

impl Diff {
    fn event(&mut self, event: HostEvent<'_>) {
        if !self.bytes.is_empty() {
            write_host(HostEvent::Bytes(&self.bytes), &mut self.message);
            self.bytes.clear();
        }
        write_host(event, &mut self.message);
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A control sequence with these numbers.
    fn control(&mut self, prefix: u8, last: u8, how: u8, numbers: &[u8]) {
        self.text("\x1b[");
        self.text(PREFIXES[usize::from(prefix) % 8]);
        for (at, number) in numbers.iter().enumerate() {
            if at > 0 {
                self.text(if how & 0x80 == 0 { ";" } else { ":" });
            }
            let named = NUMBERS.get(usize::from(*number)).copied();
            self.text(&named.unwrap_or(i64::from(*number)).to_string());
        }
        self.text(BETWEEN[usize::from(how >> 4) % 8]);
        self.bytes.push(0x40 + last % 63);
    }

    /// An escape sequence, or a string with this text in it.
    fn escape(&mut self, kind: u8, which: u8, text: &str) {
        self.text("\x1b");
        if kind % 2 == 0 {
            self.text(ESCAPES[usize::from(which)]);
            return;
        }
        self.text(STRINGS[usize::from(which)]);
        self.text(text);
        self.text(if kind & 2 == 0 { "\x1b\\" } else { "\x07" });
    }

    fn finish(&mut self) -> Vec<u8> {
        if !self.bytes.is_empty() {
            write_host(HostEvent::Bytes(&self.bytes), &mut self.message);
            self.bytes.clear();
        }
        std::mem::take(&mut self.message)
    }
}

/// A screen that a peer leads where it likes, and the screen of one who follows by diffs, as a client follows its
/// server.
struct Pair {
    led: View,
    follower: View,
    first: View,
    dialect: Dialect,
}

impl Pair {
    fn new(size: Size, peer: Peer) -> Pair {
        let first = View::new(size, peer);
        let (led, follower) = (first.clone(), first.clone());
        Pair { led, follower, first, dialect: peer.dialect() }
    }

    /// Applies a diff; returns whether it is one.
    fn apply(&mut self, diff: &[u8]) -> bool {
        let before = self.led.clone();
        if self.led.apply(diff).is_err() {
            return false;
        }
        assert!(self.led.echo_ack() >= before.echo_ack());
        let size = self.led.screen().size();
        assert!((1..=1000).contains(&size.rows) && (1..=1000).contains(&size.cols));
        let most = diff_cells_max(before.screen().size(), size, diff.len());
        assert!(self.led.cells_touched() <= most);
        assert_eq!(self.led.screen().fault(), None);
        let follower = self.followed(&before, &self.follower);
        // A state need not be made from the one before it.
        self.followed(&self.first, &self.first);
        self.follower = follower;
        true
    }

    /// What the diff from a state to the newest makes of a follower that has that state. Bells and clipboard writes
    /// are no part of a state: of several, a diff announces the last.
    fn followed(&self, base: &View, follower: &View) -> View {
        let mut diff = Vec::new();
        self.led.diff_from(&self.led, &mut diff);
        assert_eq!(diff, b"");
        self.led.diff_from(base, &mut diff);
        let mut followed = follower.clone();
        followed.apply(&diff).expect("a diff made here can be read here");
        let text = || String::from_utf8_lossy(&diff).into_owned();
        assert!(same(followed.screen(), self.led.screen(), &self.dialect), "{:?}", text());
        let rest = |view: &View| (view.echo_ack(), view.line(), view.exit_status());
        assert_eq!(rest(&followed), rest(&self.led));
        let announced = announces(follower.screen(), followed.screen(), &self.dialect);
        assert_eq!(announced, announces(base.screen(), self.led.screen(), &self.dialect));
        followed
    }
}
