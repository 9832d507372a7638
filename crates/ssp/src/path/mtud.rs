//! How long datagrams may be: searches upward with probes that carry no data, and goes down when
//! long datagrams vanish (RFC 8899; `docs/wire.md` §9). It must not know what datagrams carry.

use core::net::SocketAddr;
use core::time::Duration;

use crate::recovery::sent_log::{Load, Outcome, SentDatagram};
use crate::time::Time;

/// Octets of the largest datagram over IPv4: a packet of 1280 less 28 of headers (`mosh-protocol.md` §2.3).
const STOCK_IPV4: usize = 1252;
/// The same over IPv6, where 64 octets are left for headers.
const STOCK_IPV6: usize = 1216;
/// Octets of the largest datagram once the path refused a larger one. For good: there is no search.
const STOCK_SMALL: usize = 500;

/// The lengths that are tried: what fits packets of 576, 1024, 1280, 1400 and 1500 octets under either
/// protocol's headers (28 octets for IPv4, which alone has links of 576, and 48 for IPv6).
const SIZES: [usize; 5] = [548, 976, 1200, 1352, 1452];
/// Where a path begins: RFC 9000 §14 and RFC 8899 §5.1.2 count on 1200.
const BASE: usize = 2;
/// How often a length is tried before it is taken not to fit (RFC 8899 §5.1.2 MAX_PROBES).
const TRIES: u32 = 3;
/// How long to wait before what did not fit is tried again (RFC 8899 §5.1.1 PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);
/// A probe that nobody has told of for so long is forgotten.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);
/// So often in a row long datagrams are lost while shorter ones arrive on a path that swallows them; more
/// often where chance alone would do that more than once in 1 / this.
const LOST_MIN: u32 = 3;
const LOST_MAX: u32 = 20;
const CHANCE: f64 = 1e-4;
/// Long instructions without any answer after which datagrams become shorter: perhaps the path swallows them.
const SILENT: u32 = 3;

/// The lengths that the path is known to take, and the search for longer ones.
#[derive(Default)]
pub(crate) struct MtuDiscovery {
    probing: Probing,
    size: usize,
    /// The highest rung that is not known to be too long.
    ceiling: usize,
    /// When the search begins again.
    raise_at: Time,
    /// Something did not fit one datagram: longer ones are of use.
    wanted: bool,
    tries: u32,
    probe: Option<Probe>,
    /// The first datagram that counts: those before it took another path, or were cut for other lengths. And
    /// the next one.
    since: u64,
    next: u64,
    /// How often long ones were lost since one arrived, counted once between two short ones that arrived:
    /// a burst of losses takes both. And instructions that got no answer.
    lost: u32,
    short_came: bool,
    silent: u32,
    /// When silence was last taken for a path that swallows long ones: longer datagrams are of no use before
    /// the peer is heard again.
    pub silenced: Option<Time>,
    /// The share of short ones that is lost.
    chance: f64,
    /// What went out last, and whether it was a probe.
    last: (Time, usize, Purpose),
}

/// Who looks for the length.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Probing {
    /// Nobody: stock's lengths.
    #[default]
    Off,
    /// We do.
    On,
}

/// What a datagram was sent for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Purpose {
    #[default]
    Data,
    Probe,
}

/// What became of a length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MtuChange {
    /// Datagrams of the old length are to be sent again, shorter.
    Reduced,
    /// Nothing changes for what is sent.
    Unchanged,
}

#[derive(Clone, Copy)]
struct Probe {
    nth: u64,
    at: Time,
    size: usize,
}

impl MtuDiscovery {
    pub(crate) fn new(probing: Probing) -> MtuDiscovery {
        MtuDiscovery { probing, size: BASE, ceiling: SIZES.len() - 1, ..MtuDiscovery::default() }
    }

    /// Octets of the largest datagram to this address.
    pub(crate) fn datagram(&self, to: SocketAddr) -> usize {
        match (self.probing, self.size) {
            (Probing::On, size) => SIZES[size],
            (Probing::Off, 0) => STOCK_SMALL,
            (Probing::Off, _) if to.ip().to_canonical().is_ipv4() => STOCK_IPV4,
            (Probing::Off, _) => STOCK_IPV6,
        }
    }

    /// Octets that every path takes.
    pub(crate) fn least(&self) -> usize {
        match self.probing {
            Probing::On => SIZES[0],
            Probing::Off => STOCK_SMALL,
        }
    }

    /// Another path: nothing is known of it.
    pub(crate) fn reset(&mut self) {
        if self.probing == Probing::On {
            let MtuDiscovery { next, wanted, .. } = *self;
            *self = MtuDiscovery { since: next, next, wanted, ..MtuDiscovery::new(self.probing) };
        }
    }

