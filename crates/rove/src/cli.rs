//! rove's own command line, and the session it starts.

mod again;
pub(crate) mod attach;
pub(crate) mod config;
pub(crate) mod copy;
pub(crate) mod doctor;
pub(crate) mod environment;
pub(crate) mod exec;
mod forward;
pub(crate) mod help;
pub(crate) mod install;
mod login;
pub(crate) mod mosh_client;
mod order;
pub(crate) mod sessions;
mod shell;
mod subcommand;
mod target;
mod usage;
mod values;
pub(crate) mod words;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::CommandFactory;

use self::again::Again;
use self::config::HostConfig;
use self::environment::escape_variable;
use self::order::Ordered;
use self::shell::shell;
pub(crate) use self::subcommand::{Subcommand, subcommand};
use self::usage::{not_yet, print};
use self::words::RoveArgs;
use crate::bootstrap::{Goal, program_line};
use crate::failure::Failure;
use crate::failure::fail;
use crate::os::clock::Clock;
use crate::os::tty;
use crate::runtime::in_runtime;
use crate::trace::Trace;

/// The command as clap knows it, for completions and tests.
pub fn command() -> clap::Command {
    let copy = copy::command().name("cp");
    RoveArgs::command()
        .subcommand(copy)
        .subcommand(doctor::command().name("doctor"))
        .subcommand(exec::command().name("exec"))
        .subcommand(install::command().name("install"))
        .subcommand(sessions::ls_command().name("ls"))
        .subcommand(attach::command().name("attach"))
        .subcommand(attach::new_command().name("new"))
        .subcommand(sessions::kill_command().name("kill"))
        .subcommand(help::command())
}

/// Whose habits count where ssh's and mosh's differ.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Manner {
    /// Several words are a line for the user's shell, and without a terminal there is no session.
    Ssh,
    /// Several words are a program and its arguments, and a terminal is always needed.
    Mosh,
}

pub(crate) fn rove(words: &[OsString], manner: Manner) -> ExitCode {
    let clock = Clock::start();
    let mut ordered = Ordered::of(&RoveArgs::command(), words);
    ordered.is_program |= manner == Manner::Mosh && !ordered.command.is_empty();
    let again = Again::of(&ordered);
    let words = match RoveArgs::parsed(&ordered) {
        Ok(words) => words,
        Err(usage) => {
            return not_yet(&usage, &again, &exec::command())
                .map_or_else(|| print(&usage, "rove", words), |failure| fail(&failure));
        }
    };
    let trace = Trace::new(clock, words.session.tell.verbosity());
    let has_terminal = tty::missing_stream().is_none();
    let outcome = match (words.forward.is_all(), manner) {
        (true, _) => alone(clock, words, &trace),
        (false, Manner::Ssh) if !has_terminal => piped(clock, words, &ordered, &trace),
        (false, _) => shell(clock, words, Goal::Any, subcommand::meant(&ordered), &again, &trace),
    };
    outcome.unwrap_or_else(|failure| fail(&failure))
}

/// Runs a command without a terminal of its own, as `rove exec` does.
fn piped(
    clock: Clock,
    words: RoveArgs,
    ordered: &Ordered,
    trace: &Trace,
) -> Result<ExitCode, Failure> {
    let own = HostConfig::of_user(&words.host)?;
    let mut login = words.login(&own)?;
    login.meant = subcommand::meant(ordered);
    let line = match ordered.is_program {
        true => program_line(&words.command),
        false => words.command.join(OsStr::new(" ")),
    };
    let wanted = exec::Wanted::line(line, words.ssh.terminal, escape_variable().or(own.escape));
    let way = words.session.way.chosen(&own);
    exec::on_streams(clock, login, words.forward, wanted, way, trace)
}

/// Runs a session without one, for `-N` and `-W`.
fn alone(clock: Clock, words: RoveArgs, trace: &Trace) -> Result<ExitCode, Failure> {
    let job = exec::job_without_command(&words.forward, &words.command)?;
    let own = HostConfig::of_user(&words.host)?;
    let mut login = words.login(&own)?;
    let way = words.session.way.chosen(&own);
    exec::for_streams(&mut login, "ssh", way, words.forward.give_up);
    in_runtime(exec::alone(clock, login, &words.forward, job, trace))
}
