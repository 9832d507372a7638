//! `rove-lab frames`: compares the length of frames with stock mosh's. A program under a real `mosh-server` writes
//! recorded sessions; each frame of the server leads from one screen to another, and our differ makes a frame
//! between the same two screens.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rove_term::{Dialect, Screen, Size, Terminal, frame, same};
use serde_json::{Value, json};

use crate::experiments::report::{paragraphs, range_of, save, save_json};
use crate::pool;
use crate::predict::trace::{Kind, Trace, casts_in};
use crate::provenance::{self, Provenance};
use crate::stock::{Frame, Stock};

/// What to replay, and where the results go.
#[derive(Args, Clone, Debug)]
pub(crate) struct FramesFlags {
    /// The directory of the recordings
    #[arg(long, value_name = "DIRECTORY", default_value = "crates/lab/traces/keystrokes")]
    traces: PathBuf,
    /// Where the results go
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    results: PathBuf,
}

/// Replays all recordings, prints the table and writes it.
///
/// # Errors
/// If there is no `mosh-server`, or files cannot be read or written.
pub(crate) fn run(flags: &FramesFlags) -> io::Result<i32> {
    let paths = casts_in(&flags.traces)?;
    let mut tallies = Vec::new();
    for tally in pool::each(AT_ONCE, &paths, |path| replay(&Trace::load(path)?)) {
        tallies.push(tally?);
    }
    tallies.push(header_scroll()?);
    let all: Vec<Value> = tallies.iter().map(Tally::to_json).collect();
    let n = range_of(tallies.iter().map(|tally| tally.frames as u64));
    let value = json!({ "command": provenance::command("frames"), "n": n, "recordings": all });
    let recorded = save_json(&flags.results, "frames", value, DEPENDS.iter().copied())?;
    let text = to_markdown(&tallies, &recorded);
    print!("{text}");
    save(&flags.results, "frames.md", &text)?;
    Ok(0)
}

/// The result for one recording.
#[derive(Clone, Debug, Default)]
struct Tally {
    name: String,
    frames: usize,
    stock_bytes: usize,
    /// For a stock client.
    mosh_bytes: usize,
    /// For a rove client.
    rove_bytes: usize,
    /// Frames of stock that lead to a screen ours never shows, or from another; not counted.
    unmatched: usize,
    /// Frames that fit the screen of their server, while its client shows another: the fault of `mosh-protocol.md`
    /// §11.9 and its effect on later frames. Counted as the server means them.
    astray: usize,
    /// The frames in which ours is longest beside stock's.
    worst: Vec<Worst>,
}

/// A frame in which stock needs less.
#[derive(Clone, Debug)]
struct Worst {
    stock: String,
    ours: String,
}

impl Tally {
    fn ratio(&self) -> f64 {
        self.mosh_bytes as f64 / self.stock_bytes.max(1) as f64
    }

    fn count(&mut self, old: &Screen, new: &Screen, stock: &[u8]) {
        self.frames += 1;
        let [mosh, rove] = [Dialect::MOSH, Dialect::ROVE].map(|dialect| {
            let mut octets = Vec::new();
            frame(old, new, &dialect, &mut octets);
            octets
        });
        self.stock_bytes += stock.len();
        self.mosh_bytes += mosh.len();
        self.rove_bytes += rove.len();
        if mosh.len() > stock.len() && self.worst.len() < WORST_MAX {
            self.worst.push(Worst {
                stock: stock.escape_ascii().to_string(),
                ours: mosh.escape_ascii().to_string(),
            });
        }
    }

    fn to_json(&self) -> Value {
        let worst: Vec<Value> =
            self.worst.iter().map(|w| json!({ "mosh": w.stock, "rove": w.ours })).collect();
        json!({
            "recording": self.name,
            "frames": self.frames,
            "unmatched": self.unmatched,
            "astray": self.astray,
            "mosh_bytes": self.stock_bytes,
            "rove_bytes_to_mosh_client": self.mosh_bytes,
            "rove_bytes_to_rove_client": self.rove_bytes,
            "longer_than_mosh": worst,
        })
    }
}

