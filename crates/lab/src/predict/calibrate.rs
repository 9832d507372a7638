//! `rove-lab calibrate`: types the same recordings at the real stock client, in real time over a relay, and at our
//! machines with stock's rules in virtual time. Where both agree, the judge's model of stock is right.
//!
//! It observes the real client from outside: its terminal through our emulator, and its datagrams through the
//! relay's tap, with two endpoints of ours that only receive.

use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use clap::Args;
use rove_session::input::Event as Typed;
use rove_session::predict::{Display, Settings};
use rove_session::{Input, Peer, View};
use rove_ssp::{
    Arrival, Config as EndpointConfig, Endpoint, Key, Machine as _, MoshWire, Role, State,
    StateNum, Time, Timing,
};
use rove_term::Terminal;

use super::act::{ActFlags, TOLD_KEY, TOLD_OUTPUT};
use super::judge::{self, Deed, Judge, Tally};
use super::replay::{self, Scenario};
use super::trace::{Kind, Trace};
use super::{HEADER, PathWord, Rows, line};
use crate::clock::Clock;
use crate::relay::{self, Direction, Relay};
use crate::run::{Program, Stranger};
use crate::scratch::Scratch;
use crate::stock::{PORTS, launch};

/// Types recorded sessions at the real stock client and at stock's rules in virtual time
#[derive(Args, Clone, Debug)]
pub(crate) struct CalibrateFlags {
    /// A recorded session; all are typed at the same time
    #[arg(long = "trace", value_name = "FILE", required = true, num_args = 1..)]
    traces: Vec<PathBuf>,
    /// The path to type over; all of them by default
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<PathWord>,
    /// The part of each recording that is used, in seconds
    #[arg(long, value_name = "SECONDS")]
    span: Option<f64>,
    /// One row for each program, and for each recording
    #[arg(long)]
    by_program: bool,
    /// List the keys that one of them showed at once and the other did not
    #[arg(long)]
    keys: bool,
}

/// A key counts as shown at once within this, at the real client and at the model: in real time a busy
/// machine runs late. No frame that answers a key can come so early on any of the paths.
pub(crate) const AT_ONCE: Duration = Duration::from_millis(40);

/// How often the client's terminal is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// Runs `rove-lab calibrate`.
///
/// # Errors
/// A trace that cannot be read, or a client or server that does not run.
pub(crate) fn run(flags: &CalibrateFlags) -> io::Result<i32> {
    let lab = std::env::current_exe()?;
    println!("{HEADER}");
    for path in super::paths(&flags.paths) {
        let scenario = path.scenario();
        let loaded: Vec<(PathBuf, Trace)> = flags
            .traces
            .iter()
            .map(|path| Ok((path.canonicalize()?, Trace::load(path)?.cut(flags.span)?)))
            .collect::<io::Result<_>>()?;
        let real: Vec<io::Result<Seen>> = std::thread::scope(|scope| {
            let stages: Vec<_> = loaded
                .iter()
                .map(|(path, trace)| {
                    let (lab, scenario) = (&lab, &scenario);
                    scope.spawn(move || real_rows(lab, path, trace, flags.span, scenario))
                })
                .collect();
            let lost = || io::Error::other("a stage panicked");
            stages.into_iter().map(|stage| stage.join().map_err(|_| lost())?).collect()
        });
        let (mut client, mut model) = (Rows::default(), Rows::default());
        for ((_, trace), seen) in loaded.iter().zip(real) {
            let Seen { rows, latencies } = seen?;
            client.merge(rows);
            let deeds = judge::deeds(trace);
            let settings = Settings::STOCK.with_display(Display::Adaptive);
            let replay::Replayed { judge, end, .. } =
                replay::replay(trace, &deeds, &scenario, settings)
                    .map_err(|fault| io::Error::other(format!("{}: {fault}", trace.name)))?;
            if flags.keys {
                list_differences(&trace.name, &deeds, &latencies, judge.latencies());
            }
            let judge = judge.at_once_within(AT_ONCE);
            model.add(&trace.name, &judge.finish(end).0);
        }
        for (name, rows) in [("real", &client), ("model", &model)] {
            for (row, tally) in rows.parts.iter().filter(|_| flags.by_program) {
                println!("{}", line(scenario.name, name, row, tally));
            }
            println!("{}", line(scenario.name, name, "all", &rows.all));
        }
    }
    Ok(0)
}

/// The tallies of a recording, and when each of its keys was seen.
struct Seen {
    rows: Rows,
    latencies: Vec<Option<Duration>>,
}

