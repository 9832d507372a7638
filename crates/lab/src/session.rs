//! One simulated session: a client, its user, a server, its program, and the two links between them.

use rove_session::client::TtyScreen;
use rove_session::server;
use rove_term::{Dialect, Size};

use crate::ends::End;
use crate::experiments::sender::{Desk, Sender};
use crate::host::{Host, Kind};
use crate::link::Profile;
use crate::rng::{Chance, Rng};
use crate::shell::{ClientEnd, ServerEnd, User};
use crate::world::{NodeId, World};

/// Both ends in their world.
#[derive(Debug)]
pub struct Session {
    /// Where they are.
    pub world: World<End<ClientEnd, ServerEnd>>,
    /// The client's place.
    pub client_id: NodeId,
    /// The server's place.
    pub server_id: NodeId,
}

/// The parts of a session.
#[derive(Clone, Debug)]
pub struct Plan {
    /// For all chances, the links' included.
    pub seed: u64,
    /// The send policies, and the wire.
    pub sender: Sender,
    /// The program.
    pub kind: Kind,
    /// The user.
    pub typing: Typing,
    /// The user's window.
    pub size: Size,
    /// Each direction between them.
    pub path: Profile,
}

/// The user's behaviour.
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
        let [client_wire, server_wire] = plan.sender.wires(&mut rng);
        let mut world = World::new(rng.next_u64());
        // Every policy limits the rate of screens here, so that the simulations test that as well.
        let screen_rate = Some(server::SCREEN_RATE);
        let sender = Sender { screen_rate, ..plan.sender.clone() };
        let server = sender.server(server_wire, rng.next_u64());
        let address = world.next_address();
        let host = Host::new(plan.kind, rng.fork());
        let server_id =
            world.join(End::Host(Box::new(ServerEnd::new(server, host, plan.sender.limits()))));
        let tty = rng.pick(&[
            Dialect::tty("xterm-256color", "truecolor"),
            Dialect::tty("tmux-256color", ""),
            Dialect::tty("screen", ""),
        ]);
        let window = TtyScreen::Alternate;
        let desk = Desk { size: plan.size, tty, window, title_prefix: "[rove] " };
        let client = sender.client(client_wire, address, desk, rng.next_u64());
        let user = match plan.typing {
            Typing::Silent => User::silent(),
            Typing::Busy { resizes } => User::new(rng.fork(), resizes),
        };
        let client_id = world.join(End::Person(Box::new(ClientEnd::new(
            client,
            user,
            plan.size,
            tty,
            plan.sender.limits(),
        ))));
        world.connect(client_id, server_id, plan.path.clone());
        world.connect(server_id, client_id, plan.path.clone());
        Session { world, client_id, server_id }
    }

    /// The person's end.
    pub fn client(&self) -> &ClientEnd {
        self.world.node(self.client_id).person()
    }

    /// The program's end.
    pub fn server(&self) -> &ServerEnd {
        self.world.node(self.server_id).host()
    }

    /// The person's end, to act on.
    pub fn client_mut(&mut self) -> &mut ClientEnd {
        self.world.node_mut(self.client_id).person_mut()
    }

    /// The program's end, to act on.
    pub fn server_mut(&mut self) -> &mut ServerEnd {
        self.world.node_mut(self.server_id).host_mut()
    }
}
