//! Runs a real program on a real terminal between the machines of a mobile shell. Link and machines run in the
//! world's time, which follows the clock. A [`Typist`] types, and every guess on the screen is checked.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Command;
use std::time::Duration;

use rove::testing::{LinePoller, look_at_line};
use rove_session::client::Obscure;
use rove_session::predict::{LineMode, Settings};
use rove_session::{Server, server};
use rove_ssp::{Machine, Time};
use rove_term::{Screen, Size};
use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, ioctl_fionbio};

use super::cast::word;
use super::seat::{self, Seat, text};
use super::typist::{Deal, Secrecy, Stroke, Typist};
use crate::address::NodeId;
use crate::clock::Clock;
use crate::ends::End;
use crate::link::Profile;
use crate::process::{Owned, read_terminal, wait_ready};
use crate::sys::spawn_on_pty;
use crate::world::{Fault, Node, World};

/// A session to play.
#[derive(Debug)]
pub struct Scene {
    /// The program.
    pub command: Command,
    /// The typist.
    pub typist: Typist,
    /// The characters of the secrets that occur in no other typed text.
    pub secret: String,
    /// Each way.
    pub link: Profile,
    /// The rules that make the guesses.
    pub settings: Settings,
    /// What a listener is kept from learning.
    pub obscure: Obscure,
}

/// The observations.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Guesses that showed a character of a secret where the server did not show it within `ECHOED`.
    pub leaks: Vec<String>,
    /// Guesses of characters of secrets that the terminal line itself echoed, typed ahead of the question.
    pub echoed: u64,
    /// Characters of secrets typed.
    pub secrets: u64,
    /// Letters typed while the program called `shell` had the screen.
    pub shell_keys: u64,
    /// Of those, the ones that were shown at once by a guess.
    pub shell_shown: u64,
    /// The modes in which the terminal line was seen.
    pub modes: BTreeSet<&'static str>,
    /// The screen in the end.
    pub last: Vec<String>,
    /// The keys typed, and when.
    pub typed: Vec<(Time, Stroke)>,
    /// When keys were typed that the client kept for the end of a hidden line.
    pub kept: BTreeSet<Time>,
    /// The program's screens, and since when each stood.
    pub screens: Vec<(Time, Screen)>,
    /// The octets that the program's terminal was given, and when.
    pub fed: Vec<(Time, Vec<u8>)>,
    /// How often the bar said that the keys of a hidden line were not sent.
    pub lines_lost: u64,
}

/// The terminal line's echo is on the server's screen within this span of a guess, before or after.
pub(crate) const ECHOED: Duration = Duration::from_secs(2);

/// The program for which letters are counted.
pub(crate) const SHELL: &str = "shell";

/// A part of what the bar says of a hidden line that has ended by itself.
const LINE_LOST: &str = "the hidden line ended";

/// How often the program's terminal is looked at.
const TURN: Duration = Duration::from_millis(1);

/// No key before the session is up, as in the replays.
const LEAD: Duration = Duration::from_secs(4);

/// The session goes on for this long after the last key.
const TAIL: Duration = Duration::from_secs(2);

const SIZE: Size = Size::DEFAULT;

/// One read; a pty hands out at most 4 KiB at a time.
const CHUNK_BYTES: usize = 4_096;

/// Plays a scene to its end.
///
/// # Errors
/// If the program does not start, a step of the script waits in vain, or an invariant breaks.
pub fn play(scene: Scene) -> io::Result<Report> {
    let Scene { command, mut typist, secret, link, settings, obscure } = scene;
    let mut world = World::new(1);
    let host = world.join(End::Host(Box::new(Stage::start(command, obscure)?)));
    let person = Watcher::new(settings, world.address(host), secret, obscure);
    let person = world.join(End::Person(Box::new(person)));
    world.connect(person, host, link.clone());
    world.connect(host, person, link);
    let clock = Clock::start();
    let mut last = Time::ZERO + LEAD;
    while !typist.is_done() || clock.now() < last + TAIL {
        run_until(&mut world, clock.now())?;
        let now = world.now();
        if world.node_mut(host).host_mut().listen(now)? {
            world.poke(host).map_err(failed)?;
        }
        while let Some(deal) = deal(&mut typist, &world, person, now)? {
            world.node_mut(person).person_mut().take(now, deal);
            world.poke(person).map_err(failed)?;
            last = now;
        }
        world.node_mut(host).host_mut().wait()?;
    }
    let far = world.node_mut(host).host_mut();
    let (modes, held) = (std::mem::take(&mut far.modes), std::mem::take(&mut far.held));
    let fed = std::mem::take(&mut far.fed);
    let end = world.node_mut(person).person_mut();
    let mut report = Report {
        modes,
        fed,
        last: end.seat.tty.screen().text(),
        ..std::mem::take(&mut end.report)
    };
    for guess in &end.guesses {
        if guess.is_echoed(&held) {
            report.echoed += 1;
        } else {
            report.leaks.push(format!("{guess:?}"));
        }
    }
    report.screens = held;
    Ok(report)
}

