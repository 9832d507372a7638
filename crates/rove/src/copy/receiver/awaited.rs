//! Requested files, and the one that the sender is sending.

use crate::copy::part::{FileId, Finish, Part, Seen};
use crate::copy::target::Destination;

/// A requested file.
pub(super) struct Awaited {
    pub(super) destination: Destination,
    pub(super) finish: Finish,
    pub(super) shown: Vec<u8>,
    pub(super) state: Wanted,
    /// Whether our copy is a file of the same size under the final name, not a part.
    pub(super) is_in_place: bool,
}

impl Awaited {
    /// The name of our copy.
    pub(super) fn name_here(&self) -> Vec<u8> {
        match self.is_in_place {
            true => self.destination.name.as_bytes().to_vec(),
            false => self.destination.name.part(),
        }
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
}
