//! Drives the user's end of a session: moves bytes between terminal, sockets and machine, and
//! decides nothing else.
//!
//! One turn: wait for one thing, read the clock, hand the thing over, and let the machine paint and
//! send.

pub(crate) mod headless;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use rove_session::client::{Config, Event, Exit, TtyScreen};
use rove_session::predict::Settings as Guesses;
use rove_session::{Client, Escape, Peer};
use rove_ssp::{Arrival, Machine, MoshWire, NativeWire, Outbox, Role, Session, Time, Timing, Wire};
use rove_streams::client::PathHints;
use rove_term::{Dialect, Size};
use rustix::process::{Signal, kill_current_process_group};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::bootstrap::CostProfile;
use crate::failure::Failure;
use crate::net::routes::{Datagrams, Routes, Sent};
use crate::net::udp::DATAGRAM_BYTES_MAX;
use crate::notice::{Notice, OnFailure};
use crate::os;
use crate::os::clock::{Alarm, Clock};
use crate::os::locked::{wipe_stack, within};
use crate::os::netlink::NetworkChanges;
use crate::os::sandbox::{Reach, confine, confine_all};
use crate::os::tty::{self, Tty};
use crate::services::forward::apart::Serving;
use crate::ssh::{Kind, Reached, Secret};
use crate::trace::Trace;

/// Octets taken from the terminal at a time.
const KEYS_BYTES_MAX: usize = 16_384;

/// How often the machine is served while the terminal takes nothing. Its paint stays overdue that
/// long, so its own time would have us spin.
const STUCK_PAUSE: Duration = Duration::from_millis(50);

/// A turn that comes this much after its time shows that the machine, or this process, was suspended: no
/// scheduler makes us wait so long, and the worst of a mistake is one more datagram.
const SLEPT_MIN: Duration = Duration::from_secs(2);

/// How long the terminal is given for the last picture.
const LAST_PAINT_WAIT: Duration = Duration::from_millis(500);

/// Octets taken at a time from a terminal that is to be given back: some answers are a kilobyte.
const HEARD_OUT_BYTES: usize = 1024;

/// How a session looks and feels to the user.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the terminal understands.
    pub tty: Dialect,
    /// The key that begins a command to the client.
    pub escape: Escape,
    /// Which of the terminal's screens is used; `None` for what suits the server.
    pub window: Option<TtyScreen>,
    /// The program's name in the bar.
    pub name: &'static str,
    /// What stands before window titles.
    pub title_prefix: &'static str,
    /// What local echo shows, and when.
    pub guesses: Guesses,
    /// What datagrams cost.
    pub tariff: CostProfile,
}

/// How a session ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What the machine says.
    pub exit: Exit,
    /// Whose server it was.
    pub kind: Kind,
    /// The signal that asked for the end.
    pub signal: Option<Signal>,
    /// Datagrams that came but did not open.
    pub refused: u64,
}

/// Streams beside a session, and what there is to tell of what they forward.
pub struct StreamsHandle {
    /// Is told what the session learns of the path.
    pub(crate) link: PathHints,
    /// What there is to tell.
    pub(crate) news: mpsc::Receiver<Notice>,
    /// What a forwarding that cannot be means for the session.
    pub(crate) on_failure: OnFailure,
    /// Held, since dropping it ends the forwardings with the session.
    pub(crate) _serving: Serving,
}

