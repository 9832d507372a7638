//! Scenario files: JSON that describes an emulated path and its changes over time. docs/lab.md lists all fields.
//!
//! A file is an object, or a list of steps. Fields outside the steps apply to all of them, and `up` and `down`
//! change one direction. An unknown field is an error, since a misspelt one would silently make a perfect network.
//! This module reads no files; a function supplies recorded bottlenecks.

mod error;

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rove_ssp::Time;
use serde_json::{Map, Value};

use error::{Fault, ScenarioError};

use crate::link::{Jitter, Loss, Order, Oversize, Profile, Rate, Traced};
use crate::opportunities::Opportunities;
use crate::rng::Chance;

/// An emulated path, and its changes over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name; empty if the file has none.
    pub name: String,
    /// Of all its chances.
    pub seed: u64,
    /// From near to far.
    pub up: Course,
    /// From far to near.
    pub down: Course,
    /// The middlebox between the ends.
    pub middle: Middle,
    /// Events at single instants, in the order of time.
    pub events: Vec<Event>,
}

/// One direction over time, one step after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// At least one. The last lasts for ever, unless they are repeated.
    pub steps: Vec<Step>,
    /// Whether the first step follows the last.
    pub after: After,
}

/// For how long a path does the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// `None` is for ever.
    pub lasts: Option<Duration>,
    /// Its profile.
    pub profile: Profile,
}

/// The behaviour after the last step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum After {
    /// It goes on.
    Stay,
    /// The first step again.
    Repeat,
}

/// The middlebox between the two ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Middle {
    /// Nothing: the far end sees the near end's address.
    Plain,
    /// A translator of addresses: the far end sees its address, and a port of its choice.
    Nat,
}

/// Something that happens at an instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Event {
    /// Since the path began.
    pub at: Duration,
    /// The event.
    pub what: Happening,
}

/// An event at an instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Happening {
    /// The near end gets another address.
    Roam,
    /// The translator forgets all it knew.
    Rebind,
}

type Fields = Map<String, Value>;

/// Reads a recorded bottleneck by its name in a scenario; asked once for each name.
pub(crate) type Traces<'a> = dyn FnMut(&str) -> io::Result<Opportunities> + 'a;

/// State that the steps of one scenario share while it is read: recordings read so far, and how many spans are
/// left.
struct Reading<'a, 'b> {
    traces: &'a mut Traces<'b>,
    /// Those read so far; steps of one name share one.
    read: BTreeMap<String, Arc<Opportunities>>,
    spans_left: usize,
}

impl Reading<'_, '_> {
    fn trace(&mut self, name: &str) -> Result<Arc<Opportunities>, Fault> {
        if let Some(known) = self.read.get(name) {
            return Ok(Arc::clone(known));
        }
        if self.read.len() >= TRACES_MAX {
            return Err(Fault::TooManyTraces { name: name.to_owned(), most: TRACES_MAX });
        }
        let trace = (self.traces)(name);
        let trace = trace.map_err(|error| Fault::Trace { name: name.to_owned(), error })?;
        let trace = Arc::new(trace);
        self.read.insert(name.to_owned(), Arc::clone(&trace));
        Ok(trace)
    }
}

impl Course {
    /// The same for ever.
    pub fn steady(profile: Profile) -> Course {
        let profile = Profile { header_bytes: 0, ..profile };
        Course { steps: vec![Step { lasts: None, profile }], after: After::Stay }
    }

    /// The step at this time since the beginning, and when it began and ends.
    pub fn at(&self, since: Duration) -> (&Step, Duration, Option<Duration>) {
        let lasts = |step: &Step| step.lasts.unwrap_or(Duration::MAX);
        let round =
            self.steps.iter().fold(Duration::ZERO, |sum, step| sum.saturating_add(lasts(step)));
        let mut began = Duration::ZERO;
        if self.after == After::Repeat && round < Duration::MAX && !round.is_zero() {
            let whole = since.as_nanos() - since.as_nanos() % round.as_nanos();
            began = Duration::new((whole / NANOS) as u64, (whole % NANOS) as u32);
        }
        let last = self.steps.len().saturating_sub(1);
        for (number, step) in self.steps.iter().enumerate() {
            let ends = began.saturating_add(lasts(step));
            let stays = self.after == After::Stay && number == last;
            if since < ends || number == last {
                return (step, began, (!stays && ends < Duration::MAX).then_some(ends));
            }
            began = ends;
        }
        unreachable!("a course has a step")
    }
}

