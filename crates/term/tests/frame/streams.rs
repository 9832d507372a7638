//! Random output of programs: everything that changes a screen, in proportions that make wraps,
//! wide cells, scrolls and alternate screens meet.

/// SplitMix64 (Steele, Lea, Flood 2014): one number is a run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

const WORDS: [&str; 31] = [
    "a",
    "bc",
    "hello ",
    "   ",
    "the quick brown fox",
    "=====================",
    "x",
    ".",
    "-----",
    " ",
    "\u{e9}t\u{e9}",
    "\u{4e16}\u{754c}",
    "\u{1f600}",
    "\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}",
    "e\u{301}",
    "\u{1f468}\u{200d}\u{1f469}",
    "\u{2764}\u{fe0f}",
    "\u{1f1e9}\u{1f1ea}",
    "\u{1f1e9}",
    "\u{301}",
    "\u{e01}\u{e33}",
    "\u{915}\u{94d}\u{937}",
    "\u{1100}\u{1161}",
    "\u{ad}",
    "\u{a0}",
    "\u{200d}",
    "\u{200b}",
    "\u{202e}abc",
    "\u{e0061}",
    "\u{1f3f4}\u{e0067}\u{e0062}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
];

const RENDITIONS: [&str; 22] = [
    "",
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "9",
    "53",
    "22",
    "24",
    "27",
    "4:3",
    "4:2",
    "58:5:9",
    "31",
    "44",
    "97;101",
    "38;5;200",
    "48;2;1;200;3",
];

const MODES: [&str; 26] = [
    "?5", "?25", "?2004", "?1004", "?1007", "?1", "?66", "?9", "?1000", "?1002", "?1003", "?1005",
    "?1006", "?1015", "?1016", "?7", "?6", "4", "?69", "?45", "?2027", "?2031", "?12", "?47",
    "?1049", "?1047",
];

const OTHERS: [&str; 58] = [
    "\x1b7",
    "\x1b8",
    "\x1b#8",
    "\x1b(0",
    "\x1b(B",
    "\x0e",
    "\x0f",
    "\x1b)0",
    "\x1b[!p",
    "\x1bc",
    "\x07",
    "\x1b]0;title\x07",
    "\x1b]2;win\u{202e}dow\x07",
    "\x1b]1;icon\x07",
    "\x1b]2;\x07",
    "\x1b]52;c;aGk=\x07",
    "\x1b]52;p;aGk=\x07",
    "\x1b]52;c;?\x07",
    "\x1b]8;;http://a/b\x07",
    "\x1b]8;id=x;file:///etc\x07",
    "\x1b]8;;\x07",
    "\x1b]4;1;rgb:12/34/56\x07",
    "\x1b]104\x07",
    "\x1b]11;#102030\x07",
    "\x1b]111\x07",
    "\x1b]7;file://host/dir\x07",
    "\x1b]7;file://de\u{202e}sk/dir\x07",
    "\x1b]7;file://Tower.lan./dir\x07",
    "\x1b]7;kitty-shell-cwd://host/dir\x07",
    "\x1b]7;file:///dir\x07",
    "\x1b]7;\x07",
    "\x1b]8;;file://host/a\x07",
    "\x1b]8;;FILE://Desk/a\x07",
    "\x1b]8;;file://127.0.0.1/a\x07",
    "\x1b]8;;javascript:alert(1)\x07",
    "\x1b]9;2;message\x07",
    "\x1b]9;hello\x07",
    "\x1b]2;a\u{e0061}\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}b\x07",
    "\x1b]9;4;1;50\x07",
    "\x1b]777;notify;a;b;c\x07",
    "\x1b]133;A\x07$ \x1b]133;B\x07",
    "\x1b]133;A;k=s\x07",
    "\x1b]133;B\x07",
    "\x1b]133;C\x07",
    "\x1b]133;D\x07",
    "\x1b]133;D;1\x07\r\n\x1b]133;A\x07",
    "\x1b#6",
    "\x1b#5",
    "\x1b#3",
    "\x1b[3 q",
    "\x1b[0 q",
    "\x1b[6 q",
    "\x1b[>4;2m",
    "\x1b[>1u",
    "\x1b[<u",
    "\x1b[=5;1u",
    "\x1b[1\"q",
    "\x1b[0\"q",
];

