//! The native wire between two endpoints: it works, its vectors hold, and enemies get nothing
//! (`threats.md` rows 10 to 15, 23 and 24).
#![allow(clippy::unwrap_used)] // In helpers, too: a failure here is a failed test.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{
    Client, Log, Server, Weather, World, client_address, client_with, drain, ms, native_wire,
    run_until, server_address, server_with,
};
use rove_ssp::{
    Arrival, Config, ConnId, Deflater, Endpoint, Envelope, Event, Flags, Machine, NativeWire,
    Outbox, Reject, Rng, Role, Session, SessionSecrets, Time, Timing, Transmit, Wire, fragments,
};

/// How often each enemy tries.
const TRIES: u64 = 1_000_000;

fn arrival(from: SocketAddr) -> Arrival {
    Arrival { from: from.into(), congested: false }
}

fn stranger(host: u64) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host as u8], 1000))
}

/// Types and draws for `seconds`, moving to another address now and then.
fn live(world: &mut World, seconds: u64) -> Vec<u8> {
    let mut typed = Vec::new();
    for turn in 0..seconds * 10 {
        let key = [turn as u8];
        typed.extend_from_slice(&key);
        let now = world.now;
        world.client.update(now, |log| log.push(&key));
        world.server.update(now, |page| page.write(turn as usize * 3, &[turn as u8; 5]));
        if turn % 83 == 40 {
            world.client_from = stranger(turn / 83);
        }
        world.run(now + Duration::from_millis(100));
    }
    typed
}

#[test]
fn sessions_live_through_bad_weather_and_many_phases() {
    let storm = Weather {
        loss_percent: 30,
        delay_ms: 40,
        jitter_ms: 400,
        duplicate_percent: 30,
        corrupt_percent: 1,
    };
    for (seed, weather) in [(1, Weather::CLEAR), (2, storm), (3, storm), (4, storm)] {
        let phase = Duration::from_secs(5);
        let wire = |role| Box::new(native_wire(role).with_phases_of(phase));
        let client = client_with(Time::ZERO, Timing::MOSH, wire(Role::Client));
        let server = server_with(Time::ZERO, Timing::MOSH, wire(Role::Server));
        let mut world = World::between(client, server, seed, weather);
        let typed = live(&mut world, 120);
        world.weather = Weather::CLEAR;
        let end = world.now + Duration::from_secs(20);
        world.run(end);
        assert_eq!(world.read, typed, "seed {seed}");
        assert_eq!(world.client.remote(), world.server.local(), "seed {seed}");
        assert_eq!(world.server.peer(), Some(world.client_from.into()));
        let stats = world.server.stats();
        assert!(weather.duplicate_percent == 0 || stats.rejected.replayed > 50, "{stats:?}");
    }
}

/// Row 13: no datagram is opened twice.
#[test]
fn replays_change_nothing() {
    let mut world = World::native(1, Weather::CLEAR, &Timing::MOSH);
    let mut taken: Vec<Vec<u8>> = Vec::new();
    let mut rng = Rng::new(13);
    let enemy = arrival(stranger(66));
    for round in 0..1000_u64 {
        let now = ms(round * 30);
        world.client.update(now, |log| log.push(&[round as u8]));
        for (_, mut datagram) in drain(now, &mut world.client) {
            taken.push(datagram.clone());
            world.server.handle_datagram(now, arrival(client_address()), &mut datagram).unwrap();
        }
        for (_, mut datagram) in drain(now, &mut world.server) {
            world.client.handle_datagram(now, arrival(server_address()), &mut datagram).unwrap();
        }
        let before = (world.server.remote_num(), world.server.peer(), world.server.rtt().samples());
        let timeout = world.server.poll_timeout();
        for _ in 0..TRIES / 1000 {
            let mut replayed = taken[rng.below(taken.len() as u32) as usize].clone();
            let refused = world.server.handle_datagram(now, enemy, &mut replayed);
            assert!(matches!(refused, Err(Reject::Replayed { .. })), "{refused:?}");
        }
        let after = (world.server.remote_num(), world.server.peer(), world.server.rtt().samples());
        assert_eq!((after, world.server.poll_timeout()), (before, timeout));
    }
    assert_eq!(world.server.remote().len(), 999, "the last one waits for more");
    assert_eq!(world.server.stats().rejected.replayed, TRIES);
}

