//! The command line of `rove doctor`.

mod here;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, ValueHint};

use crate::bootstrap::Purpose;
use crate::cli::config::HostConfig;
use crate::cli::login::login;
use crate::cli::order::Ordered;
use crate::cli::usage::print;
use crate::cli::values::parse_host;
use crate::cli::words::{STYLES, ServerArgs, SshArgs, TellArgs};
use crate::client::WaySetting;
use crate::doctor::{Form, Report, examine};
use crate::failure::Failure;
use crate::os::clock::Clock;
use crate::runtime::in_runtime;
use crate::services::silence::GIVE_UP_MIN;
use crate::trace::{Trace, Verbosity};

/// The status if something does not work.
const SOMETHING_FAILS: u8 = 1;

/// Look at all that a session needs, here and on a host, and say what to do about what is amiss.
///
/// A line for each thing: ok, -- for what is not so good, NO for what does not work.
#[derive(Debug, Parser)]
#[command(
    name = "rove doctor",
    bin_name = "rove doctor",
    version,
    styles = STYLES,
    override_usage = "rove doctor [OPTIONS] [[--] [USER@]HOST]"
)]
pub(crate) struct DoctorArgs {
    /// The host, by any name or alias that your ssh knows. Without one only this machine is looked at.
    #[arg(value_name = "[USER@]HOST", value_parser = parse_host, value_hint = ValueHint::Hostname)]
    host: Option<String>,

    /// Print it all at the end, for programs.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    tell: TellArgs,

    #[command(flatten, next_help_heading = "Server")]
    server: ServerArgs,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    ssh: SshArgs,
}

/// The command as clap knows it.
pub(super) fn command() -> clap::Command {
    DoctorArgs::command()
}

/// Runs `rove doctor` with the words after it.
pub(crate) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    let ordered = Ordered::of(&command(), words);
    match DoctorArgs::try_parse_from(ordered.words("rove doctor")) {
        Ok(words) => words.run(),
        Err(usage) => Ok(print(&usage, "rove doctor", words)),
    }
}

impl DoctorArgs {
    fn run(self) -> Result<ExitCode, Failure> {
        let clock = Clock::start();
        // Its lines say all that other commands note.
        let verbosity = match self.tell.verbosity() {
            Verbosity::Steps => Verbosity::Steps,
            Verbosity::Usual | Verbosity::Quiet => Verbosity::Quiet,
        };
        let trace = Trace::new(clock, verbosity);
        let form = if self.json { Form::Json } else { Form::Lines };
        let mut report = Report::new(form);
        let host = self.host.as_deref();
        here::look(host, &self.ssh.ssh, &mut report);
        if let Some(host) = host {
            // A file that cannot be read is reported above.
            let own = HostConfig::of_user(host).unwrap_or_default();
            let options = self.ssh.options(&self.tell);
            let mut login = login(host, options, &self.ssh, &self.server, &own)?;
            login.request.purpose = Purpose::Checks;
            login.request.carry = own.way != Some(WaySetting::Udp);
            // A doctor that is killed leaves nothing behind.
            login.request.keep = Some(GIVE_UP_MIN);
            in_runtime(async {
                examine(clock, &login, &mut report, &trace).await;
                Ok(())
            })?;
        }
        match report.finish(host) {
            true => Ok(ExitCode::SUCCESS),
            false => Ok(SOMETHING_FAILS.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn a_host_is_not_needed() {
        for (line, host) in [("--json", None), ("h --json", Some("h")), ("-p 22 u@h", Some("u@h"))]
        {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let ordered = Ordered::of(&command(), &words);
            let parsed = DoctorArgs::try_parse_from(ordered.words("rove doctor"));
            assert_eq!(parsed.expect(line).host.as_deref(), host, "{line}");
        }
    }
}
