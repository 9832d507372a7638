//! `rove-lab bulk keys`: measures keys at a shell whose path is full, by a forwarding of its own session or by
//! another program.

use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::contender::{CONTROLS, Contender, Kind, Wire, is_usable, usual};
use super::super::experiment::{Body, Experiment, Measured, Title};
use super::super::flow::Flow;
use super::super::outcome::{AGAIN, Samples, distributions, table};
use super::super::sessions::OverLink;
use super::super::stage::{Setup, Stage};
use super::super::typing::{Pace, Prose, Seen};
use super::super::{RealFlags, Setting};
use super::copier::{Copier, Load, Pipe};
use super::copy::{size, widen, write};
use crate::clock::Clock;
use crate::experiments::report::{Table, paragraphs, tenths};
use crate::plot::Figure;
use crate::relay::Direction;
use crate::rng::Chance;
use crate::run::Program;
use crate::stats::Summary;

/// Keys at shells whose path is full.
pub(super) struct Keys {
    span: Duration,
    cases: Vec<Case>,
}

impl Keys {
    pub(super) fn new(flags: &RealFlags) -> Keys {
        let setting = flags.setting();
        let clean = Pipe::clean(200, 100);
        let lossy = Pipe { loss: Chance::percent(1), ..clean };
        let pipes = setting.pick(vec![clean], vec![clean, lossy]);
        let mut cases: Vec<Case> =
            pipes.into_iter().flat_map(|pipe| cases(pipe, setting)).collect();
        cases.retain(|case| flags.wants(&case.name));
        Keys { span: flags.span(3, 60), cases }
    }
}

impl Experiment for Keys {
    type Case = Case;
    /// The keys, and the rate carried meanwhile in Mbit/s.
    type Sample = (Seen, f64);

    fn title(&self) -> Title {
        Title::new("bulk keys", "bulk-keys", "Keys while the path is full", DEPENDS)
    }

    fn cases(&self) -> Vec<Case> {
        self.cases.clone()
    }

    fn measure(&self, case: &Case, seed: u64) -> io::Result<OverLink<(Seen, f64)>> {
        let beside = match &case.filler {
            Filler::Beside(copier) if !copier.is_rove() => Some(copier.ssh.clone()),
            _ => None,
        };
        let mut prose = Prose::open_with(
            &case.shell,
            Pace::Person,
            self.span,
            case.pipe.scenario(seed),
            |setup| Setup { sshd: setup.sshd.clone().or(beside), ..setup },
        )?;
        widen(&prose.stage.net)?;
        let load =
            Load::File { bytes: case.pipe.mbit * 125_000 * (self.span + WARM * 3).as_secs() };
        let filling = Filling::start(&prose.stage, &case.filler, load, seed)?;
        let clock = Clock::start();
        while !matches!(filling, Filling::Nothing) && filling.carried()? == 0 {
            prose.stage.rest(LOOK)?;
            if clock.elapsed() > BEGIN_MAX {
                return Err(prose.stage.client.missed("the path to be filled", BEGIN_MAX).into());
            }
        }
        prose.stage.rest(WARM)?;
        let (clock, before) = (Clock::start(), filling.carried()?);
        let seen = prose.type_all(TAIL, |_, _| Ok(()))?.whole(&prose.stage)?;
        let carried = filling.carried()? - before;
        let mbit = carried as f64 * 8.0 / clock.elapsed().as_secs_f64() / 1e6;
        filling.finish()?;
        Ok(OverLink { found: (seen, mbit), late: prose.stage.net.late() })
    }

    fn report(&self, results: &[Measured<Case, (Seen, f64)>]) -> Body {
        let results: Vec<_> = results.iter().filter(|one| !one.samples.is_empty()).collect();
        let samples = |one: &&Measured<Case, (Seen, f64)>| Samples {
            path: one.case.pipe.name(),
            program: one.case.name.clone(),
            values: one.samples.iter().flat_map(|(seen, _)| &seen.latencies).copied().collect(),
            unseen: one.samples.iter().map(|(seen, _)| seen.unseen).sum(),
            late: one.late.clone(),
        };
        let all: Vec<Samples> = results.iter().map(samples).collect();
        let mbit = results.iter().map(|one| {
            one.samples.iter().map(|(_, mbit)| mbit).sum::<f64>() / one.samples.len() as f64
        });
        let panels = distributions(&all, "from a key to its effect, ms", "share of keys");
        Body {
            tables: vec![
                verdicts(all.iter().zip(mbit)),
                table("from a key to its effect on the screen, ms", &all),
            ],
            figure: Figure::new("Keys while the path is full", panels),
        }
    }

    fn prose(&self) -> Vec<String> {
        let text = include_str!("../text/bulk-keys.md");
        paragraphs(text, &[("seconds", &self.span.as_secs()), ("again", &AGAIN)])
    }
}

/// A shell, its path, and what fills the path.
#[derive(Clone, Debug)]
pub(super) struct Case {
    name: String,
    pipe: Pipe,
    shell: Contender,
    filler: Filler,
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.name, self.pipe.name())
    }
}