/// A datagram that no peer has sealed: changed, cut, spliced, numbered anew, or made up.
fn forgery(rng: &mut Rng, genuine: &[Vec<u8>]) -> Vec<u8> {
    let pick = |rng: &mut Rng| genuine[rng.below(genuine.len() as u32) as usize].clone();
    loop {
        let mut made = pick(rng);
        match rng.below(7) {
            0 => {
                for _ in 0..=rng.below(8) {
                    let index = rng.below(made.len() as u32) as usize;
                    made[index] ^= 1 << rng.below(8);
                }
            }
            1 => made.truncate(rng.below(made.len() as u32) as usize),
            2 => {
                let extra = 1 + rng.below(40) as usize;
                rng.fill(extra, &mut made);
            }
            3 => {
                let other = pick(rng);
                let cut = rng.below(made.len().min(other.len()) as u32) as usize;
                made.truncate(cut);
                made.extend_from_slice(&other[cut..]);
            }
            4 => made[5..9].copy_from_slice(&(rng.bits() as u32).to_be_bytes()),
            5 => made[0] ^= 1,
            _ => {
                let size = rng.below(2100) as usize;
                made.clear();
                rng.fill(size, &mut made);
                // Half of them look like ours.
                if size > 5 && rng.below(2) == 0 {
                    made[..5].copy_from_slice(&[0x20, 0, 0, 0, 7]);
                }
            }
        }
        if !genuine.contains(&made) {
            return made;
        }
    }
}

/// Rows 14 and 15, G2: who cannot seal changes nothing and gets no answer.
#[test]
fn forgeries_change_nothing() {
    let mut world = World::native(1, Weather::CLEAR, &Timing::MOSH);
    world.client.update(ms(0), |log| log.push(b"hello"));
    world.server.update(ms(0), |page| page.write(0, b"hello"));
    world.run(ms(5000));
    let now = world.now;
    let mut genuine = Vec::new();
    for octet in [1, 9] {
        let secrets = SessionSecrets::from_bytes([octet; 32], [octet + 1; 32], [0; 32]);
        for role in [Role::Client, Role::Server] {
            let mut wire = NativeWire::new(&secrets, ConnId::new(7), role);
            for size in 0..40 {
                let mut out = Vec::new();
                wire.seal(&Envelope::default(), &vec![size; usize::from(size) * 20], &mut out)
                    .unwrap();
                genuine.push(out);
            }
        }
    }
    let standing = |client: &Client, server: &Server| {
        (
            (client.remote_num(), client.last_heard(), client.rtt().srtt(), client.poll_timeout()),
            (server.remote_num(), server.last_heard(), server.rtt().srtt(), server.poll_timeout()),
            (server.peer(), client.held(), server.held(), server.stats().sent),
        )
    };
    let World { mut client, mut server, .. } = world;
    let before = standing(&client, &server);
    let mut rng = Rng::new(17);
    let mut out = Outbox::default();
    for turn in 0..TRIES {
        let mut datagram = forgery(&mut rng, &genuine);
        let taken = match turn % 2 {
            0 => client.handle_datagram(now, arrival(stranger(turn)), &mut datagram),
            _ => server.handle_datagram(now, arrival(stranger(turn)), &mut datagram),
        };
        assert!(taken.is_err(), "turn {turn}");
        if turn % 1024 == 0 {
            assert_eq!(client.poll_transmit(now, &mut out), None);
            assert_eq!(server.poll_transmit(now, &mut out), None);
        }
    }
    assert_eq!(standing(&client, &server), before);
    assert_eq!(client.stats().rejected.total + server.stats().rejected.total, TRIES);
}

