//! The asking side on the host: what `rove server --list`, `--attach` and `--kill` do for a client, and the sessions
//! that a login is told of. It asks the control sockets, and passes on what they say.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use rove_ssp::ConnId;
use rustix::event::Timespec;
use rustix::io::Errno;

use crate::bootstrap::nonce::Nonce;
use crate::os;
use crate::os::clock::uptime;
use crate::printable::printable;
use crate::server::options::{Aim, Ask, Greeting, Options};
use crate::server::relay::pass_on;
use crate::server::scope;
use crate::server::secret::print;
use crate::sessions::age::span;
use crate::sessions::ask::{self, Entry, WayAnswer};
use crate::sessions::directory::Places;
use crate::sessions::line::{Attach, Clients, Request, Session, State, Terms};
use crate::sessions::name::{Name, SessionId};

/// How long a killed session may take to be gone: its program has 5 s.
const GONE_WAIT: Duration = Duration::from_secs(8);
const GONE_LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// Sessions that a login is told of, the ones used last.
const TOLD_MAX: usize = 5;

/// The longest command line that is told, in octets.
const COMMAND_OCTETS_MAX: usize = 1024;

/// Answers on the standard output. A refusal is an answer, too.
pub(super) fn answer(places: &Places, asked: Ask, ssh_client: Option<IpAddr>) -> io::Result<()> {
    let Ask { nonce, aim } = asked;
    let machine = match aim {
        Aim::Join(..) => os::machine_and_network(),
        Aim::List | Aim::Attach { .. } | Aim::Kill(_) => os::machine(),
    };
    let asking = Asking::new(places, nonce, &machine)?;
    match aim {
        Aim::List => asking.list(),
        Aim::Attach { name, key, from, terms, carries } => {
            let attach = Attach { nonce: asking.nonce.clone(), key, from, terms };
            asking.attach(name.as_ref(), attach, carries.then_some(ssh_client))
        }
        Aim::Kill(name) => asking.kill(name.as_ref()),
        Aim::Join(conn, port) => asking.join(conn, port, ssh_client),
    }
}

/// A session that was to begin has a name that is taken: its client joins the other one if it wants that.
pub(super) fn taken(places: &Places, name: &Name, options: &Options, ssh_client: Option<IpAddr>) {
    let Greeting::Native { nonce, key } = &options.greeting else {
        return super::log::note(&format_args!("there is a session {name} already"));
    };
    let asking = Asking::new(places, nonce.clone(), &os::machine());
    let told = asking.and_then(|asking| match options.session.joins {
        true => {
            let is_metered = options.tariff == crate::bootstrap::CostProfile::Metered;
            let terms = Terms { is_metered, ..Terms::default() };
            let attach = Attach { nonce: nonce.clone(), key: *key, from: None, terms };
            asking.attach(Some(name), attach, options.carry.then_some(ssh_client))
        }
        false => asking.refuse(format_args!("taken {name}")),
    });
    if let Err(error) = told {
        super::log::note(&error);
    }
}

/// The sessions that wait for their user, for a login on this machine, which its client calls `host`.
pub(super) fn notice(places: &Places, own: Option<SessionId>, host: Option<&str>) -> String {
    let (directories, _) = places.to_list();
    let entries = directories.iter().flat_map(|directory| directory.entries());
    let entries: Vec<Entry> = entries.filter(|entry| Some(entry.id) != own).collect();
    let mut waiting = ask::list_within(&entries, ask::NOTICE_WAIT);
    waiting.retain(|session| matches!(session.clients, Clients::Left(_) | Clients::Lost(_)));
    waiting.sort_by_key(|session| session.used);
    let Some(first) = waiting.first() else { return String::new() };
    let told: Vec<String> = waiting.iter().take(TOLD_MAX).map(in_brief).collect();
    let more = match waiting.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let own_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = host.filter(|host| !host.is_empty()).unwrap_or(&own_name);
    let host = printable(host.as_bytes(), 255);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    format!(
        "rove: sessions of yours wait here: {}{more}. Back: rove attach {host}:{}\n",
        told.join(", "),
        first.name
    )
}

fn in_brief(session: &Session) -> String {
    let command = printable(&session.command, 40);
    match session.state {
        State::Ended(status) => format!("{} (ended with status {status})", session.name),
        _ => format!("{} ({command}, {})", session.name, span(session.age)),
    }
}

/// One conversation.
struct Asking {
    nonce: Nonce,
    entries: Vec<Entry>,
    /// Why there may be sessions that are not found.
    denied: Vec<String>,
}

