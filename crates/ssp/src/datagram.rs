//! Datagram sizes (skeleton).
/// How large datagrams may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Room(usize);
