//! Streams at the client: beside a shell, or a session of their own that has no terminal and only keeps in
//! touch with the server by the session's datagrams (`docs/streams.md`).
//!
//! Both live in threads of their own: neither keys nor what uses the streams waits for them.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use rove_session::{Input, Peer, View};
use rove_ssp::{
    Config, ConnId, Endpoint, Event, Machine, NativeWire, Outbox, Role, Session as _,
    SessionSecrets, StateNum, Time, Timing, Wire,
};
use rove_streams::Streams;
use rove_streams::client::{self, PathHints};
use rove_term::Size;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::net::routes::{Datagrams, Routes, Sent};
use crate::net::udp::DATAGRAM_BYTES_MAX;
use crate::os::clock::{Alarm, Clock};
use crate::os::netlink::NetworkChanges;
use crate::os::sandbox::{Reach, confine};
use crate::os::signals::asked_to_end;
use crate::os::{self, locked};
use crate::ssh::{Candidates, Reached, Secret};
use crate::trace::Trace;

/// Without any contact for this long the session is given up, as a shell's is.
const CONTACT_WAIT: Duration = Duration::from_secs(15);

/// How long the server's answer to our goodbye is awaited.
const GOODBYE_WAIT: Duration = Duration::from_secs(2);

/// A goodbye whose answer is not awaited, each time after twice as long, within 30 ms: where 29 % of all datagrams are
/// lost, one by one, one goodbye of 500 goes unheard.
const GOODBYES: u32 = 5;
const GOODBYE_FIRST: Duration = Duration::from_millis(2);

/// A turn that comes this much after its time shows that this machine has slept.
const SLEPT_MIN: Duration = Duration::from_secs(2);

/// A size that both ends know from the start: there is no terminal.
const SIZE: (u16, u16) = (24, 80);

/// The streams beside a shell's session, and by what its driver tells what it knows of the path. `lost` is called
/// if a fault of ours ends them before the session. Their thread has given up all but UDP by now. `None`: the server speaks the mosh wire, which has no streams.
pub fn beside(
    found: &Reached,
    lost: impl FnOnce() + Send + 'static,
    trace: &Trace,
) -> io::Result<Option<(Streams, PathHints)>> {
    let Secret::Native(secrets, _) = &found.secret else { return Ok(None) };
    let (streams, link, carrier) = client::start(secrets.streams(), locked::MEMORY);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let path = link.clone();
    let (tell, told) = std::sync::mpsc::channel();
    let work = move || {
        // The receiver waits for this, so the send cannot fail.
        let _ = tell.send(confine(&Reach::Datagrams));
        drop(runtime.block_on(carrier.run()));
    };
    thread::Builder::new().name("streams".into()).spawn(move || carry(work, &path, lost))?;
    let confined = told.recv().map_err(io::Error::other)?;
    trace.step(format_args!("what carries streams is confined: {confined}"));
    Ok(Some((streams, link)))
}

/// Carries streams until they end. A panic on the way, a library's perhaps, ends them, and not the session beside.
fn carry(work: impl FnOnce(), link: &PathHints, lost: impl FnOnce()) {
    let _closing = Closing(link.clone());
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        lost();
    }
}

/// Closes the streams, however it is left.
struct Closing(PathHints);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Does what streams cannot do without: whoever waits for one is to see the end of that, a panic's too.
async fn closing<T>(link: PathHints, work: impl Future<Output = T>) -> T {
    let _closing = Closing(link);
    work.await
}

/// A session without a terminal. Dropping it says goodbye too, and does not wait for the answer.
pub struct Session {
    /// Its streams.
    pub streams: Streams,
    goodbye: Option<oneshot::Sender<Goodbye>>,
    over: oneshot::Receiver<()>,
}

/// How a goodbye is said.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Goodbye {
    /// Until it is answered, or [`GOODBYE_WAIT`] is over.
    Answered,
    /// [`GOODBYES`] times, the first two [`GOODBYE_FIRST`] apart, if no answer comes before.
    Said,
}

impl Session {
    /// Begins the session with a server that was started for streams alone, and waits until the server is
    /// heard. A signal that ends programs ends that, and the server with it.
    pub async fn start(clock: Clock, found: Reached, trace: &Trace) -> Result<Session, Failure> {
        let Secret::Native(secrets, conn) = found.secret else {
            return Err(Failure::new(
                "the server there speaks the mosh wire, which has no streams",
                "Install the same rove there.",
            ));
        };
        let failed = |error: io::Error| Failure::new(format!("cannot begin: {error}"), "");
        os::keep_freed_memory();
        let server = found.candidates.addresses[0];
        let (streams, link, carrier) = client::start(secrets.streams(), locked::MEMORY);
        link.expect(server);
        let (goodbye, said) = oneshot::channel();
        let (tell, contact) = oneshot::channel();
        let (done, over) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let own = link.clone();
        let seat = HeadlessConfig { clock, candidates: found.candidates, secrets, conn, link: own };
        let carry = move || {
            runtime.block_on(async move {
                let carried = tokio::spawn(closing(seat.link.clone(), carrier.run()));
                let drive = async {
                    if let Ok(driver) = Driver::new(seat) {
                        // Nothing was read from the peer yet, by the streams neither. A kernel that cannot is no reason
                        // to have no session.
                        let _ = confine(&Reach::Datagrams);
                        driver.run(tell, said).await;
                    }
                };
                closing(link, drive).await;
                let _ = carried.await;
            });
            let _ = done.send(());
        };
        thread::Builder::new().name("session".into()).spawn(carry).map_err(failed)?;
        let session = Session { streams, goodbye: Some(goodbye), over };
        tokio::select! {
            contact = contact => match contact {
                Ok(from) => trace.step(format_args!("first heard from {from}")),
                Err(_) => return Err(no_contact(server)),
            },
            Ok(_) = asked_to_end() => {
                session.close().await;
                return Err(Failure::new("interrupted before the server was heard", ""));
            }
        }
        Ok(session)
    }

