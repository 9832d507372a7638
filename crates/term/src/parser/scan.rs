//! Looking for the end of text, and decoding it, as fast as safe code can.

/// Decodes well-formed characters up to the first control, ill-formed sequence, or ASCII long enough to be
/// better read otherwise, or the end of the chunk or of `run`. Returns how many characters and how many
/// bytes. It may stop early: what it leaves is for the decoder that survives chunk borders.
///
/// Text mixes lengths so freely that branches between them would be guessed wrong: what a lead byte means is
/// looked up, and alphabets are decoded many bytes at once.
pub(super) fn characters(bytes: &[u8], run: &mut [char]) -> (usize, usize) {
    let mut len = 0;
    let mut at = 0;
    loop {
        if let Some(block) = bytes[at..].first_chunk()
            && let Some(room) = run[len..].first_chunk_mut()
            && let Some((low, high)) = word(block).zip(word(&block[8..]))
            && long_leads(low) | long_leads(high) == 0
        {
            if is_ascii(low | high) {
                return (len, at);
            }
            let (found, used) = pairs(block, room);
            len += found;
            at += used;
            if used >= PAIRS_BYTES {
                continue;
            }
        }
        if let Some(block) = bytes[at..].first_chunk()
            && let Some(room) = run[len..].first_chunk_mut()
            && let Some(used) = four(block, room)
        {
            len += 4;
            at += used;
            continue;
        }
        for _ in 0..ONE_BY_ONE {
            let window = bytes.get(at..).and_then(<[u8]>::first_chunk);
            let Some((c, size)) = window.and_then(character) else { return (len, at) };
            let Some(slot) = run.get_mut(len) else { return (len, at) };
            *slot = c;
            len += 1;
            at += size;
        }
    }
}

/// Characters decoded one by one before it is looked at whether many can be.
const ONE_BY_ONE: usize = 4;

/// The high bit of every byte that begins three bytes or more.
#[inline]
fn long_leads(word: u64) -> u64 {
    word & word << 1 & word << 2 & HIGH
}

/// Bytes that are looked at together for ASCII and two-byte characters.
const PAIRS_BYTES: usize = 16;

/// Decodes ASCII and two-byte characters from U+00C0 up, as many as start in a block of 16 bytes before
/// anything else; the 17th byte may end the last one.
#[inline]
fn pairs(block: &[u8; PAIRS_BYTES + 1], run: &mut [char; PAIRS_BYTES]) -> (usize, usize) {
    let continues = |byte: u8| byte & 0xc0 == 0x80;
    let leads = |byte: u8| byte.wrapping_sub(0xc3) < 0x1d;
    let ascii = |byte: u8| byte.wrapping_sub(0x20) < 0x5f;
    let (Some(firsts), Some(seconds)) = (block.first_chunk(), block.last_chunk()) else {
        return (0, 0);
    };
    let (firsts, seconds): ([u8; PAIRS_BYTES], [u8; PAIRS_BYTES]) = (*firsts, *seconds);
    let mut codes = [0u16; PAIRS_BYTES];
    let mut bad = [0u8; PAIRS_BYTES];
    for (at, (a, b)) in firsts.into_iter().zip(seconds).enumerate() {
        let pair = u16::from(a & 0x1f) << 6 | u16::from(b & 0x3f);
        codes[at] = if a < 0x80 { a.into() } else { pair };
        let known = ascii(a) | leads(a) | continues(a);
        bad[at] = u8::from(!known | (leads(a) != continues(b)));
    }
    let good = if continues(block[0]) { 0 } else { first_set(bad) };
    let mut len = 0;
    for at in 0..good {
        // Two bytes hold eleven bits.
        run[len % PAIRS_BYTES] = char::from_u32(u32::from(codes[at] & 0x7ff)).unwrap_or_default();
        len += usize::from(!continues(block[at]));
    }
    // Where what follows a pair is bad, or the next block's, its second byte was not counted.
    let straddles = good > 0 && leads(block[good - 1]);
    (len, good + usize::from(straddles))
}

/// The first byte that is not 0, or 16.
#[inline]
fn first_set(bytes: [u8; 16]) -> usize {
    (u128::from_le_bytes(bytes).trailing_zeros() / 8) as usize
}

/// Decodes four characters, which take at most sixteen bytes, and returns their length in bytes; `None` where one of
/// them is ill-formed or a control. Where each begins is found first, so that none waits for the one before it.
#[inline]
fn four(block: &[u8; 20], run: &mut [char; 4]) -> Option<usize> {
    let (low, high) = word(block).zip(word(&block[8..]))?;
    // Behind the sixteen bytes something begins, as far as these can tell.
    let mut starts = first_bytes(low) | first_bytes(high) << 8 | 1 << 16;
    let mut good = starts & 1 == 1;
    let mut at = 0;
    for slot in run {
        starts &= starts.wrapping_sub(1);
        let next = starts.trailing_zeros() as usize;
        // Well-formed characters begin within the first sixteen: others are anything, and not good.
        let window = block.get(at % 16..).and_then(<[u8]>::first_chunk)?;
        let form = &FORMS[usize::from(window[0] >> 3)];
        // An ill-formed character reads as U+0000, which has no form.
        *slot = char::from_u32(form.code(u32::from_be_bytes(*window))).unwrap_or_default();
        good &= (next.wrapping_sub(at) == usize::from(form.size)) & form.holds(*slot);
        at = next;
    }
    good.then_some(at)
}

