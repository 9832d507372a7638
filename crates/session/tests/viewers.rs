//! Laws of a host with several viewers, each with a client of its own on a path of its own.
//!
//! `SEED=17 cargo test -p rove-session --test viewers` runs that seed alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use std::time::Duration;

use common::{Link, client_address, client_config, echo, ms, server_address, size};
use rove_session::connection::Patience;
use rove_session::host::{self, SizePolicy};
use rove_session::line_mode::{LineMode, LineReport};
use rove_session::{Client, Host, Peer, Viewer, ViewerId, client, viewer};
use rove_ssp::{
    Arrival, ConnId, Machine, NativeWire, Outbox, Rng, Role, SessionSecrets, Time, Timing,
};
use rove_term::properties::TerminalProperties;
use rove_term::{Dialect, Size, same};

const HEALED: Link = Link { delay: ms(20), loss: 0, jitter: ms(0) };

/// A client, its viewer, and the path between them.
struct Seat {
    client: Client,
    viewer: Viewer,
    link: Link,
    /// Arrival, order, to whom.
    flying: Vec<(Time, u64, Role, Vec<u8>)>,
    /// What its user typed.
    typed: Vec<u8>,
}

/// A host with its program, and all who look at it.
struct Room {
    now: Time,
    host: Host,
    seats: Vec<Seat>,
    /// Octets that the program is still going to read.
    appetite: usize,
    /// All that it has read.
    read: Vec<u8>,
    /// Octets taken from the host and not read yet.
    taken: Vec<u8>,
    outbox: Outbox,
    rng: Rng,
    sent: u64,
    comers: u32,
}

fn window(rng: &mut Rng) -> Size {
    size(10 + rng.below(40) as u16, 40 + rng.below(100) as u16)
}

fn link(rng: &mut Rng) -> Link {
    Link {
        delay: ms(1 + u64::from(rng.below(150))),
        loss: rng.below(45),
        jitter: ms(rng.below(60).into()),
    }
}

impl Room {
    fn new(seed: u64, policy: SizePolicy) -> Self {
        Self {
            now: Time::ZERO,
            host: Host::new(Size::DEFAULT, policy),
            seats: Vec::new(),
            appetite: usize::MAX,
            read: Vec::new(),
            taken: Vec::new(),
            outbox: Outbox::default(),
            rng: Rng::new(seed),
            sent: 0,
            comers: 0,
        }
    }

    /// Somebody new comes, with keys of their own.
    fn join(&mut self, size: Size, link: Link) {
        self.comers += 1;
        let comer = self.comers as u8;
        let secrets = SessionSecrets::from_bytes([comer; 32], [comer + 100; 32], [3; 32]);
        let wire = |role| Box::new(NativeWire::new(&secrets, ConnId::new(comer.into()), role));
        let client = client::Config {
            wire: wire(Role::Client),
            timing: Timing::ROVE,
            size,
            ..client_config(Peer::Rove)
        };
        let viewer = viewer::Config {
            wire: wire(Role::Server),
            timing: Timing::ROVE,
            peer: Peer::Rove,
            size: None,
            patience: Patience::default(),
            screen_rate: Some(viewer::SCREEN_RATE),
            seed: comer.into(),
        };
        self.seats.push(Seat {
            client: Client::new(self.now, client),
            viewer: Viewer::new(self.now, ViewerId::from(self.comers), viewer),
            link,
            flying: Vec::new(),
            typed: Vec::new(),
        });
    }

    /// A client is gone with all that it had not sent, and its viewer is dropped.
    fn leave(&mut self, seat: usize) -> Seat {
        let seat = self.seats.remove(seat);
        self.host.forget(seat.viewer.id());
        seat
    }

    fn type_keys(&mut self, seat: usize, keys: &[u8]) {
        let seat = &mut self.seats[seat];
        seat.client.handle_keys(self.now, keys);
        seat.typed.extend(keys);
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        for turns in 0.. {
            assert!(turns < 1_000_000, "busy loop at {:?}", self.now);
            self.turn();
            let seats = self.seats.iter().flat_map(|seat| {
                let arrival = seat.flying.iter().map(|datagram| datagram.0).min();
                [arrival, seat.client.poll_timeout(), seat.viewer.poll_timeout(&self.host)]
            });
            let next = seats.chain([self.host.poll_timeout()]).flatten().min();
            let Some(next) = next.filter(|&next| next <= end) else { break };
            self.now = next.max(self.now);
            self.arrive();
        }
        self.now = end;
        self.turn();
    }

