//! zlib streams (RFC 1950) with a bound on what comes out. It must not know what they hold.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::instruction::MESSAGE_BYTES_MAX;
use crate::machine::Reject;

/// How much room is added each time the output is full.
const STEP_BYTES: usize = 16 * 1024;

/// A compressor and a decompressor, reused from message to message; no message leans on another.
pub struct Zip {
    deflate: Compress,
    inflate: Decompress,
}

impl Zip {
    pub fn new() -> Zip {
        Zip { deflate: Compress::new(LEVEL, true), inflate: Decompress::new(true) }
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
        self.inflate.reset(true);
        loop {
            if out.len() == out.capacity() {
                if out.len() > MESSAGE_BYTES_MAX {
                    return Err(Reject::InflateOverflow);
                }
                out.reserve(STEP_BYTES.max(out.len()).min(MESSAGE_BYTES_MAX + 1 - out.len()));
            }
            let (taken, made) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self
                .inflate
                .decompress_vec(&bytes[taken as usize..], out, FlushDecompress::None)
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
