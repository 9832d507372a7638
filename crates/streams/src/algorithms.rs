//! The algorithms of TLS between the two ends (`docs/streams.md` §5). Both ends are rove, so there is one of each kind.
//! rustls' own provider lists what a browser meets, P-256, P-384 and RSA among it: a quarter of a megabyte of code and
//! tables.

use std::sync::Arc;

use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::crypto::ring::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::ring::kx_group::X25519;
use rustls::crypto::{
    CryptoProvider, GetRandomFailed, KeyProvider, SecureRandom, WebPkiSupportedAlgorithms,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::SigningKey;
use rustls::{Error, SignatureScheme};
use webpki::ring::ED25519;

pub(crate) fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            // QUIC needs this one in any case, for its first packets (RFC 9001 §5.2).
            TLS13_AES_128_GCM_SHA256,
            TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![X25519],
        signature_verification_algorithms: SIGNATURES,
        secure_random: &System,
        key_provider: &System,
    }
}

static SIGNATURES: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: &[ED25519],
    mapping: &[(SignatureScheme::ED25519, &[ED25519])],
};

/// The system's randomness, and no reader of key files.
#[derive(Debug)]
struct System;

impl SecureRandom for System {
    fn fill(&self, octets: &mut [u8]) -> Result<(), GetRandomFailed> {
        SystemRandom::new().fill(octets).map_err(|_| GetRandomFailed)
    }
}

impl KeyProvider for System {
    fn load_private_key(&self, _: PrivateKeyDer<'static>) -> Result<Arc<dyn SigningKey>, Error> {
        Err(Error::General("keys are derived from the session's secret".into()))
    }
}
