//! The hash by which both ends compare the beginning of a file: BLAKE3 of the BLAKE3s of its blocks, where a
//! run of zero blocks counts as the BLAKE3 of one and their number. So a hole of any length costs nothing,
//! and equals written zeros.

use std::io;
use std::sync::LazyLock;

use crate::copy::message::{DATA_BYTES_MAX, Digest};
use crate::copy::watch::Watch;
use crate::os::clock::wall_seconds;
use crate::os::fs::{self, Errno, OwnedFd, SeekFrom, fstat};
use crate::os::stat::Stat;

/// Octets of a block; the last may be shorter.
const BLOCK_BYTES: u64 = 1 << 20;

/// Seconds after which file systems have written a change: ZFS after 5, others after 30.
const SETTLED_SECONDS: i64 = 60;

/// The hash of a block of zeros.
static ZEROS: LazyLock<Digest> =
    LazyLock::new(|| *blake3::hash(&[0; BLOCK_BYTES as usize]).as_bytes());

/// The hash of a file's beginning, as far as it has been read.
#[derive(Debug)]
pub(super) struct Hashed<'a> {
    watch: &'a Watch,
    length: u64,
    blocks: blake3::Hasher,
    /// Zero blocks at the end of the read part, which are not in `blocks` yet.
    zeros: u64,
    /// The hash of the block that contains `length`.
    block: blake3::Hasher,
    /// Where the next known data (no hole) begins and ends.
    data: (u64, u64),
}

