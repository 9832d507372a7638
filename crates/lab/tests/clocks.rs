//! Tests real programs under a wall clock that jumps by ten years and back, and a server that sleeps (threats row 40).
//! libfaketime gives client, server and shell their wall clock; nothing else on this machine sees the jumps.
//!
//! libfaketime sits between a program and its C library. It does not reach calls to the kernel itself, such as that
//! of `rove::os::clock` for the one clock of a session; `clippy.toml` ensures that only that file makes them.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]
#![allow(clippy::disallowed_methods, reason = "the wall clock is what is tested")]

mod common;

use std::fs;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, SystemTime};

use common::{lab_program, not_checked, retried, rove_program};
use rove_lab::testing::link::Profile;
use rove_lab::testing::pair::{Make, Pair, Setup, Watch};
use rove_lab::testing::relay::Direction;
use rove_lab::testing::run::Program;
use rove_lab::testing::scratch::Scratch;
use rove_term::Size;
use rustix::process::{Pid, Signal, kill_process};

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Ten years.
const JUMP_DAYS: i64 = 3650;

/// How many days the wall clock is off, one after the other; the first from before the session on.
const OFF_DAYS: [i64; 6] = [-JUMP_DAYS, 0, JUMP_DAYS, -JUMP_DAYS, JUMP_DAYS, 0];

/// A session whose wall clock can be set. It forwards a socket, so that its streams have their certificates under
/// that clock too, and so that its client may still open the file that holds the time.
struct Session {
    client: Program,
    scratch: Scratch,
    listener: UnixListener,
}

#[test]
fn a_wall_clock_that_jumps_is_nothing_to_a_session() {
    let Some(library) = library() else {
        not_checked("a_wall_clock_that_jumps_is_nothing_to_a_session", "no libfaketime");
        return;
    };
    // On a machine that stands still for seconds a session may rightly say that it heard nothing.
    if let Err(error) = jump(&library) {
        jump(&library).unwrap();
        retried("a_wall_clock_that_jumps_is_nothing_to_a_session", error);
    }
}

/// Octets of the datagram with which a search for longer ones begins on a path of Ethernet (docs/wire.md §9).
const PROBE: usize = 1452;

/// A server notices that it slept by its alarm, which comes late, and takes nothing for granted that it knew of the
/// path: it searches for the path's length again, which it would otherwise do after ten minutes. A suspended process
/// cannot tell the difference from a machine that sleeps.
#[test]
fn a_server_notices_that_it_slept() {
    let mut pair = Pair::start(&Setup {
        client: Make::Rove,
        server: Make::Rove,
        rove: rove_program(),
        lab: lab_program(),
        size: Size::clamped(60, 250),
        up: Profile::default(),
        down: Profile::default(),
        seed: 1,
        watch: Watch::Record,
    })
    .unwrap();
    let (copies, tapped) = channel();
    pair.relay().tap(copies);
    pair.wait_for("the shell", LIMIT, |pair| pair.wrote("$")).unwrap();
    assert!(searches(&mut pair, &tapped), "no search on a path of which nothing is known");
    // A probe that waits too long on a busy machine is sent again.
    let ends = (0..5).any(|_| !searches(&mut pair, &tapped));
    assert!(ends, "the search does not end, so that it shows nothing");
    let server = i32::try_from(pair.server().unwrap().pid()).unwrap();
    let server = Pid::from_raw(server).unwrap();
    kill_process(server, Signal::STOP).unwrap();
    // By then the server's next heartbeat is overdue for longer than any scheduler makes it wait.
    pair.wait_for("a long silence", LIMIT, |pair| pair.client().shows("Last contact 1")).unwrap();
    kill_process(server, Signal::CONT).unwrap();
    assert!(
        searches(&mut pair, &tapped),
        "no search: the server knows what it knew before it slept"
    );
}

/// Whether the server searches for longer datagrams while it sends some screens that do not shrink. A probe goes
/// alone; a screen whose parts happen to be as long has more of them than a search has tries.
fn searches(pair: &mut Pair, tapped: &Receiver<(Direction, Vec<u8>)>) -> bool {
    let line = "clear; head -c 9000 /dev/urandom | base64 -w 0; echo; echo round";
    (100..105).any(|round| {
        // The shell computes the number, so the echo of the line does not show it.
        pair.command(&format!("{line} $(({round} + 0))"), &format!("round {round}"), LIMIT)
            .unwrap();
        let down = tapped.try_iter().filter(|(direction, _)| *direction == Direction::Down);
        matches!(down.filter(|(_, octets)| octets.len() == PROBE).count(), 1..=3)
    })
}

