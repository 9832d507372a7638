//! Tests that the recorded result is made again, and of the parts beside.

use super::*;
use crate::real::experiment::check_recorded;

#[test]
fn the_recorded_result_is_made_again() {
    let (points, contenders) = (Vec::new(), Vec::new());
    let losses = Losses { span: Duration::from_secs(120), tail: TAIL, points, contenders };
    check_recorded("cs244", &losses);
}
