//! Memory under endless input. Alone in its process, so that nothing else grows.

mod inputs;

use inputs::INPUTS;
use rove_term::{Dialect, Size, Terminal};

/// Mebibytes written before and while memory is looked at.
const BEFORE: usize = 3;
const AFTER: usize = 12;
/// What they may add. History and tables fill up to limits of this order.
const GROWTH_KIB_MAX: u64 = 8 << 10;

/// Resident memory in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
fn memory_stays_flat() {
    for input in INPUTS {
        let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
        let mut pieces = input.pieces();
        let mut write = |mebibytes: usize| {
            for piece in pieces.by_ref().take(mebibytes) {
                terminal.advance(&piece);
            }
        };
        write(BEFORE);
        let before = resident();
        write(AFTER);
        let grown = resident().saturating_sub(before);
        assert!(grown < GROWTH_KIB_MAX, "{}: {grown} KiB", input.name);
    }
}