/// A character of a secret that no frame showed when it was painted.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Guess {
    at: (u16, u16),
    text: String,
    when: Time,
    /// The row as it was shown.
    line: String,
}

impl Guess {
    fn is_echoed(&self, held: &[(Time, Screen)]) -> bool {
        let near = held
            .iter()
            .filter(|(at, _)| at.since(self.when) <= ECHOED && self.when.since(*at) <= ECHOED);
        near.into_iter().any(|(_, screen)| text(screen, self.at.0, self.at.1) == self.text)
    }
}

/// Both ends of a scene.
type Ends = End<Watcher, Stage>;

fn run_until(world: &mut World<Ends>, now: Time) -> io::Result<()> {
    world.run_until(now).map_err(failed)
}

fn failed(fault: Fault) -> io::Error {
    io::Error::other(fault.to_string())
}

/// The typist's next action; none before the session is up.
fn deal(
    typist: &mut Typist,
    world: &World<Ends>,
    person: NodeId,
    now: Time,
) -> io::Result<Option<Deal>> {
    let person = world.node(person).person();
    if now < Time::ZERO + LEAD {
        return Ok(None);
    }
    typist.poll(now, person.seat.tty.screen(), person.changed).map_err(io::Error::other)
}

/// The near end.
struct Watcher {
    seat: Seat,
    /// When the terminal last changed.
    changed: Time,
    program: String,
    secret: String,
    guesses: Vec<Guess>,
    /// The bar says that the keys of a hidden line were not sent.
    says_lost: bool,
    report: Report,
}

impl Watcher {
    fn new(
        settings: Settings,
        server: std::net::SocketAddr,
        secret: String,
        obscure: Obscure,
    ) -> Self {
        Self {
            seat: Seat::with(SIZE, settings, server, obscure),
            changed: Time::ZERO,
            program: String::new(),
            secret,
            guesses: Vec::new(),
            says_lost: false,
            report: Report::default(),
        }
    }

    fn take(&mut self, now: Time, deal: Deal) {
        match deal {
            Deal::Program(name) => self.program = name,
            Deal::Key(stroke) => self.press(now, &stroke),
        }
    }

    fn press(&mut self, now: Time, stroke: &Stroke) {
        let held = self.seat.client.keys_held();
        self.seat.client.handle_keys(now, &stroke.octets);
        if self.seat.client.keys_held() > held {
            self.report.kept.insert(now);
        }
        self.report.typed.push((now, stroke.clone()));
        self.paint(now);
        let letter = std::str::from_utf8(&stroke.octets).ok().and_then(|text| text.parse().ok());
        let Some(letter) = letter.filter(|letter: &char| !letter.is_control()) else { return };
        if stroke.secrecy == Secrecy::Secret {
            self.report.secrets += 1;
        } else if self.program == SHELL {
            self.report.shell_keys += 1;
            self.report.shell_shown += u64::from(self.guessed(letter));
        }
    }

    /// This letter stands left of the cursor, and no frame has shown it.
    fn guessed(&self, letter: char) -> bool {
        let (shown, frame) = (self.seat.tty.screen(), self.seat.client.view().screen());
        let (at, real) = (shown.cursor(), frame.cursor());
        let Some(col) = at.col.checked_sub(1) else { return false };
        let stands = text(shown, at.row, col) == letter.to_string();
        stands && (at.row, at.col) != (real.row, real.col)
    }

    fn paint(&mut self, now: Time) {
        if !self.seat.paint(now) {
            return;
        }
        self.changed = now;
        let says = self.seat.tty.screen().row_text(0).contains(LINE_LOST);
        self.report.lines_lost += u64::from(says && !std::mem::replace(&mut self.says_lost, says));
        self.says_lost = says;
        let (shown, frame) = (self.seat.tty.screen(), self.seat.client.view().screen());
        for row in 0..SIZE.rows.min(frame.size().rows) {
            for col in 0..SIZE.cols.min(frame.size().cols) {
                let seen = text(shown, row, col);
                if seen.chars().any(|c| self.secret.contains(c)) && seen != text(frame, row, col) {
                    let (at, line) = ((row, col), shown.row_text(row));
                    self.guesses.push(Guess { at, text: seen, when: now, line });
                }
            }
        }
    }
}

