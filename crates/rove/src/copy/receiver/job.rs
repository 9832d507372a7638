//! What a receiver is to do.

use crate::copy::disk::Disk;
use crate::copy::order::Receive;
use crate::copy::target::Expected;
use crate::copy::workers::Workers;

/// The job of a receiver.
#[derive(Clone, Debug)]
pub struct Job {
    /// The target, absolute or from the current directory.
    pub target: Vec<u8>,
    /// The options.
    pub receive: Receive,
    /// The names that each source may have; empty if the sender is the user's own end.
    pub expected: Vec<Expected>,
    /// Permissions to withhold, unless the source's are kept.
    pub umask: u32,
    /// The disk to write with.
    pub disk: Disk,
    /// Where the work is done.
    pub workers: Workers,
    /// Whether the sender is told which file waits for another copy.
    pub waits: Waits,
}

/// Whether the other end is told of waits. An older one does not know the message.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Waits {
    /// It is.
    Told,
    /// It is not.
    #[default]
    Silent,
}
