//! When the adaptive policy acknowledges what came (loss-policy §5, 5). It must not know what is sent.

use core::time::Duration;

use crate::recovery::rtt::RttEstimator;
use crate::time::Time;
use crate::wire::Flags;

/// The acknowledgment that is owed, and what has come since the last one.
pub(crate) struct AckSchedule {
    /// When an acknowledgment is owed.
    scheduled: Option<Time>,
    /// New states of the peer since anything was sent.
    unanswered: u32,
    /// Pieces of instructions that are not whole since anything was sent.
    untold: u32,
    /// When anything was sent last.
    last_sent: Time,
}

/// How many datagrams an instruction came in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fragmented {
    No,
    Yes,
}

/// New states of the peer after which it is told soon what came, and how soon (loss-policy §5, 5).
const UNANSWERED_MAX: u32 = 3;
/// The same of pieces of an instruction: a report tells of 120, and three in a row may be lost.
const UNTOLD_MAX: u32 = 32;
const ACK_SOON: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(25));
/// A state that comes again is said in doubt, and not in case it is lost, if it comes so much later.
const REPEAT_MIN: Duration = Duration::from_millis(40);

impl AckSchedule {
    pub(crate) fn new(now: Time) -> AckSchedule {
        AckSchedule { scheduled: None, unanswered: 0, untold: 0, last_sent: now }
    }

    /// The peer's newest state came with a diff: an acknowledgment is owed within `delay`.
    pub(crate) fn on_state(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        delay: Duration,
        fragmented: Fragmented,
    ) {
        self.unanswered += 1;
        // The peer's window opens by acknowledgments.
        let many = self.unanswered >= UNANSWERED_MAX || fragmented == Fragmented::Yes;
        self.schedule_by(match many {
            // The next part waits for it.
            true if self.untold >= UNTOLD_MAX / 2 => now,
            true => now + soon(rtt).min(delay),
            false => now + delay,
        });
    }

    /// A piece of an instruction came, and others are missing: the peer is to learn soon which.
    pub(crate) fn on_piece(&mut self, now: Time, rtt: &RttEstimator, delay: Duration) {
        self.untold += 1;
        let many = self.untold >= UNTOLD_MAX;
        // The peer repairs only what it is told of, and a report reaches back 120 numbers.
        self.schedule_by(if many { now } else { now + soon(rtt).min(delay) });
    }

    /// The peer sent its newest state again. If it missed our answer, we answer at once;
    /// so is one that comes long after the answer, where flags do not travel.
    pub(crate) fn on_repeat(&mut self, now: Time, rtt: &RttEstimator, flags: Flags) {
        let late = now.since(self.last_sent) >= (rtt.srtt() / 2).max(REPEAT_MIN);
        if flags.again || late {
            self.scheduled = Some(now);
        }
    }

    /// What goes out now does not acknowledge what came last.
    pub(crate) fn schedule_at_once(&mut self, now: Time) {
        self.scheduled = Some(now);
    }

    /// An acknowledgment is due then, unless one is due before.
    pub(crate) fn schedule_by(&mut self, at: Time) {
        self.scheduled = Some(self.scheduled.map_or(at, |scheduled| scheduled.min(at)));
    }

    /// When an acknowledgment is due.
    pub(crate) fn at(&self) -> Option<Time> {
        self.scheduled
    }

    /// A datagram goes out, and carries the acknowledgment.
    pub(crate) fn on_sent(&mut self, now: Time) {
        self.scheduled = None;
        // Each datagram carries the newest acknowledgment and a report.
        (self.unanswered, self.untold) = (0, 0);
        self.last_sent = now;
    }
}

fn soon(rtt: &RttEstimator) -> Duration {
    (rtt.srtt() / 4).clamp(ACK_SOON.0, ACK_SOON.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::Timing;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn pieces_are_told_soon_and_many_of_them_at_once() {
        let mut rtt = RttEstimator::new(&Timing::ROVE);
        (0..200).for_each(|_| rtt.sample(Duration::from_millis(40)));
        let mut acks = AckSchedule::new(ms(0));
        let delay = Duration::from_millis(20);
        for piece in 1..UNTOLD_MAX {
            acks.on_piece(ms(100), &rtt, delay);
            assert_eq!(acks.at(), Some(ms(110)), "{piece}");
        }
        acks.on_piece(ms(101), &rtt, delay);
        assert_eq!(acks.at(), Some(ms(101)));
        acks.on_sent(ms(101));
        assert_eq!(acks.at(), None);
        acks.on_piece(ms(200), &rtt, delay);
        assert_eq!(acks.at(), Some(ms(210)), "those before were told of");
    }
}