/// Rows 10 to 12: an enemy who has the key, and seals nonsense. Nothing panics, nothing grows.
#[test]
fn nonsense_under_the_key_is_bounded() {
    for timing in [Timing::MOSH, Timing::ROVE] {
        let fresh = |now| server_with(now, timing.clone(), Box::new(native_wire(Role::Server)));
        let mut server = fresh(Time::ZERO);
        let mut wire = native_wire(Role::Client);
        let mut rng = Rng::new(29);
        let mut got_through = 0;
        let through = |server: &Server| {
            let stats = server.stats();
            stats.states_received + stats.rejected.malformed + stats.rejected.inflate
        };
        let mut out = Vec::new();
        for turn in 0..TRIES / 8 {
            let payload = nonsense(&mut rng);
            let now = ms(turn);
            wire.advance(now, Duration::from_secs(1));
            wire.seal(&Envelope::default(), &payload, &mut out).unwrap();
            let _ = server.handle_datagram(now, arrival(client_address()), &mut out);
            drain(now, &mut server);
            let events: Vec<Event> = std::iter::from_fn(|| server.poll_event()).collect();
            let held = server.held();
            assert!(held.assembly_bytes <= 8 << 20, "{held:?}");
            assert!(held.received_states <= timing.received_states_max + 1);
            let over = |event: &Event| matches!(event, Event::BadRemote(_) | Event::Closed { .. });
            if events.iter().any(over) {
                got_through += through(&server);
                server = fresh(now);
                wire = native_wire(Role::Client);
            }
        }
        got_through += through(&server);
        assert!(got_through > 1000, "{got_through} reached more than the fragments");
    }
}

/// Random octets; half of them are marked as a whole instruction, so that more than the fragments is read.
fn nonsense(rng: &mut Rng) -> Vec<u8> {
    let mut payload = Vec::new();
    let size = rng.below(60) as usize * if rng.below(50) == 0 { 20 } else { 1 };
    rng.fill(size, &mut payload);
    if let Some(first) = payload.first_mut()
        && rng.below(2) == 0
    {
        *first = 0x60;
        if let Some(bits) = payload.get_mut(1) {
            *bits &= 0x0f;
        }
    }
    payload
}

/// Row 14: an enemy on the path gives the client's datagrams a victim's address. The victim gets at most
/// three times what the enemy spent, and the client's session goes on.
#[test]
fn a_victim_gets_three_times_what_was_spent() {
    for delay_ms in [1, 30, 200] {
        let mut world = World::native(5, Weather::CLEAR, &Timing::MOSH);
        let victim = stranger(99);
        let (mut spent, mut got) = (0, 0);
        world.run(ms(3000));
        for turn in 0..2000_u64 {
            let now = ms(3000 + turn * delay_ms);
            world.server.update(now, |page| page.write(turn as usize * 7, &[turn as u8; 200]));
            if turn % 3 == 0 {
                world.client.update(now, |log| log.push(b"k"));
            }
            for (_, mut datagram) in drain(now, &mut world.client) {
                spent += datagram.len();
                let _ = world.server.handle_datagram(now, arrival(victim), &mut datagram);
            }
            for (transmit, datagram) in drain(now, &mut world.server) {
                assert_eq!(
                    transmit.to.udp().map(|to| to.ip()) == Some(victim.ip()),
                    transmit.to == victim
                );
                got += if transmit.to == victim { datagram.len() } else { 0 };
            }
            assert!(got <= 3 * spent, "turn {turn}: {got} octets for {spent}");
        }
        assert!(got > 0 && spent > 0);
        // Once datagrams come from the client again, its screen does too.
        let now = ms(3000 + 2000 * delay_ms);
        world.now = now;
        world.client.update(now, |log| log.push(b"!"));
        world.run(now + Duration::from_secs(5));
        assert_eq!(world.client.remote(), world.server.local(), "{delay_ms} ms");
    }
}

