//! `rove help`: the manual in a pager, also where no manual is installed.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, ExitCode, Stdio};

use clap::Arg;

use crate::cli::environment::variable;
use crate::cli::usage::print;
use crate::failure::Failure;
use crate::os::process;

/// The manual pages by command, as text; `rove/tests/documents.rs` makes them of `docs/man`.
const PAGES: [(&str, &str); 11] = [
    ("rove", include_str!("../../manual/rove.txt")),
    ("cp", include_str!("../../manual/rove-cp.txt")),
    ("doctor", include_str!("../../manual/rove-doctor.txt")),
    ("exec", include_str!("../../manual/rove-exec.txt")),
    ("install", include_str!("../../manual/rove-install.txt")),
    ("ls", SESSIONS),
    ("attach", SESSIONS),
    ("new", SESSIONS),
    ("kill", SESSIONS),
    ("server", include_str!("../../manual/rove-server.txt")),
    ("config", include_str!("../../manual/rove_config.txt")),
];

/// The page of all commands about sessions.
const SESSIONS: &str = include_str!("../../manual/rove-attach.txt");

/// The status of a shell that did not find its command.
const NOT_FOUND: i32 = 127;

/// The command as clap knows it.
pub(super) fn command() -> clap::Command {
    let page = Arg::new("command").help("Whose manual to show").value_parser(PAGES.map(|it| it.0));
    clap::Command::new("help")
        .about("Show the manual of rove or of one of its commands")
        .bin_name("rove help")
        .arg(page)
}

/// Runs `rove help` with the words after it.
pub(crate) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    let matches =
        match command().try_get_matches_from([OsString::from("rove help")].iter().chain(words)) {
            Ok(matches) => matches,
            Err(usage) => return Ok(print(&usage, "rove help", words)),
        };
    let name = matches.get_one::<String>("command").map_or("rove", String::as_str);
    let text = PAGES.iter().find_map(|(page, text)| (*page == name).then_some(*text));
    let text = text.expect("clap takes the names of the pages only");
    show(text).map_err(|error| Failure::new(format!("cannot show the manual: {error}"), ""))?;
    Ok(ExitCode::SUCCESS)
}

fn show(text: &str) -> io::Result<()> {
    let pagers = ["MANPAGER", "PAGER"].into_iter().filter_map(variable);
    let pager = pagers.into_iter().find(|line| !line.is_empty()).unwrap_or("less".into());
    let was_shown = io::stdout().is_terminal() && page(&pager, text)?;
    match was_shown {
        true => Ok(()),
        false => ignore_closed(io::stdout().write_all(text.as_bytes())),
    }
}

/// Shows a text in a pager. Returns whether there is one.
fn page(pager: &str, text: &str) -> io::Result<bool> {
    let Some(shell) = process::SHELL else { return Ok(false) };
    let mut child = Command::new(shell).arg("-c").arg(pager).stdin(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().expect("its standard input is a pipe");
    ignore_closed(input.write_all(text.as_bytes()))?;
    drop(input);
    Ok(child.wait()?.code() != Some(NOT_FOUND))
}

/// A reader that has seen enough is no failure.
fn ignore_closed(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}
