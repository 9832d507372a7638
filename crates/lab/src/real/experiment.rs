//! Runs experiments on real programs, and writes what they found.
//!
//! An experiment says what to measure, measures one case with one seed, and makes tables and figures of the samples.
//! The loop over cases and seeds, failures and the results' files are here, once for all of them. Measuring touches
//! the machine; a report does not, so that a test can feed it samples.

use std::fmt;
use std::io;
use std::time::Duration;

use super::contender::Contender;
use super::outcome::{Outcome, Samples, joined};
use super::sessions::{OverLink, alone, estimate, together};
use super::{RealFlags, Setting};
use crate::experiments::report::Table;
use crate::net::lateness::Late;
use crate::plot::Figure;

/// One experiment, with the flags of its command applied.
pub(crate) trait Experiment: Sync {
    /// The unit of measurement: a path and a program, say. Failures are listed by its name.
    type Case: fmt::Display + Sync;
    /// The result of measuring a case once.
    type Sample: Send;

    /// Its command, the name of its files, and its title.
    fn title(&self) -> Title;

    /// The cases, in the order of the tables.
    fn cases(&self) -> Vec<Self::Case>;

    /// How often a case is measured, each time with the next seed.
    fn times(&self, flags: &RealFlags, _: &Self::Case) -> u32 {
        flags.times(1, 1)
    }

    /// How long one measurement of this case lasts, about, if several may run at the same time; `None` if each needs
    /// the machine for itself.
    fn lasts(&self, _: &Self::Case) -> Option<Duration> {
        None
    }

    /// Measures a case once.
    ///
    /// # Errors
    /// Why there is no sample; the results name it as a failure.
    fn measure(&self, case: &Self::Case, seed: u64) -> io::Result<OverLink<Self::Sample>>;

    /// Tables and figure, of the samples alone.
    fn report(&self, results: &[Measured<Self::Case, Self::Sample>]) -> Body;

    /// Why the numbers mean nothing, one line each: what must be found was not. The result is then invalid.
    fn doubts(&self, _: &[Measured<Self::Case, Self::Sample>]) -> Vec<String> {
        Vec::new()
    }

    /// How it was measured, for readers of the tables, one paragraph each.
    fn prose(&self) -> Vec<String>;
}

/// The names of an experiment.
pub(crate) struct Title {
    /// Its command.
    name: &'static str,
    /// The name of its files.
    file: &'static str,
    /// The title.
    title: String,
    /// The files and directories of its own that the numbers come from.
    depends: &'static [&'static str],
}

impl Title {
    /// `depends` are the files and directories of its own that the numbers come from, besides those of all
    /// experiments on real programs.
    pub(crate) fn new(
        name: &'static str,
        file: &'static str,
        title: impl Into<String>,
        depends: &'static [&'static str],
    ) -> Title {
        Title { name, file, title: title.into(), depends }
    }
}

/// The samples of a case, in the order of seeds; fewer than seeds where some failed.
pub(crate) struct Measured<C, S> {
    pub(crate) case: C,
    pub(crate) samples: Vec<S>,
    /// How late its links were, together.
    pub(crate) late: Late,
}

/// Tables and a figure.
pub(crate) struct Body {
    pub(crate) tables: Vec<Table>,
    pub(crate) figure: Figure,
}

/// A program over a path.
#[derive(Clone)]
pub(crate) struct Over<P> {
    pub(crate) path: P,
    pub(crate) contender: Contender,
}

impl<P: Clone> Over<P> {
    /// Each program over each path.
    pub(super) fn each(paths: &[P], contenders: &[Contender]) -> Vec<Over<P>> {
        let over = |path: &P| {
            let path = path.clone();
            let case = move |one: &Contender| Over { path: path.clone(), contender: one.clone() };
            contenders.iter().map(case)
        };
        paths.iter().flat_map(over).collect()
    }
}

impl<P: fmt::Display> fmt::Display for Over<P> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {}", self.contender.name, self.path)
    }
}

/// The values of each program over each path together; `values` finds those of one measurement, and how many of them
/// only say "no less than this".
pub(super) fn samples<P: fmt::Display, S>(
    results: &[Measured<Over<P>, S>],
    values: impl Fn(&S) -> (&[f64], usize),
) -> Vec<Samples> {
    joined(results.iter().filter(|one| !one.samples.is_empty()).map(|one| Samples {
        path: one.case.path.to_string(),
        program: one.case.contender.name.clone(),
        values: one.samples.iter().flat_map(|sample| values(sample).0).copied().collect(),
        unseen: one.samples.iter().map(|sample| values(sample).1).sum(),
        late: one.late.clone(),
    }))
}

/// Measures all cases, writes the results, and prints them. The exit status is that of [`Outcome::write`].
///
/// `notes` are added behind the experiment's own; they are taken when all is measured.
///
/// # Errors
/// If the results cannot be written.
pub(super) fn run<E: Experiment>(
    experiment: &E,
    flags: &RealFlags,
    notes: impl FnOnce(Setting) -> Vec<String>,
) -> io::Result<i32> {
    let Title { name, file, title, depends } = experiment.title();
    let cases = experiment.cases().into_iter();
    let mut results: Vec<_> =
        cases.map(|case| Measured { case, samples: Vec::new(), late: Late::default() }).collect();
    let (failures, ran) = measure_all(experiment, flags, &mut results);
    let Body { tables, figure } = experiment.report(&results);
    let doubts = experiment.doubts(&results);
    let late = results.iter().fold(Late::default(), |sum, one| sum.and(&one.late));
    let notes = [experiment.prose(), ran, notes(flags.setting())].concat();
    let count = |one: &Measured<E::Case, E::Sample>| one.samples.len();
    let times = results.iter().map(count).min().zip(results.iter().map(count).max());
    let times = times.unwrap_or_default();
    Outcome { name, file, title, notes, tables, figure, depends, times, late, failures, doubts }
        .write(flags)
}

