//! Sessions that outlive their clients: left, lost, shared, taken over, and found again.
//!
//! `KILLS=100` kills as many clients in row 11; `SEED=17` begins with another.
#![allow(clippy::disallowed_methods, reason = "tests are steered by their environment")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rove_lab::testing::clock::Clock;
use rove_lab::testing::run::{Program, look_again_later};
use rove_ssp::Rng;
use rove_term::Size;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{rove_program, say};
use crate::host::{Case, Host, LIMIT, Outcome, bounded, clean, output, run_cases, same, words};

const CASES: [Case<Host>; 9] = [
    ("row-10", left_and_found_again),
    ("row-11", clients_that_are_killed),
    ("row-12", two_that_type_and_one_that_looks),
    ("row-13", taken_over),
    ("row-14", a_command_that_ends_while_its_client_sleeps),
    ("ended", an_end_that_another_client_has_seen),
    ("row-15", directories_of_others),
    ("row-24", a_copy_whose_client_was_killed),
    ("names", names_and_lifetimes),
];

/// Clients killed in one run of the test.
const KILLS: u64 = 5;

/// How long it may take to see a session again after its client was killed, where this machine has nothing else to do.
const AGAIN_MAX: Duration = Duration::from_secs(2);

const ROWS: u16 = 24;

#[test]
fn sessions() {
    let host = Host::start("rovelab-sessions", &[]);
    let failures = run_cases("sessions", &CASES, &host);
    host.assert_none(&failures);
}

/// rove with these words on a terminal of its own.
fn client(host: &Host, line: &[&str], size: Size) -> Result<Program, String> {
    Program::start(command(host, line), size).map_err(words)
}

/// One of rove's commands, with ssh's configuration.
pub fn command(host: &Host, line: &[&str]) -> Command {
    let mut command = Command::new(rove_program());
    let (name, rest) = match line {
        [name @ ("ls" | "attach" | "new" | "kill" | "cp" | "exec"), rest @ ..] => {
            (Some(*name), rest)
        }
        rest => (None, rest),
    };
    command.args(name).arg("-F").arg(&host.config).args(rest);
    settle(host, &mut command);
    command
}

fn settle(host: &Host, command: &mut Command) {
    command.current_dir(host.near()).env("HOME", host.near()).env("TERM", "xterm-256color");
    command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME").env("LANG", "C.UTF-8");
    command.env_remove("ROVE_SESSION");
}

