//! One direction of an emulated path in real time: a thread reads packets from one TUN device, passes them through
//! [`Link`], and writes them to the other device when they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rove_ssp::Time;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

use super::lateness::{Late, Lateness};
use super::nat::{Nat, Passage, amend};
use super::scenario::Course;
use crate::capture::Tape;
use crate::clock::Clock;
use crate::link::{Counters, Link, Profile};
use crate::process::wait_ready;
use crate::relay::Direction;
use crate::rng::Rng;
use crate::worker::{Inbox, Worker};

/// The parts of a forwarder.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Which one it is.
    pub direction: Direction,
    /// Where packets come from.
    pub from: Arc<OwnedFd>,
    /// Where they go.
    pub to: Arc<OwnedFd>,
    /// Of both directions.
    pub clock: Clock,
    /// Its course.
    pub course: Course,
    /// Its random generator.
    pub rng: Rng,
    /// The NAT at the near end, if there is one.
    pub nat: Option<Arc<Mutex<Nat>>>,
    /// Where what passes the near end is written, if anywhere.
    pub tape: Option<Arc<Mutex<Tape>>>,
}

/// A running direction.
#[derive(Debug)]
pub(crate) struct Forwarder {
    worker: Worker<Order>,
    shared: Arc<Shared>,
}

/// Counts of a direction so far.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// Of the link.
    pub link: Counters,
    /// Packets that the far device did not take.
    pub refused: u64,
    /// Packets dropped because too many were under way.
    pub overrun: u64,
    /// How late it delivered.
    pub late: Late,
}

#[derive(Debug, Default)]
struct Shared {
    passed: Mutex<Passed>,
    lateness: Lateness,
}

#[derive(Debug)]
enum Order {
    Follow(Course),
    Cut(Duration),
    Stop,
}

impl Forwarder {
    /// Starts it.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn start(parts: Parts) -> io::Result<Forwarder> {
        let shared = Arc::new(Shared::default());
        let (name, counted) = (format!("link {:?}", parts.direction), Arc::clone(&shared));
        let work = |inbox| Emulation::new(parts, inbox, counted).run();
        Ok(Forwarder { worker: Worker::start(name, || Order::Stop, work)?, shared })
    }

    /// Follows this course from now on; packets on their way are not affected.
    pub(crate) fn follow(&self, course: Course) {
        self.worker.order(Order::Follow(course));
    }

    /// Lets nothing pass for this span.
    pub(crate) fn cut(&self, span: Duration) {
        self.worker.order(Order::Cut(span));
    }

    /// The counts so far.
    pub(crate) fn passed(&self) -> Passed {
        let passed = self.shared.passed.lock().expect("nobody panics with the counters").clone();
        Passed { late: self.shared.lateness.look(), ..passed }
    }

    /// Stops it.
    ///
    /// # Errors
    /// With what stopped it before.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        self.worker.stop()
    }
}

/// A packet on its way; the number keeps those due at one instant in order.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Due {
    at: Time,
    number: u64,
    packet: Vec<u8>,
}

/// The emulation of a direction, in its thread.
struct Emulation {
    parts: Parts,
    inbox: Inbox<Order>,
    shared: Arc<Shared>,
    link: Link,
    /// When the course began, and when its present step ends.
    began: Time,
    ends: Option<Time>,
    /// Cuts that were ordered; those that are over go with the next.
    cuts: Vec<Range<Time>>,
    due: BinaryHeap<Reverse<Due>>,
    number: u64,
    buffer: Box<[u8]>,
    refused: u64,
    overrun: u64,
    running: bool,
}

impl Emulation {
    fn new(mut parts: Parts, inbox: Inbox<Order>, shared: Arc<Shared>) -> Emulation {
        let rng = parts.rng.fork();
        Emulation {
            parts,
            inbox,
            shared,
            link: Link::new(Profile::default(), rng),
            began: Time::ZERO,
            ends: None,
            cuts: Vec::new(),
            due: BinaryHeap::new(),
            number: 0,
            buffer: vec![0; PACKET_BYTES_MAX].into(),
            refused: 0,
            overrun: 0,
            running: true,
        }
    }

    fn run(&mut self) -> io::Result<()> {
        // Whether the system grants these shows in the lateness, which is printed with every run.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let _ = crate::sys::go_first();
        self.began = self.parts.clock.now();
        self.step(self.began);
        while self.running {
            self.obey();
            let taken = self.take_in()?;
            self.deliver_due();
            self.publish();
            if taken == 0 && self.running {
                self.wait()?;
            }
        }
        Ok(())
    }

    /// Takes up the step of the course that is due now.
    fn step(&mut self, now: Time) {
        let (step, _, ends) = self.parts.course.at(now.since(self.began));
        let by = self.began.since(Time::ZERO);
        let mut profile = step.profile.clone();
        for span in profile.outages.iter_mut().chain(&mut profile.holds) {
            *span = span.start + by..span.end + by;
        }
        if let Some(trace) = &mut profile.trace {
            trace.begins = self.began;
        }
        self.ends = ends.map(|ends| self.began + ends);
        self.link.set_profile(profile);
        for cut in &self.cuts {
            self.link.cut(cut.clone());
        }
    }

    fn obey(&mut self) {
        if self.ends.is_some_and(|ends| ends <= self.parts.clock.now()) {
            self.step(self.parts.clock.now());
        }
        while let Some(order) = self.inbox.next() {
            let now = self.parts.clock.now();
            match order {
                Order::Follow(course) => {
                    self.parts.course = course;
                    self.began = now;
                    self.step(now);
                }
                Order::Cut(span) => {
                    self.link.cut(now..now + span);
                    self.cuts.retain(|cut| cut.end > now);
                    self.cuts.push(now..now + span);
                    // Packets on their way when the cable is cut do not arrive either.
                    self.due.retain(|Reverse(due)| due.at >= now + span);
                }
                Order::Stop => self.running = false,
            }
        }
    }

