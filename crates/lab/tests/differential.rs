//! Compares our emulator in stock's profile with the stock server. A program under a real `mosh-server` writes
//! random streams; its frames must make a client show what `Terminal::new(size, Dialect::MOSH)` shows for the same
//! octets.
//!
//! `SEED=17 cargo test -p rove-lab --test differential` runs just that stream.
#![allow(clippy::unwrap_used, reason = "a test file")]

#[path = "common/known.rs"]
mod known;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use known::random_output;
use rove_lab::testing::random_output::RandomOutput;
use rove_lab::testing::rng::Rng;
use rove_lab::testing::stock::{Frame, Stock, differences};
use rove_term::{Cursor, Dialect, Screen, Size, Terminal, width};

/// Streams compared in one run.
const STREAMS: u64 = 5_000;
/// Servers at a time. Each waits most of the time: a frame takes 20 ms.
const SERVERS: u64 = 8;
/// The most failures listed.
const FAILURES_MAX: usize = 16;
/// Tries to make a failing stream shorter.
const TRIES: usize = 150;

/// Where the client of a stock server does not show the server's emulator's screen: faults of stock that a client
/// cannot undo and ours does not copy. The picture is wrong until it is next drawn anew.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    /// The frame moves the cursor back from a column it never reached (`mosh-protocol.md` §11.9).
    CornerCursor,
    /// Insertion, or writing without autowrap, left the first half of a wide character in the last column.
    /// The frame prints it there, where a reader wraps.
    HalfAtTheEdge,
}

/// The result of a stream.
#[derive(Clone, Debug, Default)]
struct Comparison {
    differences: Vec<String>,
    fault: Option<Fault>,
}

struct Tester {
    stock: Stock,
    marks: u64,
    size: Size,
}

impl Tester {
    fn start(size: Size) -> Tester {
        Tester { stock: Stock::start(size).unwrap(), marks: 0, size }
    }

    /// Runs a stream. Afterwards both ends show the same again.
    fn run(&mut self, seed: u64, output: &RandomOutput) -> Comparison {
        let comparison = self.compare(seed, output);
        if !comparison.differences.is_empty() || comparison.fault.is_some() {
            // Stock draws everything anew when the size has changed.
            for rows in [self.size.rows + 1, self.size.rows] {
                let size = Size::clamped(rows, self.size.cols);
                self.stock.resize(size);
                self.stock.wait_for("the size", |stock| stock.screen().size() == size).unwrap();
            }
        }
        comparison
    }

    fn compare(&mut self, seed: u64, output: &RandomOutput) -> Comparison {
        self.marks += 1;
        let number = self.marks;
        let mark = Rng::new(seed).pick(&[Mark::Title, Mark::Clipboard]);
        let octets = [RESET, &output.octets(), END, &mark.octets(number)].concat();
        self.stock.write(&octets).unwrap();
        let mut terminal = Terminal::new(self.size, Dialect::MOSH);
        terminal.advance(&octets);
        self.stock.wait_for("the mark", |stock| mark.is_on(stock.screen(), number)).unwrap();
        let answer = terminal.take_replies();
        let came = self.stock.wait_for("answers", |stock| stock.replies().len() >= answer.len());
        let (shown, wanted) = (self.stock.screen().clone(), terminal.screen());
        let mut found = differences(&shown, wanted);
        let [is, must] = [&shown, wanted].map(|screen| &screen.clipboard().data);
        if is != must {
            found.push(format!("clipboard: stock {is:?}, ours {must:?}"));
        }
        // The icon's name is sent along with the title.
        let icon = |screen: &Screen| -> Option<String> {
            screen.icon().map(|icon| icon.chars().take(ICON_CHARS_MAX).collect())
        };
        if mark == Mark::Title && icon(&shown) != icon(wanted) {
            found.push(format!("icon: stock {:?}, ours {:?}", icon(&shown), icon(wanted)));
        }
        let frames = self.stock.take_frames();
        let mut fault = None;
        if frames.iter().any(|frame| prints_half_at_the_edge(frame)) {
            fault = Some(Fault::HalfAtTheEdge);
            found.clear();
        } else if is_corner(shown.cursor(), wanted.cursor(), self.size) {
            fault = Some(Fault::CornerCursor);
            found.retain(|difference| !difference.starts_with("cursor: "));
        }
        let replies = self.stock.take_replies();
        if came.is_err() || replies != answer {
            let (stock, ours) = (replies.escape_ascii(), answer.escape_ascii());
            found.push(format!("answers: stock {stock}, ours {ours}"));
        }
        // A frame from an older screen rings for what rang before, too.
        if terminal.screen().bells() > 0
            && !frames.iter().any(|frame| frame.octets.starts_with(BEL))
        {
            found.push("bell: ours alone".into());
        }
        if !found.is_empty() {
            let tell = |frame: &Arc<Frame>| format!("frame \"{}\"", frame.octets.escape_ascii());
            found.extend(frames.iter().map(tell));
        }
        Comparison { differences: found, fault }
    }
}

