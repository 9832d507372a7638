//! Octets that replace lost fragments, whichever they are: a systematic Reed-Solomon code made of Cauchy
//! matrices over GF(2^8) (`docs/wire.md` §7). It must not know how fragments travel.

use alloc::vec::Vec;

/// Fragments of an instruction that has parity, at most.
pub(crate) const COVERED_MAX: usize = 32;
/// Parity fragments of an instruction, at most.
pub(crate) const PARITY_MAX: usize = 32;

/// x^8 + x^4 + x^3 + x^2 + 1, of which x is a generator.
const POLYNOMIAL: u16 = 0x11d;
/// What stands for a parity fragment in the matrix is this and its index; for a fragment, its number. So no
/// two are equal, which is what makes every square part of the matrix invertible.
const PARITY_POINT: u8 = 128;

/// Powers of x, twice around, and to what power x is each octet but 0.
const TABLES: ([u8; 510], [u8; 256]) = tables();

const fn tables() -> ([u8; 510], [u8; 256]) {
    let (mut powers, mut logs) = ([0; 510], [0; 256]);
    let (mut power, mut value) = (0, 1_u16);
    while power < 255 {
        powers[power] = value as u8;
        powers[power + 255] = value as u8;
        logs[value as usize] = power as u8;
        value <<= 1;
        if value & 0x100 != 0 {
            value ^= POLYNOMIAL;
        }
        power += 1;
    }
    (powers, logs)
}

fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    let (powers, logs) = &TABLES;
    powers[usize::from(logs[usize::from(a)]) + usize::from(logs[usize::from(b)])]
}

/// The inverse of anything but 0.
fn inverse(a: u8) -> u8 {
    let (powers, logs) = &TABLES;
    powers[255 - usize::from(logs[usize::from(a)])]
}

/// What fragment `number` counts for in parity fragment `index`.
fn weight(index: u8, number: u8) -> u8 {
    inverse((PARITY_POINT + index) ^ number)
}

/// Adds `factor` times `octets`, and zeros after them, to `sum`, which is at least as long.
fn add(sum: &mut [u8], factor: u8, octets: &[u8]) {
    // One table for each factor: a fragment has many more octets than there are values.
    let mut multiples = [0; 256];
    for (octet, multiple) in (0..=u8::MAX).zip(&mut multiples) {
        *multiple = product(factor, octet);
    }
    for (sum, octet) in sum.iter_mut().zip(octets) {
        *sum ^= multiples[usize::from(*octet)];
    }
}

/// Appends parity fragment `index` of these fragments, in their order: at most 32, none longer than `len`.
///
/// # Panics
/// If the index is above 31, or a fragment too long.
pub fn protect<'a>(
    index: u8,
    fragments: impl Iterator<Item = &'a [u8]>,
    len: usize,
    out: &mut Vec<u8>,
) {
    assert!(usize::from(index) < PARITY_MAX, "an index has five bits");
    let start = out.len();
    out.resize(start + len, 0);
    for (number, fragment) in (0..COVERED_MAX as u8).zip(fragments) {
        assert!(fragment.len() <= len, "parity is as long as the longest");
        add(&mut out[start..], weight(index, number), fragment);
    }
}

/// Finds the fragments that are `None` from as many parity fragments, each with its index and all of one
/// length. Those found have that length: zeros follow their own octets. `None`: there are too few.
pub(crate) fn recover(
    fragments: &[Option<&[u8]>],
    parity: &[(u8, &[u8])],
) -> Option<Vec<(usize, Vec<u8>)>> {
    let missing: Vec<u8> =
        (0..).zip(fragments).filter(|(_, held)| held.is_none()).map(|(number, _)| number).collect();
    // Any rows of a Cauchy matrix are independent, so the first ones do.
    let parity = parity.get(..missing.len())?;
    let mut rows: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(missing.len());
    for (index, octets) in parity {
        // What the missing ones alone add up to.
        let mut sum = octets.to_vec();
        for (number, held) in (0..).zip(fragments) {
            if let Some(held) = held {
                add(&mut sum, weight(*index, number), held);
            }
        }
        rows.push((missing.iter().map(|number| weight(*index, *number)).collect(), sum));
    }
    solve(&mut rows);
    Some(missing.into_iter().map(usize::from).zip(rows.into_iter().map(|(_, sum)| sum)).collect())
}

