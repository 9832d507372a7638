//! Draws mutants by a seed, from each group of files in proportion to its lines.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use super::find::find;
use super::mutant::Mutant;
use crate::rng::Rng;

/// Files of a crate, and which programs judge their mutants.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Its name in the report.
    pub name: &'static str,
    /// The package that cargo knows.
    pub package: &'static str,
    /// The file from which the crate's modules are followed.
    pub library: &'static str,
    /// What the paths of the files begin with.
    pub within: Vec<String>,
    /// The crates whose tests are run, by their directories and in this order.
    pub judges: &'static [&'static str],
}

/// The mutants drawn from a group.
pub(crate) struct Drawn {
    /// How many are to be tried.
    pub quota: usize,
    /// How many there are to draw from, and in how many lines.
    pub found: usize,
    pub lines: usize,
    /// By number, in the order in which they were drawn: more than the quota, since some will not compile.
    pub mutants: BTreeMap<usize, Mutant>,
}

/// Draws from all groups.
///
/// # Errors
/// If files cannot be read, or hold no Rust.
pub(crate) fn draw(
    root: &Path,
    groups: &[Group],
    count: usize,
    seed: u64,
) -> io::Result<Vec<Drawn>> {
    let found: Vec<_> = groups
        .iter()
        .map(|group| find(root, group.library, &group.within))
        .collect::<io::Result<_>>()?;
    let total: usize = found.iter().map(|found| found.lines).sum();
    let (mut lines, mut given, mut number) = (0, 0, 0);
    let mut drawn = Vec::new();
    let mut rng = Rng::new(seed);
    for found in found {
        lines += found.lines;
        // Rounded in sum, so that the quotas are the count.
        let until = (count * lines + total / 2).checked_div(total).unwrap_or(0);
        let quota = until - given;
        given = until;
        let of_group = found.mutants.len();
        let chosen = some(found.mutants, quota + quota * 2 / 5 + 2, &mut rng.fork());
        let numbered = chosen.into_iter().map(|mutant| {
            number += 1;
            (number, mutant)
        });
        let mutants = numbered.collect();
        drawn.push(Drawn { quota, found: of_group, lines: found.lines, mutants });
    }
    Ok(drawn)
}

/// At most this many, in random order, of which none change the same octets.
fn some(mut left: Vec<Mutant>, most: usize, rng: &mut Rng) -> Vec<Mutant> {
    let mut chosen: Vec<Mutant> = Vec::new();
    while chosen.len() < most && !left.is_empty() {
        let mutant = left.swap_remove(rng.below(left.len() as u64) as usize);
        if !chosen.iter().any(|other| other.overlaps(&mutant)) {
            chosen.push(mutant);
        }
    }
    chosen
}
