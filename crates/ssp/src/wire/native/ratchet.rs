//! The keys of one direction, phase after phase (`docs/wire.md` §3). It must not know when to move on.

use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes128Gcm, Key, Nonce, Tag};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::kex::{SECRET, Secret};
use crate::wire::Seq;

/// Octets of the tag.
pub(crate) const TAG: usize = 16;
const NONCE: usize = 12;

/// What seals or opens in one phase.
pub(crate) struct PhaseKey {
    cipher: Aes128Gcm,
    iv: Zeroizing<[u8; NONCE]>,
}

/// A tag that does not match.
#[derive(Debug)]
pub(crate) struct Mismatch;

impl PhaseKey {
    /// Encrypts in place and gives the tag.
    pub(super) fn seal(&self, seq: Seq, clear: &[u8], text: &mut [u8]) -> [u8; TAG] {
        let tag = self.cipher.encrypt_inout_detached(&self.nonce(seq), clear, text.into());
        tag.expect("a datagram is far shorter than GCM's limit").into()
    }

    /// Decrypts in place if the tag matches; otherwise nothing changes.
    pub(super) fn open(
        &self,
        seq: Seq,
        clear: &[u8],
        text: &mut [u8],
        tag: &[u8; TAG],
    ) -> Result<(), Mismatch> {
        let tag = Tag::from(*tag);
        let opened = self.cipher.decrypt_inout_detached(&self.nonce(seq), clear, text.into(), &tag);
        opened.map_err(|_| Mismatch)
    }

    fn nonce(&self, seq: Seq) -> Nonce<aes_gcm::aead::array::sizes::U12> {
        let mut nonce = *self.iv;
        for (octet, number) in nonce[NONCE - 8..].iter_mut().zip(seq.get().to_be_bytes()) {
            // As TLS 1.3 makes nonces (RFC 8446 §5.3): a number is used once under a key, so a
            // nonce is, too.
            *octet ^= number;
        }
        nonce.into()
    }
}

/// A secret from which the key of this phase and all later ones follow, and of no earlier one.
pub(crate) struct Chain {
    secret: Secret,
}

impl Chain {
    pub(super) fn new(secret: Secret) -> Chain {
        Chain { secret }
    }

    /// The key of the chain's phase. The chain is left at the next phase, and this key cannot be made
    /// from it again.
    pub(super) fn take(&mut self) -> PhaseKey {
        // The secret is uniform: it serves as HKDF's pseudorandom key as it is (RFC 5869 §3.3).
        let expand = Hkdf::<Sha256>::from_prk(&**self.secret.0).expect("a secret is a hash long");
        let mut key = Zeroizing::new([0; 16]);
        let mut iv = Zeroizing::new([0; NONCE]);
        let mut next = Zeroizing::new([0; SECRET]);
        for (label, octets) in [
            (&b"rove key"[..], key.as_mut_slice()),
            (b"rove iv", iv.as_mut_slice()),
            (b"rove next", next.as_mut_slice()),
        ] {
            expand.expand(label, octets).expect("32 octets are within HKDF's limit");
        }
        // The old secret is gone: who takes the memory later cannot derive the keys of before.
        self.secret.0.copy_from_slice(&*next);
        let key: &Key<Aes128Gcm> = (&*key).into();
        let cipher = Aes128Gcm::new(key);
        PhaseKey { cipher, iv }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_own_key() {
        let (mut ours, mut theirs) =
            (Chain::new(Secret::new([5; 32])), Chain::new(Secret::new([5; 32])));
        let mut earlier: Vec<PhaseKey> = Vec::new();
        for phase in 0..4 {
            let (seal, open) = (ours.take(), theirs.take());
            let mut text = *b"some text";
            let tag = seal.seal(Seq::new(phase), b"clear", &mut text);
            for old in &earlier {
                assert!(old.open(Seq::new(phase), b"clear", &mut text, &tag).is_err());
            }
            assert!(open.open(Seq::new(phase + 1), b"clear", &mut text, &tag).is_err());
            assert!(open.open(Seq::new(phase), b"cleaR", &mut text, &tag).is_err());
            assert!(open.open(Seq::new(phase), b"clear", &mut text, &tag).is_ok());
            assert_eq!(&text, b"some text");
            earlier.push(seal);
        }
    }
}
