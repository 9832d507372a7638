//! The ways over ssh to the clients of a session: the one that it began with, and those of clients that joined.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rove_ssp::StreamId;

use crate::net::stdio::Stdio;
use crate::server::limits::server_stream;

/// Ways at a time: twice as many as clients.
pub(super) const WAYS_MAX: usize = 16;

/// The ways, and where ssh has come from.
#[derive(Debug, Default)]
pub(super) struct Carried {
    count: u32,
    open: BTreeMap<StreamId, Option<IpAddr>>,
    /// Those that are not in use yet.
    fresh: Vec<(StreamId, OwnedFd)>,
}

impl Carried {
    /// Whether there is room for another.
    pub(super) fn has_room(&self) -> bool {
        self.open.len() < WAYS_MAX
    }

    /// Another way.
    pub(super) fn add(&mut self, socket: OwnedFd, from: Option<IpAddr>) {
        let id = StreamId::new(self.count);
        self.count = self.count.wrapping_add(1);
        self.open.insert(id, from);
        self.fresh.push((id, socket));
    }

    /// The next that is to be used. One that the system has no room for is gone, and its error is returned.
    pub(super) fn take(&mut self) -> io::Result<Option<Stdio>> {
        let Some((id, socket)) = self.fresh.pop() else { return Ok(None) };
        let stream = server_stream(id, socket);
        if stream.is_err() {
            self.ended(id);
        }
        stream.map(Some)
    }

    /// It has ended.
    pub(super) fn ended(&mut self, stream: StreamId) {
        self.open.remove(&stream);
    }

    /// Where ssh has come from.
    pub(super) fn address(&self, stream: StreamId) -> Option<IpAddr> {
        self.open.get(&stream).copied().flatten()
    }
}
