//! The login records (utmp) by which `who` shows a session: kept through the `utempter` helper, which
//! may write them for whoever holds a terminal's master side. Without the helper there are no records.
//!
//! A server that is killed outright (SIGKILL) leaves its record: nobody is left to take it back. The
//! next login on that terminal overwrites it; until then `who` may show it.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::helper;

/// Keeps the login record of one terminal. Nothing here waits but [`Records::close`].
#[derive(Debug)]
pub struct Records {
    helper: Option<PathBuf>,
    master: OwnedFd,
    /// How the record names the server: `rove [PID]`.
    name: String,
    /// The helper at work; the next starts when it is done.
    running: Option<Child>,
    shown: Option<Presence>,
    wanted: Option<Presence>,
}

/// What a record says of the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Presence {
    /// Heard of lately, from this address.
    Attached(IpAddr),
    /// Not heard of lately.
    Detached,
}

impl Records {
    /// Starts without a record. `master` is the terminal's; `program` is the word before the process id.
    pub fn new(master: &impl AsFd, program: &str) -> std::io::Result<Records> {
        let helper = HELPERS.iter().map(PathBuf::from).find(|helper| helper.exists());
        Records::with_helper(helper, master, program)
    }

    fn with_helper(
        helper: Option<PathBuf>,
        master: &impl AsFd,
        program: &str,
    ) -> std::io::Result<Records> {
        Ok(Records {
            helper,
            master: master.as_fd().try_clone_to_owned()?,
            name: format!("{program} [{}]", std::process::id()),
            running: None,
            shown: None,
            wanted: None,
        })
    }

    /// Says how the record should read. It does so soon; of several wishes the last counts.
    pub fn show(&mut self, presence: Presence) {
        self.wanted = Some(presence);
        self.advance();
    }

    /// Goes on where a helper has ended: to be called when a child process has.
    pub fn advance(&mut self) {
        if let Some(child) = &mut self.running {
            if matches!(child.try_wait(), Ok(None)) {
                return;
            }
            self.running = None;
        }
        if let Some(presence) = self.wanted
            && self.shown != self.wanted
        {
            self.shown = self.wanted;
            self.running = self.start(&["add", &self.host(presence)]);
        }
    }

    /// Takes the record back, and waits for that a little.
    pub fn close(mut self) {
        if let Some(child) = self.running.take() {
            helper::finish(child, CLOSING_TIME_MAX);
        }
        if self.shown.is_some()
            && let Some(child) = self.start(&["del"])
        {
            helper::finish(child, CLOSING_TIME_MAX);
        }
    }

    /// The record's host column (`HOST via rove [PID]`, as stock has it with its own name).
    fn host(&self, presence: Presence) -> String {
        match presence {
            Presence::Attached(address) => format!("{address} via {}", self.name),
            Presence::Detached => self.name.clone(),
        }
    }

    /// The helper wants the master as its standard input and output, and `add HOST` or `del`.
    fn start(&self, words: &[&str]) -> Option<Child> {
        let master = || self.master.try_clone().map(Stdio::from);
        Command::new(self.helper.as_ref()?)
            .args(words)
            .env_clear()
            .stdin(master().ok()?)
            .stdout(master().ok()?)
            .stderr(Stdio::null())
            .spawn()
            .ok()
    }
}

/// How long the end of a session may wait for each run of the helper, which takes a few milliseconds.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(1);

/// Where libutempter's helper lives: Debian and Ubuntu by architecture, Fedora and Arch, SUSE.
const HELPERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/utempter/utempter",
    "/usr/lib/aarch64-linux-gnu/utempter/utempter",
    "/usr/lib/arm-linux-gnueabihf/utempter/utempter",
    "/usr/libexec/utempter/utempter",
    "/usr/lib/utempter/utempter",
    "/usr/lib64/utempter/utempter",
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use rove_term::Size;

    use super::super::pty::Pty;
    use super::*;

    /// Waits for the helper that `show` started, as the driver does by SIGCHLD.
    fn settle(records: &mut Records) {
        if let Some(child) = &mut records.running {
            child.wait().unwrap();
        }
        records.advance();
    }

    #[test]
    fn the_helper_is_told_what_changes() {
        let directory = std::env::temp_dir().join(format!("rove-records-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let [helper, log, go] = ["helper", "log", "go"].map(|name| directory.join(name));
        let script = format!(
            "#!/bin/sh\nuntil [ -e {} ]; do :; done; [ -t 0 ] && [ -t 1 ] && echo \"$@\" >>{}\n",
            go.display(),
            log.display()
        );
        fs::write(&helper, script).unwrap();
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o700)).unwrap();

        let pty = Pty::open(Size::clamped(24, 80)).unwrap();
        let mut records = Records::with_helper(Some(helper), &pty, "rove").unwrap();
        let attached = Presence::Attached("2001:db8::7".parse().unwrap());
        records.show(Presence::Detached);
        // Both come while the helper runs: the last counts.
        records.show(Presence::Attached("192.0.2.7".parse().unwrap()));
        records.show(attached);
        fs::write(&go, "").unwrap();
        settle(&mut records);
        settle(&mut records);
        records.show(attached);
        records.show(Presence::Detached);
        records.close();

        let name = format!("rove [{}]", std::process::id());
        let told = fs::read_to_string(&log).unwrap();
        assert_eq!(told, format!("add {name}\nadd 2001:db8::7 via {name}\nadd {name}\ndel\n"));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn without_a_helper_nothing_is_done() {
        let pty = Pty::open(Size::clamped(24, 80)).unwrap();
        let mut records = Records::with_helper(None, &pty, "rove").unwrap();
        records.show(Presence::Detached);
        records.close();
    }
}
