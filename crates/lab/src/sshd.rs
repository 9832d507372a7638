//! A real OpenSSH server, mostly on loopback, with its own keys, configuration and users. It needs root, since only root
//! may log other users in. Dropping it removes all of it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::clock::Clock;
use crate::proc;
use crate::process::Owned;
use crate::run::{Stranger, limited, look_again_later};
use crate::scratch::Scratch;

/// A running sshd.
#[derive(Debug)]
pub struct Sshd {
    /// Its children end with the connections they serve; the listener ends when this is dropped.
    _child: Owned,
    address: Ipv4Addr,
    port: u16,
    /// Before the directory: users go first, then their homes.
    users: Vec<User>,
    scratch: Scratch,
}

/// A user made for a test, with a home of their own.
#[derive(Debug)]
pub struct User {
    name: String,
    home: PathBuf,
}

impl User {
    /// Makes a user with this login shell.
    fn create(name: &str, shell: &str, home: &Path) -> io::Result<User> {
        // One that a killed run left behind.
        remove_user(name);
        let mut useradd = Command::new("useradd");
        // No password is right, which is not the same as a locked account: sshd refuses those.
        useradd.args(["--no-create-home", "--password", "*", "--shell", shell, "--home-dir"]);
        check(useradd.arg(home).arg(name))?;
        let user = User { name: name.to_owned(), home: home.to_owned() };
        fs::create_dir_all(home)?;
        user.own(home)?;
        Ok(user)
    }

    /// The login name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The home directory.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Writes a file in the user's home, which is theirs then, as are the directories made for it.
    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
        let path = self.home.join(name);
        if let Some(parent) = Path::new(name).parent() {
            let mut directory = self.home.clone();
            for part in parent {
                directory.push(part);
                if !directory.exists() {
                    fs::create_dir(&directory)?;
                    self.own(&directory)?;
                }
            }
        }
        fs::write(&path, contents)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        self.own(&path)
    }

    /// The user's number.
    pub fn uid(&self) -> io::Result<u32> {
        self.id("-u")
    }

    fn id(&self, flag: &str) -> io::Result<u32> {
        let text = check(Command::new("id").args([flag, self.name.as_str()]))?;
        text.trim().parse().map_err(io::Error::other)
    }

    fn own(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid()?), Some(self.id("-g")?))
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = end_processes_of(&self.name);
        let sockets = self.uid().map(|uid| format!("/tmp/rove-{uid}"));
        remove_user(&self.name);
        if let Ok(sockets) = sockets {
            let _ = fs::remove_dir_all(sockets);
        }
    }
}

impl Sshd {
    /// Starts one on a free port of the loopback address.
    pub fn start() -> io::Result<Sshd> {
        Sshd::start_at(Ipv4Addr::LOCALHOST)
    }

