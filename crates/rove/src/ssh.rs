//! Starts a server through the user's own ssh.
//!
//! ssh keeps the user's terminal: its prompts, questions and errors are its own. `bootstrap` has
//! the conversation, and `candidates` the addresses; this file has processes and time limits.

mod candidates;
mod failures;
mod found;
pub(crate) mod report;
mod said;
mod sessions;
pub(crate) mod stream;

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rove_session::Peer;
use rove_ssp::{ConnId, Context, Key, KeyPair, PublicKeyOctets, SessionSecrets};
use rove_streams::clock;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use zeroize::Zeroizing;

pub use candidates::{Candidates, Family};
pub(crate) use report::SshConfigError;
pub use stream::SshStream;

use crate::bootstrap::{self, Answer, Facts, Reader, Refusal, Reply, Request};
use crate::failure::Failure;
use crate::os;
use crate::os::locked::within;
use crate::os::lookup;
use crate::printable::printable;
use crate::seen_hosts::Hosts;
use crate::ssh::said::{Said, Shown};
use crate::trace::Trace;

/// How long a server may take to answer once the user is logged in. Before that ssh has all the
/// time it wants: it may be waiting for a password.
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// How long to read on after an answer, for one that contradicts it. A detached server closes its end at
/// once; an ssh that stays behind as a ControlMaster does not.
const ANSWER_GRACE: Duration = Duration::from_millis(200);

/// How long output is awaited that ssh left behind when it ended, while something else holds its
/// end open.
const LEFTOVER_WAIT: Duration = Duration::from_millis(200);

/// How long to wait for a name's addresses once the server has answered, without another source of its
/// address, and with one. ssh resolved the name long ago; where ssh needs no name (a jump host, a proxy),
/// the look-up may never be answered.
const LOOKUP_WAIT: Duration = Duration::from_secs(3);
const LOOKUP_GRACE: Duration = Duration::from_secs(1);

/// What OpenSSH is told besides the user's options: no terminal, no agent, no X11, no forwarding,
/// and none of the commands that the user's configuration has for interactive logins.
const SSH_OPTIONS: [&str; 11] = [
    "-T",
    "-a",
    "-x",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "RemoteCommand=none",
    "-o",
    "RequestTTY=no",
    "-o",
    "PermitLocalCommand=no",
];

/// How the remote command gets to run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Via {
    /// A program that takes a host and a command, as words; OpenSSH gets options as well.
    Ssh(Vec<OsString>),
    /// A shell on this machine.
    Local,
}

/// Everything needed to start a server.
#[derive(Clone, Debug)]
pub struct Login {
    /// How to get there.
    pub via: Via,
    /// The user's options for OpenSSH.
    pub options: Vec<OsString>,
    /// `[user@]host`, as the user wrote it.
    pub host: String,
    /// Which addresses to use.
    pub family: Family,
    /// What to start. The key is chosen for each attempt.
    pub request: Request,
    /// Which wires may be spoken.
    pub wires: Wires,
    /// Nothing goes by UDP, of what needs no terminal.
    pub is_ssh_alone: bool,
    /// The program that works without a rove on the host for services that only a rove server has; `None`
    /// for a shell, which a mosh-server gives as well.
    pub instead: Option<&'static str>,
    /// The line that was meant if there is no such host: its name looks like that of a command.
    pub meant: Option<String>,
    /// Which hosts had rove before, if that is remembered.
    pub hosts: Option<Hosts>,
    /// The effective configuration of ssh, or why it is unknown, once asked for.
    pub report: Arc<OnceCell<Result<String, SshConfigError>>>,
}

/// Which wires may be spoken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Wires {
    /// The native one with a rove server, else the mosh wire.
    #[default]
    Any,
    /// The native one only.
    Native,
    /// The mosh wire only.
    Mosh,
}

/// A server that waits for its first datagram.
#[derive(Debug)]
pub struct Reached {
    /// Which server it is.
    pub kind: Peer,
    /// The wire, and what it takes to speak it.
    pub secret: Secret,
    /// Where it may be reached, best first.
    pub candidates: Candidates,
    /// The rove there and its version, if the host has said so.
    pub version: Option<String>,
    /// A warning for the user.
    pub warning: Option<String>,
    /// There is a rove as well, which does not run.
    pub is_broken: bool,
    /// ssh itself, if the session can go on over it.
    pub stream: Option<SshStream>,
    /// Nothing goes by UDP, of what needs no terminal.
    pub is_ssh_alone: bool,
}

