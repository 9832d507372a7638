//! `rove server`, which is `mosh-server` too: a shell on this machine for one client, over UDP.
//!
//! This file starts the server: the words, the socket, the key, the line that announces both to the
//! client, and the fork that leaves the login behind. All of it happens in one thread, before any
//! runtime; `shell.rs` runs the session itself.

mod limits;
mod log;
pub(crate) mod program;
mod service_config;

mod agent;
mod exec;
mod handover;
mod headless;
mod helper;
mod input;
pub(crate) mod line_poll;
mod locale;
mod login;
pub(crate) mod options;
mod output;
mod records;
mod scope;
mod services;
mod shell;
mod streams;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, ErrorKind, IsTerminal, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use rove_session::Peer;
use rove_session::server::CLAIM_WAIT;
use rove_ssp::{
    ConnId, Context, Key, KeyPair, MoshWire, NativeWire, PublicKeyOctets, Role, SessionSecrets,
    Wire,
};
use rove_term::Size;
use zeroize::Zeroizing;

use crate::bootstrap::{Ports, Purpose};
use crate::net::udp::{Socket, Source};
use crate::os;
use crate::os::locked::within;
use crate::os::process::Fork;
use crate::os::pty::Pty;
use crate::server::log::note;
use crate::server::program::Program;
use crate::server::service_config::ServiceConfig;
use login::{Environment, Surroundings};
use options::{Agent, Bind, Greeting, Options, Request, Streams};

use streams::StreamService;

/// Serves one session as the words after the program's name request. Returns soon: the session runs on in a
/// process of its own. The status is 0 once the client knows where to connect, else 1.
///
/// Call it in a process with one thread.
pub(crate) fn main(program: Program, words: &[OsString]) -> ExitCode {
    let done = match options::parse(program, words) {
        Ok(Request::Help) => print(USAGE),
        Ok(Request::Version) => print(VERSION),
        Ok(Request::Serve(options)) => serve(options),
        Err(error) => Err(io::Error::other(error)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(&error);
            ExitCode::FAILURE
        }
    }
}

/// The first line is stock's synopsis, which scripts parse.
const USAGE: &str = "\
Usage: mosh-server new [-s] [-v] [-i LOCALADDR] [-p PORT[:PORT2]] [-c COLORS] [-l NAME=VALUE] [-- COMMAND...]
       rove server --nonce=WORD [--key=KEY] [the same options]

Serves one terminal session to a mobile client over UDP. `rove HOST` and `mosh HOST` start it over ssh.

  -s               listen only on the address that the ssh connection came to
  -i LOCALADDR     listen only on this address
  -p PORT[:PORT2]  the UDP port, or the range to take the first free one from [60001:60999]
  -c COLORS        256: programs get TERM=xterm-256color, else xterm (rove server: always the former)
  -l NAME=VALUE    a locale variable of the client, used if this machine has no UTF-8 locale set
  -v               keep the standard streams open and say there what happens
  --nonce=WORD     answer a rove client, with this word
  --key=KEY        speak the native wire, with the client's public key
  --metered        repeat less where packets are lost: octets are paid for
  --agent          let programs reach the client's agent, to list keys and to sign
  --streams        start nothing: the session carries streams only (rove cp, rove exec)
  --allow-checksum answer programs that ask for checksums of the screen (DECRQCRA), as test suites do
  --help, --version

Environment (seconds):
  MOSH_SERVER_NETWORK_TMOUT    end the session when nothing new came from the client for so long
  MOSH_SERVER_SIGNAL_TMOUT     obey SIGUSR1 (end the session) only after so long a silence
  ROVE_SERVER_UNCLAIMED_TMOUT  end when no client came for so long [60]
";

const VERSION: &str = concat!(
    "mosh-server (rove ",
    env!("CARGO_PKG_VERSION"),
    ", mosh protocol 2)\nLicence: MIT or Apache-2.0. There is no warranty.\n"
);

