use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::recovery::attribution::LossAttribution;
use crate::rng::Rng;
use crate::timing::Timing;

const MILLISECOND: Duration = Duration::from_millis(1);

fn rtt() -> RttEstimator {
    let mut rtt = RttEstimator::new(&Timing::ROVE);
    (0..200).for_each(|_| rtt.sample(100 * MILLISECOND));
    rtt
}

fn sent(seq: u64, at: Time, load: Load) -> SentDatagram {
    SentDatagram { seq: Seq::new(seq), path: PathId::default(), nth: seq, at, bytes: 100, load }
}

fn state(num: u64, fragment: Option<(FragmentId, u16)>) -> Load {
    Load::State { num: num.into(), ack_eliciting: true, fragment }
}

/// A report of these numbers.
fn report(came: impl IntoIterator<Item = u64> + Clone) -> Report {
    let newest = came.clone().into_iter().max().unwrap();
    let bit = |seq: u64| match newest - seq {
        back @ 1..=120 => 1 << (back - 1),
        _ => 0,
    };
    let received = came.into_iter().fold(0, |map, seq| map | bit(seq));
    Report { newest: Seq::new(newest), received, ..Report::default() }
}

/// What a consumer is told of a number: whether it arrived, in order.
type Told = Vec<(u64, bool)>;

/// Four ledgers of sent datagrams, each with a rule of its own, which read reports themselves.
struct Ledgers {
    in_flight: Vec<SentDatagram>,
    lengths: Vec<SentDatagram>,
    fragments: Vec<SentDatagram>,
    probes: Vec<u64>,
    lost_probes: Vec<u64>,
}

impl Ledgers {
    fn on_sent(&mut self, datagram: SentDatagram) {
        match datagram.load {
            Load::Probe => return self.probes.push(datagram.nth),
            Load::Control => {}
            Load::State { ack_eliciting, fragment, .. } => {
                self.in_flight.extend(ack_eliciting.then_some(datagram));
                self.fragments.extend(fragment.map(|_| datagram));
            }
        }
        self.lengths.push(datagram);
    }

    /// What the window, the lengths and the transfers learn, and the share of the last 48 that is missing.
    fn on_report(&mut self, now: Time, report: &Report) -> ([Told; 3], f64) {
        let newest = report.newest.get();
        let mut told = [vec![], vec![], vec![]];
        self.lengths.retain(|one| {
            let came = reports(report, one.seq);
            let gone = !came && newest >= one.nth + 3;
            told[1].extend((came || gone).then_some((one.nth, came)));
            !(came || gone)
        });
        let rtt = rtt();
        let patience = rtt.srtt() + Duration::from_millis(10).max(4 * rtt.rttvar());
        self.fragments.retain(|one| {
            let overtaken = newest.saturating_sub(one.nth);
            let came = reports(report, one.seq);
            let late = overtaken > 0 && now.since(one.at) >= patience;
            let gone = !came && ((3..=120).contains(&overtaken) || late);
            told[2].extend((came || gone).then_some((one.nth, came)));
            !(came || gone)
        });
        self.in_flight.retain(|one| {
            let came = reports(report, one.seq);
            let gone = !came && newest > one.nth + 3;
            told[0].extend((came || gone).then_some((one.nth, came)));
            !(came || gone)
        });
        let lost = |probe: &u64| newest >= probe + 3 && !reports(report, Seq::new(*probe));
        self.lost_probes.extend(self.probes.extract_if(.., |probe| lost(probe)));
        let mut received = report.received;
        for back in self.lost_probes.iter().map(|probe| newest - probe).filter(|back| *back <= 120)
        {
            received |= 1 << (back - 1);
        }
        let known = newest.saturating_sub(3).min(48);
        let missing = (3..3 + known).filter(|back| received >> (back - 1) & 1 == 0).count();
        (told, missing as f64 / (known as f64).max(1.0))
    }

