//! Authentication (`docs/streams.md` §5): derives all keys of a connection from the session's
//! secret, which both ends have from the bootstrap.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use quinn::{Connection, ConnectionId, ConnectionIdGenerator};
use quinn_proto::InvalidCid;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{DigitallySignedStruct, Error, KeyLog, SignatureScheme};

use zeroize::Zeroizing;

use crate::algorithms;
use crate::mux::Role;
use crate::secrets::{Guarded, SecretMemory};

/// Octets of the secret, and of a proof.
pub(crate) const PROOF: usize = 32;

/// Octets of a server's connection ids: half of them random, half computed from the secret.
pub(crate) const OWN_ID: usize = 8;

/// The protocol that both ends announce (RFC 7301).
const PROTOCOL: &[u8] = b"rove-streams/1";

/// Names the server in TLS, which needs some name; the client knows its key.
pub(crate) const SERVER_NAME: &str = "rove";

/// An Ed25519 private key in PKCS #8 is this and 32 octets (RFC 8410 §7).
const PKCS8_HEAD: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// Keys derived from a session's secret. The secret itself is not kept.
#[derive(Clone)]
pub struct Keys {
    /// Shared by all users of the keys, so that a move leaves no copy behind.
    secret: Arc<hmac::Key>,
    memory: SecretMemory,
    provider: Arc<CryptoProvider>,
    log: Option<Arc<dyn KeyLog>>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl Keys {
    /// Those of this secret, kept in this memory.
    pub fn new(secret: &[u8; 32], memory: SecretMemory) -> Keys {
        let secret = memory.within(|| Arc::new(hmac::Key::new(hmac::HMAC_SHA256, secret)));
        Keys { secret, memory, provider: Arc::new(algorithms::provider()), log: None }
    }

    /// Reports each TLS secret as it is made.
    pub(crate) fn tell_secrets(&mut self, tell: impl Fn(&str, &[u8]) + Send + Sync + 'static) {
        self.log = Some(Arc::new(Log(tell)));
    }

    fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.memory.within(|| {
            let mut context = hmac::Context::with_key(&self.secret);
            parts.iter().for_each(|part| context.update(part));
            context.sign().as_ref().try_into().expect("SHA-256 has 32 octets")
        })
    }

