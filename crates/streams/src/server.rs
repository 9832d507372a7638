//! The server's side of connections: accepts them on the session's own port, beside its datagrams.
//! The newest one that authenticates carries the channels (`docs/streams.md` §5 and 6).

use std::collections::VecDeque;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::{self, Instant};
use quinn::{AsyncUdpSocket, Connection, Endpoint, Incoming, RecvStream, SendStream, ServerConfig};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::batched::BatchedSocket;
use crate::carried::StreamPorts;
use crate::client::RESETS_EACH;
use crate::connection::{ConnectionTask, REPLACED, UNPROVEN, skip_address_limit, transport};
use crate::keys::{Keys, OwnIds};
use crate::mux::{Ended, Role};
use crate::network::{Network, RouteMtu, System, endpoint_config};
use crate::payload::PAYLOAD_MAX;
pub use crate::port::Batch;
use crate::port::{Batches, Port, SharedPort};
use crate::proof::{HELLO, Proofs};
use crate::shared::Shared;
use crate::{SecretMemory, Streams};

/// Octets of datagrams that wait for the connection; further ones are dropped, as in any queue. The kernel's
/// is often 200 KiB, which is 1 ms at the rate of a loopback.
const WAITING_BYTES_MAX: usize = 4 << 20;
const WAITING_MAX: usize = 4096;

/// How long a client may take to send its proof.
const PROOF_WAIT: Duration = Duration::from_secs(10);

/// The shortest time between handshakes, and how many may come at once: each costs a millisecond at most,
/// and to cause one an attacker must have seen one of the client's.
const HANDSHAKES_EACH: Duration = Duration::from_millis(100);
const HANDSHAKES_MAX: u32 = 20;

/// Connections whose client has not sent its proof. At the limit a new one replaces the oldest: the client
/// counts on its newest.
const UNPROVEN_MAX: usize = 16;

/// The streams of a server before their client has asked for any: no task runs yet.
#[derive(Debug)]
pub struct Dormant(Keys);

impl Dormant {
    /// Derives the keys from this secret and keeps them in `memory`.
    pub fn new(secret: &[u8; 32], memory: SecretMemory) -> Dormant {
        Dormant(Keys::new(secret, memory))
    }

    /// Whether a datagram starts a connection of a client that has the secret.
    pub fn is_asked_for(&self, datagram: &[u8]) -> bool {
        self.0.begins(datagram)
    }

    /// The streams, the inbox for QUIC's datagrams, and the acceptor. Nothing moves before [`Acceptor::run`]
    /// is polled.
    pub fn start(self) -> (Streams, QuicInbox, Acceptor) {
        let shared = Shared::new(Role::Server);
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        let waiting = Arc::new(AtomicUsize::new(0));
        let lane = QuicInbox { shared: Arc::clone(&shared), sender, waiting: Arc::clone(&waiting) };
        let batches = Batches { receiver, waiting };
        let streams = StreamPorts::default();
        let carrier = Acceptor { shared: Arc::clone(&shared), batches, keys: self.0, streams };
        (Streams { shared }, lane, carrier)
    }
}

/// The handle by which the reader of the session's port passes on datagrams and path reports.
#[derive(Clone)]
pub struct QuicInbox {
    shared: Arc<Shared>,
    sender: mpsc::Sender<Batch>,
    /// Octets waiting in the inbox.
    waiting: Arc<AtomicUsize>,
}

impl QuicInbox {
    /// Passes on datagrams whose first octets have 0x40 set, and drops them if the inbox is full.
    pub fn pass(&self, batch: Batch) {
        let len = batch.octets.len();
        if self.waiting.load(Ordering::Relaxed) + len > WAITING_BYTES_MAX {
            return;
        }
        // Before the batch is sent: the reader subtracts as soon as it has the batch, and the count
        // must not wrap.
        self.waiting.fetch_add(len, Ordering::Relaxed);
        if self.sender.try_send(batch).is_err() {
            self.waiting.fetch_sub(len, Ordering::Relaxed);
        }
    }

    /// An authentic datagram of the session has come.
    pub fn heard(&self) {
        self.shared.hear();
    }

    /// The user typed a key, or its echo is on its way: streams yield for a moment.
    pub fn mark_interactive(&self) {
        self.shared.activity.mark_interactive();
    }

    /// Whether nobody takes datagrams any more.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// The session is over.
    pub fn close(&self) {
        self.shared.end(Ended::Closed);
    }
}

