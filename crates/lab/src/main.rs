//! `rove-lab`, the program.

use std::process::ExitCode;

fn main() -> ExitCode {
    rove_lab::main()
}
