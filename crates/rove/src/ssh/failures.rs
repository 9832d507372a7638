//! Why a server did not start, and what to do about it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::process::ExitStatus;

use rove_session::Peer;
use rove_streams::clock;
use tokio::task::JoinHandle;

use crate::bootstrap::{Reader, Refusal};
use crate::failure::Failure;
use crate::printable::printable;
use crate::quoted::quoted;
use crate::ssh::{Family, LOOKUP_WAIT, Login, Via, is_openssh, report};

impl Login {
    pub(super) fn not_started(&self, error: &io::Error) -> Failure {
        let program = match &self.via {
            Via::Local => "/bin/sh".into(),
            Via::Ssh(words) => words[0].to_string_lossy(),
        };
        let next = "Install OpenSSH's client, or name another program with --ssh=COMMAND.";
        Failure::new(format!("cannot run {program}: {error}"), next)
    }

    /// Whether a command was meant and not a host: neither ssh nor the system knows the name.
    pub(super) async fn misspelt(
        &self,
        mut lookup: JoinHandle<io::Result<Vec<SocketAddr>>>,
    ) -> Option<Failure> {
        let found = match &self.meant {
            Some(_) => clock::within(LOOKUP_WAIT, &mut lookup).await.ok().and_then(Result::ok),
            None => None,
        };
        lookup.abort();
        // Through a proxy ssh reaches names that nobody here knows.
        let report = self.config().await.unwrap_or_default();
        let is_direct =
            matches!(&self.via, Via::Ssh(words) if is_openssh(words)) && !report::has_proxy(report);
        let meant = self.meant.as_ref().filter(|_| is_direct && matches!(found, Some(Err(_))))?;
        Some(Failure::new(format!("there is no host {}. Did you mean: {meant}", self.host), ""))
    }

    /// The line that logs in by hand, with the user's options where the program is OpenSSH.
    fn by_hand(&self) -> String {
        let Via::Ssh(words) = &self.via else { return "sh".into() };
        let options = is_openssh(words).then(|| self.openssh_options()).into_iter().flatten();
        let words = words.iter().map(OsString::as_os_str).chain(options);
        quoted(words.chain([OsStr::new(&self.host)]))
    }

    /// The line that copies this program to the host.
    fn copy_by_hand(&self) -> String {
        let mut words = vec![OsString::from("scp")];
        let mut options = self.openssh_options();
        while let Some(option) = options.next() {
            match option.to_str() {
                Some("-p") => words.push("-P".into()),
                Some("-l") => {
                    let user = options.next().unwrap_or_default();
                    words.extend(["-o".into(), [OsStr::new("User="), user].join(OsStr::new(""))]);
                }
                _ => words.push(option.to_owned()),
            }
        }
        format!("{} \"$(command -v rove)\" {}:.local/bin/", quoted(words), self.host)
    }

    pub(super) fn missing(&self, path: &str) -> Failure {
        let host = &self.host;
        if let Some(instead) = self.instead {
            return no_rove(host, instead);
        }
        let next = format!(
            "Install one there (for example: {}), or say where it is with --server=COMMAND.",
            self.copy_by_hand()
        );
        let path = printable(path.as_bytes(), PATH_CHARS_MAX);
        Failure::new(format!("{host} has neither rove nor mosh-server in {path}"), next)
    }

    /// `--native` was asked for.
    pub(super) fn only_mosh(&self, kind: Peer) -> Failure {
        let host = &self.host;
        if let (Some(instead), Peer::Stock) = (self.instead, kind) {
            return no_rove(host, instead);
        }
        let (what, next) = match kind {
            Peer::Rove => ("the rove there is too old for", "Update it"),
            Peer::Stock => ("only mosh-server is there, without", "Install rove there"),
        };
        Failure::new(
            format!("{host}: {what} the native wire that --native asks for"),
            format!("{next}, or leave --native out."),
        )
    }

    pub(super) fn refused(&self, refusal: &Refusal) -> Failure {
        let host = &self.host;
        let next = match refusal {
            Refusal::Contradiction | Refusal::Malformed => {
                format!("Something in the login scripts on {host} imitates a server; look there.")
            }
            Refusal::Version(_) => "Update the older of the two.".to_owned(),
            Refusal::Noise => {
                let line = self.by_hand();
                format!("Make them print only in interactive shells; look at `{line} true`.")
            }
        };
        Failure::new(format!("{host}: {refusal}"), next)
    }

    /// ssh ended, or said nothing for too long, without an answer.
    pub(super) fn silent(&self, reader: &Reader, ended: Option<ExitStatus>) -> Failure {
        let host = &self.host;
        let program = match &self.via {
            Via::Local => "sh".into(),
            Via::Ssh(words) => words[0].to_string_lossy(),
        };
        let mut said = String::new();
        for line in reader.stray() {
            said.push_str(if said.is_empty() { "; it printed: " } else { " | " });
            said.push_str(line);
        }
        let status = ended.map_or("is still running".to_owned(), |ended| match ended.code() {
            Some(code) => format!("ended with status {code}"),
            None => "was killed by a signal".to_owned(),
        });
        if reader.begun() {
            let next = format!(
                "Try the server by hand: {} {}, or name it with --server=COMMAND.",
                self.by_hand(),
                match self.request.server {
                    crate::bootstrap::Server::Stock(_) => "mosh-server",
                    _ => "rove server --help",
                }
            );
            return Failure::new(
                format!("no server started on {host} ({program} {status}){said}"),
                next,
            );
        }
        let next = match said.is_empty() {
            true => {
                format!(
                    "Its own message stands above. Go on once `{}` gets you in.",
                    self.by_hand()
                )
            }
            false => format!(
                "Something there keeps commands from running; look at `{} true`.",
                self.by_hand()
            ),
        };
        Failure::new(format!("could not log in to {host}: {program} {status}{said}"), next)
    }

    pub(super) fn unresolved(&self) -> Failure {
        let family = match self.family {
            Family::Inet => "IPv4 ",
            Family::Inet6 => "IPv6 ",
            Family::Any | Family::PreferInet | Family::PreferInet6 => "",
        };
        Failure::new(
            format!("no {family}address of {} is known here, though ssh got there", self.host),
            "Give its address instead of its name, or set HostName in ~/.ssh/config.",
        )
    }
}

fn no_rove(host: &str, instead: &str) -> Failure {
    Failure::new(format!("{host} has no rove; {instead} works without it"), "")
}

/// Characters shown of the directories that were searched there.
const PATH_CHARS_MAX: usize = 500;
