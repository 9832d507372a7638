//! Two endpoints with small states, in virtual time: every rule of `mosh-protocol.md` §4 that can be
//! seen from outside.

mod common;

use common::{Hand, Weather, World, client, drain, message, ms, run_until, server, span};
use rove_ssp::{
    Announcement, Event, Instruction, Machine, Outbox, Role, Session, StateNum, Time, Timing, state,
};

#[test]
fn the_toys_obey_the_laws() {
    let mut log = common::Log::default();
    let empty = log.clone();
    log.push(b"some");
    let some = log.clone();
    log.push(b" more");
    let mut page = common::Page::default();
    let blank = page.clone();
    page.write(3, b"text");
    for (a, b) in [(&empty, &empty), (&empty, &some), (&some, &log), (&empty, &log)] {
        state::laws(a, b);
    }
    for (a, b) in [(&blank, &blank), (&blank, &page), (&page, &blank)] {
        state::laws(a, b);
    }
}

#[test]
fn converges_in_any_weather() {
    let weathers = [
        Weather::CLEAR,
        Weather { loss_percent: 50, ..Weather::CLEAR },
        Weather { delay_ms: 250, jitter_ms: 400, loss_percent: 10, ..Weather::CLEAR },
        Weather { loss_percent: 29, duplicate_percent: 30, corrupt_percent: 5, ..Weather::CLEAR },
        Weather { delay_ms: 3000, loss_percent: 20, ..Weather::CLEAR },
    ];
    for seed in 0..40 {
        for weather in weathers {
            converges(seed, weather);
        }
    }
}

fn converges(seed: u64, weather: Weather) {
    let case = format!("seed {seed}, {weather:?}");
    let mut world = World::new(seed, weather, &Timing::MOSH);
    let mut typed = Vec::new();
    for step in 0u64..400 {
        if world.chance(30) {
            let key = world.below(256) as u8;
            typed.push(key);
            let now = world.now;
            world.client.update(now, |log| log.push(&[key]));
        }
        if world.chance(50) {
            let (start, byte) = (world.below(200) as usize, world.below(4) as u8);
            let now = world.now;
            world.server.update(now, |page| page.write(start, &[byte; 7]));
        }
        if world.chance(2) {
            let port = 4000 + world.below(9) as u16;
            world.client_from.set_port(port);
        }
        world.run(ms(50 * (step + 1)));
    }
    world.weather = Weather::CLEAR;
    world.run(ms(20_000 + 30_000));
    assert!(world.read == typed, "{case}: every key once and in order");
    assert!(world.client.remote() == world.server.local(), "{case}: the pages are equal");
    assert!(world.server.remote() == world.client.local(), "{case}: the logs are equal");
    assert!(world.client.local().held() == 0, "{case}: what both ends hold is forgotten");
    assert!(world.turns < 20_000, "{case}: {} turns are a busy loop", world.turns);
}

#[test]
fn a_seed_is_a_run() {
    let run = || {
        let weather = Weather { loss_percent: 29, jitter_ms: 90, ..Weather::CLEAR };
        let mut world = World::new(7, weather, &Timing::MOSH);
        for step in 0..200 {
            let now = world.now;
            world.server.update(now, |page| page.write(step as usize, b"x"));
            world.run(ms(50 * (step + 1)));
        }
        (world.datagrams, world.turns, world.server.stats().clone(), world.client.stats().clone())
    };
    assert_eq!(run(), run());
}