/// Turns the left sides into the identity (Gauss and Jordan). No pivot is 0: every leading square part of a
/// Cauchy matrix is invertible.
fn solve(rows: &mut [(Vec<u8>, Vec<u8>)]) {
    for pivot in 0..rows.len() {
        // No pivot is 0: every square part of a Cauchy matrix can be inverted.
        let scale = inverse(rows[pivot].0[pivot]);
        let (weights, sum) = &mut rows[pivot];
        weights.iter_mut().chain(sum).for_each(|octet| *octet = product(*octet, scale));
        let (weights, sum) = rows[pivot].clone();
        for (place, row) in rows.iter_mut().enumerate() {
            let factor = row.0[pivot];
            if place != pivot && factor != 0 {
                add(&mut row.0, factor, &weights);
                add(&mut row.1, factor, &sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn the_field_is_one() {
        for a in 1..=u8::MAX {
            assert_eq!(product(a, inverse(a)), 1);
            for b in 1..=u8::MAX {
                assert_eq!(product(product(a, b), inverse(b)), a);
                // By hand: shift and reduce.
                let mut sum = 0_u16;
                for bit in (0..8).rev() {
                    sum = if sum & 0x80 != 0 { sum << 1 ^ POLYNOMIAL } else { sum << 1 };
                    sum ^= if b >> bit & 1 == 1 { u16::from(a) } else { 0 };
                }
                assert_eq!(u16::from(product(a, b)), sum);
            }
        }
    }

    #[test]
    fn whatever_is_lost_is_found() {
        let mut rng = Rng::new(9);
        for turn in 0..400 {
            let count = 2 + rng.below(COVERED_MAX as u32 - 1) as usize;
            let extra = 1 + rng.below(count.min(PARITY_MAX) as u32) as usize;
            let len = 1 + rng.below(60) as usize;
            let fragments: Vec<Vec<u8>> = (0..count)
                .map(|number| {
                    let mut octets = Vec::new();
                    let last = number + 1 == count;
                    let len = if last { 1 + rng.below(len as u32) as usize } else { len };
                    rng.fill(len, &mut octets);
                    octets
                })
                .collect();
            let parity: Vec<(u8, Vec<u8>)> = (0..extra as u8)
                .map(|index| {
                    let mut out = Vec::new();
                    protect(index, fragments.iter().map(Vec::as_slice), len, &mut out);
                    (index, out)
                })
                .collect();
            let mut held: Vec<Option<&[u8]>> =
                fragments.iter().map(|octets| Some(octets.as_slice())).collect();
            let lost = 1 + rng.below(extra as u32) as usize;
            while held.iter().filter(|held| held.is_none()).count() < lost {
                held[rng.below(count as u32) as usize] = None;
            }
            // Any of the parity fragments will do, as long as there are enough.
            let mut kept: Vec<(u8, &[u8])> =
                parity.iter().map(|(index, octets)| (*index, octets.as_slice())).collect();
            while kept.len() > lost {
                kept.remove(rng.below(kept.len() as u32) as usize);
            }
            for (number, octets) in recover(&held, &kept).unwrap() {
                let own = &fragments[number];
                assert_eq!(octets[..own.len()], **own, "turn {turn}");
                assert!(octets[own.len()..].iter().all(|&octet| octet == 0));
            }
            kept.pop();
            assert_eq!(recover(&held, &kept), None, "one too few");
        }
    }
}
