//! Implements quinn's controller trait.

use std::any::Any;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};

use super::controller::{
    BATCH_PACKETS, BulkController, Mode, PACER_DEN, PACER_NUM, STARTUP_DEN, STARTUP_NUM,
};
use super::limits::LIMITS;

impl Controller for BulkController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.delivery.send(now, bytes, self.window);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.delivery.acknowledge(sent, bytes);
        if let Some(probe_rtt) = &mut self.probe_rtt {
            probe_rtt.acknowledge(now, sent, bytes);
        }
        match &mut self.mode {
            // A window that the application does not fill must not grow (RFC 9002 §7.8).
            Mode::Startup { .. } if self.delivery.is_full() => {
                self.window += bytes * STARTUP_NUM / STARTUP_DEN;
            }
            Mode::Compete { cubic, .. } => cubic.on_ack(now, sent, bytes, app_limited, rtt),
            Mode::Startup { .. } | Mode::Follow { .. } | Mode::Cruise => {}
        }
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        _app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        if let Some((rtt, round)) = self.delivery.finish(now, in_flight) {
            self.advance(now, rtt, round);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        if is_persistent_congestion {
            self.delivery.lose(lost_bytes);
            self.restart(now);
            return;
        }
        // quinn reports an ECN mark as an event without lost octets.
        if lost_bytes == 0 {
            self.delivery.mark();
            self.was_marked = true;
            // A mark ends slow start as a loss does (RFC 9002 §7.3.1), because the
            // queue is there already.
            if matches!(self.mode, Mode::Startup { .. }) {
                self.note_rate(self.delivery.round().rate);
                self.cruise();
            }
        }
        self.delivery.lose(lost_bytes);
        if let Some(probe_rtt) = &mut self.probe_rtt {
            probe_rtt.lose(sent, lost_bytes);
        }
        self.lose_competing(now, sent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        if let Mode::Compete { cubic, .. } = &mut self.mode {
            cubic.on_mtu_update(new_mtu);
        }
    }

    /// quinn uses the window both to limit octets in flight and to set the pace. Its pacer wakes every 2 ms,
    /// or up to twice that with tokio's timers, and loses the time it is late. So while the window has room
    /// for a whole batch, quinn gets a larger one. The resulting bursts do not suit a path that marks short
    /// queues or loses packets without one, nor one on which the user types.
    fn window(&self) -> u64 {
        let has_room = self.delivery.in_flight() + BATCH_PACKETS * self.mtu <= self.window;
        if has_room && self.slack_used >= 1.0 && !self.was_marked && self.stirred.is_none() {
            self.window * PACER_NUM / PACER_DEN
        } else {
            self.window
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        LIMITS.initial_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
