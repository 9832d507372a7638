//! Sends the files: lists them, and sends those that the receiver asks for.
//!
//! Three workers: one walks and lists, one sends data, and one hears the receiver, always, so that
//! neither end can wait for the other.

use std::io;
use std::pin::Pin;

use crate::copy::buggify::Point;
use crate::copy::disk::reason;
use crate::copy::hashed::{Hashed, has_holes, seek};
use crate::copy::message::{DATA_BYTES_MAX, Digest, HEADER_BYTES, Mark, Message, data_header};
use crate::copy::outgoing::{Listed, Outgoing, Over, Stamp, Wish, line};
use crate::copy::pipe::{Inbox, Outbox};
use crate::copy::walk::{MATCHES_MAX, Sources, Walker, vanished};
use crate::copy::watch::{Counted, Watch};
use crate::copy::workers::Workers;
use crate::os::fs::{self, Errno, OwnedFd, SeekFrom, fstat};
use crate::os::stat::{FileType, Stat};

/// A block is sent packed if it shrinks to this many eighths or fewer.
const WORTH_EIGHTHS: usize = 7;

/// Blocks to send unpacked after one that did not shrink.
const UNPACKED_RUN: u32 = 32;

/// Smaller blocks are not worth packing.
const PACKED_BYTES_MIN: usize = 256;

/// Sends the sources until the receiver has all it asks for.
pub(crate) async fn send(
    sources: &Sources,
    inbox: Inbox,
    mut out: Outbox,
    watch: &Watch,
    workers: Workers,
) -> Over {
    let hold = Outgoing::new(watch);
    let matches_max = MATCHES_MAX;
    let mut walker = Walker { sources, hold: &hold, out: out.clone(), next: 1, matches_max };
    let mut sending = Sending { hold: &hold, out: out.clone(), plain_run: 0 };
    let walk: Worker<'_> =
        Box::pin(async { walker.run().await.unwrap_or_else(|over| hold.end(over)) });
    let send: Worker<'_> =
        Box::pin(async { sending.run().await.unwrap_or_else(|over| hold.end(over)) });
    let hear = async {
        let over = hold.hear(inbox).await;
        if matches!(over, Over::Malformed) {
            let _ = out.send(&Message::Fatal(b"the receiver does not keep to the protocol")).await;
            let _ = out.flush().await;
        }
        hold.end(over);
    };
    let ((), whole) = workers.join(hear, vec![walk, send]).await;
    // A sender that died sent too little, which is no reason that the receiver could have told.
    whole.expect("the workers of a sender end without a panic");
    hold.lock().over.take().unwrap_or(Over::Ended)
}

/// A worker of the sender.
type Worker<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The worker that sends data.
struct Sending<'a> {
    hold: &'a Outgoing<'a>,
    out: Outbox,
    /// Blocks still to send unpacked, since the last one did not shrink.
    plain_run: u32,
}

/// Why a file is given up.
enum GivenUp {
    /// For this reason.
    Why(String),
    /// The receiver gave it up, or wants it anew.
    ByReceiver,
    /// The whole copy ends.
    Over(Over),
}

impl From<io::Error> for GivenUp {
    fn from(error: io::Error) -> GivenUp {
        GivenUp::Why(reason(&error))
    }
}

