//! Every constant of the protocol's behaviour in time, with its source. A value, so that experiments
//! pass another one and never edit a constant.

use std::time::Duration;

use crate::wire::Role;

/// When to send, how long to wait, how much to keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Shortest time between two data sends. 20 ms (`mosh-protocol.md` §4.1; paper §2.3: 50 Hz).
    pub send_interval_min: Duration,
    /// Longest time between two data sends while there is something new. 250 ms (§4.1).
    pub send_interval_max: Duration,
    /// How long the client gathers keystrokes before sending them. 1 ms (§4.1).
    pub collect_client: Duration,
    /// How long the server gathers screen writes before a frame goes out. 8 ms (§4.1): the minimum of
    /// figure 3 of the paper.
    pub collect_server: Duration,
    /// Silence after which an empty instruction is sent, to say that we are still there. 3 s (§4.1).
    pub ack_interval: Duration,
    /// How long an acknowledgment waits for data to ride on. 100 ms (§4.1).
    pub ack_delay: Duration,
    /// Data is resent on its own only if a new state of the peer came within this; after that only the
    /// keepalives carry it. 10 s (§4.1 "active retry").
    pub active_retry: Duration,
    /// Unacknowledged states kept. 32 (§4.1). Beyond it one from the middle goes; the acknowledged
    /// base never does: diffs need it.
    pub sent_states_max: usize,
    /// States of the peer kept. 1024 (§4.3). Beyond it one state is taken each [`quench`](Timing::quench).
    pub received_states_max: usize,
    /// Octets that the received states after the oldest may hold together, by
    /// [`State::weight`](crate::State::weight). Beyond it the ones after the oldest go, which are the
    /// least likely bases of diffs; a state that alone is heavier is refused, so with the oldest at
    /// most twice this is held. 64 MiB, ours: 1024 screens of 24 x 80 fit, 130 of 100 x 300 and 19 of
    /// the largest, whatever rows they share. At the highest rate those are 2.6 s and 0.4 s without an
    /// acknowledgment that gets through, and beyond that the newest are still taken.
    pub received_bytes_max: usize,
    /// How often a state is taken while too many are held. 15 s (§4.3).
    pub quench: Duration,
    /// How often our shutdown is announced before we leave without an answer. 16 (§4.4).
    pub close_tries_max: u32,
    /// How long our shutdown waits for an answer. 10 s (§4.4).
    pub close_time_max: Duration,
    /// How often the peer's shutdown is acknowledged before we leave. 1 (§4.4): a peer that misses it
    /// waits in vain. More cost a send interval each, which nobody sees at a server.
    pub goodbyes: u32,
    /// SRTT before the first sample; RTTVAR is half of it. 1 s (§2.2).
    pub rtt_initial: Duration,
    /// Round trips this long and longer are no samples. 5 s (§2.2).
    pub rtt_sample_max: Duration,
    /// Lower bound of the retransmission timeout. 50 ms (§2.2).
    pub rto_min: Duration,
    /// Upper bound of the retransmission timeout. 1 s (§2.2).
    pub rto_max: Duration,
    /// A peer's stamp held this long is no longer answered. 1 s (§2.2).
    pub stamp_hold_max: Duration,
    /// How much older a stamp is made that came under congestion, so that its sender slows down.
    /// 500 ms (§2.4).
    pub congestion_penalty: Duration,
    /// The client changes its port when neither a port was chosen nor a state acknowledged that was
    /// sent within this. 10 s (§2.4).
    pub hop: Duration,
    /// The server forgets the client's address when it sends this long after it last heard it. 40 s (§2.4).
    pub address_lifetime: Duration,
    /// Most octets of chaff in an instruction; the length is uniform. 16 (§3.2).
    pub chaff_bytes_max: usize,
    /// Which state a diff starts from.
    pub reference: Reference,
}

