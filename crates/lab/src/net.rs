//! Emulated links for any program in real time: two network namespaces, joined by TUN devices through the same
//! [`link`](crate::link) as the simulator.
//!
//! It needs root or a user namespace. It changes nothing outside the two namespaces, and they vanish with the last
//! program in them.

pub(crate) mod check;
pub(crate) mod command;
pub(crate) mod forwarder;
pub(crate) mod lateness;
pub(crate) mod nat;
pub(crate) mod scenario;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rove_ssp::Time;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::capture::Tape;
use crate::clock::Clock;
use crate::relay::Direction;
use crate::rng::Rng;
use crate::run::limited;
use crate::sys;
use forwarder::{Forwarder, Parts, Passed};
use nat::Nat;
use scenario::{Happening, Middle, Scenario};

/// Two networks and the path between them. The path ends when it is dropped.
#[derive(Debug)]
pub struct Net {
    near: Arc<OwnedFd>,
    far: Arc<OwnedFd>,
    up: Forwarder,
    down: Forwarder,
    nat: Option<Arc<Mutex<Nat>>>,
    tape: Option<Arc<Mutex<Tape>>>,
    clock: Clock,
    /// How often the near end has got a new address.
    roamed: Mutex<u8>,
}

/// One of the two networks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// Where the person is.
    Near,
    /// Where the server is.
    Far,
}

/// The address of the far end.
pub const FAR: Ipv4Addr = Ipv4Addr::new(10, 99, 2, 1);
/// The first address of the near end; each change of address adds one to its last part.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(10, 99, 1, 1);
/// The near end's address as the far end sees it behind a NAT.
pub const OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 99, 3, 1);

impl Net {
    /// Makes both networks and starts the path. Packets that pass the near end are written to `tape`, if there is
    /// one.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] if the system does not allow it, `NotFound` if there is no ip(8); the message
    /// says what is missing.
    pub fn open(scenario: &Scenario, tape: Option<&Path>) -> io::Result<Net> {
        let (near, near_tun) = network(End::Near)?;
        let (far, far_tun) = network(End::Far)?;
        let (near_tun, far_tun) = (Arc::new(near_tun), Arc::new(far_tun));
        let tape = tape.map(Tape::create).transpose()?.map(|tape| Arc::new(Mutex::new(tape)));
        let nat = match scenario.middle {
            Middle::Plain => None,
            Middle::Nat => Some(Arc::new(Mutex::new(Nat::new(OUTSIDE)))),
        };
        let clock = Clock::start();
        let mut rng = Rng::new(scenario.seed);
        let mut start = |direction| {
            let (from, to, course) = match direction {
                Direction::Up => (&near_tun, &far_tun, &scenario.up),
                Direction::Down => (&far_tun, &near_tun, &scenario.down),
            };
            Forwarder::start(Parts {
                direction,
                from: Arc::clone(from),
                to: Arc::clone(to),
                clock,
                course: course.clone(),
                rng: rng.fork(),
                nat: nat.clone(),
                tape: tape.clone(),
            })
        };
        let (up, down) = (start(Direction::Up)?, start(Direction::Down)?);
        Ok(Net { near, far, up, down, nat, tape, clock, roamed: Mutex::new(0) })
    }

    /// Lets the command start in one of the networks.
    pub fn place(&self, end: End, command: &mut Command) {
        let (here, there) = match end {
            End::Near => (self.near_address(), FAR),
            End::Far => (FAR, self.near_address()),
        };
        command.env("LINK_HERE", here.to_string()).env("LINK_THERE", there.to_string());
        sys::start_in_network(command, Arc::clone(self.network(end)));
    }

    /// Runs a function in one of the networks, on a thread that ends with it. Sockets that it opens stay there.
    ///
    /// # Errors
    /// The function's, or that no thread can be started.
    pub fn within<T: Send + 'static>(
        &self,
        end: End,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let network = Arc::clone(self.network(end));
        in_thread(move || {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        })
    }

    /// Follows this scenario from now on, both ways, from its beginning; packets on their way are not affected.
    pub fn follow(&self, scenario: &Scenario) {
        self.up.follow(scenario.up.clone());
        self.down.follow(scenario.down.clone());
    }

    /// Lets nothing pass for this span.
    pub fn cut(&self, span: Duration) {
        self.up.cut(span);
        self.down.cut(span);
    }

    /// Lets something happen that a scenario knows.
    ///
    /// # Errors
    /// If the address cannot be changed.
    pub fn happen(&self, what: Happening) -> io::Result<()> {
        match (what, &self.nat) {
            (Happening::Roam, _) => self.roam(),
            (Happening::Rebind, Some(nat)) => {
                nat.lock().expect("nobody panics with the translator").rebind();
                Ok(())
            }
            (Happening::Rebind, None) => Err(io::Error::other("no translator stands between")),
        }
    }

    /// Whether datagrams to and from ports of servers pass from now on; at the near end they are dropped.
    ///
    /// # Errors
    /// `NotFound` if there is no nft(8).
    pub fn let_udp(&self, passes: bool) -> io::Result<()> {
        let rules = format!("flush ruleset\n{}", if passes { "" } else { DROP_UDP });
        self.within(End::Near, move || fed("nft", "nftables", &["-f", "-"], &rules))
    }

    /// Gives the near end another address, and takes the old one away.
    fn roam(&self) -> io::Result<()> {
        let (old, new) = {
            let mut roamed = self.roamed.lock().expect("nobody panics with it");
            let old = near_address(*roamed);
            *roamed = if *roamed >= ROAMS_MAX { 0 } else { *roamed + 1 };
            (old, near_address(*roamed))
        };
        self.within(End::Near, move || {
            ip(&format!(
                "addr add {new}/32 dev near\nroute replace default dev near src {new}\n\
                 addr del {old}/32 dev near\n"
            ))
        })
    }

    /// The network of an end, for programs that enter it by themselves.
    pub fn network(&self, end: End) -> &Arc<OwnedFd> {
        match end {
            End::Near => &self.near,
            End::Far => &self.far,
        }
    }

    /// The address of the near end.
    pub fn near_address(&self) -> Ipv4Addr {
        near_address(*self.roamed.lock().expect("nobody panics with it"))
    }

    /// The clock that the path runs by.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The counts of each direction so far, up first.
    pub fn passed(&self) -> [Passed; 2] {
        [self.up.passed(), self.down.passed()]
    }

    /// How late packets were delivered, both ways.
    pub fn late(&self) -> lateness::Late {
        let [up, down] = self.passed();
        up.late.and(&down.late)
    }

    /// Now, by the path's clock.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// Writes what the tape has so far.
    ///
    /// # Errors
    /// If it could not be written.
    pub(crate) fn flush_tape(&self) -> io::Result<()> {
        match &self.tape {
            Some(tape) => tape.lock().expect("nobody panics with the tape").finish(),
            None => Ok(()),
        }
    }

    /// Ends the path and closes the tape.
    ///
    /// # Errors
    /// With what stopped a direction before, or a tape that could not be written.
    pub fn close(mut self) -> io::Result<()> {
        self.up.stop()?;
        self.down.stop()?;
        self.flush_tape()
    }
}

