//! The file of a Unix socket: there is none here.

use std::convert::Infallible;

/// There is none.
#[derive(Debug)]
pub(crate) struct SocketFile {
    _none: Infallible,
}
