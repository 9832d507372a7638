//! A hash over all that happens in a world, by which two runs are compared.

/// FNV-1a over 64 bits (Fowler, Noll and Vo): names a run, protects nothing.
#[derive(Debug)]
pub(crate) struct Trace(u64);

impl Trace {
    /// Of nothing.
    pub(crate) fn new() -> Trace {
        Trace(0xcbf2_9ce4_8422_2325)
    }

    /// Adds octets.
    pub(crate) fn add(&mut self, octets: &[u8]) {
        for octet in octets {
            self.0 = (self.0 ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The hash of all that was added.
    pub(crate) fn hash(&self) -> u64 {
        self.0
    }
}