    fn on_state_acked(&mut self, num: u64) {
        self.in_flight
            .retain(|one| !matches!(one.load, Load::State { num: of, .. } if of <= num.into()));
    }

    fn expire(&mut self, before: Time) {
        self.in_flight.retain(|one| one.at >= before);
    }
}

/// What a random sender sends next.
fn random_load(rng: &mut Rng, turn: u64) -> Load {
    match rng.below(10) {
        0 => Load::Probe,
        1..3 => Load::Control,
        3 => Load::State { num: (turn / 3).into(), ack_eliciting: false, fragment: None },
        4..7 => state(turn / 3, None),
        _ => state(turn / 3, Some((FragmentId::from(turn / 20), (turn % 20) as u16))),
    }
}

#[test]
fn outcomes_are_those_of_the_four_rules() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let (mut log, mut attribution) = (SentLog::new(&Consumer::ALL), LossAttribution::default());
        let mut ledgers = Ledgers {
            in_flight: vec![],
            lengths: vec![],
            fragments: vec![],
            probes: vec![],
            lost_probes: vec![],
        };
        let (mut under_way, mut came) = (vec![], vec![]);
        let (mut now, mut silent) = (Time::ZERO, 0);
        let percent = rng.below(60);
        for seq in 0..600 {
            now = now + MILLISECOND * rng.below(40);
            let datagram = sent(seq, now, random_load(&mut rng, seq));
            log.on_sent(datagram, &mut |_, _| ());
            ledgers.on_sent(datagram);
            under_way.extend((rng.below(100) >= percent).then_some(seq));
            // One of the oldest arrives: some are overtaken.
            if under_way.len() > 4 {
                came.push(under_way.remove(rng.below(5) as usize));
            }
            if rng.below(30) == 0 {
                let num = (seq / 3).saturating_sub(u64::from(rng.below(8)));
                ledgers.on_state_acked(num);
                log.on_state_acked(num.into(), &mut |_, _| ());
            }
            if rng.below(30) == 0 {
                let before = now - MILLISECOND * rng.below(400);
                ledgers.expire(before);
                log.expire(before, &mut |_, _| ());
            }
            silent += 1;
            if came.is_empty() || rng.below(3) > 0 && silent < 50 {
                continue;
            }
            silent = 0;
            let report = report(came.iter().copied());
            let (expected, missing) = ledgers.on_report(now, &report);
            let mut told: BTreeMap<usize, Told> = BTreeMap::new();
            log.on_report(now, &rtt(), &report, &mut |consumer, outcome| {
                let (sent, came) = match outcome {
                    Outcome::Delivered(sent) => (sent, true),
                    Outcome::Lost(sent) => (sent, false),
                    Outcome::Spurious(_) | Outcome::Forgotten(_) => {
                        return if consumer == Consumer::Attribution {
                            attribution.on_outcome(outcome);
                        };
                    }
                };
                match consumer {
                    Consumer::Attribution => attribution.on_outcome(outcome),
                    _ if sent.load == Load::Probe => {}
                    _ => told.entry(consumer as usize).or_default().push((sent.nth, came)),
                }
            });
            let consumers = [Consumer::Congestion, Consumer::Lengths, Consumer::Transfers];
            for (consumer, expected) in consumers.into_iter().zip(expected) {
                let told = told.remove(&(consumer as usize)).unwrap_or_default();
                assert_eq!(told, expected, "seed {seed}, datagram {seq}, {consumer:?}");
            }
            attribution.judge(now, &rtt());
            assert_eq!(attribution.present(), missing, "seed {seed}, datagram {seq}");
        }
    }
}