fn serve(options: Options) -> io::Result<()> {
    if options.streams == Streams::Closed {
        os::process::close_inherited();
    }
    for complaint in &options.complaints {
        note(complaint);
    }
    let environment: Environment = os::environment::environment().collect();
    let account = os::account::account();
    if let Some(account) = &account
        && let Some(warning) = scope::settle(&account.name)
    {
        note(&warning);
    }
    // After the helpers: a manager may want to look at the process it is to move.
    let cores = os::process::harden()?;
    let mut surroundings =
        Surroundings::of(&options, &environment, account.as_ref(), locale::codeset);
    let mut agent = agent_socket(options.agent, &mut surroundings);
    let login = login::prepare(&options, &surroundings);
    // Whatever can fail does so before the client is told that there is a session.
    let size = terminal_size();
    let pty = open_terminal(options.purpose, size)?;
    let socket = listen(&options, environment.value("SSH_CONNECTION"))?;
    let secret = within(|| Secret::new(&options.greeting))?;
    if matches!(secret, Secret::Native { .. }) {
        socket.keep_whole();
    }
    let bound = socket.local_addr()?;
    within(|| announce(&options.greeting, bound, &secret))?;
    let peer = match options.greeting {
        Greeting::Mosh => Peer::Stock,
        Greeting::Rove { .. } | Greeting::Native { .. } => Peer::Rove,
    };
    let limits = limits(&environment);
    os::signals::ignore_hangup();
    if let Fork::Parent { child } = os::process::detach()? {
        return take_leave(&options, child);
    }
    if options.streams == Streams::Closed {
        leave_login()?;
    }
    if let Some(agent) = &mut agent {
        agent.own()?;
    }
    let config = ServiceConfig { surroundings, cores, agent };
    let beside = StreamService::new(secret.streams(), config);
    let wire = within(|| secret.wire());
    drop(secret);
    let Some(pty) = pty else {
        return headless::run(socket, headless::Job { size, limits, beside }, wire);
    };
    if let Some(account) = &account {
        records::take_back_lost(&account.name, &pty);
    }
    let job = shell::Job {
        login,
        peer,
        tariff: options.tariff,
        size,
        pty,
        limits,
        streams: options.streams,
        checksums: options.checksums,
        cores,
        beside,
    };
    shell::run(socket, job, wire)
}

/// A socket for the user's agent, whose path programs get. A session without it is better than none.
fn agent_socket(agent: Agent, surroundings: &mut Surroundings) -> Option<agent::Socket> {
    if agent == Agent::Absent {
        return None;
    }
    match agent::Socket::open() {
        Ok(socket) => {
            surroundings.set_agent(socket.path());
            Some(socket)
        }
        Err(error) => {
            note(&format_args!("no socket for the agent: {error}"));
            None
        }
    }
}

fn open_terminal(purpose: Purpose, size: Size) -> io::Result<Option<Pty>> {
    if purpose == Purpose::Streams {
        return Ok(None);
    }
    let no_terminal =
        |error: io::Error| io::Error::new(error.kind(), format!("no terminal to be had: {error}"));
    Pty::open(size).map(Some).map_err(no_terminal)
}

/// The keys of the session. Nothing is sealed before the fork, and the parent wipes them: so no two
/// processes ever use one key.
enum Secret {
    Mosh(Key),
    Native {
        /// The public key for the client.
        public: PublicKeyOctets,
        conn: ConnId,
        secrets: SessionSecrets,
    },
}

impl Secret {
    fn new(greeting: &Greeting) -> io::Result<Secret> {
        let Greeting::Native { nonce, key } = greeting else {
            return Ok(Secret::Mosh(Key::from_bytes(*os::random()?)));
        };
        let conn = ConnId::new(u32::from_be_bytes(*os::random()?));
        let pair = KeyPair::from_random(os::random()?);
        let public = pair.public();
        let context = Context { nonce: nonce.octets(), conn };
        let secrets = pair.agree_as_server(key, &context).map_err(io::Error::other)?;
        Ok(Secret::Native { public, conn, secrets })
    }

