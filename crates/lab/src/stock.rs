//! A stock `mosh-server` as a reference for terminal emulation. A program under it writes given octets, a client of
//! ours receives its frames, and the client's emulator shows what a stock client would show.
//!
//! `rove-ssp` reads the wire; nothing here knows how stock's emulator works.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rove_session::messages::{HostEvent, read_host};
use rove_session::{Input, Peer, View};

use rove_ssp::{
    Arrival, BadDiff, Config, Endpoint, Event, Key, Machine, MoshWire, Outbox, Role, State, Time,
    Timing,
};
use rove_term::{Dialect, Screen, Size, project};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use crate::clock::Clock;
use crate::process::wait_ready;
use crate::run::Stranger;
use crate::scratch::Scratch;

/// The screen as stock's frames make it, and the newest frame.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    view: View,
    frame: Option<Arc<Frame>>,
}

/// One frame of a stock server: its base, its result, and its host bytes.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The screen it starts from.
    pub old: Screen,
    /// The screen it makes.
    pub new: Screen,
    /// The host bytes, without the messages around them.
    pub octets: Vec<u8>,
    /// The cost of applying them, in cells.
    pub cells_touched: u64,
}

impl State for Shown {
    fn diff_from(&self, base: &Self, out: &mut Vec<u8>) {
        self.view.diff_from(&base.view, out);
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        let old = self.view.screen().clone();
        self.view.apply(diff)?;
        let mut octets = Vec::new();
        for event in read_host(diff)? {
            if let HostEvent::Bytes(bytes) = event {
                octets.extend_from_slice(bytes);
            }
        }
        let new = self.view.screen().clone();
        let cells_touched = self.view.cells_touched();
        self.frame = Some(Arc::new(Frame { old, new, octets, cells_touched }));
        Ok(())
    }

    /// The frame's screens are this view's and its base's, which the receiver counts.
    fn weight(&self) -> usize {
        self.view.weight() + self.frame.as_ref().map_or(0, |frame| frame.octets.len())
    }
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        self.view == other.view
    }
}

/// A running `mosh-server` whose program writes the octets it is given. Killed when dropped.
pub struct Stock {
    clock: Clock,
    endpoint: Endpoint<Input, Shown>,
    socket: UdpSocket,
    _server: Stranger,
    /// The program's output to its terminal.
    feed: File,
    /// The terminal's answers to the program.
    replies: File,
    answered: Vec<u8>,
    frames: Vec<Arc<Frame>>,
    over: bool,
    _scratch: Scratch,
}

impl Stock {
    /// Starts the installed `mosh-server`, connects to it with a window of this size, and waits until its
    /// program runs.
    ///
    /// # Errors
    /// If it does not start, or nothing comes from it in time.
    pub fn start(size: Size) -> io::Result<Stock> {
        let scratch = Scratch::new()?;
        let pipe = |name: &str| {
            let path = scratch.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            // Both directions, so that opening does not wait for the program.
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            Ok::<_, io::Error>((File::from(rustix::fs::open(&path, flags, Mode::empty())?), path))
        };
        let (feed, feed_path) = pipe("feed")?;
        let (replies, replies_path) = pipe("replies")?;
        rustix::io::ioctl_fionbio(&replies, true)?;
        let mut command = Command::new("mosh-server");
        command.args(["new", "-i", "127.0.0.1", "-p", PORTS, "-c", "256", "--"]);
        command.args(["sh", "-c", PROGRAM, "sh"]).arg(&feed_path).arg(&replies_path);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8");
        command.env("HOME", scratch.path()).env("SHELL", "/bin/sh");
        let (port, key, server) = launch(command)?;
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        let clock = Clock::start();
        let mut input = Input::default();
        let config = Config {
            role: Role::Client,
            wire: Box::new(MoshWire::new(key, Role::Client)),
            timing: Timing::MOSH,
            peer: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
            local: std::mem::take(&mut input),
            remote: Shown { view: View::new(size, Peer::Stock), frame: None },
            seed: 1,
        };
        let mut stock = Stock {
            endpoint: Endpoint::new(clock.now(), config),
            clock,
            socket,
            _server: server,
            feed,
            replies,
            answered: Vec::new(),
            frames: Vec::new(),
            over: false,
            _scratch: scratch,
        };
        stock.resize(size);
        stock.write(b"\x1b]2;ready\x07")?;
        stock.wait_for("the program", |stock| stock.screen().title() == Some("ready"))?;
        Ok(stock)
    }

