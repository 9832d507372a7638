//! State synchronization over sealed datagrams: keeps an object on one host in step with its copy on
//! another, over datagrams that may be lost, reordered, replayed, or come from a new address.
//!
//! The parts, from the outside in: an [`Endpoint`] keeps one [`State`] of ours in step at the peer and
//! holds the newest of the peer's. It is a [`Machine`]: told the time, handed datagrams, asked what to
//! send. Its envelope is a [`Wire`]; its constants are a [`Timing`].
//!
//! ```
//! // Two ends keep a page in step over a link that loses every third datagram.
//! use rove_ssp::{
//!     Arrival, BadDiff, Config, Endpoint, Key, Machine, MoshWire, Outbox, Remote, Role, State, Time,
//!     Timing,
//! };
//!
//! #[derive(Clone, Debug, Default, PartialEq)]
//! struct Page(Vec<u8>);
//!
//! impl State for Page {
//!     fn diff_from(&self, base: &Page, out: &mut Vec<u8>) {
//!         if self != base {
//!             out.extend_from_slice(&self.0);
//!         }
//!     }
//!     fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
//!         self.0 = diff.to_vec();
//!         Ok(())
//!     }
//!     fn weight(&self) -> usize {
//!         self.0.capacity()
//!     }
//! }
//!
//! let addresses = ["192.0.2.1:60001", "192.0.2.2:60001"].map(|text| text.parse().unwrap());
//! let end = |role, peer| {
//!     let wire = Box::new(MoshWire::new(Key::from_bytes([7; 16]), role));
//!     let (local, remote) = (Page::default(), Page::default());
//!     let timing = Timing::ROVE_TO_STOCK;
//!     Endpoint::new(Time::ZERO, Config { role, wire, timing, peer, local, remote, seed: 1 })
//! };
//! let mut client = end(Role::Client, Some(addresses[1]));
//! let mut server = end(Role::Server, None);
//! let (mut sent, mut out) = (0, Outbox::default());
//! for millis in 0..5_000 {
//!     let now = Time::from_millis(millis);
//!     if millis % 100 == 0 {
//!         client.update(now, |page| page.0 = format!("version {}", millis / 100).into_bytes());
//!     }
//!     for (place, from) in addresses.into_iter().enumerate() {
//!         let (here, there): (&mut dyn Machine, &mut dyn Machine) = match place {
//!             0 => (&mut client, &mut server),
//!             _ => (&mut server, &mut client),
//!         };
//!         while here.poll_transmit(now, &mut out).is_some() {
//!             sent += 1;
//!             if sent % 3 > 0 {
//!                 let arrival = Arrival { from: Remote::Udp(from), congested: false };
//!                 there.handle_datagram(now, arrival, &mut out.datagram).ok();
//!             }
//!         }
//!     }
//! }
//! assert_eq!(server.remote().0, b"version 49");
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

extern crate alloc;

mod buggify;
mod endpoint;
mod instruction;
mod machine;
mod outbox;
mod path;
mod receiver;
mod recovery;
mod reject;
mod rng;
mod sender;
mod slots;
pub mod state;
mod stats;
mod time;
mod timing;
pub mod wire;

pub use buggify::Point;
pub use endpoint::{Config, Endpoint, Event, Failure};
pub use instruction::assembly::{ASSEMBLY_BYTES_MAX, Assembler};
pub use instruction::extensions::Announcement;
pub use instruction::fragment::{Fragment, FragmentId, Parity, Piece, fragments};
pub use instruction::parity::protect;
pub use instruction::{Instruction, MESSAGE_BYTES_MAX};
pub use machine::{Arrival, Machine, PathId, Remote, Session, StreamId, Transmit};
pub use outbox::Outbox;
pub use recovery::rtt::RttEstimator;
pub use reject::Reject;
pub use rng::Rng;
pub use slots::{SLOT_MAX, SLOT_MIN, SlotTiming};
pub use state::{Applied, BadDiff, State, StateNum};
pub use stats::{DirectionStats, PathStats, Rejected, Stats, Traffic, Usage};
pub use time::{Stamp, Time};
pub use timing::{
    Acks, AdaptiveTiming, Prospect, Ratio, Reference, SendPolicy, StreamTiming, Timing,
};
pub use wire::deflate::Deflater;
pub use wire::mosh::key::{Key, KeyError};
pub use wire::mosh::{MoshWire, Used};
pub use wire::native::{
    ConnId, Context, KeyPair, NativeWire, PublicKeyOctets, SessionSecrets, WeakKey,
};
pub use wire::{
    Announce, Control, Envelope, Exhausted, Flags, Header, Report, Role, Seq, Slot, Stamps, Wire,
};
