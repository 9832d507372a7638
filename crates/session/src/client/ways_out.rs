//! The ways out of a session: by a key, by the end of the terminal, and while nothing answers.

use rove_ssp::Time;

use crate::client::bar::{Lifetime, WARNING_STAYS};
use crate::client::{Cause, Client};
use crate::input::Input;
use crate::session_info::SessionInfo;
use crate::view::Peer;

impl Client {
    /// Leaves the session, which goes on, as far as the server can do without a client.
    pub(super) fn detach(&mut self, now: Time, escape: u8) {
        if self.can_detach() {
            self.leave(now, Cause::Detached);
        } else if self.peer == Peer::Rove {
            let text = self.server_name.cannot("keep a session without its client");
            self.bar.say(text, Lifetime::Until(now + WARNING_STAYS));
        } else {
            self.send(now, &[escape, b'd']);
        }
    }

    fn leave(&mut self, now: Time, cause: Cause) {
        self.connection.update(now, Input::push_leaving);
        self.close(now, cause);
    }

    /// Closing the window leaves every session that can go on.
    pub fn detach_on_close(&mut self) {
        self.detaches_on_close = true;
    }

    /// Whether the session can go on without this client.
    pub fn can_detach(&self) -> bool {
        self.view().session().is_some_and(|session| session.can_detach)
    }

    /// The user's input came to its end: ends the session.
    pub fn handle_eof(&mut self, now: Time) {
        if self.connection.is_open() {
            self.handle_hangup(now, Cause::InputEnded);
        }
    }

    /// The terminal is gone (SIGHUP), or the user's input has come to its end. That ends the session, so that nobody
    /// leaves a shell behind by closing a window, unless it has a name of the user's, others are in it, or the user
    /// [wants](Self::detach_on_close) it so.
    pub fn handle_hangup(&mut self, now: Time, cause: Cause) {
        let session = self.view().session();
        let is_wanted = |it: &SessionInfo| it.is_named() || it.others > 0 || self.detaches_on_close;
        let goes_on = session.is_some_and(|it| it.can_detach && is_wanted(it));
        match goes_on && self.connection.is_open() {
            true => self.leave(now, Cause::Detached),
            false => self.close(now, cause),
        }
    }

    /// Its host was asked by another way, and the session is not there any more.
    pub fn end_gone(&mut self, now: Time) {
        self.connection.give_up(Cause::Gone);
        self.drain(now);
    }

    /// Keys mean something else while the bar says that nothing answers.
    pub(super) fn note_silence(&mut self, now: Time) {
        let server = self.bar.server(now);
        if server != self.typing.server() {
            let protocol = self.keyboard_protocol();
            self.typing.set_server(server, &protocol);
            self.take_typed(now);
        }
    }
}
