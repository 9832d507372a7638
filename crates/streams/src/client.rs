//! The client's side of connections: it makes one, notices when it is of no more use, and makes the next
//! (`docs/streams.md` §6). What the session's own datagrams tell of the path is told to it by their driver.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quinn::udp::UdpSocketState;
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use crate::connection::{Carried, REPLACED, UNPROVEN, transport};
use crate::keys::{Keys, PROOF, SERVER_NAME, are_equal};
use crate::mux::{Ended, Role};
use crate::{Shared, Streams};

/// How often a connection is tried while the path is down and there is something to do: what returns within a
/// minute is found within this and two round trips.
const TRY_EACH_MIN: Duration = Duration::from_millis(200);

/// Later tries are a 300th of the time down apart, and at most this: a night offline costs little, and the
/// session's own datagrams say when the path is back.
const TRY_EACH_MAX: Duration = Duration::from_secs(15);
const TRY_SHARE: u32 = 300;

/// What the kernel is asked to hold of what comes in, as at the server.
const BUFFER_BYTES: usize = 4 << 20;

/// How long a try may take: four round trips, but at least and at most this.
const TRY_LASTS_MIN: Duration = Duration::from_secs(1);
const TRY_LASTS_MAX: Duration = Duration::from_secs(8);

/// How long the peer may owe an answer: five round trips, but at least this. The cost of a mistake is
/// a connection that begins slowly.
const OWES_MIN: Duration = Duration::from_millis(800);

/// After this much silence, while channels are open, the peer is asked whether it is there; then after twice
/// as long again, up to the last.
const ASK_FIRST: Duration = Duration::from_millis(500);
const ASK_LAST: Duration = Duration::from_secs(15);

/// How often a connection at work is looked at, and one at rest.
const LOOK_EACH: Duration = Duration::from_millis(50);
const LOOK_EACH_RESTING: Duration = Duration::from_millis(500);

/// Tries go out of one port for this long: a NAT may have a grudge against it.
const PORT_LASTS: Duration = Duration::from_secs(10);

/// Version of what is said first on a connection.
pub(crate) const VERSION: u8 = 1;

/// Octets of the client's first words: version, number of the connection, proof.
pub(crate) const HELLO: usize = 1 + 8 + PROOF;

/// The streams of a client, and the driver's handle to what carries them. Nothing moves before
/// [`Carrier::run`] is polled.
pub fn start(secret: &[u8; 32]) -> (Streams, Link, Carrier) {
    let shared = Shared::new(Role::Client);
    let path = Arc::new(Mutex::new(Path { server: None, moves: 0 }));
    let link = Link { shared: Arc::clone(&shared), path: Arc::clone(&path) };
    let carrier =
        Carrier { shared: Arc::clone(&shared), path, keys: Keys::new(secret), numbers: 0 };
    (Streams { shared }, link, carrier)
}

/// What the driver of the session's own datagrams knows of the path.
#[derive(Debug)]
struct Path {
    /// Where the server was last heard.
    server: Option<SocketAddr>,
    /// How often the network has changed.
    moves: u64,
}

/// By this the driver of a session's own datagrams tells what it knows of the path.
#[derive(Clone)]
pub struct Link {
    shared: Arc<Shared>,
    path: Arc<Mutex<Path>>,
}

impl Link {
    /// An authentic datagram has come from the server, at this address: to be called for each.
    pub fn heard(&self, server: SocketAddr) {
        let silent = self.shared.heard().is_none_or(|heard| heard.elapsed() > OWES_MIN);
        self.shared.hear();
        let mut path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
        if path.server.replace(server) != Some(server) || silent {
            self.shared.news.notify_one();
        }
    }

    /// The network is another than before, or this machine has slept.
    pub fn moved(&self) {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).moves += 1;
        self.shared.news.notify_one();
    }

    /// A key was typed, or what it does is on its way: streams yield for a moment.
    pub fn stir(&self) {
        self.shared.activity.stir();
    }

    /// The session is over.
    pub fn close(&self) {
        self.shared.end(Ended::Closed);
    }
}

