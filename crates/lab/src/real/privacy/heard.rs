//! What a listener makes of the packets of a session, beside what was typed in it. It knows packets and keys, and must
//! not know how they came about.

use std::io;
use std::path::Path;

use crate::capture::decode::segment;
use crate::capture::read;
use crate::listener::{
    Estimate, NEVER, alike, bits, classes, entropy, guesses, shuffle, told_apart,
};
use crate::net::FAR;
use crate::rng::Rng;

/// A packet that passed the near end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// In seconds of the path's clock.
    pub at: f64,
    pub way: Way,
    /// Octets with its IP header.
    pub whole: usize,
    /// Whether it carries anything, as a bare acknowledgment of TCP does not.
    pub carries: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Way {
    Up,
    Down,
}

/// A key, and when it was typed, in seconds of the path's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub at: f64,
    pub echoed: bool,
}

/// A password that was typed. Moments are in seconds of the path's clock.
#[derive(Clone, Debug)]
pub(super) struct Password {
    pub length: usize,
    /// When the question was seen, the first key and Enter typed, and the answer seen.
    pub asked: f64,
    pub first: f64,
    pub enter: f64,
    pub done: f64,
    /// When each of its letters was typed.
    pub letters: Vec<f64>,
}

/// The packets of a tape, in order.
///
/// # Errors
/// If it cannot be read.
pub(super) fn heard(tape: &Path) -> io::Result<Vec<Heard>> {
    let file = std::fs::read(tape)?;
    let packets = read(&file).map_err(io::Error::other)?;
    let all = packets.iter().filter_map(|packet| {
        let segment = segment(packet)?;
        let way = if segment.to.ip() == FAR { Way::Up } else { Way::Down };
        let (at, carries) = (packet.at.as_secs_f64(), segment.payload > 0);
        Some(Heard { at, way, whole: segment.whole, carries })
    });
    let mut all: Vec<Heard> = all.collect();
    all.sort_by(|a, b| a.at.total_cmp(&b.at));
    Ok(all)
}

/// What a listener learns of keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Learnt {
    /// Intervals between keys.
    pub n: usize,
    /// Bits in which of the classes an interval is.
    pub whole: f64,
    /// Bits of them that times tell, among those below 2 s too, and with lengths.
    pub times: Estimate,
    pub below: Estimate,
    pub sizes: Estimate,
    /// The last, where intervals are given to keys at random, so that there is nothing to find.
    pub by_chance: Estimate,
    /// Whether a key was echoed: the area under the curve.
    pub echoed: Estimate,
    /// From each key to the packet with it, in ms.
    pub waits: Vec<f64>,
    /// Lengths of packets in runs of slots, or else while somebody types, up and down.
    pub lengths: [usize; 2],
    /// How likely packets with keys and without are from one source, by how late they leave their slots, and answers to
    /// echoed keys and to others, by how late they come.
    pub alike: [Option<f64>; 2],
}

/// Intervals above this show by a run's end.
const LONG: f64 = 2.0;
/// Packets further apart are of two bursts.
const APART: f64 = 0.3;
/// A packet longer than this has more than an echo.
const LOUD: usize = 300;
/// Features of times, and which of them are tried alone: the next packet, the burst's end, the next burst, and the next
/// packets that seem to have a key.
const TIMES: usize = 13;
const ALONE: [usize; 5] = [0, 8, 9, 11, 12];
/// The same of those with lengths: also the next packet as long as the key's own, the next long answer, the next packet as
/// long as those with keys mostly are, and those that seem to have a key by their length as well.
const ALONE_SIZES: [usize; 10] =
    [0, 8, 9, 11, 12, TIMES, TIMES + 1, TIMES + 2, TIMES + 3, TIMES + 4];
/// How sure a listener is that a packet has a key.
const SURE: [f64; 2] = [0.5, 0.2];
/// A packet was read at most so much later than its time says, in s.
const AHEAD: f64 = 0.000_5;

/// Packets with anything in them, by direction.
struct Ways {
    up: Vec<Heard>,
    down: Vec<Heard>,
}