/// The capture "idle stock server": what it sent and when, in our virtual time.
#[test]
fn an_idle_server_speaks_as_stock_does() {
    let mut server = server(ms(0), Timing::MOSH);
    let mut hand = Hand::new(Role::Client);
    assert_eq!(drain(ms(5), &mut server), []);
    assert_eq!(server.poll_timeout(), None, "nobody to speak to");

    hand.send(ms(10), &mut server, &message(0, 1, 0, b"+resize")).unwrap();
    assert_eq!(server.poll_event(), Some(Event::NewRemote { num: 1.into() }));
    // Time, old, new, ack.
    let mut seen = Vec::new();
    for (_, datagram) in drain(ms(10), &mut server) {
        let message = hand.read(&datagram);
        seen.push((10, message.old.get(), message.new.get(), message.ack.get()));
    }
    for (at, _, datagram) in run_until(ms(7000), &mut server) {
        let message = hand.read(&datagram);
        assert!(message.diff.is_empty() && message.chaff.len() <= 16);
        seen.push((at.as_millis(), message.old.get(), message.new.get(), message.ack.get()));
    }
    assert_eq!(seen, [(10, 0, 1, 1), (3010, 0, 2, 1), (6010, 0, 3, 1)]);
}

#[test]
fn ends_announce_themselves_until_they_are_heard() {
    let mut world = World::new(3, Weather { loss_percent: 50, ..Weather::CLEAR }, &Timing::MOSH);
    for step in 0..200 {
        let now = world.now;
        world.client.update(now, |log| log.push(b"k"));
        world.server.update(now, |page| page.write(step, b"x"));
        world.run(ms(50 * (step as u64 + 1)));
    }
    assert!(world.client.extensions_agreed() && world.server.extensions_agreed());
}

/// Stock's instructions have no field 8: it is asked for a while, and nothing comes of it.
#[test]
fn stock_makes_no_acquaintance() {
    let mut server = server(ms(0), Timing::MOSH);
    let mut hand = Hand::new(Role::Client);
    let mut said = Vec::new();
    for key in 0..40 {
        let now = ms(100 * (key + 1));
        hand.send(now, &mut server, &message(key, key + 1, 0, b"+k")).unwrap();
        for (_, datagram) in drain(now + span(100), &mut server) {
            said.push(hand.read(&datagram).announcement);
        }
    }
    assert!(said.len() > 20);
    assert_eq!(said.first(), Some(&Announcement::ASKS));
    assert_eq!(said.last(), Some(&Announcement::NONE));
    assert!(!server.extensions_agreed());
}

#[test]
fn acknowledgments_wait_for_data() {
    let mut server = server(ms(0), Timing::MOSH);
    let mut hand = Hand::new(Role::Client);
    hand.send(ms(0), &mut server, &message(0, 1, 0, b"+a")).unwrap();
    assert_eq!(drain(ms(0), &mut server).len(), 1);

    // An empty state owes none; one with a diff does, 100 ms later.
    hand.send(ms(1000), &mut server, &message(1, 2, 1, b"")).unwrap();
    assert_eq!(server.poll_timeout(), Some(ms(3000)));
    hand.send(ms(1010), &mut server, &message(2, 3, 1, b"+b")).unwrap();
    assert_eq!(server.poll_timeout(), Some(ms(1110)));
    // Data takes it along.
    server.update(ms(1050), |page| page.write(0, b"b"));
    assert_eq!(drain(ms(1050), &mut server), [], "writes are gathered");
    assert_eq!(server.poll_timeout(), Some(ms(1058)));
    let sent = drain(ms(1058), &mut server);
    assert_eq!(sent.len(), 1);
    let reply = hand.read(&sent[0].1);
    assert_eq!((reply.old.get(), reply.new.get(), reply.ack.get()), (1, 2, 3));
    // The data is in doubt after RTO + 100 ms, well before the next keepalive.
    assert_eq!(server.poll_timeout(), Some(ms(1058 + 1100)));
}

