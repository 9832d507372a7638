//! Which way a session takes at present: tells of it, and when its stream is of no use any more.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rove_ssp::{Remote, StreamId, Time};

use crate::net::stdio::Stdio;
use crate::ssh::SshStream;

/// Which ways to a server a session uses.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WaySetting {
    /// UDP, and ssh's stream until UDP answers and where it does not.
    #[default]
    Auto,
    /// UDP alone.
    Udp,
    /// ssh's stream alone.
    Ssh,
}

/// How long UDP may take to answer before the user is told that ssh is used, and at least three round trips of the
/// stream.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// UDP that was in use for so long needs no stream beside it: each costs a login there.
const STREAM_KEPT: Duration = Duration::from_secs(30);

/// UDP whose answer is late by so much may need the stream in a moment.
const UDP_LATE: Duration = Duration::from_millis(500);

/// The way over the ssh that has begun the session.
pub(crate) fn client_stream(stream: SshStream) -> io::Result<Stdio> {
    let (input, output, first) = stream.into_files();
    Stdio::new(StreamId::new(0), input, output, &first)
}

/// The way that a session takes, and for how long.
#[derive(Debug)]
pub(super) struct WayWatch {
    host: String,
    server: SocketAddr,
    began: Time,
    /// The way in use, and since when.
    current: Option<(Remote, Time)>,
    /// UDP has answered, or the user knows that it has not.
    is_settled: bool,
}

/// Something to tell.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum WayNews {
    /// For those who asked for each step.
    Step(String),
    /// For the user.
    Note(String),
}

impl WayWatch {
    pub(super) fn new(now: Time, host: &str, server: SocketAddr, way: WaySetting) -> WayWatch {
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_owned();
        WayWatch { host, server, began: now, current: None, is_settled: way != WaySetting::Auto }
    }

    /// Looks at the way in use. `round_trip` is the stream's, if it is known.
    pub(super) fn look(
        &mut self,
        now: Time,
        peer: Option<Remote>,
        round_trip: Option<Duration>,
    ) -> Option<WayNews> {
        let peer = peer?;
        let before = self.current.map(|(way, _)| way.is_stream());
        if before != Some(peer.is_stream()) {
            self.current = Some((peer, now));
            self.is_settled |= before == Some(true) && !peer.is_stream();
            let way = if peer.is_stream() { "ssh" } else { "UDP" };
            return Some(WayNews::Step(format!("going on by {way}")));
        }
        if self.note_at(round_trip).is_none_or(|at| at > now) {
            return None;
        }
        self.is_settled = true;
        let (host, port) = (&self.host, self.server.port());
        Some(WayNews::Note(format!("{host} does not answer on UDP {port}; going on over ssh")))
    }

    /// When the user is to be told that UDP has not answered.
    pub(super) fn note_at(&self, round_trip: Option<Duration>) -> Option<Time> {
        let is_on_stream = self.current.is_some_and(|(way, _)| way.is_stream());
        let wait = ANSWER_WAIT.max(3 * round_trip.unwrap_or_default());
        (is_on_stream && !self.is_settled).then_some(self.began + wait)
    }

    /// Whether the stream is of no use any more. `awaits`: since when an answer is awaited.
    pub(super) fn is_done(&self, now: Time, awaits: Option<Time>) -> bool {
        let is_late = awaits.is_some_and(|since| now.since(since) >= UDP_LATE);
        !is_late && self.done_at().is_some_and(|at| at <= now)
    }

    /// When the stream is of no use any more, if UDP stays in use until then.
    pub(super) fn done_at(&self) -> Option<Time> {
        let (way, since) = self.current?;
        (!way.is_stream()).then_some(since + STREAM_KEPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn the_user_is_told_once_that_udp_does_not_answer() {
        let server = "192.0.2.1:60001".parse().unwrap();
        let (stream, udp) = (Remote::Stream(StreamId::new(0)), Remote::Udp(server));
        let note = WayNews::Note("build7 does not answer on UDP 60001; going on over ssh".into());
        let rtt = Some(Duration::from_millis(900));
        let mut ways = WayWatch::new(ms(5), "me@build7", server, WaySetting::Auto);
        assert_eq!(
            ways.look(ms(5), Some(stream), None),
            Some(WayNews::Step("going on by ssh".into()))
        );
        assert_eq!(ways.look(ms(2_004), Some(stream), rtt), None);
        assert_eq!(ways.look(ms(2_704), Some(stream), rtt), None, "three round trips");
        assert_eq!(ways.look(ms(2_705), Some(stream), rtt), Some(note));
        assert_eq!(ways.look(ms(9_000), Some(stream), rtt), None);
        assert_eq!(ways.done_at(), None);
        assert_eq!(
            ways.look(ms(10_000), Some(udp), rtt),
            Some(WayNews::Step("going on by UDP".into()))
        );
        assert_eq!(ways.done_at(), Some(ms(40_000)));
        for (now, awaits, expected) in [
            (39_999, None, false),
            (40_000, None, true),
            (40_000, Some(39_501), true),
            (40_000, Some(39_500), false),
        ] {
            assert_eq!(ways.is_done(ms(now), awaits.map(ms)), expected, "{now} {awaits:?}");
        }

        // It has answered, and stops later: that is told of by nobody while ssh goes on.
        let mut ways = WayWatch::new(ms(0), "build7", server, WaySetting::Auto);
        ways.look(ms(0), Some(stream), None);
        ways.look(ms(100), Some(udp), None);
        ways.look(ms(5_000), Some(stream), None);
        assert_eq!((ways.look(ms(9_000), Some(stream), None), ways.note_at(None)), (None, None));
        // And who wants ssh alone knows.
        let mut ways = WayWatch::new(ms(0), "build7", server, WaySetting::Ssh);
        ways.look(ms(0), Some(stream), None);
        assert_eq!(ways.look(ms(9_000), Some(stream), None), None);
    }
}