/// Measures all cases: first some beside each other, then those that need the machine for themselves. Returns the
/// failures, and notes on how many ran at the same time.
fn measure_all<E: Experiment>(
    experiment: &E,
    flags: &RealFlags,
    results: &mut [Measured<E::Case, E::Sample>],
) -> (Vec<String>, Vec<String>) {
    let (mut beside, mut single): (Vec<_>, Vec<_>) =
        results.iter_mut().partition(|one| experiment.lasts(&one.case).is_some());
    let (mut failures, mut notes) = many_at_a_time(experiment, flags, &mut beside);
    failures.extend(one_at_a_time(experiment, flags, &mut single));
    if !beside.is_empty() && !single.is_empty() {
        let names: Vec<String> = single.iter().map(|one| one.case.to_string()).collect();
        notes.push(format!("One session at a time, with none beside it: {}.", names.join("; ")));
    } else if !single.is_empty() {
        notes.push("One session at a time.".to_owned());
    }
    (failures, notes)
}

/// Measures each case with each seed, since cases beside each other would measure the machine. Each seed goes round
/// all cases before the next, so that the machine's other work falls on all of them. Returns the failures.
fn one_at_a_time<E: Experiment>(
    experiment: &E,
    flags: &RealFlags,
    results: &mut [&mut Measured<E::Case, E::Sample>],
) -> Vec<String> {
    let times = |case: &E::Case| experiment.times(flags, case);
    let most = results.iter().map(|one| times(&one.case)).max().unwrap_or(0);
    let mut failures = Vec::new();
    for number in 0..most {
        let seed = flags.seed + u64::from(number);
        for one in results.iter_mut().filter(|one| number < times(&one.case)) {
            let result = alone(|| experiment.measure(&one.case, seed));
            failures.extend(one.add(result));
        }
    }
    failures
}

/// Measures some cases beside each other, those that are measured equally often in one round. Returns the failures,
/// and a note on each round.
fn many_at_a_time<E: Experiment>(
    experiment: &E,
    flags: &RealFlags,
    results: &mut [&mut Measured<E::Case, E::Sample>],
) -> (Vec<String>, Vec<String>) {
    let name = experiment.title().name;
    let times = |one: &Measured<E::Case, E::Sample>| experiment.times(flags, &one.case);
    let (mut failures, mut notes) = (Vec::new(), Vec::new());
    for round in results.chunk_by_mut(|a, b| times(a) == times(b)) {
        let count = times(round[0]);
        let seeds = flags.seed..flags.seed + u64::from(count);
        let items = round.iter().flat_map(|one| seeds.clone().map(|seed| (&one.case, seed)));
        let items: Vec<(&E::Case, u64)> = items.collect();
        let lasts = round.iter().filter_map(|one| experiment.lasts(&one.case)).max();
        estimate(name, flags, items.len(), lasts.unwrap_or_default());
        let measure = |(case, seed): &(&E::Case, u64)| experiment.measure(case, *seed);
        let (found, note) = together(name, flags, &items, measure);
        let mut found = found.into_iter();
        for one in round {
            let results = found.by_ref().take(count as usize);
            failures.extend(results.filter_map(|result| one.add(result)));
        }
        notes.push(note);
    }
    (failures, notes)
}

impl<C: fmt::Display, S> Measured<C, S> {
    /// Adds a result; returns what to say of it if it is a failure.
    fn add(&mut self, result: io::Result<OverLink<S>>) -> Option<String> {
        match result {
            Ok(OverLink { found, late }) => {
                self.samples.push(found);
                self.late = std::mem::take(&mut self.late).and(&late);
                None
            }
            Err(error) => Some(format!("{}: {error}", self.case)),
        }
    }
}

/// A recorded result of the repository.
#[cfg(test)]
pub(super) fn recorded(file: &str) -> serde_json::Value {
    let path = format!("{}/../../results/{file}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Checks that an experiment makes the command, the title and the prose of its recorded result again, and tables of
/// the same captions and columns; returns the result.
#[cfg(test)]
pub(super) fn check_recorded<E: Experiment>(file: &str, experiment: &E) -> serde_json::Value {
    let result = recorded(file);
    let title = experiment.title();
    assert_eq!((title.file, result["title"].as_str()), (file, Some(&*title.title)));
    let command = result["command"].as_str().unwrap();
    assert!(command.starts_with(&format!("rove-lab {} --", title.name)), "{command}");
    let prose = experiment.prose();
    assert_eq!(result["notes"].as_array().unwrap()[..prose.len()], prose);
    let head =
        |table: &serde_json::Value| ["caption", "columns", "keys"].map(|key| table[key].clone());
    let tables = experiment.report(&[]).tables;
    let tables: Vec<_> = tables.iter().map(|table| head(&table.to_json())).collect();
    let known = result["tables"].as_array().unwrap().iter().map(head);
    assert_eq!(known.collect::<Vec<_>>(), tables, "{file}");
    result
}

#[cfg(test)]
mod tests;
