//! Every datagram that we sent, until its outcome is known (`docs/wire.md` §5). Nobody else reads the peer's
//! reports: everybody else hears outcomes. It must not know what is done about a loss.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::instruction::fragment::FragmentId;
use crate::machine::PathId;
use crate::recovery::detect::{REORDER_THRESHOLD, is_lost, reports};
use crate::state::StateNum;
use crate::time::Time;
use crate::wire::{Report, Seq};

/// A datagram that went out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SentDatagram {
    pub seq: Seq,
    pub path: PathId,
    /// Its number on that path: only what took the same path can overtake it.
    pub nth: u64,
    pub at: Time,
    pub bytes: u16,
    pub load: Load,
}

impl SentDatagram {
    /// Whether the peer is to acknowledge what it carries: until its outcome it counts as in flight.
    pub(crate) fn is_ack_eliciting(&self) -> bool {
        matches!(self.load, Load::State { .. })
    }
}

/// What a datagram carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Load {
    /// An acknowledgment, or something about the path: nothing that is sent again.
    Control,
    /// Something small by a way that is not in use, to find out whether it works. That it is lost means nothing.
    UdpTry,
    /// Padding, to find out how long datagrams may be. A lost one is no sign of congestion
    /// (RFC 8899 §3, 7).
    Probe,
    /// (A fragment of) a state that the peer is to acknowledge.
    State { num: StateNum, fragment: Option<(FragmentId, u16)> },
}

