//! [`link`](crate::link) in real time: a UDP relay on loopback for any program, without privileges. Clients send to
//! the relay's address, the relay to the server's. Each client address is a flow with an upstream socket of its
//! own, so that the server sees a separate address for each client.
//!
//! It carries octets and knows no protocol. It does not carry ECN marks: a relay in user space would need ancillary
//! data for them, and no test in real time uses them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rove_ssp::Time;
use rustix::event::{PollFd, PollFlags};

use crate::clock::Clock;
use crate::link::{Counters, Delivery, Link, Profile};
use crate::process::wait_ready;
use crate::rng::Rng;
use crate::worker::{Inbox, Worker};

/// How a relay starts.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where clients send to; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// The server; what arrives before it is known is dropped.
    pub target: Option<SocketAddr>,
    /// From client to server.
    pub up: Profile,
    /// From server to client.
    pub down: Profile,
    /// For all chances of both directions.
    pub seed: u64,
}

/// A relay that runs in a thread of its own until it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    worker: Worker<Command>,
    report: Arc<Mutex<Report>>,
}

/// The counts of a relay so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// From client to server.
    pub up: Counters,
    /// From server to client.
    pub down: Counters,
    /// Client addresses seen.
    pub flows: u64,
    /// The longest time a datagram was delivered after it was due: the machine was busy.
    pub latest: Duration,
    /// Datagrams delivered more than [`LATE`] after they were due.
    pub late: u64,
}

impl Relay {
    /// Binds and starts to relay.
    pub fn start(config: Config) -> io::Result<Relay> {
        let listener = UdpSocket::bind(config.listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let report = Arc::new(Mutex::new(Report::default()));
        let published = Arc::clone(&report);
        let worker = Worker::start(
            format!("relay {address}"),
            || Command::Stop,
            |inbox| Links::new(config, listener, inbox, published).run(),
        )?;
        Ok(Relay { address, worker, report })
    }

    /// Where clients send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends to this server from now on.
    pub fn set_target(&self, target: SocketAddr) {
        self.worker.order(Command::Target(target));
    }

    /// Replaces the profiles of both directions; datagrams on their way are not affected.
    pub fn set_profiles(&self, up: Profile, down: Profile) {
        self.worker.order(Command::Profiles(Box::new((up, down))));
    }

    /// Lets nothing pass for this span.
    pub fn blackout(&self, span: Duration) {
        self.worker.order(Command::Blackout(span));
    }

    /// Gives every client a new address as the server sees it. Datagrams from the server to the old ones are lost,
    /// as they are when a laptop moves to another network.
    pub fn roam(&self) {
        self.worker.order(Command::Roam);
    }

    /// Sends a copy of each datagram from now on: those going up as they come in, those going down as they
    /// are delivered.
    pub fn tap(&self, copies: Sender<(Direction, Vec<u8>)>) {
        self.worker.order(Command::Tap(copies));
    }

    /// The counts so far.
    pub fn report(&self) -> Report {
        *self.report.lock().expect("the relay never panics with the report in hand")
    }

    /// Stops it and hands back the error that stopped it before, if one did.
    pub fn stop(mut self) -> io::Result<()> {
        self.worker.stop()
    }
}

#[derive(Debug)]
enum Command {
    Target(SocketAddr),
    Profiles(Box<(Profile, Profile)>),
    Blackout(Duration),
    Roam,
    Tap(Sender<(Direction, Vec<u8>)>),
    Stop,
}

/// One client address.
struct Flow {
    client: SocketAddr,
    upstream: UdpSocket,
    heard: Time,
}

/// A direction.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Direction {
    /// From client to server.
    Up,
    /// From server to client.
    Down,
}

/// A datagram on its way; the number keeps those due at one instant in order.
#[derive(Eq, Ord, PartialEq, PartialOrd)]
struct Due {
    at: Time,
    number: u64,
    direction: Direction,
    flow: u64,
    datagram: Vec<u8>,
}

/// Both directions, in the relay's thread.
struct Links {
    clock: Clock,
    target: Option<SocketAddr>,
    up: Link,
    down: Link,
    listener: UdpSocket,
    inbox: Inbox<Command>,
    flows: BTreeMap<u64, Flow>,
    flow_number: u64,
    due: BinaryHeap<Reverse<Due>>,
    due_number: u64,
    /// The receiver of copies. Its reader limits it: one that does not read is a lab command that has ended.
    tap: Option<Sender<(Direction, Vec<u8>)>>,
    report: Arc<Mutex<Report>>,
    latest: Duration,
    late: u64,
    running: bool,
}

impl Links {
    fn new(
        config: Config,
        listener: UdpSocket,
        inbox: Inbox<Command>,
        report: Arc<Mutex<Report>>,
    ) -> Links {
        let mut rng = Rng::new(config.seed);
        Links {
            clock: Clock::start(),
            target: config.target,
            up: Link::new(config.up, rng.fork()),
            down: Link::new(config.down, rng.fork()),
            listener,
            inbox,
            flows: BTreeMap::new(),
            flow_number: 0,
            due: BinaryHeap::new(),
            due_number: 0,
            tap: None,
            report,
            latest: Duration::ZERO,
            late: 0,
            running: true,
        }
    }