/// About `steps` steps of a program's output on a screen of this size.
pub fn output(random: &mut Random, steps: usize, rows: usize, cols: usize) -> Vec<u8> {
    let mut out = String::new();
    for _ in 0..steps {
        match random.below(100) {
            0..35 => text(random, cols, &mut out),
            35..50 => out.push_str(random.pick(&["\r\n", "\r\n", "\r", "\n", "\x08", "\t"])),
            50..60 => {
                let (row, col) = (1 + random.below(rows), 1 + random.below(cols));
                out.push_str(&format!("\x1b[{row};{col}H"));
            }
            60..70 => {
                out.push_str(&format!("\x1b[{}", random.below(rows.max(cols) + 1)));
                out.push_str(random.pick(&["A", "B", "C", "D", "G", "d", "E", "F", "I", "Z"]));
            }
            70..78 => {
                let (a, b) = (random.pick(&RENDITIONS), random.pick(&RENDITIONS));
                out.push_str(&format!("\x1b[{a}m\x1b[{b}m"));
            }
            78..88 => {
                out.push_str(&format!("\x1b[{}", random.below(4)));
                let edits = ["K", "J", "X", "@", "P", "L", "M", "S", "T", "b", "?K", "'}", "'~"];
                out.push_str(random.pick(&edits));
            }
            88..91 => out.push_str(random.pick(&["\x1bM", "\x1bD", "\x1bE"])),
            91..93 => {
                let (top, bottom) = (1 + random.below(rows), 1 + random.below(rows));
                out.push_str(&format!("\x1b[{top};{bottom}r"));
            }
            93 => {
                let (left, right) = (1 + random.below(cols), 1 + random.below(cols));
                out.push_str(&format!("\x1b[{left};{right}s"));
            }
            94..96 => {
                let on = if random.chance(50) { 'h' } else { 'l' };
                out.push_str(&format!("\x1b[{}{on}", random.pick(&MODES)));
            }
            _ => out.push_str(random.pick(&OTHERS)),
        }
    }
    out.into_bytes()
}

/// A page of text, perhaps with a border down its middle, as editors and dialogs draw it.
pub fn page(random: &mut Random, rows: usize, cols: usize) -> Vec<u8> {
    let mut out = String::new();
    for row in 1..=rows {
        out.push_str(&format!("\x1b[{row};1H"));
        for _ in 0..random.below(8) {
            out.push_str(random.pick(&PAGE_WORDS));
        }
    }
    if random.chance(50) {
        let border = 1 + random.below(cols);
        (1..=rows).for_each(|row| out.push_str(&format!("\x1b[{row};{border}H\u{2502}|")));
    }
    out.into_bytes()
}

/// Words of text that is edited; each may be of disputed width.
const PAGE_WORDS: [&str; 12] = [
    "word ",
    "the quick brown fox ",
    "\u{4e16}\u{754c} ",
    "\x1b[31mred\x1b[m ",
    "\x1b[44m  \x1b[m",
    "caf\u{e9} ",
    "e\u{301}",
    "\u{1f600} ",
    "\u{2764}\u{fe0f}",
    "\x1b]8;;http://a/b\x07link\x1b]8;;\x07 ",
    "\x1b[1\"qkept\x1b[0\"q",
    "        ",
];

/// One edit of a page: characters inserted or deleted in a line, the whole of it or up to a border, and lines
/// scrolled, up or down, within margins or without.
pub fn edit(random: &mut Random, rows: usize, cols: usize) -> Vec<u8> {
    let (row, col) = (1 + random.below(rows), 1 + random.below(cols));
    let count = 1 + random.below(4);
    let word = random.pick(&["x", "yz ", "\u{4e16}", "\u{1f600}", "e\u{301}", "inserted"]);
    let (top, bottom) = (1 + random.below(rows), 1 + random.below(rows));
    let (left, right) = (1 + random.below(cols), 1 + random.below(cols));
    let bounded = format!("\x1b[?69h\x1b[{left};{right}s");
    let text = match random.below(8) {
        0 => format!("\x1b[{row};{col}H\x1b[4h{word}\x1b[4l"),
        1 => format!("\x1b[{row};{col}H\x1b[{count}P"),
        2 => format!("\x1b[{row};{col}H\x1b[{count}@{word}"),
        3 => format!("{bounded}\x1b[{row};{col}H\x1b[{count}P\x1b[?69l"),
        4 => format!("{bounded}\x1b[{row};{col}H\x1b[4h{word}\x1b[4l\x1b[?69l"),
        5 => format!("\x1b[{top};{bottom}r\x1b[{count}S\x1b[r\x1b[{row};{col}H{word}"),
        6 => format!("\x1b[{top};{bottom}r\x1b[{count}T\x1b[r\x1b[{row};{col}H{word}"),
        _ => format!("{bounded}\x1b[{top};{bottom}r\x1b[{count}S\x1b[r\x1b[?69l"),
    };
    text.into_bytes()
}

fn text(random: &mut Random, cols: usize, out: &mut String) {
    if random.chance(15) {
        // Long enough to wrap, of one letter or of many.
        let letter = b'a' + random.below(26) as u8;
        let same = random.chance(50);
        for index in 0..random.below(2 * cols + 2) {
            let offset = if same { 0 } else { index as u8 % 7 };
            out.push(char::from(b'a' + (letter - b'a' + offset) % 26));
        }
        return;
    }
    for _ in 0..1 + random.below(3) {
        out.push_str(random.pick(&WORDS));
    }
}

/// The seeds to run: `SEED` alone if it is set, else `SEEDS` many, else `usual` many.
#[allow(clippy::disallowed_methods)] // How long a test runs is the caller's to say.
pub fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(usual),
    }
}
