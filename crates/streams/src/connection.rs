//! One QUIC connection that carries a session's channels (`docs/streams.md` §3 and 6): frames on
//! one stream, octets in blocks on many. Other files make the connections.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{self, Instant};
use bytes::Bytes;
use quinn::{Connection, RecvStream, SendStream, TransportConfig, VarInt};
use tokio::task::JoinSet;

use crate::carried::is_stream;
use crate::congestion::BulkControllerConfig;
use crate::frame::{Frame, Head};
use crate::keys::PROOF;
use crate::mux::{Ended, Pulse, Role, Violation, Which};
use crate::network::Network;
use crate::payload::sizes;
use crate::proof::are_equal;
use crate::shared::Shared;

/// The largest block, so that no stream has more than 1024 gaps: there quinn ends the connection.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Octets given to a connection before it is another channel's turn.
const TURN_BYTES: usize = 64 << 10;

/// The most octets of frames in one write.
const FRAMES_BYTES: usize = 16 << 10;

/// How long an acknowledgment may wait for others.
const TELL_WAIT: Duration = Duration::from_millis(20);

/// A channel's first octets on a connection, this many, go before those of channels past them.
const URGENT_BYTES: usize = 256 << 10;

/// Streams of data that the peer may have open: one per channel, and earlier ones still arriving.
const STREAMS_MAX: u32 = 1024;

/// Limits of a peer that has not sent its proof: its hello, and data that goes with it.
const UNPROVEN_STREAMS_MAX: u32 = 4;
const UNPROVEN_BYTES_MAX: u32 = 256 << 10;

/// Limit of octets in flight on one connection: 400 Mbit/s at 1.2 s.
const CONNECTION_WINDOW: u32 = 64 << 20;

/// Limits the octets kept for resending to this many of quinn's windows, or six times the octets in flight,
/// plus the base, so that no sender waits for it. Every few round trips at 5 % loss a packet is lost three
/// times, while all that follows it is kept.
const HELD_WINDOWS: u64 = 4;
const HELD_BASE: u64 = 4 << 20;
const HELD_MAX: u64 = 64 << 20;

/// How often to adjust that limit, while there is something to send.
const ADJUST_EACH: Duration = Duration::from_millis(50);

/// The settings of a connection to a peer. `docs/design/streams.md` has the measurements.
pub(crate) fn transport(
    role: Role,
    pace: &BulkControllerConfig,
    peer: SocketAddr,
    network: &dyn Network,
) -> TransportConfig {
    let mut config = TransportConfig::default();
    let (streams, window) = match role {
        Role::Client => (STREAMS_MAX, CONNECTION_WINDOW),
        Role::Server => (UNPROVEN_STREAMS_MAX, UNPROVEN_BYTES_MAX),
    };
    let pace = match is_stream(peer) {
        true => pace.over_stream(),
        false => pace.clone(),
    };
    let mut acks = quinn::AckFrequencyConfig::default();
    // RFC 9000 §13.2.2 has an acknowledgment for each second packet. Fewer cost less
    // work at both ends.
    acks.ack_eliciting_threshold(VarInt::from_u32(10));
    config
        // The client opens the one stream of frames; the server opens none.
        .max_concurrent_bidi_streams(VarInt::from_u32(if role == Role::Server { 1 } else { 0 }))
        .max_concurrent_uni_streams(VarInt::from_u32(streams))
        // A whole block fits, so that the channel's limit holds a sender back, and not this window.
        .stream_receive_window(VarInt::from_u32(2 << 20))
        .receive_window(VarInt::from_u32(window))
        .send_window(u64::from(CONNECTION_WINDOW) + (32 << 20))
        // `poll_data` takes turns among channels already, and blocks have priorities by age.
        .send_fairness(false)
        // Channels may be silent for days. The client finds a dead connection by its questions.
        .max_idle_timeout(None)
        // RFC 9002 §6.2.2 has 333 ms, with which a lost first packet costs a second.
        // This makes it 0.3 s.
        .initial_rtt(Duration::from_millis(100))
        .mtu_discovery_config(Some(sizes(peer, network)))
        .congestion_controller_factory(Arc::new(pace))
        .ack_frequency_config(Some(acks))
        .datagram_receive_buffer_size(None);
    config
}

/// Lifts the limits of a peer that has sent its proof.
pub(crate) fn skip_address_limit(connection: &Connection) {
    connection.set_max_concurrent_uni_streams(VarInt::from_u32(STREAMS_MAX));
    connection.set_receive_window(VarInt::from_u32(CONNECTION_WINDOW));
}

