//! `rove-lab bulk`: measures copies over long, fat, lossy pipes: their speed, their processor time at both ends,
//! and their effect on other traffic. It compares scp over CUBIC and BBR, HPN-SSH's scp if installed, `rove cp`,
//! and a pipe into `rove exec`. Each part is an experiment with files of its own.

mod ciphers;
mod copier;
mod copy;
mod goodput;
mod keys;
mod loopback;
mod outages;
mod shares;
mod tree;

use std::io;

use clap::{Args, ValueEnum};

use ciphers::Ciphers;
use copier::notes;
use goodput::{Goodput, Queue};
use keys::Keys;
use loopback::Loopback;
use outages::Outages;
use shares::Shares;
use tree::Files;

use super::{RealFlags, experiment};

/// Files over long, fat, lossy pipes
#[derive(Args, Clone, Debug)]
pub(crate) struct BulkFlags {
    /// The parts to measure; all of them if none is named
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
    #[command(flatten)]
    real: RealFlags,
}

/// A part of the measurements.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// Copies over 200 Mbit/s at 100 ms and 400 Mbit/s at 60 ms that lose 0 to 5 %, before them queues of 1 BDP
    Goodput,
    /// The same with queues of 0.1 BDP
    Shallow,
    /// Copies over loopback
    Loopback,
    /// Keys at a shell, while the same session or another program fills the path
    Keys,
    /// ssh's ciphers at 40 ms
    Ciphers,
    /// A copy beside one TCP connection, over CUBIC and BBR
    Shares,
    /// Many small files
    Files,
    /// A minute without a network, and a new address, in the middle of a copy
    Outages,
}

/// Runs the parts asked for.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &BulkFlags) -> io::Result<i32> {
    let mut status = 0;
    for part in Part::value_variants() {
        if flags.parts.is_empty() || flags.parts.contains(part) {
            status = status.max(part.run(&flags.real)?);
        }
    }
    Ok(status)
}

impl Part {
    fn run(self, flags: &RealFlags) -> io::Result<i32> {
        match self {
            Part::Goodput => experiment::run(&Goodput::new(flags, Queue::Full)?, flags, notes),
            Part::Shallow => experiment::run(&Goodput::new(flags, Queue::Shallow)?, flags, notes),
            Part::Loopback => experiment::run(&Loopback::new(flags)?, flags, notes),
            Part::Keys => experiment::run(&Keys::new(flags), flags, notes),
            Part::Ciphers => experiment::run(&Ciphers::new(flags)?, flags, notes),
            Part::Shares => experiment::run(&Shares::new(flags), flags, notes),
            Part::Files => experiment::run(&Files::new(flags)?, flags, notes),
            Part::Outages => experiment::run(&Outages::new(flags)?, flags, notes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use serde_json::{Value, json};

    use super::copy::{Copied, Ending};
    use super::*;
    use crate::experiments::report::Table;
    use crate::net::lateness::Late;
    use crate::real::experiment::{Experiment, Measured, check_recorded, recorded};

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        bulk: BulkFlags,
    }

    /// The flags of a recorded result's command.
    fn flags(result: &Value) -> RealFlags {
        let command = result["command"].as_str().unwrap();
        let words = command.strip_prefix("rove-lab ").unwrap().split(' ');
        Command::parse_from(words).bulk.real
    }

    fn check<E: Experiment>(file: &str, make: impl Fn(&RealFlags) -> E) {
        let flags = flags(&recorded(file));
        let result = check_recorded(file, &make(&flags));
        assert_eq!(result["notes"][1], notes(flags.setting())[0]);
    }

    #[test]
    fn recorded_prose_and_columns_are_made_again() {
        check("bulk", |flags| Goodput::new(flags, Queue::Full).unwrap());
        check("bulk-shallow", |flags| Goodput::new(flags, Queue::Shallow).unwrap());
        check("bulk-loopback", |flags| Loopback::new(flags).unwrap());
        check("bulk-keys", Keys::new);
        check("bulk-ciphers", |flags| Ciphers::new(flags).unwrap());
        check("bulk-shares", Shares::new);
        check("bulk-files", |flags| Files::new(flags).unwrap());
        check("bulk-outages", |flags| Outages::new(flags).unwrap());
    }

    /// A copy that took this many seconds, and this processor time for 10^9 octets at each end.
    fn copied(bytes: u64, seconds: f64, cpu: Option<[f64; 2]>) -> Copied {
        Copied {
            bytes,
            span: Duration::from_secs_f64(seconds),
            ending: Ending::Whole,
            cpu: cpu.map(|cpu| cpu.map(|each| each * bytes as f64 / 1e9)),
            pings: vec![99.0, 100.0, 101.0],
        }
    }

    /// Rows of a report on these copies, each by the program of that number.
    fn rows<E: Experiment<Sample = Copied>>(
        experiment: &E,
        samples: &[&[Copied]],
    ) -> Vec<Vec<Value>> {
        let measured = |(case, samples): (E::Case, &&[Copied])| Measured {
            case,
            samples: samples.to_vec(),
            late: Late::default(),
        };
        let all = experiment.cases().into_iter().zip(samples);
        let results: Vec<_> = all.map(measured).collect();
        let [first, again]: [Vec<Table>; 2] = [(); 2].map(|()| experiment.report(&results).tables);
        assert_eq!(first[0].rows, again[0].rows, "a report is of the samples alone");
        first.into_iter().next().unwrap().rows
    }

    fn full() -> RealFlags {
        flags(&json!({"command": "rove-lab bulk"}))
    }

    #[test]
    fn files_are_scaled_and_compared_with_scp() {
        let scp = copied(200 * 4_096, 80.0, Some([361.44, 296.63]));
        let rove = copied(100_000 * 4_096, 40.0, None);
        let rows = rows(&Files::new(&full()).unwrap(), &[&[scp], &[], &[rove], &[]]);
        assert_eq!(
            rows,
            [
                json!(["scp -r", 200, "yes", 80.0, 2.5, 40_000.0, 1.0, 361.44, 296.63, null]),
                json!([
                    "rove cp -r",
                    100_000,
                    "yes",
                    40.0,
                    2_500.0,
                    40.0,
                    1_000.0,
                    null,
                    null,
                    "holds"
                ]),
            ]
            .map(|row| row.as_array().unwrap().clone())
        );
    }

    #[test]
    fn medians_of_a_cipher_are_its_row() {
        let ciphers = Ciphers::new(&full()).unwrap();
        let name = &ciphers.cases()[0].name;
        let samples = [1.0, 2.0, 4.0].map(|seconds| copied(125_000_000, seconds, Some([1.0, 0.5])));
        let rows = rows(&ciphers, &[&samples]);
        assert_eq!(rows, [json!([name, 3, 500.0, 1.0, 0.5, 1.5]).as_array().unwrap().clone()]);
    }
}
