//! Tests that the recorded result is made again, and of the parts beside.

use super::*;
use crate::real::experiment::check_recorded;

#[test]
fn the_recorded_result_is_made_again() {
    let (span, contenders) = (Duration::from_secs(120), Vec::new());
    let keystroke = Keystroke { trips: &[], loads: &[], span, contenders };
    check_recorded("keystroke", &keystroke);
}
