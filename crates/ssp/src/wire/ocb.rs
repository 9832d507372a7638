//! AES-128-OCB3 (RFC 7253) with 96-bit nonces, 128-bit tags and no associated data, in place. All
//! whole blocks of a text go to the cipher at once, which takes as many at a time as the hardware likes. It must not know what it seals.

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::wire::mosh::key::Key;

/// Octets in a cipher block.
pub(super) const BLOCK: usize = 16;
/// Octets in a tag.
pub(super) const TAG: usize = 16;
/// Octets in a nonce.
pub(super) const NONCE: usize = 12;

/// Blocks whose offsets, but the last one's, repeat: the last one's step depends on where the group is.
const GROUP: usize = 8;
/// Offset differences kept, one for each power of two of blocks: up to 2^16 blocks, 1 MiB a message.
/// Datagrams need 7.
const DOUBLINGS: usize = 17;

/// A keyed cipher with its tables. Wiped when dropped.
pub(super) struct Ocb {
    aes: Aes128,
    tables: Tables,
    /// The stretched nonces last used, for sealing and for opening: 64 successive nonces share one.
    sealing: Stretch,
    opening: Stretch,
}

/// The tag does not match. The text has been wiped.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Forged;

// All 128-bit values hold a block's octets in memory order, so that xor needs no swapping.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Tables {
    /// L_* and L_$ of RFC 7253 §4.1, and L_i.
    star: u128,
    dollar: u128,
    doubled: [u128; DOUBLINGS],
    /// How far the offsets of a group's blocks, but its last, lie from the one before the group.
    sums: [u128; GROUP - 1],
}

#[derive(Default, Zeroize, ZeroizeOnDrop)]
struct Stretch {
    /// The nonce block with its low six bits cut: what the stretch was made from. Never all zero once
    /// filled, since the block holds a marker bit.
    top: u128,
    bits: [u64; 3],
}

impl Ocb {
    /// The longest text, in octets.
    pub(super) const TEXT_MAX: usize = (1 << (DOUBLINGS - 1)) * BLOCK;

    /// Expands a key.
    pub(super) fn new(key: &Key) -> Ocb {
        let aes = Aes128::new(key.bytes().into());
        let mut zero = Block::default();
        aes.encrypt_block(&mut zero);
        let star = u128::from_be_bytes(zero.into());
        zero.as_mut_slice().zeroize();
        let dollar = double(star);
        let mut tables =
            Tables { star, dollar, doubled: [double(dollar); DOUBLINGS], sums: [0; GROUP - 1] };
        for index in 1..DOUBLINGS {
            tables.doubled[index] = double(tables.doubled[index - 1]);
        }
        tables.reorder();
        tables.sums[0] = tables.step(0);
        for index in 1..GROUP - 1 {
            tables.sums[index] = tables.sums[index - 1] ^ tables.step(index);
        }
        Ocb { aes, tables, sealing: Stretch::default(), opening: Stretch::default() }
    }

    /// Encrypts `text` in place and returns its tag. A nonce must never seal twice.
    pub(super) fn seal(&mut self, nonce: &[u8; NONCE], text: &mut [u8]) -> [u8; TAG] {
        assert!(text.len() <= Ocb::TEXT_MAX, "the offset table covers the text");
        let start = self.sealing.offset(&self.aes, nonce);
        let (blocks, rest) = Block::slice_as_chunks_mut(text);
        let mut checksum = sum(blocks);
        let mut offset = self.tables.mask(start, blocks);
        // The pad of a last partial block and the tag, or the tag alone.
        let mut last = [Block::default(); 2];
        let mut tag = 0;
        if !rest.is_empty() {
            checksum ^= padded(rest);
            offset ^= self.tables.star;
            last[0] = block(offset);
            tag = 1;
        }
        last[tag] = block(checksum ^ offset ^ self.tables.dollar);
        together(blocks, &mut last[..=tag], |blocks| self.aes.encrypt_blocks(blocks));
        self.tables.mask(start, blocks);
        for (byte, pad) in rest.iter_mut().zip(last[0]) {
            *byte ^= pad;
        }
        last[tag].into()
    }

