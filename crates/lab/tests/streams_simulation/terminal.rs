//! Both ends of a session with a terminal, as the program's drivers run them, and its streams beside.

use std::sync::{Arc, Mutex};

use rove_lab::testing::rng::Rng;
use rove_session::client::{self, Obscure, TtyScreen};
use rove_session::{Client, Escape, Peer, Server, server};
use rove_ssp::{
    ConnId, Machine as _, NativeWire, Outbox, Role, Session as _, SessionSecrets, SlotTiming, Time,
    Timing,
};
use rove_streams::server::{Dormant, QuicInbox};
use rove_streams::{SecretMemory, Streams, client as streams_client};
use rove_term::{Dialect, Screen, Size};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::network::{Host, Inbox, Net, Port};
use crate::session::{hear, serve_next, until};

/// The user of a session, and how the client's system announces its networks.
pub struct Typing {
    pub obscure: Obscure,
    /// When each key is typed.
    pub keys: Vec<Time>,
    pub networks: watch::Receiver<u64>,
}

/// What has become of the session.
#[derive(Default)]
pub struct Seen {
    pub typed: Vec<u8>,
    /// By the program.
    pub read: Vec<u8>,
    /// As the client has it, and as the program wrote it.
    pub screens: [Option<Screen>; 2],
}

/// Both ends of a session with a terminal, and its streams.
pub fn start(
    net: &Arc<Net>,
    rng: &mut Rng,
    typing: Typing,
    seen: &Arc<Mutex<Seen>>,
    world: &mut JoinSet<()>,
) -> [Streams; 2] {
    let mut secret = || {
        let mut octets = [0; 32];
        octets.fill_with(|| rng.next_u64() as u8);
        octets
    };
    let secrets = SessionSecrets::from_bytes(secret(), secret(), secret());
    let wire = |role| Box::new(NativeWire::new(&secrets, ConnId::new(7), role));
    let server_config = server::Config {
        wire: wire(Role::Server),
        timing: Timing { answers_slots: true, ..Timing::ROVE },
        peer: Peer::Rove,
        size: Size::DEFAULT,
        claim_wait: server::CLAIM_WAIT,
        network_timeout: None,
        screen_rate: Some(server::SCREEN_RATE),
        seed: rng.next_u64(),
    };
    let host = Host::new(net);
    let inbox: Arc<Inbox> = Arc::default();
    let port = Arc::new(host.server_port(Arc::clone(&inbox)));
    let at = port.address();
    let (server, lane, acceptor) = Dormant::new(secrets.streams(), SecretMemory::ORDINARY).start();
    let shared = Arc::clone(&port);
    world.spawn(async move { acceptor.run_within(Arc::new(host), shared).await.unwrap() });
    lane.heard();
    let machine = Server::new(net.now(), server_config);
    world.spawn(drive_server(Arc::clone(net), inbox, port, machine, lane, Arc::clone(seen)));

    let host = Host::new(net);
    let (client, link, connector) =
        streams_client::start(secrets.streams(), SecretMemory::ORDINARY);
    let connector = connector.within(Arc::new(host.clone()));
    world.spawn(async { connector.run().await.unwrap() });
    link.expect(at);
    let slots = (typing.obscure == Obscure::Always).then_some(SlotTiming::ROVE);
    let client_config = client::Config {
        wire: wire(Role::Client),
        timing: Timing { slots, ..Timing::ROVE },
        server: at,
        peer: Peer::Rove,
        size: Size::DEFAULT,
        tty: Dialect::tty("xterm-256color", ""),
        window: TtyScreen::Alternate,
        escape: Escape::Default,
        name: "rove",
        title_prefix: String::new(),
        obscure: typing.obscure,
        history_lines: 0,
        seed: rng.next_u64(),
    };
    let machine = Client::new(net.now(), client_config);
    world.spawn(drive_client(Arc::clone(net), host, machine, link, typing, Arc::clone(seen)));
    [client, server]
}

/// As the program's driver: keys go ahead of datagrams, and streams are told after all is sent.
async fn drive_client(
    net: Arc<Net>,
    host: Host,
    mut client: Client,
    link: streams_client::PathHints,
    typing: Typing,
    seen: Arc<Mutex<Seen>>,
) {
    let Typing { keys, mut networks, .. } = typing;
    let inbox: Arc<Inbox> = Arc::default();
    // Older ports go on receiving.
    let mut ports = vec![host.client_port(Arc::clone(&inbox))];
    let (mut out, mut painted) = (Outbox::default(), Vec::new());
    let mut keys = keys.into_iter().zip((b'a'..=b'z').cycle()).peekable();
    loop {
        let now = net.now();
        while let Some((_, key)) = keys.next_if(|(at, _)| *at <= now) {
            client.handle_keys(now, &[key]);
            seen.lock().unwrap().typed.push(key);
        }
        while let Some(transmit) = client.poll_transmit(now, &mut out) {
            if transmit.new_port {
                ports.push(host.client_port(Arc::clone(&inbox)));
            }
            let to = transmit.to.udp().expect("there is no stream");
            ports.last().unwrap().send(to, &out.datagram, 0);
        }
        seen.lock().unwrap().screens[0] = Some(client.view().screen().clone());
        if client.take_activity() {
            link.mark_interactive();
        }
        client.poll_paint(now, &mut painted);
        painted.clear();
        while let Some(event) = client.poll_event() {
            assert!(!matches!(event, client::Event::Exited(_)), "the session ends: {event:?}");
        }
        let due = keys.peek().map(|(at, _)| *at);
        let due = client.poll_timeout().into_iter().chain(due).min();
        tokio::select! {
            biased;
            Ok(()) = networks.changed() => {
                link.moved();
                client.network_changed(net.now());
            }
            arrived = inbox.next() => {
                let from = arrived.from;
                if hear(net.now(), &mut client, arrived) {
                    link.heard(from);
                }
            }
            () = until(&net, due) => {}
        }
    }
}

/// The same at the other end, with a program that echoes.
async fn drive_server(
    net: Arc<Net>,
    inbox: Arc<Inbox>,
    port: Arc<Port>,
    mut server: Server,
    lane: QuicInbox,
    seen: Arc<Mutex<Seen>>,
) {
    let (mut out, mut typed) = (Outbox::default(), Vec::new());
    loop {
        let now = net.now();
        server.poll_input(&mut typed);
        if !typed.is_empty() {
            server.handle_output(now, &typed);
            seen.lock().unwrap().read.append(&mut typed);
        }
        while let Some(transmit) = server.poll_transmit(now, &mut out) {
            port.send(transmit.to.udp().expect("there is no stream"), &out.datagram, 0);
        }
        seen.lock().unwrap().screens[1] = Some(server.screen().clone());
        while server.poll_event().is_some() {}
        if serve_next(&net, &inbox, &mut server, &lane).await && server.is_active(net.now()) {
            lane.mark_interactive();
        }
    }
}