/// What a command says that needs no terminal, on both streams, and whether it went well.
fn told(host: &Host, line: &[&str]) -> (bool, String) {
    let said = output(command(host, line));
    let (out, errors) =
        (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    (said.status.success(), format!("{out}{errors}"))
}

fn says(host: &Host, line: &[&str], texts: &[&str]) -> Outcome {
    let (_, said) = told(host, line);
    match texts.iter().find(|text| !said.contains(**text)) {
        None => Ok(()),
        Some(text) => Err(format!("{line:?} does not say {text:?}: {said}")),
    }
}

fn shows(client: &mut Program, text: &str) -> Outcome {
    let bare = text.replace(' ', "");
    let is_there = |client: &Program| joined(client).contains(&bare);
    client.wait_for(text, LIMIT, is_there).map_err(words)
}

/// The screen's text without its blanks: a line may be wrapped anywhere.
fn joined(client: &Program) -> String {
    client.screen().text().concat().replace(' ', "")
}

fn size(rows: u16, cols: u16) -> Size {
    Size::clamped(rows, cols)
}

/// Types the commands that make a shell's output nothing but what programs print.
fn quiet(client: &mut Program) -> Outcome {
    client.send("PS1=; stty -echo; echo rea''dy\r");
    shows(client, "ready")
}

fn numbers(client: &Program) -> Vec<u32> {
    client.lines().iter().filter_map(|line| line.trim().parse().ok()).collect()
}

fn end(host: &Host, name: &str) -> Outcome {
    let (is_well, said) = told(host, &["kill", &format!("here:{name}")]);
    if is_well { Ok(()) } else { Err(said) }
}

fn left_and_found_again(host: &Host) -> Outcome {
    let mut first = client(host, &["here"], size(ROWS, 80))?;
    quiet(&mut first)?;
    first.send("seq 1 200\r");
    shows(&mut first, "200")?;
    first.send("\x1ed");
    let status = first.wait_exit(LIMIT).map_err(words)?;
    same(status.to_string(), "exit status: 0")?;
    let config = host.config.display();
    shows(
        &mut first,
        &format!(
            "rove: detached from 1 on here, which goes on. Back to it: rove attach -F {config} here:1"
        ),
    )?;
    says(host, &["ls", "here"], &["NAME", "bash", "none, left", "80x24"])?;
    says(host, &["ls", "--json", "here"], &["\"state\": \"running\"", "\"columns\": 80"])?;
    let mut second = client(host, &["attach", "here"], size(ROWS, 80))?;
    shows(&mut second, "200")?;
    second
        .wait_for("all lines", LIMIT, |client| numbers(client) == (1..=200).collect::<Vec<_>>())
        .map_err(|error| format!("{error}: {:?}", numbers(&second)))?;
    let mut third = client(host, &["attach", "--fill=0", "here:1"], size(ROWS, 80))?;
    shows(&mut third, "200")?;
    third.send("echo $ROVE_SESSION | wc -c; echo ov''er\r");
    shows(&mut third, "over")?;
    let seen = numbers(&third);
    if seen.contains(&100) || !seen.contains(&9) {
        return Err(format!("lines that were not wanted, or no id: {seen:?}"));
    }
    third.send("exit 7\r");
    for client in [&mut third, &mut second] {
        same(client.wait_exit(LIMIT).map_err(words)?.to_string(), "exit status: 7")?;
    }
    says(host, &["ls", "here"], &["no sessions of yours on here"])?;
    says(host, &["attach", "here:1"], &["needs one"])
}

/// A program that says back what it is told, line by line.
const ECHO: &str = "stty -echo; echo ready; while read -r word; do echo \"got $word\"; done";

/// The first seed, and how many clients are killed.
pub fn kills() -> Result<(u64, u64), String> {
    let number = |name: &str, usual| match std::env::var(name) {
        Ok(text) => text.parse().map_err(words),
        Err(_) => Ok(usual),
    };
    Ok((number("SEED", 1)?, number("KILLS", KILLS)?))
}

fn clients_that_are_killed(host: &Host) -> Outcome {
    let (first, kills) = kills()?;
    let mut longest = Duration::ZERO;
    let mut faults = Vec::new();
    for seed in first..first + kills {
        match kill_and_return(host, seed) {
            Ok(took) => longest = longest.max(took),
            Err(fault) => faults.push(format!("SEED={seed}: {fault}")),
        }
    }
    say(&format!("{kills} clients were killed; the longest return took {longest:?}"));
    if longest > AGAIN_MAX {
        say(&format!("that is longer than {AGAIN_MAX:?}, which this machine may be too busy for"));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Returns how long it took from the new client's start to the first picture.
fn kill_and_return(host: &Host, seed: u64) -> Result<Duration, String> {
    let mut rng = Rng::new(seed);
    let name = format!("k{seed}");
    let mut near = client(host, &["new", "-s", &name, "here", ECHO], size(ROWS, 80))?;
    shows(&mut near, "ready")?;
    let acknowledged = rng.below(60);
    let mut typed: Vec<String> = Vec::new();
    for number in 0..acknowledged {
        typed.push(format!("a{number}"));
        near.send(format!("a{number}\r"));
    }
    if let Some(last) = typed.last() {
        shows(&mut near, &format!("got {last}"))?;
    }
    // These may come or not, in order and once.
    let more = rng.below(20);
    for number in 0..more {
        near.send(format!("b{number}\r"));
    }
    near.pump(Duration::from_millis(rng.below(120).into())).map_err(words)?;
    near.kill().map_err(words)?;
    near.wait_exit(LIMIT).map_err(words)?;
    let clock = Clock::start();
    let mut far = client(host, &["attach", &format!("here:{name}")], size(30, 100))?;
    shows(&mut far, typed.last().map_or("ready", |last| last.as_str()))?;
    let took = clock.elapsed();
    far.send("end\r");
    let is_last = |client: &Program| client.lines().iter().any(|line| line.trim() == "got end");
    far.wait_for("the end", LIMIT, is_last).map_err(words)?;
    let all = |client: &Program| -> Vec<String> {
        let lines = client.lines();
        let lines = lines.iter().filter_map(|line| line.trim().strip_prefix("got "));
        lines.map(str::to_owned).collect()
    };
    let is_right = |found: &[String]| {
        let later = found.get(typed.len()..).unwrap_or_default();
        let (end, later) = match later.split_last() {
            Some((end, later)) => (end, later),
            None => return false,
        };
        let wanted = (0..more).map(|number| format!("b{number}"));
        found.starts_with(&typed)
            && end == "end"
            && later.iter().cloned().eq(wanted.take(later.len()))
    };
    let found = far.wait_for("all lines once", LIMIT, |client| is_right(&all(client)));
    found.map_err(|error| format!("{error}: {:?} after {typed:?}", all(&far)))?;
    drop(far);
    end(host, &name)?;
    Ok(took)
}

/// One screen for all, of the size of the window in which somebody typed last.
fn two_that_type_and_one_that_looks(host: &Host) -> Outcome {
    let mut small = client(host, &["new", "-s", "both", "here", "bash --norc"], size(ROWS, 80))?;
    quiet(&mut small)?;
    let mut large = client(host, &["attach", "here:both"], size(50, 200))?;
    shows(&mut large, "ready")?;
    shows(&mut small, "127.0.0.1 has attached too")?;
    large.send("until [ \"$(stty size)\" = '50 200' ]; do sleep 0.1; done; echo la''rge\r");
    for client in [&mut large, &mut small] {
        shows(client, "large")?;
    }
    small.send("until [ \"$(stty size)\" = '24 80' ]; do sleep 0.1; done; echo sma''ll\r");
    for client in [&mut small, &mut large] {
        shows(client, "small")?;
    }
    let mut viewer = client(host, &["attach", "--view", "here:both"], size(40, 132))?;
    shows(&mut viewer, "small")?;
    viewer.send("echo kilroy was here\r");
    viewer.pump(Duration::from_millis(300)).map_err(words)?;
    large.send("until [ \"$(stty size)\" = '50 200' ]; do sleep 0.1; done; echo aft''er\r");
    for client in [&mut large, &mut small, &mut viewer] {
        shows(client, "after")?;
    }
    if large.lines().iter().any(|line| line.contains("kilroy")) {
        return Err("what was typed by one that only looks has come".into());
    }
    says(host, &["ls", "here"], &["both", "127.0.0.1, 127.0.0.1, 127.0.0.1", "200x50"])?;
    viewer.send("\x1ed");
    viewer.wait_exit(LIMIT).map_err(words)?;
    large.send("exit\r");
    for client in [&mut large, &mut small] {
        same(client.wait_exit(LIMIT).map_err(words)?.to_string(), "exit status: 0")?;
    }
    no_sessions_are_left(host)
}

fn taken_over(host: &Host) -> Outcome {
    let rove = format!("{} new -F {}", rove_program().display(), host.config.display());
    let line =
        format!("{rove} -s desk here bash --norc; echo status $?; stty -a | grep -o -- -icanon");
    let mut shell = bounded("bash");
    shell.args(["--norc", "-c", &line]);
    settle(host, &mut shell);
    let mut before = Program::start(shell, size(ROWS, 80)).map_err(words)?;
    quiet(&mut before)?;
    let mut after = client(host, &["attach", "--take", "here:desk"], size(ROWS, 80))?;
    shows(&mut after, "ready")?;
    before.wait_exit(LIMIT).map_err(words)?;
    let config = host.config.display();
    let said = "rove: desk was taken over by 127.0.0.1. To take it back: rove attach";
    shows(&mut before, &format!("{said} -F {config} --take here:desk"))?;
    shows(&mut before, "status 0")?;
    if joined(&before).contains("-icanon") {
        return Err("the terminal was not given back".into());
    }
    after.send("exit 3\r");
    same(after.wait_exit(LIMIT).map_err(words)?.to_string(), "exit status: 3")
}

/// How long the client of row 14 sleeps. An hour of it is `the_end_of_a_command_waits_for_a_client_that_sleeps` of
/// `session/tests/sessions/end.rs`, in virtual time; here it is long enough for the client to count as away, and for its
/// address to be forgotten.
const SLEEP: Duration = Duration::from_secs(45);

fn a_command_that_ends_while_its_client_sleeps(host: &Host) -> Outcome {
    let go = host.home.join("go");
    let line = "echo ready; until test -e go; do sleep 0.1; done; seq 1 300; exit 3";
    let mut sleeper = client(host, &["new", "-s", "late", "here", line], size(ROWS, 80))?;
    shows(&mut sleeper, "ready")?;
    let pid = i32::try_from(sleeper.pid()).ok().and_then(Pid::from_raw).ok_or("no process")?;
    kill_process(pid, Signal::STOP).map_err(words)?;
    let clock = Clock::start();
    fs::write(&go, "").map_err(words)?;
    crate::host::until("the end of the command", || {
        told(host, &["ls", "here"]).1.contains("ended with status 3").then_some(())
    })?;
    while clock.elapsed() < SLEEP {
        look_again_later().map_err(words)?;
    }
    says(host, &["ls", "here"], &["late", "ended with status 3"])?;
    kill_process(pid, Signal::CONT).map_err(words)?;
    same(sleeper.wait_exit(LIMIT).map_err(words)?.to_string(), "exit status: 3")?;
    let seen = numbers(&sleeper);
    if seen != (1..=300).collect::<Vec<_>>() {
        return Err(format!("not all lines once: {seen:?}"));
    }
    fs::remove_file(&go).map_err(words)?;
    no_sessions_are_left(host)
}

/// The name of a session is free once somebody has seen its end, though a client that was killed never hears of it.
fn an_end_that_another_client_has_seen(host: &Host) -> Outcome {
    let mut lost = client(host, &["new", "-s", "seen", "here", ECHO], size(ROWS, 80))?;
    shows(&mut lost, "ready")?;
    lost.kill().map_err(words)?;
    lost.wait_exit(LIMIT).map_err(words)?;
    let mut back = client(host, &["attach", "here:seen"], size(ROWS, 80))?;
    shows(&mut back, "ready")?;
    back.send("\x04");
    same(back.wait_exit(LIMIT).map_err(words)?.to_string(), "exit status: 0")?;
    let mut next = client(host, &["new", "-s", "seen", "here", "echo again; cat"], size(ROWS, 80))?;
    shows(&mut next, "again")?;
    drop(next);
    end(host, "seen")?;
    no_sessions_are_left(host)
}

/// Who was told the end is not waited for, nor who has left.
fn no_sessions_are_left(host: &Host) -> Outcome {
    crate::host::until("the end of all sessions", || {
        told(host, &["ls", "here"]).1.contains("no sessions of yours on here").then_some(())
    })
}

/// Where somebody else has the directory, sessions work and are found in another; where none can be had, they work.
fn directories_of_others(host: &Host) -> Outcome {
    let uid = clean({
        let mut id = bounded("id");
        id.args(["-u", &host.user]);
        id
    })?;
    let usual = PathBuf::from(format!("/tmp/rove-{}", uid.trim()));
    for (case, why) in
        [("another's", "another user's"), ("link", "a link"), ("mode", "open to others")]
    {
        let _ = fs::remove_dir_all(&usual);
        match case {
            "link" => symlink(host.near(), &usual).map_err(words)?,
            _ => fs::create_dir(&usual).map_err(words)?,
        }
        if case == "mode" {
            let uid = uid.trim().parse().map_err(words)?;
            chown(&usual, Some(uid), None).map_err(words)?;
            fs::set_permissions(&usual, fs::Permissions::from_mode(0o755)).map_err(words)?;
        }
        let outcome = in_another_directory(host, why);
        let removed = match case {
            "link" => fs::remove_file(&usual),
            _ => fs::remove_dir_all(&usual),
        };
        removed.map_err(words)?;
        outcome.map_err(|error| format!("{case}: {error}"))?;
    }
    let begun = format!("rove-{}-", uid.trim());
    for entry in fs::read_dir("/tmp").map_err(words)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&begun) {
            fs::remove_dir_all(entry.path()).map_err(words)?;
        }
    }
    Ok(())
}

fn in_another_directory(host: &Host, why: &str) -> Outcome {
    let mut first = client(host, &["new", "-s", "safe", "here", "bash --norc"], size(ROWS, 80))?;
    quiet(&mut first)?;
    says(host, &["ls", "here"], &[why, "safe", "bash"])?;
    first.send("\x1ed");
    first.wait_exit(LIMIT).map_err(words)?;
    let mut second = client(host, &["attach", "here:safe"], size(ROWS, 80))?;
    shows(&mut second, "ready")?;
    second.send("exit\r");
    second.wait_exit(LIMIT).map_err(words).map(drop)
}

/// The server of a killed copy holds its part; the next copy need not wait until that notices by itself.
fn a_copy_whose_client_was_killed(host: &Host) -> Outcome {
    let big = host.near().join("big");
    let octets: Vec<u8> =
        (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(&big, &octets).map_err(words)?;
    let part = host.home.join(".big.rove-part");
    let mut killed = command(host, &["cp", "-l", "2000", "big", "here:"]);
    let mut killed = killed.spawn().map_err(words)?;
    let length = || fs::metadata(&part).ok().map(|part| part.len());
    crate::host::until("some of the file", || length().filter(|length| *length > 200_000))?;
    killed.kill().map_err(words)?;
    killed.wait().map_err(words)?;
    let clock = Clock::start();
    let (is_well, said) = told(host, &["cp", "big", "here:"]);
    let took = clock.elapsed();
    println!("row-24: a copy whose client was killed was whole {took:?} after that");
    let copied = fs::read(host.home.join("big")).map_err(words)?;
    match is_well && copied == octets && took < LOCK_WAIT {
        true => Ok(()),
        false => Err(format!("{took:?}: {said}")),
    }
}

/// A copy gives up a part that another holds after 30 s, and a server its silent client after 17 s.
const LOCK_WAIT: Duration = Duration::from_secs(15);

/// Names that are there are not given again, closing the window ends only what has no name, and `-A` comes back.
fn names_and_lifetimes(host: &Host) -> Outcome {
    let mut named = client(host, &["new", "-s", "work", "here", "bash --norc"], size(ROWS, 80))?;
    quiet(&mut named)?;
    let mut again = client(host, &["new", "-s", "work", "here"], size(ROWS, 80))?;
    same(again.wait_exit(LIMIT).map_err(words)?.to_string(), "exit status: 255")?;
    shows(&mut again, "there is a session work on here")?;
    let mut joined = client(host, &["new", "-A", "-s", "work", "here"], size(ROWS, 80))?;
    shows(&mut joined, "ready")?;
    // The window of each is closed.
    drop_window(joined)?;
    drop_window(named)?;
    let mut plain = client(host, &["here", "bash --norc"], size(ROWS, 80))?;
    quiet(&mut plain)?;
    says(host, &["ls", "here"], &["1 ", "work"])?;
    drop_window(plain)?;
    crate::host::until("the end of what has no name", || {
        let (_, said) = told(host, &["ls", "here"]);
        (said.contains("none, left") && !said.contains("\n1 ")).then_some(())
    })?;
    let mut lost = client(host, &["attach", "here:nothing"], size(ROWS, 80))?;
    same(lost.wait_exit(LIMIT).map_err(words)?.to_string(), "exit status: 255")?;
    shows(&mut lost, "there is no session nothing on here")?;
    shows(&mut lost, "; there is work")?;
    says(host, &["kill", "here"], &["which session?", "--all"])?;
    says(host, &["kill", "here:work"], &["ended work on here"])?;
    says(host, &["ls", "here"], &["no sessions of yours on here"])?;
    // Who is in a session that is ended hears of it. Before the session begins the terminal echoes what is typed.
    let line = ["new", "-s", "seen", "here", "echo be''gun; cat"];
    let mut ended = client(host, &line, size(ROWS, 80))?;
    shows(&mut ended, "begun")?;
    ended.send("typed\r");
    shows(&mut ended, "typed")?;
    crate::host::until("the kill of a session", || {
        told(host, &["kill", "here:seen"]).1.contains("ended seen on here").then_some(())
    })?;
    let status = ended.wait_exit(LIMIT).map_err(words)?.to_string();
    same(status, "exit status: 129")
        .and_then(|()| shows(&mut ended, "typed"))
        .map_err(|differs| format!("{differs} on {:?}", ended.screen().text()))?;
    // Whoever ends it does not wait for a client that is slow to hear of it.
    let mut slow = client(host, &["new", "-s", "slow", "here", "cat"], size(ROWS, 80))?;
    crate::host::until("a session that has begun", || {
        slow.pump(Duration::from_millis(100)).ok()?;
        told(host, &["ls", "here"]).1.contains("cat").then_some(())
    })?;
    let pid = i32::try_from(slow.pid()).ok().and_then(Pid::from_raw).ok_or("no process")?;
    kill_process(pid, Signal::STOP).map_err(words)?;
    says(host, &["kill", "here:slow"], &["ended slow on here"])?;
    says(host, &["ls", "here"], &["no sessions of yours on here"])?;
    kill_process(pid, Signal::CONT).map_err(words)?;
    same(slow.wait_exit(LIMIT).map_err(words)?.to_string(), "exit status: 129")?;
    let (is_well, said) = told(host, &["kill", "--all", "here"]);
    match !is_well && said.contains("there are no sessions of yours on here") {
        true => Ok(()),
        false => Err(said),
    }
}

/// Closes the terminal of a client, as a window does: it gets SIGHUP.
fn drop_window(client: Program) -> Outcome {
    let pid = client.pid();
    let mut hangup = bounded("kill");
    hangup.args(["-HUP", &pid.to_string()]);
    clean(hangup)?;
    let mut client = client;
    client.wait_exit(LIMIT).map_err(words).map(drop)
}