/// Runs a session on the user's terminal until it ends. `beside` is told what the session learns of the
/// path: there are streams beside it.
pub async fn run(
    clock: Clock,
    found: Reached,
    settings: &Settings,
    beside: Option<StreamsHandle>,
    trace: &Trace,
) -> Result<Ended, Failure> {
    let failed = |what: &str, error: io::Error| Failure::new(format!("{what}: {error}"), "");
    let now = clock.now();
    let datagrams = match found.secret {
        Secret::Mosh(_) => Datagrams::MayBeCut,
        Secret::Native(..) => Datagrams::Whole,
    };
    let paths = Routes::open(now, found.candidates, datagrams)
        .map_err(|e| failed("cannot open a UDP socket", e))?;
    let tty = Tty::open().map_err(|e| failed("cannot use this terminal", e))?;
    let alarm = Alarm::new(clock).map_err(|e| failed("cannot make a timer", e))?;
    let signals = Signals::watch().map_err(|e| failed("cannot watch signals", e))?;
    let links = NetworkChanges::watch();
    if let Err(error) = &links {
        trace.step(format_args!("no news of the network to be had: {error}"));
    }
    let links = links.ok();
    let (kind, server) = (found.kind, paths.server());
    let mut client = machine(now, kind, found.secret, server, window(trace), settings)
        .map_err(|e| failed("no randomness", e))?;
    if let Some(warning) = &found.warning {
        client.warn(now, warning);
    }
    // All that a session needs is open. Threads beside it have confined themselves by now, each to its own.
    let confined = match &beside {
        None => confine_all(&Reach::Datagrams),
        Some(_) => confine(&Reach::Datagrams),
    };
    trace.step(format_args!("confined: {confined}"));
    let mut driver = Driver {
        clock,
        trace,
        client,
        tty,
        paths,
        kind,
        alarm,
        signals,
        links,
        beside,
        failure: None,
        contact: Contact::Awaited,
        keys: Keys::Open,
        signal: None,
        exit: None,
        out: Outbox::default(),
    };
    let result = driver.session().await.map_err(|e| failed("the session broke off", e));
    drop(driver.tty);
    if let Some(beside) = driver.beside {
        beside.link.close();
    }
    trace.release();
    match driver.failure {
        Some(what) => Err(Failure::new(what, "ExitOnForwardFailure is set.")),
        None => result,
    }
}

/// A session with this server, before anything was sent.
fn machine(
    now: Time,
    kind: Kind,
    secret: Secret,
    server: SocketAddr,
    size: Size,
    settings: &Settings,
) -> io::Result<Client> {
    let wire: Box<dyn Wire> = within(|| match &secret {
        Secret::Mosh(key) => Box::new(MoshWire::new(key.clone(), Role::Client)) as _,
        Secret::Native(secrets, conn) => {
            Box::new(NativeWire::new(secrets, *conn, Role::Client)) as _
        }
    });
    drop(secret);
    let (peer, timing) = manner(kind, settings.tariff);
    let config = Config {
        wire,
        timing,
        server,
        peer,
        size,
        tty: settings.tty,
        window: settings.window.unwrap_or(TtyScreen::of(peer)),
        escape: settings.escape,
        name: settings.name,
        title_prefix: settings.title_prefix.to_owned(),
        seed: u64::from_ne_bytes(*os::random()?),
    };
    let mut client = Client::new(now, config);
    client.apply_in_parts();
    client.predict(settings.guesses);
    Ok(client)
}

/// What the other end is, and how this one sends to it.
fn manner(kind: Kind, tariff: CostProfile) -> (Peer, Timing) {
    match kind {
        Kind::Rove => (Peer::Rove, tariff.timing()),
        Kind::Stock => (Peer::Stock, Timing::ROVE_TO_STOCK),
    }
}

/// What a turn is about.
#[derive(Debug)]
enum Wake {
    Signal(Signal),
    Alarm,
    Flushed,
    /// So many octets were typed; 0 is the end of input.
    Keys(usize),
    Datagram(usize, Arrival),
    /// There is more to do of the last datagram.
    Part,
    /// The network has changed in some way.
    NetworkChanges,
    /// Of what is forwarded.
    Notice(Notice),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Contact {
    Awaited,
    Made,
}

/// Whether more may be typed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Keys {
    Open,
    Ended,
}

struct Driver<'a> {
    clock: Clock,
    trace: &'a Trace,
    client: Client,
    tty: Tty,
    paths: Routes,
    kind: Kind,
    alarm: Alarm,
    signals: Signals,
    /// `None` where nobody tells of changes.
    links: Option<NetworkChanges>,
    /// Streams beside the session.
    beside: Option<StreamsHandle>,
    /// What has ended the session before its time.
    failure: Option<String>,
    contact: Contact,
    keys: Keys,
    signal: Option<Signal>,
    exit: Option<Exit>,
    /// Where the session writes what is to be sent.
    out: Outbox,
}

/// What came in this turn.
struct Inbox {
    keys: Box<[u8; KEYS_BYTES_MAX]>,
    datagram: [u8; DATAGRAM_BYTES_MAX],
}