/// What became of a datagram. Each datagram has one outcome, but a lost one may later prove spurious.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome<'a> {
    Delivered(&'a SentDatagram),
    Lost(&'a SentDatagram),
    /// It was declared lost, and has arrived.
    Spurious(&'a SentDatagram),
    /// The log had no more room for it.
    Forgotten(&'a SentDatagram),
}

/// Sent datagrams, oldest first.
#[derive(Default)]
pub(crate) struct SentLog {
    entries: VecDeque<Entry>,
    /// The newest of each path that the peer has reported, by its number there.
    largest: [Option<u64>; PathId::COUNT],
    /// The newest that it has reported.
    newest: Option<Seq>,
}

struct Entry {
    sent: SentDatagram,
    status: Status,
}

/// The last outcome of a datagram that is still in the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Status {
    /// None yet.
    Open,
    Lost,
    Arrived,
}

/// Datagrams that the log holds; the outcome of an older one stays unknown.
const ENTRIES_MAX: usize = 1024;

impl SentLog {
    /// A datagram went out; its number is higher than all before. `each` hears of one that it displaces.
    pub(crate) fn on_sent(&mut self, datagram: SentDatagram, each: &mut dyn FnMut(Outcome<'_>)) {
        if self.entries.len() == ENTRIES_MAX
            && let Some(Entry { sent, status: Status::Open }) = self.entries.pop_front()
        {
            each(Outcome::Forgotten(&sent));
        }
        self.entries.push_back(Entry { sent: datagram, status: Status::Open });
    }

    /// The peer reports what arrived. Outcomes of probes come first: whether one arrived decides how the
    /// losses of other lengths are read.
    pub(crate) fn on_report(
        &mut self,
        now: Time,
        loss_delay: Duration,
        report: &Report,
        each: &mut dyn FnMut(Outcome<'_>),
    ) {
        // A hostile peer may name what was never sent.
        if self.entries.back().is_none_or(|last| last.sent.seq < report.newest) {
            return;
        }
        let SentLog { entries, largest, newest } = self;
        *newest = (*newest).max(Some(report.newest));
        let older = entries.partition_point(|entry| entry.sent.seq <= report.newest);
        for Entry { sent, .. } in entries.range(..older) {
            if reports(report, sent.seq) {
                let largest = &mut largest[sent.path.index()];
                *largest = (*largest).max(Some(sent.nth));
            }
        }
        // All arrivals are noted before any loss is declared: a datagram late in this report may be
        // what overtakes the first one.
        for probes in [true, false] {
            let entries = entries.range_mut(..older);
            for Entry { sent, status } in
                entries.filter(|entry| (entry.sent.load == Load::Probe) == probes)
            {
                let largest = largest[sent.path.index()].unwrap_or(0);
                let overtaken_by = largest.saturating_sub(sent.nth);
                let is_lost = || is_lost(overtaken_by, now.since(sent.at), loss_delay);
                let (next, outcome) = match (*status, reports(report, sent.seq)) {
                    (Status::Open, true) => (Status::Arrived, Outcome::Delivered(sent)),
                    (Status::Lost, true) => (Status::Arrived, Outcome::Spurious(sent)),
                    (Status::Open, false) if is_lost() => (Status::Lost, Outcome::Lost(sent)),
                    _ => continue,
                };
                *status = next;
                each(outcome);
            }
        }
        self.give_up_unnamed(report.newest);
        self.tidy();
    }

    /// Closes the entries of a way that is not used any more, whose outcome nobody awaits. What comes of them is
    /// spurious.
    pub(crate) fn abandon(&mut self, path: PathId) {
        for Entry { sent, status } in &mut self.entries {
            if sent.path == path && *status == Status::Open {
                *status = Status::Lost;
            }
        }
    }

    /// Nothing that overtakes it shows that a datagram was lost by a way that is silent. Once no report can name it,
    /// its outcome stays unknown.
    fn give_up_unnamed(&mut self, newest: Seq) {
        for Entry { sent, status } in &mut self.entries {
            if newest.get().saturating_sub(sent.seq.get()) <= Report::SPAN {
                break;
            }
            if *status == Status::Open && !sent.is_ack_eliciting() {
                *status = Status::Lost;
            }
        }
    }

    /// The peer holds this state: all datagrams of it and of those before it have left the path. A wire
    /// without reports tells nothing else.
    pub(crate) fn on_state_acked(&mut self, num: StateNum, each: &mut dyn FnMut(Outcome<'_>)) {
        for Entry { sent, status } in &mut self.entries {
            if matches!(sent.load, Load::State { num: of, .. } if of <= num)
                && *status == Status::Open
            {
                *status = Status::Arrived;
                each(Outcome::Delivered(sent));
            }
        }
        self.tidy();
    }

    /// Declares lost what was sent before this, should have been acknowledged, and has no outcome.
    pub(crate) fn expire(&mut self, before: Time, each: &mut dyn FnMut(Outcome<'_>)) {
        for Entry { sent, status } in &mut self.entries {
            if sent.at >= before {
                break;
            }
            // Anything else occupies no room in the window, so it waits for the next report.
            if *status == Status::Open && sent.is_ack_eliciting() {
                *status = Status::Lost;
                each(Outcome::Lost(sent));
            }
        }
        self.tidy();
    }

    /// The share of our datagrams that the peer misses, less our own lost probes.
    pub(crate) fn reported_loss(&self, report: &Report) -> f64 {
        let newest = report.newest.get();
        let probes = self.entries.iter().filter(|Entry { sent, status }| {
            let back = newest.saturating_sub(sent.seq.get());
            matches!(sent.load, Load::Probe | Load::UdpTry)
                && *status != Status::Arrived
                && (REORDER_THRESHOLD..=Report::SPAN).contains(&back)
        });
        // As the peer counts it: of at most 97, and ten more.
        let counted = newest.min(97) + 10;
        let own = (probes.count() as u64 * 256 / counted).min(255) as u8;
        f64::from(report.loss.saturating_sub(own)) / 256.0
    }

    /// Drops entries whose outcome is final. A lost one stays as long as a report can name it: it may only
    /// be late.
    fn tidy(&mut self) {
        let Some(last) = self.entries.back().map(|last| last.sent.seq) else { return };
        // Before the first report nobody knows what it will name, so the newest are kept.
        let newest = self.newest.unwrap_or(last).get();
        while let Some(Entry { sent, status }) = self.entries.front() {
            if *status == Status::Open || newest.saturating_sub(sent.seq.get()) <= Report::SPAN {
                break;
            }
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
