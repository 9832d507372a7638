//! Compares what the user saw with what the server showed in the end, and counts right and wrong guesses.
//!
//! It does not know how guesses are made. It sees only keys, frames and the user's screen.

use std::collections::BTreeMap;
use std::time::Duration;

use rove_ssp::{StateNum, Time};
use rove_term::{Screen, Terminal};

use super::seat::{self, text};
use super::trace::{Kind, Trace};

/// A key counts as shown at once within this, and a wrong grapheme counts from this on.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(5);
/// How long the program has to answer a key before a guess counts as wrong (mosh-protocol.md §4.5).
pub(crate) const ECHO_WAIT: Duration = Duration::from_millis(50);

/// How the clients' bars begin, which are no guesses.
const BARS: [&str; 2] = ["rove: ", "mosh: "];

/// The effect of a key on a path without delay.
#[derive(Clone, Debug)]
pub struct Deed {
    /// Since the recording began.
    pub at: Duration,
    /// The key.
    pub octets: Vec<u8>,
    /// The program that had the screen.
    pub program: String,
    /// The screen afterwards.
    pub effect: Effect,
    /// The screen when the next key was typed.
    pub after: Screen,
}

/// The kind of a key's effect.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Nothing.
    None,
    /// Something a terminal alone could not have shown.
    Elsewhere,
    /// The character appears at the cursor, or the one before the cursor goes.
    InPlace {
        /// Where.
        row: u16,
        /// Where.
        col: u16,
    },
}

/// Replays a trace without any delay.
pub fn deeds(trace: &Trace) -> Vec<Deed> {
    let mut terminal = Terminal::new(trace.size, super::trace::DIALECT);
    let mut deeds: Vec<Deed> = Vec::new();
    let mut before = terminal.screen().clone();
    let mut program = String::new();
    for event in &trace.events {
        match &event.kind {
            Kind::Output(octets) => terminal.advance(octets),
            Kind::Program(name) => program.clone_from(name),
            Kind::Line(_) => {}
            Kind::Key(octets) => {
                finish(&mut deeds, &before, terminal.screen());
                before = terminal.screen().clone();
                deeds.push(Deed {
                    at: event.at,
                    octets: octets.clone(),
                    program: program.clone(),
                    effect: Effect::None,
                    after: before.clone(),
                });
            }
        }
    }
    finish(&mut deeds, &before, terminal.screen());
    deeds
}

fn finish(deeds: &mut [Deed], before: &Screen, after: &Screen) {
    if let Some(deed) = deeds.last_mut() {
        deed.effect = effect(&deed.octets, before, after);
        deed.after = after.clone();
    }
}

fn effect(octets: &[u8], before: &Screen, after: &Screen) -> Effect {
    let (from, to) = (before.cursor(), after.cursor());
    let same_text = before.shares_grid(after) || before.text() == after.text();
    if same_text && (from.row, from.col) == (to.row, to.col) {
        return Effect::None;
    }
    let typed = std::str::from_utf8(octets).unwrap_or("");
    let mut chars = typed.chars();
    match (chars.next(), chars.next()) {
        (Some('\x7f'), None) if (to.row, to.col + 1) == (from.row, from.col) => {
            Effect::InPlace { row: to.row, col: to.col }
        }
        (Some(c), None) if !c.is_control() => {
            let at = [(from.row, from.col), (to.row, to.col.saturating_sub(1))];
            let holds = |(row, col): &(u16, u16)| text(after, *row, *col) == typed;
            let moved = (from.row, from.col) != (to.row, to.col);
            match at.iter().find(|at| moved && holds(at)) {
                Some(&(row, col)) => Effect::InPlace { row, col },
                None => Effect::Elsewhere,
            }
        }
        _ => Effect::Elsewhere,
    }
}

fn is_bar(row: &str) -> bool {
    BARS.iter().any(|bar| row.starts_with(bar))
}

/// Counts of one program, or of all.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Keys typed.
    pub keys: u64,
    /// Of those, the ones that changed anything.
    pub effects: u64,
    /// Of those, the ones echoed in place: the ceiling.
    pub echoed: u64,
    /// Keys whose effect was on the screen within `AT_ONCE`.
    pub at_once: u64,
    /// Keys charged with a wrong grapheme.
    pub wrong: u64,
    /// How long each wrong grapheme stood.
    pub stood: Vec<Duration>,
    /// Graphemes drawn, removed, and drawn again with no key between.
    pub flicker: u64,
    /// Of the keys with an effect.
    pub latencies: Vec<Duration>,
}

