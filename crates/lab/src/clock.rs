//! Real time and the date. Modules of the lab that need it read the clock here; all others take the time as an argument, so that
//! their runs can be repeated.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rove_ssp::Time;

use crate::process::wait_ready;

/// A clock that starts at [`Time::ZERO`] when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts now.
    #[allow(
        clippy::disallowed_methods,
        reason = "the only reading of the clock in the lab, with `now`"
    )]
    pub fn start() -> Clock {
        Clock { origin: Instant::now() }
    }

    /// The instant at which it was made.
    pub fn origin(&self) -> Instant {
        self.origin
    }

    /// The time since this clock was started.
    #[allow(clippy::disallowed_methods, reason = "the only reading of the clock in the lab")]
    pub fn now(&self) -> Time {
        Time::ZERO + Instant::now().saturating_duration_since(self.origin)
    }

    /// The time since it was made.
    pub fn elapsed(&self) -> Duration {
        self.now().since(Time::ZERO)
    }

    /// Sleeps until it shows this.
    pub fn wait_until(&self, at: Time) {
        loop {
            let left = at.since(self.now());
            if left.is_zero() {
                return;
            }
            // A signal ends the sleep early; the clock then says how much is left.
            let _ = wait_ready(&mut [], Some(left));
        }
    }
}

/// The date and the time of day in UTC, as ISO 8601 has them: when a result was recorded.
#[allow(clippy::disallowed_methods, reason = "a record names its date; no machine is told it")]
pub(crate) fn date() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date_of(since.as_secs())
}

/// The date of a count of seconds since 1970. Years are counted from March on, so that a leap day is the last of one,
/// and begin in the year 0, so that 400 of them are 146,097 days.
fn date_of(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let years = day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096;
    let year_of_era = years / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As date(1) has them: `date -u -d @951782399 +%FT%TZ`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_461_861, "2026-11-23T19:24:21Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(date_of(seconds), date);
        }
    }
}
