//! `rove-lab privacy`: measures how much a listener learns of keys and passwords from the packets of a session, with
//! rove in each setting, OpenSSH with and without chaff, and mosh.

mod heard;
mod leaks;
mod passwords;
mod session;

use std::fmt;
use std::io;
use std::time::Duration;

use rove_ssp::SlotTiming;
use serde_json::{Value, json};

use self::heard::{Heard, Key, Learnt, learn};
use self::leaks::{Check, of_leaks};
use self::passwords::{Guessed, guess};
use self::session::{Played, play};
use super::RealFlags;
use super::bars::{self, Bar};
use super::claims;
use super::contender::{Chaff, Contender, Kind, Ssh, lets_log_in, missing, usual};
use super::experiment::{self, Body, Experiment, Measured, Over, Title};
use super::sessions::OverLink;
use crate::experiments::report::{Table, hundredths, paragraphs, tenths, thousandths};
use crate::link::Profile;
use crate::listener::Estimate;
use crate::net::scenario::Scenario;
use crate::plot::{Axis, Curve, Figure, Panel};
use crate::predict::trace::Kind as Event;
use crate::rng::Chance;
use crate::stats::Summary;

/// Runs it.
///
/// # Errors
/// If there can be no links here, recordings cannot be read, or the results cannot be written.
pub(crate) fn run(flags: &RealFlags) -> io::Result<i32> {
    let privacy = Privacy {
        paths: flags.setting().pick(&PATHS[..1], &PATHS),
        span: flags.span(20, 240),
        contenders: flags.contenders(contenders(flags)?)?,
        gaps: gaps(flags)?,
    };
    experiment::run(&privacy, flags, |_| {
        let mut notes: Vec<String> = missing().into_iter().filter(|_| !lets_log_in()).collect();
        if flags.openssh.is_none() {
            notes.extend(paragraphs(include_str!("text/keystroke-openssh.md"), &[]));
        }
        notes
    })
}

/// The paths: without loss, and with; a short run takes the first.
const PATHS: [Trip; 4] = [
    Trip { ms: 40, loss: 0 },
    Trip { ms: 40, loss: 5 },
    Trip { ms: 40, loss: 29 },
    Trip { ms: 100, loss: 0 },
];

/// Sessions of each program over the first of them in full. In 240 s some 40 passwords are typed.
const SESSIONS: u32 = 6;

/// A path by its round trip, and the share of packets it loses each way, in percent.
#[derive(Clone, Copy, Eq, PartialEq)]
struct Trip {
    ms: u32,
    loss: u32,
}

impl fmt::Display for Trip {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} ms, {} % loss", self.ms, self.loss)
    }
}

/// Sessions that are listened to.
struct Privacy {
    paths: &'static [Trip],
    span: Duration,
    contenders: Vec<Contender>,
    /// Intervals between keys of recorded people.
    gaps: Vec<Duration>,
}

impl Experiment for Privacy {
    type Case = Over<Trip>;
    type Sample = Listened;

    fn title(&self) -> Title {
        let title = "What packets tell a listener of what is typed";
        Title::new("privacy", "privacy", title, DEPENDS)
    }

    fn cases(&self) -> Vec<Over<Trip>> {
        Over::each(self.paths, &self.contenders)
    }

    /// Passwords are typed without loss so often that there are 200 and more of each program.
    fn times(&self, flags: &RealFlags, case: &Over<Trip>) -> u32 {
        let is_first = case.path == PATHS[0];
        flags.times(1, if is_first { SESSIONS } else { 1 })
    }

    fn lasts(&self, _: &Over<Trip>) -> Option<Duration> {
        Some(2 * self.span + Duration::from_secs(35))
    }

    fn measure(&self, case: &Over<Trip>, seed: u64) -> io::Result<OverLink<Listened>> {
        let Over { path: Trip { ms, loss }, contender } = case;
        let profile = Profile::delay(Duration::from_micros(u64::from(*ms) * 500));
        let profile = profile.loss(Chance::percent(*loss));
        let played = play(contender, &Scenario::alike(profile, seed), &self.gaps, self.span)?;
        let OverLink { found, late } = played;
        let planted =
            (contender.name == SLOTS && *loss == 0).then(|| Check::of(&found, case.path.seconds()));
        Ok(OverLink { found: Listened { played: found, planted }, late })
    }

