//! rove's own configuration file, `$XDG_CONFIG_HOME/rove/config`, in the grammar of ssh_config(5).
//!
//! It is a file of its own because `ssh -G` does not print words that ssh does not know. What ssh knows stays in
//! ssh's files. Words on the command line count before the environment, and that before the file.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rove_session::Escape;
use rove_session::client::Obscure;
use rove_session::predict::Display;
use thiserror::Error;

use crate::bootstrap::Ports;
use crate::cli::environment::{parse_display, parse_obscure, variable_os};
use crate::cli::values::WayWord;
use crate::client::WaySetting;
use crate::failure::Failure;
use crate::os::{environment, private};
use crate::printable::printable;

/// The most octets of the file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Characters shown of a faulty word.
const WORD_CHARS_MAX: usize = 60;

/// The most lines of history that a client asks for.
pub(super) const HISTORY_LINES_MAX: u16 = 10_000;

/// What the file says of one host. `None`: nothing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostConfig {
    /// When local echo shows its guesses.
    pub(super) predict: Option<Display>,
    /// The key that begins a command to rove.
    pub(super) escape: Option<Escape>,
    /// What a listener is kept from learning of typed keys.
    pub(super) obscure: Option<Obscure>,
    /// Whether octets are paid for.
    pub(super) metered: Option<bool>,
    /// Whether the native wire is demanded.
    pub(super) native: Option<bool>,
    /// The server to run.
    pub(super) server: Option<String>,
    /// The server's ports.
    pub(super) udp_port: Option<Ports>,
    /// Whether programs on the host may write the clipboard.
    pub(super) clipboard: Option<bool>,
    /// Whether window titles begin with `[rove]`.
    pub(super) title_prefix: Option<bool>,
    /// How many lines that scrolled by unseen the terminal's history gets at most.
    pub(super) history: Option<u16>,
    /// Whether the terminal's history is erased when a program erases the one on the host.
    pub(super) clear_history: Option<bool>,
    /// Whether the terminal's history gets what a program erases.
    pub(super) keep_cleared: Option<bool>,
    /// Whether to ask about copying a server to a host without one.
    pub(super) install: Option<bool>,
    /// Whether closing the window leaves a session that can go on.
    pub(super) detaches: Option<bool>,
    /// Which ways to the server are used.
    pub(super) way: Option<WaySetting>,
    /// Whether ssh is run again where none of them answers any more.
    pub(super) fallback: Option<bool>,
}

/// The whole file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Config {
    sections: Vec<Section>,
}

/// A line that cannot be taken.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("line {line}: {what}")]
pub struct ConfigError {
    /// Its number, from 1.
    pub line: usize,
    what: String,
}

/// The lines after a `Host`, or before the first one.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Section {
    patterns: Vec<Pattern>,
    says: HostConfig,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Pattern {
    /// `!` stands before it.
    excludes: bool,
    text: String,
}

impl HostConfig {
    /// What the user's file says of a host, `[user@]host` as the user wrote it.
    ///
    /// # Errors
    /// If the file cannot be read, has a line that cannot be taken, or can be written by other users.
    pub(super) fn of_user(host: &str) -> Result<HostConfig, Failure> {
        let Some(path) = HostConfig::place() else { return Ok(HostConfig::default()) };
        let failed = |error: &io::Error| {
            let next = "Make it a file of your own that only you can write, or remove it.";
            Failure::new(format!("{}: {error}", path.display()), next)
        };
        let Some(text) = read_file(&path).map_err(|error| failed(&error))? else {
            return Ok(HostConfig::default());
        };
        let config = Config::read(&text).map_err(|error| {
            let next = "rove help config tells what may stand there.";
            Failure::new(format!("{} {error}", path.display()), next)
        })?;
        Ok(config.of_host(host))
    }

    /// Where the user's file is, or would be.
    pub(super) fn place() -> Option<PathBuf> {
        place(variable_os(environment::CONFIG_HOME), variable_os(environment::HOME))
    }

