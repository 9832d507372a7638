//! Deflated streams, in zlib's frame (RFC 1950) or raw (RFC 1951), with a bound on what comes out. It must
//! not know what they hold.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use miniz_oxide::DataFormat;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, compress_to_output};
use miniz_oxide::inflate::{
    TINFLStatus, decompress_to_vec_with_limit, decompress_to_vec_zlib_with_limit,
};

use crate::instruction::MESSAGE_BYTES_MAX;
use crate::reject::Reject;

/// A compressor, reused from message to message; no message leans on another.
///
/// It takes 315 kB from its first message on until it is released. Sessions therefore share one (see
/// [`Outbox`](crate::Outbox)).
#[derive(Default)]
pub struct Deflater {
    compressor: Option<Box<CompressorOxide>>,
    /// Since [`take_used`](Self::take_used).
    used: bool,
}

/// What stands around a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Frame {
    /// zlib's header and checksum.
    Zlib,
    /// Nothing: something else tells whether the stream is whole.
    Raw,
}

impl Deflater {
    /// Replaces `out` with the compressed octets. Nothing of them stays in the compressor.
    pub(crate) fn pack(&mut self, frame: Frame, bytes: &[u8], out: &mut Vec<u8>) {
        let compressor = self.compressor.get_or_insert_default();
        self.used = true;
        let format = match frame {
            Frame::Zlib => DataFormat::Zlib,
            Frame::Raw => DataFormat::Raw,
        };
        compressor.set_format_and_level(format, LEVEL);
        out.clear();
        // The sink takes everything, and memory has no way to fail.
        compress_to_output(compressor, bytes, TDEFLFlush::Finish, |octets| {
            out.extend_from_slice(octets);
            true
        });
        // The next message may go to another peer, and must not refer to what this one was told.
        compressor.reset();
    }

    /// Whether a message was packed since this was last asked.
    pub(crate) fn take_used(&mut self) -> bool {
        core::mem::take(&mut self.used)
    }

    /// Gives its memory back; returns whether it had any. The next message takes it again.
    pub(crate) fn release(&mut self) -> bool {
        self.compressor.take().is_some()
    }
}

impl fmt::Debug for Deflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Deflater")
    }
}

/// The inflated octets, at most [`MESSAGE_BYTES_MAX`]: it stops there, however much more the stream holds.
pub(crate) fn unpack(frame: Frame, bytes: &[u8]) -> Result<Vec<u8>, Reject> {
    // One more octet tells a message of that length from a longer one.
    let limit = MESSAGE_BYTES_MAX + 1;
    let inflated = match frame {
        Frame::Zlib => decompress_to_vec_zlib_with_limit(bytes, limit),
        Frame::Raw => decompress_to_vec_with_limit(bytes, limit),
    };
    match inflated {
        Ok(message) if message.len() <= MESSAGE_BYTES_MAX => Ok(message),
        Ok(_) => Err(Reject::InflateOverflow),
        Err(error) if error.status == TINFLStatus::HasMoreOutput => Err(Reject::InflateOverflow),
        Err(_) => Err(Reject::Inflate),
    }
}

/// Level 6, as stock (`mosh-protocol.md` §3.1).
const LEVEL: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn packed(frame: Frame, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![1];
        Deflater::default().pack(frame, bytes, &mut out);
        out
    }

    #[test]
    fn unpacks_what_it_packed() {
        let mut deflater = Deflater::default();
        let mut noise = Vec::new();
        Rng::new(1).fill(300_000, &mut noise);
        let flat = vec![b' '; MESSAGE_BYTES_MAX];
        for frame in [Frame::Zlib, Frame::Raw, Frame::Zlib] {
            for bytes in [&noise[..0], &noise[..1], &noise[..], b"text text text", &flat] {
                let mut out = vec![1];
                deflater.pack(frame, bytes, &mut out);
                assert!(out == packed(frame, bytes), "what it packed before makes no difference");
                assert!(unpack(frame, &out).as_deref() == Ok(bytes), "{} octets", bytes.len());
            }
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        for bytes in [MESSAGE_BYTES_MAX + 1, 64 << 20] {
            let bomb = packed(Frame::Zlib, &vec![0; bytes]);
            assert_eq!(unpack(Frame::Zlib, &bomb), Err(Reject::InflateOverflow));
        }
    }

    #[test]
    fn what_is_no_stream_is_refused() {
        let good = packed(Frame::Zlib, b"a stream that is cut short or changed");
        for len in 0..good.len() {
            assert_eq!(unpack(Frame::Zlib, &good[..len]), Err(Reject::Inflate), "{len} octets");
        }
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x55;
            assert_eq!(unpack(Frame::Zlib, &bad), Err(Reject::Inflate), "octet {place}");
        }
    }
}
