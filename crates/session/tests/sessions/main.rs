//! Laws of a session that outlives its clients: those that join, leave, take over or are gone, and how it ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;
mod end;
mod members;
mod room;