    /// Lets the program write these octets.
    pub fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.feed.write_all(octets)
    }

    /// Changes the client's window.
    pub fn resize(&mut self, size: Size) {
        self.endpoint.update(self.clock.now(), |input| input.push_resize(size));
    }

    /// The screen of a stock client.
    pub fn screen(&self) -> &Screen {
        self.endpoint.remote().view.screen()
    }

    /// The terminal's answers since the last call of [`take_replies`](Stock::take_replies).
    pub fn replies(&self) -> &[u8] {
        &self.answered
    }

    /// The same, and forgets it.
    pub fn take_replies(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answered)
    }

    /// The frames since the last call, oldest first; the first [`FRAMES_MAX`] of them.
    pub fn take_frames(&mut self) -> Vec<Arc<Frame>> {
        std::mem::take(&mut self.frames)
    }

    /// Goes on until the condition holds.
    ///
    /// # Errors
    /// If it does not hold in time, or the server has gone.
    pub fn wait_for(&mut self, what: &str, condition: impl Fn(&Stock) -> bool) -> io::Result<()> {
        if self.wait_at_most(LIMIT, condition)? {
            return Ok(());
        }
        let text = format!("not in time: {what}\n{:#?}", self.screen().text());
        Err(io::Error::new(io::ErrorKind::TimedOut, text))
    }

    /// Goes on until the condition holds, but not beyond a limit of time; `what` names the condition.
    ///
    /// # Errors
    /// If the server has gone.
    pub fn wait_at_most(
        &mut self,
        span: Duration,
        condition: impl Fn(&Stock) -> bool,
    ) -> io::Result<bool> {
        let until = self.clock.now() + span;
        while self.clock.now() < until {
            if condition(self) {
                return Ok(true);
            }
            if self.over {
                return Err(io::Error::other("the server has ended"));
            }
            self.turn(until)?;
        }
        Ok(condition(self))
    }

    /// Sends what is due, waits for an event but not beyond `until`, and handles it.
    fn turn(&mut self, until: Time) -> io::Result<()> {
        let now = self.clock.now();
        let mut out = Outbox::default();
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut out) {
            let Some(to) = transmit.to.udp() else { continue };
            match self.socket.send_to(&out.datagram, to) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => self.over = true,
                sent => drop(sent?),
            }
        }
        let wake = self.endpoint.poll_timeout().map_or(until, |at| at.min(until));
        let span = wake.since(now).max(Duration::from_millis(1));
        let mut watched =
            [PollFd::new(&self.socket, PollFlags::IN), PollFd::new(&self.replies, PollFlags::IN)];
        wait_ready(&mut watched, Some(span))?;
        self.receive()?;
        let mut buffer = [0; 4096];
        loop {
            match self.replies.read(&mut buffer) {
                Ok(count) => self.answered.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut datagram = [0; 2048];
        loop {
            let (length, from) = match self.socket.recv_from(&mut datagram) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.over = true;
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let now = self.clock.now();
            let arrival = Arrival { from: from.into(), congested: false };
            let taken = self.endpoint.handle_datagram(now, arrival, &mut datagram[..length]);
            taken.map_err(|reject| io::Error::other(reject.to_string()))?;
            while let Some(event) = self.endpoint.poll_event() {
                self.note(event);
            }
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::NewRemote { .. } => {
                let newest = self.endpoint.remote().frame.as_ref();
                if let Some(frame) = newest
                    && self.frames.len() < FRAMES_MAX
                    && self.frames.last().is_none_or(|last| !Arc::ptr_eq(last, frame))
                {
                    self.frames.push(Arc::clone(frame));
                }
            }
            Event::PeerRoamed(_) => {}
            Event::PeerClosing | Event::Closed { .. } | Event::BadRemote(_) | Event::Failed(_) => {
                self.over = true
            }
        }
    }
}

