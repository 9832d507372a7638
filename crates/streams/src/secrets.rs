//! Keeps the secrets of connections in memory that the program chooses. quinn, rustls and ring put
//! them into boxes of their own, which they neither lock nor wipe completely; so they run inside
//! the program's allocator scope while they make secrets.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use quinn::ConnectError;
use quinn::crypto::{
    ClientConfig, ExportKeyingMaterialError, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn::crypto::{HeaderKey, rustls::QuicClientConfig, rustls::QuicServerConfig};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError};

/// The program's memory for secrets.
#[derive(Clone, Copy)]
pub struct SecretMemory {
    within: fn(&mut dyn FnMut()),
}

impl SecretMemory {
    /// Ordinary memory: for tests and measurements.
    pub const ORDINARY: SecretMemory = SecretMemory::new(|work| work());

    /// Memory for all allocations made while `within` runs, once, the work that it is given.
    pub const fn new(within: fn(&mut dyn FnMut())) -> SecretMemory {
        SecretMemory { within }
    }

    pub(crate) fn within<T>(self, work: impl FnOnce() -> T) -> T {
        let (mut work, mut result) = (Some(work), None);
        (self.within)(&mut || result = work.take().map(|work| work()));
        result.expect("the work is done once")
    }
}

impl fmt::Debug for SecretMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretMemory(..)")
    }
}

/// Begins TLS sessions in that memory.
pub(crate) struct Guarded<T> {
    pub config: Arc<T>,
    pub memory: SecretMemory,
}

impl ClientConfig for Guarded<QuicClientConfig> {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let (config, memory) = (Arc::clone(&self.config), self.memory);
        memory.within(|| {
            // rustls makes the secret of its key share when a client's session starts.
            let session = config.start_session(version, server_name, params)?;
            Ok(Box::new(GuardedSession { session, memory }) as Box<dyn Session>)
        })
    }
}

impl ServerConfig for Guarded<QuicServerConfig> {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<Keys, UnsupportedVersion> {
        self.config.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.config.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        let (config, memory) = (Arc::clone(&self.config), self.memory);
        memory.within(|| {
            let session = config.start_session(version, params);
            Box::new(GuardedSession { session, memory }) as Box<dyn Session>
        })
    }
}

/// A TLS session whose secrets are made in that memory. The keys of QUIC's first packets are not secret:
/// anybody can compute them (RFC 9001 §5.2).
struct GuardedSession {
    session: Box<dyn Session>,
    memory: SecretMemory,
}

impl Session for GuardedSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.session.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.session.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.session.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.memory.within(|| self.session.early_crypto())
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.session.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.memory.within(|| self.session.read_handshake(buf))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.session.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.memory.within(|| self.session.write_handshake(buf))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.memory.within(|| self.session.next_1rtt_keys())
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.session.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.memory.within(|| self.session.export_keying_material(output, label, context))
    }
}