#[derive(Clone, Debug)]
enum Filler {
    Nobody,
    /// A connection through the shell's own session.
    Forward,
    /// A program beside it.
    Beside(Copier),
}

fn cases(pipe: Pipe, setting: Setting) -> Vec<Case> {
    let rove = || Contender::rove(Wire::Native);
    let other = |words: &[&str]| Contender {
        name: words[0].to_owned(),
        kind: Kind::Other(words.iter().map(|word| (*word).to_owned()).collect()),
    };
    let spec = format!("{}:{}", near(), far());
    let own = other(&["rove", "--ssh={ssh}", "--native", "-L", &spec, "{host}", "--", "{command}"]);
    let ssh = other(&["ssh", "-F", "{config}", "-L", &spec, "-tt", "{host}", "--", "{line}"]);
    let case = |name: &str, shell, filler| Case { name: name.to_owned(), pipe, shell, filler };
    let beside = |copier: Copier| {
        case(&format!("rove, {} beside", copier.name), rove(), Filler::Beside(copier))
    };
    let mut cases = vec![
        case("rove, nothing else", rove(), Filler::Nobody),
        case("rove, its own -L", own, Filler::Forward),
        beside(Copier::rove()),
        case(&format!("ssh ({}), its own -L", usual()), ssh, Filler::Forward),
    ];
    if setting == Setting::Full {
        let controls = CONTROLS.into_iter().filter(|control| is_usable(control));
        cases.extend(controls.map(|control| beside(Copier::scp(control))));
    }
    cases
}

/// The traffic that fills a path.
enum Filling {
    Nothing,
    Flow(Flow),
    /// A running copy, and where its file grows.
    Copy(Box<Program>, PathBuf),
}

impl Filling {
    /// Begins the scenario, and starts the traffic that fills the path.
    fn start(stage: &Stage, filler: &Filler, load: Load, seed: u64) -> io::Result<Filling> {
        let (source, target) = (stage.scratch.join("source"), stage.scratch.join("arrived"));
        if let Filler::Beside(_) = filler {
            write(&source, load, seed)?;
            fs::create_dir_all(&target)?;
        }
        stage.begin();
        Ok(match filler {
            Filler::Nobody => Filling::Nothing,
            Filler::Forward => {
                Filling::Flow(Flow::start(&stage.net, Direction::Up, near(), far(), None)?)
            }
            Filler::Beside(copier) => {
                let copy = stage.beside(|ssh, config| {
                    copier.words(load, ssh, config, &source, &target.join("data"))
                })?;
                Filling::Copy(Box::new(copy), target)
            }
        })
    }

    /// Octets so far.
    fn carried(&self) -> io::Result<u64> {
        match self {
            Filling::Nothing => Ok(0),
            Filling::Flow(flow) => Ok(flow.received()),
            Filling::Copy(_, target) => size(target),
        }
    }

    /// Ends it.
    fn finish(self) -> io::Result<()> {
        match self {
            Filling::Nothing => Ok(()),
            Filling::Flow(flow) => flow.finish(),
            Filling::Copy(mut copy, _) => {
                copy.pump(Duration::ZERO)?;
                match copy.has_ended() {
                    true => {
                        Err(copy.missed("a copy that outlasts the keys", Duration::ZERO).into())
                    }
                    false => Ok(()),
                }
            }
        }
    }
}

/// For each shell: how far its median key is beyond the round trip, and the rate carried meanwhile.
fn verdicts<'a>(all: impl Iterator<Item = (&'a Samples, f64)>) -> Table {
    let columns = "path | shell | n | median beyond RTT, ms | carried, Mbit/s | verdict";
    let mut table = Table::new("keys while something else is carried", 2, columns);
    for (samples, mbit) in all {
        let Some(summary) = Summary::of(&samples.values) else { continue };
        // rove is not judged by what other programs do to the path.
        let is_ours = samples.program.starts_with("rove") && !samples.program.contains("scp");
        let beyond = summary.median - TRIP_MS;
        let verdict = match is_ours {
            false => Value::Null,
            true if beyond <= MORE_MS => json!("holds"),
            true => json!("too late"),
        };
        table.rows.push(vec![
            json!(samples.path),
            json!(samples.program),
            json!(summary.n),
            tenths(beyond),
            tenths(mbit),
            verdict,
        ]);
    }
    table
}

/// Where the near end's forwarding listens, and where it goes to at the far end.
fn near() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4_022)
}

fn far() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4_023)
}

/// The round trip of all its paths.
const TRIP_MS: f64 = 100.0;
/// The most that a key may take beyond it.
const MORE_MS: f64 = 25.0;
/// How long the path is full before the first key.
const WARM: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(50);
/// How long it may take until something is carried.
const BEGIN_MAX: Duration = Duration::from_secs(60);
/// How long is waited for keys that are not seen.
const TAIL: Duration = Duration::from_secs(5);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/real/bulk.rs",
    "crates/lab/src/real/bulk/copier.rs",
    "crates/lab/src/real/bulk/copy.rs",
    "crates/lab/src/real/bulk/keys.rs",
    "crates/lab/src/real/flow.rs",
    "crates/lab/src/real/ping.rs",
];
