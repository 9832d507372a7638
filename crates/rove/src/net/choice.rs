//! Which of the server's addresses a client sends to: several are tried until one answers. It knows no socket.

use std::net::SocketAddr;
use std::time::Duration;

use rove_ssp::Time;

use crate::ssh::Candidates;

/// How long to try the host's own addresses alone before those that the other end announces. Three round
/// trips of a bad link: if the name works, strangers with the same private address get no datagram.
pub(super) const NAMED_ALONE: Duration = Duration::from_secs(1);

/// After this much silence every address is tried again: one family may have died, or the network changed to
/// one that has only the other. The port changes after the same time (mosh-protocol.md §2.4).
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Interval and number of datagrams to an address from which the server was not heard, until something
/// changes. The first address gets all: a session must begin at once.
pub(super) const TRY_EACH: Duration = Duration::from_secs(1);
const TRIES_MAX: u32 = 5;

/// After those, another one each time the wait since the last has doubled, from here on: fourteen in 72
/// hours. A network may come back with the other family alone, unnoticed by this machine.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// How many datagrams an address has had since anything changed.
#[derive(Clone, Copy, Debug, Default)]
struct Tries {
    count: u32,
    last: Option<Time>,
}

impl Tries {
    /// Whether one more datagram may go there.
    fn admit(&mut self, now: Time) -> bool {
        let wait = match self.count.checked_sub(TRIES_MAX) {
            Some(more) => TRY_AGAIN.saturating_mul(1_u32.checked_shl(more).unwrap_or(u32::MAX)),
            None => TRY_EACH,
        };
        if self.last.is_some_and(|last| now.since(last) < wait) {
            return false;
        }
        *self = Tries { count: self.count + 1, last: Some(now) };
        true
    }
}

/// The server's addresses, and the one in use.
///
/// Until the server is heard, each datagram goes to several addresses at once: it is sealed once, and a
/// server that gets it twice rejects the later one as a replay. The first address heard stays in use until
/// it falls silent or becomes unreachable.
#[derive(Debug)]
pub struct AddressChoice {
    candidates: Candidates,
    chosen: Option<SocketAddr>,
    /// For each of the candidates.
    tries: Vec<Tries>,
    /// When the server was last heard, or the start.
    heard: Time,
    started: Time,
}

impl AddressChoice {
    /// None is chosen.
    ///
    /// # Panics
    /// Without any address.
    pub fn new(now: Time, candidates: Candidates) -> AddressChoice {
        assert!(!candidates.addresses.is_empty(), "a server has an address");
        let tries = vec![Tries::default(); candidates.addresses.len()];
        AddressChoice { candidates, chosen: None, tries, heard: now, started: now }
    }

    /// The address by which the session knows the server.
    pub fn server(&self) -> SocketAddr {
        self.candidates.addresses[0]
    }

    /// All of them.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.candidates.addresses
    }

    /// Starts over after a change of the network: every address is tried until one answers.
    pub fn start_over(&mut self) {
        self.chosen = None;
        self.tries.fill(Tries::default());
    }

    /// Where the next datagram goes.
    pub fn targets(&mut self, now: Time) -> Vec<SocketAddr> {
        let Candidates { addresses, named } = &self.candidates;
        match self.chosen {
            Some(chosen) if now.since(self.heard) < SILENCE_MAX => vec![chosen],
            None if *named > 0 && now.since(self.started) < NAMED_ALONE => self.race(now, *named),
            Some(_) | None => self.race(now, addresses.len()),
        }
    }

    /// No route took a datagram: where it goes instead, if an address was chosen. The network that led there is gone,
    /// and whichever address leads on is chosen anew.
    pub fn targets_instead(&mut self, now: Time) -> Option<Vec<SocketAddr>> {
        self.chosen?;
        self.start_over();
        Some(self.race(now, self.candidates.addresses.len()))
    }

    /// Of the first `count` addresses: the likeliest, and those that may be tried now.
    fn race(&mut self, now: Time, count: usize) -> Vec<SocketAddr> {
        let likeliest = self.chosen.unwrap_or(self.server());
        let all = self.candidates.addresses.iter().zip(&mut self.tries).take(count);
        let tried =
            all.filter_map(|(to, tries)| (*to == likeliest || tries.admit(now)).then_some(*to));
        tried.collect()
    }

    /// The server's address, as far as an authentic datagram from `from` shows it: anybody on the path can
    /// forge the source, so only addresses of the server's count.
    pub fn server_by(&self, from: SocketAddr) -> SocketAddr {
        match self.candidates.addresses.contains(&from) {
            true => from,
            false => self.chosen.unwrap_or(self.server()),
        }
    }

    /// Notes an authentic datagram from this address. Returns the new destination if that changes.
    pub fn heard(&mut self, now: Time, from: SocketAddr) -> Option<SocketAddr> {
        let silent = now.since(self.heard) >= SILENCE_MAX;
        self.heard = now;
        // From elsewhere it tells nothing of where the server is to be reached.
        if !self.candidates.addresses.contains(&from) {
            return None;
        }
        self.tries.iter_mut().for_each(|tries| tries.count = 0);
        let chooses = self.chosen.is_none() || silent;
        if !chooses || self.chosen == Some(from) {
            return None;
        }
        self.chosen = Some(from);
        Some(from)
    }
}