    // A judge that does not find what is there finds nothing.
    fn doubts(&self, results: &[Measured<Over<Trip>, Listened>]) -> Vec<String> {
        let missed = checks(results).filter_map(|check| match check {
            Check::Planted(planted) if !planted.is_found() => {
                Some(format!("a planted leak was not found: {planted:?}"))
            }
            _ => None,
        });
        missed.collect()
    }

    fn report(&self, results: &[Measured<Over<Trip>, Listened>]) -> Body {
        let judged: Vec<Judged<'_>> = results.iter().filter_map(Judged::of).collect();
        let tables = vec![
            of_keys(&judged),
            costs(&judged),
            of_passwords(&judged),
            of_lateness(&judged),
            of_leaks(checks(results)),
            bars(&judged),
        ];
        Body { tables, figure: figure(&judged) }
    }

    fn prose(&self) -> Vec<String> {
        let seconds = self.span.as_secs();
        paragraphs(include_str!("text/privacy.md"), &[("seconds", &seconds)])
    }
}

/// Intervals between keys, as people typed in recordings.
fn gaps(flags: &RealFlags) -> io::Result<Vec<Duration>> {
    let mut gaps = Vec::new();
    for trace in claims::recordings(flags)? {
        let keys = trace.events.iter().filter(|event| matches!(event.kind, Event::Key(_)));
        let at: Vec<Duration> = keys.map(|event| event.at).collect();
        gaps.extend(at.windows(2).map(|two| (two[1] - two[0]).clamp(GAP_MIN, GAP_MAX)));
    }
    match gaps.is_empty() {
        true => Err(io::Error::other(format!(
            "no keys to type: --trace names recordings, or run where {} is",
            claims::DIRECTORY
        ))),
        false => Ok(gaps),
    }
}

/// Rove in each setting, mosh, and ssh.
fn contenders(flags: &RealFlags) -> io::Result<Vec<Contender>> {
    let rove = |name: &str, options: &[&str]| {
        let words = ["rove", "--ssh={ssh}", "--native"].iter().chain(options);
        let words = words.chain(&["{host}", "--", "{command}"]);
        let words = words.map(|word| (*word).to_owned()).collect();
        Contender { name: name.to_owned(), kind: Kind::Other(words) }
    };
    let ssh = |name: &str, chaff, root| Contender {
        name: name.to_owned(),
        kind: Kind::Ssh(Ssh { chaff, root, ..Ssh::over(usual()) }),
    };
    let mut all = vec![
        rove(SECRETS, &["--obscure=secrets"]),
        rove(SLOTS, &["--obscure"]),
        rove(METERED, &["--obscure", "--metered"]),
        rove(NEVER, &["--obscure=never"]),
        Contender::mosh(),
    ];
    if let Some(root) = flags.openssh()?.filter(|_| lets_log_in()) {
        all.push(ssh(CHAFF, Chaff::Default, Some(root.clone())));
        all.push(ssh("ssh without chaff", Chaff::Off, Some(root)));
    } else if lets_log_in() {
        all.push(ssh("ssh, the system's", Chaff::Default, None));
    }
    Ok(all)
}

/// Sessions that were listened to, and whether the judge found what was planted into them.
struct Listened {
    played: Played,
    planted: Option<Check>,
}

fn checks(results: &[Measured<Over<Trip>, Listened>]) -> impl Iterator<Item = &Check> {
    results.iter().flat_map(|one| one.samples.iter().filter_map(|one| one.planted.as_ref()))
}

/// What a listener made of the sessions of one case.
struct Judged<'a> {
    case: &'a Over<Trip>,
    played: Vec<&'a Played>,
    learnt: Learnt,
    guessed: Guessed,
}

