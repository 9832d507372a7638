//! Why `mosh-client` does not run, in the words that the user sees.

use std::fmt;
use std::io;

use crate::failure::Failure;

pub(super) const USAGE: &str = "\
Usage: mosh-client [-# 'ARGS'] [-v] IP PORT
       mosh-client -c
The session's key is taken from the environment variable MOSH_KEY.";

/// Why `mosh-client` does not run, or did not end as it should.
#[derive(Debug)]
pub(super) enum MoshClientError {
    /// The words cannot be read; the usage follows this message.
    Usage(UsageError),
    KeyMissing,
    KeyMalformed,
    BadPredictionMode(String),
    /// The standard stream of this name is no terminal.
    NotATerminal(&'static str),
    KeyUnprotected(io::Error),
    /// The session failed.
    Session(Failure),
    NotPrinted(io::Error),
}

/// An error in the command line.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum UsageError {
    UnknownOption(char),
    /// `-#` is the last word.
    WordMissing,
    /// There are fewer or more words than an address and a port.
    ServerMissing,
    BadAddress(String),
    BadPort(String),
}

impl From<UsageError> for MoshClientError {
    fn from(error: UsageError) -> MoshClientError {
        MoshClientError::Usage(error)
    }
}

impl From<Failure> for MoshClientError {
    fn from(failure: Failure) -> MoshClientError {
        MoshClientError::Session(failure)
    }
}

impl fmt::Display for MoshClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MoshClientError::Usage(error) => write!(f, "{error}\n\n{USAGE}"),
            MoshClientError::KeyMissing => f.write_str("MOSH_KEY is not in the environment"),
            MoshClientError::KeyMalformed => {
                f.write_str("MOSH_KEY is not a key of 22 base64 characters")
            }
            MoshClientError::BadPredictionMode(word) => {
                write!(f, "MOSH_PREDICTION_DISPLAY={word} is no prediction mode")
            }
            MoshClientError::NotATerminal(stream) => {
                write!(f, "standard {stream} is not a terminal")
            }
            MoshClientError::KeyUnprotected(error) => write!(f, "cannot protect the key: {error}"),
            MoshClientError::Session(failure) => f.write_str(&failure.what),
            MoshClientError::NotPrinted(error) => write!(f, "cannot print: {error}"),
        }
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UsageError::UnknownOption(letter) => write!(f, "unknown option -{letter}"),
            UsageError::WordMissing => f.write_str("-# takes a word"),
            UsageError::ServerMissing => f.write_str("an IP address and a UDP port are needed"),
            UsageError::BadAddress(ip) => write!(f, "{ip} is not a numeric IP address"),
            UsageError::BadPort(port) => write!(f, "bad UDP port {port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_is_told() {
        let failed = || io::Error::other("no");
        for (error, told) in [
            (MoshClientError::KeyMissing, "MOSH_KEY is not in the environment"),
            (MoshClientError::KeyMalformed, "MOSH_KEY is not a key of 22 base64 characters"),
            (
                MoshClientError::BadPredictionMode("x".into()),
                "MOSH_PREDICTION_DISPLAY=x is no prediction mode",
            ),
            (MoshClientError::NotATerminal("input"), "standard input is not a terminal"),
            (MoshClientError::KeyUnprotected(failed()), "cannot protect the key: no"),
            (MoshClientError::Session(Failure::new("what", "next")), "what"),
            (MoshClientError::NotPrinted(failed()), "cannot print: no"),
        ] {
            assert_eq!(error.to_string(), told);
        }
    }
}
