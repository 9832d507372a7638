//! The two processes of a session without a terminal: the session's own machines keep in touch, as the program's
//! driver has them do, and its streams run beside.

use std::net::SocketAddr;
use std::sync::Arc;

use rove::testing::udp::is_quic;
use rove_lab::testing::rng::Rng;
use rove_session::connection::{Event, Patience};
use rove_session::{Connection, Input, Peer, View};
use rove_ssp::{
    Arrival, Config, ConnId, Machine, NativeWire, Outbox, Role, Session, SessionSecrets, State,
    Time, Timing,
};
use rove_streams::network::EcnCodepoint;
use rove_streams::server::{Batch, Dormant, QuicInbox};
use rove_streams::{SecretMemory, Streams, client, clock};
use rove_term::Size;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::network::{Arrived, Host, Inbox, Net, Port, SECOND};

/// The size of a terminal that nobody has.
const SIZE: (u16, u16) = (24, 80);

/// Octets that an end may keep for its peer: 64 MiB, and 64 KiB of each channel.
pub const HELD_MAX: u64 = (64 << 20) + 512 * (64 << 10);

/// One end of a session: a process that can be killed.
pub struct End {
    pub streams: Streams,
    pub host: Host,
    /// The seed by which it takes rare branches, if it does.
    pub choices: Option<u64>,
    tasks: JoinSet<()>,
}

impl End {
    fn new(streams: Streams, host: Host, tasks: JoinSet<()>, seed: u64) -> End {
        // Half of the ends.
        let choices = (seed >> 63 == 1).then_some(seed);
        if let Some(seed) = choices {
            streams.buggify(seed);
        }
        End { streams, host, choices, tasks }
    }

    /// Does this work in the process, as long as it lives.
    pub fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Ends the process, as SIGKILL does: it says nothing to anybody.
    pub async fn kill(&mut self) {
        self.host.kill();
        self.tasks.shutdown().await;
    }
}

/// Starts both ends, as ssh does. `networks` counts the client's networks as its system announces them.
pub fn start(net: &Arc<Net>, rng: &mut Rng, networks: &watch::Sender<u64>) -> [End; 2] {
    let mut secret = || {
        let mut octets = [0; 32];
        octets.fill_with(|| rng.next_u64() as u8);
        octets
    };
    let secrets = SessionSecrets::from_bytes(secret(), secret(), secret());
    let conn = ConnId::new(rng.next_u64() as u32);
    let (server, at) = serve(net, &secrets, conn, rng.next_u64());
    let client = connect(net, &secrets, conn, at, rng.next_u64(), networks.subscribe());
    [client, server]
}

fn connect(
    net: &Arc<Net>,
    secrets: &SessionSecrets,
    conn: ConnId,
    server: SocketAddr,
    seed: u64,
    networks: watch::Receiver<u64>,
) -> End {
    let host = Host::new(net);
    let (streams, link, connector) = client::start(secrets.streams(), SecretMemory::ORDINARY);
    let connector = connector.within(Arc::new(host.clone()));
    let mut tasks = JoinSet::new();
    tasks.spawn(async { connector.run().await.unwrap() });
    link.expect(server);

    let (now, size) = (net.now(), Size::clamped(SIZE.0, SIZE.1));
    let config = Config {
        role: Role::Client,
        wire: Box::new(NativeWire::new(secrets, conn, Role::Client)),
        timing: Timing::ROVE,
        peer: Some(server),
        local: Input::default(),
        remote: View::new(size, Peer::Rove),
        seed,
    };
    let mut connection = Connection::new(now, config, Patience::default());
    connection.update(now, |input| input.push_resize(size));
    tasks.spawn(drive_client(Arc::clone(net), host.clone(), connection, link, networks));
    End::new(streams, host, tasks, seed)
}

async fn drive_client(
    net: Arc<Net>,
    host: Host,
    mut connection: Connection<Input, View>,
    link: client::PathHints,
    mut networks: watch::Receiver<u64>,
) {
    let inbox: Arc<Inbox> = Arc::default();
    // Older ports go on receiving.
    let mut ports = vec![host.client_port(Arc::clone(&inbox))];
    let mut out = Outbox::default();
    loop {
        let mut send = |to, new_port, datagram: &[u8]| {
            if new_port {
                ports.push(host.client_port(Arc::clone(&inbox)));
            }
            ports.last().unwrap().send(to, datagram, 0);
        };
        turn(net.now(), &mut connection, &mut out, &mut send);
        tokio::select! {
            biased;
            changed = networks.changed() => {
                changed.unwrap();
                link.moved();
                connection.network_changed(net.now());
            }
            arrived = inbox.next() => {
                let from = arrived.from;
                if hear(net.now(), &mut connection, arrived) {
                    link.heard(from);
                }
            }
            () = until(&net, connection.poll_timeout()) => {}
        }
    }
}

