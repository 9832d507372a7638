//! How two ends that trade public keys over ssh come to the secrets of a session (`docs/wire.md` §2).
//! It must not know how the keys travel, nor where their randomness comes from.

use alloc::boxed::Box;
use core::fmt;

use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::{Zeroize, Zeroizing};

use crate::wire::mosh::key::{base64, from_base64};

/// Octets of a secret, of either kind of X25519 key, and of a hash.
pub(crate) const SECRET: usize = 32;

/// What sets this exchange apart from any other use of the same primitives.
const LABEL: &[u8] = b"rove 1";

/// X25519, HKDF-SHA256, AES-128-GCM. Another word, such as one with ML-KEM, is another number.
const SUITE: u8 = 1;

/// An X25519 key pair for one attempt to start a session.
pub struct KeyPair {
    /// In a box, like all secrets here: moving one would leave a copy behind.
    secret: Box<StaticSecret>,
    public: PublicKeyOctets,
}

impl KeyPair {
    /// A pair from 32 octets of the system's randomness, which must be used for nothing else.
    pub fn from_random(random: Zeroizing<[u8; SECRET]>) -> KeyPair {
        let secret = Box::new(StaticSecret::from(*random));
        let public = PublicKeyOctets(PublicKey::from(&*secret).to_bytes());
        KeyPair { secret, public }
    }

    /// The half that is told.
    pub fn public(&self) -> PublicKeyOctets {
        self.public
    }

    /// The client's way to the session's secrets. Uses the pair up.
    pub fn agree_as_client(
        self,
        server: &PublicKeyOctets,
        context: &Context,
    ) -> Result<SessionSecrets, WeakKey> {
        let client = self.public;
        self.agree(server, context.salt(&client, server))
    }

    /// The server's way to the same.
    pub fn agree_as_server(
        self,
        client: &PublicKeyOctets,
        context: &Context,
    ) -> Result<SessionSecrets, WeakKey> {
        let server = self.public;
        self.agree(client, context.salt(client, &server))
    }

    fn agree(self, peer: &PublicKeyOctets, salt: [u8; SECRET]) -> Result<SessionSecrets, WeakKey> {
        let shared = self.secret.diffie_hellman(&PublicKey::from(peer.0));
        // Not contributory: the peer's key has small order, and all octets are zero (RFC 7748 §6.1).
        if !shared.was_contributory() {
            return Err(WeakKey);
        }
        let (mut root, expand) = Hkdf::<Sha256>::extract(Some(&salt), shared.as_bytes());
        root.as_mut_slice().zeroize();
        let secret = |label: &[u8]| {
            let mut secret = Secret::new([0; SECRET]);
            expand.expand(label, &mut **secret.0).expect("32 octets are within HKDF's limit");
            secret
        };
        // The peer holds all of the above. This one follows from our own private key alone.
        let (mut own_root, own) = Hkdf::<Sha256>::extract(Some(&salt), self.secret.as_bytes());
        own_root.as_mut_slice().zeroize();
        let mut path = Secret::new([0; SECRET]);
        own.expand(b"rove path", &mut **path.0).expect("32 octets are within HKDF's limit");
        Ok(SessionSecrets {
            client: secret(b"rove client"),
            server: secret(b"rove server"),
            streams: secret(b"rove quic"),
            path,
        })
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.public)
    }
}

/// A public key as it travels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PublicKeyOctets([u8; SECRET]);

impl PublicKeyOctets {
    /// Characters of the text form: base64 without padding.
    pub const TEXT_LEN: usize = 43;

    /// A key from its octets: all are some key.
    pub const fn from_bytes(bytes: [u8; SECRET]) -> PublicKeyOctets {
        PublicKeyOctets(bytes)
    }

    /// Reads the text form. `None`: it is none.
    pub fn from_base64(text: &str) -> Option<PublicKeyOctets> {
        let bytes = from_base64::<SECRET>(text).ok()?;
        Some(PublicKeyOctets(*bytes))
    }
}

impl fmt::Display for PublicKeyOctets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64(&self.0))
    }
}

/// A session's name on its server's port, chosen by the server.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct ConnId(u32);

impl ConnId {
    /// A name from its number.
    pub const fn new(number: u32) -> ConnId {
        ConnId(number)
    }

    /// Reads eight hexadecimal digits. `None`: they are none.
    pub fn parse(text: &str) -> Option<ConnId> {
        let digits = text.len() == 8 && text.bytes().all(|octet| octet.is_ascii_hexdigit());
        digits.then(|| u32::from_str_radix(text, 16).ok()).flatten().map(ConnId)
    }

    pub(crate) const fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// What both ends know of an attempt, bound into its secrets so that both mean the same attempt. The port
/// is no part of it: a host that forwards ports may put another into the answer, and gains nothing by it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Context {
    /// The client's nonce.
    pub nonce: [u8; 16],
    /// The server's name for the session.
    pub conn: ConnId,
}

impl Context {
    fn salt(&self, client: &PublicKeyOctets, server: &PublicKeyOctets) -> [u8; SECRET] {
        Sha256::new()
            .chain_update(LABEL)
            .chain_update(self.nonce)
            // Whoever changes a key on its way over ssh changes the secrets, and the ends do not
            // understand each other.
            .chain_update(client.0)
            .chain_update(server.0)
            .chain_update(self.conn.to_bytes())
            .chain_update([SUITE])
            .finalize()
            .into()
    }
}

/// 32 octets that must not be printed, compared carelessly, or left in memory.
#[derive(Clone)]
pub(crate) struct Secret(pub Box<Zeroizing<[u8; SECRET]>>);

