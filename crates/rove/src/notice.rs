//! Messages for the user while a session runs.

/// The most notices that wait; further ones are dropped.
pub(crate) const NOTICES_MAX: usize = 256;

/// A notice about forwardings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Notice {
    /// A step, for a user who asked for all of them.
    Step(String),
    /// For a person.
    Note(String),
    /// For everybody, scripts' logs too: something went wrong, or cannot be guessed.
    Warning(String),
    /// A forwarding could not be set up, or was lost; why.
    Failed(String),
    /// The server has answered for all remote forwardings.
    Settled,
}

/// What to do if a forwarding cannot be set up (ssh's ExitOnForwardFailure).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OnFailure {
    /// Tell the user.
    #[default]
    GoOn,
    /// End everything.
    Exit,
}
