//! Handles the peer's frames and octets.

use std::task::Waker;

use super::sending::End;
use super::{
    CHANNELS_MAX, Channel, GONE_MAX, GROWTH_MAX, Link, Mux, News, PEERS_MAX, Pulse, Role, Violation,
};
use crate::frame::{Frame, NUMBER_MAX};

impl Mux {
    /// Takes octets that came for a channel that is or was open.
    pub fn handle_data(
        &mut self,
        id: u64,
        offset: u64,
        octets: &[u8],
        pulse: Pulse,
    ) -> Result<(), Violation> {
        // Octets may be on their way before our GONE reaches the peer, so they are no violation.
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        channel.is_known = true;
        channel.receiving.begin_trip(pulse);
        channel.receiving.receive(offset, octets)?;
        // The doubled window must not exceed the growth that it leaves to other channels.
        while channel.receiving.wants_window()
            && self.growth + 3 * channel.receiving.window <= GROWTH_MAX
        {
            self.growth += channel.receiving.window;
            channel.receiving.window *= 2;
        }
        self.look_at_receiving(id);
        Ok(())
    }

    /// Handles one frame.
    pub fn handle_frame(&mut self, frame: Frame) -> Result<(), Violation> {
        let id = match frame {
            Frame::Ready => {
                // A repeated READY is the client's question whether we are there. QUIC's
                // acknowledgment answers it.
                if self.link == Link::Up {
                    self.link = Link::Ready;
                }
                return Ok(());
            }
            Frame::Open { channel, request } => return self.handle_open(channel, request),
            Frame::Gone { channel } => {
                self.handle_gone(channel);
                return Ok(());
            }
            Frame::Window { channel, .. }
            | Frame::Fin { channel, .. }
            | Frame::Abort { channel }
            | Frame::Stop { channel }
            | Frame::Done { channel } => channel,
        };
        if !self.is_begun(id)? {
            return Err(Violation::Number);
        }
        let Some(channel) = self.channels.get_mut(&id) else {
            // A peer that tells only DONE has our DONE already. One that lacks it tells FIN or
            // ABORT too, and that frame gets GONE.
            if !matches!(frame, Frame::Done { .. }) && self.gone.len() < GONE_MAX {
                self.gone.insert(id);
            }
            return Ok(());
        };
        channel.is_known = true;
        if id.is_multiple_of(2) == (self.role == Role::Client) {
            // It has been told.
            channel.request = None;
        }
        match frame {
            Frame::Window { received, limit, .. } => self.handle_window(id, received, limit)?,
            Frame::Fin { end, .. } if !channel.receiving.broken => channel.receiving.finish(end)?,
            Frame::Abort { .. } if !channel.receiving.is_complete() => {
                channel.receiving.break_off();
            }
            Frame::Stop { .. } => self.handle_stop(id),
            Frame::Done { .. } => self.handle_done(id),
            _ => {}
        }
        if let Some(channel) = self.channels.get_mut(&id)
            && channel.receiving.is_complete()
            && matches!(frame, Frame::Fin { .. } | Frame::Abort { .. })
        {
            // The peer repeats FIN and ABORT on each connection until DONE comes, so a
            // repeat gets another DONE.
            channel.news.done = true;
            self.telling.insert(id);
        }
        Ok(())
    }

    fn handle_open(&mut self, id: u64, request: Vec<u8>) -> Result<(), Violation> {
        // So `next_peer` below stays within the 62 bits of a number (RFC 9000 §16).
        if self.is_own(id) || id >= NUMBER_MAX - 1 {
            return Err(Violation::Number);
        }
        // A new connection repeats an OPEN whose answer was lost. It must not make a
        // second channel.
        if id < self.next_peer {
            if !self.channels.contains_key(&id) && self.gone.len() < GONE_MAX {
                self.gone.insert(id);
            }
            return Ok(());
        }
        // Before the check of the limit: a refused number counts as begun. Else its blocks wait for
        // an OPEN that never comes.
        self.next_peer = id + 2;
        if !self.has_room_for_peers() {
            if self.gone.len() < GONE_MAX {
                self.gone.insert(id);
            }
            return Ok(());
        }
        self.peers += 1;
        let mut channel = Channel::new(None);
        channel.request = Some(request);
        // This WINDOW answers the OPEN, for which the peer counts an answer as owed (`is_busy`).
        channel.news.window = true;
        self.channels.insert(id, channel);
        self.sometime.insert(id);
        self.incoming.push_back(id);
        self.acceptors.drain(..).for_each(Waker::wake);
        Ok(())
    }

    /// Whether the peer may open another channel. Channels that only our program still holds do not count:
    /// the peer does not know of them.
    fn has_room_for_peers(&self) -> bool {
        let goes_on = |(id, channel): &(&u64, &Channel)| {
            !(self.is_own(**id) || channel.sending.done && channel.receiving.done)
        };
        self.peers < CHANNELS_MAX
            || self.peers < PEERS_MAX && self.channels.iter().filter(goes_on).count() < CHANNELS_MAX
    }

    fn handle_window(&mut self, id: u64, received: u64, limit: u64) -> Result<(), Violation> {
        let Some(channel) = self.channels.get_mut(&id) else { return Ok(()) };
        let sending = &mut channel.sending;
        // A WINDOW that crossed our ABORT acknowledges octets that are not held any more.
        if !matches!(sending.state, End::Open | End::Finished) {
            return Ok(());
        }
        let room = sending.room();
        let freed = sending.acknowledge(received, limit)?;
        let has_moved = freed > 0 || sending.room() > room;
        self.held -= freed;
        if sending.is_eager() {
            self.eager.insert(id);
        } else {
            self.eager.remove(&id);
        }
        // A new connection repeats WINDOW, and a writer without new room must not wake for that.
        if has_moved {
            sending.wake();
            self.blocked.remove(&id);
            self.wake_blocked();
        }
        Ok(())
    }

    fn handle_stop(&mut self, id: u64) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if matches!(channel.sending.state, End::Open | End::Finished) && !channel.sending.done {
            self.held -= channel.sending.give_up(End::Refused);
            self.eager.remove(&id);
        }
        // A STOP is repeated if our ABORT died with its connection, so the ABORT is repeated too.
        if !channel.sending.done {
            channel.news.end = true;
            self.telling.insert(id);
        }
        self.wake_blocked();
    }

    fn handle_done(&mut self, id: u64) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        if channel.sending.state == End::Open {
            // It is done with what has no end: it must have lost the channel.
            self.held -= channel.sending.give_up(End::Lost);
        } else if channel.sending.state == End::Finished {
            // The peer sends no WINDOW for a complete direction, so DONE acknowledges
            // its last octets.
            let state = channel.sending.state;
            self.held -= channel.sending.give_up(state);
        }
        channel.sending.done = true;
        channel.sending.wake();
        self.eager.remove(&id);
        self.wake_blocked();
        self.forget_if_over(id);
    }

    fn handle_gone(&mut self, id: u64) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        // GONE also refuses an OPEN, which must not go out again on the next connection.
        channel.is_known = true;
        if !channel.receiving.is_complete() {
            channel.receiving.break_off();
            // It would not have forgotten what had come to its end.
            self.held -= channel.sending.give_up(End::Lost);
        }
        channel.receiving.done = true;
        // The peer holds nothing of the channel, and would answer further frames with GONE again.
        channel.news = News::default();
        self.telling.remove(&id);
        self.handle_done(id);
    }
}
