//! A session on the user's screen, below what is there: in tmux it leaves what ssh leaves, octet for octet.

use std::fs;
use std::process::Command;

use crate::host::{Case, Host, Outcome, run_cases, same, until, words};
use crate::tmux::Tmux;

const CASES: [Case<Host>; 4] = [
    ("row-08-inline", commands_leave_what_ssh_leaves),
    ("row-08-shell", a_shell_leaves_what_ssh_leaves),
    ("row-08-resized", windows_that_change),
    ("row-08-suspended", a_session_that_was_suspended),
];

#[test]
fn inline() {
    let host = Host::start("rovelab-inline", &[]);
    let failures = run_cases("inline", &CASES, &host);
    host.assert_none(&failures);
}

/// What the user has on the screen before, and a line after it.
fn around(command: &str, before: u32) -> String {
    format!("seq -f 'mine %g' {before}; {command}; echo after $?; sleep 1000")
}

/// What stands in tmux after a command of this program.
fn left_by(host: &Host, program: &str, command: &str, before: u32) -> Result<String, String> {
    let line = around(&format!("{program} here {command}"), before);
    let tmux = Tmux::start(host, &line)?;
    tmux.wait_for_start("after ")?;
    Ok(format!("{}{}", tmux.picture()?, tmux.cursor()?))
}

fn commands_leave_what_ssh_leaves(host: &Host) -> Outcome {
    for (command, before) in [
        ("'seq 1 3'", 2),
        ("'seq 1 3'", 0),
        ("'seq 1 3'", 30),
        ("'seq 1 21'", 2),
        ("'seq 1 22'", 2),
        ("'seq 1 100'", 5),
        ("true", 5),
        ("'echo one; sleep 0.3; printf \"\\e[31mtwo\\e[m\\n\"; exit 3'", 5),
        ("'printf \"\\e[?1049hother\\e[?1049l\"; echo over'", 5),
        ("'printf \"one\\r\\n\\n\\n\\e[2A two\\n\"'", 23),
    ] {
        let [ssh, rove] =
            [left_by(host, "$SSH", command, before)?, left_by(host, "$ROVE", command, before)?];
        same(rove, ssh).map_err(|error| format!("{command} below {before} lines: {error}"))?;
    }
    Ok(())
}

/// A person who types lines, each once the one before has had its answer.
fn session_of(host: &Host, program: &str, sizes: &[(u16, u16)]) -> Result<String, String> {
    let line = around(&format!("{program} here bash --norc"), 5);
    let tmux = Tmux::start(host, &line)?;
    tmux.wait_for_start("bash-")?;
    tmux.type_line("PS1='host$ '")?;
    tmux.wait_for("host$")?;
    tmux.type_line("tty >tty; echo o''ne")?;
    tmux.wait_for("one")?;
    let terminal = fs::read_to_string(host.home.join("tty")).map_err(words)?;
    for (number, (cols, rows)) in sizes.iter().enumerate() {
        tmux.resize(*cols, *rows)?;
        // Bash draws a line anew if the size changes while it is read, so that none is typed before.
        let size = format!("{rows} {cols}");
        until(&size, || (size_of(terminal.trim_end())? == size).then_some(()))?;
        tmux.type_line(&format!("echo w''as {number}"))?;
        tmux.wait_for(&format!("was {number}"))?;
    }
    tmux.type_line("seq 1 10")?;
    tmux.wait_for("10")?;
    tmux.type_line("exit 3")?;
    tmux.wait_for("after 3")?;
    Ok(format!("{}{}", tmux.picture()?, tmux.cursor()?))
}

/// The rows and columns of a terminal.
fn size_of(terminal: &str) -> Option<String> {
    let told = Command::new("stty").args(["-F", terminal, "size"]).output().ok()?;
    Some(String::from_utf8(told.stdout).ok()?.trim_end().to_owned())
}

fn a_shell_leaves_what_ssh_leaves(host: &Host) -> Outcome {
    same(session_of(host, "$ROVE", &[])?, session_of(host, "$SSH", &[])?)
}

/// A window that grows has the user's lines back, and one that shrinks loses none.
fn windows_that_change(host: &Host) -> Outcome {
    for sizes in [&[(80, 40), (80, 24)][..], &[(80, 12), (80, 30)], &[(100, 24), (80, 24)]] {
        let [rove, ssh] = [session_of(host, "$ROVE", sizes)?, session_of(host, "$SSH", sizes)?];
        same(rove, ssh).map_err(|error| format!("{sizes:?}: {error}"))?;
    }
    Ok(())
}

/// The user's lines of before and of meanwhile stay, above the picture that goes on.
fn a_session_that_was_suspended(host: &Host) -> Outcome {
    let rove =
        "set -m; seq -f 'mine %g' 3; $ROVE here bash --norc; echo away; fg; echo after; sleep 1000";
    let tmux = Tmux::start(host, rove)?;
    tmux.wait_for_start("bash-")?;
    tmux.type_line("PS1='host$ '; stty -echo; echo o''ne")?;
    tmux.wait_for("one")?;
    tmux.tmux(&["send-keys", "C-^", "C-z"])?;
    until("both", || {
        let lines = tmux.lines().ok()?;
        let away = lines.iter().position(|line| line == "away")?;
        lines[away..].iter().any(|line| line == "one").then_some(())
    })?;
    tmux.type_line("echo t''wo; exit")?;
    tmux.wait_for("after")?;
    let lines = tmux.lines()?;
    let place = |text: &str| lines.iter().position(|line| line.starts_with(text));
    let order = ["mine 1", "mine 3", "one", "away", "two", "after"].map(place);
    match order.is_sorted() && order[0] == Some(0) && order.iter().all(Option::is_some) {
        true => Ok(()),
        false => Err(format!("{order:?}: {lines:#?}")),
    }
}
