//! Scripted programs for the server's end of a simulated session. Each writes 20 times a second, answers keys, and
//! changes the screen in a way of its own.

use std::collections::VecDeque;
use std::sync::LazyLock;
use std::time::Duration;

use rove_session::LineMode;
use rove_ssp::Time;
use rove_term::Size;

use crate::rng::{Chance, Rng};

/// The kind of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Echoes lines and shows a clock in the corner, as a prompt with a status bar.
    Shell,
    /// Writes pages of lines for ever, as `yes` or a build does.
    Flood,
    /// Repaints every row in colours, as a monitor or a game does.
    Painter,
    /// Writes any sequence of a table at any place: scrolling, inserting, erasing, wide and combining
    /// characters, margins, titles, the alternate screen.
    Chaos,
    /// Writes numbered lines as fast as it can until Ctrl-C, 100 times a second.
    Endless,
}

impl Kind {
    /// Those that write at a person's pace, 20 frames a second.
    pub const ALL: [Kind; 4] = [Kind::Shell, Kind::Flood, Kind::Painter, Kind::Chaos];
}

/// Who reads the keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reader {
    /// The line discipline echoes them.
    Shell,
    /// `su`: reads a password to Enter, with ECHO off.
    Password,
    /// `to`: the same, until this frame at the latest.
    Brief(u64),
    /// `pw`: the same in raw mode.
    RawPassword,
    /// `vi`: in raw mode, up to `q`; it echoes, but for `b` it writes `c`.
    Contrary,
}

/// A program on a pty.
#[derive(Clone, Debug)]
pub struct Host {
    kind: Kind,
    reader: Reader,
    size: Size,
    rng: Rng,
    next_frame: Option<Time>,
    frames: u64,
    typed: Vec<u8>,
    /// For when it clears its screen, if it does beside what its kind does.
    clears: Option<Rng>,
}

impl Host {
    /// One that has not begun.
    pub fn new(kind: Kind, rng: Rng) -> Host {
        Host {
            kind,
            reader: Reader::Shell,
            size: Size::DEFAULT,
            rng,
            next_frame: None,
            frames: 0,
            typed: Vec::new(),
            clears: None,
        }
    }

    /// The same, which clears its screen now and then. When has chances of its own.
    pub(crate) fn clearing(self, rng: Rng) -> Host {
        Host { clears: Some(rng), ..self }
    }

    /// Begins, on a pty of this size.
    pub fn start(&mut self, now: Time, size: Size, out: &mut Vec<u8>) {
        self.size = size;
        self.next_frame = Some(now + self.pause());
        out.extend_from_slice(b"\x1b[2J\x1b[H$ ");
    }

    /// The pty has another size now.
    pub fn resize(&mut self, size: Size) {
        self.size = size;
    }

    /// Reads keys and echoes them as a line discipline does.
    pub fn input(&mut self, octets: &[u8], out: &mut Vec<u8>) {
        for octet in octets {
            self.typed.push(*octet);
            match (self.reader, octet) {
                (Reader::Shell, 0x03) if self.kind == Kind::Endless => {
                    self.stop();
                    out.extend_from_slice(b"^C\r\n$ ");
                }
                (Reader::Shell, b'\r') => self.enter(out),
                (Reader::Password | Reader::Brief(_) | Reader::RawPassword, b'\r') => {
                    self.reader = Reader::Shell;
                    out.extend_from_slice(b"\r\nSorry.\r\n$ ");
                }
                (Reader::Password | Reader::Brief(_) | Reader::RawPassword, _) => {}
                // What was sent for a question that has ended since. No letter of a password is to be seen.
                (Reader::Shell, octet) if SECRET_LETTERS.as_bytes().contains(octet) => {
                    out.push(b'.')
                }
                (Reader::Contrary, b'q') => {
                    self.reader = Reader::Shell;
                    out.extend_from_slice(b"\r\n$ ");
                }
                (Reader::Contrary, b'b') => out.push(b'c'),
                (_, b'\r') => out.extend_from_slice(b"\r\n$ "),
                (_, 0x7f) => out.extend_from_slice(b"\x08 \x08"),
                (_, 0..0x20) => out.extend_from_slice(&[b'^', octet + 0x40]),
                (_, _) => out.push(*octet),
            }
        }
    }

    /// The mode of the pty's line.
    pub fn line(&self) -> LineMode {
        match self.reader {
            Reader::Shell => LineMode::Cooked,
            Reader::Password | Reader::Brief(_) => LineMode::Hidden,
            Reader::RawPassword | Reader::Contrary => LineMode::Raw,
        }
    }

