//! The parser against the vte crate's, event by event, on random streams.
//!
//! Where the two differ by intent the streams have nothing of it: C1 controls as U+0080-9F and the bare
//! bytes (vte takes the latter), CAN, SUB and ESC inside strings (we cancel as xterm does, vte dispatches), DEL,
//! several intermediates (no sequence has them; we keep none), and more than 16 parts of a string.

use rove_term::parser::{
    C1, Colons, Handler, Numbers, Parser, Rules, Sequence, StringEnd, Strings,
};
use rove_term::utf8::Utf8Rule;

#[derive(Default)]
struct Events(Vec<String>);

impl Events {
    fn text(&mut self, c: char) {
        match self.0.last_mut() {
            Some(last) if last.starts_with("text ") => last.push(c),
            _ => self.0.push(format!("text {c}")),
        }
    }
}

fn shown(groups: Vec<Vec<u16>>) -> String {
    let groups = if groups.is_empty() { vec![vec![0]] } else { groups };
    format!("{groups:?}")
}

fn groups(sequence: &Sequence) -> String {
    let all = sequence.params.all();
    let mut groups = Vec::new();
    let mut at = 0;
    while at < all.len() {
        let parts = sequence.params.group_len(at);
        groups.push(all[at..at + parts].to_vec());
        at += parts;
    }
    shown(groups)
}

fn marks(sequence: &Sequence) -> String {
    [sequence.marker, sequence.intermediate]
        .iter()
        .filter(|b| **b != 0)
        .map(|b| char::from(*b))
        .collect()
}

impl Handler for Events {
    fn ascii(&mut self, run: &[u8]) -> usize {
        run.iter().for_each(|byte| self.text(char::from(*byte)));
        run.len()
    }
    fn chars(&mut self, run: &[char]) {
        run.iter().for_each(|c| self.text(*c));
    }
    fn control(&mut self, code: u8) {
        self.0.push(format!("control {code}"));
    }
    fn escape(&mut self, intermediate: Option<u8>, last: u8) {
        if last != b'\\' {
            let intermediate: String = intermediate.map(char::from).into_iter().collect();
            self.0.push(format!("escape {intermediate}{}", char::from(last)));
        }
    }
    fn csi(&mut self, sequence: &Sequence) {
        let last = char::from(sequence.last);
        self.0.push(format!("csi {}{last} {}", marks(sequence), groups(sequence)));
    }
    fn osc(&mut self, data: &[u8], _: StringEnd) {
        self.0.push(format!("osc {}", String::from_utf8_lossy(data)));
    }
    fn dcs(&mut self, sequence: &Sequence, data: &[u8]) {
        let last = char::from(sequence.last);
        let data = String::from_utf8_lossy(data);
        self.0.push(format!("dcs {}{last} {} {data}", marks(sequence), groups(sequence)));
    }
}

#[derive(Default)]
struct Oracle {
    events: Events,
    dcs: Option<(String, Vec<u8>)>,
}

fn vte_groups(params: &vte::Params) -> String {
    shown(params.iter().map(<[u16]>::to_vec).collect())
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

impl vte::Perform for Oracle {
    fn print(&mut self, c: char) {
        self.events.text(c);
    }
    fn execute(&mut self, byte: u8) {
        self.events.0.push(format!("control {byte}"));
    }
    fn hook(&mut self, params: &vte::Params, marks: &[u8], _: bool, last: char) {
        self.dcs = Some((format!("dcs {}{last} {}", text(marks), vte_groups(params)), Vec::new()));
    }
    fn put(&mut self, byte: u8) {
        if let Some((_, data)) = &mut self.dcs {
            data.push(byte);
        }
    }
    fn unhook(&mut self) {
        if let Some((head, data)) = self.dcs.take() {
            self.events.0.push(format!("{head} {}", String::from_utf8_lossy(&data)));
        }
    }
    fn osc_dispatch(&mut self, params: &[&[u8]], _: bool) {
        self.events.0.push(format!("osc {}", String::from_utf8_lossy(&params.join(&b';'))));
    }
    fn csi_dispatch(&mut self, params: &vte::Params, marks: &[u8], _: bool, last: char) {
        self.events.0.push(format!("csi {}{last} {}", text(marks), vte_groups(params)));
    }
    fn esc_dispatch(&mut self, marks: &[u8], _: bool, last: u8) {
        if last != b'\\' {
            self.events.0.push(format!("escape {}{}", text(marks), char::from(last)));
        }
    }
}

/// Sequences whole and cut anywhere, in ASCII: a character in the middle of a sequence is an unknown last
/// byte to us and nothing to vte.
const SEQUENCES: [&[u8]; 33] = [
    b"a",
    b"text",
    b"\r",
    b"\n",
    b"\x07",
    b"\x00",
    b"\x1b",
    b"\x1b[",
    b"\x1b[1",
    b"1",
    b";",
    b":",
    b"38:2::1:2:3",
    b"?",
    b">",
    b"m",
    b"H",
    b"\x1b[?25h",
    b"\x1b[ q",
    b"\x1b[!p",
    b"\x1b[31;1m",
    b"\x1b[99999999m",
    b"\x1b(0",
    b"\x1b#8",
    b"\x1b7",
    b"\x1bM",
    b"\x1b]0;title\x07",
    b"\x1b]8;;http://x\x1b\\",
    b"\x1bP$qm\x1b\\",
    b"\x1bP1;2|data\x1b\\",
    b"\x1b_apc\x1b\\",
    b"\x1b^pm\x1b\\",
    b"\x1bXsos\x1b\\",
];

/// Text well-formed and not, among whole sequences.
const TEXT: [&[u8]; 18] = [
    b"a",
    b"text",
    b"\r",
    b"\x1b[31;1m",
    b"\x1b(0",
    b"\x1b]2;\xc3\xa9\x07",
    b"\x1bP$qm\x1b\\",
    "\u{e9}".as_bytes(),
    "\u{4e16}".as_bytes(),
    "\u{1f600}".as_bytes(),
    "\u{10ffff}".as_bytes(),
    b"\xff",
    b"\xe4\xb8",
    b"\xf0\x9f",
    b"\xc3",
    b"\xed\xa0",
    b"\xc0",
    b"\xf4\xbf",
];

const RULES: Rules = Rules {
    utf8: Utf8Rule::MaximalSubpart,
    colons: Colons::Parts,
    numbers: Numbers::Clamp,
    c1: C1::Dropped,
    parameter_chars_max: u32::MAX,
    strings: Strings::Strict,
};

#[test]
fn the_parser_agrees_with_vte() {
    let mut state = 1u64;
    let mut below = |limit: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % limit
    };
    for round in 0..60_000 {
        let mut bytes = Vec::new();
        let pieces = if round % 2 == 0 { SEQUENCES.as_slice() } else { TEXT.as_slice() };
        for _ in 0..1 + below(12) {
            bytes.extend(pieces[below(pieces.len())]);
        }
        // vte 0.15 loses what follows a character cut by the end of a chunk.
        let cut = if round % 2 == 0 { below(bytes.len()) } else { 0 };
        let (mut ours, mut theirs) = (Events::default(), Oracle::default());
        let (mut parser, mut oracle) = (Parser::new(RULES), vte::Parser::new());
        for piece in [&bytes[..cut], &bytes[cut..]] {
            parser.advance(&mut ours, piece);
            oracle.advance(&mut theirs, piece);
        }
        assert_eq!(ours.0, theirs.events.0, "round {round}: {:?}", text(&bytes));
    }
}
