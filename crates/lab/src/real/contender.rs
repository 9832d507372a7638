//! The programs that experiments compare, and how each is started over an emulated link, as its user would.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::StatVfsMountFlags;
use serde_json::Value;

use crate::demo::shell_word;
use crate::net::FAR;

/// A program that gives a shell on another host.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Its name in tables.
    pub name: String,
    /// Which it is.
    pub kind: Kind,
}

/// How a program is started.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// OpenSSH.
    Ssh(Ssh),
    /// Stock mosh.
    Mosh,
    /// rove between two roves.
    Rove(Wire),
    /// Any other: the words of its client.
    Other(Vec<String>),
}

/// An OpenSSH.
#[derive(Clone, Debug, PartialEq)]
pub struct Ssh {
    /// TCP's congestion control at both ends.
    pub congestion: &'static str,
    /// Whether keystrokes are hidden among others.
    pub chaff: Chaff,
    /// Where another OpenSSH than the system's is unpacked.
    pub root: Option<PathBuf>,
    /// Another server than its sshd.
    pub daemon: Option<PathBuf>,
}

/// Whether ssh hides the times of keystrokes (ssh_config(5), ObscureKeystrokeTiming).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Chaff {
    /// As the program is set up: it does, if it can.
    Default,
    /// It does not.
    Off,
}

/// The wire that rove uses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wire {
    /// Its own.
    Native,
    /// mosh's.
    Mosh,
}

/// Whether local echo is shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Echo {
    /// Never.
    Never,
    /// As the program does by itself.
    Default,
}

impl Contender {
    /// OpenSSH with this congestion control.
    pub fn ssh(congestion: &'static str) -> Contender {
        Contender { name: format!("ssh ({congestion})"), kind: Kind::Ssh(Ssh::over(congestion)) }
    }

    /// Stock mosh.
    pub fn mosh() -> Contender {
        Contender { name: "mosh".to_owned(), kind: Kind::Mosh }
    }

    /// rove on one of its wires.
    pub fn rove(wire: Wire) -> Contender {
        let name = match wire {
            Wire::Native => "rove",
            Wire::Mosh => "rove (mosh's wire)",
        };
        Contender { name: name.to_owned(), kind: Kind::Rove(wire) }
    }

    /// ssh, mosh and rove on both wires; ssh where users can log in, with each congestion control that the kernel
    /// lets us have.
    pub fn all() -> Vec<Contender> {
        let controls = CONTROLS.into_iter().filter(|control| lets_log_in() && is_usable(control));
        let mut all: Vec<Contender> = controls.map(Contender::ssh).collect();
        all.extend([Contender::mosh(), Contender::rove(Wire::Native), Contender::rove(Wire::Mosh)]);
        all
    }

    /// Another program, from `{"name": "...", "client": ["word", ...]}`. In the words `{host}` stands for the far
    /// end's address, `{ssh}` for an ssh command line that runs commands there without logging in, `{config}` for
    /// the file of a configuration with which a real ssh logs in (an sshd is started then), `{line}` for the remote
    /// command as one line for a shell, and `{command}`, a word of its own, for its words.
    ///
    /// # Errors
    /// If it is no such JSON.
    pub fn from_json(text: &str) -> Result<Contender, ContenderError> {
        let value: Value = serde_json::from_str(text).map_err(ContenderError::NotJson)?;
        let name = value["name"].as_str().ok_or(ContenderError::NameMissing)?.to_owned();
        let words = value["client"].as_array().ok_or(ContenderError::ClientMissing)?;
        let words: Option<Vec<String>> =
            words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
        let runs = |word: &String| word == "{command}" || word.contains("{line}");
        let words = words.filter(|words| words.iter().any(runs));
        let words = words.ok_or(ContenderError::CommandMissing)?;
        Ok(Contender { name, kind: Kind::Other(words) })
    }

    /// The OpenSSH whose sshd it needs at the far end, if any.
    pub fn sshd(&self) -> Option<Ssh> {
        match &self.kind {
            Kind::Ssh(ssh) => Some(ssh.clone()),
            Kind::Other(words) if words.iter().any(|word| word.contains("{config}")) => {
                Some(Ssh::over(usual()))
            }
            Kind::Other(_) | Kind::Mosh | Kind::Rove(_) => None,
        }
    }

    /// The client's command line, up to where it starts and its environment.
    ///
    /// # Errors
    /// If a path is not UTF-8.
    pub fn client(
        &self,
        echo: Echo,
        ssh: &str,
        config: &Path,
        remote: &[OsString],
    ) -> io::Result<Command> {
        let host = FAR.to_string();
        let mut command = match &self.kind {
            Kind::Ssh(ssh) => {
                let mut command = Command::new(ssh.program("usr/bin/ssh"));
                command.arg("-F").arg(config).args(["-tt", &host, "--", &line(remote)]);
                command
            }
            Kind::Mosh => {
                let mut command = Command::new("mosh");
                command.arg(format!("--ssh={ssh}"));
                command.args(["--experimental-remote-ip=local", "--family=inet", &host, "--"]);
                command.args(remote);
                command
            }
            Kind::Rove(wire) => {
                let mut command = Command::new("rove");
                command.arg(format!("--ssh={ssh}"));
                command.arg(match wire {
                    Wire::Native => "--native",
                    Wire::Mosh => "--mosh-wire",
                });
                command.args([&host, "--"]).args(remote);
                command
            }
            Kind::Other(words) => other(words, ssh, config, &host, remote),
        };
        if echo == Echo::Never {
            command.env("MOSH_PREDICTION_DISPLAY", "never");
        }
        Ok(command)
    }
}

