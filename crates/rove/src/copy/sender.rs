//! The end that has the files: lists them, and sends those that the receiver asks for.
//!
//! Three threads: one walks and lists, one sends data, and one hears the receiver, always, so that
//! neither end can wait for the other.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::fs::{FileType, SeekFrom, Stat};
use rustix::io::Errno;

use crate::copy::disk::reason;
use crate::copy::hashed::{Hashed, has_holes, seek};
use crate::copy::message::{
    DATA_BYTES_MAX, Digest, HEADER_BYTES, Mark, Message, Outcome, data_header, shown,
};
use crate::copy::pipe::{Broken, Inbox, Outbox};
use crate::copy::walk::{MATCHES_MAX, Place, Roots, Sources, Walker, vanished};
use crate::copy::watch::Watch;

/// Files that are listed and not finished with. At 100 ms and 4 kB a file this many fill 2 Gbit/s.
pub(super) const FILES_MAX: usize = 65_536;

/// A block is sent packed if it shrinks to this many eighths or fewer.
const WORTH_EIGHTHS: usize = 7;

/// Blocks sent as they are after one that did not shrink.
const UNPACKED_RUN: u32 = 32;

/// Smaller blocks are not worth the try.
const PACKED_BYTES_MIN: usize = 256;

/// Why a sender stops.
#[derive(Debug)]
pub enum Over {
    /// Everything is in its place.
    Complete,
    /// The receiver ended it, and says why.
    Refused(String),
    /// The connection has ended.
    Ended,
    /// The receiver does not keep to the protocol.
    Malformed,
    /// There are more entries than have numbers.
    TooMany,
}

impl From<io::Error> for Over {
    fn from(_: io::Error) -> Over {
        Over::Ended
    }
}

/// Sends the sources until the receiver has all it wants.
pub fn send(sources: &Sources, inbox: Inbox, mut out: Outbox, watch: &Watch) -> Over {
    let hold = Hold::new(watch);
    thread::scope(|scope| {
        let hold = &hold;
        let matches_max = MATCHES_MAX;
        let mut walker = Walker { sources, hold, out: out.clone(), next: 1, matches_max };
        scope.spawn(move || walker.run().unwrap_or_else(|over| hold.end(over)));
        let mut sending = Sending { hold, out: out.clone(), plain_run: 0 };
        scope.spawn(move || sending.run().unwrap_or_else(|over| hold.end(over)));
        let over = hold.hear(inbox);
        if matches!(over, Over::Malformed) {
            let _ = out.send(&Message::Fatal(b"the receiver does not keep to the protocol"));
            let _ = out.flush();
        }
        hold.end(over);
    });
    hold.lock().over.take().unwrap_or(Over::Ended)
}

/// A file that is listed and not finished with.
#[derive(Clone, Debug)]
pub(super) struct Held {
    place: Place,
    shown: Vec<u8>,
    is_asked: bool,
    is_wanted: bool,
    /// How the file was when its marks were told.
    marked: Option<Stamp>,
}

/// By what it is seen that a file has changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stamp {
    modified: (i64, u64),
    size: i64,
}

impl Stamp {
    fn of(stat: &Stat) -> Stamp {
        Stamp { modified: (stat.st_mtime, stat.st_mtime_nsec), size: stat.st_size }
    }
}

impl Held {
    pub(super) fn new(place: Place, shown: Vec<u8>) -> Held {
        Held { place, shown, is_asked: false, is_wanted: false, marked: None }
    }
}

/// What the three threads share.
pub(super) struct Hold<'a> {
    state: Mutex<State>,
    changed: Condvar,
    roots: Roots,
    watch: &'a Watch,
}

#[derive(Debug, Default)]
struct State {
    /// By entry. At most [`FILES_MAX`].
    held: HashMap<u32, Held>,
    /// What the receiver asked for, in its order: of each held file its marks once, and then itself once.
    wanted: VecDeque<(u32, Wish)>,
    over: Option<Over>,
}

/// What a receiver wants of a file.
#[derive(Debug)]
enum Wish {
    /// The hashes of beginnings of these lengths.
    Marks(Vec<u64>),
    /// Its octets from this offset on.
    Octets(u64),
}

