//! What one key and one frame cost the prediction engine on a screen of 60 rows and 200 columns, each with
//! its overlay: `cargo run --release -p rove-session --example predict_bench`. With a word, only the rows
//! that hold it, once: for callgrind, which counts what [`a_key`] and [`a_frame`] take.
#![allow(clippy::disallowed_methods)] // A measurement reads the clock.

use std::time::{Duration, Instant};

use rove_session::predict::{Display, Observation, Predictor, Settings};
use rove_ssp::Time;
use rove_term::{Dialect, Screen, Size, Terminal};

/// Keys typed in each run, all of them in flight when the last is typed.
const FLIGHT: u64 = 30;
const RUNS: u64 = 200;

/// The measured times, one by one.
#[derive(Default)]
struct Costs {
    /// A key, with what it does shown.
    keys: Vec<Duration>,
    /// A frame that shows the next key as foreseen.
    frames: Vec<Duration>,
    /// A frame that shows something else, with all the keys in flight.
    misses: Vec<Duration>,
}

/// A line being typed, and who guesses it.
struct Run {
    terminal: Terminal,
    predictor: Predictor,
    now: Time,
    echo_ack: u64,
    sent: u64,
}

impl Run {
    /// Behind the prompt of this text, before the rest of it. The program has echoed `echoed` keys, so that later
    /// guesses are shown.
    fn new(settings: Settings, text: &[u8], echoed: usize) -> Self {
        let mut terminal = Terminal::new(Size::clamped(60, 200), Dialect::ROVE);
        terminal.advance(b"\x1b[30;1H");
        terminal.advance(text);
        terminal.advance(b"\x1b[30;3H\x1b[4h");
        let predictor = Predictor::new(settings.with_display(Display::Always));
        let mut run = Self { terminal, predictor, now: Time::ZERO, echo_ack: 1, sent: 1 };
        for _ in 0..echoed {
            run.types();
            run.shows(b"x");
        }
        run
    }

    fn types(&mut self) -> Duration {
        let screen = self.terminal.screen().clone();
        self.now = self.now + Duration::from_millis(20);
        let start = Instant::now();
        a_key(&mut self.predictor, self.now, facts(&screen, self.echo_ack, self.sent));
        self.sent += 1;
        start.elapsed()
    }

    /// A frame comes that the program made of the next key.
    fn shows(&mut self, output: &[u8]) -> Duration {
        self.terminal.advance(output);
        let screen = self.terminal.screen().clone();
        self.now = self.now + Duration::from_millis(20);
        self.echo_ack += 1;
        let start = Instant::now();
        a_frame(&mut self.predictor, self.now, facts(&screen, self.echo_ack, self.sent));
        start.elapsed()
    }
}

fn facts(screen: &Screen, echo_ack: u64, sent: u64) -> Observation<'_> {
    let interval = Duration::from_millis(250);
    Observation { screen, echo_ack: echo_ack.into(), sent: sent.into(), interval, line: None }
}

/// A key is typed and what it does is shown.
#[inline(never)]
fn a_key(predictor: &mut Predictor, now: Time, facts: Observation<'_>) {
    predictor.keys(now, b"x", facts);
    a_frame(predictor, now, facts);
}

/// A frame is judged and shown with what is guessed beyond it.
#[inline(never)]
fn a_frame(predictor: &mut Predictor, now: Time, facts: Observation<'_>) {
    predictor.frame(now, facts);
    let mut shown = facts.screen.clone();
    predictor.overlay(&mut shown);
}

fn measure(settings: Settings, text: &[u8], echoed: usize, runs: u64) -> Costs {
    let mut costs = Costs::default();
    for _ in 0..runs {
        let mut run = Run::new(settings, text, echoed);
        costs.keys.extend((0..FLIGHT).map(|_| run.types()));
        costs.frames.extend((0..FLIGHT).map(|_| run.shows(b"x")));
        let mut run = Run::new(settings, text, echoed);
        for _ in 0..FLIGHT {
            run.types();
        }
        costs.misses.push(run.shows(b"<>"));
    }
    costs
}

fn print(row: &str, what: &str, mut costs: Vec<Duration>) {
    costs.sort_unstable();
    let micros = |span: Duration| span.as_secs_f64() * 1e6;
    let count = costs.len() as f64;
    let mean = costs.iter().copied().map(micros).sum::<f64>() / count;
    let variance = costs.iter().map(|cost| (micros(*cost) - mean).powi(2)).sum::<f64>() / count;
    let quantile = |share: f64| micros(costs[((costs.len() - 1) as f64 * share) as usize]);
    println!(
        "{row} {what:6} {:6} {:9.1} {mean:8.1} {:8.1} {:8.1}",
        costs.len(),
        quantile(0.5),
        variance.sqrt(),
        quantile(0.99)
    );
}

fn main() {
    let only = std::env::args().nth(1);
    let runs = if only.is_some() { 1 } else { RUNS };
    println!("200x60, {FLIGHT} keys in flight; microseconds");
    println!("rules where                 what        n    median     mean       sd      p99");
    let long = [&b"$ "[..], &[b'm'; 150]].concat();
    for (rules, settings) in [("stock", Settings::STOCK), ("rove", Settings::ROVE)] {
        for (place, text, echoed) in [
            ("at the end of a line", &b"$ "[..], 1),
            ("before 150 letters", &long, 1),
            ("behind a held key", b"$ ", 150),
        ] {
            let row = format!("{rules:5} {place:21}");
            if only.as_ref().is_some_and(|word| !row.contains(word)) {
                continue;
            }
            let Costs { keys, frames, misses } = measure(settings, text, echoed, runs);
            print(&row, "key", keys);
            print(&row, "frame", frames);
            print(&row, "miss", misses);
        }
    }
}