/// Why a text describes no program.
#[derive(Debug)]
pub enum ContenderError {
    /// It is not JSON.
    NotJson(serde_json::Error),
    /// It has no name.
    NameMissing,
    /// It has no command line.
    ClientMissing,
    /// A word of its command line is not a string, or none stands for the remote command.
    CommandMissing,
}

impl fmt::Display for ContenderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ContenderError::NotJson(error) => return error.fmt(out),
            ContenderError::NameMissing => "no \"name\"",
            ContenderError::ClientMissing => "no \"client\" with a list of words",
            ContenderError::CommandMissing => {
                "\"client\" needs {command} or {line}, and words only"
            }
        })
    }
}

impl std::error::Error for ContenderError {}

impl Ssh {
    /// The system's, as it is set up, with this congestion control.
    pub fn over(congestion: &'static str) -> Ssh {
        Ssh { congestion, chaff: Chaff::Default, root: None, daemon: None }
    }

    /// One of its programs: the system's, or one below its root.
    pub fn program(&self, path: &str) -> PathBuf {
        self.root.as_deref().unwrap_or(Path::new("/")).join(path)
    }
}

fn other(words: &[String], ssh: &str, config: &Path, host: &str, remote: &[OsString]) -> Command {
    let (config, line) = (config.to_string_lossy(), line(remote));
    let mut all: Vec<OsString> = Vec::new();
    for word in words {
        match word.as_str() {
            "{command}" => all.extend(remote.iter().cloned()),
            word => {
                let word = word.replace("{ssh}", ssh).replace("{host}", host);
                all.push(word.replace("{config}", &config).replace("{line}", &line).into());
            }
        }
    }
    let mut command = Command::new(&all[0]);
    command.args(&all[1..]);
    command
}

/// A command as a shell reads it: what ssh needs, which joins its words.
fn line(remote: &[OsString]) -> String {
    let words: Vec<String> =
        remote.iter().map(|word| shell_word(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// Whether networks of our own may use this congestion control: it is the system's, or one allowed for all where
/// /proc/sys can be written.
pub(crate) fn is_usable(control: &str) -> bool {
    let holds = |path: &str| {
        let names = std::fs::read_to_string(path);
        names.is_ok_and(|names| names.split_whitespace().any(|name| name == control))
    };
    let writable = || {
        let system = rustix::fs::statvfs(CONGESTION_CONTROL);
        system.is_ok_and(|system| !system.f_flag.contains(StatVfsMountFlags::RDONLY))
    };
    holds(CONGESTION_CONTROL)
        || holds("/proc/sys/net/ipv4/tcp_allowed_congestion_control") && writable()
}

/// Whether an sshd of ours can log users in: only for root, and not for the root of a namespace with one user.
pub(crate) fn lets_log_in() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let users = map.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok());
    rustix::process::geteuid().is_root() && users.sum::<u64>() > 1
}

/// The one to use where it does not matter.
pub(crate) fn usual() -> &'static str {
    CONTROLS.into_iter().find(|control| is_usable(control)).unwrap_or("reno")
}

/// A note on programs that are missing here.
pub fn missing() -> Vec<String> {
    if !lets_log_in() {
        return vec!["ssh is missing: an sshd that lets users in needs root.".to_owned()];
    }
    let gone = CONTROLS.into_iter().filter(|control| !is_usable(control));
    gone.map(|control| {
        format!(
            "ssh over {control} is missing: this kernel does not let networks of our own use it (as root: `modprobe \
             tcp_{control}; sysctl net.ipv4.tcp_allowed_congestion_control='reno cubic bbr'`)."
        )
    })
    .collect()
}

/// The congestion control of new connections in the network of the process that reads or writes it.
pub(crate) const CONGESTION_CONTROL: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// TCP's congestion controls that are compared.
pub(crate) const CONTROLS: [&str; 2] = ["cubic", "bbr"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_configured() {
        let text = r#"{"name": "x", "client": ["x", "--via={ssh}", "{host}", "{command}", "-v"]}"#;
        let other = Contender::from_json(text).unwrap();
        let remote = ["a".into(), "b c".into()];
        let command = other.client(Echo::Never, "s -q", Path::new("f"), &remote).unwrap();
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(words, ["--via=s -q", "10.99.2.1", "a", "b c", "-v"]);
        assert_eq!(other.sshd(), None);
        let text = r#"{"name": "x", "client": ["ssh", "-F", "{config}", "{host}", "{line}"]}"#;
        let other = Contender::from_json(text).unwrap();
        let command = other.client(Echo::Never, "s", Path::new("f"), &remote).unwrap();
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(words, ["-F", "f", "10.99.2.1", "'a' 'b c'"]);
        assert!(other.sshd().is_some());
        for text in
            ["", "{}", r#"{"name": "x", "client": ["x"]}"#, r#"{"name": "x", "client": [1]}"#]
        {
            assert!(Contender::from_json(text).is_err(), "{text}");
        }
    }
}
