//! Limits how often a sender may guess the contents of a file here.

use std::collections::HashMap;

use crate::copy::part::FileId;

/// The most wrong guesses to remember ([`Guesses`]): 70 MB. A copy with more files that changed and kept
/// their size also resends unchanged ones.
const GUESSES_MAX: usize = 1 << 20;

/// How often we asked the sender for the hashes of each file here. Our next request shows it whether its
/// hash was right; with unlimited tries it could find out a file's contents, beginning by beginning.
#[derive(Debug, Default)]
pub(super) struct Guesses {
    /// At most [`GUESSES_MAX`].
    taken: HashMap<FileId, u128>,
}

impl Guesses {
    /// Takes one of the guesses at a file, of which there is one for each of its `names`. Returns `false` if
    /// none is left or too many files are known; then the sender sends the whole file.
    pub(super) fn take(&mut self, id: FileId, names: u128) -> bool {
        let has_room = self.taken.len() < GUESSES_MAX;
        let taken = self.taken.get(&id).copied().unwrap_or(0);
        if !has_room || taken >= names {
            return false;
        }
        self.taken.insert(id, taken + 1);
        true
    }

    /// The guess was right about the whole file, so nothing is left to find out.
    pub(super) fn give_back(&mut self, id: FileId) {
        self.taken.remove(&id);
    }
}