fn serve(net: &Arc<Net>, secrets: &SessionSecrets, conn: ConnId, seed: u64) -> (End, SocketAddr) {
    let host = Host::new(net);
    let inbox: Arc<Inbox> = Arc::default();
    let port = Arc::new(host.server_port(Arc::clone(&inbox)));
    let at = port.address();
    let (streams, lane, acceptor) = Dormant::new(secrets.streams(), SecretMemory::ORDINARY).start();
    let mut tasks = JoinSet::new();
    let (network, shared) = (Arc::new(host.clone()), Arc::clone(&port));
    tasks.spawn(async { acceptor.run_within(network, shared).await.unwrap() });
    lane.heard();

    let config = Config {
        role: Role::Server,
        wire: Box::new(NativeWire::new(secrets, conn, Role::Server)),
        timing: Timing::ROVE,
        peer: None,
        local: View::new(Size::clamped(SIZE.0, SIZE.1), Peer::Rove),
        remote: Input::default(),
        seed,
    };
    let connection = Connection::new(net.now(), config, Patience::default());
    tasks.spawn(drive_server(Arc::clone(net), inbox, port, connection, lane));
    (End::new(streams, host, tasks, seed), at)
}

async fn drive_server(
    net: Arc<Net>,
    inbox: Arc<Inbox>,
    port: Arc<Port>,
    mut connection: Connection<View, Input>,
    lane: QuicInbox,
) {
    let mut out = Outbox::default();
    loop {
        let mut send = |to, _, datagram: &[u8]| port.send(to, datagram, 0);
        turn(net.now(), &mut connection, &mut out, &mut send);
        serve_next(&net, &inbox, &mut connection, &lane).await;
    }
}

/// Waits until a server has to act, or hears a datagram: QUIC's goes to the streams, which are told of one of the
/// session's own. Returns whether it was such a one, and authentic.
pub async fn serve_next(
    net: &Net,
    inbox: &Inbox,
    server: &mut impl Machine,
    lane: &QuicInbox,
) -> bool {
    let due = server.poll_timeout();
    let arrived = tokio::select! {
        biased;
        arrived = inbox.next() => arrived,
        () = until(net, due) => return false,
    };
    if is_quic(&arrived.datagram) {
        let Arrived { from, datagram: octets, ecn } = arrived;
        lane.pass(Batch { stride: octets.len(), octets, from, to: None, ecn });
        return false;
    }
    let is_heard = hear(net.now(), server, arrived);
    if is_heard {
        lane.heard();
    }
    is_heard
}

/// One turn of a driver: sends all there is, and hears what happened.
fn turn<L: State, R: State>(
    now: Time,
    connection: &mut Connection<L, R>,
    out: &mut Outbox,
    send: &mut impl FnMut(SocketAddr, bool, &[u8]),
) {
    while let Some(transmit) = connection.poll_transmit(now, out) {
        let Some(to) = transmit.to.udp() else { continue };
        send(to, transmit.new_port, &out.datagram);
    }
    while let Some(event) = connection.poll_event() {
        let is_fine = !matches!(event, Event::BadRemote(_) | Event::Ended(_));
        assert!(is_fine, "the session ends by itself: {event:?}");
    }
}

/// Gives the session a datagram. Returns whether it is authentic.
pub fn hear(now: Time, machine: &mut impl Machine, arrived: Arrived) -> bool {
    let Arrived { from, mut datagram, ecn } = arrived;
    let arrival = Arrival { from: from.into(), congested: ecn == EcnCodepoint::Ce as u8 };
    machine.handle_datagram(now, arrival, &mut datagram).is_ok()
}

/// Watches what both ends keep for their peers, for ever.
pub async fn hold_within(ends: [Streams; 2], most: u64) {
    loop {
        clock::sleep(SECOND).await;
        for streams in &ends {
            let held = streams.on_the_way();
            assert!(held <= most, "{held} octets are kept for the peer");
        }
    }
}

/// Waits for this moment, or for ever.
pub async fn until(net: &Net, at: Option<Time>) {
    match at {
        Some(at) => net.until(at).await,
        None => std::future::pending().await,
    }
}
