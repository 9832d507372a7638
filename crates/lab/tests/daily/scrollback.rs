//! The history of the user's own terminal, tmux: it has every line of a session, once and in order.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;

use rove_lab::testing::scratch::Scratch;

use crate::common::rove_program;
use crate::host::{Case, Host, Outcome, bounded, clean, run_cases, until, words};

const CASES: [Case<Host>; 6] = [
    ("row-01", a_command_and_all_of_its_lines),
    ("row-01-lossy", a_command_over_links_that_lose),
    ("row-01-wrapped", lines_that_are_wrapped),
    ("row-03-gap", more_lines_than_are_kept),
    ("row-05", other_screens_and_sizes),
    ("row-05-erased", a_history_that_is_erased),
];

#[test]
fn scrollback() {
    let host = Host::start("rovelab-scrollback", &[]);
    let failures = run_cases("scrollback", &CASES, &host);
    host.assert_none(&failures);
}

/// A tmux of its own that runs a line for bash, in which `$ROVE` is rove with ssh's configuration.
struct Tmux<'a> {
    host: &'a Host,
    scratch: Scratch,
}

impl<'a> Tmux<'a> {
    fn start(host: &'a Host, line: &str) -> Result<Tmux<'a>, String> {
        let tmux = Tmux { host, scratch: Scratch::new().map_err(words)? };
        let settings = "set -g history-limit 50000\nset -g status off\nset -g remain-on-exit on\n";
        fs::write(tmux.settings(), settings).map_err(words)?;
        let rove = format!("ROVE='{} -F {}'", rove_program().display(), host.config.display());
        let line = format!("{rove}; {line}");
        tmux.tmux(&["new-session", "-d", "-x", "80", "-y", "24", "bash", "--norc", "-c", &line])?;
        Ok(tmux)
    }

    fn settings(&self) -> PathBuf {
        self.scratch.join("settings")
    }

    fn command(&self) -> Command {
        let mut command = bounded("tmux");
        command.arg("-S").arg(self.scratch.join("socket")).arg("-f").arg(self.settings());
        command.current_dir(self.host.near()).env("HOME", self.host.near()).env("LANG", "C.UTF-8");
        command.env_remove("TMUX").env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        command
    }

    fn tmux(&self, words: &[&str]) -> Result<String, String> {
        let mut command = self.command();
        command.args(words);
        clean(command)
    }

    fn type_line(&self, line: &str) -> Outcome {
        self.tmux(&["send-keys", "-l", line])?;
        self.tmux(&["send-keys", "Enter"]).map(drop)
    }

    /// All lines, those of the history first, wrapped ones whole.
    fn lines(&self) -> Result<Vec<String>, String> {
        let all = self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])?;
        Ok(all.lines().map(|line| line.trim_end().to_owned()).collect())
    }

    /// Those that are numbers.
    fn numbers(&self) -> Result<Vec<u32>, String> {
        Ok(self.lines()?.iter().filter_map(|line| line.parse().ok()).collect())
    }

    /// Waits for a line that is this one.
    fn wait_for(&self, line: &str) -> Outcome {
        let is_there = || Some(self.lines().ok()?.iter().any(|shown| shown == line));
        let found = until(line, || is_there().filter(|found| *found));
        found.map(drop).map_err(|error| format!("{error}: {:?}", self.lines()))
    }

    /// Waits until the numbers are exactly these. Missed lines come last.
    fn has_all(&self, from: u32, to: u32) -> Outcome {
        let wanted: Vec<u32> = (from..=to).collect();
        let is_so = || (self.numbers().ok()? == wanted).then_some(());
        until("all lines", is_so).map_err(|error| {
            let numbers = self.numbers().unwrap_or_default();
            let same = wanted.iter().zip(&numbers).take_while(|(a, b)| a == b).count();
            let around = numbers.get(same.saturating_sub(2)..numbers.len().min(same + 5));
            format!("{error}: {} lines, of which {same} are right: {around:?}", numbers.len())
        })
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

fn a_command_and_all_of_its_lines(host: &Host) -> Outcome {
    let tmux = Tmux::start(host, "$ROVE here 'seq 1 5000; exit 3'; echo status $?; sleep 1000")?;
    tmux.wait_for("status 3")?;
    tmux.has_all(1, 5000)
}

/// 5 and 29 % of all datagrams are lost each way, at 50 ms round trip.
fn a_command_over_links_that_lose(host: &Host) -> Outcome {
    let script = host.near().join("lines");
    fs::write(&script, "#!/bin/sh\nseq 1 5000\nexit 3\n").map_err(words)?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).map_err(words)?;
    for loss in [5, 29] {
        let demo = format!(
            "SHELL={} ROVE_BIN={} {} demo --rtt-ms 50 --loss {loss}; echo status $?; sleep 1000",
            script.display(),
            rove_program().display(),
            env!("CARGO_BIN_EXE_rove-lab"),
        );
        let tmux = Tmux::start(host, &demo)?;
        tmux.wait_for("status 3")?;
        tmux.has_all(1, 5000).map_err(|error| format!("{loss} %: {error}"))?;
    }
    Ok(())
}

