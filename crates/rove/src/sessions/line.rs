//! The lines of a control socket (`docs/wire.md` §13). Each request is one line and has one line for an answer.

use std::fmt::{self, Write};
use std::net::IpAddr;

use rove_session::host::SizePolicy;
use rove_session::server::VIEWERS_MAX;
use rove_ssp::{ConnId, PublicKeyOctets};
use rove_term::Size;

use crate::bootstrap::nonce::Nonce;
use crate::sessions::name::{Name, SessionId};
use crate::sessions::words::{octets, word};

/// The longest line, with its end. A longer one is no request.
pub(crate) const LINE_BYTES_MAX: usize = 4096;

/// Sessions of one user that can be attached to. Further ones work without a socket.
pub(crate) const SESSIONS_MAX: usize = 64;

/// The version of all requests so far.
const VERSION: &str = "1";

/// What a session is asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Request {
    /// What it is: [`Session`].
    List,
    /// Room for a client.
    Attach(Attach),
    /// Its end.
    Kill,
    /// A way to the client of this connection id: frames follow the answer, both ways. ssh has come from that address.
    Carry(ConnId, Option<IpAddr>),
    /// A part of a copy, by the device and the number of the file: it is let go if the copy's client is silent.
    Release(u64, u64),
}

/// A client that wants to join.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Attach {
    /// The client's nonce.
    pub nonce: Nonce,
    /// The client's public key.
    pub key: PublicKeyOctets,
    /// The session in which the client's program was started, if there is one.
    pub from: Option<SessionId>,
    /// How it wants to be in the session.
    pub terms: Terms,
}

/// How a client is in a session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    /// Its keys and sizes are dropped.
    pub views: bool,
    /// The others are let go once it is heard.
    pub takes: bool,
    /// Octets are paid for.
    pub is_metered: bool,
    /// How the size of the terminal is chosen from now on.
    pub size: Option<SizePolicy>,
    /// How many of the lines above the screen it is to get at most.
    pub fill: Option<u64>,
}

/// A request that this version does not know, or that is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unknown;

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this session speaks version {VERSION} of that")
    }
}

impl Request {
    /// Reads a line without its end.
    pub fn parse(line: &[u8]) -> Result<Request, Unknown> {
        let line = str::from_utf8(line).ok().filter(|line| line.len() < LINE_BYTES_MAX);
        let mut words = line.ok_or(Unknown)?.split(' ');
        let (what, version) = (words.next(), words.next());
        let request = match (what, version) {
            (Some("LIST"), Some(VERSION)) => Request::List,
            (Some("KILL"), Some(VERSION)) => Request::Kill,
            (Some("CARRY"), Some(VERSION)) => read_carry(&mut words).ok_or(Unknown)?,
            (Some("RELEASE"), Some(VERSION)) => read_part(&mut words).ok_or(Unknown)?,
            (Some("ATTACH"), Some(VERSION)) => {
                return Attach::read(&mut words).map(Request::Attach).ok_or(Unknown);
            }
            _ => return Err(Unknown),
        };
        // A word that is not known may change what is meant.
        words.next().is_none().then_some(request).ok_or(Unknown)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::List => write!(f, "LIST {VERSION}"),
            Request::Kill => write!(f, "KILL {VERSION}"),
            Request::Carry(conn, from) => {
                write!(f, "CARRY {VERSION} {conn}")?;
                from.map_or(Ok(()), |from| write!(f, " {from}"))
            }
            Request::Release(device, file) => write!(f, "RELEASE {VERSION} part {device}:{file}"),
            Request::Attach(Attach { nonce, key, from, terms }) => {
                write!(f, "ATTACH {VERSION} {nonce} {key}")?;
                from.map_or(Ok(()), |from| write!(f, " from={from}"))?;
                write!(f, "{terms}")
            }
        }
    }
}

