//! Requested files, and the one that the sender is sending.

use std::io;

use crate::copy::message::Times;
use crate::copy::outgoing::ANEW_MAX;
use crate::copy::part::{FileId, Finish, Part, Seen, is_disturbed};
use crate::copy::target::Destination;
use crate::os::fs::Mode;

/// A file as it was listed.
pub(super) struct File {
    pub(super) destination: Destination,
    pub(super) shown: Vec<u8>,
    pub(super) size: u64,
    pub(super) mode: Mode,
    /// The times to give it, if they are kept.
    pub(super) times: Option<Times>,
    /// Whether the sender begins it anew when it is asked to.
    pub(super) may_begin_anew: bool,
    /// How often it was asked for anew: at most [`ANEW_MAX`] times.
    pub(super) anew: u8,
}

/// A requested file.
pub(super) struct Awaited {
    pub(super) file: File,
    pub(super) finish: Finish,
    pub(super) state: Wanted,
    /// Whether our copy is a file of the same size under the final name, not a part.
    pub(super) is_in_place: bool,
    /// Whether there was an empty part as well.
    pub(super) has_empty_part: bool,
}

impl Awaited {
    /// The name of our copy.
    pub(super) fn name_here(&self) -> Vec<u8> {
        match self.is_in_place {
            true => self.file.destination.name.as_bytes().to_vec(),
            false => self.file.destination.name.part(),
        }
    }

    /// Whether to ask for it anew after this error.
    pub(super) fn begins_anew(&self, error: &io::Error) -> bool {
        self.file.may_begin_anew && self.file.anew < ANEW_MAX && is_disturbed(error)
    }
}

/// How far a file has been requested.
pub(super) enum Wanted {
    /// Marks of beginnings of these lengths, all of which our file has too.
    Marks(Vec<u64>, FileId),
    /// The file from this offset on; the file that was seen has everything before.
    From(u64, Option<Seen>),
}

/// The file that the sender is sending.
pub(super) enum Current {
    None,
    /// This file.
    File {
        index: u32,
        awaited: Awaited,
        part: Part,
        /// The octets that were there already.
        spared: u64,
        hasher: Box<blake3::Hasher>,
    },
    /// A file that is in place unchanged.
    Same {
        index: u32,
        awaited: Awaited,
        seen: Option<Seen>,
    },
    /// A file that was given up.
    Unwanted {
        index: u32,
    },
    /// A file that was asked for anew, as the sender does not know yet.
    Outdated {
        index: u32,
    },
}
