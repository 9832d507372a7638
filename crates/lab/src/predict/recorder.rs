//! `rove-lab record`: runs a program on a pty and records the session with all keys and each change of the terminal
//! line's mode. A person types, or a [`Typist`] with a script.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use clap::Args;
use rove_session::predict::LineMode;
use rove_ssp::Time;
use rove_term::{Dialect, Size, Terminal};
use rustix::event::{PollFd, PollFlags};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::cast::Writer;
use super::typist::{Deal, Typist};
use crate::clock::Clock;
use crate::process::{read_terminal, wait_ready};
use crate::sys::spawn_on_pty;

/// Records a session: asciicast v2 with what was typed (`i`) and each change of the terminal line (`x`)
#[derive(Args, Clone, Debug)]
pub(crate) struct RecordFlags {
    /// Where the recording goes
    recording: PathBuf,
    /// Who types: a script, like a person, instead of you (see lab/traces/own/README.md)
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Seed of the gaps and slips of a script
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    program: Vec<OsString>,
}

/// How often the terminal line is looked at; a program takes longer from setting it to prompting for hidden text.
const LOOK: Duration = Duration::from_millis(1);

/// One read; a pty hands out at most 4 KiB at a time.
const CHUNK_BYTES: usize = 4_096;

/// The screen of a session that a script types.
const SCRIPT_SIZE: Size = Size::DEFAULT;

/// After the last key of a script its program has this long to end.
const LAST: Duration = Duration::from_secs(5);

/// Records a session; returns the program's exit status.
///
/// # Errors
/// If the program or the recording cannot be started, or a step of the script waits in vain.
pub(crate) fn run(flags: &RecordFlags) -> io::Result<i32> {
    let (name, arguments) =
        flags.program.split_first().ok_or_else(|| io::Error::other("no program to run"))?;
    let mut command = Command::new(name);
    command.args(arguments);
    let out = BufWriter::new(File::create(&flags.recording)?);
    match &flags.script {
        Some(script) => {
            let script = std::fs::read_to_string(script)?;
            let typist = Typist::new(&script, flags.seed).map_err(io::Error::other)?;
            command.env("TERM", "xterm-256color");
            let title = format!("{} seed {}", name.to_string_lossy(), flags.seed);
            Recorder::start(command, SCRIPT_SIZE, out, &title)?.follow(typist)
        }
        None => {
            let stdin = rustix::stdio::stdin();
            let size = tcgetwinsize(stdin)?;
            let before = tcgetattr(stdin)?;
            let size = Size::clamped(size.ws_row, size.ws_col);
            let recorder = Recorder::start(command, size, out, &name.to_string_lossy())?;
            let mut raw = before.clone();
            raw.make_raw();
            tcsetattr(stdin, OptionalActions::Now, &raw)?;
            let done = recorder.sit_between();
            tcsetattr(stdin, OptionalActions::Now, &before)?;
            done
        }
    }
}

/// The mode of a terminal line.
///
/// # Errors
/// If the terminal is gone.
pub(crate) fn line_mode(terminal: impl AsFd) -> io::Result<LineMode> {
    let modes: Termios = tcgetattr(terminal)?;
    let has = |flag| modes.local_modes.contains(flag);
    Ok(match (has(LocalModes::ICANON), has(LocalModes::ECHO)) {
        (true, true) => LineMode::Cooked,
        (true, false) => LineMode::Hidden,
        (false, _) => LineMode::Raw,
    })
}

struct Recorder {
    clock: Clock,
    child: Child,
    master: File,
    cast: Writer<BufWriter<File>>,
}

impl Recorder {
    fn start(command: Command, size: Size, out: BufWriter<File>, title: &str) -> io::Result<Self> {
        let cast = Writer::new(out, size, title)?;
        let clock = Clock::start();
        let (child, master) = spawn_on_pty(command, size.rows, size.cols)?;
        Ok(Self { clock, child, master: master.into(), cast })
    }

    /// A script types; its terminal answers the program.
    fn follow(mut self, mut typist: Typist) -> io::Result<i32> {
        let mut terminal = Terminal::new(SCRIPT_SIZE, Dialect::ROVE);
        let (mut changed, mut last) = (Time::ZERO, Time::ZERO);
        while let Some(output) = self.turn(None)? {
            let now = self.clock.now();
            if !output.is_empty() {
                terminal.advance(&output);
                rustix::io::write(&self.master, &terminal.take_replies())?;
                changed = now;
            }
            while let Some(deal) =
                typist.poll(now, terminal.screen(), changed).map_err(io::Error::other)?
            {
                match deal {
                    Deal::Program(name) => self.cast.program(now.since(Time::ZERO), &name)?,
                    Deal::Key(stroke) => self.press(&stroke.octets)?,
                }
                last = now;
            }
            if typist.is_done() && now.since(last) > LAST {
                break;
            }
        }
        self.finish()
    }

    /// A person types.
    fn sit_between(mut self) -> io::Result<i32> {
        let mut keys = [0; CHUNK_BYTES];
        while let Some(output) = self.turn(Some(()))? {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&output)?;
            stdout.flush()?;
            let stdin = rustix::stdio::stdin();
            let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
            if wait_ready(&mut watched, Some(Duration::ZERO))? == 0 {
                continue;
            }
            match read_terminal(stdin, &mut keys)? {
                None => break,
                Some(0) => {}
                Some(length) => self.press(&keys[..length])?,
            }
        }
        self.finish()
    }

    /// Waits for a moment; returns the program's output, or `None` once it has closed its terminal.
    fn turn(&mut self, stdin: Option<()>) -> io::Result<Option<Vec<u8>>> {
        let input = rustix::stdio::stdin();
        let mut watched = vec![PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
        watched.extend(stdin.map(|()| PollFd::from_borrowed_fd(input, PollFlags::IN)));
        wait_ready(&mut watched, Some(LOOK))?;
        let readable = !watched[0].revents().is_empty();
        self.note_line()?;
        if !readable {
            return Ok(Some(Vec::new()));
        }
        let mut buffer = [0; CHUNK_BYTES];
        let Some(length) = read_terminal(&self.master, &mut buffer)? else { return Ok(None) };
        self.cast.output(self.clock.elapsed(), &buffer[..length])?;
        Ok(Some(buffer[..length].to_vec()))
    }

    fn press(&mut self, octets: &[u8]) -> io::Result<()> {
        self.note_line()?;
        self.cast.key(self.clock.elapsed(), octets)?;
        self.master.write_all(octets)
    }

    fn note_line(&mut self) -> io::Result<()> {
        // A terminal that its program has left has no modes.
        match line_mode(&self.master) {
            Ok(mode) => self.cast.line(self.clock.elapsed(), mode),
            Err(_) => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<i32> {
        // A program that did not end by its script is ended with its terminal.
        drop(self.master);
        if self.child.try_wait()?.is_none() {
            self.child.kill()?;
        }
        let status = self.child.wait()?;
        Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }
}
