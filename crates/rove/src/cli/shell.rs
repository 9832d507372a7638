//! A session with a terminal: the plan that the user's words come to, and how it ends.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use rove_session::LetGo;
use rove_session::client::{Cause, Obscure, TtyScreen};
use rove_session::past::LINES_MAX;
use rove_session::predict::{Display, Editing, Settings as Guesses};
use rove_term::{Ability, Dialect};
use tokio::sync::mpsc;

use crate::bootstrap::{CostProfile, Goal, Server, program_line};
use crate::cli::again::Again;
use crate::cli::config::HostConfig;
use crate::cli::environment::{
    display_variable, editing_variable, either, entry, escape_variable, term, terminal, variable_os,
};
use crate::cli::exec;
use crate::cli::forward::ForwardArgs;
use crate::cli::install::{self, Asking};
use crate::cli::login::{broken_off, login};
use crate::cli::order::Ordered;
use crate::cli::words::{RoveArgs, SessionArgs};
use crate::client::streams::{self, StreamsHandle};
use crate::client::{self, Ended, Settings, WayBack, WaySetting};
use crate::failure::{FAILED, Failure};
use crate::keeper::Keeper;
use crate::notice::{NOTICES_MAX, Notice, OnFailure};
use crate::os::clock::Clock;
use crate::os::sandbox::{Reach, confine_all};
use crate::os::tty;
use crate::runtime::{run, runtime};
use crate::services::forward::apart::Serving;
use crate::services::forward::wishes::Ready;
use crate::services::silence;
use crate::ssh::{Found, Login, Reached, Via, Wires, is_openssh};
use crate::trace::Trace;

/// Runs a session with a shell, and the forwardings beside it. `meant` is the line that was meant if there is no such host.
pub(super) fn shell(
    clock: Clock,
    words: RoveArgs,
    goal: Goal,
    meant: Option<String>,
    again: &Again,
    trace: &Trace,
) -> Result<ExitCode, Failure> {
    let (mut login, settings, forward, asking) = plan(words, goal, again, trace)?;
    login.meant = meant;
    session(clock, login, settings, forward, asking, trace)
}