/// What there is on the host.
#[derive(Debug)]
pub(crate) enum Found {
    /// A server.
    Server(Reached),
    /// None in this PATH.
    None {
        /// The directories searched, separated by colons.
        path: String,
        /// Other lines about the host.
        facts: Facts,
    },
}

/// A session's wire and its secrets.
#[derive(Debug)]
pub enum Secret {
    /// The mosh wire.
    Mosh(Key),
    /// The native wire.
    Native(SessionSecrets, ConnId),
}

impl Login {
    /// ssh's effective configuration for the host, as `ssh -G` prints it; empty if another program logs in.
    ///
    /// # Errors
    /// Why it is unknown: `ssh -G` failed, or took too long.
    pub async fn config(&self) -> Result<&str, &SshConfigError> {
        let ask = async || match self.config_command() {
            Some(command) => report::ask(command).await,
            None => Ok(String::new()),
        };
        self.report.get_or_init(ask).await.as_deref()
    }

    /// The interval at which ssh's configuration hides typing, if it names one.
    pub(crate) async fn obscure_interval(&self) -> Option<Duration> {
        report::obscure_interval(self.config().await.unwrap_or_default())
    }

    /// Becomes `ssh -G`; returns only on failure.
    pub fn print_config(&self) -> Failure {
        match self.config_command() {
            Some(mut command) => {
                self.not_started(&os::process::become_program(command.as_std_mut()))
            }
            None => Failure::new("only ssh has a configuration to print", ""),
        }
    }

    fn config_command(&self) -> Option<Command> {
        let Via::Ssh(words) = &self.via else { return None };
        is_openssh(words).then(|| {
            let mut command = program(words);
            command.arg("-G").args(self.openssh_options()).arg("--").arg(&self.host);
            command
        })
    }

    /// Runs ssh until the server has answered.
    pub async fn start(&self, trace: &Trace) -> Result<Reached, Failure> {
        match self.search(trace).await? {
            Found::Server(reached) => Ok(reached),
            Found::None { path, facts } => Err(self.missing(&path, &facts)),
        }
    }

    /// The same, but a host without any server is no failure.
    pub(crate) async fn search(&self, trace: &Trace) -> Result<Found, Failure> {
        self.search_by(&mut Reader::new(self.request.nonce.clone()), trace).await
    }

    /// The same; the reader tells afterwards what the host has said besides.
    pub(crate) async fn search_by(
        &self,
        reader: &mut Reader,
        trace: &Trace,
    ) -> Result<Found, Failure> {
        let lookup = tokio::spawn(lookup(self.clone()));
        let pair = self.key_pair()?;
        let result = self.converse(pair.as_ref().map(KeyPair::public), reader, trace).await;
        let (reply, stream) = match result {
            Ok(reply) => reply,
            Err(failure) => return Err(self.misspelt(lookup).await.unwrap_or(failure)),
        };
        let (kind, port, secret, announced) = match reply.answer {
            Answer::Rove { port, wire, addresses } => {
                (Peer::Rove, port, self.secret(wire, pair)?, addresses)
            }
            Answer::Stock { port, key } => (Peer::Stock, port, Secret::Mosh(key), Vec::new()),
            Answer::Missing { path } => return Ok(Found::None { path, facts: reply.facts }),
            Answer::Denied(why) => return Err(self.denied(&why, &reply.facts)),
            // Nobody asked for that.
            Answer::Listed => return Err(self.refused(&Refusal::Malformed)),
        };
        if self.wires == Wires::Native && matches!(secret, Secret::Mosh(_)) {
            return Err(self.only_mosh(kind, &reply.facts));
        }
        let warning = self.compare(&secret, trace);
        let warning = warning.or_else(|| self.no_socket(&reply.facts));
        self.tell_machine(&reply.facts, trace);
        self.tell_place(&reply.facts, trace);
        let gather =
            |named| Candidates::gather(self.family, port, named, reply.ssh_address, &announced);
        let wait = if gather(Vec::new()).is_some() { LOOKUP_GRACE } else { LOOKUP_WAIT };
        let named = self.named_addresses(lookup, wait, trace).await;
        let candidates = gather(named).ok_or_else(|| self.unresolved())?;
        trace.step(format_args!("the server may be at {:?}", candidates.addresses));
        let version = reply.facts.get("FOUND").map(|found| printable(found.as_bytes(), 40));
        let version = version.filter(|_| kind == Peer::Rove);
        let lacks = self.lacks(&secret, stream.as_ref());
        self.tell(kind, version.as_deref(), &lacks, candidates.addresses[0], &reply.facts, trace);
        let is_broken = reply.facts.get("BROKEN").is_some();
        Ok(Found::Server(Reached {
            kind,
            secret,
            candidates,
            version,
            warning,
            is_broken,
            stream,
            is_ssh_alone: self.is_ssh_alone,
        }))
    }