/// Close codes, which tell the peer why a connection ends.
pub(crate) const REPLACED: VarInt = VarInt::from_u32(1);
pub(crate) const UNPROVEN: VarInt = VarInt::from_u32(2);
pub(crate) const VIOLATED: VarInt = VarInt::from_u32(3);

/// A connection that carries the channels, as number `link` of this end's.
#[derive(Clone)]
pub(crate) struct ConnectionTask {
    pub shared: Arc<Shared>,
    pub connection: Connection,
    pub link: u64,
    began: Instant,
}

impl ConnectionTask {
    pub(crate) fn new(shared: Arc<Shared>, connection: Connection, link: u64) -> ConnectionTask {
        ConnectionTask { shared, connection, link, began: clock::now() }
    }

    /// Moves frames and octets until the connection ends or another replaces it. The peer first sends its
    /// proof, if `awaited`; then its frames.
    pub(crate) async fn run(
        self,
        send: SendStream,
        receive: RecvStream,
        awaited: Option<[u8; PROOF]>,
    ) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.clone().tell(send));
        tasks.spawn(self.clone().listen(receive, awaited));
        tasks.spawn(self.clone().send());
        tasks.spawn(self.clone().receive());
        // Whichever ends first, the others go with it.
        tasks.join_next().await;
        tasks.abort_all();
        self.shared.mux().link_down(self.link);
        self.connection.close(REPLACED, b"");
    }

    fn violated(&self, violation: Violation) {
        self.connection.close(VIOLATED, violation.to_string().as_bytes());
        self.shared.end(Ended::Violation(violation));
    }

    /// Sends frames as they become due.
    async fn tell(self, mut send: SendStream) -> Option<()> {
        // Above all blocks: a WINDOW behind bulk could stop the peer's sending.
        let _ = send.set_priority(2);
        let mut frames = Vec::new();
        let mut by = None;
        loop {
            let news = {
                let mut mux = self.shared.mux_of(self.link)?;
                if mux.has_frames(Which::Urgent) || by.is_some_and(|by| by <= clock::now()) {
                    mux.poll_frames(FRAMES_BYTES, &mut frames);
                }
                mux.has_frames(Which::All)
            };
            if !frames.is_empty() {
                send.write_all(&frames).await.ok()?;
                frames.clear();
                by = None;
                continue;
            }
            let told = self.shared.tell.notified();
            if news {
                let wait = *by.get_or_insert_with(|| clock::now() + TELL_WAIT);
                tokio::select! {
                    biased;
                    () = told => {}
                    () = clock::sleep_until(wait) => {}
                }
            } else {
                told.await;
            }
        }
    }

    /// Receives frames.
    async fn listen(self, mut receive: RecvStream, awaited: Option<[u8; PROOF]>) -> Option<()> {
        if let Some(expected) = awaited {
            let mut proof = [0; PROOF];
            receive.read_exact(&mut proof).await.ok()?;
            if !are_equal(&proof, &expected) {
                self.connection.close(UNPROVEN, b"");
                return None;
            }
        }
        self.shared.carried().proven = self.link;
        self.shared.carry_on(self.link);
        let mut octets: Vec<u8> = Vec::new();
        while let Some(chunk) = receive.read_chunk(FRAMES_BYTES, true).await.ok()? {
            self.shared.hear();
            octets.extend_from_slice(&chunk.bytes);
            let mut rest = octets.as_slice();
            let outcome = {
                let mut mux = self.shared.mux_of(self.link)?;
                loop {
                    match Frame::decode(&mut rest) {
                        Ok(Some(frame)) => {
                            if let Err(violation) = mux.handle_frame(frame) {
                                break Err(violation);
                            }
                        }
                        Ok(None) => break Ok(()),
                        Err(bad) => break Err(Violation::Frame(bad)),
                    }
                }
            };
            if let Err(violation) = outcome {
                self.violated(violation);
                return None;
            }
            let taken = octets.len() - rest.len();
            // The rest is the beginning of a frame that has not arrived whole.
            octets.drain(..taken);
            self.shared.begun.notify_waiters();
            self.shared.stirred();
        }
        None
    }

    /// Sends octets, of one channel after the other.
    async fn send(self) -> Option<()> {
        let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
        // Channels that have filled a block.
        let mut bulky = BTreeSet::new();
        let mut adjusted: Option<Instant> = None;
        let mut opened = 0_i32;
        loop {
            let held = self.held_max(&mut adjusted);
            let next = {
                let mut mux = self.shared.mux_of(self.link)?;
                if let Some(held) = held {
                    mux.set_held_max(held);
                }
                mux.poll_data(TURN_BYTES)
            };
            let Some((id, offset, octets)) = next else {
                let work = self.shared.data.notified();
                self.close_finished(&mut blocks, &mut bulky)?;
                work.await;
                continue;
            };
            // What the peer says that it has is left out: the octets after that are another block's.
            if let Some(mut block) = blocks.remove(&id) {
                if block.next == offset {
                    blocks.insert(id, block);
                } else {
                    let _ = block.stream.finish();
                }
            }
            let block = match blocks.entry(id) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let is_urgent = !bulky.contains(&id);
                    opened = opened.saturating_add(1);
                    let block = Block::open(&self.connection, id, offset, is_urgent, -opened);
                    entry.insert(block.await?)
                }
            };
            block.write(octets).await?;
            // One more turn could take the block past its largest size.
            if block.sent >= BLOCK_BYTES_MAX - TURN_BYTES {
                let _ = block.stream.finish();
                blocks.remove(&id);
                bulky.insert(id);
            }
        }
    }

    /// The new limit of octets kept for resending, if it is time to adjust it to the congestion window.
    fn held_max(&self, adjusted: &mut Option<Instant>) -> Option<u64> {
        let now = clock::now();
        if adjusted.is_some_and(|adjusted| now < adjusted + ADJUST_EACH) {
            return None;
        }
        *adjusted = Some(now);
        let on_its_way = self.connection.stats().path.cwnd;
        Some(on_its_way.saturating_mul(HELD_WINDOWS).saturating_add(HELD_BASE).min(HELD_MAX))
    }

    /// Ends the streams of finished directions.
    fn close_finished(
        &self,
        blocks: &mut BTreeMap<u64, Block>,
        bulky: &mut BTreeSet<u64>,
    ) -> Option<()> {
        let mux = self.shared.mux_of(self.link)?;
        bulky.retain(|id| mux.goes_on(*id));
        blocks.retain(|id, block| {
            let goes_on = mux.goes_on(*id);
            if !goes_on {
                let _ = block.stream.finish();
            }
            goes_on
        });
        Some(())
    }

    /// Receives blocks.
    async fn receive(self) -> Option<()> {
        let mut blocks = JoinSet::new();
        loop {
            tokio::select! {
                // What has ended goes first, so that no run of new streams keeps it.
                biased;
                Some(_) = blocks.join_next() => {}
                stream = self.connection.accept_uni() => {
                    blocks.spawn(self.clone().receive_block(stream.ok()?));
                }
            }
        }
    }

    async fn receive_block(self, mut stream: RecvStream) -> Option<()> {
        let mut first = Vec::new();
        let (head, rest) = loop {
            let chunk = stream.read_chunk(Head::BYTES_MAX, true).await.ok()??;
            first.extend_from_slice(&chunk.bytes);
            let mut rest = first.as_slice();
            if let Some(head) = Head::decode(&mut rest) {
                break (head, Bytes::copy_from_slice(rest));
            }
        };
        loop {
            // Made before the question, so that no answer is missed.
            let begun = self.shared.begun.notified();
            let is_begun = self.shared.mux_of(self.link)?.is_begun(head.channel);
            match is_begun {
                Ok(true) => break,
                // Nothing more is read meanwhile, so QUIC's flow control (RFC 9000 §4)
                // limits what waits.
                Ok(false) => begun.await,
                Err(violation) => {
                    self.violated(violation);
                    return None;
                }
            }
        }
        let mut chunks: [Bytes; 32] = Default::default();
        let mut offset = head.offset;
        chunks[0] = rest;
        let mut count = 1;
        loop {
            let pulse = Pulse { at: self.began.elapsed(), round_trip: self.connection.rtt() };
            let outcome = {
                let mut mux = self.shared.mux_of(self.link)?;
                let outcome = chunks[..count].iter().try_for_each(|chunk| {
                    let at = offset;
                    offset = offset.saturating_add(chunk.len() as u64);
                    mux.handle_data(head.channel, at, chunk, pulse)
                });
                outcome.map(|()| mux.has_frames(Which::All))
            };
            // Chunks hold the memory of quinn's packets, and this task may wait long
            // for the next ones.
            chunks[..count].fill(Bytes::new());
            self.shared.wake_up();
            match outcome {
                Ok(true) => self.shared.tell.notify_one(),
                Ok(false) => {}
                Err(violation) => {
                    self.violated(violation);
                    return None;
                }
            }
            count = stream.read_chunks(&mut chunks).await.ok()??;
        }
    }
}