    /// Decrypts `text` in place if the tag is right; else wipes it.
    pub(super) fn open(
        &mut self,
        nonce: &[u8; NONCE],
        text: &mut [u8],
        tag: &[u8; TAG],
    ) -> Result<(), Forged> {
        assert!(text.len() <= Ocb::TEXT_MAX, "the offset table covers the text");
        let start = self.opening.offset(&self.aes, nonce);
        let (blocks, rest) = Block::slice_as_chunks_mut(text);
        let mut offset = self.tables.mask(start, blocks);
        // The tag is the encryption of a sum that is known only afterwards. To decrypt the tag that came
        // and compare sums is the same test, and needs no second pass through the cipher.
        let mut claimed = [Block::from(*tag)];
        together(blocks, &mut claimed, |blocks| self.aes.decrypt_blocks(blocks));
        self.tables.mask(start, blocks);
        let mut checksum = sum(blocks);
        if !rest.is_empty() {
            offset ^= self.tables.star;
            let mut pad = block(offset);
            self.aes.encrypt_block(&mut pad);
            for (byte, pad) in rest.iter_mut().zip(pad) {
                *byte ^= pad;
            }
            checksum ^= padded(rest);
        }
        let expected = block(checksum ^ offset ^ self.tables.dollar);
        if bool::from(expected.as_slice().ct_eq(&claimed[0])) {
            return Ok(());
        }
        text.zeroize();
        Err(Forged)
    }
}

/// Runs the cipher over both. To start it costs about as much as a block, so few blocks are brought
/// together first; many are left in place.
fn together(blocks: &mut [Block], last: &mut [Block], cipher: impl Fn(&mut [Block])) {
    if blocks.len() >= GROUP {
        cipher(blocks);
        return cipher(last);
    }
    let mut lanes = [Block::default(); GROUP + 1];
    let lanes = &mut lanes[..blocks.len() + last.len()];
    let (front, back) = lanes.split_at_mut(blocks.len());
    front.copy_from_slice(blocks);
    back.copy_from_slice(last);
    cipher(lanes);
    let (front, back) = lanes.split_at(blocks.len());
    blocks.copy_from_slice(front);
    last.copy_from_slice(back);
}

impl Tables {
    /// Adds to each block its offset, counted on from `start`; twice is not at all. Returns the last
    /// block's offset.
    fn mask(&self, start: u128, blocks: &mut [Block]) -> u128 {
        let mut before = start;
        let mut index = 0;
        let mut groups = blocks.chunks_exact_mut(GROUP);
        for group in &mut groups {
            for (lane, sum) in group.iter_mut().zip(&self.sums) {
                *lane = block(load(lane) ^ before ^ sum);
            }
            index += GROUP;
            before ^= self.sums[GROUP - 2] ^ self.step(index - 1);
            let last = &mut group[GROUP - 1];
            *last = block(load(last) ^ before);
        }
        let rest = groups.into_remainder();
        for (lane, sum) in rest.iter_mut().zip(&self.sums) {
            *lane = block(load(lane) ^ before ^ sum);
        }
        if rest.is_empty() { before } else { before ^ self.sums[rest.len() - 1] }
    }

    /// By how much the offset changes before the block of this index, counted from 0.
    fn step(&self, index: usize) -> u128 {
        self.doubled[(index + 1).trailing_zeros() as usize]
    }

    fn reorder(&mut self) {
        for value in [&mut self.star, &mut self.dollar].into_iter().chain(&mut self.doubled) {
            *value = u128::from_ne_bytes(value.to_be_bytes());
        }
    }
}

impl Stretch {
    /// Offset_0 of a nonce (RFC 7253 §4.2), in memory order.
    fn offset(&mut self, aes: &Aes128, nonce: &[u8; NONCE]) -> u128 {
        let mut block = [0; BLOCK];
        // TAGLEN mod 128 is zero; a one bit precedes the nonce.
        block[BLOCK - NONCE - 1] = 1;
        block[BLOCK - NONCE..].copy_from_slice(nonce);
        let low = usize::from(block[BLOCK - 1] & 0x3f);
        block[BLOCK - 1] &= 0xc0;

        let top = u128::from_be_bytes(block);
        if top != self.top {
            let mut ktop: Block = block.into();
            aes.encrypt_block(&mut ktop);
            let ktop = u128::from_be_bytes(ktop.into());
            let (high, rest) = ((ktop >> 64) as u64, ktop as u64);
            // Ktop, then its first 64 bits xor those one octet further on.
            self.bits = [high, rest, high ^ (high << 8 | rest >> 56)];
            self.top = top;
        }
        let [a, b, c] = self.bits;
        let wide = u128::from(a) << 64 | u128::from(b);
        // 128 bits from bit `low` on; a shift by 64 of the third word is none at all.
        let offset = if low == 0 { wide } else { wide << low | u128::from(c >> (64 - low)) };
        u128::from_ne_bytes(offset.to_be_bytes())
    }
}

