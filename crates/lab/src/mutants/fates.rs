//! Fates that are known from a run before, of the same code: an interrupted run goes on where it was.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::trial::Fate;

/// A file with a line for each mutant: what it was drawn from, its number, its fate.
pub(crate) struct Fates {
    path: PathBuf,
    drawn_from: String,
    known: BTreeMap<usize, Option<Fate>>,
}

impl Fates {
    /// Those of one draw from one code.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn read(path: &Path, drawn_from: String) -> io::Result<Fates> {
        let text = match fs::read(path) {
            Ok(octets) => String::from_utf8_lossy(&octets).into_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let known = text.lines().filter_map(|line| {
            let (number, fate) = line.strip_prefix(&drawn_from)?.trim_start().split_once(' ')?;
            Some((number.parse().ok()?, read_fate(fate)?))
        });
        let known = known.collect();
        Ok(Fates { path: path.to_owned(), drawn_from, known })
    }

    /// The fate of a mutant, `Some(None)` if it does not compile.
    pub(crate) fn of(&self, number: usize) -> Option<Option<Fate>> {
        self.known.get(&number).cloned()
    }

    /// Adds one to the file; `None` if it does not compile.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn add(&self, number: usize, fate: Option<&Fate>) -> io::Result<()> {
        let line = format!("{} {number} {}\n", self.drawn_from, spell(fate));
        let mut file = fs::OpenOptions::new().append(true).create(true).open(&self.path)?;
        file.write_all(line.as_bytes())
    }
}

fn spell(fate: Option<&Fate>) -> String {
    match fate {
        None => "faulty".to_owned(),
        Some(Fate::Unreached) => "unreached".to_owned(),
        Some(Fate::Survived) => "survived".to_owned(),
        Some(Fate::Killed { by }) => format!("killed {by}"),
    }
}

fn read_fate(text: &str) -> Option<Option<Fate>> {
    Some(match text.split_once(' ').unwrap_or((text, "")) {
        ("faulty", "") => None,
        ("unreached", "") => Some(Fate::Unreached),
        ("survived", "") => Some(Fate::Survived),
        ("killed", by) => Some(Fate::Killed { by: by.to_owned() }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn fates_are_found_again_for_the_same_code() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.join("fates");
        let fates = [
            Some(Fate::Unreached),
            Some(Fate::Survived),
            Some(Fate::Killed { by: "ssp parts: a b".to_owned() }),
            None,
        ];
        let empty = Fates::read(&path, "1a".to_owned()).unwrap();
        for (number, fate) in fates.iter().enumerate() {
            assert_eq!(empty.of(number), None);
            empty.add(number, fate.as_ref()).unwrap();
        }
        let known = Fates::read(&path, "1a".to_owned()).unwrap();
        for (number, fate) in fates.into_iter().enumerate() {
            assert_eq!(known.of(number), Some(fate));
        }
        assert_eq!(Fates::read(&path, "1b".to_owned()).unwrap().of(0), None);
    }
}