/// A block being sent.
struct Block {
    stream: SendStream,
    sent: usize,
    /// The place of the octet after the last one sent.
    next: u64,
    is_urgent: bool,
    /// Older blocks go first: their lost octets go out before the octets that follow, which nobody can use
    /// until then.
    priority: i32,
}

impl Block {
    async fn open(
        connection: &Connection,
        channel: u64,
        offset: u64,
        is_urgent: bool,
        priority: i32,
    ) -> Option<Block> {
        let mut stream = connection.open_uni().await.ok()?;
        // Above all older bulk: a short transfer does not wait behind a long one.
        let _ = stream.set_priority(if is_urgent { 1 } else { priority });
        let mut head = Vec::new();
        Head { channel, offset }.encode(&mut head);
        stream.write_all(&head).await.ok()?;
        Some(Block { stream, sent: 0, next: offset, is_urgent, priority })
    }

    async fn write(&mut self, octets: Bytes) -> Option<()> {
        self.sent += octets.len();
        self.next += octets.len() as u64;
        if self.is_urgent && self.sent > URGENT_BYTES {
            self.is_urgent = false;
            let _ = self.stream.set_priority(self.priority);
        }
        self.stream.write_chunk(octets).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::task::{Context, Poll, Waker};

    use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig};

    use super::*;
    use crate::SecretMemory;
    use crate::keys::{Keys, SERVER_NAME};

