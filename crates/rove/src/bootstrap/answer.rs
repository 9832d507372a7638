//! Reads the remote command's answer: finds our lines among the output of login scripts.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::num::NonZeroU16;

use rove_ssp::{ConnId, Key, PublicKeyOctets};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::bootstrap::nonce::Nonce;
use crate::os::locked::within;
use crate::printable::printable;

/// The longest line of ours: a stock or rove answer is under 100 octets, the longest is `ROVE NONE` with a
/// PATH. Longer lines are noise.
const LINE_BYTES_MAX: usize = 4096;

/// Octets of noise allowed before the answer. A login script that never stops ends the attempt here.
const NOISE_BYTES_MAX: usize = 16 << 20;

/// Lines of noise kept to explain a failure, and the characters kept of each.
const STRAY_LINES_MAX: usize = 4;
const STRAY_CHARS_MAX: usize = 160;

/// Addresses taken from a server's announcement; more are ignored.
const ANNOUNCED_MAX: usize = 8;

/// Lines that say one thing each about the host, before the answer or without one: `ROVE <word> <nonce> <text>`.
const FACTS: [&str; 18] = [
    "FOUND", "BROKEN", "BECAUSE", "HOST", "LINKED", "THERE", "READY", "FAILED", "FIRST", "ITS",
    "DONE", "AT", "SOCKET", "CLOCK", "MOSH", "SFTP", "LOGIND", "SOCKETS",
];

/// Lines of which there may be several, one for each of the sessions that are there.
const ENTRIES: [&str; 3] = ["SESSION", "COMMAND", "KILLED"];

/// Such lines taken; more are ignored. A host has at most 64 sessions of a user's in each of a few directories.
const ENTRIES_MAX: usize = 1024;

/// What the remote command has said about the host.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Facts(Vec<(&'static str, String)>);

impl Facts {
    /// The text of the line with this word.
    pub fn get(&self, word: &str) -> Option<&str> {
        self.0.iter().find_map(|(said, text)| (*said == word).then_some(text.as_str()))
    }

    fn take(&mut self, word: &'static str, text: &str) -> Result<(), Refusal> {
        match self.get(word) {
            Some(said) if said != text => Err(Refusal::Contradiction),
            Some(_) => Ok(()),
            None => {
                self.0.push((word, text.to_owned()));
                Ok(())
            }
        }
    }
}

/// The output of login scripts before the remote command began.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Noise {
    /// How many lines that are not blank.
    pub(crate) lines: u64,
    /// The first of them, made safe to show.
    pub(crate) first: String,
}

/// The remote command's answer.
#[derive(Debug)]
pub struct Reply {
    /// What it said besides.
    pub facts: Facts,
    /// The lines about sessions: their word, and the rest.
    pub entries: Vec<(&'static str, String)>,
    /// The server's address in ssh's connection (the third word of SSH_CONNECTION).
    pub ssh_address: Option<IpAddr>,
    /// The answer.
    pub answer: Answer,
}

/// The line that ends the bootstrap.
#[derive(Debug)]
pub enum Answer {
    /// A rove server waits.
    Rove {
        /// Its UDP port.
        port: NonZeroU16,
        /// The wire it speaks.
        wire: Wire,
        /// Addresses that the server announces as its own.
        addresses: Vec<IpAddr>,
    },
    /// A mosh-server waits.
    Stock {
        /// Its UDP port.
        port: NonZeroU16,
        /// The session's key.
        key: Key,
    },
    /// All that was asked about sessions has been said.
    Listed,
    /// A request to sessions is not granted, for this reason, whose words `ssh/sessions.rs` knows.
    Denied(String),
    /// There is no server in this PATH.
    Missing {
        /// The directories searched, separated by colons.
        path: String,
    },
}

/// The wire that a rove server will speak, and its keys.
#[derive(Debug)]
pub enum Wire {
    /// Version 0: the mosh wire, with the session's key.
    Mosh(Key),
    /// Version 1: the native wire. None of these fields is secret.
    Native {
        /// The server's public key.
        key: PublicKeyOctets,
        /// The session's name.
        conn: ConnId,
    },
}

/// Why the output cannot be trusted or understood. The attempt ends.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Refusal {
    /// Two different lines carry our nonce, or two different servers answer: one of them is forged.
    #[error("two different answers came back over ssh")]
    Contradiction,
    /// A line with our nonce that is no answer, or a malformed `MOSH CONNECT`.
    #[error("the answer over ssh makes no sense")]
    Malformed,
    /// The server speaks another version of this exchange.
    #[error("the server there starts sessions by version {0}, this rove by 0 and 1")]
    Version(String),
    /// `NOISE_BYTES_MAX` octets without an answer.
    #[error("the login scripts there printed {} MiB", NOISE_BYTES_MAX >> 20)]
    Noise,
}

