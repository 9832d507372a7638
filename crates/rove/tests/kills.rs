//! Kills clients and servers of real sessions at random moments, in random windows (threats row 24).
//!
//! A seed is a session: `SEED=17 KILLS=1 cargo test -p rove-shell --test kills` runs just that one, as far as real time
//! lets it be the same.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod gate;
mod terminal;
mod visitor;

use std::fs;
use std::process::Command;
use std::time::Duration;

use gate::say;
use rove_ssp::Rng;
use rustix::process::{Pid, Signal, kill_process};
use terminal::{Directory, ROVE, Terminal};
use visitor::{is_alive, wait_until};

/// Sessions in one run of the test; `KILLS=n` runs as many.
const KILLS: u64 = 12;

/// The program: it says its own number and its server's, then echoes.
const PROGRAM: &str = "echo pids=$$=$PPID=end; exec cat";

#[test]
fn nothing_is_left_of_what_is_killed() {
    let (first, kills) = (number("SEED").unwrap_or(1), number("KILLS").unwrap_or(KILLS));
    let directory = Directory::new("kills");
    let (mut faults, mut servers) = (0, Vec::new());
    for seed in first..first + kills {
        let ran = std::panic::catch_unwind(|| session(seed, &directory));
        match ran {
            Ok(server) => servers.push(server),
            Err(_) => {
                faults += 1;
                say(&format!("kills: SEED={seed} failed"));
            }
        }
    }
    say(&format!("kills: {kills} sessions from SEED={first}, {faults} failed"));
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "files are left: {left:?}");
    // What was killed could not take its login record back: the next start of a session does.
    let mut next = start(&directory, 80, 24, &[]);
    next.expect("=end");
    leave(&mut next);
    let who = Command::new("who").output().unwrap().stdout;
    let who = String::from_utf8_lossy(&who).into_owned();
    for server in servers {
        assert!(!who.contains(&format!("rove [{server}]")), "{who}");
    }
    assert_eq!(faults, 0, "sessions failed; the words above say which");
}

/// One session with a violent end; returns its server.
fn session(seed: u64, directory: &Directory) -> u32 {
    let mut rng = Rng::new(seed);
    let wire: &[&str] = [&[][..], &["--mosh-wire"]][rng.below(2) as usize];
    let mut terminal = start(directory, 40 + rng.below(200) as u16, 5 + rng.below(60) as u16, wire);
    terminal.expect_screen("the pids", |seen| pids(seen).is_some());
    let [program, server] = pids(terminal.screen()).unwrap();
    for _ in 0..rng.below(6) {
        match rng.below(2) {
            0 => terminal.resize(40 + rng.below(200) as u16, 5 + rng.below(60) as u16),
            _ => terminal.type_keys("some words\r"),
        }
        std::thread::sleep(Duration::from_millis(rng.below(40).into()));
    }
    let kill = |pid: u32, signal| kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal);
    if rng.below(2) == 0 {
        kill(server, Signal::KILL).unwrap();
        wait_until("the server has ended", || !is_alive(server));
        wait_until("its program has ended", || !is_alive(program));
        leave(&mut terminal);
    } else {
        kill(terminal.pid(), Signal::KILL).unwrap();
        assert_eq!(terminal.finish(), 137);
        // The session lives on without its client, until its host ends it: nobody else could give the terminal back.
        assert!(is_alive(server) && is_alive(program));
        kill(server, Signal::TERM).unwrap();
        wait_until("the server has ended", || !is_alive(server));
        wait_until("its program has ended", || !is_alive(program));
    }
    server
}

/// The user leaves, and finds the terminal as it was.
fn leave(terminal: &mut Terminal) {
    terminal.type_keys("\x1e.");
    terminal.finish();
    terminal.assert_given_back();
}

fn start(directory: &Directory, cols: u16, rows: u16, words: &[&str]) -> Terminal {
    let server = format!("--server={ROVE}");
    let words = [&["--local", &server], words, &["127.0.0.1", PROGRAM]].concat();
    let here = directory.path();
    let set = [("TMPDIR", here), ("XDG_RUNTIME_DIR", here)];
    Terminal::sized(cols, rows, ROVE, &words, &set)
}

/// The program and its server, once they are on the screen.
fn pids(seen: &rove_term::Terminal) -> Option<[u32; 2]> {
    let rows = seen.screen().text();
    let row = rows.iter().find(|row| row.starts_with("pids=") && row.ends_with("=end"))?;
    let mut pids = row.split('=').filter_map(|word| word.parse().ok());
    Some([pids.next()?, pids.next()?])
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}
