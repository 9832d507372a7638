//! What a driver tells an endpoint of sockets, networks and streams, and what another way to the peer means for what is
//! under way.

use super::Endpoint;
use crate::machine::{PathId, Remote, Session, StreamId};
use crate::state::State;
use crate::time::Time;

impl<L: State, R: State> Endpoint<L, R> {
    /// Another way may have come into use.
    pub(super) fn heed_switch(&mut self) {
        if !self.path.take_switch() {
            return;
        }
        match self.path.peer() {
            Some(Remote::Stream(_)) => {
                self.stats.to_stream += 1;
                self.sender.switch(Some(self.timing.stream.clone()));
                // What UDP has not brought by now is said again, as a new instruction of other lengths.
                self.log.abandon(PathId::UDP);
                (self.outgoing, self.repairs) = (None, None);
                self.sender.refuse();
            }
            Some(to @ Remote::Udp(_)) => {
                self.stats.to_udp += 1;
                self.sender.switch(None);
                self.shorten(to);
            }
            None => {}
        }
    }
}

impl<L: State, R: State> Session for Endpoint<L, R> {
    fn peer(&self) -> Option<Remote> {
        self.path.peer()
    }

    fn stream_opened(&mut self, now: Time, stream: StreamId) {
        // Only there does anybody report what came by which way.
        if self.path.carries_reports() {
            self.path.stream_opened(now, stream);
            self.heed_switch();
        }
    }

    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        self.path.stream_closed(now, stream);
        if self.path.take_switch() {
            self.stats.to_udp += u64::from(self.path.peer().is_some());
            self.sender.switch(None);
            // What was in it is lost.
            self.log.abandon(PathId::STREAM);
            (self.outgoing, self.repairs) = (None, None);
            self.sender.refuse();
        }
    }

    fn network_changed(&mut self, now: Time) {
        (self.outgoing, self.repairs) = (None, None);
        self.path.moved(now);
        self.sender.refuse();
    }

    fn datagram_too_big(&mut self) {
        let change = self.path.mtud.too_big();
        self.heed(change);
    }
}
