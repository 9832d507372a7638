//! Files that were asked for, and the one that is being sent.

use crate::copy::part::{FileId, Finish, Part, Seen};
use crate::copy::target::Destination;

/// A file that was asked for.
pub(super) struct Awaited {
    pub(super) destination: Destination,
    pub(super) finish: Finish,
    pub(super) shown: Vec<u8>,
    pub(super) state: Wanted,
    /// Whether what is there is a file of the same size under the final name, not a part.
    pub(super) is_in_place: bool,
}

impl Awaited {
    /// The name of what is there of it.
    pub(super) fn name_here(&self) -> Vec<u8> {
        match self.is_in_place {
            true => self.destination.name.as_bytes().to_vec(),
            false => self.destination.name.part(),
        }
    }
}

/// How far a file has been asked for.
pub(super) enum Wanted {
    /// The sender is to tell its hashes of beginnings of these lengths, which this file here has too.
    Marks(Vec<u64>, FileId),
    /// It is to be sent from this offset on; up to there it is in the file that was seen.
    From(u64, Option<Seen>),
}

/// What the sender is sending.
pub(super) enum Current {
    None,
    /// This file.
    File {
        index: u32,
        awaited: Awaited,
        part: Part,
        hasher: Box<blake3::Hasher>,
    },
    /// A file that is in its place as it is.
    Same {
        index: u32,
        awaited: Awaited,
        seen: Option<Seen>,
    },
    /// One that was given up.
    Unwanted {
        index: u32,
    },
}
