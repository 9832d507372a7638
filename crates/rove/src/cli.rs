//! rove's own command line, and the session it starts.

mod again;
pub(crate) mod config;
pub(crate) mod copy;
pub(crate) mod environment;
pub(crate) mod exec;
mod forward;
pub(crate) mod help;
pub(crate) mod install;
mod login;
pub(crate) mod mosh_client;
mod order;
mod subcommand;
mod values;
pub(crate) mod words;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use rove_session::client::{Cause, TtyScreen};
use rove_session::past::LINES_MAX;
use rove_session::predict::{Display, Editing, Settings as Guesses};
use rove_term::{Ability, Dialect};
use tokio::sync::mpsc;

use self::again::Again;
use self::config::HostConfig;
use self::environment::{display_variable, either, entry, escape_variable};
pub(crate) use self::environment::{editing_variable, terminal, variable, variable_os};
use self::forward::ForwardArgs;
use self::install::Asking;
use self::order::Ordered;
pub(crate) use self::subcommand::{Subcommand, subcommand};
use self::words::{RoveArgs, SessionArgs, not_yet, print};
use crate::bootstrap::{CostProfile, program_line};
use crate::cli::login::{broken_off, login};
use crate::client::streams::{self, StreamsHandle};
use crate::client::{self, Ended, Settings};
use crate::failure::Failure;
use crate::failure::{FAILED, fail};
use crate::notice::{NOTICES_MAX, Notice, OnFailure};
use crate::os::clock::Clock;
use crate::os::sandbox::{Reach, confine_all};
use crate::os::tty;
use crate::runtime::{in_runtime, run, runtime};
use crate::services::forward::apart::Serving;
use crate::services::forward::wishes::Ready;
use crate::services::silence;
use crate::ssh::{Found, Login, Reached};
use crate::trace::Trace;

/// The command as clap knows it, for completions and tests.
pub fn command() -> clap::Command {
    let copy = copy::command().name("cp");
    RoveArgs::command()
        .subcommand(copy)
        .subcommand(exec::command().name("exec"))
        .subcommand(install::command().name("install"))
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
                .map_or_else(|| print(&usage), |failure| fail(&failure));
        }
    };
    let trace = Trace::new(clock, words.session.tell.verbosity());
    let has_terminal = tty::missing_stream().is_none();
    let outcome = match (words.forward.is_all(), manner) {
        (true, _) => alone(clock, words, &trace),
        (false, Manner::Ssh) if !has_terminal => piped(clock, words, &ordered, &trace),
        (false, _) => shell(clock, words, &again, &trace),
    };
    outcome.unwrap_or_else(|failure| fail(&failure))
}

/// Runs a session with a shell, and the forwardings beside it.
fn shell(clock: Clock, words: RoveArgs, again: &Again, trace: &Trace) -> Result<ExitCode, Failure> {
    let (mut login, settings, forward, asking) = plan(words, again, trace)?;
    // A thread that has looked up a name ends at once: it does not outlive the moment at which the session is confined.
    run(runtime().thread_keep_alive(Duration::ZERO), async {
        let ready = forward.prepare(&mut login, trace).await?;
        let found = match login.search(trace).await? {
            Found::Server(reached) => reached,
            Found::None { path, facts } => {
                match install::offer(&login, &path, &facts, asking, trace).await? {
                    true => login.again()?.start(trace).await?,
                    false => return Err(login.missing(&path, &facts)),
                }
            }
        };
        let beside = match ready.is_empty() {
            true => None,
            false => forwarding(ready, &found, &login.host, trace)?,
        };
        let ended = client::run(clock, found, &settings, beside, trace).await?;
        status(&login.host, &ended, trace)
    })
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
    exec::on_streams(clock, login, words.forward, wanted, trace)
}

