//! The proofs by which the two ends of a new connection show that they have the session's secret and see the same
//! connection (`docs/streams.md` §5): the client's hello and the server's answer. It knows no streams and no
//! sockets.

use std::fmt;

use zeroize::Zeroizing;

use crate::keys::{Keys, PROOF};
use crate::mux::Role;

/// Version of the hello.
pub(crate) const VERSION: u8 = 1;

/// Octets of the client's hello: version, number of the connection, proof.
pub const HELLO: usize = 1 + 8 + PROOF;

/// The proofs of one connection.
pub struct Proofs {
    keys: Keys,
    exported: Zeroizing<[u8; 32]>,
}

impl fmt::Debug for Proofs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proofs(..)")
    }
}

impl Proofs {
    /// Those of a connection whose TLS session exports these octets. They differ on each connection, so a proof
    /// is worth nothing on another one (RFC 8446 §7.5).
    pub fn new(keys: Keys, exported: &[u8; 32]) -> Proofs {
        Proofs { keys, exported: Zeroizing::new(*exported) }
    }

    /// What a client says first on its connection of this number.
    pub fn hello(&self, number: u64) -> [u8; HELLO] {
        let mut hello = [0; HELLO];
        let (version, rest) = hello.split_at_mut(1);
        version[0] = VERSION;
        rest[..8].copy_from_slice(&number.to_be_bytes());
        rest[8..].copy_from_slice(&self.of(Role::Client, number));
        hello
    }

    /// The number of the client's connection, if its hello is as it must be.
    pub fn read(&self, hello: &[u8; HELLO]) -> Option<u64> {
        let (version, rest) = hello.split_first()?;
        let (number, proof) = rest.split_first_chunk()?;
        let number = u64::from_be_bytes(*number);
        let expected = self.of(Role::Client, number);
        let is_right = are_equal(proof.first_chunk()?, &expected);
        (*version == VERSION && is_right).then_some(number)
    }

    /// What the server says first, after it has read the hello: a client without the secret gets no proof.
    pub fn answer(&self, number: u64) -> [u8; PROOF] {
        self.of(Role::Server, number)
    }

    fn of(&self, role: Role, number: u64) -> [u8; PROOF] {
        self.keys.proof(role, &self.exported, number)
    }
}

/// Compares two proofs in constant time.
pub(crate) fn are_equal(one: &[u8; PROOF], other: &[u8; PROOF]) -> bool {
    let difference = one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b));
    // The compiler must not end the comparison early: its time would tell how much of a
    // guess is right.
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SecretMemory;

    #[test]
    fn a_hello_is_worth_something_on_its_own_connection_alone() {
        let proofs = |secret: u8, exported: u8| {
            let keys = Keys::new(&[secret; 32], SecretMemory::ORDINARY);
            Proofs::new(keys, &[exported; 32])
        };
        let hello = proofs(1, 1).hello(7);
        assert_eq!(proofs(1, 1).read(&hello), Some(7));
        assert_eq!([proofs(2, 1).read(&hello), proofs(1, 2).read(&hello)], [None; 2]);
        for at in 0..HELLO {
            let mut forged = hello;
            forged[at] ^= 1;
            assert_eq!(proofs(1, 1).read(&forged), None, "octet {at}");
        }
        // An end that sends back what it got has proved nothing.
        assert_ne!(proofs(1, 1).answer(7), hello[1 + 8..]);
    }

    #[test]
    fn equal_proofs_are_told_from_others() {
        assert!(are_equal(&[1; PROOF], &[1; PROOF]));
        assert!(!are_equal(&[1; PROOF], &[2; PROOF]));
    }
}