impl Scenario {
    /// One path both ways, the same for ever.
    pub fn alike(path: Profile, seed: u64) -> Scenario {
        Scenario::steady(path.clone(), path, seed)
    }

    /// A path each way, the same for ever.
    pub fn steady(up: Profile, down: Profile, seed: u64) -> Scenario {
        Scenario {
            name: String::new(),
            seed,
            up: Course::steady(up),
            down: Course::steady(down),
            middle: Middle::Plain,
            events: Vec::new(),
        }
    }

    /// The path in both directions at its beginning, without later changes.
    pub fn calm(&self) -> Scenario {
        let [up, down] = [&self.up, &self.down].map(|course| {
            let (step, _, _) = course.at(Duration::ZERO);
            Profile::delay(step.profile.delay)
        });
        Scenario { middle: self.middle, ..Scenario::steady(up, down, self.seed) }
    }

    /// Reads a scenario.
    ///
    /// # Errors
    /// If it is no JSON, or a field is unknown or has a value that means nothing; the message names it.
    pub fn parse(text: &str, traces: &mut Traces<'_>) -> Result<Scenario, ScenarioError> {
        if text.len() > FILE_BYTES_MAX {
            return Err(bad("", Fault::FileTooLong));
        }
        let value: Value =
            serde_json::from_str(text).map_err(|error| bad("", Fault::NoJson(error)))?;
        let top = match value {
            Value::Object(fields) => fields,
            Value::Array(steps) => Map::from_iter([("steps".to_owned(), Value::Array(steps))]),
            _ => return Err(bad("", Fault::NoScenario)),
        };
        known(&top, "", &[&TOP, &LINK, &["up", "down"]])?;
        let after = match flag(&top, "repeat")? {
            true => After::Repeat,
            false => After::Stay,
        };
        let mut reading = Reading { traces, read: BTreeMap::new(), spans_left: SPANS_MAX };
        let mut course = |way: &str| Ok(Course { steps: steps(&top, way, &mut reading)?, after });
        let (up, down) = (course("up")?, course("down")?);
        if after == After::Repeat && up.steps.iter().any(|step| step.lasts.is_none()) {
            return Err(bad("repeat", Fault::RepeatsForever));
        }
        let name = match top.get("name") {
            None => String::new(),
            Some(name) => name.as_str().ok_or_else(|| bad("name", Fault::NoText))?.to_owned(),
        };
        let seed = match top.get("seed") {
            None => 1,
            Some(seed) => seed.as_u64().ok_or_else(|| bad("seed", Fault::NoWholeNumber))?,
        };
        let mut events = Vec::new();
        for (field, what) in [("roam_s", Happening::Roam), ("rebind_s", Happening::Rebind)] {
            for at in list(&top, field, EVENTS_MAX)? {
                events.push(Event { at: seconds(at, field)?, what });
            }
        }
        events.sort_by_key(|event| event.at);
        let middle = match flag(&top, "nat")?
            || events.iter().any(|event| event.what == Happening::Rebind)
        {
            true => Middle::Nat,
            false => Middle::Plain,
        };
        Ok(Scenario { name, seed, up, down, middle, events })
    }
}

