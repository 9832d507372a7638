//! Types keys at a real client and notes when each is seen on its screen.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use rove_term::{Screen, Size, Terminal};

use super::contender::Contender;
use super::stage::{Setup, Stage};
use crate::net::scenario::Scenario;
use crate::predict::cast::Writer;
use crate::predict::judge::{Deed, Effect, Judge, deeds};
use crate::predict::seat::text;
use crate::predict::trace::{Kind, Trace};
use crate::rng::{Chance, Rng};
use crate::scratch::Scratch;

/// The first text that a recorded program writes: it shows that the session is up.
pub(crate) const READY: &str = "ready$";

/// Writes a recording of a user who types text for at least this time at a prompt that echoes each key at once.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn prose(path: &Path, pace: Pace, span: Duration, seed: u64) -> io::Result<()> {
    let mut writer = Writer::new(File::create(path)?, Size::DEFAULT, "prose")?;
    let mut rng = Rng::new(seed);
    let mut at = Duration::ZERO;
    writer.program(at, "prose")?;
    writer.output(at, format!("{READY} ").as_bytes())?;
    at += Duration::from_secs(1);
    let (mut column, mut word) = (0, 0);
    for _ in 0..pace.keys(span) {
        at += pace.gap(&mut rng);
        let (key, echo) = if column >= LINE_COLUMNS {
            column = 0;
            ("\r".to_owned(), format!("\r\n{READY} "))
        } else if word == 0 {
            column += 1;
            word = rng.within(2, 9);
            (" ".to_owned(), " ".to_owned())
        } else {
            column += 1;
            word -= 1;
            let letter = char::from(b'a' + rng.below(26) as u8).to_string();
            (letter.clone(), letter)
        };
        writer.key(at, key.as_bytes())?;
        writer.output(at + ECHO, echo.as_bytes())?;
    }
    Ok(())
}

/// A session with a prompt that echoes each key after 1 ms, and the text to type at it.
pub(crate) struct Prose {
    /// The session, up over a path that has not begun.
    pub stage: Stage,
    /// The keys, and the cells in which they will stand.
    pub trace: Trace,
    /// Its keys, as many as are typed in the time asked for.
    pub deeds: Vec<Deed>,
}

impl Prose {
    /// Opens one with keys for this span.
    ///
    /// # Errors
    /// As [`Stage::start`].
    pub(crate) fn open(
        contender: &Contender,
        pace: Pace,
        span: Duration,
        path: Scenario,
    ) -> io::Result<Prose> {
        Prose::open_with(contender, pace, span, path, |setup| setup)
    }

    /// As [`Prose::open`], with a setup that is changed before.
    ///
    /// # Errors
    /// As [`Stage::start`].
    pub(crate) fn open_with(
        contender: &Contender,
        pace: Pace,
        span: Duration,
        path: Scenario,
        change: impl FnOnce(Setup<'_>) -> Setup<'_>,
    ) -> io::Result<Prose> {
        let scratch = Scratch::new()?;
        let cast = scratch.join("prose.cast");
        prose(&cast, pace, span, path.seed)?;
        let trace = Trace::load(&cast)?;
        let mut deeds = deeds(&trace);
        let first = deeds.first().map_or(Duration::ZERO, |deed| deed.at);
        deeds.retain(|deed| deed.at - first < span);
        let setup = Setup::playing(contender, &cast, trace.size, path)?;
        let stage = Stage::start(change(setup), scratch, READY)?;
        Ok(Prose { stage, trace, deeds })
    }

    /// Types it all; as [`type_keys`].
    ///
    /// # Errors
    /// If the client's terminal fails.
    pub(crate) fn type_all(
        &mut self,
        tail: Duration,
        each: impl FnMut(&mut Stage, Duration) -> io::Result<()>,
    ) -> io::Result<Seen> {
        type_keys(&mut self.stage, &self.trace, &self.deeds, tail, each)
    }
}

/// The speed of typing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// Like a person: about 4 keys a second, with a pause now and then.
    Person,
    /// A key each time this has passed.
    Every(Duration),
}

