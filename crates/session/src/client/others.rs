//! The other clients of the session, as far as this one's user is to hear of them.

use alloc::format;
use alloc::string::String;
use core::cmp::Ordering;

use crate::session_info::SessionInfo;

/// The other clients.
#[derive(Debug, Default)]
pub(crate) struct Others {
    /// How many there were when that was last looked at.
    known: Option<u64>,
}

impl Others {
    /// Says who has come to the session, or has left it, since this was last asked.
    /// Clients that are there from the start are not told.
    pub(crate) fn news(&mut self, session: Option<&SessionInfo>) -> Option<String> {
        let session = session?;
        let known = self.known.replace(session.others)?;
        match session.others.cmp(&known) {
            _ if session.who.is_empty() => None,
            Ordering::Equal => None,
            Ordering::Greater => Some(format!("{} has attached too.", session.who)),
            Ordering::Less => Some(format!("{} has left.", session.who)),
        }
    }
}