#[test]
fn keys_are_gathered_for_a_millisecond_and_paced() {
    let mut client = client(ms(0), Timing::MOSH);
    client.update(ms(0), |log| log.push(b"size"));
    let sent: Vec<u64> =
        run_until(ms(0), &mut client).iter().map(|(at, ..)| at.as_millis()).collect();
    assert_eq!(sent, [0], "the first state goes out at once");

    let mut hand = Hand::new(Role::Server);
    hand.send(ms(50), &mut client, &message(0, 1, 1, b"")).unwrap();
    client.update(ms(400), |log| log.push(b"a"));
    assert_eq!(drain(ms(400), &mut client), []);
    assert_eq!(client.poll_timeout(), Some(ms(401)));
    client.update(ms(401), |log| log.push(b"b"));
    let sent = drain(ms(401), &mut client);
    assert_eq!(hand.read(&sent[0].1).diff, b"+ab");
    // Without a round-trip sample the interval is at its longest.
    client.update(ms(402), |log| log.push(b"c"));
    assert_eq!(drain(ms(402), &mut client), []);
    assert_eq!(client.poll_timeout(), Some(ms(651)));
}

#[test]
fn unacknowledged_data_is_sent_again_from_the_known_state() {
    let mut client = client(ms(0), Timing::MOSH);
    client.update(ms(0), |log| log.push(b"a"));
    let mut hand = Hand::new(Role::Server);
    // Time, old, new, diff of each instruction, with nothing coming back: after RTO + 100 ms the data
    // is in doubt, 10 s after the start only the keepalives are left.
    let seen: Vec<(u64, u64, u64, Vec<u8>)> = run_until(ms(16_000), &mut client)
        .iter()
        .map(|(at, _, datagram)| {
            let message = hand.read(datagram);
            (at.as_millis(), message.old.get(), message.new.get(), message.diff)
        })
        .collect();
    let times: Vec<u64> = seen.iter().map(|entry| entry.0).collect();
    assert_eq!(times, [0, 1100, 2200, 3300, 4400, 5500, 6600, 7700, 8800, 9900, 12_900, 15_900]);
    assert!(seen.iter().all(|(_, old, new, diff)| (*old, *new, &diff[..]) == (0, 1, b"+a")));
    assert_eq!(client.stats().resends, 11);
}

#[test]
fn a_small_diff_starts_from_the_known_state() {
    // Octets written at first, octets written next, the base of the second: recent data is assumed
    // received only where saying it again would cost 100 octets or more.
    for (first, second, base) in [(10, 10, 0), (98, 10, 0), (101, 10, 1), (1200, 10, 1)] {
        let mut client = client(ms(0), Timing::MOSH);
        client.update(ms(0), |log| log.push(&vec![b'a'; first]));
        assert_eq!(drain(ms(0), &mut client).len(), 1);
        client.update(ms(300), |log| log.push(&vec![b'b'; second]));
        let sent = run_until(ms(400), &mut client);
        let message = Hand::new(Role::Server).read(&sent[0].2);
        assert_eq!((message.old.get(), message.new.get()), (base, 2), "{first} octets");
        assert_eq!(message.throwaway, StateNum::ZERO);
    }
}

#[test]
fn an_object_that_changes_back_is_told() {
    let mut server = server(ms(0), Timing::MOSH);
    let mut hand = Hand::new(Role::Client);
    hand.send(ms(0), &mut server, &message(0, 1, 0, b"+a")).unwrap();
    drain(ms(0), &mut server);
    hand.send(ms(10), &mut server, &message(1, 2, 1, b"")).unwrap();
    // State 2 is lost or not: the peer must see the blank page of state 1 again either way.
    server.update(ms(300), |page| page.write(0, b"x"));
    let sent = run_until(ms(308), &mut server);
    assert_eq!((sent.len(), hand.read(&sent[0].2).new.get()), (1, 2));
    server.update(ms(320), |page| page.write(0, b" "));
    let sent = run_until(ms(600), &mut server);
    let message = hand.read(&sent[0].2);
    assert_eq!((message.old.get(), message.new.get()), (2, 3));
    assert_eq!(message.diff, [0, b' ']);
    // Unanswered, it is said again in the words that always work: as state 1 was.
    let sent = run_until(ms(2000), &mut server);
    let message = hand.read(&sent[0].2);
    assert_eq!((message.old.get(), message.new.get()), (1, 3));
    assert_eq!(message.diff, []);
    // Once answered, there is silence until the keepalive.
    let last = sent.last().unwrap().0;
    hand.send(ms(2000), &mut server, &message_ack(3)).unwrap();
    assert_eq!(server.poll_timeout(), Some(last + span(3000)));
}

