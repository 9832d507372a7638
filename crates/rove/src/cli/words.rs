//! rove's own options, as the user writes them.

use std::ffi::OsString;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{ArgAction, Args, Parser, ValueHint};
use rove_session::client::Obscure;
use rove_session::predict::Display;

use crate::bootstrap::{Bind, Ports};
use crate::cli::config::{HISTORY_LINES_MAX, HostConfig};
use crate::cli::forward::ForwardArgs;
use crate::cli::values::{
    FamilyWord, ObscureWord, Predict, WayWord, parse_bind, parse_host, parse_slot,
};
use crate::client::WaySetting;
use crate::ssh::{Family, Wires};
use crate::trace::Verbosity;

pub(super) const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

const AFTER_HELP: &str = "\
In a session Ctrl-^ . quits, Ctrl-^ d detaches, Ctrl-^ Ctrl-Z suspends, Ctrl-^ ^ sends Ctrl-^.
`rove help` is the manual, `rove doctor HOST` looks at what is amiss; `rove help exec` tells how to run commands as ssh does, `rove help cp` how to copy, `rove help install` how to put rove on a host, `rove help attach` how to come back to sessions (rove ls, attach, new, kill), `rove help server` the other end, `rove help config` the settings; `rove -- server` is the host \"server\".";

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
pub struct RoveArgs {
    /// The host, by any name or alias that your ssh knows.
    #[arg(value_name = "[USER@]HOST", value_parser = parse_host, value_hint = ValueHint::Hostname)]
    pub(super) host: String,

    /// What to run instead of a login shell: a line for your shell there, of several words joined by
    /// spaces, or after -- a program and its arguments. Without a terminal here it is run as by rove exec.
    #[arg(
        value_name = "COMMAND",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = ValueHint::CommandWithArguments
    )]
    pub(super) command: Vec<OsString>,

    #[command(flatten, next_help_heading = "Session")]
    pub(super) session: SessionArgs,

    /// The forwardings.
    #[command(flatten, next_help_heading = "Forwarding")]
    pub forward: ForwardArgs,

    #[command(flatten, next_help_heading = "Server")]
    pub(super) server: ServerArgs,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    pub(super) ssh: SshArgs,

    /// Words of ssh's and mosh's that say what is so anyway: octets are compressed, ssh gets no terminal,
    /// and all ways to the host's address are tried.
    #[arg(short = 'C', hide = true)]
    compress: bool,
    #[arg(long, hide = true)]
    no_ssh_pty: bool,
    #[arg(long, hide = true, value_name = "WAY", value_parser = ["local", "remote", "proxy"])]
    experimental_remote_ip: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct SessionArgs {
    /// When to show what you type before the host has answered. The environment's
    /// MOSH_PREDICTION_DISPLAY counts too.
    #[arg(long, value_name = "WHEN", env = "ROVE_PREDICT")]
    pub(super) predict: Option<Predict>,

    /// The same as --predict=always.
    #[arg(short = 'a', conflicts_with_all = ["predict_never"])]
    pub(super) predict_always: bool,

    /// The same as --predict=never.
    #[arg(short = 'n')]
    pub(super) predict_never: bool,

    /// Guess that typing overwrites what is right of the cursor instead of pushing it on.
    #[arg(long)]
    pub(super) predict_overwrite: bool,

    /// Hide the times and the number of keys from a listener on the network: of keys on a line that does not echo
    /// (secrets, the default), of all (always; --obscure alone is that), or of none (never).
    #[arg(
        long,
        value_name = "WHAT",
        env = "ROVE_OBSCURE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "always"
    )]
    pub(super) obscure: Option<ObscureWord>,

    /// With --obscure: the milliseconds between two packets while you type, from 20 to 200 [default: 55, with
    /// --metered 100].
    #[arg(long, value_name = "MS", value_parser = parse_slot)]
    pub(super) obscure_slot: Option<Duration>,

    /// Stay on the terminal's main screen, also with mosh-server, whose sessions else take the
    /// alternate one.
    #[arg(long, overrides_with = "init")]
    pub(super) no_init: bool,

    /// Take the terminal's alternate screen for the whole session.
    #[arg(long)]
    pub(super) init: bool,

    /// How many lines that scrolled by unseen your terminal gets at most. 0: none.
    #[arg(long, value_name = "LINES", env = "ROVE_HISTORY",
        value_parser = clap::value_parser!(u16).range(0..=i64::from(HISTORY_LINES_MAX)))]
    pub(super) history: Option<u16>,

    /// Keep programs on the host from writing your clipboard. (None ever reads it.)
    #[arg(long)]
    pub(super) no_clipboard: bool,

    #[command(flatten)]
    pub(super) way: WayArgs,

    /// Do not run ssh again when the host no longer answers.
    #[arg(long)]
    pub(super) no_fallback: bool,

    /// Where octets are paid for: with a rove there, neither end says a thing so often in case packets are lost.
    #[arg(long)]
    pub(super) metered: bool,

    /// Never ask whether to copy rove to a host that has no server.
    #[arg(long)]
    pub(super) no_install: bool,

    #[command(flatten)]
    pub(super) tell: TellArgs,
}