    /// Something longer than one datagram is sent.
    pub(crate) fn want(&mut self, now: Time) {
        self.wanted = true;
        // The path may have changed since its length was found (RFC 8899 §5.1.1).
        if self.ceiling <= self.size && now >= self.raise_at {
            self.ceiling = SIZES.len() - 1;
        }
    }

    /// A datagram of this length went out.
    pub(crate) fn on_sent(&mut self, now: Time, nth: u64, bytes: usize, purpose: Purpose) {
        self.last = (now, bytes, purpose);
        self.next = nth + 1;
        // One probe at a time: of two lost ones it could not be told which was too long.
        if self.probing == Probing::On && purpose == Purpose::Probe {
            self.probe = Some(Probe { nth, at: now, size: self.ceiling });
        }
    }

    /// The length of the probe to send, and when. `None`: there is nothing to find out.
    pub(crate) fn probe(&self) -> Option<(Time, usize)> {
        // A session of short datagrams gains nothing from longer ones, so it pays for no probes.
        let searches = self.probing == Probing::On && self.wanted && self.ceiling > self.size;
        let at = self.probe.map_or(Time::ZERO, |probe| probe.at + PROBE_PATIENCE);
        searches.then_some((at, SIZES[self.ceiling]))
    }

    /// Forgets a probe that nobody has told of.
    pub(crate) fn advance(&mut self, now: Time) {
        // Nobody may be there to tell: that says nothing of lengths.
        self.probe.take_if(|probe| now.since(probe.at) >= PROBE_PATIENCE);
    }

