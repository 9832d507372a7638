//! The client's side of connections: makes one, notices when it no longer works, and makes the next
//! (`docs/streams.md` §6). The session's driver reports what its own datagrams show of the path.
//!
//! The connector sleeps until there is work, or until it is time to ask whether the server is there.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::clock::{self, Instant};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, TokioRuntime};
use tokio::task::{AbortHandle, JoinSet};

use crate::batched::BatchedSocket;
use crate::carried::{StreamPorts, is_stream};
use crate::connection::{ConnectionTask, REPLACED, transport};
use crate::keys::{Keys, SERVER_NAME};
use crate::mux::{Ended, Role};
use crate::network::{Network, RouteMtu, System, endpoint_config};
use crate::payload::PAYLOAD_MAX;
use crate::proof::Proofs;
use crate::shared::{HEARD_LATELY, Shared};
use crate::{SecretMemory, Streams};

/// Interval of connection attempts while the path is down and there is something to do: a path back within a
/// minute is found within this and two round trips.
const TRY_EACH_MIN: Duration = Duration::from_millis(200);

/// Later attempts are a 300th of the time down apart, at most this: a night offline costs little, and the
/// session's own datagrams show when the path is back.
const TRY_EACH_MAX: Duration = Duration::from_secs(15);
const TRY_SHARE: u32 = 300;

/// News of the path starts an attempt at once, but not sooner than this after the last: an attacker who ends
/// each connection or moves the server's address causes no more attempts than this.
const TRY_NEWS: Duration = Duration::from_millis(50);

/// How long an attempt may take: four round trips, within these limits.
const TRY_LASTS_MIN: Duration = Duration::from_secs(1);
const TRY_LASTS_MAX: Duration = Duration::from_secs(8);

/// Attempts at once. The server has room for twice as many; beyond its limit it drops the oldest.
const TRIES_MAX: u32 = 8;

/// How long the peer may owe an answer: five round trips, but at least this. A false alarm costs a
/// connection that starts slowly.
const OWES_MIN: Duration = Duration::from_millis(800);

/// After this much silence the client asks whether the peer is there; then after
/// twice as long each time, up to the last.
const ASK_FIRST: Duration = Duration::from_millis(500);
const ASK_LAST: Duration = Duration::from_secs(15);

/// Interval of checks on a connection whose peer owes an answer. An idle one is checked when its next
/// question is due, or when there is something to do.
const LOOK_EACH: Duration = Duration::from_millis(50);

/// Attempts use one port for this long: a NAT on the way may block it.
const PORT_LASTS: Duration = Duration::from_secs(10);

/// How often an end may send a stateless reset for packets of an unknown connection.
pub(crate) const RESETS_EACH: Duration = Duration::from_secs(24 * 3600);

/// The streams of a client, the driver's handle to the connector, and the connector. Nothing moves before
/// [`Connector::run`] is polled. Keys derived from the secret are kept in `memory`.
pub fn start(secret: &[u8; 32], memory: SecretMemory) -> (Streams, PathHints, Connector) {
    let shared = Shared::new(Role::Client);
    shared.lose_carrier();
    let path = Arc::new(Mutex::new(Path { server: None, moves: 0, is_down: true, expects: false }));
    let link = PathHints { shared: Arc::clone(&shared), path: Arc::clone(&path) };
    let keys = Keys::new(secret, memory);
    let network =
        Arc::new(System { route_mtu: RouteMtu::UNKNOWN, streams: StreamPorts::default() });
    let carrier = Connector { shared: Arc::clone(&shared), path, keys, numbers: 0, network };
    (Streams { shared }, link, carrier)
}

/// What the driver of the session's own datagrams has seen of the path.
#[derive(Debug)]
struct Path {
    /// The address from which the server was last heard.
    server: Option<SocketAddr>,
    /// How many times the network has changed.
    moves: u64,
    /// No connection works, so hearing the server again is news.
    is_down: bool,
    /// The server was expected by UDP.
    expects: bool,
}

/// The handle through which the driver of a session's own datagrams reports on the path.
#[derive(Clone)]
pub struct PathHints {
    shared: Arc<Shared>,
    path: Arc<Mutex<Path>>,
}