/// A peer may name any number and set any bit.
#[test]
fn each_datagram_has_one_outcome_whatever_is_reported() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let mut log = SentLog::new(&Consumer::ALL);
        let mut told: BTreeMap<(usize, u64), Vec<&str>> = BTreeMap::new();
        let mut note = |consumer: Consumer, outcome: Outcome<'_>| {
            let (sent, word) = match outcome {
                Outcome::Delivered(sent) => (sent, "delivered"),
                Outcome::Lost(sent) => (sent, "lost"),
                Outcome::Spurious(sent) => (sent, "spurious"),
                Outcome::Forgotten(sent) => (sent, "forgotten"),
            };
            told.entry((consumer as usize, sent.nth)).or_default().push(word);
        };
        for seq in 0..3000_u64 {
            let now = Time::from_millis(seq);
            log.on_sent(sent(seq, now, random_load(&mut rng, seq)), &mut note);
            assert!(log.entries.len() <= ENTRIES_MAX);
            match rng.below(60) {
                0 => log.on_state_acked(rng.bits().into(), &mut note),
                1 => log.expire(now - MILLISECOND * rng.below(3000), &mut note),
                2 => {
                    let newest = match rng.below(3) {
                        0 => rng.bits(),
                        1 => seq + 1,
                        _ => seq.saturating_sub(u64::from(rng.below(2000))),
                    };
                    let received = u128::from(rng.bits()) << 64 | u128::from(rng.bits());
                    let report = Report { newest: Seq::new(newest), received, ..Report::default() };
                    log.on_report(now, &rtt(), &report, &mut note);
                    assert!((0.0..=1.0).contains(&log.reported_loss(&report)));
                }
                _ => {}
            }
        }
        for ((consumer, nth), told) in told {
            assert!(
                matches!(told[..], [_] | ["lost", "spurious"]) && told[0] != "spurious",
                "seed {seed}: {nth} is {told:?} to {:?}",
                Consumer::ALL[consumer]
            );
        }
    }
}

#[test]
fn what_was_never_sent_is_not_believed() {
    let mut log = SentLog::new(&Consumer::ALL);
    (0..10).for_each(|seq| log.on_sent(sent(seq, Time::ZERO, state(seq, None)), &mut |_, _| ()));
    for newest in [10, 1 << 40, Seq::MAX.get()] {
        let report = Report { newest: Seq::new(newest), received: u128::MAX, ..Report::default() };
        log.on_report(Time::ZERO, &rtt(), &report, &mut |_, outcome| panic!("{outcome:?}"));
    }
}

#[test]
fn probes_that_are_lost_are_no_loss() {
    let mut log = SentLog::new(&Consumer::ALL);
    let mut attribution = LossAttribution::default();
    for seq in 0..60 {
        let load = if seq % 20 == 10 { Load::Probe } else { Load::Control };
        log.on_sent(sent(seq, Time::ZERO, load), &mut |_, _| ());
    }
    let report = Report { loss: 20, ..report((0..60).filter(|seq| seq % 20 != 10)) };
    log.on_report(Time::ZERO, &rtt(), &report, &mut |consumer, outcome| {
        if consumer == Consumer::Attribution {
            attribution.on_outcome(outcome);
        }
    });
    attribution.judge(Time::ZERO, &rtt());
    assert_eq!(attribution.present(), 0.0);
    // Three of 59 and ten more.
    assert_eq!(log.reported_loss(&report), f64::from(20 - 3 * 256 / 69) / 256.0);
}

#[test]
fn only_what_took_the_same_path_overtakes() {
    let mut log = SentLog::new(&Consumer::ALL);
    // The numbers of a path differ from those of the session.
    for (seq, nth) in [(0, 0), (1, 1), (2, 50), (3, 51)] {
        let datagram = SentDatagram { nth, ..sent(seq, Time::ZERO, state(seq, None)) };
        log.on_sent(datagram, &mut |_, _| ());
    }
    let mut lost = vec![];
    log.on_report(Time::ZERO, &rtt(), &report([2]), &mut |consumer, outcome| {
        if let (Consumer::Congestion, Outcome::Lost(sent)) = (consumer, outcome) {
            lost.push(sent.nth);
        }
    });
    assert_eq!(lost, [0, 1]);
}