/// Makes connections and looks after them.
pub struct Carrier {
    shared: Arc<Shared>,
    path: Arc<Mutex<Path>>,
    keys: Keys,
    /// Connections that the server was shown a proof on.
    numbers: u64,
}

/// The connection in use.
struct Live {
    connection: Connection,
    /// Keeps the socket.
    _endpoint: Endpoint,
    task: AbortHandle,
    /// Datagrams received, as last seen, and when that changed.
    received: u64,
    heard: Instant,
    /// Since when the peer owes an answer.
    owes: Option<Instant>,
    /// The silence after which it is asked again.
    ask_after: Duration,
    /// How often the network had changed when it began.
    moves: u64,
}

impl Live {
    /// Whether the peer is not there any more, as far as one can know.
    fn is_stalled(&mut self, now: Instant, shared: &Shared) -> bool {
        let received = self.connection.stats().udp_rx.datagrams;
        if received != self.received {
            (self.received, self.heard) = (received, now);
            (self.owes, self.ask_after) = (None, ASK_FIRST);
            shared.hear();
        }
        let mut mux = shared.mux();
        if mux.is_busy() {
            self.owes.get_or_insert(now);
        } else if mux.has_channels() && now - self.heard >= self.ask_after {
            self.ask_after = (self.ask_after * 2).min(ASK_LAST);
            mux.probe();
            self.owes.get_or_insert(now);
            drop(mux);
            shared.tell.notify_one();
        }
        let patience = OWES_MIN.max(self.connection.rtt() * 5);
        self.owes.is_some_and(|since| now - since > patience)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.connection.close(REPLACED, b"");
        self.task.abort();
    }
}

/// Tries to connect, one after the other and several at a time.
struct Tries {
    endpoint: Option<(Endpoint, Instant, SocketAddr)>,
    running: JoinSet<Option<(Endpoint, Connection)>>,
    last: Option<Instant>,
    /// Since when there has been no connection.
    since: Instant,
}

impl Carrier {
    /// Carries the channels until the session is over. To be run on a tokio runtime with I/O and time.
    pub async fn run(mut self) -> io::Result<()> {
        let config = self.config()?;
        let mut live: Option<Live> = None;
        let mut tries =
            Tries { endpoint: None, running: JoinSet::new(), last: None, since: Instant::now() };
        let mut tasks = JoinSet::new();
        while self.shared.mux().ended().is_none() {
            let now = Instant::now();
            let (server, moves) = {
                let path = self.path.lock().unwrap_or_else(PoisonError::into_inner);
                (path.server, path.moves)
            };
            live.take_if(|live| live.task.is_finished());
            let is_good = live
                .as_mut()
                .is_some_and(|live| live.moves == moves && !live.is_stalled(now, &self.shared));
            if is_good {
                tries.stop(now);
            } else if let Some(server) = server {
                let is_new = live.as_ref().is_some_and(|live| live.moves != moves);
                tries.go_on(now, server, &config, is_new, live.as_ref(), &self.shared);
            }
            let wait =
                if is_good && !self.shared.mux().is_busy() { LOOK_EACH_RESTING } else { LOOK_EACH };
            tokio::select! {
                () = self.shared.news.notified() => {
                    // Heard again, or elsewhere: no reason to wait for the next try.
                    tries.last = None;
                }
                Some(tried) = tries.running.join_next() => {
                    if let Ok(Some((endpoint, connection))) = tried {
                        tries.stop(Instant::now());
                        drop(live.take());
                        live = self.begin(endpoint, connection, moves, &mut tasks);
                    }
                }
                () = sleep(wait) => {}
            }
        }
        Ok(())
    }

