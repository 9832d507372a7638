//! A copy's progress: its threads count it, and the display reads it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::copy::message::shown;

/// Lines of trouble kept for showing; more are only counted.
const LINES_MAX: usize = 10_000;

/// The counters of one copy, at the client; a server keeps them for nobody.
#[derive(Debug, Default)]
pub struct Watch {
    /// What stands before paths at the other end.
    peer: String,
    files_listed: AtomicU64,
    bytes_listed: AtomicU64,
    is_listed: AtomicBool,
    files: AtomicU64,
    /// Octets read and handed on, and the most that was known of them to have arrived.
    bytes: AtomicU64,
    arrived: AtomicU64,
    /// Octets that wait in the queue to the network, and beyond it.
    queued: OnceLock<Arc<AtomicU64>>,
    on_the_way: AtomicU64,
    spared: AtomicU64,
    failed: AtomicU64,
    lines: Mutex<VecDeque<String>>,
    current: Mutex<Current>,
    /// Octets that were checked of the file under way.
    checked: AtomicU64,
}

/// What is done to a file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Current {
    /// Nothing here: the other end is looking.
    #[default]
    Nothing,
    /// What is there of this file is read, so much so far.
    Checking(String, u64),
    /// This file is copied.
    Copying(String),
}

/// What a [`Watch`] has counted so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Files found so far.
    pub files_listed: u64,
    /// Their octets.
    pub bytes_listed: u64,
    /// Whether all are found.
    pub is_listed: bool,
    /// Files that are in their place.
    pub files: u64,
    /// Octets of files that have arrived, with those that were there.
    pub bytes: u64,
    /// Octets that were there already.
    pub spared: u64,
    /// Things that failed.
    pub failed: u64,
}

impl Watch {
    /// Counters for a copy with this host.
    pub fn new(host: &str) -> Watch {
        Watch { peer: format!("{host}:"), ..Watch::default() }
    }

    /// The counters now.
    pub fn tally(&self) -> Tally {
        Tally {
            files_listed: self.files_listed.load(Ordering::Relaxed),
            bytes_listed: self.bytes_listed.load(Ordering::Relaxed),
            is_listed: self.is_listed.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            bytes: self.arrived(),
            spared: self.spared.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }

    /// The lines of trouble since the last time.
    pub fn take_lines(&self) -> Vec<String> {
        self.lock(&self.lines).drain(..).collect()
    }

    /// The file that is under way.
    pub fn current(&self) -> Current {
        match self.lock(&self.current).clone() {
            Current::Checking(name, _) => Current::Checking(name, self.checked()),
            current => current,
        }
    }

    /// How many octets were handed to the network and have not arrived; of those in `queued` we know.
    pub fn on_the_way(&self, octets: u64) {
        self.on_the_way.store(octets, Ordering::Relaxed);
    }

    /// Octets that have arrived, as far as is known. What is told beside them is on the way with them, so that it
    /// may seem to be fewer than before.
    fn arrived(&self) -> u64 {
        let queued = self.queued.get().map_or(0, |queued| queued.load(Ordering::Relaxed));
        let away = queued + self.on_the_way.load(Ordering::Relaxed);
        let arrived = self.bytes.load(Ordering::Relaxed).saturating_sub(away);
        self.arrived.fetch_max(arrived, Ordering::Relaxed).max(arrived)
    }

    /// Where the length of the queue to the network is counted.
    pub(super) fn count_queue(&self, queued: Arc<AtomicU64>) {
        // There is one queue to a copy.
        let _ = self.queued.set(queued);
    }

    /// Octets that were read to see whether they are what they should be.
    pub(super) fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    pub(super) fn begin_check(&self, name: &[u8]) {
        self.checked.store(0, Ordering::Relaxed);
        *self.lock(&self.current) = Current::Checking(shown(name), 0);
    }

    pub(super) fn check(&self, bytes: u64) {
        self.checked.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn list(&self, size: u64) {
        self.files_listed.fetch_add(1, Ordering::Relaxed);
        self.bytes_listed.fetch_add(size, Ordering::Relaxed);
    }

    pub(super) fn listed(&self) {
        self.is_listed.store(true, Ordering::Relaxed);
    }

    pub(super) fn begin(&self, name: &[u8], offset: u64) {
        *self.lock(&self.current) = Current::Copying(shown(name));
        self.bytes.fetch_add(offset, Ordering::Relaxed);
        self.spared.fetch_add(offset, Ordering::Relaxed);
    }

    pub(super) fn pass(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn done(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// One more failure, without a line of its own.
    pub(super) fn skip(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// One more failure, which the other end tells of.
    pub(super) fn trouble_there(&self, text: &[u8]) {
        self.trouble(format!("{}{}", self.peer, shown(text)));
    }

    /// One more failure, which this host tells of.
    pub(super) fn trouble_at(&self, host: &str, text: &[u8]) {
        self.trouble(format!("{host}:{}", shown(text)));
    }

    /// One more failure, for the user.
    pub(super) fn trouble(&self, line: String) {
        self.skip();
        let mut lines = self.lock(&self.lines);
        if lines.len() < LINES_MAX {
            lines.push_back(line);
        }
    }

    fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> std::sync::MutexGuard<'a, T> {
        // A thread that died while it held the lock left whole values behind.
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