impl<'a> Judged<'a> {
    fn of(one: &'a Measured<Over<Trip>, Listened>) -> Option<Judged<'a>> {
        let played: Vec<&Played> = one.samples.iter().map(|one| &one.played).collect();
        played.first()?;
        let Over { path, contender } = &one.case;
        let text: Vec<(&[Heard], &[Key])> =
            played.iter().map(|it| (&it.text[..], &it.keys[..])).collect();
        let learnt = learn(&text, path.seconds(), path.slot(&contender.name), 1);
        let asked = played.iter().map(|it| (&it.asked[..], &it.passwords[..]));
        let guessed = guess(&asked.collect::<Vec<_>>(), path.seconds());
        Some(Judged { case: &one.case, played, learnt, guessed })
    }

    fn keys(&self) -> [Value; 2] {
        [json!(self.case.path.to_string()), json!(self.case.contender.name)]
    }

    fn keys_typed(&self) -> usize {
        self.played.iter().map(|it| it.keys.len()).sum()
    }

    /// Packets and octets for each key, from the first key of each session to its last.
    fn a_key(&self) -> (f64, f64) {
        let mut sums = (0, 0);
        for it in &self.played {
            let (Some(first), Some(last)) = (it.keys.first(), it.keys.last()) else { continue };
            for packet in it.text.iter().filter(|it| (first.at..last.at).contains(&it.at)) {
                sums = (sums.0 + 1, sums.1 + packet.whole);
            }
        }
        let each = |count: usize| count as f64 / self.keys_typed().max(1) as f64;
        (each(sums.0), each(sums.1))
    }

    /// The longest that a key has waited for its packet, in ms.
    fn longest_wait(&self) -> Option<f64> {
        self.learnt.waits.iter().copied().max_by(f64::total_cmp)
    }

    fn all(&self, of: fn(&Played) -> &[f64]) -> Option<Summary> {
        let values: Vec<f64> = self.played.iter().flat_map(|one| of(one)).copied().collect();
        Summary::of(&values)
    }
}

impl Trip {
    fn seconds(self) -> f64 {
        f64::from(self.ms) / 1e3
    }

