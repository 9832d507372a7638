//! A server process under watch, and a client of it that types and looks. Every wait has a limit.
#![allow(clippy::unwrap_used)] // A check that fails says where.
#![allow(dead_code)] // Each file of tests uses its part.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rove::testing::bootstrap::Nonce;
use rove::testing::os::Clock;
use rove::testing::ssh::{Candidates, Reached, Secret};
use rove_session::client::{Client, Config, Event, Exit, TtyScreen};
use rove_session::{Escape, Peer};
use rove_ssp::{
    Arrival, ConnId, Context, Key, KeyPair, Machine, MoshWire, NativeWire, Outbox, PublicKeyOctets,
    Role, SessionSecrets, Time, Timing, Wire,
};
use rove_term::{Dialect, Size};
use rustix::process::{Pid, Signal};
use zeroize::Zeroizing;

/// How long anything may take. Loaded machines are slow; nothing waits this long when all is well.
const LIMIT: Duration = Duration::from_secs(120);

/// The built program, with no more environment than a login has.
pub fn rove() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rove"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/").env("SHELL", "/bin/sh");
    command.stdin(Stdio::null());
    command
}

/// A server process. Killed when dropped.
pub struct Host {
    /// Its process id.
    pub pid: u32,
    /// Its UDP port.
    pub port: u16,
    /// Its key, as printed: on the native wire a public one.
    pub key: String,
    /// The session's name, as printed on the native wire.
    pub conn: Option<ConnId>,
    /// The process that started it, which is gone; `None` where another than this one did.
    pub starter: Option<u32>,
}

/// The client's nonce and its private key: the same in each test, since each has its own server.
pub const NONCE: [u8; 16] = [1; 16];
pub const PRIVATE: [u8; 32] = [2; 32];

fn client() -> (Nonce, KeyPair) {
    (Nonce::new(NONCE), KeyPair::from_random(Zeroizing::new(PRIVATE)))
}

/// What the client shares with the server that has printed this key.
fn secrets(key: &str, conn: ConnId) -> SessionSecrets {
    let (nonce, pair) = client();
    let server = PublicKeyOctets::from_base64(key).unwrap();
    pair.agree_as_client(&server, &Context { nonce: nonce.octets(), conn }).unwrap()
}

fn native(host: &Host, conn: ConnId) -> NativeWire {
    NativeWire::new(&secrets(&host.key, conn), conn, Role::Client)
}

impl Host {
    /// Starts `rove server` with these words, for a rove client that speaks the native wire.
    pub fn start_native(words: &[&str], environment: &[(&str, &str)]) -> Host {
        let (nonce, pair) = client();
        let own = [format!("--nonce={nonce}"), format!("--key={}", pair.public())];
        Host::start(&[&own.each_ref().map(String::as_str), words].concat(), environment)
    }

    /// Starts `rove server` with these words.
    pub fn start(words: &[&str], environment: &[(&str, &str)]) -> Host {
        // With `-v` a rove client's server says its process id, too, and holds the streams: they are
        // read only as far as that.
        let mut command = rove();
        let (first, rest) = words.split_first().unwrap();
        command.args(["server", first, "-v"]).args(rest).envs(environment.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        // `ROVE version nonce port ...` or `MOSH CONNECT port ...`.
        let mut words = line.split(' ').skip(if line.starts_with("ROVE") { 3 } else { 2 });
        let port = words.next().expect(&line).parse().unwrap();
        let key = words.next().expect(&line).trim();
        let conn = words.next().and_then(|word| ConnId::parse(word.trim()));
        let mut said = Vec::new();
        let mut stderr = child.stderr.take().unwrap();
        while !String::from_utf8_lossy(&said).contains("detached, pid") || !said.ends_with(b"]\n") {
            let mut byte = [0];
            assert_eq!(stderr.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&said));
            said.push(byte[0]);
        }
        assert!(child.wait().unwrap().success());
        let mut host = Host::found(&said, port, key);
        (host.conn, host.starter) = (conn, Some(child.id()));
        host
    }

    /// The server that said this on its standard error.
    pub fn found(stderr: &[u8], port: u16, key: &str) -> Host {
        let said = String::from_utf8_lossy(stderr);
        let pid = said.rsplit("detached, pid = ").next().and_then(|rest| rest.split(']').next());
        let pid = pid.unwrap().parse().expect(&said);
        Host { pid, port, key: key.into(), conn: None, starter: None }
    }

    /// What a client in another process is to know of a server that speaks the native wire.
    pub fn way(&self) -> String {
        format!("{} {} {}", self.port, self.key, self.conn.unwrap())
    }

    /// The server that this is the way to, as a client's driver has it.
    pub fn found_by(way: &str) -> Reached {
        let words: Vec<&str> = way.split(' ').collect();
        let conn = ConnId::parse(words[2]).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, words[0].parse().unwrap()));
        Reached {
            kind: Peer::Rove,
            secret: Secret::Native(secrets(words[1], conn), conn),
            candidates: Candidates { addresses: vec![address], named: 1 },
            version: None,
            warning: None,
            is_broken: false,
            stream: None,
            is_ssh_alone: false,
        }
    }

    /// Sends a signal to it.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.process(), signal).unwrap();
    }

    /// Waits until it is gone.
    pub fn wait_for_end(&self) {
        wait_until("the server has ended", || !is_alive(self.pid));
    }

    fn process(&self) -> Pid {
        Pid::from_raw(self.pid.cast_signed()).unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if is_alive(self.pid) {
            let _ = rustix::process::kill_process(self.process(), Signal::KILL);
        }
    }
}

