//! Deflated streams, in zlib's frame (RFC 1950) or raw (RFC 1951), with a bound on what comes out. It must
//! not know what they hold.

use alloc::vec::Vec;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::instruction::MESSAGE_BYTES_MAX;
use crate::machine::Reject;

/// How much room is added each time the output is full.
const STEP_BYTES: usize = 16 * 1024;

/// A compressor and a decompressor, reused from message to message; no message leans on another.
pub struct Zip {
    deflate: Compress,
    inflate: Decompress,
    frame: Frame,
}

/// What stands around a stream.
#[derive(Clone, Copy, PartialEq)]
enum Frame {
    /// zlib's header and checksum.
    Zlib,
    /// Nothing.
    None,
}

impl Zip {
    /// Streams in zlib's frame: header and checksum.
    pub fn new() -> Zip {
        Zip::of(Frame::Zlib)
    }

    /// Bare streams, where something else tells whether they are whole.
    pub fn raw() -> Zip {
        Zip::of(Frame::None)
    }

    fn of(frame: Frame) -> Zip {
        let zlib = frame == Frame::Zlib;
        Zip { deflate: Compress::new(LEVEL, zlib), inflate: Decompress::new(zlib), frame }
    }

    /// Replaces `out` with the compressed octets.
    pub fn pack(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.clear();
        self.deflate.reset();
        loop {
            out.reserve(bytes.len() / 2 + 64);
            let done = self.deflate.total_in() as usize;
            let status = self.deflate.compress_vec(&bytes[done..], out, FlushCompress::Finish);
            match status.expect("deflating from memory has no way to fail") {
                Status::StreamEnd => return,
                Status::Ok | Status::BufError => {}
            }
        }
    }

    /// Replaces `out` with the inflated octets, at most [`MESSAGE_BYTES_MAX`]: it stops there, however
    /// much more the stream holds.
    pub fn unpack(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Reject> {
        out.clear();
        self.inflate.reset(self.frame == Frame::Zlib);
        loop {
            if out.len() == out.capacity() {
                if out.len() > MESSAGE_BYTES_MAX {
                    return Err(Reject::InflateOverflow);
                }
                let step = STEP_BYTES.max(out.len()).min(MESSAGE_BYTES_MAX + 1 - out.len());
                out.reserve_exact(step);
            }
            let (taken, made) = (self.inflate.total_in(), self.inflate.total_out());
            let rest = bytes.get(taken as usize..).unwrap_or_default();
            let status = self
                .inflate
                .decompress_vec(rest, out, FlushDecompress::None)
                .map_err(|_| Reject::Inflate)?;
            if out.len() > MESSAGE_BYTES_MAX {
                return Err(Reject::InflateOverflow);
            }
            let moved = (taken, made) != (self.inflate.total_in(), self.inflate.total_out());
            match status {
                Status::StreamEnd => return Ok(()),
                Status::Ok | Status::BufError if moved => {}
                Status::Ok | Status::BufError => return Err(Reject::Inflate),
            }
        }
    }
}

/// Level 6, as stock (`mosh-protocol.md` §3.1).
const LEVEL: Compression = Compression::new(6);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Zip::new().pack(bytes, &mut out);
        out
    }

    #[test]
    fn unpacks_what_it_packed() {
        let mut zip = Zip::new();
        let mut noise = Vec::new();
        Rng::new(1).fill(300_000, &mut noise);
        let flat = vec![b' '; MESSAGE_BYTES_MAX];
        for bytes in [&noise[..0], &noise[..1], &noise[..], b"text text text", &flat] {
            let (mut packed, mut unpacked) = (Vec::new(), vec![1]);
            zip.pack(bytes, &mut packed);
            assert_eq!(zip.unpack(&packed, &mut unpacked), Ok(()));
            assert!(unpacked == bytes, "{} octets", bytes.len());
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let mut zip = Zip::new();
        for bytes in [MESSAGE_BYTES_MAX + 1, 64 << 20] {
            let bomb = packed(&vec![0; bytes]);
            let mut out = Vec::new();
            assert_eq!(zip.unpack(&bomb, &mut out), Err(Reject::InflateOverflow));
            assert!(out.capacity() <= MESSAGE_BYTES_MAX + STEP_BYTES, "{}", out.capacity());
        }
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let mut zip = Zip::new();
        let good = packed(b"a stream that is cut short or changed");
        let mut out = Vec::new();
        for len in 0..good.len() {
            assert_eq!(zip.unpack(&good[..len], &mut out), Err(Reject::Inflate), "{len} octets");
        }
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x55;
            assert_eq!(zip.unpack(&bad, &mut out), Err(Reject::Inflate), "octet {place}");
        }
        assert_eq!(zip.unpack(&good, &mut out), Ok(()), "the next message is read");
    }
}
