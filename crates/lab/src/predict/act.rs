//! `rove-lab act`: plays the program of a recording on a real terminal, under a real server.

use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use clap::Args;

use super::script::{Act, Script};
use super::trace::Trace;
use crate::clock::Clock;
use crate::process::{read_terminal, wait_ready};

/// Sent to the observer for each key that reached the terminal.
pub(crate) const TOLD_KEY: u8 = b'k';
/// The next output was written.
pub(crate) const TOLD_OUTPUT: u8 = b'o';

/// Follows a recording on this terminal: waits for its keys, writes its output
#[derive(Args, Clone, Debug)]
pub(crate) struct ActFlags {
    /// The recorded session
    trace: PathBuf,
    /// A socket where each key that came and each output are told
    #[arg(long, value_name = "SOCKET")]
    tell: Option<PathBuf>,
    /// The part of the recording that is used, in seconds
    #[arg(long, value_name = "SECONDS")]
    span: Option<f64>,
}

impl ActFlags {
    /// The words of the command line that mean this.
    pub(crate) fn words(trace: &Path, tell: &Path, span: Option<f64>) -> Vec<std::ffi::OsString> {
        let mut words = vec!["act".into(), trace.into(), "--tell".into(), tell.into()];
        words.extend(span.map(|span| format!("--span={span}").into()));
        words
    }
}

/// Runs it until the recording is over and its terminal goes away.
///
/// # Errors
/// If the recording cannot be read, or the terminal or the socket fails.
pub(crate) fn run(flags: &ActFlags) -> io::Result<i32> {
    let trace = Trace::load(&flags.trace)?.cut(flags.span)?;
    let stdin = rustix::stdio::stdin();
    let mut listener = flags.tell.as_ref().map(UnixStream::connect).transpose()?;
    let mut tell = |what: u8| match &mut listener {
        Some(listener) => listener.write_all(&[what]),
        None => Ok(()),
    };
    let mut modes = tcgetattr(stdin)?;
    modes.make_raw();
    tcsetattr(stdin, OptionalActions::Now, &modes)?;
    let mut stdout = io::stdout().lock();
    // Earlier content of the screen is not part of the recording.
    stdout.write_all(b"\x1b[m\x1b[H\x1b[2J")?;
    stdout.flush()?;
    let (clock, mut script) = (Clock::start(), Script::new(&trace.events));
    let mut told = 0;
    loop {
        while let Some(act) = script.next(clock.now()) {
            if let Act::Write(output) = act {
                stdout.write_all(&output)?;
                stdout.flush()?;
                tell(TOLD_OUTPUT)?;
            }
        }
        let wait = script.due().map(|due| due.since(clock.now()));
        if wait_ready(&mut [PollFd::new(&stdin, PollFlags::IN)], wait)? == 0 {
            continue;
        }
        match read_terminal(stdin, &mut [0; 1024])? {
            None => return Ok(0),
            Some(length) => script.arrived(length),
        }
        for _ in told..script.delivered() {
            tell(TOLD_KEY)?;
        }
        told = script.delivered();
    }
}
