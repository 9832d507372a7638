//! The end of a session with a program: moves bytes between the session and the program's terminal.
//!
//! Nothing in a turn waits: a program that does not read its input, or never stops writing, costs its own
//! session nothing.

mod besides;
mod carried;
mod life;
mod lifetime;
mod orphan;
mod requests;
mod typing;

use std::fmt::{self, Display};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::task::{Context, Poll};
use std::time::Duration;

use rove_session::server::{self, Event, SCREEN_RATE, Server};
use rove_session::{Peer, Viewer, ViewerId};
use rove_ssp::{ConnId, Machine, Remote, Session, StreamId, Time, Timing, Wire};
use rove_term::{Checksums, Size};
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::bootstrap::CostProfile;
use crate::driver::{self, End, Flow};
use crate::net::carrier::{Carrier, Heard};
use crate::net::port::{Port, Turn};
use crate::net::stdio::Stdio;
use crate::net::udp::Socket;
use crate::os;
use crate::os::clock::Clock;
use crate::os::process::CoreLimit;
use crate::os::pty::Pty;
use crate::os::signals::Signals;
use crate::server::control::Control;
use crate::server::input::PendingInput;
use crate::server::limits::{GOODBYE_WAIT, GOODBYE_WAIT_TOLD, GOODBYES, Limits, in_runtime};
use crate::server::line_poll::LinePoller;
use crate::server::login::{Login, Surroundings};
use crate::server::options::Streams;
use crate::server::output::ReadAhead;
use crate::server::records::{Presence, Records};
use crate::server::shell::besides::Besides;
use crate::server::shell::carried::Carried;
use crate::server::shell::lifetime::Lifetime;
use crate::server::streams::StreamService;
use crate::sessions::directory::{Claim, Places};
use crate::sessions::line::Kind;

/// What a session needs from the start-up.
#[derive(Debug)]
pub(super) struct Job {
    /// What to run.
    pub login: Login,
    /// Where clients are heard.
    pub bound: SocketAddr,
    /// Where the session is found once its client is gone; `None`: it ends with that.
    pub kept: Option<Kept>,
    /// The expected client.
    pub peer: Peer,
    /// The price of datagrams.
    pub tariff: CostProfile,
    /// The size until the client sends its own.
    pub size: Size,
    /// The program's terminal, of this size.
    pub pty: Pty,
    /// How long to wait for a client.
    pub limits: Limits,
    /// Whether to report events on the standard error.
    pub streams: Streams,
    /// Whether programs may ask for checksums of the screen.
    pub checksums: Checksums,
    /// For the program: core files as they were.
    pub cores: CoreLimit,
    /// Streams beside the shell, if its client wants any.
    pub beside: StreamService,
    /// The way over ssh.
    pub stream: Option<OwnedFd>,
    /// Where ssh has its client.
    pub ssh_client: Option<IpAddr>,
    /// For the streams of other clients.
    pub surroundings: Surroundings,
}

/// A session that outlives its clients.
#[derive(Debug)]
pub(super) struct Kept {
    /// Its control socket.
    pub place: Claim,
    /// Where that is.
    pub places: Places,
    /// What it is begun for.
    pub kind: Kind,
    /// Its first client is told of it.
    pub is_told: bool,
    /// The first client's connection id, on the wire that has them.
    pub conn: Option<ConnId>,
}

/// Runs a session to its end; `socket` is where its client will be heard. Returns when the client has said goodbye, or is given up.
pub(super) fn run(socket: Socket, job: Job, wire: Box<dyn Wire>) -> io::Result<()> {
    in_runtime(async {
        let streams = job.streams;
        let clock = Clock::start();
        let tell = |what: fmt::Arguments<'_>| note(streams, &what);
        // No news of the network: a server stays where its client finds it.
        let mut port = Port::new(clock, Carrier::listener(socket)?, None, &tell)?;
        let mut shell = Shell::new(clock.now(), job, wire)?;
        driver::run(&mut port, &mut shell).await?;
        shell.note(&"exiting");
        shell.records.close();
        Ok(())
    })
}