impl Tally {
    /// A share of the keys with an effect, in percent.
    pub fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.effects.max(1) as f64
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.keys += other.keys;
        self.effects += other.effects;
        self.echoed += other.echoed;
        self.at_once += other.at_once;
        self.wrong += other.wrong;
        self.flicker += other.flicker;
        self.stood.extend(&other.stood);
        self.latencies.extend(&other.latencies);
    }
}

/// Watches one replay.
#[derive(Debug)]
pub struct Judge<'a> {
    deeds: &'a [Deed],
    /// When each key was typed, and the state that carried it.
    typed: Vec<(Time, StateNum)>,
    /// Keys not seen yet.
    unseen: Vec<usize>,
    latencies: Vec<Option<Duration>>,
    frames: Vec<(Time, StateNum, Screen)>,
    /// Every screen the server held.
    held: Vec<(Time, Screen)>,
    /// When the program at the server got each key.
    delivered: Vec<Time>,
    drawn: BTreeMap<(u16, u16), Drawn>,
    /// A guess that was removed again, and the last key typed then.
    removed: BTreeMap<(u16, u16), (String, usize)>,
    claims: Vec<Claim>,
    flicker: Vec<usize>,
    at_once: Duration,
}

/// A grapheme that no frame showed when it was drawn.
#[derive(Clone, Debug)]
struct Drawn {
    text: String,
    since: Time,
    /// The last key typed then.
    key: usize,
    /// The echo ack of the newest frame then.
    acked: StateNum,
}

#[derive(Clone, Debug)]
struct Claim {
    at: (u16, u16),
    drawn: Drawn,
    until: Time,
}

/// A wrong grapheme, for a closer look.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// The key it is charged to.
    pub key: usize,
    /// Row and column.
    pub at: (u16, u16),
    /// The text drawn.
    pub text: String,
    /// How long it stood.
    pub stood: Duration,
}

impl<'a> Judge<'a> {
    /// For a replay of the trace these deeds come from.
    pub fn new(deeds: &'a [Deed]) -> Self {
        Self {
            deeds,
            typed: Vec::new(),
            unseen: Vec::new(),
            latencies: vec![None; deeds.len()],
            frames: Vec::new(),
            held: Vec::new(),
            delivered: Vec::new(),
            drawn: BTreeMap::new(),
            removed: BTreeMap::new(),
            claims: Vec::new(),
            flicker: Vec::new(),
            at_once: AT_ONCE,
        }
    }

    /// The same with another span for "at once", for sessions in real time.
    pub fn at_once_within(self, at_once: Duration) -> Self {
        Self { at_once, ..self }
    }

    /// The next key was typed; it goes out with this state.
    pub fn key(&mut self, now: Time, state: StateNum) {
        self.unseen.push(self.typed.len());
        self.typed.push((now, state));
    }

    /// The next key was typed; which state carries it is seen later.
    pub fn key_on_its_way(&mut self, now: Time) {
        self.key(now, StateNum::SHUTDOWN);
    }

    /// The first `keys` keys went out with this state or an earlier one.
    pub fn carried(&mut self, keys: usize, state: StateNum) {
        let waiting = self.typed.iter_mut().take(keys).rev();
        waiting.take_while(|key| key.1 == StateNum::SHUTDOWN).for_each(|key| key.1 = state);
    }

    /// The server's screen changed to this.
    pub fn held(&mut self, now: Time, screen: &Screen) {
        self.held.push((now, screen.clone()));
    }

    /// The program at the server got the next key.
    pub fn delivered(&mut self, now: Time) {
        self.delivered.push(now);
    }

    /// A frame arrived.
    pub fn frame(&mut self, now: Time, echo_ack: StateNum, screen: &Screen) {
        self.frames.push((now, echo_ack, screen.clone()));
    }

    /// The user's screen shows this from now on.
    pub fn paint(&mut self, now: Time, shown: &Screen) {
        self.see(now, shown);
        let Some((_, acked, frame)) = self.frames.last() else { return };
        let acked = *acked;
        let mut drawn = BTreeMap::new();
        if !shown.shares_grid(frame) {
            for row in 0..frame.size().rows.min(shown.size().rows) {
                let bar = row == 0 && is_bar(&shown.row_text(row));
                if bar || std::ptr::eq(&**shown.row(row), &**frame.row(row)) {
                    continue;
                }
                for col in 0..frame.size().cols {
                    let text = text(shown, row, col);
                    if text != seat::text(frame, row, col) {
                        drawn.insert((row, col), text);
                    }
                }
            }
        }
        let key = self.typed.len().saturating_sub(1);
        let before = std::mem::take(&mut self.drawn);
        for (at, old) in before {
            if drawn.get(&at) == Some(&old.text) {
                drawn.remove(&at);
                self.drawn.insert(at, old);
                continue;
            }
            if text(frame, at.0, at.1) != old.text {
                self.removed.insert(at, (old.text.clone(), key));
            }
            self.claims.push(Claim { at, drawn: old, until: now });
        }
        for (at, text) in drawn {
            let again =
                self.removed.get(&at).is_some_and(|(old, last)| *old == text && *last == key);
            if again && text != " " {
                self.flicker.push(key);
            }
            self.drawn.insert(at, Drawn { text, since: now, key, acked });
        }
    }

