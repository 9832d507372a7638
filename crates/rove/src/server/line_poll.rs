//! Decides when to check the program's terminal line for a change of mode, since the kernel
//! announces none.
//!
//! It would only in packet mode with `EXTPROC` on, and that takes echo and line editing away from
//! the kernel: every `cat` would stop echoing. So the driver checks at each turn, which comes with
//! every key and output, and ever more rarely after it. This file knows no terminal.

use std::time::Duration;

use rove_session::line_mode::{HiddenLines, LineLook, LineMode, LineReport};
use rove_ssp::Time;

/// The first look of its own after keys or output: programs that ask for a password switch echo off
/// within a few milliseconds of writing their question, and a frame that says so goes no sooner than this
/// after the one with the question.
const FIRST: Duration = Duration::from_millis(20);

/// The longest time between two looks. A line that gathers is looked at for as long as it does, since the client shows
/// or keeps its keys without asking the program; others come to rest.
const LONGEST: Duration = Duration::from_secs(1);

/// How much longer each pause between looks is.
const GROWTH: u32 = 8;

/// The next look, and how long to wait for the one after it.
#[derive(Debug)]
pub struct LinePoller {
    next: Option<Time>,
    pause: Duration,
    /// What the last look saw.
    seen: Option<LineMode>,
    hidden: HiddenLines,
}

impl Default for LinePoller {
    fn default() -> LinePoller {
        LinePoller::new()
    }
}

impl LinePoller {
    /// Nothing to see yet.
    pub fn new() -> LinePoller {
        LinePoller { next: None, pause: FIRST, seen: None, hidden: HiddenLines::default() }
    }

    /// Output came from the program.
    pub fn on_output(&mut self, now: Time) {
        self.hidden.on_output(now);
        self.stir(now);
    }

    /// Keys went to the program.
    pub fn on_keys(&mut self, now: Time, octets: &[u8]) {
        self.hidden.on_keys(now, octets);
        self.stir(now);
    }

    /// A change is likelier than before.
    fn stir(&mut self, now: Time) {
        self.pause = FIRST;
        self.next = Some(now + FIRST);
    }

    /// The line was checked, and this was seen. Returns what to report. A check in the second half of a pause, due to
    /// another event, replaces the one at its end.
    pub fn looked(&mut self, now: Time, look: impl Into<LineLook>) -> LineReport {
        let look = look.into();
        let mode = look.mode;
        if self.seen.replace(mode).is_some_and(|seen| seen != mode) {
            // Whoever changes it once may do so again.
            self.stir(now);
        } else if self.next.is_some_and(|next| next - self.pause / 2 <= now) {
            let rests = self.pause >= LONGEST && mode == LineMode::Raw;
            self.pause = (self.pause * GROWTH).min(LONGEST);
            self.next = (!rests).then_some(now + self.pause);
        }
        self.hidden.look(now, look)
    }

    /// There is nothing to look at any more.
    pub fn rest(&mut self) {
        self.next = None;
    }

    /// When to check if nothing else happens.
    pub const fn next(&self) -> Option<Time> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All looks in an hour after a key, in ms.
    fn looks(mode: LineMode) -> Vec<u64> {
        let mut watch = LinePoller::new();
        assert_eq!(watch.next(), None);
        watch.stir(Time::ZERO);
        let mut looks = Vec::new();
        while let Some(next) = watch.next().filter(|next| *next < Time::from_millis(3_600_000)) {
            looks.push(next.as_micros() / 1000);
            watch.looked(next, mode);
        }
        looks
    }

    #[test]
    fn looks_get_rarer() {
        let first = [20, 180, 1180];
        assert_eq!(looks(LineMode::Raw), first);
        for mode in [LineMode::Cooked, LineMode::Hidden] {
            let looks = looks(mode);
            assert_eq!(looks[..3], first);
            assert!(looks.windows(2).all(|pair| pair[1] - pair[0] <= 1000));
            assert!(looks.len() > 3595, "{mode:?}");
        }
    }

    #[test]
    fn a_change_begins_the_pauses_anew() {
        let mut watch = LinePoller::new();
        watch.stir(Time::ZERO);
        let mut kept = Vec::new();
        for (ms, mode) in [
            (20, LineMode::Cooked),
            (180, LineMode::Cooked),
            (1180, LineMode::Hidden),
            (1200, LineMode::Hidden),
            (1360, LineMode::Hidden),
            (2360, LineMode::Raw),
        ] {
            assert_eq!(watch.next(), Some(Time::from_millis(ms)), "{ms}");
            kept.push(watch.looked(Time::from_millis(ms), mode).may_be_kept);
        }
        assert_eq!(kept, [false, false, false, false, true, false]);
        assert_eq!(watch.next(), Some(Time::from_millis(2380)));
    }

    /// Whichever look replaces the first one, the line is another before an echo ack lets a client keep keys on it.
    #[test]
    fn a_line_is_another_within_the_first_pause() {
        for early in 0..20 {
            let mut watch = LinePoller::new();
            let number = |watch: &mut LinePoller, ms| {
                watch.looked(Time::from_millis(ms), LineMode::Hidden).hidden
            };
            assert_eq!(number(&mut watch, 1), Some(1));
            watch.on_keys(Time::from_millis(100), b"\r");
            number(&mut watch, 100 + early);
            let next = watch.next().filter(|next| *next < Time::from_millis(150));
            let last = next.map_or(Time::from_millis(100 + early), |next| next);
            assert_eq!(watch.looked(last, LineMode::Hidden).hidden, Some(2), "{early}");
        }
    }

    #[test]
    fn a_look_much_ahead_of_time_changes_nothing() {
        let mut watch = LinePoller::new();
        watch.stir(Time::ZERO);
        watch.looked(Time::from_millis(9), LineMode::Raw);
        assert_eq!(watch.next(), Some(Time::from_millis(20)));
        watch.looked(Time::from_millis(10), LineMode::Raw);
        assert_eq!(watch.next(), Some(Time::from_millis(170)));
    }
}
