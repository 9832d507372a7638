use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::recovery::attribution::LossAttribution;
use crate::recovery::congestion::CongestionWindow;
use crate::recovery::detect::loss_delay;
use crate::recovery::rtt::RttEstimator;
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
    Load::State { num: num.into(), fragment }
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

/// What a random sender sends next.
fn random_load(rng: &mut Rng, turn: u64) -> Load {
    match rng.below(10) {
        0 => Load::Probe,
        1..3 => Load::Control,
        3..7 => state(turn / 3, None),
        _ => state(turn / 3, Some((FragmentId::from(turn / 20), (turn % 20) as u16))),
    }
}

/// The outcomes of each datagram, by its number.
#[derive(Default)]
struct Outcomes(BTreeMap<u64, Vec<&'static str>>);

impl Outcomes {
    fn note(&mut self, outcome: Outcome<'_>) {
        let (sent, word) = match outcome {
            Outcome::Delivered(sent) => (sent, "delivered"),
            Outcome::Lost(sent) => (sent, "lost"),
            Outcome::Spurious(sent) => (sent, "spurious"),
            Outcome::Forgotten(sent) => (sent, "forgotten"),
        };
        self.0.entry(sent.nth).or_default().push(word);
    }

    fn of(&self, nth: u64) -> &[&'static str] {
        self.0.get(&nth).map_or(&[], Vec::as_slice)
    }

    /// Each datagram has one final outcome, and at most one loss before it proves spurious.
    fn check(&self, seed: u64) {
        for (nth, outcomes) in &self.0 {
            let is_right =
                matches!(outcomes[..], ["delivered" | "lost" | "forgotten"] | ["lost", "spurious"]);
            assert!(is_right, "seed {seed}: {nth} is {outcomes:?}");
        }
    }
}

/// A path that loses and reorders: the log against what really became of each datagram.
#[test]
fn outcomes_follow_the_one_rule() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let (mut log, mut attribution) = (SentLog::default(), LossAttribution::default());
        let mut window = CongestionWindow::new(Time::ZERO);
        let (mut all, mut outcomes) = (vec![], Outcomes::default());
        let (mut under_way, mut came, mut lost_probes) = (vec![], vec![], vec![]);
        let (mut now, mut silent) = (Time::ZERO, 0);
        let loss_delay = loss_delay(&rtt());
        let percent = rng.below(60);
        for seq in 0..600 {
            now = now + MILLISECOND * rng.below(40);
            let datagram = sent(seq, now, random_load(&mut rng, seq));
            if datagram.is_ack_eliciting() {
                window.on_sent(now, seq, usize::from(datagram.bytes), 0);
            }
            let mut each = |outcome: Outcome<'_>| {
                outcomes.note(outcome);
                window.on_outcome(outcome);
                attribution.on_outcome(outcome);
                if let Outcome::Lost(sent) = outcome
                    && sent.load == Load::Probe
                {
                    lost_probes.push(sent.nth);
                }
            };
            log.on_sent(datagram, &mut each);
            all.push(datagram);
            under_way.extend((rng.below(100) >= percent).then_some(seq));
            // One of the oldest arrives: some are overtaken.
            if under_way.len() > 4 {
                came.push(under_way.remove(rng.below(5) as usize));
            }
            let before = now - MILLISECOND * rng.below(800);
            let expires = rng.below(30) == 0;
            if expires {
                log.expire(before, &mut each);
            }
            silent += 1;
            let report = (!came.is_empty() && (rng.below(3) == 0 || silent == 50))
                .then(|| report(came.iter().copied()));
            if let Some(report) = &report {
                silent = 0;
                log.on_report(now, loss_delay, report, &mut each);
            }
            let in_flight =
                all.iter().filter(|one| one.is_ack_eliciting() && outcomes.of(one.nth).is_empty());
            let bytes: usize = in_flight.map(|one| usize::from(one.bytes)).sum();
            assert_eq!(window.bytes, bytes, "seed {seed}, datagram {seq}");
            if expires {
                let expired = |one: &&SentDatagram| one.is_ack_eliciting() && one.at < before;
                let mut expired = all.iter().filter(expired);
                assert!(expired.all(|one| !outcomes.of(one.nth).is_empty()), "seed {seed}");
            }
            let Some(report) = report else { continue };
            let newest = report.newest.get();
            for one in all.iter().rev().take(200) {
                let overtaken_by = newest.saturating_sub(one.nth);
                let expected = reports(&report, one.seq)
                    || is_lost(overtaken_by, now.since(one.at), loss_delay);
                // Without the rule only what expired is lost, and what a report told before.
                let outcomes = outcomes.of(one.nth);
                assert!(!expected || !outcomes.is_empty(), "seed {seed}: {} of {seq}", one.nth);
                let arrived = came.contains(&one.nth);
                assert!(arrived || !outcomes.contains(&"delivered"), "seed {seed}: {}", one.nth);
                let spurious = outcomes == ["lost"] && reports(&report, one.seq);
                assert!(!spurious, "seed {seed}: {} has arrived", one.nth);
            }
            attribution.judge(now, &rtt());
            let known = newest.saturating_sub(REORDER_THRESHOLD).min(48);
            let missing = (REORDER_THRESHOLD..REORDER_THRESHOLD + known)
                .map(|back| newest - back)
                .filter(|nth| !came.contains(nth) && !lost_probes.contains(nth));
            let missing = missing.count() as f64 / (known as f64).max(1.0);
            assert_eq!(attribution.present(), missing, "seed {seed}, datagram {seq}");
        }
        outcomes.check(seed);
    }
}

