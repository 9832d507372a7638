//! `rove ls` and `rove kill`: the sessions of the user's on a host.

mod table;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, ValueHint};

use crate::bootstrap::{Goal, Reply};
use crate::cli::attach::login_to;
use crate::cli::order::Ordered;
use crate::cli::sessions::table::Found;
use crate::cli::target::Target;
use crate::cli::usage::print;
use crate::cli::words::{STYLES, ServerArgs, SshArgs, TellArgs};
use crate::failure::Failure;
use crate::os::clock::Clock;
use crate::printable::printable;
use crate::runtime::in_runtime;
use crate::sessions::line::Session;
use crate::sessions::name::{Name, SessionId};
use crate::sessions::words::octets;
use crate::trace::Trace;

/// List your sessions on a host, or on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "rove ls",
    bin_name = "rove ls",
    version,
    styles = STYLES,
    override_usage = "rove ls [OPTIONS] [--] [[USER@]HOST]"
)]
pub(crate) struct LsArgs {
    /// The host, by any name or alias that your ssh knows.
    #[arg(value_name = "[USER@]HOST", value_parser = Target::parse, value_hint = ValueHint::Hostname)]
    target: Option<Target>,

    /// Tell the whole command line of what runs, and the session's id.
    #[arg(short = 'l')]
    long: bool,

    /// The same for programs: one JSON object, times in seconds.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    tell: TellArgs,

    #[command(flatten, next_help_heading = "Server")]
    server: ServerArgs,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    ssh: SshArgs,
}

/// End a session on a host: its program is hung up on, and killed if it has not ended after 5 s.
#[derive(Debug, Parser)]
#[command(
    name = "rove kill",
    bin_name = "rove kill",
    version,
    styles = STYLES,
    override_usage = "rove kill [OPTIONS] [--] [USER@]HOST:NAME\n       rove kill [OPTIONS] --all [--] [[USER@]HOST]"
)]
pub(crate) struct KillArgs {
    /// The host, and the session's name.
    #[arg(value_name = "[USER@]HOST:NAME", value_parser = Target::parse, value_hint = ValueHint::Hostname)]
    target: Option<Target>,

    /// End all your sessions there.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    tell: TellArgs,

    #[command(flatten, next_help_heading = "Server")]
    server: ServerArgs,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    ssh: SshArgs,
}

/// `rove ls` as clap knows it.
pub(super) fn ls_command() -> clap::Command {
    // The user's letter is taken here.
    LsArgs::command().mut_arg("login", |user| user.short(None).long("user"))
}

/// `rove kill` as clap knows it.
pub(super) fn kill_command() -> clap::Command {
    KillArgs::command()
}

/// Runs `rove ls` with the words after it.
pub(crate) fn ls(words: &[OsString]) -> Result<ExitCode, Failure> {
    let ordered = Ordered::of(&ls_command(), words);
    let parsed = ls_command().try_get_matches_from(ordered.words("rove ls"));
    let words = match parsed.and_then(|matches| LsArgs::from_arg_matches(&matches)) {
        Ok(words) => words,
        Err(usage) => return Ok(print(&usage, "rove ls", words)),
    };
    let trace = Trace::new(Clock::start(), words.tell.verbosity());
    let name = words.target.as_ref().and_then(|target| target.session.clone());
    let host = words.target.as_ref().and_then(|target| target.host.as_deref());
    let options = words.ssh.options(&words.tell);
    let (_, mut login) = login_to(host, options, &words.ssh, &words.server)?;
    login.request.goal = Goal::Ask("--list".into());
    let reply = in_runtime(login.ask(&trace))?;
    let mut found = sessions(&reply);
    found.retain(|it| name.as_ref().is_none_or(|name| it.session.name == *name));
    if let Some(why) = reply.facts.get("SOCKET") {
        let why = printable(why.as_bytes(), 300);
        trace.warn(format_args!("sessions may be missing here: {why}"));
    }
    let host = &login.host;
    let on = login.on_machine(&reply.facts);
    if let Some(why) = reply.facts.get("LOGIND").filter(|_| !found.is_empty()) {
        trace.warn(format_args!("{on}: {}", printable(why.as_bytes(), 400)));
    }
    let machine = reply.facts.get("AT").and_then(|at| at.split(' ').next()).unwrap_or(host);
    let machine = printable(machine.as_bytes(), 255);
    if on != *host && !found.is_empty() && !words.json {
        trace.warn(format_args!("sessions of yours on {on}"));
    }
    let shown = match (words.json, found.is_empty(), &name) {
        (true, ..) => table::json(host, &machine, &found),
        (false, false, _) => table::table(&found, words.long),
        (false, true, Some(name)) => {
            return Err(Failure::new(format!("there is no session {name} on {on}"), ""));
        }
        (false, true, None) => format!("no sessions of yours on {on}\n"),
    };
    // A reader that has seen enough is no failure.
    let _ = io::stdout().write_all(shown.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn sessions(reply: &Reply) -> Vec<Found> {
    let of = |word| reply.entries.iter().filter(move |(said, _)| *said == word);
    let lines: Vec<(SessionId, String)> = of("COMMAND")
        .filter_map(|(_, text)| {
            let (id, words) = text.split_once(' ')?;
            Some((SessionId::parse(id)?, printable(&octets(words)?, COMMAND_CHARS_MAX)))
        })
        .collect();
    let sessions = of("SESSION").filter_map(|(_, text)| Session::parse(&format!("SESSION {text}")));
    let mut found: Vec<Found> = sessions
        .map(|session| {
            let line = lines.iter().find(|(id, _)| *id == session.id);
            Found { line: line.map(|(_, line)| line.clone()), session }
        })
        .collect();
    found.sort_by_key(|it| it.session.used);
    found
}

/// Characters shown of a command line.
const COMMAND_CHARS_MAX: usize = 1000;

/// Runs `rove kill` with the words after it.
pub(crate) fn kill(words: &[OsString]) -> Result<ExitCode, Failure> {
    let ordered = Ordered::of(&kill_command(), words);
    let words = match KillArgs::try_parse_from(ordered.words("rove kill")) {
        Ok(words) => words,
        Err(usage) => return Ok(print(&usage, "rove kill", words)),
    };
    let trace = Trace::new(Clock::start(), words.tell.verbosity());
    let host = words.target.as_ref().and_then(|target| target.host.as_deref());
    let options = words.ssh.options(&words.tell);
    let (_, mut login) = login_to(host, options, &words.ssh, &words.server)?;
    let name = words.target.as_ref().and_then(|target| target.session.as_ref());
    let question = match (name, words.all) {
        (None, true) => "--kill-all".to_owned(),
        (Some(name), false) => format!("--kill={name}"),
        (None, false) => {
            let next = format!(
                "For example: {}. All of them: {}",
                login.session_line("kill", &[], "1"),
                login.session_line("kill", &["--all"], "")
            );
            return Err(Failure::new("which session?", next));
        }
        (Some(_), true) => {
            return Err(Failure::new("a session's name or --all, not both", ""));
        }
    };
    login.request.goal = Goal::Ask(question);
    let reply = in_runtime(login.ask(&trace))?;
    let killed = reply.entries.iter().filter(|(word, _)| *word == "KILLED");
    for name in killed.filter_map(|(_, name)| Name::parse(name)) {
        trace.warn(format_args!("ended {name} on {}", login.host));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_consistent() {
        ls_command().debug_assert();
        kill_command().debug_assert();
    }
}
