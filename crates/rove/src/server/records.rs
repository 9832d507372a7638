//! The login records (utmp) by which `who` shows a session: kept through the `utempter` helper, which may
//! write them for the holder of a terminal's master side. Without the helper there are no records.
//!
//! A server that is killed outright (SIGKILL) leaves its record. The next server of the same user removes it
//! ([`take_back_lost`]). The helper does that only for the holder of the record's terminal, so the server
//! opens terminals until it gets that one: the system gives the lowest free number. If another program has
//! the terminal by then, the record stays until somebody logs in on it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rove_term::Size;
use rustix::process::{Pid, test_kill_process};

use crate::os::account::{self, LoginRecord};
use crate::os::clock::Clock;
use crate::os::pty::Pty;
use crate::server::helper;

/// Removes the records that gone servers of this user have left; `own` is this server's terminal. It takes a
/// second at most: the client waits meanwhile. Call it in a process with one thread.
pub(super) fn take_back_lost(user: &OsStr, own: &Pty) {
    let (Some(helper), Some(own)) = (find_helper(), own.number()) else { return };
    let records = account::login_records();
    let of_user = records.iter().filter(|record| record.user == user);
    let lost = of_user.filter_map(|it| lost_terminal(it, is_gone));
    let lost = lost.filter(|number| is_in_reach(*number, own)).collect();
    let clock = Clock::start();
    let begun = clock.now();
    take_back(&helper, lost, || TAKING_BACK_TIME_MAX.saturating_sub(clock.now().since(begun)));
}

/// Whether a terminal may be among the next [`TERMINALS_MAX`] that the system gives, after this server's own.
fn is_in_reach(number: u32, own: u32) -> bool {
    number <= own.saturating_add(TERMINALS_MAX)
}

/// Removes the records of these terminals. `left` is the time that remains.
fn take_back(helper: &Path, mut lost: BTreeSet<u32>, left: impl Fn() -> Duration) {
    // Each is held until all is done: else the system would give it once more.
    let mut held = Vec::new();
    while let Some(&highest) = lost.last()
        && held.len() < TERMINALS_MAX as usize
        && !left().is_zero()
    {
        let Ok(terminal) = Pty::open(Size::DEFAULT) else { return };
        let Some(number) = terminal.number().filter(|number| *number <= highest) else { return };
        if lost.remove(&number)
            && let Some(child) = start(helper, &["del"], &terminal)
        {
            helper::finish(child, left());
        }
        held.push(terminal);
    }
}

/// The most terminals to open to find those of lost records.
const TERMINALS_MAX: u32 = 64;

/// How long the start of a session may wait for all lost records. Each takes a few milliseconds; the others
/// wait for the next start.
const TAKING_BACK_TIME_MAX: Duration = Duration::from_secs(1);

/// The number of the terminal of a record, if a server made it (`rove [PID]`, `HOST via rove [PID]`) that is gone.
fn lost_terminal(record: &LoginRecord, is_gone: impl Fn(u32) -> bool) -> Option<u32> {
    let (host, line) = (record.host.to_str()?, record.line.to_str()?);
    let name = host.rsplit(" via ").next()?;
    let pid = NAMES.iter().find_map(|program| name.strip_prefix(program)?.strip_prefix(" ["));
    let pid = pid?.strip_suffix(']')?.parse().ok()?;
    let number = line.strip_prefix("pts/")?.parse().ok()?;
    is_gone(pid).then_some(number)
}

/// The names that servers have in records: by whom they were started.
pub(super) const NAMES: [&str; 2] = ["rove", "mosh"];

/// Whether there is no process of this number.
fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}

fn find_helper() -> Option<PathBuf> {
    HELPERS.iter().map(PathBuf::from).find(|helper| helper.exists())
}

/// The helper wants the master as its standard input and output, and `add HOST` or `del`.
fn start(helper: &Path, words: &[&str], master: &impl AsFd) -> Option<Child> {
    let stream = || master.as_fd().try_clone_to_owned().map(Stdio::from);
    Command::new(helper)
        .args(words)
        .env_clear()
        .stdin(stream().ok()?)
        .stdout(stream().ok()?)
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

/// Keeps the login record of one terminal. Nothing here waits but [`Records::close`].
#[derive(Debug)]
pub(super) struct Records {
    helper: Option<PathBuf>,
    /// `None` once the terminal is let go.
    master: Option<OwnedFd>,
    /// How the record names the server: `rove [PID]`.
    name: String,
    /// The helper at work; the next starts when it is done.
    running: Option<Child>,
    shown: Option<Presence>,
    wanted: Option<Presence>,
    /// Nothing is shown any more.
    is_over: bool,
}

/// The state of the client in a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Presence {
    /// Heard of lately, from this address.
    Attached(IpAddr),
    /// Not heard of lately.
    Detached,
}

impl Records {
    /// Starts without a record. `master` is the terminal's; `program` is the word before the process id.
    pub(super) fn new(master: &impl AsFd, program: &str) -> std::io::Result<Records> {
        Records::with_helper(find_helper(), master, program)
    }