fn to_markdown(tallies: &[Tally], recorded: &Provenance) -> String {
    let about = paragraphs(include_str!("experiments/text/frames.md"), &[]).concat();
    let mut text = format!("# Octets a frame\n\n{}\n\n{about}\n\n", recorded.sentence());
    text += "| recording | frames | not matched | astray | mosh 1.4.0 | rove, to a mosh client | rove, to a \
             rove client | to mosh's |\n|---|---|---|---|---|---|---|---|\n";
    let (scroll, recordings) = match tallies.split_last() {
        Some((scroll, recordings)) => (Some(scroll), recordings),
        None => (None, tallies),
    };
    let mut total = Tally { name: "all recordings".into(), ..Tally::default() };
    for tally in recordings {
        total.frames += tally.frames;
        total.unmatched += tally.unmatched;
        total.astray += tally.astray;
        total.stock_bytes += tally.stock_bytes;
        total.mosh_bytes += tally.mosh_bytes;
        total.rove_bytes += tally.rove_bytes;
    }
    for tally in recordings.iter().chain([&total]).chain(scroll) {
        let Tally { name, frames, unmatched, astray, .. } = tally;
        let Tally { stock_bytes, mosh_bytes, rove_bytes, .. } = tally;
        let _ = write!(text, "| {name} | {frames} | {unmatched} | {astray} | {stock_bytes} ");
        let _ = writeln!(text, "| {mosh_bytes} | {rove_bytes} | {:.2} |", tally.ratio());
    }
    text
}

/// Writes a recording's output under a stock server, chunk by chunk, and asks for the same frames.
fn replay(trace: &Trace) -> io::Result<Tally> {
    let mut tally = Tally { name: trace.name.clone(), ..Tally::default() };
    let mut twins = Twins::start(trace.size)?;
    for event in &trace.events {
        if let Kind::Output(octets) = &event.kind {
            twins.write(octets, &mut tally)?;
        }
    }
    Ok(tally)
}

/// One line scrolled on 80x24 below a header that stays: 1,681 octets in stock's frame
/// (`mosh-protocol.md` §11.8).
fn header_scroll() -> io::Result<Tally> {
    let mut tally = Tally { name: "one line scrolled under a header".into(), ..Tally::default() };
    let mut twins = Twins::start(Size::DEFAULT)?;
    // No character like the one above it: each line has to be written in full.
    let letter = |row: usize, col: usize| char::from(b'a' + ((row * 7 + col) % 26) as u8);
    let line = |row: usize| (0..70).map(|col| letter(row, col)).collect::<String>();
    let mut page = String::from("\x1b[H\x1b[7mheader\x1b[m");
    for row in 1..24 {
        let _ = write!(page, "\r\n{}", line(row));
    }
    twins.write(page.as_bytes(), &mut Tally::default())?;
    // Until the server knows that the client has the page, a frame may start from the screen before it.
    twins.stock.wait_at_most(PATIENCE, |_| false)?;
    let scroll = format!("\x1b[2;24r\x1b[24;1H\n{}\x1b[r\x1b[24;1H", line(24));
    twins.write(scroll.as_bytes(), &mut tally)?;
    Ok(tally)
}

/// A stock server, and our emulators fed the same.
struct Twins {
    stock: Stock,
    /// As the stock server's.
    plain: Terminal,
    /// As a rove server's.
    full: Terminal,
    /// The screens of both when frames were made, the newest last: a frame may start from an older one.
    past: VecDeque<[Screen; 2]>,
}

impl Twins {
    fn start(size: Size) -> io::Result<Twins> {
        let mut stock = Stock::start(size)?;
        stock.take_frames();
        let mut full = Terminal::new(size, Dialect::ROVE);
        let mut plain = Terminal::new(size, Dialect::MOSH);
        for terminal in [&mut full, &mut plain] {
            // The line feed that lets the program go, and the title that says it runs.
            terminal.advance(b"\r\n\x1b]2;ready\x07");
        }
        let past = VecDeque::from([[plain.screen().clone(), full.screen().clone()]]);
        Ok(Twins { stock, plain, full, past })
    }