    /// The same on this address.
    pub fn start_at(address: Ipv4Addr) -> io::Result<Sshd> {
        if !rustix::process::geteuid().is_root() {
            return Err(io::Error::other("an sshd for other users needs root"));
        }
        let scratch = Scratch::new()?;
        // Users must be able to enter it: their homes are inside.
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o711))?;
        // Where Debian's sshd confines its unprivileged child; the init script makes it, we have none.
        fs::create_dir_all("/run/sshd")?;
        for name in ["host_key", "user_key"] {
            let mut keygen = limited("ssh-keygen", KEYGEN_SECONDS_MAX);
            check(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(scratch.join(name)))?;
        }
        fs::set_permissions(scratch.join("user_key.pub"), fs::Permissions::from_mode(0o644))?;
        for _ in 0..START_TRIES {
            let port = free_port(address)?;
            let mut child = Owned(start_on(&scratch, address, port)?);
            if answers(&mut child, address, port)? {
                return Ok(Sshd { _child: child, address, port, scratch, users: Vec::new() });
            }
            // Otherwise another process took the port between our look and its bind.
        }
        Err(io::Error::other(format!("sshd does not start: {}", log_in(&scratch))))
    }

    /// Makes a user who may log in with the key of [`Sshd::client_config`]. The name is this one and the number of
    /// this process, so that two runs on one machine do not meet.
    pub fn add_user(&mut self, name: &str, shell: &str) -> io::Result<&User> {
        let name = format!("{name}-{}", std::process::id());
        let home = self.scratch.join(&name);
        self.users.push(User::create(&name, shell, &home)?);
        Ok(&self.users[self.users.len() - 1])
    }

    /// Writes a configuration for ssh with these hosts: a name, its user, and further lines. Returns its
    /// path.
    pub fn client_config(&self, hosts: &[(&str, &str, &str)]) -> io::Result<PathBuf> {
        let mut text = String::new();
        for (host, user, lines) in hosts {
            let key = self.scratch.join("user_key");
            let (address, port) = (self.address, self.port);
            let _ = writeln!(text, "Host {host}\n  HostName {address}\n  Port {port}");
            let _ = writeln!(text, "  User {user}\n  IdentityFile {}\n{lines}", key.display());
        }
        text += "Host *\n  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  LogLevel ERROR\n";
        let _ = writeln!(text, "  UserKnownHostsFile {}", self.scratch.join("known").display());
        let path = self.scratch.join("ssh_config");
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Its TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where things of the test can be put.
    pub fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// The file with the key that may log in. Without it nobody may.
    pub fn authorized_keys(&self) -> PathBuf {
        self.scratch.join("user_key.pub")
    }

    /// Its log.
    pub fn log(&self) -> String {
        log_in(&self.scratch)
    }
}

fn start_on(scratch: &Scratch, address: Ipv4Addr, port: u16) -> io::Result<Child> {
    let host_key = scratch.join("host_key");
    let user_key = scratch.join("user_key.pub");
    let config = format!(
        "Port {port}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nAllowTcpForwarding yes\n\
         AcceptEnv LANG LC_*\nMaxStartups 100\nPrintMotd no\nSubsystem sftp internal-sftp\n",
        host_key.display(),
        user_key.display()
    );
    fs::write(scratch.join("sshd_config"), config)?;
    Command::new("/usr/sbin/sshd")
        .args(["-D", "-f"])
        .arg(scratch.join("sshd_config"))
        .arg("-E")
        .arg(scratch.join("log"))
        .stdin(Stdio::null())
        .spawn()
}

/// Whether it came up; `false` if it has ended instead.
fn answers(child: &mut Child, address: Ipv4Addr, port: u16) -> io::Result<bool> {
    let clock = Clock::start();
    while clock.elapsed() < START_MAX {
        if TcpStream::connect((address, port)).is_ok() {
            return Ok(true);
        }
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        look_again_later()?;
    }
    Ok(false)
}

fn log_in(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.join("log")).unwrap_or_default()
}

fn free_port(address: Ipv4Addr) -> io::Result<u16> {
    Ok(TcpListener::bind((address, 0))?.local_addr()?.port())
}

/// Kills the processes that a failed test has left running as this user. The user is the test's own, so all its
/// processes are.
fn end_processes_of(name: &str) -> io::Result<()> {
    let uid = check(Command::new("id").args(["-u", name]))?;
    for pid in proc::pids()? {
        let owner = proc::field(format!("/proc/{pid}/status"), "Uid:");
        if owner.as_deref() == Some(uid.trim()) {
            drop(Stranger::open(pid));
        }
    }
    Ok(())
}

fn remove_user(name: &str) {
    // Their processes may still be on the way out: `userdel -f` does not mind. One that does not exist is
    // gone already.
    let _ = Command::new("userdel").args(["-f", name]).stderr(Stdio::null()).status();
}

fn check(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(format!("{command:?}: {errors}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// How long sshd may take to listen.
const START_MAX: Duration = Duration::from_secs(60);

/// How long making a key may take.
const KEYGEN_SECONDS_MAX: u32 = 60;

/// Ports tried.
const START_TRIES: u32 = 3;
