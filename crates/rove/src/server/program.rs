//! The name that a server was called by.

/// The name a server was called by, and so what its client expects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Program {
    /// `rove server`, for a rove client. With `new` as its first word it is [`Program::Mosh`].
    Rove,
    /// `mosh-server`, for any mosh client: stock's words, answers and dialect.
    Mosh,
}