impl Ways {
    fn of(packets: &[Heard]) -> Ways {
        let of = |way| packets.iter().copied().filter(move |it| it.carries && it.way == way);
        Ways { up: of(Way::Up).collect(), down: of(Way::Down).collect() }
    }

    /// The packet with a key: the first after it, or just before, as far as the link's clock is read ahead of a packet.
    fn with(&self, key: &Key) -> Option<usize> {
        let place = self.up.partition_point(|packet| packet.at < key.at - AHEAD);
        (place < self.up.len()).then_some(place)
    }

    /// The features of the interval after the packet at this place. `seems` is how much each packet seems to have a key, by
    /// times alone and with lengths.
    fn features(&self, place: usize, usual: usize, seems: &[Vec<f64>; 2]) -> Vec<f64> {
        let (own, up) = (self.up[place], &self.up);
        let at = own.at;
        let first = self.down.partition_point(|packet| packet.at <= at);
        let since = |packet: Option<&Heard>| packet.map_or(NEVER, |packet| packet.at - at);
        let mut stop = place;
        while up.get(stop + 1).is_some_and(|next| next.at - up[stop].at <= APART) {
            stop += 1;
        }
        let mut began = place;
        while began > 0 && up[began].at - up[began - 1].at <= APART {
            began -= 1;
        }
        let keyed = |seems: &[f64], sure: f64| {
            let next = (place + 1..up.len()).find(|next| seems[*next] >= sure);
            since(next.map(|next| &up[next]))
        };
        let mut row: Vec<f64> = (1..=4).map(|more| since(up.get(place + more))).collect();
        row.extend((0..4).map(|more| since(self.down.get(first + more))));
        row.extend([since(up.get(stop)), since(up.get(stop + 1)), at - up[began].at]);
        row.extend(SURE.map(|sure| keyed(&seems[0], sure)));
        assert_eq!(row.len(), TIMES);
        let like = up[place + 1..].iter().find(|packet| packet.whole == own.whole);
        let loud = self.down[first..].iter().find(|packet| packet.whole > LOUD);
        let long = up[place + 1..].iter().find(|packet| packet.whole >= usual);
        row.extend([since(like), since(loud), since(long)]);
        row.extend(SURE.map(|sure| keyed(&seems[1], sure)));
        row.push(own.whole as f64);
        let length = |packet: Option<&Heard>| packet.map_or(0.0, |packet| packet.whole as f64);
        row.extend((1..=4).map(|more| length(up.get(place + more))));
        row.extend((0..4).map(|more| length(self.down.get(first + more))));
        row
    }

    /// Features that tell whether a packet up has a key: packets before it, packets that can answer it and, behind all
    /// times, their lengths.
    fn looks(&self, place: usize, trip: f64) -> Vec<f64> {
        let (own, up, down) = (self.up[place], &self.up, &self.down);
        let at = own.at;
        let before = down.partition_point(|packet| packet.at <= at);
        let answer = self.answered(place, trip);
        let ago = |packet: Option<&Heard>| packet.map_or(NEVER, |packet| at - packet.at);
        let since = |packet: Option<&Heard>| packet.map_or(NEVER, |packet| packet.at - at);
        let back = |all: &[Heard], from: usize, by: usize| {
            from.checked_sub(by).and_then(|place| all.get(place).copied())
        };
        let within = |from: f64, until: f64| {
            let first = down.partition_point(|packet| packet.at < at + trip + from);
            let last = down.partition_point(|packet| packet.at < at + trip + until);
            (last - first) as f64
        };
        let mut row = vec![
            ago(back(up, place, 1).as_ref()),
            ago(back(up, place, 2).as_ref()),
            ago(back(down, before, 1).as_ref()),
            ago(back(down, before, 2).as_ref()),
            since(up.get(place + 1)),
            since(down.get(answer)) - trip,
            since(down.get(answer + 1)) - trip,
            within(-0.001, 0.015),
            within(0.015, 0.045),
            within(0.045, 0.09),
        ];
        let length = |packet: Option<&Heard>| packet.map_or(0.0, |packet| packet.whole as f64);
        row.extend([
            own.whole as f64,
            length(back(up, place, 1).as_ref()),
            length(up.get(place + 1)),
            length(back(down, before, 1).as_ref()),
            length(down.get(answer)),
            length(down.get(answer + 1)),
        ]);
        row
    }