    /// The server's key pair. The client has it too, and so knows the server's public key.
    fn signing_key(&self) -> Result<Arc<dyn SigningKey>, Error> {
        let seed = Zeroizing::new(self.tag(&[b"rove streams server key"]));
        let mut pkcs8 = Zeroizing::new([0; PKCS8_HEAD.len() + 32]);
        let (head, rest) = pkcs8.split_at_mut(PKCS8_HEAD.len());
        head.copy_from_slice(&PKCS8_HEAD);
        rest.copy_from_slice(&*seed);
        any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8.as_slice()))
    }

    pub(crate) fn server_config(&self) -> Result<Guarded<QuicServerConfig>, Error> {
        let key = self.memory.within(|| self.signing_key())?;
        let public = public_key(&*key)?;
        let certified = CertifiedKey::new(vec![CertificateDer::from(public.to_vec())], key);
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(Arc::new(
                certified,
            ))));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Without tickets there is no early data, which an attacker could replay (RFC 8446 §8).
        config.send_tls13_tickets = 0;
        if let Some(log) = &self.log {
            config.key_log = Arc::clone(log);
        }
        let config = QuicServerConfig::try_from(config).map_err(no_suite)?;
        Ok(Guarded { config: Arc::new(config), memory: self.memory })
    }

    pub(crate) fn client_config(&self) -> Result<Guarded<QuicClientConfig>, Error> {
        let server = self.memory.within(|| public_key(&*self.signing_key()?))?;
        let verifier = Verifier { server, provider: Arc::clone(&self.provider) };
        let mut config = rustls::ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // A server has one key for all names.
        config.enable_sni = false;
        config.resumption = rustls::client::Resumption::disabled();
        if let Some(log) = &self.log {
            config.key_log = Arc::clone(log);
        }
        let config = QuicClientConfig::try_from(config).map_err(no_suite)?;
        Ok(Guarded { config: Arc::new(config), memory: self.memory })
    }

    /// The first connection id of the client's attempt `number`, by which the server recognizes its client
    /// before anything else: 16 octets, which hide the number from others.
    pub fn first_id(&self, number: u64) -> ConnectionId {
        let tag = self.half(&[b"rove streams id", &number.to_be_bytes()]);
        let hidden = number ^ u64::from_be_bytes(self.half(&[b"rove streams id number", &tag]));
        ConnectionId::new(&[hidden.to_be_bytes(), tag].concat())
    }

    /// The number of the attempt whose first id this is, if it is one.
    pub(crate) fn number_of(&self, id: &[u8]) -> Option<u64> {
        let (hidden, tag) = id.split_first_chunk()?;
        let mask = u64::from_be_bytes(self.half(&[b"rove streams id number", tag]));
        let number = u64::from_be_bytes(*hidden) ^ mask;
        (*self.first_id(number) == *id).then_some(number)
    }

    /// A new id for a connection of the server's.
    pub fn own_id(&self) -> ConnectionId {
        let mut id = [0; OWN_ID];
        let (random, tag) = id.split_at_mut(OWN_ID / 2);
        SystemRandom::new()
            .fill(random)
            .expect("the system has randomness, as it had for the secret");
        tag.copy_from_slice(&self.half(&[b"rove streams own id", random])[..OWN_ID / 2]);
        ConnectionId::new(&id)
    }

    /// Whether `own_id` made this id.
    pub(crate) fn is_own(&self, id: &[u8]) -> bool {
        id.len() == OWN_ID && {
            let (random, tag) = id.split_at(OWN_ID / 2);
            self.half(&[b"rove streams own id", random])[..OWN_ID / 2] == *tag
        }
    }

    fn half(&self, parts: &[&[u8]]) -> [u8; 8] {
        let tag = self.tag(parts);
        *tag.first_chunk().expect("SHA-256 has 32 octets")
    }

    /// Whether a datagram starts a connection of our client's.
    pub(crate) fn begins(&self, datagram: &[u8]) -> bool {
        long_id(datagram).is_some_and(|id| self.number_of(id).is_some())
    }

    /// What the proofs on a connection depend on besides the secret; `None` before its handshake.
    pub(crate) fn exported(&self, connection: &Connection) -> Option<Zeroizing<[u8; 32]>> {
        self.memory.within(|| {
            let mut exported = Zeroizing::new([0; 32]);
            let label = b"EXPORTER-rove-streams";
            connection.export_keying_material(exported.as_mut_slice(), label, b"").ok()?;
            Some(exported)
        })
    }

    /// An end's proof that it has the secret and sees the connection that exports these octets.
    pub(crate) fn proof(&self, of: Role, exported: &[u8; 32], number: u64) -> [u8; PROOF] {
        // Labels differ, so that an attacker cannot send an end its own proof back.
        let label: &[u8] = match of {
            Role::Client => b"rove streams client",
            Role::Server => b"rove streams server",
        };
        self.tag(&[label, exported, &number.to_be_bytes()])
    }
}

/// Passes on rustls's key log.
struct Log<F>(F);

impl<F> fmt::Debug for Log<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log(..)")
    }
}

impl<F: Fn(&str, &[u8]) + Send + Sync> KeyLog for Log<F> {
    fn log(&self, label: &str, _client_random: &[u8], secret: &[u8]) {
        (self.0)(label, secret);
    }
}

/// Drops strangers' datagrams before it computes or keeps anything for them. Our client's name an id that
/// only a holder of the secret can make (RFC 9000 §17). Strangers get no answer.
pub struct InitialFilter {
    keys: Keys,
    /// The last id that was ours: nearly all datagrams have the same.
    last: Option<[u8; OWN_ID]>,
}

impl InitialFilter {
    /// The filter of the session that has these keys.
    pub fn new(keys: Keys) -> InitialFilter {
        InitialFilter { keys, last: None }
    }

    /// Whether to let a datagram in.
    pub fn admits(&mut self, datagram: &[u8]) -> bool {
        let id = match datagram {
            // A short header does not tell the length of its id (RFC 9000 §17.3.1).
            // Ours all have the same.
            [first, rest @ ..] if first & LONG == 0 => rest.get(..OWN_ID),
            _ => long_id(datagram),
        };
        let Some(id) = id else { return false };
        if self.last.is_some_and(|last| last == *id) {
            return true;
        }
        if self.keys.is_own(id) {
            self.last = id.try_into().ok();
            return true;
        }
        self.keys.number_of(id).is_some()
    }
}

/// Makes ids for a server's connections.
#[derive(Debug)]
pub(crate) struct OwnIds(pub Keys);

