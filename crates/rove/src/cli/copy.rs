//! `rove cp`: its words, and what they come to.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueHint};

use super::words::{STYLES, ServerWords, SshWords, TellWords, split_words};
use super::{FAILED, fail, in_runtime, locale};
use crate::bootstrap::{Nonce, Purpose, Request, Server};
use crate::carried::Session;
use crate::clock::Clock;
use crate::copy::client::{self, Direction, Plan, Style};
use crate::copy::location::{BadLocation, Location};
use crate::failure::Failure;
use crate::ssh::{Login, Via, Wires};
use crate::sys;
use crate::trace::Trace;

const AFTER_HELP: &str = "\
A word with a colon before any slash is on another host: [user@]host:path, or [::1]:path; ./a:b is
a file here. * ? and [a-z] in a path there are expanded there. A copy that was broken off goes on
where it was when the same command is run again.";

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
struct CopyWords {
    /// What to copy, and last where to: one side of it is on another host.
    #[arg(value_name = "PATH", required = true, num_args = 2.., value_hint = ValueHint::AnyPath)]
    paths: Vec<OsString>,

    #[command(flatten, next_help_heading = "Copy")]
    copy: HowWords,

    #[command(flatten, next_help_heading = "Server")]
    server: ServerWords,

    #[command(flatten, next_help_heading = "Passed to ssh")]
    ssh: SshWords,
}

#[derive(Args, Debug)]
struct HowWords {
    /// Directories too, with all that is in them; symbolic links in them are copied as links.
    #[arg(short = 'r', short_alias = 'R')]
    recursive: bool,

    /// Keep the times of files and directories. (Permissions are always kept, as far as the umask
    /// there lets them.)
    #[arg(short = 'p')]
    preserve: bool,

    /// Octets a second at most, with K, M or G for thousands, millions or milliards.
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    limit: Option<u64>,

    /// Tell progress, failures and the sum on standard output, one JSON object a line.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    tell: TellWords,
}

/// The command as clap knows it: scp's -p and -P in the place of ssh's -p.
pub(super) fn command() -> clap::Command {
    CopyWords::command()
        .mut_arg("port", |port| port.short('P'))
        .mut_arg("mosh_wire", |wire| wire.hide(true))
        .mut_arg("native", |wire| wire.hide(true))
}

/// Runs `rove cp` with these words.
pub(super) fn main(words: &[OsString]) -> ExitCode {
    let clock = Clock::start();
    let program = [OsString::from("rove cp")];
    let matches = command().try_get_matches_from(program.iter().chain(words));
    let words = match matches.and_then(|matches| CopyWords::from_arg_matches(&matches)) {
        Ok(words) => words,
        Err(usage) => {
            let _ = usage.print();
            return if usage.use_stderr() { FAILED.into() } else { ExitCode::SUCCESS };
        }
    };
    let trace = Trace::new(clock, words.copy.tell.verbosity());
    let outcome = plans(&words).and_then(|plans| {
        plans.iter().try_for_each(|(plan, _)| plan.check())?;
        in_runtime(async {
            let mut status = client::Status::Copied;
            for (plan, login) in &plans {
                let found = login.start(&trace).await?;
                let session = Session::start(clock, found, &trace).await?;
                let outcome = client::run(clock, &session.streams, plan).await;
                session.close().await;
                status = status.max(outcome?);
            }
            Ok(status)
        })
    });
    match outcome {
        Ok(status) => status.into(),
        Err(failure) => fail(&failure),
    }
}

