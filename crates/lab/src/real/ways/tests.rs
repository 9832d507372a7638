use serde_json::json;

use super::*;
use crate::net::lateness::Late;
use crate::real::experiment::check_recorded;

#[test]
fn the_recorded_result_is_made_again() {
    check_recorded("ways", &Ways { span: Duration::from_secs(120), rounds: 20, cases: Vec::new() });
}

#[test]
fn bars_are_judged() {
    let samples = |part: Part, program: &str, values: &[f64]| Samples {
        path: part.to_string(),
        program: program.to_owned(),
        values: values.to_vec(),
        unseen: 0,
        late: Late::default(),
    };
    let all = [
        samples(Part::Start, "ssh (cubic)", &[900.0; 3]),
        samples(Part::Start, ROVE, &[950.0, 990.0, 2_000.0]),
        samples(LOST, ROVE, &[10_000.0, 10_501.0]),
    ];
    let verdicts: Vec<_> = bars(&all).rows.iter().map(|row| row[1..].to_vec()).collect();
    let want = [
        vec![json!(90.0), json!(100.0), json!(3), json!("met")],
        vec![json!(10_501.0), json!(10_500.0), json!(2), json!("not met")],
    ];
    assert_eq!(verdicts, want);
}
