//! The ten inputs: what a program may write for minutes on end, made from a seed.

/// A generator whose stream is fixed: splitmix64.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn letters(&mut self, count: usize, out: &mut Vec<u8>) {
        for _ in 0..count {
            let n = self.below(62);
            out.push(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"[n]);
        }
    }
}

pub const COLS: usize = 120;
pub const ROWS: usize = 40;
const BYTES: usize = 8 << 20;

type Make = fn(&mut Random, &mut Vec<u8>);

/// Name, generator of one piece, and the least ratio to alacritty_terminal.
pub const INPUTS: [(&str, Make, f64); 10] = [
    ("dense ASCII", dense, 10.0),
    ("log text", text, 7.8),
    ("short lines", short, 1.2),
    ("SGR", sgr, 1.5),
    ("direct colour", truecolor, 1.3),
    ("clusters", clusters, 1.5),
    ("Latin/Cyrillic", latin_cyrillic, 4.1),
    ("cursor motion", cursor, 1.5),
    ("editor regions", editor, 3.0),
    ("alternate screen", alternate, 1.6),
];

/// One input of 8 MB, ending on a whole piece.
pub fn generate(make: Make, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut out = Vec::with_capacity(BYTES + (64 << 10));
    while out.len() < BYTES {
        make(&mut random, &mut out);
    }
    out
}

fn dense(random: &mut Random, out: &mut Vec<u8>) {
    random.letters(COLS - 1, out);
    out.extend(b"\r\n");
}

const WORDS: [&str; 12] = [
    "error",
    "connection",
    "from",
    "INFO",
    "2026-11-21T10:22:07",
    "request",
    "closed",
    "in",
    "GET",
    "/index.html",
    "ms",
    "peer",
];

fn text(random: &mut Random, out: &mut Vec<u8>) {
    for _ in 0..random.between(1, 14) {
        out.extend(random.pick(&WORDS).as_bytes());
        out.push(b' ');
        let count = random.below(4);
        random.letters(count, out);
    }
    out.extend(b"\r\n");
}

fn short(_: &mut Random, out: &mut Vec<u8>) {
    out.extend(b"y\r\n");
}

fn sgr(random: &mut Random, out: &mut Vec<u8>) {
    let mut col = 0;
    while col < COLS - 10 {
        let code = match random.below(5) {
            0 => "0".to_owned(),
            1 => format!("1;{}", 31 + random.below(7)),
            2 => format!("{};{}", 30 + random.below(8), 40 + random.below(8)),
            3 => format!("38;5;{}", random.below(256)),
            _ => format!("{}", 90 + random.below(8)),
        };
        out.extend(format!("\x1b[{code}m").as_bytes());
        let count = random.between(2, 8);
        random.letters(count, out);
        col += count;
    }
    out.extend(b"\x1b[m\r\n");
}

fn truecolor(random: &mut Random, out: &mut Vec<u8>) {
    for _ in 0..COLS {
        let mut rgb = || (random.below(256), random.below(256), random.below(256));
        let ((r, g, b), (x, y, z)) = (rgb(), rgb());
        out.extend(format!("\x1b[38;2;{r};{g};{b}m\x1b[48;2;{x};{y};{z}m").as_bytes());
        random.letters(1, out);
    }
    out.extend(b"\x1b[m\r\n");
}

const CLUSTERS: [&str; 24] = [
    "世",
    "界",
    "漢",
    "字",
    "仮",
    "名",
    "交",
    "り",
    "文",
    "한",
    "국",
    "어",
    "e\u{301}",
    "o\u{308}",
    "n\u{303}",
    "a\u{30a}",
    "😀",
    "🎉",
    "👩\u{200d}💻",
    "👍\u{1f3fd}",
    "🇩🇪",
    "🇯🇵",
    "❤\u{fe0f}",
    "é",
];

fn clusters(random: &mut Random, out: &mut Vec<u8>) {
    for _ in 0..random.between(20, 58) {
        out.extend(random.pick(&CLUSTERS).as_bytes());
    }
    out.extend(b"\r\n");
}

const MIXED: [&str; 12] = [
    "привет",
    "мир",
    "déjà",
    "naïve",
    "здравствуйте",
    "über",
    "the",
    "Straße",
    "façade",
    "большой",
    "señor",
    "and",
];

fn latin_cyrillic(random: &mut Random, out: &mut Vec<u8>) {
    for _ in 0..random.between(6, 14) {
        out.extend(random.pick(&MIXED).as_bytes());
        out.push(b' ');
    }
    out.extend(b"\r\n");
}

fn cursor(random: &mut Random, out: &mut Vec<u8>) {
    let (row, col) = (random.between(1, ROWS), random.between(1, COLS - 8));
    match random.below(6) {
        0..=2 => out.extend(format!("\x1b[{row};{col}H").as_bytes()),
        3 => out.extend(
            format!("\x1b[{}A\x1b[{}C", random.between(1, 9), random.between(1, 9)).as_bytes(),
        ),
        4 => out.extend(format!("\x1b[{}G\x1b[K", col).as_bytes()),
        _ => out.extend(format!("\x1b[{}d\r", row).as_bytes()),
    }
    let count = random.between(1, 6);
    random.letters(count, out);
}

fn editor(random: &mut Random, out: &mut Vec<u8>) {
    let top = random.between(2, 10);
    let bottom = random.between(20, ROWS - 2);
    out.extend(format!("\x1b[{top};{bottom}r").as_bytes());
    for _ in 0..random.between(4, 12) {
        let row = random.between(top, bottom);
        match random.below(6) {
            0 => out.extend(format!("\x1b[{bottom};1H\n").as_bytes()),
            1 => out.extend(format!("\x1b[{top};1H\x1bM").as_bytes()),
            2 => out.extend(format!("\x1b[{row};1H\x1b[{}L", random.between(1, 3)).as_bytes()),
            3 => out.extend(format!("\x1b[{row};1H\x1b[{}M", random.between(1, 3)).as_bytes()),
            4 => out.extend(format!("\x1b[{row};20H\x1b[{}@", random.between(1, 5)).as_bytes()),
            _ => out.extend(format!("\x1b[{row};20H\x1b[{}P", random.between(1, 5)).as_bytes()),
        }
        let count = random.between(10, 60);
        random.letters(count, out);
    }
    out.extend(b"\x1b[r");
}

fn alternate(random: &mut Random, out: &mut Vec<u8>) {
    out.extend(b"\x1b[?1049h\x1b[H\x1b[2J");
    for row in 1..=ROWS {
        out.extend(format!("\x1b[{row};1H\x1b[3{}m", random.below(8)).as_bytes());
        let count = random.between(20, COLS - 1);
        random.letters(count, out);
        out.extend(b"\x1b[m\x1b[K");
    }
    out.extend(b"\x1b[?1049l");
}