    /// The time between two packets of this program's runs, in seconds. Where much is lost it sends two in a slot.
    fn slot(self, program: &str) -> Option<f64> {
        let each =
            if f64::from(self.loss) / 100.0 < SlotTiming::ROVE.copy_loss_min { 1.0 } else { 2.0 };
        slot(program).map(|slot| slot / each)
    }
}

fn of_keys(judged: &[Judged<'_>]) -> Table {
    let columns = "path | program | n | bits in an interval | told by times | of those below 2 s | with lengths | \
        echoed or not, AUC | lengths up | lengths down | with lengths, by chance | told by times, 95 % | \
        of those below 2 s, 95 % | with lengths, 95 % | AUC, 95 %";
    let mut table =
        Table::new("what is learnt of keys, in bits of the interval to the next", 2, columns);
    for one in judged {
        let Learnt { n, whole, times, below, sizes, by_chance, echoed, lengths, .. } = &one.learnt;
        let [path, program] = one.keys();
        let bits = [*whole, times.value, below.value, sizes.value, echoed.value].map(thousandths);
        let mut row = vec![path, program, json!(n)];
        row.extend(bits);
        row.extend(lengths.map(|count| json!(count)));
        row.push(thousandths(by_chance.value));
        row.extend([times, below, sizes, echoed].map(interval));
        table.rows.push(row);
    }
    table
}

fn costs(judged: &[Judged<'_>]) -> Table {
    let columns = "path | program | n | packets a key | octets a key | packets, a key alone | wait, ms, mean | p99 | \
        most | echo, ms, mean | median";
    let mut table =
        Table::new("what it costs, both ways, and how long a key and its echo take", 2, columns);
    for one in judged {
        let keys = one.keys_typed();
        let (packets, octets) = one.a_key();
        let waits = Summary::of(&one.learnt.waits);
        let (lone, echo) = (one.all(|it| &it.lone), one.all(|it| &it.echoes));
        let told = |summary: &Option<Summary>, of: fn(&Summary) -> f64| {
            summary.as_ref().map_or(Value::Null, |summary| tenths(of(summary)))
        };
        let [path, program] = one.keys();
        table.rows.push(vec![
            path,
            program,
            json!(keys),
            hundredths(packets),
            tenths(octets),
            told(&lone, |it| it.mean),
            told(&waits, |it| it.mean),
            told(&waits, |it| it.p99),
            one.longest_wait().map_or(Value::Null, tenths),
            told(&echo, |it| it.mean),
            told(&echo, |it| it.median),
        ]);
    }
    table
}

fn of_passwords(judged: &[Judged<'_>]) -> Table {
    let columns = "path | program | n | packets | packets up before Enter | length, error in letters | right, % | \
        error by time alone | right by time alone, % | better than by time | error, 95 % | \
        error by time alone, 95 % | better than by time, 95 % | packets from Enter on | Enter to its packet, ms | \
        Enter to its packet, 95 % | bits of the next interval | the same by chance | bits of the next interval, 95 %";
    let mut table =
        Table::new("passwords of 6 to 20 letters, from the first key to the answer", 2, columns);
    for one in judged {
        let it = &one.guessed;
        let [path, program] = one.keys();
        table.rows.push(vec![
            path,
            program,
            json!(it.n),
            tenths(it.packets),
            tenths(it.before),
            tenths(it.error.value),
            tenths(100.0 * it.right),
            tenths(it.error_by_time.value),
            tenths(100.0 * it.right_by_time),
            hundredths(it.gain.value),
            letters(&it.error),
            letters(&it.error_by_time),
            letters(&it.gain),
            tenths(it.from_enter),
            hundredths(it.enter.value),
            letters(&it.enter),
            thousandths(it.told.value),
            thousandths(it.by_chance.value),
            interval(&it.told),
        ]);
    }
    table
}

/// Whether packets of slots tell by how late they are, as p of the test of Kolmogorov and Smirnov.
fn of_lateness(judged: &[Judged<'_>]) -> Table {
    let columns =
        "path | program | slots with a key and without, p | answers to echoed keys and others, p";
    let caption = "how likely the moments of packets with and without a key are from one source";
    let mut table = Table::new(caption, 2, columns);
    for one in judged.iter().filter(|one| slot(&one.case.contender.name).is_some()) {
        let [path, program] = one.keys();
        let [slots, answers] = one.learnt.alike.map(|p| p.map_or(Value::Null, thousandths));
        table.rows.push(vec![path, program, slots, answers]);
    }
    table
}

/// What the design asks for, over the path for which it does, and what was measured there.
fn bars(judged: &[Judged<'_>]) -> Table {
    let of = |name: &str| {
        judged.iter().find(|one| one.case.path == CLAIMED && one.case.contender.name == name)
    };
    let (slots, plain, never) = (of(SLOTS), of(SECRETS), of(NEVER));
    let half = 1e3 * SlotTiming::ROVE.slot.as_secs_f64() / 2.0;
    let chaff = of(CHAFF).map_or(f64::INFINITY, |one| one.learnt.times.value);
    let mut bars = Vec::new();
    if let Some(one) = slots {
        let it = &one.learnt;
        let lone = one.all(|it| &it.lone).map(|it| it.mean);
        let waits = Summary::of(&it.waits).map(|it| it.mean);
        bars.extend([
            Bar::exact("packets a key, both ways, --obscure", 11.0, one.a_key().0),
            Bar::most(
                "bits of an interval by times, or OpenSSH's if less",
                chaff.min(0.06),
                it.times,
            ),
            Bar::most("the same of intervals below 2 s", 0.02, it.below),
            Bar::most("the same with lengths", 0.2, it.sizes),
            Bar::most("echoed or not, AUC", 0.55, it.echoed),
            Bar::exact("lengths in a run up, keys only", 1.0, it.lengths[0] as f64),
            Bar::exact("lengths in a run down, keys only", 1.0, it.lengths[1] as f64),
            Bar::most(
                "length of a password, letters nearer than by time, --obscure",
                0.2,
                one.guessed.gain,
            ),
        ]);
        bars.extend(lone.map(|mean| Bar::exact("packets for a key alone", 140.0, mean)));
        bars.extend(waits.map(|mean| Bar::exact("wait for a slot, ms, mean", half, mean)));
        let longest = one.longest_wait();
        bars.extend(longest.map(|ms| Bar::exact("wait for a slot, ms, most", 2.0 * half, ms)));
        let echo = |one: &Judged<'_>| one.all(|it| &it.echoes).map(|it| it.mean);
        let later = echo(one).zip(never.and_then(echo)).map(|(slots, never)| slots - never);
        bars.extend(
            later.map(|ms| Bar::exact("echo later than without, ms, mean", half + 4.0, ms)),
        );
    }
    if let Some(one) = plain {
        let it = &one.guessed;
        bars.extend([
            Bar::exact("packets a password, from its first key on", 6.0, it.packets),
            Bar::exact("the same from its Enter on", 6.0, it.from_enter),
            Bar::most("bits of an interval on a held line", 0.0, it.told),
            Bar::most("length of a password, letters nearer than by time", 0.2, it.gain),
        ]);
        bars.extend(never.map(|never| {
            let (held, sent) = (it.enter, never.guessed.enter);
            let later = Estimate {
                value: held.value - sent.value,
                low: held.low - sent.high,
                high: held.high - sent.low,
            };
            Bar::most("Enter of a password later than without, ms", 0.0, later)
        }));
    }
    bars::claimed(&CLAIMED.to_string(), &bars)
}

/// The slot of a program, in seconds, if it has slots.
fn slot(program: &str) -> Option<f64> {
    match program {
        SLOTS => Some(0.055),
        METERED => Some(0.1),
        _ => None,
    }
}

/// An estimate's interval, as a reader reads it.
fn interval(of: &Estimate) -> Value {
    json!(format!("{:.3} to {:.3}", of.low, of.high))
}

/// The same for one in letters.
fn letters(of: &Estimate) -> Value {
    json!(format!("{:.2} to {:.2}", of.low, of.high))
}

/// The bits told against their price.
fn figure(judged: &[Judged<'_>]) -> Figure {
    let costs = costs(judged);
    let panel = |title: &str, x: fn(&Learnt) -> f64, label: &str| {
        let curves = judged.iter().filter(|one| one.case.path.loss == 0).filter_map(|one| {
            let packets = costs.number(&one.keys(), "packets a key")?;
            let point = (x(&one.learnt).max(0.01), packets);
            Some(Curve::solid(&one.case.contender.name, [point]))
        });
        Panel::new(title, Axis::log(label), Axis::log("packets a key"), curves.collect())
    };
    let panels = [
        panel("times", |it| it.times.value, "bits told of an interval"),
        panel("times and lengths", |it| it.sizes.value, "bits told of an interval"),
        panel("echoed or not", |it| 2.0 * (it.echoed.value - 0.5), "2 (AUC - 0.5)"),
    ];
    Figure::new("What packets tell of keys, and their price", panels)
}

/// The path for which bars are claimed.
const CLAIMED: Trip = PATHS[0];
/// The program that hides passwords alone, and the one that hides nothing.
const SECRETS: &str = "rove";
const NEVER: &str = "rove --obscure=never";
const CHAFF: &str = "ssh with chaff";
/// The program whose captures get planted leaks.
const SLOTS: &str = "rove --obscure";
const METERED: &str = "rove --obscure --metered";
/// Intervals are brought within these.
const GAP_MIN: Duration = Duration::from_millis(30);
const GAP_MAX: Duration = Duration::from_secs(6);

/// The parts of the lab that its numbers come from, besides those of all experiments on real programs.
const DEPENDS: &[&str] = &[
    "crates/lab/src/listener",
    "crates/lab/src/listener.rs",
    "crates/lab/src/predict/judge.rs",
    "crates/lab/src/real/bars.rs",
    "crates/lab/src/real/privacy",
    "crates/lab/src/real/privacy.rs",
    "crates/lab/src/real/text/privacy.md",
    "crates/lab/traces/keystrokes",
];

#[cfg(test)]
mod tests {
    use super::heard::{Way, planted};
    use super::*;
    use crate::rng::Rng;

    /// Slots of 55 ms and their answers, as they should be, with a key in some.
    fn slots() -> (Vec<Heard>, Vec<Key>) {
        let mut rng = Rng::new(5);
        let (mut packets, mut keys, mut at) = (Vec::new(), Vec::new(), 1.0);
        while keys.len() < 400 {
            at += rng.within(80, 900) as f64 / 1e3;
            keys.push(Key { at, echoed: rng.below(3) > 0 });
        }
        for slot in 0..(at / 0.055) as u32 + 10 {
            let at = 0.9 + 0.055 * f64::from(slot);
            let jitter = || rng_jitter(slot);
            packets.push(Heard { at: at + jitter(), way: Way::Up, whole: 156, carries: true });
            let at = at + 0.043 + 0.3 * jitter();
            packets.push(Heard { at, way: Way::Down, whole: 156, carries: true });
        }
        packets.sort_by(|a, b| a.at.total_cmp(&b.at));
        (packets, keys)
    }

    fn rng_jitter(slot: u32) -> f64 {
        f64::from(slot.wrapping_mul(2_654_435_761) >> 16) / 65_536.0 * 1e-4
    }

    fn judge(packets: &[Heard], keys: &[Key], slot: Option<f64>) -> Learnt {
        learn(&[(packets, keys)], 0.04, slot, 1)
    }

    #[test]
    fn planted_leaks_are_found_and_nothing_where_there_is_none() {
        let (packets, keys) = slots();
        let plain = judge(&packets, &keys, Some(0.055));
        for found in [plain.times, plain.below, plain.sizes, plain.by_chance] {
            assert!(found.value < 0.06 && found.low < 0.02, "{plain:?}");
        }
        assert!((0.4..0.6).contains(&plain.echoed.value), "{:?}", plain.echoed);
        assert_eq!(plain.lengths, [1, 1]);
        assert!(plain.alike.iter().all(|p| p.is_some_and(|p| p > 0.01)), "{:?}", plain.alike);
        let (late, short) = planted(&packets, &keys, 0.04);
        let (late, short) = (judge(&late, &keys, Some(0.055)), judge(&short, &keys, None));
        assert!(late.echoed.value > 0.9, "{:?}", late.echoed);
        assert!(late.alike[1].is_some_and(|p| p < 0.001), "{:?}", late.alike);
        // A slot is a third of a class.
        assert!(short.sizes.value > 0.65 * short.whole, "{:?} of {}", short.sizes, short.whole);
        assert!(short.by_chance.value < 0.06, "{:?}", short.by_chance);
    }

    /// Keys leave as they are typed, between acknowledgments of answers and beats, all of random lengths.
    #[test]
    fn keys_that_leave_at_once_tell_all() {
        let (_, keys) = slots();
        let mut rng = Rng::new(9);
        let mut packets = Vec::new();
        let mut chaff = |whole: usize| whole + rng.below(17) as usize;
        let mut hear = |at: f64, way: Way, whole: usize| {
            packets.push(Heard { at, way, whole: chaff(whole), carries: true });
        };
        for (place, key) in keys.iter().enumerate() {
            hear(key.at + 0.001, Way::Up, 84);
            let answer = key.at + if key.echoed { 0.042 } else { 0.092 };
            hear(answer, Way::Down, if key.echoed { 88 } else { 78 });
            // An acknowledgment waits for a key to go with.
            let next = keys.get(place + 1).map_or(f64::MAX, |next| next.at);
            if next > answer + 0.1 {
                hear(answer + 0.1, Way::Up, 72);
            }
            if key.echoed {
                hear(key.at + 0.34, Way::Down, 78);
                hear(key.at + 0.44, Way::Up, 72);
            }
        }
        packets.sort_by(|a, b| a.at.total_cmp(&b.at));
        let learnt = judge(&packets, &keys, None);
        assert!(learnt.times.value > 0.9 * learnt.whole, "{:?} of {}", learnt.times, learnt.whole);
        assert!(learnt.sizes.value >= learnt.times.value, "{learnt:?}");
        assert!(learnt.by_chance.value < 0.06, "{:?}", learnt.by_chance);
        assert!(learnt.echoed.value > 0.95, "{:?}", learnt.echoed);
    }
}