/// The keys that one of them showed at once and the other did not.
fn list_differences(
    trace: &str,
    deeds: &[Deed],
    real: &[Option<Duration>],
    model: &[Option<Duration>],
) {
    let at_once = |seen: &Option<Duration>| seen.is_some_and(|seen| seen <= AT_ONCE);
    for (number, deed) in deeds.iter().enumerate() {
        if deed.effect != judge::Effect::None && at_once(&real[number]) != at_once(&model[number]) {
            println!(
                "    {trace}.cast {} at {:?}, key {number} ({:?}): real {:?}, model {:?}",
                deed.program,
                deed.at,
                String::from_utf8_lossy(&deed.octets),
                real[number],
                model[number]
            );
        }
    }
}

fn real_rows(
    lab: &Path,
    path: &Path,
    trace: &Trace,
    span: Option<f64>,
    scenario: &Scenario,
) -> io::Result<Seen> {
    let deeds = judge::deeds(trace);
    let (judge, end) = real(lab, path, trace, span, &deeds, scenario)?;
    let latencies = judge.latencies().to_vec();
    let mut rows = Rows::default();
    rows.add(&trace.name, &judge.finish(end).0);
    Ok(Seen { rows, latencies })
}

/// Counts the real stock client's guesses on this recording, in real time.
///
/// # Errors
/// If stock's programs do not run.
pub(crate) fn real<'a>(
    lab: &Path,
    path: &Path,
    trace: &Trace,
    span: Option<f64>,
    deeds: &'a [Deed],
    scenario: &Scenario,
) -> io::Result<(Judge<'a>, Time)> {
    let mut stage = Stage::start(lab, path, trace, span, deeds, scenario)?;
    let typed = replay::typing(deeds, scenario);
    let mut keys = typed.iter().zip(deeds).peekable();
    let end = typed.last().map_or(Time::ZERO, |last| *last + replay::TAIL);
    while stage.clock.now() < end {
        while let Some((_, deed)) = keys.next_if(|(at, _)| **at <= stage.clock.now()) {
            stage.listen()?;
            stage.judge.key_on_its_way(stage.clock.now());
            stage.client.send(&deed.octets);
            stage.client.pump(Duration::ZERO)?;
            stage.look();
        }
        let next = keys.peek().map_or(LOOK, |(at, _)| at.since(stage.clock.now()));
        stage.client.pump(next.min(LOOK))?;
        stage.listen()?;
        stage.look();
        if stage.client.has_ended() {
            return Err(stage.client.missed("the client ended", stage.clock.elapsed()).into());
        }
    }
    let judge = std::mem::replace(&mut stage.judge, Judge::new(&[]));
    Ok((judge, end))
}

/// A stock client and server, and their observers.
struct Stage<'a> {
    clock: Clock,
    client: Program,
    /// How much the client had written at the last look.
    looked: u64,
    _server: Stranger,
    taps: Receiver<(Direction, Vec<u8>)>,
    /// Receives the client's datagrams.
    keys: DatagramTap<View, Input>,
    /// Octets of keys heard, and where in the stream.
    octets: usize,
    heard: u64,
    /// Receives the server's datagrams.
    frames: DatagramTap<Input, View>,
    frame: StateNum,
    acts: UnixStream,
    /// Output that the program still has to write, and the screen on which it will show.
    outputs: std::vec::IntoIter<Vec<u8>>,
    terminal: Terminal,
    lengths: Vec<usize>,
    judge: Judge<'a>,
    _relay: Relay,
    _scratch: Scratch,
}

/// An endpoint that only receives.
struct DatagramTap<L: State, R: State>(Endpoint<L, R>);

impl<L: State, R: State> DatagramTap<L, R> {
    fn new(role: Role, key: &str, local: L, remote: R) -> io::Result<Self> {
        let key = Key::from_base64(key).map_err(|_| io::Error::other("no key"))?;
        let config = EndpointConfig {
            role,
            wire: Box::new(MoshWire::new(key, role)),
            timing: Timing::MOSH,
            peer: None,
            local,
            remote,
            seed: 1,
        };
        Ok(Self(Endpoint::new(Time::ZERO, config)))
    }

    fn hear(&mut self, now: Time, mut datagram: Vec<u8>) {
        let from = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        // A datagram that the real end drops may be dropped here, too.
        let _ = self.0.handle_datagram(
            now,
            Arrival { from: from.into(), congested: false },
            &mut datagram,
        );
        while self.0.poll_event().is_some() {}
    }
}