fn lines_that_are_wrapped(host: &Host) -> Outcome {
    let tmux = Tmux::start(
        host,
        "$ROVE here 'for n in $(seq 1 400); do printf \"%0230d\\n\" $n; done'; echo over; sleep 1000",
    )?;
    tmux.wait_for("over")?;
    tmux.has_all(1, 400)
}

/// The last 10,000 of them at least. Where lines are missing a line says how many; a terminal that is slow lacks lines
/// at more than one place.
fn more_lines_than_are_kept(host: &Host) -> Outcome {
    let tmux = Tmux::start(host, "$ROVE here seq 1 30000; echo over; sleep 1000")?;
    tmux.wait_for("over")?;
    let (mut next, mut together, mut marks) = (1, 0, 0);
    for line in tmux.lines()? {
        let mark = line
            .strip_prefix("--- rove: ")
            .and_then(|rest| rest.strip_suffix(" lines are missing here ---")?.parse::<u32>().ok());
        match (mark, line.parse::<u32>()) {
            (Some(missing), _) => (next, together, marks) = (next + missing, 0, marks + 1),
            (None, Ok(number)) if number == next => (next, together) = (next + 1, together + 1),
            (None, Ok(number)) => return Err(format!("{number} stands for {next}")),
            (None, Err(_)) => {}
        }
    }
    match next == 30_001 && together >= 10_000 && marks > 0 {
        true => Ok(()),
        false => Err(format!("{next} is next, {together} stand together, {marks} marks")),
    }
}

/// Output before a program on the alternate screen, and between sizes.
fn other_screens_and_sizes(host: &Host) -> Outcome {
    let tmux = Tmux::start(host, "$ROVE here bash --norc")?;
    tmux.type_line("PS1=; stty -echo; echo rea''dy")?;
    tmux.wait_for("ready")?;
    tmux.type_line("seq 1 300; printf '\\e[?1049h\\e[Hother screen\\n'")?;
    tmux.wait_for("other screen")?;
    tmux.type_line("printf '\\e[?1049l'; seq 301 320")?;
    tmux.has_all(1, 320)?;
    for (rows, from) in [("40", 321), ("12", 421), ("24", 521)] {
        tmux.tmux(&["resize-window", "-x", "80", "-y", rows])?;
        let resized = format!("[[ $(stty size) == '{rows} '* ]]");
        tmux.type_line(&format!("until {resized}; do sleep 0.1; done; seq {from} {}", from + 99))?;
        tmux.has_all(1, from + 99)?;
    }
    Ok(())
}

fn a_history_that_is_erased(host: &Host) -> Outcome {
    let tmux = Tmux::start(host, "$ROVE here bash --norc")?;
    tmux.type_line("PS1=; stty -echo; echo rea''dy")?;
    tmux.wait_for("ready")?;
    tmux.type_line("seq 1 100")?;
    tmux.has_all(1, 100)?;
    tmux.type_line("printf '\\e[H\\e[2J\\e[3J'; seq 7 60")?;
    tmux.has_all(7, 60)
}