/// The steps of one direction.
fn steps(
    top: &Fields,
    way: &str,
    reading: &mut Reading<'_, '_>,
) -> Result<Vec<Step>, ScenarioError> {
    let mut whole: Fields = top.clone();
    whole.retain(|field, _| LINK.contains(&field.as_str()));
    merge(&mut whole, top, way, "")?;
    let Some(listed) = top.get("steps") else {
        let lasts = duration(top, "")?;
        return Ok(vec![Step { lasts, profile: profile(&whole, way, reading)? }]);
    };
    if top.contains_key("duration_s") {
        return Err(bad("duration_s", Fault::OutsideSteps));
    }
    let listed = listed.as_array().ok_or_else(|| bad("steps", Fault::NoList))?;
    if listed.is_empty() || listed.len() > STEPS_MAX {
        return Err(bad("steps", Fault::StepCount));
    }
    let mut steps = Vec::new();
    for (number, step) in listed.iter().enumerate() {
        let place = format!("steps[{number}]");
        let step = step.as_object().ok_or_else(|| bad(&place, Fault::NoObject))?;
        known(step, &place, &[&LINK, &["up", "down", "duration_s"]])?;
        let mut fields = whole.clone();
        fields.extend(step.iter().map(|(name, value)| (name.clone(), value.clone())));
        merge(&mut fields, step, way, &place)?;
        let lasts = duration(step, &place)?;
        if lasts.is_none() && number + 1 < listed.len() {
            return Err(bad(&format!("{place}.duration_s"), Fault::NoDuration));
        }
        let profile = profile(&fields, &format!("{place}.{way}"), reading)?;
        steps.push(Step { lasts, profile });
    }
    Ok(steps)
}

fn duration(fields: &Fields, place: &str) -> Result<Option<Duration>, ScenarioError> {
    let Some(value) = fields.get("duration_s") else { return Ok(None) };
    let lasts = seconds(value, &join(place, "duration_s"))?;
    if lasts.is_zero() {
        return Err(bad(&join(place, "duration_s"), Fault::Zero));
    }
    Ok(Some(lasts))
}

