//! The messages for words that cannot be taken.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::again::Again;
use crate::cli::words::SshArgs;
use crate::failure::{FAILED, Failure};
use crate::os::ffi::{OsStrExt, OsStringExt};
use crate::quoted::quoted;

/// The message for an option that ssh or mosh has and a session lacks; `table` has the options of `rove exec`.
pub(super) fn not_yet(
    usage: &clap::Error,
    again: &Again,
    table: &clap::Command,
) -> Option<Failure> {
    let what = match unknown_option(usage)? {
        "-T" => {
            format!("-T: a session always has a terminal; without one: {}", again.exec(table, "-T"))
        }
        "-s" => format!("-s: a subsystem has no terminal: {}", again.exec(table, "-s")),
        "--client" => "--client: rove is its own client; leave it out".to_owned(),
        _ => return of_ssh_alone(usage, again),
    };
    Some(Failure::new(what, ""))
}

/// The message for an option that neither a session nor a command has.
pub(super) fn of_ssh_alone(usage: &clap::Error, again: &Again) -> Option<Failure> {
    let option = unknown_option(usage)?;
    let (lacking, next) = match option {
        "-X" | "-Y" => {
            let line = again.ssh(option, SshArgs::has);
            ("rove forwards no windows yet", format!("use `{line}` for what needs them"))
        }
        "-f" => ("rove stays in the foreground", "put & behind it, or use systemd-run".into()),
        "-M" => ("each rove has a connection of its own", "leave it out".into()),
        _ => return None,
    };
    Some(Failure::new(format!("{option}: {lacking}; {next}"), ""))
}

/// Prints what clap says instead of words: help, the version, or an error. Returns the status to end with. Where an option
/// is nearly one of `program`'s, the whole line follows.
pub(super) fn print(usage: &clap::Error, program: &str, words: &[OsString]) -> ExitCode {
    let _ = usage.print();
    if let Some(line) = corrected(usage, program, words) {
        // Nobody is left to be told when standard error is closed.
        let _ = writeln!(io::stderr(), "\nDid you mean: {line}");
    }
    if usage.use_stderr() { FAILED.into() } else { ExitCode::SUCCESS }
}

/// The line with the option that clap thinks of instead of an unknown one.
fn corrected(usage: &clap::Error, program: &str, words: &[OsString]) -> Option<String> {
    let unknown = unknown_option(usage)?;
    let Some(ContextValue::String(meant)) = usage.get(ContextKind::SuggestedArg) else {
        return None;
    };
    let is_it = |word: &&OsString| {
        let rest = word.as_bytes().strip_prefix(unknown.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
    };
    let at = words.iter().position(|word| is_it(&word))?;
    let mut line: Vec<OsString> = program.split(' ').map(OsString::from).collect();
    line.extend_from_slice(words);
    let at = at + line.len() - words.len();
    let word = line.get_mut(at)?;
    let value = word.as_bytes()[unknown.len()..].to_vec();
    *word = OsString::from_vec([meant.as_bytes(), &value].concat());
    Some(quoted(line))
}

fn unknown_option(usage: &clap::Error) -> Option<&str> {
    match (usage.kind(), usage.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) => Some(option),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::order::Ordered;
    use crate::cli::words::RoveArgs;

    #[test]
    fn words_of_mosh_and_ssh_that_a_session_lacks() {
        let table = clap::Command::new("rove exec").arg(clap::Arg::new("port").short('p'));
        for (line, expected) in [
            ("-p 22 --client=x h", "--client: rove is its own client; leave it out"),
            (
                "-p 22 -a -T h ls",
                "-T: a session always has a terminal; without one: rove exec -T -p 22 h ls",
            ),
            ("-p 22 -s h sftp", "-s: a subsystem has no terminal: rove exec -s -p 22 h sftp"),
            (
                "-p 22 -n -X h",
                "-X: rove forwards no windows yet; use `ssh -X -p 22 h` for what needs them",
            ),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let ordered = Ordered::of(&RoveArgs::command(), &words);
            let usage = RoveArgs::try_parse_from(ordered.words("rove")).expect_err("refused");
            let failure = not_yet(&usage, &Again::of(&ordered), &table).expect("a message");
            assert_eq!(failure.what, expected, "{line}");
        }
    }

    #[test]
    fn an_option_that_is_nearly_one_gets_the_whole_line() {
        for (line, expected) in [
            ("--predikt=always -p 22 h", Some("rove --predict=always -p 22 h")),
            ("-p 22 --metred u@h ls -l", Some("rove -p 22 --metered u@h ls -l")),
            ("h --metred", Some("rove h --metered")),
            ("--zzzz h", None),
            ("-Z h", None),
            ("", None),
        ] {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let ordered = Ordered::of(&RoveArgs::command(), &words);
            let usage = RoveArgs::try_parse_from(ordered.words("rove")).expect_err("refused");
            assert_eq!(corrected(&usage, "rove", &words).as_deref(), expected, "{line}");
        }
    }
}