/// A server whose last words wait for an address that never proves itself ends all the same.
#[test]
fn a_blocked_server_closes() {
    for timing in [Timing::MOSH, Timing::ROVE] {
        let mut world = World::native(5, Weather::CLEAR, &timing);
        world.run(ms(3000));
        world.client.update(ms(3000), |log| log.push(b"k"));
        world.run(ms(3001));
        let World { mut client, mut server, .. } = world;
        for (_, mut datagram) in drain(ms(3500), &mut client) {
            server.handle_datagram(ms(3500), arrival(stranger(9)), &mut datagram).unwrap();
        }
        // No diff can shorten this: it is longer than what may go to a stranger.
        let mut noise = vec![0; 200];
        noise.clear();
        Rng::new(7).fill(200, &mut noise);
        server.update(ms(3500), |page| page.write(0, &noise));
        drain(ms(3520), &mut server);
        server.close(ms(3520));
        let sent = run_until(ms(13_600), &mut server);
        let events: Vec<Event> = std::iter::from_fn(|| server.poll_event()).collect();
        assert!(events.contains(&Event::Closed { clean: false }), "{events:?} {}", sent.len());
        assert_eq!(server.poll_timeout(), None);
    }
}

/// A server that may not send again what its client has missed still acknowledges what that one says, in time: [`drain`]
/// looks for what is left over.
#[test]
fn a_blocked_server_acknowledges() {
    let end = |role: Role| {
        let (wire, timing) = (Box::new(native_wire(role)), Timing::ROVE);
        let peer = (role == Role::Client).then(server_address);
        let (local, remote) = (Log::default(), Log::default());
        Endpoint::new(Time::ZERO, Config { role, wire, timing, peer, local, remote, seed: 5 })
    };
    for turn in 0..200 {
        let (mut client, mut server) = (end(Role::Client), end(Role::Server));
        let carry = |now, from: &mut Endpoint<Log, Log>, to: &mut Endpoint<Log, Log>, address| {
            for (_, mut datagram) in drain(now, from) {
                let _ = to.handle_datagram(now, arrival(address), &mut datagram);
            }
        };
        for step in 0..60 {
            let now = ms(step * 50);
            client.update(now, |log| log.push(b"k"));
            carry(now, &mut client, &mut server, client_address());
            carry(now, &mut server, &mut client, server_address());
        }
        let mut noise = Vec::new();
        Rng::new(turn).fill(6_000, &mut noise);
        server.update(ms(3000), |log| log.push(&noise));
        // All of it is lost. What the client says next comes from a stranger.
        run_until(ms(3010 + turn), &mut server);
        let now = ms(3011 + turn);
        client.update(now, |log| log.push(b"k"));
        carry(now, &mut client, &mut server, stranger(9));
        assert_eq!(server.peer(), Some(stranger(9).into()));
        run_until(ms(9000), &mut server);
    }
}

/// A client that moves gets a large screen one round trip after its first datagram from there.
#[test]
fn a_move_costs_one_round_trip() {
    let mut world = World::native(5, Weather { delay_ms: 50, ..Weather::CLEAR }, &Timing::MOSH);
    world.run(ms(3000));
    world.client_from = stranger(4);
    world.client.update(ms(3000), |log| log.push(b"k"));
    world.run(ms(3051));
    assert_eq!(world.server.peer(), Some(stranger(4).into()));
    // It is asked at once, and answers at once.
    world.run(ms(3160));
    let now = world.now;
    world.server.update(now, |page| page.write(0, &[b'#'; 200]));
    world.run(now + Duration::from_millis(400));
    assert_eq!(world.client.remote(), world.server.local());
}

