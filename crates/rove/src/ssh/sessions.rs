//! What a host says of its sessions, in the words of the user's side.

use std::ffi::OsString;

use crate::bootstrap::{Facts, Server};
use crate::failure::Failure;
use crate::printable::printable;
use crate::quoted::quoted;
use crate::sessions::age::span;
use crate::sessions::name::Name;
use crate::ssh::{Login, Via};
use crate::trace::Trace;

/// Characters shown of what a host says.
const SAID_CHARS_MAX: usize = 300;

/// Characters shown of a machine's own name.
const MACHINE_CHARS_MAX: usize = 255;

/// Names of sessions told in an error.
const NAMES_MAX: usize = 20;

impl Login {
    /// A request to a session is not granted. `why` is in the words of `server/asking.rs`.
    pub(super) fn denied(&self, why: &str, facts: &Facts) -> Failure {
        let host = &self.on_machine(facts);
        let (what, rest) = why.split_once(' ').unwrap_or((why, ""));
        let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let name = Name::parse(name).map_or("?".to_owned(), |name| name.to_string());
        let shown = || printable(rest.as_bytes(), SAID_CHARS_MAX);
        match what {
            "none" => self.none(facts),
            "unknown" => {
                let names: Vec<Name> =
                    rest.split(' ').take(NAMES_MAX).filter_map(Name::parse).collect();
                let (verb, names) = match names.as_slice() {
                    [only] => ("is", only.to_string()),
                    names => ("are", listed(names)),
                };
                Failure::new(
                    format!("there is no session {name} on {host}; there {verb} {names}"),
                    "",
                )
            }
            "taken" => Failure::new(
                format!("there is a session {name} on {host} already"),
                format!("Back to it: {}", self.session_line("attach", &[], &name)),
            ),
            "inside" => Failure::new("you are in that session", ""),
            "silent" => Failure::new(
                format!("the session {name} on {host} does not answer"),
                format!(
                    "Its server stands still; {} lists those that answer.",
                    self.session_line("ls", &[], "")
                ),
            ),
            "said" => Failure::new(format!("the session {name} on {host}: {}", shown()), ""),
            _ => Failure::new(
                format!("{host}: {}", printable(why.as_bytes(), SAID_CHARS_MAX)),
                "Update the older of the two roves.",
            ),
        }
    }

    fn none(&self, facts: &Facts) -> Failure {
        let host = &self.on_machine(facts);
        let what = match facts.get("SOCKET") {
            Some(why) => {
                let why = printable(why.as_bytes(), SAID_CHARS_MAX);
                format!("no session of yours can be found on {host}: {why}")
            }
            None => {
                let up = facts.get("AT").and_then(|at| at.split(' ').nth(2)?.parse().ok());
                let up = up.map(|seconds| format!("; it was started {} ago", span(seconds)));
                format!("there are no sessions of yours on {host}{}", up.unwrap_or_default())
            }
        };
        Failure::new(what, "")
    }

    /// The session that has begun cannot be attached to later.
    pub(super) fn no_socket(&self, facts: &Facts) -> Option<String> {
        let why = printable(facts.get("SOCKET")?.as_bytes(), SAID_CHARS_MAX);
        Some(format!("This session cannot be attached to later: {why}"))
    }

    /// A server of a rove that is too old for what was asked.
    pub(super) fn too_old(&self, version: &str) -> Failure {
        let version = printable(version.as_bytes(), 40);
        Failure::new(
            format!("{} has {version}, which keeps no sessions to come back to", self.host),
            format!("A newer one: {}", self.install_line(&[])),
        )
    }

    /// No server there keeps sessions.
    pub(super) fn no_sessions(&self, facts: &Facts) -> Failure {
        let what = match self.broken(facts) {
            Some(broken) => broken,
            None => format!("{} has no rove, so it keeps no sessions to come back to", self.host),
        };
        Failure::new(what, format!("Copy one there: {}", self.install_line(&[])))
    }

    /// A line of `rove attach`, `ls` or `kill` for a session there, with the user's options.
    pub(crate) fn session_line(&self, command: &str, more: &[&str], name: &str) -> String {
        let mut words = vec![OsString::from("rove"), command.into()];
        let mut host = self.host.as_str();
        match &self.via {
            Via::Local => host = "",
            Via::Ssh(program) => {
                if *program != ["ssh"] {
                    words.push(format!("--ssh={}", quoted(program)).into());
                }
                words.extend(self.openssh_options().map(OsString::from));
                if let Server::Rove(line) = &self.request.server {
                    let line = line.to_string_lossy();
                    let program = line.strip_suffix(" server").unwrap_or(&line);
                    words.push(format!("--server={program}").into());
                }
            }
        }
        words.extend(more.iter().map(OsString::from));
        let target = match name {
            "" => host.to_owned(),
            name if host.contains(':') && !host.contains('[') => format!("[{host}]:{name}"),
            name => format!("{host}:{name}"),
        };
        words.extend((!target.is_empty()).then(|| target.into()));
        quoted(words)
    }

    /// The host, and its machine's own name where the user calls it by another.
    pub(crate) fn on_machine(&self, facts: &Facts) -> String {
        let host = &self.host;
        let Some(machine) = facts.get("AT").and_then(|at| at.split(' ').next()) else {
            return host.clone();
        };
        match self.via {
            Via::Local => host.clone(),
            Via::Ssh(_) => named(host, &printable(machine.as_bytes(), MACHINE_CHARS_MAX)),
        }
    }

    /// Says where a session is that is gone back to, if the machine's own name is another than the user's.
    pub(super) fn tell_place(&self, facts: &Facts, trace: &Trace) {
        let on = self.on_machine(facts);
        if on != self.host {
            trace.warn(format_args!("going back to a session on {on}"));
        }
    }

    /// Says whether it was another machine last time.
    pub(super) fn tell_machine(&self, facts: &Facts, trace: &Trace) {
        let Some(at) = facts.get("AT") else { return };
        let mut words = at.split(' ');
        let (Some(name), Some(machine)) = (words.next(), words.next()) else { return };
        let (host, name) = (&self.host, printable(name.as_bytes(), MACHINE_CHARS_MAX));
        let before = self.hosts.as_ref().map(|hosts| hosts.machine(host, machine, &name));
        match before {
            Some(Ok(Some(before))) => trace.warn(format_args!(
                "{host} is another machine than last time: {name}, then {before}; sessions on one \
                 are not found on the other"
            )),
            Some(Err(error)) => trace.step(format_args!("cannot remember the machine: {error}")),
            Some(Ok(None)) | None => {}
        }
        trace.step(format_args!("{host} is the machine {name}"));
    }
}

/// A host, and its own name where the user calls it by another.
fn named(host: &str, machine: &str) -> String {
    let name = host.rsplit('@').next().unwrap_or(host);
    let short = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    match short(name) == short(machine) {
        true => host.to_owned(),
        false => format!("{host} ({machine})"),
    }
}

fn listed(names: &[Name]) -> String {
    match names {
        [] => "others".to_owned(),
        [only] => only.to_string(),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(Name::as_str).collect();
            format!("{} and {last}", first.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_of_another_name() {
        for (host, machine, shown) in [
            ("build7", "build7", "build7"),
            ("me@build7.example.org", "BUILD7", "me@build7.example.org"),
            ("build", "node12", "build (node12)"),
        ] {
            assert_eq!(named(host, machine), shown);
        }
    }
}
