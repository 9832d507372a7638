//! Tests that no honest diff comes near the limit of work for a diff (threats rows 1, 9 and 10): those of our
//! server and of a stock one, for all recordings, floods, random streams and the cases of the terminal's tests.
#![allow(clippy::unwrap_used, reason = "a test file")]

#[path = "../../term/tests/ref/cases.rs"]
mod cases;
mod common;

use std::path::PathBuf;

use common::say;
use rove_lab::testing::flood;
use rove_lab::testing::predict::trace::{Kind, Trace};
use rove_lab::testing::random_output::RandomOutput;
use rove_lab::testing::stock::Stock;
use rove_session::messages::{HostEvent, write_host};
use rove_session::work::diff_cells_max;
use rove_session::{Peer, View};
use rove_ssp::State;
use rove_term::{Dialect, Screen, Size, Terminal, frame, same};

/// An honest diff touches this share of the limit at most.
const SHARE_MAX: f64 = 0.25;

/// How many screens lie between those that a frame leads from and to: it may start from one that is old.
const STRIDES: [usize; 3] = [1, 10, 200];

/// The largest screens, the narrowest, and usual ones.
const SIZES: [(u16, u16); 6] = [(24, 80), (50, 200), (200, 1000), (1000, 200), (1000, 1), (1, 1)];

/// The largest share so far, and where.
#[derive(Debug, Default)]
struct Most {
    share: f64,
    whose: String,
    diffs: usize,
}

impl Most {
    fn count(&mut self, whose: &str, touched: u64, allowed: u64) {
        let share = touched as f64 / allowed as f64;
        self.diffs += 1;
        if share > self.share {
            self.share = share;
            self.whose = format!("{whose}: {touched} cells of {allowed}");
        }
    }

    fn judge(&self, what: &str, diffs_min: usize) {
        say(&format!(
            "work: {what}: {:.3} of what is allowed, in {} diffs; {}",
            self.share, self.diffs, self.whose
        ));
        assert!(self.diffs >= diffs_min, "{} diffs", self.diffs);
        assert!(self.share <= SHARE_MAX, "{what}: {:.3} in {}", self.share, self.whose);
    }

    /// A client that is led from one of these screens to the other by our server.
    fn follow(&mut self, name: &str, screens: &[Screen]) {
        for peer in [Peer::Stock, Peer::Rove] {
            for stride in STRIDES {
                let mut view = View::new(screens[0].size(), peer);
                let mut old = Screen::new(screens[0].size());
                let last = screens.len() - 1;
                for new in screens.iter().step_by(stride).chain([&screens[last]]) {
                    let diff = diff(&old, new, &peer.dialect());
                    view.apply(&diff).unwrap_or_else(|bad| panic!("{name}: {bad}"));
                    assert!(same(view.screen(), new, &peer.dialect()), "{name}");
                    let allowed = diff_cells_max(old.size(), new.size(), diff.len());
                    let sizes = format!("{:?} to {:?}", old.size(), new.size());
                    let whose = format!("{name} for {peer:?} by {stride}, {sizes}");
                    self.count(&whose, view.cells_touched(), allowed);
                    old = new.clone();
                }
            }
        }
    }
}

/// As `View::diff_from` makes it.
fn diff(old: &Screen, new: &Screen, dialect: &Dialect) -> Vec<u8> {
    let (mut diff, mut octets) = (Vec::new(), Vec::new());
    if old.size() != new.size() {
        write_host(HostEvent::Resize(new.size().into()), &mut diff);
    }
    frame(old, new, dialect, &mut octets);
    write_host(HostEvent::Bytes(&octets), &mut diff);
    diff
}

/// The screens of a terminal of this size after each of these pieces of output.
fn screens<'a>(size: Size, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Screen> {
    let mut program = Terminal::new(size, Dialect::ROVE);
    let mut screens = vec![program.screen().clone()];
    for piece in pieces {
        program.advance(piece);
        screens.push(program.screen().clone());
    }
    screens
}