/// A bit for each of eight bytes that continues no character.
#[inline]
fn first_bytes(word: u64) -> u32 {
    const GATHER: u64 = 0x0002_0408_1020_4081;
    let firsts = (!word | word << 1) & HIGH;
    (firsts.wrapping_mul(GATHER) >> 56) as u32
}

/// The form of a character, from its lead byte.
#[derive(Clone, Copy)]
struct Form {
    /// The bits of four bytes that count.
    bits: u32,
    /// How many bits of four bytes' worth come after those.
    excess: u8,
    /// How many bytes there are, 0 for none.
    size: u8,
    /// The least code point that is not written shorter, a control or left to others.
    least: u32,
    /// How many code points there are from that on.
    count: u32,
}

impl Form {
    /// The code point in four bytes.
    #[inline]
    fn code(&self, bytes: u32) -> u32 {
        // Two by two, sixes of bits become twelves, and those the whole.
        let sixes = bytes & self.bits;
        let twelves = (sixes & 0xff00_ff00) >> 2 | sixes & 0x003f_003f;
        (twelves >> 16 << 12 | twelves & 0xffff) >> self.excess
    }

    /// The character is one that this form is for.
    #[inline]
    fn holds(&self, c: char) -> bool {
        u32::from(c).wrapping_sub(self.least) < self.count
    }
}

/// By the upper five bits of the lead byte.
static FORMS: [Form; 32] = forms();

const fn forms() -> [Form; 32] {
    const fn form(size: u8, bits: u32, least: u32, end: u32) -> Form {
        Form { bits, excess: 24 - 6 * size, size, least, count: end - least }
    }
    let mut forms = [form(0, 0, 0, 0); 32];
    let mut upper = 0;
    while upper < 32 {
        forms[upper] = match upper {
            0..16 => form(1, 0x7f00_0000, 0x20, 0x7f),
            24..28 => form(2, 0x1f3f_0000, 0xa0, 0x800),
            28..30 => form(3, 0x0f3f_3f00, 0x800, 0x1_0000),
            30 => form(4, 0x073f_3f3f, 0x1_0000, 0x11_0000),
            _ => forms[upper],
        };
        upper += 1;
    }
    forms
}

/// The character at the start of four bytes, and its size; none for controls and what is ill-formed.
#[inline]
fn character(bytes: &[u8; 4]) -> Option<(char, usize)> {
    let form = &FORMS[usize::from(bytes[0] >> 3)];
    let word = u32::from_be_bytes(*bytes);
    let c = char::from_u32(form.code(word))?;
    // Six bits of each byte that continues count, and two say that it does.
    let tail = form.bits << 2 & 0xc0_c0c0;
    if (word & tail != tail & 0x80_8080) | !form.holds(c) {
        return None;
    }
    // The ones in front, which are none for ASCII. Not looked up: the next character waits for this.
    let size = bytes[0].leading_ones().max(1) as usize;
    Some((c, size))
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
fn is_ascii(word: u64) -> bool {
    word & HIGH == 0
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

    #[test]
    fn characters_are_those_of_std() {
        const PIECES: [&[u8]; 22] = [
            b"a",
            b"plain words",
            b"~",
            b"\x7f",
            b"\r",
            b"\x1b",
            b"\xc2\x85",
            b"\xc2\xa0",
            b"\xc3\xa9",
            b"\xd0\xbf\xd1\x80\xd0\xb8",
            b"\xdf\xbf",
            b"\xe0\x9f\xbf",
            b"\xe0\xa0\x80",
            b"\xe4\xb8\x96\xe7\x95\x8c",
            b"\xed\xa0\x80",
            b"\xef\xb8\x8f",
            b"\xf0\x8f\xbf\xbf",
            b"\xf0\x9f\x91\xa9",
            b"\xf4\x90\x80\x80",
            b"\x80",
            b"\xc3",
            b"\xff",
        ];
        let mut random = 1u64;
        let mut decoded = 0;
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            while bytes.len() < 70 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Mostly what is well-formed, so that runs get long.
                let rare = random >> 60 == 0;
                let piece = PIECES[(random >> 33) as usize % PIECES.len()];
                if rare
                    || std::str::from_utf8(piece).is_ok_and(|text| !text.contains(char::is_control))
                {
                    bytes.extend_from_slice(piece);
                }
            }
            let mut run = ['\0'; 40];
            let (len, used) = characters(&bytes, &mut run);
            let text = std::str::from_utf8(&bytes[..used]).unwrap();
            assert!(text.chars().eq(run[..len].iter().copied()), "{bytes:x?}");
            assert!(!text.contains(char::is_control), "{bytes:x?}");
            decoded += len;
        }
        assert!(decoded > 200_000, "{decoded}");
    }
}
