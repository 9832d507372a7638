use super::*;
use crate::net::lateness::Late;
use crate::real::experiment::check_recorded;

#[test]
fn the_recorded_result_is_made_again() {
    check_recorded("attach", &Attach { span: Duration::from_secs(120), cases: Vec::new() });
}

#[test]
fn bars_are_judged() {
    let samples = |part: Part, values: &[f64]| Samples {
        path: part.to_string(),
        program: "rove".to_owned(),
        values: values.to_vec(),
        unseen: 0,
        late: Late::default(),
    };
    let all = [
        samples(Part::Return, &[700.0, 1_999.0]),
        samples(ALONE, &[20.0; 100]),
        samples(BESIDE, &[21.5; 100]),
        samples(LIST, &[100.0]),
    ];
    let verdicts: Vec<_> =
        bars(&all, Some(900.0)).rows.iter().map(|row| row.last().cloned().unwrap()).collect();
    assert_eq!(verdicts, ["met", "not met", "met", "met"]);
}
