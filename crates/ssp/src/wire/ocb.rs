//! AES-128-OCB3 (RFC 7253) with 96-bit nonces, 128-bit tags and no associated data, in place. Blocks go
//! to the cipher eight at a time, as the hardware likes them. It must not know what it seals.

use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Block};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::key::Key;

/// Octets in a cipher block.
pub const BLOCK: usize = 16;
/// Octets in a tag.
pub const TAG: usize = 16;
/// Octets in a nonce.
pub const NONCE: usize = 12;

/// Blocks given to the cipher at a time: what AES-NI keeps in flight.
const BATCH: usize = 8;
/// Offset differences kept, one for each power of two of blocks: up to 2^16 blocks, 1 MiB a message.
/// Datagrams need 7.
const DOUBLINGS: usize = 17;

/// A keyed cipher with its tables. Wiped when dropped.
pub struct Ocb {
    aes: Aes128,
    tables: Tables,
    /// The stretched nonces last used, for sealing and for opening: 64 successive nonces share one.
    sealing: Stretch,
    opening: Stretch,
}

/// The tag does not match. The text has been wiped.
#[derive(Debug, Eq, PartialEq)]
pub struct Forged;

// All 128-bit values hold a block's octets in memory order, so that xor needs no swapping.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Tables {
    /// L_* and L_$ of RFC 7253 §4.1, and L_i.
    star: u128,
    dollar: u128,
    doubled: [u128; DOUBLINGS],
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
    pub const TEXT_MAX: usize = (1 << (DOUBLINGS - 1)) * BLOCK;

    /// Expands a key.
    pub fn new(key: &Key) -> Ocb {
        let aes = Aes128::new(key.bytes().into());
        let mut zero = Block::default();
        aes.encrypt_block(&mut zero);
        let star = u128::from_be_bytes(zero.into());
        zero.as_mut_slice().zeroize();
        let dollar = double(star);
        let mut tables = Tables { star, dollar, doubled: [double(dollar); DOUBLINGS] };
        for index in 1..DOUBLINGS {
            tables.doubled[index] = double(tables.doubled[index - 1]);
        }
        tables.reorder();
        Ocb { aes, tables, sealing: Stretch::default(), opening: Stretch::default() }
    }

    /// Encrypts `text` in place and returns its tag. A nonce must never seal twice.
    pub fn seal(&mut self, nonce: &[u8; NONCE], text: &mut [u8]) -> [u8; TAG] {
        assert!(text.len() <= Ocb::TEXT_MAX, "the offset table covers the text");
        let mut offset = self.sealing.offset(&self.aes, nonce);
        let mut checksum = 0;
        let mut index = 0;

        let (whole, rest) = text.split_at_mut(text.len() / BLOCK * BLOCK);
        let mut groups = whole.chunks_exact_mut(BATCH * BLOCK);
        for group in &mut groups {
            let mut blocks = [Block::default(); BATCH];
            let mut offsets = [0; BATCH];
            for lane in 0..BATCH {
                let block = load(&group[lane * BLOCK..]);
                checksum ^= block;
                offset ^= self.tables.step(index + lane);
                offsets[lane] = offset;
                blocks[lane] = (block ^ offset).to_ne_bytes().into();
            }
            self.aes.encrypt_blocks(&mut blocks);
            for lane in 0..BATCH {
                let block = u128::from_ne_bytes(blocks[lane].into()) ^ offsets[lane];
                group[lane * BLOCK..][..BLOCK].copy_from_slice(&block.to_ne_bytes());
            }
            index += BATCH;
        }

        // The blocks left over, the pad of a last partial block and the tag need no one's result, so
        // they share a batch.
        let mut blocks = [Block::default(); BATCH + 1];
        let mut offsets = [0; BATCH + 1];
        let tail = groups.into_remainder();
        let count = tail.len() / BLOCK;
        for lane in 0..count {
            let block = load(&tail[lane * BLOCK..]);
            checksum ^= block;
            offset ^= self.tables.step(index + lane);
            offsets[lane] = offset;
            blocks[lane] = (block ^ offset).to_ne_bytes().into();
        }
        let mut used = count;
        if !rest.is_empty() {
            checksum ^= padded(rest);
            offset ^= self.tables.star;
            blocks[used] = offset.to_ne_bytes().into();
            used += 1;
        }
        blocks[used] = (checksum ^ offset ^ self.tables.dollar).to_ne_bytes().into();
        used += 1;
        self.aes.encrypt_blocks(&mut blocks[..used]);
        for lane in 0..count {
            let block = u128::from_ne_bytes(blocks[lane].into()) ^ offsets[lane];
            tail[lane * BLOCK..][..BLOCK].copy_from_slice(&block.to_ne_bytes());
        }
        for (byte, pad) in rest.iter_mut().zip(blocks[count]) {
            *byte ^= pad;
        }
        blocks[used - 1].into()
    }

    /// Decrypts `text` in place if the tag is right; else wipes it.
    pub fn open(
        &mut self,
        nonce: &[u8; NONCE],
        text: &mut [u8],
        tag: &[u8; TAG],
    ) -> Result<(), Forged> {
        assert!(text.len() <= Ocb::TEXT_MAX, "the offset table covers the text");
        let mut offset = self.opening.offset(&self.aes, nonce);
        let mut checksum = 0;
        let mut index = 0;

        let (whole, rest) = text.split_at_mut(text.len() / BLOCK * BLOCK);
        for group in whole.chunks_mut(BATCH * BLOCK) {
            let mut blocks = [Block::default(); BATCH];
            let mut offsets = [0; BATCH];
            let count = group.len() / BLOCK;
            for lane in 0..count {
                offset ^= self.tables.step(index + lane);
                offsets[lane] = offset;
                blocks[lane] = (load(&group[lane * BLOCK..]) ^ offset).to_ne_bytes().into();
            }
            self.aes.decrypt_blocks(&mut blocks[..count]);
            for lane in 0..count {
                let block = u128::from_ne_bytes(blocks[lane].into()) ^ offsets[lane];
                checksum ^= block;
                group[lane * BLOCK..][..BLOCK].copy_from_slice(&block.to_ne_bytes());
            }
            index += count;
        }
        if !rest.is_empty() {
            offset ^= self.tables.star;
            let mut pad: Block = offset.to_ne_bytes().into();
            self.aes.encrypt_block(&mut pad);
            for (byte, pad) in rest.iter_mut().zip(pad) {
                *byte ^= pad;
            }
            checksum ^= padded(rest);
        }
        let mut expected: Block = (checksum ^ offset ^ self.tables.dollar).to_ne_bytes().into();
        self.aes.encrypt_block(&mut expected);
        if bool::from(expected.as_slice().ct_eq(tag)) {
            return Ok(());
        }
        text.zeroize();
        Err(Forged)
    }
}

impl Tables {
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

/// The first block of `bytes`, in memory order.
fn load(bytes: &[u8]) -> u128 {
    let mut block = [0; BLOCK];
    block.copy_from_slice(&bytes[..BLOCK]);
    u128::from_ne_bytes(block)
}

/// A last partial block with its padding, a one bit and zeros.
fn padded(rest: &[u8]) -> u128 {
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block[rest.len()] = 0x80;
    u128::from_ne_bytes(block)
}
