//! The lab: runs the machines of rove in virtual time, and real programs over links it emulates.
//!
//! Nothing imports this crate. Time is virtual in [`world`]; [`relay`] and [`record`] and what runs real
//! programs read the clock, through [`clock`]; so do [`net`]'s emulated links.

pub mod attacker;
pub mod babble;
pub mod bench;
pub mod capture;
pub mod clock;
pub mod compare;
pub mod demo;
pub mod experiments;
pub mod files;
pub mod flags;
pub mod flood;
pub mod frames;
pub mod here;
pub mod host;
pub mod html;
pub mod link;
pub mod net;
pub mod opportunities;
pub mod pair;
pub mod plot;
pub mod pool;
pub mod predict;
pub mod quic;
pub mod real;
pub mod record;
pub mod relay;
pub mod rng;
pub mod run;
pub mod scenario;
pub mod scratch;
pub mod session;
pub mod shell;
pub mod sshd;
pub mod stats;
pub mod stock;
pub mod sweep;
pub mod sys;
pub mod world;
pub mod xterm;
