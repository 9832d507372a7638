//! The command lines: which program is meant by the first words, rove's own options, and those of
//! stock's `mosh-client`. With `sys` the only reader of the environment.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, CommandFactory, Parser, ValueEnum, ValueHint};
use rove_session::Escape;
use rove_session::client::{Cause, Window};
use rove_session::predict::{Display, Editing, Settings as Guesses};
use rove_term::Dialect;

use crate::bootstrap::{Bind, Nonce, Ports, Request, Server};
use crate::client::{self, Ended, Settings};
use crate::clock::Clock;
use crate::failure::Failure;
use crate::mosh_client;
use crate::server;
use crate::ssh::{Family, Kind, Login, Via, Wires};
use crate::sys;
use crate::trace::{Trace, Verbosity};
use crate::tty;

/// The status of every failure of rove itself, as ssh has it; the shell's own status otherwise.
pub const FAILED: u8 = 255;

/// The locale variables that stock's wrapper passes on, in its order (mosh-protocol.md §1.1).
const LOCALE_VARIABLES: [&str; 15] = [
    "LANG",
    "LANGUAGE",
    "LC_CTYPE",
    "LC_NUMERIC",
    "LC_TIME",
    "LC_COLLATE",
    "LC_MONETARY",
    "LC_MESSAGES",
    "LC_PAPER",
    "LC_NAME",
    "LC_ADDRESS",
    "LC_TELEPHONE",
    "LC_MEASUREMENT",
    "LC_IDENTIFICATION",
    "LC_ALL",
];

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

const AFTER_HELP: &str = "\
In a session Ctrl-^ . quits, Ctrl-^ Ctrl-Z suspends, Ctrl-^ ^ sends Ctrl-^.
`rove server --help` tells about the other end; `rove -- server` is the host \"server\".";

/// A mobile shell: your shell on another host, over networks that are bad, far away or moving.
///
/// rove logs in with your own ssh, starts `rove server` there, or mosh-server where only that is
/// installed, and goes on over UDP: the session survives sleep, a new address and hours without a
/// network.
#[derive(Debug, Parser)]
#[command(
    name = "rove",
    version,
    styles = STYLES,
    after_help = AFTER_HELP,
    disable_help_subcommand = true,
    override_usage = "rove [OPTIONS] [--] [USER@]HOST [COMMAND]..."
)]
struct Words {
    /// The host, by any name or alias that your ssh knows.
    #[arg(value_name = "[USER@]HOST", value_parser = parse_host, value_hint = ValueHint::Hostname)]
    host: String,

    /// What to run instead of a login shell: one word is a line for your shell there, several are a
    /// program and its arguments.
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    command: Vec<OsString>,

    #[command(flatten, next_help_heading = "Session")]
    session: SessionWords,

    #[command(flatten, next_help_heading = "Server")]
    server: ServerWords,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    ssh: SshWords,
}

#[derive(Args, Debug)]
struct SessionWords {
    /// When to show what you type before the host has answered. The environment's
    /// MOSH_PREDICTION_DISPLAY counts too.
    #[arg(long, value_name = "WHEN", env = "ROVE_PREDICT")]
    predict: Option<Predict>,

    /// The same as --predict=always.
    #[arg(short = 'a', conflicts_with_all = ["predict_never"])]
    predict_always: bool,

    /// The same as --predict=never.
    #[arg(short = 'n')]
    predict_never: bool,

    /// Guess that typing overwrites what is right of the cursor instead of pushing it on.
    #[arg(long)]
    predict_overwrite: bool,

    /// Stay on the terminal's main screen, also with mosh-server, whose sessions else take the
    /// alternate one.
    #[arg(long, overrides_with = "init")]
    no_init: bool,

    /// Take the terminal's alternate screen for the whole session.
    #[arg(long)]
    init: bool,

