//! State synchronization over sealed datagrams: keeps an object on one host in step with its copy on
//! another, over datagrams that may be lost, reordered, replayed, or come from a new address.
//!
//! The parts, from the outside in: an [`Endpoint`] keeps one [`State`] of ours in step at the peer and
//! holds the newest of the peer's. It is a [`Machine`]: told the time, handed datagrams, asked what to
//! send. Its envelope is a [`Wire`]; its constants are a [`Timing`].
#![forbid(unsafe_code)]

mod announce;
mod assembly;
mod blame;
mod datagram;
mod endpoint;
mod flight;
mod fragment;
mod hurry;
mod instruction;
mod key;
mod machine;
mod meter;
mod mtu;
mod pacer;
mod parity;
mod proof;
mod receiver;
mod rng;
mod rtt;
mod sender;
mod sent;
pub mod state;
mod stats;
mod time;
mod timing;
mod window;
pub mod wire;

pub use announce::Announcement;
pub use assembly::{ASSEMBLY_BYTES_MAX, Assembler};
pub use endpoint::{Config, Endpoint, Event, Failure};
pub use fragment::{Fragment, FragmentId, Parity, Piece, fragments};
pub use instruction::{Instruction, MESSAGE_BYTES_MAX};
pub use key::{Key, KeyError};
pub use machine::{Arrival, Machine, Reject, Transmit};
pub use parity::protect;
pub use rng::Rng;
pub use rtt::Rtt;
pub use state::{Applied, BadDiff, State, StateNum};
pub use stats::{Held, Rejected, Stats, Traffic};
pub use time::{Stamp, Time};
pub use timing::{Acks, Eager, Pacing, Prospect, Ratio, Reference, Timing};
pub use wire::mosh::{MoshWire, Used};
pub use wire::native::{
    ConnId, Context, KeyPair, NativeWire, PublicKeyOctets, SessionSecrets, WeakKey,
};
pub use wire::{
    Announce, Control, Envelope, Exhausted, Flags, Header, Report, Role, Seq, Stamps, Wire,
};