impl Node for Watcher {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.seat.client
    }

    // Keys follow the clock, not the world.
    fn turn(&mut self, _: Time) -> Result<(), Fault> {
        Ok(())
    }

    fn settle(&mut self, now: Time) -> Result<(), Fault> {
        self.paint(now);
        Ok(())
    }

    fn wake(&self) -> Option<Time> {
        None
    }
}

/// The far end: the server, and a program on a terminal. Killed when dropped.
struct Stage {
    server: Server,
    _child: Owned,
    master: OwnedFd,
    /// For the program, and not yet taken by its terminal. Held by the scripts, which type lines.
    outgoing: VecDeque<u8>,
    watch: LinePoller,
    modes: BTreeSet<&'static str>,
    /// Every screen of the program.
    held: Vec<(Time, Screen)>,
    /// Octets that its terminal has taken, and when.
    fed: Vec<(Time, Vec<u8>)>,
    /// The program has left its terminal.
    left: bool,
}

impl Stage {
    fn start(command: Command, obscure: Obscure) -> io::Result<Self> {
        let (child, master) = spawn_on_pty(command, SIZE.rows, SIZE.cols)?;
        ioctl_fionbio(&master, true)?;
        Ok(Self {
            server: match obscure {
                Obscure::Always => seat::server_with_slots(SIZE, Some(server::SCREEN_RATE)),
                _ => seat::server(SIZE, Some(server::SCREEN_RATE)),
            },
            _child: Owned(child),
            master,
            outgoing: VecDeque::new(),
            watch: LinePoller::new(),
            modes: BTreeSet::new(),
            held: Vec::new(),
            fed: Vec::new(),
            left: false,
        })
    }

    /// Takes the program's output, and looks at its terminal line as the real server does. Returns whether there is
    /// anything new.
    fn listen(&mut self, now: Time) -> io::Result<bool> {
        if self.left {
            return Ok(false);
        }
        let mut buffer = [0; CHUNK_BYTES];
        match read_terminal(&self.master, &mut buffer)? {
            None => self.left = true,
            Some(0) => {}
            Some(length) => {
                self.look(now);
                self.watch.on_output(now);
                self.server.handle_output(now, &buffer[..length]);
                self.held.push((now, self.server.screen().clone()));
                return Ok(true);
            }
        }
        let due = self.watch.next().is_some_and(|next| next <= now);
        if due {
            self.look(now);
        }
        Ok(due)
    }

    fn look(&mut self, now: Time) {
        let Ok(look) = look_at_line(&self.master) else { return };
        let report = self.watch.looked(now, look);
        self.modes.insert(word(look.mode));
        if self.server.reports_line() {
            self.server.handle_line(report);
        }
    }

    /// Passes typed keys to the program.
    fn feed(&mut self, now: Time) -> io::Result<()> {
        let mut octets = Vec::new();
        while self.server.pending_input() > 0 {
            self.server.poll_input(&mut octets);
            self.outgoing.extend(&octets);
            self.watch.on_keys(now, &octets);
        }
        if !self.left {
            self.look(now);
        }
        while !self.outgoing.is_empty() && !self.left {
            let (front, _) = self.outgoing.as_slices();
            match rustix::io::write(&self.master, front) {
                Ok(written) => self.fed.push((now, self.outgoing.drain(..written).collect())),
                Err(Errno::AGAIN | Errno::INTR | Errno::IO) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Sleeps until the program has written, but not for long.
    fn wait(&self) -> io::Result<()> {
        let mut watched = [PollFd::from_borrowed_fd(self.master.as_fd(), PollFlags::IN)];
        let watched = if self.left { &mut watched[..0] } else { &mut watched[..] };
        wait_ready(watched, Some(TURN))?;
        Ok(())
    }
}

impl Node for Stage {
    fn machine(&mut self) -> &mut dyn Machine {
        &mut self.server
    }

    fn turn(&mut self, now: Time) -> Result<(), Fault> {
        self.feed(now).map_err(|error| Fault::new(now, error.to_string()))
    }

    fn wake(&self) -> Option<Time> {
        None
    }
}

/// The mode as the tests name it.
pub fn hidden() -> &'static str {
    word(LineMode::Hidden)
}
