//! `rove-lab interrupt`: how long Ctrl-C takes to stop a flood of output over a slow link with a deep queue.

use std::fmt;
use std::io;
use std::time::Duration;

use super::RealFlags;
use super::contender::Contender;
use super::experiment::{self, Body, Experiment, Measured, Over, Title, samples};
use super::outcome::{AGAIN, distributions, table};
use super::sessions::OverLink;
use super::stage::{Setup, Stage};
use crate::experiments::report::paragraphs;
use crate::link::Profile;
use crate::net::scenario::Scenario;
use crate::plot::Figure;
use crate::scratch::Scratch;

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let paths = [256, 1_000, 10_000].map(|kbit| Bottleneck { kbit });
    let paths = flags.setting().pick(&paths[1..2], &paths);
    let cases = Over::each(paths, &flags.contenders(Contender::all())?);
    let rounds = flags.span(6, 60).as_secs().div_ceil(ROUND.as_secs()) as u32;
    experiment::run(&Interrupt { rounds, cases }, flags, |_| Vec::new())
}

/// Floods that Ctrl-C stops.
struct Interrupt {
    rounds: u32,
    cases: Vec<Over<Bottleneck>>,
}

impl Experiment for Interrupt {
    type Case = Over<Bottleneck>;
    type Sample = Answers;

    fn title(&self) -> Title {
        Title::new(
            "interrupt",
            "interrupt-real",
            "Ctrl-C against a flood over a slow link",
            DEPENDS,
        )
    }

    fn cases(&self) -> Vec<Over<Bottleneck>> {
        self.cases.clone()
    }

    fn lasts(&self, _: &Over<Bottleneck>) -> Option<Duration> {
        Some(ROUND * self.rounds)
    }

    fn measure(&self, case: &Over<Bottleneck>, seed: u64) -> io::Result<OverLink<Answers>> {
        let Over { path, contender } = case;
        answers(floods(contender, path.kbit, seed), self.rounds)
    }

    fn report(&self, results: &[Measured<Over<Bottleneck>, Answers>]) -> Body {
        let all = samples(results, |answers| (&answers.ms, answers.unseen));
        let panels = distributions(&all, "from Ctrl-C to its answer, ms", "share");
        Body {
            tables: vec![table("from Ctrl-C to its answer, ms", &all)],
            figure: Figure::new("Ctrl-C against a flood", panels),
        }
    }

    fn prose(&self) -> Vec<String> {
        let (flood, limit) = (FLOOD.as_secs(), LIMIT.as_secs());
        let values: [(&str, &dyn fmt::Display); 3] =
            [("flood", &flood), ("limit", &limit), ("again", &AGAIN)];
        paragraphs(include_str!("text/interrupt.md"), &values)
    }
}

/// A path whose way down is slow.
#[derive(Clone, Copy)]
struct Bottleneck {
    kbit: u32,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} kbit/s", self.kbit)
    }
}

/// A session whose program floods after Enter and answers Ctrl-C, over a way down of this rate with a queue of two
/// seconds.
pub(super) fn floods(contender: &Contender, kbit: u32, seed: u64) -> Setup<'_> {
    // The outer shell gets the signal too, and must outlive it.
    let script = "trap : INT; echo ready$; n=0; while :; do read line; n=$((n+1)); \
                  sh -c \"trap 'echo; echo caught-$n; exit' INT; yes flood-of-output\"; done";
    let up = Profile::delay(Duration::from_millis(50));
    let bits = u64::from(kbit) * 1_000;
    let down = up.clone().rate(bits, (bits / 4) as usize);
    Setup::script(contender, script, Scenario::steady(up, down, seed))
}

/// Starts such a session, and stops this many floods.
pub(super) fn answers(setup: Setup<'_>, rounds: u32) -> io::Result<OverLink<Answers>> {
    let mut stage = Stage::start(setup, Scratch::new()?, "ready$")?;
    stage.begin();
    let clock = stage.net.clock();
    let mut answers = Answers { ms: Vec::new(), unseen: 0 };
    for number in 1..=rounds {
        stage.client.send("\r");
        stage.client.wait_for("the flood", LIMIT, |client| client.shows("flood-of-output"))?;
        stage.rest(FLOOD)?;
        let began = clock.now();
        stage.client.send("\x03");
        let answer = format!("caught-{number}");
        let answered = stage
            .client
            .wait_for("the answer", LIMIT, |client| client.shows(&answer) || client.has_ended());
        match answered {
            Ok(()) if stage.client.has_ended() => {
                return Err(stage.client.missed("the client ended", LIMIT).into());
            }
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => answers.unseen += 1,
            Err(error) => return Err(error),
        }
        answers.ms.push(clock.now().since(began).as_secs_f64() * 1e3);
        if answers.unseen > 0 {
            break;
        }
    }
    Ok(OverLink { found: answers, late: stage.net.late() })
}

/// How long the answers to Ctrl-C took, and how many did not come.
pub(super) struct Answers {
    pub(super) ms: Vec<f64>,
    pub(super) unseen: usize,
}

const FLOOD: Duration = Duration::from_secs(3);
/// A flood and what is around it.
const ROUND: Duration = Duration::from_secs(6);
const LIMIT: Duration = Duration::from_secs(30);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] =
    &["crates/lab/src/real/interrupt.rs", "crates/lab/src/real/text/interrupt.md"];

#[cfg(test)]
mod tests;