    /// Tell every step with its time; -vv makes ssh tell too, -vvv more.
    #[arg(short = 'v', action = ArgAction::Count)]
    verbose: u8,

    /// Tell only of failures; ssh is told too.
    #[arg(short = 'q')]
    quiet: bool,
}

#[derive(Args, Debug)]
struct ServerWords {
    /// UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999].
    #[arg(long, value_name = "PORT[:PORT]", env = "ROVE_UDP_PORT")]
    udp_port: Option<Ports>,

    /// Server to run, a command line for the shell there: a rove, or anything that takes
    /// mosh-server's words.
    #[arg(long, value_name = "COMMAND", env = "ROVE_SERVER")]
    server: Option<String>,

    /// Address the server listens on: where ssh came in, any, or this one.
    #[arg(long, value_name = "ssh|any|IP", value_parser = parse_bind)]
    bind_server: Option<Bind>,

    /// Run the server on this machine, without ssh.
    #[arg(long)]
    local: bool,

    /// Refuse to fall back to mosh's protocol: the host must have a rove that speaks the native one.
    #[arg(long, conflicts_with = "mosh_wire")]
    native: bool,

    /// Speak mosh's protocol with a rove server too, as older ones do.
    #[arg(long)]
    mosh_wire: bool,
}

impl ServerWords {
    fn wires(&self) -> Wires {
        match (self.native, self.mosh_wire) {
            (true, _) => Wires::Native,
            (_, true) => Wires::Mosh,
            (false, false) => Wires::Any,
        }
    }
}

#[derive(Args, Debug)]
struct SshWords {
    /// Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too.
    #[arg(long, value_name = "COMMAND", env = "ROVE_SSH", default_value = "ssh")]
    ssh: String,

    /// Which of the host's addresses to use: inet, inet6, all, prefer-inet or prefer-inet6.
    #[arg(long, value_name = "FAMILY", conflicts_with_all = ["inet", "inet6"])]
    family: Option<FamilyWord>,

    /// Use IPv4 only.
    #[arg(short = '4', conflicts_with = "inet6")]
    inet: bool,

    /// Use IPv6 only.
    #[arg(short = '6')]
    inet6: bool,

    /// TCP port of ssh on the host.
    #[arg(short = 'p', value_name = "PORT")]
    port: Option<OsString>,

    /// User to log in as.
    #[arg(short = 'l', value_name = "USER", value_hint = ValueHint::Username)]
    login: Option<OsString>,

    /// File with the private key.
    #[arg(short = 'i', value_name = "FILE", value_hint = ValueHint::FilePath)]
    identity: Vec<OsString>,

    /// Hosts to jump through.
    #[arg(short = 'J', value_name = "HOST", value_hint = ValueHint::Hostname)]
    jump: Option<OsString>,

    /// Configuration file of ssh.
    #[arg(short = 'F', value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<OsString>,

    /// Any option of ssh's configuration.
    #[arg(short = 'o', value_name = "NAME=VALUE")]
    option: Vec<OsString>,

    /// Taken for the sake of habit: a session always has a terminal.
    #[arg(short = 't', action = ArgAction::Count, hide = true)]
    terminal: u8,
}

/// When local echo shows its guesses.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Predict {
    /// On slow links.
    Adaptive,
    /// On all links.
    Always,
    /// Not at all.
    Never,
    /// On all links, and at once.
    Experimental,
}

