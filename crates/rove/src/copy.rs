//! `rove cp`: files between two machines over one byte stream in each direction.
//!
//! Both ends run the same code: a sender lists and sends, a receiver decides and asks. Neither
//! knows the transport, nor which of them is the client.

pub(crate) mod buggify;
pub(crate) mod outgoing;
mod source;
pub(crate) mod transfer;

pub(crate) mod client;
pub(crate) mod disk;
mod hashed;
pub(crate) mod held;
pub(crate) mod location;
mod lock_wait;
pub(crate) mod message;
pub(crate) mod name;
pub(crate) mod order;
mod part;
pub(crate) mod pipe;
pub(crate) mod plan;
pub(crate) mod receiver;
pub(crate) mod relay;
pub(crate) mod sender;
mod show;
mod target;
mod transfer_error;
mod walk;
pub(crate) mod watch;
pub(crate) mod workers;

pub use self::target::Expected;
pub use self::walk::Sources;
