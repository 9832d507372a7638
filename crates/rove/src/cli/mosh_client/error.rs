//! Why `mosh-client` does not run, in the words that the user sees.

use std::io;

use thiserror::Error;

use crate::failure::Failure;

pub(super) const USAGE: &str = "\
Usage: mosh-client [-# 'ARGS'] [-v] IP PORT
       mosh-client -c
The session's key is taken from the environment variable MOSH_KEY.";

/// Why `mosh-client` does not run, or did not end as it should.
#[derive(Debug, Error)]
pub(super) enum MoshClientError {
    /// The words cannot be read; the usage follows this message.
    #[error("{0}\n\n{USAGE}")]
    Usage(#[from] UsageError),
    #[error("MOSH_KEY is not in the environment")]
    KeyMissing,
    #[error("MOSH_KEY is not a key of 22 base64 characters")]
    KeyMalformed,
    #[error("MOSH_PREDICTION_DISPLAY={0} is no prediction mode")]
    BadPredictionMode(String),
    /// The standard stream of this name is no terminal.
    #[error("standard {0} is not a terminal")]
    NotATerminal(&'static str),
    #[error("cannot protect the key: {0}")]
    KeyUnprotected(io::Error),
    /// The session failed.
    #[error("{}", .0.what)]
    Session(#[from] Failure),
    #[error("cannot print: {0}")]
    NotPrinted(io::Error),
}

/// An error in the command line.
#[derive(Debug, Eq, Error, PartialEq)]
pub enum UsageError {
    #[error("unknown option -{0}")]
    UnknownOption(char),
    /// `-#` is the last word.
    #[error("-# takes a word")]
    WordMissing,
    /// There are fewer or more words than an address and a port.
    #[error("an IP address and a UDP port are needed")]
    ServerMissing,
    #[error("{0} is not a numeric IP address")]
    BadAddress(String),
    #[error("bad UDP port {0}")]
    BadPort(String),
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
