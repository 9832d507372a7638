//! Slots: while somebody types, a client sends one datagram in each slot of a grid, whether or not there is a key for it,
//! and the server answers each with one (`docs/wire.md` §8). So neither when nor how often datagrams leave tells of keys.
//!
//! This file knows times and losses. It must not know what a datagram carries.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::rng::Rng;
use crate::time::Time;
use crate::wire::Slot;

/// The constants of slots.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotTiming {
    /// The time between two slots, 20 to 200 ms.
    pub slot: Duration,
    /// How long after a slot's datagram has come the answer leaves: 96 % of answers of recorded programs are there in
    /// 3 ms.
    pub hold: Duration,
    /// How long a run goes on after a key, drawn anew for each key between these two. The end of a run is all that it
    /// tells of them: with 2 to 5 s 0.05 bit a key of recorded typing.
    pub tail: (Duration, Duration),
    /// Where the path loses this share of datagrams or more, two leave in a slot's time, at equal distances: the second
    /// is a copy of what is not acknowledged, or has the next key. 1: never.
    pub copy_loss_min: f64,
}

impl SlotTiming {
    /// By default: 10.6 packets a key of recorded typing, both ways, and a wait of 28 ms in the mean.
    pub const ROVE: SlotTiming = SlotTiming {
        slot: Duration::from_millis(55),
        hold: Duration::from_millis(3),
        tail: (Duration::from_secs(2), Duration::from_secs(5)),
        copy_loss_min: 0.1,
    };

    /// Where each octet costs: 5.9 packets a key.
    pub const METERED: SlotTiming = SlotTiming {
        slot: Duration::from_millis(100),
        tail: (Duration::from_secs(2), Duration::from_secs(6)),
        copy_loss_min: 1.0,
        ..SlotTiming::ROVE
    };

    /// The same with slots of another length.
    pub fn with_slot(self, slot: Duration) -> SlotTiming {
        SlotTiming { slot: slot.clamp(SLOT_MIN, SLOT_MAX), ..self }
    }
}

/// Which lengths slots may have.
pub const SLOT_MIN: Duration = Duration::from_millis(20);
/// See [`SLOT_MIN`].
pub const SLOT_MAX: Duration = Duration::from_millis(200);
const HOLD_MAX_MS: u8 = 20;

/// A run goes on for so long at least after the mouse has moved: a pointer that rests on a moving hand would prolong it for
/// ever as keys do.
const MOTION_TAIL: Duration = Duration::from_secs(1);
/// A datagram is made so long before it leaves: how long that takes depends on what it carries.
const MADE_BEFORE: Duration = Duration::from_micros(500);
/// A slot that is later than this is left out: a busy machine must not send two at once.
const LATE_MAX: Duration = Duration::from_millis(25);
/// How far apart datagrams are is decided so seldom: a server that has missed slots for long says again what nobody
/// has acknowledged, and what it reports with that would show there were keys.
const DECIDED_FOR: Duration = Duration::from_millis(3_500);
/// A run that stood still for so long is over: the machine slept.
const STILL_MAX: Duration = Duration::from_secs(1);
/// Where nothing has answered for so long slots come at the pace of probes, and after a minute more seldom: a dead path must
/// not show who types, and a stream that stands still is not filled.
const SILENT: Duration = Duration::from_secs(3);
const SILENT_PACE: Duration = Duration::from_millis(250);
const SILENT_LONG: Duration = Duration::from_secs(60);
const SILENT_LONG_PACE: Duration = Duration::from_secs(1);

/// How much later than its slot or its hold each datagram leaves. It depends on nothing but a seed and the datagram's number,
/// so that no key shows in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jitter {
    seed: u64,
    most: Duration,
}

impl Jitter {
    pub(crate) fn new(seed: u64, most: Duration) -> Jitter {
        Jitter { seed, most }
    }

    /// The sum of two draws: at the ends of the range, where a small shift would show, there is hardly anything.
    fn of(self, number: u64) -> Duration {
        let mut rng = Rng::new(self.seed ^ number);
        let half = self.most.as_micros() as u32 / 2;
        Duration::from_micros((rng.below(half) + rng.below(half)).into())
    }
}

