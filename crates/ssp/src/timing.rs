//! Every constant of the protocol's behaviour in time, with its source. A value, so that experiments
//! pass another one and never edit a constant.

use core::time::Duration;

use crate::slots::SlotTiming;
use crate::wire::Role;

/// When to send, how long to wait, how much to keep.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Shortest time between two data sends. 20 ms (`mosh-protocol.md` §4.1; paper §2.3: 50 Hz).
    pub send_interval_min: Duration,
    /// Longest time between two data sends while there is something new. 250 ms (§4.1).
    pub send_interval_max: Duration,
    /// How long the client gathers keystrokes before sending them. 1 ms (§4.1); ours none (loss-policy §5, 2):
    /// the keys of one read go together, and those after them wait for the frame interval in any case.
    pub collect_client: Duration,
    /// How long the server gathers screen writes before a frame goes out. 8 ms (§4.1): the minimum of
    /// figure 3 of the paper.
    pub collect_server: Duration,
    /// Silence after which an empty instruction is sent, to say that we are still there. 3 s (§4.1).
    pub ack_interval: Duration,
    /// So long after anything new was said or heard a session is at rest, with an adaptive policy and a peer that
    /// reports what comes: the server then says that it is there only when the client does. 60 s (loss-policy
    /// §5, 5).
    pub rest_after: Duration,
    /// How often the client does then, while it is answered: below what NATs remember. 10 s (loss-policy §5, 5).
    pub rest_interval: Duration,
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
    /// the largest, even if they share no rows. At the highest rate those are 2.6 s and 0.4 s without an
    /// acknowledgment that gets through, and beyond that the newest are still taken.
    pub received_bytes_max: usize,
    /// How often a state is taken while too many are held. 15 s (§4.3).
    pub quench: Duration,
    /// How often our shutdown is announced before we leave without an answer. 16 (§4.4).
    pub close_tries_max: u32,
    /// How many announcements without an answer are a send interval apart. Each later one waits twice as long as the
    /// one before it, up to `rest_interval`. 16, ours: stock sends no more than that.
    pub close_tries_fast: u32,
    /// How long our shutdown waits for an answer. 10 s (§4.4).
    pub close_time_max: Duration,
    /// How often the peer's shutdown is acknowledged before we leave. 1 (§4.4): a peer that misses it
    /// waits in vain. More cost a send interval each, which nobody sees at a server.
    pub final_acks: u32,
    /// How often a client that has left so acknowledges it again, as long as its owner drives it: the first time after
    /// `copy_spacing`, and each time after twice as long. 3, ours, which takes 35 ms: with 10 % lost a server waits in vain
    /// once in 10,000 times. Stock never does.
    pub late_acks: u32,
    /// The same where [`late_loss_min`](Timing::late_loss_min) or more is lost. 5, ours, which takes 155 ms: once in 1,000
    /// times with 31 % lost. Who waits for `rove` to exit waits for them.
    pub late_acks_lossy: u32,
    /// From which share of lost datagrams on. 10 %, ours.
    pub late_loss_min: f64,
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
    pub rebind: Duration,
    /// The server forgets the client's address when it sends this long after it last heard it. 40 s (§2.4).
    pub address_lifetime: Duration,
    /// Most octets of chaff in an instruction; the length is uniform. 16 (§3.2).
    pub chaff_bytes_max: usize,
    /// Which state a diff starts from.
    pub reference: Reference,
    /// When data is sent, repeated and acknowledged.
    pub send_policy: SendPolicy,
    /// What changes while a stream is in use.
    pub stream: StreamTiming,
    /// How long a program that has answered a key with output has it before the echo ack goes out on its
    /// own. 50 ms (`mosh-protocol.md` §4.5): as for one that has not. Longer, it rides on the next frame.
    pub echo_ack_lazy: Duration,
    /// A client sends in slots while somebody types, if the server answers those.
    pub slots: Option<SlotTiming>,
    /// A server answers slots, and says so.
    pub answers_slots: bool,
    /// In a run each datagram leaves up to so much later than its slot or its hold has it. 1 ms, ours: what a machine did
    /// just before moves it by some 10 us, by which echoed keys are told from others where nothing else moves (AUC 0.63 to
    /// 0.68 in `rove-lab privacy` without it, over 40 ms).
    pub slot_jitter: Duration,
}

