//! Errors in a server's command line.

use thiserror::Error;

/// Longest nonce taken; it is printed back on a line of limited length.
pub(super) const NONCE_BYTES_MAX: usize = 64;

/// An error in the command line of a server.
#[derive(Debug, Eq, Error, PartialEq)]
pub enum OptionError {
    /// More than the address and the port of the old form.
    #[error("too many words (see --help)")]
    TooManyWords,
    /// Not a port or a range of ports, for this reason.
    #[error("bad port range {text:?}: {reason}")]
    BadPorts { text: String, reason: &'static str },
    /// A word that is no option, where only options may stand.
    #[error("{0}: not an option")]
    NotAnOption(String),
    #[error("unknown option -{}", .0.escape_ascii())]
    UnknownLetter(u8),
    /// The command line ends where this option's value is expected.
    #[error("-{} needs a value", char::from(*.0))]
    ValueMissing(u8),
    /// Not an IP address. The server goes on and listens on any.
    #[error("{0} is no IP address: listening on any")]
    BadAddress(String),
    #[error("bad number of colors {0:?}")]
    BadColors(String),
    #[error("--nonce is 1 to {NONCE_BYTES_MAX} letters, digits, - or _")]
    BadNonce,
    #[error("--key is a public key, 43 characters of base64")]
    BadKey,
    /// The native wire takes only nonces that rove makes.
    #[error("with --key, --nonce is 32 hexadecimal digits")]
    NonceNotHexadecimal,
    #[error(
        "--nonce is missing: `rove HOST` starts this program with one; \
         for a mosh client say `rove server new`"
    )]
    NonceMissing,
    /// Not a session's name, for this reason.
    #[error("{0:?} names no session: {1}")]
    BadName(String, &'static str),
    /// A word that cannot stand beside a question about sessions.
    #[error("{0}: not a word about sessions")]
    NotAboutSessions(String),
    #[error("--streams needs --key: streams run beside the native wire")]
    StreamsWithoutKey,
}
