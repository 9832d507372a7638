//! `rove-lab scrollback`: measures how soon lines that were missed reach the terminal's history, what a key waits for
//! meanwhile, and what lines cost while nothing is missed.

use std::time::Duration;

use rove_session::client::TtyScreen;
use rove_ssp::Time;
use rove_term::Size;
use serde_json::json;

use crate::experiments::probe::Measured;
use crate::experiments::report::{Report, Table, tenths};
use crate::experiments::sender::Sender;
use crate::experiments::spread::Spread;
use crate::experiments::{Scale, many, quantile};
use crate::host::Kind;
use crate::link::Profile;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::rng::Chance;
use crate::session::{Plan, Session, Typing, Usage};
use crate::tty::Answers;
use crate::world::Fault;

/// The parts of the lab that its numbers come from.
pub const DEPENDS: &[&str] = &[
    "crates/lab/src/experiments/probe.rs",
    "crates/lab/src/experiments/sender.rs",
    "crates/lab/src/experiments/spread.rs",
    "crates/lab/src/experiments/text/scrollback.md",
    "crates/lab/src/compare.rs",
    "crates/lab/src/host.rs",
    "crates/lab/src/obscured.rs",
    "crates/lab/src/person.rs",
    "crates/lab/src/scrollback.rs",
    "crates/lab/src/session.rs",
    "crates/lab/src/shell.rs",
    "crates/lab/src/tty.rs",
];

/// The experiment.
///
/// # Errors
/// What must not happen, a line that is missing or there twice above all.
pub fn report(scale: Scale) -> Result<Report, Fault> {
    let mut missed = Table::new(
        "10,000 lines written in an outage of 30 s: ms from its end until the terminal shows the newest screen, and \
         until it has all lines, once and in order",
        1,
        "loss % | outages | newest median | newest most | all median | all most",
    );
    let mut keys = Table::new(
        "Latency of keys in ms: alone, and after 10,000 lines that are missing",
        2,
        "loss % | lines | keys | median | mean | ±95 % | p99",
    );
    let x = || Axis::linear("datagrams lost each way, %");
    let mut outage = Panel::new(
        "after an outage of 30 s",
        x(),
        Axis::linear("median, ms"),
        vec![Curve::solid("newest screen", []), Curve::solid("all 10,000 lines", [])],
    );
    let mut latency = Panel::new(
        "a key",
        x(),
        Axis::linear("99th percentile, ms"),
        vec![Curve::solid("no lines", []), Curve::solid("10,000 lines missing", [])],
    );
    for loss in LOSSES {
        let seeds: Vec<u64> = (1..=scale.runs(RUNS)).collect();
        let outages = many(&seeds, |seed| Run::start(*seed, loss)?.outage())?;
        let [newest, all] = [0, 1].map(|which: usize| {
            let mut times: Vec<f64> = outages.iter().map(|times| times[which]).collect();
            times.sort_by(f64::total_cmp);
            times
        });
        let median = |times: &[f64]| quantile(times, 0.5);
        let most = |times: &[f64]| quantile(times, 1.0);
        missed.rows.push(vec![
            json!(loss),
            json!(seeds.len()),
            tenths(median(&newest)),
            tenths(most(&newest)),
            tenths(median(&all)),
            tenths(most(&all)),
        ]);
        outage.curves[0].points.push((f64::from(loss), median(&newest)));
        outage.curves[1].points.push((f64::from(loss), median(&all)));
        for (place, lines) in [Lines::None, Lines::CatchUp].into_iter().enumerate() {
            let runs = many(&seeds, |seed| {
                let keys_ms = Run::start(*seed, loss)?.keys(lines)?;
                Ok(Measured { keys_ms, ..Measured::default() })
            })?;
            let spread = Spread::of_keys(&runs);
            let mut row = vec![json!(loss), json!(lines.words())];
            row.extend(spread.cells());
            row.push(tenths(spread.quantile(0.99)));
            latency.curves[place].points.push((f64::from(loss), spread.quantile(0.99)));
            keys.rows.push(row);
        }
    }
    Ok(Report::new(
        "scrollback",
        "Lines for the terminal's own history",
        include_str!("experiments/text/scrollback.md"),
        DEPENDS,
        (
            vec![missed, keys, octets()?],
            Figure::new("Lines that were missed, at 100 ms round trip", vec![outage, latency]),
        ),
    ))
}