fn message_ack(ack: u64) -> Instruction {
    message(2, 3, ack, b"")
}

#[test]
fn an_object_that_changes_back_before_it_was_sent_is_no_news() {
    let mut server = server(ms(0), Timing::MOSH);
    Hand::new(Role::Client).send(ms(0), &mut server, &message(0, 1, 0, b"+a")).unwrap();
    drain(ms(0), &mut server);
    server.update(ms(300), |page| page.write(0, b"x"));
    assert_eq!(drain(ms(300), &mut server), []);
    server.update(ms(301), |page| page.write(0, b" "));
    assert_eq!(drain(ms(301), &mut server), []);
    assert_eq!(server.poll_timeout(), Some(ms(3000)));
}

#[test]
fn early_polls_are_harmless() {
    let mut client = client(ms(0), Timing::MOSH);
    client.update(ms(0), |log| log.push(b"a"));
    drain(ms(0), &mut client);
    let timeout = client.poll_timeout();
    for at_ms in 0..1000 {
        assert_eq!(drain(ms(at_ms), &mut client), []);
        assert_eq!(client.poll_timeout(), timeout);
    }
}

#[test]
fn sent_states_are_bounded_and_the_base_stays() {
    let mut client = client(ms(0), Timing::MOSH);
    let mut hand = Hand::new(Role::Server);
    client.update(ms(0), |log| log.push(b"."));
    drain(ms(0), &mut client);
    hand.send(ms(1), &mut client, &message(0, 1, 1, b"")).unwrap();
    let mut last = None;
    for step in 1..200u64 {
        client.update(ms(250 * step), |log| log.push(b"k"));
        let sent = run_until(ms(250 * step + 249), &mut client);
        last = sent.last().map(|(.., datagram)| hand.read(datagram)).or(last);
        assert_eq!(client.acked(), 1.into(), "the acknowledged base is kept");
    }
    let last = last.unwrap();
    assert_eq!((last.old.get(), last.throwaway.get()), (1, 1));
    assert_eq!(last.diff.len(), 200, "all unacknowledged keys, again");
    // One acknowledgment of a state still held frees everything before it.
    hand.send(ms(60_000), &mut client, &message(1, 2, last.new.get(), b"")).unwrap();
    assert_eq!(client.acked(), last.new);
    assert_eq!(client.local().held(), 0);
}

#[test]
fn a_path_with_a_small_mtu_gets_small_datagrams_at_once() {
    let mut client = client(ms(0), Timing::MOSH);
    let mut noise = Vec::new();
    rove_ssp::Rng::new(1).fill(3000, &mut noise);
    client.update(ms(0), |log| log.push(&noise));
    let mut out = Outbox::default();
    assert!(client.poll_transmit(ms(0), &mut out).is_some());
    assert_eq!(out.datagram.len(), 1252);
    client.datagram_too_big();
    let sent = drain(ms(0), &mut client);
    assert_eq!(sent.len(), 7);
    assert!(sent.iter().all(|(_, datagram)| datagram.len() <= 500));
    client.datagram_too_big();
    assert_eq!(drain(ms(0), &mut client), [], "there is nothing smaller to try");
}

#[test]
fn a_diff_too_long_to_travel_waits_and_does_not_spin() {
    let mut world = World::new(1, Weather::CLEAR, &Timing::MOSH);
    world.run(ms(500));
    let now = world.now;
    world.client.update(now, |log| log.push(&vec![7; 5 << 20]));
    world.run(ms(10_500));
    assert!(world.client.stats().diffs_too_long > 0);
    assert!(world.turns < 200, "{} turns", world.turns);
    assert!(world.client.acks_are_recent(world.now), "it still says that it is there");
}