/// A program on its terminal, and the session that shows it to a client.
struct Shell {
    signals: Signals,
    session: Server,
    /// `None` once the program has ended and its output is in.
    pty: Option<AsyncFd<Pty>>,
    program: Running,
    /// The last program has let go of the terminal.
    hung_up: bool,
    /// Octets taken from the session that the terminal has not taken yet.
    typed: PendingInput,
    /// When the terminal's line is looked at.
    watch: LinePoller,
    /// Reads the program's output; `None` as for the terminal.
    output: Option<ReadAhead>,
    /// The terminal's login record.
    records: Records,
    limits: Limits,
    streams: Streams,
    cores: CoreLimit,
    /// The streams of each client.
    besides: Besides,
    bound: SocketAddr,
    /// `None`: the session ends with its client.
    control: Option<Control>,
    life: Lifetime,
    /// The connection ids of clients.
    conns: Vec<(ViewerId, ConnId)>,
    /// The ways over ssh.
    carried: Carried,
    /// The session's end has started.
    closing: bool,
    /// It is over.
    ended: bool,
}

/// The program's life.
#[derive(Debug)]
enum Running {
    /// Not before the client is there: it starts on a screen of the right size, and its first words are
    /// seen. (Stock starts it at once and holds it with a read that leaves a blank line.)
    Waiting(Box<Login>),
    Started(Child),
    Ended {
        at: Time,
        status: ExitStatus,
    },
    /// The session knows of it; there is no more to come from here.
    Reported {
        ended: Time,
    },
}

impl Shell {
    fn new(now: Time, job: Job, wire: Box<dyn Wire>) -> io::Result<Shell> {
        let timing = match job.peer {
            Peer::Rove => job.tariff.timing(),
            Peer::Stock => Timing::ROVE_TO_STOCK,
        };
        let config = server::Config {
            wire,
            size: job.size,
            peer: job.peer,
            timing: Timing {
                final_acks: GOODBYES,
                answers_slots: job.peer == Peer::Rove,
                close_time_max: match (&job.kept, job.peer) {
                    (Some(_), Peer::Rove) => GOODBYE_WAIT,
                    _ => timing.close_time_max,
                },
                ..timing
            },
            claim_wait: job.limits.unclaimed,
            network_timeout: job.limits.network,
            screen_rate: Some(SCREEN_RATE),
            seed: u64::from_ne_bytes(*os::random()?),
        };
        let pty = job.pty;
        let name = match job.peer {
            Peer::Stock => "mosh",
            Peer::Rove => "rove",
        };
        let mut records = Records::new(&pty, name)?;
        records.show(Presence::Detached);
        let mut session = Server::new(now, config);
        session.set_checksums(job.checksums);
        let mut carried = Carried::default();
        if let Some(stream) = job.stream {
            carried.add(stream, job.ssh_client);
        }
        let mut life = Lifetime::new(now, Kind::Shell, &job.login.command);
        let (mut control, mut conns) = (None, Vec::new());
        if let Some(Kept { place, places, kind, is_told, conn }) = job.kept {
            let kept = Control::new(place, places)?;
            session.keep(kept.name().as_str(), is_told);
            life.kind = kind;
            conns.extend(conn.map(|conn| (ViewerId::from(0), conn)));
            control = Some(kept);
        }
        Ok(Shell {
            bound: job.bound,
            control,
            life,
            conns,
            signals: Signals::watch([Signal::TERM, Signal::INT, Signal::USR1, Signal::CHILD])?,
            session,
            output: Some(ReadAhead::new(&pty)?),
            pty: Some(os::watch(pty, Interest::WRITABLE)?),
            program: Running::Waiting(Box::new(job.login)),
            hung_up: false,
            typed: PendingInput::default(),
            watch: LinePoller::new(),
            records,
            limits: job.limits,
            streams: job.streams,
            cores: job.cores,
            besides: Besides::new(job.surroundings, job.cores, job.beside),
            carried,
            closing: false,
            ended: false,
        })
    }

    /// Takes a piece of the programs' output: at most 64 KiB, and as much as a turn can emulate. The rest
    /// follows in the next turns, each after the client's keys.
    fn read_program(&mut self, now: Time) {
        let Some(output) = self.output.as_mut().filter(|_| !self.hung_up) else { return };
        let octets = output.next();
        if !octets.is_empty() {
            self.watch.on_output(now);
            self.life.used(now);
            let taken = self.session.handle_output_part(now, octets);
            output.took(taken);
        }
        self.hung_up = output.hung_up();
    }