/// Whether a process runs: one that has ended but was not waited for does not.
pub fn is_alive(pid: u32) -> bool {
    fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

/// Waits until `done`, looking 100 times a second: for what announces itself to nobody.
#[allow(clippy::disallowed_methods)] // A file appears, a process that is no child of ours ends.
pub fn wait_until(what: &str, done: impl Fn() -> bool) {
    let clock = Clock::start();
    while !done() {
        assert!(clock.now() < Time::ZERO + LIMIT, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A rove client without a terminal.
pub struct Visitor {
    clock: Clock,
    client: Client,
    socket: UdpSocket,
    /// Where it writes to.
    to: SocketAddr,
    exit: Option<Exit>,
}

impl Visitor {
    /// Claims a server on this machine.
    pub fn new(host: &Host) -> Visitor {
        match host.conn {
            None => {
                let key = Key::from_base64(&host.key).unwrap();
                Visitor::with(host, Box::new(MoshWire::new(key, Role::Client)))
            }
            Some(conn) => Visitor::with(host, Box::new(native(host, conn))),
        }
    }

    /// The same on the native wire, whose keys it changes as soon as it may.
    pub fn restless(host: &Host) -> Visitor {
        let wire = native(host, host.conn.unwrap()).with_phases_of(Duration::from_millis(1));
        Visitor::with(host, Box::new(wire))
    }

    fn with(host: &Host, wire: Box<dyn Wire>) -> Visitor {
        let clock = Clock::start();
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, host.port));
        let config = Config {
            wire,
            timing: Timing::MOSH,
            server: to,
            peer: Peer::Rove,
            size: Size::clamped(24, 80),
            tty: Dialect::ROVE,
            window: TtyScreen::Main,
            escape: Escape::default(),
            name: "rove",
            title_prefix: String::new(),
            obscure: rove_session::client::Obscure::Secrets,
            history_lines: rove_session::past::LINES_MAX,
            seed: 1,
        };
        let client = Client::new(clock.now(), config);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Visitor { clock, client, socket, to, exit: None }
    }

    /// Types.
    pub fn keys(&mut self, keys: &[u8]) {
        self.client.handle_keys(self.clock.now(), keys);
    }

    /// Changes the window.
    pub fn resize(&mut self, rows: u16, cols: u16) {
        self.client.handle_resize(self.clock.now(), Size::clamped(rows, cols));
    }

    /// What it has to say next, which does not go out.
    pub fn withhold(&mut self) -> Vec<u8> {
        let mut out = Outbox::default();
        while self.client.poll_transmit(self.clock.now(), &mut out).is_none() {
            self.receive(self.client.poll_timeout());
        }
        out.datagram
    }

    /// Goes on from another port, and writes to this address of the server's. Returns the port it has left.
    pub fn move_on(&mut self, to: Ipv4Addr) -> UdpSocket {
        self.to.set_ip(to.into());
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        std::mem::replace(&mut self.socket, socket)
    }

    /// Waits until the screen has `wanted` somewhere, and says nothing meanwhile. Returns where all that came was from.
    pub fn hear(&mut self, wanted: &str) -> Vec<SocketAddr> {
        let mut senders = Vec::new();
        while !self.text().iter().any(|line| line.contains(wanted)) {
            senders.push(self.receive(None).expect(wanted));
        }
        senders
    }

    /// Ends the session from this side.
    pub fn leave(&mut self) {
        self.client.handle_signal(self.clock.now());
    }

    /// The lines of the server's screen, as far as it has come.
    pub fn text(&self) -> Vec<String> {
        self.client.view().screen().text()
    }

    /// Waits until the screen has `wanted` somewhere, and returns its lines.
    pub fn wait_for(&mut self, wanted: &str) -> Vec<String> {
        self.wait(wanted, |visitor| visitor.text().iter().any(|line| line.contains(wanted)));
        self.text()
    }

    /// Waits until the server has all that was typed.
    pub fn wait_until_typed(&mut self) {
        self.wait("all typed", |visitor| visitor.client.endpoint().local().held() == 0);
    }

    /// Waits until the session is over.
    pub fn wait_for_exit(&mut self) -> Exit {
        self.wait("the end", |visitor| visitor.exit.is_some());
        self.exit.unwrap()
    }

    fn wait(&mut self, what: &str, done: impl Fn(&Visitor) -> bool) {
        let until = self.clock.now() + LIMIT;
        while !done(self) {
            let now = self.clock.now();
            assert!(now < until, "not in time: {what}\n{:#?}", self.text());
            assert!(self.exit.is_none() || done(self), "over before: {what}\n{:#?}", self.text());
            self.turn(now);
        }
    }

    /// What a driver does in one turn.
    fn turn(&mut self, now: Time) {
        self.client.poll_paint(now, &mut Vec::new());
        let mut out = Outbox::default();
        while self.client.poll_transmit(now, &mut out).is_some() {
            self.socket.send_to(&out.datagram, self.to).unwrap();
        }
        while let Some(event) = self.client.poll_event() {
            if let Event::Exited(exit) = event {
                self.exit = Some(exit);
                return;
            }
        }
        self.receive(self.client.poll_timeout());
    }

    /// Takes what comes by this time; where from.
    fn receive(&mut self, until: Option<Time>) -> Option<SocketAddr> {
        let sleep = until.map_or(LIMIT, |at| at.since(self.clock.now()));
        self.socket.set_read_timeout(Some(sleep.max(Duration::from_millis(1)))).unwrap();
        let mut datagram = [0; 2048];
        match self.socket.recv_from(&mut datagram) {
            Ok((len, from)) => {
                let arrival = Arrival { from: from.into(), congested: false };
                let now = self.clock.now();
                self.client.handle_datagram(now, arrival, &mut datagram[..len]).unwrap();
                Some(from)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            // The server has gone before our last datagram.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => None,
            Err(error) => panic!("{error}"),
        }
    }
}
