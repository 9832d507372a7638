//! Tests that the recorded result is made again, and of the parts beside.

use super::*;
use crate::real::experiment::check_recorded;

#[test]
fn the_recorded_result_is_made_again() {
    check_recorded("aoi", &Age { span: Duration::from_secs(120), cases: Vec::new() });
}
