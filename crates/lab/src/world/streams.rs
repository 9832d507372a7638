//! Streams between the nodes of a world: when they open and end, and what comes by them.

use std::time::Duration;

use rove_ssp::{Arrival, Remote, StreamId, Time};

use super::{Cause, Event, Fault, Life, Node, World};
use crate::address::NodeId;
use crate::byte_stream::{ByteStream, StreamProfile};

impl<N: Node> World<N> {
    /// The client opens a stream to the server at this time, as all streams are from now on.
    pub fn open_stream_at(&mut self, at: Time, client: NodeId, server: NodeId) {
        self.schedule(at, Event::Open { ends: [client, server] });
    }

    /// There is a stream between two nodes, of which neither is told.
    pub fn open_stream(&mut self, client: NodeId, server: NodeId) -> StreamId {
        self.trace.add(b"O");
        let rng = self.stream_rng.fork();
        let profile = self.stream_profile.clone();
        self.streams.push(ByteStream::new([client, server], profile, rng));
        StreamId::new(self.streams.len() as u32 - 1)
    }

    /// All streams end at this time. One end learns it later than the other.
    pub fn close_streams_at(&mut self, at: Time) {
        self.schedule(at, Event::CloseAll);
    }

    /// The same for those of a client and a server.
    pub fn close_stream_at(&mut self, at: Time, ends: [NodeId; 2]) {
        self.schedule(at, Event::CloseBetween { ends });
    }

    /// How streams are from now on.
    pub fn set_stream_profile(&mut self, profile: &StreamProfile) {
        self.stream_profile = profile.clone();
        self.streams.iter_mut().for_each(|stream| stream.set_profile(profile.clone()));
    }

    /// The most octets that were on their way by a stream in one direction.
    pub fn stream_octets_most(&self) -> usize {
        self.streams.iter().map(ByteStream::most).max().unwrap_or(0)
    }

    pub(super) fn reopen_stream(&mut self, [client, server]: [NodeId; 2]) -> Result<(), Fault> {
        if let Some(until) = self.put_off(client) {
            self.open_stream_at(until, client, server);
            return Ok(());
        }
        if [client, server].iter().any(|node| self.hosts[node.0].life == Life::Dead) {
            return Ok(());
        }
        let id = self.open_stream(client, server);
        let host = &mut self.hosts[client.0];
        let local = host.wake(self.now);
        host.node.stream_opened(local, id);
        self.turn(client, Cause::Event)
    }

    /// Ends those of these that are open.
    pub(super) fn cut_streams(&mut self, is_meant: impl Fn(&ByteStream) -> bool) {
        for stream in 0..self.streams.len() {
            if self.streams[stream].is_open && is_meant(&self.streams[stream]) {
                self.totals.streams_cut += 1;
                self.end_stream(stream);
            }
        }
    }

    /// Its ends learn that it has ended, each some time from now.
    pub(super) fn end_stream(&mut self, stream: usize) {
        let ByteStream { ends, is_open, .. } = &mut self.streams[stream];
        let ends = *ends;
        if std::mem::take(is_open) {
            for node in ends {
                let later = self.stream_rng.span_below(Duration::from_millis(500));
                self.schedule(self.now + later, Event::Close { stream, node });
            }
        }
    }

    pub(super) fn close_stream(&mut self, stream: usize, node: NodeId) -> Result<(), Fault> {
        if let Some(until) = self.put_off(node) {
            self.schedule(until, Event::Close { stream, node });
            return Ok(());
        }
        self.trace.add(b"C");
        let host = &mut self.hosts[node.0];
        let local = host.wake(self.now);
        host.node.stream_closed(local, StreamId::new(stream as u32));
        self.turn(node, Cause::Event)
    }

    /// Until when a node sleeps, or holds a datagram: what comes by a stream waits for it.
    fn put_off(&self, node: NodeId) -> Option<Time> {
        let host = &self.hosts[node.0];
        host.asleep_until.filter(|until| *until > self.now).or_else(|| host.holds_until(self.now))
    }

    pub(super) fn arrive_by(
        &mut self,
        stream: usize,
        to: NodeId,
        mut octets: Vec<u8>,
    ) -> Result<(), Fault> {
        if let Some(until) = self.put_off(to) {
            self.schedule(until, Event::Carried { stream, to, octets });
            return Ok(());
        }
        self.streams[stream].arrived(to, octets.len());
        if !self.streams[stream].is_open || !self.hosts[to.0].is_awake(self.now) {
            return Ok(());
        }
        self.trace.add(&self.now.as_micros().to_le_bytes());
        self.trace.add(&octets);
        self.totals.received += 1;
        let from = Remote::Stream(StreamId::new(stream as u32));
        let arrival = Arrival { from, congested: false };
        let host = &mut self.hosts[to.0];
        let local = host.wake(self.now);
        if host.node.machine().handle_datagram(local, arrival, &mut octets).is_err() {
            self.totals.refused += 1;
        }
        self.turn(to, Cause::Event)
    }

    /// Writes a datagram to a stream. One that has ended swallows it.
    pub(super) fn write(&mut self, from: NodeId, stream: StreamId, octets: &[u8]) {
        let found = |at: &usize| StreamId::new(*at as u32) == stream;
        let Some(stream) = (0..self.streams.len()).find(found) else { return };
        let open = &mut self.streams[stream];
        if open.is_open {
            let (at, to) = (open.write(self.now, from, octets.len()), open.other(from));
            self.schedule(at, Event::Carried { stream, to, octets: octets.to_vec() });
        }
    }
}