/// Lays the fields of one direction over those of both.
fn merge(fields: &mut Fields, from: &Fields, way: &str, place: &str) -> Result<(), ScenarioError> {
    for name in ["up", "down"] {
        let Some(value) = from.get(name) else { continue };
        let place = join(place, name);
        let own = value.as_object().ok_or_else(|| bad(&place, Fault::NoObject))?;
        known(own, &place, &[&LINK])?;
        if name == way {
            fields.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
    }
    Ok(())
}

fn profile(
    fields: &Fields,
    place: &str,
    reading: &mut Reading<'_, '_>,
) -> Result<Profile, ScenarioError> {
    let at = |name: &str| join(place, name);
    let number = |name: &str, most: f64| number(fields.get(name), &at(name), most);
    let chance = |name: &str| percent(fields.get(name), &at(name));
    let ms = |name: &str| {
        Ok(Duration::from_micros((number(name, DELAY_MS_MAX)?.unwrap_or(0.0) * 1e3).round() as u64))
    };
    let jitter = ms("jitter_ms")?;
    let jitter = match word(fields, "jitter", &at("jitter"), &["uniform", "normal"])? {
        _ if jitter.is_zero() => Jitter::None,
        1 => Jitter::Normal(jitter),
        _ => Jitter::Uniform(jitter),
    };
    let order = match word(fields, "order", &at("order"), &["kept", "free"])? {
        1 => Order::Free,
        _ => Order::Kept,
    };
    let (outages, holds) = (spans(fields, "outages_s", place)?, spans(fields, "holds_s", place)?);
    let taken = outages.len() + holds.len();
    reading.spans_left = reading
        .spans_left
        .checked_sub(taken)
        .ok_or_else(|| bad(&at("outages_s"), Fault::TooManySpans))?;
    let delay = ms("delay_ms")?;
    let straggle = match fields.contains_key("straggle_ms") {
        true => ms("straggle_ms")?,
        false => (delay / 2).max(Duration::from_millis(1)),
    };
    let rate = number("rate_kbit", RATE_KBIT_MAX)?.filter(|kbit| *kbit > 0.0);
    let rate = rate.map(|kbit| (kbit * 1e3).round().max(1.0) as u64);
    let opportunities = match fields.get("trace") {
        None | Some(Value::Null) => None,
        Some(name) => {
            let name = name.as_str().ok_or_else(|| bad(&at("trace"), Fault::NoFileName))?;
            let trace = reading.trace(name);
            Some(trace.map_err(|fault| bad(&at("trace"), fault))?)
        }
    };
    let speed = opportunities.as_ref().map_or(rate, |trace| Some(trace.bits_per_second()));
    let queue = queue(fields, place, speed)?;
    Ok(Profile {
        delay,
        jitter,
        order,
        loss: loss(fields, place)?,
        duplicate: chance("duplicate_pct")?,
        reorder: chance("reorder_pct")?,
        straggle,
        corrupt: chance("corrupt_pct")?,
        mark: chance("mark_pct")?,
        rate: rate.map(|bits_per_second| Rate { bits_per_second, queue_bytes_max: queue }),
        trace: opportunities.map(|opportunities| Traced {
            opportunities,
            begins: Time::ZERO,
            queue_bytes_max: queue,
        }),
        header_bytes: 0,
        policer: policer(fields, place)?,
        outages,
        holds,
        bursts: None,
        mtu: number("mtu", 65_535.0)?.map_or(usize::MAX, |mtu| mtu as usize),
        oversize: Oversize::Told,
    })
}

fn loss(fields: &Fields, place: &str) -> Result<Loss, ScenarioError> {
    let Some(bursts) = fields.get("bursts").filter(|bursts| !bursts.is_null()) else {
        return Ok(Loss::Independent(percent(fields.get("loss_pct"), &join(place, "loss_pct"))?));
    };
    let place = join(place, "bursts");
    let bursts = bursts.as_object().ok_or_else(|| bad(&place, Fault::NoObject))?;
    known(bursts, &place, &[&["enter_pct", "leave_pct", "good_pct", "bad_pct"]])?;
    let chance = |name: &str| percent(bursts.get(name), &join(&place, name));
    let bad = match bursts.contains_key("bad_pct") {
        true => chance("bad_pct")?,
        false => Chance::SURE,
    };
    Ok(Loss::Bursts {
        enter: chance("enter_pct")?,
        leave: chance("leave_pct")?,
        good: chance("good_pct")?,
        bad,
    })
}

fn policer(fields: &Fields, place: &str) -> Result<Option<Rate>, ScenarioError> {
    let Some(policer) = fields.get("policer").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let place = join(place, "policer");
    let policer = policer.as_object().ok_or_else(|| bad(&place, Fault::NoObject))?;
    known(policer, &place, &[&["rate_kbit", "bucket_bytes"]])?;
    let need = |name: &str, most: f64| {
        let value = number(policer.get(name), &join(&place, name), most)?;
        value.filter(|value| *value > 0.0).ok_or_else(|| bad(&join(&place, name), Fault::Missing))
    };
    let bits_per_second = (need("rate_kbit", RATE_KBIT_MAX)? * 1e3) as u64;
    let queue_bytes_max = need("bucket_bytes", QUEUE_BYTES_MAX)? as usize;
    Ok(Some(Rate { bits_per_second, queue_bytes_max }))
}

/// Octets that may wait before the bottleneck.
fn queue(fields: &Fields, place: &str, speed: Option<u64>) -> Result<usize, ScenarioError> {
    let bytes = number(fields.get("queue_bytes"), &join(place, "queue_bytes"), QUEUE_BYTES_MAX)?;
    let ms = number(fields.get("queue_ms"), &join(place, "queue_ms"), DELAY_MS_MAX)?;
    match (bytes, ms, speed) {
        (Some(_), Some(_), _) => Err(bad(&join(place, "queue_ms"), Fault::TwoQueues)),
        (Some(bytes), None, _) => Ok(bytes as usize),
        (None, Some(ms), Some(speed)) => {
            // A queue of one packet at least: less would let nothing through at all.
            Ok(((ms * speed as f64 / 8e3).min(QUEUE_BYTES_MAX) as usize).max(PACKET_BYTES))
        }
        (None, Some(_), None) => Err(bad(&join(place, "queue_ms"), Fault::QueueWithoutRate)),
        (None, None, _) => Ok(QUEUE_BYTES),
    }
}

fn spans(fields: &Fields, name: &str, place: &str) -> Result<Vec<Range<Time>>, ScenarioError> {
    let mut spans = Vec::new();
    for (number, span) in list(fields, name, EVENTS_MAX)?.iter().enumerate() {
        let place = format!("{}[{number}]", join(place, name));
        let Some([from, until]) = span.as_array().map(Vec::as_slice) else {
            return Err(bad(&place, Fault::NoSpan));
        };
        let (from, until) = (seconds(from, &place)?, seconds(until, &place)?);
        if until <= from {
            return Err(bad(&place, Fault::EndsBeforeItBegins));
        }
        spans.push(Time::ZERO + from..Time::ZERO + until);
    }
    Ok(spans)
}

fn list<'a>(fields: &'a Fields, name: &str, most: usize) -> Result<&'a [Value], ScenarioError> {
    let Some(value) = fields.get(name) else { return Ok(&[]) };
    let values = value.as_array().ok_or_else(|| bad(name, Fault::NoList))?;
    if values.len() > most {
        return Err(bad(name, Fault::ListTooLong));
    }
    Ok(values)
}