/// Multiplies by x in GF(2^128), big-endian (RFC 7253 §2).
fn double(value: u128) -> u128 {
    (value << 1) ^ ((value >> 127) * 0x87)
}

/// A block as a number, in memory order.
fn load(block: &Block) -> u128 {
    u128::from_ne_bytes((*block).into())
}

fn block(number: u128) -> Block {
    number.to_ne_bytes().into()
}

fn sum(blocks: &[Block]) -> u128 {
    blocks.iter().fold(0, |sum, block| sum ^ load(block))
}

/// A last partial block with its padding, a one bit and zeros.
fn padded(rest: &[u8]) -> u128 {
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block[rest.len()] = 0x80;
    u128::from_ne_bytes(block)
}

#[cfg(test)]
mod tests {
    use ocb3::Ocb3;
    use ocb3::aead::{AeadInOut, KeyInit};

    use super::*;
    use crate::rng::Rng;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    fn ocb(key: &[u8]) -> Ocb {
        Ocb::new(&Key::from_bytes(key.try_into().unwrap()))
    }

    fn sealed(ocb: &mut Ocb, nonce: &[u8; NONCE], text: &[u8]) -> Vec<u8> {
        let mut out = text.to_vec();
        let tag = ocb.seal(nonce, &mut out);
        out.extend_from_slice(&tag);
        out
    }

    /// HASH of RFC 7253 §4.1, which ours leaves out: without associated data it is zero, and with some
    /// it is added to the tag. So the RFC's vectors that have associated data test ours, too.
    fn hash(ocb: &Ocb, data: &[u8]) -> u128 {
        let (mut sum, mut offset) = (0, 0);
        for (index, chunk) in data.chunks(BLOCK).enumerate() {
            let whole = chunk.len() == BLOCK;
            offset ^= if whole { ocb.tables.step(index) } else { ocb.tables.star };
            let block =
                if whole { u128::from_ne_bytes(chunk.try_into().unwrap()) } else { padded(chunk) };
            let mut block: Block = (block ^ offset).to_ne_bytes().into();
            ocb.aes.encrypt_block(&mut block);
            sum ^= u128::from_ne_bytes(block.into());
        }
        sum
    }

    fn sealed_with(ocb: &mut Ocb, nonce: &[u8; NONCE], data: &[u8], text: &[u8]) -> Vec<u8> {
        let mut out = sealed(ocb, nonce, text);
        let sum = hash(ocb, data).to_ne_bytes();
        let tag = out.len() - TAG;
        out[tag..].iter_mut().zip(sum).for_each(|(byte, sum)| *byte ^= sum);
        out
    }

    #[test]
    fn rfc_7253_appendix_a() {
        // The nonce's last octet, the lengths of associated data and of text, the sealed text.
        let table = [
            (0x00, 0, 0, "785407BFFFC8AD9EDCC5520AC9111EE6"),
            (0x01, 8, 8, "6820B3657B6F615A5725BDA0D3B4EB3A257C9AF1F8F03009"),
            (0x03, 0, 8, "45DD69F8F5AAE72414054CD1F35D82760B2CD00D2F99BFA9"),
            (0x06, 0, 16, "5CE88EC2E0692706A915C00AEB8B2396F40E1C743F52436BDF06D8FA1ECA343D"),
            (
                0x09,
                0,
                24,
                "221BD0DE7FA6FE993ECCD769460A0AF2D6CDED0C395B1C3CE725F32494B9F914D85C0B1EB38357FF",
            ),
            (
                0x0c,
                0,
                32,
                "2942BFC773BDA23CABC6ACFD9BFD5835BD300F0973792EF46040C53F1432BCDFB5E1DDE3BC18A5F8\
                 40B52E653444D5DF",
            ),
            (
                0x0f,
                0,
                40,
                "4412923493C57D5DE0D700F753CCE0D1D2D95060122E9F15A5DDBFC5787E50B5CC55EE507BCB084E\
                 479AD363AC366B95A98CA5F3000B1479",
            ),
        ];
        let counting: Vec<u8> = (0..40).collect();
        let mut ocb = ocb(&counting[..16]);
        for (last, data, text, expect) in table {
            let mut nonce: [u8; NONCE] = hex("BBAA99887766554433221100").try_into().unwrap();
            nonce[NONCE - 1] = last;
            let made = sealed_with(&mut ocb, &nonce, &counting[..data], &counting[..text]);
            assert_eq!(made, hex(expect), "nonce ..{last:02x}");
        }
    }

