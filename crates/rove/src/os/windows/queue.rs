//! Octets between a thread that waits for the system and a task that must not: pipes and consoles cannot be watched.

use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A queue with a thread at one end and a task at the other.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct State {
    octets: VecDeque<u8>,
    /// What fills it has ended.
    ended: bool,
    /// What empties it has ended.
    closed: bool,
    /// The thread writes what it has taken.
    writes: bool,
    waker: Option<Waker>,
}

impl Queue {
    pub(crate) fn new(bytes_max: usize) -> Queue {
        Queue { state: Mutex::default(), changed: Condvar::new(), bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self, mut state: MutexGuard<'_, State>) {
        let waker = state.waker.take();
        drop(state);
        self.changed.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Nothing more comes.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.changed(state);
    }

    /// Nobody takes any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.changed(state);
    }

    /// For a thread: puts octets there, and waits for room wherever there is none. Whether somebody still takes them.
    pub(crate) fn put(&self, octets: &[u8]) -> bool {
        let mut rest = octets;
        while !rest.is_empty() {
            let mut state = self.lock();
            while !state.closed && state.octets.len() >= self.bytes_max {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.closed {
                return false;
            }
            let (now, later) = rest.split_at(rest.len().min(self.bytes_max - state.octets.len()));
            state.octets.extend(now);
            rest = later;
            self.changed(state);
        }
        true
    }

    /// For a thread: waits for octets and takes all. `None` at the end.
    pub(crate) fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
        state.writes = false;
        if state.octets.is_empty() {
            self.changed.notify_all();
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        }
        while state.octets.is_empty() {
            if state.ended || state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.writes = true;
        let taken = state.octets.drain(..).collect();
        self.changed(state);
        Some(taken)
    }

    /// For a task: ready while there are octets, or the end.
    pub(crate) fn poll_filled(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_until(cx, |state| !state.octets.is_empty() || state.ended)
    }

    /// For a task: ready while there is room, or nobody takes any more.
    pub(crate) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_until(cx, |state| state.octets.len() < self.bytes_max || state.closed)
    }

    /// For a task: ready once the thread has written all.
    pub(crate) fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_until(cx, |state| state.closed || state.octets.is_empty() && !state.writes)
    }

    fn poll_until(&self, cx: &mut Context<'_>, is_so: impl FnOnce(&State) -> bool) -> Poll<()> {
        let mut state = self.lock();
        if is_so(&state) {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Takes what is there, without waiting; 0 is the end.
    pub(crate) fn take(&self, room: &mut [u8]) -> io::Result<usize> {
        let mut state = self.lock();
        let count = state.octets.len().min(room.len());
        if count == 0 && !state.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        for (place, octet) in room.iter_mut().zip(state.octets.drain(..count)) {
            *place = octet;
        }
        self.changed(state);
        Ok(count)
    }

    /// Waits this long for octets, and takes them; 0 if none came.
    pub(crate) fn take_within(&self, wait: Duration, room: &mut [u8]) -> usize {
        let state = self.lock();
        let is_empty = |state: &mut State| state.octets.is_empty() && !state.ended;
        drop(self.changed.wait_timeout_while(state, wait, is_empty));
        self.take(room).unwrap_or(0)
    }

    /// Waits this long until the thread has written all. Whether it has.
    pub(crate) fn written_within(&self, wait: Duration) -> bool {
        let state = self.lock();
        let is_busy =
            |state: &mut State| !state.closed && (!state.octets.is_empty() || state.writes);
        let waited = self.changed.wait_timeout_while(state, wait, is_busy);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Puts as much there as there is room for, without waiting.
    pub(crate) fn offer(&self, octets: &[u8]) -> io::Result<usize> {
        let mut state = self.lock();
        if state.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = octets.len().min(self.bytes_max - state.octets.len().min(self.bytes_max));
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.octets.extend(&octets[..count]);
        self.changed(state);
        Ok(count)
    }

    /// Throws away what nobody has taken.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        state.octets.clear();
        self.changed(state);
    }
}