    /// The secret of streams beside the session, if the wire has them.
    fn streams(&self) -> Option<&[u8; 32]> {
        match self {
            Secret::Mosh(_) => None,
            Secret::Native { secrets, .. } => Some(secrets.streams()),
        }
    }

    fn wire(&self) -> Box<dyn Wire> {
        match self {
            Secret::Mosh(key) => Box::new(MoshWire::new(key.clone(), Role::Server)),
            Secret::Native { conn, secrets, .. } => {
                Box::new(NativeWire::new(secrets, *conn, Role::Server))
            }
        }
    }
}

/// Binds the first free port.
fn listen(options: &Options, ssh_connection: Option<&OsStr>) -> io::Result<Socket> {
    let address = match options.bind {
        Bind::Any => None,
        Bind::Address(address) => Some(address),
        Bind::SshConnection => {
            let address = ssh_connection.and_then(OsStr::to_str).and_then(server_address);
            if address.is_none() {
                note(&"SSH_CONNECTION names no address: listening on any");
            }
            address
        }
    };
    if let Some(address) = address {
        match bind(address, options.ports) {
            Ok(socket) => return Ok(socket),
            Err(error) => note(&format_args!("{address}: {error}; listening on any address")),
        }
    }
    // A machine without IPv6 has no such sockets.
    bind(Ipv6Addr::UNSPECIFIED.into(), options.ports)
        .or_else(|_| bind(Ipv4Addr::UNSPECIFIED.into(), options.ports))
        .map_err(|error| {
            let ports = options.ports;
            io::Error::new(error.kind(), format!("no UDP port to be had from {ports}: {error}"))
        })
}

/// The server's address in `client-address client-port server-address server-port`.
fn server_address(ssh_connection: &str) -> Option<IpAddr> {
    let address = ssh_connection.split_whitespace().nth(2)?;
    address.parse().ok().map(|address: IpAddr| address.to_canonical())
}

fn bind(address: IpAddr, ports: Ports) -> io::Result<Socket> {
    let mut refusal = io::Error::from(ErrorKind::AddrInUse);
    for port in ports.low..=ports.high {
        match Socket::bind(SocketAddr::new(address, port), Source::AsReached) {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() == ErrorKind::AddrInUse => refusal = error,
            Err(error) => return Err(error),
        }
    }
    Err(refusal)
}

