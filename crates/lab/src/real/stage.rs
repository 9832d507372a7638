//! A client and its server in two networks with an emulated path between them: starts both, and runs and ends the
//! session.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rove_term::{Dialect, Size, Terminal};

use super::contender::{CONGESTION_CONTROL, Chaff, Contender, Echo, Ssh, lets_log_in};
use crate::clock::Clock;
use crate::demo::{path_with, rove_program, shell_word};
use crate::net::scenario::Scenario;
use crate::net::{End, FAR, Net};
use crate::proc;
use crate::process::Owned;
use crate::run::{Program, Stranger, limited, look_again_later};
use crate::scratch::Scratch;
use crate::sys::open_pty;

/// A running session. All that was started in its networks is killed when it is dropped.
pub(crate) struct Stage {
    /// The client, on its terminal. Ends before all that it needs.
    pub client: Program,
    /// How long it took from the client's start until its program wrote its first word.
    pub took: Duration,
    /// The path.
    pub net: Net,
    /// Where the client is.
    at: End,
    sshd: Option<Owned>,
    networks: Networks,
    /// The path's scenario once it begins.
    path: Scenario,
    /// A directory of the session's own.
    pub scratch: Scratch,
}

/// The parts with which a session starts.
pub(crate) struct Setup<'a> {
    /// The program.
    pub contender: &'a Contender,
    /// Whether local echo is shown.
    pub echo: Echo,
    /// The words of the remote command.
    pub remote: Vec<OsString>,
    /// The user's window.
    pub size: Size,
    /// The OpenSSH whose sshd is at the far end: for the program, or for another one beside it.
    pub sshd: Option<Ssh>,
    /// The path.
    pub path: Scenario,
    /// Where packets that pass the near end are written, if anywhere.
    pub tape: Option<PathBuf>,
    /// Whether datagrams of servers are dropped from the start ([`Net::let_udp`]).
    pub drops_udp: bool,
}

impl<'a> Setup<'a> {
    /// A session without predictions whose program plays a recording (`rove-lab act`).
    ///
    /// # Errors
    /// If this program does not know its own path.
    pub(crate) fn playing(
        contender: &'a Contender,
        cast: &Path,
        size: Size,
        path: Scenario,
    ) -> io::Result<Setup<'a>> {
        let lab = std::env::current_exe()?;
        let remote = vec![lab.into(), "act".into(), cast.into()];
        Ok(Setup::new(contender, remote, size, path))
    }

    /// A session without predictions whose program is a script for sh.
    pub(crate) fn script(contender: &'a Contender, script: &str, path: Scenario) -> Setup<'a> {
        let remote = vec!["sh".into(), "-c".into(), script.into()];
        Setup::new(contender, remote, Size::DEFAULT, path)
    }

    fn new(
        contender: &'a Contender,
        remote: Vec<OsString>,
        size: Size,
        path: Scenario,
    ) -> Setup<'a> {
        let sshd = contender.sshd();
        let (echo, tape, drops_udp) = (Echo::Never, None, false);
        Setup { contender, echo, remote, size, sshd, path, tape, drops_udp }
    }
}

impl Stage {
    /// Starts the session, and waits until its program has written `ready`. The path takes its time from the
    /// beginning, since programs take one that grows longer for one with a queue, and does nothing else before
    /// [`Stage::begin`].
    ///
    /// # Errors
    /// If there can be no networks, or a program does not start.
    pub(crate) fn start(setup: Setup<'_>, scratch: Scratch, ready: &str) -> io::Result<Stage> {
        let tape = setup.tape.as_deref();
        let prepared = Prepared::new(setup.path, setup.sshd.as_ref(), tape, scratch)?;
        if setup.drops_udp {
            prepared.net.let_udp(false)?;
        }
        let (ssh, config) = (ssh_to(&prepared.net)?, prepared.scratch.join("ssh_config"));
        let command = setup.contender.client(setup.echo, &ssh, &config, &setup.remote)?;
        prepared.start(End::Near, command, setup.size, ready)
    }

