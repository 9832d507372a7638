//! Prints `src/width/table.rs`: `cargo run -p rove-term --example width_table > crates/term/src/width/table.rs`.
//! `tests/width.rs` holds the checked-in table against the same generator.

mod generator;

fn main() {
    print!("{}", generator::table());
}
