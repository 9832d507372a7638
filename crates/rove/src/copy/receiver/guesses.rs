//! Limits how often a sender may guess at what is in a file here.

use std::collections::HashMap;

use crate::copy::part::FileId;

/// Wrong guesses that are remembered ([`Guesses`]): 70 MB. A copy with more files that have changed and kept their size
/// gets those that have not changed as well.
const GUESSES_MAX: usize = 1 << 20;

/// How often the sender was asked for the hashes of each file here. From what is wanted after that it learns whether it has
/// told the right one, and with as many tries as it likes it would find out what is in a file, beginning by beginning.
#[derive(Debug, Default)]
pub(super) struct Guesses {
    /// At most [`GUESSES_MAX`].
    taken: HashMap<FileId, u128>,
}

impl Guesses {
    /// Takes one of the guesses at a file, of which there is one for each of its `names`; `false` if none is left, or if too
    /// many files are known. Then the file comes as a whole.
    pub(super) fn take(&mut self, id: FileId, names: u128) -> bool {
        let has_room = self.taken.len() < GUESSES_MAX;
        let taken = self.taken.get(&id).copied().unwrap_or(0);
        if !has_room || taken >= names {
            return false;
        }
        self.taken.insert(id, taken + 1);
        true
    }

    /// The guess was right about the whole file, so there is nothing more to be found out.
    pub(super) fn give_back(&mut self, id: FileId) {
        self.taken.remove(&id);
    }
}