    /// Starts a shell of this machine in one of the networks, on a line that is made from an `ssh` command line and
    /// the path of a configuration for OpenSSH's programs, beside an sshd at the far end; waits until it has
    /// written `ready$`.
    ///
    /// # Errors
    /// If there can be no networks, or a program does not start.
    pub(crate) fn shell(
        shell: Shell<'_>,
        scratch: Scratch,
        line: impl FnOnce(&str, &Path) -> String,
    ) -> io::Result<Stage> {
        let prepared = Prepared::new(shell.path, Some(shell.ssh), None, scratch)?;
        let line = line(&ssh_to(&prepared.net)?, &prepared.scratch.join("ssh_config"));
        let mut command = Command::new("sh");
        command.arg("-c").arg(line);
        prepared.start(shell.near, command, Size::DEFAULT, "ready$")
    }

    /// Starts another shell of this machine at the near end, on a line as [`Stage::shell`]'s and a terminal of its
    /// own.
    ///
    /// # Errors
    /// If it does not start.
    pub(crate) fn beside(&self, line: impl FnOnce(&str, &Path) -> String) -> io::Result<Program> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(line(&ssh_to(&self.net)?, &self.scratch.join("ssh_config")));
        surround(&mut command, &self.scratch)?;
        start_client(&self.net, End::Near, &command, Size::DEFAULT)
    }

    /// Begins the scenario, both ways by the same clock.
    pub(crate) fn begin(&self) {
        self.net.follow(&self.path);
    }

    /// Lets time pass, in which the client is watched.
    ///
    /// # Errors
    /// If its terminal fails.
    pub(crate) fn rest(&mut self, span: Duration) -> io::Result<()> {
        let clock = self.net.clock();
        let until = clock.now() + span;
        while clock.now() < until {
            self.client.pump(until.since(clock.now()))?;
        }
        Ok(())
    }

    /// Processes of one end that belong to the session: of the program compared, not what runs in it.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub(crate) fn processes(&self, end: End) -> io::Result<Vec<u32>> {
        // A client at the far end makes one network of both.
        let network = if self.at == End::Far { End::Far } else { end };
        let mut pids = self.networks.processes(network)?;
        pids.retain(|pid| {
            let name = proc::name(*pid);
            name != LAB
                && PROGRAMS.iter().any(|program| name.starts_with(program))
                && (self.at == End::Near || self.is_of_client(*pid) == (end == End::Near))
        });
        Ok(pids)
    }

    /// Whether the client started a process, itself or through others; processes that the lab's own ssh started are
    /// the server's.
    fn is_of_client(&self, mut pid: u32) -> bool {
        for _ in 0..ANCESTORS_MAX {
            if pid == self.client.pid() {
                return true;
            }
            match parent(pid) {
                Some(parent) if proc::name(pid) != LAB => pid = parent,
                _ => return false,
            }
        }
        false
    }
}

fn parent(pid: u32) -> Option<u32> {
    proc::field(format!("/proc/{pid}/status"), "PPid:")?.parse().ok()
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.client.kill();
        drop(self.sshd.take());
        for end in [End::Near, End::Far] {
            for pid in self.networks.processes(end).unwrap_or_default() {
                // It may have ended by itself.
                drop(Stranger::open(pid));
            }
        }
    }
}

/// A shell at one of the ends.
pub(crate) struct Shell<'a> {
    /// The OpenSSH whose sshd is at the far end.
    pub ssh: &'a Ssh,
    /// Where the shell is: at the far end nothing it says passes the path.
    pub near: End,
    /// The path.
    pub path: Scenario,
}

/// Networks in which a session is about to start.
struct Prepared {
    net: Net,
    sshd: Option<Owned>,
    networks: Networks,
    path: Scenario,
    scratch: Scratch,
}

impl Prepared {
    fn new(
        path: Scenario,
        ssh: Option<&Ssh>,
        tape: Option<&Path>,
        scratch: Scratch,
    ) -> io::Result<Prepared> {
        let net = Net::open(&path.calm(), tape)?;
        let networks = Networks::of(&net)?;
        fs::create_dir_all(scratch.join("bin"))?;
        fs::create_dir_all(scratch.join("home"))?;
        symlink(rove_program()?, scratch.join("bin/rove"))?;
        let config = scratch.join("ssh_config");
        let sshd = ssh.map(|ssh| start_sshd(&net, ssh, &scratch, &config)).transpose()?;
        Ok(Prepared { net, sshd, networks, path, scratch })
    }

