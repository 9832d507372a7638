//! Measures what a connection delivers: rate, round trips and loss. The controller decides.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Takes samples of a connection and sums them up in rounds: a round is over when the first packet sent in
/// it is acknowledged, and after [`ROUND_MIN`].
#[derive(Clone, Debug)]
pub(super) struct DeliveryRate {
    /// State at the times of sending packets, oldest first. At most [`SENT_MAX`].
    sent: VecDeque<Sent>,
    /// Octets acknowledged so far, and when the last of them were.
    delivered: u64,
    delivered_at: Instant,
    /// The send time of the packet whose acknowledgment starts the next sample.
    first_sent: Instant,
    /// Octets in flight, and whether they have filled the window in this round and in the one before.
    in_flight: u64,
    is_full: bool,
    was_full: bool,
    is_idle: bool,
    /// The newest packet of the current batch of acknowledgments.
    newest: Option<Instant>,
    round: Round,
}

/// One round, so far or complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// When it began.
    pub began: Instant,
    /// The shortest round trip in it; none without a sample.
    pub rtt_min: Option<Duration>,
    rtt_sum: Duration,
    /// How many samples of the round trip.
    pub samples: u32,
    /// The fastest delivery, in octets a second; 0 without a sample.
    pub rate: f64,
    /// Whether the application, and not the window, limited sending in it.
    pub is_limited: bool,
    /// Octets acknowledged and octets lost.
    pub acked: u64,
    pub lost: u64,
    /// Whether the network marked packets "congestion experienced".
    pub is_marked: bool,
}

/// State when packets were sent (draft-ietf-ccwg-bbr, section 4.1: delivery rate samples).
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
}

impl DeliveryRate {
    pub(super) fn new(now: Instant) -> DeliveryRate {
        DeliveryRate {
            sent: VecDeque::new(),
            delivered: 0,
            delivered_at: now,
            first_sent: now,
            in_flight: 0,
            is_full: false,
            was_full: false,
            is_idle: true,
            newest: None,
            round: Round::new(now),
        }
    }

    /// Packets of `bytes` octets in all are sent now, into this window.
    pub(super) fn send(&mut self, now: Instant, bytes: u64, window: u64) {
        self.in_flight += bytes;
        self.is_full |= self.in_flight as f64 >= FULL * window as f64;
        if self.is_idle {
            // Time in which nothing was under way is no time of delivery.
            self.is_idle = false;
            self.delivered_at = now;
            self.first_sent = now;
        }
        if self.sent.back().is_some_and(|last| last.at == now) || self.sent.len() >= SENT_MAX {
            return;
        }
        self.sent.push_back(Sent {
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
        });
    }

    /// A packet sent at `sent` is acknowledged now.
    pub(super) fn acknowledge(&mut self, sent: Instant, bytes: u64) {
        self.delivered += bytes;
        self.round.acked += bytes;
        self.newest = Some(self.newest.map_or(sent, |newest| newest.max(sent)));
    }

    /// Octets acknowledged so far.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Octets in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Octets were lost.
    pub(super) fn lose(&mut self, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.round.lost += bytes;
    }

    /// The network marked packets.
    pub(super) fn mark(&mut self) {
        self.round.is_marked = true;
    }

    /// A batch of acknowledgments is complete. Returns its round trip, and the round if that has ended.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        in_flight: u64,
    ) -> Option<(Duration, Option<Round>)> {
        self.in_flight = in_flight;
        self.is_idle = in_flight == 0;
        let newest = self.newest.take()?;
        let rtt = now.saturating_duration_since(newest);
        self.delivered_at = now;
        let known = self.known_at(newest);
        self.round.rtt_min = Some(self.round.rtt_min.map_or(rtt, |least| least.min(rtt)));
        self.round.rtt_sum += rtt;
        self.round.samples += 1;
        if let Some(known) = known {
            self.first_sent = newest;
            self.sample(now, known);
        }
        if newest < self.round.began || now.saturating_duration_since(self.round.began) < ROUND_MIN
        {
            return Some((rtt, None));
        }
        // What is acknowledged in a round was sent in the one before.
        self.round.is_limited = !self.was_full;
        self.was_full = std::mem::take(&mut self.is_full);
        Some((rtt, Some(std::mem::replace(&mut self.round, Round::new(now)))))
    }

    /// Whether octets in flight filled the window, in this round or in the one before.
    pub(super) fn is_full(&self) -> bool {
        self.is_full || self.was_full
    }

    /// The round so far.
    pub(super) fn round(&self) -> &Round {
        &self.round
    }

    /// The state when the packet was sent. Forgets older ones.
    fn known_at(&mut self, sent: Instant) -> Option<Sent> {
        while self.sent.get(1).is_some_and(|next| next.at <= sent) {
            self.sent.pop_front();
        }
        self.sent.front().filter(|first| first.at <= sent).copied()
    }

    fn sample(&mut self, now: Instant, known: Sent) {
        let sending = known.at.saturating_duration_since(known.first_sent);
        let arriving = now.saturating_duration_since(known.delivered_at);
        // The longer span counts: acknowledgments that arrive in a burst would show
        // more than the path carries.
        let span = sending.max(arriving);
        if span.is_zero() {
            return;
        }
        let rate = (self.delivered - known.delivered) as f64 / span.as_secs_f64();
        self.round.rate = self.round.rate.max(rate);
    }
}

impl Round {
    pub(super) fn new(now: Instant) -> Round {
        Round {
            began: now,
            rtt_min: None,
            rtt_sum: Duration::ZERO,
            samples: 0,
            rate: 0.0,
            is_limited: false,
            acked: 0,
            lost: 0,
            is_marked: false,
        }
    }

    /// The mean round trip; zero without a sample.
    pub(super) fn rtt_mean(&self) -> Duration {
        self.rtt_sum / self.samples.max(1)
    }

    /// The mean excess of the round trips over the shortest one.
    pub(super) fn variation(&self) -> Duration {
        let least = self.rtt_min.unwrap_or_default();
        self.rtt_mean().saturating_sub(least)
    }

    /// The share of octets that were lost.
    pub(super) fn loss(&self) -> f64 {
        share(self.lost, self.acked)
    }
}

/// The share of octets lost.
pub(super) fn share(lost: u64, acked: u64) -> f64 {
    lost as f64 / (lost + acked).max(1) as f64
}

/// A window filled to this part counts as full: the pacer leaves a little of it unused.
const FULL: f64 = 0.7;

/// The shortest round: as long as a busy host may leave a process waiting. Between near hosts, shorter times
/// measure the scheduler and not the path.
const ROUND_MIN: Duration = Duration::from_millis(20);

/// Times of sending to remember, each of one or more packets; at the limit later ones have no sample of
/// their own. 32 MB in flight at one packet each.
const SENT_MAX: usize = 1 << 15;
