//! Tests that the recorded result is made again, and of the parts beside.

use super::*;
use crate::net::lateness::Late;
use crate::real::contender::Kind;
use crate::real::experiment::check_recorded;

#[test]
fn the_recorded_result_is_made_again() {
    let span = Duration::from_secs(3_600);
    let server = Server { span, lines: 400_000, cats: 5, cases: Vec::new() };
    let result = check_recorded("server", &server);
    let rows = result["tables"][0]["rows"].as_array().unwrap();
    let results: Vec<_> = rows.iter().map(|row| measured(row, span)).collect();
    assert_eq!(result["tables"][0], server.report(&results).tables[0].to_json());
}

/// A session with the numbers of a recorded row.
fn measured(row: &Value, span: Duration) -> Measured<Over<&'static str>, Footprint> {
    let number = |column: usize| row[column].as_f64().unwrap();
    let (mb, minutes) = (number(1), span.as_secs_f64() / 60.0);
    let one = Footprint {
        megabytes: mb,
        cat_ms: vec![1e3 * mb / number(2)],
        cat_cpu: [number(3), number(4)].map(|ms| ms * mb / 1e3),
        memory: vec![(0.0, [number(5), number(7)]), (60.0, [number(6), number(8)])],
        hour_cpu: [number(9), number(10)].map(|ms| ms * minutes / 1e3),
    };
    let name = row[0].as_str().unwrap().to_owned();
    let contender = Contender { name, kind: Kind::Mosh };
    let case = Over { path: "20 ms", contender };
    Measured { case, samples: vec![one], late: Late::default() }
}