fn seconds(value: &Value, place: &str) -> Result<Duration, ScenarioError> {
    let seconds = number(Some(value), place, SECONDS_MAX)?.unwrap_or(0.0);
    Ok(Duration::from_micros((seconds * 1e6).round() as u64))
}

/// A number from zero to `most`; `None` where there is none.
fn number(value: Option<&Value>, place: &str, most: f64) -> Result<Option<f64>, ScenarioError> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let number = value.as_f64().ok_or_else(|| bad(place, Fault::NoNumber(value.clone())))?;
    if !(0.0..=most).contains(&number) {
        return Err(bad(place, Fault::OutOfRange { number, most }));
    }
    Ok(Some(number))
}

fn percent(value: Option<&Value>, place: &str) -> Result<Chance, ScenarioError> {
    let percent = number(value, place, 100.0)?.unwrap_or(0.0);
    Ok(Chance::per_million((percent * 1e4).round() as u32))
}

fn flag(fields: &Fields, name: &str) -> Result<bool, ScenarioError> {
    match fields.get(name) {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| bad(name, Fault::NoBoolean)),
    }
}

/// The place of a word among those allowed; the first is the default.
fn word(
    fields: &Fields,
    name: &str,
    place: &str,
    words: &'static [&'static str],
) -> Result<usize, ScenarioError> {
    let Some(value) = fields.get(name) else { return Ok(0) };
    let found = words.iter().position(|word| value.as_str() == Some(word));
    found.ok_or_else(|| bad(place, Fault::NoneOf { value: value.clone(), words }))
}