/// Reads the output of ssh, in pieces of any size.
#[derive(Debug)]
pub struct Reader {
    nonce: Nonce,
    line: Zeroizing<Vec<u8>>,
    /// The line is longer than any of ours; the reader skips the rest of it.
    skipping: bool,
    bytes: usize,
    begin: Option<String>,
    facts: Facts,
    entries: Vec<(&'static str, String)>,
    answer: Option<Zeroizing<String>>,
    stray: VecDeque<String>,
    noise: Noise,
    /// The machine that the session is on, if it goes on over this stream.
    carried: Option<String>,
    /// What came behind that.
    rest: Vec<u8>,
}

impl Reader {
    /// A reader of lines that carry `nonce`.
    pub fn new(nonce: Nonce) -> Reader {
        // Reserved whole, so that no copy of a key stays behind in a buffer that grew.
        let line = within(|| Zeroizing::new(Vec::with_capacity(LINE_BYTES_MAX)));
        Reader {
            nonce,
            line,
            skipping: false,
            bytes: 0,
            begin: None,
            facts: Facts::default(),
            entries: Vec::new(),
            answer: None,
            stray: VecDeque::new(),
            noise: Noise::default(),
            carried: None,
            rest: Vec::new(),
        }
    }

    /// Takes the next octets. After a refusal the attempt is over.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > NOISE_BYTES_MAX && self.answer.is_none() {
            return Err(Refusal::Noise);
        }
        let mut left = bytes;
        while !left.is_empty() {
            // No line comes any more.
            if self.carried.is_some() {
                self.rest.extend_from_slice(left);
                break;
            }
            let end = left.iter().position(|&octet| octet == b'\n').map_or(left.len(), |at| at + 1);
            let piece;
            (piece, left) = left.split_at(end);
            let (text, ended) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            if self.line.len() + text.len() > LINE_BYTES_MAX {
                self.skipping = true;
            } else if !self.skipping {
                self.line.extend_from_slice(text);
            }
            if ended {
                self.end_line()?;
            }
        }
        Ok(())
    }

    /// Whether the remote command has begun: the user is logged in.
    pub fn begun(&self) -> bool {
        self.begin.is_some()
    }

    /// The lines about the host so far.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Whether an answer has come. More may follow that contradicts it.
    pub fn answered(&self) -> bool {
        self.answer.is_some()
    }

    /// The output of login scripts so far.
    pub(crate) fn noise(&self) -> &Noise {
        &self.noise
    }

    /// The machine that the session is on, if it goes on over this stream: then the conversation is over.
    pub fn carried(&self) -> Option<&str> {
        self.carried.as_deref()
    }

    /// The octets that came after the conversation.
    pub fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest)
    }

    /// The newest lines of noise, made safe to show; after the command has begun only later ones.
    pub fn stray(&self) -> impl Iterator<Item = &str> {
        self.stray.iter().map(String::as_str)
    }

    /// The answer, at the end of the output; `None` if there was none.
    pub fn finish(&mut self) -> Result<Option<Reply>, Refusal> {
        self.end_line()?;
        let (Some(begin), Some(line)) = (&self.begin, &self.answer) else {
            return Ok(None);
        };
        let ssh_address = begin.split_ascii_whitespace().nth(2).and_then(|word| word.parse().ok());
        let ssh_address = ssh_address.map(|ip: IpAddr| ip.to_canonical());
        let (facts, entries) = (self.facts.clone(), self.entries.clone());
        Ok(Some(Reply { facts, entries, ssh_address, answer: parse_answer(line)? }))
    }

    fn end_line(&mut self) -> Result<(), Refusal> {
        let line = std::mem::replace(&mut self.line, Zeroizing::new(Vec::new()));
        let skipped = std::mem::take(&mut self.skipping);
        let result = match str::from_utf8(&line) {
            Ok(text) if !skipped => self.take_line(text.trim_end()),
            _ => {
                self.keep_stray(&line);
                Ok(())
            }
        };
        self.line = line;
        zeroize::Zeroize::zeroize(&mut *self.line);
        result
    }

    fn take_line(&mut self, line: &str) -> Result<(), Refusal> {
        if let Some(rest) = line.strip_prefix("ROVE ")
            && let Some((word, rest)) = rest.split_once(' ')
            && let Some(rest) = after_nonce(rest, &self.nonce)
        {
            let fact = FACTS.into_iter().find(|fact| *fact == word);
            let entry = ENTRIES.into_iter().find(|entry| *entry == word);
            return match (word, &self.begin) {
                ("BEGIN", None) => {
                    self.stray.clear();
                    self.begin = Some(rest.to_owned());
                    Ok(())
                }
                ("BEGIN", Some(begin)) if begin == rest => Ok(()),
                ("BEGIN", Some(_)) | (_, None) => Err(Refusal::Contradiction),
                ("CARRY", Some(_)) if self.answer.is_some() => {
                    self.carried = Some(rest.to_owned());
                    Ok(())
                }
                (_, Some(_)) => match (fact, entry) {
                    (Some(fact), _) => self.facts.take(fact, rest),
                    (None, Some(entry)) => {
                        if self.entries.len() < ENTRIES_MAX {
                            self.entries.push((entry, rest.to_owned()));
                        }
                        Ok(())
                    }
                    (None, None) => self.take_answer(line),
                },
            };
        }
        if line.starts_with("MOSH CONNECT ") && self.begun() {
            return self.take_answer(line);
        }
        self.keep_stray(line.as_bytes());
        Ok(())
    }

    fn take_answer(&mut self, line: &str) -> Result<(), Refusal> {
        match &self.answer {
            Some(answer) if answer.as_str() != line => Err(Refusal::Contradiction),
            Some(_) => Ok(()),
            None => {
                parse_answer(line)?;
                self.answer = Some(within(|| Zeroizing::new(line.to_owned())));
                Ok(())
            }
        }
    }

    fn keep_stray(&mut self, line: &[u8]) {
        let shown = printable(line.trim_ascii(), STRAY_CHARS_MAX);
        if shown.is_empty() || self.answered() {
            return;
        }
        if !self.begun() {
            self.noise.lines += 1;
            if self.noise.first.is_empty() {
                self.noise.first.clone_from(&shown);
            }
        }
        if self.stray.len() == STRAY_LINES_MAX {
            self.stray.pop_front();
        }
        self.stray.push_back(shown);
    }
}

