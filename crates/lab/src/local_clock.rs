//! The clock of one machine in virtual time: it starts anywhere, and it runs a little fast or slow.

use std::time::Duration;

use rove_ssp::Time;

/// What a machine's clock shows for each time of the world.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LocalClock {
    /// What it shows at the world's time zero.
    pub epoch: Time,
    /// How much faster than the world it runs, in millionths; slower if negative.
    pub drift_ppm: i32,
    /// How late the machine's alarms go off at most.
    pub lateness: Duration,
}

impl LocalClock {
    /// The world's own time, and alarms that are never late.
    pub const EXACT: LocalClock =
        LocalClock { epoch: Time::ZERO, drift_ppm: 0, lateness: Duration::ZERO };

    /// What it shows when the world's time is this.
    pub fn local(&self, world: Time) -> Time {
        let passed = i128::from(world.as_micros());
        let shown = passed + (passed * i128::from(self.drift_ppm)).div_euclid(MILLION);
        self.epoch + Duration::from_micros(shown as u64)
    }

    /// The first time of the world at which it shows at least this.
    pub fn world(&self, local: Time) -> Time {
        let shown = local.since(self.epoch).as_micros() as i128;
        let rate = MILLION + i128::from(self.drift_ppm);
        let passed = (shown * MILLION / rate - 2).max(0);
        let mut world = Time::from_micros(passed as u64);
        while self.local(world) < local {
            world = world + Duration::from_micros(1);
        }
        world
    }
}

const MILLION: i128 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_never_early_and_never_a_microsecond_late() {
        for drift_ppm in [-10_000, -50, -1, 0, 1, 37, 1_000, 10_000] {
            let epoch = Time::from_millis(315_360_000_000);
            let clock = LocalClock { epoch, drift_ppm, lateness: Duration::ZERO };
            assert_eq!(clock.local(Time::ZERO), epoch);
            for micros in [0, 1, 2, 999, 1_000_003, 86_400_000_000] {
                let local = epoch + Duration::from_micros(micros);
                let world = clock.world(local);
                assert!(clock.local(world) >= local, "{drift_ppm} {micros}");
                let before = Time::from_micros(world.as_micros().saturating_sub(1));
                assert!(world == Time::ZERO || clock.local(before) < local, "{drift_ppm} {micros}");
            }
        }
    }
}
