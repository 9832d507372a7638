//! One simulated session: a client, its user, a server and its program, and the two links between them.

use std::time::Duration;

use rove_session::escape::Escape;
use rove_session::{Client, Peer, Server, client, server};
use rove_ssp::{ConnId, Key, MoshWire, NativeWire, Role, SessionSecrets, Time, Timing, Wire};
use rove_term::{Dialect, Size};

use crate::host::{Host, Kind};
use crate::link::Profile;
use crate::rng::{Chance, Rng};
use crate::shell::{ClientEnd, ServerEnd, Shell, User};
use crate::world::{NodeId, World};

/// Both ends in their world.
#[derive(Debug)]
pub struct Session {
    /// Where they are.
    pub world: World<Shell>,
    /// The client's place.
    pub client_id: NodeId,
    /// The server's place.
    pub server_id: NodeId,
}

/// What a session is made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// For all chances, the links' included.
    pub seed: u64,
    /// What each end takes the other for.
    pub peer: Peer,
    /// The program.
    pub kind: Kind,
    /// The user.
    pub typing: Typing,
    /// The user's window.
    pub size: Size,
    /// Each direction between them.
    pub path: Profile,
}

/// Two roves speak the native wire under every second seed, with phases so short that keys move on several
/// times in a minute.
fn wire(plan: &Plan, key: [u8; 16], role: Role) -> Box<dyn Wire> {
    if plan.peer == Peer::Stock || plan.seed.is_multiple_of(2) {
        return Box::new(MoshWire::new(Key::from_bytes(key), role));
    }
    let secret = |end: u8| {
        let mut secret = [end; 32];
        secret[..16].copy_from_slice(&key);
        secret
    };
    let secrets = SessionSecrets::from_bytes(secret(1), secret(2), secret(3));
    let wire = NativeWire::new(&secrets, ConnId::new(plan.seed as u32), role);
    Box::new(wire.with_phases_of(PHASE))
}

/// How long a phase of the native wire's keys lasts in these sessions.
const PHASE: Duration = Duration::from_secs(8);

/// What the user does.
#[derive(Clone, Copy, Debug)]
pub enum Typing {
    /// Nothing by itself.
    Silent,
    /// Types five keys a second; before each the window's size changes with this chance.
    Busy {
        /// That chance.
        resizes: Chance,
    },
}

impl Session {
    /// Both ends, joined by this path.
    pub fn new(plan: &Plan) -> Session {
        let mut rng = Rng::new(plan.seed);
        let mut key = [0; 16];
        key[..8].copy_from_slice(&rng.next_u64().to_le_bytes());
        key[8..].copy_from_slice(&rng.next_u64().to_le_bytes());
        let wire = |role| wire(plan, key, role);
        let mut world = World::new(rng.next_u64());
        let server = Server::new(
            Time::ZERO,
            server::Config {
                wire: wire(Role::Server),
                timing: Timing::MOSH,
                peer: plan.peer,
                size: Size::DEFAULT,
                claim_wait: server::CLAIM_WAIT,
                network_timeout: None,
                screen_rate: Some(server::SCREEN_RATE),
                seed: rng.next_u64(),
            },
        );
        let address = world.next_address();
        let host = Host::new(plan.kind, rng.fork());
        let server_id = world.join(Shell::Server(Box::new(ServerEnd::new(server, host))));
        let tty = rng.pick(&[
            Dialect::tty("xterm-256color", "truecolor"),
            Dialect::tty("tmux-256color", ""),
            Dialect::tty("screen", ""),
        ]);
        let client = Client::new(
            Time::ZERO,
            client::Config {
                wire: wire(Role::Client),
                timing: Timing::MOSH,
                server: address,
                peer: plan.peer,
                size: plan.size,
                tty,
                window: client::Window::Alternate,
                escape: Escape::Default,
                name: "rove",
                title_prefix: "[rove] ".to_owned(),
                seed: rng.next_u64(),
            },
        );
        let user = match plan.typing {
            Typing::Silent => User::silent(),
            Typing::Busy { resizes } => User::new(rng.fork(), resizes),
        };
        let client_id =
            world.join(Shell::Client(Box::new(ClientEnd::new(client, user, plan.size, tty))));
        world.connect(client_id, server_id, plan.path.clone());
        world.connect(server_id, client_id, plan.path.clone());
        Session { world, client_id, server_id }
    }

    /// The person's end.
    pub fn client(&self) -> &ClientEnd {
        match self.world.node(self.client_id) {
            Shell::Client(end) => end,
            Shell::Server(_) => unreachable!("the client joined as a client"),
        }
    }

    /// The program's end.
    pub fn server(&self) -> &ServerEnd {
        match self.world.node(self.server_id) {
            Shell::Server(end) => end,
            Shell::Client(_) => unreachable!("the server joined as a server"),
        }
    }

    /// The person's end, to act on.
    pub fn client_mut(&mut self) -> &mut ClientEnd {
        match self.world.node_mut(self.client_id) {
            Shell::Client(end) => end,
            Shell::Server(_) => unreachable!("the client joined as a client"),
        }
    }

    /// The program's end, to act on.
    pub fn server_mut(&mut self) -> &mut ServerEnd {
        match self.world.node_mut(self.server_id) {
            Shell::Server(end) => end,
            Shell::Client(_) => unreachable!("the server joined as a server"),
        }
    }
}
