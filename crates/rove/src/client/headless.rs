//! The client's end of a session without a terminal: it only keeps in touch with the server, whose streams
//! run beside it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rove_session::client::Cause;
use rove_session::connection::{Event, Patience};
use rove_session::{Connection, Input, Peer, View};
use rove_ssp::{
    Config, ConnId, Machine, NativeWire, Remote, Role, Session as _, SessionSecrets, Time, Timing,
};
use rove_streams::carried::StreamPorts;
use rove_streams::client::PathHints;
use rove_term::Size;
use tokio::sync::oneshot;

use crate::client::way::client_stream;
use crate::driver::{self, End, Flow};
use crate::net::carrier::{Carrier, Heard};
use crate::net::port::{Network, Port, Turn};
use crate::net::routes::{Datagrams, Routes};
use crate::os::clock::Clock;
use crate::os::network_changes::NetworkChanges;
use crate::os::sandbox::{Reach, confine};
use crate::os::{self, locked};
use crate::ssh::{Candidates, SshStream};

/// The session ends after this long without any contact, as a shell's does.
const CONTACT_WAIT: Duration = Duration::from_secs(15);

/// How long to wait for the server's answer to our goodbye.
const GOODBYE_WAIT: Duration = Duration::from_secs(2);

/// A size that both ends know from the start, for want of a terminal.
const SIZE: (u16, u16) = (24, 80);

/// How to say goodbye.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Goodbye {
    /// Repeat it until the answer, or until [`GOODBYE_WAIT`] is over.
    Answered,
    /// Send it a few times in a row, until an answer.
    Said,
}

/// Drives a session until it is over, by either end.
pub(super) async fn drive(
    config: HeadlessConfig,
    contact: oneshot::Sender<Remote>,
    goodbye: oneshot::Receiver<Goodbye>,
) -> io::Result<()> {
    let HeadlessConfig { clock, candidates, secrets, conn, link, stream, ports, is_ssh_alone } =
        config;
    let now = clock.now();
    let routes = Routes::open(now, candidates, Datagrams::Whole)?;
    let mut connection = connection(now, routes.server(), &secrets, conn)?;
    drop(secrets);
    let changes = NetworkChanges::watch().ok();
    let mut port = Port::new(clock, Carrier::Client(routes), changes, &|_| ())?;
    port.carry_quic(ports);
    if let Some(stream) = stream {
        let id = port.add_stream(client_stream(stream)?);
        connection.stream_opened(now, id);
    }
    if is_ssh_alone {
        port.refuse_udp();
    }
    let mut end = Headless {
        connection,
        link,
        contact: Some(contact),
        goodbye,
        leaving: None,
        gives_up: Some(now + CONTACT_WAIT),
    };
    // Nothing was read from the peer yet, by the streams neither. A kernel that cannot is no reason to have no
    // session.
    let _ = confine(&Reach::Datagrams);
    driver::run(&mut port, &mut end).await?;
    if end.connection.peer().is_some_and(Remote::is_stream) {
        port.end_streams().await;
    }
    Ok(())
}

/// The parts of a new session.
pub(super) struct HeadlessConfig {
    pub clock: Clock,
    pub candidates: Candidates,
    pub secrets: SessionSecrets,
    pub conn: ConnId,
    pub link: PathHints,
    /// The way over ssh.
    pub stream: Option<SshStream>,
    /// Where QUIC's datagrams for it wait.
    pub ports: StreamPorts,
    /// Nothing goes by UDP.
    pub is_ssh_alone: bool,
}

/// The end of a session that only keeps in touch: both states stay as they were at the start.
struct Headless {
    connection: Connection<Input, View>,
    link: PathHints,
    /// Gets the server's address when the server is first heard.
    contact: Option<oneshot::Sender<Remote>>,
    goodbye: oneshot::Receiver<Goodbye>,
    /// How to say goodbye, once decided.
    leaving: Option<Goodbye>,
    /// When to stop waiting for the server: for its first datagram, or for its answer to our goodbye.
    gives_up: Option<Time>,
}

/// The session, before it has sent anything.
fn connection(
    now: Time,
    server: SocketAddr,
    secrets: &SessionSecrets,
    conn: ConnId,
) -> io::Result<Connection<Input, View>> {
    let size = Size::clamped(SIZE.0, SIZE.1);
    let config = Config {
        role: Role::Client,
        wire: locked::within(|| Box::new(NativeWire::new(secrets, conn, Role::Client))),
        timing: Timing::ROVE,
        peer: Some(server),
        local: Input::default(),
        remote: View::new(size, Peer::Rove),
        seed: u64::from_ne_bytes(*os::random()?),
    };
    let mut connection = Connection::new(now, config, Patience::default());
    // A first state, by which the server knows that it is claimed.
    connection.update(now, |input| input.push_resize(size));
    Ok(connection)
}

impl End for Headless {
    fn session(&mut self) -> &mut dyn rove_ssp::Session {
        &mut self.connection
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.leaving.is_some() {
            return Poll::Pending;
        }
        // Who drops the session has gone already.
        let how = ready!(Pin::new(&mut self.goodbye).poll(cx)).unwrap_or(Goodbye::Answered);
        self.leaving = Some(how);
        Poll::Ready(Ok(()))
    }

    fn before(&mut self, turn: Turn) -> io::Result<()> {
        if turn.network != Network::Same {
            self.link.moved();
        }
        if let Some(how) = self.leaving.filter(|_| self.connection.is_open()) {
            self.gives_up = Some(turn.now + GOODBYE_WAIT);
            match how {
                Goodbye::Answered => self.connection.close(turn.now, Cause::Closed),
                Goodbye::Said => self.connection.leave(turn.now, Cause::Closed),
            }
        }
        Ok(())
    }

    fn heard(&mut self, _: Time, heard: &Heard) {
        heard.at.iter().for_each(|at| self.link.heard(*at));
        if let Some(contact) = self.contact.take() {
            let _ = contact.send(heard.from);
            if self.connection.is_open() {
                self.gives_up = None;
            }
        }
    }

    fn settle(&mut self, now: Time, _: &mut Carrier) -> io::Result<Flow> {
        let mut is_over = self.gives_up.is_some_and(|by| by <= now);
        while let Some(event) = self.connection.poll_event() {
            is_over |= matches!(event, Event::BadRemote(_));
        }
        // The answer to a server that has ended the session may be lost, and is repeated.
        is_over |= self.connection.is_over() && !self.connection.lingers();
        Ok(if is_over { Flow::Over } else { Flow::Sleep })
    }

    fn deadline(&self, _: Time) -> Option<Time> {
        self.connection.poll_timeout().into_iter().chain(self.gives_up).min()
    }
}
