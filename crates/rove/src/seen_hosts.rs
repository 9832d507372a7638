//! Remembers hosts that have answered with a rove server, so that the user hears of one that no longer does:
//! an attacker may have removed it to force the weaker protocol (threats row 22).
//!
//! A file of the user's own, a host a line, named as the user named it to rove. It is a convenience: if it
//! cannot be read or written, nothing is remembered, and nothing else changes.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use crate::os::private;

/// The most hosts to remember; the oldest are forgotten first.
const HOSTS_MAX: usize = 1000;

/// The most octets of the file to read: that many names of the greatest length.
const FILE_BYTES_MAX: u64 = HOSTS_MAX as u64 * 256;

/// The hosts of this user.
#[derive(Clone, Debug)]
pub struct Hosts {
    file: PathBuf,
}

impl Hosts {
    /// In the user's state directory: `$XDG_STATE_HOME`, else `$HOME/.local/state`. `None` without either.
    pub fn of_user(state: Option<OsString>, home: Option<OsString>) -> Option<Hosts> {
        let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
        let state = absolute(state).or_else(|| Some(absolute(home)?.join(".local/state")))?;
        Some(Hosts { file: state.join("rove/hosts") })
    }

    /// The hosts to which the user wants no server copied, in a file beside.
    pub fn declined(&self) -> Hosts {
        Hosts { file: self.file.with_file_name("declined") }
    }

    /// Remembers which machine a host's name leads to. Returns the name of another to which it led before.
    ///
    /// # Errors
    /// The system's.
    pub fn machine(&self, host: &str, machine: &str, name: &str) -> io::Result<Option<String>> {
        let is_plain = |text: &str| !text.contains(|c: char| c.is_control() || c.is_whitespace());
        if ![host, machine, name].iter().all(|text| text.len() <= 255 && is_plain(text)) {
            return Ok(None);
        }
        let machines = Hosts { file: self.file.with_file_name("machines") };
        let held = machines.read()?;
        let of_host = |line: &&str| line.split(' ').next() == Some(host);
        let line = format!("{host} {machine} {name}");
        let before = held.lines().find(of_host);
        if before == Some(&line) {
            return Ok(None);
        }
        let others = held.lines().filter(|line| !of_host(line));
        machines.write(&others.chain([line.as_str()]).collect::<Vec<_>>())?;
        let was = before.map(|line| line.split(' ').collect::<Vec<_>>());
        Ok(was.filter(|was| was.get(1) != Some(&machine)).map(|was| was[was.len() - 1].to_owned()))
    }

    /// The hosts of which something was told today, in a file beside.
    pub fn told(&self) -> Hosts {
        Hosts { file: self.file.with_file_name("told") }
    }

    /// Whether nothing was told of this host on this day, counted from 1970; from now on something was. Other days are
    /// forgotten.
    ///
    /// # Errors
    /// The system's.
    pub fn is_first_on(&self, day: i64, host: &str) -> io::Result<bool> {
        let held = self.read()?;
        let begin = format!("{day} ");
        let today = held.lines().filter(|line| line.starts_with(&begin));
        let line = begin.clone() + host;
        if today.clone().any(|told| told == line) {
            return Ok(false);
        }
        self.write(&today.chain([line.as_str()]).collect::<Vec<_>>())?;
        Ok(true)
    }

    /// The file that has them.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Whether this host has answered with rove before.
    ///
    /// # Errors
    /// The system's, except for a missing file.
    pub fn knows(&self, host: &str) -> io::Result<bool> {
        Ok(self.read()?.lines().any(|line| line == host))
    }

    /// Remembers that this host answers with rove.
    ///
    /// # Errors
    /// The system's.
    pub fn remember(&self, host: &str) -> io::Result<()> {
        let held = self.read()?;
        if host.len() > 255 || host.contains(char::is_control) || held.lines().any(|l| l == host) {
            return Ok(());
        }
        self.write(&held.lines().chain([host]).collect::<Vec<_>>())
    }