/// The rest of a line after our nonce and, if anything follows it, a blank.
fn after_nonce<'a>(text: &'a str, nonce: &Nonce) -> Option<&'a str> {
    let rest = text.strip_prefix(nonce.text.as_str())?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(' ') }
}

/// Reads a line that carries our nonce as an answer.
fn parse_answer(line: &str) -> Result<Answer, Refusal> {
    if let Some(rest) = line.strip_prefix("MOSH CONNECT ") {
        let (port, key) = rest.split_once(' ').ok_or(Refusal::Malformed)?;
        return Ok(Answer::Stock { port: parse_port(port)?, key: parse_key(key)? });
    }
    let mut words = line.splitn(4, ' ').skip(1);
    let (version, rest) = (words.next(), words.nth(1).unwrap_or_default());
    match version {
        Some("LISTED") => Ok(Answer::Listed),
        Some("NO") => Ok(Answer::Denied(rest.to_owned())),
        Some("NONE") => Ok(Answer::Missing { path: rest.to_owned() }),
        Some(version @ ("0" | "1")) => {
            let mut words = rest.split(' ');
            let mut word = || words.next().unwrap_or_default();
            let port = parse_port(word())?;
            let wire = match version {
                "0" => Wire::Mosh(parse_key(word())?),
                _ => Wire::Native {
                    key: PublicKeyOctets::from_base64(word()).ok_or(Refusal::Malformed)?,
                    conn: ConnId::parse(word()).ok_or(Refusal::Malformed)?,
                },
            };
            let announced = word().split(',');
            let addresses = announced.filter_map(|word| word.parse().ok()).take(ANNOUNCED_MAX);
            Ok(Answer::Rove { port, wire, addresses: addresses.collect() })
        }
        Some(other) if other.bytes().all(|octet| octet.is_ascii_digit()) && other.len() <= 4 => {
            Err(Refusal::Version(other.to_owned()))
        }
        _ => Err(Refusal::Malformed),
    }
}