    /// Takes a line's value, unless an earlier line has said it.
    fn set(&mut self, keyword: &str, words: &[String], rest: &str) -> Result<(), String> {
        // A command line is taken as it stands, for the shell there.
        if keyword == "server" {
            return match rest {
                "" => Err("Server: the command is missing".into()),
                line => {
                    self.server.get_or_insert_with(|| line.to_owned());
                    Ok(())
                }
            };
        }
        let Some(name) = NAMES.iter().find(|name| name.eq_ignore_ascii_case(keyword)) else {
            return Err(format!("no setting is called {}", shown(keyword)));
        };
        let [word] = words else {
            let what = if words.is_empty() { "the value is missing" } else { "one value is taken" };
            return Err(format!("{name}: {what}"));
        };
        let bad = |what: &str| format!("{name} {}: {what}", shown(word));
        let yes_or_no = || match word.to_ascii_lowercase().as_str() {
            "yes" | "true" => Ok(true),
            "no" | "false" => Ok(false),
            _ => Err(bad("yes or no is taken")),
        };
        match keyword {
            "predict" => {
                let known = "adaptive, always, never or experimental is taken";
                first(&mut self.predict, parse_display(word).ok_or_else(|| bad(known))?);
            }
            "escapekey" => {
                let known = "a character, ^ and a letter, or none is taken";
                first(&mut self.escape, escape_key(word).ok_or_else(|| bad(known))?);
            }
            "obscure" => {
                let known = "secrets, always or never is taken";
                first(&mut self.obscure, parse_obscure(word).ok_or_else(|| bad(known))?);
            }
            "metered" => first(&mut self.metered, yes_or_no()?),
            "native" => first(&mut self.native, yes_or_no()?),
            "udpport" => first(&mut self.udp_port, word.parse().map_err(bad)?),
            "clipboard" => first(&mut self.clipboard, yes_or_no()?),
            "history" => {
                let lines = word.parse().ok().filter(|lines| *lines <= HISTORY_LINES_MAX);
                let known = || bad("a number of lines from 0 to 10000 is taken");
                first(&mut self.history, lines.ok_or_else(known)?);
            }
            "clearhistory" => first(&mut self.clear_history, yes_or_no()?),
            "keepcleared" => first(&mut self.keep_cleared, yes_or_no()?),
            "install" => first(&mut self.install, yes_or_no()?),
            "fallback" => first(&mut self.fallback, yes_or_no()?),
            "way" => {
                let known = WayWord::from_str(word, true).map(WaySetting::from);
                first(&mut self.way, known.map_err(|_| bad("auto, udp or ssh is taken"))?);
            }
            "onclose" => match word.to_ascii_lowercase().as_str() {
                "detach" => first(&mut self.detaches, true),
                "end" => first(&mut self.detaches, false),
                _ => return Err(bad("detach or end is taken")),
            },
            _ => first(&mut self.title_prefix, yes_or_no()?),
        }
        Ok(())
    }

    /// Adds what another section says and no earlier one did.
    fn add(&mut self, later: &HostConfig) {
        let HostConfig {
            predict,
            escape,
            obscure,
            metered,
            native,
            server,
            udp_port,
            clipboard,
            title_prefix,
            history,
            clear_history,
            keep_cleared,
            install,
            detaches,
            way,
            fallback,
        } = later;
        self.predict = self.predict.or(*predict);
        self.escape = self.escape.or(*escape);
        self.obscure = self.obscure.or(*obscure);
        self.metered = self.metered.or(*metered);
        self.native = self.native.or(*native);
        self.server = self.server.take().or_else(|| server.clone());
        self.udp_port = self.udp_port.or(*udp_port);
        self.clipboard = self.clipboard.or(*clipboard);
        self.title_prefix = self.title_prefix.or(*title_prefix);
        self.history = self.history.or(*history);
        self.clear_history = self.clear_history.or(*clear_history);
        self.keep_cleared = self.keep_cleared.or(*keep_cleared);
        self.install = self.install.or(*install);
        self.way = self.way.or(*way);
        self.fallback = self.fallback.or(*fallback);
        self.detaches = self.detaches.or(*detaches);
    }
}

