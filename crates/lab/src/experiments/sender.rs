//! The send policies that experiments compare and that simulations test.

use std::net::SocketAddr;
use std::time::Duration;

use rove_session::client::Obscure;
use rove_session::escape::Escape;
use rove_session::{Client, Peer, Server, client, server};
use rove_ssp::{ConnId, Key, MoshWire, NativeWire, Role, SessionSecrets, Time, Timing, Wire};
use rove_term::{Dialect, Size};

use crate::rng::Rng;

/// A send policy, and the wire it uses.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Its name in tables.
    pub name: &'static str,
    /// The client's constants.
    pub client: Timing,
    /// The server's.
    pub server: Timing,
    /// The envelope.
    pub wire: WireKind,
    /// The kind of peer that each end expects.
    pub peer: Peer,
    /// The rate that screens may use; `None` is no limit.
    pub screen_rate: Option<u64>,
    /// What the client keeps a listener from learning.
    pub obscure: Obscure,
}

/// Limits on an end's memory, by kind.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// States sent.
    pub sent_states: usize,
    /// States received, less one.
    pub received_states: usize,
    /// Half the octets in them.
    pub received_bytes: usize,
    /// Instructions that miss fragments.
    pub assemblies: usize,
}

/// The dialect of the client's terminal.
#[derive(Clone, Copy, Debug)]
pub struct Desk {
    /// The window.
    pub size: Size,
    /// The terminal.
    pub tty: Dialect,
    /// The screen of the terminal that the session takes.
    pub window: client::TtyScreen,
    /// The prefix of window titles.
    pub title_prefix: &'static str,
}

/// Which envelope.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireKind {
    /// Stock mosh's.
    Mosh,
    /// Ours.
    Native,
    /// Ours, with phases so short that keys move on several times in a minute.
    NativeInHaste,
}

impl Sender {
    /// Stock mosh 1.4.0.
    pub fn stock() -> Sender {
        Sender {
            name: "stock",
            client: Timing::MOSH,
            server: Timing::MOSH,
            wire: WireKind::Mosh,
            peer: Peer::Stock,
            screen_rate: None,
            obscure: Obscure::Never,
        }
    }

    /// Ours, between two roves.
    pub fn rove() -> Sender {
        Sender {
            name: "rove",
            peer: Peer::Rove,
            screen_rate: Some(server::SCREEN_RATE),
            ..Sender::stock().with("rove", Timing::ROVE)
        }
    }

    /// Ours, between two roves, on our wire.
    pub fn native() -> Sender {
        Sender { name: "rove native", wire: WireKind::Native, ..Sender::rove() }
    }

    /// Our policy at a server whose client is stock mosh's.
    pub fn for_stock_client() -> Sender {
        Sender { name: "rove to a stock client", server: Timing::ROVE_TO_STOCK, ..Sender::stock() }
    }

    /// Our policy at a client whose server is stock mosh's.
    pub fn for_stock_server() -> Sender {
        Sender { name: "rove to a stock server", client: Timing::ROVE_TO_STOCK, ..Sender::stock() }
    }

    /// Ours where each datagram costs.
    pub fn metered() -> Sender {
        Sender::native().with("metered", Timing::METERED)
    }

    /// Whether its server says nothing by itself that costs octets.
    pub(crate) fn is_metered(&self) -> bool {
        self.server.send_policy == Timing::METERED.send_policy
    }

    /// Limits on an end's memory.
    pub fn limits(&self) -> Limits {
        Limits {
            sent_states: self.client.sent_states_max.max(self.server.sent_states_max),
            received_states: self.client.received_states_max,
            received_bytes: self.client.received_bytes_max,
            assemblies: match self.wire {
                WireKind::Mosh => 1,
                WireKind::Native | WireKind::NativeInHaste => 64,
            },
        }
    }

    /// The client's envelope and the server's, with keys from `rng`.
    pub fn wires(&self, rng: &mut Rng) -> [Box<dyn Wire>; 2] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        key[8..].copy_from_slice(&rng.next_u64().to_le_bytes());
        [Role::Client, Role::Server].map(|role| -> Box<dyn Wire> {
            match self.wire {
                WireKind::Mosh => Box::new(MoshWire::new(Key::from_bytes(key), role)),
                WireKind::Native | WireKind::NativeInHaste => {
                    let secret = |n: u8| {
                        let mut octets = [n; 32];
                        octets[..16].copy_from_slice(&key);
                        octets
                    };
                    let secrets = SessionSecrets::from_bytes(secret(1), secret(2), secret(3));
                    let wire = NativeWire::new(&secrets, ConnId::new(1), role);
                    match self.wire {
                        WireKind::NativeInHaste => Box::new(wire.with_phases_of(PHASE)),
                        WireKind::Mosh | WireKind::Native => Box::new(wire),
                    }
                }
            }
        })
    }

    /// The server's machine, which begins now.
    pub fn server(&self, now: Time, wire: Box<dyn Wire>, seed: u64) -> Server {
        let config = server::Config {
            wire,
            timing: self.server.clone(),
            peer: self.peer,
            size: Size::DEFAULT,
            claim_wait: server::CLAIM_WAIT,
            network_timeout: None,
            screen_rate: self.screen_rate,
            seed,
        };
        Server::new(now, config)
    }

    /// The client's machine, which begins now, for a server at this address.
    pub fn client(
        &self,
        now: Time,
        wire: Box<dyn Wire>,
        server: SocketAddr,
        user: Desk,
        seed: u64,
    ) -> Client {
        let config = client::Config {
            wire,
            timing: self.client.clone(),
            server,
            peer: self.peer,
            size: user.size,
            tty: user.tty,
            window: user.window,
            escape: Escape::Default,
            name: "rove",
            title_prefix: user.title_prefix.to_owned(),
            obscure: self.obscure,
            history_lines: rove_session::past::LINES_MAX,
            seed,
        };
        Client::new(now, config)
    }

    /// The same with other constants at both ends.
    pub fn with(self, name: &'static str, timing: Timing) -> Sender {
        Sender { name, client: timing.clone(), server: timing, ..self }
    }
}

/// How long a phase of keys lasts in haste.
const PHASE: Duration = Duration::from_secs(8);