    fn start(self, at: End, mut command: Command, size: Size, ready: &str) -> io::Result<Stage> {
        let Prepared { net, sshd, networks, path, scratch } = self;
        surround(&mut command, &scratch)?;
        let clock = Clock::start();
        let client = start_client(&net, at, &command, size)?;
        let took = Duration::ZERO;
        let mut stage = Stage { client, took, net, at, sshd, networks, path, scratch };
        stage.client.wait_for("the session", START_MAX, |client| client.shows(ready))?;
        stage.took = clock.elapsed();
        Ok(stage)
    }
}

/// The words of an `ssh` that runs its command at the far end, without logging in.
fn ssh_to(net: &Net) -> io::Result<String> {
    let lab = std::env::current_exe()?;
    let entry = format!("/proc/{}/fd/{}", std::process::id(), raw(net, End::Far));
    Ok(format!("{} there --network {entry}", shell_word(&lab.to_string_lossy())))
}

/// Gives a program the environment of a user with this home directory.
fn surround(command: &mut Command, scratch: &Scratch) -> io::Result<()> {
    command
        .env("PATH", path_with(&scratch.join("bin"))?)
        .env("HOME", scratch.join("home"))
        .env("SHELL", "/bin/sh")
        .env("LANG", "C.UTF-8")
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm-256color");
    Ok(())
}

/// How the system names the two networks of a path, by which it is found what runs in them.
#[derive(Debug)]
pub struct Networks {
    near: PathBuf,
    far: PathBuf,
}

impl Networks {
    /// Asks for the names.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn of(net: &Net) -> io::Result<Networks> {
        let name = |end| fs::read_link(format!("/proc/self/fd/{}", raw(net, end)));
        // The link of an open file in nsfs has the same form: net:[number].
        let inode = |end| -> io::Result<PathBuf> {
            let path = name(end)?;
            let text = path.to_string_lossy().into_owned();
            let at = text.find("net:[").ok_or_else(|| io::Error::other(text.clone()))?;
            Ok(PathBuf::from(&text[at..]))
        };
        Ok(Networks { near: inode(End::Near)?, far: inode(End::Far)? })
    }

    /// The numbers of the processes in a network, but for this one.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn processes(&self, end: End) -> io::Result<Vec<u32>> {
        let wanted = match end {
            End::Near => &self.near,
            End::Far => &self.far,
        };
        let mut pids = proc::pids()?;
        pids.retain(|pid| {
            // A process may end while it is looked at.
            let network = fs::read_link(format!("/proc/{pid}/ns/net"));
            network.is_ok_and(|network| network == *wanted) && *pid != std::process::id()
        });
        Ok(pids)
    }
}

fn raw(net: &Net, end: End) -> i32 {
    use std::os::fd::AsRawFd as _;
    net.network(end).as_raw_fd()
}

/// Starts a client on a terminal at one end.
///
/// The program that makes the session is setsid(1), so that nothing is left to do between fork and exec and the
/// library can do without a fork: one would copy this process while its links wait, and they would be late.
fn start_client(net: &Net, at: End, command: &Command, size: Size) -> io::Result<Program> {
    let (master, slave) = open_pty(size.rows, size.cols)?;
    let mut session = Command::new(SETSID);
    session.arg("--ctty").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => session.env(name, value),
            None => session.env_remove(name),
        };
    }
    session.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
    let child = net.within(at, move || session.spawn())?;
    Program::adopt(child, master, Terminal::new(size, Dialect::ROVE))
}

