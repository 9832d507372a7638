//! Tests that the recorded result is made again, and of the parts beside.

use super::*;
use crate::predict::trace::casts_in;
use crate::real::experiment::check_recorded;

#[test]
fn the_recorded_result_is_made_again() {
    let directory = format!("{}/traces/keystrokes", env!("CARGO_MANIFEST_DIR"));
    let traces = casts_in(Path::new(&directory)).unwrap();
    let traces: Vec<Trace> = traces.iter().map(|path| Trace::load(path).unwrap()).collect();
    let paper = Paper {
        span: Duration::from_secs(30),
        tail: TAIL,
        congestion: "cubic",
        accesses: Vec::new(),
        contenders: Vec::new(),
        recordings: vec![Arc::new((PathBuf::new(), traces[0].clone()))],
        claims: Some(claims::table(&traces).unwrap()),
    };
    check_recorded("paper", &paper);
}
