//! Counters. Machines do not log; they count, and a driver that is asked to show it reads these.

use core::time::Duration;

use crate::buggify::Point;
use crate::reject::Reject;

/// What an endpoint has sent, received and dropped.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Datagrams handed to the driver.
    pub sent: Traffic,
    /// Authentic datagrams.
    pub received: Traffic,
    /// Authentic datagrams that came after one with a later number: reordered or replayed.
    pub late: u64,
    /// Instructions sent that made a new state with a diff.
    pub states_sent: u64,
    /// Instructions sent again for a state already sent.
    pub resends: u64,
    /// Instructions sent without a diff: acknowledgments and keepalives.
    pub acks_sent: u64,
    /// Times a diff was too long to travel, and waited for an acknowledgment instead.
    pub diffs_too_long: u64,
    /// Instructions sent with a diff from a state that was only assumed received.
    pub from_assumed: u64,
    /// New states received, intermediate ones included.
    pub states_received: u64,
    /// Authentic instructions that changed nothing: states held already, diffs from unknown states.
    pub stale: u64,
    /// Of those, the ones whose base is not held.
    pub baseless: u64,
    /// Instructions dropped because too many states were held, or the new one was too heavy.
    pub quenched: u64,
    /// Times the peer's address changed.
    pub roams: u64,
    /// Times the local port was changed.
    pub hops: u64,
    /// Keys that this end has sealed with after the first.
    pub key_phases: u64,
    /// Times the peer's address was another one and proved itself.
    pub addresses_proven: u64,
    /// Times a stream came into use, and UDP after a stream.
    pub to_stream: u64,
    /// The latter.
    pub to_udp: u64,
    /// Datagrams that a newer one had overtaken by another way.
    pub overtaken: u64,
    /// Datagrams that tried UDP while a stream was in use.
    pub udp_tries: u64,
    /// Datagrams sent with parity in place of fragments.
    pub parity_sent: u64,
    /// Instructions put together with parity in place of lost fragments.
    pub repaired: u64,
    /// Times datagrams became shorter since the path takes no longer ones.
    pub mtu_shrunk: u64,
    /// Of those, the times when long datagrams vanished while short ones arrived.
    pub black_holes: u64,
    /// Times what was learned of the peer's losses made the congestion window smaller.
    pub window_shrunk: u64,
    /// States sent that were forgotten before any of them was acknowledged, since too many were kept.
    pub states_forgotten: u64,
    /// Times a change waited with others before they were sent.
    pub collected: u64,
    /// Both ends have begun to shut down before either knew of the other.
    pub shutdowns_raced: u64,
    /// Rare branches taken by choice, by the [`Point`]'s place in [`Point::ALL`].
    pub buggified: [u64; Point::ALL.len()],
    /// Datagrams dropped, by reason.
    pub rejected: Rejected,
}

/// What the path does to datagrams at present, as far as is known: for people to read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathStats {
    /// To ours. `None`: the peer reports nothing.
    pub sent: Option<DirectionStats>,
    /// To the peer's.
    pub received: DirectionStats,
    /// Datagrams of ours that arrived, since the session began, as far as that is known.
    pub delivered: u64,
    /// Those that were lost, but for those that tried what length the path takes.
    pub lost: u64,
    /// Octets of the longest datagram that goes to the peer now. `None` without a peer.
    pub datagram_bytes_max: Option<usize>,
    /// Whether it is being found out if the path takes longer ones.
    pub tries_longer: bool,
}

/// What one direction of the path does to datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DirectionStats {
    /// The share that is lost, of about the last hundred, in parts of one.
    pub loss: f64,
    /// How long they wait in queues.
    pub queue: Duration,
}

/// What an endpoint holds now, each with its limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// States sent and not known acknowledged, and the one that is: at most
    /// [`Timing::sent_states_max`](crate::Timing::sent_states_max).
    pub sent_states: usize,
    /// States of the peer: at most
    /// [`Timing::received_states_max`](crate::Timing::received_states_max) and one.
    pub received_states: usize,
    /// Octets of those states, what they share counted for each: at most twice
    /// [`Timing::received_bytes_max`](crate::Timing::received_bytes_max).
    pub received_bytes: usize,
    /// Octets of instructions that miss fragments: at most
    /// [`ASSEMBLY_BYTES_MAX`](crate::ASSEMBLY_BYTES_MAX) for each of the wire's assemblies.
    pub assembly_bytes: usize,
    /// Events not polled: at most one of each of the five kinds.
    pub events: usize,
}

/// Datagrams and their octets, without the headers of UDP and IP.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// Datagrams.
    pub datagrams: u64,
    /// Octets in them.
    pub bytes: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, datagram_bytes: usize) {
        // Whole datagrams as the driver sees them: headers of UDP and IP differ by system.
        self.datagrams += 1;
        self.bytes += datagram_bytes as u64;
    }
}

/// Dropped datagrams, by the [`Reject`] that names the reason.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[allow(missing_docs)] // The others are the variants of `Reject` of the same names.
pub struct Rejected {
    /// All of them.
    pub total: u64,
    pub truncated: u64,
    pub oversized: u64,
    pub reflected: u64,
    pub forged: u64,
    pub short_fragment: u64,
    pub unequal_fragment: u64,
    pub stray_fragment: u64,
    pub fragment_overflow: u64,
    pub inflate: u64,
    pub inflate_overflow: u64,
    pub protobuf: u64,
    pub version: u64,
    pub throwaway: u64,
    pub foreign: u64,
    pub replayed: u64,
    pub malformed: u64,
    pub ended: u64,
}

impl Rejected {
    pub(crate) fn count(&mut self, reject: &Reject) {
        self.total += 1;
        *match reject {
            Reject::Truncated { .. } => &mut self.truncated,
            Reject::Oversized { .. } => &mut self.oversized,
            Reject::Reflected => &mut self.reflected,
            Reject::Forged => &mut self.forged,
            Reject::ShortFragment { .. } => &mut self.short_fragment,
            Reject::UnequalFragment { .. } => &mut self.unequal_fragment,
            Reject::StrayFragment { .. } => &mut self.stray_fragment,
            Reject::FragmentOverflow { .. } => &mut self.fragment_overflow,
            Reject::Inflate => &mut self.inflate,
            Reject::InflateOverflow => &mut self.inflate_overflow,
            Reject::Protobuf => &mut self.protobuf,
            Reject::Version { .. } => &mut self.version,
            Reject::Throwaway { .. } => &mut self.throwaway,
            Reject::Foreign => &mut self.foreign,
            Reject::Replayed { .. } => &mut self.replayed,
            Reject::Malformed => &mut self.malformed,
            Reject::Ended => &mut self.ended,
        } += 1;
    }
}
