//! Types text and passwords at a real client, and keeps the packets beside what was typed.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use rove_term::Size;

use super::heard::{Heard, Key, Password, heard};
use crate::net::scenario::Scenario;
use crate::predict::cast::Writer;
use crate::predict::judge::{Deed, Effect, Judge, deeds};
use crate::predict::trace::Trace;
use crate::real::contender::Contender;
use crate::real::sessions::OverLink;
use crate::real::stage::{Setup, Stage};
use crate::real::typing::READY;
use crate::rng::Rng;
use crate::scratch::Scratch;

/// One session with text, and one with passwords.
#[derive(Debug)]
pub(crate) struct Played {
    pub(super) keys: Vec<Key>,
    /// From each echoed key to its echo on the screen, in ms.
    pub(super) echoes: Vec<f64>,
    /// Keys with nothing before and after them.
    pub(super) lone: Vec<f64>,
    /// Packets while text was typed.
    pub(super) text: Vec<Heard>,
    pub(super) passwords: Vec<Password>,
    /// Packets while passwords were.
    pub(super) asked: Vec<Heard>,
}

/// Plays both, each for about this span, with these intervals between keys.
///
/// # Errors
/// If a session does not start or ends too early, or a password arrives with another length.
pub(super) fn play(
    contender: &Contender,
    path: &Scenario,
    gaps: &[Duration],
    span: Duration,
) -> io::Result<OverLink<Played>> {
    let mut rng = Rng::new(path.seed);
    let start = rng.below(gaps.len() as u64) as usize;
    let mut gaps = gaps.iter().copied().cycle().skip(start);
    let mut all = Vec::new();
    let mut sum = Duration::ZERO;
    while sum < span {
        let gap = gaps.next().expect("a circle has no end");
        sum += gap;
        all.push(gap);
    }
    let text = type_text(contender, path, &all)?;
    let asked = type_passwords(contender, path, &mut gaps, span, &mut rng)?;
    let late = text.late.and(&asked.late);
    let Text { keys, echoes, lone, packets: text } = text.found;
    let Asked { passwords, packets: asked } = asked.found;
    Ok(OverLink { found: Played { keys, echoes, lone, text, passwords, asked }, late })
}

/// Text that was typed, and its packets.
struct Text {
    keys: Vec<Key>,
    echoes: Vec<f64>,
    lone: Vec<f64>,
    packets: Vec<Heard>,
}

/// Types keys at a program that echoes most of them, and two at the end that are alone.
fn type_text(
    contender: &Contender,
    path: &Scenario,
    gaps: &[Duration],
) -> io::Result<OverLink<Text>> {
    let scratch = Scratch::new()?;
    let (cast, tape) = (scratch.join("text.cast"), scratch.join("text.pcap"));
    write_text(&cast, gaps)?;
    let trace = Trace::load(&cast)?;
    let deeds = deeds(&trace);
    let setup = Setup::playing(contender, &cast, trace.size, path.clone())?;
    let setup = Setup { tape: Some(tape.clone()), ..setup };
    let mut stage = Stage::start(setup, scratch, READY)?;
    stage.begin();
    stage.rest(SETTLE)?;
    let mut judge = Judge::new(&deeds);
    let keys = type_keys(&mut stage, &deeds, &mut judge)?;
    let late = stage.net.late();
    stage.net.flush_tape()?;
    let packets = heard(&tape)?;
    let echoes = judge.latencies().iter().zip(&deeds).take(gaps.len());
    let echoes = echoes.filter(|(_, deed)| deed.effect != Effect::None);
    let echoes = echoes.filter_map(|(latency, _)| Some(latency.as_ref()?.as_secs_f64() * 1e3));
    let (typed, lone) = keys.split_at(gaps.len());
    let count = |key: &Key| {
        let until = key.at + LONE.as_secs_f64();
        packets.iter().filter(|packet| (key.at..until).contains(&packet.at)).count() as f64
    };
    let found = Text {
        echoes: echoes.collect(),
        lone: lone.iter().map(count).collect(),
        keys: typed.to_vec(),
        packets: packets.clone(),
    };
    Ok(OverLink { found, late })
}

/// Types the keys at their times, and waits until the last has no more effects.
fn type_keys(stage: &mut Stage, deeds: &[Deed], judge: &mut Judge<'_>) -> io::Result<Vec<Key>> {
    let clock = stage.net.clock();
    let began = clock.now();
    let first = deeds.first().map_or(Duration::ZERO, |deed| deed.at);
    let mut looked = stage.client.output_bytes();
    let mut keys = Vec::new();
    let mut end = None;
    while end.is_none_or(|end| clock.now() < end) {
        let due = deeds.get(keys.len()).map(|deed| began + (deed.at - first));
        let now = clock.now();
        match due {
            Some(due) if due <= now => {
                let deed = &deeds[keys.len()];
                judge.key_on_its_way(now);
                keys.push(Key {
                    at: now.since(rove_ssp::Time::ZERO).as_secs_f64(),
                    echoed: deed.effect != Effect::None,
                });
                stage.client.send(&deed.octets);
                stage.client.pump(Duration::ZERO)?;
            }
            Some(due) => stage.client.pump(due.since(now).min(LOOK))?,
            None => {
                end.get_or_insert(now + LONE);
                stage.client.pump(LOOK)?;
            }
        }
        if stage.client.output_bytes() != looked {
            looked = stage.client.output_bytes();
            judge.paint(clock.now(), stage.client.screen());
        }
        if stage.client.has_ended() {
            return Err(stage.client.missed("the client not to end", Duration::ZERO).into());
        }
    }
    Ok(keys)
}