fn known(fields: &Fields, place: &str, allowed: &[&[&'static str]]) -> Result<(), ScenarioError> {
    let unknown =
        fields.keys().find(|name| !allowed.iter().any(|some| some.contains(&name.as_str())));
    match unknown {
        None => Ok(()),
        Some(name) => {
            let known = allowed.iter().flat_map(|some| some.iter().copied()).collect();
            Err(bad(&join(place, name), Fault::Unknown { known }))
        }
    }
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn bad(place: &str, fault: Fault) -> ScenarioError {
    ScenarioError { field: place.to_owned(), fault }
}

/// Fields of the whole.
const TOP: [&str; 8] =
    ["name", "seed", "nat", "repeat", "steps", "duration_s", "roam_s", "rebind_s"];

/// Fields of a direction.
const LINK: [&str; 19] = [
    "delay_ms",
    "jitter_ms",
    "jitter",
    "order",
    "loss_pct",
    "bursts",
    "duplicate_pct",
    "reorder_pct",
    "straggle_ms",
    "corrupt_pct",
    "mark_pct",
    "rate_kbit",
    "queue_bytes",
    "queue_ms",
    "trace",
    "policer",
    "outages_s",
    "holds_s",
    "mtu",
];

/// The longest file: ten thousand steps fit.
pub(crate) const FILE_BYTES_MAX: usize = 1 << 20;
/// Steps of a scenario.
const STEPS_MAX: usize = 10_000;
/// Outages, holds or events in one list.
const EVENTS_MAX: usize = 10_000;
/// Outages and holds of all steps and both directions: those outside the steps count in each of them. 3 MiB.
const SPANS_MAX: usize = 100_000;
/// Recorded bottlenecks of a scenario.
const TRACES_MAX: usize = 16;
/// The longest delay, jitter or queue: an hour.
const DELAY_MS_MAX: f64 = 3_600_000.0;
/// The longest time in a scenario: a week.
const SECONDS_MAX: f64 = 604_800.0;
/// The fastest bottleneck: 100 Gbit/s.
const RATE_KBIT_MAX: f64 = 1e8;
/// The largest queue: a gigabyte.
const QUEUE_BYTES_MAX: f64 = 1e9;
/// The queue of a bottleneck that says nothing about it: 64 KiB, a small router's.
const QUEUE_BYTES: usize = 64 << 10;
/// In a second.
const NANOS: u128 = 1_000_000_000;
/// A full packet.
const PACKET_BYTES: usize = 1_500;

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        let mut traces = |name: &str| match name {
            "some.down" => Ok(Opportunities::parse("1\n2\n").unwrap()),
            _ => Err(io::Error::other("not there")),
        };
        Scenario::parse(text, &mut traces)
    }

    #[test]
    fn directions_and_steps_override() {
        let scenario = parse(
            r#"{"name": "a", "seed": 7, "delay_ms": 50, "rate_kbit": 100, "queue_ms": 2000,
                "down": {"loss_pct": 29, "trace": "some.down"},
                "steps": [{"duration_s": 1.5}, {"delay_ms": 5, "up": {"jitter_ms": 2, "jitter": "normal"}}],
                "roam_s": [9, 3], "rebind_s": [4]}"#,
        )
        .unwrap();
        assert_eq!((scenario.name.as_str(), scenario.seed), ("a", 7));
        let ms = Duration::from_millis;
        let [first, second] = &scenario.up.steps[..] else { panic!("two steps") };
        assert_eq!((first.lasts, first.profile.delay), (Some(ms(1500)), ms(50)));
        assert_eq!(first.profile.rate.unwrap().queue_bytes_max, 25_000);
        assert_eq!(second.profile.jitter, Jitter::Normal(ms(2)));
        let down = &scenario.down.steps[1].profile;
        assert_eq!((down.delay, down.jitter), (ms(5), Jitter::None));
        assert_eq!(down.loss, Loss::Independent(Chance::percent(29)));
        assert!(down.trace.is_some() && scenario.up.steps[1].profile.trace.is_none());
        assert_eq!(scenario.middle, Middle::Nat);
        assert_eq!(
            scenario.events.iter().map(|event| event.at.as_secs()).collect::<Vec<_>>(),
            [3, 4, 9]
        );
        let calm = scenario.calm();
        assert_eq!((calm.seed, calm.middle, calm.events.len()), (7, Middle::Nat, 0));
        for course in [&calm.up, &calm.down] {
            let profile = &course.at(ms(9_000)).0.profile;
            assert_eq!((profile.delay, profile.loss), (ms(50), Loss::Independent(Chance::NEVER)));
            assert!(profile.rate.is_none() && profile.trace.is_none());
        }
        assert!(parse(r#"[{"delay_ms": 1000, "jitter_ms": 0, "loss_pct": 75, "rate_kbit": 0, "duration_s": 60}]"#).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, want) in [
            ("{", "no JSON"),
            ("3", "neither an object"),
            (r#"{"dealy_ms": 1}"#, "dealy_ms: no such field"),
            (r#"{"loss_pct": 101}"#, "loss_pct: 101 is not between 0 and 100"),
            (
                r#"{"steps": [{"duration_s": 1}, {"up": {"loss_pct": "x"}}]}"#,
                "steps[1].up.loss_pct: \"x\"",
            ),
            (r#"{"steps": []}"#, "steps: needs 1"),
            (r#"{"steps": [{}, {}]}"#, "steps[0].duration_s: missing"),
            (r#"{"jitter": "gauss"}"#, "up.jitter: \"gauss\" is none of uniform, normal"),
            (r#"{"queue_ms": 10}"#, "queue_ms: needs rate_kbit"),
            (r#"{"rate_kbit": 9, "queue_ms": 1, "queue_bytes": 1}"#, "queue_ms: beside"),
            (r#"{"outages_s": [[2, 1]]}"#, "outages_s[0]: ends before"),
            (r#"{"outages_s": [1]}"#, "outages_s[0]: not two times"),
            (r#"{"trace": "other"}"#, "trace: other: not there"),
            (r#"{"repeat": true}"#, "repeat: needs"),
            (r#"{"bursts": {"enter": 1}}"#, "bursts.enter: no such field"),
            (r#"{"delay_ms": -1}"#, "delay_ms: -1 is not"),
            (r#"{"roam_s": [1e9]}"#, "roam_s: 1000000000 is not"),
            (r#"{"policer": {"rate_kbit": 64}}"#, "policer.bucket_bytes: missing"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(want), "{text}: {error}");
        }
    }

    #[test]
    fn what_steps_share_is_read_once_and_bounded() {
        let step = |trace: &str| format!(r#"{{"duration_s": 1, "trace": "{trace}"}}"#);
        let text = |steps: Vec<String>| format!("[{}]", steps.join(", "));
        let mut asked = Vec::new();
        let mut traces = |name: &str| {
            asked.push(name.to_owned());
            Opportunities::parse("1\n").map_err(io::Error::other)
        };
        let same = text(vec![step("a"), step("b"), step("a")]);
        let scenario = Scenario::parse(&same, &mut traces).unwrap();
        let trace = |course: &Course, step: usize| {
            course.steps[step].profile.trace.clone().unwrap().opportunities
        };
        assert!(Arc::ptr_eq(&trace(&scenario.up, 0), &trace(&scenario.down, 2)));
        assert_eq!(asked, ["a", "b"]);
        let many = text((0..17).map(|number| step(&number.to_string())).collect());
        let mut traces = |_: &str| Opportunities::parse("1\n").map_err(io::Error::other);
        let error = Scenario::parse(&many, &mut traces).unwrap_err().to_string();
        assert!(error.contains("steps[16].up.trace: 16: more than 16 recordings"), "{error}");

        let spans = |count: usize| vec!["[1, 2]"; count].join(", ");
        let steps = |count: usize| vec![r#"{"duration_s": 1}"#; count].join(", ");
        let both = |count, each| {
            parse(&format!(r#"{{"outages_s": [{}], "steps": [{}]}}"#, spans(each), steps(count)))
        };
        assert!(both(100, 500).is_ok());
        let error = both(100, 501).unwrap_err().to_string();
        assert!(error.contains("outages_s: more than 100000"), "{error}");
        assert!(both(1, 10_001).unwrap_err().to_string().contains("outages_s: too long"));
    }

    #[test]
    fn a_course_is_where_its_steps_say() {
        let text = r#"{"repeat": true, "steps": [{"duration_s": 2, "delay_ms": 1}, {"duration_s": 3, "delay_ms": 2}]}"#;
        let course = parse(text).unwrap().up;
        for (at, delay, began, ends) in [
            (0, 1, 0, 2),
            (2, 2, 2, 5),
            (5, 1, 5, 7),
            (1_000_004, 2, 1_000_002, 1_000_005),
            (40_000_000_000, 1, 40_000_000_000, 40_000_000_002),
        ] {
            let (step, since, until) = course.at(Duration::from_secs(at));
            let want = (Duration::from_secs(began), Some(Duration::from_secs(ends)));
            assert_eq!(
                (step.profile.delay, (since, until)),
                (Duration::from_millis(delay), want),
                "{at}"
            );
        }
        let stays = parse(r#"[{"duration_s": 1}, {"duration_s": 1, "loss_pct": 1}]"#).unwrap().up;
        assert_eq!(stays.at(Duration::from_secs(9)).2, None);
    }
}
