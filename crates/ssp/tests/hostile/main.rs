//! Enemies: without the key, with old datagrams, and with the key (`threats.md` rows 10 to 13 and 15).
//! The session must hold still, keep its limits, and go on afterwards.
#![allow(clippy::unwrap_used)] // In helpers, too: a failure here is a failed test.

#[path = "../common/mod.rs"]
mod common;
mod strangers;
mod traitors;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use common::{
    Client, Hand, Page, Server, Weather, World, client_address, drain, message, mosh_wire, ms,
    server_address,
};
use rove_ssp::{
    ASSEMBLY_BYTES_MAX, Announcement, Arrival, BadDiff, Config, Deflater, Endpoint, Envelope,
    Event, Exhausted, Fragment, Header, Instruction, Key, MESSAGE_BYTES_MAX, Machine, MoshWire,
    Outbox, Reject, Report, Rng, Role, Seq, Session, State, StateNum, Stats, Time, Timing, Usage,
    Wire,
};

/// How often each enemy tries.
const TRIES: u64 = 1_000_000;
/// How much the process may grow meanwhile: the allocator keeps what the few largest messages took.
const GROWTH_BYTES_MAX: u64 = 16 << 20;

/// The resident set, in octets.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

fn assert_within_limits(held: Usage) {
    assert_within(&Timing::MOSH, held);
}

fn assert_within(timing: &Timing, held: Usage) {
    let Usage { sent_states, received_states, received_bytes, assembly_bytes, events } = held;
    assert!(sent_states <= timing.sent_states_max);
    assert!(received_states <= timing.received_states_max + 1);
    assert!(received_bytes <= 2 * timing.received_bytes_max);
    assert!(assembly_bytes <= ASSEMBLY_BYTES_MAX);
    assert!(events <= 5);
}
