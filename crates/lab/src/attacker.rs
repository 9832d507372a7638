//! An enemy on the path, who has no key: he copies datagrams, sends the copies later or overtakes the originals
//! with them, gives them another source address, and sends back what comes to him. He owns no clock: the
//! [`world`](crate::world) tells him the time and files what he sends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::rng::{Chance, Rng};

/// Where an attacker sends half of his replays from. Nobody may ever take that for a peer's address.
pub(crate) const ATTACKER: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 66)), 666);

/// What he puts into datagrams as their source when he is faster than the original. Who takes them cannot
/// know better, but must not be of use against whoever is there.
pub(crate) const VICTIM: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 99)), 999);

/// The longest time an attacker keeps a datagram before sending it again.
pub(crate) const REPLAY_WITHIN: Duration = Duration::from_secs(10);

/// How long what is sent to [`VICTIM`] takes to come back.
const REFLECT_WITHIN: Duration = Duration::from_millis(200);

/// What an attacker does, and what came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attacker {
    share: Chance,
    tally: Tally,
}

/// Octets to and from [`VICTIM`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// What the attacker sent as if from there.
    pub spent: u64,
    /// What he made others send there.
    pub got: u64,
}

/// A datagram that he sends, and how much later than now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Forged {
    /// How much later.
    pub after: Duration,
    /// The source address that it has.
    pub from: SocketAddr,
}

impl Attacker {
    /// One who attends to this share of the datagrams.
    pub(crate) fn new(share: Chance) -> Attacker {
        Attacker { share, tally: Tally::default() }
    }

    /// The same one attends to this share from now on.
    pub(crate) fn attend_to(&mut self, share: Chance) {
        self.share = share;
    }

    /// A datagram leaves for its destination. With luck a copy from [`VICTIM`] overtakes it, so that the
    /// receiver takes that for where its peer is.
    pub(crate) fn overtake(&mut self, rng: &mut Rng, octets: usize) -> Option<Forged> {
        if !rng.happens(self.share) {
            return None;
        }
        self.tally.spent += octets as u64;
        Some(Forged { after: Duration::ZERO, from: VICTIM })
    }

    /// A datagram has arrived from there. With luck it comes again.
    pub(crate) fn replay(&mut self, rng: &mut Rng, from: SocketAddr) -> Option<Forged> {
        if [ATTACKER, VICTIM].contains(&from) || !rng.happens(self.share) {
            return None;
        }
        let after = rng.span_below(REPLAY_WITHIN);
        let from = if rng.happens(Chance::percent(50)) { ATTACKER } else { from };
        Some(Forged { after, from })
    }

    /// A datagram has come to [`VICTIM`]. Half of them go back as they are.
    pub(crate) fn reflect(&mut self, rng: &mut Rng, octets: usize) -> Option<Forged> {
        self.tally.got += octets as u64;
        let after = rng.span_below(REFLECT_WITHIN);
        rng.happens(Chance::percent(50)).then_some(Forged { after, from: VICTIM })
    }

    /// What came of it so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }
}
