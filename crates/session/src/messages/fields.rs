//! The fields that messages are made of: their numbers, and how each kind is read and written.

use alloc::vec::Vec;

use prost::encoding::{
    DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint,
    encoded_len_varint, key_len, skip_field,
};
use rove_ssp::BadDiff;

/// Events taken from one instruction, known or not (ARCHITECTURE.md §7). A diff with more is refused, and
/// with it the peer: a stock peer merges neighbouring keys, and ours holds resizes back
/// ([`crate::input::RESIZES_MAX`]) long before.
pub const EVENTS_MAX: usize = 4096;

// Field numbers of `mosh-protocol.md` §3.3; 16 to 23 are ours (ARCHITECTURE.md §3).
pub(super) const TOP_INSTRUCTION: u32 = 1;
pub(super) const EXT_OCTETS: u32 = 2;
pub(super) const EXT_RESIZE: u32 = 3;
pub(super) const EXT_ECHO_ACK: u32 = 7;
pub(super) const EXT_LINE: u32 = 16;
pub(super) const EXT_EXIT_STATUS: u32 = 17;
pub(super) const EXT_PROPERTIES: u32 = 18;
pub(super) const EXT_DEPTH: u32 = 19;
pub(super) const EXT_ROWS: u32 = 20;
pub(super) const EXT_SESSION: u32 = 21;
pub(super) const EXT_LEAVING: u32 = 22;
pub(super) const EXT_LINES: u32 = 23;
pub(super) const OCTETS: u32 = 4;
pub(super) const RESIZE_WIDTH: u32 = 5;
pub(super) const RESIZE_HEIGHT: u32 = 6;
pub(super) const ECHO_ACK_NUM: u32 = 8;
pub(super) const LINE_MODES: u32 = 1;
pub(super) const LINE_NUMBER: u32 = 2;
pub(super) const EXIT_STATUS_CODE: u32 = 1;
pub(super) const SESSION_NAME: u32 = 1;
pub(super) const SESSION_FLAGS: u32 = 2;
pub(super) const SESSION_OTHERS: u32 = 3;
pub(super) const SESSION_ENDED: u32 = 4;
pub(super) const SESSION_WHO: u32 = 5;
pub(super) const LEAVING_HOW: u32 = 1;
pub(super) const DEPTH_DEPTH: u32 = 1;
pub(super) const DEPTH_TOLD: u32 = 2;
pub(super) const DEPTH_ERASED: u32 = 3;
pub(super) const DEPTH_FALLS: u32 = 5;
pub(super) const ROWS_FIRST: u32 = 1;
pub(super) const ROWS_COLS: u32 = 2;
pub(super) const ROWS_COUNT: u32 = 3;
pub(super) const ROWS_KEPT: u32 = 4;
pub(super) const ROWS_TEXT: u32 = 5;
pub(super) const ROWS_OPEN: u32 = 6;
pub(super) const LINES_WANTED: u32 = 1;
pub(super) const LINES_FORMAT: u32 = 2;

/// Cut short, a field number of 0, a varint too long, groups too deep.
pub(super) const MALFORMED: BadDiff = BadDiff("the diff is not a protobuf message");
pub(super) const TOO_MANY: BadDiff = BadDiff("the diff holds more events than an instruction may");

/// A field's value, as far as these messages use any.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Number(u64),
    Octets(&'a [u8]),
}

/// Hands every varint and every length-delimited field to `field`, in order. Fixed-width fields and
/// groups are skipped: no known message has one.
pub(super) fn each_field<'a>(
    mut message: &'a [u8],
    mut field: impl FnMut(u32, Value<'a>) -> Result<(), BadDiff>,
) -> Result<(), BadDiff> {
    while !message.is_empty() {
        let (number, wire_type) = decode_key(&mut message).map_err(|_| MALFORMED)?;
        let value = match wire_type {
            WireType::Varint => Value::Number(decode_varint(&mut message).map_err(|_| MALFORMED)?),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut message).map_err(|_| MALFORMED)?;
                let length = usize::try_from(length).map_err(|_| MALFORMED)?;
                let (octets, rest) = message.split_at_checked(length).ok_or(MALFORMED)?;
                message = rest;
                Value::Octets(octets)
            }
            _ => {
                skip_field(wire_type, number, &mut message, DecodeContext::default())
                    .map_err(|_| MALFORMED)?;
                continue;
            }
        };
        field(number, value)?;
    }
    Ok(())
}

/// The octets of these fields; of one that comes twice the last.
pub(super) fn octets_of<const N: usize>(
    message: &[u8],
    fields: [u32; N],
) -> Result<[Option<&[u8]>; N], BadDiff> {
    let mut found = [None; N];
    each_field(message, |number, value| {
        let at = fields.iter().position(|field| *field == number);
        if let (Some(at), Value::Octets(octets)) = (at, value) {
            found[at] = Some(octets);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The numbers in these fields, 0 in one that is missing; of one that comes twice the last.
pub(super) fn numbers_of<const N: usize>(
    message: &[u8],
    fields: [u32; N],
) -> Result<[u64; N], BadDiff> {
    let mut found = [0; N];
    each_field(message, |number, value| {
        let at = fields.iter().position(|field| *field == number);
        if let (Some(at), Value::Number(n)) = (at, value) {
            found[at] = n;
        }
        Ok(())
    })?;
    Ok(found)
}

pub(super) fn write_numbers(extension: u32, fields: &[(u32, u64)], out: &mut Vec<u8>) {
    write_fields(extension, fields, &[], out);
}

/// The two heads around every event: the repeated field and the extension, `inner` octets of content.
pub(super) fn write_heads(extension: u32, inner: usize, out: &mut Vec<u8>) {
    let outer = key_len(extension) + encoded_len_varint(inner as u64) + inner;
    encode_key(TOP_INSTRUCTION, WireType::LengthDelimited, out);
    encode_varint(outer as u64, out);
    encode_key(extension, WireType::LengthDelimited, out);
    encode_varint(inner as u64, out);
}

pub(super) fn write_octets(octets: &[u8], out: &mut Vec<u8>) {
    let inner = key_len(OCTETS) + encoded_len_varint(octets.len() as u64) + octets.len();
    write_heads(EXT_OCTETS, inner, out);
    encode_key(OCTETS, WireType::LengthDelimited, out);
    encode_varint(octets.len() as u64, out);
    out.extend_from_slice(octets);
}

/// Appends an event of numbers, then of octets.
pub(super) fn write_fields(
    extension: u32,
    numbers: &[(u32, u64)],
    octets: &[(u32, &[u8])],
    out: &mut Vec<u8>,
) {
    let length = |octets: &[u8]| encoded_len_varint(octets.len() as u64) + octets.len();
    let of_numbers: usize =
        numbers.iter().map(|&(field, n)| key_len(field) + encoded_len_varint(n)).sum();
    let of_octets: usize =
        octets.iter().map(|&(field, octets)| key_len(field) + length(octets)).sum();
    write_heads(extension, of_numbers + of_octets, out);
    for &(field, number) in numbers {
        encode_key(field, WireType::Varint, out);
        encode_varint(number, out);
    }
    for &(field, octets) in octets {
        encode_key(field, WireType::LengthDelimited, out);
        encode_varint(octets.len() as u64, out);
        out.extend_from_slice(octets);
    }
}