/// How much is told.
#[derive(Args, Debug)]
pub(super) struct TellArgs {
    /// Tell every step with its time; -vv makes ssh tell too, -vvv more.
    #[arg(short = 'v', action = ArgAction::Count)]
    verbose: u8,

    /// Tell only of failures; ssh is told too.
    #[arg(short = 'q')]
    quiet: bool,
}

impl TellArgs {
    pub(super) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (_, 1..) => Verbosity::Steps,
            (true, 0) => Verbosity::Quiet,
            (false, 0) => Verbosity::Usual,
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.quiet
    }
}

#[derive(Args, Debug, Default)]
pub(super) struct ServerArgs {
    /// UDP port or range for the server to use; 0 lets its system choose [default: 60001:60999].
    #[arg(long, value_name = "PORT[:PORT]", env = "ROVE_UDP_PORT")]
    pub(super) udp_port: Option<Ports>,

    /// Server to run, a command line for the shell there: a rove, or anything that takes
    /// mosh-server's words.
    #[arg(long, value_name = "COMMAND", env = "ROVE_SERVER")]
    pub(super) server: Option<String>,

    /// Address the server listens on: where ssh came in, any, or this one.
    #[arg(long, value_name = "ssh|any|IP", value_parser = parse_bind)]
    pub(super) bind_server: Option<Bind>,

    /// Run the server on this machine, without ssh.
    #[arg(long)]
    pub(super) local: bool,

    /// Refuse to fall back to mosh's protocol: the host must have a rove that speaks the native one.
    #[arg(long, conflicts_with = "mosh_wire")]
    pub(super) native: bool,

    /// Speak mosh's protocol with a rove server too, as older ones do.
    #[arg(long)]
    pub(super) mosh_wire: bool,
}

