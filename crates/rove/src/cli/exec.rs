//! The command line of `rove exec`: ssh's words, as rsync, git and people write them.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser, ValueHint};
use rove_session::Escape;
use rove_streams::Streams;
use rove_streams::clock;
use tokio::sync::{mpsc, oneshot};

use crate::bootstrap::{Purpose, version_line};
use crate::cli::again::Again;
use crate::cli::config::HostConfig;
use crate::cli::environment::{escape_variable, term};
use crate::cli::forward::ForwardArgs;
use crate::cli::login::login;
use crate::cli::order::Ordered;
use crate::cli::usage::{of_ssh_alone, print};
use crate::cli::values::parse_host;
use crate::cli::words::{STYLES, ServerArgs, SshArgs, TellArgs, WayArgs};
use crate::client::WaySetting;
use crate::client::session::Session;
use crate::failure::Failure;
use crate::notice::{NOTICES_MAX, Notice, OnFailure};
use crate::os::clock::Clock;
use crate::os::ffi::OsStrExt;
use crate::os::sandbox::{Reach, confine, confine_all};
use crate::os::tty;
use crate::printable::printable;
use crate::runtime::in_runtime;
use crate::services::calls::Callbacks;
use crate::services::exec::{self, Broken, Command, Ends, Input, ends};
use crate::services::forward::config::{Config, TerminalWish};
use crate::services::forward::reach;
use crate::services::forward::spec::Endpoint;
use crate::services::silence::{COMMAND_KEPT, FORWARDINGS_KEPT, GIVE_UP_MIN, Silence};
use crate::services::{Request, Run, Terminal};
use crate::ssh::Login;
use crate::trace::Trace;

const AFTER_HELP: &str = "\
`rove exec` takes ssh's words: rsync -e 'rove exec', GIT_SSH_COMMAND='rove exec', tar c . | rove exec HOST 'tar x'.
On a terminal (-t) Ctrl-^ . leaves, Ctrl-^ Ctrl-Z suspends.";

/// Run a command on a host as ssh does, over streams that survive sleep, loss and new addresses.
///
/// Standard input, output and error are the command's, octet for octet, and its exit status is rove's.
/// The host needs a rove; without one the status is 255.
#[derive(Debug, Parser)]
#[command(
    name = "rove exec",
    bin_name = "rove exec",
    version,
    styles = STYLES,
    after_help = AFTER_HELP,
    override_usage = "rove exec [OPTIONS] [--] [USER@]HOST [COMMAND]..."
)]
pub struct ExecArgs {
    /// The host, by any name or alias that your ssh knows.
    #[arg(value_name = "[USER@]HOST", value_parser = parse_host, value_hint = ValueHint::Hostname)]
    host: String,

    /// A line for your login shell there; several words are joined by spaces. Without one: the shell.
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    command: Vec<OsString>,

    /// Let no program on the host use your agent.
    #[arg(short = 'a', overrides_with = "agent")]
    no_agent: bool,

    /// Run the command without a terminal. With -t it has one if standard input is one, with -tt always.
    #[arg(short = 'T', overrides_with = "terminal")]
    pipes: bool,

    /// The command is the name of a subsystem, for programs like sftp and sshfs.
    #[arg(short = 's')]
    subsystem: bool,

    /// Give it no input.
    #[arg(short = 'n')]
    no_input: bool,

    /// Print ssh's configuration for the host and end, as `ssh -G` does.
    #[arg(short = 'G')]
    print_config: bool,

    /// The key that begins a command to rove on a terminal; none for no key.
    #[arg(short = 'e', value_name = "KEY")]
    escape: Option<OsString>,

    #[command(flatten)]
    tell: TellArgs,

    #[command(flatten, next_help_heading = "Forwarding")]
    forward: ForwardArgs,

    #[command(flatten, next_help_heading = "Server")]
    way: WayArgs,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    ssh: SshArgs,