impl PathHints {
    /// An authentic datagram has come from the server, at this address. Call it for each.
    pub fn heard(&self, server: SocketAddr) {
        let silent = self.shared.heard().is_none_or(|heard| heard.elapsed() > OWES_MIN);
        self.shared.hear();
        let mut path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        let before = path.server.replace(server);
        if before != Some(server) || silent && path.is_down {
            self.shared.news.notify_one();
        }
    }

    /// ssh has just started a server at this address, which counts as hearing it: the first connection need
    /// not wait for a round trip of the session's own datagrams.
    pub fn expect(&self, server: SocketAddr) {
        self.shared.hear();
        let mut path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        path.server.get_or_insert(server);
        path.expects = true;
        drop(path);
        self.shared.news.notify_one();
    }

    /// The network has changed, or this machine has slept.
    pub fn moved(&self) {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).moves += 1;
        self.shared.news.notify_one();
    }

    /// The user typed a key, or its echo is on its way: streams yield for a moment.
    pub fn mark_interactive(&self) {
        self.shared.activity.mark_interactive();
    }

    /// The session is over.
    pub fn close(&self) {
        self.shared.end(Ended::Closed);
    }
}

/// Makes connections and watches them.
pub struct Connector {
    shared: Arc<Shared>,
    path: Arc<Mutex<Path>>,
    keys: Keys,
    /// Connections on which the server has had our proof.
    numbers: u64,
    network: Arc<dyn Network>,
}

/// The connection in use.
struct Live {
    connection: Connection,
    /// Its number.
    link: u64,
    /// Keeps the socket open.
    _endpoint: Endpoint,
    task: AbortHandle,
    /// Datagrams received at the last check, and when that number changed.
    received: u64,
    heard: Instant,
    /// Since when the peer owes an answer.
    owes: Option<Instant>,
    /// The silence after which to ask it again.
    ask_after: Duration,
    /// We asked it: its answer shows that it is there, and not that a transfer goes on.
    asked: bool,
    /// The count of network changes when it began.
    moves: u64,
}

impl Live {
    /// Checks what has arrived. Returns when to check again if nothing wakes us before. An error means that the
    /// peer seems to be gone.
    fn look(&mut self, now: Instant, shared: &Shared) -> Result<Instant, Stalled> {
        let received = self.connection.stats().udp_rx.datagrams;
        let has_come = received != self.received;
        // The answer to our own question must not shorten the pause: else an idle session is asked
        // about twice a second.
        let goes_on = has_come && !std::mem::take(&mut self.asked);
        if has_come {
            (self.received, self.heard, self.owes) = (received, now, None);
            shared.hear();
        }
        if goes_on {
            self.ask_after = ASK_FIRST;
        }
        let is_busy = shared.rest();
        if is_busy || goes_on {
            shared.stay_up();
        }
        let patience = OWES_MIN.max(self.connection.rtt() * 5);
        if is_busy {
            self.owes.get_or_insert(now);
        } else if goes_on {
            // Whoever writes next does not tell: it is not to be long until that is seen.
            return Ok(now + LOOK_EACH);
        } else if self.owes.is_none() {
            // Without channels as well: the server may open one, and if a translator on the way has forgotten this
            // connection, it cannot reach us.
            let ask_at = self.heard + self.ask_after;
            if now < ask_at {
                return Ok(ask_at);
            }
            self.ask(now, shared);
        }
        match self.owes {
            Some(since) if now >= since + patience => Err(Stalled),
            Some(since) if !is_busy => Ok(since + patience),
            _ => Ok(now + LOOK_EACH),
        }
    }

    /// Makes the peer show that it is there.
    fn ask(&mut self, now: Instant, shared: &Shared) {
        self.ask_after = (self.ask_after * 2).min(ASK_LAST);
        self.asked = true;
        self.owes = Some(now);
        shared.mux().probe();
        shared.tell.notify_one();
    }
}

/// The connection no longer works.
struct Stalled;

impl Drop for Live {
    fn drop(&mut self) {
        self.connection.close(REPLACED, b"");
        self.task.abort();
    }
}

