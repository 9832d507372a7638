//! The request to the remote host: which server to start and where it listens, as one command for
//! ssh that survives every login shell.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

use rove_ssp::{PublicKeyOctets, Timing};

use crate::bootstrap::nonce::Nonce;
use crate::os::ffi::{OsStrExt, OsStringExt};

/// Directories to search besides the PATH of ssh's shell, which is not that of a login shell.
pub(crate) const SEARCHED: &str = "$HOME/.local/bin:/usr/local/bin:/opt/homebrew/bin";

/// Decodes the words of a script, each of which is encoded for `printf %b`.
pub(crate) const DECODE: &str =
    r#"for w do shift; w=$(printf "%b." "$w"); set -- "$@" "${w%.}"; done; "#;

/// Which server to start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Server {
    /// rove where there is one, else mosh-server.
    Found,
    /// A command line that takes the words of `rove server`; the remote shell splits it.
    Rove(OsString),
    /// A command line that takes the words of `mosh-server`.
    Stock(OsString),
}

impl Server {
    /// Reads `--server=COMMAND`: it names rove if its last word is a program `rove` or `rove-server`, or
    /// `server` after another word (`/opt/rove server`), or if `rove server` or `rove-server` in it is followed
    /// by options; anything else takes mosh-server's words.
    pub fn named(command: &str) -> Server {
        let is = |word: &str, name: &str| word.rsplit('/').next() == Some(name);
        let words: Vec<&str> = command.split_ascii_whitespace().collect();
        let with_options = (1..words.len()).any(|at| {
            let is_server = is(words[at - 1], "rove-server")
                || at > 1 && is(words[at - 2], "rove") && words[at - 1] == "server";
            is_server && words[at].starts_with('-')
        });
        match words[..] {
            [.., last] if is(last, "rove") => Server::Rove(format!("{command} server").into()),
            [.., last] if is(last, "rove-server") => Server::Rove(command.into()),
            [_, .., "server"] => Server::Rove(command.into()),
            _ if with_options => Server::Rove(command.into()),
            _ => Server::Stock(command.into()),
        }
    }
}

/// Which of its addresses the server listens on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Bind {
    /// Each server's default: rove listens on all, mosh-server on the address that ssh came in on, as its
    /// wrapper does.
    #[default]
    Usual,
    /// The address that ssh came in on.
    Ssh,
    /// All.
    Any,
    /// This one.
    Address(IpAddr),
}

/// UDP ports to try, upward; 0 alone lets the system choose.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ports {
    /// The first port.
    pub low: u16,
    /// The last port, not below the first.
    pub high: u16,
}

impl std::str::FromStr for Ports {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Ports, Self::Err> {
        let port = |text: &str| match text.bytes().all(|octet| octet.is_ascii_digit()) {
            true => text.parse().map_err(|_| "a port is a number from 0 to 65535"),
            false => Err("a port is a number; a range is two, as in 60001:60999"),
        };
        let (low, high) = match text.split_once(':') {
            None => (port(text)?, port(text)?),
            Some((low, high)) => (port(low)?, port(high)?),
        };
        match (low, high) {
            (0, 0) if !text.contains(':') => Ok(Ports { low, high }),
            (0, _) => Err("port 0 (any free port) cannot be part of a range"),
            _ if low > high => Err("the first port of the range is above the last"),
            _ => Ok(Ports { low, high }),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.low == self.high {
            true => write!(f, "{}", self.low),
            false => write!(f, "{}:{}", self.low, self.high),
        }
    }
}

/// The purpose of a session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Purpose {
    /// A terminal, with a shell or a command on it.
    #[default]
    Shell,
    /// Streams alone: the host starts no program and makes no terminal.
    Streams,
    /// The same, and the host tells of itself before.
    Checks,
}

/// The price of a session's octets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CostProfile {
    /// Nothing worth saving.
    #[default]
    Flat,
    /// Each octet costs.
    Metered,
}

impl CostProfile {
    /// The timing of an end whose peer is a rove.
    pub fn timing(self) -> Timing {
        match self {
            CostProfile::Flat => Timing::ROVE,
            CostProfile::Metered => Timing::METERED,
        }
    }
}

/// Which session is wanted.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Goal {
    /// Any new one.
    #[default]
    Any,
    /// A new one with a name. It takes a rove there.
    Named {
        /// The name.
        name: String,
        /// One of that name that is there already will do.
        joins: bool,
    },
    /// None: a question about those that are there, by these words of `rove server`. It takes a rove there.
    Ask(String),
}

