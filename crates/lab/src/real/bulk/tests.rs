//! Tests that the recorded results are made again, and of the command lines.

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
fn rows<E: Experiment<Sample = Copied>>(experiment: &E, samples: &[&[Copied]]) -> Vec<Vec<Value>> {
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