    /// More of ssh's words, for ssh.
    #[arg(short = 'c', hide = true)]
    cipher: Option<OsString>,
    #[arg(short = 'm', hide = true)]
    mac: Option<OsString>,
    #[arg(short = 'b', hide = true)]
    source: Option<OsString>,
    #[arg(short = 'B', hide = true)]
    interface: Option<OsString>,
    #[arg(short = 'I', hide = true)]
    provider: Option<OsString>,
    #[arg(short = 'S', hide = true)]
    control: Option<OsString>,
    #[arg(short = 'C', hide = true)]
    compress: bool,
    #[arg(short = 'K', hide = true)]
    gss: bool,
    #[arg(short = 'k', hide = true)]
    no_gss: bool,
    /// The only protocol of ssh's there is: sshfs asks for it.
    #[arg(short = '2', hide = true)]
    protocol: bool,
    /// Nothing of the window system is forwarded anyway.
    #[arg(short = 'x', hide = true)]
    no_windows: bool,
}

/// The purpose of a session without a screen.
#[derive(Debug)]
pub(super) enum Job {
    /// A command.
    Run(Command),
    /// Standard input and output are a connection (`-W`).
    Join(Endpoint),
    /// Forwardings alone (`-N`).
    Wait,
}

/// Runs `rove exec` with the words after it.
pub(crate) fn main(words: &[OsString]) -> Result<ExitCode, Failure> {
    let ordered = Ordered::of(&ExecArgs::command(), words);
    match ExecArgs::parsed(&ordered) {
        Ok(words) => words.run(),
        Err(usage) => {
            if let Some(failure) = of_ssh_alone(&usage, &Again::of(&ordered)) {
                return Err(failure);
            }
            Ok(print(&usage, "rove exec", words))
        }
    }
}

/// The command as clap knows it, for completions and tests.
pub(super) fn command() -> clap::Command {
    ExecArgs::command()
}

impl ExecArgs {
    /// Reads the words after `rove exec`, in any order that ssh takes.
    pub fn read(words: &[OsString]) -> Result<ExecArgs, clap::Error> {
        ExecArgs::parsed(&Ordered::of(&ExecArgs::command(), words))
    }

    fn parsed(ordered: &Ordered) -> Result<ExecArgs, clap::Error> {
        ExecArgs::try_parse_from(ordered.words("rove exec"))
    }

    /// The login on the host, of which the user's file says `own`.
    ///
    /// # Errors
    /// If `--ssh` names no program.
    pub fn login(&self, own: &HostConfig) -> Result<Login, Failure> {
        login(&self.host, self.ssh_options(), &self.ssh, &self.server, own)
    }

    fn run(self) -> Result<ExitCode, Failure> {
        let clock = Clock::start();
        let trace = Trace::new(clock, self.tell.verbosity());
        let own = HostConfig::of_user(&self.host)?;
        let login = self.login(&own)?;
        if self.print_config {
            return Err(login.print_config());
        }
        let escape = self.escape.as_deref().map(given_key).or(escape_variable()).or(own.escape);
        let wanted = Wanted {
            is_subsystem: self.subsystem,
            has_terminal: !self.pipes,
            has_input: !self.no_input,
            ..Wanted::line(self.command.join(OsStr::new(" ")), self.ssh.terminal, escape)
        };
        let mut forward = self.forward;
        if self.no_agent {
            forward.refuse_agent();
        }
        on_streams(clock, login, forward, wanted, self.way.chosen(&own), &trace)
    }

    fn ssh_options(&self) -> Vec<OsString> {
        let mut options = self.ssh.options(&self.tell);
        let single = [
            ("-c", &self.cipher),
            ("-m", &self.mac),
            ("-b", &self.source),
            ("-B", &self.interface),
            ("-I", &self.provider),
            ("-S", &self.control),
        ];
        for (flag, value) in single {
            options.extend(value.iter().flat_map(|value| [flag.into(), value.clone()]));
        }
        for (flag, given) in [("-C", self.compress), ("-K", self.gss), ("-k", self.no_gss)] {
            options.extend(given.then(|| flag.into()));
        }
        options
    }
}

/// What to run on the host, as the user asked for it.
#[derive(Debug)]
pub(super) struct Wanted {
    /// A line for the user's shell, or a subsystem's name.
    line: OsString,
    is_subsystem: bool,
    /// How many times `-t` was given.
    terminals: u8,
    /// Unless `-T` was given.
    has_terminal: bool,
    /// Unless `-n` was given.
    has_input: bool,
    /// The key that begins a command to rove, if one is chosen.
    escape: Option<Escape>,
}