/// The order to the remote command.
#[derive(Clone, Debug)]
pub struct Request {
    /// The attempt's nonce.
    pub nonce: Nonce,
    /// The attempt's public key; `None` asks for the mosh wire.
    pub key: Option<PublicKeyOctets>,
    /// Which server.
    pub server: Server,
    /// The address it listens on.
    pub bind: Bind,
    /// Its ports; `None` lets it choose (60001 to 60999).
    pub ports: Option<Ports>,
    /// The number of colours that the user's terminal shows.
    pub colours: u32,
    /// Locale variables of this end, for a server whose own locale is not UTF-8.
    pub locale: Vec<(String, String)>,
    /// The purpose of the session.
    pub purpose: Purpose,
    /// Whether programs on the host get access to the user's agent.
    pub agent: bool,
    /// The price of its datagrams.
    pub tariff: CostProfile,
    /// Whether the session may go on over the stream by which it was started.
    pub carry: bool,
    /// How long the server waits for a client that is silent, if the user said so.
    pub keep: Option<Duration>,
    /// Which session.
    pub goal: Goal,
    /// How the user calls the host, for hints there.
    pub host: String,
    /// The command to run instead of a login shell: one word is a line for the user's shell, as
    /// with ssh; several are a program and its arguments, as with mosh.
    pub command: Vec<OsString>,
}

