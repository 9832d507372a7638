//! The channels of one end of a session, as a state machine: turns what programs write into octets
//! and frames to send, and the other way round. A lost connection costs only time: both ends send
//! their whole state on the next one (`docs/streams.md` §4 and 5).
//!
//! It does no I/O and reads no clock. `program` has the programs' calls, `peer` handles the peer's
//! frames; this file has the state that both change, and what to send.

mod peer;
mod program;
mod receiving;
mod sending;
mod types;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::task::Waker;

use bytes::Bytes;

use crate::buggify::{Buggify, Point};
use crate::frame::{Frame, REQUEST_BYTES_MAX};
use receiving::{Announced, Receiving};
use sending::{End, Sending};
use types::INITIAL_WINDOW;
pub use types::{Pulse, Violation};

/// Channels of its own that each end may have open. With all of them open, `open` waits until one has ended.
pub const CHANNELS_MAX: usize = 256;

/// Channels of the peer that we hold, with finished ones that our program has not dropped.
const PEERS_MAX: usize = 2 * CHANNELS_MAX;

/// Limit of the growth of all windows together: 64 MiB on top of 3 x 256 times 128 KiB. Each may take half
/// of what is left, so that the first few channels never take all: 32 MiB, then 16, then 8.
const GROWTH_MAX: u64 = 64 << 20;

/// Unacknowledged octets that each channel may hold even when the others use up the total.
const HELD_MIN: u64 = 64 << 10;

/// Unknown channels about which a `Gone` frame waits to be sent. Beyond this many we drop the notice; the
/// peer asks again on its next connection.
const GONE_MAX: usize = 4 * CHANNELS_MAX;

/// Which end of the session this is. The client opens channels of even numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// It makes the connections.
    Client,
    /// It accepts them.
    Server,
}

/// Why a session has no streams any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// The session is over.
    Closed,
    /// The peer broke the rules.
    Violation(Violation),
    /// A request over [`REQUEST_BYTES_MAX`] octets.
    Oversized,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Closed => f.write_str("the session is over"),
            Ended::Violation(violation) => write!(f, "the other end makes no sense: {violation}"),
            Ended::Oversized => write!(f, "a request has at most {REQUEST_BYTES_MAX} octets"),
        }
    }
}

impl std::error::Error for Ended {}

/// Why a program's read or write fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Broken {
    /// The other end gave up this direction.
    Reset,
    /// The other end reads no more.
    Refused,
    /// We have ended this direction ourselves.
    Finished,
    /// The session is over.
    Ended(Ended),
}

#[derive(Debug)]
struct Channel {
    /// The request to send until the peer has mentioned the channel; `None` for a channel of the peer's.
    request: Option<Vec<u8>>,
    /// The peer has mentioned it.
    is_known: bool,
    sending: Sending,
    receiving: Receiving,
    news: News,
    /// The program has dropped its halves.
    writer_gone: bool,
    reader_gone: bool,
}

/// Frames that the peer is to get about a channel.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    open: bool,
    window: bool,
    end: bool,
    stop: bool,
    done: bool,
}

impl Channel {
    fn new(request: Option<Vec<u8>>) -> Channel {
        Channel {
            is_known: request.is_none(),
            news: News { open: request.is_some(), ..News::default() },
            request,
            sending: Sending::new(),
            receiving: Receiving::new(),
            writer_gone: false,
            reader_gone: false,
        }
    }

    fn is_over(&self) -> bool {
        let told = self.sending.done && self.receiving.done;
        told && self.writer_gone && self.reader_gone && !self.news.done
    }
}

/// The channels of one end.
#[derive(Debug)]
pub struct Mux {
    role: Role,
    channels: BTreeMap<u64, Channel>,
    /// The number of our next channel, and the lowest that the peer has not opened.
    next_own: u64,
    next_peer: u64,
    own: usize,
    peers: usize,
    /// Channels of the peer that no program has accepted yet.
    incoming: VecDeque<u64>,
    acceptors: Vec<Waker>,
    openers: Vec<Waker>,
    /// Channels with frames to send, frames that can wait, octets to send, a writer waiting for room.
    telling: BTreeSet<u64>,
    sometime: BTreeSet<u64>,
    eager: BTreeSet<u64>,
    blocked: BTreeSet<u64>,
    gone: BTreeSet<u64>,
    /// The channel served last.
    turn: u64,
    link: Link,
    /// How many connections there have been, which is the number of the newest.
    links: u64,
    say_ready: bool,
    /// Unacknowledged octets, and their limit.
    held: u64,
    held_max: u64,
    /// Octets by which windows have grown.
    growth: u64,
    ended: Option<Ended>,
    buggify: Buggify,
}

/// How far the handshake of channels on the connection is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Link {
    Down,
    /// Until the peer's `Ready`, only octets that it cannot have yet may be sent.
    Up,
    /// The peer has sent how far it is with every channel.
    Ready,
}