    /// Asks about the sessions there, and returns what was said.
    ///
    /// # Errors
    /// Also where nothing there knows of sessions, or they are refused.
    pub(crate) async fn ask(&self, trace: &Trace) -> Result<Reply, Failure> {
        let (reply, _) =
            self.converse(None, &mut Reader::new(self.request.nonce.clone()), trace).await?;
        match &reply.answer {
            Answer::Listed => {
                self.tell_machine(&reply.facts, trace);
                Ok(reply)
            }
            Answer::Denied(why) => Err(self.denied(why, &reply.facts)),
            Answer::Missing { path } => Err(self.missing(path, &reply.facts)),
            Answer::Rove { .. } | Answer::Stock { .. } => Err(self.refused(&Refusal::Malformed)),
        }
    }

    /// Remembers a host that speaks the native wire, and says so if one does not any more, unless the mosh
    /// wire was asked for.
    fn compare(&self, secret: &Secret, trace: &Trace) -> Option<String> {
        let hosts = self.hosts.as_ref()?;
        let asked = self.wires == Wires::Mosh
            || matches!(self.request.server, crate::bootstrap::Server::Stock(_));
        let weaker = match secret {
            Secret::Native(..) => hosts.remember(&self.host).map(|()| false),
            Secret::Mosh(_) if asked => Ok(false),
            Secret::Mosh(_) => hosts.knows(&self.host),
        };
        match weaker {
            Ok(weaker) => weaker.then(|| {
                let warning =
                    format!("{} had rove's own protocol before, now only mosh's", self.host);
                trace.note(format_args!("{warning}; --native refuses that"));
                warning
            }),
            Err(error) => {
                trace.step(format_args!("cannot remember {}: {error}", hosts.file().display()));
                None
            }
        }
    }

    /// The keys of this attempt, if the native wire may be spoken.
    fn key_pair(&self) -> Result<Option<KeyPair>, Failure> {
        if self.wires == Wires::Mosh {
            return Ok(None);
        }
        within(|| os::random().map(KeyPair::from_random))
            .map(Some)
            .map_err(|error| Failure::new(format!("no randomness: {error}"), ""))
    }

    /// The secrets that follow from a rove server's answer.
    fn secret(&self, wire: bootstrap::Wire, pair: Option<KeyPair>) -> Result<Secret, Failure> {
        match (wire, pair) {
            (bootstrap::Wire::Mosh(key), _) => Ok(Secret::Mosh(key)),
            (bootstrap::Wire::Native { key, conn }, Some(pair)) => {
                let context = Context { nonce: self.request.nonce.octets(), conn };
                let secrets = within(|| pair.agree_as_client(&key, &context));
                let secrets = secrets.map_err(|_weak| self.refused(&Refusal::Malformed))?;
                Ok(Secret::Native(secrets, conn))
            }
            // An answer to what was not asked.
            (bootstrap::Wire::Native { .. }, None) => Err(self.refused(&Refusal::Malformed)),
        }
    }

