//! The end of a session on the user's terminal: moves keys, pictures and signals between the terminal and
//! the session. The session makes the decisions.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use rove_session::client::{Cause, Event, Exit};
use rove_session::{Client, SessionInfo};
use rove_ssp::{Machine, Reject, Remote, Session, StreamId, Time};
use rove_streams::clock;
use rove_term::Size;
use zeroize::Zeroize;

use crate::client::lingering::Lingering;
use crate::client::streams::StreamsHandle;
use crate::client::way::{WayNews, WayWatch};
use crate::client::way_back::Returning;
use crate::driver::{self, End, Flow};
use crate::keeper::Answer;
use crate::net::carrier::{Carrier, Heard};
use crate::net::port::{Network, Port, Turn};
use crate::net::stdio::Stdio;
use crate::notice::{Notice, OnFailure};
use crate::os::clock::Clock;
use crate::os::signals::{self, Signal, Signals};
use crate::os::tty::{self, Tty};
use crate::trace::Trace;

/// Octets read from the terminal at a time.
const KEYS_BYTES_MAX: usize = 16_384;

/// Interval of turns while the terminal takes no output. Its paint stays overdue meanwhile, so the session's
/// own deadline would make us spin.
const STUCK_PAUSE: Duration = Duration::from_millis(50);

/// How long to wait for the terminal to take the last picture.
const LAST_PAINT_WAIT: Duration = Duration::from_millis(500);

/// How long to wait for it to take some of the lines above that.
const LAST_LINES_WAIT: Duration = Duration::from_secs(10);

/// Octets read at a time from the terminal before it is given back: some answers are a kilobyte.
const HEARD_OUT_BYTES: usize = 1024;

/// The event that a turn handles, besides datagrams and time. A turn handles one event, so that typed keys
/// are sent before the next event.
#[derive(Debug)]
enum Wake {
    Signal(Signal),
    Notice(Notice),
    /// The keeper has answered.
    Answer(io::Result<Answer>),
    Flushed,
    /// This many octets were typed; 0 is the end of input.
    Keys(usize),
    /// The last datagram has more work.
    Part,
}

/// The user's terminal, and the session on it.
pub(super) struct Screen<'a> {
    clock: Clock,
    trace: &'a Trace,
    client: Client,
    tty: Tty,
    signals: Signals,
    /// Streams beside the session.
    beside: Option<StreamsHandle>,
    ways: WayWatch,
    back: Option<Returning>,
    /// Why the session is gone, if it is.
    gone: Option<String>,
    wake: Option<Wake>,
    /// This turn handled that event.
    handled: bool,
    typed: Box<[u8; KEYS_BYTES_MAX]>,
    /// The failure that ended the session early.
    failure: Option<String>,
    /// The server was heard.
    has_contact: bool,
    /// No more input comes.
    keys_ended: bool,
    signal: Option<Signal>,
    /// Where the lines began that the terminal is taking to its history.
    pushed: Option<u64>,
    exit: Option<Exit>,
}