    /// Says goodbye, and waits a little for the answer. What was not delivered is lost.
    pub async fn close(self) {
        self.part(Goodbye::Answered).await;
    }

    /// Says goodbye when all is done, and does not make the user wait a round trip for the answer: a server that misses
    /// each of its datagrams stays as one whose client was killed, which is not for one that still has something to end.
    pub async fn leave(self) {
        self.part(Goodbye::Said).await;
    }

    async fn part(mut self, how: Goodbye) {
        if let Some(goodbye) = self.goodbye.take() {
            let _ = goodbye.send(how);
        }
        let _ = (&mut self.over).await;
    }
}

fn no_contact(server: SocketAddr) -> Failure {
    let (ip, port) = (server.ip(), server.port());
    Failure::new(
        format!("nothing came back from {ip} on UDP port {port}"),
        format!(
            "ssh got there but UDP did not: open UDP port {port} in the firewalls before it, or \
             choose ports they let through with --udp-port."
        ),
    )
}

/// What a session begins with.
struct HeadlessConfig {
    clock: Clock,
    candidates: Candidates,
    secrets: SessionSecrets,
    conn: ConnId,
    link: PathHints,
}

/// Drives the session's own datagrams: both states stay what they were at the start.
struct Driver {
    clock: Clock,
    endpoint: Endpoint<Input, View>,
    paths: Routes,
    alarm: Alarm,
    /// `None` where nobody tells of changes.
    links: Option<NetworkChanges>,
    link: PathHints,
    started: Time,
    heard: bool,
    /// When the answer to a goodbye is no longer waited for.
    leaves: Option<Time>,
    /// The goodbye itself, and when it is said again; where only the answer ends it, `None`.
    repeats: Option<CloseRepeats>,
}

/// A last word that is said a few times over: whichever comes first is heard, and the others are dropped as replays.
struct CloseRepeats {
    /// Empty until it is said first.
    datagram: Vec<u8>,
    left: u32,
    wait: Duration,
    due: Time,
}

enum Wake {
    Alarm,
    NetworkChanges,
    Goodbye(Goodbye),
    Datagram(usize, rove_ssp::Arrival),
}

impl CloseRepeats {
    fn said(&mut self, now: Time) {
        self.left = self.left.saturating_sub(1);
        self.due = now + self.wait;
        self.wait *= 2;
    }

    fn due(&self) -> Option<Time> {
        (!self.datagram.is_empty()).then_some(self.due)
    }

    fn is_due(&self, now: Time) -> bool {
        self.due().is_some_and(|due| due <= now)
    }
}

impl Driver {
    fn new(seat: HeadlessConfig) -> io::Result<Driver> {
        let HeadlessConfig { clock, candidates, secrets, conn, link } = seat;
        let now = clock.now();
        let paths = Routes::open(now, candidates, Datagrams::Whole)?;
        let wire: Box<dyn Wire> =
            locked::within(|| Box::new(NativeWire::new(&secrets, conn, Role::Client)) as _);
        drop(secrets);
        let size = Size::clamped(SIZE.0, SIZE.1);
        let config = Config {
            role: Role::Client,
            wire,
            timing: Timing::ROVE,
            peer: Some(paths.server()),
            local: Input::default(),
            remote: View::new(size, Peer::Rove),
            seed: u64::from_ne_bytes(*os::random()?),
        };
        let mut endpoint = Endpoint::new(now, config);
        // A first state, by which the server knows that it is claimed.
        endpoint.update(now, |input| input.push_resize(size));
        Ok(Driver {
            clock,
            endpoint,
            paths,
            alarm: Alarm::new(clock)?,
            links: NetworkChanges::watch().ok(),
            link,
            started: now,
            heard: false,
            leaves: None,
            repeats: None,
        })
    }

