//! `rove-lab bulk`: measures copies over long, fat, lossy pipes: their speed, their processor time at both ends,
//! and their effect on other traffic. It compares scp over CUBIC and BBR, HPN-SSH's scp if installed, `rove cp`,
//! and a pipe into `rove exec`. Each part is an experiment with files of its own.

mod ciphers;
mod copier;
mod copy;
mod goodput;
mod keys;
mod loopback;
mod outages;
mod shares;
mod tree;

use std::io;

use clap::{Args, ValueEnum};

use ciphers::Ciphers;
use copier::notes;
use goodput::{Goodput, Queue};
use keys::Keys;
use loopback::Loopback;
use outages::Outages;
use shares::Shares;
use tree::Files;

use super::{RealFlags, experiment};

/// Files over long, fat, lossy pipes
#[derive(Args, Clone, Debug)]
pub(crate) struct BulkFlags {
    /// The parts to measure; all of them if none is named
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Part>,
    #[command(flatten)]
    real: RealFlags,
}

/// A part of the measurements.
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
            status = status.max(part.run(&flags.real)?);
        }
    }
    Ok(status)
}

impl Part {
    fn run(self, flags: &RealFlags) -> io::Result<i32> {
        match self {
            Part::Goodput => experiment::run(&Goodput::new(flags, Queue::Full)?, flags, notes),
            Part::Shallow => experiment::run(&Goodput::new(flags, Queue::Shallow)?, flags, notes),
            Part::Loopback => experiment::run(&Loopback::new(flags)?, flags, notes),
            Part::Keys => experiment::run(&Keys::new(flags), flags, notes),
            Part::Ciphers => experiment::run(&Ciphers::new(flags)?, flags, notes),
            Part::Shares => experiment::run(&Shares::new(flags), flags, notes),
            Part::Files => experiment::run(&Files::new(flags)?, flags, notes),
            Part::Outages => experiment::run(&Outages::new(flags)?, flags, notes),
        }
    }
}

#[cfg(test)]
mod tests;