impl Wanted {
    /// A line for the user's shell. An empty one is a login shell. `terminals` counts the `-t`, and `escape` is the
    /// key that begins a command to rove, if one is chosen.
    pub(super) fn line(line: OsString, terminals: u8, escape: Option<Escape>) -> Wanted {
        let (has_terminal, has_input) = (true, true);
        Wanted { line, is_subsystem: false, terminals, has_terminal, has_input, escape }
    }

    fn job(self, forward: &ForwardArgs, config: &Config, trace: &Trace) -> Result<Job, Failure> {
        if forward.is_all() {
            let command = [self.line].into_iter().filter(|line| !line.is_empty());
            return job_without_command(forward, &command.collect::<Vec<_>>());
        }
        if config.no_command {
            return job_without_command(forward, &[]);
        }
        if self.is_subsystem && self.line.is_empty() {
            return Err(Failure::new(
                "-s: which subsystem?",
                "For example: rove exec -s HOST sftp",
            ));
        }
        let no_input = !self.has_input || config.no_input;
        let typed = io::stdin().is_terminal() && !no_input;
        let wish = match self.terminals {
            _ if !self.has_terminal => TerminalWish::No,
            0 => config.terminal,
            1 => TerminalWish::Yes,
            _ => TerminalWish::Force,
        };
        let on_terminal = match wish {
            TerminalWish::Usual => self.line.is_empty() && typed,
            TerminalWish::No => false,
            TerminalWish::Yes => typed,
            TerminalWish::Force => true,
        };
        if wish == TerminalWish::Yes && !typed {
            trace.note(format_args!("standard input is no terminal, so -t gives none; -tt does"));
        }
        let (rows, cols) = tty::SIZE_UNKNOWN;
        let size = tty::window().unwrap_or(rove_term::Size::clamped(rows, cols));
        let term = Some(term()).filter(|term| Terminal::takes(term)).unwrap_or_default();
        Ok(Job::Run(Command {
            run: if self.is_subsystem { Run::Subsystem(self.line) } else { Run::Line(self.line) },
            input: if no_input { Input::Nothing } else { Input::Ours },
            terminal: on_terminal.then(|| Terminal { size, term, modes: tty::modes() }),
            escape: self.escape.unwrap_or_default(),
        }))
    }
}

/// The key of `-e`.
fn given_key(word: &OsStr) -> Escape {
    match word.as_bytes() {
        b"none" => Escape::None,
        key => Escape::from_setting(key),
    }
}

/// Starts a session without a screen and does what is wanted.
pub(super) fn on_streams(
    clock: Clock,
    mut login: Login,
    forward: ForwardArgs,
    wanted: Wanted,
    way: WaySetting,
    trace: &Trace,
) -> Result<ExitCode, Failure> {
    for_streams(&mut login, "ssh", way, forward.give_up);
    in_runtime(async {
        let config = Config::read(login.config().await.unwrap_or_default());
        let job = wanted.job(&forward, &config, trace)?;
        alone(clock, login, &forward, job, trace).await
    })
}

/// The job of `-N` and `-W`.
pub(super) fn job_without_command(
    forward: &ForwardArgs,
    command: &[OsString],
) -> Result<Job, Failure> {
    match &forward.stdio {
        _ if !command.is_empty() => {
            Err(Failure::new("-N and -W run no command, but one is given", ""))
        }
        Some(to) => Ok(Job::Join(to.clone())),
        None => Ok(Job::Wait),
    }
}

/// Makes `login` start a server for streams alone, which waits as long for its client as the user says that the client waits
/// for it; `instead` is the program that works without one.
pub(super) fn for_streams(
    login: &mut Login,
    instead: &'static str,
    way: WaySetting,
    give_up: Option<Duration>,
) {
    login.request.keep = give_up.map(|span| span.max(GIVE_UP_MIN));
    login.request.carry = way != WaySetting::Udp;
    login.is_ssh_alone = way == WaySetting::Ssh;
    login.request.purpose = Purpose::Streams;
    login.wires = crate::ssh::Wires::Native;
    login.instead = Some(instead);
}

/// How long a command waits for the host to listen when it also runs without that. A port held by another
/// session whose client is away may take a minute.
const LISTEN_WAIT: Duration = Duration::from_secs(10);