trait Recent {
    fn acks_are_recent(&self, now: Time) -> bool;
}

impl Recent for common::Client {
    fn acks_are_recent(&self, now: Time) -> bool {
        now.since(self.acked_sent_at()) < span(7000)
    }
}

#[test]
fn either_end_can_close() {
    for closer in [Role::Client, Role::Server] {
        let mut world = World::new(3, Weather::CLEAR, &Timing::MOSH);
        world.run(ms(1000));
        // What is outstanding rides on the last state.
        let now = world.now;
        match closer {
            Role::Client => {
                world.client.update(now, |log| log.push(b"bye"));
                world.client.close(now);
                world.client.update(now, |log| log.push(b"too late"));
            }
            Role::Server => {
                world.server.update(now, |page| page.write(0, b"bye"));
                world.server.close(now);
                world.server.update(now, |page| page.write(0, b"too late"));
            }
        }
        assert_ne!(world.client.closing(), world.server.closing());
        world.run(ms(3000));
        assert!(world.client.remote() == world.server.local(), "{closer:?}");
        assert!(world.server.remote() == world.client.local(), "{closer:?}");
        let clean = Event::Closed { clean: true };
        assert_eq!(world.client_events.last(), Some(&clean), "{closer:?}");
        assert_eq!(world.server_events.last(), Some(&clean), "{closer:?}");
        let (asked, told) = match closer {
            Role::Client => (&world.client_events, &world.server_events),
            Role::Server => (&world.server_events, &world.client_events),
        };
        assert!(told.contains(&Event::NewRemote { num: StateNum::SHUTDOWN }));
        assert!(told.contains(&Event::PeerClosing));
        assert!(!asked.contains(&Event::PeerClosing));
        assert_eq!((world.client.poll_timeout(), world.server.poll_timeout()), (None, None));
        assert_eq!(drain(world.now, &mut world.client), []);
    }
}

/// The acknowledgment of a shutdown is sent once (§4.4), so under loss one end may have to give up; but
/// each ends, and says so once.
#[test]
fn both_ends_can_close_at_once_and_under_loss() {
    for seed in 0..60 {
        let weather = Weather { loss_percent: 20, jitter_ms: 30, ..Weather::CLEAR };
        let mut world = World::new(seed, Weather::CLEAR, &Timing::MOSH);
        world.run(ms(3000));
        world.weather = weather;
        let now = world.now;
        world.client.close(now);
        world.server.close(now);
        world.run(ms(20_000));
        for events in [&world.client_events, &world.server_events] {
            let ends = events.iter().filter(|event| matches!(event, Event::Closed { .. })).count();
            assert_eq!(ends, 1, "seed {seed}");
        }
        let clean = Event::Closed { clean: true };
        let either = world.client_events.contains(&clean) || world.server_events.contains(&clean);
        assert!(either, "seed {seed}");
    }
}

/// A server that says goodbye more often lets more clients leave cleanly.
#[test]
fn goodbyes_can_be_repeated() {
    let mut clean = [0, 0];
    for (index, final_acks) in [1, 4].into_iter().enumerate() {
        for seed in 0..100 {
            let timing = Timing { final_acks, ..Timing::MOSH };
            let mut world = World::new(seed, Weather::CLEAR, &timing);
            world.run(ms(3000));
            world.weather.loss_percent = 30;
            let now = world.now;
            world.client.close(now);
            world.run(ms(20_000));
            let left = world.client_events.contains(&Event::Closed { clean: true });
            clean[index] += u32::from(left);
        }
    }
    assert!(clean[0] < 85 && clean[1] > 95, "{clean:?} of 100 clients left cleanly");
}