/// A client that knows it has moved says so at once, also when it had nothing to say, and is answered
/// after one round trip.
#[test]
fn a_client_that_moves_is_heard_at_once() {
    for timing in [Timing::MOSH, Timing::ROVE] {
        for typed in [&b""[..], b"lost on the way"] {
            let weather = Weather { delay_ms: 50, ..Weather::CLEAR };
            let mut world = World::native(5, weather, &timing);
            world.run(ms(3000));
            world.weather.loss_percent = 100;
            world.client.update(ms(3000), |log| log.push(typed));
            world.run(ms(20_000));
            world.weather = weather;
            world.client_from = stranger(4);
            world.client.network_changed(ms(20_000));
            let heard = world.client.last_heard();
            world.run(ms(20_051));
            assert_eq!(world.server.peer(), Some(stranger(4).into()));
            assert_eq!(world.read, typed);
            world.run(ms(20_102));
            assert!(world.client.last_heard() > heard, "{typed:?}");
        }
    }
}

/// What takes many hundred datagrams arrives.
#[test]
fn long_input_arrives() {
    let mut world = World::native(5, Weather::CLEAR, &Timing::MOSH);
    world.run(ms(1000));
    let mut text = Vec::new();
    Rng::new(3).fill(1 << 20, &mut text);
    world.client.update(ms(1000), |log| log.push(&text));
    world.run(ms(9000));
    assert!(world.read == text, "{} octets arrived", world.read.len());
}

/// An instruction that was cut for a path with long datagrams is not sent to a path that may not take them.
#[test]
fn a_move_shortens_what_is_not_yet_said() {
    let end = |role, peer| {
        let (local, remote) = (common::Log::default(), common::Log::default());
        let wire = Box::new(native_wire(role));
        let config = Config { role, wire, timing: Timing::ROVE, peer, local, remote, seed: 1 };
        Endpoint::new(Time::ZERO, config)
    };
    let mut client = end(Role::Client, Some(server_address()));
    let mut server = end(Role::Server, None);
    let mut noise = Vec::new();
    Rng::new(3).fill(150_000, &mut noise);
    let mut from = client_address();
    let mut longest = [0, 0];
    for at in (0..4000).step_by(5) {
        let now = ms(at);
        let moved = at >= 2000;
        if at == 500 {
            server.update(now, |log| log.push(&noise[..50_000]));
        } else if at == 1980 {
            server.update(now, |log| log.push(&noise[50_000..]));
        } else if at == 2000 {
            from = stranger(4);
            client.update(now, |log| log.push(b"k"));
        }
        for (_, mut datagram) in drain(now, &mut client) {
            server.handle_datagram(now, arrival(from), &mut datagram).unwrap();
        }
        for (transmit, mut datagram) in drain(now, &mut server) {
            // Probes are as long as can be, and nothing else is.
            if ![1352, 1452].contains(&datagram.len()) {
                let longest = &mut longest[usize::from(transmit.to == stranger(4))];
                *longest = datagram.len().max(*longest);
            }
            // Just before the move everything is lost, and then what is long.
            if at < 1950 || moved && datagram.len() <= 1200 {
                client.handle_datagram(now, arrival(server_address()), &mut datagram).unwrap();
            }
        }
    }
    assert!(longest[0] > 1352 && (1000..=1200).contains(&longest[1]), "{longest:?}");
    assert_eq!(client.remote().len(), noise.len());
}

/// A fragment of what was put together before is answered only if it asks for that.
#[test]
fn what_comes_late_is_not_answered() {
    let wire = Box::new(native_wire(Role::Client));
    let mut client = client_with(Time::ZERO, Timing::ROVE, wire);
    let mut peer = native_wire(Role::Server);
    let mut noise = Vec::new();
    Rng::new(3).fill(300, &mut noise);
    let (mut packed, mut payload, mut datagram) = (Vec::new(), Vec::new(), Vec::new());
    peer.pack(&common::message(0, 1, 0, &noise), &mut Deflater::default(), &mut packed);
    let mut hear = |client: &mut Client, at: u64, number: usize, again: bool| {
        let fragment = fragments(5.into(), &packed, 200).nth(number).unwrap();
        payload.clear();
        peer.encode_fragment(&fragment, &mut payload);
        let flags = Flags { again, ack_only: false };
        let envelope = Envelope { flags, ..Envelope::default() };
        peer.seal(&envelope, &payload, &mut datagram).unwrap();
        client.handle_datagram(ms(at), arrival(server_address()), &mut datagram).unwrap();
    };
    drain(ms(0), &mut client);
    hear(&mut client, 1000, 0, false);
    hear(&mut client, 1000, 1, false);
    assert_eq!(client.remote_num().get(), 1);
    assert_eq!(run_until(ms(2500), &mut client).len(), 1, "the acknowledgment");
    hear(&mut client, 2500, 0, false);
    assert_eq!(drain(ms(2500), &mut client).len(), 0);
    hear(&mut client, 2600, 0, true);
    assert_eq!(drain(ms(2600), &mut client).len(), 1);
}