impl Secret {
    pub(crate) fn new(octets: [u8; SECRET]) -> Secret {
        Secret(Box::new(Zeroizing::new(octets)))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What an exchange gives both ends. A value starts one session, once at each end.
#[derive(Debug)]
pub struct SessionSecrets {
    /// Seals what the client sends.
    pub(crate) client: Secret,
    /// Seals what the server sends.
    pub(crate) server: Secret,
    /// For reliable streams beside the session.
    pub(crate) streams: Secret,
    /// Makes this end's questions to addresses. The peer does not know it.
    pub(crate) path: Secret,
}

impl SessionSecrets {
    /// Secrets from three given ones: for tests, where both ends are made without an exchange. Questions
    /// to addresses follow from the last one, so the peer can foresee them.
    pub fn from_bytes(client: [u8; 32], server: [u8; 32], streams: [u8; 32]) -> SessionSecrets {
        let [client, server, path] = [client, server, streams].map(Secret::new);
        SessionSecrets { client, server, streams: path.clone(), path }
    }

    /// The secret by which a QUIC connection beside this session proves whose it is.
    pub fn streams(&self) -> &[u8; SECRET] {
        &self.streams.0
    }
}

/// A public key that leaves nothing secret: no honest peer sends it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WeakKey;

impl fmt::Display for WeakKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the other end's public key gives no secret")
    }
}

impl core::error::Error for WeakKey {}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: Context = Context { nonce: [9; 16], conn: ConnId::new(0x0102_0304) };

    fn pair(octet: u8) -> KeyPair {
        KeyPair::from_random(Zeroizing::new([octet; SECRET]))
    }

    fn octets(secrets: &SessionSecrets) -> [[u8; SECRET]; 3] {
        [&secrets.client, &secrets.server, &secrets.streams].map(|secret| **secret.0)
    }

    #[test]
    fn no_end_can_foresee_the_questions_of_the_other() {
        let agree = |client: u8, server: u8| {
            let (client, server) = (pair(client), pair(server));
            let (to_server, to_client) = (client.public(), server.public());
            let client = client.agree_as_client(&to_client, &CONTEXT).unwrap();
            let server = server.agree_as_server(&to_server, &CONTEXT).unwrap();
            assert_eq!(octets(&client), octets(&server));
            for known in octets(&client).into_iter().chain([**client.path.0]) {
                assert_ne!(known, **server.path.0);
            }
            **server.path.0
        };
        assert_ne!(agree(1, 2), agree(1, 3));
        assert_ne!(agree(1, 2), agree(4, 2), "nor does it serve twice");
    }

    #[test]
    fn both_ends_agree_and_nobody_else() {
        let (client, server) = (pair(1), pair(2));
        let (to_server, to_client) = (client.public(), server.public());
        let agreed = octets(&client.agree_as_client(&to_client, &CONTEXT).unwrap());
        let theirs = octets(&server.agree_as_server(&to_server, &CONTEXT).unwrap());
        assert_eq!(agreed, theirs);
        assert!(agreed[0] != agreed[1] && agreed[1] != agreed[2] && agreed[0] != agreed[2]);
        // Whatever one end believes to be otherwise, the secrets differ.
        for (client, server, context) in [
            (pair(3), to_client, CONTEXT),
            (pair(1), pair(3).public(), CONTEXT),
            (pair(1), to_client, Context { nonce: [8; 16], ..CONTEXT }),
            (pair(1), to_client, Context { conn: ConnId::new(5), ..CONTEXT }),
        ] {
            let other = octets(&client.agree_as_client(&server, &context).unwrap());
            assert!(agreed.iter().zip(&other).all(|(ours, others)| ours != others), "{context:?}");
        }
    }

    #[test]
    fn keys_of_small_order_are_refused() {
        let mut one = [0; SECRET];
        one[0] = 1;
        // RFC 7748 §6.1: an all-zero secret; 0, 1 and p, whose multiples are 0.
        let mut p = [0xff; SECRET];
        (p[0], p[31]) = (0xed, 0x7f);
        for weak in [[0; SECRET], one, p] {
            let weak = PublicKeyOctets::from_bytes(weak);
            assert_eq!(pair(1).agree_as_client(&weak, &CONTEXT).err(), Some(WeakKey));
            assert_eq!(pair(1).agree_as_server(&weak, &CONTEXT).err(), Some(WeakKey));
        }
    }

    #[test]
    fn texts_are_read_back_and_others_refused() {
        let key = pair(7).public();
        let text = key.to_string();
        assert_eq!(text.len(), PublicKeyOctets::TEXT_LEN);
        assert_eq!(PublicKeyOctets::from_base64(&text), Some(key));
        for bad in ["", "AAAA", &text[1..], &format!("{text}A"), &text.replace(&text[..1], "-")] {
            assert_eq!(PublicKeyOctets::from_base64(bad), None, "{bad}");
        }
        for (text, number) in [
            ("01020304", Some(0x0102_0304)),
            ("ffffffff", Some(u32::MAX)),
            ("0102030", None),
            ("+1020304", None),
            ("010203040", None),
        ] {
            assert_eq!(ConnId::parse(text), number.map(ConnId::new), "{text}");
        }
        assert_eq!(ConnId::new(0xab).to_string(), "000000ab");
    }

    #[test]
    fn nothing_secret_is_printed() {
        let secrets = pair(1).agree_as_client(&pair(2).public(), &CONTEXT).unwrap();
        let text = format!("{secrets:?}");
        assert!(!text.contains(|c: char| c.is_ascii_digit()), "{text}");
    }
}
