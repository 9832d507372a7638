//! Recorded sessions: asciicast v2 with the keys typed.
//!
//! Event kinds: `"o"` octets from the host, `"i"` one keystroke, `"m"` the program that owns the screen from here
//! on, `"x"` the terminal line's mode from here on (`cooked`, `hidden` or `raw`, or ICANON and ECHO as stty(1)
//! prints them). Queries in output are removed ([`Queries`]).

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rove_session::line_mode::Mode;
use rove_session::predict::LineMode;
use rove_term::{Dialect, Size};
use serde_json::Value;

use super::queries::Queries;
use crate::files::read_text;

/// The dialect with which recorded output is read.
pub(crate) const DIALECT: Dialect = Dialect::ROVE;

/// A recorded session.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The file's name without its ending.
    pub name: String,
    /// The screen it was recorded on.
    pub size: Size,
    /// In the order recorded.
    pub events: Vec<Event>,
}

/// One thing that happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// Since the recording began.
    pub at: Duration,
    /// Its kind.
    pub kind: Kind,
}

/// The kind of an event in a recording.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The host wrote this.
    Output(Vec<u8>),
    /// A key was typed.
    Key(Vec<u8>),
    /// This program has the screen from here on.
    Program(String),
    /// The terminal line is in this mode from here on.
    Line(LineMode),
}

/// The longest file that is read; an hour of work is a few MiB.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The longest recording; a replay takes its time, virtual or not.
const LENGTH_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl Trace {
    /// Reads a recording.
    ///
    /// # Errors
    /// When the file cannot be read, or is no asciicast v2 recording; the message names the line.
    pub fn load(path: &Path) -> io::Result<Self> {
        let text = read_text(path, FILE_BYTES_MAX)?;
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Self::parse(name, &text).map_err(|(line, what)| {
            let what = format!("{}:{line}: {what}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }

    /// The first part of it; all of it without a span.
    ///
    /// # Errors
    /// If the span is no time.
    pub fn cut(mut self, seconds: Option<f64>) -> io::Result<Self> {
        let Some(seconds) = seconds else { return Ok(self) };
        let span = Duration::try_from_secs_f64(seconds).map_err(io::Error::other)?;
        self.events.retain(|event| event.at <= span);
        Ok(self)
    }

    /// Reads a recording from its text; an error holds the line's number and the problem.
    pub fn parse(name: String, text: &str) -> Result<Self, (usize, &'static str)> {
        let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let (_, header) = lines.next().ok_or((1, "the recording is empty"))?;
        let header: Value = serde_json::from_str(header).map_err(|_| (1, "no JSON header"))?;
        if header["version"] != 2 {
            return Err((1, "not asciicast version 2"));
        }
        let side = |name: &str| header[name].as_u64().and_then(|side| u16::try_from(side).ok());
        let size = side("height").zip(side("width")).and_then(|(rows, cols)| Size::new(rows, cols));
        let size = size.ok_or((1, "no width and height of a screen"))?;
        let mut events = Vec::new();
        let mut queries = Queries::new(size);
        let mut last = Duration::ZERO;
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let Some(mut event) = Event::parse(line).map_err(|what| (number, what))? else {
                continue;
            };
            if event.at < last {
                return Err((number, "an event before the one above it"));
            }
            if event.at > LENGTH_MAX {
                return Err((number, "a recording of more than a day"));
            }
            last = event.at;
            if let Kind::Output(octets) = &mut event.kind {
                *octets = queries.strip(octets);
            }
            events.push(event);
        }
        Ok(Self { name, size, events })
    }
}

/// The recordings in a directory, by name.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn casts_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "cast"));
    paths.sort();
    Ok(paths)
}

impl Event {
    /// Octets of the key, if it is one.
    pub fn key_octets(&self) -> Option<usize> {
        match &self.kind {
            Kind::Key(key) => Some(key.len()),
            _ => None,
        }
    }

    /// One line; `None` for kinds of event that mean nothing here.
    fn parse(line: &str) -> Result<Option<Self>, &'static str> {
        let event: Value = serde_json::from_str(line).map_err(|_| "no JSON")?;
        let seconds = event[0].as_f64().ok_or("no time")?;
        let at = Duration::try_from_secs_f64(seconds).map_err(|_| "no time")?;
        let data = event[2].as_str().ok_or("no data")?;
        let kind = match event[1].as_str().ok_or("no kind")? {
            "o" => Kind::Output(data.into()),
            "i" if data.is_empty() => return Ok(None),
            "i" => Kind::Key(data.into()),
            "m" => Kind::Program(data.to_owned()),
            "x" => Kind::Line(line_mode(data).ok_or("an unknown line mode")?),
            _ => return Ok(None),
        };
        Ok(Some(Self { at, kind }))
    }
}

/// `cooked`, `hidden` or `raw`; or as stty(1) prints it, both of `icanon` and `echo`, with a `-` before what is
/// off, among other words.
fn line_mode(data: &str) -> Option<LineMode> {
    match data {
        "cooked" => return Some(LineMode::Cooked),
        "hidden" => return Some(LineMode::Hidden),
        "raw" => return Some(LineMode::Raw),
        _ => {}
    }
    let data = data.to_ascii_lowercase();
    let words = data.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let (mut canonical, mut echo) = (None, None);
    for word in words {
        match word {
            "icanon" => canonical = Some(Mode::On),
            "-icanon" => canonical = Some(Mode::Off),
            "echo" => echo = Some(Mode::On),
            "-echo" => echo = Some(Mode::Off),
            _ => {}
        }
    }
    Some(LineMode::of(canonical?, echo?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let header = "{\"version\": 2, \"width\": 80, \"height\": 24}";
        let parse = |line: &str| {
            Trace::parse(String::new(), &format!("{header}\n{line}\n"))
                .map(|trace| trace.events.into_iter().map(|event| event.kind).collect::<Vec<_>>())
        };
        for (line, want) in [
            ("[0.5, \"o\", \"a\\u001b[m\"]", Ok(vec![Kind::Output(b"a\x1b[m".to_vec())])),
            ("[0.5, \"i\", \"\\u00e9\"]", Ok(vec![Kind::Key("é".into())])),
            ("[0.5, \"m\", \"vim\"]", Ok(vec![Kind::Program("vim".to_owned())])),
            ("[0.5, \"x\", \"hidden\"]", Ok(vec![Kind::Line(LineMode::Hidden)])),
            ("[0.5, \"x\", \"icanon -echo\"]", Ok(vec![Kind::Line(LineMode::Hidden)])),
            ("[0.5, \"x\", \"-ICANON,ECHO isig\"]", Ok(vec![Kind::Line(LineMode::Raw)])),
            ("[0.5, \"o\", \"a\\u001b[6nb\"]", Ok(vec![Kind::Output(b"ab".to_vec())])),
            ("[0.5, \"i\", \"\"]", Ok(vec![])),
            ("[1e9, \"i\", \"a\"]", Err((2, "a recording of more than a day"))),
            ("[2, \"i\", \"a\"]\n[1, \"i\", \"b\"]", Err((3, "an event before the one above it"))),
            ("[0.5, \"r\", \"80x24\"]", Ok(vec![])),
            ("[0.5, \"x\", \"?\"]", Err((2, "an unknown line mode"))),
            ("[-1, \"i\", \"a\"]", Err((2, "no time"))),
            ("[1, \"i\"]", Err((2, "no data"))),
            ("{", Err((2, "no JSON"))),
        ] {
            assert_eq!(parse(line), want, "{line}");
        }
    }
}