/// What pads the first datagrams gives way to a path that takes only small ones.
#[test]
fn padding_fits_a_path_with_a_small_mtu() {
    for timing in [Timing::MOSH, Timing::ROVE] {
        let mut client = client_with(Time::ZERO, timing, Box::new(native_wire(Role::Client)));
        let sizes = |sent: Vec<(Transmit, Vec<u8>)>| sent.iter().map(|(_, d)| d.len()).max();
        assert_eq!(sizes(drain(ms(0), &mut client)), Some(1156));
        client.datagram_too_big();
        let again = sizes(drain(ms(1), &mut client));
        assert_eq!(again, Some(504), "the same is said at once, and every second one is short");
        client.update(ms(1000), |log| log.push(&[7; 5000]));
        let all: Vec<_> =
            run_until(ms(9000), &mut client).into_iter().map(|s| (s.1, s.2)).collect();
        assert!(sizes(all).is_some_and(|size| size <= 976));
        client.network_changed(ms(9500));
        let elsewhere = sizes(drain(ms(9500), &mut client));
        assert!(elsewhere.is_some_and(|size| size > 1000), "another path");
    }
}

/// The same keys and echoes cost fewer octets than on the mosh wire.
#[test]
fn typing_costs_less_than_on_the_mosh_wire() {
    let cost = |mut world: World| {
        for turn in 0..500_usize {
            let now = world.now;
            world.client.update(now, |log| log.push(&[b'a' + (turn % 26) as u8]));
            world.run(now + Duration::from_millis(25));
            let now = world.now;
            world.server.update(now, |page| page.write(turn, b"x"));
            world.run(now + Duration::from_millis(175));
        }
        let sent = [world.client.stats().sent, world.server.stats().sent];
        (sent[0].bytes + sent[1].bytes) / 500
    };
    let mosh = cost(World::new(1, Weather::CLEAR, &Timing::MOSH));
    let native = cost(World::native(1, Weather::CLEAR, &Timing::MOSH));
    println!("octets a key, both ways: {native}, on the mosh wire {mosh}");
    assert!(native * 6 < mosh * 5, "{native} octets a key, {mosh} on the mosh wire");
}

/// Row 24: no datagram is sealed twice under one number, even if the path fails and changes.
#[test]
fn numbers_are_used_once() {
    let mut world = World::native(9, Weather { loss_percent: 40, ..Weather::CLEAR }, &Timing::MOSH);
    let mut seen = std::collections::HashSet::new();
    for turn in 0..5000_u64 {
        let now = ms(turn * 100);
        world.client.update(now, |log| log.push(&[turn as u8]));
        let from = stranger(turn / 50 % 200);
        for (_, mut datagram) in drain(now, &mut world.client) {
            assert!(seen.insert((Role::Client as u8, datagram[5..9].to_vec())));
            if !world.chance(40) {
                let _ = world.server.handle_datagram(now, arrival(from), &mut datagram);
            }
        }
        for (_, mut datagram) in drain(now, &mut world.server) {
            assert!(seen.insert((Role::Server as u8, datagram[5..9].to_vec())));
            if !world.chance(40) {
                let _ = world.client.handle_datagram(now, arrival(server_address()), &mut datagram);
            }
        }
    }
    assert!(seen.len() > 4000, "{}", seen.len());
}