/// When data is sent, repeated and acknowledged.
#[derive(Clone, Debug, PartialEq)]
pub enum SendPolicy {
    /// As stock mosh does: by half round trips (`mosh-protocol.md` §4.2).
    Mosh,
    /// As soon as it helps: by what is known of the path.
    Adaptive(AdaptiveTiming),
}

/// The constants of [`SendPolicy::Adaptive`] (loss-policy §5).
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptiveTiming {
    /// Shortest time between two new states. 20 ms (§5, 2).
    pub frame_min: Duration,
    /// How often a state is sent in case one is lost, by the share of datagrams lost: so often below it.
    /// (§5, 3: 1 below 0.6 %, 2 below 10 %, 3 below 25 %, 4 below 40 %, 6 below 55 %.)
    pub copies: [(f64, u32); 5],
    /// How often above all of those, and at most. 8 (§5, 3).
    pub copies_max: u32,
    /// Time between the first two; each gap is twice the one before. 5 ms (§5, 3).
    pub copy_spacing: Duration,
    /// What takes more datagrams than this is said once. 2, ours: longer frames arrive whole too seldom for
    /// repeating them to pay.
    pub copy_datagrams_max: u32,
    /// By how much fewer copies there are in a round that begins because no answer came: the answer goes out once,
    /// and is lost far more often than all copies of what it answers. 2, ours.
    pub retry_divisor: u32,
    /// How long an acknowledgment waits for data to ride on: half a round trip, but no less than this. 100 ms,
    /// as stock's, where §5, 5 has 60: one key in seven takes it along that would have come too late, and a
    /// timeout is no longer than stock's.
    pub ack_delay: Duration,
    /// And no more than this. 250 ms, ours: over 300 ms the next key takes it along more often than not, and
    /// a typed letter costs no more datagrams than stock's.
    pub ack_delay_max: Duration,
    /// The same while more than 2 % of datagrams are lost. 20 ms (§5, 5).
    pub ack_delay_lossy: Duration,
    /// What takes several datagrams gets parity where more than this share of them is lost, and the wire has
    /// it. 1 % (§5, 8); 1: never.
    pub parity_loss_min: f64,
    /// How long the peer's acknowledgments wait, unless it says so itself. `None`: as long as ours.
    pub peer_ack_delay: Option<Duration>,
    /// What a client acknowledges with, if it has nothing else to say (§5, 5).
    pub client_acks: Acks,
}

/// The constants of a session that goes over a stream (`docs/wire.md` §11): the stream repeats what is lost, so that
/// nothing is said in case it is lost, and what waits in it is old by the time it arrives, so that little does.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamTiming {
    /// Bounds of the retransmission timeout. 1 s and 10 s: TCP waits for 200 ms at least before it sends again, and
    /// for twice as long each time.
    pub rto_min: Duration,
    /// The upper one.
    pub rto_max: Duration,
    /// How long an acknowledgment waits for data to ride on. 20 ms: the window below opens by it.
    pub ack_delay: Duration,
    /// Octets that may be on their way. 16 KiB: 130 ms at 1 Mbit/s. More is used of a longer path only where
    /// screens change all the time.
    pub window_bytes: usize,
    /// Octets of the longest datagram: no path has a word in it.
    pub datagram_bytes: usize,
    /// How long an answer by UDP may be late before the stream is used. 1 s, or three timeouts.
    pub udp_silence_min: Duration,
    /// How long the server is taken to be on its way to UDP, after we have gone there.
    pub udp_follow: Duration,
    /// How often UDP is tried beside the stream in the first [`try_first`](StreamTiming::try_first). 1 s.
    pub try_each: Duration,
    /// How long that is. 10 s: then each wait is twice the one before.
    pub try_first: Duration,
    /// The longest wait. 60 s.
    pub try_each_max: Duration,
    /// The longest wait while the session is used. 4 s: UDP that is back is taken within 5 s.
    pub try_each_used: Duration,
}