impl Mux {
    /// An end without channels and without a connection.
    pub fn new(role: Role) -> Mux {
        let (next_own, next_peer) = match role {
            Role::Client => (0, 1),
            Role::Server => (1, 0),
        };
        Mux {
            role,
            channels: BTreeMap::new(),
            next_own,
            next_peer,
            own: 0,
            peers: 0,
            incoming: VecDeque::new(),
            acceptors: Vec::new(),
            openers: Vec::new(),
            telling: BTreeSet::new(),
            sometime: BTreeSet::new(),
            eager: BTreeSet::new(),
            blocked: BTreeSet::new(),
            gone: BTreeSet::new(),
            turn: 0,
            link: Link::Down,
            links: 0,
            say_ready: false,
            held: 0,
            // As `HELD_BASE` in `connection.rs`: programs may write before the first connection
            // sets the limit.
            held_max: 4 << 20,
            growth: 0,
            ended: None,
            buggify: Buggify::default(),
        }
    }

    /// See [`Streams::buggify`](crate::Streams::buggify).
    pub(crate) fn buggify(&mut self, seed: u64) {
        self.buggify = Buggify::seeded(seed);
    }

    /// How often each of [`Point::ALL`] was taken.
    pub(crate) fn buggified(&self) -> [u64; Point::ALL.len()] {
        self.buggify.taken()
    }

    /// Ends all channels. Programs learn it at their next call.
    pub fn end(&mut self, ended: Ended) {
        if self.ended.is_some() {
            return;
        }
        // The first reason stays: a later `close` must not hide a violation from programs.
        self.ended = Some(ended);
        self.acceptors.drain(..).chain(self.openers.drain(..)).for_each(Waker::wake);
        for channel in self.channels.values_mut() {
            channel.sending.wake();
            channel.receiving.wake();
        }
    }

    /// Why the session is over, if it is.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Starts on a new authenticated connection, which gets all state again. Returns its number.
    pub fn link_up(&mut self) -> u64 {
        self.link = Link::Up;
        self.links += 1;
        self.say_ready = true;
        self.sometime.clear();
        // The peer tells its whole state again, so each unknown channel in it gets a new GONE.
        self.gone.clear();
        self.eager.clear();
        for (id, channel) in &mut self.channels {
            let Channel { sending, receiving, .. } = channel;
            sending.rewind();
            receiving.rewind();
            let done = receiving.is_complete();
            channel.news = News {
                // The last connection may have died with the OPEN.
                open: !channel.is_known,
                window: !done && !receiving.stopped,
                end: sending.state != End::Open && !sending.done,
                stop: receiving.stopped && !done,
                done,
            };
            self.telling.insert(*id);
            if sending.is_eager() {
                self.eager.insert(*id);
            }
        }
        self.links
    }

    /// The connection `link` is lost or replaced.
    pub fn link_down(&mut self, link: u64) {
        if self.is_current(link) {
            self.link = Link::Down;
        }
    }

    /// Whether that connection is the newest, and up.
    pub fn is_current(&self, link: u64) -> bool {
        self.links == link && self.link != Link::Down
    }

    /// Sends `Ready` again: the peer must acknowledge it, which shows whether it is there.
    pub fn probe(&mut self) {
        self.say_ready = true;
    }

    /// Whether the peer owes an answer to something that was sent, or waits to be sent.
    pub fn is_busy(&self) -> bool {
        !self.telling.is_empty()
            || !self.eager.is_empty()
            || self
                .channels
                .values()
                // The peer answers OPEN with WINDOW or GONE, so an OPEN without either
                // is owed an answer.
                .any(|channel| !channel.is_known || channel.sending.is_on_its_way())
    }

    /// Whether any channel is open.
    pub fn has_channels(&self) -> bool {
        !self.channels.is_empty()
    }

    /// Octets kept for resending, of all channels.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Sets how many octets may be kept for resending, of all channels.
    pub fn set_held_max(&mut self, octets: u64) {
        self.held_max = octets;
        self.wake_blocked();
    }

    /// Whether a channel may have more to send than it has given so far.
    pub fn goes_on(&self, id: u64) -> bool {
        self.channels.get(&id).is_some_and(|channel| channel.sending.goes_on())
    }

    /// Appends frames for the peer, up to about `most` octets.
    pub fn poll_frames(&mut self, most: usize, out: &mut Vec<u8>) {
        if self.link == Link::Down {
            return;
        }
        // A write happens now in any case, so acknowledgments that can wait go with it.
        self.telling.append(&mut self.sometime);
        while out.len() < most {
            if let Some(id) = self.gone.pop_first() {
                Frame::Gone { channel: id }.encode(out);
            } else if let Some(id) = self.telling.pop_first() {
                self.tell(id, out);
                if !out.is_empty() && self.buggify.takes(Point::FramesCut) {
                    return;
                }
            } else {
                // READY goes last. At its receipt the peer sends octets from where our WINDOWs say,
                // so all of them must be there.
                if std::mem::take(&mut self.say_ready) {
                    Frame::Ready.encode(out);
                }
                return;
            }
        }
    }