/// A peer may name any number and set any bit.
#[test]
fn each_datagram_has_one_outcome_whatever_is_reported() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let mut log = SentLog::default();
        let mut outcomes = Outcomes::default();
        let mut note = |outcome: Outcome<'_>| outcomes.note(outcome);
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
                    log.on_report(now, loss_delay(&rtt()), &report, &mut note);
                    assert!((0.0..=1.0).contains(&log.reported_loss(&report)));
                }
                _ => {}
            }
        }
        outcomes.check(seed);
    }
}

#[test]
fn what_was_never_sent_is_not_believed() {
    let mut log = SentLog::default();
    (0..10).for_each(|seq| log.on_sent(sent(seq, Time::ZERO, state(seq, None)), &mut |_| ()));
    for newest in [10, 1 << 40, Seq::MAX.get()] {
        let report = Report { newest: Seq::new(newest), received: u128::MAX, ..Report::default() };
        log.on_report(Time::ZERO, loss_delay(&rtt()), &report, &mut |outcome| {
            panic!("{outcome:?}")
        });
    }
}

#[test]
fn probes_that_are_lost_are_no_loss() {
    let mut log = SentLog::default();
    let mut attribution = LossAttribution::default();
    for seq in 0..60 {
        let load = if seq % 20 == 10 { Load::Probe } else { Load::Control };
        log.on_sent(sent(seq, Time::ZERO, load), &mut |_| ());
    }
    let report = Report { loss: 20, ..report((0..60).filter(|seq| seq % 20 != 10)) };
    log.on_report(Time::ZERO, loss_delay(&rtt()), &report, &mut |outcome| {
        attribution.on_outcome(outcome);
    });
    attribution.judge(Time::ZERO, &rtt());
    assert_eq!(attribution.present(), 0.0);
    // Three of 59 and ten more.
    assert_eq!(log.reported_loss(&report), f64::from(20 - 3 * 256 / 69) / 256.0);
}

#[test]
fn only_what_took_the_same_path_overtakes() {
    let mut log = SentLog::default();
    // The numbers of a path differ from those of the session.
    for (seq, nth) in [(0, 0), (1, 1), (2, 50), (3, 51)] {
        let datagram = SentDatagram { nth, ..sent(seq, Time::ZERO, state(seq, None)) };
        log.on_sent(datagram, &mut |_| ());
    }
    let mut lost = vec![];
    log.on_report(Time::ZERO, loss_delay(&rtt()), &report([2]), &mut |outcome| {
        if let Outcome::Lost(sent) = outcome {
            lost.push(sent.nth);
        }
    });
    assert_eq!(lost, [0, 1]);
}

/// The only news on a wire without reports.
#[test]
fn acknowledged_states_have_left_the_path() {
    let (mut log, mut outcomes) = (SentLog::default(), Outcomes::default());
    let mut note = |outcome: Outcome<'_>| outcomes.note(outcome);
    for num in 0..4 {
        log.on_sent(sent(num, Time::from_millis(num), state(num, None)), &mut note);
    }
    log.on_state_acked(1.into(), &mut note);
    log.expire(Time::from_millis(3), &mut note);
    log.on_state_acked(3.into(), &mut note);
    let expected = [["delivered"], ["delivered"], ["lost"], ["delivered"]];
    assert_eq!(outcomes.0.into_values().collect::<Vec<_>>(), expected);
}
