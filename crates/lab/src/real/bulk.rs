//! `rove-lab bulk`: how fast files go over long, fat, lossy pipes, what that costs both machines, and what it does to
//! everybody beside it. scp over CUBIC and BBR, HPN-SSH's if it is there, `rove cp`, and a pipe into `rove exec`. Each
//! part is an experiment with files of its own.

mod ciphers;
mod copier;
mod copy;
mod flow;
mod goodput;
mod keys;
mod loopback;
mod outages;
mod shares;
mod tree;

use std::io;

use clap::{Args, ValueEnum};

use super::RealFlags;

/// Files over long, fat, lossy pipes
#[derive(Args, Clone, Debug)]
pub(crate) struct BulkFlags {
    /// What is measured; all of it without any
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
    #[command(flatten)]
    real: RealFlags,
}

/// What is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// Copies over 200 Mbit/s at 100 ms and 400 Mbit/s at 60 ms that lose 0 to 5 %, before them queues of 1 BDP
    Goodput,
    /// The same with queues of 0.1 BDP
    Shallow,
    /// Copies over loopback
    Loopback,
    /// Keys at a shell, while the same session or another program fills the path
    Keys,
    /// ssh's ciphers at 40 ms
    Ciphers,
    /// A copy beside one TCP connection, over CUBIC and BBR
    Shares,
    /// Many small files
    Files,
    /// A minute without a network, and a new address, in the middle of a copy
    Outages,
}

/// Runs the parts asked for.
///
/// # Errors
/// If there can be no links here, or the results cannot be written.
pub(crate) fn run(flags: &BulkFlags) -> io::Result<i32> {
    let mut status = 0;
    for part in Part::value_variants() {
        if flags.parts.is_empty() || flags.parts.contains(part) {
            let run = match part {
                Part::Goodput => goodput::run,
                Part::Shallow => goodput::run_shallow,
                Part::Loopback => loopback::run,
                Part::Keys => keys::run,
                Part::Ciphers => ciphers::run,
                Part::Shares => shares::run,
                Part::Files => tree::run,
                Part::Outages => outages::run,
            };
            status = status.max(run(&flags.real)?);
        }
    }
    Ok(status)
}
