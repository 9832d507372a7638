//! Programs that are scripts: what runs at the server's end of a simulated session. Each writes 20 times a
//! second and answers keys, and each is another kind of work for the screen.

use std::time::Duration;

use rove_ssp::Time;
use rove_term::Size;

use crate::rng::{Chance, Rng};

/// What a program does.
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

/// A program on a pty.
#[derive(Clone, Debug)]
pub struct Host {
    kind: Kind,
    size: Size,
    rng: Rng,
    next_frame: Option<Time>,
    frames: u64,
    typed: Vec<u8>,
}

impl Host {
    /// One that has not begun.
    pub fn new(kind: Kind, rng: Rng) -> Host {
        Host { kind, size: Size::DEFAULT, rng, next_frame: None, frames: 0, typed: Vec::new() }
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
        self.typed.extend_from_slice(octets);
        for octet in octets {
            match octet {
                0x03 if self.kind == Kind::Endless => {
                    self.stop();
                    out.extend_from_slice(b"^C\r\n$ ");
                }
                b'\r' => out.extend_from_slice(b"\r\n$ "),
                0x7f => out.extend_from_slice(b"\x08 \x08"),
                0..0x20 => out.extend_from_slice(&[b'^', octet + 0x40]),
                _ => out.push(*octet),
            }
        }
    }

    /// Writes what is due at this time.
    pub fn tick(&mut self, now: Time, out: &mut Vec<u8>) {
        while self.next_frame.is_some_and(|next| next <= now) {
            // A program that was stopped does not make up for the frames it has missed.
            self.next_frame = Some(now + self.pause());
            self.frames += 1;
            match self.kind {
                Kind::Shell => self.clock(now, out),
                Kind::Flood => self.page(out),
                Kind::Painter => self.paint(out),
                Kind::Chaos => self.anything(out),
                Kind::Endless => self.count(out),
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

    fn page(&mut self, out: &mut Vec<u8>) {
        for _ in 0..self.rng.within(1, 60) {
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

/// The time between two frames: 20 a second.
pub const FRAME: Duration = Duration::from_millis(50);

/// What `Chaos` writes. Nothing here asks the terminal for an answer: that would mix with the keys.
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