    fn endpoint(config: Option<ServerConfig>) -> (Endpoint, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = socket.local_addr().unwrap();
        let runtime = Arc::new(quinn::TokioRuntime);
        (Endpoint::new(EndpointConfig::default(), config, socket, runtime).unwrap(), at)
    }

    /// The sender skips octets that the peer already has, even inside a block.
    #[tokio::test]
    async fn octets_that_are_left_out_begin_another_block() {
        let keys = Keys::new(&[7; 32], SecretMemory::ORDINARY);
        let mut config = ServerConfig::with_crypto(Arc::new(keys.server_config().unwrap()));
        let mut narrow = TransportConfig::default();
        narrow.receive_window(VarInt::from_u32(32 << 10));
        config.transport_config(Arc::new(narrow));
        let ((server, at), (client, _)) = (endpoint(Some(config)), endpoint(None));
        let config = ClientConfig::new(Arc::new(keys.client_config().unwrap()));
        let connecting = client.connect_with(config, at, SERVER_NAME).unwrap();
        let (near, far) = tokio::join!(connecting, async { server.accept().await.unwrap().await });
        let (near, far) = (near.unwrap(), far.unwrap());

        // Sent on a connection that died, and some of it arrived.
        let shared = Shared::new(Role::Client);
        let octets: Vec<u8> = (0..128u32 << 10).map(|n| (n % 251) as u8).collect();
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Ok(id)) = shared.mux().poll_open(&mut cx, b"") else { panic!("no room") };
        assert!(shared.mux().poll_write(&mut cx, id, &octets).is_ready());
        let link = shared.mux().link_up();
        let sending = tokio::spawn(ConnectionTask::new(Arc::clone(&shared), near, link).send());

        // The first block waits for room, when the peer tells how far it is.
        let mut first = far.accept_uni().await.unwrap();
        let window = Frame::Window { channel: id, received: 100_000, limit: 1 << 20 };
        for frame in [window, Frame::Ready] {
            shared.mux().handle_frame(frame).unwrap();
        }
        shared.stirred();
        let first = first.read_to_end(1 << 20).await.unwrap();
        let mut rest = first.as_slice();
        assert_eq!(Head::decode(&mut rest), Some(Head { channel: id, offset: 0 }));
        assert!(rest == &octets[..TURN_BYTES], "{} octets", rest.len());

        let mut head = Vec::new();
        Head { channel: id, offset: 100_000 }.encode(&mut head);
        let mut second = vec![0; head.len() + octets.len() - 100_000];
        far.accept_uni().await.unwrap().read_exact(&mut second).await.unwrap();
        assert!(second == [head.as_slice(), &octets[100_000..]].concat(), "what follows");
        sending.abort();
    }
}
