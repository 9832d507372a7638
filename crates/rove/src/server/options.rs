//! The server's command line: stock mosh-server's words, read as stock reads them, and the few that
//! rove's own client adds. It knows nothing of the environment or the network.

mod error;
mod sessions;

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rove_ssp::PublicKeyOctets;
use rove_term::Checksums;

use crate::bootstrap::nonce::Nonce;
use crate::bootstrap::{CostProfile, Ports, Purpose};
use crate::server::program::Program;
use error::NONCE_BYTES_MAX;

pub(super) use error::OptionError;
pub(super) use sessions::{Aim, Ask, SessionWords};

/// What a command line asks for.
#[derive(Debug, Eq, PartialEq)]
pub enum Request {
    /// The usage text on standard output.
    Help,
    /// The version on standard output.
    Version,
    /// A session.
    Serve(Options),
    /// Something of sessions that are there.
    Ask(Ask),
}

/// How a session is to be served.
#[derive(Debug, Eq, PartialEq)]
pub struct Options {
    /// The expected client, and so the form of the answer.
    pub greeting: Greeting,
    /// Where to listen.
    pub bind: Bind,
    /// The ports to try.
    pub ports: Ports,
    /// What `TERM` says to programs.
    pub term: &'static str,
    /// The client's locale variables, in its order (`-l`).
    pub locale: Vec<(OsString, OsString)>,
    /// Whether the standard streams stay open after detaching, for messages (`-v`).
    pub streams: Streams,
    /// Whether programs may ask for checksums of the screen (`--allow-checksum`).
    pub checksums: Checksums,
    /// The purpose of the session (`--streams`: no terminal).
    pub purpose: Purpose,
    /// Whether programs can reach the user's agent (`--agent`).
    pub agent: Agent,
    /// The price of its datagrams (`--metered`).
    pub tariff: CostProfile,
    /// Whether the client can go on over the stream that started the server (`-@ carry`).
    pub carry: bool,
    /// What becomes of the session when its client is gone.
    pub session: SessionWords,
    /// The command to run; empty means the login shell.
    pub command: Vec<OsString>,
    /// Errors in the words that stop nothing (stock continues after an unknown option).
    pub complaints: Vec<OptionError>,
}

/// The line that tells the client where to connect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Greeting {
    /// `MOSH CONNECT port key` (mosh-protocol.md §1.3).
    Mosh,
    /// `ROVE 0 nonce port key address,...`.
    Rove {
        /// The client's nonce, by which it finds its own answer among the output of login scripts.
        nonce: String,
    },
    /// `ROVE 1 nonce port key connection address,...`.
    Native {
        /// As above; the session's secrets depend on it.
        nonce: Nonce,
        /// The client's public key.
        key: PublicKeyOctets,
    },
}

/// The address to listen on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bind {
    /// Any, IPv4 and IPv6.
    Any,
    /// The one the client's ssh connection came to.
    SshConnection,
    /// This one; any if that fails.
    Address(IpAddr),
}

/// Whether programs of the session can reach the user's agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Agent {
    /// No.
    Absent,
    /// By a socket of the server's, for as long as a client is heard.
    Forwarded,
}

/// Stock's range (mosh-protocol.md §1.3), which firewall rules for mosh already open.
const MOSH_PORTS: Ports = Ports { low: 60_001, high: 60_999 };

fn parse_ports(text: &OsStr) -> Result<Ports, OptionError> {
    let text = text.to_string_lossy();
    text.parse().map_err(|reason| OptionError::BadPorts { text: text.into_owned(), reason })
}

/// The standard streams once the server has detached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Streams {
    /// They point at the null device.
    Closed,
    /// They stay, for a person who watches.
    Kept,
}

/// Reads the words after the program's name.
///
/// # Errors
/// One line saying what is wrong, where stock exits with 1. A stock server goes on after an option that
/// it does not know, so for [`Program::Mosh`] those are only [`Options::complaints`].
pub fn parse(program: Program, words: &[OsString]) -> Result<Request, OptionError> {
    let own = words.split(|word| word == "--").next().unwrap_or_default();
    for word in own {
        match word.to_str() {
            Some("--help" | "-h") => return Ok(Request::Help),
            Some("--version") => return Ok(Request::Version),
            _ => {}
        }
    }
    if program == Program::Rove && own.iter().any(|word| sessions::is_mode(word)) {
        return sessions::parse(own).map(Request::Ask);
    }
    match (program, words.split_first()) {
        (_, Some((new, words))) if new == "new" => parse_options(Program::Mosh, words),
        (Program::Mosh, _) => parse_old_form(own),
        (Program::Rove, _) => parse_options(Program::Rove, words),
    }
}

