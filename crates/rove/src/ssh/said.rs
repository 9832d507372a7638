//! What ssh says on its standard error while it is a session's second way: a terminal of its own, since ssh asks for the
//! touch of a key only where it writes to one. It is passed on to the user until the session takes the screen.

use std::future::poll_fn;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rove_streams::clock;
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::os::pipe::{self, PipeReader};

/// Octets read at a time.
const PIECE_BYTES: usize = 4096;

/// How long the last words are awaited, while something that ssh left behind can still write.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(200);

/// ssh's standard error, before ssh runs.
pub(super) struct Said(pipe::File);

/// The same while it is passed on. Dropping it drops what else ssh says.
#[derive(Debug)]
pub(super) struct Shown {
    shows: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Said {
    /// Has the command write to a terminal of ours; `None` where the user has none, or none is to be had: then it
    /// writes to where we do.
    pub(super) fn behind_terminal(command: &mut Command) -> Option<Said> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let (reads, writes) = pipe::for_errors().ok()?;
        command.stderr(writes);
        Some(Said(reads))
    }

    /// Passes on what ssh says from now on.
    pub(super) fn show(self) -> Shown {
        let shows = Arc::new(AtomicBool::new(true));
        let own = Arc::clone(&shows);
        let task = tokio::spawn(async move {
            let _ = pass(self.0, &own).await;
        });
        Shown { shows, task }
    }
}

impl Shown {
    /// Passes on the last words of an ssh that has ended.
    pub(super) async fn rest(mut self) {
        let _ = clock::within(LAST_WORDS_WAIT, &mut self.task).await;
    }
}

async fn pass(from: pipe::File, shows: &AtomicBool) -> io::Result<()> {
    let mut from = PipeReader::new(from)?;
    let mut piece = [0; PIECE_BYTES];
    loop {
        poll_fn(|cx| from.poll_readable(cx)).await?;
        match from.try_read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The last that had it open is gone, which is told by an error.
            Ok(0) | Err(_) => return Ok(()),
            Ok(count) if shows.load(Ordering::Relaxed) => {
                io::stderr().write_all(&piece[..count])?;
            }
            Ok(_) => {}
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.shows.store(false, Ordering::Relaxed);
    }
}
