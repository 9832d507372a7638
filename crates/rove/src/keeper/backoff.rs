//! How often a keeper runs ssh. That is not for the client to say: one that was taken over would have it run without end.

use std::time::Duration;

use rove_ssp::Time;

use super::message::Reply;

/// The least time from one ssh to the next. A client waits for as long by itself.
pub(super) const PAUSE: Duration = Duration::from_secs(9);

/// It doubles with each ssh that gets to the host and finds nothing, up to this.
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

    /// Begins ssh, if it may be run now.
    ///
    /// # Errors
    /// How much later it may be run.
    pub(super) fn begin(&mut self, now: Time) -> Result<(), Duration> {
        if let Some((begun, pause)) = self.last
            && now < begun + pause
        {
            return Err((begun + pause).since(now));
        }
        self.last = Some((now, self.pause));
        Ok(())
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
            // Nobody has counted it.
            Reply::Unreached | Reply::Later(_) => self.pause,
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
        let (refused, unreached) = (&Reply::NeedsUser, &Reply::Unreached);
        let (nothing, way) = (&Reply::Nothing, &Reply::Way(Vec::new()));
        let mut backoff = Backoff::new(PAUSE);
        let mut now = Time::from_millis(5_000);
        for (reply, seconds) in [
            (nothing, 9),
            (nothing, 18),
            (nothing, 36),
            (nothing, 72),
            (unreached, 9),
            (unreached, 9),
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
            let pause = Duration::from_secs(seconds);
            assert_eq!(backoff.begin(now), Ok(()));
            assert_eq!(backoff.begin(now), Err(PAUSE), "one runs");
            backoff.ended(reply);
            assert_eq!(backoff.begin(now), Err(pause), "{reply:?}");
            now = now + pause;
            let early = Duration::from_micros(1);
            assert_eq!(backoff.begin(now - early), Err(early), "{reply:?}");
        }
    }
}
