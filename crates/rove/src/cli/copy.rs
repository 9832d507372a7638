//! The command line of `rove cp`.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueHint};

use crate::cli::config::HostConfig;
use crate::cli::exec::for_streams;
use crate::cli::login::login;
use crate::cli::usage::print;
use crate::cli::values::parse_span;
use crate::cli::words::{STYLES, ServerArgs, SshArgs, TellArgs, WayArgs};
use crate::client::session::Session;
use crate::copy::client::{self, Direction, Host, Plan, Status, Style};
use crate::copy::location::{BadLocation, Location};
use crate::copy::order::{Links, Receive};
use crate::failure::{Failure, fail};
use crate::os::clock::Clock;
use crate::os::ffi::OsStrExt;
use crate::runtime::in_runtime;
use crate::services::silence::COMMAND_KEPT;
use crate::ssh::Login;
use crate::trace::Trace;

const AFTER_HELP: &str = "\
A word with a colon before any slash is on another host: [user@]host:path, or [::1]:path; ./a:b is
a file here. Both sides may be on other hosts: what is copied then passes through this machine.
* ? and [a-z] in a path there are expanded there. A copy that was broken off goes on where it was
when the same command is run again.";

/// Copy files between this machine and others.
///
/// rove logs in with your own ssh, starts `rove server` there and goes on over UDP, so that a copy
/// survives sleep, a new address and hours without a network.
#[derive(Debug, Parser)]
#[command(
    name = "rove cp",
    styles = STYLES,
    after_help = AFTER_HELP,
    override_usage = "rove cp [OPTIONS] SOURCE... TARGET"
)]
pub struct CopyArgs {
    /// What to copy, and last where to: one side of it at least is on another host.
    #[arg(value_name = "PATH", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    paths: Vec<OsString>,

    #[command(flatten, next_help_heading = "Copy")]
    copy: TransferArgs,

    #[command(flatten, next_help_heading = "Server")]
    way: WayArgs,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    ssh: SshArgs,
}

#[derive(Args, Debug)]
struct TransferArgs {
    /// Directories too, with all that is in them; symbolic links in them are copied as links.
    #[arg(short = 'r', short_alias = 'R')]
    recursive: bool,

    /// Keep the times and permissions of files and directories. (Without it new ones get the permissions
    /// that the umask there lets through, and those that were there keep their own.)
    #[arg(short = 'p')]
    preserve: bool,

    /// Which symbolic links in directories are made where they go: those that stay inside the directory that is copied,
    /// or all. Others are told as failures.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    links: Links,

    /// Octets a second at most, with K, M or G for thousands, millions or milliards.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    limit: Option<u64>,

    /// The same as scp has it, in units of 1024 bits a second.
    #[arg(short = 'l', value_name = "KBIT", conflicts_with = "limit",
          value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    kilobits: Option<u64>,

    /// Tell progress, failures and the sum on standard output, one JSON object a line.
    #[arg(long)]
    json: bool,

    /// End when a host has been silent for this many seconds, or with m, h or d after the number minutes, hours or
    /// days [default: 12h]. Less than 20 s counts as 20 s.
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    give_up: Option<Duration>,

    /// Ask nothing: ssh fails where it would ask for a password.
    #[arg(short = 'B')]
    batch: bool,

    /// More of scp's words, which say what is so anyway: compressed when it helps, through this
    /// machine, and only what was asked for.
    #[arg(short = 'C', hide = true)]
    compress: bool,
    #[arg(short = '3', hide = true)]
    through: bool,
    #[arg(short = 'T', hide = true)]
    unchecked: bool,
    #[arg(short = 'O', hide = true)]
    old: bool,
    #[arg(short = 's', hide = true)]
    sftp: bool,
    /// For ssh, and so for the login alone.
    #[arg(short = 'c', hide = true)]
    cipher: Option<OsString>,

    #[command(flatten)]
    tell: TellArgs,
}