/// Reads whose way it is.
fn read_carry<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Request> {
    let conn = ConnId::parse(words.next()?)?;
    let from = words.next().map(|word| word.parse().ok());
    Some(Request::Carry(conn, from.map_or(Some(None), |from| from.map(Some))?))
}

/// Reads what is to be let go.
fn read_part<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Request> {
    words.next().filter(|what| *what == "part")?;
    let (device, file) = words.next()?.split_once(':')?;
    Some(Request::Release(number(device)?, number(file)?))
}

impl Attach {
    fn read<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Attach> {
        let nonce = Nonce::parse(words.next()?)?;
        let key = PublicKeyOctets::from_base64(words.next()?)?;
        let mut attach = Attach { nonce, key, from: None, terms: Terms::default() };
        for word in words {
            match word.strip_prefix("from=") {
                Some(id) => attach.from = Some(SessionId::parse(id)?),
                None => attach.terms.take_word(word)?,
            }
        }
        Some(attach)
    }
}

impl Terms {
    /// Takes one more word, as [`Display`](fmt::Display) writes them. `None` if there is no such word.
    pub fn take_word(&mut self, word: &str) -> Option<()> {
        match word.split_once('=') {
            None if word == "view" => self.views = true,
            None if word == "take" => self.takes = true,
            None if word == "metered" => self.is_metered = true,
            Some(("size", size)) => self.size = Some(size_policy(size)?),
            Some(("fill", lines)) => self.fill = Some(number(lines)?),
            _ => return None,
        }
        Some(())
    }
}

/// Words that each have a blank before them.
impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = [(self.views, "view"), (self.takes, "take"), (self.is_metered, "metered")];
        for (_, flag) in flags.iter().filter(|(is_set, _)| *is_set) {
            write!(f, " {flag}")?;
        }
        match self.size {
            None => {}
            Some(SizePolicy::Latest) => f.write_str(" size=latest")?,
            Some(SizePolicy::Smallest) => f.write_str(" size=smallest")?,
            Some(SizePolicy::Largest) => f.write_str(" size=largest")?,
            Some(SizePolicy::Fixed(size)) => write!(f, " size={}x{}", size.cols, size.rows)?,
        }
        self.fill.map_or(Ok(()), |fill| write!(f, " fill={fill}"))
    }
}

/// Reads `latest`, `smallest`, `largest` or `80x24`.
pub(crate) fn size_policy(text: &str) -> Option<SizePolicy> {
    Some(match text {
        "latest" => SizePolicy::Latest,
        "smallest" => SizePolicy::Smallest,
        "largest" => SizePolicy::Largest,
        _ => SizePolicy::Fixed(size(text)?),
    })
}

/// Reads `80x24`, columns first.
fn size(text: &str) -> Option<Size> {
    let (cols, rows) = text.split_once('x')?;
    let side = |text| number::<u16>(text).filter(|side| *side > 0);
    let (cols, rows) = (side(cols)?, side(rows)?);
    Some(Size::clamped(rows, cols)).filter(|size| (size.rows, size.cols) == (rows, cols))
}

fn number<N: std::str::FromStr + fmt::Display>(text: &str) -> Option<N> {
    text.parse().ok().filter(|number: &N| number.to_string() == text)
}

/// What a session says of itself.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Session {
    /// Its name.
    pub name: Name,
    /// Its id.
    pub id: SessionId,
    /// What it was begun for.
    pub kind: Kind,
    /// Seconds since it began.
    pub age: u64,
    /// Seconds since its program wrote or somebody typed.
    pub used: u64,
    /// Its terminal's size.
    pub size: Size,
    /// Whether its program runs.
    pub state: State,
    /// Who is there.
    pub clients: Clients,
    /// The process that its terminal's keys go to, 0 if none is known.
    pub pid: u32,
    /// The name of that process's program, as the system tells it.
    pub command: Vec<u8>,
}

/// What a session was begun for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A login shell.
    Shell,
    /// A command.
    Command,
}