/// Prints the line the client waits for. On the mosh wire the key is in it: there it travels over ssh.
fn announce(greeting: &Greeting, bound: SocketAddr, secret: &Secret) -> io::Result<()> {
    let port = bound.port();
    let addresses: Vec<_> = reachable(bound.ip()).iter().map(IpAddr::to_string).collect();
    let addresses = addresses.join(",");
    // Made whole here and wiped after, and not through std's buffered output, which would keep a copy.
    let mut line = Zeroizing::new(String::with_capacity(LINE_BYTES_MAX));
    let written = match (greeting, secret) {
        (Greeting::Native { nonce, .. }, Secret::Native { public, conn, .. }) => {
            writeln!(line, "ROVE 1 {nonce} {port} {public} {conn} {addresses}")
        }
        (Greeting::Rove { nonce }, Secret::Mosh(key)) => {
            writeln!(line, "ROVE 0 {nonce} {port} {} {addresses}", &*key.to_base64())
        }
        (_, Secret::Mosh(key)) => {
            // A login script's half line on a terminal must not swallow ours.
            let apart = if io::stdin().is_terminal() { "\r\n\n" } else { "" };
            writeln!(line, "{apart}MOSH CONNECT {port} {}", &*key.to_base64())
        }
        (_, Secret::Native { .. }) => unreachable!("a native secret is made for that greeting"),
    };
    written.map_err(io::Error::other)?;
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(count) => rest = &rest[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// More than the longest line: a nonce, a key and [`ADDRESSES_MAX`] addresses of 39 characters.
const LINE_BYTES_MAX: usize = 1024;

/// The addresses by which a client may find us if ssh's does not work: all except loopback.
fn reachable(bound: IpAddr) -> Vec<IpAddr> {
    if !bound.is_unspecified() {
        return vec![bound];
    }
    let local = |address: &IpAddr| match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
    };
    let mut addresses = os::interfaces::interface_addresses().unwrap_or_default();
    addresses.retain(|address| !local(address) && (bound.is_ipv6() || address.is_ipv4()));
    addresses.truncate(ADDRESSES_MAX);
    addresses
}

/// Addresses announced; a client tries the first ones anyway.
const ADDRESSES_MAX: usize = 8;

/// The size of the terminal we were started on, if there is one; a client soon sends its own.
fn terminal_size() -> Size {
    let stock = Size::clamped(24, 80);
    let Ok(size) = rustix::termios::tcgetwinsize(io::stdin()) else { return stock };
    if size.ws_row == 0 || size.ws_col == 0 {
        return stock;
    }
    Size::clamped(size.ws_row, size.ws_col)
}

fn limits(environment: &Environment) -> crate::server::limits::Limits {
    let seconds = |name| {
        let seconds = environment.value(name)?.to_str()?.parse::<u32>().ok()?;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    };
    crate::server::limits::Limits {
        unclaimed: seconds("ROVE_SERVER_UNCLAIMED_TMOUT").unwrap_or(CLAIM_WAIT),
        network: seconds("MOSH_SERVER_NETWORK_TMOUT"),
        signal: seconds("MOSH_SERVER_SIGNAL_TMOUT"),
    }
}

/// The last message of the starting process. Stock's words: scripts look for the number. They are written in one
/// piece, since the server may announce itself at this moment, and ssh brings both to the same place.
fn take_leave(options: &Options, child: u32) -> io::Result<()> {
    if options.greeting == Greeting::Mosh || options.streams == Streams::Kept {
        let words = format!("\n{VERSION}\n[mosh-server detached, pid = {child}]\n");
        io::stderr().write_all(words.as_bytes())?;
    }
    Ok(())
}

/// Closes the login's files, so that ssh can end.
fn leave_login() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

fn print(text: &str) -> io::Result<()> {
    io::stdout().write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_ssh_connections() {
        for (ssh_connection, address) in [
            ("198.51.100.7 50000 192.0.2.1 22", Some("192.0.2.1")),
            ("::ffff:198.51.100.7 50000 ::ffff:192.0.2.1 22", Some("192.0.2.1")),
            ("2001:db8::7 50000 2001:db8::1 22", Some("2001:db8::1")),
            ("fe80::7%eth0 50000 fe80::1%eth0 22", None),
            ("198.51.100.7 50000", None),
            ("", None),
        ] {
            let wanted = address.map(|address| address.parse().unwrap());
            assert_eq!(server_address(ssh_connection), wanted, "{ssh_connection}");
        }
    }

    #[test]
    fn limits_are_positive_seconds() {
        for (text, seconds) in
            [("5", Some(5)), ("0", None), ("-1", None), ("5s", None), ("", None), ("1e9", None)]
        {
            let environment = [("MOSH_SERVER_NETWORK_TMOUT".into(), text.into())];
            let limits = limits(&environment.into_iter().collect());
            assert_eq!(limits.network, seconds.map(Duration::from_secs), "{text}");
            assert_eq!((limits.unclaimed, limits.signal), (CLAIM_WAIT, None));
        }
    }

    #[test]
    fn only_what_others_can_reach_is_announced() {
        let bound: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!(reachable(bound), [bound]);
        for any in [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()] {
            let addresses = reachable(any);
            assert!(addresses.len() <= ADDRESSES_MAX);
            assert!(addresses.iter().all(|address| !address.is_loopback()));
            assert!(any.is_ipv6() || addresses.iter().all(IpAddr::is_ipv4));
        }
    }
}