/// The command as clap knows it: scp's -p, -P, -l and -S in the place of ssh's.
pub(super) fn command() -> clap::Command {
    CopyArgs::command()
        .mut_arg("port", |port| port.short('P'))
        .mut_arg("login", |login| login.short(None).long("user"))
        .mut_arg("ssh", |ssh| ssh.short('S'))
        .mut_arg("mosh_wire", |wire| wire.hide(true))
        .mut_arg("native", |wire| wire.hide(true))
}

/// Runs `rove cp` with these words.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    let clock = Clock::start();
    let words = match CopyArgs::read(words) {
        Ok(words) => words,
        Err(usage) => return print(&usage, "rove cp", words),
    };
    let trace = Trace::new(clock, words.copy.tell.verbosity());
    let outcome = words.errands().and_then(|errands| {
        errands.iter().try_for_each(CopyPlan::check)?;
        in_runtime(run(clock, &words, &errands, &trace))
    });
    match outcome {
        Ok(status) => status.into(),
        Err(failure) => fail(&failure),
    }
}

/// A plan and the direction of its files.
#[derive(Debug)]
pub struct CopyPlan {
    plan: Plan,
    ends: Ends,
}

/// The hosts, `[user@]host` as the user wrote them.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Ends {
    There(String),
    Here(String),
    Between(String, String),
}

impl CopyPlan {
    /// Refuses an impossible copy before ssh asks for a password.
    fn check(&self) -> Result<(), Failure> {
        match self.ends {
            Ends::There(_) => self.plan.check_sources(),
            Ends::Here(_) => self.plan.check_target(),
            Ends::Between(..) => Ok(()),
        }
    }

    /// The hosts, as the user wrote them.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let (one, other) = match &self.ends {
            Ends::There(host) | Ends::Here(host) => (host, None),
            Ends::Between(from, to) => (from, Some(to)),
        };
        std::iter::once(one).chain(other).map(String::as_str)
    }

    fn way<'a>(&'a self, sessions: &'a [(String, Session)]) -> Direction<'a> {
        let host = |word: &'a str| {
            let session = sessions.iter().find(|(host, _)| host == word);
            let (_, session) = session.expect("a session with each host was begun");
            let name = word.rsplit_once('@').map_or(word, |(_, name)| name);
            Host { name, streams: &session.streams }
        };
        match &self.ends {
            Ends::There(to) => Direction::There(host(to)),
            Ends::Here(from) => Direction::Here(host(from)),
            Ends::Between(from, to) => Direction::Between { from: host(from), to: host(to) },
        }
    }
}

/// Runs the plans one after the other, with one session for each host, and ends the sessions in any case.
async fn run(
    clock: Clock,
    words: &CopyArgs,
    errands: &[CopyPlan],
    trace: &Trace,
) -> Result<Status, Failure> {
    let mut sessions = Vec::new();
    let outcome = copy_all(clock, words, errands, &mut sessions, trace).await;
    for (_, session) in sessions {
        match outcome {
            Ok(_) => session.leave().await,
            Err(_) => session.close().await,
        }
    }
    outcome
}

async fn copy_all(
    clock: Clock,
    words: &CopyArgs,
    errands: &[CopyPlan],
    sessions: &mut Vec<(String, Session)>,
    trace: &Trace,
) -> Result<Status, Failure> {
    let mut worst = Status::Copied;
    for errand in errands {
        for host in errand.hosts() {
            if sessions.iter().any(|(there, _)| there == host) {
                continue;
            }
            let begun = begin(clock, words, host, trace);
            let session = match sessions.is_empty() {
                true => begun.await?,
                // A server that was started already is told before this ends.
                false => tokio::select! {
                    session = begun => session?,
                    _ = crate::os::signals::asked_to_end() => {
                        let what = format!("interrupted before the session with {host} began");
                        return Err(Failure::new(what, ""));
                    }
                },
            };
            sessions.push((host.to_owned(), session));
        }
        worst = worst.max(client::run(clock, errand.way(sessions), &errand.plan).await?);
    }
    Ok(worst)
}