impl<'a> Screen<'a> {
    pub(super) fn new(
        clock: Clock,
        trace: &'a Trace,
        client: Client,
        tty: Tty,
        signals: Signals,
        beside: Option<StreamsHandle>,
        ways: WayWatch,
    ) -> Screen<'a> {
        Screen {
            clock,
            trace,
            client,
            tty,
            signals,
            beside,
            ways,
            back: None,
            gone: None,
            wake: None,
            handled: false,
            typed: Box::new([0; KEYS_BYTES_MAX]),
            failure: None,
            has_contact: false,
            keys_ended: false,
            signal: None,
            pushed: None,
            exit: None,
        }
    }

    /// It can come back to the session this way.
    pub(super) fn return_by(&mut self, back: Option<Returning>) {
        self.back = back;
    }

    /// Shows the session on the terminal until it ends, and gives the terminal back.
    pub(super) async fn run(&mut self, port: &mut Port<'_>) -> io::Result<Exit> {
        tty::hold_panics();
        self.trace.hold();
        self.tty.borrow(&self.client.tty_open(), self.client.tty_abandon())?;
        driver::run(port, self).await?;
        self.finish().await;
        // The user has the terminal back, and typed keys are the shell's. What still goes wrong changes nothing.
        let (client, signals) = (&mut self.client, &mut self.signals);
        let mut lingering = Lingering { client, signals, signal: None };
        lingering.run(port).await;
        self.signal = lingering.signal.or(self.signal);
        let exit = self.exit.expect("a session that is over has ended somehow");
        self.summarize(&exit);
        Ok(exit)
    }

    /// What the server last said of the session.
    pub(super) fn session_info(&self) -> Option<SessionInfo> {
        self.client.view().session().cloned()
    }

    /// Why the session is gone, if it is.
    pub(super) fn gone(&mut self) -> Option<String> {
        self.gone.take()
    }

    /// Closes the streams. Returns the failure that ended the session early, the signal that asked for the end,
    /// and how many datagrams did not decrypt.
    pub(super) fn end(self) -> (Option<String>, Option<Signal>, u64) {
        drop(self.tty);
        if let Some(beside) = self.beside {
            beside.link.close();
        }
        (self.failure, self.signal, self.client.endpoint().stats().rejected.total)
    }

    /// Polls for one event. Urgent and rare ones come first.
    fn poll_wake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Wake>> {
        if let Poll::Ready(signal) = self.signals.poll(cx) {
            return Poll::Ready(Ok(Wake::Signal(signal)));
        }
        if let Some(beside) = &mut self.beside
            && let Poll::Ready(Some(news)) = beside.news.poll_recv(cx)
        {
            return Poll::Ready(Ok(Wake::Notice(news)));
        }
        if let Some(back) = &mut self.back
            && let Poll::Ready(answer) = back.poll_answer(cx)
        {
            return Poll::Ready(Ok(Wake::Answer(answer)));
        }
        if !self.tty.is_flushed()
            && let Poll::Ready(()) = self.tty.poll_flush(cx)
        {
            return Poll::Ready(Ok(Wake::Flushed));
        }
        if !self.keys_ended
            && self.client.wants_keys()
            && let Poll::Ready(read) = self.tty.poll_read(cx, self.typed.as_mut_slice())
        {
            return Poll::Ready(read.map(Wake::Keys));
        }
        if self.client.is_applying() {
            return Poll::Ready(Ok(Wake::Part));
        }
        Poll::Pending
    }

    fn handle(&mut self, now: Time, wake: Wake) {
        match wake {
            Wake::Flushed => self.written(now),
            Wake::Keys(0) => {
                self.trace.step(format_args!("standard input has ended"));
                self.keys_ended = true;
                self.client.handle_eof(now);
            }
            Wake::Keys(len) => {
                self.client.handle_keys(now, &self.typed[..len]);
                self.back.iter_mut().for_each(|back| back.typed(now));
                self.typed[..len].zeroize();
            }
            Wake::Part => self.client.apply_part(now),
            Wake::Notice(news) => self.tell(now, news),
            Wake::Answer(answer) => {
                let Some(back) = &mut self.back else { return };
                self.gone = back.answered(now, answer, &mut self.client, self.trace);
                if self.gone.is_some() {
                    self.client.end_gone(now);
                }
            }
            Wake::Signal(Signal::WINCH) => {
                let size = window(self.trace);
                self.trace.step(format_args!("the window is {} by {}", size.cols, size.rows));
                self.resized(now, size);
            }
            Wake::Signal(Signal::CONT) => self.resume(),
            Wake::Signal(signal) => {
                self.trace.step(format_args!("signal {} came", signal.as_raw()));
                // A terminal that goes away says so twice; twice is how a user insists.
                let told = signal == Signal::HUP && self.keys_ended;
                let is_first = self.signal.replace(signal).is_none();
                if is_first && signal == Signal::HUP && !told {
                    self.client.handle_hangup(now, Cause::Signal);
                } else if !is_first || !told {
                    self.client.handle_signal(now);
                }
            }
        }
    }

    /// Brings the terminal up to date, which has taken all before. Whether there was anything to write.
    fn paint(&mut self, now: Time) -> bool {
        if self.client.pushes_lines() {
            self.look_at_window(now);
        }
        let printed = self.client.lines_printed();
        let is_news = self.client.poll_paint(now, self.tty.frame());
        self.pushed = (self.client.lines_printed() > printed).then_some(printed);
        is_news
    }

    /// The terminal has taken the last paint.
    fn written(&mut self, now: Time) {
        if self.pushed.is_some() {
            self.look_at_window(now);
        }
        self.pushed = None;
    }

    /// A window that has just got another size may not have said so yet.
    fn look_at_window(&mut self, now: Time) {
        if let Some(size) = tty::window().filter(|size| *size != self.client.window_size()) {
            self.resized(now, size);
        }
    }

    /// Lines that were on their way to the terminal meanwhile count as not printed.
    fn resized(&mut self, now: Time, size: Size) {
        if size != self.client.window_size()
            && let Some(printed) = self.pushed.take()
        {
            self.client.print_again(printed);
        }
        self.client.handle_resize(now, size);
    }

    /// Shows a notice about forwardings in the bar, since the screen is the session's.
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

    /// Stops the process group, as the terminal's own suspend key would.
    fn suspend(&mut self) -> io::Result<()> {
        self.hear_out();
        self.tty.give_back(&self.client.tty_close());
        signals::suspend()?;
        // Without a shell to stop for it never stopped, and no SIGCONT will come. If it did stop, one
        // comes yet and takes the terminal once more, which changes nothing.
        self.resume();
        Ok(())
    }

    /// Takes the terminal again after other programs used it. A second call is harmless: the state to
    /// restore stays, and the terminal's contents scroll up only once.
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
                self.pushed = None;
                self.client.handle_resize(now, window(self.trace));
            }
            // A terminal that hangs up continues what it stops; the hang-up is told apart.
            Err(error) => self.trace.step(format_args!("the terminal is gone: {error}")),
        }
    }

    /// Shows the last picture and the lines above it, as far as the terminal takes them.
    async fn finish(&mut self) {
        let mut wait = LAST_PAINT_WAIT;
        loop {
            if self.client.lines_due().is_some() {
                wait = LAST_LINES_WAIT;
            }
            let flush = poll_fn(|cx| self.tty.poll_flush(cx));
            if clock::within(wait, flush).await.is_err() {
                break;
            }
            let now = self.clock.now();
            self.written(now);
            if self.paint(now) {
                continue;
            }
            match (self.client.cursor_due(), self.client.lines_due()) {
                (Some(due), _) => {
                    if !self.hear(due) {
                        clock::sleep(due.since(self.clock.now())).await;
                    }
                }
                (None, Some(due)) => clock::sleep(due.since(now)).await,
                (None, None) => break,
            }
        }
        self.hear_out();
        self.tty.give_back(&self.client.tty_close());
    }

    /// Reads the answers that the terminal is still sending, for at most a second. Keys typed meanwhile go
    /// to the session.
    fn hear_out(&mut self) {
        while let Some(due) = self.client.answers_due().filter(|_| self.client.wants_keys()) {
            if !self.hear(due) {
                return;
            }
        }
    }

    /// The round trip of the way in use, if it is known.
    fn round_trip(&self) -> Option<Duration> {
        let rtt = self.client.endpoint().rtt();
        (rtt.samples() > 0).then(|| rtt.srtt())
    }

    /// Waits for what the terminal sends. Whether anything came, or will.
    fn hear(&mut self, until: Time) -> bool {
        let mut octets = [0; HEARD_OUT_BYTES];
        let wait = until.since(self.clock.now());
        match self.tty.read_within(wait, &mut octets) {
            Ok(len @ 1..) => self.client.handle_keys(self.clock.now(), &octets[..len]),
            Ok(0) | Err(_) => return false,
        }
        true
    }

    fn summarize(&self, exit: &Exit) {
        let (stats, rtt) = (self.client.endpoint().stats(), self.client.endpoint().rtt());
        let clean = if exit.clean { "cleanly" } else { "without a word from the server" };
        self.trace.step(format_args!("ended {clean}: {:?}", exit.cause));
        self.trace.step(format_args!(
            "sent {} datagrams, {} octets; received {}, {} octets; refused {}; late {}",
            stats.sent.datagrams,
            stats.sent.bytes,
            stats.received.datagrams,
            stats.received.bytes,
            stats.rejected.total,
            stats.late,
        ));
        self.trace.step(format_args!(
            "round trip {:?} (varying by {:?}), {} states sent again, {} changes of port",
            rtt.srtt(),
            rtt.rttvar(),
            stats.resends,
            stats.hops,
        ));
        self.trace.step(format_args!(
            "typed {} octets; {} guesses were right",
            self.client.typed(),
            self.client.right_guesses(),
        ));
    }
}