/// The server ends the session, and the client's first answers are lost. Returns when the answers leave, in milliseconds since
/// the first, and whether the server hears one.
fn answers_to_the_end(mut world: World, loss_percent: u32, lost: usize) -> (Vec<u64>, bool) {
    world.run(ms(2000));
    world.weather.loss_percent = loss_percent;
    // Enough to measure it by.
    for step in 0..200 {
        let now = world.now;
        world.client.update(now, |log| log.push(b"k"));
        world.server.update(now, |page| page.write(step, b"echo"));
        world.run(now + span(50));
    }
    world.weather.loss_percent = 0;
    world.run(world.now + span(1000));
    world.server.close_and_wait();
    let (mut sent, mut over) = (Vec::new(), 0);
    let end = world.now + span(5000);
    while world.now < end {
        let now = world.now;
        for (_, mut datagram) in drain(now, &mut world.server) {
            // Whoever has left is not driven.
            if over == 0 || world.client.lingers() {
                let arrival = Hand::new(Role::Server).arrival();
                let _ = world.client.handle_datagram(now, arrival, &mut datagram);
            }
        }
        for (_, mut datagram) in drain(now, &mut world.client) {
            if !world.client.closing() {
                continue;
            }
            sent.push(now);
            if sent.len() > lost {
                let arrival = Hand::new(Role::Client).arrival();
                let _ = world.server.handle_datagram(now, arrival, &mut datagram);
            }
        }
        let ends = std::iter::from_fn(|| world.client.poll_event());
        over += ends.filter(|event| *event == Event::Closed { clean: true }).count();
        world.now = now + span(1);
    }
    assert_eq!((over, world.client.poll_timeout()), (1, None), "it ends, and says so once");
    let heard = std::iter::from_fn(|| world.server.poll_event());
    let heard = heard.filter(|event| *event == Event::Closed { clean: true }).count();
    (sent.iter().map(|at| at.since(sent[0]).as_millis() as u64).collect(), heard == 1)
}

/// A client whose session the server has ended says several times that it knows, with growing gaps, and longer where much is
/// lost. A stock server hears it once, as stock does.
#[test]
fn the_answer_to_the_end_may_be_lost() {
    let clear = [0, 5, 15, 35];
    let lossy = [0, 5, 15, 35, 75, 155];
    for (timing, loss, times) in [
        (Timing::ROVE, 0, clear.as_slice()),
        (Timing::ROVE, 30, &lossy),
        (Timing::ROVE_TO_STOCK, 0, &[0]),
        (Timing::ROVE_TO_STOCK, 30, &[0]),
        (Timing::MOSH, 30, &[0]),
    ] {
        for lost in 0..=times.len() {
            let mut worlds = vec![World::new(7, Weather::CLEAR, &timing)];
            if timing == Timing::ROVE {
                worlds.push(World::native(7, Weather::CLEAR, &timing));
            }
            for world in worlds {
                let (sent, heard) = answers_to_the_end(world, loss, lost);
                assert_eq!(sent, times, "{lost} lost at {loss} %");
                assert_eq!(heard, lost < times.len(), "{lost} lost at {loss} %");
            }
        }
    }
}