/// What an Enter at a prompt on the last row costs.
fn octets() -> Result<Table, Fault> {
    let mut table = Table::new(
        "Octets from the server for an Enter at a prompt in the last row, mean of 100",
        1,
        "session | octets",
    );
    for (name, window) in
        [("without lines", TtyScreen::Alternate), ("with lines", TtyScreen::Inline)]
    {
        let mut run = Run::start_in(1, 0, window)?;
        run.write(&numbered(1, 40))?;
        run.pass(Duration::from_secs(3))?;
        let before = run.octets_down();
        for _ in 0..ENTERS {
            run.press(b"\r")?;
            run.pass(KEY_PAUSE)?;
        }
        let octets = (run.octets_down() - before) as f64 / f64::from(ENTERS);
        table.rows.push(vec![json!(name), tenths(octets)]);
    }
    Ok(table)
}

/// What goes on while keys are typed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lines {
    None,
    CatchUp,
}

impl Lines {
    fn words(self) -> &'static str {
        match self {
            Lines::None => "none",
            Lines::CatchUp => "10,000 missing",
        }
    }
}

/// A session at a prompt, on a terminal with a history.
struct Run {
    session: Session,
    loss: u32,
}

impl Run {
    fn start(seed: u64, loss: u32) -> Result<Run, Fault> {
        Run::start_in(seed, loss, TtyScreen::Inline)
    }

    fn start_in(seed: u64, loss: u32, window: TtyScreen) -> Result<Run, Fault> {
        let answers = Answers::After(Duration::from_millis(1));
        let session = Session::new(&Plan {
            seed,
            sender: Sender::native(),
            kind: Kind::Shell,
            typing: Typing::Silent,
            size: Size::DEFAULT,
            path: path(0),
            usage: Usage { window, answers, ..Usage::PLAIN },
        });
        let mut run = Run { session, loss };
        run.pass(Duration::from_secs(2))?;
        run.session.server_mut().host.stop();
        run.set_path(path(loss));
        run.pass(Duration::from_secs(10))?;
        Ok(run)
    }

    /// The times of an outage, in ms: until the newest screen is there, and until all lines are.
    fn outage(mut self) -> Result<[f64; 2], Fault> {
        self.set_path(path(100));
        for first in (1..LINES).step_by(LINES as usize / 30) {
            self.write(&numbered(first, (first + LINES / 30).min(LINES + 1)))?;
            self.pass(Duration::from_secs(1))?;
        }
        self.set_path(path(self.loss));
        let start = self.session.world.now();
        let mut newest = None;
        while self.since(start) < LIMIT_MS {
            self.pass(STEP)?;
            if newest.is_none() && self.shows_newest() {
                newest = Some(self.since(start));
            }
            if self.has_all() {
                return Ok([newest.unwrap_or(f64::NAN), self.since(start)]);
            }
        }
        self.fault("lines are missing")
    }

    /// From each key to its letter on the terminal, in ms.
    fn keys(mut self, lines: Lines) -> Result<Vec<f64>, Fault> {
        let mut times = Vec::new();
        for round in 0..ROUNDS {
            if lines == Lines::CatchUp {
                let first = round * LINES + 1;
                self.write(&numbered(first, first + LINES))?;
                // The last screen of them is there.
                self.pass(Duration::from_millis(500))?;
            }
            for key in 1..=KEYS {
                let cursor = self.session.client().tty.screen().cursor();
                let start = self.session.world.now();
                self.press(b"a")?;
                while self.session.client().tty.screen().cursor() == cursor {
                    self.pass(MS)?;
                    if self.since(start) > LIMIT_MS {
                        return self.fault("a key is not shown");
                    }
                }
                times.push(self.since(start));
                self.pass(if key % WORD == 0 { WORD_PAUSE } else { KEY_PAUSE })?;
            }
            self.press(b"\r")?;
            self.pass(Duration::from_secs(20))?;
        }
        Ok(times)
    }