/// Accepts connections and watches the newest.
pub struct Acceptor {
    shared: Arc<Shared>,
    batches: Batches,
    keys: Keys,
    streams: StreamPorts,
}

impl Acceptor {
    /// Connections may come by these streams too.
    pub fn with_streams(self, streams: StreamPorts) -> Acceptor {
        Acceptor { streams, ..self }
    }

    /// Reports each TLS secret, as the client's does.
    pub fn tell_secrets(&mut self, tell: impl Fn(&str, &[u8]) + Send + Sync + 'static) {
        self.keys.tell_secrets(tell);
    }

    /// Carries the channels until the session is over. `port` is a clone of the session's socket, which the
    /// driver reads. Needs a tokio runtime with I/O and time.
    pub async fn run(self, port: UdpSocket, route_mtu: RouteMtu) -> io::Result<()> {
        let streams = self.streams.clone();
        let port = Arc::new(Port::new(port, streams.clone())?);
        self.run_within(Arc::new(System { route_mtu, streams }), port).await
    }

    /// The same in this network. It only sends by `port`: what arrives comes by the inbox.
    pub async fn run_within(
        self,
        network: Arc<dyn Network>,
        port: Arc<dyn AsyncUdpSocket>,
    ) -> io::Result<()> {
        let Acceptor { shared, batches, keys, .. } = self;
        let config = config(&keys)?;
        let endpoint = open(port, &*network, batches, &keys, config.clone())?;
        let began = clock::now();
        let mut visits = Admissions::new(keys, config, Arc::clone(&shared), network, began);
        let mut current = Current::default();
        let mut carried = JoinSet::new();
        while shared.mux().ended().is_none() {
            tokio::select! {
                // A fixed order, so that a simulated run can be repeated. What strangers can cause comes last.
                biased;
                Some(visit) = visits.running.join_next() => {
                    if let Ok(Some(proven)) = visit
                        && let Some(carry) = current.take_over(proven, &shared)
                    {
                        carried.spawn(carry);
                    }
                }
                Some(_) = carried.join_next() => {}
                () = shared.news.notified() => {}
                incoming = endpoint.accept() => match incoming {
                    Some(incoming) => visits.receive(incoming),
                    None => break,
                },
            }
        }
        endpoint.close(REPLACED, b"");
        Ok(())
    }
}

fn config(keys: &Keys) -> io::Result<ServerConfig> {
    let crypto = keys.server_config().map_err(io::Error::other)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config
        .max_incoming(UNPROVEN_MAX)
        // There is no early data, for which quinn would hold 10 MiB for an attempt and
        // 100 MiB in all.
        .incoming_buffer_size(64 << 10)
        .incoming_buffer_size_total(1 << 20);
    Ok(config)
}

fn open(
    port: Arc<dyn AsyncUdpSocket>,
    network: &dyn Network,
    batches: Batches,
    keys: &Keys,
    config: ServerConfig,
) -> io::Result<Endpoint> {
    let mut endpoint_config = endpoint_config(network);
    let ids = keys.clone();
    endpoint_config
        // The filter recognizes these ids by the secret, without a table of connections.
        .cid_generator(move || Box::new(OwnIds(ids.clone())))
        // Else an attacker who repeats packets of an old connection gets an answer to each.
        .min_reset_interval(RESETS_EACH)
        .max_udp_payload_size(PAYLOAD_MAX)
        .map_err(io::Error::other)?;
    let runtime = Arc::new(quinn::TokioRuntime);
    let port = BatchedSocket::new(Arc::new(SharedPort::new(port, batches, keys.clone())));
    Endpoint::new_with_abstract_socket(endpoint_config, Some(config), port, runtime)
}

/// The connection in use, and the number that its client gave it.
#[derive(Default)]
struct Current {
    number: u64,
    connection: Option<Connection>,
}

impl Current {
    /// Makes it the current connection, unless its client has made a newer one. Returns its carrier.
    fn take_over(
        &mut self,
        proven: Authenticated,
        shared: &Arc<Shared>,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let Authenticated { number, connection, send, receive } = proven;
        if number <= self.number {
            connection.close(REPLACED, b"");
            return None;
        }
        self.number = number;
        if let Some(before) = self.connection.replace(connection.clone()) {
            before.close(REPLACED, b"");
        }
        shared.hear();
        let link = shared.mux().link_up();
        skip_address_limit(&connection);
        let carried = ConnectionTask::new(Arc::clone(shared), connection, link);
        Some(carried.run(send, receive, None))
    }
}

