//! Messages for the user while a session runs.

/// What there is to tell that waits to be told; what comes beyond it is not told.
pub(crate) const NOTICES_MAX: usize = 256;

/// What there is to tell about forwardings.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Notice {
    /// For whom follows every step.
    Step(String),
    /// For a person.
    Note(String),
    /// For everybody, scripts' logs too: something did not go as it was to go, or cannot be guessed.
    Warning(String),
    /// A forwarding could not be set up, or was lost; why.
    Failed(String),
    /// All remote forwardings have been answered for.
    Settled,
}

/// What a forwarding that cannot be set up means for the rest (ssh's ExitOnForwardFailure).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum OnFailure {
    /// The user is told.
    #[default]
    GoOn,
    /// Nothing is done at all.
    Exit,
}