/// `mosh-server [IP [PORT]]`, from before there was `new`.
fn parse_old_form(words: &[OsString]) -> Result<Request, OptionError> {
    let mut reader = Reader::new(Program::Mosh);
    match words {
        [] => {}
        [address] => reader.set_address(address),
        [address, port] => {
            reader.set_address(address);
            reader.options.ports = parse_ports(port)?;
        }
        _ => return Err(OptionError::TooManyWords),
    }
    Ok(Request::Serve(reader.finish(Vec::new())?))
}

fn parse_options(program: Program, words: &[OsString]) -> Result<Request, OptionError> {
    let mut reader = Reader::new(program);
    let mut words = words.iter();
    let mut command = Vec::new();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        if bytes == b"--" {
            command = words.cloned().collect();
            break;
        } else if program == Program::Rove && reader.read_long(bytes)? {
            continue;
        } else if let Some(letters) = bytes.strip_prefix(b"-")
            && !letters.is_empty()
        {
            reader.read_letters(letters, &mut words)?;
        } else {
            reader.complain(OptionError::NotAnOption(word.to_string_lossy().into_owned()))?;
        }
    }
    Ok(Request::Serve(reader.finish(command)?))
}

/// Options read so far.
struct Reader {
    program: Program,
    nonce: Option<String>,
    key: Option<PublicKeyOctets>,
    options: Options,
}

impl Reader {
    fn new(program: Program) -> Reader {
        let options = Options {
            greeting: Greeting::Mosh,
            bind: Bind::Any,
            ports: MOSH_PORTS,
            term: match program {
                Program::Mosh => "xterm",
                Program::Rove => "xterm-256color",
            },
            locale: Vec::new(),
            streams: Streams::Closed,
            checksums: Checksums::Ignored,
            purpose: Purpose::Shell,
            agent: Agent::Absent,
            tariff: CostProfile::Flat,
            carry: false,
            session: SessionWords::default(),
            command: Vec::new(),
            complaints: Vec::new(),
        };
        Reader { program, nonce: None, key: None, options }
    }

    /// A word that only rove's own client says. Returns whether it is one.
    fn read_long(&mut self, word: &[u8]) -> Result<bool, OptionError> {
        match word {
            b"--streams" => self.options.purpose = Purpose::Streams,
            b"--agent" => self.options.agent = Agent::Forwarded,
            b"--metered" => self.options.tariff = CostProfile::Metered,
            b"--allow-checksum" => self.options.checksums = Checksums::Answered,
            _ => {
                if let Some(nonce) = word.strip_prefix(b"--nonce=") {
                    self.set_nonce(nonce)?;
                } else if let Some(key) = word.strip_prefix(b"--key=") {
                    self.set_key(key)?;
                } else {
                    return self.options.session.take_word(word);
                }
            }
        }
        Ok(true)
    }

