//! A client and a server, each ours or stock mosh's, on this machine with an emulated link between them.
//!
//! The server's program runs under [`record`](crate::record), which keeps its exact output, so that tests can
//! compare it with the client's screen.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rove_term::{Dialect, Screen, Size, Terminal};

use crate::clock::Clock;
use crate::compare::{Difference, differences};
use crate::demo::{path_with, shell_word, ssh_option_of};
use crate::fake_ssh::FakeSsh;
use crate::link::Profile;
use crate::record::{Entry, Reader};
use crate::relay::{Config, Relay};
use crate::run::{Missed, PUMP, Program, Stranger, shows};
use crate::scratch::Scratch;

/// The make of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Make {
    /// The one under test.
    Rove,
    /// mosh 1.4.0 as Debian ships it.
    Stock,
}

/// The parts of the server's program's record to keep.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watch {
    /// Every octet it writes.
    Record,
    /// Nothing, so that nothing stands between it and the server: for measurements.
    Nothing,
}

/// How a pair starts.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The client's make.
    pub client: Make,
    /// The server's make.
    pub server: Make,
    /// The program under test.
    pub rove: PathBuf,
    /// The `rove-lab` that plays ssh and keeps the record.
    pub lab: PathBuf,
    /// The user's window.
    pub size: Size,
    /// From client to server.
    pub up: Profile,
    /// From server to client.
    pub down: Profile,
    /// For all chances of the link.
    pub seed: u64,
    /// The record of the server's program.
    pub watch: Watch,
}

/// A running pair. Everything it started is killed when it is dropped.
#[derive(Debug)]
pub struct Pair {
    client: Program,
    server: Option<Stranger>,
    reader: Reader,
    oracle: Terminal,
    oracle_size: Size,
    exit: Option<i32>,
    gate: FakeSsh,
    scratch: Scratch,
}

impl Pair {
    /// Starts both as their users do: the client bootstraps its server through an ssh.
    pub fn start(setup: &Setup) -> io::Result<Pair> {
        let scratch = Scratch::new()?;
        prepare_home(&scratch, setup)?;
        for name in ["rove", "mosh-server", "mosh-client"] {
            fs::create_dir_all(scratch.join("bin"))?;
            symlink(&setup.rove, scratch.join("bin").join(name))?;
        }
        let relay = Relay::start(Config {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            target: None,
            up: setup.up.clone(),
            down: setup.down.clone(),
            seed: setup.seed,
        })?;
        let gate_path = scratch.join("gate");
        let gate = FakeSsh::open(&gate_path, relay)?;
        let mut command = client_command(setup, &scratch, &gate_path)?;
        command
            .env("HOME", scratch.join("home"))
            .env("SHELL", scratch.join("shell"))
            .env("LANG", "C.UTF-8")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .env("MOSH_PREDICTION_DISPLAY", "never");
        let dialect = match setup.server {
            Make::Rove => Dialect::ROVE,
            Make::Stock => Dialect::MOSH,
        };
        Ok(Pair {
            client: Program::start(command, setup.size)?,
            server: None,
            reader: Reader::new(&scratch.join("record")),
            oracle: Terminal::new(setup.size, dialect),
            oracle_size: setup.size,
            exit: None,
            gate,
            scratch,
        })
    }

    /// Types at the client.
    pub fn send(&mut self, keys: impl AsRef<[u8]>) {
        self.client.send(keys);
    }

    /// Changes the size of the user's window.
    pub fn resize(&mut self, size: Size) -> io::Result<()> {
        self.client.resize(size)
    }

    /// Waits at most this long for the client's output, and reads the record of the server's program.
    pub fn pump(&mut self, at_most: Duration) -> io::Result<()> {
        self.client.pump(at_most)?;
        self.find_server()?;
        for entry in self.reader.read()? {
            match entry {
                Entry::Parent(pid) => self.server = Some(Stranger::open(pid)?),
                Entry::Size(rows, cols) => {
                    self.oracle_size = Size::clamped(rows, cols);
                    self.oracle.resize(self.oracle_size);
                }
                Entry::Output(octets) => {
                    self.oracle.advance(&octets);
                    // The server under test answers the program, not we.
                    drop(self.oracle.take_replies());
                }
                Entry::Exit(status) => self.exit = Some(status),
            }
        }
        Ok(())
    }

    /// Pumps until the condition holds.
    ///
    /// # Errors
    /// [`Missed`] if it does not within the limit.
    pub fn wait_for(
        &mut self,
        what: &str,
        limit: Duration,
        mut condition: impl FnMut(&Pair) -> bool,
    ) -> io::Result<()> {
        let clock = Clock::start();
        loop {
            self.pump(PUMP)?;
            if condition(self) {
                return Ok(());
            }
            if clock.elapsed() > limit {
                return Err(self.missed(what, clock.elapsed()).into());
            }
        }
    }