/// The settings besides `Host` and `Server`, which take more than one word.
const NAMES: [&str; 15] = [
    "Predict",
    "EscapeKey",
    "Obscure",
    "Metered",
    "Native",
    "UdpPort",
    "Clipboard",
    "TitlePrefix",
    "History",
    "ClearHistory",
    "KeepCleared",
    "Install",
    "OnClose",
    "Way",
    "Fallback",
];

impl Config {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The first line that cannot be taken, also in a section for another host.
    pub fn read(text: &str) -> Result<Config, ConfigError> {
        let everybody = vec![Pattern { excludes: false, text: "*".into() }];
        let mut sections = vec![Section { patterns: everybody, says: HostConfig::default() }];
        for (index, line) in text.lines().enumerate() {
            let failed = |what: String| ConfigError { line: index + 1, what };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let is_end = |c: char| c.is_whitespace() || c == '=';
            let (keyword, rest) = line.split_at(line.find(is_end).unwrap_or(line.len()));
            let rest = rest.trim_start();
            let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
            let keyword = keyword.to_ascii_lowercase();
            // The words of a command line are the shell's to read.
            let words =
                if keyword == "server" { Vec::new() } else { words(rest).map_err(failed)? };
            if keyword == "host" {
                let patterns = words.into_iter().map(|word| match word.strip_prefix('!') {
                    Some(text) => Pattern { excludes: true, text: text.to_owned() },
                    None => Pattern { excludes: false, text: word },
                });
                let patterns: Vec<Pattern> = patterns.collect();
                if patterns.is_empty() {
                    return Err(failed("Host: the name is missing".into()));
                }
                sections.push(Section { patterns, says: HostConfig::default() });
                continue;
            }
            let section = sections.last_mut().expect("one stands before the first Host");
            section.says.set(&keyword, &words, rest).map_err(failed)?;
        }
        Ok(Config { sections })
    }

    /// What it says of a host, `[user@]host` as the user wrote it; the first value counts.
    pub fn of_host(&self, host: &str) -> HostConfig {
        let mut found = HostConfig::default();
        let name = bare_name(host).to_ascii_lowercase();
        for section in self.sections.iter().filter(|section| section.is_for(&name)) {
            found.add(&section.says);
        }
        found
    }
}

impl Section {
    fn is_for(&self, name: &str) -> bool {
        let mut fitting = self.patterns.iter().filter(|it| is_like(name, &it.text)).peekable();
        fitting.peek().is_some() && !fitting.any(|pattern| pattern.excludes)
    }
}

/// Where the file is; `None` without a home.
fn place(config: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|p| p.is_absolute());
    let config = absolute(config).or_else(|| Some(absolute(home)?.join(".config")))?;
    Some(config.join("rove/config"))
}

/// The text of the file; `None` if there is none.
fn read_file(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    // It names a command to run, so that ssh's rule for its own file holds.
    if file.metadata()?.is_file() && private::others_write(&file)? {
        return Err(io::Error::other("it can be written by other users"));
    }
    let mut octets = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    String::from_utf8(octets).map(Some).map_err(|_| io::Error::other("it is no UTF-8 text"))
}

/// Splits a line's rest into words, which quotes may hold together, up to a comment.
fn words(mut rest: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with('#') {
            return Ok(words);
        }
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a quote is open")?,
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = after;
    }
}