/// Runs a session without one, for `-N` and `-W`.
fn alone(clock: Clock, words: RoveArgs, trace: &Trace) -> Result<ExitCode, Failure> {
    let job = exec::job_without_command(&words.forward, &words.command)?;
    let mut login = words.login(&HostConfig::of_user(&words.host)?)?;
    exec::for_streams(&mut login, "ssh");
    in_runtime(exec::alone(clock, login, &words.forward, job, trace))
}

/// Starts the forwardings beside a shell, where the server can.
fn forwarding(
    ready: Ready,
    found: &Reached,
    host: &str,
    trace: &Trace,
) -> Result<Option<StreamsHandle>, Failure> {
    // Programs are needed no more. Each thread that is begun from here on gives up the rest that it does without.
    trace.step(format_args!("confined at first: {}", confine_all(&Reach::Connections)));
    let (tell, news) = mpsc::channel(NOTICES_MAX);
    let lost = || {
        let tell = tell.clone();
        move || {
            let what =
                "nothing is forwarded any more, by a fault that is told when the session ends";
            // What has no room is told with the fault.
            let _ = tell.try_send(Notice::Warning(what.into()));
        }
    };
    let failed = |error| Failure::new(format!("cannot forward: {error}"), "");
    let Some((streams, link)) = streams::beside(found, lost(), trace).map_err(failed)? else {
        let what = format!("nothing is forwarded: that needs a rove on {host}, and its own wire");
        if ready.on_failure == OnFailure::Exit {
            return Err(Failure::new(what, "ExitOnForwardFailure is set."));
        }
        trace.warn(format_args!("{what}"));
        return Ok(None);
    };
    let on_failure = ready.on_failure;
    tokio::spawn(silence::tell_of_cuts(streams.clone(), host.to_owned(), tell.clone()));
    let serving = Serving::start(ready, streams, tell.clone(), lost(), trace).map_err(failed)?;
    Ok(Some(StreamsHandle { link, news, on_failure, _serving: serving }))
}

/// The exit status: the program's own if known, as with ssh. Says that the session was ended here, since
/// nothing on the host did.
fn status(host: &str, ended: &Ended, trace: &Trace) -> Result<ExitCode, Failure> {
    if let Some(status) = ended.exit.status {
        return Ok(ExitCode::from(u8::try_from(status).unwrap_or(FAILED)));
    }
    match (broken_off(host, ended, "--udp-port"), ended.signal) {
        (Some(failure), None) => return Err(failure),
        (Some(failure), Some(_)) => trace.warn(format_args!("{}", failure.what)),
        (None, _) if ended.exit.cause == Cause::PeerLeft => {}
        (None, _) => trace.note(format_args!("ended the session on {host}")),
    }
    Ok(ended.signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal.as_raw() as u8)))
}

/// Turns the words into a plan; refuses an impossible one before ssh asks for a password.
fn plan(
    words: RoveArgs,
    again: &Again,
    trace: &Trace,
) -> Result<(Login, Settings, ForwardArgs, Asking), Failure> {
    let own = HostConfig::of_user(&words.host)?;
    let settings = settings(&words, &own, again, trace)?;
    let mut login = words.login(&own)?;
    login.request.colours = settings.tty.colors().count();
    login.meant = subcommand::meant(again.ordered());
    login.request.command = request_command(words.command, again.ordered().is_program);
    login.request.tariff = settings.tariff;
    let declines = words.session.no_install || words.session.tell.is_quiet();
    let asking = match declines || own.install == Some(false) {
        true => Asking::Refused,
        false => Asking::Allowed,
    };
    Ok((login, settings, words.forward, asking))
}

impl RoveArgs {
    /// Reads the words after the program's name, in any order that ssh takes.
    pub fn read(words: &[OsString]) -> Result<RoveArgs, clap::Error> {
        RoveArgs::parsed(&Ordered::of(&RoveArgs::command(), words))
    }

    fn parsed(ordered: &Ordered) -> Result<RoveArgs, clap::Error> {
        RoveArgs::try_parse_from(ordered.words("rove"))
    }

