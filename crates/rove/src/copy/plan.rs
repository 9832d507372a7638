//! The paths of a copy and its options.

use std::process::ExitCode;
use std::time::Duration;

use rove_streams::Streams;

use crate::copy::order::Receive;

/// The paths to copy, and how.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// Paths at the source.
    pub sources: Vec<Vec<u8>>,
    /// A path at the destination.
    pub target: Vec<u8>,
    /// How to write what is received.
    pub receive: Receive,
    /// Limit in octets a second; 0 for none.
    pub limit: u64,
    /// How to show progress.
    pub style: Style,
    /// How long a host may be silent before the copy ends.
    pub give_up: Duration,
}

/// A host that files go to or come from.
#[derive(Clone, Copy)]
pub struct Host<'a> {
    /// Its name before paths there.
    pub name: &'a str,
    /// The session with it.
    pub streams: &'a Streams,
}

/// The direction of the files.
#[derive(Clone, Copy)]
pub enum Direction<'a> {
    /// To the host.
    There(Host<'a>),
    /// From it.
    Here(Host<'a>),
    /// From one host to another, through this machine.
    Between {
        /// The host that has them.
        from: Host<'a>,
        /// The host that gets them.
        to: Host<'a>,
    },
}

/// The result of a copy, the worst last.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Status {
    /// Everything was copied.
    Copied,
    /// Something failed and was reported.
    Failed,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        match status {
            Status::Copied => ExitCode::SUCCESS,
            Status::Failed => ExitCode::FAILURE,
        }
    }
}

impl<'a> Direction<'a> {
    pub(super) fn hosts(&self) -> impl Iterator<Item = Host<'a>> + use<'a> {
        let (one, other) = match *self {
            Direction::There(host) | Direction::Here(host) => (host, None),
            Direction::Between { from, to } => (from, Some(to)),
        };
        std::iter::once(one).chain(other)
    }

    /// The host that gets the files; `None` for this machine.
    pub(super) fn to(&self) -> Option<Host<'a>> {
        match *self {
            Direction::There(to) | Direction::Between { to, .. } => Some(to),
            Direction::Here(_) => None,
        }
    }
}

/// How much to show, and in which form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    /// A bar on a terminal, else lines.
    Usual,
    /// Failures only.
    Quiet,
    /// JSON on standard output.
    Json,
}
