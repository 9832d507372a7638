//! Reads a program's output ahead while the session works on earlier output.
//!
//! A terminal holds some 12 KiB and gives 4 KiB at a time, so a program that floods it stands still whenever
//! nobody reads. In a flood a second thread only reads while the first one emulates: on two processors a
//! session then takes output as fast as a bare terminal gives it. The thread starts with the first flood,
//! and rests between floods: a keystroke never wakes it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os;
use crate::os::pty::{self, Output, Pty};

/// The most octets to read ahead. As much again delays the effect of a Ctrl-C by the time of its emulation:
/// for text less than 1 ms.
const AHEAD_BYTES: usize = 64 << 10;

/// Octets of one read: no kernel gives more of a terminal at a time.
const READ_BYTES: usize = 4096;

/// A read of this size shows a flood: there was room for little more.
const FLOOD_BYTES: usize = READ_BYTES - 1;

/// Octets that justify waking a sleeper in a flood. Each piece costs a turn, so pieces must not be small.
const GATHERED_BYTES: usize = 16 << 10;

/// How long to wait for them at most: a few times as long as the kernel takes to carry over 4 KiB.
const GATHERING: Duration = Duration::from_micros(300);

/// A flood is over when nothing has come for this long.
const QUIET: Duration = Duration::from_millis(20);

/// A terminal's output, in the order in which it was written.
#[derive(Debug)]
pub(super) struct ReadAhead {
    master: Arc<OwnedFd>,
    octets: Vec<u8>,
    /// How many of them the owner has taken.
    taken: usize,
    hung_up: bool,
    /// Tells when there is something to read. Not in a flood: each arrival would wake the owner too.
    ready: Option<AsyncFd<Arc<OwnedFd>>>,
    /// Where the thread and the owner meet, once there was a flood.
    meeting: Option<Arc<Meeting>>,
}

impl ReadAhead {
    /// A reader of what programs write to this terminal. Needs a tokio runtime with I/O.
    pub(super) fn new(pty: &Pty) -> io::Result<ReadAhead> {
        let master = Arc::new(pty.try_clone()?);
        let ready = Some(os::watch(Arc::clone(&master), Interest::READABLE)?);
        Ok(ReadAhead { master, octets: Vec::new(), taken: 0, hung_up: false, ready, meeting: None })
    }

    /// No program has the terminal open, and all output was taken.
    pub(super) fn hung_up(&self) -> bool {
        self.hung_up && self.rest().is_empty()
    }

    /// There is more already: call [`next`](Self::next) rather than sleep.
    pub(super) fn has_more(&self) -> bool {
        match (&self.ready, &self.meeting) {
            _ if !self.rest().is_empty() => true,
            (None, Some(meeting)) => meeting.lock().has_news(),
            _ => self.octets.len() >= FLOOD_BYTES,
        }
    }

    /// Ready when [`next`](Self::next) has something to give.
    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match (&self.ready, &self.meeting) {
            (Some(ready), _) => ready.poll_read_ready(cx).map_ok(|_| ()),
            (None, Some(meeting)) => meeting.poll(cx).map(Ok),
            (None, None) => Poll::Pending,
        }
    }

    /// Output not [taken](Self::took) yet, as far as it is here: at most 64 KiB. Never waits.
    pub(super) fn next(&mut self) -> &[u8] {
        if self.rest().is_empty() {
            self.octets.clear();
            self.taken = 0;
            if self.ready.is_none() {
                self.take();
            }
            if self.ready.is_some() {
                self.read();
            }
        }
        self.rest()
    }

    /// The owner is done with the first octets of `next`.
    pub(super) fn took(&mut self, count: usize) {
        self.taken += count;
    }

    fn rest(&self) -> &[u8] {
        self.octets.get(self.taken..).unwrap_or_default()
    }

    /// Takes the thread's octets. If it rests, the owner reads from here on.
    fn take(&mut self) {
        let Some(meeting) = &self.meeting else { return };
        let mut gathered = meeting.lock();
        std::mem::swap(&mut gathered.octets, &mut self.octets);
        self.hung_up = gathered.hung_up;
        let rests = gathered.resting && !self.hung_up;
        drop(gathered);
        // There may be room again.
        meeting.changed.notify_one();
        if rests {
            match os::watch(Arc::clone(&self.master), Interest::READABLE) {
                Ok(ready) => self.ready = Some(ready),
                // The thread goes on for want of a better way.
                Err(_) => meeting.read_on(),
            }
        }
    }

    /// Reads what is there, until it turns out to be a flood.
    fn read(&mut self) {
        let Some(ready) = &self.ready else { return };
        let mut room = [0; READ_BYTES];
        while self.octets.len() < FLOOD_BYTES {
            match read_ready(ready, &mut room) {
                Output::Bytes(count) => self.octets.extend_from_slice(&room[..count]),
                Output::Nothing => return,
                Output::HungUp => {
                    self.hung_up = true;
                    return;
                }
            }
        }
        self.read_ahead();
    }

    /// Makes the thread read from here on. If the system refuses a thread, the owner continues reading.
    fn read_ahead(&mut self) {
        if self.meeting.is_none() {
            self.meeting = Meeting::start(&self.master).ok();
        }
        if let Some(meeting) = &self.meeting {
            self.ready = None;
            meeting.read_on();
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        if let Some(meeting) = &self.meeting {
            meeting.lock().abandoned = true;
            meeting.changed.notify_one();
        }
    }
}

