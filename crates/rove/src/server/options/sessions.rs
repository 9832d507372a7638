//! The words about sessions: what a session that begins is called, and what is asked of those that are there.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use rove_ssp::{ConnId, PublicKeyOctets};

use super::error::OptionError;
use crate::bootstrap::nonce::Nonce;
use crate::copy::receiver::Waits;
use crate::sessions::line::Terms;
use crate::sessions::name::{Name, SessionId};

/// What a session is called, and what its client knows of sessions.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionWords {
    /// The name the user gives it (`--session=NAME`).
    pub name: Option<Name>,
    /// If there is one of that name already, the client joins it (`--or-attach`).
    pub joins: bool,
    /// How the client calls this host (`-@ host=NAME`), empty where that is no plain word. A client that says it knows
    /// of sessions.
    pub host: Option<String>,
    /// How long a silent client is waited for at most (`-@ keep=SECONDS`).
    pub keep: Option<Duration>,
    /// Whether it is told which file of a copy waits for another copy (`-@ waits`).
    pub waits: Waits,
}

/// A question about sessions that are there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ask {
    /// The client's nonce.
    pub nonce: Nonce,
    /// The question.
    pub aim: Aim,
}

/// A question to sessions that are there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Aim {
    /// What they are (`--list`).
    List,
    /// Room for a client (`--attach=NAME`).
    Attach {
        /// In which session; `None` lets the server choose.
        name: Option<Name>,
        /// The client's public key.
        key: PublicKeyOctets,
        /// The session in which the client's program was started.
        from: Option<SessionId>,
        /// How it wants to be in the session.
        terms: Terms,
        /// It can go on over the stream that it asks by (`--carry`).
        carries: bool,
    },
    /// The end of one of them, or of all (`--kill=NAME`, `--kill-all`).
    Kill(Option<Name>),
    /// Another way to the client of this connection id, whose session listens on this UDP port
    /// (`--join=CONNECTION:PORT`).
    Join(ConnId, u16),
}