    /// Runs the remote command and reads until it has answered.
    async fn converse(
        &self,
        key: Option<PublicKeyOctets>,
        reader: &mut Reader,
        trace: &Trace,
    ) -> Result<(Reply, Option<SshStream>), Failure> {
        let report = self.config().await.unwrap_or_default();
        let mut command = self.command(key, report);
        let words: Vec<_> = std::iter::once(command.as_std().get_program())
            .chain(command.as_std().get_args())
            .map(OsStr::to_string_lossy)
            .collect();
        let (remote, words) = words.split_last().expect("a program has a name");
        trace.step(format_args!("running {}", words.join(" ")));
        trace.step(format_args!("to run {remote}"));
        // The terminal stays the user's. Standard input is no part of the conversation: what the user types ahead is
        // for the session, and nothing is written there before the server has said that it reads it.
        let carries = self.request.carry && key.is_some();
        command.stdin(if carries { Stdio::piped() } else { Stdio::null() }).stdout(Stdio::piped());
        // An ssh that stays must not write on the session's screen.
        let said = if carries { Said::behind_terminal(&mut command) } else { None };
        let mut child = command.spawn().map_err(|error| self.not_started(&error))?;
        // Of what ssh writes to, this process keeps nothing open. And whoever waits for a child closes its input.
        drop(command);
        let input = child.stdin.take();
        let said = said.map(Said::show);
        // Not before: limits are inherited, and whether ssh may leave a core is the user's
        // business.
        if let Err(error) = os::process::harden() {
            let _ = child.start_kill();
            return Err(Failure::new(format!("cannot protect the key: {error}"), ""));
        }
        let output = child.stdout.take().expect("standard output is a pipe");
        let mut conversation = Conversation { child, output, reader };
        let outcome = conversation.run(trace).await;
        let Conversation { mut child, mut output, reader } = conversation;
        match outcome {
            Ok(Some(reply)) if reader.carried().is_some() => {
                trace.step(format_args!("ssh stays, as a second way"));
                let machine = reader.carried().unwrap_or_default().to_owned();
                let begun = (reader.take_rest(), machine);
                Ok((reply, SshStream::of(child, input, output, begun, said)))
            }
            Ok(Some(reply)) => {
                // ssh may stay to serve as somebody's ControlMaster: it is left alone, and what it
                // still says is read so that it does not die of a closed pipe.
                let mut nowhere = tokio::io::sink();
                tokio::spawn(async move { tokio::io::copy(&mut output, &mut nowhere).await });
                // Mostly it ends at once; its last words belong before the session's first picture.
                let _ = clock::within(ANSWER_GRACE, child.wait()).await;
                last_words(said).await;
                Ok((reply, None))
            }
            Ok(None) => {
                let ended = no_answer(&mut child).await;
                last_words(said).await;
                Err(self.silent(reader, ended))
            }
            Err(refusal) => {
                let _ = child.start_kill();
                last_words(said).await;
                Err(self.refused(&refusal))
            }
        }
    }

    /// What logs in; `report` is what ssh's configuration comes to.
    pub fn command(&self, key: Option<PublicKeyOctets>, report: &str) -> Command {
        self.remote(&Request { key, ..self.request.clone() }.remote_command(), report)
    }

    /// What runs a line there.
    pub(crate) fn remote(&self, remote: &str, report: &str) -> Command {
        match &self.via {
            Via::Local => {
                let shell = os::process::SHELL.expect("chosen only where there is a shell");
                let mut command = Command::new(shell);
                command.arg("-c").arg(remote);
                command
            }
            Via::Ssh(words) => {
                let mut command = program(words);
                if is_openssh(words) {
                    command.args(SSH_OPTIONS).args(report::against_hindrances(report));
                    command.args(self.openssh_options()).arg("--");
                }
                command.arg(&self.host).arg(remote);
                command
            }
        }
    }

    fn openssh_options(&self) -> impl Iterator<Item = &OsStr> {
        let family = match self.family {
            Family::Inet => Some(OsStr::new("-4")),
            Family::Inet6 => Some(OsStr::new("-6")),
            Family::Any | Family::PreferInet | Family::PreferInet6 => None,
        };
        family.into_iter().chain(self.options.iter().map(OsString::as_os_str))
    }