/// Connection attempts, made one after the other and running several at a time.
struct Tries {
    endpoint: Option<(Endpoint, Instant, SocketAddr)>,
    running: JoinSet<Option<(Endpoint, Connection)>>,
    /// Handles of the same, oldest first.
    handles: VecDeque<AbortHandle>,
    last: Option<Instant>,
    /// There was news since: the next attempt need not wait longer.
    is_urgent: bool,
    /// Since when no connection has had an authenticated peer.
    since: Instant,
    /// The last known round trip.
    rtt: Duration,
}

impl Connector {
    /// Reports each TLS secret as it is made, under its name in key logs (RFC 9850). Tests use this to look
    /// for the secrets in memory.
    pub fn tell_secrets(&mut self, tell: impl Fn(&str, &[u8]) + Send + Sync + 'static) {
        self.keys.tell_secrets(tell);
    }

    /// Uses this network in place of the system's.
    pub fn within(self, network: Arc<dyn Network>) -> Connector {
        Connector { network, ..self }
    }

    /// Uses the system's network, with what it says of the route to the server.
    pub fn with_route_mtu(self, route_mtu: RouteMtu) -> Connector {
        self.with_system(route_mtu, StreamPorts::default())
    }

    /// Uses the system's network, with what it says of the route to the server, and the session's streams beside it.
    pub fn with_system(self, route_mtu: RouteMtu, streams: StreamPorts) -> Connector {
        self.within(Arc::new(System { route_mtu, streams }))
    }

    /// Carries the channels until the session is over. Needs a tokio runtime with I/O and time.
    pub async fn run(mut self) -> io::Result<()> {
        let config = self.config()?;
        let mut live: Option<Live> = None;
        let mut tries = Tries::new(clock::now());
        let mut tasks = JoinSet::new();
        while self.shared.mux().ended().is_none() {
            let now = clock::now();
            let (server, moves) = self.path();
            live.take_if(|live| live.task.is_finished());
            let is_new = live.as_ref().is_some_and(|live| {
                // What goes over a stream goes better by UDP.
                let is_better = server.is_some_and(|server| !is_stream(server));
                live.moves != moves || is_better && is_stream(live.connection.remote_address())
            });
            let looked = live.as_mut().map(|live| {
                tries.rtt = live.connection.rtt();
                if is_new { Err(Stalled) } else { live.look(now, &self.shared) }
            });
            let due = if let (Some(Ok(due)), Some(live)) = (looked, &live) {
                self.set_down(false);
                self.shared.carry_on(live.link);
                // A connection that comes back to life stays, and the attempts to replace it end.
                tries.stop();
                // Only a proof makes the pauses short again: a server that ends each connection
                // must not get more attempts.
                if self.shared.carried().proven == live.link {
                    tries.since = now;
                }
                Some(due)
            } else {
                self.set_down(true);
                self.shared.lose_carrier();
                self.shared.rest();
                server.and_then(|server| {
                    tries.go_on(now, server, &config, &self.shared, &*self.network)
                })
            };
            tokio::select! {
                // A fixed order, so that a simulated run can be repeated. News, which an attacker can cause, and
                // work come last: neither keeps a connection that has come through from being used.
                biased;
                Some(tried) = tries.running.join_next() => {
                    if let Ok(Some((endpoint, connection))) = tried {
                        tries.stop();
                        drop(live.take());
                        live = self.begin(endpoint, connection, moves, &mut tasks);
                    }
                }
                Some(_) = tasks.join_next() => {}
                () = self.shared.news.notified() => {
                    // Heard again, or elsewhere: no reason to wait for the next try.
                    tries.is_urgent = true;
                }
                () = self.shared.work.notified() => {}
                () = clock::sleep_until(due.unwrap_or(now)), if due.is_some() => {}
            }
        }
        Ok(())
    }

    /// Where the server was last heard, and how many times the network has changed.
    fn path(&self) -> (Option<SocketAddr>, u64) {
        let path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        (path.server, path.moves)
    }

