//! What a listener makes of the packets of passwords: how long each is.

use super::heard::{Heard, Key, Password, Way, learn};
use crate::listener::{self, Estimate, Guess, best_guesses};
use crate::rng::Rng;

/// What a listener learns of passwords.
#[derive(Clone, Debug, Default)]
pub(super) struct Guessed {
    pub n: usize,
    /// Packets from the first key of each to its answer, both ways, those from Enter on alone, and those up with anything in
    /// them before Enter.
    pub packets: f64,
    pub from_enter: f64,
    pub before: f64,
    /// From Enter to the packet with it, in ms.
    pub enter: Estimate,
    /// Bits that packets tell of the interval to the next letter, and where intervals are given to letters at random.
    pub told: Estimate,
    pub by_chance: Estimate,
    /// The mean error of a guess at the length, and the share of right ones.
    pub error: Estimate,
    pub right: f64,
    /// The same from the time between question and answer alone.
    pub error_by_time: Estimate,
    pub right_by_time: f64,
    /// By how much the first is better than that, guess by guess.
    pub gain: Estimate,
}

/// Guesses the lengths of the passwords of some sessions by their packets.
pub(super) fn guess(all: &[(&[Heard], &[Password])], trip: f64) -> Guessed {
    let (mut rows, mut times, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    let (mut packets, mut from_enter, mut before) = (0, 0, 0);
    let mut waits = Vec::new();
    for (heard, passwords) in all {
        for password in *passwords {
            let (row, counted) = seen(heard, password);
            rows.push(row);
            times.push(vec![password.done - password.asked]);
            lengths.push(password.length as f64);
            packets += counted.packets;
            from_enter += counted.from_enter;
            before += counted.before;
            waits.extend(counted.enter_ms);
        }
    }
    let n = lengths.len();
    let by_time = listener::guess(&times, &lengths);
    let mut ways = vec![by_time.clone()];
    for column in 0..rows.first().map_or(0, Vec::len) {
        let one: Vec<Vec<f64>> = rows.iter().map(|row: &Vec<f64>| vec![row[column]]).collect();
        let both: Vec<Vec<f64>> =
            one.iter().zip(&times).map(|(one, time)| vec![one[0], time[0]]).collect();
        ways.extend([one, both].map(|rows| listener::guess(&rows, &lengths)));
    }
    let best = best_guesses(&ways);
    let each = |count: usize| count as f64 / n.max(1) as f64;
    let right = |guesses: &[Guess]| each(guesses.iter().filter(|guess| guess.is_right).count());
    let error = |guess: &Guess| guess.error;
    let (told, by_chance) = letters_told(all, trip);
    let gains: Vec<f64> = by_time.iter().zip(&best).map(|(a, b)| a.error - b.error).collect();
    Guessed {
        n,
        packets: each(packets),
        from_enter: each(from_enter),
        before: each(before),
        enter: mean(&waits),
        told,
        by_chance,
        error: mean(&best.iter().map(error).collect::<Vec<f64>>()),
        right: right(&best),
        error_by_time: mean(&by_time.iter().map(error).collect::<Vec<f64>>()),
        right_by_time: right(&by_time),
        gain: mean(&gains),
    }
}

/// A mean, with its interval over the same stretches for all numbers of these samples.
fn mean(values: &[f64]) -> Estimate {
    Estimate::of(values.len(), &mut Rng::new(1), |picked| {
        picked.iter().map(|place| values[*place]).sum::<f64>() / picked.len().max(1) as f64
    })
}

/// Bits that packets tell of the intervals between the letters of passwords, and of intervals in another order.
fn letters_told(all: &[(&[Heard], &[Password])], trip: f64) -> (Estimate, Estimate) {
    let mut entries: Vec<(&[Heard], Vec<Key>)> = Vec::new();
    for (heard, passwords) in all {
        for password in *passwords {
            let from = heard.partition_point(|packet| packet.at < password.asked);
            let until = heard.partition_point(|packet| packet.at < password.done + TAIL);
            let keys = password.letters.iter().map(|at| Key { at: *at, echoed: false });
            entries.push((&heard[from..until], keys.collect()));
        }
    }
    let entries: Vec<(&[Heard], &[Key])> =
        entries.iter().map(|(heard, keys)| (*heard, &keys[..])).collect();
    let learnt = learn(&entries, trip, None, 1);
    (learnt.sizes, learnt.by_chance)
}

/// Packets of an answer come within this of it, in s.
const TAIL: f64 = 0.1;
/// A packet was read at most so much later than its time says, in s.
const AHEAD: f64 = 0.000_5;

/// Packets of one entry, and how long its Enter took.
struct Counted {
    packets: usize,
    from_enter: usize,
    before: usize,
    enter_ms: Option<f64>,
}

/// The features of one entry, and its packets.
fn seen(packets: &[Heard], password: &Password) -> (Vec<f64>, Counted) {
    let inside = |from: f64, until: f64| {
        packets.iter().filter(move |packet| (from..until).contains(&packet.at))
    };
    let (first, enter) = (password.first, password.enter);
    let end = password.done + TAIL;
    let is_up = |packet: &&Heard| packet.way == Way::Up && packet.carries;
    let sent = inside(enter - AHEAD, end).find(is_up);
    let counted = Counted {
        packets: inside(first, end).count(),
        from_enter: inside(enter - AHEAD, end).count(),
        before: inside(first, enter - AHEAD).filter(is_up).count(),
        enter_ms: sent.map(|packet| 1e3 * (packet.at - enter).max(0.0)),
    };
    let whole = |way: Way| {
        let all = inside(password.asked, password.done);
        let all = all.filter(move |packet| packet.way == way && packet.carries);
        (all.clone().count() as f64, all.map(|packet| packet.whole as f64).sum::<f64>())
    };
    let (up, down) = (whole(Way::Up), whole(Way::Down));
    (vec![up.0, up.1, down.0, down.1, up.0 - down.0], counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet for each letter, or one for all, among others that tell nothing.
    #[test]
    fn packets_of_letters_are_found_and_none_where_there_are_none() {
        for is_each in [true, false] {
            let mut rng = Rng::new(5);
            let (mut packets, mut passwords) = (Vec::new(), Vec::new());
            let mut at = 0.0;
            for _ in 0..200 {
                let length = rng.within(6, 20) as usize;
                let asked = at;
                let first = asked + 1.0;
                let mut enter = first;
                let mut letters = Vec::new();
                for _ in 0..length {
                    letters.push(enter);
                    let packet = Heard { at: enter, way: Way::Up, whole: 128, carries: true };
                    packets.extend(is_each.then_some(packet));
                    enter += 0.05 + rng.below(400) as f64 / 1e3;
                }
                for way in [Way::Up, Way::Down] {
                    packets.push(Heard { at: enter + 0.01, way, whole: 128, carries: true });
                }
                let done = enter + 0.05;
                passwords.push(Password { length, asked, first, enter, done, letters });
                at = done + 0.3;
            }
            let guessed = guess(&[(&packets, &passwords)], 0.04);
            assert_eq!(guessed.n, 200);
            assert!(guessed.error.low <= guessed.error.value, "{guessed:?}");
            assert!(guessed.error_by_time.value > 0.5, "{guessed:?}");
            match is_each {
                true => {
                    assert!(guessed.error.high < 0.1 && guessed.gain.low > 0.4, "{guessed:?}");
                    assert!(guessed.told.value > 1.0, "{:?}", guessed.told);
                }
                false => {
                    assert!(guessed.gain.value.abs() < 0.1 && guessed.before == 0.0, "{guessed:?}");
                    assert!(guessed.told.value < 0.02, "{:?}", guessed.told);
                    assert_eq!((guessed.packets, guessed.from_enter), (2.0, 2.0));
                    assert!((9.9..10.1).contains(&guessed.enter.value), "{:?}", guessed.enter);
                }
            }
        }
    }
}
