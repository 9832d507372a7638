//! `rove cp`: files between two machines over one byte stream in each direction.
//!
//! Both ends run the same code: a sender lists and sends, a receiver decides and asks. Neither
//! knows what carries the octets, nor which of them is the client.

pub mod outgoing;
mod source;
pub mod transfer;

pub mod client;
pub mod disk;
mod hashed;
pub mod location;
pub mod message;
pub mod name;
pub mod order;
mod part;
pub mod pipe;
pub mod receiver;
pub mod relay;
pub mod sender;
mod service;
mod show;
mod target;
mod walk;
pub mod watch;

pub use self::service::serve;
pub use self::target::Expected;
pub use self::walk::Sources;