    /// The login on the host, of which the user's file says `own`.
    ///
    /// # Errors
    /// If `--ssh` names no program.
    pub fn login(&self, own: &HostConfig) -> Result<Login, Failure> {
        login(&self.host, self.ssh.options(&self.session.tell), &self.ssh, &self.server, own)
    }
}

/// The command of the request: one word is a line for the user's shell, several are a program and its words.
fn request_command(command: Vec<OsString>, is_program: bool) -> Vec<OsString> {
    let line = match is_program {
        true if command.len() != 1 => return command,
        true => program_line(&command),
        false => command.join(OsStr::new(" ")),
    };
    if line.is_empty() { Vec::new() } else { vec![line] }
}

fn settings(
    words: &RoveArgs,
    own: &HostConfig,
    again: &Again,
    trace: &Trace,
) -> Result<Settings, Failure> {
    if let Some(stream) = tty::missing_stream() {
        return Err(Failure::new(
            format!("standard {stream} is not a terminal, and a session needs one"),
            format!("To run a command without a terminal: {}", again.exec(&exec::command(), "-T")),
        ));
    }
    let term = variable("TERM").unwrap_or_default();
    match term.as_str() {
        "dumb" => return Err(cannot_move(again)),
        "" => trace.note(format_args!(
            "TERM is not set, so little is asked of this terminal; say what it is: \
             TERM=xterm-256color {}",
            again.line()
        )),
        _ if !Dialect::knows(&term) && entry(&term).is_none() => trace.note(format_args!(
            "TERM={term} is not known here, so little is asked of this terminal; say what it is \
             like: TERM=xterm-256color {}",
            again.line()
        )),
        _ => {}
    }
    if tty::window().is_none() {
        let (rows, cols) = tty::SIZE_UNKNOWN;
        trace.note(format_args!(
            "this terminal does not know its size, so {cols} by {rows} is taken; tell it: \
             stty rows R cols C"
        ));
    }
    let session = &words.session;
    let display = match session {
        SessionArgs { predict_always: true, .. } => Display::Always,
        SessionArgs { predict_never: true, .. } => Display::Never,
        SessionArgs { predict: Some(word), .. } => (*word).into(),
        SessionArgs { predict: None, .. } => {
            display_variable()?.or(own.predict).unwrap_or_default()
        }
    };
    let editing = if session.predict_overwrite { Editing::Overwrite } else { editing_variable() };
    let has_prefix = either("TITLE_NOPREFIX").is_none() && own.title_prefix != Some(false);
    let prefix = if has_prefix { "[rove] " } else { "" };
    let window = match (session.init, session.no_init) {
        (true, _) => Some(TtyScreen::Alternate),
        (false, true) => Some(TtyScreen::Main),
        (false, false) => either("NO_TERM_INIT").map(|_set| TtyScreen::Main),
    };
    let no_clipboard = session.no_clipboard
        || variable_os("ROVE_NO_CLIPBOARD").is_some()
        || own.clipboard == Some(false);
    let tty = match no_clipboard {
        true => terminal().without(Ability::Clipboard),
        false => terminal(),
    };
    let metered = session.metered || own.metered == Some(true);
    Ok(Settings {
        tty,
        escape: escape_variable().or(own.escape).unwrap_or_default(),
        window,
        name: "rove",
        title_prefix: prefix,
        history: session.history.map_or(LINES_MAX, u64::from),
        guesses: Guesses::ROVE.with_display(display).with_editing(editing),
        tariff: if metered { CostProfile::Metered } else { CostProfile::Flat },
    })
}

fn cannot_move(again: &Again) -> Failure {
    Failure::new(
        "TERM=dumb says that this terminal cannot move its cursor",
        format!(
            "A session that only prints: {}\n      If it can, set TERM to what it is: \
             TERM=xterm-256color {}",
            again.exec(&exec::command(), "-t"),
            again.line(),
        ),
    )
}
