//! Writes recordings: asciicast v2 with `i` events for keys and `x` events for the terminal line's mode.

use std::io::{self, Write};
use std::time::Duration;

use rove_session::predict::LineMode;
use rove_term::Size;
use serde_json::json;

/// Writes one recording.
#[derive(Debug)]
pub(crate) struct Writer<W> {
    out: W,
    /// The start of a character whose end is still to come: at most three octets.
    partial: Vec<u8>,
    line: Option<LineMode>,
}

impl<W: Write> Writer<W> {
    /// Begins a recording of a screen of this size.
    ///
    /// # Errors
    /// If nothing can be written, as with all below.
    pub(crate) fn new(mut out: W, size: Size, title: &str) -> io::Result<Self> {
        let header = json!({
            "version": 2, "width": size.cols, "height": size.rows,
            "env": { "TERM": "xterm-256color" }, "title": title,
        });
        writeln!(out, "{header}")?;
        Ok(Self { out, partial: Vec::new(), line: None })
    }

    /// The program wrote this.
    pub(crate) fn output(&mut self, at: Duration, octets: &[u8]) -> io::Result<()> {
        self.partial.extend_from_slice(octets);
        let whole = whole_chars(&self.partial);
        let text = String::from_utf8_lossy(&self.partial[..whole]).into_owned();
        self.partial.drain(..whole);
        if text.is_empty() {
            return Ok(());
        }
        self.event(at, "o", &text)
    }

    /// Writes typed keys. Where the terminal line hides keys, the recording does, too.
    pub(crate) fn key(&mut self, at: Duration, octets: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(octets);
        if self.line == Some(LineMode::Hidden) {
            let mask = |c: char| if c.is_control() { c } else { MASK };
            return self.event(at, "i", &text.chars().map(mask).collect::<String>());
        }
        self.event(at, "i", &text)
    }

    /// This program has the screen from here on.
    pub(crate) fn program(&mut self, at: Duration, name: &str) -> io::Result<()> {
        self.event(at, "m", name)
    }

    /// The terminal line is in this mode now.
    pub(crate) fn line(&mut self, at: Duration, mode: LineMode) -> io::Result<()> {
        if self.line.replace(mode) == Some(mode) {
            return Ok(());
        }
        self.event(at, "x", word(mode))
    }

    fn event(&mut self, at: Duration, kind: &str, data: &str) -> io::Result<()> {
        let seconds = (at.as_secs_f64() * 1e4).round() / 1e4;
        writeln!(self.out, "{}", json!([seconds, kind, data]))
    }
}

/// Replaces a character of a password.
const MASK: char = '*';

/// How recordings call a mode of the terminal line.
pub(crate) fn word(mode: LineMode) -> &'static str {
    match mode {
        LineMode::Cooked => "cooked",
        LineMode::Hidden => "hidden",
        LineMode::Raw => "raw",
    }
}

/// Octets at the front that are no beginning of a character still to come.
fn whole_chars(octets: &[u8]) -> usize {
    let mut done = 0;
    for chunk in octets.utf8_chunks() {
        done += chunk.valid().len();
        let bad = chunk.invalid();
        let at_end = done + bad.len() == octets.len();
        let begins = matches!(bad, [0xc2..=0xf4] | [0xe0..=0xf4, _] | [0xf0..=0xf4, _, _]);
        if at_end && begins {
            break;
        }
        done += bad.len();
    }
    done
}

#[cfg(test)]
mod tests {
    use super::super::trace::{Kind, Trace};
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        let at = Duration::from_millis;
        let mut writer = Writer::new(&mut out, Size::clamped(24, 80), "a \"title\"").unwrap();
        writer.line(at(0), LineMode::Cooked).unwrap();
        writer.line(at(1), LineMode::Cooked).unwrap();
        writer.output(at(2), b"caf\xc3").unwrap();
        writer.output(at(3), b"\xa9 \xff\x1b[m").unwrap();
        writer.program(at(3), "sudo").unwrap();
        writer.key(at(4), b"k").unwrap();
        writer.line(at(5), LineMode::Hidden).unwrap();
        writer.key(at(6), "ü\r".as_bytes()).unwrap();
        let trace = Trace::parse("t".into(), std::str::from_utf8(&out).unwrap()).unwrap();
        let kinds: Vec<Kind> = trace.events.into_iter().map(|event| event.kind).collect();
        let output = |text: &str| Kind::Output(text.into());
        assert_eq!(
            kinds,
            [
                Kind::Line(LineMode::Cooked),
                output("caf"),
                output("é \u{fffd}\x1b[m"),
                Kind::Program("sudo".into()),
                Kind::Key(b"k".to_vec()),
                Kind::Line(LineMode::Hidden),
                Kind::Key(b"*\r".to_vec()),
            ]
        );
    }
}