impl Asking {
    /// Says first which machine this is.
    fn new(places: &Places, nonce: Nonce, machine: &str) -> io::Result<Asking> {
        let (directories, denied) = places.to_list();
        let entries = directories.iter().flat_map(|directory| directory.entries()).collect();
        let denied: Vec<String> = denied.iter().map(ToString::to_string).collect();
        let asking = Asking { nonce, entries, denied };
        let system = rustix::system::uname();
        let name = printable(system.nodename().to_bytes(), 255).replace(' ', "?");
        asking.say("AT", format_args!("{name} {machine} {}", uptime().as_secs()))?;
        if let Some(why) = asking.denied.first() {
            asking.say("SOCKET", printable(why.as_bytes(), 300))?;
        }
        Ok(asking)
    }

    fn say(&self, word: &str, text: impl Display) -> io::Result<()> {
        print(&format!("ROVE {word} {} {text}\n", self.nonce))
    }

    fn refuse(&self, why: impl Display) -> io::Result<()> {
        self.say("NO", why)
    }

    fn list(&self) -> io::Result<()> {
        let sessions = ask::list(&self.entries);
        let pids = sessions.iter().map(|session| session.pid).filter(|pid| *pid != 0);
        let account = os::account::account().filter(|_| !sessions.is_empty());
        if let Some(why) = account.and_then(|account| scope::outlook(&account.name, pids)) {
            // Clients that know nothing of this know the word from `rove doctor`: any other would be an answer they refuse.
            self.say("LOGIND", printable(why.as_bytes(), 400))?;
        }
        for session in sessions {
            let line = session.to_string();
            let rest = line.strip_prefix("SESSION ").unwrap_or_default();
            self.say("SESSION", rest)?;
            if let Some(words) = command_line(session.pid) {
                self.say("COMMAND", format_args!("{} {words}", session.id))?;
            }
        }
        self.say("LISTED", self.entries.len())
    }

    /// Asks for room in a session. With `carry`, where ssh has come from, the client can go on over ssh.
    fn attach(
        &self,
        name: Option<&Name>,
        attach: Attach,
        carry: Option<Option<IpAddr>>,
    ) -> io::Result<()> {
        let entry = match name {
            Some(name) => self.entries.iter().find(|entry| entry.name == *name),
            None => self.favourite(attach.from),
        };
        let Some(entry) = entry else { return self.missing(name) };
        if attach.from == Some(entry.id) {
            return self.refuse(format_args!("inside {}", entry.name));
        }
        let start = format!("ROVE 1 {} ", self.nonce);
        match ask::ask(&entry.path, &Request::Attach(attach)) {
            Ok(line) if line.starts_with(&start) => self.joined(entry, &line, carry),
            Ok(line) => {
                let why = line.strip_prefix("NO ").unwrap_or("it gives no answer that is known");
                self.refuse(format_args!("said {} {}", entry.name, printable(why.as_bytes(), 200)))
            }
            Err(_) => self.refuse(format_args!("silent {}", entry.name)),
        }
    }

    /// A client that has lost its session goes on over this stream, or is told that the session is gone. It is gone
    /// if none knows the client, none keeps silent, and nobody listens on its port: a session without a control socket
    /// is found by that alone.
    fn join(&self, conn: ConnId, port: u16, from: Option<IpAddr>) -> io::Result<()> {
        match ask::carry_by_any(&self.entries, &Request::Carry(conn, from)) {
            WayAnswer::Way(way) => {
                let (nonce, machine) = (&self.nonce, os::machine_and_network());
                print(&format!("ROVE LISTED {nonce} 1\nROVE CARRY {nonce} {machine}\n"))?;
                pass_on(way)
            }
            WayAnswer::No if self.denied.is_empty() && is_free(port) => self.refuse("gone"),
            WayAnswer::No | WayAnswer::Unknown => self.refuse("hidden"),
        }
    }

    /// Passes on what the client waits for, and what it says over this stream from then on.
    fn joined(&self, entry: &Entry, line: &str, carry: Option<Option<IpAddr>>) -> io::Result<()> {
        let conn = line.split(' ').nth(5).and_then(ConnId::parse);
        let wanted = conn.zip(carry).map(|(conn, from)| Request::Carry(conn, from));
        // A session of an older version has no such way.
        let way = wanted.and_then(|request| ask::carry(&entry.path, &request).ok());
        let Some(way) = way else { return print(&format!("{line}\n")) };
        // In one piece: a client does not wait long for the second line.
        let machine = os::machine_and_network();
        print(&format!("{line}\nROVE CARRY {} {machine}\n", self.nonce))?;
        pass_on(way)
    }

