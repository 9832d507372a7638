//! `rove-lab aoi`: measures the age of the state on the user's screen (Age of Information) while a program writes
//! 20 states a second, on real programs. Paths: 1000 ms one way with 75 % loss, and 100 ms with 0 to 50 %.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rove_ssp::Time;
use rove_term::Size;

use super::RealFlags;
use super::contender::Contender;
use super::experiment::{self, Body, Experiment, Measured, Over, Title, samples};
use super::outcome::{AGAIN, distributions, table};
use super::sessions::OverLink;
use super::stage::{Setup, Stage};
use super::typing::READY;
use crate::experiments::report::paragraphs;
use crate::link::Profile;
use crate::net::scenario::Scenario;
use crate::plot::Figure;
use crate::predict::act::TOLD_OUTPUT;
use crate::predict::cast::Writer;
use crate::rng::{Chance, Rng};
use crate::scratch::Scratch;

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let paths = [(1_000, 75), (100, 0), (100, 10), (100, 25), (100, 50)];
    let paths = paths.map(|(delay_ms, loss)| Course { delay_ms, loss });
    let paths = flags.setting().pick(&paths[3..4], &paths);
    let cases = Over::each(paths, &flags.contenders(Contender::all())?);
    experiment::run(&Age { span: flags.span(6, 120), cases }, flags, |_| Vec::new())
}

/// The age of what programs show over paths that lose.
struct Age {
    span: Duration,
    cases: Vec<Over<Course>>,
}

impl Experiment for Age {
    type Case = Over<Course>;
    /// Ages in ms.
    type Sample = Vec<f64>;

    fn title(&self) -> Title {
        Title::new("aoi", "aoi", "How old what one sees is, real programs", DEPENDS)
    }

    fn cases(&self) -> Vec<Over<Course>> {
        self.cases.clone()
    }

    fn lasts(&self, _: &Over<Course>) -> Option<Duration> {
        Some(self.span + WARM_UP)
    }

    fn measure(&self, case: &Over<Course>, seed: u64) -> io::Result<OverLink<Vec<f64>>> {
        let Over { path, contender } = case;
        let scratch = Scratch::new()?;
        let cast = scratch.join("states.cast");
        let lasts = START + OPENING + WARM_UP + self.span;
        let states = (lasts.as_millis() / STATE_GAP.as_millis()) as u32;
        write_states(&cast, states, seed)?;
        let socket = scratch.join("told");
        let listener = UnixListener::bind(&socket)?;
        let profile = Profile::delay(Duration::from_millis(path.delay_ms.into()))
            .loss(Chance::percent(path.loss));
        let link = Scenario::alike(profile, seed);
        let mut setup = Setup::playing(contender, &cast, Size::DEFAULT, link)?;
        setup.remote.extend(["--tell".into(), socket.into()]);
        let mut stage = Stage::start(setup, scratch, READY)?;
        let (told, _) = listener.accept()?;
        told.set_nonblocking(true)?;
        stage.begin();
        let mut written = Vec::new();
        let mut ages = Vec::new();
        let clock = stage.net.clock();
        let began = clock.now();
        let mut next = began + WARM_UP;
        while clock.now() < began + WARM_UP + self.span {
            // No longer, even where the client is silent: each notice gets the time at which it is read.
            stage.client.pump(next.since(clock.now()).min(LOOK_GAP))?;
            listen(&told, clock.now(), &mut written)?;
            if stage.client.has_ended() {
                return Err(stage.client.missed("the client ended", clock.elapsed()).into());
            }
            if clock.now() >= next {
                next = next + LOOK_GAP;
                // Not in the first row, which is where the clients' bars stand. The first output is no state.
                let shown = stage.client.screen().row_text(STATE_ROW);
                let number = shown
                    .strip_prefix("state ")
                    .and_then(|rest| rest.split(' ').next()?.parse().ok());
                let at =
                    number.and_then(|number: usize| written.get(number)).copied().unwrap_or(began);
                ages.push(clock.now().since(at).as_secs_f64() * 1e3);
            }
        }
        Ok(OverLink { found: ages, late: stage.net.late() })
    }

    fn report(&self, results: &[Measured<Over<Course>, Vec<f64>>]) -> Body {
        let all = samples(results, |ages| (ages, 0));
        let panels = distributions(&all, "age, ms", "share of the time");
        Body {
            tables: vec![table("age in ms by delay and loss one way", &all)],
            figure: Figure::new("Age of what one sees", panels),
        }
    }

    fn prose(&self) -> Vec<String> {
        let seconds = self.span.as_secs();
        paragraphs(include_str!("text/aoi.md"), &[("seconds", &seconds), ("again", &AGAIN)])
    }
}

/// A path that is the same both ways.
#[derive(Clone, Copy)]
struct Course {
    delay_ms: u32,
    /// In percent.
    loss: u32,
}

impl fmt::Display for Course {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ms one way, {} %", self.delay_ms, self.loss)
    }
}

/// When each output was written, as the program tells.
fn listen(mut told: &UnixStream, now: Time, written: &mut Vec<Time>) -> io::Result<()> {
    let mut buffer = [0; 256];
    match told.read(&mut buffer) {
        Ok(length) => {
            written
                .extend(buffer[..length].iter().filter(|what| **what == TOLD_OUTPUT).map(|_| now));
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

fn write_states(path: &Path, count: u32, seed: u64) -> io::Result<()> {
    let mut writer = Writer::new(File::create(path)?, Size::DEFAULT, "states")?;
    let mut rng = Rng::new(seed);
    writer.output(Duration::ZERO, READY.as_bytes())?;
    for number in 1..=count {
        let mut state = format!("\x1b[{};1H\x1b[Kstate {number} ", STATE_ROW + 1);
        for _ in 0..ROWS {
            state += &format!("\x1b[{};1H\x1b[K", rng.within(3, 24));
            for _ in 0..WORDS {
                state += &format!("{:05x} ", rng.below(1 << 20));
            }
        }
        // The reader has seen the first screen by then.
        writer.output(START + STATE_GAP * number, state.as_bytes())?;
    }
    Ok(())
}

/// States a second, and the rows that each changes: as the loss policy's own stream.
const STATE_GAP: Duration = Duration::from_millis(50);
const ROWS: usize = 3;
/// Where its number stands, from 0.
const STATE_ROW: u16 = 1;
const WORDS: usize = 10;
/// After the session is up the first state comes.
/// From the program's start until the client shows it, at most.
const OPENING: Duration = Duration::from_secs(15);
const START: Duration = Duration::from_millis(300);
/// Not counted: until the first states are through.
const WARM_UP: Duration = Duration::from_secs(3);
const LOOK_GAP: Duration = Duration::from_millis(10);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &["crates/lab/src/real/age.rs", "crates/lab/src/real/text/aoi.md"];

#[cfg(test)]
mod tests;