    /// What became of a datagram.
    pub(crate) fn on_outcome(&mut self, now: Time, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Delivered(sent) if sent.load == Load::Probe => self.on_probe_arrived(sent),
            Outcome::Lost(sent) if sent.load == Load::Probe => self.on_probe_lost(now, sent),
            Outcome::Delivered(sent) if self.counts(sent) => self.on_arrived(sent),
            Outcome::Lost(sent) if self.counts(sent) => self.on_lost(sent),
            // One that arrives late was long enough to be overtaken: that says little of lengths.
            _ => {}
        }
    }

    /// What follows from all outcomes of a report.
    pub(crate) fn judge(&mut self, now: Time) -> MtuChange {
        if self.probing == Probing::Off || self.size == 0 || self.lost < self.lost_max() {
            return MtuChange::Unchanged;
        }
        let (size, first) = (self.size, now >= self.raise_at);
        // Long ones vanish while short ones arrive: the path swallows them.
        self.fall(now, self.next_down(), RAISE);
        if first {
            // Perhaps it was chance: probes tell. Not each time, where long ones are lost more often.
            self.ceiling = size;
        }
        MtuChange::Reduced
    }

    /// Our own system refused what went out last.
    pub(crate) fn too_big(&mut self) -> MtuChange {
        let (now, bytes, purpose) = self.last;
        if self.probing == Probing::Off {
            let shrunk = self.size != 0;
            self.size = 0;
            return if shrunk { MtuChange::Reduced } else { MtuChange::Unchanged };
        }
        if purpose == Purpose::Probe {
            self.tries = TRIES;
            self.miss(now);
            return MtuChange::Unchanged;
        }
        match SIZES.iter().rposition(|&size| size < bytes) {
            Some(size) if size < self.size => {
                self.fall(now, size, RAISE);
                MtuChange::Reduced
            }
            // It was cut before the last fall.
            _ if bytes > SIZES[self.size] => MtuChange::Reduced,
            _ => MtuChange::Unchanged,
        }
    }

    /// What takes datagrams of this length is said again, since no answer came.
    pub(crate) fn unanswered(&mut self, now: Time, bytes: usize) {
        if self.probing == Probing::Off || self.size == 0 || bytes <= self.below() {
            return;
        }
        self.silent += 1;
        if self.silent >= SILENT {
            // Nothing arrives at all, so no loss of long ones shows beside short ones that arrive.
            self.fall(now, self.next_down(), RAISE);
            // Perhaps it was not the length: once anything is heard it is tried again.
            self.ceiling = SIZES.len() - 1;
            self.silenced = Some(now);
        }
    }

    fn on_probe_arrived(&mut self, sent: &SentDatagram) {
        let Some(probe) = self.probe.take_if(|probe| probe.nth == sent.nth) else { return };
        self.size = probe.size;
        self.tries = 0;
        (self.lost, self.silent) = (0, 0);
        self.wanted = self.ceiling > self.size;
    }

    fn on_probe_lost(&mut self, now: Time, sent: &SentDatagram) {
        // One that was given up says nothing: another length may be tried by now.
        if self.probe.is_some_and(|probe| probe.nth == sent.nth) {
            self.miss(now);
        }
    }

    fn on_arrived(&mut self, sent: &SentDatagram) {
        if usize::from(sent.bytes) > self.below() {
            (self.lost, self.silent) = (0, 0);
        } else {
            self.chance -= self.chance / 16.0;
            self.short_came = true;
        }
    }

    fn on_lost(&mut self, sent: &SentDatagram) {
        if usize::from(sent.bytes) > self.below() {
            self.lost += u32::from(self.short_came);
            // The next loss of a long one counts only after another short one arrived.
            self.short_came = false;
        } else {
            self.chance += (1.0 - self.chance) / 16.0;
        }
    }

    /// Whether this one says anything of the lengths in use. It does not if it was cut before the last fall.
    fn counts(&self, sent: &SentDatagram) -> bool {
        self.probing == Probing::On
            && sent.nth >= self.since
            && usize::from(sent.bytes) <= SIZES[self.size]
    }

    /// How many long ones in a row chance does not take.
    fn lost_max(&self) -> u32 {
        let (mut odds, mut count) = (1.0, 0);
        // On a path that loses 30 % of short ones, three long ones in a row are no news.
        while count < LOST_MIN || odds > CHANCE && count < LOST_MAX {
            odds *= self.chance;
            count += 1;
        }
        count
    }

    /// What fits the rung below.
    fn below(&self) -> usize {
        if self.size == 0 { usize::MAX } else { SIZES[self.next_down()] }
    }

    /// Not one rung at a time: each step costs several round trips (RFC 8899 §4.3).
    fn next_down(&self) -> usize {
        if self.size > BASE { BASE } else { 0 }
    }

    fn fall(&mut self, now: Time, size: usize, raise: Duration) {
        self.ceiling = self.size.saturating_sub(1).max(size);
        self.size = size;
        self.raise_at = now + raise;
        self.probe = None;
        (self.tries, self.lost, self.silent) = (0, 0, 0);
        // What is on its way was cut for the longer size, and its losses would lower the size
        // again.
        self.since = self.next;
        self.wanted = true;
    }

    fn miss(&mut self, now: Time) {
        let Some(probe) = self.probe.take() else { return };
        self.tries += 1;
        if self.tries >= TRIES {
            self.tries = 0;
            // Three losses in a row are rarely chance. The next shorter size is tried.
            self.ceiling = probe.size.saturating_sub(1).max(self.size);
            self.raise_at = now + RAISE;
            self.wanted = self.ceiling > self.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::PathId;
    use crate::recovery::sent_log::SentLog;
    use crate::wire::{Report, Seq};

    fn to() -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], 1))
    }

    /// A path that takes `takes` octets, each datagram reported before the next.
    struct Road {
        mtud: MtuDiscovery,
        takes: usize,
        seq: u64,
        now: Time,
        log: SentLog,
        came: Vec<u64>,
    }

    impl Road {
        fn new(takes: usize) -> Road {
            Road {
                mtud: MtuDiscovery::new(Probing::On),
                takes,
                seq: 0,
                now: Time::ZERO,
                log: SentLog::default(),
                came: vec![],
            }
        }

        fn send(&mut self, bytes: usize, purpose: Purpose) {
            self.mtud.on_sent(self.now, self.seq, bytes, purpose);
            let load = if purpose == Purpose::Probe { Load::Probe } else { Load::Control };
            let (seq, path, nth) = (Seq::new(self.seq), PathId::default(), self.seq);
            let sent = SentDatagram { seq, path, nth, at: self.now, bytes: bytes as u16, load };
            self.log.on_sent(sent, &mut |_| ());
            if bytes <= self.takes {
                self.came.push(self.seq);
            }
            self.seq += 1;
        }

        fn report(&mut self) -> MtuChange {
            let Some(newest) = self.came.last().copied() else { return MtuChange::Unchanged };
            let bit = |seq: &u64| match newest - seq {
                back @ 1..=128 => 1 << (back - 1),
                _ => 0,
            };
            let received = self.came.iter().map(bit).sum();
            let Road { mtud, log, now, .. } = self;
            let report = Report { newest: Seq::new(newest), received, ..Report::default() };
            log.on_report(*now, Duration::from_secs(1), &report, &mut |outcome| {
                mtud.on_outcome(*now, outcome);
            });
            mtud.judge(*now)
        }

        /// Sends long and short ones and probes for a while.
        fn live(&mut self, turns: usize) -> (usize, u32) {
            let mut shrunk = 0;
            for _ in 0..turns {
                self.now = self.now + Duration::from_millis(100);
                self.mtud.advance(self.now);
                self.mtud.want(self.now);
                if let Some((at, bytes)) = self.mtud.probe()
                    && at <= self.now
                {
                    self.send(bytes, Purpose::Probe);
                }
                self.send(self.mtud.datagram(to()), Purpose::Data);
                self.send(60, Purpose::Data);
                self.send(60, Purpose::Data);
                shrunk += u32::from(self.report() == MtuChange::Reduced);
            }
            (self.mtud.datagram(to()), shrunk)
        }
    }

    #[test]
    fn every_path_is_used_as_far_as_it_goes() {
        for (takes, found, falls) in [
            (9000, 1452, 0),
            (1452, 1452, 0),
            (1451, 1352, 0),
            (1300, 1200, 0),
            (1199, 976, 1),
            (700, 548, 1),
            (548, 548, 1),
        ] {
            let mut road = Road::new(takes);
            assert_eq!(road.live(60), (found, falls), "{takes}");
        }
    }

    #[test]
    fn a_path_that_changes_is_followed() {
        let mut road = Road::new(1500);
        for (takes, found) in [(1500, 1452), (1252, 1200), (548, 548), (1000, 548)] {
            road.takes = takes;
            assert_eq!(road.live(100).0, found, "{takes}");
        }
        // After ten minutes it is tried again.
        road.now = road.now + RAISE;
        assert_eq!(road.live(60).0, 976);
        road.takes = 1500;
        road.mtud.reset();
        assert_eq!(road.live(60).0, 1452, "another path");
    }

    #[test]
    fn nothing_is_tried_that_nobody_needs() {
        let mut mtud = MtuDiscovery::new(Probing::On);
        assert_eq!(mtud.probe(), None);
        mtud.want(Time::ZERO);
        assert_eq!(mtud.probe(), Some((Time::ZERO, 1452)));
        let mut stock = MtuDiscovery::new(Probing::Off);
        stock.want(Time::ZERO);
        assert_eq!(stock.probe(), None);
        assert_eq!((stock.too_big(), stock.datagram(to())), (MtuChange::Reduced, 500));
        assert_eq!(stock.too_big(), MtuChange::Unchanged);
    }

    #[test]
    fn refusals_are_believed() {
        let mut mtud = MtuDiscovery::new(Probing::On);
        mtud.want(Time::ZERO);
        mtud.on_sent(Time::ZERO, 0, 1452, Purpose::Probe);
        assert_eq!(mtud.too_big(), MtuChange::Unchanged);
        assert_eq!(mtud.probe(), Some((Time::ZERO, 1352)));
        for (bytes, verdict, left) in [
            (1180, MtuChange::Reduced, 976),
            // Cut before that.
            (1180, MtuChange::Reduced, 976),
            (960, MtuChange::Reduced, 548),
            (540, MtuChange::Unchanged, 548),
        ] {
            mtud.on_sent(Time::ZERO, 1, bytes, Purpose::Data);
            assert_eq!((mtud.too_big(), mtud.datagram(to())), (verdict, left));
        }
    }

    #[test]
    fn what_was_cut_for_another_path_says_nothing_of_this_one() {
        let mut road = Road::new(1300);
        for _ in 0..20 {
            road.now = road.now + Duration::from_millis(100);
            road.send(1452, Purpose::Data);
            (0..4).for_each(|_| road.send(60, Purpose::Data));
            assert_eq!(road.report(), MtuChange::Unchanged);
        }
        assert_eq!(road.mtud.datagram(to()), 1200);
    }

    #[test]
    fn a_length_lost_by_chance_is_found_again_once() {
        let mut road = Road::new(1452);
        for found in [1452, 1452, 1352] {
            road.takes = 1452;
            assert_eq!(road.live(60).0, found);
            road.takes = 1000;
            while road.live(1).1 == 0 {}
        }
    }

    #[test]
    fn silence_shortens_what_is_long() {
        let mut mtud = MtuDiscovery::new(Probing::On);
        for (turn, left) in [1200, 1200, 548, 548, 548].into_iter().enumerate() {
            mtud.unanswered(Time::ZERO, 1100);
            assert_eq!(mtud.datagram(to()), left, "turn {turn}");
        }
        let mut mtud = MtuDiscovery::new(Probing::On);
        (0..9).for_each(|_| mtud.unanswered(Time::ZERO, 400));
        assert_eq!(mtud.datagram(to()), 1200, "short ones are not to blame");
    }
}