/// Logs in to a host and begins a session with it.
async fn begin(
    clock: Clock,
    words: &CopyArgs,
    host: &str,
    trace: &Trace,
) -> Result<Session, Failure> {
    let login = words.login(host, &HostConfig::of_user(host)?)?;
    let found = login.start(trace).await?;
    Session::start(clock, found, trace).await
}

impl CopyArgs {
    /// Reads the words after `rove cp`.
    pub fn read(words: &[OsString]) -> Result<CopyArgs, clap::Error> {
        let program = [OsString::from("rove cp")];
        let matches = command().try_get_matches_from(program.iter().chain(words))?;
        CopyArgs::from_arg_matches(&matches)
    }

    /// The login on one of the hosts, of which the user's file says `own`.
    ///
    /// # Errors
    /// If `-S` names no program.
    pub fn login(&self, host: &str, own: &HostConfig) -> Result<Login, Failure> {
        let mut login = login(host, self.ssh_options(), &self.ssh, &self.server, own)?;
        for_streams(&mut login, "scp", self.way.chosen(own), self.copy.give_up);
        Ok(login)
    }

    /// The options for OpenSSH.
    fn ssh_options(&self) -> Vec<OsString> {
        let CopyArgs { copy, ssh, .. } = self;
        let mut options = ssh.options(&copy.tell);
        if copy.batch {
            options.extend(["-o".into(), "BatchMode=yes".into()]);
        }
        options.extend(copy.cipher.iter().flat_map(|cipher| ["-c".into(), cipher.clone()]));
        options
    }

    /// Makes the plans: sources side by side on one host are copied together.
    ///
    /// # Errors
    /// If a word names no place, or both ends are here.
    pub fn errands(&self) -> Result<Vec<CopyPlan>, Failure> {
        let locations: Vec<Location> =
            self.paths.iter().map(|word| location(word)).collect::<Result<_, _>>()?;
        let (target, sources) = locations.split_last().expect("clap asks for two");
        let TransferArgs { recursive, preserve, links, limit, kilobits, give_up, .. } = self.copy;
        let style = match (self.copy.json, self.copy.tell.is_quiet()) {
            (true, _) => Style::Json,
            (false, true) => Style::Quiet,
            (false, false) => Style::Usual,
        };
        let receive = Receive { recursive, preserve, several: sources.len() > 1, links };
        let mut errands: Vec<CopyPlan> = Vec::new();
        for source in sources {
            let (ends, path, to) = match (source, target) {
                (Location::Local(path), Location::Remote { host, path: to }) => {
                    (Ends::There(host.clone()), path, to)
                }
                (Location::Remote { host, path }, Location::Local(to)) => {
                    (Ends::Here(host.clone()), path, to)
                }
                (Location::Remote { host: from, path }, Location::Remote { host, path: to }) => {
                    (Ends::Between(from.clone(), host.clone()), path, to)
                }
                (Location::Local(_), Location::Local(_)) => {
                    return Err(Failure::new(
                        "both ends of a copy are on this machine",
                        "Use cp for that; a name with a colon in it on another host is host:path.",
                    ));
                }
            };
            let path = path.as_bytes().to_vec();
            match errands.last_mut() {
                Some(errand) if errand.ends == ends => errand.plan.sources.push(path),
                _ => {
                    let plan = Plan {
                        sources: vec![path],
                        target: to.as_bytes().to_vec(),
                        receive,
                        limit: limit.or(kilobits.map(|kilobits| kilobits * 128)).unwrap_or(0),
                        style,
                        give_up: give_up.unwrap_or(COMMAND_KEPT),
                    };
                    errands.push(CopyPlan { plan, ends });
                }
            }
        }
        Ok(errands)
    }
}

