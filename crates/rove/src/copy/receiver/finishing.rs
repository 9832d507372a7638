//! Syncs finished files, in workers that share the disk's waits, and gives files up.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver as Jobs;

use crate::copy::disk::{Disk, reason};
use crate::copy::message::{Message, Outcome, shown};
use crate::copy::part::{Finish, Part};
use crate::copy::pipe::Outbox;
use crate::copy::target::Target;
use crate::copy::watch::Watch;
use crate::os::fs::{Errno, OwnedFd, is_read_only};

/// Workers that sync finished files.
pub(super) const FINISHERS: usize = 16;

/// The most finished files that wait for them.
pub(super) const FINISHED_MAX: usize = 64;

/// The state that the workers share.
pub(super) struct Shared<'a> {
    jobs: Mutex<Jobs<Finished>>,
    disk: &'a Disk,
    pub(super) watch: &'a Watch,
    /// The target, and its disk.
    root: Arc<OwnedFd>,
    device: Option<u64>,
    /// Set when nothing more can be written.
    pub(super) stop: OnceLock<String>,
}

/// A file that has all its octets.
pub(super) struct Finished {
    pub(super) index: u32,
    pub(super) part: Part,
    pub(super) finish: Finish,
    pub(super) shown: Vec<u8>,
}

impl<'a> Shared<'a> {
    pub(super) fn new(
        jobs: Jobs<Finished>,
        disk: &'a Disk,
        watch: &'a Watch,
        target: &Target,
    ) -> Shared<'a> {
        let (jobs, root, device) = (Mutex::new(jobs), target.root(), target.device());
        Shared { jobs, disk, watch, root, device, stop: OnceLock::new() }
    }

    /// Finishes files until no more can come.
    pub(super) async fn finish_files(&self, mut out: Outbox) {
        loop {
            let job = self.jobs.lock().await.recv().await;
            let Some(Finished { index, part, finish, shown }) = job else {
                return;
            };
            let device = part.device();
            let told = match part.finish(self.disk, &finish) {
                Ok(()) => {
                    self.watch.done();
                    out.send(&Message::Done { index, outcome: Outcome::Done }).await
                }
                Err(error) => self.fail(index, &shown, &error, device, &mut out).await,
            };
            // If nobody hears us any more, the worker that listens finds it out.
            if told.is_ok() {
                let _ = out.flush().await;
            }
        }
    }

    /// Gives one file up, or the whole copy: another disk than the target's, by its number, is full or
    /// read-only only for itself.
    pub(super) async fn fail(
        &self,
        index: u32,
        path: &[u8],
        error: &io::Error,
        device: Option<u64>,
        out: &mut Outbox,
    ) -> io::Result<()> {
        let why = format!("{}: {}", shown(path), reason(error));
        if self.device.is_some() && device == self.device && self.keeps_out_all(error) {
            let _ = self.stop.set(why);
            return Ok(());
        }
        self.give_up(index, why, out).await
    }

    /// Whether the target takes no more at all: it is full, or read-only itself and not only in a mount
    /// below it. A quota may apply to one directory, and shows nothing about others.
    fn keeps_out_all(&self, error: &io::Error) -> bool {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC) => true,
            Some(Errno::ROFS) => is_read_only(&self.root),
            _ => false,
        }
    }

    pub(super) async fn give_up(
        &self,
        index: u32,
        why: String,
        out: &mut Outbox,
    ) -> io::Result<()> {
        out.send(&Message::Done { index, outcome: Outcome::Failed(why.as_bytes()) }).await?;
        self.watch.trouble(why);
        Ok(())
    }
}
