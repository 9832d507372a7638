//! The one loop that drives a session, at either end, with a terminal or without.
//!
//! One turn: read the clock once, take what is there within limits, hand it to the session, send what it has to
//! say, and sleep until something is ready. Nothing in a turn waits.

use std::io;
use std::task::{Context, Poll};

use rove_ssp::{Reject, Remote, Session, StreamId, Time};

use crate::net::carrier::{Carrier, Heard, Received};
use crate::net::port::{Network, Port, Turn};
use crate::net::stdio::Stdio;
use crate::net::udp::Socket;

/// Datagrams that an end takes in one turn where nothing else is urgent; more wait in the kernel.
pub(crate) const DATAGRAMS_A_TURN: usize = 64;

/// What a driver moves besides datagrams.
pub(crate) trait End {
    /// The session that it is the end of.
    fn session(&mut self) -> &mut dyn Session;

    /// Ready when there is something to do besides datagrams and time.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Does what goes ahead of datagrams: keys, and the terminal's line.
    fn before(&mut self, turn: Turn) -> io::Result<()>;

    /// How many datagrams may be taken in this turn.
    fn budget(&self) -> usize {
        DATAGRAMS_A_TURN
    }

    /// An authentic datagram has come.
    fn heard(&mut self, now: Time, heard: &Heard);

    /// A datagram was refused.
    fn refused(&mut self, _reject: Reject) {}

    /// The stream to the peer has ended.
    fn stream_ended(&mut self, _stream: StreamId) {}

    /// Another stream is in use: its end tells the session, if that cannot see it by itself.
    fn stream_added(&mut self, _now: Time, _stream: StreamId) {}

    /// Another stream to a peer.
    fn take_stream(&mut self) -> Option<Stdio> {
        None
    }

    /// Whether the stream to the peer is of no use any more.
    fn is_done_with_stream(&mut self, _now: Time) -> bool {
        false
    }

    /// A datagram of QUIC's has come, and there are no streams yet that it could go to.
    fn quic(&mut self, _port: &Socket, _from: Remote, _datagram: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Does what comes after datagrams: the program's output, signals.
    fn after(&mut self, _now: Time) -> io::Result<()> {
        Ok(())
    }

    /// Does what comes after all is sent: paints, and hears what the session asks for.
    fn settle(&mut self, now: Time, carrier: &mut Carrier) -> io::Result<Flow>;

    /// When the next turn is due, for the session or for this end, if nothing happens before.
    fn deadline(&self, now: Time) -> Option<Time>;
}

/// How a turn ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Flow {
    /// There may be more to send: the next turn follows without waiting.
    Again,
    /// There is more to do at once, but the runtime is to look first at what else has become ready: a peer or a
    /// program that writes without end must not keep signals and keys waiting.
    Yield,
    /// Nothing is left to do until something happens.
    Sleep,
    /// The session is over.
    Over,
}

/// Drives a session to its end.
pub(crate) async fn run(port: &mut Port<'_>, end: &mut dyn End) -> io::Result<()> {
    loop {
        let turn = port.begin_turn();
        let now = turn.now;
        if turn.network != Network::Same {
            port.drop_held();
            end.session().network_changed(now);
        }
        port.send_held(now, end.session());
        end.before(turn)?;
        receive(port, end, now)?;
        end.after(now)?;
        while let Some(stream) = end.take_stream() {
            let id = port.add_stream(stream);
            end.stream_added(now, id);
        }
        port.send_all(now, end.session());
        if port.has_stream()
            && end.is_done_with_stream(now)
            && let Some(stream) = port.drop_stream()
        {
            end.session().stream_closed(now, stream);
        }
        match end.settle(now, port.carrier())? {
            Flow::Again => continue,
            Flow::Yield => tokio::task::yield_now().await,
            Flow::Sleep => {}
            Flow::Over => return Ok(()),
        }
        port.sleep_until(end.deadline(now))?;
        port.wait(&mut |cx| end.poll_ready(cx)).await?;
    }
}

/// Hands the session what has come from the network.
fn receive(port: &mut Port<'_>, end: &mut dyn End, now: Time) -> io::Result<()> {
    for _ in 0..end.budget() {
        let Some((carrier, received)) = port.try_recv() else { break };
        match received {
            Received::Nothing => {}
            Received::StreamEnded(stream) => {
                end.session().stream_closed(now, stream);
                end.stream_ended(stream);
            }
            Received::Quic(from, datagram) => {
                if let Some(socket) = carrier.port() {
                    end.quic(socket, from, datagram)?;
                }
            }
            Received::Datagram(arrival, datagram) => {
                match end.session().handle_datagram(now, arrival, datagram) {
                    Ok(()) => {
                        let peer = end.session().peer();
                        end.heard(now, &carrier.on_authentic(now, arrival.from, peer));
                    }
                    Err(reject) => end.refused(reject),
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
