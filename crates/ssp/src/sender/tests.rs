use super::*;
use crate::state::toy::Toy;
use crate::timing::{Ratio, Reference};
use crate::wire::mosh::MoshWire;
use crate::wire::mosh::key::Key;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A path with this round trip, and no variation worth the name.
fn path(rtt_ms: u64) -> Path {
    let wire = Box::new(MoshWire::new(Key::from_bytes([7; 16]), Role::Client));
    let mut path = Path::new(ms(0), Role::Client, wire, &Timing::MOSH, None);
    (0..200).for_each(|_| path.rtt.sample(Duration::from_millis(rtt_ms)));
    path
}

/// Octets in a part.
const PART: usize = 50_000;

struct Bench {
    sender: Sender<Toy>,
    path: Path,
    stats: Stats,
}

impl Bench {
    fn new(rtt_ms: u64, reference: Reference) -> Bench {
        let timing = Timing { reference, ..Timing::MOSH };
        let sender = Sender::new(ms(0), Role::Client, timing, Toy::default(), 5);
        Bench { sender, path: path(rtt_ms), stats: Stats::default() }
    }

    /// The instruction sent at this moment: old, new, octets of the diff.
    fn poll(&mut self, at_ms: u64) -> Option<(u64, u64, usize)> {
        let Prepared { message, .. } =
            self.sender.poll(ms(at_ms), &self.path, PART, &mut self.stats)?;
        assert_eq!(message.throwaway, self.sender.acked());
        Some((message.old.get(), message.new.get(), message.diff.len()))
    }

    fn acknowledge(&mut self, num: u64) {
        self.sender.acknowledge(ms(0), num.into());
    }

    fn schedule_ack(&mut self, at_ms: u64) {
        self.sender.schedule_ack(ms(at_ms), &self.path.rtt, Fragmented::No);
    }

    fn push(&mut self, at_ms: u64, bytes: usize) {
        self.sender.update(ms(at_ms), |toy| toy.push(&"x".repeat(bytes)));
    }

    fn wake_ms(&self) -> Option<u64> {
        self.sender.wake(&self.path).map(Time::as_millis)
    }

    fn nums(&self) -> Vec<u64> {
        self.sender.core.history.nums()
    }
}

#[test]
fn send_interval_is_half_the_round_trip_within_bounds() {
    let bench = Bench::new(0, Reference::Assumed);
    for (rtt_ms, interval_ms) in
        [(0, 20), (40, 20), (41, 21), (100, 50), (499, 250), (501, 250), (4000, 250)]
    {
        let interval = bench.sender.send_interval(&path(rtt_ms).rtt);
        assert_eq!(interval, Duration::from_millis(interval_ms), "round trip {rtt_ms} ms");
    }
}

#[test]
fn the_walk_stops_at_the_first_expired_state() {
    // At a round trip of 100 ms a state is assumed received for 200 ms.
    let mut bench = Bench::new(100, Reference::Assumed);
    bench.push(0, 1);
    assert_eq!(bench.poll(0), Some((0, 1, 1)));
    bench.push(100, 1);
    assert_eq!(bench.poll(101), Some((1, 2, 1)));
    bench.push(198, 1);
    assert_eq!(bench.poll(199), Some((2, 3, 1)), "all are assumed");
    bench.push(260, 1);
    assert_eq!(bench.poll(261), Some((0, 4, 4)), "state 1 has expired, so none is");
    // Once state 2 is known, state 3 is assumed again; states 1 and 2 are not asked about.
    bench.acknowledge(2);
    bench.push(330, 1);
    assert_eq!(bench.poll(331), Some((4, 5, 1)));
    assert_eq!(bench.nums(), [2, 3, 4, 5]);
}

#[test]
fn expired_data_is_sent_again_at_the_send_interval() {
    let mut bench = Bench::new(100, Reference::Assumed);
    bench.push(0, 1);
    bench.poll(0);
    let mut times = Vec::new();
    while let Some(at_ms) = bench.wake_ms().filter(|&at_ms| at_ms < 400) {
        assert_eq!(bench.poll(at_ms), Some((0, 1, 1)));
        times.push(at_ms);
    }
    // The time of a resent state is refreshed: it is assumed received again.
    assert_eq!(times, [200]);
    // An empty state that nobody had to acknowledge is not: what follows it is sent again and
    // again, as captured from stock.
    bench.acknowledge(1);
    assert_eq!(bench.poll(3200), Some((1, 2, 0)));
    bench.push(3500, 1);
    assert_eq!(bench.poll(3500), None);
    let mut times = Vec::new();
    while let Some(at_ms) = bench.wake_ms().filter(|&at_ms| at_ms < 3700) {
        assert_eq!(bench.poll(at_ms), Some((1, 3, 1)));
        times.push(at_ms);
    }
    assert_eq!(times, [3501, 3551, 3601, 3651]);
}

