//! `rove-lab mutants`: how many small faults in the machines the tests notice.
//!
//! All mutants are built at once, into a copy of the checkout, and a test program has the one that its environment
//! names. A build for each, as cargo-mutants makes it, takes a minute or more with the optimised machines.

mod fates;
mod find;
mod mutant;
mod report;
mod sample;
mod tree;
mod trial;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::experiments::report::tenths;
use crate::pool;
use fates::Fates;
use mutant::Mutant;
use report::Judged;
use sample::{Drawn, Group};
use tree::{Program, Tree};
use trial::{Fate, Measured, try_mutant};

/// Puts small faults into ssp, term, session, streams' machines and copies, and counts those that no test notices
///
/// Run it in a checkout. The faults go into a copy in target/mutants, which also keeps its builds: the first takes some
/// minutes and 5 GB. A run that was interrupted goes on where it was. There `ROVE_MUTANT=17 cargo test` runs tests with
/// the mutant of that number.
#[derive(Args, Clone, Debug)]
pub(crate) struct MutantsFlags {
    /// Which mutants are drawn; the same sources and seed draw the same
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many are tried
    #[arg(long, default_value_t = 200)]
    count: usize,
    /// Try only those of the drawn whose FILE:LINE begins with this, or of this number, and record nothing
    #[arg(long, value_name = "PLACE")]
    only: Vec<String>,
    /// Leave out copies, the simulations and the longest tests of the crates: what survives may be killed by those
    #[arg(long)]
    quick: bool,
    /// Where the results go
    #[arg(long, value_name = "DIRECTORY", default_value = "results")]
    results: PathBuf,
}

/// Tries the mutants and writes the report. The exit status is 1 if more survive than may.
///
/// # Errors
/// If the checkout cannot be read or built, or its tests fail without a mutant.
pub(crate) fn run(flags: &MutantsFlags) -> io::Result<i32> {
    let plan = Plan::of_checkout(Path::new("."), flags.quick)?;
    let judged = plan.judge(flags)?;
    if flags.only.is_empty() {
        report::write(&judged, flags.seed, flags.quick, &flags.results)?;
    } else {
        for (number, mutant, fate) in judged.iter().flat_map(|group| &group.mutants) {
            println!("{number} {} {:?}: {fate:?}", mutant.place(), mutant.mutated);
        }
    }
    let killed: usize = judged.iter().map(Judged::killed).sum();
    let count: usize = judged.iter().map(|group| group.mutants.len()).sum();
    let rate = killed as f64 * 100.0 / count.max(1) as f64;
    eprintln!("mutants: {killed} of {count} killed, {} %", tenths(rate));
    Ok(i32::from(rate < KILLED_PERCENT_MIN))
}

/// The rate below which tests are missing.
const KILLED_PERCENT_MIN: f64 = 85.0;

/// The files that get mutants, and the tests that judge them.
struct Plan {
    root: PathBuf,
    /// Where the copy and its builds are.
    work: PathBuf,
    groups: Vec<Group>,
    /// What chooses the test programs of `cargo test`.
    words: Vec<String>,
    /// Which of the programs built are run.
    is_judge: fn(&Program) -> bool,
    /// The least limit of a run with a mutant, in seconds of processor time.
    least_seconds: u64,
}