impl Pace {
    /// No fewer keys than are typed in this time.
    fn keys(self, span: Duration) -> usize {
        let shortest = match self {
            Pace::Every(gap) => gap,
            Pace::Person => GAP_MIN,
        };
        span.as_micros().div_ceil(shortest.as_micros().max(1)) as usize
    }

    fn gap(self, rng: &mut Rng) -> Duration {
        let ms = Duration::from_millis;
        match self {
            Pace::Every(gap) => gap,
            Pace::Person if rng.happens(Chance::percent(5)) => rng.span_within(ms(600), ms(1_600)),
            Pace::Person => rng.span_within(GAP_MIN, ms(320)),
        }
    }
}

/// The latencies of keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Of each key with an effect, in the order typed, in milliseconds; those never seen count from when they were
    /// typed to the end.
    pub latencies: Vec<f64>,
    /// When each of the keys was typed, since the first.
    pub typed: Vec<Duration>,
    /// How many of the keys were never seen.
    pub unseen: usize,
    /// Whether the client ended before: keys unseen by then stay unseen.
    pub ended: bool,
    /// Graphemes shown that the server never held there about that time: wrong predictions, and where they stood.
    pub wrong: Vec<(u16, u16)>,
}

/// Types the keys of a recording at a session whose program follows it, at the recorded times, and watches the
/// client for `tail` after the last, or until all are seen.
///
/// # Errors
/// If the client's terminal fails.
pub(crate) fn type_keys(
    stage: &mut Stage,
    trace: &Trace,
    deeds: &[Deed],
    tail: Duration,
    mut each: impl FnMut(&mut Stage, Duration) -> io::Result<()>,
) -> io::Result<Seen> {
    let clock = stage.net.clock();
    let began = clock.now();
    let first = deeds.first().map_or(Duration::ZERO, |deed| deed.at);
    let due = |deed: &Deed| deed.at - first;
    let mut judge = Judge::new(deeds);
    let mut paints = Vec::new();
    let mut looked = stage.client.output_bytes();
    let mut keys = deeds.iter().peekable();
    let end = deeds.last().map_or(Duration::ZERO, due) + tail;
    loop {
        let since = clock.now().since(began);
        each(stage, since)?;
        while let Some(deed) = keys.next_if(|deed| due(deed) <= since) {
            judge.key_on_its_way(clock.now());
            stage.client.send(&deed.octets);
        }
        let next = keys.peek().map_or(LOOK, |deed| due(deed).saturating_sub(since));
        stage.client.pump(next.min(LOOK))?;
        if stage.client.output_bytes() != looked {
            looked = stage.client.output_bytes();
            let now = clock.now();
            judge.paint(now, stage.client.screen());
            paints.push((now.since(began), stage.client.screen().clone()));
        }
        let all_typed = keys.peek().is_none();
        let pending = |(key, deed): (usize, &Deed)| {
            deed.effect != Effect::None && judge.latencies()[key].is_none()
        };
        let ended = stage.client.has_ended();
        if ended || since >= end || (all_typed && !deeds.iter().enumerate().any(pending)) {
            break;
        }
    }
    let mut seen = Seen { ended: stage.client.has_ended(), ..Seen::default() };
    // A user would go on waiting.
    let over = if seen.ended { end } else { clock.now().since(began) };
    for (deed, latency) in deeds.iter().zip(judge.latencies()) {
        if deed.effect == Effect::None {
            continue;
        }
        seen.unseen += usize::from(latency.is_none());
        let latency = latency.unwrap_or(over.saturating_sub(due(deed)));
        seen.latencies.push(latency.as_secs_f64() * 1e3);
        seen.typed.push(due(deed));
    }
    seen.wrong = wrong(trace, &paints);
    Ok(seen)
}

impl Seen {
    /// The latencies, of a client that must not end.
    ///
    /// # Errors
    /// If it did.
    pub(crate) fn whole(self, stage: &Stage) -> io::Result<Seen> {
        match self.ended {
            true => Err(stage.client.missed("the client not to end", Duration::ZERO).into()),
            false => Ok(self),
        }
    }
}

