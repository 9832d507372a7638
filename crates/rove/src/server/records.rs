//! The login records (utmp) by which `who` shows a session: kept through the `utempter` helper, which
//! may write them for whoever holds a terminal's master side. Without the helper there are no records.
//!
//! A server that is killed outright (SIGKILL) leaves its record: nobody is left to take it back. The
//! next login on that terminal overwrites it; until then `who` may show it.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::helper;

/// Keeps the login record of one terminal. Nothing here waits but [`Records::close`].
#[derive(Debug)]
pub struct Records {
    helper: Option<&'static Path>,
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
        Ok(Records {
            helper: HELPERS.iter().map(Path::new).find(|helper| helper.exists()),
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
        Command::new(self.helper?)
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
