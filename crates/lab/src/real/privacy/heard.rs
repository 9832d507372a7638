//! What a listener makes of the packets of a session, beside what was typed in it. It knows packets and keys, and must
//! not know how they came about.

use std::io;
use std::path::Path;

use crate::capture::decode::segment;
use crate::capture::read;
use crate::listener::{NEVER, bits, classes, entropy, guess_error, told_apart};
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
    pub times: f64,
    pub below: f64,
    pub sizes: f64,
    /// Whether a key was echoed: the area under the curve.
    pub echoed: f64,
    /// From each key to the packet with it, in ms.
    pub waits: Vec<f64>,
    /// Lengths of packets while somebody types, up and down.
    pub lengths: [usize; 2],
}

/// Intervals above this show by a run's end.
const LONG: f64 = 2.0;
/// Packets further apart are of two bursts.
const APART: f64 = 0.3;
/// A packet longer than this has more than an echo.
const LOUD: usize = 300;
/// Features of times, and which of them are tried alone: the next packet, the burst's end, and the next burst.
const TIMES: usize = 11;
const ALONE: [usize; 3] = [0, 8, 9];
/// The same of those with lengths: the next packet as long as the key's own, the next long answer, and the next packet as
/// long as those with keys mostly are.
const ALONE_SIZES: [usize; 6] = [0, 8, 9, TIMES, TIMES + 1, TIMES + 2];
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

    /// The features of the interval after the packet at this place.
    fn features(&self, place: usize, usual: usize) -> Vec<f64> {
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
        let mut row: Vec<f64> = (1..=4).map(|more| since(up.get(place + more))).collect();
        row.extend((0..4).map(|more| since(self.down.get(first + more))));
        row.extend([since(up.get(stop)), since(up.get(stop + 1)), at - up[began].at]);
        assert_eq!(row.len(), TIMES);
        let like = up[place + 1..].iter().find(|packet| packet.whole == own.whole);
        let loud = self.down[first..].iter().find(|packet| packet.whole > LOUD);
        let keyed = up[place + 1..].iter().find(|packet| packet.whole >= usual);
        row.extend([since(like), since(loud), since(keyed), own.whole as f64]);
        let length = |packet: Option<&Heard>| packet.map_or(0.0, |packet| packet.whole as f64);
        row.extend((1..=4).map(|more| length(up.get(place + more))));
        row.extend((0..4).map(|more| length(self.down.get(first + more))));
        row
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

/// What the packets of a session tell of its keys.
pub(super) fn learn(packets: &[Heard], keys: &[Key], trip: f64, seed: u64) -> Learnt {
    let ways = Ways::of(packets);
    let mut rng = Rng::new(seed);
    let placed: Vec<(usize, &Key)> =
        keys.iter().filter_map(|key| Some((ways.with(key)?, key))).collect();
    // A tenth of the packets with keys are shorter.
    let mut with: Vec<usize> = placed.iter().map(|(place, _)| ways.up[*place].whole).collect();
    with.sort_unstable();
    let usual = with.get(with.len() / 10).copied().unwrap_or(0);
    let pairs: Vec<(usize, f64)> =
        placed.windows(2).map(|two| (two[0].0, two[1].1.at - two[0].1.at)).collect();
    let (rows, gaps): (Vec<Vec<f64>>, Vec<f64>) =
        pairs.iter().map(|(place, gap)| (ways.features(*place, usual), *gap)).unzip();
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
    let answers: Vec<Vec<f64>> =
        placed.iter().map(|(place, _)| ways.answer(*place, trip)).collect();
    let kinds: Vec<bool> = placed.iter().map(|(_, key)| key.echoed).collect();
    let span = keys.first().zip(keys.last()).map_or(0.0..0.0, |(a, b)| a.at..b.at);
    let lengths = [&ways.up, &ways.down].map(|way| {
        let inside = way.iter().filter(|packet| span.contains(&packet.at));
        inside.map(|packet| packet.whole).collect::<std::collections::BTreeSet<usize>>().len()
    });
    Learnt {
        n: gaps.len(),
        whole,
        times: by_times,
        below: by_below,
        sizes: by_sizes.max(by_times),
        echoed: told_apart(&answers, &kinds),
        waits: placed
            .iter()
            .map(|(place, key)| 1e3 * (ways.up[*place].at - key.at).max(0.0))
            .collect(),
        lengths,
    }
}

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

/// What a listener learns of passwords.
#[derive(Clone, Debug, Default)]
pub(super) struct Guessed {
    pub n: usize,
    /// Packets from the first key of each to its answer, both ways, and those up with anything in them before Enter.
    pub packets: f64,
    pub before: f64,
    /// The mean error of a guess at the length, and the share of right ones.
    pub error: f64,
    pub right: f64,
    /// The same from the time between question and answer alone.
    pub error_by_time: f64,
    pub right_by_time: f64,
}

/// Guesses the lengths of the passwords of some sessions by their packets.
pub(super) fn guess(all: &[(&[Heard], &[Password])]) -> Guessed {
    let (mut rows, mut times, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    let (mut packets, mut before) = (0, 0);
    for (heard, passwords) in all {
        for password in *passwords {
            let (row, counted) = seen(heard, password);
            rows.push(row);
            times.push(vec![password.done - password.asked]);
            lengths.push(password.length as f64);
            packets += counted.0;
            before += counted.1;
        }
    }
    let n = lengths.len();
    let (error_by_time, right_by_time) = guess_error(&times, &lengths);
    let mut best = (error_by_time, right_by_time);
    for column in 0..rows.first().map_or(0, Vec::len) {
        let one: Vec<Vec<f64>> = rows.iter().map(|row: &Vec<f64>| vec![row[column]]).collect();
        let both: Vec<Vec<f64>> =
            one.iter().zip(&times).map(|(one, time)| vec![one[0], time[0]]).collect();
        for found in [guess_error(&one, &lengths), guess_error(&both, &lengths)] {
            best = if found.0 < best.0 { found } else { best };
        }
    }
    let each = |count: usize| count as f64 / n.max(1) as f64;
    Guessed {
        n,
        packets: each(packets),
        before: each(before),
        error: best.0,
        right: best.1,
        error_by_time,
        right_by_time,
    }
}

/// The features of one entry, all of its packets, and those up before Enter.
fn seen(packets: &[Heard], password: &Password) -> (Vec<f64>, (usize, usize)) {
    let inside = |from: f64, until: f64| {
        packets.iter().filter(move |packet| (from..until).contains(&packet.at))
    };
    let (first, enter) = (password.first, password.enter);
    let counted = inside(first, password.done + 0.1).count();
    let is_up = |packet: &&Heard| packet.way == Way::Up && packet.carries;
    let early = inside(first, enter).filter(is_up).count();
    let whole = |way: Way| {
        let all = inside(password.asked, password.done);
        let all = all.filter(move |packet| packet.way == way && packet.carries);
        (all.clone().count() as f64, all.map(|packet| packet.whole as f64).sum::<f64>())
    };
    let (up, down) = (whole(Way::Up), whole(Way::Down));
    (vec![up.0, up.1, down.0, down.1, up.0 - down.0], (counted, early))
}
