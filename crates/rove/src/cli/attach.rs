//! `rove attach`, which goes back to a session, and `rove new`, which begins one with a name.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, ValueHint};
use rove_session::host::SizePolicy;

use crate::bootstrap::{Goal, Server};
use crate::cli::again::Again;
use crate::cli::config::HostConfig;
use crate::cli::environment::variable;
use crate::cli::exec;
use crate::cli::forward::ForwardArgs;
use crate::cli::install::Asking;
use crate::cli::login::{here, login};
use crate::cli::order::{Given, Ordered};
use crate::cli::shell::{session, settings, shell};
use crate::cli::target::Target;
use crate::cli::usage::{not_yet, print};
use crate::cli::words::{RoveArgs, STYLES, ServerArgs, SessionArgs, SshArgs};
use crate::client::{Settings, WaySetting};
use crate::failure::Failure;
use crate::os::clock::Clock;
use crate::sessions::line::{Terms, size_policy};
use crate::sessions::name::{Name, SessionId};
use crate::ssh::{Login, Wires};
use crate::trace::Trace;

const AFTER_HELP: &str = "\
Without a name it is the session without a client that was used last; without a host, one on this machine. The lines
above its screen come into your terminal's scrollback. In the session Ctrl-^ d detaches: it goes on.
`rove ls HOST` lists sessions, `rove new -s NAME HOST` begins one with a name.";

/// Go back to a session on a host, or join others in it.
#[derive(Debug, Parser)]
#[command(
    name = "rove attach",
    bin_name = "rove attach",
    version,
    styles = STYLES,
    after_help = AFTER_HELP,
    override_usage = "rove attach [OPTIONS] [--] [[USER@]HOST[:NAME]]"
)]
pub(crate) struct AttachArgs {
    /// The host, by any name or alias that your ssh knows, and the session's name.
    #[arg(value_name = "[USER@]HOST[:NAME]", value_parser = Target::parse, value_hint = ValueHint::Hostname)]
    target: Option<Target>,

    /// Only look: the server drops your keys.
    #[arg(long)]
    view: bool,

    /// Let all other clients go.
    #[arg(long)]
    take: bool,

    /// How many of the lines above the screen your terminal gets at most. 0 where it has them already [default: all].
    #[arg(long, value_name = "LINES")]
    fill: Option<u32>,

    /// How the terminal's size is chosen from now on: latest (of the window that was typed in last), smallest,
    /// largest, or a size such as 80x24.
    #[arg(long, value_name = "latest|smallest|largest|COLSxROWS", value_parser = parse_size)]
    size: Option<SizePolicy>,

    #[command(flatten, next_help_heading = "Session")]
    session: SessionArgs,

    #[command(flatten, next_help_heading = "Forwarding")]
    forward: ForwardArgs,

    #[command(flatten, next_help_heading = "Server")]
    server: ServerArgs,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    ssh: SshArgs,

    /// Octets are compressed anyway.
    #[arg(short = 'C', hide = true)]
    compress: bool,
}

fn parse_size(word: &str) -> Result<SizePolicy, &'static str> {
    size_policy(word).ok_or("not latest, smallest, largest or a size such as 80x24")
}

/// The command as clap knows it.
pub(super) fn command() -> clap::Command {
    AttachArgs::command()
}

/// Runs `rove attach` with the words after it.
pub(crate) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    let clock = Clock::start();
    let ordered = Ordered::of(&command(), words);
    let again = Again::of(&ordered);
    let words = match AttachArgs::try_parse_from(ordered.words("rove attach")) {
        Ok(words) => words,
        Err(usage) => {
            return not_yet(&usage, &again.of_host(), &exec::command())
                .map_or_else(|| Ok(print(&usage, "rove attach", words)), Err);
        }
    };
    if words.forward.is_all() {
        let next = "Leave it out, or forward without a session: rove -N HOST";
        return Err(Failure::new("a session that is attached to has a screen", next));
    }
    let trace = Trace::new(clock, words.session.tell.verbosity());
    let (own, mut login) = words.login()?;
    let settings = settings(&words.session, &own, &again, &trace)?;
    let wants_fewer = words.fill.is_some_and(|fill| u64::from(fill) <= settings.history);
    let settings = Settings { wants_fewer, ..settings };
    let target = words.target.as_ref().and_then(|target| target.session.clone());
    let terms = Terms {
        views: words.view,
        takes: words.take,
        is_metered: settings.tariff == crate::bootstrap::CostProfile::Metered,
        size: words.size,
        fill: words.fill.map(u64::from),
    };
    login.request.carry = settings.way != WaySetting::Udp;
    let carry = if login.request.carry { " --carry" } else { "" };
    login.request.goal = Goal::Ask(question(target.as_ref(), &terms) + carry);
    // The session's keys are made for this client alone, which stock's wire has no room for.
    login.wires = Wires::Native;
    session(clock, login, settings, words.forward, Asking::Refused, &trace)
}