    fn write(&self, lines: &[&str]) -> io::Result<()> {
        let mut lines = lines.to_vec();
        lines.drain(..lines.len().saturating_sub(HOSTS_MAX));
        let directory = self.file.parent().unwrap_or(Path::new("/"));
        private::create_directory(directory)?;
        // Whole or not at all, and of two at once the later one.
        let fresh = self.file.with_extension(std::process::id().to_string());
        let mut file = private::create_file(&fresh)?;
        file.write_all((lines.join("\n") + "\n").as_bytes())?;
        fs::rename(&fresh, &self.file)
    }

    fn read(&self) -> io::Result<String> {
        let file = match fs::File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(error),
        };
        let mut octets = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut octets)?;
        Ok(String::from_utf8_lossy(&octets).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> (PathBuf, Hosts) {
        let directory = std::env::temp_dir().join(format!("rove-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let hosts = Hosts::of_user(Some(directory.clone().into()), None).unwrap();
        (directory, hosts)
    }

    #[test]
    fn places() {
        let at = |name: &str| Some(std::env::temp_dir().join(name));
        for (state, home, file) in [
            (at("s"), at("h"), at("s/rove/hosts")),
            (None, at("h"), at("h/.local/state/rove/hosts")),
            (Some("relative".into()), at("h"), at("h/.local/state/rove/hosts")),
            (None, None, None),
            (Some("".into()), Some("".into()), None),
        ] {
            let said = format!("{state:?} {home:?}");
            let [state, home] = [state, home].map(|path| path.map(PathBuf::into_os_string));
            let hosts = Hosts::of_user(state, home);
            assert_eq!(hosts.as_ref().map(Hosts::file), file.as_deref(), "{said}");
        }
    }

    #[test]
    fn hosts_are_remembered_once() {
        let (directory, hosts) = scratch("hosts");
        assert!(!hosts.knows("build7").unwrap());
        for host in ["build7", "me@build8", "build7", "a\nb"] {
            hosts.remember(host).unwrap();
        }
        assert_eq!(fs::read_to_string(hosts.file()).unwrap(), "build7\nme@build8\n");
        for (host, known) in
            [("build7", true), ("me@build8", true), ("build8", false), ("a", false)]
        {
            assert_eq!(hosts.knows(host).unwrap(), known, "{host}");
        }
        fs::remove_dir_all(directory).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn hosts_are_remembered_for_their_user_alone() {
        use std::os::unix::fs::PermissionsExt;

        let (directory, hosts) = scratch("private-hosts");
        hosts.remember("build7").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(hosts.file()), 0o600);
        assert_eq!(mode(hosts.file().parent().unwrap()), 0o700);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_name_that_leads_to_another_machine() {
        let (directory, hosts) = scratch("machines");
        let machine = |host, machine, name| hosts.machine(host, machine, name).unwrap();
        assert_eq!(machine("build", "ab", "node1"), None);
        assert_eq!(machine("other", "cd", "node2"), None);
        assert_eq!(machine("build", "ab", "node1"), None);
        assert_eq!(machine("build", "cd", "node2").as_deref(), Some("node1"));
        assert_eq!(machine("build", "cd", "renamed"), None);
        assert_eq!(machine("a b", "cd", "node2"), None);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn something_is_told_once_a_day() {
        let (directory, hosts) = scratch("told");
        let told = hosts.told();
        for (day, host, first) in [
            (20_000, "build7", true),
            (20_000, "build7", false),
            (20_000, "build8", true),
            (20_001, "build7", true),
            (20_001, "build7", false),
            (20_000, "build8", true),
        ] {
            assert_eq!(told.is_first_on(day, host).unwrap(), first, "{day} {host}");
        }
        assert_eq!(fs::read_to_string(told.file()).unwrap(), "20000 build8\n");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_first_are_forgotten() {
        let (directory, hosts) = scratch("many-hosts");
        (0..=HOSTS_MAX).for_each(|n| hosts.remember(&format!("host{n}")).unwrap());
        assert!(!hosts.knows("host0").unwrap() && hosts.knows("host1").unwrap());
        assert!(hosts.knows(&format!("host{HOSTS_MAX}")).unwrap());
        fs::remove_dir_all(directory).unwrap();
    }
}