impl Sending<'_> {
    async fn run(&mut self) -> Result<(), Over> {
        loop {
            let Some((index, held, wish)) = self.next_wanted().await? else {
                return Ok(());
            };
            let done = match wish {
                Wish::Marks(lengths) => self.marks(index, &held, &lengths).await,
                Wish::Octets(offset) => self.file(index, &held, offset).await,
            };
            match done {
                Ok(()) => {}
                Err(GivenUp::ByReceiver) => {
                    self.out.send(&Message::Gone { index, why: b"" }).await?;
                }
                Err(GivenUp::Why(why)) => {
                    let line = line(&held.shown, &why);
                    self.out.send(&Message::Gone { index, why: line.as_bytes() }).await?;
                    // Before there is room for another file: the receiver counts those it waits for, too.
                    self.out.flush().await?;
                    self.hold.watch.trouble(line);
                    self.hold.lock().give_up(index);
                    self.hold.changed.notify_waiters();
                }
                Err(GivenUp::Over(over)) => return Err(over),
            }
        }
    }

    /// The next file to send; `None` when the copy is over.
    async fn next_wanted(&mut self) -> Result<Option<(u32, Listed, Wish)>, Over> {
        loop {
            {
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
            }
            self.out.flush().await?;
            self.hold.wait_if(|state| state.wanted.is_empty() && state.over.is_none()).await;
        }
    }

    /// Opens a file for reading, if it still is one.
    fn open(&self, held: &Listed) -> Result<(OwnedFd, Stat), GivenUp> {
        let opened = held.place.open(&self.hold.roots);
        let file = opened.map_err(|error| GivenUp::Why(vanished(&error)))?;
        let stat = fstat(&file).map_err(io::Error::from)?;
        match stat.kind() {
            FileType::RegularFile => Ok((file, stat)),
            _ => Err(GivenUp::Why("it is no longer a file".to_owned())),
        }
    }

    /// Sends the hashes of a file's beginnings, as far as it is that long.
    async fn marks(&mut self, index: u32, held: &Listed, lengths: &[u64]) -> Result<(), GivenUp> {
        let (file, stat) = self.open(held)?;
        self.hold.watch.begin_check(&held.shown);
        let mut hashed = Hashed::new(self.hold.watch);
        let mut marks = Vec::new();
        for &length in lengths {
            let is_cut = self.hold.watch.buggify().takes(Point::MarksCut);
            if is_cut || length <= hashed.length() || !hashed.read_to(&file, length)? {
                break;
            }
            marks.push(Mark { length, digest: hashed.digest() });
        }
        if let Some(held) = self.hold.lock().held.get_mut(&index) {
            held.marked = Some(Stamp::of(&stat));
        }
        Ok(self.out.send(&Message::Marks { index, marks }).await.map_err(Over::from)?)
    }

    async fn file(&mut self, index: u32, held: &Listed, wanted: u64) -> Result<(), GivenUp> {
        let (file, before) = self.open(held)?;
        let size = u64::try_from(before.st_size).unwrap_or(0);
        if size == 0 && keeps_its_size_secret(&file)? {
            let why = "it has contents but tells no size, and was not copied";
            return Err(GivenUp::Why(why.to_owned()));
        }
        // What was hashed and has changed since is sent from its beginning.
        let is_as_hashed = held.marked == Some(Stamp::of(&before));
        let offset = match is_as_hashed && wanted > 0 {
            true if !self.hold.watch.buggify().takes(Point::BeginningSent) => wanted.min(size),
            _ => 0,
        };
        if let Some(held) = self.hold.lock().held.get_mut(&index) {
            held.has_begun = true;
        }
        self.out.send(&Message::Begin { index, offset }).await.map_err(Over::from)?;
        self.hold.watch.take_back(held.counted);
        self.hold.watch.begin(&held.shown, offset);
        let mut at = offset;
        let sent = self.contents((index, held.anew), &file, &before, &mut at, size).await;
        if let Some(held) = self.hold.lock().held.get_mut(&index) {
            held.counted = Counted { bytes: at, spared: offset };
        }
        let digest = sent?;
        let after = fstat(&file).map_err(io::Error::from)?;
        let has_grown = after.st_size > before.st_size;
        let is_touched = Stamp::of(&before) != Stamp::of(&after);
        if is_touched && !has_grown {
            let why = "it changed while it was copied; copy it again";
            return Err(GivenUp::Why(why.to_owned()));
        }
        self.out.send(&Message::End(digest)).await.map_err(Over::from)?;
        if has_grown {
            let why = format!(
                "it grew while it was copied: its first {size} octets are there, as they should be \
                 only if nothing but its end has changed"
            );
            self.hold.trouble(&held.shown, &why, &mut self.out).await.map_err(Over::from)?;
        }
        Ok(())
    }

    /// Sends the octets between the two offsets, of which the first moves on; returns their hash. `beginning` is the
    /// file's number, and how often it was wanted anew.
    async fn contents(
        &mut self,
        beginning: (u32, u8),
        file: &OwnedFd,
        stat: &Stat,
        offset: &mut u64,
        size: u64,
    ) -> Result<Digest, GivenUp> {
        let mut hasher = blake3::Hasher::new();
        let mut data_end = if has_holes(file, stat) { *offset } else { size };
        self.plain_run = 0;
        while *offset < size {
            if *offset == data_end {
                let start = seek(file, SeekFrom::Data(*offset), size)?;
                if start > *offset {
                    let length = start - *offset;
                    self.out.send(&Message::Hole(length)).await.map_err(Over::from)?;
                    hasher.update(&length.to_le_bytes());
                    self.hold.watch.pass(length);
                    *offset = start;
                    if *offset == size {
                        break;
                    }
                }
                data_end = seek(file, SeekFrom::Hole(*offset), size)?;
            }
            let length = (data_end - *offset).min(DATA_BYTES_MAX as u64) as usize;
            let length = self.hold.watch.buggify().cut(Point::BlockCut, length);
            let read = self.block(file, *offset, length, &mut hasher).await?;
            if read == 0 {
                let why = "it became shorter while it was copied; copy it again";
                return Err(GivenUp::Why(why.to_owned()));
            }
            *offset += read as u64;
            self.hold.watch.pass(read as u64);
            if *offset < size && !self.hold.lock().wants(beginning) {
                return Err(GivenUp::ByReceiver);
            }
        }
        Ok(*hasher.finalize().as_bytes())
    }

    /// Reads a block and sends it; returns its length, which is 0 at the end of the file.
    async fn block(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        length: usize,
        hasher: &mut blake3::Hasher,
    ) -> Result<usize, GivenUp> {
        let mut framed = Vec::with_capacity(HEADER_BYTES + length);
        framed.extend_from_slice(&[0; HEADER_BYTES]);
        let read = loop {
            match fs::append(file, &mut framed, offset) {
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
            self.out.send(&packed).await.map_err(Over::from)?;
            return Ok(read);
        }
        framed[..HEADER_BYTES].copy_from_slice(&data_header(read));
        self.out.send_data(framed).await.map_err(Over::from)?;
        Ok(read)
    }

    /// The packed block, if the network is the bottleneck and it shrinks enough.
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

/// Whether a file of size 0 has contents all the same, as those of `/proc` do.
fn keeps_its_size_secret(file: &OwnedFd) -> io::Result<bool> {
    let has_contents = fs::pread(file, &mut [0_u8], 0)? > 0;
    Ok(has_contents && fstat(file)?.st_size == 0)
}

impl From<Over> for GivenUp {
    fn from(over: Over) -> GivenUp {
        GivenUp::Over(over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::buggify::Buggify;
    use crate::copy::pipe;
    use crate::copy::source::SourceFile;
    use crate::copy::workers::wait;

    /// The sender lists another file only after one has left, so the receiver must hear of that first.
    #[test]
    fn what_cannot_be_sent_is_told_before_it_makes_room() {
        let missing = std::env::temp_dir().join(format!("rove-missing-{}", std::process::id()));
        let path = missing.into_os_string().into_encoded_bytes();
        let watch = Watch::default();
        let hold = Outgoing::new(&watch);
        let held = Listed::new(SourceFile::Plain(path.clone()), path);
        hold.lock().held.insert(1, held);
        hold.lock().wanted.push_back((1, Wish::Octets(0)));
        let (_inbox, out, moving) =
            pipe::join(tokio::io::empty(), tokio::io::sink(), 0, || true, Buggify::default());
        // Nobody takes what is handed over.
        drop(moving);
        let sent = wait(Sending { hold: &hold, out, plain_run: 0 }.run());
        assert!(matches!(sent, Err(Over::Ended)), "{sent:?}");
        assert!(hold.lock().held.contains_key(&1), "the receiver was not told, and waits for it");
    }

    #[test]
    fn why_a_receiver_stopped_is_told_though_it_reads_no_more() {
        let full = || Over::Refused("the disk is full".to_owned());
        for reasons in [[Over::Ended, full()], [full(), Over::Ended]] {
            let watch = Watch::default();
            let hold = Outgoing::new(&watch);
            reasons.into_iter().for_each(|over| hold.end(over));
            let over = hold.lock().over.take();
            assert!(matches!(over, Some(Over::Refused(_))), "{over:?}");
        }
    }
}