/// The words of `rove server` that ask for room in a session.
fn question(name: Option<&Name>, terms: &Terms) -> String {
    let mut words = format!("--attach={}", name.map_or("", Name::as_str));
    // A program of another session's may ask for its own.
    if let Some(from) = variable("ROVE_SESSION").as_deref().and_then(SessionId::parse) {
        words.push_str(&format!(" --from={from}"));
    }
    for term in terms.to_string().split_ascii_whitespace() {
        words.push_str(" --");
        words.push_str(term);
    }
    words
}

impl AttachArgs {
    fn login(&self) -> Result<(HostConfig, Login), Failure> {
        let options = self.ssh.options(&self.session.tell);
        let host = self.target.as_ref().and_then(|target| target.host.as_deref());
        login_to(host, options, &self.ssh, &self.server)
    }
}

/// The login on a host or, without one, on this machine, and what the user's file says of it.
pub(super) fn login_to(
    host: Option<&str>,
    options: Vec<OsString>,
    ssh: &SshArgs,
    server: &ServerArgs,
) -> Result<(HostConfig, Login), Failure> {
    let Some(host) = host else {
        let own = HostConfig::default();
        let login = here(login("localhost", options, ssh, server, &own)?)?;
        return Ok((own, login));
    };
    let own = HostConfig::of_user(host)?;
    let login = login(host, options, ssh, server, &own)?;
    match login.request.server {
        Server::Stock(_) => Err(Failure::new(
            "mosh-server keeps no sessions to come back to",
            "Name a rove with --server, or leave it out.",
        )),
        _ => Ok((own, login)),
    }
}

/// Begin a session that goes on when you leave it.
///
/// It is a session as `rove HOST` begins it. One with a name goes on when its window is closed, too.
#[derive(Debug, Parser)]
struct NewArgs {
    /// What to call the session: letters, digits, dots, underscores and hyphens. HOST:NAME
    /// says the same. Without a name: a number.
    #[arg(short = 's', long = "name", value_name = "NAME", value_parser = parse_name)]
    name: Option<Name>,

    /// Attach to the session of that name if there is one.
    #[arg(short = 'A', long = "attach", requires = "name")]
    joins: bool,

    #[command(flatten)]
    rove: RoveArgs,
}

fn parse_name(word: &str) -> Result<Name, &'static str> {
    Name::of_user(word)
}

/// Reads `host:name` as `-s name host`, and `:name` as a session on this machine, though not with a command: what should have
/// named the host may be empty. An address of IPv6 and a URL stay as they are.
fn name_by_host(ordered: &mut Ordered) -> Result<(), Failure> {
    let Some(word) = ordered.host.as_ref().and_then(|host| host.to_str()) else { return Ok(()) };
    if word.contains("://") {
        return Ok(());
    }
    let (host, name) = match Target::split(word) {
        Ok((host, Some(name))) => (host, name),
        // A colon without a name.
        Ok((Some(host), None)) if word.strip_suffix(':') == Some(&host) => {
            ordered.host = Some(host.into());
            return Ok(());
        }
        Ok(_) => return Ok(()),
        Err(why) => {
            return Err(Failure::new(
                format!("{word} names no host: {why}"),
                "It is written as rove new [USER@]HOST[:NAME]",
            ));
        }
    };
    let is_local = ordered.options.iter().any(|given| given.id == Some("local".into()));
    if host.is_none() && !is_local && !ordered.command.is_empty() {
        return Err(Failure::new(
            format!("no host stands before {word}, and a command runs only where you say"),
            format!("For this machine: rove new --local {word} COMMAND"),
        ));
    }
    let mut added = vec![Given::long("name", Some(name))];
    if host.is_none() && !is_local {
        added.push(Given::long("local", None));
    }
    let host = host.unwrap_or_else(|| "localhost".into());
    ordered.host = Some(host.into());
    ordered.options.extend(added);
    Ok(())
}

/// The command as clap knows it.
pub(super) fn new_command() -> clap::Command {
    NewArgs::command()
        .name("rove new")
        .bin_name("rove new")
        .about("Begin a session that goes on when you leave it")
        .long_about(None)
        .override_usage("rove new [-s NAME] [-A] [OPTIONS] [--] [USER@]HOST[:NAME] [COMMAND]...")
        .after_help(
            "`rove attach HOST:NAME` goes back to it, `rove ls HOST` lists the sessions there.",
        )
        // Its letter is taken here.
        .mut_arg("agent", |agent| agent.short(None).long("forward-agent"))
}

