//! What decides how long a session lasts.

use std::process::Command;

use rove_session::ViewerId;
use rove_ssp::Time;

use crate::sessions::line::Kind;

/// What decides how long a session lasts.
#[derive(Debug)]
pub(super) struct Lifetime {
    pub(super) kind: Kind,
    /// When the session began.
    pub(super) begun: Time,
    /// When somebody typed or the program wrote last.
    pub(super) used: Time,
    /// When a client left on purpose last.
    pub(super) left: Option<Time>,
    /// The name of the program that was started.
    pub(super) program: Vec<u8>,
    /// A client is there, as of the last look.
    pub(super) is_there: bool,
    /// When it was looked whether the control socket is there.
    pub(super) found: Option<Time>,
    /// Clients that were heard, as of the last look.
    pub(super) clients: Vec<ViewerId>,
    /// The end was asked for: until when clients may answer the goodbye.
    pub(super) goodbye_by: Option<Time>,
    /// The user has asked for the session's end.
    pub(super) killed: Option<Time>,
    /// When that is looked at again.
    pub(super) due: Option<Time>,
}

impl Lifetime {
    pub(super) fn new(now: Time, kind: Kind, command: &Command) -> Lifetime {
        let program = command.get_program().as_encoded_bytes();
        let program = program.rsplit(|octet| *octet == b'/').next().unwrap_or_default().to_vec();
        Lifetime {
            kind,
            begun: now,
            used: now,
            left: None,
            program,
            is_there: false,
            found: None,
            clients: Vec::new(),
            goodbye_by: None,
            killed: None,
            due: None,
        }
    }

    /// Somebody typed, or the program wrote.
    pub(super) fn used(&mut self, now: Time) {
        self.used = now;
    }

    /// When the session's life is looked at again.
    pub(super) fn due(&self) -> Option<Time> {
        self.due
    }
}
