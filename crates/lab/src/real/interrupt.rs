//! `rove-lab interrupt`: how long Ctrl-C takes to stop a flood of output over a slow link with a deep queue.

use std::io;
use std::time::Duration;

use rove_term::Size;

use super::RealFlags;
use super::contender::{Contender, Echo};
use super::outcome::{Outcome, Samples, distribution, late, table};
use super::stage::{Setup, Stage};
use crate::link::Profile;
use crate::net::scenario::{Middle, Scenario};
use crate::plot::{Axis, Figure, Panel};
use crate::scratch::Scratch;

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let paths = setting.pick(&[1_000u32][..], &[256, 1_000, 10_000][..]);
    let times = setting.pick(1, 10);
    let contenders = flags.contenders(Contender::all())?;
    let mut items: Vec<(u32, &Contender)> = Vec::new();
    for path in paths {
        items.extend(contenders.iter().map(|contender| (*path, contender)));
    }
    flags.estimate("interrupt", items.len(), FLOOD * 2 * times);
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for ((path, contender), result) in items
        .iter()
        .zip(flags.each(&items, |(kbit, contender)| session(contender, *kbit, times, flags.seed)))
    {
        match result {
            Ok(samples) => all.push(samples),
            Err(error) => failures.push(format!("{}, {}: {error}", contender.name, name(*path))),
        }
    }
    let panels = paths.iter().map(|path| Panel {
        title: name(*path),
        x: Axis::log("from Ctrl-C to its answer, ms"),
        y: Axis::linear("share"),
        curves: all
            .iter()
            .filter(|samples| samples.path == name(*path))
            .map(|samples| distribution(&samples.program, &samples.values))
            .collect(),
    });
    Outcome {
        name: "interrupt",
        file: "interrupt-real",
        title: "Ctrl-C against a flood over a slow link".to_owned(),
        notes: vec![format!(
            "100 ms round trip, a bottleneck down with a queue of two seconds; `yes` floods for {} s, then Ctrl-C is \
             typed, and the time taken until what the program answers it is on the client's screen. A Ctrl-C without an \
             answer in {} s counts as that (\"unseen\").",
            FLOOD.as_secs(),
            LIMIT.as_secs()
        )],
        tables: vec![table("from Ctrl-C to its answer, ms", &all)],
        figure: Figure { title: "Ctrl-C against a flood".to_owned(), panels: panels.collect() },
        late: late(&all),
        failures,
    }
    .write(flags)
}

fn name(kbit: u32) -> String {
    format!("{kbit} kbit/s")
}

fn session(contender: &Contender, kbit: u32, times: u32, seed: u64) -> io::Result<Samples> {
    let script = "echo ready$; n=0; while :; do read line; n=$((n+1)); \
                  sh -c \"trap 'echo; echo caught-$n; exit' INT; yes flood-of-output\"; done";
    let setup = Setup {
        contender,
        echo: Echo::Never,
        remote: remote(contender, script),
        size: Size::DEFAULT,
        middle: Middle::Plain,
        seed,
    };
    let mut stage = Stage::start(setup, Scratch::new()?, "ready$")?;
    let up = Profile::delay(Duration::from_millis(50));
    let bits = u64::from(kbit) * 1_000;
    let down = up.clone().rate(bits, (bits / 4) as usize);
    stage.follow(&Scenario::steady(up, down, seed));
    let clock = stage.net.clock();
    let (mut values, mut unseen) = (Vec::new(), 0);
    for number in 1..=times {
        stage.client.send("\r");
        stage.client.wait_for("the flood", LIMIT, |client| client.shows("flood-of-output"))?;
        let until = clock.now() + FLOOD;
        while clock.now() < until {
            stage.client.pump(until.since(clock.now()))?;
        }
        let began = clock.now();
        stage.client.send("\x03");
        let answer = format!("caught-{number}");
        let answered = stage.client.wait_for("the answer", LIMIT, |client| client.shows(&answer));
        match answered {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => unseen += 1,
            Err(error) => return Err(error),
        }
        values.push(clock.now().since(began).as_secs_f64() * 1e3);
        if unseen > 0 {
            break;
        }
    }
    Ok(Samples {
        path: name(kbit),
        program: contender.name.clone(),
        values,
        unseen,
        late: stage.net.late(),
    })
}

/// The words of a remote command that runs a script for sh: ssh joins its words, the others keep them.
pub(super) fn remote(contender: &Contender, script: &str) -> Vec<std::ffi::OsString> {
    match contender.kind {
        super::contender::Kind::Ssh(_) => {
            vec!["sh".into(), "-c".into(), crate::demo::shell_word(script).into()]
        }
        _ => vec!["sh".into(), "-c".into(), script.into()],
    }
}

const FLOOD: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(30);
