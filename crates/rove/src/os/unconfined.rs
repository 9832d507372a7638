//! Confines the client of a session: not on this system. macOS has `sandbox_init`, whose profiles Apple does not document;
//! FreeBSD has Capsicum, under which no socket is opened any more, as a client that roams must; Windows restricts a token
//! for a new process alone.

use std::fmt;

pub use crate::os::reach::{Named, Ports, Reach};

/// The result of confining.
#[derive(Clone, Copy, Debug)]
pub struct Confined;

impl Confined {
    /// Whether this system does all of it: never.
    pub(crate) fn is_whole(&self) -> bool {
        false
    }
}

impl fmt::Display for Confined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no: this system has no way to")
    }
}

/// Does nothing.
pub fn confine_all(_: &Reach) -> Confined {
    Confined
}

/// Does nothing.
pub fn confine(_: &Reach) -> Confined {
    Confined
}
