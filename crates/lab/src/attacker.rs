//! An attacker on the path who has no key. It copies datagrams, delays or overtakes the originals with the copies,
//! changes their source address, and reflects datagrams to their sender. It owns no clock: the
//! [`world`](crate::world) passes the time and delivers its datagrams.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::rng::{Chance, Rng};

/// The address from which an attacker sends half of its replays. No receiver may ever take it for a peer's address.
pub(crate) const ATTACKER: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 66)), 666);

/// The source address that the attacker puts into copies which overtake the original. A receiver cannot tell them
/// from the original, but must not be made to flood this address.
pub(crate) const VICTIM: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(203, 0, 113, 99)), 999);

/// The longest time an attacker keeps a datagram before sending it again.
pub(crate) const REPLAY_WITHIN: Duration = Duration::from_secs(10);

/// How long datagrams to [`VICTIM`] take to come back.
const REFLECT_WITHIN: Duration = Duration::from_millis(200);

/// An attacker's actions, and their effect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attacker {
    share: Chance,
    tally: Tally,
}

/// Octets to and from [`VICTIM`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Octets that the attacker sent with this source address.
    pub spent: u64,
    /// Octets that it made others send there.
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
    /// An attacker that acts on this share of the datagrams.
    pub(crate) fn new(share: Chance) -> Attacker {
        Attacker { share, tally: Tally::default() }
    }

    /// The same one attends to this share from now on.
    pub(crate) fn attend_to(&mut self, share: Chance) {
        self.share = share;
    }

    /// A datagram leaves for its destination. At random, a copy with the source [`VICTIM`] overtakes it, so that
    /// the receiver takes that for its peer's address.
    pub(crate) fn overtake(&mut self, rng: &mut Rng, octets: usize) -> Option<Forged> {
        if !rng.happens(self.share) {
            return None;
        }
        self.tally.spent += octets as u64;
        Some(Forged { after: Duration::ZERO, from: VICTIM })
    }

    /// A datagram has arrived from this address. At random, it is replayed.
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

    /// The counts so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }
}