/// Incoming connections whose client has not sent its proof.
struct Admissions {
    keys: Keys,
    config: ServerConfig,
    shared: Arc<Shared>,
    network: Arc<dyn Network>,
    /// The number of the newest that we admitted. One that is not above it is a repetition, by the client or
    /// by an attacker who replays it.
    newest: Option<u64>,
    handshakes: Handshakes,
    running: JoinSet<Option<Authenticated>>,
    /// Handles of the same, oldest first.
    handles: VecDeque<AbortHandle>,
}

impl Admissions {
    fn new(
        keys: Keys,
        config: ServerConfig,
        shared: Arc<Shared>,
        network: Arc<dyn Network>,
        now: Instant,
    ) -> Admissions {
        let handshakes = Handshakes { left: HANDSHAKES_MAX, since: now };
        let (running, handles) = (JoinSet::new(), VecDeque::new());
        Admissions { keys, config, shared, network, newest: None, handshakes, running, handles }
    }

    fn receive(&mut self, incoming: Incoming) {
        let number = self.keys.number_of(&incoming.orig_dst_cid());
        if !self.admits(number, clock::now()) {
            // `refuse` would send a packet, and strangers get no answer.
            incoming.ignore();
            return;
        }
        self.handles.retain(|handle| !handle.is_finished());
        if self.handles.len() == UNPROVEN_MAX
            && let Some(oldest) = self.handles.pop_front()
        {
            oldest.abort();
        }
        let mut config = self.config.clone();
        let peer = incoming.remote_address();
        let transport = transport(Role::Server, &self.shared.pace, peer, &*self.network);
        config.transport_config(Arc::new(transport));
        self.handles.push_back(self.running.spawn(serve(incoming, config, self.keys.clone())));
    }

    /// Whether to admit the client's attempt of this number.
    fn admits(&mut self, number: Option<u64>, now: Instant) -> bool {
        let is_new = number.is_some() && number > self.newest;
        // The number comes first, so that a replay uses up none of the client's handshakes.
        let admitted = is_new && self.handshakes.admit(now);
        // Only now: an attempt that exceeds the rate is repeated under the same number,
        // and may succeed then.
        if admitted {
            self.newest = number;
        }
        admitted
    }
}

/// Limits the rate of handshakes.
struct Handshakes {
    left: u32,
    since: Instant,
}

impl Handshakes {
    fn admit(&mut self, now: Instant) -> bool {
        let earned = (now - self.since).as_nanos() / HANDSHAKES_EACH.as_nanos();
        if earned > 0 {
            let earned = u32::try_from(earned).unwrap_or(u32::MAX);
            self.left = self.left.saturating_add(earned).min(HANDSHAKES_MAX);
            self.since = now;
        }
        let admitted = self.left > 0;
        self.left -= u32::from(admitted);
        admitted
    }
}

/// A connection whose client has sent its proof, and the stream that brought it.
struct Authenticated {
    number: u64,
    connection: Connection,
    send: SendStream,
    receive: RecvStream,
}

/// Completes the handshake of a client and checks its proof.
async fn serve(incoming: Incoming, config: ServerConfig, keys: Keys) -> Option<Authenticated> {
    let accepting = incoming.accept_with(Arc::new(config)).ok()?;
    let connection = clock::within(PROOF_WAIT, accepting).await.ok()?.ok()?;
    let proven = clock::within(PROOF_WAIT, hear_out(&connection, &keys)).await;
    let Ok(Some((number, send, receive))) = proven else {
        connection.close(UNPROVEN, b"");
        return None;
    };
    Some(Authenticated { number, connection, send, receive })
}

/// Reads the client's hello and sends our answer.
async fn hear_out(connection: &Connection, keys: &Keys) -> Option<(u64, SendStream, RecvStream)> {
    let (mut send, mut receive) = connection.accept_bi().await.ok()?;
    let mut hello = [0; HELLO];
    receive.read_exact(&mut hello).await.ok()?;
    let proofs = Proofs::new(keys.clone(), &*keys.exported(connection)?);
    let number = proofs.read(&hello)?;
    send.write_all(&proofs.answer(number)).await.ok()?;
    Some((number, send, receive))
}