    fn run(&mut self) -> io::Result<()> {
        while self.running {
            self.deliver_due();
            self.publish();
            self.wait()?;
            self.obey()?;
            self.receive_up()?;
            self.receive_down();
        }
        Ok(())
    }

    /// Sleeps until a socket is readable, a command came, or a datagram is due.
    fn wait(&self) -> io::Result<()> {
        let timeout = self.due.peek().map(|Reverse(due)| due.at.since(self.clock.now()));
        let mut watched = vec![
            PollFd::from_borrowed_fd(self.inbox.woken.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
        ];
        for flow in self.flows.values() {
            watched.push(PollFd::from_borrowed_fd(flow.upstream.as_fd(), PollFlags::IN));
        }
        wait_ready(&mut watched, timeout)?;
        Ok(())
    }

    fn obey(&mut self) -> io::Result<()> {
        self.inbox.rest();
        while let Some(command) = self.inbox.next() {
            match command {
                Command::Target(target) => self.target = Some(target),
                Command::Profiles(profiles) => {
                    self.up.set_profile(profiles.0);
                    self.down.set_profile(profiles.1);
                }
                Command::Blackout(span) => {
                    let now = self.clock.now();
                    self.up.cut(now..now + span);
                    self.down.cut(now..now + span);
                    // Datagrams on their way when the cable is cut do not arrive either.
                    self.due.retain(|Reverse(due)| due.at >= now + span);
                }
                Command::Roam => {
                    for flow in self.flows.values_mut() {
                        flow.upstream = upstream_for(self.target.unwrap_or(flow.client))?;
                    }
                }
                Command::Tap(copies) => self.tap = Some(copies),
                Command::Stop => self.running = false,
            }
        }
        Ok(())
    }

    fn receive_up(&mut self) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        for _ in 0..TURN_DATAGRAMS_MAX {
            let Ok((length, client)) = self.listener.recv_from(&mut buffer) else { break };
            let now = self.clock.now();
            let Some(target) = self.target else { continue };
            let known = self.flows.iter_mut().find(|(_, flow)| flow.client == client);
            let number = match known {
                Some((number, flow)) => {
                    flow.heard = now;
                    *number
                }
                None => self.open_flow(now, client, target)?,
            };
            self.copy(Direction::Up, &buffer[..length]);
            let mut out = Vec::new();
            self.up.pass(now, &buffer[..length], &mut out);
            self.file(Direction::Up, number, out);
        }
        Ok(())
    }

    fn open_flow(&mut self, now: Time, client: SocketAddr, target: SocketAddr) -> io::Result<u64> {
        if self.flows.len() >= FLOWS_MAX {
            let longest_silent = self.flows.iter().min_by_key(|(_, flow)| flow.heard);
            if let Some(number) = longest_silent.map(|(number, _)| *number) {
                self.flows.remove(&number);
            }
        }
        self.flow_number += 1;
        let flow = Flow { client, upstream: upstream_for(target)?, heard: now };
        self.flows.insert(self.flow_number, flow);
        Ok(self.flow_number)
    }

    fn receive_down(&mut self) {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        let numbers: Vec<u64> = self.flows.keys().copied().collect();
        for number in numbers {
            for _ in 0..TURN_DATAGRAMS_MAX {
                let flow = &self.flows[&number];
                // An error is the ICMP answer to a server that is gone: the datagram is lost, that is all.
                let Ok((length, from)) = flow.upstream.recv_from(&mut buffer) else { break };
                if Some(from) != self.target {
                    continue;
                }
                let mut out = Vec::new();
                self.down.pass(self.clock.now(), &buffer[..length], &mut out);
                self.file(Direction::Down, number, out);
            }
        }
    }

    fn file(&mut self, direction: Direction, flow: u64, deliveries: Vec<Delivery>) {
        for Delivery { at, datagram, .. } in deliveries {
            if self.due.len() >= DUE_MAX {
                return;
            }
            self.due_number += 1;
            self.due.push(Reverse(Due { at, number: self.due_number, direction, flow, datagram }));
        }
    }

    fn deliver_due(&mut self) {
        while let Some(Reverse(next)) = self.due.peek() {
            let now = self.clock.now();
            if next.at > now {
                break;
            }
            let lateness = now.since(next.at);
            self.latest = self.latest.max(lateness);
            self.late += u64::from(lateness > LATE);
            let Some(Reverse(due)) = self.due.pop() else { break };
            if due.direction == Direction::Down {
                self.copy(Direction::Down, &due.datagram);
            }
            let Some(flow) = self.flows.get(&due.flow) else { continue };
            // A full socket buffer or an unreachable port loses the datagram, as a network would.
            let _ = match (due.direction, self.target) {
                (Direction::Up, Some(target)) => flow.upstream.send_to(&due.datagram, target),
                (Direction::Up, None) => continue,
                (Direction::Down, _) => self.listener.send_to(&due.datagram, flow.client),
            };
        }
    }

