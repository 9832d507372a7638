//! `rove-lab`: virtual time, emulated links and experiments.
fn main() {}
