//! `rove-lab demo`: a shell on this machine through the shipped client and server, over real UDP and an emulated
//! bad link. It needs no ssh, no root and no setup.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fake_ssh::FakeSsh;
use crate::flags::LinkFlags;
use crate::relay::{Config, Relay};
use crate::scratch::Scratch;

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
    // In the session: what stands on the terminal before it is scrolled away when it begins.
    let words = format!(
        "rove demo: your shell over an emulated link ({}).\n\
         A key that is underlined is a guess: it is shown before the host has answered, and taken back if it \
         is wrong.\n\
         Leave with `exit`, or press Ctrl-^ and then a full stop.\n",
        link.describe()
    );
    let status = Command::new(&rove)
        .arg(ssh_option(&gate_path)?)
        .arg("127.0.0.1")
        .arg(format!("printf '%s\\n' {}; exec \"$SHELL\" -l", shell_word(&words)))
        .env("PATH", path_with(scratch.path())?)
        .status()?;
    let report = gate.relay().report();
    println!(
        "rove demo: the link carried {} datagrams of {} bytes and lost {}.",
        report.up.delivered + report.down.delivered,
        report.up.delivered_bytes + report.down.delivered_bytes,
        report.up.lost + report.down.lost,
    );
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
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
    fn words_survive_a_shell() {
        for text in ["plain", "two words", "it's", "$HOME `x` \"y\" \\"] {
            let script = format!("printf %s {}", shell_word(text));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