impl From<Predict> for Display {
    fn from(word: Predict) -> Display {
        match word {
            Predict::Adaptive => Display::Adaptive,
            Predict::Always => Display::Always,
            Predict::Never => Display::Never,
            Predict::Experimental => Display::Experimental,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum FamilyWord {
    Inet,
    Inet6,
    #[value(alias = "auto")]
    All,
    PreferInet,
    PreferInet6,
}

/// Runs the program that the first words name.
pub fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    match Path::new(&program).file_name().and_then(OsStr::to_str) {
        Some("mosh-client") => mosh_client::main(&words),
        Some("mosh-server") => server::main(server::Program::Mosh, &words),
        _ if words.first().is_some_and(|word| word == "server") => {
            server::main(server::Program::Rove, &words[1..])
        }
        _ => rove(&words),
    }
}

/// The command as clap knows it, for completions and tests.
pub fn command() -> clap::Command {
    Words::command()
}

fn rove(words: &[OsString]) -> ExitCode {
    let clock = Clock::start();
    let words = match Words::try_parse_from([OsString::from("rove")].iter().chain(words)) {
        Ok(words) => words,
        Err(usage) => {
            if let Some(failure) = not_yet(&usage) {
                return fail(&failure);
            }
            let _ = usage.print();
            return if usage.use_stderr() { FAILED.into() } else { ExitCode::SUCCESS };
        }
    };
    let verbosity = match (words.session.quiet, words.session.verbose) {
        (_, 1..) => Verbosity::Steps,
        (true, 0) => Verbosity::Quiet,
        (false, 0) => Verbosity::Usual,
    };
    let trace = Trace::new(clock, verbosity);
    let outcome = plan(words, &trace).and_then(|(login, settings)| {
        in_runtime(async {
            let found = login.start(&trace).await?;
            let ended = client::run(clock, found, &settings, &trace).await?;
            status(&login.host, &ended)
        })
    });
    outcome.unwrap_or_else(|failure| fail(&failure))
}

/// What there is to say of an option that ssh has and rove has not yet.
fn not_yet(usage: &clap::Error) -> Option<Failure> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(option))) =
        (usage.kind(), usage.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let (lacking, next) = match option.as_str() {
        "-L" | "-R" | "-D" => {
            ("rove starts no forwarding yet", format!("run `ssh -N {option} ... HOST` beside it"))
        }
        "-A" => ("rove forwards no agent yet", "use `ssh -A HOST` for what needs it".into()),
        "-X" | "-Y" => {
            ("rove forwards no windows yet", format!("use `ssh {option} HOST` for what needs them"))
        }
        "-N" => ("rove starts no forwarding yet", "run `ssh -N -L ... HOST` beside it".into()),
        "-T" => ("a session always has a terminal", "without one: ssh -T HOST COMMAND".into()),
        "-W" => ("rove carries no other connection", "use `ssh -W` for it, or -J to jump".into()),
        _ => return None,
    };
    Some(Failure::new(format!("{option}: {lacking}; {next}"), ""))
}

/// The status to end with: the program's own where it is known, as ssh has it.
fn status(host: &str, ended: &Ended) -> Result<ExitCode, Failure> {
    match (ended.exit.status, ended.signal) {
        (Some(status), _) => Ok(ExitCode::from(u8::try_from(status).unwrap_or(FAILED))),
        (None, Some(signal)) => Ok(ExitCode::from(128 + signal.as_raw() as u8)),
        (None, None) => broken_off(host, ended, "--udp-port").map_or(Ok(ExitCode::SUCCESS), Err),
    }
}

/// What went wrong with a session whose program's status is not known; `None` if nothing did.
/// `ports` is the option that chooses the server's ports.
pub(crate) fn broken_off(host: &str, ended: &Ended, ports: &str) -> Option<Failure> {
    let Ended { exit, kind, refused, .. } = ended;
    let port = exit.server.port();
    Some(match (exit.cause, kind) {
        // A rove server tells how its program ended; a stock one never does.
        (Cause::ServerLeft, Kind::Rove) => Failure::new(
            format!("the session was ended on {host} before its program"),
            "Somebody ended the server there, or its host is going down; start again.",
        ),
        _ if exit.clean => return None,
        (Cause::Failed(failure), _) => Failure::new(format!("the session ended: {failure}"), ""),
        _ if !exit.contact && *refused > 0 => Failure::new(
            format!("{refused} datagrams came from {host}, none sealed with this session's key"),
            "Something else answers on that port; start again.",
        ),
        _ if !exit.contact => Failure::new(
            format!("nothing came back from {} on UDP port {port}", exit.server.ip()),
            format!(
                "ssh got there but UDP did not: open UDP port {port} in the firewalls before \
                 {host}, or choose ports they let through with {ports}."
            ),
        ),
        _ => Failure::new(
            format!("{host} did not confirm the end of the session"),
            "It may still be running there.",
        ),
    })
}