    /// One word of option letters, as getopt(3) reads it: letters without a value may share a word, and
    /// a value is the rest of its word or else the next.
    fn read_letters<'a>(
        &mut self,
        letters: &[u8],
        words: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), OptionError> {
        for (at, &letter) in letters.iter().enumerate() {
            match letter {
                b's' => self.options.bind = Bind::SshConnection,
                b'v' => self.options.streams = Streams::Kept,
                b'i' | b'p' | b'c' | b'l' | b'@' => {
                    let rest = &letters[at + 1..];
                    let value = match rest {
                        [] => words.next().cloned(),
                        _ => Some(OsString::from_vec(rest.to_vec())),
                    };
                    return match value {
                        Some(value) => self.set(letter, &value),
                        None => self.complain(OptionError::ValueMissing(letter)),
                    };
                }
                _ => self.complain(OptionError::UnknownLetter(letter))?,
            }
        }
        Ok(())
    }

    fn set(&mut self, letter: u8, value: &OsStr) -> Result<(), OptionError> {
        match letter {
            b'i' => self.set_address(value),
            b'p' => self.options.ports = parse_ports(value)?,
            b'c' => self.set_colors(&value.to_string_lossy())?,
            b'l' => self.options.locale.extend(assignment(value)),
            b'@' if value == "carry" => self.options.carry = self.program == Program::Rove,
            // `-@`: swallowed as stock does, so that a client can leave a word for those who know it.
            _ => self.options.session.take_hint(value),
        }
        Ok(())
    }

    fn set_address(&mut self, address: &OsStr) {
        let address = address.to_string_lossy();
        match address.parse() {
            Ok(address) => self.options.bind = Bind::Address(address),
            Err(_) => self.options.complaints.push(OptionError::BadAddress(address.into_owned())),
        }
    }

    fn set_colors(&mut self, colors: &str) -> Result<(), OptionError> {
        let bad = |_| OptionError::BadColors(colors.to_owned());
        let colors: u32 = colors.parse().map_err(bad)?;
        if self.program == Program::Mosh {
            self.options.term = if colors == 256 { "xterm-256color" } else { "xterm" };
        }
        Ok(())
    }

    fn set_nonce(&mut self, nonce: &[u8]) -> Result<(), OptionError> {
        let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        if nonce.is_empty() || nonce.len() > NONCE_BYTES_MAX || !nonce.iter().all(valid) {
            return Err(OptionError::BadNonce);
        }
        self.nonce = Some(String::from_utf8_lossy(nonce).into_owned());
        Ok(())
    }

    fn set_key(&mut self, key: &[u8]) -> Result<(), OptionError> {
        self.key = Some(sessions::public_key(key)?);
        Ok(())
    }

    fn complain(&mut self, complaint: OptionError) -> Result<(), OptionError> {
        if self.program == Program::Rove {
            return Err(complaint);
        }
        self.options.complaints.push(complaint);
        Ok(())
    }

    fn finish(self, command: Vec<OsString>) -> Result<Options, OptionError> {
        let greeting = match (self.program, self.nonce, self.key) {
            (Program::Mosh, ..) => Greeting::Mosh,
            (Program::Rove, Some(nonce), None) => Greeting::Rove { nonce },
            (Program::Rove, Some(nonce), Some(key)) => {
                let nonce = Nonce::parse(&nonce);
                let nonce = nonce.ok_or(OptionError::NonceNotHexadecimal)?;
                Greeting::Native { nonce, key }
            }
            (Program::Rove, None, _) => return Err(OptionError::NonceMissing),
        };
        let is_native = matches!(greeting, Greeting::Native { .. });
        if self.options.purpose == Purpose::Streams && !is_native {
            return Err(OptionError::StreamsWithoutKey);
        }
        Ok(Options { greeting, command, ..self.options })
    }
}