impl Driver<'_> {
    async fn session(&mut self) -> io::Result<Ended> {
        tty::hold_panics();
        self.trace.hold();
        self.tty.borrow(&self.client.tty_open(), self.client.tty_abandon())?;
        let mut inbox =
            Inbox { keys: Box::new([0; KEYS_BYTES_MAX]), datagram: [0; DATAGRAM_BYTES_MAX] };
        self.drain(self.clock.now())?;
        loop {
            if let Some(exit) = self.exit {
                self.finish().await;
                self.summarize(&exit);
                let refused = self.client.stats().rejected.total();
                return Ok(Ended { exit, kind: self.kind, signal: self.signal, refused });
            }
            let due = self.alarm.due();
            let wake = poll_fn(|cx| self.poll_wake(cx, &mut inbox)).await?;
            let now = self.clock.now();
            if due.is_some_and(|due| now.since(due) >= SLEPT_MIN) {
                self.trace.step(format_args!("this machine has slept"));
                self.client.was_put_off(now);
                self.move_on(now);
            }
            self.handle(now, wake, &mut inbox)?;
            self.drain(now)?;
            // While datagrams wait nothing is slept for, and the runtime would not look at what else has become ready:
            // a server that sends without end must not keep signals and keys waiting.
            tokio::task::yield_now().await;
        }
    }

    /// Waits for one thing. What is urgent and rare is asked first; keys come before datagrams,
    /// since no one types faster than a turn.
    fn poll_wake(&mut self, cx: &mut Context<'_>, inbox: &mut Inbox) -> Poll<io::Result<Wake>> {
        if let Poll::Ready(signal) = self.signals.poll(cx) {
            return Poll::Ready(Ok(Wake::Signal(signal)));
        }
        if let Poll::Ready(fired) = self.alarm.poll(cx) {
            return Poll::Ready(fired.map(|()| Wake::Alarm));
        }
        if let Some(links) = &mut self.links
            && let Poll::Ready(()) = links.poll_change(cx)
        {
            return Poll::Ready(Ok(Wake::NetworkChanges));
        }
        if let Some(beside) = &mut self.beside
            && let Poll::Ready(Some(news)) = beside.news.poll_recv(cx)
        {
            return Poll::Ready(Ok(Wake::Notice(news)));
        }
        if !self.tty.is_flushed()
            && let Poll::Ready(()) = self.tty.poll_flush(cx)
        {
            return Poll::Ready(Ok(Wake::Flushed));
        }
        if self.keys == Keys::Open
            && self.client.wants_keys()
            && let Poll::Ready(read) = self.tty.poll_read(cx, inbox.keys.as_mut_slice())
        {
            return Poll::Ready(read.map(Wake::Keys));
        }
        // Datagrams wait while one is applied; all else does not.
        if self.client.is_applying() {
            return Poll::Ready(Ok(Wake::Part));
        }
        // An error here is about something sent earlier, which is resent anyway.
        while let Poll::Ready(received) = self.paths.poll_recv(cx, &mut inbox.datagram) {
            if let Ok((len, arrival)) = received {
                return Poll::Ready(Ok(Wake::Datagram(len, arrival)));
            }
        }
        Poll::Pending
    }

    fn handle(&mut self, now: Time, wake: Wake, inbox: &mut Inbox) -> io::Result<()> {
        match wake {
            Wake::Alarm | Wake::Flushed => {}
            Wake::NetworkChanges => {
                if self.paths.have_moved() {
                    self.trace.step(format_args!("the network has changed"));
                    self.move_on(now);
                }
            }
            Wake::Keys(0) => {
                self.trace.step(format_args!("standard input has ended"));
                self.keys = Keys::Ended;
                self.client.handle_eof(now);
            }
            Wake::Keys(len) => {
                if let Some(StreamsHandle { link, .. }) = &self.beside {
                    link.mark_interactive();
                }
                self.client.handle_keys(now, &inbox.keys[..len]);
            }
            Wake::Datagram(len, arrival) => {
                let from = arrival.from;
                match self.client.handle_datagram(now, arrival, &mut inbox.datagram[..len]) {
                    Ok(()) => self.heard(now, from),
                    Err(reject) => self.trace.step(format_args!("datagram refused: {reject}")),
                }
            }
            Wake::Part => self.client.apply_part(now),
            Wake::Notice(news) => self.tell(now, news),
            Wake::Signal(Signal::WINCH) => {
                let size = window(self.trace);
                self.trace.step(format_args!("the window is {} by {}", size.cols, size.rows));
                self.client.handle_resize(now, size);
            }
            Wake::Signal(Signal::CONT) => self.resume(),
            Wake::Signal(signal) => {
                self.trace.step(format_args!("signal {} came", signal.as_raw()));
                // A terminal that goes away says so twice; twice is how a user insists.
                let told = signal == Signal::HUP && self.keys == Keys::Ended;
                if self.signal.replace(signal).is_some() || !told {
                    self.client.handle_signal(now);
                }
            }
        }
        Ok(())
    }

    /// Tells what there is to tell of what is forwarded: in the bar, since the screen is the session's.
    fn tell(&mut self, now: Time, news: Notice) {
        let exits = self.beside.as_ref().is_some_and(|it| it.on_failure == OnFailure::Exit);
        match news {
            Notice::Settled => {}
            Notice::Step(text) => self.trace.step(format_args!("{text}")),
            Notice::Failed(text) if exits => {
                self.failure = Some(text);
                self.client.handle_signal(now);
            }
            Notice::Note(text) | Notice::Warning(text) | Notice::Failed(text) => {
                self.trace.step(format_args!("{text}"));
                self.client.warn(now, &text);
            }
        }
    }

    fn heard(&mut self, now: Time, from: SocketAddr) {
        if self.contact == Contact::Awaited {
            self.contact = Contact::Made;
            self.trace.step(format_args!("first heard from {from}"));
        }
        if let Some(StreamsHandle { link, .. }) = &self.beside {
            link.heard(self.paths.server_by(from));
        }
        if let Some(chosen) = self.paths.heard(now, from) {
            self.trace.step(format_args!("sending to {chosen}"));
        }
    }

    /// Does all that the machine wants done now.
    fn drain(&mut self, now: Time) -> io::Result<()> {
        loop {
            while let Some(transmit) = self.client.poll_transmit(now, &mut self.out) {
                if transmit.new_port {
                    self.hop(now);
                }
                match self.paths.send(now, &self.out.datagram) {
                    Sent::Gone => {}
                    Sent::TooBig => {
                        self.trace.step(format_args!("smaller datagrams from now on"));
                        self.client.datagram_too_big();
                    }
                    Sent::Failed(error) => {
                        self.trace.step(format_args!("cannot send: {error}"));
                        self.client.send_failed(now, &describe(&error));
                    }
                }
            }
            if self.tty.is_flushed() {
                self.client.poll_paint(now, self.tty.frame());
            }
            match self.client.poll_event() {
                Some(Event::Suspend) => self.suspend()?,
                Some(Event::TerminalKnown) => self.tty.close_with(self.client.tty_abandon()),
                Some(Event::Exited(exit)) => self.exit = Some(exit),
                Some(_) => {}
                None => break,
            }
        }
        wipe_stack();
        let due = self.client.poll_timeout();
        let stuck = !self.tty.is_flushed() && due.is_some_and(|due| due <= now);
        self.alarm.set(if stuck { Some(now + STUCK_PAUSE) } else { due })
    }

    /// Says at once what is unanswered, by whatever way there is now.
    fn move_on(&mut self, now: Time) {
        if let Err(error) = self.paths.moved(now) {
            self.trace.step(format_args!("cannot open another port: {error}"));
        }
        self.client.network_changed(now);
        if let Some(StreamsHandle { link, .. }) = &self.beside {
            link.moved();
        }
    }

    fn hop(&mut self, now: Time) {
        match self.paths.hop(now) {
            Ok(()) => self.trace.step(format_args!("nothing heard: trying another port of ours")),
            // The old port may yet work.
            Err(error) => self.trace.step(format_args!("cannot open another port: {error}")),
        }
    }

    /// Stops the process group, as the terminal's own suspend key would.
    fn suspend(&mut self) -> io::Result<()> {
        self.hear_out();
        self.tty.give_back(&self.client.tty_close());
        kill_current_process_group(Signal::TSTP)?;
        // Without a shell to stop for it never stopped, and no SIGCONT will come. If it did stop, one
        // comes yet and takes the terminal once more, which changes nothing.
        self.resume();
        Ok(())
    }

    /// Takes the terminal again after whatever others did to it. Doing so twice is harmless: what is to
    /// be given back stays what it was, and what is on it is scrolled up once.
    fn resume(&mut self) {
        let opening = match tty::is_borrowed() {
            true => self.client.tty_reopen(),
            false => self.client.tty_open(),
        };
        match self.tty.borrow(&opening, self.client.tty_abandon()) {
            Ok(()) => {
                let now = self.clock.now();
                self.client.resumed();
                self.client.was_put_off(now);
                self.client.handle_resize(now, window(self.trace));
            }
            // A terminal that hangs up continues what it stops; the hang-up is told apart.
            Err(error) => self.trace.step(format_args!("the terminal is gone: {error}")),
        }
    }

    /// Shows the last picture, if the terminal still takes it.
    async fn finish(&mut self) {
        for _ in 0..2 {
            let flush = poll_fn(|cx| self.tty.poll_flush(cx));
            if tokio::time::timeout(LAST_PAINT_WAIT, flush).await.is_err() {
                break;
            }
            self.client.poll_paint(self.clock.now(), self.tty.frame());
        }
        self.hear_out();
        self.tty.give_back(&self.client.tty_close());
    }

    /// Takes what the terminal is still answering, a second of it at most. What is typed meanwhile is
    /// the session's.
    fn hear_out(&mut self) {
        let mut octets = [0; HEARD_OUT_BYTES];
        while let Some(due) = self.client.answers_due().filter(|_| self.client.wants_keys()) {
            let wait = due.since(self.clock.now());
            match self.tty.read_within(wait, &mut octets) {
                Ok(len @ 1..) => self.client.handle_keys(self.clock.now(), &octets[..len]),
                // Nothing came, or nothing will.
                Ok(0) | Err(_) => return,
            }
        }
    }

    fn summarize(&self, exit: &Exit) {
        let (stats, rtt) = (self.client.stats(), self.client.rtt());
        let clean = if exit.clean { "cleanly" } else { "without a word from the server" };
        self.trace.step(format_args!("ended {clean}: {:?}", exit.cause));
        self.trace.step(format_args!(
            "sent {} datagrams, {} octets; received {}, {} octets; refused {}; late {}",
            stats.sent.datagrams,
            stats.sent.bytes,
            stats.received.datagrams,
            stats.received.bytes,
            stats.rejected.total(),
            stats.late,
        ));
        self.trace.step(format_args!(
            "round trip {:?} (varying by {:?}), {} states sent again, {} changes of port",
            rtt.srtt(),
            rtt.rttvar(),
            stats.resends,
            stats.hops,
        ));
    }
}

