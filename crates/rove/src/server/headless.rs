//! A session without a terminal: keeps in touch with its client by the session's own datagrams, and carries
//! streams. It starts no program; `services` carries out the client's requests over channels.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use rove_session::client::Cause;
use rove_session::connection::{Event, Patience};
use rove_session::{Connection, Input, Peer, View};
use rove_ssp::{Config, Machine, Remote, Role, Session, StreamId, Time, Timing, Wire};
use rove_term::Size;
use rustix::process::Signal;

use crate::copy::held;
use crate::driver::{self, End, Flow};
use crate::net::carrier::{Carrier, Heard};
use crate::net::port::{Port, Turn};
use crate::net::udp::Socket;
use crate::os;
use crate::os::clock::Clock;
use crate::os::signals::Signals;
use crate::server::control::Control;
use crate::server::limits::{GOODBYES, Limits, in_runtime, server_stream};
use crate::server::streams::StreamService;
use crate::sessions::directory::{Claim, Places};
use crate::sessions::line::{Request, refusal, released};

/// What a session needs from the start-up.
#[derive(Debug)]
pub(super) struct Job {
    /// Any size: there is no terminal.
    pub size: Size,
    /// How long to wait for a client.
    pub limits: Limits,
    /// The streams.
    pub beside: StreamService,
    /// The way over ssh.
    pub stream: Option<OwnedFd>,
    /// Where it is asked for what it holds, and what that lies in.
    pub place: Option<(Claim, Places)>,
}

/// Runs a session to its end; `socket` is where its client will be heard. Returns when the client has said goodbye, or is given up.
pub(super) fn run(socket: Socket, job: Job, wire: Box<dyn Wire>) -> io::Result<()> {
    os::process::keep_freed_memory();
    let Job { size, limits, beside, stream, place } = job;
    let config = Config {
        role: Role::Server,
        wire,
        timing: Timing { final_acks: GOODBYES, ..Timing::ROVE },
        peer: None,
        local: View::new(size, Peer::Rove),
        remote: Input::default(),
        seed: u64::from_ne_bytes(*os::random()?),
    };
    let patience = Patience { first_contact: Some(limits.unclaimed), silence: None };
    in_runtime(async {
        let clock = Clock::start();
        let mut port = Port::new(clock, Carrier::listener(socket)?, None, &|_| ())?;
        if let Some(stream) = stream {
            port.add_stream(server_stream(StreamId::new(0), stream)?);
        }
        let mut end = Headless {
            connection: Connection::new(clock.now(), config, patience),
            beside,
            control: place.and_then(|(claim, places)| Control::new(claim, places).ok()),
            limits,
            signals: Signals::watch([Signal::TERM, Signal::INT, Signal::USR1])?,
        };
        driver::run(&mut port, &mut end).await
    })
}

/// The end of a session that only keeps in touch, at the server.
struct Headless {
    connection: Connection<View, Input>,
    beside: StreamService,
    control: Option<Control>,
    limits: Limits,
    signals: Signals,
}

impl Headless {
    /// Answers this user's other processes.
    fn answer_requests(&mut self, now: Time) {
        while let Some((asker, request)) = self.control.as_mut().and_then(|it| it.take(now)) {
            match request {
                Request::Release(device, file) if held::want((device, file)) => {
                    let heard = self.connection.endpoint().last_heard();
                    asker.answer(&released(heard.map(|heard| now.since(heard).as_secs())));
                }
                Request::Release(..) => asker.answer(&refusal("no such part is held here")),
                _ => asker.answer(&refusal("there is no screen here")),
            }
        }
    }

    /// When a client that stays silent is given up. One that was killed says no goodbye; one that sleeps comes back.
    fn gives_up(&self) -> Option<Time> {
        let heard = self.connection.endpoint().last_heard()?;
        let said = [self.limits.network, self.limits.orphan].into_iter().flatten().min();
        Some(heard + said.unwrap_or_else(|| self.beside.kept()))
    }
}

impl End for Headless {
    fn session(&mut self) -> &mut dyn Session {
        &mut self.connection
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut ready = self.signals.gather(cx);
        if let Some(control) = &mut self.control {
            ready |= control.poll_ready(cx).is_ready();
        }
        if ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn before(&mut self, turn: Turn) -> io::Result<()> {
        self.answer_requests(turn.now);
        let heard = self.connection.endpoint().last_heard();
        let silence = heard.map(|heard| turn.now.since(heard));
        let came = self.signals.take();
        let told = came.contains(&Signal::TERM) || came.contains(&Signal::INT);
        let asked = came.contains(&Signal::USR1) && self.limits.obey_signal(silence);
        if !told && !asked {
            return Ok(());
        }
        // The second time there is no more asking.
        if !self.connection.is_open() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.connection.close(turn.now, Cause::Closed);
        Ok(())
    }

    fn heard(&mut self, _: Time, _: &Heard) {
        self.beside.heard();
    }

    /// The client need not have heard us to ask for what it started us for.
    fn quic(&mut self, port: &Socket, from: Remote, datagram: &[u8]) -> io::Result<()> {
        if self.beside.is_asked_for(datagram) {
            self.beside.begin(port, Some((from, datagram)))?;
        }
        Ok(())
    }

    fn settle(&mut self, now: Time, carrier: &mut Carrier) -> io::Result<Flow> {
        let mut is_over = self.gives_up().is_some_and(|by| by <= now);
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::FirstContact => {
                    if let Some(port) = carrier.port() {
                        self.beside.begin(port, None)?;
                    }
                }
                Event::BadRemote(_) | Event::Ended(_) => is_over = true,
                _ => {}
            }
        }
        Ok(if is_over { Flow::Over } else { Flow::Sleep })
    }

    fn deadline(&self, _: Time) -> Option<Time> {
        let asker = self.control.as_ref().and_then(Control::deadline);
        let due = [self.connection.poll_timeout(), self.gives_up(), asker];
        due.into_iter().flatten().min()
    }
}