/// A client's grid, and the run that is on.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    timing: SlotTiming,
    /// Slots are at this and at whole numbers of slots after it.
    phase: Duration,
    jitter: Jitter,
    rng: Rng,
    /// The share of datagrams that the path loses.
    loss: f64,
    /// The time between two datagrams.
    apart: Duration,
    run: Option<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    until: Time,
    next: Time,
    /// When it was decided how far apart datagrams are.
    decided: Time,
}

/// Whether a slot is the last of its run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SlotKind {
    Within,
    Last,
}

impl Grid {
    /// A grid whose phase is drawn now.
    ///
    /// # Panics
    /// If the timing makes no sense.
    pub(crate) fn new(timing: SlotTiming, jitter: Duration, seed: u64) -> Grid {
        assert!((SLOT_MIN..=SLOT_MAX).contains(&timing.slot), "a slot has 20 to 200 ms");
        assert!(timing.tail.0 <= timing.tail.1, "a range has a lower end");
        let mut rng = Rng::new(seed);
        let phase = Duration::from_micros(rng.below(timing.slot.as_micros() as u32).into());
        let jitter = Jitter::new(rng.bits(), jitter);
        Grid { apart: timing.slot, timing, phase, jitter, rng, loss: 0.0, run: None }
    }

    /// The path loses this share of datagrams.
    pub(crate) fn lose(&mut self, loss: f64) {
        self.loss = loss;
    }

    /// The time between two datagrams.
    pub(crate) fn apart(&self) -> Duration {
        self.apart
    }

    fn decide_apart(&mut self) {
        let half = self.timing.slot / 2;
        let is_copied = self.loss >= self.timing.copy_loss_min && half >= SLOT_MIN;
        self.apart = if is_copied { half } else { self.timing.slot };
    }

    /// A key was typed, or is kept: a run begins with the next slot, or goes on.
    pub(crate) fn key(&mut self, now: Time) {
        let (least, most) = self.timing.tail;
        let more = self.rng.below((most - least).as_micros() as u32 + 1);
        let until = now + least + Duration::from_micros(more.into());
        match &mut self.run {
            Some(run) => run.until = until,
            None => {
                self.decide_apart();
                // With a whole slot, so that the first key is no better known where two leave in one.
                let next = self.whole_after(now);
                self.run = Some(Run { until, next, decided: now });
            }
        }
    }

    /// The mouse moved: a run begins as with a key, but one that is on is prolonged by less.
    pub(crate) fn motion(&mut self, now: Time) {
        match &mut self.run {
            Some(run) => run.until = run.until.max(now + MOTION_TAIL),
            None => self.key(now),
        }
    }

    /// Whether a run is on.
    pub(crate) fn is_on(&self) -> bool {
        self.run.is_some()
    }

    /// When the next slot's datagram is to be made, if a run is on.
    pub(crate) fn next(&self) -> Option<Time> {
        self.run.map(|run| self.leaves(run.next) - MADE_BEFORE)
    }

    /// When the datagram of this slot leaves.
    fn leaves(&self, slot: Time) -> Time {
        slot + self.jitter.of(slot.as_micros())
    }

    /// Takes the slot whose datagram is to be made, and when that leaves. An answer is awaited since `awaits`.
    pub(crate) fn take(&mut self, now: Time, awaits: Option<Time>) -> Option<(SlotKind, Time)> {
        let mut run = self.run.filter(|run| self.leaves(run.next) <= now + MADE_BEFORE)?;
        if now.since(run.decided) >= DECIDED_FOR {
            run.decided = now;
            self.decide_apart();
        }
        let at = self.leaves(run.next);
        let late = now.since(at);
        let silence = awaits.map_or(Duration::ZERO, |since| now.since(since));
        let pace = match silence {
            _ if silence > SILENT_LONG => SILENT_LONG_PACE,
            _ if silence > SILENT => SILENT_PACE,
            _ => Duration::ZERO,
        };
        // The first slot that is no sooner than the pace.
        let paced = run.next + pace.saturating_sub(Duration::from_micros(1));
        let next = self.after(paced.max(now));
        if late > STILL_MAX || next > run.until && late > LATE_MAX {
            self.run = None;
            return None;
        }
        let kind = if next > run.until { SlotKind::Last } else { SlotKind::Within };
        self.run = (kind == SlotKind::Within).then_some(Run { next, ..run });
        (late <= LATE_MAX).then_some((kind, at))
    }

