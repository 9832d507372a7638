//! Where a driver meets the system: one clock, one alarm, the kernel's news of the network, and the carrier.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use rove_ssp::{Arrival, Outbox, Remote, Session, StreamId, Time, Transmit};
use rove_streams::carried::{StreamPorts, address_of};
use rove_streams::clock;

use crate::net::carrier::{Carrier, Received};
use crate::net::frames::FrameKind;
use crate::net::routes::Sent;
use crate::net::stdio::{Carried, Stdio};
use crate::net::udp::{DATAGRAM_BYTES_MAX, Socket};
use crate::os;
use crate::os::clock::{Alarm, Clock};
use crate::os::locked::wipe_stack;
use crate::os::network_changes::NetworkChanges;
use crate::os::process::give_back_freed_memory;

/// An alarm that goes off this late shows that the machine, or this process, was suspended: no scheduler makes
/// us wait so long, and the worst of a mistake is one more datagram.
const SLEPT_MIN: Duration = Duration::from_secs(2);

/// A datagram that is later than this is not sent: the machine slept, and what is in it is said again.
pub const HELD_LATE_MAX: Duration = Duration::from_millis(25);

/// How long the end of a stream is waited for: a round trip to the host, and the ends of ssh's processes there. Who waits for
/// `rove` to exit waits for it.
const STREAM_END_WAIT: Duration = Duration::from_millis(500);

/// Clock, alarm, network changes and carrier of one driver.
pub(crate) struct Port<'a> {
    clock: Clock,
    alarm: Alarm,
    /// `None` where nobody tells of changes, and at servers, which stay where they are.
    changes: Option<NetworkChanges>,
    /// The kernel has told of a change that was not looked at yet.
    changed: bool,
    /// When the alarm was to go off.
    due: Option<Time>,
    carrier: Carrier,
    /// Other ways to peers, and what came by one of them last.
    streams: Vec<Stdio>,
    carried: Vec<u8>,
    /// Where QUIC's datagrams for the stream wait, and those of a client's arrive.
    quic: StreamPorts,
    /// Whether UDP is used at all.
    udp: Udp,
    outbox: Outbox,
    /// The outbox has a datagram that leaves later.
    held: Option<Transmit>,
    buffer: Box<[u8; DATAGRAM_BYTES_MAX]>,
    /// Tells what the network did, to a user who asked for it.
    note: &'a dyn Fn(fmt::Arguments<'_>),
}

/// Whether datagrams go by UDP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Udp {
    Used,
    /// The user has said that none are to.
    Unused,
}

/// What a turn begins with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Turn {
    /// The only reading of the clock.
    pub now: Time,
    pub network: Network,
}

/// What has become of the network since the turn before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Network {
    Same,
    /// The peer is reached by another address of ours, or not at all.
    Changed,
    /// This machine has slept, and the network may be another.
    Slept,
}

