//! Clients without a shell that are killed: `rove exec`, `rove cp` and `rove -N`. `KILLS=100` kills as many, and `SEED=17`
//! begins at other moments; `sessions.rs` has those with a shell.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::Duration;

use rove_lab::testing::clock::Clock;
use rove_lab::testing::run::look_again_later;
use rove_ssp::Rng;

use crate::common::say;
use crate::host::{Case, Host, Outcome, bounded, output, run_cases, same, until, words};
use crate::sessions::{command, kills};

const CASES: [Case<Host>; 1] = [("row-11-streams", clients_without_a_shell_that_are_killed)];

/// Clients killed in a round.
const KILLED_AT_ONCE: u64 = 6;

#[test]
fn killed() {
    let host = Host::start("rovelab-killed", &[]);
    let failures = run_cases("killed", &CASES, &host);
    host.assert_none(&failures);
}

/// How long the hosts of killed clients without a shell wait for them: as the clients said, and 60 s for one that was killed
/// before it had said anything. More than that for a machine that does much else.
const GIVEN_UP: Duration = Duration::from_secs(20);
const UNCLAIMED: Duration = Duration::from_secs(60);
const BUSY: Duration = Duration::from_secs(20);

/// `rove exec`, `rove cp` and `rove -N` that are killed leave nothing behind for longer than they said: no server, no
/// program there, no ssh here.
fn clients_without_a_shell_that_are_killed(host: &Host) -> Outcome {
    let (first, kills) = kills()?;
    fs::write(host.near().join("sent"), vec![7; 3_000_000]).map_err(words)?;
    for seed in first..first + kills.div_ceil(KILLED_AT_ONCE) {
        let mut rng = Rng::new(seed);
        let working = killed_at_work(host).map_err(|fault| format!("SEED={seed}: {fault}"))?;
        say(&format!("{working} processes on the host of clients that were killed at work"));
        let took = left_behind(host, GIVEN_UP).map_err(|fault| format!("SEED={seed}: {fault}"))?;
        say(&format!("the last of them was gone after {took:?}"));
        let mut started = started(host)?;
        for client in &mut started {
            let clock = Clock::start();
            let wait = Duration::from_millis(rng.below(1000).into());
            while clock.elapsed() < wait {
                look_again_later().map_err(words)?;
            }
            client.kill().map_err(words)?;
            client.wait().map_err(words)?;
        }
        let took = left_behind(host, UNCLAIMED).map_err(|fault| format!("SEED={seed}: {fault}"))?;
        say(&format!("killed as they began, all were gone after {took:?}"));
    }
    Ok(())
}

/// One of each kind, begun a moment ago.
fn started(host: &Host) -> Result<[Child; 3], String> {
    let _ = fs::remove_file(host.home.join("sent"));
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
    let forwarding = format!("{}:127.0.0.1:9", port.map_err(words)?.port());
    let lines: [&[&str]; 3] = [
        &["exec", "--give-up=20", "here", "echo begun; sleep 1000"],
        &["cp", "--give-up=20", "-l", "2000", "sent", "here:"],
        &["-N", "--give-up=20", "-L", &forwarding, "here"],
    ];
    let [exec, copy, forward] = lines.map(|line| {
        let mut command = command(host, line);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().map_err(words)
    });
    Ok([exec?, copy?, forward?])
}

/// Kills one of each kind that is known to be at work. Returns how many processes that leaves on the host.
fn killed_at_work(host: &Host) -> Result<usize, String> {
    let mut clients = started(host)?;
    let output = clients[0].stdout.take().ok_or("no output")?;
    let mut first = String::new();
    BufReader::new(output).read_line(&mut first).map_err(words)?;
    same(&first, "begun\n")?;
    let part = host.home.join(".sent.rove-part");
    let length = || fs::metadata(&part).ok().map(|part| part.len());
    until("some of the file", || length().filter(|length| *length > 100_000))?;
    until("three servers and a program", || (processes(host).len() >= 4).then_some(()))?;
    for client in &mut clients {
        client.kill().map_err(words)?;
        client.wait().map_err(words)?;
    }
    let left = processes(host).len();
    if left >= 4 {
        Ok(left)
    } else {
        Err(format!("{left} processes are left, and none is waited for"))
    }
}

/// The user's processes on the host, and the client's ssh.
fn processes(host: &Host) -> Vec<String> {
    let mut here = bounded("pgrep");
    here.args(["-a", "-f", &format!("^ssh .*{}", host.config.display())]);
    let mut there = bounded("pgrep");
    there.args(["-a", "-u", &host.user]);
    let said = [here, there].map(|pgrep| output(pgrep).stdout);
    let lines = said.iter().map(|said| String::from_utf8_lossy(said).into_owned());
    lines.flat_map(|said| said.lines().map(String::from).collect::<Vec<_>>()).collect()
}

/// Waits until nothing is left, and no longer than that and what a busy machine needs.
fn left_behind(host: &Host, most: Duration) -> Result<Duration, String> {
    let clock = Clock::start();
    loop {
        let left = processes(host);
        if left.is_empty() {
            return Ok(clock.elapsed());
        }
        if clock.elapsed() > most + BUSY {
            return Err(format!("after {:?} these are left: {left:?}", clock.elapsed()));
        }
        look_again_later().map_err(words)?;
    }
}