fn fail(failure: &Failure) -> ExitCode {
    let _ = writeln!(io::stderr(), "{failure}");
    FAILED.into()
}

/// Runs a program's future to its end on this thread.
pub(crate) fn in_runtime<T>(
    program: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start: {error}"), ""))?;
    let result = runtime.block_on(program);
    // A name that is still being looked up must not keep the program.
    runtime.shutdown_background();
    result
}

/// Turns the words into what is to be done; refuses what cannot work before ssh asks for a
/// password.
fn plan(words: Words, trace: &Trace) -> Result<(Login, Settings), Failure> {
    let settings = settings(&words, trace)?;
    let Words { host, mut command, session, server, ssh } = words;
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
    let random =
        sys::random().map_err(|error| Failure::new(format!("no randomness: {error}"), ""))?;
    let login = Login {
        via: if server.local { Via::Local } else { Via::Ssh(split_words(&ssh.ssh)?) },
        options: ssh.options(&session),
        host,
        family: ssh.family(),
        wires: server.wires(),
        request: Request {
            nonce: Nonce::new(*random),
            key: None,
            server: server.server.as_deref().map_or(Server::Found, Server::named),
            bind: server.bind_server.unwrap_or_default(),
            ports: server.udp_port,
            colours: settings.tty.colors().count(),
            locale: locale(),
            command,
        },
    };
    Ok((login, settings))
}

fn settings(words: &Words, trace: &Trace) -> Result<Settings, Failure> {
    if let Some(stream) = tty::missing_stream() {
        return Err(Failure::new(
            format!("standard {stream} is not a terminal, and a session needs one"),
            format!("To run a command without a terminal: ssh {} COMMAND", words.host),
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
        _ if !Dialect::knows(&term) => trace.note(format_args!(
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
        SessionWords { predict_always: true, .. } => Display::Always,
        SessionWords { predict_never: true, .. } => Display::Never,
        SessionWords { predict: Some(word), .. } => (*word).into(),
        SessionWords { predict: None, .. } => display_variable()?,
    };
    let editing = if session.predict_overwrite { Editing::Overwrite } else { editing_variable() };
    let prefix = if either("TITLE_NOPREFIX").is_some() { "" } else { "[rove] " };
    let window = match (session.init, session.no_init) {
        (true, _) => Some(Window::Alternate),
        (false, true) => Some(Window::Main),
        (false, false) => either("NO_TERM_INIT").map(|_set| Window::Main),
    };
    Ok(Settings {
        tty: terminal(),
        escape: escape(either("ESCAPE_KEY")),
        window,
        name: "rove",
        title_prefix: prefix,
        guesses: Guesses::ROVE.with_display(display).with_editing(editing),
    })
}

impl SshWords {
    /// The options for OpenSSH; the address family is told apart, since names are looked up by it
    /// too.
    fn options(&self, session: &SessionWords) -> Vec<OsString> {
        let mut options = Vec::new();
        let single =
            [("-p", &self.port), ("-l", &self.login), ("-J", &self.jump), ("-F", &self.config)];
        for (flag, value) in single {
            options.extend(value.iter().flat_map(|value| [flag.into(), value.clone()]));
        }
        for (flag, values) in [("-i", &self.identity), ("-o", &self.option)] {
            options.extend(values.iter().flat_map(|value| [flag.into(), value.clone()]));
        }
        if session.quiet {
            options.push("-q".into());
        }
        for _ in 1..session.verbose {
            options.push("-v".into());
        }
        options
    }

    fn family(&self) -> Family {
        match (self.inet, self.inet6, self.family) {
            (true, _, _) | (_, _, Some(FamilyWord::Inet)) => Family::Inet,
            (_, true, _) | (_, _, Some(FamilyWord::Inet6)) => Family::Inet6,
            (_, _, Some(FamilyWord::PreferInet)) => Family::PreferInet,
            (_, _, Some(FamilyWord::PreferInet6)) => Family::PreferInet6,
            (_, _, Some(FamilyWord::All) | None) => Family::Any,
        }
    }
}

fn parse_host(word: &str) -> Result<String, &'static str> {
    match word {
        "" => Err("the host is empty"),
        _ if word.starts_with('-') => Err("a host cannot begin with a dash"),
        _ => Ok(word.to_owned()),
    }
}

fn parse_bind(word: &str) -> Result<Bind, &'static str> {
    match word {
        "ssh" => Ok(Bind::Ssh),
        "any" => Ok(Bind::Any),
        _ => word.parse().map(Bind::Address).map_err(|_| "not ssh, any or an IP address"),
    }
}

/// Splits a command line as a shell would, as far as words and quotes go.
fn split_words(line: &str) -> Result<Vec<OsString>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None, ' ' | '\t' | '\n') => words.extend(word.take().map(OsString::from)),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(rest.next()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from));
    match (words.is_empty(), quote) {
        (false, None) => Ok(words),
        (true, _) => Err(Failure::new("--ssh names no program", "Leave it away to use ssh.")),
        (_, Some(quote)) => Err(Failure::new(format!("--ssh={line} has an open {quote}"), "")),
    }
}