impl<'a> Stage<'a> {
    fn start(
        lab: &Path,
        path: &Path,
        trace: &Trace,
        span: Option<f64>,
        deeds: &'a [Deed],
        scenario: &Scenario,
    ) -> io::Result<Self> {
        let scratch = Scratch::new()?;
        let socket = scratch.join("acts");
        let listener = UnixListener::bind(&socket)?;
        let mut command = Command::new("mosh-server");
        command.args(["new", "-i", "127.0.0.1", "-p", PORTS, "-c", "256", "--"]);
        command.arg(lab).args(ActFlags::words(path, &socket, span));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        command.env("HOME", scratch.path()).env("SHELL", "/bin/sh");
        let (port, key, server) = launch(command)?;
        let relay = Relay::start(relay::Config {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            target: Some((Ipv4Addr::LOCALHOST, port).into()),
            up: scenario.up.clone(),
            down: scenario.down.clone(),
            seed: 1,
        })?;
        let (copies, taps) = channel();
        relay.tap(copies);
        let key = key.to_base64();
        let mut command = Command::new("mosh-client");
        command.arg("127.0.0.1").arg(relay.address().port().to_string());
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        command.env("TERM", "xterm-256color").env("MOSH_KEY", &*key).env("HOME", scratch.path());
        let clock = Clock::start();
        let client = Program::start(command, trace.size)?;
        let (acts, _) = listener.accept()?;
        acts.set_nonblocking(true)?;
        let outputs = trace.events.iter().filter_map(|event| match &event.kind {
            Kind::Output(output) => Some(output.clone()),
            _ => None,
        });
        Ok(Stage {
            clock,
            client,
            looked: 0,
            _server: server,
            taps,
            keys: DatagramTap::new(
                Role::Server,
                &key,
                View::new(trace.size, Peer::Stock),
                Input::default(),
            )?,
            octets: 0,
            heard: 0,
            frames: DatagramTap::new(
                Role::Client,
                &key,
                Input::default(),
                View::new(trace.size, Peer::Stock),
            )?,
            frame: StateNum::ZERO,
            acts,
            outputs: outputs.collect::<Vec<_>>().into_iter(),
            terminal: Terminal::new(trace.size, super::trace::DIALECT),
            lengths: deeds.iter().map(|deed| deed.octets.len()).collect(),
            judge: Judge::new(deeds).at_once_within(AT_ONCE),
            _relay: relay,
            _scratch: scratch,
        })
    }

    /// Takes the program's notices and the relay's datagrams.
    fn listen(&mut self) -> io::Result<()> {
        let mut told = [0; 1024];
        loop {
            match self.acts.read(&mut told) {
                Ok(0) => return Err(io::Error::other("the program ended")),
                Ok(length) => told[..length].iter().for_each(|octet| self.told(*octet)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        while let Ok((direction, datagram)) = self.taps.try_recv() {
            let now = self.clock.now();
            match direction {
                Direction::Up => {
                    self.keys.hear(now, datagram);
                    self.hear_keys();
                }
                Direction::Down => {
                    self.frames.hear(now, datagram);
                    self.hear_frames(now);
                }
            }
        }
        Ok(())
    }

    fn told(&mut self, octet: u8) {
        let now = self.clock.now();
        match octet {
            TOLD_KEY => self.judge.delivered(now),
            TOLD_OUTPUT => {
                if let Some(output) = self.outputs.next() {
                    self.terminal.advance(&output);
                    self.judge.held(now, self.terminal.screen());
                }
            }
            _ => {}
        }
    }

    fn hear_keys(&mut self) {
        let input = self.keys.0.remote();
        for event in input.since(self.heard) {
            if let Typed::Keys(octets) = event {
                self.octets += octets.len();
            }
        }
        self.heard = input.end();
        let mut left = self.octets;
        let whole = self.lengths.iter().take_while(|length| {
            let fits = **length <= left;
            left = left.saturating_sub(**length);
            fits
        });
        let keys = whole.count();
        self.judge.carried(keys, self.keys.0.remote_num());
    }

    fn hear_frames(&mut self, now: Time) {
        let number = self.frames.0.remote_num();
        if number != self.frame {
            self.frame = number;
            let view = self.frames.0.remote();
            self.judge.frame(now, view.echo_ack(), view.screen());
        }
    }

    fn look(&mut self) {
        if self.client.output_bytes() != self.looked {
            self.looked = self.client.output_bytes();
            self.judge.paint(self.clock.now(), self.client.screen());
        }
    }
}

/// The results of both on one recording, for tests: the real client's tally, and the model's.
///
/// # Errors
/// If stock's programs do not run, or the replay fails.
pub fn both(lab: &Path, path: &Path, span: f64, scenario: &Scenario) -> io::Result<(Tally, Tally)> {
    let trace = Trace::load(path)?.cut(Some(span))?;
    let client = real_rows(lab, path, &trace, Some(span), scenario)?;
    let deeds = judge::deeds(&trace);
    let replay::Replayed { judge, end, .. } =
        replay::replay(&trace, &deeds, scenario, Settings::STOCK)
            .map_err(|fault| io::Error::other(fault.to_string()))?;
    let mut model = Rows::default();
    model.add(&trace.name, &judge.at_once_within(AT_ONCE).finish(end).0);
    Ok((client.rows.all, model.all))
}