#[test]
fn nobody_answers_a_shutdown() {
    let mut client = client(ms(0), Timing::MOSH);
    client.update(ms(0), |log| log.push(b"a"));
    drain(ms(0), &mut client);
    client.close(ms(1000));
    let sent = run_until(ms(60_000), &mut client);
    assert_eq!(sent.len(), 16);
    assert!(sent.windows(2).all(|pair| pair[1].0.since(pair[0].0) == span(250)));
    let mut hand = Hand::new(Role::Server);
    for (.., datagram) in &sent {
        let message = hand.read(datagram);
        assert_eq!((message.old, message.new), (StateNum::ZERO, StateNum::SHUTDOWN));
        assert_eq!(message.diff, b"+a");
    }
    assert_eq!(client.poll_event(), Some(Event::Closed { clean: false }));
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn a_server_without_a_client_closes_at_once() {
    let mut server = server(ms(0), Timing::MOSH);
    server.close(ms(10));
    assert_eq!(server.poll_event(), Some(Event::Closed { clean: false }));
    assert_eq!((server.poll_timeout(), drain(ms(10), &mut server)), (None, Vec::new()));
}

#[test]
fn a_server_forgets_a_silent_client_and_finds_it_again() {
    let mut world = World::new(5, Weather::CLEAR, &Timing::MOSH);
    world.run(ms(2000));
    world.weather.loss_percent = 100;
    world.run(ms(60_000));
    assert_eq!(world.server.peer(), None);
    assert_eq!(world.server.poll_timeout(), None);
    world.weather.loss_percent = 0;
    let now = world.now;
    world.server.update(now, |page| page.write(9, b"news"));
    world.run(ms(66_000));
    assert_eq!(world.server.peer(), Some(world.client_from.into()));
    assert!(world.client.remote() == world.server.local());
    assert!(world.client.stats().hops >= 4, "the client tried other ports meanwhile");
}

#[test]
fn a_server_follows_its_client() {
    let mut world = World::new(5, Weather::CLEAR, &Timing::MOSH);
    world.run(ms(2000));
    assert!(world.server_events.iter().all(|event| !matches!(event, Event::PeerRoamed(_))));
    world.client_from.set_port(777);
    let now = world.now;
    world.client.update(now, |log| log.push(b"k"));
    world.run(ms(2100));
    assert!(world.server_events.contains(&Event::PeerRoamed(world.client_from.into())));
    assert_eq!(world.server.stats().roams, 1);
}

#[test]
fn silence_before_the_first_authentic_datagram() {
    let mut server = server(ms(0), Timing::MOSH);
    for step in 0..200u64 {
        server.update(ms(100 * step), |page| page.write(step as usize, b"x"));
        assert_eq!(drain(ms(100 * step), &mut server), []);
        assert_eq!(server.poll_timeout(), None);
    }
}

/// A minute after its last use a session says that it is there each 10 s, and not each 3 s from both ends.
#[test]
fn a_session_that_nobody_uses_rests() {
    let mut world = World::native(3, Weather::CLEAR, &Timing::ROVE);
    world.client.update(ms(0), |log| log.push(b"x"));
    let count = |world: &mut World, until_s: u64| {
        world.sizes.clear();
        world.run(ms(until_s * 1000));
        world.sizes.len()
    };
    assert!(count(&mut world, 55) >= 30, "in use");
    count(&mut world, 80);
    // A beat and its answer.
    assert!((118..=120).contains(&count(&mut world, 680)), "at rest");
    let hops = world.client.stats().hops;
    let now = world.now;
    world.client.update(now, |log| log.push(b"y"));
    assert!(count(&mut world, 740) >= 35, "in use again");
    assert_eq!((world.read.as_slice(), hops), (&b"xy"[..], 0));
}

/// Its old delay is not forgotten at once, so that the new one looks like a queue: copies go on all the same,
/// and a key waits for no second round.
#[test]
fn a_path_that_grows_longer_keeps_its_copies() {
    let mut world = World::native(3, Weather { delay_ms: 1, ..Weather::CLEAR }, &Timing::ROVE);
    let mut type_keys = |weather: Weather, keys: u32| {
        world.weather = weather;
        let mut waited = std::time::Duration::ZERO;
        for _ in 0..keys {
            let (start, before) = (world.now, world.read.len());
            world.client.update(start, |log| log.push(b"k"));
            while world.read.len() == before {
                world.run(world.now + span(1));
            }
            waited += world.now.since(start);
            world.run(world.now.max(start + span(200)));
        }
        waited / keys
    };
    type_keys(Weather { delay_ms: 1, ..Weather::CLEAR }, 25);
    let longer = Weather { delay_ms: 75, loss_percent: 10, ..Weather::CLEAR };
    type_keys(longer, 25);
    let waited = type_keys(longer, 100);
    assert!(waited < span(80), "{waited:?}");
}