    /// Enter at the shell: a line that ends with the name of a program starts it.
    fn enter(&mut self, out: &mut Vec<u8>) {
        let (reader, said): (_, &[u8]) = match self.typed.as_slice() {
            [.., b's', b'u', b'\r'] => (Reader::Password, b"\r\nPassword: "),
            [.., b't', b'o', b'\r'] => (Reader::Brief(self.frames + BRIEF), b"\r\nPassword: "),
            [.., b'p', b'w', b'\r'] => (Reader::RawPassword, b"\r\nPassword: "),
            [.., b'v', b'i', b'\r'] => (Reader::Contrary, b"\r\n"),
            _ => (Reader::Shell, b"\r\n$ "),
        };
        self.reader = reader;
        out.extend_from_slice(said);
    }

    /// Writes the output that is due at this time.
    pub fn tick(&mut self, now: Time, out: &mut Vec<u8>) {
        while self.next_frame.is_some_and(|next| next <= now) {
            // A program that was stopped does not make up for the frames it has missed.
            self.next_frame = Some(now + self.pause());
            self.frames += 1;
            if matches!(self.reader, Reader::Brief(end) if end <= self.frames) {
                self.reader = Reader::Shell;
                out.extend_from_slice(b"\r\nTimed out.\r\n$ ");
            }
            match self.kind {
                Kind::Shell => self.clock(now, out),
                Kind::Flood => self.page(out),
                Kind::Painter => self.paint(out),
                Kind::Chaos => self.anything(out),
                Kind::Endless => self.count(out),
            }
            if let Some(rng) = &mut self.clears
                && rng.happens(Chance::percent(1))
            {
                out.extend_from_slice(rng.pick(&CLEARS).as_bytes());
            }
        }
    }

    /// When it writes next; `None` before its start and after its stop.
    pub fn next_frame(&self) -> Option<Time> {
        self.next_frame
    }

    /// Writes no more, except echoes.
    pub fn stop(&mut self) {
        self.next_frame = None;
    }

    /// All it has read.
    pub fn typed(&self) -> &[u8] {
        &self.typed
    }

    /// Frames it has written.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    fn pause(&self) -> Duration {
        if self.kind == Kind::Endless { FRAME / 5 } else { FRAME }
    }

    /// Nothing that compresses, and no line twice.
    fn count(&mut self, out: &mut Vec<u8>) {
        for n in 0..100u64 {
            out.extend_from_slice(format!("{:>12} ", self.frames * 100 + n).as_bytes());
            for _ in 0..10 {
                out.extend_from_slice(format!("{:016x} ", self.rng.next_u64()).as_bytes());
            }
            out.extend_from_slice(b"\r\n");
        }
    }

    fn clock(&mut self, now: Time, out: &mut Vec<u8>) {
        let col = self.size.cols.saturating_sub(12).max(1);
        let text =
            format!("\x1b7\x1b[1;{col}H\x1b[7m{:>11.3}\x1b[0m\x1b8", now.as_micros() as f64 / 1e6);
        out.extend_from_slice(text.as_bytes());
        if self.rng.happens(Chance::percent(4)) {
            let lines = self.rng.below(30);
            for n in 0..lines {
                out.extend_from_slice(format!("\r\nentry {n} of a listing").as_bytes());
            }
            out.extend_from_slice(b"\r\n$ ");
        }
    }

    /// Five seconds of pages, and five of a line at a time, in which what was missed can follow.
    fn page(&mut self, out: &mut Vec<u8>) {
        let lines = if (self.frames / 100).is_multiple_of(2) { self.rng.within(1, 60) } else { 1 };
        for _ in 0..lines {
            let length = self.rng.below(u64::from(self.size.cols) * 2);
            let color = self.rng.below(256);
            let letter = b'a' + self.rng.below(26) as u8;
            out.extend_from_slice(format!("\r\n\x1b[38;5;{color}m{:6} ", self.frames).as_bytes());
            out.extend(std::iter::repeat_n(letter, length as usize));
            out.extend_from_slice(b"\x1b[m");
        }
    }

    fn paint(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\x1b[?25l");
        for row in 1..=self.size.rows {
            let (back, fore) = (self.rng.below(8), self.rng.below(256));
            let shift = (self.frames + u64::from(row)) % 26;
            out.extend_from_slice(format!("\x1b[{row};1H\x1b[4{back};38;5;{fore}m").as_bytes());
            let text = (0..u64::from(self.size.cols)).map(|col| b'a' + ((col + shift) % 26) as u8);
            out.extend(text);
        }
        out.extend_from_slice(b"\x1b[m\x1b[?25h");
    }

    fn anything(&mut self, out: &mut Vec<u8>) {
        for _ in 0..self.rng.within(1, 12) {
            let row = self.rng.within(1, u64::from(self.size.rows));
            let col = self.rng.within(1, u64::from(self.size.cols));
            let sequence = self.rng.pick(&SEQUENCES);
            out.extend_from_slice(
                sequence
                    .replace("{row}", &row.to_string())
                    .replace("{col}", &col.to_string())
                    .as_bytes(),
            );
        }
    }
}

