//! Hosts for the tests of `rove exec` and of forwardings: a real sshd whose user has rove, and helpers to use it.
//! It needs root for the sshd, as the bootstrap's test does.
#![allow(dead_code, reason = "each test uses its part")]

use std::borrow::BorrowMut;
use std::fmt::Display;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rove_lab::testing::run::look_again_later;
use rove_lab::testing::sshd::Sshd;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{chosen, rove_program, say};

/// How long any one program may take: much more than it needs, on a machine that does much else.
pub const SECONDS_MAX: u32 = 300;

/// How long something that must happen is waited for.
pub const LIMIT: Duration = Duration::from_secs(120);

/// The result of a case: an error in words.
pub type Outcome = Result<(), String>;

/// A case of a table.
pub type Case<T> = (&'static str, fn(&T) -> Outcome);

/// Runs the cases that `CASE` asks for.
pub fn run_cases<T>(name: &str, cases: &[Case<T>], scene: &T) -> Vec<String> {
    let chosen = cases.iter().filter(|(case, _)| chosen("CASE", case));
    let failures = chosen.filter_map(|(case, run)| {
        let outcome = run(scene);
        say(&format!("{name} {case}: {}", outcome.as_ref().map_or("FAILED", |()| "ok")));
        outcome.err().map(|error| format!("{case}: {error}"))
    });
    failures.collect()
}

/// A host with rove, and how to get there.
pub struct Host {
    /// The server that logs in.
    pub sshd: Sshd,
    /// The user's home.
    pub home: PathBuf,
    /// ssh's configuration: the host `here`, and `bare`, which has no rove.
    pub config: PathBuf,
    /// The name of the user with rove.
    pub user: String,
    /// The name of the user without it.
    pub bare: String,
}

impl Host {
    /// Starts the server; `lines` configure further hosts of the user with rove.
    pub fn start(name: &str, lines: &[(&str, &str)]) -> Host {
        let mut sshd = Sshd::start().unwrap();
        let rove = fs::read(rove_program()).unwrap();
        let user = sshd.add_user(name, "/bin/bash").unwrap();
        user.write(".local/bin/rove", &rove, 0o755).unwrap();
        user.write(".hushlogin", "", 0o644).unwrap();
        let (user, home) = (user.name().to_owned(), user.home().to_owned());
        let bare = sshd.add_user("rovelab-bare", "/bin/bash").unwrap().name().to_owned();
        let mut hosts = vec![("here", user.as_str(), ""), ("bare", bare.as_str(), "")];
        hosts.extend(lines.iter().map(|(host, lines)| (*host, user.as_str(), *lines)));
        let config = sshd.client_config(&hosts).unwrap();
        Host { home, config, user: user.clone(), bare: bare.clone(), sshd }
    }

    /// Where the user's side of a case works.
    pub fn near(&self) -> &Path {
        self.sshd.directory()
    }

    /// `rove exec` with these words.
    pub fn rove(&self, words: &[&str]) -> Command {
        let mut command = bounded(rove_program());
        command.args(["exec", "-F"]).arg(&self.config).args(words);
        self.settle(&mut command);
        command
    }

    /// A line for bash here, with the words that stand for ssh in `$ROVE`.
    pub fn shell(&self, line: &str) -> Command {
        let rove = format!("{} exec -F {}", rove_program().display(), self.config.display());
        let mut command = bounded("bash");
        command.args(["-c", &format!("set -euo pipefail; {line}")]);
        command.env("ROVE", &rove).env("GIT_SSH_COMMAND", &rove).env("GIT_CONFIG_NOSYSTEM", "1");
        self.settle(&mut command);
        command
    }

    /// Runs a program in the home of the user's side, without the environment of the user who runs the tests.
    fn settle(&self, command: &mut Command) {
        command.current_dir(self.near()).env("HOME", self.near()).stdin(Stdio::null());
        command.env_remove("XDG_STATE_HOME").env_remove("SSH_AUTH_SOCK");
    }

    /// The error, and the server's log.
    pub fn assert_none(&self, failures: &[String]) {
        assert!(failures.is_empty(), "{}\nsshd's log:\n{}", failures.join("\n"), self.sshd.log());
    }
}

/// A program that is killed when it takes too long. A signal reaches it once, without its group. After any signal
/// that asks it to end, it has a minute: timeout(1) starts its -k then.
pub fn bounded(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--foreground", "-k", "60", &SECONDS_MAX.to_string()]).arg(program);
    command
}

/// Runs it to its end.
pub fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

/// Runs it; returns its output, if it succeeded.
pub fn clean(command: Command) -> Result<String, String> {
    let Output { status, stdout, stderr } = output(command);
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    match status.success() {
        true => Ok(stdout.into_owned()),
        false => Err(format!("{status}\nstdout: {stdout}\nstderr: {stderr}")),
    }
}

/// Checks that `found` equals `wanted`.
pub fn same(found: impl AsRef<str>, wanted: impl AsRef<str>) -> Outcome {
    let (found, wanted) = (found.as_ref(), wanted.as_ref());
    if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
}

/// The words of any error.
pub fn words(error: impl Display) -> String {
    error.to_string()
}

/// A port for programs that need its number. It is outside the range that the system assigns by itself (ip(7),
/// ip_local_port_range), so that no other process takes it between this look and theirs, and each is given once.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = std::process::id() as u16 % PORTS.1;
    let mut ports = std::iter::repeat_with(|| {
        PORTS.0 + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS.1
    });
    let mut ports = ports.by_ref().take(PORTS.1.into());
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).unwrap()
}