fn display_variable() -> Result<Display, Failure> {
    let Some(word) = variable("MOSH_PREDICTION_DISPLAY") else {
        return Ok(Display::default());
    };
    parse_display(&word).ok_or_else(|| {
        Failure::new(
            format!("MOSH_PREDICTION_DISPLAY={word} is no prediction mode"),
            "It can be adaptive, always, never or experimental.",
        )
    })
}

/// The prediction mode of this name.
pub(crate) fn parse_display(word: &str) -> Option<Display> {
    Predict::from_str(word, false).ok().map(Display::from)
}

/// Whether guesses overwrite, by the environment.
pub(crate) fn editing_variable() -> Editing {
    match either("PREDICTION_OVERWRITE") {
        Some(word) if word == "yes" => Editing::Overwrite,
        _ => Editing::Insert,
    }
}

/// The escape key of a setting, if there is one.
pub(crate) fn escape(setting: Option<OsString>) -> Escape {
    setting.map_or(Escape::default(), |key| Escape::from_setting(key.as_bytes()))
}

/// What the user's terminal understands.
pub(crate) fn terminal() -> Dialect {
    let term = variable("TERM").unwrap_or_default();
    Dialect::tty(&term, &variable("COLORTERM").unwrap_or_default())
}

/// This end's locale, for a server without a UTF-8 one. Where this end has none either, C.UTF-8
/// stands in.
fn locale() -> Vec<(String, String)> {
    let set =
        LOCALE_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?)));
    let set: Vec<(String, String)> = set.filter(|(_, value)| !value.is_empty()).collect();
    let named = |name: &str| set.iter().find(|(set, _)| set == name).map(|(_, value)| value);
    let effective = named("LC_ALL").or(named("LC_CTYPE")).or(named("LANG"));
    let letters = |value: &String| value.to_ascii_lowercase().replace('-', "");
    match effective.is_some_and(|value| letters(value).ends_with("utf8")) {
        true => set,
        false => vec![("LC_ALL".to_owned(), "C.UTF-8".to_owned())],
    }
}

