//! `rove-lab interrupt`: how long Ctrl-C takes to stop a flood of output over a slow link with a deep queue.

use std::io;
use std::time::Duration;

use super::contender::Contender;
use super::outcome::{AGAIN, Outcome, Samples, distributions, joined, late, table};
use super::stage::{Setup, Stage};
use super::{RealFlags, Sessions};
use crate::link::Profile;
use crate::net::scenario::Scenario;
use crate::plot::Figure;
use crate::scratch::Scratch;

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let paths = setting.pick(&[1_000u32][..], &[256, 1_000, 10_000][..]);
    let round = FLOOD * 2;
    let rounds = flags.span(6, 60).as_secs().div_ceil(round.as_secs()) as u32;
    let contenders = flags.contenders(Contender::all())?;
    let (times, lasts) = (flags.times(1, 1), round * rounds);
    let sessions = Sessions { name: "interrupt", lasts, paths, contenders: &contenders, times };
    let ran = sessions.run(
        flags,
        |kbit| name(*kbit),
        |contender, kbit, seed| session(contender, *kbit, rounds, seed),
    );
    let all = joined(ran.found.into_iter().map(|(_, _, samples)| samples));
    Outcome {
        name: "interrupt",
        file: "interrupt-real",
        title: "Ctrl-C against a flood over a slow link".to_owned(),
        notes: vec![format!(
            "100 ms round trip, a bottleneck down with a queue of two seconds; `yes` floods for {} s, then Ctrl-C is \
             typed, and the time taken until what the program answers it is on the client's screen. A Ctrl-C without an \
             answer in {} s counts as that (\"unseen\"). {AGAIN}",
            FLOOD.as_secs(),
            LIMIT.as_secs()
        ), ran.note],
        tables: vec![table("from Ctrl-C to its answer, ms", &all)],
        figure: Figure {
            title: "Ctrl-C against a flood".to_owned(),
            panels: distributions(&all, "from Ctrl-C to its answer, ms", "share"),
        },
        late: late(&all),
        failures: ran.failures,
    }
    .write(flags)
}

fn name(kbit: u32) -> String {
    format!("{kbit} kbit/s")
}

fn session(contender: &Contender, kbit: u32, times: u32, seed: u64) -> io::Result<Samples> {
    // The outer shell gets the signal too, and must outlive it.
    let script = "trap : INT; echo ready$; n=0; while :; do read line; n=$((n+1)); \
                  sh -c \"trap 'echo; echo caught-$n; exit' INT; yes flood-of-output\"; done";
    let up = Profile::delay(Duration::from_millis(50));
    let bits = u64::from(kbit) * 1_000;
    let down = up.clone().rate(bits, (bits / 4) as usize);
    let setup = Setup::script(contender, script, Scenario::steady(up, down, seed));
    let mut stage = Stage::start(setup, Scratch::new()?, "ready$")?;
    stage.begin();
    let clock = stage.net.clock();
    let (mut values, mut unseen) = (Vec::new(), 0);
    for number in 1..=times {
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

const FLOOD: Duration = Duration::from_secs(3);
const LIMIT: Duration = Duration::from_secs(30);
