//! Writes `src/width/table.bin`: `cargo run -p rove-term --example width_table`. `tests/width.rs` holds the checked-in
//! table against the same generator, and the versions in `src/width.rs` against the crates behind it.

mod generator;

fn main() -> std::io::Result<()> {
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/width/table.bin"), generator::table())
}