fn parse_port(word: &str) -> Result<NonZeroU16, Refusal> {
    match word.bytes().all(|octet| octet.is_ascii_digit()) {
        true => word.parse().map_err(|_| Refusal::Malformed),
        false => Err(Refusal::Malformed),
    }
}

fn parse_key(word: &str) -> Result<Key, Refusal> {
    within(|| Key::from_base64(word)).map_err(|_| Refusal::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODw";

    fn nonce() -> Nonce {
        Nonce::new([0xab; 16])
    }

    const PUBLIC_KEY: &str = "AAECAwQFBgcICQoLDA0ODwABAgMEBQYHCAkKCwwNDg8";

    /// Reads `text` in which @ stands for the nonce, % for a key and $ for a public key.
    fn read(text: &str, piece: usize) -> Result<Option<Reply>, Refusal> {
        let text = text.replace('@', &nonce().text).replace('%', KEY).replace('$', PUBLIC_KEY);
        let mut reader = Reader::new(nonce());
        for piece in text.as_bytes().chunks(piece) {
            reader.read(piece)?;
        }
        reader.finish()
    }

    fn check(text: &str, expected: &str) {
        for piece in [1, 7, 1 << 20] {
            let outcome = match read(text, piece) {
                Err(refusal) => format!("{refusal:?}"),
                Ok(None) => "nothing".to_owned(),
                Ok(Some(Reply { facts, entries, ssh_address, answer })) => {
                    let said = |(word, text): &(&str, String)| format!(" {word}={text}");
                    let said: String = facts.0.iter().chain(&entries).map(said).collect();
                    let at = ssh_address.map_or(String::new(), |ip| format!(" at {ip}"));
                    let answer = match answer {
                        Answer::Rove { port, wire: Wire::Mosh(_), addresses } => {
                            format!("rove {port}{at} {addresses:?}")
                        }
                        Answer::Rove { port, wire: Wire::Native { conn, .. }, addresses } => {
                            format!("native {port}{at} {conn} {addresses:?}")
                        }
                        Answer::Stock { port, .. } => format!("stock {port}{at}"),
                        Answer::Missing { path } => format!("missing in {path}"),
                        Answer::Listed => "listed".to_owned(),
                        Answer::Denied(why) => format!("denied: {why}"),
                    };
                    answer + &said
                }
            };
            assert_eq!(outcome, expected, "{text:?} in pieces of {piece}");
        }
    }

    #[test]
    fn answers_are_found_in_noise() {
        let here = "ROVE BEGIN @ 10.0.0.1 5000 10.0.0.2 22\n";
        let mapped = "ROVE BEGIN @ 10.0.0.1 5000 ::ffff:10.0.0.2 22\r\n";
        for (text, expected) in [
            (format!("{here}ROVE 0 @ 60001 %\n"), "rove 60001 at 10.0.0.2 []"),
            (format!("{mapped}ROVE 0 @ 60001 %\r\n"), "rove 60001 at 10.0.0.2 []"),
            (format!("{here}ROVE 0 @ 60001 %"), "rove 60001 at 10.0.0.2 []"),
            (format!("{here}ROVE 1 @ 60001 $ 0000002a"), "native 60001 at 10.0.0.2 0000002a []"),
            (
                format!("{here}ROVE 1 @ 60001 $ 0000002a ::2,x\n"),
                "native 60001 at 10.0.0.2 0000002a [::2]",
            ),
            (
                format!("{here}ROVE 0 @ 60001 % 10.0.0.2,fe80::1,x\n"),
                "rove 60001 at 10.0.0.2 [10.0.0.2, fe80::1]",
            ),
            (format!("Welcome!\n\n{here}ROVE 0 @ 60001 %\nbye\n"), "rove 60001 at 10.0.0.2 []"),
            (
                format!("{}\n{here}ROVE 0 @ 60001 %\n", "x".repeat(9000)),
                "rove 60001 at 10.0.0.2 []",
            ),
            (format!("{here}\r\nMOSH CONNECT 60002 %\r\n\r\n"), "stock 60002 at 10.0.0.2"),
            (format!("MOSH CONNECT 1 %\n{here}MOSH CONNECT 60002 %\n"), "stock 60002 at 10.0.0.2"),
            ("ROVE BEGIN @ \nROVE 0 @ 7 %\n".to_owned(), "rove 7 []"),
            ("ROVE BEGIN @\nROVE NONE @ /bin:/my bin\n".to_owned(), "missing in /bin:/my bin"),
            (
                format!("{here}ROVE FOUND @ rove 9.1\nROVE 0 @ 1 %\nROVE FOUND @ rove 9.1"),
                "rove 1 at 10.0.0.2 [] FOUND=rove 9.1",
            ),
            (
                "ROVE BEGIN @\nROVE BROKEN @ /my bin/rove\nROVE BECAUSE @\nMOSH CONNECT 7 %".into(),
                "stock 7 BROKEN=/my bin/rove BECAUSE=",
            ),
            (
                "ROVE BEGIN @\nROVE HOST @ Linux x86_64\nROVE NONE @ /bin\n".to_owned(),
                "missing in /bin HOST=Linux x86_64",
            ),
            ("ROVE BEGIN @\nROVE HOST @ Linux\n".to_owned(), "nothing"),
            (
                "ROVE BEGIN @\nROVE AT @ build7 ab 9\nROVE SESSION @ 1 a\nROVE SESSION @ 1 b\n\
                 ROVE LISTED @ 2\n"
                    .to_owned(),
                "listed AT=build7 ab 9 SESSION=1 a SESSION=1 b",
            ),
            ("ROVE BEGIN @\nROVE NO @ unknown a 1 2\n".to_owned(), "denied: unknown a 1 2"),
            ("ROVE BEGIN @\n".to_owned(), "nothing"),
            ("ROVE 0 ffff 60001 %\nROVE BEGIN ffff\n".to_owned(), "nothing"),
            (format!("{here}{here}ROVE 0 @ 1 %\nROVE 0 @ 1 %\n"), "rove 1 at 10.0.0.2 []"),
        ] {
            check(&text, expected);
        }
    }

    #[test]
    fn lies_are_refused() {
        for (text, expected) in [
            ("ROVE BEGIN @\nROVE 0 @ 1 %\nROVE 0 @ 2 %\n", "Contradiction"),
            ("ROVE BEGIN @\nROVE 0 @ 1 %\nROVE NONE @ /bin\n", "Contradiction"),
            ("ROVE BEGIN @\nROVE NO @ none\nROVE LISTED @ 0\n", "Contradiction"),
            ("ROVE SESSION @ 1 a\nROVE BEGIN @\n", "Contradiction"),
            ("ROVE BEGIN @\nROVE 0 @ 1 %\nMOSH CONNECT 1 %\n", "Contradiction"),
            ("ROVE BEGIN @\nMOSH CONNECT 1 %\nMOSH CONNECT 2 %\n", "Contradiction"),
            ("ROVE BEGIN @ 1 2 3 4\nROVE BEGIN @ 1 2 4 4\n", "Contradiction"),
            ("ROVE 0 @ 1 %\n", "Contradiction"),
            ("ROVE HOST @ Linux\nROVE BEGIN @\n", "Contradiction"),
            ("ROVE BEGIN @\nROVE HOST @ a\nROVE HOST @ b\nROVE 0 @ 1 %\n", "Contradiction"),
            ("ROVE BEGIN @\nROVE 0 @ 0 %\n", "Malformed"),
            ("ROVE BEGIN @\nROVE 0 @ 65536 %\n", "Malformed"),
            ("ROVE BEGIN @\nROVE 0 @ +1 %\n", "Malformed"),
            ("ROVE BEGIN @\nROVE 0 @ 1\n", "Malformed"),
            ("ROVE BEGIN @\nROVE 0 @ 1 %%\n", "Malformed"),
            ("ROVE BEGIN @\nROVE 0 @ 1  %\n", "Malformed"),
            ("ROVE BEGIN @\nROVE MORE @ 1 %\n", "Malformed"),
            ("ROVE BEGIN @\nROVE 1 @ 1 % 0000002a\n", "Malformed"),
            ("ROVE BEGIN @\nROVE 1 @ 1 $ 2a\n", "Malformed"),
            ("ROVE BEGIN @\nROVE 1 @ 1 $\n", "Malformed"),
            ("ROVE BEGIN @\nROVE 1 @ 1 $ 0000002a\nROVE 1 @ 1 $ 0000002b\n", "Contradiction"),
            ("ROVE BEGIN @\nROVE 1 @ 1 $ 0000002a\nROVE 0 @ 1 %\n", "Contradiction"),
            ("ROVE BEGIN @\nROVE 2 @ 1 % id\n", "Version(\"2\")"),
            ("ROVE BEGIN @\nMOSH CONNECT 1 short\n", "Malformed"),
            ("ROVE BEGIN @\nMOSH CONNECT 1 % trailing\n", "Malformed"),
        ] {
            check(text, expected);
        }
    }

    /// What follows the line is not read as one.
    #[test]
    fn a_stream_begins_behind_its_line() {
        let text = "ROVE BEGIN @\nROVE 1 @ 1 $ 0000002a\nROVE CARRY @ 0123456789abcdef\n";
        let text = text.replace('@', &nonce().text).replace('$', PUBLIC_KEY);
        let frames = b"\0\0\x03a\nbROVE NONE";
        for piece in [1, 7, 1 << 20] {
            let mut reader = Reader::new(nonce());
            for piece in [text.as_bytes(), frames].concat().chunks(piece) {
                reader.read(piece).unwrap();
            }
            assert_eq!(reader.carried(), Some("0123456789abcdef"));
            assert_eq!(reader.take_rest(), frames, "in pieces of {piece}");
            assert!(reader.finish().unwrap().is_some());
        }
        assert_eq!(
            read("ROVE BEGIN @\nROVE CARRY @ 0\n", 9).map(|_| ()),
            Err(Refusal::Malformed),
            "before an answer"
        );
    }

    #[test]
    fn noise_is_bounded() {
        let mut reader = Reader::new(nonce());
        let noise = [b'y'; 65_536];
        let fed = (0..).take_while(|_| reader.read(&noise).is_ok()).count();
        assert_eq!(fed, NOISE_BYTES_MAX / noise.len());
        assert!(reader.line.capacity() <= LINE_BYTES_MAX);

        let mut reader = Reader::new(nonce());
        for line in ["one", "two\x1b[31m", "\n", "thr\u{202e}ee", "four", "five"] {
            reader.read(format!("{line}\n").as_bytes()).unwrap();
        }
        assert_eq!(reader.stray().collect::<Vec<_>>(), ["two?[31m", "thr?ee", "four", "five"]);
        let begin = format!("ROVE BEGIN {}\nafter\n", nonce().text);
        reader.read(begin.as_bytes()).unwrap();
        assert_eq!(reader.noise(), &Noise { lines: 5, first: "one".into() });
    }
}