/// What is to be done, one host after the other.
fn plans(words: &CopyWords) -> Result<Vec<(Plan, Login)>, Failure> {
    let locations: Vec<Location> =
        words.paths.iter().map(|word| location(word)).collect::<Result<_, _>>()?;
    let (target, sources) = locations.split_last().expect("clap asks for two");
    let several = sources.len() > 1;
    let style = match (words.copy.json, words.copy.tell.is_quiet()) {
        (true, _) => Style::Json,
        (false, true) => Style::Quiet,
        (false, false) => Style::Usual,
    };
    let plan = |host: &str, direction, sources, target| {
        let HowWords { recursive, preserve, limit, .. } = words.copy;
        let limit = limit.unwrap_or(0);
        let host = host.to_owned();
        let login = login(&host, words)?;
        let name = host.rsplit_once('@').map_or(host.as_str(), |(_, name)| name).to_owned();
        let host = name;
        Ok((
            Plan { host, direction, sources, target, recursive, preserve, several, limit, style },
            login,
        ))
    };
    let octets = |path: &OsStr| path.as_bytes().to_vec();
    match target {
        Location::Remote { host, path } => {
            let here = sources.iter().map(|source| match source {
                Location::Local(path) => Ok(octets(path)),
                Location::Remote { host, .. } => Err(between_hosts(host)),
            });
            let here = here.collect::<Result<_, _>>()?;
            Ok(vec![plan(host, Direction::There, here, octets(path))?])
        }
        Location::Local(target) => {
            let mut hosts: Vec<(&str, Vec<Vec<u8>>)> = Vec::new();
            for source in sources {
                let Location::Remote { host, path } = source else {
                    return Err(Failure::new(
                        "both ends of a copy are on this machine",
                        "Use cp for that; a name with a colon in it on another host is host:path.",
                    ));
                };
                match hosts.last_mut() {
                    Some((last, paths)) if *last == host => paths.push(octets(path)),
                    _ => hosts.push((host, vec![octets(path)])),
                }
            }
            let plans = hosts.into_iter();
            plans.map(|(host, paths)| plan(host, Direction::Here, paths, octets(target))).collect()
        }
    }
}

fn between_hosts(host: &str) -> Failure {
    Failure::new(
        format!("both ends of a copy are on other hosts ({host} and the target's)"),
        format!("Copy to this machine first, or run rove cp on {host}."),
    )
}

fn location(word: &OsStr) -> Result<Location, Failure> {
    Location::parse(word).map_err(|bad| match bad {
        BadLocation::Empty => Failure::new("a path is empty", "Write . for where you are."),
        BadLocation::Host => Failure::new(
            format!("what stands before the colon in {} is no host", word.to_string_lossy()),
            "If it is a file here, put ./ before it.",
        ),
    })
}

fn login(host: &str, words: &CopyWords) -> Result<Login, Failure> {
    let random =
        sys::random().map_err(|error| Failure::new(format!("no randomness: {error}"), ""))?;
    let CopyWords { server, ssh, copy, .. } = words;
    Ok(Login {
        via: if server.local { Via::Local } else { Via::Ssh(split_words(&ssh.ssh)?) },
        options: ssh.options(&copy.tell),
        host: host.to_owned(),
        family: ssh.family(),
        wires: Wires::Native,
        hosts: None,
        instead: Some("scp"),
        request: Request {
            nonce: Nonce::new(*random),
            key: None,
            server: server.server.as_deref().map_or(Server::Found, Server::named),
            bind: server.bind_server.unwrap_or_default(),
            ports: server.udp_port,
            colours: 0,
            locale: locale(),
            command: Vec::new(),
            purpose: Purpose::Streams,
            agent: false,
        },
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

    fn parse(words: &str) -> Result<CopyWords, clap::Error> {
        let words = std::iter::once("rove cp").chain(words.split(' '));
        CopyWords::from_arg_matches(&command().try_get_matches_from(words)?)
    }

    #[test]
    fn the_options_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn words_of_scp() {
        let words = parse("-rp -P 2222 -i key -J jump -o A=b a b host:c").expect("scp's words");
        assert!(words.copy.recursive && words.copy.preserve);
        let options = words.ssh.options(&words.copy.tell);
        let options: Vec<_> = options.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(options.join(" "), "-p 2222 -J jump -i key -o A=b");
        assert_eq!(words.paths.len(), 3);
        assert!(parse("host:a").is_err());
    }

    #[test]
    fn hosts_and_directions() {
        for (words, expected) in [
            ("a b h:c", Ok("There h a b c")),
            ("u@h:a h2:b h2:c d", Ok("Here h a d|Here h2 b c d")),
            ("h:*.log .", Ok("Here h *.log .")),
            ("[::1]:a .", Ok("Here ::1 a .")),
            ("./a:b h:", Ok("There h ./a:b ")),
            ("a b", Err("both ends of a copy are on this machine")),
            ("h:a b c", Err("both ends of a copy are on this machine")),
            ("h:a h2:b", Err("both ends of a copy are on other hosts (h and the target's)")),
            (":a b", Err("what stands before the colon in :a is no host")),
        ] {
            let words_of = parse(words).expect("words");
            let shown = plans(&words_of).map(|plans| {
                let plans = plans.iter().map(|(plan, _)| {
                    let text = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
                    let sources: Vec<_> = plan.sources.iter().map(text).collect();
                    let target = text(&plan.target);
                    format!("{:?} {} {} {target}", plan.direction, plan.host, sources.join(" "))
                });
                plans.collect::<Vec<_>>().join("|")
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