/// The signals a session answers to.
struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Signals {
    fn watch() -> io::Result<Signals> {
        let watched =
            [Signal::WINCH, Signal::CONT, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];
        let watch = |kind: Signal| Ok((kind, signal(SignalKind::from_raw(kind.as_raw()))?));
        watched.into_iter().map(watch).collect::<io::Result<_>>().map(Signals)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Signal> {
        for (kind, signal) in &mut self.0 {
            if let Poll::Ready(Some(())) = signal.poll_recv(cx) {
                return Poll::Ready(*kind);
            }
        }
        Poll::Pending
    }
}

/// The window's size; terminals that do not know theirs are taken for the usual one.
fn window(trace: &Trace) -> Size {
    tty::window().unwrap_or_else(|| {
        let (rows, cols) = tty::SIZE_UNKNOWN;
        trace.step(format_args!("the terminal does not know its size; taking {cols} by {rows}"));
        Size::clamped(rows, cols)
    })
}

/// An error in the system's words, without its number.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That a server is told as well is in tests/client.rs.
    #[test]
    fn who_pays_for_octets_sends_fewer_to_a_rove() {
        for (kind, tariff, timing) in [
            (Kind::Rove, CostProfile::Flat, Timing::ROVE),
            (Kind::Rove, CostProfile::Metered, Timing::METERED),
            (Kind::Stock, CostProfile::Metered, Timing::ROVE_TO_STOCK),
        ] {
            assert_eq!(manner(kind, tariff).1, timing, "{kind:?} {tariff:?}");
        }
        assert_ne!(Timing::ROVE, Timing::METERED);
    }
}