    /// The control item of a slot's datagram of at least this length.
    pub(crate) fn item(&self, kind: SlotKind, octets: usize) -> Slot {
        Slot {
            slot_ms: self.timing.slot.as_millis() as u8,
            hold_ms: self.timing.hold.as_millis() as u8,
            answer_bytes: match kind {
                SlotKind::Within => octets.try_into().unwrap_or(u16::MAX),
                SlotKind::Last => 0,
            },
        }
    }

    /// The first slot after this. The grid is computed and not counted, so that no error adds up.
    fn after(&self, now: Time) -> Time {
        // A half of an odd number of µs is cut: each whole slot begins anew.
        let whole = self.whole_after(now);
        let half = whole - (self.timing.slot - self.apart);
        if now < half { half } else { whole }
    }

    /// The first whole slot after this.
    fn whole_after(&self, now: Time) -> Time {
        let (slot, phase) = (self.timing.slot.as_micros() as u64, self.phase.as_micros() as u64);
        let since = now.as_micros().saturating_sub(phase);
        let behind = if now.as_micros() < phase { 0 } else { since / slot + 1 };
        Time::from_micros(phase + behind * slot)
    }
}

/// Answers that are owed at a time. Beyond it the oldest is dropped: a client sends in slots, so that a hostile one gains
/// nothing.
const OWED_MAX: usize = 8;
/// Answers in a second at most: one each so long, and some at once.
const ANSWER_PACE: Duration = Duration::from_millis(10);
const ANSWERS_AT_ONCE: u32 = 8;
/// Slots without a datagram after which a run is over, and the longest that they may take.
const MISSED_MAX: u32 = 8;
const MISSED_FOR_MAX: Duration = Duration::from_secs(1);

/// The answers that a server owes, and whether its client's run is on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    jitter: Jitter,
    /// How many were owed, and when the newest leaves.
    count: u64,
    newest: Time,
    owed: VecDeque<Answer>,
    /// Until when the run is taken to be on.
    until: Option<Time>,
    /// When all answers will be paid for.
    paid: Time,
}

/// An answer that is owed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Answer {
    /// When it leaves.
    pub at: Time,
    /// Octets that it has at least.
    pub bytes: usize,
    is_last: bool,
}

impl Answers {
    /// None is owed.
    pub(crate) fn new(jitter: Jitter) -> Answers {
        Answers { jitter, ..Answers::default() }
    }

    /// Takes the item of a slot's datagram of this length. Values out of bounds are ignored.
    pub(crate) fn on_slot(&mut self, now: Time, slot: Slot, octets: usize) {
        let length = Duration::from_millis(slot.slot_ms.into());
        let is_sane = (SLOT_MIN..=SLOT_MAX).contains(&length)
            && (1..=HOLD_MAX_MS).contains(&slot.hold_ms)
            && usize::from(slot.answer_bytes) <= octets;
        let ahead = ANSWER_PACE * ANSWERS_AT_ONCE;
        if !is_sane || self.paid > now + ahead {
            return;
        }
        self.paid = self.paid.max(now) + ANSWER_PACE;
        if self.owed.len() == OWED_MAX {
            self.owed.pop_front();
        }
        self.count += 1;
        let at = now + Duration::from_millis(slot.hold_ms.into()) + self.jitter.of(self.count);
        // Each is made once the one before has left.
        self.newest = at.max(self.newest + MADE_BEFORE);
        self.owed.push_back(Answer {
            at: self.newest,
            bytes: slot.answer_bytes.into(),
            is_last: slot.answer_bytes == 0,
        });
        self.until = Some(now + (length * MISSED_MAX).min(MISSED_FOR_MAX));
    }

