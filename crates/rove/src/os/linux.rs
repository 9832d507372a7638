//! The calls that only Linux has.

pub(crate) mod clock;
pub(crate) mod files;
pub(crate) mod netlink;
pub(crate) mod sandbox;
