//! `rove`: see the library.

fn main() -> std::process::ExitCode {
    rove::main()
}
