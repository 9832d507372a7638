//! State synchronization over sealed datagrams: keeps an object on one host in step with its copy on
//! another, over datagrams that may be lost, reordered, replayed, or come from a new address.
//!
//! The parts, from the outside in: an [`Endpoint`] keeps one [`State`] of ours in step at the peer and
//! holds the newest of the peer's. It is a [`Machine`]: told the time, handed datagrams, asked what to
//! send. Its envelope is a [`Wire`]; its constants are a [`Timing`].
#![forbid(unsafe_code)]

mod endpoint;
mod instruction;
mod machine;
mod path;
mod receiver;
mod recovery;
mod rng;
mod sender;
pub mod state;
mod stats;
mod time;
mod timing;
pub mod wire;

pub use endpoint::{Config, Endpoint, Event, Failure};
pub use instruction::assembly::{ASSEMBLY_BYTES_MAX, Assembler};
pub use instruction::extensions::Announcement;
pub use instruction::fragment::{Fragment, FragmentId, Parity, Piece, fragments};
pub use instruction::parity::protect;
pub use instruction::{Instruction, MESSAGE_BYTES_MAX};
pub use machine::{Arrival, Machine, Reject, Transmit};
pub use recovery::rtt::RttEstimator;
pub use rng::Rng;
pub use state::{Applied, BadDiff, State, StateNum};
pub use stats::{Rejected, Stats, Traffic, Usage};
pub use time::{Stamp, Time};
pub use timing::{Acks, AdaptiveTiming, Prospect, Ratio, Reference, SendPolicy, Timing};
pub use wire::mosh::key::{Key, KeyError};
pub use wire::mosh::{MoshWire, Used};
pub use wire::native::{
    ConnId, Context, KeyPair, NativeWire, PublicKeyOctets, SessionSecrets, WeakKey,
};
pub use wire::{
    Announce, Control, Envelope, Exhausted, Flags, Header, Report, Role, Seq, Stamps, Wire,
};