    /// When runs of slots so long begin and end: packets up that are a slot apart, or two where one was left out.
    fn runs(&self, slot: f64) -> Vec<(f64, f64)> {
        let is_slot = |apart: f64| (apart - slot).abs() < slot / 4.0;
        let mut runs: Vec<(f64, f64)> = Vec::new();
        for two in self.up.windows(2).filter(|two| is_slot(two[1].at - two[0].at)) {
            match runs.last_mut() {
                Some(run) if is_slot(two[0].at - run.1 - slot) || two[0].at <= run.1 => {
                    run.1 = two[1].at;
                }
                _ => runs.push((two[0].at, two[1].at)),
            }
        }
        runs.retain(|(from, until)| until - from > RUN_MIN);
        runs
    }

    /// How late each packet up is in its slot, in s, if all leave in slots so long: from the middle of those around it, since
    /// clocks drift.
    fn lateness(&self, slot: f64) -> Vec<f64> {
        let Some(origin) = self.up.first().map(|packet| packet.at) else { return Vec::new() };
        let beside = |at: f64, from: f64| {
            let slots = ((at - from) / slot).round();
            at - from - slots * slot
        };
        let rough: Vec<f64> = self.up.iter().map(|packet| beside(packet.at, origin)).collect();
        (0..rough.len())
            .map(|place| {
                let near = place.saturating_sub(AROUND)..(place + AROUND + 1).min(rough.len());
                let mut near: Vec<f64> =
                    rough[near].iter().map(|other| beside(*other, rough[place])).collect();
                let middle = near.len() / 2;
                let (_, median, _) = near.select_nth_unstable_by(middle, f64::total_cmp);
                -*median
            })
            .collect()
    }

    /// The features of the answer to the packet at this place, over a path of this round trip.
    fn answer(&self, place: usize, trip: f64) -> Vec<f64> {
        let at = self.up[place].at;
        let from = self.answered(place, trip);
        let near = self.down[from..].iter().take_while(|packet| packet.at < at + trip + 0.15);
        let mut row: Vec<f64> = Vec::new();
        for more in 0..3 {
            let packet = self.down.get(from + more).filter(|packet| packet.at < at + trip + 1.0);
            row.push(packet.map_or(1.0, |packet| packet.at - at - trip));
            row.push(packet.map_or(0.0, |packet| packet.whole as f64));
        }
        row.push(near.clone().count() as f64);
        row.push(near.map(|packet| packet.whole as f64).sum());
        row
    }

    /// The first packet that can answer it.
    fn answered(&self, place: usize, trip: f64) -> usize {
        let soonest = self.up[place].at + trip * 0.999;
        self.down.partition_point(|packet| packet.at < soonest)
    }
}

/// Packets that are a slot apart for less than this by chance are no run, in s. A run lasts 2 s.
const RUN_MIN: f64 = 1.0;
/// The answer to a slot leaves within this, in s.
const ANSWERED: f64 = 0.005;
/// Moments are so exact, in s.
const EXACT: f64 = 0.000_1;
/// Packets whose middle is taken for the place of a slot, on each side.
const AROUND: usize = 20;

/// A session that was listened to: its packets, and the place of the packet with each key.
struct Told<'a> {
    ways: Ways,
    placed: Vec<(usize, &'a Key)>,
}