/// Splits `NAME=VALUE`, if `NAME` is a locale's variable: nothing else may enter the environment here.
fn assignment(text: &OsStr) -> Option<(OsString, OsString)> {
    let at = text.as_bytes().iter().position(|&byte| byte == b'=')?;
    let (name, value) = text.as_bytes().split_at(at);
    let locale = name == b"LANG" || name == b"LANGUAGE" || name.starts_with(b"LC_");
    let owned = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    locale.then(|| (owned(name), owned(&value[1..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn refusal(program: Program, line: &str) -> String {
        match parse(program, &words(line)) {
            Err(error) => error.to_string(),
            taken => panic!("{line}: {taken:?}"),
        }
    }

    fn mosh(line: &str) -> Options {
        match parse(Program::Mosh, &words(line)) {
            Ok(Request::Serve(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn help_and_version_win_before_the_dashes() {
        for (line, wanted) in [
            ("--help", Some(Request::Help)),
            ("new -p x -h", Some(Request::Help)),
            ("new -Z --version", Some(Request::Version)),
            ("new -- --help", None),
        ] {
            for program in [Program::Mosh, Program::Rove] {
                let request = parse(program, &words(line));
                match &wanted {
                    Some(wanted) => assert_eq!(request.as_ref(), Ok(wanted), "{line}"),
                    None => assert!(matches!(request, Ok(Request::Serve(_))), "{line}"),
                }
            }
        }
    }

    #[test]
    fn stock_words() {
        let options =
            mosh("new -s -c 256 -l LANG=en_GB.UTF-8 -l PATH=/evil -@ word -p 5:9 -- vi -s x");
        assert_eq!(options.bind, Bind::SshConnection);
        assert_eq!(options.term, "xterm-256color");
        assert_eq!(options.ports, Ports { low: 5, high: 9 });
        assert_eq!(options.locale, [("LANG".into(), "en_GB.UTF-8".into())]);
        assert_eq!(options.command, ["vi", "-s", "x"]);
        assert_eq!(options.complaints, []);

        let address = |text: &str| Bind::Address(text.parse().unwrap());
        for (line, bind, ports) in [
            ("", Bind::Any, MOSH_PORTS),
            ("new", Bind::Any, MOSH_PORTS),
            ("127.0.0.1", address("127.0.0.1"), MOSH_PORTS),
            ("::1 60007", address("::1"), Ports { low: 60_007, high: 60_007 }),
            ("new -sp0 -i::1", address("::1"), Ports { low: 0, high: 0 }),
            ("new -p 1 -p 2", Bind::Any, Ports { low: 2, high: 2 }),
        ] {
            let options = mosh(line);
            assert_eq!((options.bind, options.ports), (bind, ports), "{line}");
        }
        for (line, term) in
            [("new", "xterm"), ("new -c 8", "xterm"), ("new -c256", "xterm-256color")]
        {
            assert_eq!(mosh(line).term, term, "{line}");
        }
    }

    #[test]
    fn stock_goes_on_after_unknown_options() {
        for (line, complaints) in [
            ("new -Z", &["unknown option -Z"][..]),
            ("new --fo", &["unknown option --", "unknown option -f", "unknown option -o"]),
            ("new -p", &["-p needs a value"]),
            ("new word", &["word: not an option"]),
            ("new -i no.where", &["no.where is no IP address: listening on any"]),
            ("-v", &["-v is no IP address: listening on any"]),
        ] {
            let told: Vec<String> = mosh(line).complaints.iter().map(|c| c.to_string()).collect();
            assert_eq!(told, complaints, "{line}");
        }
    }

    #[test]
    fn what_stock_refuses() {
        let not_a_number = "a port is a number; a range is two, as in 60001:60999";
        let zero = "port 0 (any free port) cannot be part of a range";
        for (line, text, reason) in [
            ("127.0.0.1 x", "x", not_a_number),
            ("new -p x", "x", not_a_number),
            ("new -p 70000", "70000", "a port is a number from 0 to 65535"),
            ("new -p 5:3", "5:3", "the first port of the range is above the last"),
            ("new -p 0:5", "0:5", zero),
            ("new -p 0:0", "0:0", zero),
            ("new -p +60001", "+60001", not_a_number),
            ("new -p 60001:", "60001:", "a port is a number from 0 to 65535"),
            ("new -p -1", "-1", not_a_number),
        ] {
            let told = format!("bad port range {text:?}: {reason}");
            assert_eq!(refusal(Program::Mosh, line), told, "{line}");
        }
        assert_eq!(refusal(Program::Mosh, "a b c"), "too many words (see --help)");
        assert_eq!(refusal(Program::Mosh, "new -c x"), "bad number of colors \"x\"");
    }

    #[test]
    fn rove_words() {
        let Ok(Request::Serve(options)) =
            parse(Program::Rove, &words("--nonce=aB3-_ -p 4 -c 8 -- vi"))
        else {
            panic!("refused");
        };
        assert_eq!(options.greeting, Greeting::Rove { nonce: "aB3-_".into() });
        assert_eq!(options.term, "xterm-256color");
        assert_eq!((options.checksums, options.tariff), (Checksums::Ignored, CostProfile::Flat));
        match parse(Program::Rove, &words("--nonce=x --allow-checksum --metered")) {
            Ok(Request::Serve(options)) => {
                assert_eq!(options.checksums, Checksums::Answered);
                assert_eq!(options.tariff, CostProfile::Metered);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(mosh("new --allow-checksum").checksums, Checksums::Ignored);
        let key = "A".repeat(43);
        let native = format!("--nonce={} --key={key} --streams", "ab".repeat(16));
        match parse(Program::Rove, &words(&native)) {
            Ok(Request::Serve(options)) => assert_eq!(options.purpose, Purpose::Streams),
            other => panic!("{other:?}"),
        }
        let long = format!("--nonce={}", "x".repeat(65));
        let bad_nonce = "--nonce is 1 to 64 letters, digits, - or _";
        let with_key = format!("--nonce=x --key={key}");
        for (line, told) in [
            ("--nonce=x --streams", "--streams needs --key: streams run beside the native wire"),
            (
                "",
                "--nonce is missing: `rove HOST` starts this program with one; \
                 for a mosh client say `rove server new`",
            ),
            ("--nonce=", bad_nonce),
            ("--nonce=a/b", bad_nonce),
            (&long, bad_nonce),
            ("--nonce=x -Z", "unknown option -Z"),
            ("--nonce=x word", "word: not an option"),
            ("--nonce=x --key=y", "--key is a public key, 43 characters of base64"),
            (&with_key, "with --key, --nonce is 32 hexadecimal digits"),
        ] {
            assert_eq!(refusal(Program::Rove, line), told, "{line}");
        }
    }
}
