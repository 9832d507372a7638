//! QUIC connections in virtual time: quinn's machines over [`link`](crate::link), any number of them through one
//! bottleneck, and a ping beside them. The same seed makes the same run to the microsecond.
//!
//! It uses no sockets: a connection's datagrams go into the link and come out when they are due.

mod end;
mod flow;
mod tls;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn_proto::{AckFrequencyConfig, EcnCodepoint, TransportConfig, VarInt};
use rove_ssp::Time;
use rove_streams::congestion::{Activity, BulkControllerConfig};

use crate::clock::Clock;
use crate::link::{Counters, Delivery, Link, Profile};
use crate::rng::Rng;
use end::{End, Outgoing, Role};
pub use flow::{Control, Flow};

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The way of the data.
    pub up: Profile,
    /// The way of the acknowledgments.
    pub down: Profile,
    /// Changes of the data's direction, from these times on.
    pub changes: Vec<(Time, Profile)>,
    /// A queue that marks what waits longer than this, if the sender understands marks.
    pub mark_after: Option<Duration>,
    /// The connections.
    pub flows: Vec<Flow>,
    /// Whether they are one session's, each in the place of the one before: controllers know what those knew.
    pub is_one_session: bool,
    /// How promptly the ends react.
    pub hosts: Hosts,
    /// When the user types: from, until.
    pub typing: Option<(Time, Time)>,
    /// How long it lasts.
    pub span: Duration,
    /// Of all chances.
    pub seed: u64,
}

/// How promptly an end reacts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hosts {
    /// At once, and to the microsecond.
    Prompt,
    /// As a process on Linux: tokio's timers and epoll each round up to milliseconds, and a reader of a few packets
    /// of bulk waits for more (`batched.rs` of the streams).
    Usual,
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Octets that each connection's application got, in each `SLOT`.
    pub received: Vec<Vec<u64>>,
    /// The window of each connection at the end of each `SLOT`, in octets.
    pub windows: Vec<Vec<u64>>,
    /// Round trips of pings, ten a second, by when they were sent; lost ones are missing.
    pub pings: Vec<(Time, Duration)>,
    /// Counters of the data's direction.
    pub up: Counters,
    /// Packets of each connection that were sent, and that were taken for lost.
    pub packets: Vec<(u64, u64)>,
}

/// The grain of a course.
pub(crate) const SLOT: Duration = Duration::from_millis(100);

impl Plan {
    /// Hosts over a bottleneck of this rate and round trip, with a queue of this length in octets.
    pub fn bottleneck(bits_per_second: u64, round_trip: Duration, queue_bytes: usize) -> Plan {
        let delay = Profile { mtu: PAYLOAD_MAX, ..Profile::delay(round_trip / 2) };
        Plan {
            up: delay.clone().rate(bits_per_second, queue_bytes),
            down: delay,
            changes: Vec::new(),
            mark_after: None,
            flows: vec![Flow::of(Control::Pace)],
            is_one_session: false,
            hosts: Hosts::Prompt,
            typing: None,
            span: Duration::from_secs(10),
            seed: 1,
        }
    }

    /// Runs it.
    pub fn run(&self) -> Course {
        World::new(self).run()
    }
}

impl Course {
    /// The goodput of a connection in a span, in Mbit/s.
    pub fn goodput_mbit(&self, flow: usize, from: Duration, until: Duration) -> f64 {
        let slot = |span: Duration| (span.as_micros() / SLOT.as_micros()) as usize;
        let received = &self.received[flow];
        let slots = received.get(slot(from)..slot(until).min(received.len())).unwrap_or(&[]);
        slots.iter().sum::<u64>() as f64 * 8.0 / (until - from).as_secs_f64() / 1e6
    }

    /// The pings of a span in milliseconds, in order of size.
    pub fn pings_ms(&self, from: Duration, until: Duration) -> Vec<f64> {
        let span = Time::ZERO + from..Time::ZERO + until;
        let pings = self.pings.iter().filter(|(sent, _)| span.contains(sent));
        let mut pings: Vec<f64> = pings.map(|(_, trip)| trip.as_secs_f64() * 1e3).collect();
        pings.sort_by(f64::total_cmp);
        pings
    }
}

impl Control {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Control::Pace => "rove",
            Control::Stream => "rove over a stream",
            Control::Cubic => "cubic",
            Control::Bbr => "bbr",
        }
    }

    fn factory(self, pace: BulkControllerConfig) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Control::Pace => Arc::new(pace),
            Control::Stream => Arc::new(pace.over_stream()),
            Control::Cubic => Arc::new(CubicConfig::default()),
            Control::Bbr => Arc::new(BbrConfig::default()),
        }
    }
}

