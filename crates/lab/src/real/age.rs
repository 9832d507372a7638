//! `rove-lab aoi`: measures the age of the state on the user's screen (Age of Information) while a program writes
//! 20 states a second, on real programs. Paths: 1000 ms one way with 75 % loss, and 100 ms with 0 to 50 %.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use rove_ssp::Time;
use rove_term::Size;

use super::contender::Contender;
use super::outcome::{AGAIN, Outcome, Samples, distributions, joined, late, table};
use super::stage::{Setup, Stage};
use super::typing::READY;
use super::{RealFlags, Sessions};
use crate::link::Profile;
use crate::net::scenario::Scenario;
use crate::plot::Figure;
use crate::predict::act::TOLD_OUTPUT;
use crate::predict::cast::Writer;
use crate::rng::{Chance, Rng};
use crate::scratch::Scratch;

/// One way in milliseconds, and loss each way in percent.
type Course = (u32, u32);

/// Runs it.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let setting = flags.setting();
    let paths: &[Course] =
        setting.pick(&[(100, 25)], &[(1_000, 75), (100, 0), (100, 10), (100, 25), (100, 50)]);
    let span = flags.span(6, 120);
    let contenders = flags.contenders(Contender::all())?;
    let times = flags.times(1, 1);
    let lasts = span + WARM_UP;
    let sessions = Sessions { name: "aoi", lasts, paths, contenders: &contenders, times };
    let ran = sessions.run(
        flags,
        |path| name(*path),
        |contender, path, seed| session(contender, *path, span, seed),
    );
    let all = joined(ran.found.into_iter().map(|(_, _, samples)| samples));
    Outcome {
        name: "aoi",
        file: "aoi",
        title: "How old what one sees is, real programs".to_owned(),
        notes: vec![
            format!(
            "A program writes a state each 50 ms, a number and three rows of text, for {} s over a path that loses from \
             its beginning; each 10 ms the state that the client shows is looked at. Its age counts from when the \
             program wrote it. {AGAIN}",
            span.as_secs()
        ), ran.note],
        tables: vec![table("age in ms by delay and loss one way", &all)],
        figure: Figure {
            title: "Age of what one sees".to_owned(),
            panels: distributions(&all, "age, ms", "share of the time"),
        },
        late: late(&all),
        failures: ran.failures,
    }
    .write(flags)
}

fn name((delay, loss): Course) -> String {
    format!("{delay} ms one way, {loss} %")
}

/// One program over one path.
///
/// # Errors
/// If it does not start, or ends.
pub(crate) fn session(
    contender: &Contender,
    path: Course,
    span: Duration,
    seed: u64,
) -> io::Result<Samples> {
    let scratch = Scratch::new()?;
    let cast = scratch.join("states.cast");
    let lasts = START + OPENING + WARM_UP + span;
    let states = (lasts.as_millis() / STATE_GAP.as_millis()) as u32;
    write_states(&cast, states, seed)?;
    let socket = scratch.join("told");
    let listener = UnixListener::bind(&socket)?;
    let profile =
        Profile::delay(Duration::from_millis(path.0.into())).loss(Chance::percent(path.1));
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
    while clock.now() < began + WARM_UP + span {
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
            let number =
                shown.strip_prefix("state ").and_then(|rest| rest.split(' ').next()?.parse().ok());
            let at = number.and_then(|number: usize| written.get(number)).copied().unwrap_or(began);
            ages.push(clock.now().since(at).as_secs_f64() * 1e3);
        }
    }
    Ok(Samples {
        path: name(path),
        program: contender.name.clone(),
        values: ages,
        unseen: 0,
        late: stage.net.late(),
    })
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