impl ConnectionIdGenerator for OwnIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0.own_id()
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        if self.0.is_own(id) { Ok(()) } else { Err(InvalidCid) }
    }

    fn cid_len(&self) -> usize {
        OWN_ID
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Set in the first octet of a packet with a long header.
const LONG: u8 = 0x80;

/// The destination id of a packet with a long header, if it has our version (RFC 9000 §17.2).
fn long_id(datagram: &[u8]) -> Option<&[u8]> {
    match datagram {
        // quinn would answer another version with Version Negotiation (RFC 9000 §6.1), and
        // strangers get no answer.
        [first, 0, 0, 0, 1, len, rest @ ..] if first & LONG != 0 => rest.get(..usize::from(*len)),
        _ => None,
    }
}

fn no_suite(_: NoInitialCipherSuite) -> Error {
    Error::General("no cipher suite for the first packets".into())
}

fn public_key(key: &dyn SigningKey) -> Result<SubjectPublicKeyInfoDer<'static>, Error> {
    let public = key.public_key().ok_or_else(|| Error::General("a key without its half".into()))?;
    Ok(public.into_owned())
}

/// Accepts one server key, and no other.
#[derive(Debug)]
struct Verifier {
    server: SubjectPublicKeyInfoDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match end_entity.as_ref() == self.server.as_ref() {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::General("another server's key".into())),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("QUIC has TLS 1.3".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        _cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &self.server, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(octet: u8) -> Keys {
        Keys::new(&[octet; 32], SecretMemory::ORDINARY)
    }

    #[test]
    fn ids_are_known_to_who_has_the_secret() {
        for number in [0, 1, 2, u64::MAX] {
            let id = keys(1).first_id(number);
            assert_eq!(keys(1).number_of(&id), Some(number));
            assert_eq!(keys(2).number_of(&id), None);
            assert!(id.windows(8).all(|part| part != number.to_be_bytes()), "it is not to be seen");
            for at in 0..id.len() {
                let mut forged = id.to_vec();
                forged[at] ^= 1;
                assert_eq!(keys(1).number_of(&forged), None, "octet {at}");
            }
            assert_eq!([keys(1).number_of(&id[..15]), keys(1).number_of(&[])], [None; 2]);
        }
        let id = keys(1).own_id();
        assert!(keys(1).is_own(&id) && !keys(2).is_own(&id));
        assert_ne!(id, keys(1).own_id(), "they do not repeat");
        for at in 0..id.len() {
            let mut forged = id.to_vec();
            forged[at] ^= 1;
            assert!(!keys(1).is_own(&forged), "octet {at}");
        }
    }

    #[test]
    fn packets_of_strangers_are_told_by_their_head() {
        let (id, own) = (keys(1).first_id(7), keys(1).own_id());
        let long = |version: u32, id: &[u8]| {
            let mut packet = vec![0xc0];
            packet.extend_from_slice(&version.to_be_bytes());
            packet.push(id.len() as u8);
            packet.extend_from_slice(id);
            packet
        };
        let short = |id: &[u8]| [&[0x40], id, &[1, 2, 3]].concat();
        let mut door = InitialFilter::new(keys(1));
        // What was let in before changes nothing for others.
        for _ in 0..2 {
            for (packet, admitted) in [
                (long(1, &id), true),
                (long(1, &own), true),
                (short(&own), true),
                (long(1, &[0; OWN_ID]), false),
                (long(1, &keys(2).first_id(7)), false),
                (long(1, &keys(2).own_id()), false),
                (long(1, &[0; 20]), false),
                (long(1, &[]), false),
                (long(0, &id), false),
                (long(2, &id), false),
                (long(0xff00_001d, &id), false),
                (long(1, &id)[..10].to_vec(), false),
                (short(&keys(2).own_id()), false),
                (short(&own)[..OWN_ID].to_vec(), false),
                (vec![0xc0], false),
                (vec![0x40, 1, 2, 3], false),
                (vec![], false),
            ] {
                assert_eq!(door.admits(&packet), admitted, "{packet:?}");
                assert_eq!(keys(1).begins(&packet), packet == long(1, &id), "{packet:?}");
            }
        }
    }

    #[test]
    fn both_ends_come_to_the_same_server_key() {
        let public = |octet| public_key(&*keys(octet).signing_key().unwrap()).unwrap().to_vec();
        assert_eq!(public(1), public(1));
        assert_ne!(public(1), public(2));
    }
}