fn prints_half_at_the_edge(frame: &Frame) -> bool {
    let mut reader = Terminal::resume(frame.old.clone(), Dialect::MOSH);
    reader.resize(frame.new.size());
    let last = frame.new.size().cols - 1;
    String::from_utf8_lossy(&frame.octets).chars().any(|c| {
        let cursor = reader.screen().cursor();
        let prints = reader.is_idle() && width::stock(c) == Some(2);
        reader.advance(c.encode_utf8(&mut [0; 4]).as_bytes());
        prints && cursor.col == last && !cursor.pending_wrap
    })
}

fn is_corner(shown: Cursor, wanted: Cursor, size: Size) -> bool {
    let last = (size.rows - 1, size.cols - 1);
    wanted.row == last.0
        && shown.row == last.0
        && shown.col + 1 == wanted.col
        && wanted.col + 4 >= size.cols
}

/// The rest of the longest name, given with `OSC ;`, once it has been sent on with `OSC 1 ;`.
const ICON_CHARS_MAX: usize = 254;
const BEL: &[u8] = b"\x07";
/// A full reset, and the titles it keeps.
const RESET: &[u8] = b"\x1bc\x1b]0;\x07";
/// Ends any sequence that the stream left open.
const END: &[u8] = b"\x18";

/// How the test knows that the end of a stream has been shown. Either way hides what the stream did to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mark {
    Title,
    Clipboard,
}

impl Mark {
    fn octets(self, number: u64) -> Vec<u8> {
        match self {
            Mark::Title => format!("\x1b]2;mark {number}\x07").into_bytes(),
            Mark::Clipboard => format!("\x1b]52;c;mark{number}\x07").into_bytes(),
        }
    }

    fn is_on(self, screen: &Screen, number: u64) -> bool {
        match self {
            Mark::Title => screen.title() == Some(&format!("mark {number}")),
            Mark::Clipboard => screen.clipboard().data == format!("mark{number}"),
        }
    }
}

fn test_streams(
    size: Size,
    next: &AtomicU64,
    end: u64,
    failures: &Mutex<Vec<String>>,
    faults: &AtomicU64,
) {
    let mut tester = Tester::start(size);
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end || failures.lock().unwrap().len() >= FAILURES_MAX {
            return;
        }
        let output = random_output(seed);
        let first = tester.run(seed, &output);
        faults.fetch_add(u64::from(first.fault.is_some()), Ordering::Relaxed);
        if first.differences.is_empty() {
            continue;
        }
        let short = output.shrink(TRIES, |output| !tester.run(seed, output).differences.is_empty());
        let again = tester.run(seed, &short).differences;
        let found = if again.is_empty() { first.differences } else { again };
        let (octets, found) = (short.octets(), found.join("\n  "));
        let text = format!("SEED={seed}: {size:?} \"{}\"\n  {found}", octets.escape_ascii());
        eprintln!("{text}");
        failures.lock().unwrap().push(text);
    }
}

#[test]
fn stock_shows_what_we_say_it_shows() {
    #[allow(clippy::disallowed_methods, reason = "a seed to repeat")]
    let only: Option<u64> = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    let (first, end, servers) = match only {
        Some(seed) => (seed, seed + 1, 1),
        None => (0, STREAMS, SERVERS),
    };
    let next = AtomicU64::new(first);
    let (failures, faults) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..servers {
            scope.spawn(|| test_streams(Size::clamped(6, 20), &next, end, &failures, &faults));
        }
    });
    let failures = failures.into_inner().unwrap();
    println!(
        "{} streams, {} of them skipped for faults of stock",
        end - first,
        faults.into_inner()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