#[cfg(test)]
mod tests {
    use quinn::{ClientConfig, ConnectionError, EndpointConfig};

    use super::*;
    use crate::keys::SERVER_NAME;
    use crate::proof::VERSION;

    /// A client without a proof may send a little, which we do not read, for a while.
    #[tokio::test]
    async fn who_does_not_prove_itself_gets_nowhere() {
        let secret = [7; 32];
        let (_streams, lane, carrier) = Dormant::new(&secret, SecretMemory::ORDINARY).start();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap();
        port.set_nonblocking(true).unwrap();
        let at = port.local_addr().unwrap();
        tokio::spawn(carrier.run(port.try_clone().unwrap(), RouteMtu::UNKNOWN));
        let port = tokio::net::UdpSocket::from_std(port).unwrap();
        tokio::spawn(async move {
            let mut octets = [0; 2048];
            while let Ok((len, from)) = port.recv_from(&mut octets).await {
                let octets = octets[..len].to_vec();
                lane.pass(Batch { octets, stride: len, from, to: None, ecn: 0 });
            }
        });

        let keys = Keys::new(&secret, SecretMemory::ORDINARY);
        let mut config = ClientConfig::new(Arc::new(keys.client_config().unwrap()));
        config.initial_dst_cid_provider(Arc::new(move || keys.first_id(1)));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let runtime = Arc::new(quinn::TokioRuntime);
        let client = Endpoint::new(EndpointConfig::default(), None, socket, runtime).unwrap();
        let connection = client.connect_with(config, at, SERVER_NAME).unwrap().await.unwrap();

        let soon = Duration::from_millis(300);
        let mut streams = Vec::new();
        for _ in 0..4 {
            streams.push(connection.open_uni().await.unwrap());
        }
        assert!(
            clock::within(soon, connection.open_uni()).await.is_err(),
            "four streams, and no fifth"
        );
        for stream in &mut streams {
            stream.write_all(&[7; 64 << 10]).await.unwrap();
        }
        assert!(
            clock::within(soon, streams[0].write_all(&[7])).await.is_err(),
            "256 KiB, and no more"
        );

        let (mut send, _receive) = connection.open_bi().await.unwrap();
        // There is no room for a proof any more.
        assert!(clock::within(soon, send.write_all(&[VERSION; HELLO])).await.is_err());
        let closed = clock::within(2 * PROOF_WAIT, connection.closed()).await.unwrap();
        let ConnectionError::ApplicationClosed(close) = closed else { panic!("{closed}") };
        assert_eq!(close.error_code, UNPROVEN);
    }

    /// The server ignores a replay of the client's first packet, also after other connections.
    #[test]
    fn each_try_is_let_in_once() {
        let began = clock::now();
        let keys = Keys::new(&[7; 32], SecretMemory::ORDINARY);
        let config = config(&keys).unwrap();
        let network =
            Arc::new(System { route_mtu: RouteMtu::UNKNOWN, streams: StreamPorts::default() });
        let shared = Shared::new(Role::Server);
        let mut visits = Admissions::new(keys, config, shared, network, began);
        for (number, admitted) in [
            (None, false),
            (Some(0), true),
            (Some(0), false),
            (Some(5), true),
            (Some(4), false),
            (Some(5), false),
            (Some(6), true),
        ] {
            assert_eq!(visits.admits(number, began), admitted, "{number:?}");
        }
        // Nor does it use up what the client may do.
        for _ in 0..1000 {
            assert!(!visits.admits(Some(6), began));
        }
        assert!(visits.admits(Some(7), began));
        // One that was too soon is not forgotten for good.
        let numbers = 8..1000;
        let refused = numbers.into_iter().find(|&number| !visits.admits(Some(number), began));
        assert!(refused.is_some() && visits.admits(refused, began + HANDSHAKES_EACH));
    }

    #[test]
    fn handshakes_are_few() {
        let began = clock::now();
        let mut handshakes = Handshakes { left: HANDSHAKES_MAX, since: began };
        let mut admitted = 0;
        // A thousand a second, for ten seconds.
        for millis in 0..10_000 {
            admitted += u32::from(handshakes.admit(began + Duration::from_millis(millis)));
        }
        assert_eq!(admitted, HANDSHAKES_MAX + 99);
        assert!(handshakes.admit(began + Duration::from_secs(60)));
        assert_eq!(handshakes.left, HANDSHAKES_MAX - 1, "what is not used is not saved up");
    }
}
