//! The system that this program is built for: what each system has in its own way. With `os/family`, which has what all
//! of a family have, the one place that chooses.

#[cfg(any(target_os = "macos", target_os = "freebsd"))]
pub(crate) use super::bsd::{
    clock, files, logins, memory, process, route as changes, sockets, terminal, udp,
};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use super::linux::sandbox;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use super::linux::{
    clock, files, logins, memory, netlink as changes, process, sockets, terminal, udp,
};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use super::unconfined as sandbox;
#[cfg(windows)]
pub(crate) use super::windows::{clock, files, memory, process, udp};
