//! The lab: runs the machines of rove in virtual time, and real programs over emulated links.
//!
//! Nothing imports this crate. Time is virtual in `world`. Modules that run real programs or emulate links in real
//! time (`relay`, `record`, `net`) read the clock through `clock`.

#![warn(unreachable_pub)]

mod absence;
mod address;
mod attacker;
mod bench;
mod byte_stream;
mod capture;
mod cli;
mod clock;
mod compare;
mod counters;
mod crowd;
mod demo;
mod ends;
mod erasures;
mod experiments;
mod fake_ssh;
mod files;
mod flags;
mod flood;
mod frames;
mod headlines;
mod host;
mod html;
mod internet;
mod link;
mod listener;
mod local_clock;
mod mutants;
mod net;
mod obscured;
mod opportunities;
mod pair;
mod person;
mod plot;
mod pool;
mod predict;
mod proc;
mod process;
mod provenance;
mod quic;
mod random_output;
mod real;
mod record;
mod relay;
mod rng;
mod run;
mod scenario;
mod scratch;
mod scrollback;
mod session;
mod shell;
mod sshd;
mod stale;
mod stats;
mod stock;
mod sweep;
mod sys;
#[doc(hidden)]
pub mod testing;
mod trace_hash;
mod trial;
mod tty;
mod ways;
mod worker;
mod world;
mod xterm;

pub use cli::main;
