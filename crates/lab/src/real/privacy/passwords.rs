//! What a listener makes of the packets of passwords: how long each is.

use super::heard::{Heard, Password, Way};
use crate::listener::guess_error;

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
