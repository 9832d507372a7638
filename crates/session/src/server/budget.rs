//! Limits how fast screens are sent, and tells which keys a screen answers.

use alloc::collections::VecDeque;
use core::time::Duration;

use rove_ssp::{StateNum, Time};

/// What the screen may cost by default (threats row 33), in bits of datagrams a second. Text runs far
/// below; a program that floods the screen does not flood the path.
pub const SCREEN_RATE: u64 = 1_000_000;

/// How far ahead of its rate the screen may be: a full repaint after a quiet while goes at once.
const AHEAD_MAX: Duration = Duration::from_millis(250);

/// The same for the frames that answer a key: on a flooded screen of 100 rows and 200 columns each
/// frame costs 112 ms, and the prompt after a Ctrl-C does not wait for the last one to be paid for.
const ANSWER_AHEAD_MAX: Duration = Duration::from_millis(500);

/// How long a program has to answer a key before the answering frame is taken. Until then no other is,
/// whose send interval would delay it.
pub(crate) const ANSWER_WAIT: Duration = Duration::from_millis(10);

/// How long after the first answering frame others may follow it on the same terms: a shell whose program was
/// interrupted takes its time to say so, and on a large screen that would wait for 300 ms to be paid for.
pub(crate) const ANSWER_LAST: Duration = Duration::from_millis(50);

/// The budget that frames are charged to.
#[derive(Debug)]
pub(crate) struct FrameBudget {
    /// Bits a second; `None` is no limit.
    rate: Option<u64>,
    /// When all that was sent will be paid for.
    paid: Time,
}

impl FrameBudget {
    pub(crate) fn new(rate: Option<u64>) -> Self {
        Self { rate: rate.map(|rate| rate.max(1)), paid: Time::ZERO }
    }

    /// Charges a datagram.
    pub(crate) fn sent(&mut self, now: Time, octets: usize) {
        if let Some(rate) = self.rate {
            let micros = (octets as u64).saturating_mul(8_000_000) / rate;
            self.paid = self.paid.max(now) + Duration::from_micros(micros);
        }
    }

    /// From when on the next frame may be taken.
    pub(crate) fn free_at(&self) -> Time {
        self.paid - AHEAD_MAX
    }

    /// From when on frames may be taken that answer a key. They are charged like any other, so keys
    /// without end do not raise the rate, only how far ahead of it the screen may be.
    pub(crate) fn free_for_answer_at(&self) -> Time {
        self.paid - ANSWER_AHEAD_MAX
    }

    /// Whether something sent is not paid for yet.
    pub(crate) fn owes(&self, now: Time) -> bool {
        self.paid > now
    }
}

/// How long the program has to answer a key before the screen is said to answer it
/// (`mosh-protocol.md` §4.5).
const ECHO_WAIT: Duration = Duration::from_millis(50);

/// States awaiting their echo ack. Beyond it the two newest count as one, and both wait as long as the
/// newer: a client that sends this many in 50 ms is not typing.
const HISTORY_MAX: usize = 64;

/// User states that carried something, with the time they reached the program.
#[derive(Debug, Default)]
pub(crate) struct EchoHistory {
    /// At most [`HISTORY_MAX`].
    states: VecDeque<(StateNum, Time)>,
    /// When the program last wrote.
    wrote: Option<Time>,
}

impl EchoHistory {
    pub(crate) fn push(&mut self, num: StateNum, now: Time) {
        if self.states.len() == HISTORY_MAX {
            self.states.pop_back();
        }
        self.states.push_back((num, now));
    }

    /// The program wrote.
    pub(crate) fn wrote(&mut self, now: Time) {
        self.wrote = Some(now);
    }

    /// Takes out what is old enough; the newest such state.
    pub(crate) fn mature(&mut self, now: Time) -> Option<StateNum> {
        let mut newest = None;
        while let Some(&(num, reached)) = self.states.front()
            && reached + ECHO_WAIT <= now
        {
            newest = Some(num);
            self.states.pop_front();
        }
        newest
    }

