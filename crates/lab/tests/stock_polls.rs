//! Counts with strace(1) how often a stock `mosh-server` polls with our client at the other end.
//!
//! Mode 1007 makes two states of a stock server differ though the diff between them is empty (`mosh-protocol.md`
//! §11, 11). Having sent such a state, the server polls without a pause until it is acknowledged. mosh's own test
//! `network-no-diff` counts that too.

#![allow(clippy::unwrap_used, reason = "a test file")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{rove_program, say};
use rove_lab::testing::clock::Clock;
use rove_lab::testing::run::{PUMP, Program, Stranger};
use rove_lab::testing::scratch::Scratch;
use rove_term::Size;

/// The server sends the text at 0.5 s, and a heartbeat at 3.5 s with the changed mode. A client whose
/// acknowledgments make no state sends a heartbeat at 3 s, and the next not before 6 s.
const PROGRAM: &str =
    r"stty raw -echo; sleep 0.5; printf x; sleep 2.5; printf '\033[?1007h'; exec sleep 60";
/// All of that, and what follows.
const WATCHED: Duration = Duration::from_secs(8);
/// While it spins it polls some 870 times a second. Debian's client leaves it at about 70 in all; this allows
/// an answer that comes half a second late, on a machine that is busy.
const POLLS_MAX: usize = 600;
/// While two states differ and none was sent, it polls each 8 ms: for half a second here.
const DIFFERING_POLLS_MIN: usize = 10;

#[test]
fn our_client_does_not_make_a_stock_server_spin() {
    let clients = [("rove", rove_program()), ("stock", PathBuf::from("mosh-client"))];
    std::thread::scope(|scope| {
        for (name, client) in &clients {
            scope.spawn(move || {
                let polls = polls_of_a_stock_server(client);
                let differing = polls.iter().filter(|timeout| *timeout == "8000000").count();
                say(&format!("{name}: {} polls, {differing} of 8 ms", polls.len()));
                assert!(differing >= DIFFERING_POLLS_MIN, "{name}: the states never differed");
                assert!(polls.len() <= POLLS_MAX, "{name}: {} polls", polls.len());
            });
        }
    });
}

/// The nanoseconds, without the seconds, that each poll of the server would have waited.
fn polls_of_a_stock_server(client: &Path) -> Vec<String> {
    let scratch = Scratch::new().unwrap();
    let log = scratch.join("strace");
    let (mut tracer, server, port, key) = start_traced(&log, &scratch);
    let named = scratch.join("mosh-client");
    if client.is_absolute() {
        symlink(client, &named).unwrap();
    }
    let mut command = Command::new(if client.is_absolute() { &named } else { client });
    command.args(["127.0.0.1", &port]).env("MOSH_KEY", key).env("LC_ALL", "C.UTF-8");
    command.env("TERM", "xterm-256color").env("MOSH_PREDICTION_DISPLAY", "never");
    let mut client = Program::start(command, Size::DEFAULT).unwrap();
    let clock = Clock::start();
    while clock.elapsed() < WATCHED {
        client.pump(PUMP).unwrap();
        assert!(!client.has_ended(), "the client has ended");
    }
    assert!(client.shows("x"), "{:?}", client.screen().text());
    server.kill().unwrap();
    tracer.wait().unwrap();
    let traced = fs::read_to_string(&log).unwrap();
    let prefix = format!("{} ", server.pid());
    let polls = traced.lines().filter(|line| line.starts_with(&prefix));
    polls
        .filter_map(|line| Some(line.split("tv_nsec=").nth(1)?.split('}').next()?.to_owned()))
        .collect()
}

/// A server below strace(1), which therefore needs no rights; its process, port and key.
fn start_traced(log: &Path, scratch: &Scratch) -> (Child, Stranger, String, String) {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=pselect6,ppoll", "-e", "signal=none", "-o"]).arg(log);
    command.args(["mosh-server", "new", "-i", "127.0.0.1", "-p", "61000:61999", "--"]);
    command.args(["sh", "-c", PROGRAM]);
    command.env("LC_ALL", "C.UTF-8").env("HOME", scratch.path()).env("SHELL", "/bin/sh");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut tracer = command.spawn().expect("strace is installed (scripts/install-test-tools)");
    // strace keeps both open for as long as the server lives: so only as far as is needed.
    let connect = line_with("MOSH CONNECT ", tracer.stdout.take().unwrap());
    let detached = line_with("detached, pid = ", tracer.stderr.take().unwrap());
    let (port, key) = connect.split_once(' ').unwrap();
    let server = Stranger::open(detached.trim_end_matches(']').parse().unwrap()).unwrap();
    (tracer, server, port.to_owned(), key.to_owned())
}

/// The text behind these words in the first line that has them. The rest is not read.
fn line_with(words: &str, from: impl Read) -> String {
    let lines = BufReader::new(from).lines().map_while(Result::ok);
    let found =
        lines.filter_map(|line| Some(line.split_once(words)?.1.trim_end().to_owned())).next();
    found.expect(words)
}