/// The host's name in what the user wrote: `[user@]host`, or a URL of ssh's.
fn bare_name(host: &str) -> &str {
    let (url, host) = match host.strip_prefix("ssh://") {
        Some(rest) => (true, rest.trim_end_matches('/')),
        None => (false, host),
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    match host.rsplit_once(':') {
        Some((name, port)) if url && port.bytes().all(|octet| octet.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Whether a name is like a pattern, in which `*` stands for any letters and `?` for one.
fn is_like(name: &str, pattern: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    let (name, pattern) = (name.as_bytes(), pattern.as_bytes());
    let (mut at, mut asked) = (0, 0);
    // Where the last star stands, and how much of the name it has taken: the most it ever needs to give back.
    let mut star = None;
    while at < name.len() {
        match pattern.get(asked) {
            Some(b'*') => {
                star = Some((asked, at));
                asked += 1;
            }
            Some(&octet) if octet == b'?' || octet == name[at] => {
                at += 1;
                asked += 1;
            }
            _ => {
                let Some((behind, taken)) = &mut star else { return false };
                *taken += 1;
                (at, asked) = (*taken, *behind + 1);
            }
        }
    }
    pattern[asked..].iter().all(|octet| *octet == b'*')
}

/// The escape key of a word as ssh's EscapeChar has it: a character, `^` and a letter, or `none`.
fn escape_key(word: &str) -> Option<Escape> {
    let key = match word.as_bytes() {
        b"none" => return Some(Escape::None),
        [key] => *key,
        [b'^', letter @ (b'@'..=b'_' | b'a'..=b'z')] => letter & 0x1f,
        _ => return None,
    };
    // A key that cannot be one would be the default key.
    Some(Escape::from_setting(&[key])).filter(|escape| escape.key() == Some(key))
}

fn first<T>(place: &mut Option<T>, value: T) {
    place.get_or_insert(value);
}

fn shown(word: &str) -> String {
    printable(word.as_bytes(), WORD_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn of(text: &str, host: &str) -> HostConfig {
        Config::read(text).unwrap().of_host(host)
    }

    #[test]
    fn all_settings() {
        let text = "  # mine\r\n\nPredict always\r\nESCAPEKEY=^x\nMetered = yes\nNative\tno # so\n\
            Server  A=1 /opt/rove # server\nUdpPort \"60001:60010\"\nClipboard no\nTitlePrefix false\n\
            History 500
            ClearHistory no
            KeepCleared no
            Install no
            OnClose detach
            Obscure never\nway SSH\nFallback no";
        let expected = HostConfig {
            predict: Some(Display::Always),
            escape: Some(Escape::Key(0x18)),
            obscure: Some(Obscure::Never),
            metered: Some(true),
            native: Some(false),
            server: Some("A=1 /opt/rove # server".into()),
            udp_port: "60001:60010".parse().ok(),
            clipboard: Some(false),
            title_prefix: Some(false),
            history: Some(500),
            clear_history: Some(false),
            keep_cleared: Some(false),
            install: Some(false),
            detaches: Some(true),
            way: Some(WaySetting::Ssh),
            fallback: Some(false),
        };
        assert_eq!(of(text, "h"), expected);
        assert_eq!(of("", "h"), HostConfig::default());
    }

    #[test]
    fn the_first_value_counts() {
        let text = "Host build7 *.example.org !bad.example.org\nUdpPort 1\nUdpPort 2\nMetered yes\n\
            Host *\nUdpPort 3\nNative yes";
        for (host, port, metered, native) in [
            ("build7", "1", true, true),
            ("me@BUILD7", "1", true, true),
            ("ssh://me@build7:22", "1", true, true),
            ("a.b.example.org", "1", true, true),
            ("bad.example.org", "3", false, true),
            ("build", "3", false, true),
            ("build77", "3", false, true),
        ] {
            let found = of(text, host);
            assert_eq!(found.udp_port, port.parse().ok(), "{host}");
            assert_eq!((found.metered == Some(true), found.native), (metered, Some(native)));
        }
        let before = "UdpPort 7\nHost h\nUdpPort 8";
        assert_eq!(of(before, "h").udp_port, "7".parse().ok());
    }

    #[test]
    fn patterns() {
        for (name, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "ABC", true),
            ("abc", "a*", true),
            ("abc", "*c", true),
            ("abc", "*b*", true),
            ("abc", "a?c", true),
            ("abc", "a??c", false),
            ("abcbd", "a*b?", true),
            ("abc", "", false),
            ("", "*", true),
            ("::1", "::*", true),
            ("aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "*a*a*a*a*a*a*a*a*b", false),
        ] {
            assert_eq!(is_like(name, pattern), expected, "{name} {pattern}");
        }
        for (host, name) in
            [("u@h", "h"), ("ssh://u@h:22", "h"), ("ssh://h/", "h"), ("::1", "::1"), ("a@b@c", "c")]
        {
            assert_eq!(bare_name(host), name);
        }
    }

    #[test]
    fn lines_that_are_refused() {
        for (text, told) in [
            ("\nPredikt always", "line 2: no setting is called predikt"),
            ("Host a\nHistory 10001", "line 2: History 10001: a number of lines from 0 to 10000"),
            ("History no", "line 1: History no: a number of lines"),
            ("Predict perhaps", "line 1: Predict perhaps: adaptive, always"),
            ("Obscure much", "line 1: Obscure much: secrets, always or"),
            ("Predict", "line 1: Predict: the value is missing"),
            ("Metered yes no", "line 1: Metered: one value is taken"),
            ("Native maybe", "line 1: Native maybe: yes or no"),
            ("UdpPort 5:1", "line 1: UdpPort 5:1: the first port"),
            ("EscapeKey ab", "line 1: EscapeKey ab: a character"),
            ("EscapeKey ^C", "line 1: EscapeKey ^C: a character"),
            ("Host", "line 1: Host: the name is missing"),
            ("Server", "line 1: Server: the command is missing"),
            ("Host \"a", "line 1: a quote is open"),
            ("Tit\u{1b}le x", "line 1: no setting is called tit?le"),
        ] {
            let error = Config::read(text).expect_err(text).to_string();
            assert!(error.starts_with(told), "{text:?}: {error}");
        }
    }

    #[test]
    fn escape_keys() {
        for (word, key) in
            [("none", Escape::None), ("~", Escape::Key(b'~')), ("^^", Escape::Key(0x1e))]
        {
            assert_eq!(escape_key(word), Some(key), "{word}");
        }
        assert_eq!(escape_key("^["), Some(Escape::Key(0x1b)));
    }

    #[test]
    fn where_it_is_and_what_it_may_hold() {
        let top = std::env::temp_dir();
        let at = |name: &str| Some(top.join(name));
        for (config, home, file) in [
            (at("c"), at("h"), at("c/rove/config")),
            (None, at("h"), at("h/.config/rove/config")),
            (Some("relative".into()), at("h"), at("h/.config/rove/config")),
            (None, None, None),
        ] {
            let found =
                place(config.map(PathBuf::into_os_string), home.map(PathBuf::into_os_string));
            assert_eq!(found, file);
        }
        let path = top.join(format!("rove-config-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        assert_eq!(read_file(&path).unwrap(), None);
        for (text, is_read) in [
            (&b"Metered yes"[..], true),
            (b"\xff", false),
            (&[b'#'; FILE_BYTES_MAX as usize], true),
            (&[b'#'; FILE_BYTES_MAX as usize + 1], false),
        ] {
            private::create_file(&path).unwrap().write_all(text).unwrap();
            assert_eq!(read_file(&path).is_ok(), is_read, "{}", text.len());
        }
        fs::remove_file(&path).unwrap();
        assert!(read_file(&top).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn only_its_user_may_write_it() {
        use std::os::unix::fs::PermissionsExt;

        let path = std::env::temp_dir().join(format!("rove-config-modes-{}", std::process::id()));
        fs::write(&path, "Metered yes").unwrap();
        for (mode, is_read) in [(0o600, true), (0o644, true), (0o664, false), (0o602, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_file(&path).is_ok(), is_read, "{mode:o}");
        }
        fs::remove_file(&path).unwrap();
    }
}
