//! Why a server did not start, and what to do about it.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::process::ExitStatus;

use rove_session::Peer;
use rove_streams::clock;
use tokio::task::JoinHandle;

use crate::bootstrap::{Facts, Goal, Reader, Refusal};
use crate::failure::Failure;
use crate::printable::printable;
use crate::quoted::quoted;
use crate::ssh::{Family, LOOKUP_WAIT, Login, Via, is_openssh, report};

impl Login {
    pub(crate) fn not_started(&self, error: &io::Error) -> Failure {
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

    /// The line that copies a rove to the host, with more options.
    pub(crate) fn install_line(&self, more: &[&str]) -> String {
        let mut words = vec![OsString::from("rove"), "install".into()];
        if let Via::Ssh(program) = &self.via
            && *program != ["ssh"]
        {
            words.push(format!("--ssh={}", quoted(program)).into());
        }
        words.extend(self.openssh_options().map(OsString::from));
        words.extend(more.iter().map(OsString::from));
        words.push(self.host.clone().into());
        quoted(words)
    }

    /// That there is a rove and it does not run, if that was said.
    pub(crate) fn broken(&self, facts: &Facts) -> Option<String> {
        let path = facts.get("BROKEN")?;
        let reason = reason(path, facts.get("BECAUSE").unwrap_or_default());
        let path = printable(path.as_bytes(), PATH_CHARS_MAX);
        let reason = printable(reason.as_bytes(), REASON_CHARS_MAX);
        Some(format!("{path} on {} does not run ({reason})", self.host))
    }

    pub(crate) fn missing(&self, path: &str, facts: &Facts) -> Failure {
        let host = &self.host;
        if self.request.goal != Goal::Any {
            return self.no_sessions(facts);
        }
        if let Some(instead) = self.instead {
            return self.no_rove(instead, facts);
        }
        let next = format!(
            "Install one there ({}), or say where it is with --server=COMMAND.",
            self.install_line(&[])
        );
        let path = printable(path.as_bytes(), PATH_CHARS_MAX);
        let what = match self.broken(facts) {
            Some(broken) => format!("{broken}, and there is no mosh-server in {path}"),
            None => format!("{host} has neither rove nor mosh-server in {path}"),
        };
        Failure::new(what, next)
    }

    /// `--native` was asked for.
    pub(super) fn only_mosh(&self, kind: Peer, facts: &Facts) -> Failure {
        let host = &self.host;
        if let (Some(instead), Peer::Stock) = (self.instead, kind) {
            return self.no_rove(instead, facts);
        }
        if let (Some(broken), Peer::Stock) = (self.broken(facts), kind) {
            return Failure::new(broken, format!("A static one: {}", self.install_line(&[])));
        }
        let (what, next) = match kind {
            Peer::Rove => ("the rove there is too old for", "A newer one"),
            Peer::Stock => ("only mosh-server is there, without", "Copy rove there"),
        };
        Failure::new(
            format!("{host}: {what} the native wire that --native asks for"),
            format!("{next}: {}. Or leave --native out.", self.install_line(&[])),
        )
    }

    fn no_rove(&self, instead: &str, facts: &Facts) -> Failure {
        let what = match self.broken(facts) {
            Some(broken) => broken,
            None => format!("{} has no rove", self.host),
        };
        Failure::new(format!("{what}; {instead} works without it"), "")
    }

    pub(crate) fn refused(&self, refusal: &Refusal) -> Failure {
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
    pub(crate) fn silent(&self, reader: &Reader, ended: Option<ExitStatus>) -> Failure {
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
        if let (true, Some(version)) = (self.request.goal != Goal::Any, reader.facts().get("FOUND"))
        {
            return self.too_old(version);
        }
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

/// Why a program does not run, in the fewest words: without its own path, and of a library's versions the one that is
/// missing.
fn reason<'a>(path: &str, said: &'a str) -> Cow<'a, str> {
    if let Some((_, rest)) = said.split_once("version `")
        && let Some((version, _)) = rest.split_once("' not found")
    {
        return format!("{version} not found").into();
    }
    let said = match said.split_once(path) {
        Some((_, rest)) => rest.trim_start_matches([':', ' ']),
        None => said,
    };
    if said.is_empty() { "it ends at once, and says nothing".into() } else { said.into() }
}

/// Characters shown of such a reason.
const REASON_CHARS_MAX: usize = 200;

/// Characters shown of the directories that were searched there.
const PATH_CHARS_MAX: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_server_does_not_run() {
        let path = "/home/u/.local/bin/rove";
        for (said, reason_told) in [
            (
                "/home/u/.local/bin/rove: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not \
                 found (required by /home/u/.local/bin/rove)",
                "GLIBC_2.38 not found",
            ),
            ("sh: 1: /home/u/.local/bin/rove: Exec format error", "Exec format error"),
            ("sh: line 1: /home/u/.local/bin/rove: Permission denied", "Permission denied"),
            ("Killed", "Killed"),
            ("version `", "version `"),
            ("", "it ends at once, and says nothing"),
        ] {
            assert_eq!(reason(path, said), reason_told, "{said}");
        }
    }
}