/// The letters of passwords. No program, no bar and no other key writes one of them.
pub(crate) const SECRET_LETTERS: &str = "ZJVX";

/// Frames after which a question that ends by itself has ended: three seconds.
const BRIEF: u64 = 60;

/// The time between two frames: 20 a second.
pub(crate) const FRAME: Duration = Duration::from_millis(50);

/// The output of `Chaos`. It asks the terminal for nothing: answers would mix with the keys.
const SEQUENCES: [&str; 52] = [
    "plain text ",
    "a longer piece of text that is likely to reach the edge of the screen and wrap around it ",
    "漢字かな",
    "한국어 ",
    "e\u{301}a\u{308}o\u{302}\u{323}",
    "│├─┼─┤└┘",
    "😀 🙂",
    "\r\n",
    "\n\n\n",
    "\t",
    "\x08\x08",
    "\x07",
    "\x1b[{row};{col}H",
    "\x1b[{row}d",
    "\x1b[{col}G",
    "\x1b[{row}A",
    "\x1b[{row}B",
    "\x1b[3C",
    "\x1b[2D",
    "\x1b[K",
    "\x1b[1K",
    "\x1b[2K",
    "\x1b[J",
    "\x1b[1J",
    "\x1b[2J",
    "\x1b[{row}L",
    "\x1b[{row}M",
    "\x1b[{col}@",
    "\x1b[{col}P",
    "\x1b[{col}X",
    "\x1b[2S",
    "\x1b[T",
    "\x1b[{row}S",
    "\x1bM",
    "\x1bD",
    "\x1bE",
    "\x1b[2;{row}r",
    "\x1b[r",
    "\x1b[{row}r",
    "\x1b7",
    "\x1b8",
    "\x1b[1;31m",
    "\x1b[4;38;5;200;48;5;17m",
    "\x1b[3;38;2;10;200;30m",
    "\x1b[7m",
    "\x1b[m",
    "\x1b[4h",
    "\x1b[4l",
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b]0;title {row}\x07",
    "\x1b[?25l\x1b[?25h",
];

/// How a screen is cleared: by `clear` of several systems, by Ctrl-L, and by `clear` where the history goes as well.
const CLEARS: [&str; 8] = [ED_2, ED_2, ED_2_HOME, ED_2_HOME, ED_0, ED_0, ED_0, ED_3];
const ED_2: &str = "\x1b[H\x1b[2J$ ";
const ED_2_HOME: &str = "\x1b[2J\x1b[H$ ";
const ED_0: &str = "\x1b[H\x1b[J$ ";
const ED_3: &str = "\x1b[H\x1b[2J\x1b[3J$ ";

/// Keys and the program that answers them, for measurements: the same scripts in virtual time and under real
/// programs. The program answers at once.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Load {
    /// A shell's work: 74 % of keys are echoed, 13 % repaint 1 to 24 rows, 8 % are Enter, of which 45 % run
    /// a command that writes 1 to 40 lines in 1 to 6 writes; the rest are echoed too. Bursts of about 12
    /// keys, between keys a median of 150 ms, between bursts of 1.4 s.
    Mixed,
    /// Letters, each echoed, at the pace of `Mixed`.
    Typing,
    /// Twenty new states a second, each with three rows changed at random, and no keys.
    Stream20,
    /// The same with five words each.
    Small20,
    /// Scrolls all the time; one key each half second, echoed in the bottom row.
    Flood,
    /// Each key repaints all rows.
    Big,
}