impl SessionWords {
    /// Takes a long word. Returns whether it is one of these.
    pub(super) fn take_word(&mut self, word: &[u8]) -> Result<bool, OptionError> {
        if let Some(name) = word.strip_prefix(b"--session=") {
            let name = String::from_utf8_lossy(name).into_owned();
            let named = Name::of_user(&name);
            self.name = Some(named.map_err(|why| OptionError::BadName(name, why))?);
        } else if word == b"--or-attach" {
            self.joins = true;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Takes a word that servers of other versions do not know.
    pub(super) fn take_hint(&mut self, hint: &OsStr) {
        if let Some(host) = hint.as_bytes().strip_prefix(b"host=") {
            let is_plain = |octet: &u8| octet.is_ascii_graphic();
            let is_host = host.len() <= HOST_OCTETS_MAX && host.iter().all(is_plain);
            let host = if is_host { host } else { b"" };
            self.host = Some(String::from_utf8_lossy(host).into_owned());
        }
        let seconds =
            hint.to_str().and_then(|hint| hint.strip_prefix("keep=")?.parse::<u32>().ok());
        let keep = seconds.filter(|seconds| *seconds > 0).map(|it| Duration::from_secs(it.into()));
        self.keep = self.keep.or(keep);
        if hint == "waits" {
            self.waits = Waits::Told;
        }
    }
}

/// The longest name of a host, in octets.
const HOST_OCTETS_MAX: usize = 255;

/// Whether a word asks about sessions that are there.
pub(super) fn is_mode(word: &OsStr) -> bool {
    let word = word.as_bytes();
    matches!(word, b"--list" | b"--kill-all")
        || [&b"--attach="[..], b"--kill=", b"--join="].iter().any(|start| word.starts_with(start))
}

/// Reads the words of a question about sessions.
pub(super) fn parse(words: &[OsString]) -> Result<Ask, OptionError> {
    let (mut nonce, mut key, mut from) = (None, None, None);
    let (mut terms, mut carries) = (Terms::default(), false);
    let mut mode = None;
    for word in words {
        let wrong = || OptionError::NotAboutSessions(word.to_string_lossy().into_owned());
        let text = word.to_str().and_then(|text| text.strip_prefix("--")).ok_or_else(wrong)?;
        match text.split_once('=') {
            None if text == "list" => mode = Some(Mode::List),
            None if text == "carry" => carries = true,
            None if text == "kill-all" => mode = Some(Mode::Kill(None)),
            Some(("kill", name)) => mode = Some(Mode::Kill(Some(read_name(name)?))),
            Some(("join", what)) => mode = Some(read_join(what).ok_or_else(wrong)?),
            Some(("attach", "")) => mode = Some(Mode::Attach(None)),
            Some(("attach", name)) => mode = Some(Mode::Attach(Some(read_name(name)?))),
            Some(("nonce", text)) => nonce = Some(Nonce::parse(text)),
            Some(("key", text)) => key = Some(public_key(text.as_bytes())?),
            Some(("from", id)) => from = Some(SessionId::parse(id).ok_or_else(wrong)?),
            _ => terms.take_word(text).ok_or_else(wrong)?,
        }
    }
    let nonce = nonce.ok_or(OptionError::NonceMissing)?.ok_or(OptionError::NonceNotHexadecimal)?;
    let aim = match mode {
        Some(Mode::Attach(name)) => {
            let key = key.ok_or(OptionError::BadKey)?;
            Aim::Attach { name, key, from, terms, carries }
        }
        Some(Mode::Kill(name)) => Aim::Kill(name),
        Some(Mode::Join(conn, port)) => Aim::Join(conn, port),
        // One of the words was there.
        Some(Mode::List) | None => Aim::List,
    };
    Ok(Ask { nonce, aim })
}

enum Mode {
    List,
    Attach(Option<Name>),
    Kill(Option<Name>),
    Join(ConnId, u16),
}

fn read_join(what: &str) -> Option<Mode> {
    let (conn, port) = what.split_once(':')?;
    Some(Mode::Join(ConnId::parse(conn)?, port.parse().ok()?))
}

fn read_name(name: &str) -> Result<Name, OptionError> {
    Name::parse(name).ok_or_else(|| OptionError::BadName(name.into(), "it cannot be a name"))
}

/// Reads a client's public key.
pub(super) fn public_key(text: &[u8]) -> Result<PublicKeyOctets, OptionError> {
    let key = str::from_utf8(text).ok().and_then(PublicKeyOctets::from_base64);
    key.ok_or(OptionError::BadKey)
}

#[cfg(test)]
mod tests {
    use super::super::{Request, parse};
    use super::*;
    use crate::server::program::Program;

    const NONCE: &str = "--nonce=abababababababababababababababab";
    const KEY: &str = "--key=AAECAwQFBgcICQoLDA0ODwABAgMEBQYHCAkKCwwNDg8";

    fn read(line: &str) -> Result<Request, OptionError> {
        let line = line.replace('*', NONCE).replace('%', KEY);
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        parse(Program::Rove, &words)
    }

    #[test]
    fn questions_about_sessions() {
        for (line, expected) in [
            ("* --list", "List"),
            ("--kill=work *", "Kill(Some(Name(\"work\")))"),
            ("* --kill-all", "Kill(None)"),
            ("* --attach= %", "Attach { name: None,"),
            ("* --attach= % --carry", "Attach { name: None,"),
            ("* --join=0000002a:60001", "Join(ConnId(42), 60001)"),
            ("* --attach=2 % --view --size=80x24 --from=0000002a", "Attach { name: Some("),
        ] {
            match read(line) {
                Ok(Request::Ask(Ask { aim, .. })) => {
                    let found = format!("{aim:?}");
                    assert!(found.starts_with(expected), "{line}: {found}");
                }
                other => panic!("{line}: {other:?}"),
            }
        }
        for bad in [
            "--list",
            "--list --nonce=x",
            "* --attach=work",
            "* --attach=a/b %",
            "* --kill=",
            "* --list ls",
            "* --attach=1 % --look",
            "* --join=0000002a",
            "* --join=2a:60001",
            "* --join=0000002a:70000",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_sessions_that_begin() {
        let session = |line: &str| match read(line) {
            Ok(Request::Serve(options)) => options.session,
            other => panic!("{line}: {other:?}"),
        };
        assert_eq!(session("* %"), SessionWords::default());
        let named = session("* % --session=work --or-attach");
        assert_eq!((named.name, named.joins), (Name::parse("work"), true));
        assert!(read("* % --session=12").is_err());
        for (hint, host) in [
            ("-@ host=build7", Some("build7")),
            ("-@host=me@build7", Some("me@build7")),
            ("-@ host=", Some("")),
            ("-@ carry", None),
        ] {
            assert_eq!(session(&format!("* % {hint}")).host.as_deref(), host);
        }
        for (hint, keep) in [
            ("-@ keep=90", Some(90)),
            ("-@ keep=0", None),
            ("-@ keep=-1", None),
            ("-@ keep=99999999999", None),
            ("-@ keep=", None),
        ] {
            let keep = keep.map(Duration::from_secs);
            assert_eq!(session(&format!("* % {hint}")).keep, keep, "{hint}");
        }
        for (hint, waits) in [("-@ waits", Waits::Told), ("-@ waited", Waits::Silent)] {
            assert_eq!(session(&format!("* % {hint}")).waits, waits, "{hint}");
        }
    }
}
