//! How a session ends.

use rove_ssp::Failure;

/// How a session ended at this end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exit {
    /// Why.
    pub cause: Cause,
    /// Both ends know that it is over.
    pub clean: bool,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// The program on this end's terminal ended, or this end was told to end the session.
    Closed,
    /// The user asked for it with the escape key.
    Quit,
    /// The user asked to leave a session that goes on.
    Detached,
    /// A signal.
    Signal,
    /// The end of the user's input.
    InputEnded,
    /// The peer ended it. A server does so when its program has ended, and then sends the program's
    /// status unless it is stock's.
    PeerLeft,
    /// The peer was never heard.
    NoContact,
    /// The peer was not heard for too long.
    Silence,
    /// Its host was asked by another way, and the session is not there any more.
    Gone,
    /// The connection cannot go on.
    Failed(Failure),
}