fn recordings() -> Vec<Trace> {
    let traces = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/traces"));
    let mut paths: Vec<PathBuf> = ["keystrokes", "own"]
        .iter()
        .flat_map(|directory| std::fs::read_dir(traces.join(directory)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "cast"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 20, "{paths:?}");
    paths.iter().map(|path| Trace::load(path).unwrap()).collect()
}

fn outputs(trace: &Trace) -> impl Iterator<Item = &[u8]> {
    trace.events.iter().filter_map(|event| match &event.kind {
        Kind::Output(octets) => Some(octets.as_slice()),
        _ => None,
    })
}

#[test]
fn recordings_need_a_quarter_at_most() {
    let mut most = Most::default();
    for trace in recordings() {
        most.follow(&trace.name, &screens(trace.size, outputs(&trace)));
        // On other screens than it was made for, and while a user drags the window's edge.
        most.follow(&trace.name, &screens(Size::new(200, 1000).unwrap(), outputs(&trace)));
        let mut program = Terminal::new(trace.size, Dialect::ROVE);
        let mut dragged = vec![program.screen().clone()];
        for (index, piece) in outputs(&trace).enumerate() {
            program.advance(piece);
            if index % 3 == 0 {
                program.resize(Size::clamped(10 + (index % 50) as i64, 200 - (index % 170) as i64));
            }
            dragged.push(program.screen().clone());
        }
        most.follow(&format!("{}, dragged", trace.name), &dragged);
    }
    most.judge("recordings", 50_000);
}

#[test]
fn floods_need_a_quarter_at_most() {
    let mut most = Most::default();
    for kind in flood::Kind::ALL {
        let octets = kind.octets(1 << 20, 7);
        for (rows, cols) in SIZES {
            for piece in [100, 5000, 65_536] {
                let name = format!("{} on {rows}x{cols} in pieces of {piece}", kind.name());
                let pieces = octets.chunks(piece).take(300);
                most.follow(&name, &screens(Size::new(rows, cols).unwrap(), pieces));
            }
        }
    }
    most.judge("floods", 10_000);
}

#[test]
fn random_streams_need_a_quarter_at_most() {
    let mut most = Most::default();
    for seed in 0..600 {
        let (rows, cols) = SIZES[seed as usize % SIZES.len()];
        let output = RandomOutput::new(seed);
        let pieces = output.pieces.iter().map(Vec::as_slice);
        most.follow(&format!("seed {seed}"), &screens(Size::new(rows, cols).unwrap(), pieces));
    }
    most.judge("random streams", 10_000);
}

/// Each alone, and all of a file one after the other.
#[test]
fn cases_of_xterms_need_a_quarter_at_most() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../term/tests/ref");
    let mut most = Most::default();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let (_, all) = cases::parse(&std::fs::read_to_string(&path).unwrap());
        for case in &all {
            let (rows, cols) = case.size;
            let inputs = [&case.input[..]].into_iter();
            most.follow(&case.name, &screens(Size::new(rows, cols).unwrap(), inputs));
        }
        let name = path.display().to_string();
        for (rows, cols) in SIZES {
            let inputs = all.iter().map(|case| &case.input[..]);
            most.follow(&name, &screens(Size::new(rows, cols).unwrap(), inputs));
        }
    }
    most.judge("cases", 2000);
}