    #[test]
    fn rfc_7253_iterative_test() {
        let mut key = [0; 16];
        key[15] = 128;
        let mut ocb = ocb(&key);
        let nonce = |number: u16| {
            let mut nonce = [0; NONCE];
            nonce[NONCE - 2..].copy_from_slice(&number.to_be_bytes());
            nonce
        };
        let mut all = Vec::new();
        for round in 0..128 {
            let zeros = vec![0; usize::from(round)];
            all.extend(sealed_with(&mut ocb, &nonce(3 * round + 1), &zeros, &zeros));
            all.extend(sealed_with(&mut ocb, &nonce(3 * round + 2), b"", &zeros));
            all.extend(sealed_with(&mut ocb, &nonce(3 * round + 3), &zeros, b""));
        }
        let last = sealed_with(&mut ocb, &nonce(385), &all, b"");
        assert_eq!(last, hex("67E944D23256C5E0B6C61FA22FDF1EA2"));
    }

    #[test]
    fn agrees_with_the_ocb3_crate() {
        let mut rng = Rng::new(7253);
        let mut key = Vec::new();
        rng.fill(16, &mut key);
        let theirs = Ocb3::<Aes128>::new_from_slice(&key).unwrap();
        let mut ours = ocb(&key);
        for len in (0..600).chain([1023, 1024, 1025, 2024, 65_536, 100_001]) {
            let mut text = Vec::new();
            let mut nonce = Vec::new();
            rng.fill(len, &mut text);
            rng.fill(NONCE, &mut nonce);
            let nonce: [u8; NONCE] = nonce.try_into().unwrap();

            let mut expect = text.clone();
            let tag = theirs
                .encrypt_inout_detached(&nonce.into(), b"", expect.as_mut_slice().into())
                .unwrap();
            expect.extend_from_slice(&tag);
            let mut made = sealed(&mut ours, &nonce, &text);
            assert_eq!(made, expect, "{len} octets");

            let (body, tag) = made.split_last_chunk_mut::<TAG>().unwrap();
            assert_eq!(ours.open(&nonce, body, tag), Ok(()));
            assert_eq!(*body, text, "{len} octets");
        }
    }

    #[test]
    fn forgeries_are_wiped() {
        let mut ocb = ocb(&[9; 16]);
        for len in [0, 1, 15, 16, 17, 128, 129, 300] {
            let made = sealed(&mut ocb, &[1; NONCE], &vec![0xa5; len]);
            for place in 0..made.len() {
                let mut made = made.clone();
                made[place] ^= 4;
                let (body, tag) = made.split_last_chunk_mut::<TAG>().unwrap();
                assert_eq!(ocb.open(&[1; NONCE], body, tag), Err(Forged), "{len} at {place}");
                assert!(body.iter().all(|&byte| byte == 0), "{len} at {place}");
            }
        }
    }

    #[test]
    fn tables_are_wiped_when_dropped() {
        let mut ocb = ocb(&[9; 16]);
        sealed(&mut ocb, &[1; NONCE], b"text");
        ocb.tables.zeroize();
        ocb.sealing.zeroize();
        assert_eq!((ocb.tables.star, ocb.tables.dollar, ocb.tables.doubled), (0, 0, [0; 17]));
        assert_eq!((ocb.sealing.top, ocb.sealing.bits), (0, [0; 3]));
        fn is_wiped_when_dropped<T: ZeroizeOnDrop>() {}
        is_wiped_when_dropped::<Tables>();
        is_wiped_when_dropped::<Stretch>();
        is_wiped_when_dropped::<Aes128>();
        is_wiped_when_dropped::<Key>();
    }
}