impl Plan {
    /// That of this project.
    fn of_checkout(root: &Path, quick: bool) -> io::Result<Plan> {
        let group = |name, package, library: &'static str, within: &str, judges| {
            let directory = library.trim_end_matches("lib.rs");
            let within = within.split(' ').map(|path| format!("{directory}{path}")).collect();
            Group { name, package, library, within, judges }
        };
        let mut groups = vec![
            group("ssp", "rove-ssp", "crates/ssp/src/lib.rs", "", &["ssp", "session", "lab"]),
            group("term", "rove-term", "crates/term/src/lib.rs", "", &["term", "session", "lab"]),
            group("session", "rove-session", "crates/session/src/lib.rs", "", &["session", "lab"]),
            group(
                "streams",
                "rove-streams",
                "crates/streams/src/lib.rs",
                "mux congestion frame.rs payload.rs keys.rs",
                &["streams", "rove", "lab"],
            ),
        ];
        let mut names: Vec<String> = Vec::new();
        for package in OWN_TESTS {
            names.extend(tree::test_names(root, package)?);
        }
        if quick {
            names.retain(|name| !LONG.contains(&name.as_str()));
        } else {
            names.extend(SIMULATIONS.map(str::to_owned));
            let within = "copy/message.rs copy/name.rs copy/order.rs copy/part.rs copy/sender.rs copy/receiver";
            let library = "crates/rove/src/lib.rs";
            groups.push(group("copy", "rove-shell", library, within, &["rove", "lab"]));
        }
        names.sort();
        names.dedup();
        let mut words = vec!["--lib".to_owned()];
        let packages = groups.iter().map(|group| group.package);
        let packages = packages.chain((!quick).then_some("rove-lab"));
        words.extend(packages.flat_map(|package| ["-p".to_owned(), package.to_owned()]));
        words.extend(names.into_iter().flat_map(|name| ["--test".to_owned(), name]));
        let (root, work) = (root.to_owned(), root.join("target/mutants"));
        Ok(Plan { root, work, groups, words, is_judge, least_seconds: 20 })
    }

    /// Draws mutants, builds them all, and tries one after the other.
    fn judge(&self, flags: &MutantsFlags) -> io::Result<Vec<Judged>> {
        let mut drawn = sample::draw(&self.root, &self.groups, flags.count, flags.seed)?;
        let mut tree = Tree::copy(&self.root, &self.work)?;
        let drawn_from =
            format!("{:016x}/{}/{}/{}", tree.code(), flags.seed, flags.count, flags.quick);
        let fates = Fates::read(&self.work.join("fates"), drawn_from)?;
        let faulty = self.drop_faulty(&mut tree, &mut drawn, &fates)?;
        let chosen: Vec<Vec<(usize, Mutant)>> = drawn
            .iter_mut()
            .map(|drawn| {
                let mutants = std::mem::take(&mut drawn.mutants).into_iter().take(drawn.quota);
                mutants.filter(|(number, mutant)| is_asked(&flags.only, *number, mutant)).collect()
            })
            .collect();
        let is_known = |(number, _): &(usize, Mutant)| fates.of(*number).is_some();
        let measured = match chosen.iter().flatten().all(is_known) {
            true => Vec::new(),
            false => self.measure(&tree)?,
        };
        let mut judged = Vec::new();
        for (((group, drawn), faulty), chosen) in
            self.groups.iter().zip(drawn).zip(faulty).zip(chosen)
        {
            let found = pool::each(THREADS, &chosen, |(number, mutant)| {
                if let Some(Some(known)) = fates.of(*number) {
                    return Ok(known);
                }
                let fate = try_mutant(*number, &measured, group.judges, self.least_seconds)?;
                eprintln!("mutants: {number} {}: {fate:?}", mutant.place());
                fates.add(*number, Some(&fate))?;
                Ok(fate)
            });
            let found = found.into_iter().collect::<io::Result<Vec<Fate>>>()?;
            let mutants = chosen
                .into_iter()
                .zip(found)
                .map(|((number, mutant), fate)| (number, mutant, fate));
            let mutants = mutants.collect();
            let Drawn { found, lines, .. } = drawn;
            judged.push(Judged { name: group.name, found, lines, faulty, mutants });
        }
        Ok(judged)
    }

    /// Builds the test programs and runs each without a mutant.
    fn measure(&self, tree: &Tree) -> io::Result<Vec<Measured>> {
        eprintln!("mutants: building the tests");
        let built = tree.build(&self.words)?;
        let judges: Vec<Program> = built.into_iter().filter(self.is_judge).collect();
        eprintln!("mutants: {} test programs without a mutant", judges.len());
        let measured = pool::each(THREADS, &judges, |program| Measured::new(program.clone()));
        measured.into_iter().collect()
    }

    /// Puts the mutants in and takes out those that do not compile, until the rest does; returns how many of each group
    /// those were.
    fn drop_faulty(
        &self,
        tree: &mut Tree,
        drawn: &mut [Drawn],
        fates: &Fates,
    ) -> io::Result<Vec<usize>> {
        let libraries: Vec<&str> = self.groups.iter().map(|group| group.library).collect();
        let packages: Vec<&str> = self.groups.iter().map(|group| group.package).collect();
        let before: Vec<usize> = drawn.iter().map(|drawn| drawn.mutants.len()).collect();
        for drawn in &mut *drawn {
            drawn.mutants.retain(|number, _| fates.of(*number) != Some(None));
        }
        for _ in 0..ROUNDS_MAX {
            let all: BTreeMap<usize, Mutant> =
                drawn.iter().flat_map(|drawn| drawn.mutants.clone()).collect();
            tree.put(&libraries, &all)?;
            eprintln!("mutants: checking whether {} compile", all.len());
            let faulty = tree.check(&packages)?;
            if faulty.is_empty() {
                let after = drawn.iter().map(|drawn| drawn.mutants.len());
                return Ok(before
                    .iter()
                    .zip(after)
                    .map(|(before, after)| before - after)
                    .collect());
            }
            for number in &faulty {
                fates.add(*number, None)?;
            }
            for drawn in &mut *drawn {
                drawn.mutants.retain(|number, _| !faulty.contains(number));
            }
        }
        Err(io::Error::other(format!("the copy does not build after {ROUNDS_MAX} rounds")))
    }
}

/// The crates of which all tests are run.
const OWN_TESTS: [&str; 4] = ["ssp", "term", "session", "streams"];

/// The simulations that judge what all others let live.
const SIMULATIONS: [&str; 3] = ["golden", "simulation", "streams_simulation"];

/// Test programs of the crates that take a minute and more.
const LONG: [&str; 7] =
    ["floods", "heavy", "long", "memory", "mutations", "predict_orders", "work"];

/// Errors hide others: those of a crate, and of a pass of the compiler, come before the next.
const ROUNDS_MAX: usize = 20;

/// Runs at a time.
const THREADS: usize = 2;

fn is_judge(program: &Program) -> bool {
    let name = program.name.as_str();
    match program.package.as_str() {
        "lab" => SIMULATIONS.contains(&name),
        // Its library's own tests: the others start real programs.
        "rove" => name == "rove",
        package => OWN_TESTS.contains(&package),
    }
}

fn is_asked(only: &[String], number: usize, mutant: &Mutant) -> bool {
    let asked =
        |place: &String| mutant.place().starts_with(place.as_str()) || *place == number.to_string();
    only.is_empty() || only.iter().any(asked)
}

#[cfg(test)]
mod tests;