/// The life of a session's program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// Its first client has not come yet.
    Waiting,
    /// It runs.
    Running,
    /// It has ended with this status.
    Ended(i32),
}

/// The clients of a session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Clients {
    /// These are there.
    There(Vec<IpAddr>),
    /// The last one left on purpose, this number of seconds ago.
    Left(u64),
    /// The last one has not been heard for this number of seconds.
    Lost(u64),
    /// None ever came.
    None,
}

impl Session {
    /// Reads the line without its end.
    pub fn parse(line: &str) -> Option<Session> {
        let rest = line.strip_prefix("SESSION 1 ").filter(|_| line.len() < LINE_BYTES_MAX)?;
        let mut words = rest.split(' ');
        let mut next = || words.next();
        // Words after these are of a later version.
        Some(Session {
            name: Name::parse(next()?)?,
            id: SessionId::parse(next()?)?,
            kind: match next()? {
                "shell" => Kind::Shell,
                "command" => Kind::Command,
                _ => return None,
            },
            age: number(next()?)?,
            used: number(next()?)?,
            size: size(next()?)?,
            state: State::parse(next()?)?,
            clients: Clients::parse(next()?)?,
            pid: number(next()?)?,
            command: octets(next()?)?,
        })
    }

    /// Whether a client is there.
    pub fn is_attached(&self) -> bool {
        matches!(self.clients, Clients::There(_))
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Session { name, id, age, used, size, state, clients, pid, .. } = self;
        let kind = match self.kind {
            Kind::Shell => "shell",
            Kind::Command => "command",
        };
        let (cols, rows, command) = (size.cols, size.rows, word(&self.command));
        write!(f, "SESSION {VERSION} {name} {id} {kind} {age} {used} {cols}x{rows} ")?;
        write!(f, "{state} {clients} {pid} {command}")
    }
}

impl State {
    fn parse(word: &str) -> Option<State> {
        Some(match word.split_once(':') {
            None if word == "waiting" => State::Waiting,
            None if word == "running" => State::Running,
            Some(("ended", status)) => State::Ended(number(status)?),
            _ => return None,
        })
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            State::Waiting => f.write_str("waiting"),
            State::Running => f.write_str("running"),
            State::Ended(status) => write!(f, "ended:{status}"),
        }
    }
}

