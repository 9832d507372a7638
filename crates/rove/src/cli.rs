//! rove's own command line, and the session it starts.

pub(crate) mod copy;
pub(crate) mod environment;
pub(crate) mod exec;
mod forward;
mod login;
pub(crate) mod mosh_client;
mod values;
mod words;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use rove_session::client::TtyScreen;
use rove_session::predict::{Display, Editing, Settings as Guesses};
use rove_term::{Ability, Dialect};
use tokio::sync::mpsc;

use self::environment::{display_variable, either, entry};
pub(crate) use self::environment::{editing_variable, escape, terminal, variable, variable_os};
use self::forward::ForwardArgs;
use self::words::{RoveArgs, SessionArgs, not_yet, print};
use crate::bootstrap::CostProfile;
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
use crate::ssh::{Login, Reached};
use crate::trace::Trace;

/// The command as clap knows it, for completions and tests.
pub fn command() -> clap::Command {
    let copy = copy::command().name("cp");
    RoveArgs::command().subcommand(copy).subcommand(exec::command().name("exec"))
}

pub(crate) fn rove(words: &[OsString]) -> ExitCode {
    let clock = Clock::start();
    let words = match RoveArgs::try_parse_from([OsString::from("rove")].iter().chain(words)) {
        Ok(words) => words,
        Err(usage) => {
            return not_yet(&usage).map_or_else(|| print(&usage), |failure| fail(&failure));
        }
    };
    let trace = Trace::new(clock, words.session.tell.verbosity());
    let outcome = match words.forward.is_all() {
        true => alone(clock, words, &trace),
        false => shell(clock, words, &trace),
    };
    outcome.unwrap_or_else(|failure| fail(&failure))
}

/// Runs a session with a shell, and the forwardings beside it.
fn shell(clock: Clock, words: RoveArgs, trace: &Trace) -> Result<ExitCode, Failure> {
    let (mut login, settings, forward) = plan(words, trace)?;
    // A thread that has looked up a name ends at once: it does not outlive the moment at which the session is confined.
    run(runtime().thread_keep_alive(Duration::ZERO), async {
        let ready = forward.prepare(&mut login, trace).await?;
        let found = login.start(trace).await?;
        let beside = match ready.is_empty() {
            true => None,
            false => forwarding(ready, &found, &login.host, trace)?,
        };
        let ended = client::run(clock, found, &settings, beside, trace).await?;
        status(&login.host, &ended)
    })
}

/// Runs a session without one, for `-N` and `-W`.
fn alone(clock: Clock, words: RoveArgs, trace: &Trace) -> Result<ExitCode, Failure> {
    let RoveArgs { host, command, session, forward, server, ssh } = words;
    let job = exec::job_without_command(&forward, &command)?;
    let mut login = login(&host, ssh.options(&session.tell), &ssh, &server)?;
    exec::for_streams(&mut login, "ssh");
    in_runtime(exec::alone(clock, login, &forward, job, trace))
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

/// The exit status: the program's own if known, as with ssh.
fn status(host: &str, ended: &Ended) -> Result<ExitCode, Failure> {
    match (ended.exit.status, ended.signal) {
        (Some(status), _) => Ok(ExitCode::from(u8::try_from(status).unwrap_or(FAILED))),
        (None, Some(signal)) => Ok(ExitCode::from(128 + signal.as_raw() as u8)),
        (None, None) => broken_off(host, ended, "--udp-port").map_or(Ok(ExitCode::SUCCESS), Err),
    }
}

/// Turns the words into a plan; refuses an impossible one before ssh asks for a password.
fn plan(words: RoveArgs, trace: &Trace) -> Result<(Login, Settings, ForwardArgs), Failure> {
    let settings = settings(&words, trace)?;
    let RoveArgs { host, mut command, session, forward, server, ssh } = words;
    match command.first() {
        Some(word) if word == "--" => drop(command.remove(0)),
        // ssh takes options there, too, so it is a habit; a program's name it never is.
        Some(word) if word.as_bytes().starts_with(b"-") => {
            let word = word.to_string_lossy();
            return Err(Failure::new(
                format!("{word} stands after the host, where the command begins"),
                format!("Options go before the host: rove {word} ... {host}"),
            ));
        }
        _ => {}
    }
    let mut login = login(&host, ssh.options(&session.tell), &ssh, &server)?;
    login.request.colours = settings.tty.colors().count();
    login.request.command = command;
    login.request.tariff = settings.tariff;
    Ok((login, settings, forward))
}

fn settings(words: &RoveArgs, trace: &Trace) -> Result<Settings, Failure> {
    if let Some(stream) = tty::missing_stream() {
        return Err(Failure::new(
            format!("standard {stream} is not a terminal, and a session needs one"),
            format!("To run a command without a terminal: rove exec {} COMMAND", words.host),
        ));
    }
    let term = variable("TERM").unwrap_or_default();
    match term.as_str() {
        "dumb" => {
            return Err(Failure::new(
                "TERM=dumb says that this terminal cannot move its cursor",
                "If it can, set TERM to what it is, for example: TERM=xterm-256color rove HOST",
            ));
        }
        "" => trace.note(format_args!(
            "TERM is not set, so little is asked of this terminal; say what it is: \
             TERM=xterm-256color rove {}",
            words.host
        )),
        _ if !Dialect::knows(&term) && entry(&term).is_none() => trace.note(format_args!(
            "TERM={term} is not known here, so little is asked of this terminal; say what it is \
             like: TERM=xterm-256color rove {}",
            words.host
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
        SessionArgs { predict: None, .. } => display_variable()?,
    };
    let editing = if session.predict_overwrite { Editing::Overwrite } else { editing_variable() };
    let prefix = if either("TITLE_NOPREFIX").is_some() { "" } else { "[rove] " };
    let window = match (session.init, session.no_init) {
        (true, _) => Some(TtyScreen::Alternate),
        (false, true) => Some(TtyScreen::Main),
        (false, false) => either("NO_TERM_INIT").map(|_set| TtyScreen::Main),
    };
    let no_clipboard = session.no_clipboard || variable_os("ROVE_NO_CLIPBOARD").is_some();
    let tty = match no_clipboard {
        true => terminal().without(Ability::Clipboard),
        false => terminal(),
    };
    Ok(Settings {
        tty,
        escape: escape(either("ESCAPE_KEY")),
        window,
        name: "rove",
        title_prefix: prefix,
        guesses: Guesses::ROVE.with_display(display).with_editing(editing),
        tariff: if session.metered { CostProfile::Metered } else { CostProfile::Flat },
    })
}
