//! One simulated session: a client, its user, a server, its program, and the two links between them.

use rove::testing::net::AddressChoice;
use rove::testing::ssh::Candidates;
use rove_session::client::TtyScreen;
use rove_session::predict::{Display, Settings};
use rove_session::server;
use rove_ssp::Timing;
use rove_term::{Dialect, Size};

use crate::address::{Family, NodeId};
use crate::ends::End;
use crate::erasures::Cleared;
use crate::experiments::sender::{Desk, Sender};
use crate::host::{Host, Kind};
use crate::link::Profile;
use crate::local_clock::LocalClock;
use crate::obscured::Watch;
use crate::person::{Errands, User};
use crate::rng::{Chance, Rng};
use crate::shell::{ClientEnd, ServerEnd, Termios};
use crate::tty::{Answers, Tty};
use crate::world::World;

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
    /// How both ends are used.
    pub usage: Usage,
}

/// The user's choices, the terminal, and the machines.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The guesses.
    pub settings: Settings,
    /// Which of the terminal's screens is used.
    pub window: TtyScreen,
    /// `TERM` and `COLORTERM` of the terminal; `None` is one of a few, chosen by the seed.
    pub term: Option<(&'static str, &'static str)>,
    /// How the terminal answers.
    pub answers: Answers,
    /// Whether the server looks at the mode of its program's line.
    pub termios: Termios,
    /// Whether the user starts programs.
    pub errands: Errands,
    /// The clocks of the client's machine and the server's.
    pub clocks: [LocalClock; 2],
    /// The addresses of the server that the client knows.
    pub addresses: Addresses,
    /// How often both machines take rare branches.
    pub branches: Branches,
    /// Whether the user's terminal has in its history what the program clears from its screen.
    pub cleared: Cleared,
}

/// The addresses of a server that its client knows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Addresses {
    /// The one of this family.
    One(Family),
    /// Those of both families, and those that the server will move to.
    Several,
}

/// How often machines take rare branches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Branches {
    /// When their reasons come up.
    AsDue,
    /// Also by choice, at the points of [`rove_ssp::Point`].
    Chosen,
}

impl Usage {
    /// As experiments need it: nothing is guessed, asked or late.
    pub const PLAIN: Usage = Usage {
        settings: Settings::ROVE.with_display(Display::Never),
        window: TtyScreen::Alternate,
        term: None,
        answers: Answers::Never,
        termios: Termios::Ignored,
        errands: Errands::None,
        clocks: [LocalClock::EXACT; 2],
        addresses: Addresses::One(Family::V4),
        branches: Branches::AsDue,
        cleared: Cleared::Lost,
    };
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

/// Makes the stream of chances that only some sessions use another one than the stream of all.
const LATE: u64 = 0x6c61_7465;

/// The same for when a program clears its screen.
const CLEARS: u64 = 0x636c_6561_7273;

impl Session {
    /// Both ends, joined by this path.
    pub fn new(plan: &Plan) -> Session {
        let mut rng = Rng::new(plan.seed);
        let [client_wire, server_wire] = plan.sender.wires(&mut rng);
        let mut world = World::new(rng.next_u64());
        // Every policy limits the rate of screens here, so that the simulations test that as well.
        let screen_rate = Some(server::SCREEN_RATE);
        let sender = Sender { screen_rate, ..plan.sender.clone() };
        let usage = &plan.usage;
        let begins = usage.clocks.map(|clock| clock.local(world.now()));
        let mut server = sender.server(begins[1], server_wire, rng.next_u64());
        let addresses = match usage.addresses {
            Addresses::One(family) => world.next_addresses()[family as usize..][..1].to_vec(),
            Addresses::Several => world.next_addresses(),
        };
        let address = addresses[0];
        let mut host = Host::new(plan.kind, rng.fork());
        if usage.cleared == Cleared::Kept {
            host = host.clearing(Rng::new(plan.seed ^ CLEARS));
        }
        let mut late = Rng::new(plan.seed ^ LATE);
        if usage.branches == Branches::Chosen {
            server.buggify(late.next_u64());
        }
        let server_end = ServerEnd::new(server, host, usage.termios, plan.sender.limits())
            .cleared(usage.cleared);
        let server_id =
            world.join_with(End::Host(Box::new(server_end)), usage.clocks[1], late.fork());
        let chosen = rng.pick(&[
            Dialect::tty("xterm-256color", "truecolor"),
            Dialect::tty("tmux-256color", ""),
            Dialect::tty("screen", ""),
        ]);
        let tty = usage.term.map_or(chosen, |(term, colorterm)| Dialect::tty(term, colorterm));
        let desk = Desk { size: plan.size, tty, window: usage.window, title_prefix: "[rove] " };
        let mut client = sender.client(begins[0], client_wire, address, desk, rng.next_u64());
        client.predict(usage.settings);
        if usage.cleared == Cleared::Kept {
            client.save_erased();
        }
        if usage.branches == Branches::Chosen {
            client.buggify(late.next_u64());
        }
        let user = match plan.typing {
            Typing::Silent => User::silent(),
            Typing::Busy { resizes } => User::new(rng.fork(), begins[0], resizes, usage.errands),
        };
        let slot = plan.sender.client.slots.as_ref().map(|slots| slots.slot);
        let tty = Tty::new(plan.size, usage.answers, late.fork()).saving(tty.saves_erased());
        let client_id = world.join_with(
            End::Person(Box::new(
                ClientEnd::new(
                    client,
                    user,
                    tty,
                    AddressChoice::new(begins[0], Candidates { addresses, named: 1 }),
                    plan.sender.limits(),
                )
                .watched_by(Watch::new(slot, usage.clocks[0].lateness + Timing::ROVE.slot_jitter)),
            )),
            usage.clocks[0],
            late.fork(),
        );
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