/// Starts a server; its port, its key and its process.
pub(crate) fn launch(mut command: Command) -> io::Result<(u16, Key, Stranger)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let broken = |what: &str| io::Error::other(format!("mosh-server: {what}"));
    let stdout = child.stdout.take().ok_or_else(|| broken("no standard output"))?;
    let stderr = child.stderr.take().ok_or_else(|| broken("no standard error"))?;
    let mut connect = None;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        let mut words = line.split(' ');
        if (words.next(), words.next()) == (Some("MOSH"), Some("CONNECT")) {
            let port = words.next().and_then(|word| word.parse().ok());
            let key = words.next().and_then(|word| Key::from_base64(word.trim()).ok());
            connect = port.zip(key);
        }
    }
    let mut pid = None;
    let mut said = String::new();
    for line in BufReader::new(stderr).lines() {
        let line = line?;
        let number = line.split("detached, pid = ").nth(1).and_then(|rest| rest.split(']').next());
        pid = pid.or(number.and_then(|number| number.parse().ok()));
        said += &line;
    }
    child.wait()?;
    let (port, key) = connect.ok_or_else(|| broken(&said))?;
    Ok((port, key, Stranger::open(pid.ok_or_else(|| broken(&said))?)?))
}

/// Where two screens differ, as a stock client holds them: cells, ends of rows, cursor, pen, modes and titles.
/// At most `DIFFERENCES_MAX`.
pub fn differences(shown: &Screen, wanted: &Screen) -> Vec<String> {
    let shown = &project(shown, &Dialect::MOSH);
    let wanted = &project(wanted, &Dialect::MOSH);
    let mut all = Vec::new();
    let mut compare = |what: String, shown: String, wanted: String| {
        if shown != wanted && all.len() < DIFFERENCES_MAX {
            all.push(format!("{what}: stock {shown}, ours {wanted}"));
        }
    };
    if shown.size() != wanted.size() {
        compare("size".into(), format!("{:?}", shown.size()), format!("{:?}", wanted.size()));
        return all;
    }
    for row in 0..shown.size().rows {
        for col in 0..shown.size().cols {
            let place = format!("row {row} column {col}");
            compare(place, cell(shown, row, col), cell(wanted, row, col));
        }
        let [was, must] = [shown, wanted].map(|screen| screen.row(row).is_wrapped());
        compare(format!("row {row} wrapped"), was.to_string(), must.to_string());
    }
    let tell = |screen: &Screen| {
        let cursor = screen.cursor();
        [
            ("cursor", format!("{},{}", cursor.row, cursor.col)),
            ("pen", format!("{:?}", screen.pen().style)),
            ("modes", format!("{:?}", screen.modes())),
            ("title", format!("{:?}", screen.title().unwrap_or_default())),
        ]
    };
    for ((what, shown), (_, wanted)) in tell(shown).into_iter().zip(tell(wanted)) {
        compare(what.into(), shown, wanted);
    }
    all
}

fn cell(screen: &Screen, row: u16, col: u16) -> String {
    let Some(cell) = screen.cell(row, col) else { return String::new() };
    let mut text = String::new();
    screen.pool().push_text(cell, &mut text);
    let columns = if cell.is_wide() { 2 } else { 1 };
    format!("{text:?} of {columns}, {:?}", screen.cell_style(row, col))
}

/// Writes what comes from the first pipe to its terminal, as it is, and its terminal's answers to the second.
const PROGRAM: &str = r#"stty raw -echo; exec 3<&0; cat <&3 >"$2" & exec cat "$1""#;

/// Where the servers listen: beside the range that sessions of people use.
pub(crate) const PORTS: &str = "61000:61999";

/// How long anything may take; machines under load are slow.
const LIMIT: Duration = Duration::from_secs(60);

/// Frames kept for [`Stock::take_frames`]; those after it are not.
pub(crate) const FRAMES_MAX: usize = 1 << 16;

/// The most differences listed; a screen that is all wrong needs no longer list.
pub(crate) const DIFFERENCES_MAX: usize = 12;