impl Load {
    /// The window the load is meant for.
    pub fn size(self) -> Size {
        match self {
            Load::Mixed | Load::Typing | Load::Flood | Load::Small20 => Size::DEFAULT,
            Load::Stream20 => Size::clamped(50, 160),
            Load::Big => Size::clamped(60, 200),
        }
    }
}

/// The person of a load.
#[derive(Clone, Debug)]
pub(crate) struct Typist {
    load: Load,
    rng: Rng,
}

impl Typist {
    /// A program whose choices come from `rng`.
    pub(crate) fn new(load: Load, rng: Rng) -> Typist {
        Typist { load, rng }
    }

    /// The next gap between keys, and the key after it. `None`: no key ever.
    pub(crate) fn next_key(&mut self) -> Option<(Duration, u8)> {
        let pause = match self.load {
            Load::Stream20 | Load::Small20 => return None,
            Load::Flood => 500,
            Load::Mixed | Load::Typing | Load::Big => match self.rng.below(BURST_KEYS) {
                0 => self.rng.pick(&BURST_PAUSES_MS),
                _ => self.rng.pick(&KEY_PAUSES_MS),
            },
        };
        let jitter = self.rng.span_below(Duration::from_millis(pause / 8 + 1));
        let letter = b'a' + self.rng.below(26) as u8;
        let key = match (self.load, self.rng.below(100)) {
            (Load::Mixed, 0..13) => NAVIGATE,
            (Load::Mixed, 13..21) => b'\r',
            _ => letter,
        };
        Some((Duration::from_millis(pause) + jitter, key))
    }
}

/// The program of a load.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    load: Load,
    size: Size,
    rng: Rng,
    /// Output that it writes by itself, soonest first; at most [`WRITES_MAX`] at a time.
    writes: VecDeque<(Time, u64)>,
    count: u64,
}

impl Program {
    /// Begins on a terminal of this size.
    pub(crate) fn start(load: Load, now: Time, size: Size, rng: Rng, out: &mut Vec<u8>) -> Program {
        out.extend_from_slice(b"\x1b[2J\x1b[H$ ");
        let mut program = Program { load, size, rng, writes: VecDeque::new(), count: 0 };
        if program.pause().is_some() {
            program.writes.push_back((now, 0));
        }
        program
    }

    /// Answers a key.
    pub(crate) fn key(&mut self, now: Time, key: u8, out: &mut Vec<u8>) {
        self.count += 1;
        match (self.load, key) {
            (Load::Big, _) => self.repaint(1, u64::from(self.size.rows), out),
            (Load::Flood, _) => {
                out.extend_from_slice(b"\x1b7\x1b[1;1H");
                out.extend_from_slice(format!("{:>8}\x1b8", self.count).as_bytes());
            }
            (_, NAVIGATE) => {
                let rows = self.rng.within(1, u64::from(self.size.rows));
                let first = self.rng.within(1, u64::from(self.size.rows) + 1 - rows);
                out.extend_from_slice(b"\x1b7");
                self.repaint(first, rows, out);
                out.extend_from_slice(b"\x1b8");
            }
            (_, b'\r') => {
                out.extend_from_slice(b"\r\n$ ");
                if self.rng.happens(Chance::percent(45)) {
                    self.command(now);
                }
            }
            (_, key) => out.push(key),
        }
    }

    /// Writes the output that is due at this time.
    pub(crate) fn tick(&mut self, now: Time, out: &mut Vec<u8>) {
        while let Some((at, lines)) = self.writes.front().copied().filter(|(at, _)| *at <= now) {
            self.writes.pop_front();
            match self.pause() {
                Some(pause) => {
                    // A program that was stopped does not catch up on its missed writes.
                    self.writes.push_back(((at + pause).max(now + pause / 2), 0));
                    self.stream(out);
                }
                None => self.lines(lines, out),
            }
        }
    }

    /// When it writes next by itself.
    pub(crate) fn next_write(&self) -> Option<Time> {
        self.writes.front().map(|(at, _)| *at)
    }

    /// Writes no more by itself.
    pub(crate) fn stop(&mut self) {
        self.writes.clear();
    }

    fn pause(&self) -> Option<Duration> {
        match self.load {
            Load::Stream20 | Load::Small20 => Some(FRAME),
            Load::Flood => Some(FLOOD_PAUSE),
            Load::Mixed | Load::Typing | Load::Big => None,
        }
    }