impl ServerArgs {
    pub(super) fn wires(&self, own: &HostConfig) -> Wires {
        match (self.native, self.mosh_wire) {
            (true, _) => Wires::Native,
            (_, true) => Wires::Mosh,
            (false, false) if own.native == Some(true) => Wires::Native,
            (false, false) => Wires::Any,
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct WayArgs {
    /// By which way it goes on once ssh has started the server: UDP, and ssh's own connection until UDP answers and
    /// where it does not; or one of both alone.
    #[arg(long, value_name = "WAY", env = "ROVE_WAY")]
    way: Option<WayWord>,
}

impl WayArgs {
    /// What these words say, or the user's file.
    pub(super) fn chosen(&self, own: &HostConfig) -> WaySetting {
        self.way.map(WaySetting::from).or(own.way).unwrap_or_default()
    }
}

#[derive(Args, Debug)]
pub(super) struct SshArgs {
    /// Program that runs a command on a host: COMMAND HOST LINE. One called ssh gets options too.
    #[arg(long, value_name = "COMMAND", env = "ROVE_SSH", default_value = "ssh")]
    pub(super) ssh: String,

    /// Which of the host's addresses to use: inet, inet6, all, prefer-inet or prefer-inet6.
    #[arg(long, value_name = "FAMILY", conflicts_with_all = ["inet", "inet6"])]
    pub(super) family: Option<FamilyWord>,

    /// Use IPv4 only.
    #[arg(short = '4', conflicts_with = "inet6")]
    pub(super) inet: bool,

    /// Use IPv6 only.
    #[arg(short = '6')]
    pub(super) inet6: bool,

    /// TCP port of ssh on the host.
    #[arg(short = 'p', value_name = "PORT")]
    pub(super) port: Option<OsString>,

    /// User to log in as.
    #[arg(short = 'l', value_name = "USER", value_hint = ValueHint::Username)]
    pub(super) login: Option<OsString>,

    /// File with the private key.
    #[arg(short = 'i', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) identity: Vec<OsString>,

    /// Hosts to jump through.
    #[arg(short = 'J', value_name = "HOST", value_hint = ValueHint::Hostname)]
    pub(super) jump: Option<OsString>,

    /// Configuration file of ssh.
    #[arg(short = 'F', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) config: Option<OsString>,

    /// Any option of ssh's configuration.
    #[arg(short = 'o', value_name = "NAME=VALUE")]
    pub(super) option: Vec<OsString>,

    /// Taken for the sake of habit: a session always has a terminal.
    #[arg(short = 't', action = ArgAction::Count, hide = true)]
    pub(super) terminal: u8,
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

impl From<ObscureWord> for Obscure {
    fn from(word: ObscureWord) -> Obscure {
        match word {
            ObscureWord::Secrets => Obscure::Secrets,
            ObscureWord::Always => Obscure::Always,
            ObscureWord::Never => Obscure::Never,
        }
    }
}

impl SshArgs {
    /// The options for OpenSSH. The address family is passed separately, since name lookups need it too.
    pub(super) fn options(&self, tell: &TellArgs) -> Vec<OsString> {
        let mut options = Vec::new();
        let single =
            [("-p", &self.port), ("-l", &self.login), ("-J", &self.jump), ("-F", &self.config)];
        for (flag, value) in single {
            options.extend(value.iter().flat_map(|value| [flag.into(), value.clone()]));
        }
        for (flag, values) in [("-i", &self.identity), ("-o", &self.option)] {
            options.extend(values.iter().flat_map(|value| [flag.into(), value.clone()]));
        }
        if tell.quiet {
            options.push("-q".into());
        }
        for _ in 1..tell.verbose {
            options.push("-v".into());
        }
        options
    }

    /// Whether the argument of this name is one of ssh's own.
    pub(super) fn has(id: &str) -> bool {
        let table = SshArgs::augment_args(clap::Command::new("ssh"));
        table.get_arguments().any(|arg| arg.get_id() == id && !["ssh", "family"].contains(&id))
    }

    pub(super) fn family(&self) -> Family {
        match (self.inet, self.inet6, self.family) {
            (true, _, _) | (_, _, Some(FamilyWord::Inet)) => Family::Inet,
            (_, true, _) | (_, _, Some(FamilyWord::Inet6)) => Family::Inet6,
            (_, _, Some(FamilyWord::PreferInet)) => Family::PreferInet,
            (_, _, Some(FamilyWord::PreferInet6)) => Family::PreferInet6,
            (_, _, Some(FamilyWord::All) | None) => Family::Any,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(words: &str) -> Result<RoveArgs, clap::Error> {
        RoveArgs::try_parse_from(std::iter::once("rove").chain(words.split(' ')))
    }

    #[test]
    fn words_of_mosh_and_ssh() {
        for words in ["-C h", "--no-ssh-pty h", "--experimental-remote-ip=remote h"] {
            assert!(parse(words).is_ok(), "{words}");
        }
        assert!(parse("--experimental-remote-ip=perhaps h").is_err());
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
            let options = parsed.ssh.options(&parsed.session.tell);
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
    fn the_options_are_consistent() {
        RoveArgs::command().debug_assert();
    }
}