/// Runs `rove new` with the words after it.
pub(crate) fn new(words: &[OsString]) -> Result<ExitCode, Failure> {
    let clock = Clock::start();
    let mut ordered = Ordered::of(&new_command(), words);
    let named = name_by_host(&mut ordered);
    let again = Again::of(&ordered);
    let parsed = new_command().try_get_matches_from(ordered.words("rove new"));
    let words = match parsed.and_then(|matches| NewArgs::from_arg_matches(&matches)) {
        Ok(words) => words,
        Err(usage) => {
            return not_yet(&usage, &again, &exec::command())
                .map_or_else(|| Ok(print(&usage, "rove new", words)), Err);
        }
    };
    named?;
    let trace = Trace::new(clock, words.rove.session.tell.verbosity());
    let goal = words
        .name
        .map_or(Goal::Any, |name| Goal::Named { name: name.to_string(), joins: words.joins });
    shell(clock, words.rove, goal, None, &again, &trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_consistent() {
        command().debug_assert();
        new_command().debug_assert();
    }

    #[test]
    fn words_of_ssh_that_attach_lacks() {
        let read = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let ordered = Ordered::of(&command(), &words);
            let usage = AttachArgs::try_parse_from(ordered.words("rove attach")).err()?;
            let again = Again::of(&ordered).of_host();
            Some(not_yet(&usage, &again, &exec::command()).expect("a message").what)
        };
        assert_eq!(read("-C h:work"), None);
        for (line, expected) in [
            ("-p 22 -X me@h:work", "use `ssh -X -p 22 me@h` for what needs them"),
            ("-p 22 -T h:work", "without one: rove exec -T -p 22 h"),
            ("-f h", "-f: rove stays in the foreground"),
        ] {
            let what = read(line).unwrap();
            assert!(what.contains(expected), "{line}: {what}");
        }
    }

    #[test]
    fn words_for_the_server() {
        let terms = Terms { views: true, fill: Some(0), ..Terms::default() };
        let name = Name::parse("work");
        assert_eq!(question(name.as_ref(), &terms), "--attach=work --view --fill=0");
        assert_eq!(question(None, &Terms::default()), "--attach=");
    }

    #[cfg(unix)]
    #[test]
    fn the_way_back_has_the_options_of_the_way_there() {
        for (line, expected) in [
            ("h", "rove attach h:work"),
            ("-p 2222 me@h", "rove attach -p 2222 me@h:work"),
            ("--server=/opt/rove h", "rove attach --server=/opt/rove h:work"),
            ("--local h", "rove attach :work"),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let login = RoveArgs::read(&words).unwrap().login(&HostConfig::default()).unwrap();
            assert_eq!(login.session_line("attach", &[], "work"), expected);
        }
    }

    #[test]
    fn words_of_new() {
        let read = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let mut ordered = Ordered::of(&new_command(), &words);
            name_by_host(&mut ordered).unwrap();
            let matches = new_command().try_get_matches_from(ordered.words("rove new"))?;
            NewArgs::from_arg_matches(&matches)
        };
        let words = read("-A -s work h make -j8").unwrap();
        assert!(words.joins && words.name == Name::parse("work"));
        assert_eq!((words.rove.host.as_str(), words.rove.command.len()), ("h", 2));
        for (line, host, name, is_local) in [
            ("h:work", "h", Some("work"), false),
            ("-A me@h:work -p 22", "me@h", Some("work"), false),
            ("-- h:work top", "h", Some("work"), false),
            ("[::1]:work", "::1", Some("work"), false),
            (":work", "localhost", Some("work"), true),
            ("--local :work top", "localhost", Some("work"), true),
            ("::1", "::1", None, false),
            ("fe80::1%eth0", "fe80::1%eth0", None, false),
            ("ssh://me@h:22", "ssh://me@h:22", None, false),
            ("h:", "h", None, false),
        ] {
            let words = read(line).unwrap();
            assert_eq!(words.name, name.and_then(Name::parse), "{line}");
            assert_eq!((&*words.rove.host, words.rove.server.local), (host, is_local), "{line}");
        }
        for bad in ["-A h", "-s 12 h", "-s a/b h", "-s work", "h:12", "h:a/b", "-s work h:work"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    /// What should have named the host may be empty.
    #[test]
    fn a_command_is_for_this_machine_only_if_that_is_said() {
        let words = [":work", "top"].map(OsString::from);
        let failure = name_by_host(&mut Ordered::of(&new_command(), &words)).unwrap_err();
        assert!(failure.next.contains("rove new --local :work COMMAND"), "{}", failure.next);
    }

    #[test]
    fn a_user_without_a_host_is_refused() {
        for word in ["me@:work", "me@", "me@:", "[::1]work"] {
            let failure = name_by_host(&mut Ordered::of(&new_command(), &[word.into()]));
            let what = failure.unwrap_err().what;
            assert!(what.starts_with(&format!("{word} names no host: ")), "{what}");
        }
    }
}