impl StreamTiming {
    /// What rove does.
    pub const ROVE: StreamTiming = StreamTiming {
        rto_min: Duration::from_secs(1),
        rto_max: Duration::from_secs(10),
        ack_delay: Duration::from_millis(20),
        window_bytes: 16 << 10,
        datagram_bytes: 1400,
        udp_silence_min: Duration::from_secs(1),
        udp_follow: Duration::from_secs(2),
        try_each: Duration::from_secs(1),
        try_first: Duration::from_secs(10),
        try_each_max: Duration::from_secs(60),
        try_each_used: Duration::from_secs(4),
    };
}

/// What an acknowledgment is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Acks {
    /// An instruction that makes no state. The peer's empty states are not acknowledged at all.
    Stateless,
    /// A new state without a diff, as stock's are (`mosh-protocol.md` §4.2), also of the peer's empty
    /// states. A stock server whose newest state has an empty diff, and yet differs from the one that it
    /// knows to be here, polls without a pause until it is acknowledged (§11, 11).
    EmptyState,
}

impl AdaptiveTiming {
    /// What rove does.
    pub const ROVE: AdaptiveTiming = AdaptiveTiming {
        frame_min: Duration::from_millis(20),
        copies: [(0.006, 1), (0.1, 2), (0.25, 3), (0.4, 4), (0.55, 6)],
        copies_max: 8,
        copy_spacing: Duration::from_millis(5),
        copy_datagrams_max: 2,
        retry_divisor: 2,
        ack_delay: Duration::from_millis(100),
        ack_delay_max: Duration::from_millis(250),
        ack_delay_lossy: Duration::from_millis(20),
        parity_loss_min: 0.01,
        peer_ack_delay: None,
        client_acks: Acks::Stateless,
    };

    /// What rove does where each octet costs.
    pub const METERED: AdaptiveTiming = AdaptiveTiming {
        copies: [(0.006, 1), (0.1, 1), (0.2, 1), (0.46, 2), (0.62, 3)],
        copies_max: 4,
        parity_loss_min: 1.0,
        ..AdaptiveTiming::ROVE
    };
}

impl Timing {
    /// What stock mosh 1.4.0 does.
    pub const MOSH: Timing = Timing {
        send_interval_min: Duration::from_millis(20),
        send_interval_max: Duration::from_millis(250),
        collect_client: Duration::from_millis(1),
        collect_server: Duration::from_millis(8),
        ack_interval: Duration::from_millis(3000),
        rest_after: Duration::from_secs(60),
        rest_interval: Duration::from_secs(10),
        ack_delay: Duration::from_millis(100),
        active_retry: Duration::from_millis(10_000),
        sent_states_max: 32,
        received_states_max: 1024,
        received_bytes_max: 64 << 20,
        quench: Duration::from_millis(15_000),
        close_tries_max: 16,
        close_tries_fast: 16,
        close_time_max: Duration::from_millis(10_000),
        final_acks: 1,
        late_acks: 0,
        late_acks_lossy: 0,
        late_loss_min: 0.1,
        rtt_initial: Duration::from_millis(1000),
        rtt_sample_max: Duration::from_millis(5000),
        rto_min: Duration::from_millis(50),
        rto_max: Duration::from_millis(1000),
        stamp_hold_max: Duration::from_millis(1000),
        congestion_penalty: Duration::from_millis(500),
        rebind: Duration::from_millis(10_000),
        address_lifetime: Duration::from_millis(40_000),
        chaff_bytes_max: 16,
        reference: Reference::Prospective(Prospect::MOSH),
        send_policy: SendPolicy::Mosh,
        stream: StreamTiming::ROVE,
        echo_ack_lazy: Duration::from_millis(50),
        slots: None,
        answers_slots: false,
        slot_jitter: Duration::from_millis(1),
    };

