//! Errors in a server's command line.

use std::error::Error;
use std::fmt;

/// Longest nonce taken; it is printed back on a line of limited length.
pub(super) const NONCE_BYTES_MAX: usize = 64;

/// An error in the command line of a server.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::server) enum OptionError {
    /// More than the address and the port of the old form.
    TooManyWords,
    /// Not a port or a range of ports, for this reason.
    BadPorts {
        text: String,
        reason: &'static str,
    },
    /// A word that is no option, where only options may stand.
    NotAnOption(String),
    UnknownLetter(u8),
    /// The command line ends where this option's value is expected.
    ValueMissing(u8),
    /// Not an IP address. The server goes on and listens on any.
    BadAddress(String),
    BadColors(String),
    BadNonce,
    BadKey,
    /// The native wire takes only nonces that rove makes.
    NonceNotHexadecimal,
    NonceMissing,
    StreamsWithoutKey,
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::TooManyWords => f.write_str("too many words (see --help)"),
            OptionError::BadPorts { text, reason } => {
                write!(f, "bad port range {text:?}: {reason}")
            }
            OptionError::NotAnOption(word) => write!(f, "{word}: not an option"),
            OptionError::UnknownLetter(letter) => {
                write!(f, "unknown option -{}", letter.escape_ascii())
            }
            OptionError::ValueMissing(letter) => {
                write!(f, "-{} needs a value", char::from(*letter))
            }
            OptionError::BadAddress(address) => {
                write!(f, "{address} is no IP address: listening on any")
            }
            OptionError::BadColors(colors) => write!(f, "bad number of colors {colors:?}"),
            OptionError::BadNonce => {
                write!(f, "--nonce is 1 to {NONCE_BYTES_MAX} letters, digits, - or _")
            }
            OptionError::BadKey => f.write_str("--key is a public key, 43 characters of base64"),
            OptionError::NonceNotHexadecimal => {
                f.write_str("with --key, --nonce is 32 hexadecimal digits")
            }
            OptionError::NonceMissing => f.write_str(
                "--nonce is missing: `rove HOST` starts this program with one; \
                 for a mosh client say `rove server new`",
            ),
            OptionError::StreamsWithoutKey => {
                f.write_str("--streams needs --key: streams run beside the native wire")
            }
        }
    }
}

impl Error for OptionError {}
