//! `rove-lab demo`: a shell on this machine through the shipped client and server, over real UDP and an emulated
//! bad link. It needs no ssh, no root and no setup.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::clock::Clock;
use crate::fake_ssh::FakeSsh;
use crate::flags::LinkFlags;
use crate::relay::{Config, Relay};
use crate::run::look_again_later;
use crate::scratch::Scratch;

/// How long the link stays after its client: the server ends when it has heard the last words. One that goes on, as after a
/// detachment, is not waited for any longer.
const SERVER_WAIT: Duration = Duration::from_secs(2);

/// Runs the demo on this terminal; returns the client's exit status.
///
/// # Errors
/// If the programs are missing or cannot be started.
pub(crate) fn run(link: &LinkFlags) -> io::Result<i32> {
    let rove = rove_program()?;
    let scratch = Scratch::new()?;
    std::os::unix::fs::symlink(&rove, scratch.join("rove"))?;
    let config = Config {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        target: None,
        up: link.profile(),
        down: link.profile(),
        seed: link.seed,
    };
    let gate_path = scratch.join("gate");
    let gate = FakeSsh::open(&gate_path, Relay::start(config)?)?;
    // In the session, where they stand above the prompt.
    let words = format!(
        "rove demo: your shell over an emulated link ({}).\n\
         A key that is underlined is a guess: it is shown before the host has answered, and taken back if it \
         is wrong.\n\
         Leave with `exit`, or press Ctrl-^ and then a full stop.\n",
        link.describe()
    );
    let steps = scratch.join("steps");
    let status = Command::new(&rove)
        .arg("-v")
        .arg(ssh_option(&gate_path)?)
        .arg("127.0.0.1")
        .arg(format!("printf '%s\\n' {}; exec \"$SHELL\" -l", shell_word(&words)))
        .env("PATH", path_with(scratch.path())?)
        .stderr(File::create(&steps)?)
        .status()?;
    let steps = fs::read(&steps)?;
    let text = String::from_utf8_lossy(&steps);
    let (steps, said) = split_steps(&text);
    said.iter().for_each(|line| eprintln!("{line}"));
    let report = gate.relay().report();
    println!(
        "rove demo: the link carried {} datagrams of {} bytes and lost {}.",
        report.up.delivered + report.down.delivered,
        report.up.delivered_bytes + report.down.delivered_bytes,
        report.up.lost + report.down.lost,
    );
    if let Some(Typed { octets, right }) = steps.iter().find_map(|step| typed(step)) {
        println!(
            "rove demo: of {octets} octets typed {right} were guessed right, and need not wait for the host. Over \
             plain ssh each is shown after this link's {} ms round trip at the earliest, and later where \
             packets are lost.",
            link.rtt_ms
        );
    }
    // The client is gone before the link has carried what it said last.
    let clock = Clock::start();
    while gate.has_server() && clock.elapsed() < SERVER_WAIT {
        look_again_later()?;
    }
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

/// The steps that `rove -v` has told, without their times, and what else it has said.
fn split_steps(said: &str) -> (Vec<&str>, Vec<&str>) {
    let mut split = (Vec::new(), Vec::new());
    for line in said.lines() {
        match line.strip_prefix("rove ").and_then(|rest| rest.split_once(": ")) {
            Some((time, step)) if time.trim().parse::<f64>().is_ok() => split.0.push(step),
            _ => split.1.push(line),
        }
    }
    split
}

/// Counts the input of a session.
#[derive(Debug, Eq, PartialEq)]
struct Typed {
    octets: u64,
    /// Guesses that were right.
    right: u64,
}

/// Reads the step in which a client says it.
fn typed(step: &str) -> Option<Typed> {
    let (octets, rest) = step.strip_prefix("typed ")?.split_once(" octets; ")?;
    let right = rest.strip_suffix(" guesses were right")?;
    Some(Typed { octets: octets.parse().ok()?, right: right.parse().ok()? })
}

/// The program under test: `ROVE_BIN`, or the one beside this program.
///
/// # Errors
/// If neither is there; the message says how to build it.
#[allow(clippy::disallowed_methods, reason = "only this module and `main` look at the environment")]
pub(crate) fn rove_program() -> io::Result<PathBuf> {
    let named = std::env::var_os("ROVE_BIN").filter(|name| !name.is_empty()).map(PathBuf::from);
    let program = match named {
        Some(program) => program,
        None => std::env::current_exe()?.with_file_name("rove"),
    };
    program.canonicalize().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!(
                "no program at {}: build it with `cargo build --release -p rove-shell`, or name it in \
                 ROVE_BIN",
                program.display()
            ),
        )
    })
}

/// The option that makes a client start its server here, behind the gate's relay.
///
/// # Errors
/// If this program does not know where it is.
pub(crate) fn ssh_option(gate: &Path) -> io::Result<OsString> {
    ssh_option_of(&std::env::current_exe()?, gate)
}

/// The same for another `rove-lab` than this program.
///
/// # Errors
/// If a path is not UTF-8.
pub(crate) fn ssh_option_of(lab: &Path, gate: &Path) -> io::Result<OsString> {
    let utf8 = |path: &Path| {
        let word = path.to_str().map(shell_word);
        word.ok_or_else(|| io::Error::other(format!("{} is not UTF-8", path.display())))
    };
    Ok(format!("--ssh={} here --gate {}", utf8(lab)?, utf8(gate)?).into())
}

/// The search path with a directory before all others.
///
/// # Errors
/// If the directory's name holds a colon.
#[allow(clippy::disallowed_methods, reason = "only this module and `main` look at the environment")]
pub(crate) fn path_with(first: &Path) -> io::Result<OsString> {
    let old = std::env::var_os("PATH").unwrap_or_else(|| OsStr::new("/usr/bin:/bin").into());
    let all = std::iter::once(first.to_owned()).chain(std::env::split_paths(&old));
    std::env::join_paths(all).map_err(io::Error::other)
}

/// Quotes any text as one word for a POSIX shell.
pub(crate) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_from_words() {
        let said = "rove    0.012: running ssh\nrove: a warning\nrove   12.5: typed 7 octets; 5 guesses were right";
        let (steps, words) = split_steps(said);
        assert_eq!(words, ["rove: a warning"]);
        let found: Vec<_> = steps.into_iter().map(typed).collect();
        assert_eq!(found, [None, Some(Typed { octets: 7, right: 5 })]);
    }

    #[test]
    fn words_survive_a_shell() {
        for text in ["plain", "two words", "it's", "$HOME `x` \"y\" \\"] {
            let script = format!("printf %s {}", shell_word(text));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