/// Something that happens.
#[derive(Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    /// A datagram arrives at an end.
    Arrival {
        end: usize,
        datagram: Vec<u8>,
        ecn: Option<u8>,
    },
    /// An end wanted to be woken.
    Wake {
        end: usize,
    },
    /// An end reads what has come meanwhile.
    Read {
        end: usize,
    },
    /// A ping goes out; it goes back; it is back.
    Ping,
    Pong {
        sent: Time,
    },
    Pinged {
        sent: Time,
    },
    /// The way of the data changes.
    Change {
        number: usize,
    },
    /// A key is typed.
    Key,
    /// A slot is over.
    Slot,
}

/// A datagram, and its ECN mark.
type Arrived = (Vec<u8>, Option<EcnCodepoint>);

struct World<'a> {
    plan: &'a Plan,
    now: Time,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    number: u64,
    up: Link,
    down: Link,
    /// The two ends of each connection, one behind the other.
    ends: Vec<End>,
    /// When each end is to be woken, if it is.
    wakes: Vec<Option<Time>>,
    /// Packets that have come to each end and are not read yet, while it waits for more.
    waiting: Vec<Option<Vec<Arrived>>>,
    activity: Activity,
    course: Course,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan) -> World<'a> {
        let mut rng = Rng::new(plan.seed);
        let (up, down) =
            (Link::new(plan.up.clone(), rng.fork()), Link::new(plan.down.clone(), rng.fork()));
        let activity = Activity::default();
        let origin = Clock::start().origin();
        let session = BulkControllerConfig::new(activity.clone());
        let mut ends = Vec::new();
        for (place, flow) in plan.flows.iter().enumerate() {
            let pace = match plan.is_one_session {
                true => session.clone(),
                false => BulkControllerConfig::new(activity.clone()),
            };
            let transport = Arc::new(transport(flow.control, pace));
            for role in [Role::Sender(*flow), Role::Receiver] {
                ends.push(End::new(place, role, origin, Arc::clone(&transport), &mut rng));
            }
        }
        let none = vec![Vec::new(); plan.flows.len()];
        World {
            plan,
            now: Time::ZERO,
            events: BinaryHeap::new(),
            number: 0,
            up,
            down,
            wakes: vec![None; ends.len()],
            waiting: vec![None; ends.len()],
            ends,
            activity,
            course: Course {
                received: none.clone(),
                windows: none,
                pings: Vec::new(),
                up: Counters::default(),
                packets: Vec::new(),
            },
        }
    }

    fn run(mut self) -> Course {
        for (place, flow) in self.plan.flows.iter().enumerate() {
            self.wake(place * 2, flow.begins);
        }
        for (number, (at, _)) in self.plan.changes.iter().enumerate() {
            self.file(*at, Event::Change { number });
        }
        if let Some((from, _)) = self.plan.typing {
            self.file(from, Event::Key);
        }
        self.file(Time::ZERO, Event::Ping);
        self.file(Time::ZERO + SLOT, Event::Slot);
        let end = Time::ZERO + self.plan.span;
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at > end {
                break;
            }
            self.now = at;
            self.handle(event);
        }
        self.course.up = *self.up.counters();
        self.course.packets = self.ends.iter().step_by(2).map(End::packets).collect();
        self.course
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival { end, datagram, ecn } => {
                let arrived = (datagram, ecn.and_then(EcnCodepoint::from_bits));
                match &mut self.waiting[end] {
                    Some(waiting) => waiting.push(arrived),
                    None => self.read(end, vec![arrived]),
                }
            }
            Event::Read { end } => {
                let waiting = self.waiting[end].take().unwrap_or_default();
                self.read(end, waiting);
            }
            Event::Wake { end } if self.wakes[end] == Some(self.now) => {
                self.wakes[end] = None;
                self.ends[end].handle_timeout(self.now);
                self.drain(end);
            }
            Event::Wake { .. } => {}
            Event::Ping => {
                let sent = self.now;
                for delivery in self.pass_up(&[0; PING_BYTES]) {
                    self.file(delivery.at, Event::Pong { sent });
                }
                self.file(self.now + SLOT, Event::Ping);
            }
            Event::Pong { sent } => {
                for delivery in self.pass_down(&[0; PING_BYTES]) {
                    self.file(delivery.at, Event::Pinged { sent });
                }
            }
            Event::Pinged { sent } => self.course.pings.push((sent, self.now.since(sent))),
            Event::Change { number } => self.up.set_profile(self.plan.changes[number].1.clone()),
            Event::Key => {
                self.activity.mark_interactive();
                if self.plan.typing.is_some_and(|(_, until)| self.now < until) {
                    self.file(self.now + KEY_GAP, Event::Key);
                }
            }
            Event::Slot => {
                for flow in 0..self.plan.flows.len() {
                    let received = self.ends[flow * 2 + 1].take_received();
                    self.course.received[flow].push(received);
                    let window = self.ends[flow * 2].window();
                    self.course.windows[flow].push(window);
                }
                self.file(self.now + SLOT, Event::Slot);
            }
        }
    }

    /// An end reads all of this, and takes a pause if the last of its reads was a few packets of bulk.
    fn read(&mut self, end: usize, arrived: Vec<Arrived>) {
        let last = arrived.chunks(READ_MAX).last().unwrap_or_default();
        let few = FEW_BYTES.contains(&last.iter().map(|(datagram, _)| datagram.len()).sum());
        for (datagram, ecn) in arrived {
            self.ends[end].handle_datagram(self.now, &datagram, ecn);
        }
        self.drain(end);
        if few && self.plan.hosts == Hosts::Usual {
            self.waiting[end] = Some(Vec::new());
            self.file(self.usual(self.now + PAUSE), Event::Read { end });
        }
    }

    /// When a process is woken that asked for this time.
    fn usual(&self, due: Time) -> Time {
        let whole = |span: Duration| Duration::from_millis(span.as_micros().div_ceil(1_000) as u64);
        let tick = Time::ZERO + whole(due.since(Time::ZERO));
        self.now + whole(tick.since(self.now))
    }

    /// Sends an end's packets, as its driver would, and schedules its next wake-up.
    fn drain(&mut self, end: usize) {
        while let Some(Outgoing { datagram, ecn }) = self.ends[end].poll_transmit(self.now) {
            let is_up = end.is_multiple_of(2);
            let deliveries =
                if is_up { self.pass_up(&datagram) } else { self.pass_down(&datagram) };
            for delivery in deliveries {
                let marked = delivery.congested && ecn.is_some();
                let ecn = if marked { Some(EcnCodepoint::Ce) } else { ecn };
                let ecn = ecn.map(|ecn| ecn as u8);
                let datagram = delivery.datagram;
                self.file(delivery.at, Event::Arrival { end: end ^ 1, datagram, ecn });
            }
        }
        if let Some(at) = self.ends[end].poll_timeout(self.now) {
            let at = if self.plan.hosts == Hosts::Usual { self.usual(at) } else { at };
            self.wake(end, at);
        }
    }

    fn pass_up(&mut self, datagram: &[u8]) -> Vec<Delivery> {
        let mut out = Vec::new();
        self.up.pass(self.now, datagram, &mut out);
        if let Some(most) = self.plan.mark_after {
            let travel = self.up.profile().delay;
            for delivery in &mut out {
                delivery.congested |= delivery.at.since(self.now).saturating_sub(travel) > most;
            }
        }
        out
    }

    fn pass_down(&mut self, datagram: &[u8]) -> Vec<Delivery> {
        let mut out = Vec::new();
        self.down.pass(self.now, datagram, &mut out);
        out
    }

    fn wake(&mut self, end: usize, at: Time) {
        if self.wakes[end] != Some(at) {
            self.wakes[end] = Some(at);
            self.file(at, Event::Wake { end });
        }
    }

    fn file(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at, self.number, event)));
    }
}

/// As the streams of a session set it.
fn transport(control: Control, pace: BulkControllerConfig) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(VarInt::from_u32(10));
    transport
        .ack_frequency_config(Some(acks))
        .congestion_controller_factory(control.factory(pace))
        .initial_rtt(Duration::from_millis(100))
        .stream_receive_window(VarInt::from_u32(2 << 20))
        .receive_window(VarInt::from_u32(64 << 20))
        .send_window(64 << 20)
        .send_fairness(false)
        .max_concurrent_uni_streams(VarInt::from_u32(64))
        .max_idle_timeout(None);
    transport
}

/// The UDP payload of a packet of 1,500 octets with IPv4.
const PAYLOAD_MAX: usize = 1_472;
/// The pause of a reader that reads in batches, and the octets up to which it counts packets as few.
const PAUSE: Duration = Duration::from_millis(1);
const FEW_BYTES: std::ops::Range<usize> = 1_000..16_000;
/// Packets that are read in one call.
const READ_MAX: usize = 32;
/// Of ping(8) with its header, without IP's.
const PING_BYTES: usize = 56;
/// Between keys.
const KEY_GAP: Duration = Duration::from_millis(250);