impl<'a> Told<'a> {
    fn of(packets: &[Heard], keys: &'a [Key]) -> Told<'a> {
        let ways = Ways::of(packets);
        let placed = keys.iter().filter_map(|key| Some((ways.with(key)?, key))).collect();
        Told { ways, placed }
    }
}

/// How much each packet up of each session seems to have a key, judged by what was learnt from other stretches.
fn seeming(all: &[Told<'_>], trip: f64, columns: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
    let (mut rows, mut of) = (Vec::new(), Vec::new());
    for Told { ways, placed } in all {
        let with: std::collections::BTreeSet<usize> =
            placed.iter().map(|(place, _)| *place).collect();
        for place in 0..ways.up.len() {
            rows.push(ways.looks(place, trip)[..columns].to_vec());
            of.push(usize::from(with.contains(&place)));
        }
    }
    let mut found = guesses(&rows, &of, rng).into_iter();
    let share = |shares: Vec<f64>| shares.get(1).copied().unwrap_or(0.0);
    let of = |told: &Told<'_>| found.by_ref().take(told.ways.up.len()).map(share).collect();
    all.iter().map(of).collect()
}

/// What the packets of some sessions tell of their keys. In slots so long packets leave, if in any.
pub(super) fn learn(all: &[(&[Heard], &[Key])], trip: f64, slot: Option<f64>, seed: u64) -> Learnt {
    let mut rng = Rng::new(seed);
    let all: Vec<Told<'_>> = all.iter().map(|(packets, keys)| Told::of(packets, keys)).collect();
    // A tenth of the packets with keys are shorter.
    let with = |told: &Told<'_>| -> Vec<usize> {
        told.placed.iter().map(|(place, _)| told.ways.up[*place].whole).collect()
    };
    let mut with: Vec<usize> = all.iter().flat_map(with).collect();
    with.sort_unstable();
    let usual = with.get(with.len() / 10).copied().unwrap_or(0);
    let by_times = seeming(&all, trip, LOOKS_TIMES, &mut rng);
    let by_sizes = seeming(&all, trip, LOOKS, &mut rng);
    let (mut rows, mut gaps, mut answers, mut kinds) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (Told { ways, placed }, seems) in all.iter().zip(by_times.into_iter().zip(by_sizes)) {
        let seems = [seems.0, seems.1];
        for two in placed.windows(2) {
            rows.push(ways.features(two[0].0, usual, &seems));
            gaps.push(two[1].1.at - two[0].1.at);
        }
        answers.extend(placed.iter().map(|(place, _)| ways.answer(*place, trip)));
        kinds.extend(placed.iter().map(|(_, key)| key.echoed));
    }
    let mut tell = |rows: &[Vec<f64>], gaps: &[f64], alone: &[usize]| {
        let of = classes(gaps, (gaps.len() / 60).clamp(2, 9));
        (bits(rows, &of, alone, &mut rng), entropy(&of))
    };
    let times = |rows: &[Vec<f64>]| -> Vec<Vec<f64>> {
        rows.iter().map(|row| row[..TIMES].to_vec()).collect()
    };
    let (by_times, whole) = tell(&times(&rows), &gaps, &ALONE);
    let (by_sizes, _) = tell(&rows, &gaps, &ALONE_SIZES);
    let short = rows.iter().zip(&gaps).filter(|(_, gap)| **gap < LONG);
    let (below, short): (Vec<Vec<f64>>, Vec<f64>) =
        short.map(|(row, gap)| (row.clone(), *gap)).unzip();
    let (by_below, _) = tell(&times(&below), &short, &ALONE);
    let mut mixed = gaps.clone();
    shuffle(&mut mixed, &mut Rng::new(!seed));
    let (by_chance, _) = tell(&rows, &mixed, &ALONE_SIZES);
    let waits = all.iter().flat_map(|told| {
        let wait = |(place, key): &(usize, &Key)| 1e3 * (told.ways.up[*place].at - key.at).max(0.0);
        told.placed.iter().map(wait)
    });
    Learnt {
        n: gaps.len(),
        whole,
        times: by_times,
        below: by_below,
        sizes: if by_sizes.value > by_times.value { by_sizes } else { by_times },
        by_chance,
        echoed: told_apart(&answers, &kinds, &mut rng),
        waits: waits.collect(),
        lengths: lengths(&all, trip, slot),
        alike: slot.map_or([None; 2], |slot| [by_slots(&all, slot), by_answers(&all, trip)]),
    }
}

/// How many lengths packets have up and down, in runs of slots so long, or else from the first key to the last.
fn lengths(all: &[Told<'_>], trip: f64, slot: Option<f64>) -> [usize; 2] {
    let mut seen = [std::collections::BTreeSet::new(), std::collections::BTreeSet::new()];
    for Told { ways, placed } in all {
        let Some((first, last)) = placed.first().zip(placed.last()) else { continue };
        let spans = match slot {
            Some(slot) => ways.runs(slot),
            None => vec![(first.1.at, last.1.at)],
        };
        // What a run's packets are answered with comes a round trip later.
        let later = if slot.is_some() { [0.0, trip] } else { [0.0, 0.0] };
        let over = if slot.is_some() { [0.0, ANSWERED] } else { [0.0, 0.0] };
        for (way, packets) in [&ways.up, &ways.down].into_iter().enumerate() {
            for (from, until) in &spans {
                let span = from + later[way] - EXACT..=until + later[way] + over[way] + EXACT;
                let inside = packets.iter().filter(|packet| span.contains(&packet.at));
                seen[way].extend(inside.map(|packet| packet.whole));
            }
        }
    }
    seen.map(|seen| seen.len())
}

/// Whether packets with a key leave their slots as late as those without, while somebody types.
fn by_slots(all: &[Told<'_>], slot: f64) -> Option<f64> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for Told { ways, placed } in all {
        let Some((first, last)) = placed.first().zip(placed.last()) else { continue };
        let keyed: std::collections::BTreeSet<usize> =
            placed.iter().map(|(place, _)| *place).collect();
        let late = ways.lateness(slot);
        for (place, late) in late.iter().enumerate().take(last.0).skip(first.0) {
            // What is further away leaves in no slot, as before a run and behind it.
            if late.abs() < slot / 4.0 {
                if keyed.contains(&place) { &mut with } else { &mut without }.push(*late);
            }
        }
    }
    alike(&with, &without)
}

/// Whether answers to echoed keys come as late as those to others.
fn by_answers(all: &[Told<'_>], trip: f64) -> Option<f64> {
    let (mut echoes, mut others) = (Vec::new(), Vec::new());
    for Told { ways, placed } in all {
        for (place, key) in placed {
            let Some(answer) = ways.down.get(ways.answered(*place, trip)) else { continue };
            let late = answer.at - ways.up[*place].at - trip;
            if key.echoed { &mut echoes } else { &mut others }.push(late);
        }
    }
    alike(&echoes, &others)
}

/// What [`Ways::looks`] gives, and how many of that are times.
const LOOKS: usize = 16;
const LOOKS_TIMES: usize = 10;

/// The same packets with two leaks that the judge must find: answers to echoed keys come 0.5 ms later, and packets up
/// without a key are an octet shorter.
pub(super) fn planted(packets: &[Heard], keys: &[Key], trip: f64) -> (Vec<Heard>, Vec<Heard>) {
    let ways = Ways::of(packets);
    let (mut late, mut short) = (packets.to_vec(), packets.to_vec());
    let placed: Vec<(usize, &Key)> =
        keys.iter().filter_map(|key| Some((ways.with(key)?, key))).collect();
    let echoes: Vec<f64> = placed
        .iter()
        .filter(|(_, key)| key.echoed)
        .filter_map(|(place, _)| Some(ways.down.get(ways.answered(*place, trip))?.at))
        .collect();
    for packet in late.iter_mut().filter(|packet| packet.way == Way::Down) {
        if echoes.contains(&packet.at) {
            packet.at += LATER;
        }
    }
    let with: Vec<f64> = placed.iter().map(|(place, _)| ways.up[*place].at).collect();
    for packet in short.iter_mut().filter(|packet| packet.way == Way::Up && packet.carries) {
        packet.whole -= usize::from(!with.contains(&packet.at));
    }
    (late, short)
}

/// By how much the planted answers are later, in s.
const LATER: f64 = 0.000_5;
