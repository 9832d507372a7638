//! rove called as `mosh-client`: stock's command line, environment and exit status
//! (mosh-protocol.md §1.2), so that the stock wrapper and people's scripts work unchanged.

mod error;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use rove_session::Peer;
use rove_session::client::TtyScreen;
use rove_session::past::LINES_MAX;
use rove_session::predict::{Display, Settings as Guesses};
use rove_ssp::Key;
use zeroize::Zeroizing;

use crate::bootstrap::CostProfile;
use crate::cli::environment;
use crate::client::{self, Settings, WaySetting};
use crate::os;
use crate::os::clock::Clock;
use crate::os::locked::within;
use crate::os::tty;
use crate::ssh::{Candidates, Reached, Secret};
use crate::trace::{Trace, Verbosity};
use error::{MoshClientError, USAGE, UsageError};

/// The action that the words ask for.
#[derive(Debug, Eq, PartialEq)]
pub enum Request {
    /// The usage text on standard output.
    Help,
    /// The version on standard output.
    Version,
    /// The number of the terminal's colours on standard output.
    Colours,
    /// A session.
    Session {
        /// Where the server listens.
        server: SocketAddr,
        /// How much is told.
        verbosity: Verbosity,
    },
}

/// Runs `mosh-client` with the words after its name.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    // First of all, whatever was asked: nobody may read it in /proc afterwards.
    let key = os::environment::take_secret("MOSH_KEY");
    let clock = Clock::start();
    let outcome = parse(words).map_err(MoshClientError::from).and_then(|request| match request {
        Request::Help => print(&format!("{}\n\n{USAGE}", version())),
        Request::Version => print(&version()),
        Request::Colours => print(&colours().to_string()),
        Request::Session { server, verbosity } => {
            let trace = Trace::new(clock, verbosity);
            run(clock, key, server, &trace)
        }
    });
    outcome.unwrap_or_else(|fault| {
        let _ = writeln!(io::stderr(), "mosh-client: {fault}");
        ExitCode::FAILURE
    })
}