impl Clients {
    fn parse(word: &str) -> Option<Clients> {
        Some(match word.split_once(':') {
            None if word == "none" => Clients::None,
            Some(("left", seconds)) => Clients::Left(number(seconds)?),
            Some(("lost", seconds)) => Clients::Lost(number(seconds)?),
            Some(("here", addresses)) => {
                let addresses = addresses.split(',').map(|text| text.parse().ok());
                let addresses: Vec<IpAddr> = addresses.collect::<Option<_>>()?;
                if addresses.len() > VIEWERS_MAX {
                    return None;
                }
                Clients::There(addresses)
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clients::None => f.write_str("none"),
            Clients::Left(seconds) => write!(f, "left:{seconds}"),
            Clients::Lost(seconds) => write!(f, "lost:{seconds}"),
            Clients::There(addresses) => {
                let mut before = "here:";
                for address in addresses {
                    write!(f, "{before}{address}")?;
                    before = ",";
                }
                Ok(())
            }
        }
    }
}

/// The answer of a copy that holds the part it is asked for. It lets go of it if its client is silent; `heard` counts the
/// seconds since that was heard.
pub(crate) fn released(heard: Option<u64>) -> String {
    heard.map_or("OK".to_owned(), |seconds| format!("OK {HEARD}{seconds}"))
}

/// Whether an answer is one of those, and the seconds in it.
pub(crate) fn read_released(answer: &str) -> Option<Option<u32>> {
    let mut words = answer.split(' ');
    words.next().filter(|word| *word == "OK")?;
    // Words after these are of a later version.
    Some(words.find_map(|word| number(word.strip_prefix(HEARD)?)))
}

const HEARD: &str = "heard=";

/// The answer to a request that is not granted. The reason is one line.
pub(crate) fn refusal(why: impl fmt::Display) -> String {
    let mut line = String::from("NO ");
    // A string takes all that is written to it.
    let _ = write!(line, "{why}");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "abababababababababababababababab";
    const KEY: &str = "AAECAwQFBgcICQoLDA0ODwABAgMEBQYHCAkKCwwNDg8";

    #[test]
    fn requests_are_read_as_they_are_written() {
        let attach = format!("ATTACH 1 {NONCE} {KEY}");
        let all = " from=0000002a view take metered size=200x50 fill=7";
        for line in [
            "LIST 1".to_owned(),
            "KILL 1".to_owned(),
            "RELEASE 1 part 2049:77".to_owned(),
            "CARRY 1 0000002a".to_owned(),
            "CARRY 1 0000002a 2001:db8::7".to_owned(),
            attach.clone(),
            format!("{attach}{all}"),
            format!("{attach} size=latest"),
            format!("{attach} size=smallest"),
            format!("{attach} size=largest fill=0"),
        ] {
            let request = Request::parse(line.as_bytes()).unwrap_or_else(|_| panic!("{line}"));
            assert_eq!(request.to_string(), line);
        }
        for bad in [
            "",
            "LIST",
            "LIST 2",
            "LIST 1 ",
            "LIST 1 x",
            "list 1",
            "KILL 1 x",
            "CARRY 1",
            "CARRY 1 2a",
            "CARRY 1 0000002a x",
            "CARRY 1 0000002a ::1 ::1",
            "RELEASE 1",
            "RELEASE 1 lock 1:2",
            "RELEASE 1 part 1",
            "RELEASE 1 part 1:2 x",
            "ATTACH 1",
            "ATTACH 1 x y",
            &format!("ATTACH 1 {NONCE}"),
            &format!("{attach} look"),
            &format!("{attach} size=0x1"),
            &format!("{attach} size=80"),
            &format!("{attach} fill=-1"),
            &format!("{attach} from=x"),
            &format!("LIST 1{}", " ".repeat(LINE_BYTES_MAX)),
        ] {
            assert_eq!(Request::parse(bad.as_bytes()), Err(Unknown), "{bad}");
        }
        assert_eq!(Request::parse(b"LIST 1\xff"), Err(Unknown));
        assert_eq!(refusal(Unknown), "NO this session speaks version 1 of that");
    }

    #[test]
    fn a_holder_tells_when_its_client_was_heard() {
        for heard in [None, Some(0), Some(17)] {
            assert_eq!(read_released(&released(heard.map(u64::from))), Some(heard));
        }
        assert_eq!(read_released("OK later heard=2 words"), Some(Some(2)));
        assert_eq!(read_released("OK heard=x"), Some(None));
        assert_eq!(read_released("NO such part"), None);
    }

    #[test]
    fn sessions_are_read_as_they_are_written() {
        let start = "SESSION 1 work 0000002a shell 10800 120 212x50";
        for rest in [
            "running here:203.0.113.9,::1 4711 vim",
            "waiting none 0 %",
            "ended:1 left:5 0 pytest",
            "ended:-1 lost:50400 0 a%20b",
        ] {
            let line = format!("{start} {rest}");
            let session = Session::parse(&line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(session.to_string(), line);
            assert_eq!(Session::parse(&format!("{line} later")), Some(session));
        }
        for bad in [
            "SESSION 1",
            "SESSION 2 work 0000002a shell 1 1 80x24 running none 0 vim",
            "SESSION 1 a/b 0000002a shell 1 1 80x24 running none 0 vim",
            "SESSION 1 work 0000002a shell 1 1 80x24 running here: 0 vim",
            "SESSION 1 work 0000002a shell +1 1 80x24 running none 0 vim",
            "SESSION 1 work 0000002a shell 1 1 80x24 running none 0",
        ] {
            assert_eq!(Session::parse(bad), None, "{bad}");
        }
    }
}