    fn write(&mut self, octets: &[u8], tally: &mut Tally) -> io::Result<()> {
        self.stock.write(octets)?;
        let mut end = self.plain.clone();
        end.advance(octets);
        let shown = |stock: &Stock| looks(stock.screen(), end.screen());
        let waited = self.stock.wait_at_most(PATIENCE, shown)?;
        let mut rest = octets;
        for made in self.stock.take_frames() {
            let place = self.place(rest, &made).or_else(|| {
                let place = self.meant_place(rest, &made);
                tally.astray += usize::from(place.is_some());
                place
            });
            match place {
                Some((from, used)) => {
                    let (read, unread) = rest.split_at(used);
                    self.advance(read);
                    rest = unread;
                    if !made.octets.is_empty() {
                        tally.count(&from, self.full.screen(), &made.octets);
                    }
                }
                None => tally.unmatched += usize::from(!made.octets.is_empty()),
            }
            self.remember();
        }
        self.advance(rest);
        if !waited {
            self.remember();
        }
        Ok(())
    }

    /// The screen that a frame starts from, and how many octets lead to the one it makes.
    fn place(&self, rest: &[u8], made: &Frame) -> Option<(Screen, usize)> {
        let [_, full] = self.past.iter().rev().find(|[plain, _]| looks(&made.old, plain))?;
        Some((full.clone(), self.prefix(rest, &made.new)?))
    }

    /// The same for a frame that starts from a screen which its client shows otherwise: whichever leads to a
    /// screen that ours shows.
    fn meant_place(&self, rest: &[u8], made: &Frame) -> Option<(Screen, usize)> {
        self.past.iter().rev().find_map(|[plain, full]| {
            let mut meant = Terminal::resume(plain.clone(), Dialect::MOSH);
            meant.advance(&made.octets);
            Some((full.clone(), self.prefix(rest, meant.screen())?))
        })
    }

    fn remember(&mut self) {
        if self.past.len() == PAST_MAX {
            self.past.pop_front();
        }
        self.past.push_back([self.plain.screen().clone(), self.full.screen().clone()]);
    }

    /// How many of the octets lead to this screen. All of them, mostly.
    fn prefix(&self, octets: &[u8], wanted: &Screen) -> Option<usize> {
        let leads = |terminal: &Terminal| looks(wanted, terminal.screen());
        let mut end = self.plain.clone();
        end.advance(octets);
        if leads(&end) {
            return Some(octets.len());
        }
        // A frame that came late is of an older screen.
        if leads(&self.plain) {
            return Some(0);
        }
        let mut step = self.plain.clone();
        (0..octets.len()).find_map(|at| {
            step.advance(&octets[at..=at]);
            leads(&step).then_some(at + 1)
        })
    }

    fn advance(&mut self, octets: &[u8]) {
        self.plain.advance(octets);
        self.full.advance(octets);
        // The server answers the program, not we.
        drop((self.plain.take_replies(), self.full.take_replies()));
        drop(self.stock.take_replies());
    }
}

/// Whether a stock client shows this screen, except for the cursor that stock leaves one column short on the bottom
/// row (`mosh-protocol.md` §11.9).
fn looks(shown: &Screen, wanted: &Screen) -> bool {
    let (is, must) = (shown.cursor(), wanted.cursor());
    let bottom = wanted.size().rows - 1;
    if (is.row, must.row) != (bottom, bottom) || is.col + 1 != must.col {
        return same(shown, wanted, &Dialect::MOSH);
    }
    let mut moved = shown.clone();
    moved.set_cursor(must.row, must.col);
    same(&moved, wanted, &Dialect::MOSH)
}

/// The code that the numbers come from.
const DEPENDS: &[&str] = &[
    "Cargo.lock",
    "crates/lab/src/frames.rs",
    "crates/lab/src/stock.rs",
    "crates/lab/traces/keystrokes",
    "crates/term/src",
];

/// Recordings replayed at a time.
const AT_ONCE: usize = 10;

/// How long a frame may take to come; beyond it stock's screen is taken to differ from ours.
const PATIENCE: Duration = Duration::from_millis(500);

/// Screens remembered: stock keeps at most 32 states that a frame may start from.
const PAST_MAX: usize = 40;

/// The number of frames listed for each recording in which stock needs fewer octets.
const WORST_MAX: usize = 12;
