//! What the eager policy keeps beside the books: its clocks, its window, and what it owes the peer
//! (loss-policy §5, 3 to 7). It must not know what is said.

use std::time::Duration;

use crate::recovery::congestion::Window;
use crate::recovery::rtt::Rtt;
use crate::sender::redundancy::Pacer;
use crate::state::StateNum;
use crate::time::Time;
use crate::timing::Eager;
use crate::wire::{Flags, Report, Seq};

/// The clocks of the eager policy.
pub(crate) struct Hurry {
    pub pacer: Pacer,
    pub window: Window,
    /// When an acknowledgment is owed.
    owed: Option<Time>,
    /// New states of the peer since anything was sent.
    unanswered: u32,
    /// Pieces of instructions that are not whole since anything was sent.
    untold: u32,
    /// When anything was sent last.
    spoke: Time,
}

/// How many datagrams an instruction came in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Datagrams {
    One,
    Several,
}

/// New states of the peer after which it is told soon what came, and how soon (loss-policy §5, 5).
const UNANSWERED_MAX: u32 = 3;
/// The same of pieces of an instruction: a report tells of 120, and three in a row may be lost.
const UNTOLD_MAX: u32 = 32;
const ACK_SOON: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(25));
/// A state that comes again is said in doubt, and not in case it is lost, if it comes so much later.
const REPEAT_MIN: Duration = Duration::from_millis(40);
/// A datagram is followed for at least so long.
const FLIGHT_MIN: Duration = Duration::from_secs(1);

impl Hurry {
    pub fn new(now: Time, policy: Eager) -> Hurry {
        Hurry {
            pacer: Pacer::new(now, policy),
            window: Window::new(now),
            owed: None,
            unanswered: 0,
            untold: 0,
            spoke: now,
        }
    }

    /// An authentic datagram came; `loss` is the share of the peer's that did not.
    pub fn hear(&mut self, now: Time, rtt: &Rtt, loss: f64, report: Option<&Report>) {
        self.pacer.hear(now, rtt, loss, report);
        self.window.hear(now, rtt, report);
        self.pacer.judge(self.window.has_no_use_for_copies(now));
    }

    /// A datagram with news of this state went out.
    pub fn sent(&mut self, now: Time, seq: Seq, num: StateNum, bytes: usize, rtt: &Rtt) {
        let patience = (2 * self.pacer.timeout(rtt)).max(FLIGHT_MIN);
        self.window.expire(now - patience);
        self.window.sent(now, seq, num, bytes);
    }

    /// When another datagram of an instruction may go out after one at `last`: when there is room for it.
    pub fn room_at(&self, last: Time, rtt: &Rtt) -> Time {
        self.window.open_for_part_at(last, rtt, self.pacer.timeout(rtt))
    }

    /// When a new state may go out.
    pub fn new_at(&self, rtt: &Rtt) -> Time {
        let last = self.pacer.last_new().unwrap_or(Time::ZERO);
        let open = self.window.open_at(last, rtt, self.pacer.timeout(rtt));
        self.pacer.frame_at(rtt).max(open)
    }

    /// The peer's newest state came with a diff: an acknowledgment is owed.
    pub fn owe_ack(&mut self, now: Time, rtt: &Rtt, datagrams: Datagrams) {
        self.unanswered += 1;
        // The peer's window opens by acknowledgments.
        let many = self.unanswered >= UNANSWERED_MAX || datagrams == Datagrams::Several;
        let delay = self.pacer.ack_delay();
        self.owe_by(match many {
            // The next part waits for it.
            true if self.untold >= UNTOLD_MAX / 2 => now,
            true => now + soon(rtt).min(delay),
            false => now + delay,
        });
    }

    /// The peer's newest state came without a diff, and is to be acknowledged all the same.
    pub fn owe_beat(&mut self, now: Time) {
        self.owe_by(now + self.pacer.ack_delay());
    }

    /// A piece of an instruction came, and others are missing: the peer is to learn soon which.
    pub fn owe_report(&mut self, now: Time, rtt: &Rtt) {
        self.untold += 1;
        let many = self.untold >= UNTOLD_MAX;
        let delay = soon(rtt).min(self.pacer.ack_delay());
        self.owe_by(if many { now } else { now + delay });
    }

    /// What goes out now does not acknowledge what came last.
    pub fn owe_at_once(&mut self, now: Time) {
        self.owed = Some(now);
    }

    /// The peer's newest state came once more. Said again because no answer came, it is answered at once;
    /// so is one that comes long after the answer, where flags do not travel.
    pub fn repeated(&mut self, now: Time, rtt: &Rtt, flags: Flags) {
        let late = now.since(self.spoke) >= (rtt.srtt() / 2).max(REPEAT_MIN);
        if flags.again || late {
            self.owed = Some(now);
        }
    }

    /// When an acknowledgment is due.
    pub fn owed(&self) -> Option<Time> {
        self.owed
    }

    /// Whatever goes out carries the acknowledgment.
    pub fn spoke(&mut self, now: Time) {
        self.owed = None;
        (self.unanswered, self.untold) = (0, 0);
        self.spoke = now;
    }

    fn owe_by(&mut self, at: Time) {
        self.owed = Some(self.owed.map_or(at, |owed| owed.min(at)));
    }
}

fn soon(rtt: &Rtt) -> Duration {
    (rtt.srtt() / 4).clamp(ACK_SOON.0, ACK_SOON.1)
}