    /// Forgets a run that has ended without a word.
    pub(crate) fn advance(&mut self, now: Time) {
        self.until = self.until.filter(|until| now < *until || !self.owed.is_empty());
    }

    /// Whether a run is on: then nothing leaves but answers.
    pub(crate) fn is_on(&self, now: Time) -> bool {
        !self.owed.is_empty() || self.until.is_some_and(|until| now < until)
    }

    /// When an answer is to be made, or the run is over without one.
    pub(crate) fn next(&self) -> Option<Time> {
        self.owed.front().map(|answer| answer.at - MADE_BEFORE).or(self.until)
    }

    /// Takes the answer that is to be made.
    pub(crate) fn take(&mut self, now: Time) -> Option<Answer> {
        let answer = self.owed.pop_front_if(|answer| answer.at <= now + MADE_BEFORE)?;
        if answer.is_last {
            self.until = None;
        }
        Some(answer)
    }
}

/// The runs of one end.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    /// A client's.
    pub grid: Option<Grid>,
    /// A server's.
    pub answers: Answers,
    /// What the next datagram is.
    pub turn: Option<Turn>,
    /// What waits is too much for slots.
    pub is_long: bool,
}

/// A datagram in a slot, or an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// When it leaves.
    pub at: Time,
    /// What it says of its slot.
    pub slot: Option<Slot>,
    /// Octets that it has at least.
    pub least: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    const JITTER: Duration = Duration::from_millis(1);

    /// When the next one leaves.
    fn leaves(grid: &Grid) -> Time {
        grid.next().unwrap() + MADE_BEFORE
    }

    #[test]
    fn slots_are_on_the_grid_whenever_keys_come() {
        for seed in 0..200 {
            let mut grid = Grid::new(SlotTiming::ROVE, JITTER, seed);
            assert_eq!(grid.next(), None);
            grid.key(ms(1000 + seed * 7));
            let slot = grid.run.unwrap().next;
            assert!(slot > ms(1000 + seed * 7) && slot <= ms(1055 + seed * 7));
            let mut nth = 0;
            let mut kinds = Vec::new();
            while let Some(made) = grid.next() {
                let at = leaves(&grid);
                let late = at.since(slot + Duration::from_millis(55) * nth);
                assert!(late < JITTER, "{late:?}");
                nth += 1;
                assert_eq!(grid.take(made - Duration::from_micros(1), Some(at)), None);
                let (kind, told) = grid.take(made, Some(at)).unwrap();
                assert_eq!(told, at);
                kinds.push(kind);
            }
            assert_eq!(kinds.pop(), Some(SlotKind::Last));
            assert!(!kinds.contains(&SlotKind::Last));
            assert!((35..=91).contains(&kinds.len()), "{}", kinds.len());
        }
    }

    #[test]
    fn a_path_that_loses_much_gets_two_in_a_slot() {
        for (slot, loss, apart) in [(55, 0.09, 55_000), (55, 0.1, 27_500), (30, 0.5, 30_000)] {
            let timing = SlotTiming::ROVE.with_slot(Duration::from_millis(slot));
            let mut grid = Grid::new(timing, JITTER, 3);
            let first = grid.after(ms(0));
            grid.lose(loss);
            grid.key(ms(0));
            for nth in 0..20 {
                let (next, at) = (grid.run.unwrap().next, leaves(&grid));
                let wanted = first + Duration::from_micros(apart * nth);
                assert_eq!(next, wanted, "{slot} ms, {loss}");
                assert_eq!(grid.take(at, None), Some((SlotKind::Within, at)));
            }
        }
    }

    #[test]
    fn datagrams_leave_at_any_moment_of_a_millisecond() {
        let grid = Grid::new(SlotTiming::ROVE, JITTER, 3);
        let mut tenths = [0; 10];
        for nth in 0..10_000 {
            let late = grid.jitter.of(55_000 * nth);
            tenths[late.as_micros() as usize / 100] += 1;
        }
        for (place, count) in tenths.into_iter().enumerate() {
            let wanted = 200 * (2 * place.min(9 - place) as i32 + 1);
            assert!((count - wanted).abs() < 120, "{tenths:?}");
        }
    }

    /// Two that come together leave in their order, so far apart that the second is made when the first has left.
    #[test]
    fn answers_leave_one_after_the_other() {
        let slot = Slot { slot_ms: 55, hold_ms: 3, answer_bytes: 128 };
        for seed in 0..100 {
            let mut answers = Answers::new(Jitter::new(seed, JITTER));
            let mut last = Time::ZERO;
            for turn in 0..4 {
                answers.on_slot(ms(turn / 2), slot, 128);
            }
            for _ in 0..4 {
                let made = answers.next().unwrap();
                assert!(made >= last, "{seed}");
                last = answers.take(made).unwrap().at;
                assert!(last <= ms(1 + 3 + 1) + MADE_BEFORE * 4, "{seed}: {last:?}");
            }
        }
    }

    /// A run that motion alone prolongs ends within a second of it, and never before its key has it.
    #[test]
    fn motion_prolongs_a_run_by_a_second() {
        for (last, ends) in [(900, 2_000..=5_000), (20_000, 21_000..=21_000)] {
            let mut grid = Grid::new(SlotTiming::ROVE, JITTER, 3);
            grid.motion(ms(0));
            for at in (100..=last).step_by(100) {
                grid.motion(ms(at));
            }
            let until = grid.run.unwrap().until.as_micros() / 1_000;
            assert!(ends.contains(&until), "{last}: {until}");
        }
    }

    #[test]
    fn late_slots_are_left_out() {
        let mut grid = Grid::new(SlotTiming::ROVE, JITTER, 3);
        grid.key(ms(0));
        let (slot, first) = (grid.run.unwrap().next, leaves(&grid));
        let late = |by: u64| first + Duration::from_millis(by);
        assert_eq!(grid.take(late(25), None), Some((SlotKind::Within, first)));
        assert_eq!(grid.take(late(55 + 27), None), None);
        assert_eq!(grid.run.unwrap().next, slot + Duration::from_millis(110));
        assert_eq!(grid.take(late(1200), None), None, "it slept");
        assert!(!grid.is_on());
    }

    #[test]
    fn silence_makes_slots_rare() {
        let mut grid = Grid::new(SlotTiming::ROVE, JITTER, 3);
        grid.key(ms(100_000));
        let silences = [(Some(99_000), 55), (Some(96_000), 275), (Some(10_000), 1045), (None, 55)];
        for (since, gap) in silences {
            let (slot, at) = (grid.run.unwrap().next, leaves(&grid));
            grid.key(at);
            grid.take(at, since.map(ms));
            assert_eq!(grid.run.unwrap().next.since(slot).as_millis(), gap, "{since:?}");
        }
    }

    #[test]
    fn answers_are_bounded() {
        let mut answers = Answers::default();
        let slot = Slot { slot_ms: 55, hold_ms: 3, answer_bytes: 128 };
        for bad in [
            Slot { slot_ms: 19, ..slot },
            Slot { slot_ms: 201, ..slot },
            Slot { hold_ms: 0, ..slot },
            Slot { hold_ms: 21, ..slot },
            Slot { answer_bytes: 129, ..slot },
        ] {
            answers.on_slot(ms(0), bad, 128);
            assert!(!answers.is_on(ms(0)), "{bad:?}");
        }
        let mut answered = 0;
        for turn in 0..1_000_000 {
            let now = Time::from_micros(turn);
            answers.on_slot(now, slot, 128);
            assert!(answers.owed.len() <= OWED_MAX);
            answered += usize::from(answers.take(now).is_some());
        }
        assert!((90..=110).contains(&answered), "{answered}");
        answers.on_slot(ms(2000), Slot { answer_bytes: 0, ..slot }, 128);
        assert!(answers.is_on(ms(2500)));
        while answers.take(ms(2500)).is_some() {}
        assert!(!answers.is_on(ms(2500)));
        answers.on_slot(ms(3000), slot, 128);
        answers.take(ms(3003));
        assert!(answers.is_on(ms(3439)) && !answers.is_on(ms(3440)), "8 slots without one");
    }
}
