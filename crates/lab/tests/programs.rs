//! Tests that our screen is right for programs that people work in. tmux, xterm and `Terminal::new(size,
//! Dialect::ROVE)` get the same output. All must hold the same text and cursor, tmux the same colours and
//! attributes, and xterm the attributes that its checksums include.
//!
//! `CASE=vim cargo test -p rove-lab --test programs` runs just that one.
#![allow(clippy::unwrap_used, reason = "a test file")]
#![allow(
    clippy::disallowed_methods,
    reason = "the oracle is a process: it is waited for by polling"
)]

mod common;

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{chosen, say};
use rove_lab::testing::scratch::Scratch;
use rove_lab::testing::xterm::{self, Xterm};
use rove_term::{Attrs, Cell, Dialect, Screen, Size, Style, Terminal, Underline};

/// Seconds that one command to tmux may take.
const COMMAND_LIMIT: &str = "60";
/// How long a program may take to show an awaited text.
const LIMIT: Duration = Duration::from_secs(60);
/// How long one that always writes is watched.
const RESTLESS: Duration = Duration::from_secs(10);
/// A program that has written nothing for this long waits for keys.
const QUIET: Duration = Duration::from_millis(400);
/// Between two looks at the oracle.
const POLL: Duration = Duration::from_millis(50);
/// htop and mc may write while they are looked at; then they are looked at again.
const LOOKS: usize = 20;

const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

/// A name, the command, and the keys in the notation of tmux; the screen is compared after each.
type Case = (&'static str, &'static str, &'static [&'static str]);

const CASES: [Case; 11] = [
    ("bash", "bash --norc -i", &["ls -C --color /usr", "Enter", "C-r", "ls", "Escape"]),
    ("zsh", "zsh -f -i", &["ls -C --color /usr", "Enter", "echo /usr/s", "Tab", "C-a"]),
    ("fish", "fish --no-config", &["ls /usr", "Enter", "echo 'abc", "C-a"]),
    ("vim", "vim -u NONE -N --cmd 'syntax on' text.c", &["G", "o", "int x = 1;", "Escape", "C-b"]),
    ("nano", "nano text.c", &["Hello", "Enter", "C-v", "C-w"]),
    ("emacs", "emacs -nw -Q text.c", &["Hello", "C-n", "C-v", "C-x", "2"]),
    ("less", "less -N text.c", &["Space", "j", "k", "/line 50", "Enter"]),
    ("htop", "htop -d 100", &["F5", "Down", "F1"]),
    ("mc", "mc -u", &["Down", "F9", "Right", "Escape"]),
    ("irssi", "irssi --noconnect", &["/help", "Enter", "hello", "C-a"]),
    (
        "tmux",
        "env -u TMUX tmux -L inner -f /dev/null new-session sh",
        &["C-b", "%", "ls /", "Enter"],
    ),
];