/// rove's variable of this name, or mosh's.
fn either(name: &str) -> Option<OsString> {
    variable_os(&format!("ROVE_{name}")).or_else(|| variable_os(&format!("MOSH_{name}")))
}

/// An environment variable, if it is set to text.
pub(crate) fn variable(name: &str) -> Option<String> {
    variable_os(name).and_then(|value| value.into_string().ok())
}

/// An environment variable, if it is set.
#[expect(clippy::disallowed_methods, reason = "this module reads the environment for the programs")]
pub(crate) fn variable_os(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Words, clap::Error> {
        Words::try_parse_from(std::iter::once("rove").chain(words.split(' ')))
    }

    #[test]
    fn hosts_and_commands() {
        for (words, host, command) in [
            ("h", "h", &[][..]),
            ("u@h ls -l", "u@h", &["ls", "-l"]),
            ("-p 22 h ls -p", "h", &["ls", "-p"]),
            ("-- cp", "cp", &[]),
            ("-- cp a b", "cp", &["a", "b"]),
            ("h -- ls -l", "h", &["ls", "-l"]),
            ("-- h -- ls -l", "h", &["--", "ls", "-l"]),
            ("-v h ls -- x", "h", &["ls", "--", "x"]),
            ("ssh://u@h:2222", "ssh://u@h:2222", &[]),
        ] {
            let parsed = parse(words).unwrap_or_else(|error| panic!("{words}: {error}"));
            assert_eq!(
                (parsed.host.as_str(), parsed.command.as_slice()),
                (host, command_of(command).as_slice()),
                "{words}"
            );
        }
    }

    fn command_of(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn options_for_ssh() {
        for (words, expected) in [
            ("h", ""),
            (
                "-p 2222 -l u -i k1 -i k2 -J j -F f -o A=b -oC=d h",
                "-p 2222 -l u -J j -F f -i k1 -i k2 -o A=b -o C=d",
            ),
            ("-v h", ""),
            ("-vvv h", "-v -v"),
            ("-q -tt h", "-q"),
            ("h -p 2222", "-p 2222"),
        ] {
            let parsed = parse(words).unwrap_or_else(|error| panic!("{words}: {error}"));
            let options = parsed.ssh.options(&parsed.session);
            let options: Vec<_> = options.iter().map(|word| word.to_string_lossy()).collect();
            assert_eq!(options.join(" "), expected, "{words}");
        }
    }

    #[test]
    fn families() {
        for (words, family) in [
            ("h", Family::Any),
            ("-4 h", Family::Inet),
            ("-6 h", Family::Inet6),
            ("--family=inet h", Family::Inet),
            ("--family=inet6 h", Family::Inet6),
            ("--family=auto h", Family::Any),
            ("--family=all h", Family::Any),
            ("--family=prefer-inet h", Family::PreferInet),
            ("--family=prefer-inet6 h", Family::PreferInet6),
        ] {
            assert_eq!(parse(words).map(|words| words.ssh.family()).ok(), Some(family), "{words}");
        }
        for words in
            ["-4 -6 h", "-4 --family=inet h", "--family=x h", "-a -n h", "--bind-server=x h"]
        {
            assert!(parse(words).is_err(), "{words}");
        }
    }

    #[test]
    fn words_of_a_command_line() {
        for (line, expected) in [
            ("ssh", Some(&["ssh"][..])),
            (" ssh  -p 22 ", Some(&["ssh", "-p", "22"])),
            ("a 'b c' \"d e\"f g\\ h ''", Some(&["a", "b c", "d ef", "g h", ""])),
            (r#"'a\b' "c\"d""#, Some(&[r"a\b", r#"c"d"#])),
            ("", None),
            ("  ", None),
            ("'a", None),
        ] {
            let words = split_words(line).ok();
            assert_eq!(words, expected.map(command_of), "{line:?}");
        }
    }

    #[test]
    fn the_options_are_consistent() {
        command().debug_assert();
    }
}
