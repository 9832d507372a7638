//! Limits how fast screens are sent to a viewer.

use core::time::Duration;

use rove_ssp::Time;

/// How much of the path screens may use by default (threats row 33), in bits of datagrams a second. Text uses
/// far less; a program that floods the screen does not flood the path.
pub const SCREEN_RATE: u64 = 1_000_000;

/// How far ahead of its rate the screen may be: a full repaint after a quiet while goes at once.
const AHEAD_MAX: Duration = Duration::from_millis(250);

/// The same for the frames that answer a key: on a flooded screen of 100 rows and 200 columns each
/// frame costs 112 ms, and the prompt after a Ctrl-C does not wait for the last one to be paid for.
const ANSWER_AHEAD_MAX: Duration = Duration::from_millis(500);

/// How long a program has to answer a key before the answering frame is taken. Until then no other is,
/// whose send interval would delay it.
const ANSWER_WAIT: Duration = Duration::from_millis(10);

/// How long after the first answering frame others may follow it on the same terms: a shell whose program was
/// interrupted takes its time to say so, and on a large screen that would wait for 300 ms to be paid for.
const ANSWER_LAST: Duration = Duration::from_millis(50);

/// The budget that a viewer's frames are charged to.
#[derive(Debug)]
pub(crate) struct FrameBudget {
    /// Bits a second; `None` is no limit.
    rate: Option<u64>,
    /// When all that was sent will be paid for.
    paid: Time,
    /// When the first frame that answers the last keys is to be taken, if the screen is ahead of its rate.
    answer: Option<Time>,
}

impl FrameBudget {
    pub(crate) fn new(rate: Option<u64>) -> Self {
        Self { rate: rate.map(|rate| rate.max(1)), paid: Time::ZERO, answer: None }
    }

    /// Charges a datagram.
    pub(crate) fn sent(&mut self, now: Time, octets: usize) {
        if let Some(rate) = self.rate {
            let micros = (octets as u64).saturating_mul(8_000_000) / rate;
            self.paid = self.paid.max(now) + Duration::from_micros(micros);
        }
    }

    /// The program was given keys, which a frame is to answer. The frame is charged like any other, so keys
    /// without end do not raise the rate, only how far ahead of it the screen may be.
    pub(crate) fn typed(&mut self, now: Time) {
        if self.paid > now && self.answer.is_none_or(|answer| answer <= now) {
            self.answer = Some(now + ANSWER_WAIT);
        }
    }

    /// A frame is taken, or the screen has changed so that one may be. A change more than [`ANSWER_LAST`]
    /// after the first answering frame answers no key.
    pub(crate) fn expire_answer(&mut self, now: Time) {
        self.answer = self.answer.filter(|&answer| now < answer + ANSWER_LAST);
    }

    /// Whether what was sent is not paid for.
    pub(crate) fn is_ahead(&self, now: Time) -> bool {
        self.paid > now
    }

    /// From when on the next frame may be taken.
    pub(crate) fn free_at(&self) -> Time {
        match self.answer {
            Some(answer) => answer.max(self.paid - ANSWER_AHEAD_MAX),
            None => self.paid - AHEAD_MAX,
        }
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
    fn an_answer_goes_ahead_of_the_rate() {
        let mut pace = FrameBudget::new(Some(SCREEN_RATE));
        // Paid for at 400 ms.
        pace.sent(Time::ZERO, 50_000);
        for (typed, changed, free) in [(None, 20, 150), (Some(20), 69, 30), (Some(20), 80, 150)] {
            pace.answer = None;
            if let Some(typed) = typed {
                pace.typed(Time::from_millis(typed));
            }
            pace.expire_answer(Time::from_millis(changed));
            assert_eq!(pace.free_at(), Time::from_millis(free), "{typed:?} {changed}");
        }
    }
}