    /// What the drivers of all ends do in a turn.
    fn turn(&mut self) {
        self.eat();
        for seat in &mut self.seats {
            let out = &mut self.outbox;
            let mut fly = |to, datagram: &[u8]| {
                if self.rng.below(100) < seat.link.loss {
                    return;
                }
                let jitter = self.rng.below(seat.link.jitter.as_micros() as u32 + 1);
                let at = self.now + seat.link.delay + Duration::from_micros(jitter.into());
                self.sent += 1;
                seat.flying.push((at, self.sent, to, datagram.to_vec()));
            };
            while seat.client.poll_transmit(self.now, out).is_some() {
                fly(Role::Server, &out.datagram);
            }
            while seat.viewer.poll_transmit(self.now, &mut self.host, out).is_some() {
                fly(Role::Client, &out.datagram);
            }
            seat.client.poll_paint(self.now, &mut Vec::new());
            while seat.client.poll_event().is_some() {}
            while seat.viewer.poll_event().is_some() {}
            let due = seat.viewer.poll_timeout(&self.host);
            assert!(due.is_none_or(|due| due > self.now), "a viewer at {:?}: {due:?}", self.now);
        }
        while let Some(host::Event::Resize(size)) = self.host.poll_event() {
            assert_eq!(size, self.host.size());
        }
    }

    /// The program reads as much as it wants, and echoes it.
    fn eat(&mut self) {
        let mut octets = Vec::new();
        loop {
            if self.taken.is_empty() {
                self.host.poll_input(&mut octets);
                self.taken.append(&mut octets);
            }
            let bite = self.taken.len().min(self.appetite);
            if bite == 0 {
                return;
            }
            self.appetite -= bite;
            let bite: Vec<u8> = self.taken.drain(..bite).collect();
            self.host.handle_output(self.now, &echo(&bite));
            self.read.extend(bite);
        }
    }

    fn arrive(&mut self) {
        for seat in &mut self.seats {
            seat.flying.sort_by_key(|datagram| (datagram.0, datagram.1));
            while seat.flying.first().is_some_and(|datagram| datagram.0 <= self.now) {
                let (_, _, to, mut datagram) = seat.flying.remove(0);
                let from = match to {
                    Role::Client => server_address(),
                    Role::Server => client_address(),
                };
                let arrival = Arrival { from: from.into(), congested: false };
                let before = seat.client.view().echo_ack();
                let taken = match to {
                    Role::Client => seat.client.handle_datagram(self.now, arrival, &mut datagram),
                    Role::Server => seat.viewer.handle_datagram(
                        self.now,
                        arrival,
                        &mut datagram,
                        &mut self.host,
                    ),
                };
                taken.unwrap();
                assert!(seat.client.view().echo_ack() >= before, "the echo ack fell");
            }
        }
    }

    /// Octets that have reached the host, read or not.
    fn reached(&self) -> usize {
        self.read.len() + self.taken.len() + self.host.pending_input()
    }

    fn check_screens(&self) {
        for (index, seat) in self.seats.iter().enumerate() {
            let (shown, wanted) = (seat.client.view().screen(), self.host.screen());
            let equal = same(shown, wanted, &Dialect::ROVE);
            assert!(equal, "viewer {index}\n{:#?}\n{:#?}", shown.text(), wanted.text());
        }
    }
}