    fn config(&self) -> io::Result<ClientConfig> {
        let crypto = self.keys.client_config().map_err(io::Error::other)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport(Role::Client, &self.shared.activity)));
        let keys = self.keys.clone();
        config.initial_dst_cid_provider(Arc::new(move || keys.first_id()));
        Ok(config)
    }

    /// Puts a connection to work. The server has shown by its key that it has the secret.
    fn begin(
        &mut self,
        endpoint: Endpoint,
        connection: Connection,
        moves: u64,
        tasks: &mut JoinSet<()>,
    ) -> Option<Live> {
        self.numbers += 1;
        let proof = self.keys.proof(Role::Client, &connection, self.numbers)?;
        let expected = self.keys.proof(Role::Server, &connection, self.numbers)?;
        let mut hello = vec![VERSION];
        hello.extend_from_slice(&self.numbers.to_be_bytes());
        hello.extend_from_slice(&proof);
        let link = self.shared.mux().link_up();
        let carried = Carried::new(Arc::clone(&self.shared), connection.clone(), link);
        let task = tasks.spawn(async move {
            if let Some((send, receive)) = greet(&carried.connection, &hello, &expected).await {
                carried.run(send, receive).await;
            } else {
                carried.connection.close(UNPROVEN, b"");
                carried.shared.mux().link_down(carried.link);
            }
        });
        let now = Instant::now();
        let received = connection.stats().udp_rx.datagrams;
        Some(Live {
            connection,
            _endpoint: endpoint,
            task,
            received,
            heard: now,
            owes: None,
            ask_after: ASK_FIRST,
            moves,
        })
    }
}

/// Shows the server who we are, and sees that it is who it should be.
async fn greet(
    connection: &Connection,
    hello: &[u8],
    expected: &[u8; PROOF],
) -> Option<(SendStream, RecvStream)> {
    let (mut send, mut receive) = connection.open_bi().await.ok()?;
    send.write_all(hello).await.ok()?;
    let mut proof = [0; PROOF];
    receive.read_exact(&mut proof).await.ok()?;
    are_equal(&proof, expected).then_some((send, receive))
}

impl Tries {
    fn stop(&mut self, now: Instant) {
        // With those that have just come through: another is in use.
        self.running = JoinSet::new();
        self.endpoint = None;
        self.last = None;
        self.since = now;
    }

    /// Makes the next try, if it is time.
    fn go_on(
        &mut self,
        now: Instant,
        server: SocketAddr,
        config: &ClientConfig,
        is_new: bool,
        live: Option<&Live>,
        shared: &Shared,
    ) {
        if self.last.is_some_and(|last| now - last < try_each(now - self.since)) {
            return;
        }
        // With nothing to do, one connection is made ready; a path that is down is not asked after.
        if live.is_some() && !is_new && !shared.mux().has_channels() {
            return;
        }
        self.last = Some(now);
        let is_usable = |(_, since, to): &(Endpoint, Instant, SocketAddr)| {
            *to == server && now - *since < PORT_LASTS
        };
        if !self.endpoint.as_ref().is_some_and(is_usable) {
            self.endpoint = open_port(server).ok().map(|endpoint| (endpoint, now, server));
        }
        let Some((endpoint, ..)) = &self.endpoint else { return };
        let endpoint = endpoint.clone();
        let Ok(connecting) = endpoint.connect_with(config.clone(), server, SERVER_NAME) else {
            self.endpoint = None;
            return;
        };
        let rtt = live.map_or(TRY_LASTS_MAX / 4, |live| live.connection.rtt());
        let patience = (rtt * 4).clamp(TRY_LASTS_MIN, TRY_LASTS_MAX);
        self.running.spawn(async move {
            let connection = timeout(patience, connecting).await.ok()?.ok()?;
            Some((endpoint, connection))
        });
    }
}

/// How long after a try the next one is due, when the path has been down for so long.
fn try_each(down: Duration) -> Duration {
    (down / TRY_SHARE).clamp(TRY_EACH_MIN, TRY_EACH_MAX)
}

/// A socket of its own for each while: another port is another entry in every NAT on the way.
fn open_port(server: SocketAddr) -> io::Result<Endpoint> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = std::net::UdpSocket::bind(any)?;
    // It gives what the administrator allows.
    let _ =
        UdpSocketState::new((&socket).into())?.set_recv_buffer_size((&socket).into(), BUFFER_BYTES);
    let mut config = EndpointConfig::default();
    config.grease_quic_bit(false);
    Endpoint::new(config, None, socket, Arc::new(quinn::TokioRuntime))
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
}
