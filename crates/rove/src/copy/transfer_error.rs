//! Why a copy ends before everything is in its place.

use std::fmt;
use std::io;

use crate::services::silence::GaveUp;

/// Why a copy ends before everything is in its place.
#[derive(Debug)]
pub(super) enum TransferError {
    /// This end can receive no more, for this reason.
    Failed(String),
    /// The host ended it, for this reason.
    Refused {
        host: String,
        why: String,
    },
    /// The session with the host ended.
    Ended {
        host: String,
    },
    /// The host breaks the protocol.
    Malformed {
        host: String,
    },
    /// There are more entries than numbers for them.
    TooMany,
    GaveUp(GaveUp),
    /// The user, or the system, asked the program to end.
    Interrupted,
    /// Signals cannot be handled.
    Signals(io::Error),
}

impl From<GaveUp> for TransferError {
    fn from(why: GaveUp) -> TransferError {
        TransferError::GaveUp(why)
    }
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::Failed(why) => f.write_str(why),
            TransferError::Refused { host, why } => write!(f, "{host}:{why}"),
            TransferError::Ended { host } => {
                write!(f, "the session with {host} ended before the copy")
            }
            TransferError::Malformed { host } => {
                write!(f, "{host} does not keep to the protocol")
            }
            TransferError::TooMany => f.write_str("more files than one copy can number"),
            TransferError::GaveUp(why) => why.fmt(f),
            TransferError::Interrupted => f.write_str("interrupted"),
            TransferError::Signals(error) => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_the_user_is_told() {
        let host = || "far".to_owned();
        let after = Duration::from_secs(90);
        for (error, told) in [
            (TransferError::Failed("the disk is full".into()), "the disk is full"),
            (TransferError::Refused { host: host(), why: "/x: no".into() }, "far:/x: no"),
            (TransferError::Ended { host: host() }, "the session with far ended before the copy"),
            (TransferError::Malformed { host: host() }, "far does not keep to the protocol"),
            (TransferError::TooMany, "more files than one copy can number"),
            (GaveUp::Silent { host: host(), after }.into(), "nothing was heard from far for 90 s"),
            (
                GaveUp::NoQuic { host: host(), instead: "scp" }.into(),
                "UDP comes through to far, but not QUIC, which carries this: \
                 something on the way drops it; scp does without",
            ),
            (TransferError::Interrupted, "interrupted"),
            (TransferError::Signals(io::Error::other("no signals")), "no signals"),
        ] {
            assert_eq!(error.to_string(), told);
        }
    }
}