#[test]
fn references_choose_the_base() {
    let half = Reference::Mixed { known: Ratio::new(1, 2) };
    for (reference, known_of_100) in
        [(Reference::Known, 100..=100), (Reference::Assumed, 0..=0), (half, 35..=65)]
    {
        let mut known = 0;
        let mut bench = Bench::new(100, reference);
        for turn in 0..100 {
            let at_ms = turn * 1000;
            bench.push(at_ms, 300);
            bench.poll(at_ms + 1);
            bench.push(at_ms + 2, 300);
            let (old, new, _) = bench.poll(at_ms + 60).unwrap();
            known += usize::from(old == bench.sender.acked().get());
            bench.acknowledge(new);
        }
        assert!(known_of_100.contains(&known), "{reference:?}: {known}");
    }
}

#[test]
fn one_from_the_middle_goes() {
    let mut bench = Bench::new(100, Reference::Known);
    for turn in 0..34 {
        bench.push(turn * 100, 1);
        bench.poll(turn * 100 + 1);
    }
    // The 16th from the end of 33, three times.
    let expect: Vec<u64> = (0..=34).filter(|num| ![17, 18, 19].contains(num)).collect();
    assert_eq!(bench.nums(), expect);
    // Only states still held can be acknowledged.
    for (ack, first) in [(18, 0), (99, 0), (16, 16), (3, 16), (34, 34)] {
        bench.acknowledge(ack);
        assert_eq!(bench.sender.acked().get(), first, "after an ack of {ack}");
    }
    assert_eq!(
        bench.sender.history().current().unsubtracted(),
        "",
        "what is acknowledged is forgotten"
    );
}

#[test]
fn acknowledgments_are_owed_once() {
    let mut bench = Bench::new(100, Reference::Assumed);
    assert_eq!(bench.poll(0), Some((0, 1, 0)));
    assert_eq!(bench.wake_ms(), Some(3000));
    bench.schedule_ack(500);
    bench.schedule_ack(550);
    assert_eq!(bench.wake_ms(), Some(600), "the first is not put off by the second");
    assert_eq!(bench.poll(599), None);
    assert_eq!(bench.poll(600), Some((0, 2, 0)));
    assert_eq!(bench.wake_ms(), Some(3600));
    assert_eq!((bench.stats.acks_sent, bench.stats.resends), (2, 0));
}

#[test]
fn unanswered_data_is_left_to_the_keepalives_after_10_s() {
    let mut bench = Bench::new(100, Reference::Assumed);
    bench.sender.on_state(ms(2000));
    bench.push(11_000, 1);
    assert_eq!(bench.poll(11_001), Some((0, 1, 1)));
    let mut times = Vec::new();
    while let Some(at_ms) = bench.wake_ms().filter(|&at_ms| at_ms < 20_000) {
        assert_eq!(bench.poll(at_ms), Some((0, 1, 1)));
        times.push(at_ms);
    }
    assert_eq!(times, [11_201, 11_401, 11_601, 11_801, 14_801, 17_801]);
}

#[test]
fn repairs_leave_the_clocks_of_later_states_alone() {
    let mut bench = rove(100);
    bench.push(100, 5000);
    assert_eq!(bench.poll(110).map(|prepared| prepared.1), Some(1));
    bench.push(200, 1);
    assert_eq!(bench.poll(250).map(|prepared| prepared.1), Some(2));
    let wake = bench.wake_ms();
    let repair = |bench: &mut Bench, num: u64, at: u64| {
        let Bench { sender, .. } = bench;
        assert!(sender.on_datagram_sent(num.into()));
        sender.said_more(ms(at), num.into());
    };
    repair(&mut bench, 1, 260);
    assert_eq!(bench.wake_ms(), wake, "state 2 is awaited as before");
    assert_eq!(bench.sender.core.history.oldest().unwrap().last_sent, ms(260));
    assert_eq!(bench.sender.core.history.last().last_sent, ms(250));
    repair(&mut bench, 2, 261);
    assert!(bench.wake_ms() > wake);
    assert_eq!(bench.sender.core.history.last().last_sent, ms(261));
}