#[test]
fn programs_are_right_on_the_screen() {
    let mut xterm = Xterm::start().unwrap();
    let mut failures = Vec::new();
    for case in CASES.iter().filter(|case| chosen("CASE", case.0)) {
        let Err(first) = run(case, &mut xterm) else {
            say(&format!("program {}: ok", case.0));
            continue;
        };
        let second = run(case, &mut xterm);
        let again = second.as_ref().map_or("FAILED", |()| "ok");
        say(&format!("program {}: FAILED, then {again}\n{first}", case.0));
        failures.extend(second.err().map(|error| format!("{}: {error}", case.0)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn run((name, program, keys): &Case, xterm: &mut Xterm) -> Result<(), String> {
    let oracle = Oracle::start(name, program)?;
    oracle.compare().map_err(|error| format!("at the start: {error}"))?;
    for key in *keys {
        oracle.tmux(&["send-keys", key])?;
        oracle.compare().map_err(|error| format!("after {key}: {error}"))?;
    }
    let written = oracle.rest()?;
    compare_with_xterm(&written, xterm).map_err(|error| format!("at the end: {error}"))
}

/// tmux scrolls what is erased from the first cell on into its history, so a repaint erases otherwise.
#[test]
fn a_repaint_leaves_the_history_of_tmux_alone() {
    let mut shown = Terminal::new(Size::clamped(ROWS, COLUMNS), Dialect::ROVE);
    shown.advance(b"1\r\n2\r\n3\r\n4\r\n5\r\n");
    let mut paint = Vec::new();
    rove_term::repaint(shown.screen(), &Dialect::tty("tmux-256color", ""), &mut paint);
    for (octets, lines) in [(&b"\x1b[H\x1b[J"[..], "5"), (&paint, "0")] {
        let oracle =
            Oracle::start("paint", "sh -c 'seq 5; read go; cat paint; echo done; read go'");
        let oracle = oracle.unwrap();
        fs::write(oracle.scratch.join("paint"), octets).unwrap();
        oracle
            .wait_until("all is written", |oracle| Ok(oracle.written()?.contains(&b'5')))
            .unwrap();
        oracle.tmux(&["send-keys", "Enter"]).unwrap();
        let shows = |oracle: &Oracle| Ok(oracle.tmux(&["capture-pane", "-p"])?.contains("done"));
        oracle.wait_until("the paint is there", shows).unwrap();
        let history = oracle.tmux(&["display-message", "-p", "#{history_size}"]).unwrap();
        assert_eq!(history.trim(), lines, "{octets:?}");
    }
}

/// A tmux of its own, and the octets that the program in it has written.
struct Oracle {
    scratch: Scratch,
}

impl Oracle {
    fn start(name: &str, program: &str) -> Result<Oracle, String> {
        let scratch = Scratch::new().map_err(|error| error.to_string())?;
        let text: String =
            (1..200).map(|i| format!("/* line {i} */ int v{i} = \"é漢\";\n")).collect();
        fs::write(scratch.join("text.c"), text).map_err(|error| error.to_string())?;
        let oracle = Oracle { scratch };
        let (rows, columns) = (ROWS.to_string(), COLUMNS.to_string());
        let wait = format!("stty -echo; read go; stty echo; exec {program}");
        oracle.tmux(&["new-session", "-d", "-s", name, "-x", &columns, "-y", &rows, &wait])?;
        oracle.tmux(&["set", "-g", "status", "off"])?;
        oracle.tmux(&["resize-window", "-x", &columns, "-y", &rows])?;
        let record = format!("cat >> {}", oracle.scratch.join("octets").display());
        oracle.tmux(&["pipe-pane", "-o", &record])?;
        oracle
            .wait_until("the shell reads", |oracle| Ok(oracle.scratch.join("octets").exists()))?;
        oracle.tmux(&["send-keys", "Enter"])?;
        oracle.wait_until("the program writes", |oracle| Ok(oracle.written()?.len() > 4))?;
        Ok(oracle)
    }

    fn compare(&self) -> Result<(), String> {
        let mut last = String::from("the program never rests");
        for _ in 0..LOOKS {
            let written = self.rest()?;
            let theirs = self.tmux(&["capture-pane", "-p"])?;
            let dressed = self.tmux(&["capture-pane", "-e", "-p"])?;
            let at = self.tmux(&["display-message", "-p", "#{cursor_x},#{cursor_y}"])?;
            if self.written()?.len() != written.len() {
                continue;
            }
            let terminal = shown(&written);
            let found = difference(&terminal, &theirs, at.trim());
            match found.or_else(|| difference_of_styles(terminal.screen(), &dressed)) {
                None => return Ok(()),
                // The pipe may lag behind the pane: only what stays is a difference.
                Some(found) if last == found => return Err(found),
                Some(found) => last = found,
            }
        }
        Err(last)
    }

    /// The octets, once no more came for a while.
    fn rest(&self) -> Result<Vec<u8>, String> {
        let (mut written, mut since) = (self.written()?, Instant::now());
        let start = since;
        while since.elapsed() < QUIET && start.elapsed() < RESTLESS {
            sleep(POLL);
            let now = self.written()?;
            if now.len() != written.len() {
                (written, since) = (now, Instant::now());
            }
        }
        Ok(written)
    }

    fn wait_until(
        &self,
        what: &str,
        done: impl Fn(&Oracle) -> Result<bool, String>,
    ) -> Result<(), String> {
        let start = Instant::now();
        while !done(self)? {
            if start.elapsed() > LIMIT {
                return Err(format!("waited in vain: {what}"));
            }
            sleep(POLL);
        }
        Ok(())
    }

    fn written(&self) -> Result<Vec<u8>, String> {
        fs::read(self.scratch.join("octets")).map_err(|error| error.to_string())
    }

    fn tmux(&self, words: &[&str]) -> Result<String, String> {
        let home = self.scratch.path();
        let output = Command::new("timeout")
            .args([COMMAND_LIMIT, "tmux", "-L", "oracle", "-f", "/dev/null"])
            .args(words)
            .env_remove("TMUX")
            .env("TMUX_TMPDIR", home)
            .env("HOME", home)
            .env("SHELL", "/bin/sh")
            .env("LANG", "C.UTF-8")
            .env_remove("LC_ALL")
            .current_dir(home)
            .output()
            .map_err(|error| format!("tmux: {error}"))?;
        if !output.status.success() {
            return Err(format!("tmux {words:?}: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // The inner one, if this case has one, lives in the same directory and outlives its pane.
        let _ = self.tmux(&["-L", "inner", "kill-server"]);
        let _ = self.tmux(&["kill-server"]);
    }
}

fn shown(written: &[u8]) -> Terminal {
    let mut terminal = Terminal::new(Size::clamped(ROWS, COLUMNS), Dialect::ROVE);
    terminal.advance(written);
    terminal
}

/// The first cell in which our colours and attributes differ from those that tmux tells along with the text.
fn difference_of_styles(ours: &Screen, dressed: &str) -> Option<String> {
    let mut theirs = Terminal::new(ours.size(), Dialect::ROVE);
    theirs.advance(dressed.trim_end_matches('\n').replace('\n', "\r\n").as_bytes());
    let theirs = theirs.screen();
    (0..ROWS).find_map(|row| {
        // tmux does not report cells behind the end of a line.
        let told = theirs.row(row).occupied().len() as u16;
        let of = |screen: &Screen, col| screen.cell_style(row, col);
        let col = (0..told).find(|col| of(ours, *col) != of(theirs, *col))?;
        let text = ours.row_text(row);
        let (ours, theirs) = (of(ours, col), of(theirs, col));
        Some(format!("row {row} column {col} of {text:?}:\n ours {ours:?}\n tmux {theirs:?}"))
    })
}

/// Text, cursor and attributes as xterm shows the same octets.
fn compare_with_xterm(written: &[u8], xterm: &mut Xterm) -> Result<(), String> {
    let told = |error: std::io::Error| format!("xterm: {error}");
    let terminal = shown(written);
    let screen = terminal.screen();
    xterm.reset(ROWS, COLUMNS).map_err(told)?;
    // A query for xterm's version would look like its last answer.
    let text = String::from_utf8_lossy(written).replace("\x1b[>q", "").replace("\x1b[>0q", "");
    xterm.write(text.as_bytes()).map_err(told)?;
    let look = xterm.look().map_err(told)?;
    let attributes = xterm.attributes().map_err(told)?;
    let cursor = screen.cursor();
    if (cursor.row, cursor.col) != look.cursor {
        return Err(format!("cursor: ours {cursor:?}, xterm {:?}", look.cursor));
    }
    for (row, (theirs, sums)) in look.rows.iter().zip(&attributes).enumerate() {
        let ours = screen.row_text(row as u16);
        if ours != *theirs {
            return Err(format!("row {row}:\n ours  {ours:?}\n xterm {theirs:?}"));
        }
        for (col, sum) in sums.iter().enumerate() {
            let style = screen.cell_style(row as u16, col as u16);
            let cell = screen.cell(row as u16, col as u16);
            let is_text = cell.is_some_and(|cell| !cell.is_tail() && cell != Cell::BLANK);
            if is_text && attributes_of(style) != sum & KNOWN {
                return Err(format!(
                    "row {row} column {col} of {ours:?}: {style:?}, xterm {sum:#x}"
                ));
            }
        }
    }
    Ok(())
}

/// The attributes of a cell as they enter into xterm's checksum of it.
fn attributes_of(style: Style) -> u32 {
    let underline = style.attrs.underline() != Underline::None;
    let all = [
        (style.attrs.contains(Attrs::INVISIBLE), xterm::INVISIBLE),
        (underline, xterm::UNDERLINE),
        (style.attrs.contains(Attrs::INVERSE), xterm::INVERSE),
        (style.attrs.contains(Attrs::BLINK), xterm::BLINK),
        (style.attrs.contains(Attrs::BOLD), xterm::BOLD),
    ];
    all.iter().filter(|(on, _)| *on).map(|(_, bit)| bit).sum()
}

/// The attributes compared.
const KNOWN: u32 =
    xterm::INVISIBLE | xterm::UNDERLINE | xterm::INVERSE | xterm::BLINK | xterm::BOLD;

/// The first row, or the cursor, in which we and tmux differ.
fn difference(terminal: &Terminal, theirs: &str, at: &str) -> Option<String> {
    let screen = terminal.screen();
    let mut lines = theirs.lines();
    for (index, ours) in screen.text().iter().enumerate() {
        let (ours, theirs) = (ours.trim_end(), lines.next().unwrap_or("").trim_end());
        if ours != theirs {
            return Some(format!("row {index}:\n ours {ours:?}\n tmux {theirs:?}"));
        }
    }
    let cursor = screen.cursor();
    // A pending wrap is a column past the edge to tmux.
    let last = (COLUMNS - 1).to_string();
    let at = at.replace(&format!("{COLUMNS},"), &format!("{last},"));
    let ours = format!("{},{}", cursor.col, cursor.row);
    (ours != at).then(|| format!("cursor: ours {ours}, tmux {at}"))
}