/// Graphemes, blanks too, that were painted and that the program never held in their cell. It is read from outside and
/// knows no frames: a grapheme of any time since the first key counts as right, so that delay alone makes nothing wrong.
fn wrong(trace: &Trace, paints: &[(Duration, Screen)]) -> Vec<(u16, u16)> {
    // Empty until the first key.
    let mut held: HashMap<(u16, u16), HashSet<String>> = HashMap::new();
    let mut terminal = Terminal::new(trace.size, crate::predict::DIALECT);
    let mut before = terminal.screen().clone();
    for event in &trace.events {
        match &event.kind {
            Kind::Key(_) if held.is_empty() => {
                held = cells(&before).map(|at| (at, [text(&before, at.0, at.1)].into())).collect();
            }
            Kind::Output(octets) => {
                terminal.advance(octets);
                if !held.is_empty() {
                    changed(&before, terminal.screen(), |at, text| {
                        held.entry(at).or_default().insert(text);
                    });
                }
                before = terminal.screen().clone();
            }
            _ => {}
        }
    }
    let mut wrong = Vec::new();
    let Some(((_, first), rest)) = paints.split_first() else { return wrong };
    let mut before = first;
    for (_, screen) in rest {
        changed(before, screen, |at, text| {
            let bar = at.0 == 0
                && ["mosh: ", "rove: "].iter().any(|bar| screen.row_text(0).starts_with(bar));
            let known = held.get(&at).is_some_and(|texts| texts.contains(&text));
            if !known && !bar && !text.is_empty() {
                wrong.push(at);
            }
        });
        before = screen;
    }
    wrong
}

/// The place of each cell.
fn cells(screen: &Screen) -> impl Iterator<Item = (u16, u16)> + use<> {
    let Size { rows, cols, .. } = screen.size();
    (0..rows).flat_map(move |row| (0..cols).map(move |col| (row, col)))
}

/// Each cell whose grapheme differs from before.
fn changed(before: &Screen, after: &Screen, mut tell: impl FnMut((u16, u16), String)) {
    for row in 0..after.size().rows {
        if row < before.size().rows && std::ptr::eq(&**before.row(row), &**after.row(row)) {
            continue;
        }
        for col in 0..after.size().cols {
            let now = text(after, row, col);
            if now != text(before, row, col) {
                tell((row, col), now);
            }
        }
    }
}

/// The least time between two keys of a person.
const GAP_MIN: Duration = Duration::from_millis(80);
/// How often a client that writes nothing is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// The column after which a line ends, so that no word wraps.
const LINE_COLUMNS: u32 = 60;
/// The time the program takes to answer a key.
const ECHO: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::trace::Event;

    #[test]
    fn blanks_are_wrong_where_the_program_held_none_since_the_first_key() {
        let event = |kind| Event { at: Duration::ZERO, kind };
        let output = |octets: &[u8]| event(Kind::Output(octets.to_vec()));
        let key = || event(Kind::Key(b"x".to_vec()));
        let events = vec![output(b"old"), output(b"\rnew"), key(), output(b" x"), key()];
        let trace = Trace { name: String::new(), size: Size::DEFAULT, events };
        let painted = |octets: &[u8]| {
            let mut terminal = Terminal::new(trace.size, crate::predict::DIALECT);
            terminal.advance(octets);
            (Duration::ZERO, terminal.screen().clone())
        };
        for (octets, expected) in [
            (b"new x".as_slice(), vec![]),
            (b"new  ", vec![]),
            (b"ne", vec![(0, 2)]),
            (b"old", vec![(0, 0), (0, 1), (0, 2)]),
            (b"rove: the bar, from which all is blank", vec![]),
        ] {
            let paints = [painted(b"new"), painted(octets)];
            assert_eq!(wrong(&trace, &paints), expected, "{:?}", paints[1].1.row_text(0));
        }
    }
}