fn rove(rtt_ms: u64) -> Bench {
    let sender = Sender::new(ms(0), Role::Client, Timing::ROVE, Toy::default(), 5);
    Bench { sender, path: path(rtt_ms), stats: Stats::default() }
}

/// A stock server polls without a pause while the newest state it sent is not acknowledged (§11, 11).
#[test]
fn a_stock_server_is_acknowledged_with_empty_states() {
    for (role, timing, beat_ms, ack) in [
        (Role::Client, Timing::ROVE_TO_STOCK, Some(600), Some((1, 2, 0))),
        // Between two ends of this kind one must not answer the other's empty states.
        (Role::Server, Timing::ROVE_TO_STOCK, None, Some((1, 1, 0))),
        (Role::Client, Timing::ROVE, None, Some((1, 1, 0))),
    ] {
        let sender = Sender::new(ms(0), role, timing, Toy::default(), 5);
        let mut bench = Bench { sender, path: path(100), stats: Stats::default() };
        assert_eq!(bench.poll(0), Some((0, 1, 0)));
        bench.acknowledge(1);
        bench.sender.on_empty_state(ms(500));
        assert_eq!(bench.wake_ms(), beat_ms.or(Some(3000)), "{role:?}");
        bench.schedule_ack(500);
        assert_eq!(bench.poll(599), None);
        assert_eq!(bench.poll(600), ack, "{role:?}");
        // A state says that we are there, so the next sign of life is due as long after it.
        assert_eq!(bench.wake_ms(), Some(if ack == Some((1, 2, 0)) { 3600 } else { 3000 }));
    }
}

#[test]
fn an_acknowledgment_tells_nothing_that_is_pending() {
    let sender = Sender::new(ms(0), Role::Client, Timing::ROVE_TO_STOCK, Toy::default(), 5);
    let mut bench = Bench { sender, path: path(400), stats: Stats::default() };
    bench.push(0, 3);
    assert_eq!(bench.poll(0), Some((0, 1, 3)));
    bench.schedule_ack(10);
    assert_eq!(bench.poll(110), Some((0, 0, 0)));
    bench.acknowledge(1);
    bench.schedule_ack(420);
    assert_eq!(bench.poll(520), Some((1, 2, 0)));
}

/// Both policies say that we are there while the object is too long to be sent, and the peer has none of it then.
#[test]
fn a_beat_in_place_of_what_is_too_long_holds_none_of_it() {
    for mut bench in [Bench::new(100, Reference::Known), rove(100)] {
        assert_eq!(bench.poll(0), Some((0, 1, 0)));
        bench.acknowledge(1);
        bench.push(100, crate::sender::core::DIFF_BYTES_MAX + 1);
        let beat = loop {
            let at_ms = bench.wake_ms().unwrap();
            assert!(at_ms <= 3_000, "{at_ms}");
            if let Some(sent) =
                bench.sender.poll(ms(at_ms), &bench.path, usize::MAX, &mut bench.stats)
            {
                break sent.message;
            }
        };
        assert_eq!((beat.new.get(), beat.diff.len()), (2, 0));
        bench.acknowledge(2);
        let untold = bench.sender.core.history.known_diff().len();
        assert_eq!(untold, crate::sender::core::DIFF_BYTES_MAX + 1);
    }
}

/// The peer may hold by then what was sent before.
#[test]
fn a_beat_in_place_of_what_is_too_long_takes_nothing_back() {
    let mut bench = rove(100);
    assert_eq!(bench.poll(0), Some((0, 1, 0)));
    bench.acknowledge(1);
    bench.push(100, 7);
    assert_eq!(bench.poll(110), Some((1, 2, 7)));
    bench.push(120, crate::sender::core::DIFF_BYTES_MAX + 1);
    let poll = |bench: &mut Bench, at| {
        let sent = bench.sender.poll(ms(at), &bench.path, 1 << 30, &mut bench.stats);
        sent.map(|sent| (sent.message.old.get(), sent.message.new.get(), sent.message.diff.len()))
    };
    let mut beats = Vec::new();
    while let Some(at_ms) = bench.wake_ms().filter(|at_ms| *at_ms < 7_000) {
        beats.extend(poll(&mut bench, at_ms));
    }
    assert_eq!(beats, [(1, 2, 7); 2]);
    bench.acknowledge(2);
    let at_ms = bench.wake_ms().unwrap();
    let too_long = crate::sender::core::DIFF_BYTES_MAX + 1;
    assert_eq!(bench.sender.core.history.known_diff().len(), too_long);
    assert_eq!(poll(&mut bench, at_ms), None, "it is still too long");
    let at_ms = bench.wake_ms().unwrap();
    assert_eq!(poll(&mut bench, at_ms), Some((2, 3, 0)), "nothing is awaited");
}