impl Hold<'_> {
    pub(super) fn new(watch: &Watch) -> Hold<'_> {
        let (state, changed, roots) = (Mutex::default(), Condvar::new(), Roots::default());
        Hold { state, changed, roots, watch }
    }

    /// The directories that the user named.
    pub(super) fn roots(&self) -> &Roots {
        &self.roots
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The first reason to stop counts, but for the end of the connection: a receiver that says why it stops may stop
    /// reading before that is heard.
    fn end(&self, over: Over) {
        let mut state = self.lock();
        if matches!(state.over, None | Some(Over::Ended)) {
            state.over = Some(over);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Adds a file once there is room.
    pub(super) fn admit(
        &self,
        index: u32,
        held: Held,
        size: u64,
        out: &mut Outbox,
    ) -> Result<(), Over> {
        let mut state = self.lock();
        while state.held.len() >= FILES_MAX && state.over.is_none() {
            drop(state);
            out.flush()?;
            state = self.lock();
            if state.held.len() >= FILES_MAX && state.over.is_none() {
                state = self.wait(state);
            }
        }
        if state.over.is_some() {
            return Err(Over::Ended);
        }
        state.held.insert(index, held);
        drop(state);
        self.watch.list(size);
        Ok(())
    }

    pub(super) fn listed(&self) {
        self.watch.listed();
    }

    /// Tells both ends' users of something that cannot be sent.
    pub(super) fn trouble(&self, path: &[u8], why: &str, out: &mut Outbox) -> io::Result<()> {
        let line = line(path, why);
        out.send(&Message::Trouble(line.as_bytes()))?;
        self.watch.trouble(line);
        Ok(())
    }

    /// Hears the receiver out.
    fn hear(&self, mut inbox: Inbox) -> Over {
        loop {
            match inbox.hear() {
                Ok(Message::Ask { index, lengths }) => {
                    let mut state = self.lock();
                    match state.held.get_mut(&index) {
                        Some(held) if !held.is_asked && !held.is_wanted => held.is_asked = true,
                        _ => return Over::Malformed,
                    }
                    state.wanted.push_back((index, Wish::Marks(lengths)));
                }
                Ok(Message::Want { index, offset }) => {
                    let mut state = self.lock();
                    match state.held.get_mut(&index) {
                        Some(held) if !held.is_wanted => held.is_wanted = true,
                        _ => return Over::Malformed,
                    }
                    state.wanted.push_back((index, Wish::Octets(offset)));
                }
                Ok(Message::Done { index, outcome }) => {
                    // A directory or a link is not held; only its failure is told.
                    self.lock().held.remove(&index);
                    match outcome {
                        Outcome::Done => self.watch.done(),
                        Outcome::Failed(why) => self.watch.trouble_there(why),
                        Outcome::Skipped => self.watch.skip(),
                    }
                }
                Ok(Message::Trouble(text)) => self.watch.trouble_there(text),
                Ok(Message::Fatal(text)) => return Over::Refused(shown(text)),
                Ok(Message::Complete) => return Over::Complete,
                Ok(_) | Err(Broken::Malformed) => return Over::Malformed,
                Err(Broken::Silent) => {}
                Err(Broken::Ended) => return Over::Ended,
            }
            self.changed.notify_all();
        }
    }
}

fn line(path: &[u8], why: &str) -> String {
    format!("{}: {why}", shown(path))
}

/// The thread that sends data.
struct Sending<'a> {
    hold: &'a Hold<'a>,
    out: Outbox,
    /// Blocks that are still to be sent as they are, since the last one did not shrink.
    plain_run: u32,
}

/// Why a file is given up.
enum GivenUp {
    /// For this reason.
    Why(String),
    /// The receiver wants no more of it.
    ByReceiver,
    /// With the whole copy.
    Over(Over),
}

impl From<io::Error> for GivenUp {
    fn from(error: io::Error) -> GivenUp {
        GivenUp::Why(reason(&error))
    }
}

impl Sending<'_> {
    fn run(&mut self) -> Result<(), Over> {
        loop {
            let Some((index, held, wish)) = self.next_wanted()? else {
                return Ok(());
            };
            let done = match wish {
                Wish::Marks(lengths) => self.marks(index, &held, &lengths),
                Wish::Octets(offset) => self.file(index, &held, offset),
            };
            match done {
                Ok(()) => {}
                Err(GivenUp::ByReceiver) => {
                    self.out.send(&Message::Gone { index, why: b"" })?;
                }
                Err(GivenUp::Why(why)) => {
                    let line = line(&held.shown, &why);
                    self.out.send(&Message::Gone { index, why: line.as_bytes() })?;
                    // Before there is room for another file: the receiver counts those it waits for, too.
                    self.out.flush()?;
                    self.hold.watch.trouble(line);
                    self.hold.lock().held.remove(&index);
                    self.hold.changed.notify_all();
                }
                Err(GivenUp::Over(over)) => return Err(over),
            }
        }
    }

    /// The next file to send; `None` when the copy is over.
    fn next_wanted(&mut self) -> Result<Option<(u32, Held, Wish)>, Over> {
        loop {
            let mut state = self.hold.lock();
            if state.over.is_some() {
                return Ok(None);
            }
            if let Some((index, wish)) = state.wanted.pop_front() {
                match state.held.get(&index) {
                    Some(held) => return Ok(Some((index, held.clone(), wish))),
                    // The receiver has changed its mind; it expects nothing.
                    None => continue,
                }
            }
            drop(state);
            self.out.flush()?;
            let state = self.hold.lock();
            if state.wanted.is_empty() && state.over.is_none() {
                drop(self.hold.wait(state));
            }
        }
    }

    /// Opens a file that is to be read, if it still is one.
    fn open(&self, held: &Held) -> Result<(OwnedFd, Stat), GivenUp> {
        let opened = held.place.open(&self.hold.roots);
        let file = opened.map_err(|error| GivenUp::Why(vanished(&error)))?;
        let stat = rustix::fs::fstat(&file).map_err(io::Error::from)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((file, stat)),
            _ => Err(GivenUp::Why("it is no longer a file".to_owned())),
        }
    }

    /// Tells the hashes of a file's beginnings, as far as it is that long.
    fn marks(&mut self, index: u32, held: &Held, lengths: &[u64]) -> Result<(), GivenUp> {
        let (file, stat) = self.open(held)?;
        self.hold.watch.begin_check(&held.shown);
        let mut hashed = Hashed::new(self.hold.watch);
        let mut marks = Vec::new();
        for &length in lengths {
            if length <= hashed.length() || !hashed.read_to(&file, length)? {
                break;
            }
            marks.push(Mark { length, digest: hashed.digest() });
        }
        if let Some(held) = self.hold.lock().held.get_mut(&index) {
            held.marked = Some(Stamp::of(&stat));
        }
        Ok(self.out.send(&Message::Marks { index, marks }).map_err(Over::from)?)
    }

    fn file(&mut self, index: u32, held: &Held, wanted: u64) -> Result<(), GivenUp> {
        let (file, before) = self.open(held)?;
        let size = u64::try_from(before.st_size).unwrap_or(0);
        if size == 0 && keeps_its_size_secret(&file)? {
            let why = "it has contents but tells no size, and was not copied";
            return Err(GivenUp::Why(why.to_owned()));
        }
        // What was hashed and has changed since is sent from its beginning.
        let offset = if held.marked == Some(Stamp::of(&before)) { wanted.min(size) } else { 0 };
        self.out.send(&Message::Begin { index, offset }).map_err(Over::from)?;
        self.hold.watch.begin(&held.shown, offset);
        let digest = self.contents(index, &file, &before, offset, size)?;
        let after = rustix::fs::fstat(&file).map_err(io::Error::from)?;
        let has_grown = after.st_size > before.st_size;
        let is_touched = Stamp::of(&before) != Stamp::of(&after);
        if is_touched && !has_grown {
            let why = "it changed while it was copied; copy it again";
            return Err(GivenUp::Why(why.to_owned()));
        }
        self.out.send(&Message::End(digest)).map_err(Over::from)?;
        if has_grown {
            let why = format!(
                "it grew while it was copied: its first {size} octets are there, as they should be \
                 only if nothing but its end has changed"
            );
            self.hold.trouble(&held.shown, &why, &mut self.out).map_err(Over::from)?;
        }
        Ok(())
    }

    /// Sends what is between the two offsets; returns the hash of it.
    fn contents(
        &mut self,
        index: u32,
        file: &OwnedFd,
        stat: &Stat,
        mut offset: u64,
        size: u64,
    ) -> Result<Digest, GivenUp> {
        let mut hasher = blake3::Hasher::new();
        let mut data_end = if has_holes(file, stat) { offset } else { size };
        self.plain_run = 0;
        while offset < size {
            if offset == data_end {
                let start = seek(file, SeekFrom::Data(offset), size)?;
                if start > offset {
                    let length = start - offset;
                    self.out.send(&Message::Hole(length)).map_err(Over::from)?;
                    hasher.update(&length.to_le_bytes());
                    self.hold.watch.pass(length);
                    offset = start;
                    if offset == size {
                        break;
                    }
                }
                data_end = seek(file, SeekFrom::Hole(offset), size)?;
            }
            let length = (data_end - offset).min(DATA_BYTES_MAX as u64) as usize;
            let read = self.block(file, offset, length, &mut hasher)?;
            if read == 0 {
                let why = "it became shorter while it was copied; copy it again";
                return Err(GivenUp::Why(why.to_owned()));
            }
            offset += read as u64;
            self.hold.watch.pass(read as u64);
            if offset < size && !self.hold.lock().held.contains_key(&index) {
                return Err(GivenUp::ByReceiver);
            }
        }
        Ok(*hasher.finalize().as_bytes())
    }

    /// Reads a block and sends it; returns its length, which is 0 at the end of the file.
    fn block(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        length: usize,
        hasher: &mut blake3::Hasher,
    ) -> Result<usize, GivenUp> {
        let mut framed = Vec::with_capacity(HEADER_BYTES + length);
        framed.extend_from_slice(&[0; HEADER_BYTES]);
        let read = loop {
            match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut framed), offset) {
                Ok(read) => break read.min(length),
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        };
        if read == 0 {
            return Ok(0);
        }
        framed.truncate(HEADER_BYTES + read);
        hasher.update(&framed[HEADER_BYTES..]);
        if let Some(block) = self.packed(&framed[HEADER_BYTES..]) {
            let length = read as u32;
            let packed = Message::Packed { length, block: &block };
            self.out.send(&packed).map_err(Over::from)?;
            return Ok(read);
        }
        framed[..HEADER_BYTES].copy_from_slice(&data_header(read));
        self.out.send_data(framed).map_err(Over::from)?;
        Ok(read)
    }

    /// The block packed, if the network is what we wait for and it is worth it.
    fn packed(&mut self, block: &[u8]) -> Option<Vec<u8>> {
        if self.plain_run > 0 {
            self.plain_run -= 1;
            return None;
        }
        if block.len() < PACKED_BYTES_MIN || !self.out.is_behind() {
            return None;
        }
        let packed = lz4_flex::block::compress(block);
        if packed.len() * 8 <= block.len() * WORTH_EIGHTHS {
            return Some(packed);
        }
        self.plain_run = UNPACKED_RUN;
        None
    }
}

