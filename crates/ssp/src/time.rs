//! Moments and the stamps that carry them: what the driver's clock says, and what of it fits on the wire.
//! It must not know any clock.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// A moment: microseconds since an origin of the driver's choice.
///
/// Arithmetic saturates at both ends, so a machine that is told nonsense stays total.
#[derive(Clone, Copy, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Time(u64);

impl Time {
    /// The driver's origin.
    pub const ZERO: Time = Time(0);

    /// The moment `micros` µs after the origin.
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros)
    }

    /// The moment `millis` ms after the origin.
    pub const fn from_millis(millis: u64) -> Time {
        Time(millis.saturating_mul(1000))
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the origin, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }

    /// How much later this is than `earlier`; zero if it is not later.
    pub const fn since(self, earlier: Time) -> Duration {
        // Arguments in the wrong order mean no time at all, rather than a panic or an age.
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    fn sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// A moment as the wire carries it: milliseconds modulo 2^16, except that 65535, which means "none"
/// there, becomes 0 (`mosh-protocol.md` §2.2). Never 65535.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamp(u16);

impl Stamp {
    /// What the wire carries where there is no stamp.
    const NONE: u16 = u16::MAX;

    /// The stamp of a moment.
    pub const fn at(time: Time) -> Stamp {
        Stamp::wrap(time.as_millis())
    }

    /// Reads the two octets of the wire; `None` stands for "none".
    pub const fn from_wire(word: u16) -> Option<Stamp> {
        if word == Stamp::NONE { None } else { Some(Stamp(word)) }
    }

    /// What the wire carries for this stamp or for none.
    pub const fn to_wire(stamp: Option<Stamp>) -> u16 {
        match stamp {
            Some(Stamp(word)) => word,
            None => Stamp::NONE,
        }
    }

    /// This stamp moved on by a span, in whole milliseconds.
    pub const fn later(self, span: Duration) -> Stamp {
        Stamp::wrap(self.0 as u64 + span.as_millis() as u64 % 0x1_0000)
    }

    /// This stamp moved back by a span, in whole milliseconds.
    pub const fn earlier(self, span: Duration) -> Stamp {
        Stamp::wrap(self.0 as u64 + 0x1_0000 - span.as_millis() as u64 % 0x1_0000)
    }

    /// How much later this is than `old`, if less than the 65.536 s after which stamps repeat.
    pub const fn since(self, old: Stamp) -> Duration {
        Duration::from_millis(self.0.wrapping_sub(old.0) as u64)
    }

    const fn wrap(millis: u64) -> Stamp {
        let word = (millis % 0x1_0000) as u16;
        // All ones say "no stamp" on the wire. A millisecond too early is harmless.
        Stamp(if word == Stamp::NONE { 0 } else { word })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_saturate() {
        let second = Duration::from_secs(1);
        assert_eq!(Time::ZERO - second, Time::ZERO);
        assert_eq!(Time::from_micros(u64::MAX) + second, Time::from_micros(u64::MAX));
        assert_eq!(Time::ZERO + Duration::MAX, Time::from_micros(u64::MAX));
        assert_eq!(Time::from_millis(u64::MAX), Time::from_micros(u64::MAX));
        assert_eq!(Time::ZERO.since(Time::from_millis(3)), Duration::ZERO);
        assert_eq!(Time::from_millis(5).since(Time::from_millis(3)), Duration::from_millis(2));
        assert_eq!(Time::from_micros(1999).as_millis(), 1);
        assert_eq!(format!("{:?}", Time::from_micros(1_000_042)), "1.000042s");
    }

    #[test]
    fn stamps_move() {
        for (start, later_ms, expect) in
            [(0, 0, 0), (65534, 1, 0), (65534, 2, 0), (10, 65536, 10), (65000, 1000, 464)]
        {
            let stamp = Stamp::from_wire(start).unwrap();
            let moved = stamp.later(Duration::from_millis(later_ms));
            assert_eq!(Stamp::to_wire(Some(moved)), expect, "{start} + {later_ms}");
        }
        for (start, earlier_ms, expect) in [(700, 500, 200), (200, 500, 65236), (499, 500, 0)] {
            let stamp = Stamp::from_wire(start).unwrap();
            let moved = stamp.earlier(Duration::from_millis(earlier_ms));
            assert_eq!(Stamp::to_wire(Some(moved)), expect, "{start} - {earlier_ms}");
        }
        assert_eq!(Stamp::from_wire(65535), None);
        assert_eq!(Stamp::to_wire(None), 65535);
    }
}