/// The first of these ports, and how many there are.
const PORTS: (u16, u16) = (20_000, 12_000);

/// Asks again until there is an answer.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let clock = rove_lab::testing::clock::Clock::start();
    while clock.elapsed() < LIMIT {
        if let Some(found) = look() {
            return Ok(found);
        }
        look_again_later().map_err(words)?;
    }
    Err(format!("waited in vain: {what}"))
}

/// Serves each connection that comes in with its first octets, as long as the test runs.
pub fn echo_on(mut accept: impl FnMut() -> io::Result<Box<dyn Stream>> + Send + 'static) {
    let serve = move || {
        while let Ok(mut stream) = accept() {
            let talk = move || {
                let mut octets = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut octets) {
                    if stream.write_all(&octets[..count]).is_err() {
                        break;
                    }
                }
            };
            std::thread::Builder::new().name("talk".into()).spawn(talk).unwrap();
        }
    };
    std::thread::Builder::new().name("echo".into()).spawn(serve).unwrap();
}

/// A server on loopback that says everything back; its port.
pub fn echo() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    echo_on(move || Ok(Box::new(listener.accept()?.0)));
    port
}

/// A connection of any kind.
pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// Says a line and hears it again.
pub fn converse(stream: &mut dyn Stream, line: &str) -> Outcome {
    stream.write_all(line.as_bytes()).map_err(words)?;
    let mut heard = vec![0; line.len()];
    stream.read_exact(&mut heard).map_err(words)?;
    same(String::from_utf8_lossy(&heard), line)
}

/// A connection to a port of loopback; waits until a socket listens there.
pub fn connect(port: u16) -> Result<TcpStream, String> {
    let stream = until(&format!("a listener on port {port}"), || {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
    })?;
    stream.set_read_timeout(Some(LIMIT)).map_err(words)?;
    Ok(stream)
}

/// The port leads to an echo.
pub fn is_echoed(port: u16) -> Outcome {
    converse(&mut connect(port)?, "hello\n")
}

/// A program that runs until it is dropped, which asks it to end and waits.
pub struct Running(pub Child);

impl Running {
    pub fn start(mut command: impl BorrowMut<Command>) -> Running {
        Running(command.borrow_mut().spawn().unwrap())
    }

    /// Sends it a signal through timeout(1), which passes on signals that ask programs to end.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, signal).unwrap();
        }
    }

    /// Its status, once it has ended.
    pub fn status(&mut self) -> Result<Option<i32>, String> {
        Ok(self.0.wait().map_err(words)?.code())
    }

    /// Its next line.
    pub fn line(&mut self) -> Result<String, String> {
        let stdout = self.0.stdout.as_mut().ok_or("its output is not ours")?;
        let mut line = Vec::new();
        let mut octet = [0];
        while stdout.read(&mut octet).map_err(words)? == 1 && octet != [b'\n'] {
            line.push(octet[0]);
        }
        Ok(String::from_utf8_lossy(&line).into_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
            let _ = self.0.wait();
        }
    }
}