impl Timing {
    /// What stock mosh 1.4.0 does.
    pub const MOSH: Timing = Timing {
        send_interval_min: Duration::from_millis(20),
        send_interval_max: Duration::from_millis(250),
        collect_client: Duration::from_millis(1),
        collect_server: Duration::from_millis(8),
        ack_interval: Duration::from_millis(3000),
        ack_delay: Duration::from_millis(100),
        active_retry: Duration::from_millis(10_000),
        sent_states_max: 32,
        received_states_max: 1024,
        received_bytes_max: 64 << 20,
        quench: Duration::from_millis(15_000),
        close_tries_max: 16,
        close_time_max: Duration::from_millis(10_000),
        goodbyes: 1,
        rtt_initial: Duration::from_millis(1000),
        rtt_sample_max: Duration::from_millis(5000),
        rto_min: Duration::from_millis(50),
        rto_max: Duration::from_millis(1000),
        stamp_hold_max: Duration::from_millis(1000),
        congestion_penalty: Duration::from_millis(500),
        hop: Duration::from_millis(10_000),
        address_lifetime: Duration::from_millis(40_000),
        chaff_bytes_max: 16,
        reference: Reference::Prospective(Prospect::MOSH),
    };

    /// How long this end gathers changes before it sends them.
    pub fn collect(&self, role: Role) -> Duration {
        match role {
            Role::Client => self.collect_client,
            Role::Server => self.collect_server,
        }
    }
}

/// Which state a diff starts from: the newest the peer is known to hold, or the newest it is assumed to
/// hold because it was sent too recently to be missed. The known one always works and costs more octets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reference {
    /// The assumed state (λ = 0).
    Assumed,
    /// The known state (λ = 1).
    Known,
    /// The known state with this probability, drawn anew for each instruction (0 < λ < 1).
    Mixed {
        /// λ.
        known: Ratio,
    },
    /// The assumed state unless the known one costs little more, as stock mosh chooses (§4.2).
    Prospective(Prospect),
}

/// When the known state is close enough in cost to be preferred.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Prospect {
    /// A diff from the known state is taken if it is shorter than this...
    pub diff_bytes_max: usize,
    /// ... and longer by less than this than the one from the assumed state.
    pub extra_bytes_max: usize,
}

impl Prospect {
    /// Under 1000 octets and less than 100 longer (`mosh-protocol.md` §4.2).
    pub const MOSH: Prospect = Prospect { diff_bytes_max: 1000, extra_bytes_max: 100 };

    /// Whether to pay for the diff from the known state.
    pub(crate) fn takes_known(self, known_bytes: usize, assumed_bytes: usize) -> bool {
        known_bytes <= assumed_bytes
            || (known_bytes < self.diff_bytes_max
                && known_bytes - assumed_bytes < self.extra_bytes_max)
    }
}

/// A probability, in 65536ths.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ratio(u32);

impl Ratio {
    const ONE: u32 = 1 << 16;

    /// `part` of `whole`, at most 1. A `whole` of zero makes 0.
    pub const fn new(part: u32, whole: u32) -> Ratio {
        if whole == 0 {
            return Ratio(0);
        }
        let scaled = part as u64 * Ratio::ONE as u64 / whole as u64;
        Ratio(if scaled > Ratio::ONE as u64 { Ratio::ONE } else { scaled as u32 })
    }

    /// Whether an event of this probability happens, given 16 uniform bits.
    pub(crate) fn happens(self, bits: u16) -> bool {
        u32::from(bits) < self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prospect_weighs_octets() {
        // Octets from the known state, from the assumed one, whether the known one is taken.
        for (known, assumed, takes) in [
            (10, 10, true),
            (2000, 2000, true),
            (1500, 2000, true),
            (109, 10, true),
            (110, 10, false),
            (999, 900, true),
            (1000, 999, false),
        ] {
            assert_eq!(Prospect::MOSH.takes_known(known, assumed), takes, "{known} {assumed}");
        }
    }

    #[test]
    fn ratios() {
        for (ratio, bits, happens) in [
            (Ratio::new(0, 1), 0, false),
            (Ratio::new(1, 1), u16::MAX, true),
            (Ratio::new(7, 1), u16::MAX, true),
            (Ratio::new(1, 0), 0, false),
            (Ratio::new(1, 2), 0x7fff, true),
            (Ratio::new(1, 2), 0x8000, false),
        ] {
            assert_eq!(ratio.happens(bits), happens, "{ratio:?} {bits}");
        }
    }
}