/// Pictures that take the most of a frame: a colour or a link in each cell, wide and joined characters, marks in
/// every line, both grids at once, and text that moves in many places.
fn pictures(size: Size) -> Vec<Screen> {
    let Size { rows, cols, .. } = size;
    let each = |cell: fn(usize) -> String| -> String {
        (0..usize::from(rows) * usize::from(cols)).map(cell).collect()
    };
    let colours = each(|n| format!("\x1b[38;2;{};{};{}mx", n >> 16, n >> 8 & 255, n & 255));
    let links = each(|n| format!("\x1b]8;;http://{}/\x07x", n % 7));
    let prompts = "\x1b]133;D;1\x07\x1b]133;A\x07$ \x1b]133;B\x07\r\n".repeat(rows.into());
    let pages: [String; 12] = [
        "\x1b#8".to_owned(),
        each(|n| char::from(b'a' + (n % 26) as u8).to_string()),
        each(|n| ["\u{4e16}", "e\u{301}", "\u{1f468}\u{200d}\u{1f469}"][n % 3].to_owned()),
        "\x1b[2J\x1b[H".to_owned() + &colours,
        "\x1b[H".to_owned() + &links + "\x1b]8;;\x07\x1b[m",
        "\x1b[2J\x1b[H".to_owned() + &prompts,
        "\x1b[?1049h\x1b#8".to_owned(),
        "\x1b[?1049l\x1b[H\x1b[J".to_owned() + &colours,
        "\x1b[?1049h".to_owned() + &colours,
        format!("\x1b[?69h\x1b[1;{}s\x1b[9S\x1b[?69l\x1b[?1049l", cols / 2),
        (1..=rows).step_by(7).map(|row| format!("\x1b[{row};1H\x1b[3M\x1b[9@x")).collect(),
        format!("\x1b]52;c;{}\x07\x1b[H\x1b[2J", "QUJD".repeat(40_000)),
    ];
    screens(size, pages.iter().map(String::as_bytes))
}

#[test]
fn the_largest_frames_need_a_quarter_at_most() {
    let mut most = Most::default();
    let mut all = Vec::new();
    for (rows, cols) in SIZES {
        let pictures = pictures(Size::new(rows, cols).unwrap());
        most.follow(&format!("pictures of {rows}x{cols}"), &pictures);
        all.push(pictures);
    }
    // From each size to each other.
    for turn in 0..12 {
        let screens: Vec<Screen> = all.iter().map(|pictures| pictures[turn].clone()).collect();
        let resized: Vec<Screen> = screens.iter().chain(screens.iter().rev()).cloned().collect();
        most.follow(&format!("pictures {turn} of all sizes"), &resized);
    }
    most.judge("pictures", 500);
}

/// A stock server's own frames, on its largest screens.
#[test]
fn a_stock_servers_frames_need_a_quarter_at_most() {
    let mut most = Most::default();
    for (rows, cols) in [(200, 1000), (1000, 200), (24, 80)] {
        let size = Size::new(rows, cols).unwrap();
        let mut stock = Stock::start(size).unwrap();
        let letters =
            "abcdefghijklmnopqrstuvwxyz".repeat(usize::from(rows) * usize::from(cols) / 26);
        let mut outputs: Vec<Vec<u8>> =
            ["\x1b#8", &letters, "\x1b[H\x1b[2J", "\x1b[31;44m\x1b[2J", "\x1b[m\x1b[?1049h\x1b#8"]
                .map(|text| text.as_bytes().to_vec())
                .to_vec();
        outputs.extend(flood::Kind::ALL.map(|kind| kind.octets(200_000, 3)));
        for (index, output) in outputs.iter().enumerate() {
            let mark = format!("\x1b]2;mark {index}\x07");
            stock.write(output).unwrap();
            stock.write(mark.as_bytes()).unwrap();
            let title = format!("mark {index}");
            stock.wait_for("the mark", |stock| stock.screen().title() == Some(&title)).unwrap();
        }
        stock.resize(Size::clamped(cols.min(1000), rows));
        let turned = Size::clamped(cols, rows);
        stock.wait_for("the size", |stock| stock.screen().size() == turned).unwrap();
        for frame in stock.take_frames() {
            let allowed = diff_cells_max(frame.old.size(), frame.new.size(), frame.octets.len());
            most.count(&format!("stock on {rows}x{cols}"), frame.cells_touched, allowed);
        }
    }
    most.judge("stock", 30);
}