    fn stream(&mut self, out: &mut Vec<u8>) {
        self.count += 1;
        if self.load == Load::Stream20 {
            for _ in 0..3 {
                let row = self.rng.within(1, u64::from(self.size.rows));
                let text = self.words(60);
                out.extend_from_slice(format!("\x1b[{row};1H{text}\x1b[K").as_bytes());
            }
        } else if self.load == Load::Small20 {
            let text = self.words(25);
            out.extend_from_slice(format!("\r{text}\x1b[K").as_bytes());
        } else {
            let rows = u64::from(self.size.rows);
            self.lines(rows, out);
        }
    }

    fn command(&mut self, now: Time) {
        let (lines, writes) = (self.rng.within(1, 40), self.rng.within(1, 6));
        let mut at = now;
        for write in 0..writes {
            at = at + Duration::from_micros(self.rng.pick(&WRITE_PAUSES_US));
            let share = lines * (write + 1) / writes - lines * write / writes;
            if self.writes.len() < WRITES_MAX {
                self.writes.push_back((at, share));
            }
        }
        // Commands overlap when one is entered before the last has written all.
        self.writes.make_contiguous().sort_by_key(|(at, _)| *at);
    }

    fn lines(&mut self, lines: u64, out: &mut Vec<u8>) {
        for _ in 0..lines {
            let most = u64::from(self.size.cols) - 10;
            let length = self.rng.within(5, most);
            let text = self.words(length);
            out.extend_from_slice(format!("\r{text}\x1b[K\r\n$ ").as_bytes());
        }
    }

    fn repaint(&mut self, first: u64, rows: u64, out: &mut Vec<u8>) {
        for row in first..first + rows {
            let length = self.rng.within(10, u64::from(self.size.cols) - 1);
            let text = self.words(length);
            out.extend_from_slice(format!("\x1b[{row};1H{text}\x1b[K").as_bytes());
        }
    }

    /// Text of this length that compresses as ordinary text does.
    fn words(&mut self, length: u64) -> String {
        let mut text = String::new();
        while text.len() < length as usize {
            match self.rng.below(4) {
                0 => text.push_str(&format!("{:04x}", self.rng.below(1 << 16))),
                _ => text.push_str(self.rng.pick(&WORDS)),
            }
            text.push(' ');
        }
        text.truncate(length as usize);
        text
    }
}

/// The key that moves about in a program: Ctrl-N.
const NAVIGATE: u8 = 0x0e;

/// The reciprocal of the chance that a burst ends after a key.
const BURST_KEYS: u64 = 12;

/// Sixteen quantiles of a log-normal of median 150 ms and deviation 0.45.
const KEY_PAUSES_MS: [u64; 16] =
    [65, 83, 95, 106, 116, 125, 135, 145, 155, 167, 180, 195, 213, 236, 271, 347];

/// Sixteen quantiles of a log-normal of median 1.4 s and deviation 0.8.
const BURST_PAUSES_MS: [u64; 16] =
    [315, 488, 624, 752, 881, 1015, 1158, 1315, 1491, 1693, 1931, 2225, 2605, 3141, 4018, 6213];

/// Sixteen quantiles of a log-normal of median 2 ms and deviation 1.2: writes of one command.
const WRITE_PAUSES_US: [u64; 16] =
    [214, 408, 596, 796, 1017, 1268, 1558, 1901, 2104, 2568, 3155, 3933, 5024, 6714, 9797, 18_696];

/// The time between two writes of a flood, each of which replaces the screen.
const FLOOD_PAUSE: Duration = Duration::from_millis(10);

/// Writes of commands that wait at a time; a command that is one too many writes less.
const WRITES_MAX: usize = 64;

/// The vocabulary of programs.
static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let words = "total drwxr-xr-x root 2048 src main let return warning of the and \
        state 0x7f error 12:40 Cargo.toml lib test ok in for 4096 data usr \
        bin link a to is node 42";
    words.split(' ').collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_writes_twenty_frames_a_second_and_echoes() {
        for kind in Kind::ALL {
            let mut host = Host::new(kind, Rng::new(1));
            let mut out = Vec::new();
            host.start(Time::ZERO, Size::DEFAULT, &mut out);
            while let Some(next) =
                host.next_frame().filter(|next| *next <= Time::from_millis(2_000))
            {
                host.tick(next, &mut out);
            }
            assert_eq!(host.frames(), 40, "{kind:?}");
            out.clear();
            host.input(b"ab\r\x03", &mut out);
            assert_eq!(out, b"ab\r\n$ ^C");
            assert_eq!(host.typed(), b"ab\r\x03");
        }
    }
}
