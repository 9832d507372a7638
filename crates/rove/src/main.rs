//! `rove`: see the library.
fn main() {}