    fn set_path(&mut self, profile: Profile) {
        let Session { world, client_id, server_id } = &mut self.session;
        world.set_profile(*client_id, *server_id, profile.clone());
        world.set_profile(*server_id, *client_id, profile);
    }

    /// The program writes this.
    fn write(&mut self, octets: &str) -> Result<(), Fault> {
        let server_id = self.session.server_id;
        let now = self.session.world.local_now(server_id);
        self.session.server_mut().server.handle_output(now, octets.as_bytes());
        self.session.world.poke(server_id)
    }

    fn press(&mut self, keys: &[u8]) -> Result<(), Fault> {
        let client_id = self.session.client_id;
        let now = self.session.world.local_now(client_id);
        self.session.client_mut().type_now(now, keys);
        self.session.world.poke(client_id)
    }

    fn pass(&mut self, span: Duration) -> Result<(), Fault> {
        self.session.world.run_until(self.session.world.now() + span)
    }

    fn since(&self, start: Time) -> f64 {
        self.session.world.now().since(start).as_secs_f64() * 1e3
    }

    fn octets_down(&self) -> u64 {
        let Session { world, client_id, server_id } = &self.session;
        world.link(*server_id, *client_id).map_or(0, |link| link.counters().offered_bytes)
    }

    fn shows_newest(&self) -> bool {
        let last = LINES.to_string();
        self.session.client().tty.screen().text().iter().any(|row| row.trim_end() == last)
    }

    /// The terminal has all lines, once and in order.
    fn has_all(&self) -> bool {
        let tty = &self.session.client().tty;
        let history = tty.history();
        let lines = LINES as usize;
        // Looked at in vain each 5 ms otherwise.
        if history.len() + usize::from(Size::DEFAULT.rows) < lines {
            return false;
        }
        let above = (0..history.len()).filter_map(|line| history.text(line));
        let numbers = above.chain(tty.screen().text());
        let numbers: Vec<u32> = numbers.filter_map(|line| line.trim_end().parse().ok()).collect();
        numbers.iter().copied().eq(1..=LINES)
    }

    fn fault<T>(&self, what: &str) -> Result<T, Fault> {
        Err(Fault::new(self.session.world.now(), format!("{what}, {} % lost", self.loss)))
    }
}

/// Each with its number.
fn numbered(first: u32, end: u32) -> String {
    (first..end).map(|number| format!("\r\n{number}")).collect()
}

/// 100 ms round trip.
fn path(loss: u32) -> Profile {
    Profile::delay(Duration::from_millis(50)).loss(Chance::percent(loss))
}

const LOSSES: [u32; 3] = [0, 5, 29];
const LINES: u32 = 10_000;

/// Sessions of a cell.
const RUNS: u64 = 60;

/// Times that lines catch up in a session, and keys typed each time.
const ROUNDS: u32 = 3;
const KEYS: u32 = 10;
const KEY_PAUSE: Duration = Duration::from_millis(300);

/// Keys of a word, and the time until the next word.
const WORD: u32 = 5;
const WORD_PAUSE: Duration = Duration::from_millis(1_500);

/// How often Enter is typed.
const ENTERS: u32 = 100;

const MS: Duration = Duration::from_millis(1);

/// How often the terminal is looked at.
const STEP: Duration = Duration::from_millis(5);

/// No line takes so long.
const LIMIT_MS: f64 = 60_000.0;