    /// Tells the session how the terminal's line handles keys, if that is of use to the client.
    fn look_at_line(&mut self, now: Time) {
        let Some(pty) = self.pty.as_ref().filter(|_| !self.hung_up) else { return };
        if !self.session.reports_line() {
            return;
        }
        match pty.get_ref().look_at_line() {
            Ok(look) => {
                let report = self.watch.looked(now, look);
                self.session.handle_line(report);
            }
            // A terminal that is gone is seen when it is read.
            Err(_) => self.watch.rest(),
        }
    }

    /// When that is due if nothing else happens. Never without a client.
    fn look_by(&self) -> Option<Time> {
        let told = !self.hung_up && self.session.reports_line() && self.session.peer().is_some();
        self.watch.next().filter(|_| told)
    }

    /// Handles the session's events. Returns whether there were any: then more may be due.
    fn handle_events(&mut self, now: Time, carrier: &Carrier) -> bool {
        let (mut news, mut contact) = (false, false);
        if let Some(port) = carrier.port() {
            self.besides.admit(port);
        }
        while let Some(event) = self.session.poll_event() {
            news = true;
            match event {
                Event::FirstContact => contact = true,
                Event::Resize(size) => {
                    // A terminal that is gone needs no size.
                    let _ = self.pty.as_ref().map(|pty| pty.get_ref().resize(size));
                }
                Event::Roamed(address) => self.note(&format_args!("the client is at {address}")),
                Event::Exited(exit) => {
                    self.note(&format_args!("the session has ended: {exit:?}"));
                    self.ended = true;
                }
                other => self.note(&format_args!("not understood: {other:?}")),
            }
        }
        self.watch_departures(now);
        // The size that comes with the first contact is in force before the program looks.
        if contact {
            self.start_program(now);
            if let Some(port) = carrier.port()
                && let Err(error) = self.besides.begin_agent(port)
            {
                self.note(&format_args!("no streams: {error}"));
            }
        }
        news
    }

    fn obey_signals(&mut self, now: Time) {
        let came = self.signals.take();
        if came.contains(&Signal::CHILD) {
            self.records.advance();
            if let Running::Started(child) = &mut self.program
                && let Ok(Some(status)) = child.try_wait()
            {
                self.end_program(now, status);
            }
        }
        if came.contains(&Signal::TERM) || came.contains(&Signal::INT) {
            self.note(&"told to end");
            self.life.goodbye_by.get_or_insert(now + GOODBYE_WAIT_TOLD);
            // The second time, and where nobody could be told, there is no more asking.
            self.ended |= self.closing || self.session.peer().is_none();
            self.close(now);
        }
        let last = self.session.viewers().filter_map(|it| it.endpoint().last_new_state()).max();
        let silence = last.map(|last| now.since(last));
        // A user who cannot find the session any more makes it be found, and ends nothing by that.
        let is_found_again = came.contains(&Signal::USR1) && self.restore_control();
        if came.contains(&Signal::USR1) && !is_found_again && self.limits.obey_signal(silence) {
            self.note(&"told to end by SIGUSR1");
            self.life.goodbye_by.get_or_insert(now + GOODBYE_WAIT_TOLD);
            self.ended |= self.session.peer().is_none();
            self.close(now);
        }
    }

    /// Starts the session's end. A second call would give the client up.
    fn close(&mut self, now: Time) {
        if !self.closing {
            self.closing = true;
            self.session.close(now);
        }
    }

    /// Keeps the login record.
    fn watch_client(&mut self, now: Time) {
        let newest = self.newest_client();
        let is_there = newest.is_some_and(|(heard, _)| now < heard + ATTACHED);
        let presence = match newest {
            Some((_, peer)) if is_there => {
                self.ip_of(peer).map_or(Presence::Detached, Presence::Attached)
            }
            Some(_) => Presence::Detached,
            None if self.control.is_some() => Presence::Detached,
            None => return,
        };
        let was_there = std::mem::replace(&mut self.life.is_there, is_there);
        let is_looked_for = self.life.found.is_some_and(|at| now < at + CONTROL_LOOK);
        if is_there && !(was_there && is_looked_for) {
            self.life.found = Some(now);
            self.restore_control();
        }
        self.records.show(presence);
    }

    /// There is output to take without waiting.
    fn has_output(&self) -> bool {
        self.output.as_ref().is_some_and(ReadAhead::has_more)
    }