    /// When the next state is old enough to be told on its own, and with it all before. If the program
    /// has written since, its answer is on its way, and the rest waits `lazy` for something to ride on.
    pub(crate) fn timeout(&self, lazy: Duration) -> Option<Time> {
        let due = |&(_, reached): &(StateNum, Time)| {
            let answered = self.wrote.is_some_and(|wrote| wrote >= reached);
            reached + if answered { lazy.max(ECHO_WAIT) } else { ECHO_WAIT }
        };
        self.states.iter().map(due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_held_to_its_rate() {
        let mut pace = FrameBudget::new(Some(SCREEN_RATE));
        let (mut now, mut octets) = (Time::ZERO, 0);
        while now < Time::from_millis(60_000) {
            if pace.free_at() <= now {
                pace.sent(now, 10_000);
                octets += 10_000;
            }
            now = now + Duration::from_millis(20);
        }
        let allowed = (60_000 + 250) * SCREEN_RATE / 8000;
        assert!((allowed * 9 / 10..=allowed + 10_000).contains(&octets), "{octets} of {allowed}");
    }

    #[test]
    fn no_rate_no_pace() {
        let mut pace = FrameBudget::new(None);
        pace.sent(Time::ZERO, 1 << 30);
        assert_eq!(pace.free_at(), Time::ZERO);
    }

    #[test]
    fn echo_acks_mature_in_order() {
        let mut history = EchoHistory::default();
        for n in 1..=3 {
            history.push(StateNum::from(n), Time::from_millis(20 * n));
        }
        for (now, newest, timeout) in [
            (69, None, Some(70)),
            (70, Some(1), Some(90)),
            (80, None, Some(90)),
            (111, Some(3), None),
            (200, None, None),
        ] {
            assert_eq!(history.mature(Time::from_millis(now)), newest.map(StateNum::from), "{now}");
            let due = history.timeout(Duration::from_millis(300));
            assert_eq!(due, timeout.map(Time::from_millis), "{now}");
        }
    }

    #[test]
    fn echo_acks_of_what_was_answered_can_wait() {
        // When the program wrote, how long its echo ack may wait, and when that is due.
        for (wrote, lazy, due) in
            [(None, 300, 150), (Some(99), 300, 150), (Some(100), 300, 400), (Some(100), 50, 150)]
        {
            let mut history = EchoHistory::default();
            if let Some(wrote) = wrote {
                history.wrote(Time::from_millis(wrote));
            }
            history.push(StateNum::from(1), Time::from_millis(100));
            let timeout = history.timeout(Duration::from_millis(lazy));
            assert_eq!(timeout, Some(Time::from_millis(due)), "{wrote:?} {lazy}");
            // A frame that goes sooner takes it along.
            assert_eq!(history.mature(Time::from_millis(150)), Some(StateNum::from(1)));
        }
    }

    #[test]
    fn an_answered_key_does_not_delay_the_next_one() {
        // When the program wrote, when the keys reached it, and when their echo ack is due.
        for (wrote, reached, due) in [
            (100, [100, 110], 160),
            (100, [100, 390], 400),
            (110, [100, 110], 400),
            (99, [100, 110], 150),
        ] {
            let mut history = EchoHistory::default();
            history.push(StateNum::from(1), Time::from_millis(reached[0]));
            history.push(StateNum::from(2), Time::from_millis(reached[1]));
            history.wrote(Time::from_millis(wrote));
            let timeout = history.timeout(Duration::from_millis(300));
            assert_eq!(timeout, Some(Time::from_millis(due)), "{wrote} {reached:?}");
            // What is told then is told of all before, too.
            let told = reached.iter().filter(|&reached| reached + 50 <= due).count() as u64;
            assert_eq!(history.mature(Time::from_millis(due)), Some(StateNum::from(told)));
            assert_eq!(history.states.len() as u64, 2 - told, "{wrote} {reached:?}");
        }
    }

    #[test]
    fn a_flood_of_states_starves_nobody() {
        let mut history = EchoHistory::default();
        let mut acked = StateNum::ZERO;
        for n in 1..1_000_000 {
            let now = Time::from_micros(n * 10);
            history.push(StateNum::from(n), now);
            acked = acked.max(history.mature(now).unwrap_or(acked));
            assert!(history.states.len() <= HISTORY_MAX);
        }
        // 50 ms are 5,000 states here.
        assert!(acked > StateNum::from(980_000), "{acked:?}");
    }
}
