//! What a driver tells a client of sockets, networks and streams.

use rove_ssp::{Remote, Session, StreamId, Time};

use super::{Client, NETWORK_ERROR_STAYS};
use crate::client::bar::Lifetime;

impl Session for Client {
    fn peer(&self) -> Option<Remote> {
        self.connection.peer()
    }

    fn stream_opened(&mut self, now: Time, stream: StreamId) {
        self.connection.stream_opened(now, stream);
        self.drain(now);
    }

    fn stream_closed(&mut self, now: Time, stream: StreamId) {
        self.connection.stream_closed(now, stream);
        self.drain(now);
    }

    fn network_changed(&mut self, now: Time) {
        self.connection.network_changed(now);
    }

    fn datagram_too_big(&mut self) {
        self.connection.datagram_too_big();
    }

    /// Shows the reason to the user for a while.
    fn send_failed(&mut self, now: Time, why: &str) {
        self.bar.say(why, Lifetime::Until(now + NETWORK_ERROR_STAYS));
    }
}
