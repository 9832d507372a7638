//! What a picture is made from, so that it is made anew only when that changes.

use alloc::string::String;
use alloc::vec::Vec;

use rove_ssp::StateNum;

use crate::session_info::SessionInfo;

/// What a picture is made from: while it is the same, so is the picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Source {
    /// The server's state.
    pub(crate) newest: StateNum,
    /// The text of the bar, if there is one.
    pub(crate) bar: Option<String>,
    /// The lines of the status panel, if it is shown.
    pub(crate) panel: Option<Vec<String>>,
    /// The revision of the guesses.
    pub(crate) guesses: u64,
    pub(crate) sharing: Sharing,
    /// How deep the screen is, if the server tells of the lines above it.
    pub(crate) depth: Option<u64>,
    /// The last picture of a session that was on the alternate screen while lines of the other one wait.
    pub(crate) leaves: bool,
}

/// Who decides on the size of the screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sharing {
    /// This window alone, so that the two sizes differ for a moment only.
    Alone,
    /// Other windows as well.
    WithOthers,
}

impl Sharing {
    /// As a server tells it.
    pub(crate) fn of(session: Option<&SessionInfo>) -> Self {
        match session {
            Some(session) if session.others > 0 || session.view_only => Self::WithOthers,
            _ => Self::Alone,
        }
    }
}