    fn copy(&self, direction: Direction, datagram: &[u8]) {
        if let Some(tap) = &self.tap {
            // The receiver is gone.
            let _ = tap.send((direction, datagram.to_vec()));
        }
    }

    fn publish(&self) {
        let mut report = self.report.lock().expect("nobody panics with the report in hand");
        *report = Report {
            up: *self.up.counters(),
            down: *self.down.counters(),
            flows: self.flow_number,
            latest: self.latest,
            late: self.late,
        };
    }
}

fn upstream_for(target: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match target {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0u16; 8], 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// How late a delivery may be without an effect on measurements in milliseconds.
pub(crate) const LATE: Duration = Duration::from_millis(1);

/// The longest UDP payload over IPv4 (RFC 768 and 791); nothing is cut here.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Client addresses at one time; the one silent for longest makes room for the next.
const FLOWS_MAX: usize = 64;

/// Datagrams on their way; more are dropped. 64 MB of full-sized ones, two seconds at 250 Mbit/s.
const DUE_MAX: usize = 50_000;

/// Datagrams read from one socket before the others have their turn.
const TURN_DATAGRAMS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);
    const LOOPBACK: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

    struct Bench {
        relay: Relay,
        client: UdpSocket,
        server: UdpSocket,
    }

    fn bench(up: Profile, down: Profile) -> Bench {
        let server = UdpSocket::bind(SocketAddr::from(LOOPBACK)).unwrap();
        let client = UdpSocket::bind(SocketAddr::from(LOOPBACK)).unwrap();
        server.set_read_timeout(Some(LIMIT)).unwrap();
        client.set_read_timeout(Some(LIMIT)).unwrap();
        let target = Some(server.local_addr().unwrap());
        let config = Config { listen: LOOPBACK.into(), target, up, down, seed: 1 };
        let relay = Relay::start(config).unwrap();
        client.connect(relay.address()).unwrap();
        Bench { relay, client, server }
    }

    fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
        let mut buffer = [0; 2_048];
        let (length, from) = socket.recv_from(&mut buffer).unwrap();
        (buffer[..length].to_vec(), from)
    }

    #[test]
    fn carries_both_ways_and_delays() {
        let delay = Duration::from_millis(30);
        let Bench { relay, client, server } = bench(Profile::delay(delay), Profile::delay(delay));
        let clock = Clock::start();
        client.send(b"question").unwrap();
        let (question, from) = receive(&server);
        assert_eq!(question, b"question");
        server.send_to(b"answer", from).unwrap();
        assert_eq!(receive(&client).0, b"answer");
        assert!(clock.elapsed() >= 2 * delay);
        let report = relay.report();
        assert_eq!((report.up.offered, report.down.offered, report.flows), (1, 1, 1));
        relay.stop().unwrap();
    }

    #[test]
    fn each_client_is_a_flow_of_its_own() {
        let Bench { relay, client, server } = bench(Profile::default(), Profile::default());
        let other = UdpSocket::bind(SocketAddr::from(LOOPBACK)).unwrap();
        other.set_read_timeout(Some(LIMIT)).unwrap();
        other.connect(relay.address()).unwrap();
        client.send(b"a").unwrap();
        let (_, first) = receive(&server);
        other.send(b"b").unwrap();
        let (_, second) = receive(&server);
        assert_ne!(first, second);
        server.send_to(b"to b", second).unwrap();
        server.send_to(b"to a", first).unwrap();
        assert_eq!(receive(&client).0, b"to a");
        assert_eq!(receive(&other).0, b"to b");
    }

    #[test]
    fn roaming_changes_the_address_that_the_server_sees() {
        let Bench { relay, client, server } = bench(Profile::default(), Profile::default());
        client.send(b"here").unwrap();
        let (_, old) = receive(&server);
        relay.roam();
        client.send(b"there").unwrap();
        let (_, new) = receive(&server);
        assert_ne!(old, new);
        server.send_to(b"lost", old).unwrap();
        server.send_to(b"found", new).unwrap();
        assert_eq!(receive(&client).0, b"found");
    }

    #[test]
    fn a_blackout_ends() {
        let Bench { relay, client, server } = bench(Profile::default(), Profile::default());
        let clock = Clock::start();
        let span = Duration::from_secs(2);
        relay.blackout(span);
        server.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut buffer = [0; 16];
        while server.recv(&mut buffer).is_err() {
            client.send(b"knock").unwrap();
            assert!(clock.elapsed() < LIMIT);
        }
        assert!(clock.elapsed() >= span);
        assert!(relay.report().up.cut > 0);
    }
}