/// An sshd at the far end that lets this user in, and a client's configuration for it.
fn start_sshd(net: &Net, ssh: &Ssh, scratch: &Scratch, config: &Path) -> io::Result<Owned> {
    if !lets_log_in() {
        return Err(io::Error::other("an sshd that lets users in needs root"));
    }
    for end in [End::Near, End::Far] {
        let congestion = ssh.congestion;
        net.within(end, move || use_congestion_control(congestion))
            .map_err(|error| io::Error::other(format!("TCP with {congestion}: {error}")))?;
    }
    fs::create_dir_all("/run/sshd")?;
    for name in ["host_key", "user_key"] {
        let mut keygen = limited("ssh-keygen", KEYGEN_SECONDS_MAX);
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(scratch.join(name));
        if !keygen.stdin(Stdio::null()).status()?.success() {
            return Err(io::Error::other("ssh-keygen failed"));
        }
    }
    let path = |name: &str| scratch.join(name).display().to_string();
    let mut server = format!(
        "Port 22\nListenAddress {FAR}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
         PermitRootLogin yes\nPasswordAuthentication no\nPrintMotd no\nPrintLastLog no\nUseDNS no\n\
         Subsystem sftp internal-sftp\nSetEnv ROVE_TMPDIR={}\n",
        path("host_key"),
        path("user_key.pub"),
        // A user's sessions are at most 64. Those of other stages are not to be among them.
        scratch.path().display(),
    );
    for (word, program) in [
        ("SshdSessionPath", "usr/lib/openssh/sshd-session"),
        ("SshdAuthPath", "usr/lib/openssh/sshd-auth"),
    ] {
        let program = ssh.program(program);
        if ssh.root.is_some() && program.exists() {
            server += &format!("{word} {}\n", program.display());
        }
    }
    fs::write(scratch.join("sshd_config"), server)?;
    let chaff = match ssh.chaff {
        Chaff::Default => "",
        Chaff::Off => "ObscureKeystrokeTiming no\n",
    };
    let client = format!(
        "Host *\nIgnoreUnknown ObscureKeystrokeTiming\nUser {}\nIdentityFile {}\nIdentitiesOnly yes\n\
         StrictHostKeyChecking no\nUserKnownHostsFile {}\nLogLevel ERROR\nServerAliveInterval 0\n{chaff}",
        user()?,
        path("user_key"),
        path("known"),
    );
    fs::write(config, client)?;
    let daemon = ssh.daemon.clone().unwrap_or(ssh.program("usr/sbin/sshd"));
    let mut command = Command::new(daemon);
    command.args(["-D", "-f"]).arg(scratch.join("sshd_config")).arg("-E").arg(scratch.join("log"));
    command.stdin(Stdio::null());
    let mut child = Owned(net.within(End::Far, move || command.spawn())?);
    let clock = Clock::start();
    while clock.elapsed() < START_MAX {
        let table = fs::read_to_string(format!("/proc/{}/net/tcp", child.id())).unwrap_or_default();
        if table.lines().count() > 1 {
            return Ok(child);
        }
        if child.try_wait()?.is_some() {
            break;
        }
        look_again_later()?;
    }
    let log = fs::read_to_string(scratch.join("log")).unwrap_or_default();
    Err(io::Error::other(format!("sshd does not start: {log}")))
}

/// Lets connections of the calling thread's network use it; /proc/sys may not be ours, and need not be if they do.
fn use_congestion_control(control: &str) -> io::Result<()> {
    match fs::read_to_string(CONGESTION_CONTROL)?.trim() == control {
        true => Ok(()),
        false => fs::write(CONGESTION_CONTROL, control),
    }
}

fn user() -> io::Result<String> {
    let output = Command::new("id").arg("-un").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// An `ssh` that goes to the far end of an emulated link: runs the command there, without logging in.
///
/// # Errors
/// If the network is gone, or there is no command.
pub(crate) fn there(network: &Path, words: &[OsString]) -> io::Result<i32> {
    let command = crate::fake_ssh::remote_command(words);
    let command = command.ok_or_else(|| io::Error::other("no host and command"))?;
    let network = fs::File::open(network)?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null());
    shell.env("SSH_CONNECTION", format!("{} 40000 {FAR} 22", crate::net::NEAR));
    crate::sys::start_in_network(&mut shell, std::sync::Arc::new(network.into()));
    Ok(shell.status()?.code().unwrap_or(255))
}

/// Of util-linux, which every Debian has.
const SETSID: &str = "/usr/bin/setsid";

/// How long a session may take to start: ssh logs in with a dozen round trips.
const START_MAX: Duration = Duration::from_secs(60);

/// How long making a key may take.
const KEYGEN_SECONDS_MAX: u32 = 60;

/// This program, which acts as an ssh and as what runs in a session.
const LAB: &str = "rove-lab";

/// Between a client and its child stand a shell or two.
const ANCESTORS_MAX: u32 = 16;

/// Names of the programs compared, as the system cuts them to 15 characters.
const PROGRAMS: [&str; 6] = ["ssh", "sshd", "scp", "hpn", "mosh-", "rove"];
