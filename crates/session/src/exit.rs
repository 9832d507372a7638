//! How a session ends.

/// Whether both ends know that the session is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Clean {
    Yes,
    No,
}