/// What hides lengths costs octets, so that it ends with the acknowledgment.
#[test]
fn a_hidden_change_is_hidden_until_the_peer_has_it() {
    for mut bench in [Bench::new(100, Reference::Known), rove(100)] {
        assert_eq!(bench.poll(0), Some((0, 1, 0)));
        bench.acknowledge(1);
        assert!(!bench.sender.hides());
        bench.sender.update_hidden(ms(100), |toy| toy.push("secret"));
        bench.acknowledge(1);
        let mut sent = None;
        while sent.is_none() {
            assert!(bench.sender.hides());
            let at_ms = bench.wake_ms().unwrap();
            sent = bench.poll(at_ms);
        }
        assert_eq!(sent, Some((1, 2, 6)));
        bench.push(400, 1);
        assert!(bench.sender.hides());
        bench.acknowledge(2);
        assert!(!bench.sender.hides());
    }
}

#[test]
fn what_is_long_is_told_in_parts() {
    let mut bench = rove(100);
    bench.push(100, 2 * PART + 10);
    assert_eq!(bench.poll(110), Some((0, 1, PART)));
    // The next part starts from this one, so it waits for the peer; what is typed meanwhile comes after.
    bench.push(120, 1);
    assert_eq!(bench.poll(130), None);
    let again_at = bench.wake_ms().unwrap();
    assert!((210..400).contains(&again_at), "{again_at}");
    assert_eq!(bench.poll(again_at), Some((0, 1, PART)), "as it was");
    bench.acknowledge(1);
    assert_eq!(bench.poll(500), Some((1, 2, PART)));
    // Another network: nothing is told that takes back what the peer may hold.
    bench.sender.refuse();
    assert_eq!(bench.poll(510), Some((1, 2, PART)));
    bench.acknowledge(2);
    assert_eq!(bench.poll(700), Some((2, 3, 11)));
    bench.acknowledge(3);
    assert_eq!(bench.sender.history().current().unsubtracted(), "");
}

#[test]
fn a_beat_says_no_part_again() {
    // A round trip that is longer than the time between two beats.
    let mut bench = rove(4000);
    bench.push(100, 2 * PART);
    assert_eq!(bench.poll(110), Some((0, 1, PART)));
    let beat_at = bench.wake_ms().unwrap();
    assert_eq!(beat_at, 3110);
    assert_eq!(bench.poll(beat_at), Some((0, 0, 0)), "that we are there");
    let wake = bench.wake_ms().unwrap();
    assert!(wake > 4100, "{wake}");
    assert_eq!(
        bench.sender.core.history.last().last_sent,
        ms(110),
        "the part is awaited as before"
    );
    // Another network is another thing.
    bench.sender.refuse();
    assert_eq!(bench.poll(3200), Some((0, 1, PART)));
}

#[test]
fn what_comes_in_pieces_is_told_in_parts() {
    let mut bench = rove(100);
    let piece = PART / 5;
    bench.push(100, piece);
    assert_eq!(bench.poll(110), Some((0, 1, piece)));
    bench.push(130, 2 * piece);
    assert_eq!(bench.poll(150), Some((1, 2, 2 * piece)), "all of it is no more than a part");
    bench.push(151, 3 * piece + 1);
    assert_eq!(bench.poll(170), None, "now it is, though there is little new");
    bench.acknowledge(1);
    assert_eq!(bench.poll(211), None, "not all that was said is known");
    let again_at = bench.wake_ms().unwrap();
    assert_eq!(bench.poll(again_at), Some((1, 2, 2 * piece)), "as it was");
    bench.acknowledge(2);
    assert_eq!(bench.poll(500), Some((2, 3, 3 * piece + 1)));
}

/// What the peer holds now brings the rest below a part: that waits for nothing.
#[test]
fn no_part_is_made_of_what_has_become_short() {
    let mut bench = rove(100);
    let piece = PART / 5;
    bench.push(100, piece);
    assert_eq!(bench.poll(110), Some((0, 1, piece)));
    bench.push(130, 2 * piece);
    assert_eq!(bench.poll(150), Some((1, 2, 2 * piece)));
    bench.push(151, PART - 3 * piece + 1);
    assert_eq!(bench.poll(170), None, "all of it is more than a part");
    bench.acknowledge(1);
    let wake = bench.wake_ms();
    assert!(wake.is_some_and(|at| at <= 211), "{wake:?}");
    assert_eq!(bench.poll(211), Some((2, 3, PART - 3 * piece + 1)), "while 2 is awaited");
}