    /// Of the sessions without a client the one that was used last; if all have one, of all.
    fn favourite(&self, from: Option<SessionId>) -> Option<&Entry> {
        let sessions = ask::list(&self.entries);
        let others = sessions.iter().filter(|session| Some(session.id) != from);
        let best = others.min_by_key(|session| (session.is_attached(), session.used));
        // Where there is no other, it is said that this one is the user's own.
        let id = best.map(|session| session.id).or(from)?;
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// There is no such session, or none at all.
    fn missing(&self, name: Option<&Name>) -> io::Result<()> {
        let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        match (names.is_empty(), name) {
            (true, _) | (false, None) => self.refuse("none"),
            (false, Some(name)) => self.refuse(format_args!("unknown {name} {}", names.join(" "))),
        }
    }

    fn kill(&self, name: Option<&Name>) -> io::Result<()> {
        let is_meant = |entry: &&Entry| name.is_none_or(|name| entry.name == *name);
        let meant: Vec<&Entry> = self.entries.iter().filter(is_meant).collect();
        if meant.is_empty() {
            return self.missing(name);
        }
        let asked: Vec<_> =
            meant.into_iter().map(|entry| (entry, ask::ask(&entry.path, &Request::Kill))).collect();
        for (entry, answer) in asked {
            match answer {
                Ok(line) if line == "OK" && is_gone(entry) => self.say("KILLED", &entry.name)?,
                Ok(line) => {
                    let why = line.strip_prefix("NO ").unwrap_or("it has not ended in time");
                    let why = printable(why.as_bytes(), 200);
                    self.refuse(format_args!("said {} {why}", entry.name))?;
                    return Ok(());
                }
                Err(_) => return self.refuse(format_args!("silent {}", entry.name)),
            }
        }
        self.say("LISTED", self.entries.len())
    }
}

/// Whether nobody listens on a UDP port, as far as trying it tells.
fn is_free(port: u16) -> bool {
    let tried = |ip: IpAddr| UdpSocket::bind((ip, port)).map(drop);
    shows_free(&[tried(Ipv4Addr::UNSPECIFIED.into()), tried(Ipv6Addr::UNSPECIFIED.into())])
}

/// Whether binding a port in each family shows that it is free: this machine may do without one of them.
fn shows_free(tried: &[io::Result<()>; 2]) -> bool {
    let is_missing = |error: &io::Error| {
        error.kind() == io::ErrorKind::AddrNotAvailable
            || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
    };
    let is_harmless = |tried: &io::Result<()>| tried.as_ref().err().is_none_or(is_missing);
    tried.iter().all(is_harmless) && tried.iter().any(Result::is_ok)
}

/// Waits until a session is gone that was told to end. Returns whether it is.
fn is_gone(entry: &Entry) -> bool {
    let begin = uptime();
    while uptime().saturating_sub(begin) < GONE_WAIT {
        if !matches!(ask::is_alive(&entry.path), Ok(true)) {
            return true;
        }
        let _ = rustix::event::poll(&mut [], Some(&GONE_LOOK));
    }
    false
}

/// The words with which a process of this user's was started.
fn command_line(pid: u32) -> Option<String> {
    if pid == 0 {
        return None;
    }
    let words = os::process::command_line(pid, COMMAND_OCTETS_MAX);
    let words = words.strip_suffix(b"\0").unwrap_or(&words);
    let shown: Vec<u8> =
        words.iter().map(|octet| if *octet == 0 { b' ' } else { *octet }).collect();
    (!shown.is_empty()).then(|| crate::sessions::words::word(&shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_free_where_nothing_says_otherwise() {
        let of = |errno: Option<Errno>| errno.map_or(Ok(()), |errno| Err(errno.into()));
        for (v4, v6, expected) in [
            (None, None, true),
            (None, Some(Errno::ADDRNOTAVAIL), true),
            (None, Some(Errno::AFNOSUPPORT), true),
            (Some(Errno::AFNOSUPPORT), None, true),
            (Some(Errno::ADDRNOTAVAIL), Some(Errno::AFNOSUPPORT), false),
            (Some(Errno::ADDRINUSE), None, false),
            (None, Some(Errno::ADDRINUSE), false),
            (None, Some(Errno::ACCESS), false),
            (None, Some(Errno::MFILE), false),
            (Some(Errno::MFILE), Some(Errno::MFILE), false),
        ] {
            assert_eq!(shows_free(&[of(v4), of(v6)]), expected, "{v4:?} {v6:?}");
        }
        let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(taken.local_addr().unwrap().port()));
    }
}
