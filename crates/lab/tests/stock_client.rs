//! Tests our frames with the stock client: random streams go through a server of ours to a real `mosh-client` under
//! a pty, and it must paint what our server predicts. Most streams are text whose width differs between emulators.
//!
//! `SEED=17 cargo test -p rove-lab --test stock_client` runs just that stream; `SEEDS=10000` runs that many.
#![allow(clippy::unwrap_used, reason = "a test file")]

#[path = "common/known.rs"]
mod known;

use std::net::UdpSocket;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use known::{knows, random_output};
use rove_lab::testing::clock::Clock;
use rove_lab::testing::rng::{Chance, Rng};
use rove_lab::testing::run::Program;
use rove_lab::testing::stock::differences;
use rove_session::{Peer, Server, server};
use rove_ssp::{Arrival, Key, Machine, MoshWire, Outbox, Role, Time, Timing};
use rove_term::{Dialect, Screen, Size, Terminal, project};

/// Streams compared in one run.
const STREAMS: u64 = 600;
/// Clients at a time. Each waits most of the time: a frame takes 20 ms.
const CLIENTS: u64 = 8;
/// The most failures listed.
const FAILURES_MAX: usize = 8;
const ROWS: i64 = 6;
const COLS: i64 = 24;
/// How long a frame may take; machines under load are slow.
const LIMIT: Duration = Duration::from_secs(60);
/// How long a picture that was painted anew may take to be as it should.
const SETTLED: Duration = Duration::from_secs(20);
/// Between two looks.
const TURN: Duration = Duration::from_millis(2);

/// A real `mosh-client` on a terminal as stock understands one, and our server for it.
struct Couple {
    server: Server,
    socket: UdpSocket,
    client: Program,
    clock: Clock,
    marks: u64,
}

impl Couple {
    fn start(seed: u64) -> Couple {
        let size = Size::clamped(ROWS, COLS);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        let key = Key::from_bytes([7; 16]);
        let mut command = Command::new("mosh-client");
        command.args(["127.0.0.1", &socket.local_addr().unwrap().port().to_string()]);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        command.env("TERM", "xterm-256color").env("MOSH_KEY", key.to_base64().as_str());
        command.env("MOSH_PREDICTION_DISPLAY", "never").env("MOSH_TITLE_NOPREFIX", "1");
        let clock = Clock::start();
        let config = server::Config {
            wire: Box::new(MoshWire::new(key, Role::Server)),
            timing: Timing::MOSH,
            peer: Peer::Stock,
            size,
            claim_wait: server::CLAIM_WAIT,
            network_timeout: None,
            screen_rate: None,
            seed,
        };
        let server = Server::new(clock.now(), config);
        let terminal = Terminal::new(size, Dialect::MOSH);
        let client = Program::start_on(command, terminal).unwrap();
        let mut couple = Couple { server, socket, client, clock, marks: 0 };
        couple.show(b"");
        // Cells that have not been painted yet count as missing.
        couple.server.handle_output(couple.clock.now(), b"\x1b[2;2Hseen\x1b[H");
        assert_eq!(couple.differences().len(), 4);
        couple.show(b"");
        assert_eq!(couple.differences(), [""; 0]);
        couple
    }

    /// Lets the program write this, and waits until the client has painted it.
    fn show(&mut self, octets: &[u8]) {
        self.marks += 1;
        let mark = format!("mark {}", self.marks);
        let octets = [octets, format!("\x1b]2;{mark}\x07").as_bytes()].concat();
        self.server.handle_output(self.clock.now(), &octets);
        self.wait(LIMIT, |screen| screen.title() == Some(&mark)).unwrap();
    }

    fn wait(&mut self, limit: Duration, shown: impl Fn(&Screen) -> bool) -> Result<(), String> {
        let until = self.clock.now() + limit;
        while !shown(self.client.screen()) {
            if self.clock.now() > until {
                return Err(format!("not in time: {:#?}", self.client.screen().text()));
            }
            assert!(!self.client.has_ended(), "mosh-client has ended");
            self.turn();
        }
        Ok(())
    }

    fn turn(&mut self) {
        let now: Time = self.clock.now();
        let mut out = Outbox::default();
        while let Some(transmit) = self.server.poll_transmit(now, &mut out) {
            self.socket.send_to(&out.datagram, transmit.to.udp().unwrap()).unwrap();
        }
        self.client.pump(TURN).unwrap();
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = self.socket.recv_from(&mut buffer) {
            let arrival = Arrival { from: from.into(), congested: false };
            // A datagram that is no good is dropped, as ever.
            let _ = self.server.handle_datagram(self.clock.now(), arrival, &mut buffer[..length]);
        }
        while self.server.poll_event().is_some() {}
        self.server.poll_input(&mut Vec::new());
    }

