//! How often a keeper runs ssh. That is not for the client to say: one that was taken over would have it run without end.

use std::time::Duration;

use rove_ssp::Time;

use super::message::Reply;

/// The least time from one ssh to the next. A client waits for as long by itself.
pub(super) const PAUSE: Duration = Duration::from_secs(9);

/// It doubles with each ssh that finds nothing, up to this.
const PAUSE_MAX: Duration = Duration::from_secs(120);

/// The same after a refusal: hosts count those, and shut out clients that have many.
const REFUSAL_PAUSE: Duration = Duration::from_secs(60);
const REFUSAL_PAUSE_MAX: Duration = Duration::from_secs(600);

/// When ssh may be run. A way that is found ends all waiting but that of [`PAUSE`].
#[derive(Debug)]
pub(super) struct Backoff {
    pause: Duration,
    /// When ssh was begun last, and how long it is not begun again.
    last: Option<(Time, Duration)>,
    failures: u32,
    refusals: u32,
}

impl Backoff {
    /// Of a keeper that has not run ssh.
    pub(super) fn new(pause: Duration) -> Backoff {
        Backoff { pause, last: None, failures: 0, refusals: 0 }
    }

    /// Whether ssh may be run now; then it counts as begun.
    pub(super) fn takes_run(&mut self, now: Time) -> bool {
        if self.last.is_some_and(|(begun, pause)| now < begun + pause) {
            return false;
        }
        self.last = Some((now, self.pause));
        true
    }

    /// What the ssh that was begun last has come to.
    pub(super) fn ended(&mut self, reply: &Reply) {
        let after = match reply {
            Reply::Way(_) => {
                (self.failures, self.refusals) = (0, 0);
                self.pause
            }
            Reply::NeedsUser => {
                self.refusals += 1;
                doubled(REFUSAL_PAUSE, self.refusals).min(REFUSAL_PAUSE_MAX)
            }
            Reply::Gone(_) | Reply::Nothing => {
                self.failures += 1;
                doubled(self.pause, self.failures).min(PAUSE_MAX)
            }
        };
        if let Some((_, pause)) = &mut self.last {
            *pause = after;
        }
    }
}

/// The first time once, the second time twice, the third time four times as long.
fn doubled(pause: Duration, times: u32) -> Duration {
    pause.saturating_mul(2_u32.saturating_pow(times - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_the_pause() {
        let refused = &Reply::NeedsUser;
        let (nothing, way) = (&Reply::Nothing, &Reply::Way(Vec::new()));
        let mut backoff = Backoff::new(PAUSE);
        let mut now = Time::from_millis(5_000);
        for (reply, seconds) in [
            (nothing, 9),
            (nothing, 18),
            (nothing, 36),
            (nothing, 72),
            (nothing, 120),
            (nothing, 120),
            (refused, 60),
            (refused, 120),
            (nothing, 120),
            (refused, 240),
            (refused, 480),
            (refused, 600),
            (refused, 600),
            (way, 9),
            (nothing, 9),
            (refused, 60),
            (way, 9),
        ] {
            assert!(backoff.takes_run(now));
            assert!(!backoff.takes_run(now), "one runs");
            backoff.ended(reply);
            now = now + Duration::from_secs(seconds);
            assert!(!backoff.takes_run(now - Duration::from_micros(1)), "{reply:?} {seconds}");
        }
    }
}