/// Runs a session as planned.
pub(super) fn session(
    clock: Clock,
    mut login: Login,
    mut settings: Settings,
    forward: ForwardArgs,
    asking: Asking,
    trace: &Trace,
) -> Result<ExitCode, Failure> {
    let mut back = way_back(&login, &settings, trace);
    // A thread that has looked up a name ends at once: it does not outlive the moment at which the session is confined.
    run(runtime().thread_keep_alive(Duration::ZERO), async {
        let ready = forward.prepare(&mut login, trace).await?;
        obscure_as_ssh(&mut settings.obscure, &mut settings.obscure_slot, &login).await;
        let found = match login.search(trace).await? {
            Found::Server(reached) => {
                install::suggest(&login, &reached, asking, trace);
                reached
            }
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
        let ended =
            client::run(clock, found, &settings, beside, &login.host, back.take(), trace).await?;
        status(&login, &ended, trace)
    })
}

/// The way back to the session, where the user wants one. It comes before all threads and keys.
fn way_back(login: &Login, settings: &Settings, trace: &Trace) -> Option<WayBack> {
    let is_wanted = settings.falls_back && login.request.carry;
    let is_stock = matches!(login.request.server, Server::Stock(_));
    if !is_wanted || is_stock || login.wires == Wires::Mosh {
        return None;
    }
    if let Via::Ssh(words) = &login.via
        && !is_openssh(words)
    {
        trace.step(format_args!("no way back over a program that is not ssh: it may ask"));
        return None;
    }
    match Keeper::start(login) {
        Ok(keeper) => Some(WayBack { keeper, login: login.clone() }),
        Err(error) => {
            trace.step(format_args!("there will be no way back over ssh: {error}"));
            None
        }
    }
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
    let Some((streams, link, ports)) = streams::beside(found, lost(), trace).map_err(failed)?
    else {
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
    Ok(Some(StreamsHandle { link, news, on_failure, ports, _serving: serving }))
}

/// The exit status: the program's own if known, as with ssh. Says that the session was ended here, since
/// nothing on the host did.
fn status(login: &Login, ended: &Ended, trace: &Trace) -> Result<ExitCode, Failure> {
    let host = &login.host;
    if let Some(said) = goes_on(login, ended) {
        trace.warn(format_args!("{said}"));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(status) = ended.exit.status {
        return Ok(ExitCode::from(u8::try_from(status).unwrap_or(FAILED)));
    }
    match (broken_off(host, ended, "--udp-port"), ended.signal) {
        (Some(failure), None) => return Err(failure),
        (Some(failure), Some(_)) => trace.warn(format_args!("{}", failure.what)),
        (None, _) if ended.exit.cause == Cause::PeerLeft => {}
        (None, _) if ended.session.as_ref().is_some_and(|session| session.others > 0) => {
            trace.note(format_args!("left the session on {host}; others are in it"));
        }
        (None, _) => trace.note(format_args!("ended the session on {host}")),
    }
    Ok(ended.signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal.as_raw() as u8)))
}

/// What to say of a session that goes on without this client.
fn goes_on(login: &Login, ended: &Ended) -> Option<String> {
    let (session, host) = (ended.session.as_ref()?, &login.host);
    let name = &session.name;
    let back = |more: &[&str]| login.session_line("attach", more, name);
    if ended.exit.cause == Cause::Detached {
        return Some(match ended.exit.clean {
            true => {
                format!("detached from {name} on {host}, which goes on. Back to it: {}", back(&[]))
            }
            false => format!(
                "left {name}, and {host} did not confirm it. To see whether it goes on: {}",
                login.session_line("ls", &[], "")
            ),
        });
    }
    let who = if session.who.is_empty() { "another client" } else { session.who.as_str() };
    Some(match session.ended? {
        LetGo::Replaced if session.who.is_empty() => {
            format!("{name} let this client go, which was away for long. Back to it: {}", back(&[]))
        }
        LetGo::TakenOver => {
            format!("{name} was taken over by {who}. To take it back: {}", back(&["--take"]))
        }
        LetGo::Replaced => format!("{name} needed room for {who}. Back to it: {}", back(&[])),
    })
}

/// Turns the words into a plan; refuses an impossible one before ssh asks for a password.
fn plan(
    words: RoveArgs,
    goal: Goal,
    again: &Again,
    trace: &Trace,
) -> Result<(Login, Settings, ForwardArgs, Asking), Failure> {
    let own = HostConfig::of_user(&words.host)?;
    let settings = settings(&words.session, &own, again, trace)?;
    let mut login = words.login(&own)?;
    login.request.colours = settings.tty.colors().count();
    login.request.command = request_command(words.command, again.ordered().is_program);
    login.request.tariff = settings.tariff;
    login.request.carry = settings.way != WaySetting::Udp;
    login.request.goal = goal;
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

    pub(super) fn parsed(ordered: &Ordered) -> Result<RoveArgs, clap::Error> {
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

pub(super) fn settings(
    session: &SessionArgs,
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
    let term = term();
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
    let metered = session.metered || own.metered == Some(true);
    let way = session.way.chosen(own);
    Ok(Settings {
        tty: tty_of(session, own),
        escape: escape_variable().or(own.escape).unwrap_or_default(),
        window,
        name: "rove",
        title_prefix: prefix,
        obscure: obscured(session, own),
        obscure_slot: session.obscure_slot,
        history: session.history.or(own.history).map_or(LINES_MAX, u64::from),
        wants_fewer: false,
        clear_history: own.clear_history != Some(false),
        keep_cleared: own.keep_cleared != Some(false),
        guesses: Guesses::ROVE.with_display(display).with_editing(editing),
        detaches_on_close: own.detaches == Some(true),
        tariff: if metered { CostProfile::Metered } else { CostProfile::Flat },
        way,
        falls_back: !session.no_fallback && own.fallback != Some(false),
    })
}

/// The user's words say this, or else ROVE_OBSCURE, or else rove's file.
fn obscured(session: &SessionArgs, own: &HostConfig) -> Option<Obscure> {
    session.obscure.map(Obscure::from).or(own.obscure)
}

/// Takes the interval of ssh's ObscureKeystrokeTiming, unless the user chose something else for rove.
pub(super) async fn obscure_as_ssh(
    obscure: &mut Option<Obscure>,
    slot: &mut Option<Duration>,
    login: &Login,
) {
    let is_open = matches!(obscure, None | Some(Obscure::Always));
    if is_open && let Some(interval) = login.obscure_interval().await {
        *obscure = Some(Obscure::Always);
        slot.get_or_insert(interval);
    }
}

/// The user's terminal, and what programs may do with it.
fn tty_of(session: &SessionArgs, own: &HostConfig) -> Dialect {
    let no_clipboard = session.no_clipboard
        || variable_os("ROVE_NO_CLIPBOARD").is_some()
        || own.clipboard == Some(false);
    match no_clipboard {
        true => terminal().without(Ability::Clipboard),
        false => terminal(),
    }
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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rove_session::client::Exit;
    use rove_session::{Peer, SessionInfo};

    use super::*;

    /// Marks the environment of this test when it runs again, with a variable of its own.
    const AGAIN: &str = "THIS_TEST_RUNS_AGAIN";

    /// Options go before ROVE_OBSCURE, that before rove's file, and ssh's interval behind all.
    #[test]
    fn what_is_hidden_is_said_in_this_order() {
        if variable_os(AGAIN).is_none() {
            for variable in ["", "secrets", "always", "never"] {
                let mut again = Command::new(std::env::current_exe().expect("it runs"));
                let name = concat!(module_path!(), "::what_is_hidden_is_said_in_this_order");
                // The harness leaves out the crate.
                let name = name.split_once("::").expect("it is in a crate").1;
                again.args(["--exact", name]).env(AGAIN, "1").env_remove("ROVE_OBSCURE");
                if !variable.is_empty() {
                    again.env("ROVE_OBSCURE", variable);
                }
                let output = again.output().expect("it runs");
                let passed = String::from_utf8_lossy(&output.stdout).contains(" 1 passed");
                assert!(output.status.success() && passed, "{variable}: {output:?}");
            }
            return;
        }
        let (always, secrets, never) = (Obscure::Always, Obscure::Secrets, Obscure::Never);
        let yes = "obscurekeystroketiming yes\n";
        let every_80 = "obscurekeystroketiming interval:80\n";
        let mut judged = 0;
        for (line, variable, file, ssh, obscure, slot_ms) in [
            ("h", "", None, yes, None, None),
            ("h", "", None, every_80, Some(always), Some(80)),
            ("h", "", Some(never), every_80, Some(never), None),
            ("h", "", Some(always), every_80, Some(always), Some(80)),
            ("--obscure h", "", Some(never), yes, Some(always), None),
            ("--obscure h", "", None, every_80, Some(always), Some(80)),
            ("--obscure --obscure-slot=40 h", "", None, every_80, Some(always), Some(40)),
            ("--obscure-slot=40 h", "", None, every_80, Some(always), Some(40)),
            ("--obscure=secrets h", "", None, every_80, Some(secrets), None),
            ("--obscure=never h", "", None, every_80, Some(never), None),
            ("h", "secrets", Some(always), every_80, Some(secrets), None),
            ("--obscure h", "secrets", None, every_80, Some(always), Some(80)),
            ("h", "always", Some(never), yes, Some(always), None),
            ("h", "always", None, every_80, Some(always), Some(80)),
            ("--obscure=secrets h", "always", None, every_80, Some(secrets), None),
            ("h", "never", Some(always), every_80, Some(never), None),
            ("--obscure h", "never", None, yes, Some(always), None),
        ] {
            if variable_os("ROVE_OBSCURE").unwrap_or_default() != *variable {
                continue;
            }
            judged += 1;
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let words = RoveArgs::read(&words).expect("words that are known");
            let own = HostConfig { obscure: file, ..HostConfig::default() };
            let login = words.login(&own).expect("a host");
            login.report.set(Ok(ssh.to_owned())).expect("nobody has asked ssh");
            let (mut found, mut slot) =
                (obscured(&words.session, &own), words.session.obscure_slot);
            runtime()
                .build()
                .expect("a runtime")
                .block_on(obscure_as_ssh(&mut found, &mut slot, &login));
            let slot = slot.map(|slot| slot.as_millis());
            assert_eq!((found, slot), (obscure, slot_ms), "{line}, {variable}, {file:?}, {ssh}");
        }
        assert!(judged >= 2);
    }

    #[test]
    fn why_a_session_has_ended_for_one_client() {
        let words = [OsString::from("build7")];
        let login = RoveArgs::read(&words).unwrap().login(&HostConfig::default()).unwrap();
        for (ended, who, expected) in [
            (None, "192.0.2.9", None),
            (
                Some(LetGo::TakenOver),
                "a client over ssh",
                Some(
                    "work was taken over by a client over ssh. To take it back: rove attach \
                     --take build7:work",
                ),
            ),
            (
                Some(LetGo::Replaced),
                "192.0.2.9",
                Some("work needed room for 192.0.2.9. Back to it: rove attach build7:work"),
            ),
            (
                Some(LetGo::Replaced),
                "",
                Some(
                    "work let this client go, which was away for long. Back to it: rove attach \
                     build7:work",
                ),
            ),
        ] {
            let session = SessionInfo {
                name: "work".into(),
                can_detach: true,
                ended,
                who: who.into(),
                ..SessionInfo::default()
            };
            let exit = Exit {
                cause: Cause::PeerLeft,
                clean: true,
                contact: true,
                server: ([192, 0, 2, 1], 60_001).into(),
                status: None,
            };
            let ended = Ended {
                exit,
                session: Some(session),
                kind: Peer::Rove,
                signal: None,
                refused: 0,
                gone: None,
            };
            assert_eq!(goes_on(&login, &ended).as_deref(), expected);
        }
    }
}