    fn set_down(&self, is_down: bool) {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).is_down = is_down;
    }

    fn config(&self) -> io::Result<ClientConfig> {
        let crypto = self.keys.client_config().map_err(io::Error::other)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        let (keys, tries) = (self.keys.clone(), AtomicU64::new(0));
        // Each attempt has a number of its own, because the server drops a repeated one
        // as a replay.
        let next = move || keys.first_id(tries.fetch_add(1, Ordering::Relaxed) + 1);
        config.initial_dst_cid_provider(Arc::new(next));
        Ok(config)
    }

    /// Puts a connection to work at once: the server has shown by its key that it has the secret. Its proof
    /// that it sees the same connection is checked before its frames are read.
    fn begin(
        &mut self,
        endpoint: Endpoint,
        connection: Connection,
        moves: u64,
        tasks: &mut JoinSet<()>,
    ) -> Option<Live> {
        let expects = self.path.lock().unwrap_or_else(PoisonError::into_inner).expects;
        let is_over_stream = expects && is_stream(connection.remote_address());
        self.shared.is_over_stream.store(is_over_stream, Ordering::Relaxed);
        self.shared.carried().has_met = true;
        self.numbers += 1;
        let proofs = Proofs::new(self.keys.clone(), &*self.keys.exported(&connection)?);
        let (hello, expected) = (proofs.hello(self.numbers), proofs.answer(self.numbers));
        let link = self.shared.mux().link_up();
        let carried = ConnectionTask::new(Arc::clone(&self.shared), connection.clone(), link);
        let task = tasks.spawn(async move {
            if let Some((send, receive)) = greet(&carried.connection, &hello).await {
                carried.run(send, receive, Some(expected)).await;
            } else {
                carried.shared.mux().link_down(carried.link);
            }
        });
        let now = clock::now();
        // The handshake's datagrams are no answer to anything that the channels sent.
        let received = connection.stats().udp_rx.datagrams;
        Some(Live {
            connection,
            link,
            _endpoint: endpoint,
            task,
            received,
            heard: now,
            owes: None,
            ask_after: ASK_FIRST,
            asked: false,
            moves,
        })
    }
}

/// Sends the server our hello with the proof.
async fn greet(connection: &Connection, hello: &[u8]) -> Option<(SendStream, RecvStream)> {
    let (mut send, receive) = connection.open_bi().await.ok()?;
    send.write_all(hello).await.ok()?;
    Some((send, receive))
}

impl Tries {
    fn new(now: Instant) -> Tries {
        Tries {
            endpoint: None,
            running: JoinSet::new(),
            handles: VecDeque::new(),
            last: None,
            is_urgent: false,
            since: now,
            // Until a round trip is known, an attempt has the longest time.
            rtt: TRY_LASTS_MAX / 4,
        }
    }

    fn stop(&mut self) {
        // With those that have just come through: another is in use.
        self.running = JoinSet::new();
        self.handles.clear();
        self.endpoint = None;
        self.is_urgent = false;
    }

    /// Starts the next attempt if it is due. Returns when the one after it is due, if needed.
    fn go_on(
        &mut self,
        now: Instant,
        server: SocketAddr,
        config: &ClientConfig,
        shared: &Shared,
        network: &dyn Network,
    ) -> Option<Instant> {
        if !shared.mux().has_channels() {
            // A path that is down is not asked after: the session's datagrams tell when it is back.
            let is_up = shared.heard().is_some_and(|heard| now < heard + HEARD_LATELY);
            if !is_up {
                return None;
            }
        }
        self.handles.retain(|handle| !handle.is_finished());
        let patience = (self.rtt * 4).clamp(TRY_LASTS_MIN, TRY_LASTS_MAX);
        let mut pause = try_each(now - self.since);
        // At the shortest pause the oldest of eight would be dropped after 1.6 s, too
        // early for a slow path.
        if self.handles.len() >= TRIES_MAX as usize / 2 {
            pause = pause.max(patience / TRIES_MAX);
        }
        if self.is_urgent {
            pause = TRY_NEWS;
        }
        if let Some(due) = self.last.map(|last| last + pause)
            && now < due
        {
            return Some(due);
        }
        self.last = Some(now);
        self.is_urgent = false;
        let mut config = config.clone();
        // Made for each attempt: the route, and with it the MTU, may have changed with the network.
        config.transport_config(Arc::new(transport(Role::Client, &shared.pace, server, network)));
        self.make(now, server, config, patience, network);
        Some(now + pause)
    }

