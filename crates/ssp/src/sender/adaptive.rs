//! The state of the adaptive policy: redundancy, congestion window, and the acknowledgments it owes
//! (loss-policy §5, 3 to 7). It must not know what is sent.

use core::time::Duration;

use crate::recovery::congestion::CongestionWindow;
use crate::recovery::rtt::RttEstimator;
use crate::sender::redundancy::Redundancy;
use crate::state::StateNum;
use crate::time::Time;
use crate::timing::AdaptiveTiming;
use crate::wire::{Flags, Report, Seq};

/// The clocks of the adaptive policy.
pub(crate) struct AdaptivePolicy {
    pub redundancy: Redundancy,
    pub window: CongestionWindow,
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
/// A datagram is followed for at least so long.
const EXPIRY_MIN: Duration = Duration::from_secs(1);

impl AdaptivePolicy {
    pub fn new(now: Time, policy: AdaptiveTiming) -> AdaptivePolicy {
        AdaptivePolicy {
            redundancy: Redundancy::new(now, policy),
            window: CongestionWindow::new(now),
            scheduled: None,
            unanswered: 0,
            untold: 0,
            last_sent: now,
        }
    }

    /// An authentic datagram came; `loss` is the share of the peer's that did not.
    pub fn on_report(&mut self, now: Time, rtt: &RttEstimator, loss: f64, report: Option<&Report>) {
        self.redundancy.on_report(now, rtt, loss, report);
        self.window.on_report(now, rtt, report);
        self.redundancy.judge(self.window.suppresses_redundancy(now));
    }

    /// A datagram with news of this state went out.
    pub fn on_sent(
        &mut self,
        now: Time,
        seq: Seq,
        num: StateNum,
        bytes: usize,
        rtt: &RttEstimator,
    ) {
        let expiry = (2 * self.redundancy.pto(rtt)).max(EXPIRY_MIN);
        self.window.expire(now - expiry);
        self.window.on_sent(now, seq, num, bytes);
    }

    /// When another datagram of an instruction may go out after one at `last`: when there is room for it.
    pub fn room_at(&self, last: Time, rtt: &RttEstimator) -> Time {
        self.window.send_part_at(last, rtt, self.redundancy.pto(rtt))
    }

    /// When a new state may go out.
    pub fn new_at(&self, rtt: &RttEstimator) -> Time {
        let last = self.redundancy.last_new().unwrap_or(Time::ZERO);
        let open = self.window.send_at(last, rtt, self.redundancy.pto(rtt));
        self.redundancy.frame_at(rtt).max(open)
    }

    /// The peer's newest state came with a diff: an acknowledgment is owed.
    pub fn schedule_ack(&mut self, now: Time, rtt: &RttEstimator, fragmented: Fragmented) {
        self.unanswered += 1;
        // The peer's window opens by acknowledgments.
        let many = self.unanswered >= UNANSWERED_MAX || fragmented == Fragmented::Yes;
        let delay = self.redundancy.ack_delay();
        self.schedule_by(match many {
            // The next part waits for it.
            true if self.untold >= UNTOLD_MAX / 2 => now,
            true => now + soon(rtt).min(delay),
            false => now + delay,
        });
    }

    /// The peer's newest state came without a diff, and is to be acknowledged all the same.
    pub fn schedule_empty_ack(&mut self, now: Time) {
        self.schedule_by(now + self.redundancy.ack_delay());
    }

    /// A piece of an instruction came, and others are missing: the peer is to learn soon which.
    pub fn schedule_report(&mut self, now: Time, rtt: &RttEstimator) {
        self.untold += 1;
        let many = self.untold >= UNTOLD_MAX;
        let delay = soon(rtt).min(self.redundancy.ack_delay());
        self.schedule_by(if many { now } else { now + delay });
    }

    /// What goes out now does not acknowledge what came last.
    pub fn schedule_at_once(&mut self, now: Time) {
        self.scheduled = Some(now);
    }

    /// The peer sent its newest state again. If it missed our answer, we answer at once;
    /// so is one that comes long after the answer, where flags do not travel.
    pub fn repeated(&mut self, now: Time, rtt: &RttEstimator, flags: Flags) {
        let late = now.since(self.last_sent) >= (rtt.srtt() / 2).max(REPEAT_MIN);
        if flags.again || late {
            self.scheduled = Some(now);
        }
    }

    /// When an acknowledgment is due.
    pub fn scheduled(&self) -> Option<Time> {
        self.scheduled
    }

    /// Whatever goes out carries the acknowledgment.
    pub fn on_any_sent(&mut self, now: Time) {
        self.scheduled = None;
        (self.unanswered, self.untold) = (0, 0);
        self.last_sent = now;
    }

    fn schedule_by(&mut self, at: Time) {
        self.scheduled = Some(self.scheduled.map_or(at, |scheduled| scheduled.min(at)));
    }
}

fn soon(rtt: &RttEstimator) -> Duration {
    (rtt.srtt() / 4).clamp(ACK_SOON.0, ACK_SOON.1)
}
