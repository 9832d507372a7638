//! A stream beside UDP in a simulated session, and what becomes of UDP meanwhile.

use std::ops::Range;
use std::time::Duration;

use rove_ssp::Time;

use crate::byte_stream::StreamProfile;
use crate::link::{Bursts, Profile};
use crate::rng::{Chance, Rng};

/// The stream of a session, and how UDP is beside it.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    /// How the stream is while the session is busy.
    pub stream: StreamProfile,
    pub udp: UdpFate,
    /// When it is first there.
    pub opens: Time,
    /// When it ends, and for how long there is none.
    pub cuts: Vec<(Time, Duration)>,
}

/// What becomes of UDP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum UdpFate {
    /// It is the scenario's.
    Alive,
    /// It never works.
    Dead,
    /// Nothing reaches the server.
    NoUp,
    /// Nothing reaches the client.
    NoDown,
    /// It works for three seconds and not for three.
    Flapping,
    /// It works at first, then not for a minute, then again.
    Lost,
}

const FLAP: Duration = Duration::from_secs(3);
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Later than any session.
const NEVER: Time = Time::from_millis(10_000_000);

impl Ways {
    /// The ways of this chance, in a session that is busy for this long. `delay`, `outages` and `bursts` are those of the
    /// path, which is under the stream as well.
    pub(crate) fn of(
        rng: &mut Rng,
        delay: Duration,
        outages: &[Range<Time>],
        bursts: [Option<Bursts>; 2],
        busy: Duration,
    ) -> Ways {
        let udp = rng.pick(&[
            UdpFate::Alive,
            UdpFate::Dead,
            UdpFate::NoUp,
            UdpFate::NoDown,
            UdpFate::Flapping,
            UdpFate::Lost,
        ]);
        let cut = |rng: &mut Rng| {
            let at = Time::ZERO + 6 * SECOND + rng.span_below(busy - 40 * SECOND);
            (at, rng.span_within(10 * MS, 20 * SECOND))
        };
        let cuts = if rng.happens(Chance::percent(40)) { rng.within(1, 3) } else { 0 };
        Ways {
            stream: StreamProfile {
                delay,
                stall: rng.pick(&[Chance::NEVER, Chance::percent(1), Chance::percent(10)]),
                rate: rng.pick(&[None, None, Some(128_000), Some(1_000_000)]),
                outages: outages.to_vec(),
                bursts,
            },
            udp,
            opens: Time::ZERO,
            cuts: (0..cuts).map(|_| cut(rng)).collect(),
        }
    }

    /// A stream that is opened beside a UDP that may work, as for a client that hears nothing, and ends for good.
    pub(crate) fn for_a_while(
        rng: &mut Rng,
        delay: Duration,
        outages: &[Range<Time>],
        bursts: [Option<Bursts>; 2],
    ) -> Ways {
        let opens = Time::ZERO + rng.span_within(10 * SECOND, 60 * SECOND);
        let ends = opens + rng.span_within(5 * SECOND, 40 * SECOND);
        let stall = rng.pick(&[Chance::NEVER, Chance::percent(1), Chance::percent(10)]);
        let outages = outages.to_vec();
        let stream = StreamProfile { delay, stall, rate: None, outages, bursts };
        Ways { stream, udp: UdpFate::Alive, opens, cuts: vec![(ends, NEVER.since(ends))] }
    }

    /// Whether no way is lost in this span. Each that is lost is missed for seconds.
    pub(crate) fn is_calm(&self, span: &Range<Time>) -> bool {
        let lost: Vec<Range<Time>> = match self.udp {
            // A stream that ends is missed at most until UDP is tried.
            UdpFate::Alive => self.cuts.iter().map(|(at, _)| *at..*at + SECOND).collect(),
            UdpFate::Dead | UdpFate::NoUp | UdpFate::NoDown => {
                self.cuts.iter().map(|(at, span)| *at..*at + *span).collect()
            }
            UdpFate::Flapping | UdpFate::Lost => vec![Time::ZERO..NEVER],
        };
        !lost.iter().any(|lost| lost.start < span.end && span.start < lost.end)
    }

    /// A path in both directions, as UDP finds it.
    pub(crate) fn udp(&self, [up, down]: [&Profile; 2]) -> [Profile; 2] {
        let spans = match self.udp {
            UdpFate::Alive => Vec::new(),
            UdpFate::Dead | UdpFate::NoUp | UdpFate::NoDown => vec![Time::ZERO..NEVER],
            UdpFate::Lost => vec![Time::ZERO + 60 * SECOND..Time::ZERO + 120 * SECOND],
            UdpFate::Flapping => {
                let dead = |turn: u32| {
                    let since = Time::ZERO + FLAP * (2 * turn + 1);
                    since..since + FLAP
                };
                (0..40).map(dead).collect()
            }
        };
        let with = |path: &Profile, is_meant: bool| {
            let more = spans.iter().filter(|_| is_meant).cloned();
            Profile { outages: path.outages.iter().cloned().chain(more).collect(), ..path.clone() }
        };
        [with(up, self.udp != UdpFate::NoDown), with(down, self.udp != UdpFate::NoUp)]
    }

    /// Whether UDP stays as it is when all else is well again.
    pub(crate) fn stays(&self) -> bool {
        matches!(self.udp, UdpFate::Dead | UdpFate::NoUp | UdpFate::NoDown)
    }
}
