//! Handles what programs do with channels: open and accept them, write, read, and let go.

use std::task::{Context, Poll, Waker};

use super::sending::{End, Sending};
use super::{Broken, CHANNELS_MAX, Channel, Ended, HELD_MIN, Mux};
use crate::buggify::Point;
use crate::frame::REQUEST_BYTES_MAX;

impl Mux {
    /// Opens a channel; waits while [`CHANNELS_MAX`] of this end are open.
    pub fn poll_open(&mut self, cx: &mut Context<'_>, request: &[u8]) -> Poll<Result<u64, Ended>> {
        if let Some(ended) = self.ended {
            return Poll::Ready(Err(ended));
        }
        if request.len() > REQUEST_BYTES_MAX {
            return Poll::Ready(Err(Ended::Oversized));
        }
        // The peer answers one OPEN too many with GONE, which would reset the channel.
        // So it waits here.
        if self.own == CHANNELS_MAX {
            wait(&mut self.openers, cx);
            return Poll::Pending;
        }
        let id = self.next_own;
        self.next_own += 2;
        self.own += 1;
        self.channels.insert(id, Channel::new(Some(request.to_vec())));
        self.telling.insert(id);
        Poll::Ready(Ok(id))
    }

    /// Waits for a channel of the peer's, and gives its request. `None` once the session is over.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Vec<u8>, u64)>> {
        if self.ended.is_some() {
            return Poll::Ready(None);
        }
        let Some(id) = self.incoming.pop_front() else {
            wait(&mut self.acceptors, cx);
            return Poll::Pending;
        };
        let channel = self.channels.get_mut(&id).expect("a channel that waits is held");
        Poll::Ready(Some((channel.request.take().unwrap_or_default(), id)))
    }

    /// Takes as many octets as there is room for, and waits if there is none.
    pub fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        octets: &[u8],
    ) -> Poll<Result<usize, Broken>> {
        self.check()?;
        let (held, held_max) = (self.held, self.held_max);
        let Some(channel) = self.channels.get_mut(&id) else {
            return Poll::Ready(Err(Broken::Reset));
        };
        let sending = &mut channel.sending;
        may_write(sending)?;
        let common = held_max.saturating_sub(held).max(HELD_MIN.saturating_sub(sending.held()));
        // What the peer does not take yet is to take no room from others.
        let room = common.min(sending.room());
        let count = octets.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if count == 0 && !octets.is_empty() {
            sending.writer = Some(cx.waker().clone());
            // A writer that lacks only the peer's limit is woken by WINDOW, and not by
            // room that others free.
            if common == 0 {
                self.blocked.insert(id);
            }
            return Poll::Pending;
        }
        let count = self.buggify.cut(Point::WriteCut, count);
        sending.write(&octets[..count]);
        self.held += count as u64;
        if sending.is_eager() {
            self.eager.insert(id);
        }
        Poll::Ready(Ok(count))
    }

    /// Waits until the other end of the session has everything written.
    pub fn poll_arrived(&mut self, cx: &mut Context<'_>, id: u64) -> Poll<Result<(), Broken>> {
        self.check()?;
        let Some(channel) = self.channels.get_mut(&id) else {
            return Poll::Ready(Err(Broken::Reset));
        };
        let sending = &mut channel.sending;
        match sending.state {
            End::Aborted | End::Lost => Poll::Ready(Err(Broken::Reset)),
            End::Refused => Poll::Ready(Err(Broken::Refused)),
            // After a shutdown acknowledged octets do not suffice: only DONE shows that the peer
            // has the end too.
            _ if sending.done || sending.state == End::Open && sending.is_clear() => {
                Poll::Ready(Ok(()))
            }
            End::Open | End::Finished => {
                sending.writer = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The program has written everything. A second call changes nothing.
    pub fn finish(&mut self, id: u64) -> Result<(), Broken> {
        self.check()?;
        let channel = self.channels.get_mut(&id).ok_or(Broken::Reset)?;
        if channel.sending.state == End::Finished {
            return Ok(());
        }
        may_write(&channel.sending)?;
        channel.sending.state = End::Finished;
        channel.news.end = true;
        self.telling.insert(id);
        Ok(())
    }

    /// Octets of a channel that the program can read at once.
    pub fn ready(&self, id: u64) -> usize {
        self.channels.get(&id).map_or(0, |channel| channel.receiving.ready())
    }

    /// Copies octets out, in order, and waits if there are none; 0 is the end.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        id: u64,
        out: &mut [u8],
    ) -> Poll<Result<usize, Broken>> {
        let Some(channel) = self.channels.get_mut(&id) else {
            return Poll::Ready(Err(Broken::Reset));
        };
        let receiving = &mut channel.receiving;
        // First the octets: those that arrived in order stay readable after a reset, and after the
        // session's end.
        if out.is_empty() || receiving.ready() > 0 {
            let most = self.buggify.cut(Point::ReadCut, out.len().min(receiving.ready()));
            let count = receiving.read(&mut out[..most]);
            self.look_at_receiving(id);
            return Poll::Ready(Ok(count));
        }
        if receiving.is_drained() {
            return Poll::Ready(Ok(0));
        }
        if receiving.broken {
            return Poll::Ready(Err(Broken::Reset));
        }
        self.check()?;
        let channel = self.channels.get_mut(&id).expect("it was found before");
        channel.receiving.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The program drops its writer: without an end, this gives the direction up.
    pub fn drop_writer(&mut self, id: u64) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.writer_gone = true;
        // A direction that was shut down keeps its octets until DONE, as they still have to arrive.
        if channel.sending.state == End::Open {
            self.held -= channel.sending.give_up(End::Aborted);
            channel.news.end = true;
            self.telling.insert(id);
            self.eager.remove(&id);
            self.wake_blocked();
        }
        self.forget_if_over(id);
    }

    /// The program reads no more.
    pub fn drop_reader(&mut self, id: u64) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        channel.reader_gone = true;
        // A complete direction needs no STOP: its DONE is due or has gone out.
        if !channel.receiving.is_complete() {
            channel.receiving.stop();
            channel.news.stop = true;
            self.telling.insert(id);
        }
        self.forget_if_over(id);
    }

    fn check(&self) -> Result<(), Broken> {
        self.ended.map_or(Ok(()), |ended| Err(Broken::Ended(ended)))
    }
}

/// Registers a waiting task, once.
fn wait(wakers: &mut Vec<Waker>, cx: &Context<'_>) {
    if !wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
        wakers.push(cx.waker().clone());
    }
}

fn may_write(sending: &Sending) -> Result<(), Broken> {
    match sending.state {
        End::Open => Ok(()),
        End::Finished => Err(Broken::Finished),
        End::Refused => Err(Broken::Refused),
        End::Aborted | End::Lost => Err(Broken::Reset),
    }
}
