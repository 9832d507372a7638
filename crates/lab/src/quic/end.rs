//! One end of a QUIC connection: quinn's endpoint and connection, and an application that sends or reads streams of
//! a megabyte each.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint,
    EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use rove_ssp::Time;

use super::flow::Flow;
use super::tls;
use crate::rng::Rng;

/// One end.
pub(super) struct End {
    role: Role,
    /// The instant of [`Time::ZERO`].
    origin: Instant,
    peer: SocketAddr,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    client: ClientConfig,
    /// Datagrams that a turn made and that are not yet taken.
    outgoing: VecDeque<Outgoing>,
    is_connected: bool,
    /// The stream that is written to, and how much of it is left.
    writing: Option<(StreamId, usize)>,
    /// Streams opened so far.
    opened: i32,
    written: u64,
    received: u64,
}

/// The action that an end wants next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Role {
    /// It connects and sends.
    Sender(Flow),
    /// It accepts and reads.
    Receiver,
}

/// A datagram that an end sends.
pub(super) struct Outgoing {
    pub datagram: Vec<u8>,
    pub ecn: Option<EcnCodepoint>,
}

impl End {
    pub(super) fn new(
        place: usize,
        role: Role,
        origin: Instant,
        transport: Arc<TransportConfig>,
        rng: &mut Rng,
    ) -> End {
        let mut seed = [0; 32];
        for part in seed.chunks_exact_mut(8) {
            part.copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        let mut config = EndpointConfig::default();
        config.grease_quic_bit(false).rng_seed(Some(seed));
        let mut server = ServerConfig::with_crypto(tls::server());
        server.transport_config(Arc::clone(&transport));
        let server = (role == Role::Receiver).then(|| Arc::new(server));
        let mut client = ClientConfig::new(tls::client());
        client.transport_config(transport);
        let port = if role == Role::Receiver { 1 } else { 2 };
        let peer = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, place as u8, port)), 4433);
        End {
            role,
            origin,
            peer,
            endpoint: Endpoint::new(Arc::new(config), server, true, None),
            connection: None,
            client,
            outgoing: VecDeque::new(),
            is_connected: false,
            writing: None,
            opened: 0,
            written: 0,
            received: 0,
        }
    }

    pub(super) fn handle_datagram(
        &mut self,
        now: Time,
        datagram: &[u8],
        ecn: Option<EcnCodepoint>,
    ) {
        let instant = self.instant(now);
        let mut answer = Vec::new();
        let event =
            self.endpoint.handle(instant, self.peer, None, ecn, datagram.into(), &mut answer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((own, connection)) = &mut self.connection
                    && *own == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                let accepted = self.endpoint.accept(incoming, instant, &mut answer, None);
                self.connection =
                    Some(accepted.unwrap_or_else(|error| panic!("accept: {}", error.cause)));
            }
            // The lab's path damages nothing and adds nothing, so there is nothing to refuse.
            Some(DatagramEvent::NewConnection(_) | DatagramEvent::Response(_)) | None => {}
        }
        self.turn(now);
    }

    pub(super) fn handle_timeout(&mut self, now: Time) {
        let instant = self.instant(now);
        if let (Role::Sender(_), None) = (self.role, &self.connection) {
            let connected = self.endpoint.connect(instant, self.client.clone(), self.peer, "lab");
            self.connection = Some(connected.expect("the address and the name are valid"));
        }
        if let Some((_, connection)) = &mut self.connection
            && connection.poll_timeout().is_some_and(|at| at <= instant)
        {
            connection.handle_timeout(instant);
        }
        self.turn(now);
    }

    /// The next datagram to send; nothing until something happens.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Outgoing> {
        if self.outgoing.is_empty() {
            self.fill(now);
        }
        self.outgoing.pop_front()
    }

    /// When it wants to be woken, later than now.
    pub(super) fn poll_timeout(&mut self, now: Time) -> Option<Time> {
        let (_, connection) = self.connection.as_mut()?;
        // Rounded up: a timer that is asked too early does nothing, and asks again at once.
        let due = connection.poll_timeout().map(|at| {
            let nanos = at.saturating_duration_since(self.origin).as_nanos();
            Time::ZERO + Duration::from_micros(nanos.div_ceil(1_000) as u64)
        });
        let supply = match self.role {
            Role::Sender(Flow { supply: Some(_), .. }) => Some(now + SUPPLY_GAP),
            _ => None,
        };
        let next = [due, supply].into_iter().flatten().min()?;
        Some(next.max(now + Duration::from_micros(1)))
    }

    /// Octets that the application got since it was last asked.
    pub(super) fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    /// Octets that may be in flight.
    pub(super) fn window(&self) -> u64 {
        self.connection.as_ref().map_or(0, |(_, connection)| connection.stats().path.cwnd)
    }

    /// Packets sent, and those taken for lost.
    pub(super) fn packets(&self) -> (u64, u64) {
        self.connection.as_ref().map_or((0, 0), |(_, connection)| {
            let path = connection.stats().path;
            (path.sent_packets, path.lost_packets)
        })
    }

    /// Runs the application, and passes events between the two machines.
    fn turn(&mut self, now: Time) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        self.received += read(connection, id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    self.received += read(connection, id);
                }
                Event::ConnectionLost { reason } => panic!("a connection ended: {reason}"),
                _ => {}
            }
        }
        if let (Role::Sender(flow), true) = (self.role, self.is_connected) {
            self.write(now, &flow);
        }
    }

    /// Writes as much as the connection takes, or as there is.
    fn write(&mut self, now: Time, flow: &Flow) {
        let Some((_, connection)) = &mut self.connection else { return };
        if flow.ends.is_some_and(|ends| now >= ends) {
            return;
        }
        let supplied = flow
            .supply
            .map(|rate| (u128::from(rate) * now.since(flow.begins).as_micros() / 1_000_000) as u64);
        loop {
            let (id, left) = match self.writing.take() {
                Some(writing) => writing,
                None => match connection.streams().open(Dir::Uni) {
                    Some(id) => {
                        // As the streams of a session: the older goes first.
                        self.opened += 1;
                        let priority = connection.send_stream(id).set_priority(-self.opened);
                        priority.expect("the stream is new");
                        (id, STREAM_BYTES)
                    }
                    None => return,
                },
            };
            self.writing = Some((id, left));
            let there = supplied.map_or(u64::MAX, |supplied| supplied - self.written.min(supplied));
            let length = (left as u64).min(there).min(ZEROS.len() as u64) as usize;
            if length == 0 {
                return;
            }
            let Ok(taken) = connection.send_stream(id).write(&ZEROS[..length]) else { return };
            self.written += taken as u64;
            self.writing = Some((id, left - taken));
            if left == taken {
                connection.send_stream(id).finish().expect("the stream was open");
                self.writing = None;
            }
        }
    }

    fn fill(&mut self, now: Time) {
        let instant = self.instant(now);
        let Some((_, connection)) = &mut self.connection else { return };
        let mut buffer = Vec::new();
        let Some(transmit) = connection.poll_transmit(instant, SEGMENTS_MAX, &mut buffer) else {
            return;
        };
        let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
        for datagram in buffer[..transmit.size].chunks(segment) {
            self.outgoing.push_back(Outgoing { datagram: datagram.to_vec(), ecn: transmit.ecn });
        }
    }

    fn instant(&self, now: Time) -> Instant {
        self.origin + now.since(Time::ZERO)
    }
}

/// Reads all that is there; how much.
fn read(connection: &mut Connection, id: StreamId) -> u64 {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return 0 };
    let mut length = 0;
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        length += chunk.bytes.len() as u64;
    }
    // The larger limit goes out with the next packet.
    let _ = chunks.finalize();
    length
}

/// Octets of a stream: what may be lost of one never makes more holes than quinn allows (1,024).
const STREAM_BYTES: usize = 1_000_000;
/// Segments that the system sends in one call.
const SEGMENTS_MAX: usize = 10;
/// How often an application with a rate of its own writes.
const SUPPLY_GAP: Duration = Duration::from_millis(10);
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