    /// The addresses of the host's name, as far as they are known in time.
    async fn named_addresses(
        &self,
        mut lookup: JoinHandle<io::Result<Vec<SocketAddr>>>,
        wait: Duration,
        trace: &Trace,
    ) -> Vec<SocketAddr> {
        match clock::within(wait, &mut lookup).await {
            Ok(Ok(Ok(addresses))) => return addresses,
            Ok(Ok(Err(error))) => trace.step(format_args!("no address by name: {error}")),
            Ok(Err(error)) => trace.step(format_args!("no address by name: {error}")),
            Err(_elapsed) => {
                lookup.abort();
                trace.step(format_args!("no address by name in {wait:?}"));
            }
        }
        Vec::new()
    }
}

/// Shows what ssh has said last.
async fn last_words(said: Option<Shown>) {
    if let Some(said) = said {
        said.rest().await;
    }
}

/// ssh while it runs.
pub(crate) struct Conversation<'a> {
    pub(crate) child: Child,
    pub(crate) output: ChildStdout,
    pub(crate) reader: &'a mut Reader,
}

/// Why reading stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Heard {
    /// The awaited lines have come.
    Wanted,
    /// Nothing more will come.
    End,
}

impl Conversation<'_> {
    async fn run(&mut self, trace: &Trace) -> Result<Option<Reply>, Refusal> {
        let mut heard = self.listen(Reader::begun).await?;
        if heard == Heard::Wanted {
            trace.step(format_args!("logged in, waiting for a server"));
            heard = match clock::within(ANSWER_WAIT, self.listen(Reader::answered)).await {
                Ok(heard) => heard?,
                Err(_elapsed) => return Ok(None),
            };
        }
        if heard == Heard::Wanted {
            trace.step(format_args!("a server has answered"));
            let is_all = |reader: &Reader| reader.carried().is_some();
            if let Ok(heard) = clock::within(ANSWER_GRACE, self.listen(is_all)).await {
                heard?;
            }
        }
        self.reader.finish()
    }

    /// Reads until `wanted` holds, or ssh has ended and all its output is read.
    pub(crate) async fn listen(
        &mut self,
        wanted: impl Fn(&Reader) -> bool,
    ) -> Result<Heard, Refusal> {
        let mut running = true;
        let mut buffer = Zeroizing::new([0; 4096]);
        while !wanted(self.reader) {
            tokio::select! {
                biased;
                read = self.output.read(buffer.as_mut_slice()) => match read {
                    Ok(0) | Err(_) => return Ok(Heard::End),
                    Ok(len) => self.reader.read(&buffer[..len])?,
                },
                _ = self.child.wait(), if running => running = false,
                () = clock::sleep(LEFTOVER_WAIT), if !running => return Ok(Heard::End),
            }
        }
        Ok(Heard::Wanted)
    }
}

/// How ssh has ended that left no answer; it is ended if it has not.
pub(crate) async fn no_answer(child: &mut Child) -> Option<ExitStatus> {
    let ended = clock::within(LEFTOVER_WAIT, child.wait()).await;
    let _ = child.start_kill();
    ended.ok().and_then(Result::ok)
}

/// The addresses of the host, by the name that ssh would use.
async fn lookup(login: Login) -> io::Result<Vec<SocketAddr>> {
    let mut name = login.host.rsplit_once('@').map_or(login.host.as_str(), |(_, host)| host);
    name = report::host_name(login.config().await.unwrap_or_default()).unwrap_or(name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    lookup::look_up(name).await
}

fn program(words: &[OsString]) -> Command {
    let (program, rest) = words.split_first().expect("the command line has a program");
    let mut command = Command::new(os::process::program_file(program));
    command.args(rest);
    command
}

/// Whether the program takes OpenSSH's options: it does if it is called ssh.
pub(crate) fn is_openssh(words: &[OsString]) -> bool {
    words.first().is_some_and(|word| os::process::is_called(Path::new(word), "ssh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_take_the_options_of_openssh() {
        for (word, expected) in [
            ("ssh", true),
            ("/usr/bin/ssh", true),
            ("./ssh", true),
            ("ssh-wrapper", false),
            ("docker", false),
            ("ssh/", true),
        ] {
            assert_eq!(is_openssh(&[word.into()]), expected, "{word}");
        }
    }
}