#[test]
fn parts_wait_for_what_was_said_before() {
    let mut bench = rove(100);
    bench.push(100, 1);
    assert_eq!(bench.poll(110), Some((0, 1, 1)));
    bench.push(130, PART + 1);
    assert_eq!(bench.poll(150), None);
    bench.acknowledge(1);
    assert_eq!(bench.poll(211), Some((1, 2, PART)), "no more than a part");
    bench.push(230, 3 * PART);
    bench.poll(250);
    bench.sender.close(ms(260));
    assert_eq!(bench.poll(350), Some((2, u64::MAX, 3 * PART + 1)), "the end is told whole");
}

/// Nobody reads what was typed any more, however much of it there is.
#[test]
fn a_client_that_is_left_only_says_goodbye() {
    let mut bench = rove(100);
    bench.push(100, 3 * PART);
    assert_eq!(bench.poll(110), Some((0, 1, PART)));
    assert!(bench.sender.peer_closes(ms(150)));
    for at_ms in [150, 155, 165, 185] {
        assert_eq!(bench.wake_ms(), Some(at_ms));
        assert_eq!(bench.poll(at_ms), Some((0, 0, 0)));
        assert_eq!(bench.poll(at_ms), None);
    }
}

#[test]
fn closing_hurries_both_ends() {
    let mut bench = Bench::new(100, Reference::Assumed);
    bench.poll(0);
    assert!(bench.sender.peer_closes(ms(0)));
    assert!(!bench.sender.peer_closes(ms(0)), "no news");
    assert_eq!(bench.wake_ms(), Some(20), "the shortest interval after the last send");

    let mut bench = Bench::new(100, Reference::Assumed);
    bench.push(0, 1);
    bench.poll(0);
    bench.sender.close(ms(10));
    let tries: Vec<_> = (1..=17).map(|turn| bench.poll(turn * 50)).collect();
    let last = u64::MAX;
    // While state 1 is assumed received the last state follows from it; then from state 0. The last
    // state itself is no base, however recent.
    assert_eq!(
        tries[..5],
        [(1, last, 0), (1, last, 0), (1, last, 0), (0, last, 1), (0, last, 1)].map(Some)
    );
    assert_eq!(tries[15..], [Some((0, last, 1)), None]);
    assert_eq!(bench.wake_ms(), None);
    // The last try was at 800 ms; its answer is awaited for one more timeout.
    assert_eq!(bench.sender.close_deadline(&bench.path.rtt), Some(ms(900)));
}

/// When the end is said, up to this time.
fn announced(bench: &mut Bench, until_ms: u64) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(at_ms) = bench.wake_ms().filter(|&at_ms| at_ms <= until_ms) {
        times.extend(bench.poll(at_ms).map(|_| at_ms));
    }
    times
}

/// Who waits for an answer without a limit says it less and less often, until the peer is heard again.
#[test]
fn a_goodbye_that_nobody_answers_backs_off() {
    for mut bench in [Bench::new(100, Reference::Assumed), rove(100)] {
        bench.push(0, 1);
        bench.poll(10);
        bench.acknowledge(1);
        bench.push(20, 1);
        bench.sender.close_and_wait();
        let times = announced(&mut bench, 60_000);
        let waits: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(waits[..15], [50; 15], "as stock");
        let slow = [100, 200, 400, 800, 1600, 3200, 6400];
        assert_eq!(waits[15..22], slow);
        assert!(waits[22..].iter().all(|wait| *wait == 10_000), "{waits:?}");
        assert_eq!(waits.len(), 26);
        assert_eq!(bench.sender.close_deadline(&bench.path.rtt), None);
        bench.sender.on_datagram(ms(60_000), &bench.path, 0.0, None);
        assert!(bench.wake_ms().is_some_and(|at_ms| at_ms <= 60_000), "at once");
        assert!(bench.poll(60_000).is_some());
        assert_eq!(announced(&mut bench, 60_100), [60_050, 60_100]);
        bench.acknowledge(u64::MAX);
        assert_eq!(bench.sender.acked(), StateNum::SHUTDOWN);
    }
}