/// Starts a session without a screen and does its job.
pub(super) async fn alone(
    clock: Clock,
    mut login: Login,
    forward: &ForwardArgs,
    job: Job,
    trace: &Trace,
) -> Result<ExitCode, Failure> {
    let ready = forward.prepare(&mut login, trace).await?;
    let found = login.start(trace).await?;
    // Programs are needed no more. The session's thread gives up more by itself, and this one does once it has begun.
    trace.step(format_args!("confined at first: {}", confine_all(&Reach::Connections)));
    let session = Session::start(clock, found, trace).await?;
    trace.step(format_args!("confined: {}", confine(&Reach::Named(ready.named()))));
    let streams = session.streams.clone();
    let has_screen = matches!(&job, Job::Run(command) if command.terminal.is_some());
    let kept = if matches!(&job, Job::Run(_)) { COMMAND_KEPT } else { FORWARDINGS_KEPT };
    let calls = Callbacks::default();
    let (on_failure, is_here) = (ready.on_failure, ready.is_here());
    let (tell, news) = mpsc::channel(NOTICES_MAX);
    let serving = tokio::spawn(ready.serve(streams.clone(), calls.clone(), tell));
    let (settle, settled) = oneshot::channel();
    // Whether nothing is left on the host for a goodbye to end.
    let mut is_whole = false;
    let work = async {
        // A command finds the host listening, as ssh(1) has it. Where a forwarding that cannot be ends everything,
        // nothing runs before all are there.
        let wait = match (on_failure, &job) {
            (OnFailure::Exit, _) => Duration::MAX,
            (OnFailure::GoOn, Job::Run(_)) => LISTEN_WAIT,
            (OnFailure::GoOn, Job::Join(_) | Job::Wait) => Duration::ZERO,
        };
        tokio::select! {
            _ = clock::within(wait, settled) => {}
            left = left() => return left,
        }
        match job {
            Job::Run(command) => {
                let is_subsystem = matches!(command.run, Run::Subsystem(_));
                let end = match exec::run(&streams, &calls, command, ends()).await {
                    Err(error) if is_subsystem && error.is_refused() => {
                        return Err(too_old(&streams, &calls, &login).await);
                    }
                    end => end.map_err(|error| broken(&login.host, &error))?,
                };
                is_whole = end.is_whole() && is_here;
                end.status()
            }
            Job::Join(to) => join(&streams, to, &login.host).await,
            Job::Wait => tokio::select! {
                left = left() => left,
                _ = streams.over() => {
                    let what = format!("the session was ended on {}", login.host);
                    Err(Failure::new(what, "Somebody ended it there, or the host is going down."))
                }
            },
        }
    };
    let silence = Silence::of(&login.host, forward.give_up.unwrap_or(kept));
    let outcome = tokio::select! {
        outcome = work => outcome,
        failure = told(news, on_failure, settle, trace) => Err(failure),
        failure = watch(&streams, silence, has_screen, trace) => Err(failure),
    };
    serving.abort();
    match is_whole {
        true => session.leave().await,
        false => session.close().await,
    }
    outcome
}

/// Prints the notices of forwardings; returns the failure that ends everything.
async fn told(
    mut news: mpsc::Receiver<Notice>,
    on_failure: OnFailure,
    settle: oneshot::Sender<()>,
    trace: &Trace,
) -> Failure {
    let mut settle = Some(settle);
    while let Some(news) = news.recv().await {
        match news {
            Notice::Step(text) => trace.step(format_args!("{text}")),
            Notice::Note(text) => trace.note(format_args!("{text}")),
            Notice::Failed(text) if on_failure == OnFailure::Exit => {
                return Failure::new(text, "ExitOnForwardFailure is set.");
            }
            Notice::Warning(text) | Notice::Failed(text) => trace.warn(format_args!("{text}")),
            Notice::Settled => drop(settle.take()),
        }
    }
    std::future::pending().await
}

/// Reports when the host stops answering and when it answers again, unless the command has the screen.
/// Returns when waiting longer is useless.
async fn watch(streams: &Streams, silence: Silence, has_screen: bool, trace: &Trace) -> Failure {
    let mut silence = match io::stderr().is_terminal() {
        true => silence,
        false => silence.unwatched(),
    };
    loop {
        Silence::pause(streams).await;
        if let Some(why) = silence.is_over(streams, "ssh") {
            return Failure::new(why.to_string(), "");
        }
        let lines = silence.look(streams);
        for line in lines.iter().filter(|_| !has_screen) {
            trace.warn(format_args!("{line}"));
        }
    }
}