fn run(
    clock: Clock,
    key: Option<Zeroizing<Vec<u8>>>,
    server: SocketAddr,
    trace: &Trace,
) -> Result<ExitCode, MoshClientError> {
    let text = key.ok_or(MoshClientError::KeyMissing)?;
    let read = || str::from_utf8(&text).ok().and_then(|text| Key::from_base64(text.trim()).ok());
    let key = within(read).ok_or(MoshClientError::KeyMalformed)?;
    drop(text);
    let settings = settings()?;
    if let Some(stream) = tty::missing_stream() {
        return Err(MoshClientError::NotATerminal(stream));
    }
    os::process::harden().map_err(MoshClientError::KeyUnprotected)?;
    let candidates = Candidates { addresses: vec![server], named: 1 };
    let secret = Secret::Mosh(key);
    let found = Reached {
        kind: Peer::Stock,
        secret,
        candidates,
        version: None,
        warning: None,
        is_broken: false,
        stream: None,
        is_ssh_alone: false,
    };
    let host = server.ip().to_string();
    let session = async { client::run(clock, found, &settings, None, &host, None, trace).await };
    let ended = crate::runtime::in_runtime(session)?;
    if let Some(failure) = crate::cli::login::broken_off(&server.ip().to_string(), &ended, "-p") {
        let text = format!("{}\n{}", failure.what, failure.next);
        let _ = writeln!(io::stderr(), "mosh-client: {}", text.trim_end());
    }
    let _ = writeln!(io::stdout(), "[mosh is exiting.]");
    Ok(if ended.exit.clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn settings() -> Result<Settings, MoshClientError> {
    let display = match environment::variable("MOSH_PREDICTION_DISPLAY") {
        None => Display::default(),
        Some(word) => {
            environment::parse_display(&word).ok_or(MoshClientError::BadPredictionMode(word))?
        }
    };
    let set = |name| environment::variable_os(name).is_some();
    Ok(Settings {
        falls_back: false,
        tty: environment::terminal(),
        escape: environment::escape(environment::variable_os("MOSH_ESCAPE_KEY")),
        window: set("MOSH_NO_TERM_INIT").then_some(TtyScreen::Main),
        name: "mosh",
        obscure: None,
        obscure_slot: None,
        history: LINES_MAX,
        wants_fewer: false,
        clear_history: true,
        keep_cleared: true,
        title_prefix: if set("MOSH_TITLE_NOPREFIX") { "" } else { "[mosh] " },
        guesses: Guesses::ROVE.with_display(display).with_editing(environment::editing_variable()),
        tariff: CostProfile::Flat,
        detaches_on_close: false,
        way: WaySetting::Udp,
    })
}

/// Reads the words as getopt does: options first, joined or apart; `-#` takes a word and ignores it.
pub fn parse(words: &[OsString]) -> Result<Request, UsageError> {
    let mut verbosity = Verbosity::Usual;
    let mut words = words.iter().map(|word| word.to_string_lossy());
    let mut places = Vec::new();
    while let Some(word) = words.next() {
        match word.as_ref() {
            "--" => places.extend(words.by_ref()),
            "--help" => return Ok(Request::Help),
            "--version" => return Ok(Request::Version),
            _ if word.len() > 1 && word.starts_with('-') => {
                for (index, flag) in word.char_indices().skip(1) {
                    match flag {
                        '#' => {
                            // The rest of the word is what is ignored; without a rest the next word
                            // is.
                            if word.len() == index + 1 && words.next().is_none() {
                                return Err(UsageError::WordMissing);
                            }
                            break;
                        }
                        'c' => return Ok(Request::Colours),
                        'v' => verbosity = Verbosity::Steps,
                        other => return Err(UsageError::UnknownOption(other)),
                    }
                }
            }
            _ => places.push(word),
        }
    }
    let [ip, port] = places.as_slice() else {
        return Err(UsageError::ServerMissing);
    };
    let address: IpAddr = ip.parse().map_err(|_| UsageError::BadAddress(ip.to_string()))?;
    let number = port.bytes().all(|octet| octet.is_ascii_digit()).then(|| port.parse().ok());
    match number.flatten() {
        Some(port @ 1..) => {
            Ok(Request::Session { server: SocketAddr::new(address, port), verbosity })
        }
        _ => Err(UsageError::BadPort(port.to_string())),
    }
}

/// The number of colours as terminfo counts it: -1 for a terminal without any.
fn colours() -> i64 {
    match environment::terminal().colors().count() {
        0 => -1,
        count => count.into(),
    }
}

fn version() -> String {
    format!("mosh-client (rove {}), compatible with mosh 1.4.0", env!("CARGO_PKG_VERSION"))
}

fn print(text: &str) -> Result<ExitCode, MoshClientError> {
    writeln!(io::stdout(), "{text}").map_err(MoshClientError::NotPrinted)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_stock_reads_them() {
        let session = |verbosity| {
            let server = "127.0.0.1:60001".parse().unwrap();
            Ok(Request::Session { server, verbosity })
        };
        for (words, expected) in [
            (&["127.0.0.1", "60001"][..], session(Verbosity::Usual)),
            (&["-# --ssh=x host |", "127.0.0.1", "60001"], session(Verbosity::Usual)),
            (&["-#", "host", "127.0.0.1", "60001"], session(Verbosity::Usual)),
            (&["-v", "-v", "127.0.0.1", "60001"], session(Verbosity::Steps)),
            (&["127.0.0.1", "60001", "-v"], session(Verbosity::Steps)),
            (&["--", "127.0.0.1", "60001"], session(Verbosity::Usual)),
            (&["-c", "1", "2", "3"], Ok(Request::Colours)),
            (&["--help", "-x"], Ok(Request::Help)),
            (&["--version"], Ok(Request::Version)),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(parse(&words), expected, "{words:?}");
        }
        let missing = "an IP address and a UDP port are needed";
        for (words, told) in [
            (&[][..], missing),
            (&["127.0.0.1"], missing),
            (&["127.0.0.1", "60001", "x"], missing),
            (&["localhost", "60001"], "localhost is not a numeric IP address"),
            (&["127.0.0.1", "0"], "bad UDP port 0"),
            (&["127.0.0.1", "65536"], "bad UDP port 65536"),
            (&["127.0.0.1", "+1"], "bad UDP port +1"),
            (&["-x", "127.0.0.1", "60001"], "unknown option -x"),
            (&["-#"], "-# takes a word"),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let error = parse(&words).unwrap_err();
            assert_eq!(error.to_string(), told, "{words:?}");
            let whole = format!("{told}\n\n{USAGE}");
            assert_eq!(MoshClientError::from(error).to_string(), whole);
        }
    }
}