    fn differences(&self) -> Vec<String> {
        let wanted = project(self.server.screen(), &Dialect::MOSH);
        let shown = self.client.screen();
        let mut found = differences(shown, &wanted);
        found.retain(|line| line.starts_with("row ") && line.contains(" column "));
        let (is, must) = (shown.cursor(), wanted.cursor());
        // `mosh-protocol.md` §11.9: stock's own paint leaves the cursor short there.
        let corner = must.row + 1 == wanted.size().rows && must.col + 4 >= wanted.size().cols;
        if (is.row, is.col) != (must.row, must.col) && !corner {
            found.push(format!("cursor: {is:?}, ours {must:?}"));
        }
        found
    }

    /// The cells that the client shows wrongly even when painted anew: errors of its own paint are no fault of the
    /// frame.
    fn run(&mut self, octets: &[u8]) -> Vec<String> {
        self.show(&[b"\x18\x1bc\x1b[?25h", octets, b"\x18"].concat());
        if self.differences().is_empty() {
            return Vec::new();
        }
        self.client.send(b"\x0c");
        let until = self.clock.now() + SETTLED;
        while self.clock.now() < until {
            self.turn();
            if self.differences().is_empty() {
                return Vec::new();
            }
        }
        self.differences()
    }
}

/// Text on whose width emulators disagree, and a mark that shows where it went.
const TEXTS: &[&str] = &[
    "a",
    "word ",
    "|",
    "\u{e9}",
    "e\u{301}",
    "\u{301}",
    "\u{4e16}",
    "\u{4e16}\u{754c}",
    "\u{1f600}",
    "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f466}",
    "\u{1f44d}\u{1f3fd}",
    "\u{2764}\u{fe0f}",
    "\u{2764}\u{fe0e}",
    "\u{2764}",
    "1\u{fe0f}\u{20e3}",
    "\u{1f1e9}\u{1f1ea}",
    "\u{1f1e9}",
    "\u{a1}\u{a4}\u{b0}\u{2160}\u{2460}\u{25a0}\u{3b1}",
    "\u{ad}",
    "\u{200b}",
    "\u{200d}",
    "\u{2060}",
    "\u{e01}\u{e33}",
    "\u{915}\u{94d}\u{937}",
    "\u{1112}\u{1161}\u{11ab}",
    "\u{1160}",
    "\u{ff21}\u{ff71}",
    "\u{3000}",
    "\u{202e}abc",
    "\u{fdfa}",
    "a\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}\u{307}\u{308}\u{309}\u{30a}\u{30b}\u{30c}\u{30d}\u{30e}\u{30f}\u{310}",
];
const CONTROLS: &[&str] = &[
    "\r\n",
    "\r",
    "\x08",
    "\x1b[K",
    "\x1b[2P",
    "\x1b[2@",
    "\x1b[3X",
    "\x1b[2L",
    "\x1b[M",
    "\x1bM",
    "\x1b[1;1H",
    "\x1b[6;24H",
    "\x1b[3;23H",
    "\x1b[2;12H",
    "\x1b[1;31m",
    "\x1b[m",
    "\x1b[44m",
    "\x1b[7m",
    "\x1b[4h",
    "\x1b[4l",
    "\x1b[?7l",
    "\x1b[?7h",
    "\x1b[5C",
    "\x1b[3D",
    "\x1b[2;5r",
    "\x1b[r",
    "\x1b[3b",
    "\x1b[?2027h",
];

fn ambiguous(seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let mut text = String::new();
    for _ in 0..rng.within(1, 40) {
        let from = if rng.happens(Chance::percent(65)) { TEXTS } else { CONTROLS };
        text += from[rng.below(from.len() as u64) as usize];
    }
    text.retain(|c| knows(c.encode_utf8(&mut [0; 4]).as_bytes()));
    text.into_bytes()
}

fn test_streams(next: &AtomicU64, end: u64, failures: &Mutex<Vec<String>>) {
    let mut couple = Couple::start(1);
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end || failures.lock().unwrap().len() >= FAILURES_MAX {
            return;
        }
        let octets =
            if seed.is_multiple_of(2) { ambiguous(seed) } else { random_output(seed).octets() };
        // A frame that leads on from a picture, too.
        let (first, second) = octets.split_at(octets.len() / 2);
        let half = String::from_utf8_lossy(first).into_owned().into_bytes();
        let mut found = couple.run(&half);
        if found.is_empty() {
            couple.show(&[second, b"\x18"].concat());
            found = couple.differences();
            if !found.is_empty() {
                found = couple.run(&octets);
            }
        }
        if !found.is_empty() {
            let text =
                format!("SEED={seed}: \"{}\"\n  {}", octets.escape_ascii(), found.join("\n  "));
            eprintln!("{text}");
            failures.lock().unwrap().push(text);
        }
    }
}

#[test]
fn a_stock_client_paints_what_we_say_it_shows() {
    #[allow(clippy::disallowed_methods, reason = "a seed to repeat")]
    let number =
        |name| -> Option<u64> { std::env::var(name).ok().map(|text| text.parse().unwrap()) };
    let (first, end, clients) = match number("SEED") {
        Some(seed) => (seed, seed + 1, 1),
        None => (0, number("SEEDS").unwrap_or(STREAMS), CLIENTS),
    };
    let next = AtomicU64::new(first);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| test_streams(&next, end, &failures));
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