/// Runs a law for each seed, and says for which it does not hold.
#[expect(clippy::disallowed_methods, reason = "SEED chooses one run of a test")]
fn for_seeds(law: fn(u64)) {
    let one = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    for seed in one.map_or(1..=24, |seed| seed..=seed) {
        if let Err(panic) = std::panic::catch_unwind(|| law(seed)) {
            eprintln!("SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Each of two users has letters of their own, and resizes; the program writes by itself as well.
#[test]
fn two_viewers_converge_to_one_screen_and_each_key_is_read_once() {
    for_seeds(|seed| {
        let mut rng = Rng::new(seed);
        let policies = [
            SizePolicy::Latest,
            SizePolicy::Smallest,
            SizePolicy::Largest,
            SizePolicy::Fixed(window(&mut rng)),
        ];
        let mut room = Room::new(seed, policies[rng.below(4) as usize]);
        room.join(window(&mut rng), link(&mut rng));
        room.join(window(&mut rng), link(&mut rng));
        let letters = [b"abcdefghijklmnopqrstuvw", b"ABCDEFGHIJKLMNOPQRSTUVW"];
        for step in 0..200_usize {
            for (seat, letters) in letters.iter().enumerate() {
                match rng.below(12) {
                    0..4 => {
                        let from = rng.below(20) as usize;
                        let count = 1 + rng.below(3) as usize;
                        room.type_keys(seat, &letters[from..from + count]);
                    }
                    4 => {
                        let size = window(&mut rng);
                        room.seats[seat].client.handle_resize(room.now, size);
                    }
                    _ => {}
                }
            }
            let output = match rng.below(10) {
                0 => format!("\r\n\x1b[3{}mline {step}\x1b[m\r\n", rng.below(8)),
                1 => format!("\x1b[?2026h\x1b[H\x1b[2Jhalf of {step}"),
                2 => format!(" the other half of {step}\x1b[?2026l"),
                3 => "a long line of text; ".repeat(60),
                4 => "\x1b[?1049h\x1b[2;5Hanother screen".to_owned(),
                5 => "\x1b[?1049l".to_owned(),
                _ => String::new(),
            };
            room.host.handle_output(room.now, output.as_bytes());
            room.run(ms(rng.below(300).into()));
        }
        room.seats.iter_mut().for_each(|seat| seat.link = HEALED);
        room.run(Duration::from_secs(30));
        for (seat, letters) in room.seats.iter().zip(letters) {
            let read: Vec<u8> =
                room.read.iter().copied().filter(|key| letters.contains(key)).collect();
            assert!(read == seat.typed, "{} of {} keys", read.len(), seat.typed.len());
            assert_eq!(seat.client.endpoint().local().held(), 0, "all is acknowledged");
        }
        assert_eq!(room.read.len(), room.seats.iter().map(|seat| seat.typed.len()).sum());
        room.check_screens();
    });
}

/// A program floods the screen and hardly reads, while its user types without a pause. Their client is killed at
/// any moment, and another comes.
#[test]
fn a_viewer_that_is_replaced_under_load_loses_nothing_that_reached_the_host() {
    for_seeds(|seed| {
        let mut rng = Rng::new(seed);
        let mut room = Room::new(seed, SizePolicy::Latest);
        room.appetite = 0;
        let mut expected = Vec::new();
        for generation in 0..6_u8 {
            room.join(window(&mut rng), link(&mut rng));
            let before = room.reached();
            for step in 0..50 + rng.below(50) {
                let keys = [b'a' + generation, b'0' + (step % 10) as u8];
                room.type_keys(0, &keys);
                room.appetite += 1;
                let output = format!("\x1b[{}mflood {step} ", 31 + rng.below(7)).repeat(200);
                room.host.handle_output(room.now, output.as_bytes());
                room.run(ms(rng.below(120).into()));
            }
            let seat = room.leave(0);
            let reached = room.reached() - before;
            assert!(reached <= seat.typed.len(), "a key came twice");
            expected.extend(&seat.typed[..reached]);
        }
        assert!(room.read.len() < expected.len(), "the program was to be behind");
        room.join(window(&mut rng), HEALED);
        room.appetite = usize::MAX;
        room.run(Duration::from_secs(10));
        assert!(room.read == expected, "{} of {} keys", room.read.len(), expected.len());
        room.check_screens();
    });
}

#[test]
fn windows_of_two_viewers_make_one_size() {
    for (policy, both, first_typed, second_alone) in [
        (SizePolicy::Latest, (50, 60), (24, 80), (50, 60)),
        (SizePolicy::Smallest, (24, 60), (24, 60), (50, 60)),
        (SizePolicy::Largest, (50, 80), (50, 80), (50, 60)),
        (SizePolicy::Fixed(size(30, 90)), (30, 90), (30, 90), (30, 90)),
    ] {
        let mut room = Room::new(1, policy);
        room.join(size(24, 80), HEALED);
        room.run(ms(500));
        room.join(size(50, 60), HEALED);
        room.run(ms(500));
        assert_eq!(room.host.size(), size(both.0, both.1), "{policy:?}");
        room.type_keys(0, b"x");
        room.run(ms(500));
        assert_eq!(room.host.size(), size(first_typed.0, first_typed.1), "{policy:?}");
        room.check_screens();
        room.leave(0);
        room.run(ms(500));
        assert_eq!(room.host.size(), size(second_alone.0, second_alone.1), "{policy:?}");
        room.check_screens();
    }
}

/// A program that asks for the size of a cell is told that of the terminal whose user typed last.
#[test]
fn a_program_is_told_of_the_terminal_whose_user_typed_last() {
    let mut host = Host::new(Size::DEFAULT, SizePolicy::Latest);
    let [one, two] = [1, 2].map(ViewerId::from);
    let cell = |cell| TerminalProperties { cell: Some(cell), ..TerminalProperties::default() };
    let told = |host: &mut Host| {
        let mut reply = Vec::new();
        host.poll_input(&mut reply);
        host.handle_output(Time::ZERO, b"\x1b[16t");
        host.poll_input(&mut reply);
        String::from_utf8(reply).unwrap()
    };
    host.set_properties(one, cell((9, 18)));
    assert_eq!(told(&mut host), "\x1b[6;18;9t");
    host.set_properties(two, cell((7, 14)));
    assert_eq!(told(&mut host), "\x1b[6;14;7t");
    host.set_properties(one, cell((10, 20)));
    assert_eq!(told(&mut host), "\x1b[6;14;7t", "the second user came last");
    host.type_keys(Time::ZERO, one, b"x");
    assert_eq!(told(&mut host), "\x1b[6;20;10t");
    host.forget(one);
    assert_eq!(told(&mut host), "\x1b[6;14;7t");
}

/// A key that one user's client sent in two states is not put together with another user's.
#[test]
fn keys_of_two_users_are_not_joined() {
    let mut host = Host::new(Size::DEFAULT, SizePolicy::Latest);
    let [one, two] = [1, 2].map(ViewerId::from);
    host.type_keys(Time::ZERO, one, b"\x1bO");
    host.type_keys(Time::ZERO, two, b"A");
    host.type_keys(Time::ZERO, two, b"\x1b");
    host.type_keys(Time::ZERO, one, b"OA");
    let mut read = Vec::new();
    host.poll_input(&mut read);
    assert_eq!(read, b"\x1bOA\x1bOA");
}

/// What one user types at a hidden line waits at their client. The Enter of another ends the line for the program, and what
/// waits is then wiped: neither this program nor the next gets half a password.
#[test]
fn anothers_enter_ends_the_line_and_not_what_is_held() {
    let hidden =
        |number| LineReport { mode: LineMode::Hidden, hidden: Some(number), may_be_kept: true };
    for after in [LineMode::Cooked.into(), hidden(2)] {
        let mut room = Room::new(1, SizePolicy::Latest);
        room.join(size(24, 80), HEALED);
        room.join(size(24, 80), HEALED);
        room.run(Duration::from_secs(2));
        room.host.handle_line(hidden(1));
        room.host.handle_output(room.now, b"Password: ");
        room.run(ms(500));
        room.type_keys(0, b"half");
        room.type_keys(1, b"whole");
        room.run(ms(500));
        let held = |room: &Room| [0, 1].map(|seat| room.seats[seat].client.keys_held());
        assert_eq!((held(&room), room.read.len()), ([4, 5], 0));
        room.type_keys(1, b"\r");
        room.run(ms(300));
        assert_eq!((held(&room), room.read.as_slice()), ([4, 0], &b"whole\r"[..]));
        room.host.handle_line(after);
        room.host.handle_output(room.now, b"\r\nSorry.\r\n$ ");
        room.run(ms(500));
        assert_eq!(held(&room), [0, 0], "{after:?}");
        room.type_keys(0, b"ls\r");
        room.run(ms(500));
        assert_eq!(room.read, b"whole\rls\r", "{after:?}");
    }
}
