//! Every datagram that we sent, until it is known what became of it (`docs/wire.md` §5). Nobody else reads
//! the peer's reports: consumers are told outcomes. It must not know what is done about a loss.

use alloc::collections::VecDeque;

use crate::instruction::fragment::FragmentId;
use crate::machine::PathId;
use crate::recovery::detect::{Late, LossRule, REORDER_THRESHOLD, reports};
use crate::recovery::rtt::RttEstimator;
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

/// What a datagram carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Load {
    /// An acknowledgment, or something about the path: nothing that is sent again.
    Control,
    /// Padding, to find out how long datagrams may be. That one is lost is no sign of congestion
    /// (RFC 8899 §3, 7).
    Probe,
    /// (A fragment of) a state.
    State {
        num: StateNum,
        /// The peer is to acknowledge it.
        ack_eliciting: bool,
        fragment: Option<(FragmentId, u16)>,
    },
}

/// What became of a datagram. Each has one outcome, but that one which was taken for lost may turn out
/// to be no loss.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome<'a> {
    Delivered(&'a SentDatagram),
    Lost(&'a SentDatagram),
    /// It was taken for lost, and has arrived.
    Spurious(&'a SentDatagram),
    /// Nobody has told of it for too long.
    Forgotten(&'a SentDatagram),
}

/// Who is told of outcomes. Each has its own rule of loss.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Consumer {
    Congestion,
    Attribution,
    Lengths,
    Transfers,
}

impl Consumer {
    pub const ALL: [Consumer; 4] =
        [Consumer::Congestion, Consumer::Attribution, Consumer::Lengths, Consumer::Transfers];

    fn rule(self) -> LossRule {
        match self {
            Consumer::Congestion => LossRule::count(REORDER_THRESHOLD + 1),
            Consumer::Attribution | Consumer::Lengths => LossRule::count(REORDER_THRESHOLD),
            Consumer::Transfers => LossRule {
                overtaken: REORDER_THRESHOLD,
                overtaken_max: Report::SPAN,
                late: Late::Lost,
            },
        }
    }

    fn follows(self, load: Load) -> bool {
        match self {
            Consumer::Congestion => matches!(load, Load::State { ack_eliciting: true, .. }),
            Consumer::Attribution | Consumer::Lengths => true,
            Consumer::Transfers => matches!(load, Load::State { fragment: Some(_), .. }),
        }
    }
}

/// Sent datagrams, oldest first: a ring by number.
pub(crate) struct SentLog {
    /// Those who are told; where nobody reports what comes, fewer.
    consumers: &'static [Consumer],
    /// The number of the first entry.
    first: u64,
    entries: VecDeque<Entry>,
    /// The newest of each path that the peer has reported, by its number there.
    largest: [Option<u64>; PATHS_MAX],
    /// The newest of all.
    reported: Option<u64>,
}

struct Entry {
    sent: SentDatagram,
    arrived: bool,
    /// What each consumer was told.
    statuses: [Status; Consumer::ALL.len()],
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Status {
    /// Nothing yet.
    Open,
    /// That it is lost.
    Lost,
    /// All there is to tell.
    Told,
}

/// Datagrams that are followed; of older ones nobody will tell.
const ENTRIES_MAX: usize = 1024;
/// Paths at a time.
const PATHS_MAX: usize = 1;

impl SentLog {
    pub fn new(consumers: &'static [Consumer]) -> SentLog {
        SentLog {
            consumers,
            first: 0,
            entries: VecDeque::new(),
            largest: [None; PATHS_MAX],
            reported: None,
        }
    }

    /// A datagram went out. `each` hears of those that are followed no longer.
    pub fn on_sent(&mut self, datagram: SentDatagram, each: &mut dyn FnMut(Consumer, Outcome<'_>)) {
        // A wire counts by one. With any other the place of an entry would not follow from its number.
        let is_next = datagram.seq.get() == self.end();
        let kept = if is_next { ENTRIES_MAX - 1 } else { 0 };
        while self.entries.len() > kept {
            self.forget_first(each);
        }
        if !is_next {
            self.first = datagram.seq.get();
        }
        let mut statuses = [Status::Told; Consumer::ALL.len()];
        for consumer in self.consumers {
            if consumer.follows(datagram.load) {
                statuses[*consumer as usize] = Status::Open;
            }
        }
        self.entries.push_back(Entry { sent: datagram, arrived: false, statuses });
    }

    /// The peer says what came. Probes are told of first: whether one arrived decides how the losses of
    /// other lengths are read.
    pub fn on_report(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        report: &Report,
        each: &mut dyn FnMut(Consumer, Outcome<'_>),
    ) {
        let newest = report.newest.get();
        // What is named may never have been sent: a peer can say anything.
        let named = newest.checked_sub(self.first).filter(|_| newest < self.end());
        let Some(place) = named else { return };
        self.reported = self.reported.max(Some(newest));
        let told = place as usize + 1;
        for Entry { sent, arrived, .. } in self.entries.iter_mut().take(told) {
            if reports(report, sent.seq) {
                *arrived = true;
                let largest = &mut self.largest[sent.path.index()];
                *largest = (*largest).max(Some(sent.nth));
            }
        }
        // All arrivals are marked before any loss is told: a datagram late in this report may be
        // what overtakes the first one.
        let (consumers, largest) = (self.consumers, self.largest);
        for probes in [true, false] {
            let entries = self.entries.iter_mut().take(told);
            for entry in entries.filter(|entry| (entry.sent.load == Load::Probe) == probes) {
                let newer = largest[entry.sent.path.index()].unwrap_or(0);
                let overtaken = newer.saturating_sub(entry.sent.nth);
                let age = now.since(entry.sent.at);
                for consumer in consumers {
                    let is_lost = || consumer.rule().is_lost(overtaken, age, rtt);
                    entry.tell(*consumer, is_lost, each);
                }
            }
        }
        self.tidy();
    }

    /// The peer holds this state: what went out for it and before it is off the path. On a wire without
    /// reports nothing else tells that.
    pub fn on_state_acked(&mut self, num: StateNum, each: &mut dyn FnMut(Consumer, Outcome<'_>)) {
        for Entry { sent, statuses, .. } in &mut self.entries {
            let status = &mut statuses[Consumer::Congestion as usize];
            if matches!(sent.load, Load::State { num: of, .. } if of <= num)
                && *status == Status::Open
            {
                *status = Status::Told;
                each(Consumer::Congestion, Outcome::Delivered(sent));
            }
        }
        self.tidy();
    }

    /// Datagrams sent before this count as in flight no more, whether they arrived or not.
    pub fn expire(&mut self, before: Time, each: &mut dyn FnMut(Consumer, Outcome<'_>)) {
        for Entry { sent, statuses, .. } in &mut self.entries {
            if sent.at >= before {
                break;
            }
            let status = &mut statuses[Consumer::Congestion as usize];
            if *status == Status::Open {
                // A datagram without an answer for so long holds no room on the path, lost or not.
                *status = Status::Told;
                each(Consumer::Congestion, Outcome::Forgotten(sent));
            }
        }
        self.tidy();
    }

    /// The share of our datagrams that the peer misses, less our own lost probes.
    pub fn reported_loss(&self, report: &Report) -> f64 {
        let newest = report.newest.get();
        let probes = self.entries.iter().filter(|entry| {
            let back = newest.saturating_sub(entry.sent.seq.get());
            entry.sent.load == Load::Probe
                && !entry.arrived
                && (REORDER_THRESHOLD..=Report::SPAN).contains(&back)
        });
        // As the peer counts it: of at most 97, and ten more.
        let counted = newest.min(97) + 10;
        let pardoned = (probes.count() as u64 * 256 / counted).min(255) as u8;
        f64::from(report.loss.saturating_sub(pardoned)) / 256.0
    }

    /// A report of this number, and of those before it whose bit is set.
    #[cfg(test)]
    pub fn hear(
        &mut self,
        now: Time,
        rtt: &RttEstimator,
        newest: u64,
        received: u128,
        each: &mut dyn FnMut(Consumer, Outcome<'_>),
    ) {
        let report = Report { newest: Seq::new(newest), received, ..Report::default() };
        self.on_report(now, rtt, &report, each);
    }

    /// One past the number that was sent last.
    fn end(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    /// Drops entries of which nobody can be told anything else. One that was lost stays as long as a report
    /// can name it: it may have been late.
    fn tidy(&mut self) {
        // Before the first report nobody knows what it will name, so the newest are kept.
        let named = self.reported.unwrap_or(self.end()).saturating_sub(Report::SPAN);
        while self.first < named && self.entries.front().is_some_and(Entry::is_told) {
            self.entries.pop_front();
            self.first += 1;
        }
    }

    fn forget_first(&mut self, each: &mut dyn FnMut(Consumer, Outcome<'_>)) {
        let Some(Entry { sent, statuses, .. }) = self.entries.pop_front() else { return };
        self.first += 1;
        for consumer in self.consumers {
            if statuses[*consumer as usize] == Status::Open {
                each(*consumer, Outcome::Forgotten(&sent));
            }
        }
    }
}

impl Entry {
    /// Tells a consumer what is new to it.
    fn tell(
        &mut self,
        consumer: Consumer,
        is_lost: impl FnOnce() -> bool,
        each: &mut dyn FnMut(Consumer, Outcome<'_>),
    ) {
        let (status, sent) = (&mut self.statuses[consumer as usize], &self.sent);
        let (next, outcome) = match *status {
            Status::Open if self.arrived => (Status::Told, Outcome::Delivered(sent)),
            Status::Open if is_lost() => (Status::Lost, Outcome::Lost(sent)),
            Status::Lost if self.arrived => (Status::Told, Outcome::Spurious(sent)),
            Status::Open | Status::Lost | Status::Told => return,
        };
        *status = next;
        each(consumer, outcome);
    }

    fn is_told(&self) -> bool {
        !self.statuses.contains(&Status::Open)
    }
}

#[cfg(test)]
mod tests;