/// Writes the recording of a program that echoes each key at once, but for a third of them, in stretches.
fn write_text(path: &Path, gaps: &[Duration]) -> io::Result<()> {
    let mut writer = Writer::new(File::create(path)?, Size::DEFAULT, "text")?;
    let mut at = Duration::ZERO;
    writer.program(at, "text")?;
    writer.output(at, format!("{READY} ").as_bytes())?;
    at += Duration::from_secs(1);
    let lone = [LONE; 2];
    let mut column = 0;
    for (place, gap) in gaps.iter().chain(&lone).enumerate() {
        at += *gap;
        let is_silent = place % STRETCH >= STRETCH - SILENT && place < gaps.len();
        let letter = b'a' + (place * 7 % 26) as u8;
        if is_silent {
            writer.key(at, &[letter])?;
            continue;
        }
        column += 1;
        let (key, echo) = match column > LINE_COLUMNS {
            true => ("\r".to_owned(), format!("\r\n{READY} ")),
            false => (char::from(letter).to_string(), char::from(letter).to_string()),
        };
        column = if column > LINE_COLUMNS { 0 } else { column };
        writer.key(at, key.as_bytes())?;
        writer.output(at + ECHO, echo.as_bytes())?;
    }
    Ok(())
}

/// Passwords that were typed, and their packets.
struct Asked {
    passwords: Vec<Password>,
    packets: Vec<Heard>,
}

/// Types passwords at a shell's `read` without echo for about this span.
fn type_passwords(
    contender: &Contender,
    path: &Scenario,
    gaps: &mut impl Iterator<Item = Duration>,
    span: Duration,
    rng: &mut Rng,
) -> io::Result<OverLink<Asked>> {
    let scratch = Scratch::new()?;
    let tape = scratch.join("asked.pcap");
    let setup = Setup::script(contender, SCRIPT, path.clone());
    let setup = Setup { tape: Some(tape.clone()), ..setup };
    let mut stage = Stage::start(setup, scratch, READY)?;
    stage.begin();
    stage.rest(SETTLE)?;
    let clock = stage.net.clock();
    let now = || clock.now().since(rove_ssp::Time::ZERO).as_secs_f64();
    let end = clock.now() + span;
    let mut passwords = Vec::new();
    stage.client.send("\r");
    for number in 1.. {
        let question = format!("word {number}:");
        stage.client.wait_for("the question", LIMIT, |it| it.shows(&question) || it.has_ended())?;
        if clock.now() >= end {
            break;
        }
        let asked = now();
        stage.rest(rng.span_within(THINK.0, THINK.1))?;
        let length = rng.within(6, 20) as usize;
        let mut letters = Vec::new();
        for key in 0..length {
            letters.push(now());
            stage.client.send([b'a' + (key * 5 % 26) as u8]);
            stage.client.pump(Duration::ZERO)?;
            let gap = gaps.find(|gap| *gap < HESITATES).unwrap_or(HESITATES);
            stage.rest(gap)?;
        }
        let enter = now();
        stage.client.send("\r");
        let answer = format!("taken {number} {length}.");
        stage.client.wait_for("the answer", LIMIT, |it| it.shows(&answer) || it.has_ended())?;
        let first = *letters.first().expect("a password has a letter");
        passwords.push(Password { length, asked, first, enter, done: now(), letters });
        if stage.client.has_ended() {
            return Err(stage.client.missed("the client not to end", Duration::ZERO).into());
        }
    }
    let late = stage.net.late();
    stage.net.flush_tape()?;
    Ok(OverLink { found: Asked { passwords, packets: heard(&tape)? }, late })
}

/// Asks for words in vain, and says how long each was.
const SCRIPT: &str = "echo ready$; read go; n=0; while :; do n=$((n+1)); printf 'word %s: ' $n; stty -echo; \
    read word; stty echo; echo; echo \"taken $n ${#word}.\"; sleep 0.3; done";

/// How long a session is left alone before it is typed at.
const SETTLE: Duration = Duration::from_secs(2);
/// Nothing around a lone key for so long: runs and chaff have ended by then.
const LONE: Duration = Duration::from_millis(6_500);
/// How often a client that writes nothing is looked at.
const LOOK: Duration = Duration::from_millis(5);
const LIMIT: Duration = Duration::from_secs(30);
/// From a question to the first key.
const THINK: (Duration, Duration) = (Duration::from_millis(700), Duration::from_millis(1_600));
/// Nobody stops longer than this in a password.
const HESITATES: Duration = Duration::from_secs(1);
/// The last keys of each stretch are not echoed.
const STRETCH: usize = 36;
const SILENT: usize = 12;
const LINE_COLUMNS: usize = 60;
/// The time the program takes to answer a key.
const ECHO: Duration = Duration::from_millis(1);
