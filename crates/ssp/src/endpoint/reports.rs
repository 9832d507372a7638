//! What follows from the peer's reports, and from a path that takes shorter datagrams.

use super::Endpoint;
use crate::machine::Remote;
use crate::path::mtud::MtuChange;
use crate::recovery::detect;
use crate::sender::redundancy::Feedback;
use crate::state::State;
use crate::stats::DirectionStats;
use crate::time::Time;
use crate::wire::Report;

impl<L: State, R: State> Endpoint<L, R> {
    /// Hands what the peer says of our datagrams to those who follow them.
    pub(super) fn on_report(&mut self, now: Time, report: &Report) -> Feedback {
        let Endpoint { log, path, outgoing, repairs, .. } = self;
        // All outcomes are told before anyone draws a conclusion: what follows from one loss
        // depends on what else arrived.
        let loss_delay = detect::loss_delay(&path.rtt);
        log.on_report(now, loss_delay, report, &mut |outcome| {
            path.on_outcome(now, outcome);
            let transfers = [&mut *outgoing, &mut *repairs];
            transfers.into_iter().flatten().for_each(|one| one.on_outcome(outcome));
        });
        let loss = if path.is_on_stream() { 0.0 } else { log.reported_loss(report) };
        if let Some(grid) = &mut self.runs.grid {
            // As the peer counts it. What is known besides of our own datagrams depends on what they carried. A stream
            // loses none.
            grid.lose(if path.is_on_stream() { 0.0 } else { f64::from(report.loss) / 256.0 });
        }
        let feedback = Feedback { loss, ack_delay: report.ack_delay };
        path.on_reported(now, DirectionStats { loss: feedback.loss, queue: report.queue });
        let change = path.mtud.judge(now);
        self.stats.black_holes += u64::from(change == MtuChange::Reduced);
        self.heed(change);
        feedback
    }

    /// Sends again, in shorter datagrams, an instruction that was cut for longer ones than this address takes.
    pub(super) fn shorten(&mut self, to: Remote) {
        let room = self.path.payload_max(to);
        let flights = [&self.outgoing, &self.repairs].into_iter().flatten();
        let longest = flights.map(|transfer| transfer.contents_bytes(0)).max().unwrap_or(0);
        if self.path.carries_reports() && longest > room {
            self.heed(MtuChange::Reduced);
        }
    }

    /// Sends again, in shorter datagrams, an instruction that was cut too long.
    pub(super) fn heed(&mut self, change: MtuChange) {
        if change == MtuChange::Reduced {
            self.stats.mtu_shrunk += 1;
            (self.outgoing, self.repairs) = (None, None);
            self.sender.refuse();
        }
    }
}