    /// What rove does when its peer is a rove.
    pub const ROVE: Timing = Timing {
        collect_client: Duration::ZERO,
        collect_server: Duration::from_millis(1),
        sent_states_max: 256,
        reference: Reference::Adaptive,
        send_policy: SendPolicy::Adaptive(AdaptiveTiming::ROVE),
        echo_ack_lazy: Duration::from_millis(300),
        late_acks: 3,
        late_acks_lossy: 5,
        ..Timing::MOSH
    };

    /// What rove does when its peer is stock mosh: all of [`ROVE`](Timing::ROVE) that stock is served by.
    /// Its predictions wait for echo acks, so those come as it expects them.
    pub const ROVE_TO_STOCK: Timing = Timing {
        sent_states_max: 32,
        send_policy: SendPolicy::Adaptive(AdaptiveTiming {
            ack_delay_max: Duration::from_millis(100),
            peer_ack_delay: Some(Duration::from_millis(100)),
            client_acks: Acks::EmptyState,
            ..AdaptiveTiming::ROVE
        }),
        echo_ack_lazy: Duration::from_millis(50),
        late_acks: 0,
        late_acks_lossy: 0,
        ..Timing::ROVE
    };

    /// As [`ROVE`](Timing::ROVE), where each octet costs: nothing is said in case it is lost before a fifth is,
    /// and no more of it than stock's octets pay for. `results/loss.md` has both beside each other.
    pub const METERED: Timing = Timing {
        send_policy: SendPolicy::Adaptive(AdaptiveTiming::METERED),
        late_acks: 0,
        late_loss_min: 0.2,
        ..Timing::ROVE
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
    /// Whichever delivers more for its octets at the loss that is measured (loss-policy §2).
    Adaptive,
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

/// Octets of headers that each datagram costs (loss-policy §2).
const DATAGRAM_COST: f64 = 66.0;
/// Octets of a diff that surely fit one datagram.
const DATAGRAM_DIFF: usize = 1100;
/// What the known state may always cost more, and what more when loss is [`PREMIUM_LOSS`] and above.
const PREMIUM: f64 = 100.0;
const PREMIUM_LOSSY: f64 = 1200.0;
const PREMIUM_LOSS: f64 = 0.02;

/// The adaptive rule: whether to start from the known state, given what the diffs from it and from the
/// assumed one are long, how many states lie between, and the share of datagrams lost (loss-policy §2).
pub(crate) fn known_pays(
    known_bytes: usize,
    assumed_bytes: usize,
    depth: usize,
    loss: f64,
) -> bool {
    let (known, assumed) = (known_bytes as f64, assumed_bytes as f64);
    let lossy = (loss / PREMIUM_LOSS).min(1.0);
    if known_bytes <= DATAGRAM_DIFF && known - assumed <= PREMIUM + PREMIUM_LOSSY * lossy * lossy {
        return true;
    }
    let cost = |bytes: usize, octets: f64| {
        octets + DATAGRAM_COST * bytes.div_ceil(DATAGRAM_DIFF).max(1) as f64
    };
    // The chance that all states the assumed one follows from have arrived.
    let mut chain = 1.0;
    for _ in 0..depth {
        chain *= 1.0 - loss.clamp(0.0, 0.99);
    }
    cost(known_bytes, known) * chain <= cost(assumed_bytes, assumed)
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
    fn the_adaptive_rule_weighs_loss() {
        // Octets from the known state, from the assumed one, states between, loss; whether it pays.
        for (known, assumed, depth, loss, pays) in [
            (50, 10, 1, 0.0, true),
            (111, 10, 1, 0.0, false),
            (400, 100, 1, 0.0, false),
            (400, 100, 1, 0.02, true),
            (1100, 1, 1, 0.02, true),
            (1101, 10, 1, 0.02, false),
            // Larger than a datagram: what it costs for each chance to work.
            (2000, 1000, 1, 0.29, false),
            (2000, 1000, 3, 0.29, true),
            (2000, 1000, 1, 0.5, true),
            (2000, 2000, 0, 0.0, true),
        ] {
            assert_eq!(known_pays(known, assumed, depth, loss), pays, "{known} {assumed} {loss}");
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