/// Waits for the signal that ends a session which only forwards.
async fn left() -> Result<ExitCode, Failure> {
    let signal = crate::os::signals::asked_to_end().await;
    let signal = signal.map_err(|error| Failure::new(format!("no signals: {error}"), ""))?;
    Ok(ExitCode::from(128 + signal.as_raw() as u8))
}

/// Joins standard input and output with a port reached from the host.
async fn join(streams: &Streams, to: Endpoint, host: &str) -> Result<ExitCode, Failure> {
    let joined = async {
        let channel = reach(streams, Request::Connect(to.clone())).await?;
        exec::join(channel, ends()).await
    };
    tokio::select! {
        joined = joined => match joined {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(Broken::Session(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                Err(Failure::new(format!("{host} cannot reach {to}: {error}"), ""))
            }
            Err(error) => Err(broken(host, &error)),
        },
        left = left() => left,
    }
}

/// How long the rove on the host may take to tell its version.
const VERSION_WAIT: Duration = Duration::from_secs(5);

/// The failure of a server that knows no subsystems, with its version.
async fn too_old(streams: &Streams, calls: &Callbacks, login: &Login) -> Failure {
    let mut output = Vec::new();
    let ends = Ends { input: tokio::io::empty(), output: &mut output, errors: tokio::io::sink() };
    let command = Command {
        run: Run::Line(version_line(&login.request.server)),
        input: Input::Nothing,
        terminal: None,
        escape: Escape::None,
    };
    // Without an answer the version stays unknown.
    let _ = clock::within(VERSION_WAIT, exec::run(streams, calls, command, ends)).await;
    let said = printable(output.trim_ascii(), VERSION_CHARS_MAX);
    let there = if said.is_empty() { "an older rove".to_owned() } else { said };
    Failure::new(
        format!("{} has {there}, which knows no subsystems", login.host),
        format!("This one is rove {}: update the other.", env!("CARGO_PKG_VERSION")),
    )
}

/// Characters shown of a version.
const VERSION_CHARS_MAX: usize = 40;

fn broken(host: &str, broken: &Broken) -> Failure {
    match broken {
        Broken::Input(error) => Failure::new(format!("cannot read standard input: {error}"), ""),
        Broken::Output(error) => Failure::new(format!("cannot write standard output: {error}"), ""),
        refused if refused.is_refused() => {
            Failure::new(format!("the rove on {host} does not do this"), "Update it.")
        }
        Broken::Session(error) => {
            Failure::new(format!("the session with {host} was broken off: {error}"), "")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn what_ssh_gets() {
        for (line, options, command) in [
            ("-p 2222 -l u -i k -o A=b -x -T -q h ls", "-p 2222 -l u -i k -o A=b -q", "ls"),
            ("-C -c aes128-ctr -S none h a b  c", "-c aes128-ctr -S none -C", "a b c"),
            ("h", "", ""),
            // As sshfs and sftp have it.
            ("-F c -x -a -oA=yes -2 -s -- h sftp", "-F c -o A=yes", "sftp"),
            ("-x -oA=no -o B=y -s -- h sftp", "-o A=no -o B=y", "sftp"),
        ] {
            let ordered = Ordered::of(&ExecArgs::command(), &words(line));
            let parsed = ExecArgs::try_parse_from(ordered.words("x"));
            let parsed = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(parsed.ssh_options(), words(options), "{line}");
            assert_eq!(parsed.command, words(command), "{line}");
        }
    }

    #[test]
    fn what_rove_has_not() {
        for line in ["-f h ls", "-fN h", "-M h", "-X h xterm", "h -Y ls"] {
            let ordered = Ordered::of(&ExecArgs::command(), &words(line));
            let parsed = ExecArgs::try_parse_from(ordered.words("x"));
            let again = Again::of(&ordered);
            let failure = parsed.err().and_then(|usage| of_ssh_alone(&usage, &again));
            let said = failure.unwrap_or_else(|| panic!("{line} is not refused")).to_string();
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }

    #[test]
    fn the_options_are_consistent() {
        ExecArgs::command().debug_assert();
    }
}