impl<'a> Port<'a> {
    /// A port that nobody waits at yet. Needs a tokio runtime with I/O.
    pub(crate) fn new(
        clock: Clock,
        carrier: Carrier,
        changes: Option<NetworkChanges>,
        note: &'a dyn Fn(fmt::Arguments<'_>),
    ) -> io::Result<Port<'a>> {
        Ok(Port {
            clock,
            alarm: Alarm::new(clock)?,
            changes,
            changed: false,
            due: None,
            held: None,
            carrier,
            streams: Vec::new(),
            carried: Vec::new(),
            quic: StreamPorts::default(),
            udp: Udp::Used,
            outbox: Outbox::default(),
            buffer: Box::new([0; DATAGRAM_BYTES_MAX]),
            note,
        })
    }

    /// There is a stream to the peer as well, which the session is told of.
    pub(crate) fn add_stream(&mut self, mut stream: Stdio) -> StreamId {
        let id = stream.id();
        stream.carry(self.quic().open(id.number()));
        // A client has one server, and a new way to it in place of one that is as good as dead.
        if matches!(self.carrier, Carrier::Client(_)) {
            self.streams.clear();
        }
        self.streams.push(stream);
        id
    }

    /// QUIC's datagrams go by this client's stream too. Before there is one.
    pub(crate) fn carry_quic(&mut self, quic: StreamPorts) {
        self.quic = quic;
    }

    /// Where those for streams wait: at a server it belongs to the port that they share.
    fn quic(&self) -> StreamPorts {
        self.carrier.port().map_or(&self.quic, Socket::streams).clone()
    }

    /// Whether there is a stream.
    pub(crate) fn has_stream(&self) -> bool {
        !self.streams.is_empty()
    }

    /// The stream is not needed any more. What has been written to it arrives.
    pub(crate) fn drop_stream(&mut self) -> Option<StreamId> {
        self.streams.pop().map(|stream| stream.id())
    }

    /// Ends the streams after what was said by them, and waits for a moment until the peer has ended them too: ssh must not
    /// lose the last words to the end of this process, by which it, or the keeper that runs it, ends as well.
    pub(crate) async fn end_streams(&mut self) {
        let ended = poll_fn(|cx| {
            self.streams.retain_mut(|stream| stream.poll_end(cx).is_pending());
            if self.streams.is_empty() { Poll::Ready(()) } else { Poll::Pending }
        });
        let _ = clock::within(STREAM_END_WAIT, ended).await;
    }

    /// Nothing goes by UDP from now on.
    pub(crate) fn refuse_udp(&mut self) {
        self.udp = Udp::Unused;
    }

    /// What moves the datagrams.
    pub(crate) fn carrier(&mut self) -> &mut Carrier {
        &mut self.carrier
    }

    /// Reads the clock, once a turn, and looks whether the network is still the same. If not, the carrier has
    /// begun anew.
    pub(crate) fn begin_turn(&mut self) -> Turn {
        let now = self.clock.now();
        let slept = self.due.take().is_some_and(|due| now.since(due) >= SLEPT_MIN);
        let changed = std::mem::take(&mut self.changed) && self.carrier.has_moved();
        let network = match (slept, changed) {
            (true, _) => Network::Slept,
            (false, true) => Network::Changed,
            (false, false) => Network::Same,
        };
        if network != Network::Same
            && let Err(error) = self.carrier.network_changed(now)
        {
            (self.note)(format_args!("cannot open another port: {error}"));
        }
        Turn { now, network }
    }

    /// Takes the next datagram; `None` when none waits.
    pub(crate) fn try_recv(&mut self) -> Option<(&mut Carrier, Received<'_>)> {
        let Port { carrier, buffer, streams, carried, quic, .. } = self;
        let received = match carrier.try_recv(buffer.as_mut_slice()) {
            Some(received) => received,
            None => recv_by(streams, carried, carrier, quic)?,
        };
        Some((carrier, received))
    }

    /// Sends the datagram whose time has come, if there is one: before a turn does anything that takes time.
    pub(crate) fn send_held(&mut self, now: Time, session: &mut dyn Session) {
        let Some(transmit) = self.held.take_if(|held| held.at.is_none_or(|at| at <= now)) else {
            return;
        };
        if transmit.at.is_none_or(|at| now.since(at) <= HELD_LATE_MAX) {
            self.send(now, transmit, session);
        }
    }

    /// Drops the datagram that is held: it is of the network before.
    pub(crate) fn drop_held(&mut self) {
        self.held = None;
    }

    /// Sends all that the session has to send now.
    pub(crate) fn send_all(&mut self, now: Time, session: &mut dyn Session) {
        self.send_held(now, session);
        while self.held.is_none()
            && let Some(transmit) = session.poll_transmit(now, &mut self.outbox)
        {
            self.held = Some(transmit);
            self.send_held(now, session);
        }
        wipe_stack();
        os::signals::wipe_frames();
        // Making it may have taken until its time.
        if self.held.is_some() {
            self.send_held(self.clock.now(), session);
        }
        if self.held.is_none() && self.outbox.rest(now) {
            give_back_freed_memory();
        }
    }

    /// Sends what is in the outbox.
    fn send(&mut self, now: Time, transmit: Transmit, session: &mut dyn Session) {
        if let Remote::Stream(to) = transmit.to {
            // What has no room is lost, as by UDP: it is said again.
            if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id() == to) {
                stream.send(FrameKind::Session, &self.outbox.datagram);
            }
            return;
        }
        if self.udp == Udp::Unused {
            return;
        }
        if transmit.new_port {
            match self.carrier.rebind(now) {
                Ok(()) => (self.note)(format_args!("nothing heard: trying another port of ours")),
                // The old port may yet work.
                Err(error) => (self.note)(format_args!("cannot open another port: {error}")),
            }
        }
        match self.carrier.send(now, &transmit, &self.outbox.datagram) {
            Sent::Gone => {}
            Sent::TooBig => {
                (self.note)(format_args!("smaller datagrams from now on"));
                session.datagram_too_big();
            }
            // UDP was only tried. That it is not to be had is told of as if it did not answer.
            Sent::Failed(_) if session.peer().is_some_and(Remote::is_stream) => {}
            // As if lost on the way: a route may come back, and the peer may come from elsewhere.
            Sent::Failed(error) => {
                (self.note)(format_args!("cannot send: {error}"));
                session.send_failed(now, &why(&error));
            }
        }
    }

    /// Sets when [`wait`](Self::wait) is over if nothing happens before; `None`: not until something does. Nothing is sent
    /// before a datagram that is held.
    pub(crate) fn sleep_until(&mut self, at: Option<Time>) -> io::Result<()> {
        self.due = self.held.as_ref().map_or(at, |held| held.at);
        self.alarm.set(self.due)
    }

    /// Waits until it is time, the network changes, a datagram comes, or `other` is ready.
    pub(crate) async fn wait(
        &mut self,
        other: &mut dyn FnMut(&mut Context<'_>) -> Poll<io::Result<()>>,
    ) -> io::Result<()> {
        poll_fn(|cx| {
            // What happens in the half of a millisecond until it leaves must not delay it.
            if self.held.is_some() {
                return self.alarm.poll(cx);
            }
            let mut ready = other(cx)?.is_ready();
            ready |= self.alarm.poll(cx)?.is_ready();
            if let Some(changes) = &mut self.changes {
                self.changed |= changes.poll_change(cx).is_ready();
            }
            ready |= self.changed;
            ready |= self.carrier.poll_readable(cx)?.is_ready();
            for stream in &mut self.streams {
                ready |= stream.poll_readable(cx)?.is_ready();
            }
            if ready { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
        .await
    }
}

/// What has come by a stream. One that has ended is gone.
fn recv_by<'a>(
    streams: &mut Vec<Stdio>,
    buffer: &'a mut Vec<u8>,
    carrier: &Carrier,
    quic: &StreamPorts,
) -> Option<Received<'a>> {
    for index in 0..streams.len() {
        let id = streams[index].id();
        let Some(came) = streams[index].try_recv() else { continue };
        let Carried::Datagram(kind, octets) = came else {
            streams.remove(index);
            return Some(Received::StreamEnded(id));
        };
        buffer.clear();
        buffer.extend_from_slice(octets);
        // The others come first next time.
        streams.rotate_left(index + 1);
        return Some(received(kind, id, buffer, carrier, quic));
    }
    None
}

/// A datagram that has come by a stream. One of QUIC's goes to where it is waited for.
fn received<'a>(
    kind: FrameKind,
    id: StreamId,
    octets: &'a mut [u8],
    carrier: &Carrier,
    quic: &StreamPorts,
) -> Received<'a> {
    let from = Remote::Stream(id);
    match (kind, carrier.port()) {
        (FrameKind::Session, _) => Received::Datagram(Arrival { from, congested: false }, octets),
        (FrameKind::Quic, Some(port)) if port.takes(octets) => {
            port.hand_on(from, octets);
            Received::Nothing
        }
        (FrameKind::Quic, Some(_)) => Received::Quic(from, octets),
        (FrameKind::Quic, None) => {
            quic.deliver(address_of(id.number()), octets);
            Received::Nothing
        }
    }
}

/// Why nothing can be sent, for the user.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => "No network here".into(),
        _ => os::words(error),
    }
}
