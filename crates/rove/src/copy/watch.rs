//! A copy's progress: its threads count it, and the display reads it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::copy::buggify::{Buggify, Point};
use crate::copy::message::shown;

/// The most lines of each kind to keep; further failures are only counted.
const LINES_MAX: usize = 10_000;

/// The counters of one copy, at the client; nobody reads a server's.
#[derive(Debug, Default)]
pub struct Watch {
    /// The prefix of paths at the other end.
    peer: String,
    files_listed: AtomicU64,
    bytes_listed: AtomicU64,
    is_listed: AtomicBool,
    files: AtomicU64,
    /// Octets read and handed on, and the largest known number of them that have arrived.
    bytes: AtomicU64,
    arrived: AtomicU64,
    /// Octets waiting in the queue to the network, and beyond it.
    queued: OnceLock<Arc<AtomicU64>>,
    on_the_way: AtomicU64,
    spared: AtomicU64,
    failed: AtomicU64,
    lines: Mutex<VecDeque<String>>,
    /// Lines that are no failures.
    notes: Mutex<Vec<String>>,
    current: Mutex<Current>,
    /// Octets of the current file that were checked.
    checked: AtomicU64,
    buggify: Buggify,
}

/// The current work on a file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Current {
    /// Nothing here: the other end is checking.
    #[default]
    Nothing,
    /// Reading our copy of this file, this many octets so far.
    Checking(String, u64),
    /// Copying this file.
    Copying(String),
}

/// The counts of a [`Watch`] so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Files found so far.
    pub files_listed: u64,
    /// Their octets.
    pub bytes_listed: u64,
    /// Whether all have been found.
    pub is_listed: bool,
    /// Files in their place.
    pub files: u64,
    /// Octets of files that have arrived, with those that were there already.
    pub bytes: u64,
    /// Octets that were there already.
    pub spared: u64,
    /// Things that failed.
    pub failed: u64,
}

/// Octets of one beginning of a file, as a [`Watch`] counts them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counted {
    /// All of them.
    pub(crate) bytes: u64,
    /// Those that were there already.
    pub(crate) spared: u64,
}

impl Watch {
    /// Counters for a copy with this host.
    pub fn new(host: &str) -> Watch {
        Watch { peer: format!("{host}:"), ..Watch::default() }
    }

    /// Counters of an end that takes rare branches by this seed, in builds with the feature `buggify`.
    pub fn buggified(seed: u64) -> Watch {
        Watch { buggify: Buggify::seeded(seed), ..Watch::default() }
    }

    /// How often each of [`Point::ALL`](super::buggify::Point::ALL) was taken.
    pub fn taken(&self) -> [u64; Point::ALL.len()] {
        self.buggify.taken()
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

    /// The failure lines since the last call.
    pub fn take_lines(&self) -> Vec<String> {
        self.lock(&self.lines).drain(..).collect()
    }

    /// The lines since the last call that are no failures.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock(&self.notes))
    }

    /// The current file.
    pub fn current(&self) -> Current {
        match self.lock(&self.current).clone() {
            Current::Checking(name, _) => Current::Checking(name, self.checked()),
            current => current,
        }
    }

    /// Sets how many octets the network has been given and has not delivered, besides those in `queued`.
    pub fn on_the_way(&self, octets: u64) {
        self.on_the_way.store(octets, Ordering::Relaxed);
    }

    /// Octets known to have arrived. Messages count as octets on their way too, so the number may seem to
    /// fall.
    fn arrived(&self) -> u64 {
        let queued = self.queued.get().map_or(0, |queued| queued.load(Ordering::Relaxed));
        let away = queued + self.on_the_way.load(Ordering::Relaxed);
        let arrived = self.bytes.load(Ordering::Relaxed).saturating_sub(away);
        self.arrived.fetch_max(arrived, Ordering::Relaxed).max(arrived)
    }

    pub(super) fn buggify(&self) -> &Buggify {
        &self.buggify
    }

    /// Sets the counter of the queue to the network.
    pub(super) fn count_queue(&self, queued: Arc<AtomicU64>) {
        // There is one queue to a copy.
        let _ = self.queued.set(queued);
    }

    /// Octets read to check the present contents.
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

    /// Forgets what was counted of a file that begins anew.
    pub(super) fn take_back(&self, counted: Counted) {
        self.bytes.fetch_sub(counted.bytes, Ordering::Relaxed);
        self.spared.fetch_sub(counted.spared, Ordering::Relaxed);
    }

    pub(super) fn pass(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn done(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// This file waits for another copy of it. `heard` counts the seconds since that copy's client was heard.
    pub(super) fn wait(&self, name: &str, heard: Option<u32>) {
        let heard = match heard {
            None => String::new(),
            Some(0) => " (its client was heard just now)".to_owned(),
            Some(seconds) => format!(" (its client was heard {seconds} s ago)"),
        };
        let mut notes = self.lock(&self.notes);
        if notes.len() < LINES_MAX {
            notes.push(format!("waiting for another copy of {name}{heard}"));
        }
    }

    /// One more failure, without a line of its own.
    pub(super) fn skip(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// One more failure, which the other end reports.
    pub(super) fn trouble_there(&self, text: &[u8]) {
        self.trouble(format!("{}{}", self.peer, shown(text)));
    }

    /// One more failure, which this host reports.
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
