//! Runs experiments that measure one case at a time, and writes what they found.
//!
//! An experiment says what to measure, measures one case with one seed, and makes tables and figures of the samples.
//! The loop over cases and seeds, failures and the results' files are here, once for all of them. Measuring touches
//! the machine; a report does not, so that a test can feed it samples.

use std::fmt;
use std::io;

use super::outcome::Outcome;
use super::{OverLink, RealFlags, Setting};
use crate::experiments::report::Table;
use crate::net::lateness::Late;
use crate::plot::Figure;

/// One experiment, with the flags of its command applied.
pub(super) trait Experiment {
    /// The unit of measurement: a path and a program, say. Failures are listed by its name.
    type Case: fmt::Display;
    /// The result of measuring a case once.
    type Sample: OverLink;

    /// Its command, the name of its files, and its title.
    fn title(&self) -> Title;

    /// The cases, in the order of the tables.
    fn cases(&self) -> Vec<Self::Case>;

    /// How often each case is measured, each time with the next seed.
    fn times(&self, flags: &RealFlags) -> u32 {
        flags.times(1, 1)
    }

    /// Measures a case once.
    ///
    /// # Errors
    /// Why there is no sample; the results name it as a failure.
    fn measure(&self, case: &Self::Case, seed: u64) -> io::Result<Self::Sample>;

    /// Tables and figure, of the samples alone.
    fn report(&self, results: &[Measured<Self::Case, Self::Sample>]) -> Body;

    /// How it was measured, for readers of the tables.
    fn prose(&self) -> String;
}

/// The names of an experiment.
pub(super) struct Title {
    /// Its command.
    pub(super) name: &'static str,
    /// The name of its files.
    pub(super) file: &'static str,
    /// The title.
    pub(super) title: String,
}

/// The samples of a case, in the order of seeds; fewer than seeds where some failed.
pub(super) struct Measured<C, S> {
    pub(super) case: C,
    pub(super) samples: Vec<S>,
}

/// Tables and a figure.
pub(super) struct Body {
    pub(super) tables: Vec<Table>,
    pub(super) figure: Figure,
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
    let (mut late, mut failures) = (Late::default(), Vec::new());
    let cases = experiment.cases().into_iter();
    let mut results: Vec<_> = cases.map(|case| Measured { case, samples: Vec::new() }).collect();
    // One at a time: cases beside each other would measure the machine. Each seed goes round all cases before the
    // next, so that the machine's other work falls on all of them.
    for seed in flags.seed..flags.seed + u64::from(experiment.times(flags)) {
        for Measured { case, samples } in &mut results {
            match experiment.measure(case, seed) {
                Ok(sample) => {
                    late = late.and(sample.late());
                    samples.push(sample);
                }
                Err(error) => failures.push(format!("{case}: {error}")),
            }
        }
    }
    let Title { name, file, title } = experiment.title();
    let Body { tables, figure } = experiment.report(&results);
    let mut all_notes = vec![experiment.prose()];
    all_notes.extend(notes(flags.setting()));
    Outcome { name, file, title, notes: all_notes, tables, figure, late, failures }.write(flags)
}

/// One paragraph of text/, its lines joined, with each `{name}` replaced by its value.
pub(super) fn filled(text: &str, values: &[(&str, &dyn fmt::Display)]) -> String {
    let mut paragraph = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    for (name, value) in values {
        paragraph = paragraph.replace(&format!("{{{name}}}"), &value.to_string());
    }
    paragraph
}

/// A recorded result of the repository.
#[cfg(test)]
pub(super) fn recorded(file: &str) -> serde_json::Value {
    let path = format!("{}/../../results/{file}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_joined_and_filled() {
        let text = "For {seconds} s\nof {seconds}: {what}.\n";
        assert_eq!(filled(text, &[("seconds", &12), ("what", &"all")]), "For 12 s of 12: all.");
    }
}