impl Request {
    /// The command for ssh: one `sh -c '...'` that bash, zsh, fish and csh all pass on unchanged.
    ///
    /// Between single quotes those differ only on `'`, `\\`, `!` and newline, so the command has none:
    /// arbitrary words are encoded for `printf %b`, and `sh` decodes them.
    pub fn remote_command(&self) -> String {
        let nonce = &self.nonce;
        let mut script = format!(r#"echo; echo "ROVE BEGIN {nonce} $SSH_CONNECTION"; "#);
        let _ = write!(script, r#"PATH="$PATH:{SEARCHED}"; export PATH; "#);
        if self.purpose == Purpose::Checks {
            script.push_str(&survey(nonce));
        }
        let mut words: Vec<&OsStr> = self.command.iter().map(OsString::as_os_str).collect();
        if let Server::Rove(line) | Server::Stock(line) = &self.server {
            words.insert(0, line);
        }
        if !words.is_empty() {
            script.push_str(DECODE);
        }
        match &self.server {
            Server::Found => {
                let rove = self.rove_words(r#""$@""#);
                let stock = self.stock_script();
                let _ = write!(
                    script,
                    "if r=$(command -v rove); then \
                     if v=$(rove --version </dev/null 2>&1); \
                     then echo \"ROVE FOUND {nonce} $v\"; exec rove server {rove}; fi; \
                     echo \"ROVE BROKEN {nonce} $r\"; \
                     v=$(echo \"$v\" | head -n 1 | cut -c 1-200); \
                     echo \"ROVE BECAUSE {nonce} $v\"; fi; \
                     {stock}\
                     echo \"ROVE HOST {nonce} $(uname -sm)\"; \
                     echo \"ROVE NONE {nonce} $PATH\""
                );
            }
            Server::Rove(_) => {
                let words = self.rove_words(r#"\"\$@\""#);
                let _ = write!(script, r#"s=$1; shift; eval "$s {words}""#);
            }
            Server::Stock(_) => {
                let (locale, words) = (self.stock_locale(), self.stock_words(r#"\"\$@\""#));
                let _ = write!(script, r#"s=$1; shift; {locale}eval "$s {words}" 2>&1"#);
            }
        }
        sh(&script, &words)
    }

    /// Runs mosh-server, if that is there and will do.
    fn stock_script(&self) -> String {
        if self.goal != Goal::Any {
            return String::new();
        }
        let (locale, stock) = (self.stock_locale(), self.stock_words(r#""$@""#));
        format!(
            "if command -v mosh-server >/dev/null; then {locale}exec mosh-server {stock} 2>&1; fi; "
        )
    }

    /// The words after `rove server`; `command` is the user's command as `sh` writes it.
    fn rove_words(&self, command: &str) -> String {
        let mut words = format!("--nonce={}", self.nonce);
        if let Some(key) = &self.key {
            let _ = write!(words, " --key={key}");
        }
        match &self.goal {
            Goal::Any => {}
            Goal::Ask(question) => return format!("{words} {question}"),
            Goal::Named { name, joins } => {
                let joins = if *joins { " --or-attach" } else { "" };
                let _ = write!(words, " --session={name}{joins}");
            }
        }
        if self.purpose == Purpose::Shell {
            // A server that does not know the word goes by it.
            let host = if is_plain_host(&self.host) { self.host.as_str() } else { "" };
            let _ = write!(words, " -@ host={host}");
        }
        if self.purpose != Purpose::Shell {
            // Both words with `-@` are swallowed by older servers.
            words.push_str(" --streams -@ waits");
        }
        if self.agent {
            words.push_str(" --agent");
        }
        if self.tariff == CostProfile::Metered {
            words.push_str(" --metered");
        }
        // A word of getopt's that older servers swallow.
        if self.carry && self.key.is_some() {
            words.push_str(" -@ carry");
        }
        if let Some(keep) = self.keep {
            let _ = write!(words, " -@ keep={}", keep.as_secs());
        }
        match self.bind {
            Bind::Usual | Bind::Any => {}
            Bind::Ssh => words.push_str(" -s"),
            Bind::Address(ip) => words.push_str(&format!(" -i {ip}")),
        }
        self.common_words(&mut words);
        words.push_str(&self.locale_words());
        if !self.command.is_empty() {
            let _ = write!(words, " -- {command}");
        }
        words
    }

    /// Puts the locale words for mosh-server into `$l`: it refuses to start with a locale that its host
    /// lacks, so the one that every recent system has replaces such a one.
    fn stock_locale(&self) -> String {
        let named =
            |name: &str| self.locale.iter().find(|(set, _)| set == name).map(|(_, value)| value);
        let effective = named("LC_ALL").or(named("LC_CTYPE")).or(named("LANG"));
        let mut script = r#"l="-l LC_ALL=C.UTF-8"; "#.to_owned();
        if let Some(value) = effective.filter(|value| is_locale(value)) {
            let words = self.locale_words();
            let charmap = format!("LC_ALL={value} locale charmap 2>/dev/null");
            let _ = write!(script, r#"case $({charmap}) in UTF-8) l="{words}";; esac; "#);
        }
        script
    }

    /// The words after `mosh-server`.
    fn stock_words(&self, command: &str) -> String {
        let mut words = "new".to_owned();
        match self.bind {
            Bind::Usual | Bind::Ssh => words.push_str(" -s"),
            Bind::Any => {}
            Bind::Address(ip) => words.push_str(&format!(" -i {ip}")),
        }
        self.common_words(&mut words);
        words.push_str(" $l");
        match (self.command.len(), command.contains('\\')) {
            (0, _) => {}
            // mosh-server only runs programs: the line becomes the argument of a shell.
            (1, false) => words.push_str(r#" -- "${SHELL:-/bin/sh}" -c "$1""#),
            (1, true) => words.push_str(r#" -- \"\${SHELL:-/bin/sh}\" -c \"\$1\""#),
            (_, _) => words.push_str(&format!(" -- {command}")),
        }
        words
    }

    fn common_words(&self, words: &mut String) {
        let _ = write!(words, " -c {}", self.colours);
        if let Some(ports) = self.ports {
            let _ = write!(words, " -p {ports}");
        }
    }

    fn locale_words(&self) -> String {
        let usable = self.locale.iter().filter(|(name, value)| is_locale(name) && is_locale(value));
        usable.fold(String::new(), |words, (name, value)| words + &format!(" -l {name}={value}"))
    }
}

/// The places of OpenSSH's server for files, by distribution.
pub(crate) const SFTP_SERVERS: [&str; 5] = [
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/sftp-server",
    "/usr/lib/sftp-server",
];

/// The host tells what it is: for `rove doctor`.
const SURVEY: &str = r#"echo "ROVE HOST @ $(uname -sm)"; echo "ROVE CLOCK @ $(date +%s 2>/dev/null)"; if m=$(command -v mosh-server); then echo "ROVE MOSH @ $m $(mosh-server --version </dev/null 2>&1 | head -n 1 | cut -c 1-80)"; fi; for f in FILES; do if test -x $f; then echo "ROVE SFTP @ $f"; break; fi; done; if test -d /run/systemd/system; then l=no; if test -e "/var/lib/systemd/linger/$(id -un)"; then l=yes; fi; echo "ROVE LOGIND @ $l $(busctl --timeout=3 get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager KillUserProcesses </dev/null 2>/dev/null)"; fi; d=${ROVE_TMPDIR:-/tmp}/rove-$(id -u); n=0; o=none; if test -h "$d"; then o=link; elif test -d "$d"; then o=other; if test -O "$d"; then o=$(ls -ld "$d" | cut -c 1-10); for s in "$d"/*.*; do if test -S "$s"; then n=$((n+1)); fi; done; fi; elif test -e "$d"; then o=other; fi; echo "ROVE SOCKETS @ $n $o $d"; "#;

fn survey(nonce: &Nonce) -> String {
    SURVEY.replace("FILES", &SFTP_SERVERS.join(" ")).replace('@', &nonce.to_string())
}

/// A line that makes any login shell run a script of sh's, with these words encoded for [`DECODE`].
pub(crate) fn sh(script: &str, words: &[&OsStr]) -> String {
    let mut line = format!("sh -c '{script}'");
    if !words.is_empty() {
        line.push_str(" rove");
    }
    for word in words {
        line.push_str(" '");
        encode(word.as_bytes(), &mut line);
        line.push('\'');
    }
    line
}

/// A line that makes any login shell print the version of the server that a request starts.
pub(crate) fn version_line(server: &Server) -> OsString {
    match server {
        Server::Found => format!("sh -c 'PATH=\"$PATH:{SEARCHED}\" exec rove --version'").into(),
        Server::Rove(line) | Server::Stock(line) => {
            let line = line.as_bytes();
            let program = line.strip_suffix(b" server").unwrap_or(line);
            OsString::from_vec([program, b" --version"].concat())
        }
    }
}

/// A line that makes any login shell run a program with these words as they are.
pub(crate) fn program_line(words: &[OsString]) -> OsString {
    let is_plain = |word: &OsString| {
        let plain = |octet: &u8| octet.is_ascii_alphanumeric() || b"_./:,@+-".contains(octet);
        !word.is_empty() && word.as_bytes().iter().all(plain)
    };
    if words.iter().all(is_plain) {
        return words.join(OsStr::new(" "));
    }
    let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    format!("exec {}", sh(&format!("{DECODE}exec \"$@\""), &words)).into()
}

/// Whether a host's name can stand in a line for any shell.
fn is_plain_host(host: &str) -> bool {
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b"_.-@:".contains(&octet);
    host.len() <= 255 && host.bytes().all(is_plain)
}

/// Whether a word can be a locale's name; other words might need quoting.
fn is_locale(word: &str) -> bool {
    let plain = |octet: u8| octet.is_ascii_alphanumeric() || b"_.-@:,".contains(&octet);
    !word.is_empty() && word.bytes().all(plain)
}

/// Writes a word so that `printf %b` restores it and no shell interprets anything in it.
fn encode(word: &[u8], out: &mut String) {
    for &octet in word {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(octet.into()),
            _ if b"_./:=,@%+- ".contains(&octet) => out.push(octet.into()),
            _ => out.push_str(&format!("\\0{octet:03o}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports() {
        for (text, expected) in [
            ("60001", Some((60001, 60001))),
            ("60001:60010", Some((60001, 60010))),
            ("0", Some((0, 0))),
            ("65535:65535", Some((65535, 65535))),
            ("", None),
            ("0:0", None),
            ("0:5", None),
            ("5:0", None),
            ("2:1", None),
            ("65536", None),
            ("+1", None),
            ("1:2:3", None),
            ("1:", None),
            ("a", None),
        ] {
            let parsed = text.parse::<Ports>().ok();
            assert_eq!(parsed.map(|ports| (ports.low, ports.high)), expected, "{text:?}");
            if let Some(ports) = parsed {
                assert_eq!(ports.to_string().parse(), Ok(ports));
            }
        }
    }

    /// tests/bootstrap_shells.rs has other shells read the same encoding.
    #[cfg(unix)]
    #[test]
    fn lines_that_keep_the_words_of_a_program() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(program_line(&words(&["tmux", "attach", "-d"])), "tmux attach -d");
        for given in
            [&["printf", "<%s>", "$HOME", "*", "it's", "a\nb", "", "!x\\"][..], &["printf", ""]]
        {
            let output = std::process::Command::new("sh")
                .arg("-c")
                .arg(program_line(&words(given)))
                .output()
                .expect("a shell");
            let expected: String = match given {
                [_, _, rest @ ..] => rest.iter().map(|word| format!("<{word}>")).collect(),
                _ => String::new(),
            };
            let expected = if given.len() > 2 { expected } else { String::new() };
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
            assert!(output.status.success(), "{output:?}");
        }
    }

    #[test]
    fn servers_by_name() {
        for (command, rove) in [
            ("rove", Some("rove server")),
            ("/opt/rove/bin/rove", Some("/opt/rove/bin/rove server")),
            ("env A=1 rove", Some("env A=1 rove server")),
            ("/opt/other server", Some("/opt/other server")),
            ("rove server --allow-checksum", Some("rove server --allow-checksum")),
            ("A=1 /opt/rove server -v -i ::1", Some("A=1 /opt/rove server -v -i ::1")),
            ("rove-server", Some("rove-server")),
            ("A=1 /opt/rove-server", Some("A=1 /opt/rove-server")),
            ("/opt/rove-server -v", Some("/opt/rove-server -v")),
            ("rove-server new", None),
            ("rove server new", None),
            ("rove server new -v", None),
            ("/opt/other server -v", None),
            ("rove -v", None),
            ("mosh-server", None),
            ("/opt/rove/bin/mosh-server", None),
            ("server", None),
        ] {
            let expected = match rove {
                Some(line) => Server::Rove(line.into()),
                None => Server::Stock(command.into()),
            };
            assert_eq!(Server::named(command), expected);
        }
    }
}
