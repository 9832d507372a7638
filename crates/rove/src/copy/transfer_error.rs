//! Why a copy ends before everything is in its place.

use std::io;

use thiserror::Error;

use crate::services::silence::GaveUp;

/// Why a copy ends before everything is in its place.
#[derive(Debug, Error)]
pub(super) enum TransferError {
    /// This end can receive no more, for this reason.
    #[error("{0}")]
    Failed(String),
    /// The host ended it, for this reason.
    #[error("{host}:{why}")]
    Refused { host: String, why: String },
    /// The session with the host ended.
    #[error("the session with {host} ended before the copy")]
    Ended { host: String },
    /// The host breaks the protocol.
    #[error("{host} does not keep to the protocol")]
    Malformed { host: String },
    /// There are more entries than numbers for them.
    #[error("more files than one copy can number")]
    TooMany,
    #[error(transparent)]
    GaveUp(#[from] GaveUp),
    /// The user, or the system, asked the program to end.
    #[error("interrupted")]
    Interrupted,
    /// Signals cannot be handled.
    #[error(transparent)]
    Signals(io::Error),
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
