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
mod asking;
mod control;
mod exec;
mod handover;
mod headless;
mod helper;
mod input;
pub(crate) mod line_poll;
mod listeners;
mod locale;
mod login;
pub(crate) mod options;
mod output;
mod records;
mod relay;
mod scope;
mod secret;
pub(crate) mod services;
mod shell;
mod streams;

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use rove_session::Peer;
use rove_session::server::CLAIM_WAIT;
use rove_ssp::ConnId;
use rove_term::Size;

use crate::bootstrap::{Ports, Purpose};
use crate::net::udp::{Socket, Source};
use crate::os;
use crate::os::account::Account;
use crate::os::locked::within;
use crate::os::process::Fork;
use crate::os::pty::Pty;
use crate::server::log::note;
use crate::server::program::Program;
use crate::server::service_config::ServiceConfig;
use crate::sessions::directory::{Claim, Denied, Places};
use crate::sessions::line::Kind;
use login::{Environment, Login, Surroundings};
use options::{Agent, Bind, Greeting, Options, Request, SessionWords, Streams};
use secret::{Secret, announcement};

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
        Ok(Request::Ask(ask)) => {
            let environment = environment();
            asking::answer(&places(&environment), ask, client_address(&environment))
        }
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
  -@ carry         go on over standard input and output as well, for as long as they are open
  -@ keep=SECONDS  end when no client was heard for so long
  -@ waits         tell which file of a copy waits for another copy
  --metered        repeat less where packets are lost: octets are paid for
  --agent          let programs reach the client's agent, to list keys and to sign
  --session=NAME   what the session is called, instead of a number
  --or-attach      join the session of that name if there is one
  --list, --attach=NAME, --kill=NAME, --kill-all
                   what `rove ls`, `rove attach` and `rove kill` ask of the sessions here
  --streams        start nothing: the session carries streams only (rove cp, rove exec)
  --allow-checksum answer programs that ask for checksums of the screen (DECRQCRA), as test suites do
  --help, --version

Environment (seconds):
  MOSH_SERVER_NETWORK_TMOUT    end the session when nothing new came from the client for so long
  MOSH_SERVER_SIGNAL_TMOUT     obey SIGUSR1 (end the session) only after so long a silence
  ROVE_SERVER_UNCLAIMED_TMOUT  end when no client came for so long [60]
  ROVE_SERVER_ORPHAN_TMOUT     end when no client was heard for so long
ROVE_TMPDIR is where the control sockets of sessions are [/tmp].
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
    options.complaints.iter().for_each(|complaint| note(complaint));
    let environment = environment();
    let places = places(&environment);
    let place = match place(&places, &options, client_address(&environment)) {
        Ok(place) => place,
        // What the client waits for is said.
        Err(Refused) => return Ok(()),
    };
    let account = settled_account();
    // After the helpers: a manager may want to look at the process it is to move.
    let cores = os::process::harden()?;
    let mut surroundings = surroundings(&options, &environment, account.as_ref(), place.as_ref());
    let mut agent = agent_socket(options.agent, &mut surroundings);
    let mut login = login::prepare(&options, &surroundings);
    // Whatever can fail does so before the client is told that there is a session.
    let size = terminal_size();
    let pty = open_terminal(options.purpose, size)?;
    let socket = listen(&options, environment.value("SSH_CONNECTION"))?;
    let secret = within(|| Secret::new(&options.greeting))?;
    secret.conn().iter().for_each(|_| socket.keep_whole());
    let bound = socket.local_addr()?;
    let relay = relay::Relay::pair(options.carry && secret.conn().is_some());
    let announce = || announcement(&options.greeting, bound, &secret, relay.is_some());
    within(|| secret::print(&announce()))?;
    let limits = limits(&environment).keeping(options.session.keep);
    os::ignore_hangup();
    if let Fork::Parent { child } = os::process::detach()? {
        // The session's alone, from here on.
        drop((secret, socket, pty, agent));
        return stay(&options, child, place, relay);
    }
    let stream = relay.map(relay::Relay::into_session);
    if options.streams == Streams::Closed {
        leave_login()?;
    }
    if let Some(agent) = &mut agent {
        agent.own()?;
    }
    let waits = options.session.waits;
    let config = ServiceConfig { surroundings: surroundings.clone(), cores, agent, waits };
    let beside = StreamService::new(secret.streams(), config);
    let (wire, conn) = (within(|| secret.wire()), secret.conn());
    drop(secret);
    let Some(pty) = pty else {
        let place = place.map(|place| (place, places));
        return headless::run(socket, headless::Job { size, limits, beside, stream, place }, wire);
    };
    if let Some(account) = &account {
        records::take_back_lost(&account.name, &pty);
    }
    let kept = keep(place, places, &options, conn, &mut login);
    let job = shell::Job {
        login,
        bound,
        kept,
        peer: if options.greeting == Greeting::Mosh { Peer::Stock } else { Peer::Rove },
        tariff: options.tariff,
        size,
        pty,
        limits,
        streams: options.streams,
        checksums: options.checksums,
        cores,
        beside,
        stream,
        ssh_client: client_address(&environment),
        surroundings,
    };
    shell::run(socket, job, wire)
}

