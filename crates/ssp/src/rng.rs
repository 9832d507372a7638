//! Randomness that is a value: the stream is fixed by the seed, so that a seed is a run. Not for keys.

use alloc::vec::Vec;

/// SplitMix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, OOPSLA 2014,
/// figure 17). One seed, one stream, on every platform.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The generator of this seed.
    pub const fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// 64 uniform bits.
    pub const fn bits(&mut self) -> u64 {
        // SplitMix64: fixed by its definition, so that a seed is the same run with any version of
        // any crate.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound` (bias below 2^-32 for the bounds used here); 0 for a bound of 0.
    pub const fn below(&mut self, bound: u32) -> u32 {
        (((self.bits() >> 32) * bound as u64) >> 32) as u32
    }

    /// Appends `count` uniform octets.
    pub fn fill(&mut self, count: usize, out: &mut Vec<u8>) {
        let end = out.len() + count;
        while out.len() < end {
            let bytes = self.bits().to_le_bytes();
            out.extend_from_slice(&bytes[..bytes.len().min(end - out.len())]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_fixed() {
        // The published first outputs for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        let stream: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(
            stream,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn stays_below() {
        let mut rng = Rng::new(1);
        assert!((0..1000).all(|_| rng.below(17) < 17));
        assert_eq!(rng.below(0), 0);
        let mut out = vec![7];
        rng.fill(11, &mut out);
        assert_eq!(out.len(), 12);
    }
}
