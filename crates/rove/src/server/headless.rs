//! A session without a terminal: it keeps in touch with its client by the session's own datagrams, and carries
//! streams. It starts nothing; what the client asks for over channels is a service's.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use rove_session::Peer;
use rove_session::server::{self, Event, Server};
use rove_ssp::{Machine, Outbox, Session, Time, Timing, Wire};
use rove_term::Size;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::net::udp::{self, Socket, is_quic};
use crate::os;
use crate::os::clock::{Alarm, Clock};
use crate::os::locked::wipe_stack;
use crate::server::limits::{GOODBYES, Limits, in_runtime};
use crate::server::streams::StreamService;

/// What a session needs from the start-up.
#[derive(Debug)]
pub(super) struct Job {
    /// Where the client will be heard.
    pub socket: Socket,
    /// Any: there is no terminal.
    pub size: Size,
    /// How long to wait for a client.
    pub limits: Limits,
    /// The streams.
    pub beside: StreamService,
}

/// How long a client may be silent. One that was killed says no goodbye; one that sleeps comes back.
const SILENCE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Datagrams taken, or reads of QUIC's handed on, in one turn.
const DATAGRAMS_A_TURN: usize = 64;

/// Runs a session to its end. Returns when the client has said goodbye, or is given up.
pub(super) fn run(job: Job, wire: Box<dyn Wire>) -> io::Result<()> {
    os::keep_freed_memory();
    in_runtime(async { Driver::new(job, wire)?.run().await })
}

struct Driver {
    clock: Clock,
    alarm: Alarm,
    session: Server,
    socket: AsyncFd<Socket>,
    beside: StreamService,
    silence_max: Duration,
    /// Silence after which SIGUSR1 ends the session; `None`: it always does.
    signal_silence: Option<Duration>,
    terminate: Signal,
    interrupt: Signal,
    user: Signal,
    /// It was told to end.
    closing: bool,
}

impl Driver {
    fn new(job: Job, wire: Box<dyn Wire>) -> io::Result<Driver> {
        let clock = Clock::start();
        let config = server::Config {
            wire,
            size: job.size,
            peer: Peer::Rove,
            timing: Timing { final_acks: GOODBYES, ..Timing::ROVE },
            claim_wait: job.limits.unclaimed,
            network_timeout: None,
            screen_rate: None,
            seed: u64::from_ne_bytes(*os::random()?),
        };
        Ok(Driver {
            clock,
            alarm: Alarm::new(clock)?,
            session: Server::new(clock.now(), config),
            socket: os::watch(job.socket, Interest::READABLE)?,
            beside: job.beside,
            silence_max: job.limits.network.unwrap_or(SILENCE_MAX),
            signal_silence: job.limits.signal,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            user: signal(SignalKind::user_defined1())?,
            closing: false,
        })
    }

    async fn run(mut self) -> io::Result<()> {
        loop {
            let now = self.clock.now();
            self.receive(now)?;
            let gone = self.session.last_heard().map(|heard| heard + self.silence_max);
            if gone.is_some_and(|gone| gone <= now) {
                return Ok(());
            }
            self.transmit(now);
            while let Some(event) = self.session.poll_event() {
                match event {
                    Event::FirstContact => self.beside.begin(self.socket.get_ref(), None)?,
                    Event::Exited(_) => return Ok(()),
                    Event::Resize(_) | Event::Roamed(_) => {}
                    _ => {}
                }
            }
            self.alarm.set([self.session.poll_timeout(), gone].into_iter().flatten().min())?;
            self.wait(now).await?;
        }
    }

    /// Takes what has come from the network.
    fn receive(&mut self, now: Time) -> io::Result<()> {
        let mut datagram = [0; udp::DATAGRAM_BYTES_MAX];
        for _ in 0..DATAGRAMS_A_TURN {
            let taken = self.socket.try_io(Interest::READABLE, |socket| {
                socket.try_recv(&mut datagram)?.ok_or(io::ErrorKind::WouldBlock.into())
            });
            match taken {
                Ok((0, _)) => {}
                Ok((len, arrival)) => {
                    let octets = &mut datagram[..len];
                    if is_quic(octets) {
                        // The client need not have heard us to ask for what it started us for.
                        if self.beside.is_asked_for(octets) {
                            self.beside.begin(self.socket.get_ref(), Some(octets))?;
                        }
                    } else if self.session.handle_datagram(now, arrival, octets).is_ok() {
                        if self.session.peer() == Some(arrival.from) {
                            self.socket.get_ref().answer_from_there();
                        }
                        self.beside.heard();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An answer to something sent earlier.
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn transmit(&mut self, now: Time) {
        let mut out = Outbox::default();
        while let Some(transmit) = self.session.poll_transmit(now, &mut out) {
            match self.socket.get_ref().try_send(transmit.to, &out.datagram) {
                Err(error) if udp::is_too_big(&error) => self.session.datagram_too_big(),
                // A failure is as if it were lost on the way.
                Ok(()) | Err(_) => {}
            }
        }
        wipe_stack();
    }

    /// Sleeps until there is something to do.
    async fn wait(&mut self, now: Time) -> io::Result<()> {
        let (told, asked) = poll_fn(|cx| {
            let told =
                self.terminate.poll_recv(cx).is_ready() | self.interrupt.poll_recv(cx).is_ready();
            let asked = self.user.poll_recv(cx).is_ready();
            let mut ready = told | asked | self.alarm.poll(cx)?.is_ready();
            ready |= self.socket.poll_read_ready(cx)?.is_ready();
            if ready { Poll::Ready(io::Result::Ok((told, asked))) } else { Poll::Pending }
        })
        .await?;
        let silence = self.session.last_heard().map(|heard| self.clock.now().since(heard));
        let told = told || asked && is_long_enough(silence, self.signal_silence);
        if told && !self.closing {
            self.closing = true;
            self.session.close(now);
        } else if told {
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }
}

/// Whether SIGUSR1 is obeyed after so long a silence; `None` for a client that was never heard.
fn is_long_enough(silence: Option<Duration>, least: Option<Duration>) -> bool {
    least.is_none_or(|least| silence.is_none_or(|silence| silence >= least))
}