/// What programs find around them. Those of a session with a screen learn which one it is.
fn surroundings(
    options: &Options,
    environment: &Environment,
    account: Option<&Account>,
    place: Option<&Claim>,
) -> Surroundings {
    let mut surroundings = Surroundings::of(options, environment, account, locale::codeset);
    if let Some(place) = place.filter(|_| options.purpose == Purpose::Shell) {
        surroundings.set_session(place.id);
    }
    surroundings
}

/// The end of the process that was started: at once, or once ssh or the session has ended.
fn stay(
    options: &Options,
    child: u32,
    place: Option<Claim>,
    relay: Option<relay::Relay>,
) -> io::Result<()> {
    // The place is the child's.
    if let Some(place) = place {
        place.file.leave();
    }
    take_leave(options, child)?;
    relay.map_or(Ok(()), relay::Relay::run)
}

/// The user, whose session outlives the login from here on if that can be.
fn settled_account() -> Option<Account> {
    let account = os::account::account()?;
    if let Some(warning) = scope::settle(&account.name) {
        note(&warning);
    }
    Some(account)
}

/// What a session is kept by. A login is told of the sessions that wait for it.
fn keep(
    place: Option<Claim>,
    places: Places,
    options: &Options,
    conn: Option<ConnId>,
    login: &mut Login,
) -> Option<shell::Kept> {
    let SessionWords { host, .. } = &options.session;
    if !login.is_silent {
        let own = place.as_ref().map(|place| place.id);
        let notice = asking::notice(&places, own, host.as_deref());
        login.motd.splice(0..0, notice.into_bytes());
    }
    let kind = if options.command.is_empty() { Kind::Shell } else { Kind::Command };
    Some(shell::Kept { place: place?, places, kind, is_told: host.is_some(), conn })
}

fn environment() -> Environment {
    os::environment::environment().collect()
}

/// Where the sessions of this user are found.
fn places(environment: &Environment) -> Places {
    let value = |name| environment.value(name).map(OsStr::to_owned);
    Places::of_user(value("ROVE_TMPDIR"), value("XDG_STATE_HOME"), value("HOME"))
}

/// No session begins, and the client knows why, or has joined another.
struct Refused;

/// A place where the session can be found later. A session without one is better than none; its client is told.
fn place(
    places: &Places,
    options: &Options,
    ssh_client: Option<IpAddr>,
) -> Result<Option<Claim>, Refused> {
    if options.purpose == Purpose::Streams {
        // Whatever it holds it holds as ever.
        return Ok(places.to_begin().and_then(|directory| directory.claim_helper()).ok());
    }
    let words = &options.session;
    let found = places.to_begin().and_then(|directory| directory.claim(words.name.as_ref()));
    let why = match found {
        Ok(place) => return Ok(Some(place)),
        Err(Denied::Taken(name)) => {
            asking::taken(places, &name, options, ssh_client);
            return Err(Refused);
        }
        Err(why) => why,
    };
    match (&options.greeting, &words.host) {
        (Greeting::Native { nonce, .. }, Some(_)) => {
            // Whoever is not there to hear it hears nothing else either.
            let _ = secret::print(&format!("ROVE SOCKET {nonce} {why}\n"));
        }
        _ if options.streams == Streams::Kept => {
            note(&format_args!("this session cannot be attached to later: {why}"));
        }
        _ => {}
    }
    Ok(None)
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

/// The client's address in the same.
fn client_address(environment: &Environment) -> Option<IpAddr> {
    let ssh_connection = environment.value("SSH_CONNECTION").and_then(OsStr::to_str)?;
    let address = ssh_connection.split_whitespace().next()?;
    address.parse().ok().map(|address: IpAddr| address.to_canonical())
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
        orphan: seconds("ROVE_SERVER_ORPHAN_TMOUT"),
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
}