/// The counts of a path, as text.
pub(crate) fn describe([up, down]: &[Passed; 2]) -> String {
    let mut out = String::new();
    for (name, passed) in [("up", up), ("down", down)] {
        let link = &passed.link;
        let _ = write!(
            out,
            "{name}: {} packets ({} octets) in, {} ({}) out",
            link.offered, link.offered_bytes, link.delivered, link.delivered_bytes
        );
        for (count, what) in [
            (link.lost, "lost"),
            (link.overflowed, "dropped at a full queue"),
            (link.cut, "cut"),
            (link.oversized, "too long"),
            (link.duplicated, "doubled"),
            (link.reordered, "held back"),
            (link.corrupted, "damaged"),
            (passed.refused, "refused by the far device"),
            (passed.overrun, "dropped by the lab itself"),
        ] {
            if count > 0 {
                let _ = write!(out, ", {count} {what}");
            }
        }
        let _ = writeln!(out, "\n{name}: {}", passed.late);
    }
    out
}

fn near_address(roamed: u8) -> Ipv4Addr {
    let [a, b, c, d] = NEAR.octets();
    Ipv4Addr::new(a, b, c, d + roamed)
}

/// A network with a TUN device that is named as its end.
fn network(end: End) -> io::Result<(Arc<OwnedFd>, OwnedFd)> {
    let (name, address) = match end {
        End::Near => ("near", NEAR),
        End::Far => ("far", FAR),
    };
    in_thread(move || {
        sys::leave_network().map_err(|error| {
            let what =
                "an emulated link needs root, or a user namespace (`unshare -Ur rove-lab ...`)";
            io::Error::new(io::ErrorKind::Unsupported, format!("{what}: {error}"))
        })?;
        let network = File::open("/proc/thread-self/ns/net")?;
        let tun = sys::open_tun(name).map_err(|error| {
            let what =
                "an emulated link needs a TUN device (/dev/net/tun, and the right to open it)";
            io::Error::new(io::ErrorKind::Unsupported, format!("{what}: {error}"))
        })?;
        // Neighbour discovery would be counted among the packets: off, and where /proc/sys is not ours without
        // the address that it begins with. A kernel without IPv6 knows neither.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1");
        let _ = ip(&format!("link set dev {name} addrgenmode none\n"));
        ip(&format!(
            "link set lo up\naddr add {address}/32 dev {name}\n\
             link set {name} up mtu 1500 txqueuelen {QUEUE_PACKETS}\nroute add default dev {name}\n"
        ))?;
        Ok((Arc::new(OwnedFd::from(network)), tun))
    })
}

/// Runs lines of ip(8) in the calling thread's network.
fn ip(lines: &str) -> io::Result<()> {
    fed("ip", "iproute2", &["-batch", "-"], lines)
}

/// Runs a program of a Debian package that reads these lines, in the calling thread's network.
fn fed(program: &str, package: &str, words: &[&str], lines: &str) -> io::Result<()> {
    let mut command = limited(program, TOOL_SECONDS_MAX);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // One that ends before it has read them says why below.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => written,
        Some(127) => {
            let what = format!("{program} (Debian package {package}): {said}");
            Err(io::Error::new(io::ErrorKind::NotFound, what))
        }
        _ => Err(io::Error::other(format!("{program}: {}: {said}", output.status))),
    }
}

fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = std::thread::Builder::new().name("network".into()).spawn(work)?;
    thread.join().map_err(|_| io::Error::other("a thread in a network panicked"))?
}

/// Packets that wait in a device until they are read: as many as may come while its thread is not run.
const QUEUE_PACKETS: u32 = 10_000;
/// How long ip(8) or nft(8) may take: they only ask the kernel.
const TOOL_SECONDS_MAX: u32 = 20;
/// Rules of nft(8) that drop what goes to or comes from the ports of mosh's and rove's servers.
const DROP_UDP: &str = "table inet rove {
    chain out { type filter hook output priority 0; udp dport 60001-60999 drop; udp sport 60001-60999 drop; }
    chain in { type filter hook input priority 0; udp sport 60001-60999 drop; udp dport 60001-60999 drop; }
}
";
/// Addresses of the near end: as many as its network holds.
const ROAMS_MAX: u8 = 250;