    /// Reads all waiting packets; returns their number.
    fn take_in(&mut self) -> io::Result<usize> {
        let mut out = Vec::new();
        for taken in 0..BATCH {
            let length = match rustix::io::read(&*self.parts.from, &mut *self.buffer) {
                Ok(0) | Err(Errno::AGAIN | Errno::INTR) => return Ok(taken),
                Ok(length) => length,
                Err(error) => return Err(error.into()),
            };
            let now = self.parts.clock.now();
            if self.parts.direction == Direction::Up {
                self.record(now, &self.buffer[..length]);
            }
            let packet = &mut self.buffer[..length];
            if let (Direction::Up, Some(nat)) = (self.parts.direction, &self.parts.nat) {
                nat.lock().expect("nobody panics with the translator").outward(packet);
            }
            self.link.pass(now, packet, &mut out);
            for delivery in out.drain(..) {
                if self.due.len() >= DUE_MAX {
                    self.overrun += 1;
                    continue;
                }
                let mut packet = delivery.datagram;
                if delivery.congested {
                    mark(&mut packet);
                }
                self.number += 1;
                self.due.push(Reverse(Due { at: delivery.at, number: self.number, packet }));
            }
        }
        Ok(BATCH)
    }

    fn deliver_due(&mut self) {
        for _ in 0..BATCH {
            let Some(Reverse(next)) = self.due.peek() else { return };
            let now = self.parts.clock.now();
            if next.at > now {
                return;
            }
            self.shared.lateness.add(now.since(next.at));
            let Some(Reverse(mut due)) = self.due.pop() else { return };
            if self.parts.direction == Direction::Down {
                if let Some(nat) = &self.parts.nat {
                    let nat = nat.lock().expect("nobody panics with the translator");
                    if nat.inward(&mut due.packet) == Passage::Barred {
                        self.refused += 1;
                        continue;
                    }
                }
                self.record(now, &due.packet);
            }
            // The receiver of the packet may look at the counters at once.
            self.publish();
            // A device that is down, or a header that was damaged: the packet is lost, as on any network.
            if rustix::io::write(&*self.parts.to, &due.packet).is_err() {
                self.refused += 1;
            }
        }
    }

    /// Sleeps until a packet or an order comes, or one is due; the last of the time it looks all the time,
    /// since no timer is that exact.
    fn wait(&mut self) -> io::Result<()> {
        let now = self.parts.clock.now();
        let due = self.due.peek().map(|Reverse(due)| due.at);
        let next = [due, self.ends].into_iter().flatten().min();
        let left = next.map(|at| at.since(now));
        if left.is_some_and(|left| left <= SPIN) {
            std::hint::spin_loop();
            return Ok(());
        }
        let mut watched = [
            PollFd::from_borrowed_fd(self.parts.from.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.inbox.woken.as_fd(), PollFlags::IN),
        ];
        wait_ready(&mut watched, left.map(|left| left.saturating_sub(SPIN)))?;
        if !watched[1].revents().is_empty() {
            self.inbox.rest();
        }
        Ok(())
    }

    fn record(&self, now: Time, packet: &[u8]) {
        if let Some(tape) = &self.parts.tape {
            tape.lock().expect("nobody panics with the tape").packet(now, packet);
        }
    }

    fn publish(&self) {
        let mut passed = self.shared.passed.lock().expect("nobody panics with the counters");
        passed.link = *self.link.counters();
        passed.refused = self.refused;
        passed.overrun = self.overrun;
    }
}

/// Marks a packet "congestion experienced" if its sender understands that (RFC 3168 §5): ECT becomes CE.
fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= 20 && packet[1] & 3 != 0 => {
            let old = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            amend(packet, 10, old, old | 3);
        }
        // The traffic class of IPv6 ends in the upper half of the second octet.
        Some(6) if packet.len() >= 40 && packet[1] & 0x30 != 0 => packet[1] |= 0x30,
        _ => {}
    }
}

/// The longest packet of a TUN device.
const PACKET_BYTES_MAX: usize = 65_535;
/// Packets read, or delivered, before the other is looked at.
const BATCH: usize = 64;
/// Packets on their way; more are dropped and counted. 100 MB of full ones, 1.5 s at 500 Mbit/s.
const DUE_MAX: usize = 1 << 16;
/// How long before a packet is due the thread stops sleeping: the lateness of a timer here.
const SPIN: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_only_who_understands() {
        let mut packet = vec![0; 20];
        packet[..2].copy_from_slice(&[0x45, 0x02]);
        packet[10..12].copy_from_slice(&0x1234u16.to_be_bytes());
        let sum = |packet: &[u8]| {
            let words = packet.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
            let sum: u32 = words.sum();
            (sum & 0xffff) + (sum >> 16)
        };
        let before = sum(&packet);
        mark(&mut packet);
        assert_eq!((packet[1], sum(&packet)), (0x03, before), "the sum stays right");
        let mut deaf = vec![0x45; 20];
        deaf[1] = 0;
        let same = deaf.clone();
        mark(&mut deaf);
        assert_eq!(deaf, same);
        let mut six = vec![0x60; 40];
        six[1] = 0x10;
        mark(&mut six);
        assert_eq!(six[1], 0x30);
        mark(&mut []);
    }
}
