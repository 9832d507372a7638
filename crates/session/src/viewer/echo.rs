//! Tells which of a viewer's keys a screen answers: the echo ack (`mosh-protocol.md` §4.5).

use alloc::collections::VecDeque;
use core::time::Duration;

use rove_ssp::{StateNum, Time};

/// How long the program has to answer a key before a screen counts as its answer
/// (`mosh-protocol.md` §4.5).
const ECHO_WAIT: Duration = Duration::from_millis(50);

/// States awaiting their echo ack. Beyond it the two newest count as one, and both wait as long as the
/// newer: a client that sends this many in 50 ms is not typing.
const HISTORY_MAX: usize = 64;

/// The client's states that carried keys or sizes, with the times at which they reached the host.
#[derive(Debug, Default)]
pub(crate) struct EchoHistory {
    /// At most [`HISTORY_MAX`].
    states: VecDeque<(StateNum, Time)>,
}

impl EchoHistory {
    /// A state that carried something has reached the host.
    pub(crate) fn push(&mut self, num: StateNum, now: Time) {
        if self.states.len() == HISTORY_MAX {
            self.states.pop_back();
        }
        self.states.push_back((num, now));
    }

    /// Removes the states that a screen as of `now` answers, and returns the newest of them.
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

    /// When an echo ack is to be sent by itself, if no frame takes it along before. If the program has
    /// `written` since the keys came, a frame with its answer is on its way, and the echo ack waits `lazy` for
    /// the next one.
    pub(crate) fn timeout(&self, written: Option<Time>, lazy: Duration) -> Option<Time> {
        let due = |&(_, reached): &(StateNum, Time)| {
            let answered = written.is_some_and(|written| written >= reached);
            reached + if answered { lazy.max(ECHO_WAIT) } else { ECHO_WAIT }
        };
        self.states.iter().map(due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let due = history.timeout(None, Duration::from_millis(300));
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
            let wrote = wrote.map(Time::from_millis);
            history.push(StateNum::from(1), Time::from_millis(100));
            let timeout = history.timeout(wrote, Duration::from_millis(lazy));
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
            let wrote = Some(Time::from_millis(wrote));
            let timeout = history.timeout(wrote, Duration::from_millis(300));
            assert_eq!(timeout, Some(Time::from_millis(due)), "{wrote:?} {reached:?}");
            // What is told then is told of all before, too.
            let told = reached.iter().filter(|&reached| reached + 50 <= due).count() as u64;
            assert_eq!(history.mature(Time::from_millis(due)), Some(StateNum::from(told)));
            assert_eq!(history.states.len() as u64, 2 - told, "{wrote:?} {reached:?}");
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
