//! How many keys must be echoed over a path, by what it loses and how late it delivers.

use std::time::Duration;

use crate::link::{Jitter, Loss, Profile, Rate};
use crate::rng::Chance;
use crate::scenario::Scenario;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// How many octets of keys are echoed in a minute at least, of the 400 that are typed: half of those that would be if each
/// that is lost on either way were never repeated, and none that is typed too late to be answered in that minute.
pub(super) fn echoed_floor(scenario: &Scenario) -> u64 {
    let both = [&scenario.up, &scenario.down];
    let arrives: u64 = both.iter().map(|path| 100 - lost_percent(path)).product();
    let answered: Duration = both.iter().map(|path| latest(path)).sum();
    let left = MINUTE.saturating_sub(2 * answered).max(MINUTE / 10);
    200 * arrives / 10_000 * left.as_secs() / MINUTE.as_secs()
}

/// How much later than it leaves a datagram arrives at most, where none is held up by chance.
fn latest(path: &Profile) -> Duration {
    let jitter = match path.jitter {
        Jitter::None => Duration::ZERO,
        Jitter::Uniform(most) => most,
        Jitter::Normal(deviation) => 2 * deviation,
    };
    let queued = |rate: &Rate| {
        let bits = rate.queue_bytes_max as u64 * 8;
        Duration::from_secs_f64(bits as f64 / rate.bits_per_second as f64)
    };
    let burst = path.bursts.as_ref().map_or(Duration::ZERO, |bursts| bursts.every);
    // A recorded bottleneck stands still for seconds.
    let recorded = path.trace.as_ref().map_or(Duration::ZERO, |_| 10 * SECOND);
    path.delay + jitter + burst + recorded + path.rate.as_ref().map_or(Duration::ZERO, queued)
}

/// The share of datagrams that a link loses, in percent. A policer takes half, from who does not heed it.
fn lost_percent(profile: &Profile) -> u64 {
    let share = |chance: Chance| u64::from(chance.as_per_million());
    let lost = match profile.loss {
        Loss::Independent(chance) => share(chance),
        Loss::Bursts { enter, leave, good, bad } => {
            let (enter, leave) = (share(enter), share(leave));
            (share(bad) * enter + share(good) * leave) / (enter + leave).max(1)
        }
    };
    let lost = lost / 10_000;
    if profile.policer.is_some() { 100 - (100 - lost) / 2 } else { lost }
}