fn location(word: &OsStr) -> Result<Location, Failure> {
    Location::parse(word).map_err(|bad| match bad {
        BadLocation::Empty => Failure::new("a path is empty", "Write . for where you are."),
        BadLocation::Url => Failure::new(
            format!("{} is a URL, which is not taken", word.to_string_lossy()),
            "Write HOST:PATH, and -P PORT for a port.",
        ),
        BadLocation::Host => Failure::new(
            format!("what stands before the colon in {} is no host", word.to_string_lossy()),
            "If it is a file here, put ./ before it.",
        ),
    })
}

/// Reads `10M` as ten million.
fn parse_rate(word: &str) -> Result<u64, &'static str> {
    let (digits, unit) = match word.find(|c: char| !c.is_ascii_digit()) {
        Some(end) => word.split_at(end),
        None => (word, ""),
    };
    let factor = match unit {
        "" => 1,
        "K" | "k" => 1_000,
        "M" | "m" => 1_000_000,
        "G" | "g" => 1_000_000_000,
        _ => return Err("a rate is a number, and K, M or G after it"),
    };
    let rate = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    rate.filter(|rate| *rate > 0).ok_or("a rate is a number above 0, and K, M or G after it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<CopyArgs, clap::Error> {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        CopyArgs::read(&words)
    }

    #[test]
    fn the_options_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn words_of_scp() {
        let words = parse("-rp -P 2222 -i key -J jump -o A=b a b host:c").expect("scp's words");
        assert!(words.copy.recursive && words.copy.preserve);
        let options = |words: &CopyArgs| words.ssh_options().join(OsStr::new(" "));
        assert_eq!(options(&words), "-p 2222 -J jump -i key -o A=b");
        assert_eq!(words.paths.len(), 3);
        assert!(parse("host:a").is_err());
        let words = parse("-3 -BCq -l 800 -c aes -S other h:a h2:b").expect("more of them");
        assert_eq!(options(&words), "-q -o BatchMode=yes -c aes");
        assert_eq!(words.ssh.ssh, "other");
        assert_eq!(words.errands().expect("a copy")[0].plan.limit, 102_400);
        assert!(parse("-l 8 --limit 1M a h:b").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn hosts_and_directions() {
        for (words, expected) in [
            ("a b h:c", Ok("There(h) a b c")),
            ("u@h:a h2:b h2:c d", Ok("Here(u@h) a d|Here(h2) b c d")),
            ("h:*.log .", Ok("Here(h) *.log .")),
            ("[::1]:a .", Ok("Here(::1) a .")),
            ("./a:b h:", Ok("There(h) ./a:b ")),
            ("h:a h:b u@h2:c", Ok("Between(h, u@h2) a b c")),
            ("h:a b h2:", Ok("Between(h, h2) a |There(h2) b ")),
            ("a b", Err("both ends of a copy are on this machine")),
            ("h:a b c", Err("both ends of a copy are on this machine")),
            (":a b", Err("what stands before the colon in :a is no host")),
        ] {
            let words_of = parse(words).expect("words");
            let shown = words_of.errands().map(|errands| {
                let errands = errands.iter().map(|CopyPlan { plan, ends }| {
                    let text = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
                    let sources: Vec<_> = plan.sources.iter().map(text).collect();
                    let ends = format!("{ends:?}").replace('"', "");
                    format!("{ends} {} {}", sources.join(" "), text(&plan.target))
                });
                errands.collect::<Vec<_>>().join("|")
            });
            let shown = shown.as_deref().map_err(|failure| failure.what.as_str());
            assert_eq!(shown, expected, "{words}");
        }
    }

    #[test]
    fn rates() {
        for (word, rate) in [
            ("1", Some(1)),
            ("10M", Some(10_000_000)),
            ("5k", Some(5_000)),
            ("2G", Some(2_000_000_000)),
            ("0", None),
            ("M", None),
            ("1.5M", None),
            ("99999999999999G", None),
        ] {
            assert_eq!(parse_rate(word).ok(), rate, "{word}");
        }
    }
}