impl Hashed<'_> {
    /// An empty hash; `watch` counts the octets read.
    pub(super) fn new(watch: &Watch) -> Hashed<'_> {
        let [blocks, block] = [blake3::Hasher::new(), blake3::Hasher::new()];
        Hashed { watch, length: 0, blocks, zeros: 0, block, data: (0, 0) }
    }

    /// How many octets have been read.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Reads on to this length; `false` if the file is shorter.
    pub(super) fn read_to(&mut self, file: &OwnedFd, length: u64) -> io::Result<bool> {
        let stat = fstat(file)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size < length {
            return Ok(false);
        }
        let most = length.saturating_sub(self.length).min(DATA_BYTES_MAX as u64);
        let mut octets = vec![0; most as usize];
        let has_holes = has_holes(file, &stat);
        while self.length < length {
            let within = self.length % BLOCK_BYTES;
            if has_holes && within == 0 {
                let hole_end = self.data_from(file, size)?.min(length);
                let blocks = hole_end.saturating_sub(self.length) / BLOCK_BYTES;
                if blocks > 0 {
                    self.zeros += blocks;
                    self.took(blocks * BLOCK_BYTES);
                    continue;
                }
            }
            let most = (length - self.length).min(BLOCK_BYTES - within);
            let most = most.min(octets.len() as u64) as usize;
            match fs::pread(file, &mut octets[..most], self.length) {
                Ok(0) => return Ok(false),
                Ok(read) => {
                    self.block.update(&octets[..read]);
                    self.took(read as u64);
                    if self.length.is_multiple_of(BLOCK_BYTES) {
                        self.end_block();
                    }
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    pub(super) fn digest(&self) -> Digest {
        let mut blocks = self.blocks.clone();
        add_zeros(&mut blocks, self.zeros);
        if !self.length.is_multiple_of(BLOCK_BYTES) {
            blocks.update(self.block.finalize().as_bytes());
        }
        *blocks.finalize().as_bytes()
    }

    /// Adds the block just read.
    fn end_block(&mut self) {
        let block = *self.block.finalize().as_bytes();
        self.block.reset();
        if block == *ZEROS {
            self.zeros += 1;
            return;
        }
        add_zeros(&mut self.blocks, std::mem::take(&mut self.zeros));
        self.blocks.update(&block);
    }

    fn took(&mut self, octets: u64) {
        self.length += octets;
        self.watch.check(octets);
    }

    /// Where the next data begins, after any hole here.
    fn data_from(&mut self, file: &OwnedFd, size: u64) -> io::Result<u64> {
        if self.length >= self.data.1 {
            let start = seek(file, SeekFrom::Data(self.length), size)?;
            let end = if start < size { seek(file, SeekFrom::Hole(start), size)? } else { size };
            self.data = (start, end);
        }
        Ok(self.data.0)
    }
}

/// Adds a run of zero blocks. No other block has their hash, so their number can follow it unambiguously.
fn add_zeros(blocks: &mut blake3::Hasher, zeros: u64) {
    if zeros > 0 {
        blocks.update(&*ZEROS).update(&zeros.to_le_bytes());
    }
}

/// Whether a file has holes: it takes fewer whole blocks than its size. Only then does the copy seek for
/// them. ZFS before 2.1.14 and 2.2.2 may report unwritten data as a hole (openzfs#15526) and counts no
/// blocks for it, so on ZFS freshly changed files are taken to have none.
pub(super) fn has_holes(file: &OwnedFd, stat: &Stat) -> bool {
    let blocks = u64::try_from(stat.st_blocks).unwrap_or(u64::MAX);
    if blocks.saturating_mul(512) >= u64::try_from(stat.st_size).unwrap_or(0) {
        return false;
    }
    is_settled(stat, wall_seconds()) || !fs::is_zfs(file)
}

/// Whether the last change is old enough to be on the disk.
fn is_settled(stat: &Stat, now: i64) -> bool {
    now.saturating_sub(stat.st_ctime) >= SETTLED_SECONDS
}

/// Where the next data or hole begins; the size if there is none.
pub(super) fn seek(file: &OwnedFd, to: SeekFrom, size: u64) -> io::Result<u64> {
    match fs::seek(file, to) {
        Ok(offset) => Ok(offset.min(size)),
        Err(Errno::NXIO) => Ok(size),
        // A file system that does not tell: all is data.
        Err(Errno::INVAL) => Ok(match to {
            SeekFrom::Data(offset) => offset.min(size),
            _ => size,
        }),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Seek, Write};

    use super::*;

    /// A file of this length, with these octets at these places and holes between.
    fn file(length: u64, pieces: &[(u64, &[u8])]) -> OwnedFd {
        static FILES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = FILES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("rove-hashed-{}-{number}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(length).unwrap();
        for (at, octets) in pieces {
            file.seek(io::SeekFrom::Start(*at)).unwrap();
            file.write_all(octets).unwrap();
        }
        file.into()
    }

    /// The hash of this much, read in one go, or in steps of these lengths.
    fn hash(file: &OwnedFd, length: u64, looks: &[u64]) -> Digest {
        let watch = Watch::default();
        let mut hashed = Hashed::new(&watch);
        for look in looks.iter().chain([&length]) {
            assert!(hashed.read_to(file, *look).unwrap());
            assert_eq!(hashed.length(), *look);
        }
        assert_eq!(watch.checked(), length);
        hashed.digest()
    }

    #[test]
    fn holes_are_zeros() {
        let mega = BLOCK_BYTES;
        for (length, pieces) in [
            (0, vec![]),
            (10, vec![]),
            (mega, vec![]),
            (3 * mega + 5, vec![]),
            (3 * mega, vec![(mega, &b"x"[..])]),
            (5 * mega + 5, vec![(2 * mega - 1, &b"xy"[..]), (5 * mega, b"z")]),
            (9 * mega, vec![(0, b"x"), (4 * mega + 7, b"y"), (9 * mega - 1, b"z")]),
        ] {
            let sparse = file(length, &pieces);
            let mut octets = vec![0; length as usize];
            for (at, piece) in &pieces {
                octets[*at as usize..][..piece.len()].copy_from_slice(piece);
            }
            let dense = file(length, &[(0, &octets)]);
            let wanted = hash(&dense, length, &[]);
            for looks in [&[][..], &[length / 2], &[length / 3, length / 3 + length / 2]] {
                assert_eq!(hash(&sparse, length, looks), wanted, "{length} {pieces:?} {looks:?}");
            }
            for (at, piece) in &pieces {
                let other = file(length, &[(*at, piece)]);
                assert_eq!(hash(&other, length, &[]) == wanted, pieces.len() == 1);
            }
            let shorter = hash(&sparse, length - length / 2, &[]);
            assert_eq!(shorter == wanted, length == 0);
        }
    }

    #[test]
    fn what_was_just_changed_is_not_settled() {
        let stat = fstat(file(1, &[])).unwrap();
        for (after, settled) in [(-5, false), (0, false), (59, false), (60, true), (1 << 40, true)]
        {
            assert_eq!(is_settled(&stat, stat.st_ctime + after), settled, "{after} s");
        }
    }

    #[test]
    fn a_file_is_not_longer_than_it_is() {
        let file = file(10, &[]);
        let watch = Watch::default();
        assert!(!Hashed::new(&watch).read_to(&file, 11).unwrap());
        assert!(!Hashed::new(&watch).read_to(&file, u64::MAX).unwrap());
    }

    /// The longest possible file, of which 4 KiB take space: block by block its hash would take days.
    #[cfg(unix)]
    #[test]
    fn a_hole_costs_the_same_whatever_its_length() {
        use std::os::unix::fs::FileExt;

        let file = crate::os::files::nameless_file().unwrap();
        let length = i64::MAX as u64;
        file.set_len(length).unwrap();
        file.write_all_at(b"x", length / 2).unwrap();
        let file = file.into();
        let wanted = hash(&file, length, &[]);
        assert_eq!(hash(&file, length, &[1, length / 3, length - BLOCK_BYTES]), wanted);
        assert_ne!(hash(&file, length - BLOCK_BYTES, &[]), wanted);
    }

    /// 1 TiB of zeros takes minutes to read; holes make this instant where the file system reports them.
    #[test]
    fn holes_are_not_read() {
        let length = 1 << 40;
        let file = file(length, &[(length / 2, b"x")]);
        if seek(&file, SeekFrom::Data(0), length).unwrap() == 0 {
            return;
        }
        assert!(has_holes(&file, &fstat(&file).unwrap()));
        hash(&file, length, &[]);
    }
}