    /// Runs until the session is over, by either end. `contact` is told when the server is first heard.
    async fn run(
        mut self,
        contact: oneshot::Sender<SocketAddr>,
        mut goodbye: oneshot::Receiver<Goodbye>,
    ) {
        let mut contact = Some(contact);
        let mut datagram = [0; DATAGRAM_BYTES_MAX];
        let mut leaving = false;
        loop {
            self.transmit();
            // Not before: to have said the last word is the end.
            if self.is_over() {
                return;
            }
            let due = self.alarm.due();
            let wake = poll_fn(|cx| {
                if !leaving && let Poll::Ready(how) = std::pin::Pin::new(&mut goodbye).poll(cx) {
                    // Who drops the session has gone already.
                    return Poll::Ready(Wake::Goodbye(how.unwrap_or(Goodbye::Answered)));
                }
                if self.alarm.poll(cx).is_ready() {
                    return Poll::Ready(Wake::Alarm);
                }
                if let Some(links) = &mut self.links
                    && links.poll_change(cx).is_ready()
                {
                    return Poll::Ready(Wake::NetworkChanges);
                }
                while let Poll::Ready(received) = self.paths.poll_recv(cx, &mut datagram) {
                    // An error here is about something sent earlier.
                    if let Ok((len, arrival)) = received {
                        return Poll::Ready(Wake::Datagram(len, arrival));
                    }
                }
                Poll::Pending
            });
            let wake = wake.await;
            let now = self.clock.now();
            if due.is_some_and(|due| now.since(due) >= SLEPT_MIN) {
                self.move_on(now);
            }
            match wake {
                Wake::Alarm => {}
                Wake::NetworkChanges if self.paths.have_moved() => self.move_on(now),
                Wake::NetworkChanges => {}
                Wake::Goodbye(how) => {
                    leaving = true;
                    self.leaves = Some(now + GOODBYE_WAIT);
                    let repeats = CloseRepeats {
                        datagram: Vec::new(),
                        left: GOODBYES,
                        wait: GOODBYE_FIRST,
                        due: now,
                    };
                    self.repeats = (how == Goodbye::Said).then_some(repeats);
                    self.endpoint.close(now);
                }
                Wake::Datagram(len, arrival) => {
                    let octets = &mut datagram[..len];
                    if self.endpoint.handle_datagram(now, arrival, octets).is_ok() {
                        self.heard = true;
                        self.paths.heard(now, arrival.from);
                        self.link.heard(self.paths.server_by(arrival.from));
                        if let Some(contact) = contact.take() {
                            let _ = contact.send(arrival.from);
                        }
                    }
                }
            }
        }
    }

    fn is_over(&mut self) -> bool {
        let now = self.clock.now();
        let alone = !self.heard && now.since(self.started) >= CONTACT_WAIT;
        let mut over = alone || self.leaves.is_some_and(|leaves| leaves <= now);
        over |= self.repeats.as_ref().is_some_and(|repeats| repeats.left == 0);
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Closed { .. } | Event::BadRemote(_) | Event::Failed(_) => over = true,
                Event::NewRemote { .. } | Event::PeerRoamed(_) | Event::PeerClosing => {}
            }
        }
        over
    }

    fn transmit(&mut self) {
        let now = self.clock.now();
        let mut out = Outbox::default();
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut out) {
            if transmit.new_port {
                // The old port may yet work.
                let _ = self.paths.hop(now);
            }
            if matches!(self.paths.send(now, &out.datagram), Sent::TooBig) {
                self.endpoint.datagram_too_big();
            }
            // The first one that says so: what follows may be about the path alone.
            if let Some(repeats) = &mut self.repeats
                && repeats.datagram.is_empty()
                && self.endpoint.sent_num() == StateNum::SHUTDOWN
            {
                repeats.datagram.clone_from(&out.datagram);
                repeats.said(now);
            }
        }
        if let Some(repeats) = self.repeats.as_mut().filter(|repeats| repeats.is_due(now)) {
            self.paths.send(now, &repeats.datagram);
            repeats.said(now);
        }
        locked::wipe_stack();
        let alone = (!self.heard).then(|| self.started + CONTACT_WAIT);
        let again = self.repeats.as_ref().and_then(CloseRepeats::due);
        let all = [self.endpoint.poll_timeout(), alone, self.leaves, again];
        let due = all.into_iter().flatten().min();
        // Without a timer there is no going on, and the next datagram wakes us all the same.
        let _ = self.alarm.set(due);
    }

    fn move_on(&mut self, now: Time) {
        let _ = self.paths.moved(now);
        self.endpoint.network_changed(now);
        self.link.moved();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_the_streams_alone() {
        let (streams, link, _carrier) = client::start(&[7; 32], locked::MEMORY);
        let (tell, lost) = oneshot::channel();
        // As `beside` has it: on a thread, which the panic does not get out of.
        let work = move || carry(|| panic!("as planned"), &link, || tell.send(()).unwrap());
        thread::Builder::new().spawn(work).unwrap().join().unwrap();
        lost.await.unwrap();
        assert!(streams.accept().await.is_none(), "nobody waits for what does not come");
    }

    #[tokio::test]
    async fn a_panic_of_what_carries_a_session_ends_its_streams() {
        let (streams, link, _carrier) = client::start(&[7; 32], locked::MEMORY);
        let carried = tokio::spawn(closing(link, async { panic!("as planned") }));
        assert!(carried.await.unwrap_err().is_panic());
        assert!(streams.accept().await.is_none(), "nobody waits for what does not come");
    }
}
