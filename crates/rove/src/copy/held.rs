//! The parts that this process has locked, and whether another copy waits for one of them. A server whose client was
//! killed holds its part until it notices; it notices sooner when it is asked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::os::stat::Stat;

/// A file, by its device and its number there.
pub(crate) type FileNumber = (u64, u64);

/// Those held now, and whether somebody else wants them.
static HELD: Mutex<Vec<(FileNumber, bool)>> = Mutex::new(Vec::new());

/// A part that is locked by this process, until this is dropped.
#[derive(Debug)]
pub(super) struct Held(FileNumber);

impl Held {
    pub(super) fn new(stat: &Stat) -> Held {
        let file = number(stat);
        held().push((file, false));
        Held(file)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = held();
        if let Some(index) = held.iter().position(|(file, _)| *file == self.0) {
            held.swap_remove(index);
        }
    }
}

/// The number of a file.
pub(super) fn number(stat: &Stat) -> FileNumber {
    (stat.st_dev, stat.st_ino)
}

/// Another copy waits for this part. Returns whether it is one that is held here.
pub(crate) fn want(file: FileNumber) -> bool {
    let mut held = held();
    let found = held.iter_mut().find(|(number, _)| *number == file);
    found.is_some_and(|(_, is_wanted)| {
        *is_wanted = true;
        true
    })
}

/// Whether another copy waits for a part that is held here.
pub(crate) fn is_wanted() -> bool {
    held().iter().any(|(_, is_wanted)| *is_wanted)
}

fn held() -> MutexGuard<'static, Vec<(FileNumber, bool)>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_held_is_wanted() {
        let file = tempfile();
        let stat = crate::os::fs::fstat(&file).unwrap();
        assert!(!want(number(&stat)));
        let held = Held::new(&stat);
        assert!(want(number(&stat)) && is_wanted());
        drop(held);
        assert!(!want(number(&stat)));
    }

    fn tempfile() -> std::fs::File {
        let path = std::env::temp_dir().join(format!("rove-held-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }
}
