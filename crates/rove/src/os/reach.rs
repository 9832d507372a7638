//! What a thread of a client keeps when it is confined.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// The access that a thread keeps once the session has begun, besides its open files.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reach {
    /// Sockets of UDP.
    Datagrams,
    /// The targets of the forwardings that it serves.
    Named(Named),
    /// Name look-ups, and sockets of any kind.
    Connections,
}

/// The needs of forwardings besides their channels and listening sockets.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Named {
    /// Unix sockets that listen here: their files are removed at the end.
    pub places: Vec<PathBuf>,
    /// The TCP ports to connect to.
    pub ports: Ports,
    /// Whether host names are looked up.
    pub names: bool,
    /// Whether Unix sockets are connected to. The kernel cannot tell them apart by path.
    pub unix: bool,
}

/// TCP ports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ports {
    /// These.
    These(BTreeSet<u16>),
    /// All: SOCKS asks for any.
    All,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports::These(BTreeSet::new())
    }
}
