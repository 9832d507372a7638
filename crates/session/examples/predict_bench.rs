//! What one key and one frame cost the prediction engine on a screen of 60 rows and 200 columns:
//! `cargo run --release -p rove-session --example predict_bench`. With a word, only the rows that hold it,
//! once: for callgrind, which counts what [`a_key`] and [`a_frame`] take.
#![allow(clippy::disallowed_methods)] // A measurement reads the clock.

use std::time::{Duration, Instant};

use rove_session::predict::{Display, Facts, Predictor, Settings};
use rove_ssp::Time;
use rove_term::{Dialect, Screen, Size, Terminal};

/// Keys typed in each run, all of them in flight when the last is typed.
const FLIGHT: u64 = 30;
const RUNS: u64 = 200;

/// Costs of a key with its overlay, and of a frame that shows the next key, with its overlay: the median
/// of the runs' means.
fn measure(settings: Settings, text: &[u8], runs: u64) -> (Duration, Duration) {
    let interval = Duration::from_millis(250);
    let (mut all_keys, mut all_frames) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let (mut keys, mut frames) = (Duration::ZERO, Duration::ZERO);
        let mut terminal = Terminal::new(Size::clamped(60, 200), Dialect::ROVE);
        terminal.advance(b"\x1b[30;1H");
        terminal.advance(text);
        terminal.advance(b"\x1b[30;3H\x1b[4h");
        let mut predictor = Predictor::new(settings.with_display(Display::Always));
        let facts = |screen: &'static Screen, echo_ack: u64, sent: u64| {
            let (echo_ack, sent) = (echo_ack.into(), sent.into());
            Facts { screen, echo_ack, sent, interval, line: None }
        };
        let keep = |terminal: &Terminal| -> &'static Screen {
            Box::leak(Box::new(terminal.screen().clone()))
        };
        let mut now = Time::from_millis(1);
        // One confirmed key: the rest is shown.
        predictor.keys(now, b"a", facts(keep(&terminal), 1, 1));
        terminal.advance(b"a");
        predictor.frame(now, facts(keep(&terminal), 2, 2));
        let screen = keep(&terminal);
        for key in 0..FLIGHT {
            now = now + Duration::from_millis(20);
            let start = Instant::now();
            a_key(&mut predictor, now, facts(screen, 2, 2 + key));
            keys += start.elapsed();
        }
        for key in 0..FLIGHT {
            now = now + Duration::from_millis(20);
            terminal.advance(b"x");
            let screen = keep(&terminal);
            let start = Instant::now();
            a_frame(&mut predictor, now, facts(screen, 3 + key, 2 + FLIGHT));
            frames += start.elapsed();
        }
        all_keys.push(keys / FLIGHT as u32);
        all_frames.push(frames / FLIGHT as u32);
    }
    (median(all_keys), median(all_frames))
}

/// A key is typed and what it does is shown.
#[inline(never)]
fn a_key(predictor: &mut Predictor, now: Time, facts: Facts<'_>) {
    predictor.keys(now, b"x", facts);
    a_frame(predictor, now, facts);
}

/// A frame is judged and shown with what is guessed beyond it.
#[inline(never)]
fn a_frame(predictor: &mut Predictor, now: Time, facts: Facts<'_>) {
    predictor.frame(now, facts);
    let mut shown = facts.screen.clone();
    predictor.overlay(&mut shown);
}

fn median(mut spans: Vec<Duration>) -> Duration {
    spans.sort_unstable();
    spans[spans.len() / 2]
}

fn main() {
    let only = std::env::args().nth(1);
    let runs = if only.is_some() { 1 } else { RUNS };
    println!("200x60, {FLIGHT} keys in flight: median of {runs} runs");
    let long = [&b"$ "[..], &[b'm'; 190]].concat();
    for (rules, settings) in [("stock", Settings::STOCK), ("rove", Settings::ROVE)] {
        for (where_to, text) in
            [("at the end of a line", &b"$ "[..]), ("before 190 letters", &long)]
        {
            let row = format!("{rules:5} {where_to:21}");
            if only.as_ref().is_some_and(|word| !row.contains(word)) {
                continue;
            }
            let (key, frame) = measure(settings, text, runs);
            println!("{row} key {key:>9.1?}  frame {frame:>9.1?}");
        }
    }
}
