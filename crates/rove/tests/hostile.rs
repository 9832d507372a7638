//! A hostile server before a real client on a terminal: however much work its screens are, the escape key
//! and signals leave it, and the terminal is given back (threats rows 1, 9 and 10). These tests run live,
//! with generous limits; `session/tests/work.rs` counts the cost of a screen.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // A check that fails says where.

mod terminal;

use std::fs;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rove::testing::bootstrap::Nonce;
use rove_session::messages::{Dimensions, HostEvent, write_host};
use rove_ssp::{
    ConnId, Context, Deflater, Envelope, Fragment, Instruction, KeyPair, NativeWire, Piece,
    PublicKeyOctets, Role, SessionSecrets, StateNum, Wire,
};
use terminal::{Directory, ROVE, Terminal};
use zeroize::Zeroizing;

/// The size that the server imposes, and the terminal has: the largest.
const ROWS: u16 = 200;
const COLS: u16 = 1000;

/// How long the server waits for its client before it says more.
const PAUSE: Duration = Duration::from_millis(1);

/// A server whose every state is as much work as it may be, or more.
struct Server {
    socket: UdpSocket,
    wire: NativeWire,
    /// The newest state that the client has, and the next.
    acked: StateNum,
    next: u64,
    /// The client's newest.
    heard: StateNum,
}

impl Server {
    /// Answers the client whose words come through one pipe, through another.
    fn meet(directory: &str) -> Server {
        let words = fs::read_to_string(Path::new(directory).join("words")).unwrap();
        let word = |name: &str| words.split(' ').find_map(|word| word.strip_prefix(name)).unwrap();
        let (nonce, conn) = (Nonce::parse(word("--nonce=")).unwrap(), ConnId::new(7));
        let key = PublicKeyOctets::from_base64(word("--key=")).unwrap();
        let pair = KeyPair::from_random(Zeroizing::new([9; 32]));
        let public = pair.public();
        let context = Context { nonce: nonce.octets(), conn };
        let secrets: SessionSecrets = pair.agree_as_server(&key, &context).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let answer = format!("ROVE 1 {nonce} {port} {public} {conn}\n");
        fs::write(Path::new(directory).join("answer"), answer).unwrap();
        socket.set_read_timeout(Some(PAUSE)).unwrap();
        let wire = NativeWire::new(&secrets, conn, Role::Server);
        Server { socket, wire, acked: StateNum::ZERO, next: 1, heard: StateNum::ZERO }
    }

    /// Says the first diff once, and then the other in one state after the other, without end.
    fn talk(mut self, first: &[u8], then: &[u8]) {
        loop {
            let mut datagram = [0; 2048];
            match self.socket.recv_from(&mut datagram) {
                Ok((len, from)) => {
                    self.socket.connect(from).unwrap();
                    self.hear(&mut datagram[..len]);
                }
                // A client that is gone is told by ICMP.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return,
                Err(_) => {}
            }
            if self.heard != StateNum::ZERO {
                let diff = if self.acked == StateNum::ZERO { first } else { then };
                self.say(diff);
            }
        }
    }

    fn hear(&mut self, datagram: &mut [u8]) {
        let Ok((_, payload)) = self.wire.open(datagram) else { return };
        let Ok(Piece::Fragment(fragment)) = self.wire.decode_piece(&datagram[payload]) else {
            return;
        };
        if let Ok(message) = self.wire.unpack(fragment.contents) {
            self.acked = self.acked.max(message.ack);
            self.heard = self.heard.max(message.new);
        }
    }

    fn say(&mut self, diff: &[u8]) {
        let new = StateNum::from(if self.acked == StateNum::ZERO { 1 } else { self.next + 1 });
        self.next = new.get();
        let message = Instruction {
            old: self.acked,
            new,
            ack: self.heard,
            throwaway: self.acked,
            diff: diff.to_vec(),
            ..Instruction::default()
        };
        let (mut packed, mut payload, mut datagram) = (Vec::new(), Vec::new(), Vec::new());
        self.wire.pack(&message, &mut Deflater::default(), &mut packed);
        let fragment = Fragment { id: new.get().into(), number: 0, last: true, contents: &packed };
        self.wire.encode_fragment(&fragment, &mut payload);
        self.wire.seal(&Envelope::default(), &payload, &mut datagram).unwrap();
        assert!(datagram.len() < 2048, "{} octets", datagram.len());
        // The client's socket may be full, or gone.
        let _ = self.socket.send(&datagram);
    }
}

fn bytes(octets: &str) -> Vec<u8> {
    let mut diff = Vec::new();
    write_host(HostEvent::Bytes(octets.as_bytes()), &mut diff);
    diff
}

/// A client on a terminal as large as a screen can be, in a session with a server that says this without end. It
/// shows `flood` once that has begun.
fn besieged(name: &str, flood: String) -> (Terminal, Directory) {
    let directory = Directory::new(name);
    let path = directory.path().to_owned();
    let pipes = [format!("{path}/words"), format!("{path}/answer")];
    assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
    let server = format!("printf '%s ' \"$@\" >{path}/words; cat {path}/answer");
    let server = format!("{} server", directory.script("rove", &server));
    let mut first = Vec::new();
    let size = Dimensions { width: COLS.into(), height: ROWS.into() };
    write_host(HostEvent::Resize(size), &mut first);
    first.extend(bytes("the calm before"));
    std::thread::spawn(move || Server::meet(&path).talk(&first, &bytes(&flood)));
    let words = ["--local", "--server", &server, "127.0.0.1"];
    // What it says first may never be seen: the first picture waits until the terminal has told its cursor, or has not.
    let terminal = Terminal::sized(COLS, ROWS, ROVE, &words, &[]);
    (terminal, directory)
}

/// As much work as a diff may be, on screens and on text: each state of the server's takes a while, and another
/// is always there already.
fn legal() -> String {
    let text = "\x1b[38;5;1mx\x1b]2;title\x07".repeat(10_000);
    format!("\x1b[Hflood{text}{}", "\x1b[2;1;;;1;4;5;7$t".repeat(60))
}

#[test]
fn the_escape_key_leaves_a_server_that_is_all_work() {
    let (mut terminal, _directory) = besieged("escape", legal());
    terminal.expect("flood");
    terminal.type_keys("\x1e.");
    assert_eq!(terminal.finish(), 0, "{}", terminal.text());
    terminal.assert_given_back();
}

#[test]
fn a_signal_ends_a_client_that_is_all_work() {
    let (mut terminal, _directory) = besieged("signal", legal());
    terminal.expect("flood");
    let kill = Command::new("kill").arg(terminal.pid().to_string()).status();
    assert!(kill.unwrap().success());
    assert_eq!(terminal.finish(), 143, "{}", terminal.text());
    terminal.assert_given_back();
}

/// A screen that would take minutes ends the session by itself, with one line.
#[test]
fn a_diff_that_would_take_minutes_ends_the_session() {
    for (name, sequence) in [("rectangles", "\x1b[;;;;1$t"), ("letters", "\x1b#8")] {
        let (mut terminal, _directory) = besieged(name, sequence.repeat(100_000));
        assert_eq!(terminal.finish(), 255, "{}", terminal.text());
        let text = terminal.text();
        assert!(text.contains("takes more work than a screen can need"), "{text}");
        terminal.assert_given_back();
    }
}