    /// Types a command line and waits until its program has written this text and both ends show the same.
    ///
    /// # Errors
    /// [`Missed`] if it does not happen within the limit.
    pub fn command(&mut self, line: &str, text: &str, limit: Duration) -> io::Result<()> {
        self.send(format!("{line}\r"));
        self.wait_for(&format!("{text:?} from the program"), limit, |pair| pair.wrote(text))?;
        self.settle(limit)
    }

    /// Waits until the client's screen equals the program's terminal, cell by cell.
    ///
    /// # Errors
    /// With the differences that remain.
    pub fn settle(&mut self, limit: Duration) -> io::Result<()> {
        let waited = self.wait_for("equal screens", limit, |pair| pair.differences().is_empty());
        waited.map_err(|error| {
            let mut text = error.to_string();
            for difference in self.differences() {
                text += &format!("  {difference}\n");
            }
            io::Error::new(error.kind(), text)
        })
    }

    /// Where the client's screen differs from the program's.
    pub fn differences(&self) -> Vec<Difference> {
        differences(self.client.screen(), self.oracle.screen())
    }

    /// Whether the program's terminal shows this text.
    pub fn wrote(&self, text: &str) -> bool {
        shows(self.oracle.screen(), text)
    }

    /// The client, on its terminal.
    pub fn client(&self) -> &Program {
        &self.client
    }

    /// The client, to kill it or to wait for its end.
    pub fn client_mut(&mut self) -> &mut Program {
        &mut self.client
    }

    /// The server, once its program has started.
    pub fn server(&self) -> Option<&Stranger> {
        self.server.as_ref()
    }

    /// The screen of the program's terminal.
    pub fn oracle(&self) -> &Screen {
        self.oracle.screen()
    }

    /// The window size that the program has.
    pub fn program_size(&self) -> Size {
        self.oracle_size
    }

    /// The exit status of the server's program, once it has ended.
    pub fn program_status(&self) -> Option<i32> {
        self.exit
    }

    /// The link.
    pub fn relay(&self) -> &Relay {
        self.gate.relay()
    }

    /// The home directory of the server's program.
    pub fn home(&self) -> PathBuf {
        self.scratch.join("home")
    }

    /// Without a record, the shell has left the server's number in a file.
    fn find_server(&mut self) -> io::Result<()> {
        if self.server.is_none()
            && let Ok(text) = fs::read_to_string(self.scratch.join("pid"))
            && let Ok(pid) = text.trim().parse()
        {
            self.server = Some(Stranger::open(pid)?);
        }
        Ok(())
    }

    fn missed(&self, what: &str, waited: Duration) -> Missed {
        self.client.missed(what, waited)
    }
}

/// The client's command line.
fn client_command(setup: &Setup, scratch: &Scratch, gate: &Path) -> io::Result<Command> {
    let ssh = ssh_option_of(&setup.lab, gate)?;
    let bin = scratch.join("bin");
    let ours = shell_word(&bin.join("mosh-server").to_string_lossy());
    let mut command = match setup.client {
        Make::Rove => {
            let mut command = Command::new(bin.join("rove"));
            command.arg(ssh);
            if setup.server == Make::Stock {
                command.arg("--server=mosh-server");
            } else {
                command.env("PATH", path_with(&bin)?);
            }
            command
        }
        Make::Stock => {
            let mut command = Command::new("mosh");
            // The relay is on the loopback address of the host word; the default discovery asks the real ssh.
            command.arg(ssh).args(["--experimental-remote-ip=local", "--family=inet"]);
            if setup.server == Make::Rove {
                command.arg(format!("--server={ours}"));
            }
            command
        }
    };
    command.arg("127.0.0.1");
    Ok(command)
}

/// A home with a plain prompt and a login shell whose output is recorded.
fn prepare_home(scratch: &Scratch, setup: &Setup) -> io::Result<()> {
    let home = scratch.join("home");
    fs::create_dir(&home)?;
    fs::write(home.join(".hushlogin"), "")?;
    fs::write(home.join(".bash_profile"), "PS1='$ '; PROMPT_COMMAND=; HISTFILE=; cd\n")?;
    let shell = scratch.join("shell");
    let word = |path: &Path| shell_word(&path.to_string_lossy());
    let script = match setup.watch {
        Watch::Record => {
            format!("exec {} tee {} bash -l", word(&setup.lab), word(&scratch.join("record")))
        }
        Watch::Nothing => format!("echo $PPID >{}; exec bash -l", word(&scratch.join("pid"))),
    };
    fs::write(&shell, format!("#!/bin/sh\n{script}\n"))?;
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755))
}