    /// When each key was seen, counted from when it was typed.
    pub fn latencies(&self) -> &[Option<Duration>] {
        &self.latencies
    }

    /// Which of the keys waited for are shown now.
    fn see(&mut self, now: Time, shown: &Screen) {
        let acked = self.frames.last().map_or(StateNum::ZERO, |frame| frame.1);
        let (deeds, typed) = (self.deeds, &self.typed);
        let latest = self.unseen.iter().rposition(|&key| is_shown(&deeds[key], shown));
        let mut at = 0;
        self.unseen.retain(|&key| {
            let (since, state) = typed[key];
            let seen = latest.is_some_and(|latest| at <= latest) || state <= acked;
            at += 1;
            if seen {
                self.latencies[key] = Some(now.since(since));
            }
            !seen
        });
    }

    /// The verdict, by program; and the mistakes.
    pub fn finish(mut self, now: Time) -> (BTreeMap<String, Tally>, Vec<Mistake>) {
        for (at, drawn) in std::mem::take(&mut self.drawn) {
            self.claims.push(Claim { at, drawn, until: now });
        }
        let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
        for (deed, latency) in self.deeds.iter().zip(&self.latencies) {
            let tally = tallies.entry(deed.program.clone()).or_default();
            tally.keys += 1;
            tally.effects += u64::from(deed.effect != Effect::None);
            tally.echoed += u64::from(matches!(deed.effect, Effect::InPlace { .. }));
            let latency = latency.unwrap_or(Duration::MAX);
            if deed.effect != Effect::None {
                tally.at_once += u64::from(latency <= self.at_once);
                tally.latencies.push(latency);
            }
        }
        let mut mistakes = Vec::new();
        for claim in &self.claims {
            let stood = claim.until.since(claim.drawn.since);
            if stood >= AT_ONCE && !claim.drawn.text.is_empty() && !self.was_right(claim) {
                let (key, at) = (claim.drawn.key, claim.at);
                mistakes.push(Mistake { key, at, text: claim.drawn.text.clone(), stood });
            }
        }
        mistakes.sort_by_key(|mistake| mistake.key);
        let mut charged = None;
        for Mistake { key, stood, .. } in &mistakes {
            let tally = tallies.entry(self.deeds[*key].program.clone()).or_default();
            tally.stood.push(*stood);
            tally.wrong += u64::from(charged.replace(*key) != Some(*key));
        }
        for key in self.flicker {
            tallies.entry(self.deeds[key].program.clone()).or_default().flicker += 1;
        }
        (tallies, mistakes)
    }

    /// The server held the grapheme there at some time from the newest frame to when the echo ack of
    /// the key was due.
    fn was_right(&self, claim: &Claim) -> bool {
        let key = claim.drawn.key;
        let Some(&delivered) = self.delivered.get(key) else { return true };
        let until = delivered + ECHO_WAIT;
        let acked = self.typed.partition_point(|(_, state)| *state <= claim.drawn.acked);
        let from = acked.checked_sub(1).map_or(Time::ZERO, |last| self.delivered[last]);
        let first = self.held.partition_point(|(at, _)| *at < from);
        let held = self.held[first..].iter().take_while(|(at, _)| *at <= until);
        let (row, col) = claim.at;
        held.into_iter().any(|(_, screen)| text(screen, row, col) == claim.drawn.text)
    }
}

/// A key that was seen after this long was shown at once.
pub(crate) fn is_at_once(latency: Option<Duration>) -> bool {
    latency.is_some_and(|latency| latency <= AT_ONCE)
}

/// The key's effect stands on this screen.
fn is_shown(deed: &Deed, shown: &Screen) -> bool {
    let (is, should) = (shown.cursor(), deed.after.cursor());
    if (is.row, is.col) != (should.row, should.col) {
        return false;
    }
    match deed.effect {
        Effect::None => true,
        Effect::InPlace { row, col } => text(shown, row, col) == text(&deed.after, row, col),
        Effect::Elsewhere => shown.row_text(is.row) == deed.after.row_text(is.row),
    }
}
