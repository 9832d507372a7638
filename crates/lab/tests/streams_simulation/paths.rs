//! The hostile path of a seed: what it does to datagrams, when nothing passes, when the client moves.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rove_lab::testing::link::{Jitter, Loss, Order, Profile};
use rove_lab::testing::rng::{Chance, Rng};
use rove_ssp::Time;
use tokio::sync::watch;

use crate::network::{Net, SECOND};

/// The path is hostile for this long, and fair from then on.
pub const HOSTILE: Duration = Duration::from_secs(60);

const MS: Duration = Duration::from_millis(1);

/// What happens to a path.
#[derive(Clone, Debug)]
pub struct Course {
    /// Up and down, until it heals.
    pub profile: [Profile; 2],
    /// When the client is in another network, and whether its system notices.
    pub moves: Vec<(Time, Notice)>,
}

/// Whether the client's system notices that its address is another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Notice {
    /// It has a new address.
    Told,
    /// A translator on the way has forgotten it, and gives it another.
    Untold,
}

impl Course {
    /// The path of this seed.
    pub fn hostile(rng: &mut Rng) -> Course {
        let mut profile = [hostile(rng), hostile(rng)];
        let both = some(rng, 50, 3, outage);
        for profile in &mut profile {
            // An outage in one direction alone is rarer.
            let alone = some(rng, 15, 1, outage);
            profile.outages = both.iter().cloned().chain(alone).collect();
        }
        let mut moves =
            some(rng, 50, 4, |rng| (moment(rng), rng.pick(&[Notice::Told, Notice::Untold])));
        moves.sort_by_key(|(at, _)| *at);
        Course { profile, moves }
    }

    /// A path that takes its time and does nothing else.
    pub fn fair() -> [Profile; 2] {
        [Profile::delay(20 * MS), Profile::delay(20 * MS)]
            .map(|fair| fair.rate(20_000_000, 100_000))
    }

    /// Moves the client, and heals the path at the end.
    pub async fn run(self, net: Arc<Net>, networks: watch::Sender<u64>) {
        for (at, notice) in self.moves {
            net.until(at).await;
            net.roam();
            if notice == Notice::Told {
                networks.send_modify(|count| *count += 1);
            }
        }
        net.until(Time::ZERO + HOSTILE).await;
        net.set_profile(Course::fair());
        // Those who listen for changes do so to the end.
        std::future::pending::<()>().await;
    }
}

fn outage(rng: &mut Rng) -> Range<Time> {
    let from = moment(rng);
    let longest = rng.pick(&[SECOND, 10 * SECOND, 40 * SECOND]);
    from..(from + rng.span_within(100 * MS, longest)).min(Time::ZERO + HOSTILE)
}

fn moment(rng: &mut Rng) -> Time {
    Time::ZERO + rng.span_below(HOSTILE)
}

/// One direction.
fn hostile(rng: &mut Rng) -> Profile {
    let delay = rng.pick(&[MS, 20 * MS, 100 * MS, 300 * MS]);
    let jitter = match rng.below(3) {
        0 => Jitter::None,
        1 => Jitter::Uniform(delay / 2),
        _ => Jitter::Normal(delay / 4),
    };
    let loss = match rng.below(4) {
        0 => Loss::Independent(Chance::NEVER),
        1 => Loss::Independent(percent(rng, 5)),
        2 => Loss::Independent(percent(rng, 30)),
        _ => Loss::Bursts {
            enter: percent(rng, 2),
            leave: Chance::percent(rng.within(10, 50) as u32),
            good: percent(rng, 2),
            bad: Chance::percent(rng.within(50, 100) as u32),
        },
    };
    let bits = rng.pick(&[256_000, 1_000_000, 10_000_000, 50_000_000]);
    let queue = rng.pick(&[8_000, 64_000, 256_000]);
    let mut seldom = |most| if rng.below(2) == 0 { Chance::NEVER } else { percent(rng, most) };
    let profile = Profile {
        delay,
        jitter,
        loss,
        duplicate: seldom(10),
        reorder: seldom(10),
        corrupt: seldom(3),
        mark: seldom(5),
        straggle: MS * rng.pick(&[1, 50, 1_000]),
        order: rng.pick(&[Order::Kept, Order::Free]),
        mtu: rng.pick(&[1_200, 1_300, 1_472, 1_472]),
        ..Profile::default()
    };
    profile.rate(bits, queue)
}

fn percent(rng: &mut Rng, most: u64) -> Chance {
    Chance::per_million(rng.below(most * 10_000) as u32)
}

/// With this chance in percent, between one and `most` of a thing.
fn some<T>(rng: &mut Rng, chance: u32, most: u64, mut make: impl FnMut(&mut Rng) -> T) -> Vec<T> {
    let count = if rng.happens(Chance::percent(chance)) { rng.within(1, most) } else { 0 };
    (0..count).map(|_| make(rng)).collect()
}