    fn with_helper(
        helper: Option<PathBuf>,
        master: &impl AsFd,
        program: &str,
    ) -> std::io::Result<Records> {
        Ok(Records {
            helper,
            master: Some(master.as_fd().try_clone_to_owned()?),
            name: format!("{program} [{}]", std::process::id()),
            running: None,
            shown: None,
            wanted: None,
            is_over: false,
        })
    }

    /// Sets how the record should read. The helper follows soon; the last call counts.
    pub(super) fn show(&mut self, presence: Presence) {
        self.wanted = Some(presence);
        self.advance();
    }

    /// Continues after a helper has ended: call it when a child process has.
    pub(super) fn advance(&mut self) {
        if let Some(child) = &mut self.running {
            if matches!(child.try_wait(), Ok(None)) {
                return;
            }
            self.running = None;
        }
        if self.is_over {
            if self.shown.take().is_some() {
                self.running = self.start(&["del"]);
            }
            self.master = None;
            return;
        }
        if let Some(presence) = self.wanted
            && self.shown != self.wanted
        {
            self.shown = self.wanted;
            self.running = self.start(&["add", &self.host(presence)]);
        }
    }

    /// Begins to remove the record, and lets the terminal go: nothing is shown any more.
    pub(super) fn remove(&mut self) {
        self.is_over = true;
        self.advance();
    }

    /// Removes the record, and waits briefly for that.
    pub(super) fn close(mut self) {
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

    fn start(&self, words: &[&str]) -> Option<Child> {
        start(self.helper.as_ref()?, words, self.master.as_ref()?)
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

    use super::*;

    /// Waits for the helper that `show` started, as the driver does by SIGCHLD.
    fn settle(records: &mut Records) {
        if let Some(child) = &mut records.running {
            child.wait().unwrap();
        }
        records.advance();
    }

    /// A directory of this process's own.
    fn directory(name: &str) -> PathBuf {
        let name = format!("rove-records-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    /// No more terminals are opened than the limit says, and no helper runs once the time is over.
    #[test]
    fn lost_records_are_taken_back_within_limits() {
        let directory = directory("lost");
        let [helper, log] = ["helper", "log"].map(|name| directory.join(name));
        let script = format!("#!/bin/sh\n[ -t 0 ] && echo \"$@\" >>{}\n", log.display());
        fs::write(&helper, script).unwrap();
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o700)).unwrap();
        // Whichever terminals the system gives. The time is asked for before each is opened, and for each helper.
        let all: BTreeSet<u32> = (0..100_000).collect();
        for (asked_max, taken_back) in [(usize::MAX, TERMINALS_MAX as usize), (6, 3), (0, 0)] {
            fs::write(&log, "").unwrap();
            let asked = std::cell::Cell::new(0);
            take_back(&helper, all.clone(), || {
                asked.set(asked.get() + 1);
                if asked.get() > asked_max { Duration::ZERO } else { Duration::from_secs(60) }
            });
            let told = fs::read_to_string(&log).unwrap();
            assert_eq!(told, "del\n".repeat(taken_back), "{asked_max}");
        }
        fs::remove_dir_all(&directory).unwrap();
        for (number, own, is) in [(0, 5, true), (69, 5, true), (70, 5, false), (9, u32::MAX, true)]
        {
            assert_eq!(is_in_reach(number, own), is, "{number} {own}");
        }
    }

    #[test]
    fn the_helper_is_told_what_changes() {
        let directory = directory("told");
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
    fn records_whose_server_is_gone() {
        for (line, host, lost) in [
            ("pts/7", "rove [42]", Some(7)),
            ("pts/7", "192.0.2.1 via rove [42]", Some(7)),
            ("pts/0", "2001:db8::7 via mosh [42]", Some(0)),
            // Another server's, which lives.
            ("pts/7", "rove [43]", None),
            ("pts/7", "192.0.2.1", None),
            ("pts/7", "rove", None),
            ("pts/7", "rove [42] ", None),
            ("pts/7", "rove [x]", None),
            ("pts/7", "rove [-42]", None),
            ("pts/7", "tmux(42).%1", None),
            ("tty1", "rove [42]", None),
            ("pts/x", "rove [42]", None),
            ("pts/4294967296", "rove [42]", None),
        ] {
            let record = LoginRecord { user: "u".into(), line: line.into(), host: host.into() };
            assert_eq!(lost_terminal(&record, |pid| pid == 42), lost, "{line} {host}");
        }
        assert!(!is_gone(std::process::id()) && !is_gone(1));
        assert!(!is_gone(0) && !is_gone(u32::MAX), "no process, and all of them");
    }

    #[test]
    fn without_a_helper_nothing_is_done() {
        let pty = Pty::open(Size::clamped(24, 80)).unwrap();
        let mut records = Records::with_helper(None, &pty, "rove").unwrap();
        records.show(Presence::Detached);
        records.close();
    }
}