    /// The address of a client, which over ssh is where ssh has come from.
    fn ip_of(&self, peer: Remote) -> Option<IpAddr> {
        match peer {
            Remote::Udp(address) => Some(address.ip()),
            Remote::Stream(stream) => self.carried.address(stream),
        }
    }

    /// When the client that was heard last was heard, and where.
    fn newest_client(&self) -> Option<(Time, Remote)> {
        let clients = self.session.viewers().map(Viewer::endpoint);
        let heard = clients.filter_map(|client| Some((client.last_heard()?, client.peer()?)));
        heard.max_by_key(|(heard, _)| *heard)
    }

    /// When a client was heard last, also one that is nowhere now because its stream has ended.
    fn last_heard(&self) -> Option<Time> {
        self.session.viewers().filter_map(|viewer| viewer.endpoint().last_heard()).max()
    }

    /// Reports an event to a person who asked for it (`-v`).
    fn note(&self, what: &dyn Display) {
        note(self.streams, what);
    }
}

impl End for Shell {
    fn session(&mut self) -> &mut dyn Session {
        &mut self.session
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut ready = self.signals.gather(cx);
        if let Some(control) = &mut self.control {
            ready |= control.poll_ready(cx).is_ready();
        }
        // A terminal that hung up would be ready for ever.
        if let (Some(pty), Some(output), false) = (&self.pty, &self.output, self.hung_up) {
            ready |= output.has_more() || output.poll_ready(cx)?.is_ready();
            if !self.typed.is_empty() {
                ready |= pty.poll_write_ready(cx)?.is_ready();
            }
        }
        if ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// The line's mode comes before the datagrams that the session may answer with a frame.
    fn before(&mut self, turn: Turn) -> io::Result<()> {
        self.look_at_line(turn.now);
        Ok(())
    }

    fn heard(&mut self, now: Time, _: &Heard) {
        if let Some(viewer) = self.session.heard() {
            self.besides.heard(viewer.id());
        }
        if self.session.is_active(now) {
            self.besides.stir();
        }
    }

    /// Streams begin only once the client is known: before that, anybody may ask.
    fn quic(&mut self, port: &Socket, from: Remote, datagram: &[u8]) -> io::Result<()> {
        if self.session.peer().is_some()
            && let Err(error) = self.besides.quic(port, from, datagram)
        {
            self.note(&format_args!("no streams: {error}"));
        }
        Ok(())
    }

    fn take_stream(&mut self) -> Option<Stdio> {
        loop {
            match self.carried.take() {
                Ok(stream) => return stream,
                // Its client goes on by UDP, and so does the session.
                Err(error) => self.note(&format_args!("no other way over ssh: {error}")),
            }
        }
    }

    fn stream_ended(&mut self, stream: StreamId) {
        self.carried.ended(stream);
    }

    fn after(&mut self, now: Time) -> io::Result<()> {
        // A Ctrl-C is not to wait for what it is to stop.
        self.type_input(now);
        self.read_program(now);
        self.look_at_line(now);
        self.obey_signals(now);
        self.watch_program(now);
        self.watch_client(now);
        self.watch_lifetime(now);
        self.answer_requests(now);
        self.type_input(now);
        Ok(())
    }

    fn settle(&mut self, now: Time, carrier: &mut Carrier) -> io::Result<Flow> {
        let news = self.handle_events(now, carrier);
        Ok(match self.ended {
            true => Flow::Over,
            false if news => Flow::Again,
            false if self.has_output() => Flow::Yield,
            false => Flow::Sleep,
        })
    }

    fn deadline(&self, now: Time) -> Option<Time> {
        let attached = self.newest_client().map(|(heard, _)| heard + ATTACHED);
        let asker = self.control.as_ref().and_then(Control::deadline);
        let lifetime = self.life.due();
        let attached = attached.filter(|&at| at > now);
        let ours = [self.last_output_by(), self.look_by(), attached, asker, lifetime];
        ours.into_iter().chain([self.session.poll_timeout()]).flatten().min()
    }
}

fn note(streams: Streams, what: &dyn Display) {
    if streams == Streams::Kept {
        crate::server::log::note(what);
    }
}

/// How long after its last datagram a client counts as attached in the login records
/// (mosh-protocol.md §1.3).
const ATTACHED: Duration = Duration::from_secs(30);

/// How often it is looked whether the control socket is still there, in turns that a client is the cause of.
const CONTROL_LOOK: Duration = Duration::from_secs(10);