/// Where the thread leaves what it reads.
#[derive(Debug, Default)]
struct Meeting {
    gathered: Mutex<Gathered>,
    /// The thread may go on, or is to end.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Gathered {
    octets: Vec<u8>,
    hung_up: bool,
    /// The flood is over, and the thread reads no more until told to.
    resting: bool,
    /// The owner, while it sleeps.
    sleeper: Option<Waker>,
    /// The owner is gone.
    abandoned: bool,
}

impl Gathered {
    fn has_news(&self) -> bool {
        !self.octets.is_empty() || self.hung_up || self.resting
    }

    fn wake(&mut self) {
        if let Some(sleeper) = self.sleeper.take() {
            sleeper.wake();
        }
    }

    /// Keeps what a read found. A flood's octets gather while the owner sleeps.
    fn keep(&mut self, found: Output, room: &[u8]) {
        match found {
            Output::Bytes(count) => {
                self.octets.extend_from_slice(&room[..count]);
                if self.octets.len() < GATHERED_BYTES && count >= FLOOD_BYTES {
                    return;
                }
            }
            Output::Nothing => self.resting = self.octets.is_empty(),
            Output::HungUp => self.hung_up = true,
        }
        self.wake();
    }
}

impl Meeting {
    fn start(master: &Arc<OwnedFd>) -> io::Result<Arc<Meeting>> {
        let meeting = Arc::new(Meeting::default());
        let (master, theirs) = (Arc::clone(master), Arc::clone(&meeting));
        os::threads::spawn("output", move || theirs.run(&master))?;
        Ok(meeting)
    }

    fn lock(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_on(&self) {
        self.lock().resting = false;
        self.changed.notify_one();
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut gathered = self.lock();
        if gathered.has_news() {
            return Poll::Ready(());
        }
        gathered.sleeper = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The thread.
    fn run(&self, master: &OwnedFd) {
        let mut room = [0; READ_BYTES];
        while let Some(patience) = self.go_on() {
            let found = match is_readable(master, patience) {
                // A terminal that cannot be read is gone.
                true => pty::read(master, &mut room).unwrap_or(Output::HungUp),
                false => Output::Nothing,
            };
            self.lock().keep(found, &room);
        }
    }

    /// Waits for permission to read. Returns how long to wait for output then; `None` is the end.
    fn go_on(&self) -> Option<Duration> {
        let gathered = self.changed.wait_while(self.lock(), |gathered| {
            let full = gathered.octets.len() + READ_BYTES > AHEAD_BYTES;
            !gathered.abandoned && !gathered.hung_up && (gathered.resting || full)
        });
        let gathered = gathered.unwrap_or_else(PoisonError::into_inner);
        let waited_for = gathered.sleeper.is_some() && !gathered.octets.is_empty();
        let goes_on = !gathered.abandoned && !gathered.hung_up;
        goes_on.then_some(if waited_for { GATHERING } else { QUIET })
    }
}

/// Whether there is something to read, or to be told, within this time.
fn is_readable(master: &OwnedFd, patience: Duration) -> bool {
    let limit = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
    // Where the wait is cut short, there is nothing yet.
    rustix::event::poll(&mut [PollFd::new(master, PollFlags::IN)], Some(&limit)) != Ok(0)
}

/// One read of the terminal if it is ready for that.
fn read_ready(master: &AsyncFd<Arc<OwnedFd>>, room: &mut [u8]) -> Output {
    let read = master.try_io(Interest::READABLE, |master| match pty::read(master, room)? {
        Output::Nothing => Err(io::ErrorKind::WouldBlock.into()),
        found => Ok(found),
    });
    match read {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Output::Nothing,
        Err(_) => Output::HungUp,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rove_term::Size;

    use super::*;
    use crate::os::process::CoreLimit;

    /// What a session reads of a program's output, and its largest piece.
    fn output(script: &str) -> (Vec<u8>, usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _context = runtime.enter();
        let mut pty = Pty::open(Size::clamped(24, 80)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut child = pty.start(command, CoreLimit::current()).unwrap();
        pty.release();
        let (mut all, mut largest) = (Vec::new(), 0);
        let mut ahead = ReadAhead::new(&pty).unwrap();
        runtime.block_on(async {
            while !ahead.hung_up() {
                let piece = ahead.next();
                largest = largest.max(piece.len());
                // What is left is there again, before anything else.
                let taken = piece.len().min(5000);
                all.extend_from_slice(&piece[..taken]);
                ahead.took(taken);
                if !ahead.hung_up() && !ahead.has_more() {
                    std::future::poll_fn(|cx| ahead.poll_ready(cx)).await.unwrap();
                }
            }
        });
        assert!(child.wait().unwrap().success());
        (all, largest)
    }

    #[test]
    fn output_comes_whole_and_in_order() {
        for (script, last) in [
            ("seq 1", "1"),
            ("seq 200000", "200000"),
            // The thread comes to rest in between, and is called again.
            ("seq 9000; sleep 0.1; seq 9001 9002; sleep 0.1; seq 9003 20000", "20000"),
        ] {
            let (all, largest) = output(script);
            let mut numbers = 0;
            for line in all.split_inclusive(|&octet| octet == b'\n') {
                numbers += 1;
                assert_eq!(line, format!("{numbers}\r\n").as_bytes());
            }
            assert_eq!(numbers.to_string(), last);
            assert!(largest <= AHEAD_BYTES);
        }
    }
}
