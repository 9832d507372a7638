//! Looking for the end of text, and decoding it, as fast as safe code can.

/// Decodes printable ASCII and two-byte characters from U+00C0 up, which mix so freely in text that a
/// branch between them would be guessed wrong; stops before anything else, and after ASCII long enough to be
/// better read otherwise. Returns how many characters and how many bytes.
#[inline]
pub(super) fn short_forms(bytes: &[u8], run: &mut [char]) -> (usize, usize) {
    const ASCII_MAX: usize = 16;
    let mut at = 0;
    let mut ascii_before = 0;
    for (len, slot) in run.iter_mut().enumerate() {
        let Some(&[a, b]) = bytes.get(at..).and_then(<[u8]>::first_chunk::<2>) else {
            return (len, at);
        };
        let ascii = a.wrapping_sub(0x20) < 0x5f;
        let pair = (a.wrapping_sub(0xc3) < 0x1d) & (b & 0xc0 == 0x80);
        ascii_before = if ascii { ascii_before + 1 } else { 0 };
        if !(ascii | pair) | (ascii_before == ASCII_MAX) {
            return (len, at);
        }
        let decoded = u32::from(a & 0x1f) << 6 | u32::from(b & 0x3f);
        let code = if pair { decoded } else { u32::from(a) };
        *slot = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        at += 1 + usize::from(pair);
    }
    (run.len(), at)
}

/// A three or four byte character that is well-formed beyond doubt; the edges of both forms are left to the
/// decoder.
#[inline]
pub(super) fn long_form(bytes: &[u8]) -> Option<(char, usize)> {
    let [a, b, c, d] = *bytes.first_chunk::<4>()?;
    let part = |byte: u8| u32::from(byte & 0x3f);
    let continues = |byte: u8| byte & 0xc0 == 0x80;
    let (code, size) = match a {
        0xe1..=0xec if continues(b) && continues(c) => {
            (u32::from(a & 0xf) << 12 | part(b) << 6 | part(c), 3)
        }
        0xf0 if b >= 0x90 && continues(b) && continues(c) && continues(d) => {
            (part(b) << 12 | part(c) << 6 | part(d), 4)
        }
        _ => return None,
    };
    Some((char::from_u32(code)?, size))
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The high bit of every byte that is not printable ASCII. Above the first such byte others may be marked
/// wrongly, by the borrow.
#[inline]
fn unprintable(word: u64) -> u64 {
    let below_space = word.wrapping_sub(ONES * 0x20) & !word;
    let delete = word ^ (ONES * 0x7f);
    let is_delete = delete.wrapping_sub(ONES) & !delete;
    (word | below_space | is_delete) & HIGH
}

#[inline]
fn word(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
}

/// How many printable ASCII bytes come first.
#[inline]
pub(super) fn printable_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    while let Some(word) = word(&bytes[len..]) {
        let bad = unprintable(word);
        if bad != 0 {
            return len + (bad.trailing_zeros() / 8) as usize;
        }
        len += 8;
        if len == 16 {
            len += long_printable_len(&bytes[len..]);
        }
    }
    len + bytes[len..].iter().take_while(|byte| matches!(byte, 0x20..0x7f)).count()
}

/// As much of a long printable run as fills blocks the compiler turns into vector instructions.
fn long_printable_len(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let printable =
        |block: &&[u8]| block.iter().fold(true, |all, byte| all & (byte.wrapping_sub(0x20) < 0x5f));
    bytes.chunks_exact(BLOCK).take_while(printable).count() * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_runs_end_at_the_first_other_byte() {
        for len in 0..80usize {
            for bad in [0u8, 0x1f, 0x7f, 0x80, 0xc3, 0xff] {
                let mut bytes: Vec<u8> = (0..len).map(|n| 0x20 + (n % 0x5f) as u8).collect();
                assert_eq!(printable_len(&bytes), len);
                bytes.push(bad);
                bytes.extend_from_slice(&[b'x'; 40]);
                assert_eq!(printable_len(&bytes), len, "{bad:#x} after {len}");
            }
        }
    }
}