/// Where Debian's package has it.
fn library() -> Option<PathBuf> {
    let places = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut libraries = places.map(|place| place.path().join("faketime/libfaketime.so.1"));
    libraries.find(|library| library.exists())
}

fn jump(library: &Path) -> io::Result<()> {
    let mut session = Session::start(library)?;
    let mut joined = Vec::new();
    for (round, days) in OFF_DAYS.into_iter().enumerate() {
        session.set_clock(days)?;
        session.ask_the_day(round, days)?;
        // Joined connections go on, and more can be joined.
        joined.push(session.connect()?);
        for (near, far) in &mut joined {
            near.write_all(b"through")?;
            session.expect(far, b"through")?;
        }
    }
    drop(joined);
    session.client.send("exit\r");
    let status = session.client.wait_exit(LIMIT)?;
    let told = session.client.screen().text().join("\n");
    // The last output of `-v`.
    let calm = told.contains("ended cleanly") && told.contains(" 0 changes of port");
    match status.success() && calm {
        true => Ok(()),
        false => Err(io::Error::other(format!("{status}:\n{told}"))),
    }
}

impl Session {
    fn start(library: &Path) -> io::Result<Session> {
        let scratch = Scratch::new()?;
        let listener = UnixListener::bind(scratch.join("far"))?;
        listener.set_nonblocking(true)?;
        fs::write(scratch.join("clock"), offset(OFF_DAYS[0]))?;
        let (near, far) = (scratch.join("near"), scratch.join("far"));
        let rove = rove_program();
        let mut command = Command::new(&rove);
        command
            .arg("-v")
            .args(["-L", &format!("{}:{}", near.display(), far.display())])
            .args(["--local", &format!("--server={}", rove.display()), "127.0.0.1"])
            .arg("echo ready; exec sh")
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", scratch.join("clock"))
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DISABLE_SHM", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("DONT_FAKE_MONOTONIC", "1")
            .env("NO_FAKE_STAT", "1")
            .env("HOME", scratch.path())
            .env("SHELL", "/bin/sh")
            .env("PS1", "$ ")
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("XDG_STATE_HOME", scratch.path());
        // Room for all that `-v` tells, a line a row.
        let client = Program::start(command, Size::clamped(60, 250))?;
        let mut session = Session { client, scratch, listener };
        session.client.wait_for("the shell", LIMIT, |client| client.shows("ready"))?;
        Ok(session)
    }

    /// At once, so that no process reads half a file.
    fn set_clock(&self, days: i64) -> io::Result<()> {
        fs::write(self.scratch.join("next"), offset(days))?;
        fs::rename(self.scratch.join("next"), self.scratch.join("clock"))
    }

    /// Types, and sees the answer of a program that has the clock.
    fn ask_the_day(&mut self, round: usize, off: i64) -> io::Result<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let today = i64::try_from(now.as_secs() / 86_400).unwrap() + off;
        // Midnight may pass meanwhile.
        let days = [today, today + 1].map(|day| format!("round {round} is day {day}"));
        self.client.send(format!("echo round {round} is day $(($(date +%s) / 86400))\r"));
        self.client.wait_for(&format!("{:?}", days[0]), LIMIT, |client| {
            days.iter().any(|day| client.shows(day))
        })?;
        // The answer is contact, so that any later message is about a time that never passed.
        match self.client.shows("Last contact") {
            false => Ok(()),
            true => Err(self.client.missed("no word of a lost contact", Duration::ZERO).into()),
        }
    }

    /// A connection through the session: both its ends.
    fn connect(&mut self) -> io::Result<(UnixStream, UnixStream)> {
        let near = UnixStream::connect(self.scratch.join("near"))?;
        let mut far = None;
        let listener = &self.listener;
        self.client.wait_for("a connection", LIMIT, |_| {
            far = far.take().or_else(|| listener.accept().ok());
            far.is_some()
        })?;
        let (far, _) = far.ok_or(ErrorKind::NotConnected)?;
        far.set_nonblocking(true)?;
        Ok((near, far))
    }

    fn expect(&mut self, from: &mut UnixStream, wanted: &[u8]) -> io::Result<()> {
        let mut read = Vec::new();
        self.client.wait_for("what was forwarded", LIMIT, |_| {
            let mut octets = [0; 64];
            if let Ok(len) = from.read(&mut octets) {
                read.extend_from_slice(&octets[..len]);
            }
            read == wanted
        })
    }
}

/// As libfaketime wants it: an offset of whole days.
fn offset(days: i64) -> String {
    format!("{days:+}d\n")
}
