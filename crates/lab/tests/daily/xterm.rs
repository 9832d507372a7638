//! The same in xterm, by its saved lines. It tells where its cursor is, and wraps no line anew.

use std::fs;

use rove_lab::testing::xterm::{PRINT, Window};

use crate::common::rove_program;
use crate::host::{Case, Host, Outcome, run_cases, same, until, words};
use crate::scrollback::{LOSSES, over_a_link, script_of_lines};

const CASES: [Case<Host>; 4] = [
    ("row-02", a_command_and_all_of_its_lines),
    ("row-02-lossy", a_command_over_links_that_lose),
    ("row-02-inline", commands_leave_what_ssh_leaves),
    ("row-02-resized", a_window_that_changes),
];

#[test]
fn xterm() {
    let host = Host::start("rovelab-xterm", &[]);
    let failures = run_cases("xterm", &CASES, &host);
    host.assert_none(&failures);
}

/// What xterm holds once a line for bash has printed this last line. In it `$ROVE` is rove with ssh's configuration, and
/// `$SSH` is ssh.
fn left_by(host: &Host, line: &str, last: &str) -> Result<Vec<String>, String> {
    let config = host.config.display();
    let rove = rove_program();
    let line = format!(
        "ROVE='{} -F {config}'; SSH='ssh -q -t -F {config}'; {line}; printf '{PRINT}'; sleep 1000",
        rove.display()
    );
    let window = Window::start(&line, |command| {
        command.current_dir(host.near()).env("HOME", host.near()).env_remove("TMUX");
        command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    });
    let window = window.map_err(words)?;
    let whole = |lines: &Vec<String>| lines.iter().rev().any(|line| line == last);
    until(last, || window.printed().filter(whole))
}

/// The numbers from the first to the last, and nothing else.
fn has_all(lines: &[String], first: u32, last: u32) -> Outcome {
    let numbers: Vec<u32> = lines.iter().filter_map(|line| line.parse().ok()).collect();
    let wanted: Vec<u32> = (first..=last).collect();
    let right = wanted.iter().zip(&numbers).take_while(|(wanted, found)| wanted == found).count();
    match numbers == wanted {
        true => Ok(()),
        false => {
            let around = numbers.get(right.saturating_sub(2)..numbers.len().min(right + 5));
            Err(format!("{} lines, of which {right} are right: {around:?}", numbers.len()))
        }
    }
}

fn a_command_and_all_of_its_lines(host: &Host) -> Outcome {
    let line = "echo mine; $ROVE here 'seq 1 5000; exit 3'; echo status $?";
    let lines = left_by(host, line, "status 3")?;
    has_all(&lines, 1, 5000)?;
    let place = |text: &str| lines.iter().position(|line| line == text);
    match (place("mine"), place("1"), place("5000"), place("status 3")) {
        (Some(mine), Some(one), Some(last), Some(status))
            if mine + 1 == one && last + 1 == status =>
        {
            Ok(())
        }
        other => Err(format!("not one below the other: {other:?}")),
    }
}

fn a_command_over_links_that_lose(host: &Host) -> Outcome {
    let script = script_of_lines(host)?;
    for loss in LOSSES {
        let demo = over_a_link(&script, loss);
        let lines = left_by(host, &format!("{demo}; echo status $?"), "status 3")?;
        has_all(&lines, 1, 5000).map_err(|error| format!("{loss} %: {error}"))?;
    }
    Ok(())
}

fn commands_leave_what_ssh_leaves(host: &Host) -> Outcome {
    for (command, before) in [
        ("'seq 1 3'", 2),
        ("'seq 1 3'", 0),
        ("'seq 1 3'", 30),
        ("'seq 1 22'", 2),
        ("'seq 1 100'", 5),
        ("true", 5),
        ("'printf \"\\e[?1049hother\\e[?1049l\"; echo over'", 5),
    ] {
        let left = |program: &str| {
            let before = format!("seq -f 'mine %g' {before}");
            let line = format!("{before}; {program} here {command}; echo after $?");
            left_by(host, &line, "after 0")
        };
        let (ssh, rove) = (left("$SSH")?, left("$ROVE")?);
        same(rove.join("\n"), ssh.join("\n"))
            .map_err(|error| format!("{command} below {before} lines: {error}"))?;
    }
    Ok(())
}

/// A window that grows has the user's lines back, and one that shrinks loses none.
fn a_window_that_changes(host: &Host) -> Outcome {
    for (number, sizes) in
        [&[(40, 80), (24, 80)][..], &[(12, 80), (30, 80)], &[(24, 100), (24, 80)]]
            .into_iter()
            .enumerate()
    {
        for lines in [3, 15, 60] {
            // The user's script on the host asks for each window, and goes on in it.
            let case = format!("window-{number}-{lines}");
            let mut there = format!("seq 1 {lines}");
            let mut here = String::new();
            for (step, (rows, cols)) in sizes.iter().enumerate() {
                let sized = format!("[[ $(stty size) == \"{rows} {cols}\" ]]");
                let next = lines + step as u32 + 1;
                there += &format!(
                    "\ntouch {case}-{step}\nuntil {sized}; do sleep .1; done\necho {next}"
                );
                let asked = host.home.join(format!("{case}-{step}"));
                here += &format!(
                    "until [[ -e {} ]]; do sleep .1; done; sleep .3; printf '\\e[8;{rows};{cols}t' > /dev/tty; ",
                    asked.display()
                );
            }
            fs::write(host.home.join(&case), there).map_err(words)?;
            let line =
                format!("seq -f 'mine %g' 5; ({here}) & $ROVE here bash {case}; echo after $?");
            let all = left_by(host, &line, "after 0")?;
            let mine: Vec<String> = (1..=5).map(|number| format!("mine {number}")).collect();
            let session = (1..=lines + sizes.len() as u32).map(|number| number.to_string());
            let wanted: Vec<String> = mine.into_iter().chain(session).collect();
            let found: Vec<String> = all
                .into_iter()
                .filter(|line| !line.is_empty() && !line.starts_with("after"))
                .collect();
            same(found.join("\n"), wanted.join("\n"))
                .map_err(|error| format!("{sizes:?}, {lines} lines: {error}"))?;
        }
    }
    Ok(())
}