    /// Whether there are frames to send.
    pub fn has_frames(&self, which: Which) -> bool {
        let now = !self.telling.is_empty() || !self.gone.is_empty() || self.say_ready;
        self.link != Link::Down && (now || which == Which::All && !self.sometime.is_empty())
    }

    fn tell(&mut self, id: u64, out: &mut Vec<u8>) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let news = std::mem::take(&mut channel.news);
        if news.open
            && let Some(request) = &channel.request
        {
            Frame::Open { channel: id, request: request.clone() }.encode(out);
        }
        let (receiving, buggify) = (&mut channel.receiving, &self.buggify);
        if news.done {
            Frame::Done { channel: id }.encode(out);
            receiving.done = true;
        } else if news.stop {
            Frame::Stop { channel: id }.encode(out);
        } else if news.window && !receiving.stopped {
            let (received, limit) = if self.link == Link::Up
                && receiving.is_told_less()
                && buggify.takes(Point::ResumptionEarlier)
            {
                receiving.tell_again()
            } else if receiving.opens() && buggify.takes(Point::WindowSmall) {
                receiving.tell_little()
            } else {
                receiving.tell()
            };
            Frame::Window { channel: id, received, limit }.encode(out);
        }
        // After its DONE the peer may have forgotten the channel, and would answer a FIN with GONE.
        if news.end && !channel.sending.done {
            match channel.sending.state {
                End::Finished => Frame::Fin { channel: id, end: channel.sending.end() }.encode(out),
                _ => Frame::Abort { channel: id }.encode(out),
            }
        }
        self.forget_if_over(id);
    }

    /// Takes the next octets to send, at most `most`, of the channel whose turn it is.
    pub fn poll_data(&mut self, most: usize) -> Option<(u64, u64, Bytes)> {
        if self.link == Link::Down {
            return None;
        }
        let ready = self.link == Link::Ready;
        let channels = &self.channels;
        // Before READY only channels that the peer cannot know: of others its WINDOW may
        // acknowledge octets that went on an earlier connection.
        let may = |id: &&u64| ready || channels.get(*id).is_some_and(|channel| !channel.is_known);
        // The search begins after the channel served last. Else a busy channel with a low number
        // starves those above it.
        let after = self.eager.range(self.turn + 1..).find(may);
        let id = *after.or_else(|| self.eager.range(..=self.turn).find(may))?;
        self.turn = id;
        let most = self.buggify.cut(Point::TurnCut, most);
        let sending = &mut self.channels.get_mut(&id)?.sending;
        let taken = sending.take(most);
        if !sending.is_eager() {
            self.eager.remove(&id);
        }
        taken.map(|(offset, octets)| (id, offset, octets))
    }

    /// Whether a channel of this number is, or was, open: octets for one that is not open yet have to wait.
    pub fn is_begun(&self, id: u64) -> Result<bool, Violation> {
        match (self.is_own(id), id < self.next_own, id < self.next_peer) {
            // Only we open channels of our parity, so nobody can know this number yet.
            (true, false, _) => Err(Violation::Number),
            (true, true, _) | (false, _, true) => Ok(true),
            (false, _, false) => Ok(false),
        }
    }

    /// Checks whether the peer should get new limits, after octets arrived or were read.
    fn look_at_receiving(&mut self, id: u64) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if channel.receiving.is_complete() && !channel.receiving.done {
            channel.news.done = true;
            self.telling.insert(id);
            return;
        }
        match channel.receiving.telling() {
            Announced::Nothing => {}
            Announced::Sometime if !self.buggify.takes(Point::AckEarly) => {
                channel.news.window = true;
                self.sometime.insert(id);
            }
            Announced::Sometime | Announced::Now => {
                channel.news.window = true;
                self.telling.insert(id);
            }
        }
    }

    fn forget_if_over(&mut self, id: u64) {
        if !self.channels.get(&id).is_some_and(Channel::is_over) {
            return;
        }
        let channel = self.channels.remove(&id).expect("it was found before");
        // Each doubling counted the window before it. From the first window on, these add up to
        // this difference.
        self.growth -= channel.receiving.window - INITIAL_WINDOW;
        self.held -= channel.sending.held();
        for set in [&mut self.telling, &mut self.sometime, &mut self.eager, &mut self.blocked] {
            set.remove(&id);
        }
        match self.is_own(id) {
            true => self.own -= 1,
            false => self.peers -= 1,
        }
        self.openers.drain(..).for_each(Waker::wake);
    }

    /// Wakes writers that wait for room, once there is some.
    fn wake_blocked(&mut self) {
        if self.held >= self.held_max {
            return;
        }
        while let Some(id) = self.blocked.pop_first() {
            if let Some(channel) = self.channels.get_mut(&id) {
                channel.sending.wake();
            }
        }
    }

    fn is_own(&self, id: u64) -> bool {
        id.is_multiple_of(2) == (self.role == Role::Client)
    }
}

/// Which frames to send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Which {
    /// Frames that the peer waits for.
    Urgent,
    /// All frames, also those that can wait.
    All,
}

#[cfg(test)]
mod tests;