impl End for Screen<'_> {
    fn session(&mut self) -> &mut dyn Session {
        &mut self.client
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_wake(cx).map_ok(|wake| self.wake = Some(wake))
    }

    fn before(&mut self, turn: Turn) -> io::Result<()> {
        match turn.network {
            Network::Same => {}
            Network::Changed => self.trace.step(format_args!("the network has changed")),
            Network::Slept => {
                self.trace.step(format_args!("this machine has slept"));
                self.client.was_put_off(turn.now);
            }
        }
        if let (Network::Changed | Network::Slept, Some(beside)) = (turn.network, &self.beside) {
            beside.link.moved();
        }
        if let (Network::Changed | Network::Slept, Some(back)) = (turn.network, &mut self.back) {
            back.network_changed(turn.now);
        }
        let wake = self.wake.take();
        self.handled = wake.is_some();
        if let Some(wake) = wake {
            self.handle(turn.now, wake);
        }
        Ok(())
    }

    /// Keys come before datagrams, since no one types faster than a turn, and datagrams wait while one is
    /// applied. A turn takes one: each may change the picture.
    fn budget(&self) -> usize {
        usize::from(!self.handled && !self.client.is_applying())
    }

    fn heard(&mut self, _: Time, heard: &Heard) {
        if !std::mem::replace(&mut self.has_contact, true) {
            self.trace.step(format_args!("first heard from {}", heard.from));
        }
        if let Some(StreamsHandle { link, .. }) = &self.beside {
            heard.at.iter().for_each(|at| link.heard(*at));
        }
        self.back.iter_mut().for_each(|back| back.heard(heard.from, heard.at));
        if let Some(chosen) = heard.chosen {
            self.trace.step(format_args!("sending to {chosen}"));
        }
    }

    fn stream_ended(&mut self, stream: StreamId) {
        self.trace.step(format_args!("ssh has ended"));
        self.back.iter_mut().for_each(|back| back.stream_ended(stream));
    }

    fn take_stream(&mut self) -> Option<Stdio> {
        self.back.as_mut()?.take_stream()
    }

    fn stream_added(&mut self, now: Time, stream: StreamId) {
        self.client.stream_opened(now, stream);
    }

    fn is_done_with_stream(&mut self, now: Time) -> bool {
        // One that was opened in this turn is in use before the way is looked at.
        let is_in_use = self.client.peer().is_some_and(Remote::is_stream);
        let awaits = self.client.endpoint().awaits_since();
        let is_done = !is_in_use && self.ways.is_done(now, awaits);
        if is_done {
            self.trace.step(format_args!("UDP works, ssh is not needed any more"));
        }
        is_done
    }

    fn refused(&mut self, reject: Reject) {
        self.trace.step(format_args!("datagram refused: {reject}"));
    }

    fn settle(&mut self, now: Time, _: &mut Carrier) -> io::Result<Flow> {
        match self.ways.look(now, self.client.peer(), self.round_trip()) {
            Some(WayNews::Step(text)) => self.trace.step(format_args!("{text}")),
            Some(WayNews::Note(text)) => {
                self.trace.step(format_args!("{text}"));
                self.client.warn(now, &text);
            }
            None => {}
        }
        if let Some(back) = &mut self.back {
            back.advance(now, &mut self.client, self.trace);
        }
        if self.client.take_activity()
            && let Some(StreamsHandle { link, .. }) = &self.beside
        {
            link.mark_interactive();
        }
        if self.tty.is_flushed() {
            self.paint(now);
        }
        match self.client.poll_event() {
            Some(Event::Suspend) if signals::CAN_SUSPEND => self.suspend()?,
            Some(Event::Suspend) => {
                self.client.warn(now, "programs are not suspended on this system");
            }
            Some(Event::TerminalKnown) => self.tty.close_with(self.client.tty_abandon()),
            Some(Event::Exited(exit)) => self.exit = Some(exit),
            Some(_) => {}
            None if self.exit.is_some() => return Ok(Flow::Over),
            None => return Ok(Flow::Yield),
        }
        Ok(Flow::Again)
    }

    fn deadline(&self, now: Time) -> Option<Time> {
        let back = self.back.as_ref().and_then(|back| back.due(self.client.peer()));
        let ways = [self.ways.note_at(self.round_trip()), self.ways.done_at(), back];
        let ways = ways.into_iter().flatten().filter(|at| *at > now);
        let due = self.client.poll_timeout().into_iter().chain(ways).min();
        let is_stuck = !self.tty.is_flushed() && due.is_some_and(|due| due <= now);
        if is_stuck { Some(now + STUCK_PAUSE) } else { due }
    }
}

/// The window's size; the usual one if the terminal does not know its own.
pub(super) fn window(trace: &Trace) -> Size {
    tty::window().unwrap_or_else(|| {
        let (rows, cols) = tty::SIZE_UNKNOWN;
        trace.step(format_args!("the terminal does not know its size; taking {cols} by {rows}"));
        Size::clamped(rows, cols)
    })
}
