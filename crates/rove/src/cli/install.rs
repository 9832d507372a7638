//! `rove install`, and the question whether to copy a server to a host that has none.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, ValueHint};
use rove_session::Peer;

use crate::bootstrap::{Facts, Server};
use crate::cli::config::HostConfig;
use crate::cli::login::login;
use crate::cli::order::Ordered;
use crate::cli::usage::print;
use crate::cli::values::parse_host;
use crate::cli::words::{STYLES, ServerArgs, SshArgs, TellArgs};
use crate::failure::Failure;
use crate::install::{Installed, Order, Program, install, own_sum};
use crate::os::clock::{Clock, wall_seconds};
use crate::os::tty;
use crate::printable::printable;
use crate::runtime::in_runtime;
use crate::seen_hosts::Hosts;
use crate::ssh::{Login, Reached, Wires};
use crate::trace::Trace;

/// Copy a rove to a host, for its sessions. It needs no root there, and asks nothing.
#[derive(Debug, Parser)]
#[command(
    name = "rove install",
    bin_name = "rove install",
    version,
    styles = STYLES,
    override_usage = "rove install [OPTIONS] [--] [USER@]HOST"
)]
pub(crate) struct InstallArgs {
    /// The host, by any name or alias that your ssh knows.
    #[arg(value_name = "[USER@]HOST", value_parser = parse_host, value_hint = ValueHint::Hostname)]
    host: String,

    /// The program to copy, instead of this one or the package's for the host's machine.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    from: Option<PathBuf>,

    /// The directory for programs there, if they may not run below the home; ~/.local/bin/rove leads to it.
    #[arg(long, value_name = "DIR")]
    to: Option<OsString>,

    /// Replace a rove there that is newer, or that somebody else put there.
    #[arg(long)]
    force: bool,

    /// What a copy says of itself where no other program makes such sums.
    #[arg(long, hide = true)]
    print_sum: bool,

    #[command(flatten)]
    tell: TellArgs,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    ssh: SshArgs,
}

/// The command as clap knows it.
pub(super) fn command() -> clap::Command {
    InstallArgs::command()
}

/// Runs `rove install` with the words after it.
pub(crate) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    let ordered = Ordered::of(&command(), words);
    let words = match InstallArgs::try_parse_from(ordered.words("rove install")) {
        Ok(words) => words,
        Err(usage) => return Ok(print(&usage, "rove install", words)),
    };
    if words.print_sum {
        let sum = own_sum().map_err(|error| Failure::new(error.to_string(), ""))?;
        let _ = writeln!(io::stdout(), "{sum}");
        return Ok(ExitCode::SUCCESS);
    }
    let trace = Trace::new(Clock::start(), words.tell.verbosity());
    let options = words.ssh.options(&words.tell);
    let own = HostConfig::default();
    let login = login(&words.host, options, &words.ssh, &ServerArgs::default(), &own)?;
    let order = Order { from: words.from, to: words.to, force: words.force };
    in_runtime(async {
        let installed = install(&login, &order, &trace).await?;
        say(&login, &installed, &trace);
        Ok(ExitCode::SUCCESS)
    })
}

fn say(login: &Login, installed: &Installed, trace: &Trace) {
    let host = &login.host;
    match installed {
        Installed::AlreadyThere(what) => trace.warn(format_args!("{host} has {what} already")),
        Installed::Copied { what, hidden_by } => {
            trace.warn(format_args!("{host} has {what} at ~/.local/bin/rove"));
            if let Some((path, version)) = hidden_by {
                trace.warn(format_args!(
                    "sessions there use {path} ({version}), which comes first on its PATH; to use \
                     the copy, write \"Server .local/bin/rove\" for it into ~/.config/rove/config"
                ));
            }
        }
    }
}

/// Whether the user may be asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Asking {
    /// Unless nobody is there, or they said no before.
    Allowed,
    /// They chose not to be.
    Refused,
}

/// Asks whether to copy a server to a host that has none, and does it. Returns whether it is there.
pub(super) async fn offer(
    login: &Login,
    path: &str,
    facts: &Facts,
    asking: Asking,
    trace: &Trace,
) -> Result<bool, Failure> {
    let declined = login.hosts.as_ref().map(Hosts::declined);
    let is_declined =
        declined.as_ref().is_some_and(|hosts| hosts.knows(&login.host).unwrap_or(false));
    let is_person = io::stdin().is_terminal() && io::stderr().is_terminal();
    let program = facts.get("HOST").and_then(Program::for_uname);
    let (Some(program), Asking::Allowed, true, false) = (program, asking, is_person, is_declined)
    else {
        return Ok(false);
    };
    let (host, path) = (&login.host, printable(path.as_bytes(), 500));
    let question = match facts.get("BROKEN") {
        Some(_) => format!("rove: the rove on {host} does not run."),
        None => format!("rove: {host} has no rove (looked in {path})."),
    };
    let question = format!("{question} Copy {} to ~/.local/bin there? [y/N] ", program.title());
    let Ok(answer) = tty::ask(&question) else {
        // Without an answer they are asked again another time.
        let _ = writeln!(io::stderr());
        return Ok(false);
    };
    if !matches!(answer.trim(), "y" | "Y" | "yes" | "Yes") {
        if let Some(Err(error)) = declined.map(|hosts| hosts.remember(host)) {
            trace.step(format_args!("cannot remember that: {error}"));
        }
        return Ok(false);
    }
    // A rove that does not run is no reason to keep it.
    let order = Order { force: facts.get("BROKEN").is_some(), ..Order::default() };
    let installed = install(&login.again()?, &order, trace).await?;
    say(login, &installed, trace);
    Ok(true)
}

/// Says once a day what a rove would add on a host that has mosh-server only.
pub(super) fn suggest(login: &Login, reached: &Reached, asking: Asking, trace: &Trace) {
    let is_meant = login.wires == Wires::Mosh || matches!(login.request.server, Server::Stock(_));
    let is_plain = reached.kind == Peer::Stock && !reached.is_broken && reached.warning.is_none();
    if asking == Asking::Refused || is_meant || !is_plain || !io::stderr().is_terminal() {
        return;
    }
    let today = wall_seconds().div_euclid(24 * 3600);
    let is_news = login.hosts.as_ref().is_some_and(|hosts| {
        let told = hosts.told().is_first_on(today, &login.host);
        told.unwrap_or_else(|error| {
            trace.step(format_args!("cannot remember what was told: {error}"));
            false
        })
    });
    if is_news {
        let (host, line) = (&login.host, login.install_line(&[]));
        trace
            .note(format_args!("{host} has mosh-server only; {line} adds scrollback and sessions"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_consistent() {
        command().debug_assert();
    }
}