    fn make(
        &mut self,
        now: Instant,
        server: SocketAddr,
        config: ClientConfig,
        patience: Duration,
        network: &dyn Network,
    ) {
        let is_usable = |(_, since, to): &(Endpoint, Instant, SocketAddr)| {
            *to == server && now - *since < PORT_LASTS
        };
        if !self.endpoint.as_ref().is_some_and(is_usable) {
            self.endpoint = open_port(server, network).ok().map(|endpoint| (endpoint, now, server));
        }
        let Some((endpoint, ..)) = &self.endpoint else { return };
        let endpoint = endpoint.clone();
        let Ok(connecting) = endpoint.connect_with(config, server, SERVER_NAME) else {
            self.endpoint = None;
            return;
        };
        if self.handles.len() >= TRIES_MAX as usize
            && let Some(oldest) = self.handles.pop_front()
        {
            oldest.abort();
        }
        self.handles.push_back(self.running.spawn(async move {
            let connection = clock::within(patience, connecting).await.ok()?.ok()?;
            Some((endpoint, connection))
        }));
    }
}

/// The interval of attempts when the path has been down for this long.
fn try_each(down: Duration) -> Duration {
    (down / TRY_SHARE).clamp(TRY_EACH_MIN, TRY_EACH_MAX)
}

/// Opens a new socket.
fn open_port(server: SocketAddr, network: &dyn Network) -> io::Result<Endpoint> {
    let mut config = endpoint_config(network);
    // Resets would answer strangers.
    config.min_reset_interval(RESETS_EACH);
    config.max_udp_payload_size(PAYLOAD_MAX).map_err(io::Error::other)?;
    let socket = BatchedSocket::new(network.open(server)?);
    Endpoint::new_with_abstract_socket(config, None, socket, Arc::new(TokioRuntime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_become_rare_with_time() {
        for (down, each) in [(0, 200), (60, 200), (600, 2000), (3600, 12_000), (86_400, 15_000)] {
            let (down, each) = (Duration::from_secs(down), Duration::from_millis(each));
            assert_eq!(try_each(down), each, "{down:?}");
        }
    }

    /// A server that accepts connections and ends them gets no more attempts than an absent one.
    #[tokio::test]
    async fn connections_that_end_at_once_are_few() {
        let secret = [7; 32];
        let crypto = Keys::new(&secret, SecretMemory::ORDINARY).server_config().unwrap();
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        let runtime = Arc::new(TokioRuntime);
        let server = Endpoint::new(quinn::EndpointConfig::default(), Some(config), socket, runtime);
        let server = server.unwrap();

        let (streams, link, carrier) = start(&secret, SecretMemory::ORDINARY);
        tokio::spawn(carrier.run());
        link.heard(at);
        let _channel = streams.open(b"").await.unwrap();
        let began = clock::now();
        let mut count = 0;
        while count < 10 {
            // Of several tries at once the client leaves all but one.
            if let Ok(connection) = server.accept().await.unwrap().await {
                connection.close(REPLACED, b"");
                count += 1;
            }
        }
        assert!(began.elapsed() >= TRY_EACH_MIN * 8, "ten in {:?}", began.elapsed());
    }

    /// Neither does one whose address alternates, as an attacker on the path can make it.
    #[tokio::test]
    async fn news_makes_few_tries() {
        let mut sockets = Vec::new();
        for _ in 0..2 {
            sockets.push(tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap());
        }
        let at = [&sockets[0], &sockets[1]].map(|socket| socket.local_addr().unwrap());
        let (streams, link, carrier) = start(&[7; 32], SecretMemory::ORDINARY);
        tokio::spawn(carrier.run());
        let _channel = streams.open(b"").await.unwrap();
        let began = clock::now();
        let mut tries = std::collections::BTreeSet::new();
        while tries.len() < 20 {
            for (socket, at) in sockets.iter().zip(at) {
                link.heard(at);
                clock::sleep(Duration::from_millis(1)).await;
                let mut datagram = [0; 2048];
                while socket.try_recv(&mut datagram).is_ok() {
                    // Each try has an id of its own.
                    tries.insert(datagram[6..22].to_vec());
                }
            }
        }
        assert!(began.elapsed() >= TRY_NEWS * 18, "twenty in {:?}", began.elapsed());
    }
}