/// Whether a file of no size has contents all the same, as those of `/proc` have.
fn keeps_its_size_secret(file: &OwnedFd) -> io::Result<bool> {
    let has_contents = rustix::io::pread(file, &mut [0_u8], 0)? > 0;
    Ok(has_contents && rustix::fs::fstat(file)?.st_size == 0)
}

impl From<Over> for GivenUp {
    fn from(over: Over) -> GivenUp {
        GivenUp::Over(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::pipe;

    /// Another file is listed once one has left, so the receiver must hear of that before.
    #[test]
    fn what_cannot_be_sent_is_told_before_it_makes_room() {
        let missing = std::env::temp_dir().join(format!("rove-missing-{}", std::process::id()));
        let path = missing.into_os_string().into_encoded_bytes();
        let watch = Watch::default();
        let hold = Hold::new(&watch);
        let held = Held::new(Place::Plain(path.clone()), path);
        hold.lock().held.insert(1, held);
        hold.lock().wanted.push_back((1, Wish::Octets(0)));
        let (_inbox, out, moving) = pipe::join(tokio::io::empty(), tokio::io::sink(), 0, || true);
        // Nobody takes what is handed over.
        drop(moving);
        let sent = Sending { hold: &hold, out, plain_run: 0 }.run();
        assert!(matches!(sent, Err(Over::Ended)), "{sent:?}");
        assert!(hold.lock().held.contains_key(&1), "the receiver was not told, and waits for it");
    }

    #[test]
    fn why_a_receiver_stopped_is_told_though_it_reads_no_more() {
        let full = || Over::Refused("the disk is full".to_owned());
        for reasons in [[Over::Ended, full()], [full(), Over::Ended]] {
            let watch = Watch::default();
            let hold = Hold::new(&watch);
            reasons.into_iter().for_each(|over| hold.end(over));
            let over = hold.lock().over.take();
            assert!(matches!(over, Some(Over::Refused(_))), "{over:?}");
        }
    }
}
