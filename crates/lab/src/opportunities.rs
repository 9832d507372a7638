//! Recorded bottlenecks in Mahimahi's format: the times at which a link let a packet through. Pure: a position in
//! the recording and a packet's length go in, the packet's departure time comes out.
//!
//! Each line of such a file is a time in milliseconds from its start, at which 1,500 octets could cross; a time
//! that stands twice is two opportunities in that millisecond. After its last time the recording starts again.
//! Packets share an opportunity, and its unused octets are lost.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::files::read_text;

/// When a link let packets through.
#[derive(Clone, Debug, PartialEq)]
pub struct Opportunities {
    /// In milliseconds, never falling, the last one above zero: it is the length of the recording.
    times_ms: Vec<u32>,
}

/// How much of a recording has been used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cursor {
    /// Opportunities before this one are over. Counts on when the recording starts again.
    number: u64,
    /// Octets of it that are used.
    used: usize,
}

/// Why a text is not a recording: the line and the problem.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BadTrace {
    /// From 1; 0 where the whole is meant.
    pub line: usize,
    /// The problem.
    pub what: &'static str,
}

impl std::fmt::Display for BadTrace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(out, "{}", self.what),
            line => write!(out, "line {line}: {}", self.what),
        }
    }
}

impl std::error::Error for BadTrace {}

impl Opportunities {
    /// Reads a recording's file.
    ///
    /// # Errors
    /// If it cannot be read, is longer than 256 MiB, or is none; the message names it.
    pub fn load(path: &Path) -> io::Result<Opportunities> {
        Opportunities::parse(&read_text(path, FILE_BYTES_MAX)?).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display()))
        })
    }

    /// Reads a recording.
    ///
    /// # Errors
    /// If a line is no number of milliseconds, or is below the one before, or nothing ever crosses.
    pub fn parse(text: &str) -> Result<Opportunities, BadTrace> {
        let mut times_ms: Vec<u32> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let bad = |what| BadTrace { line: number + 1, what };
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let time: u32 = line.parse().map_err(|_| bad("no number of milliseconds"))?;
            if times_ms.last().is_some_and(|last| time < *last) {
                return Err(bad("a time before the one above it"));
            }
            if times_ms.len() >= OPPORTUNITIES_MAX {
                return Err(bad("more than 16 million opportunities"));
            }
            times_ms.push(time);
        }
        match times_ms.last() {
            None => Err(BadTrace { line: 0, what: "no opportunities" }),
            Some(0) => Err(BadTrace { line: 0, what: "it takes no time" }),
            Some(_) => Ok(Opportunities { times_ms }),
        }
    }

    /// The time at which a packet of this length has crossed that may start at `starts`; both since the recording
    /// began. Uses up the opportunities it takes. Calls with falling times take what later ones left.
    pub fn departure(&self, cursor: &mut Cursor, starts: Duration, octets: usize) -> Duration {
        let first = self.first_from(starts);
        if cursor.number < first {
            *cursor = Cursor { number: first, used: 0 };
        }
        let mut left = octets;
        loop {
            let taken = left.min(OPPORTUNITY_BYTES - cursor.used);
            left -= taken;
            cursor.used += taken;
            let at = self.time(cursor.number);
            if cursor.used == OPPORTUNITY_BYTES {
                *cursor = Cursor { number: cursor.number + 1, used: 0 };
            }
            if left == 0 {
                return at.max(starts);
            }
        }
    }

    /// The average rate, in bits a second.
    pub fn bits_per_second(&self) -> u64 {
        let bits = self.times_ms.len() as u64 * OPPORTUNITY_BYTES as u64 * 8;
        bits * 1_000 / self.period_ms()
    }

    fn period_ms(&self) -> u64 {
        self.times_ms.last().map_or(1, |last| u64::from(*last).max(1))
    }

    fn time(&self, number: u64) -> Duration {
        let (rounds, place) = (number / self.count(), number % self.count());
        Duration::from_millis(rounds * self.period_ms() + u64::from(self.times_ms[place as usize]))
    }

    /// The number of the first opportunity at this time or after it.
    fn first_from(&self, at: Duration) -> u64 {
        // A part of a millisecond is later than an opportunity at its beginning.
        let ms = (at.as_micros().div_ceil(1_000)).min(u128::from(u32::MAX) << 20) as u64;
        let (rounds, rest) = (ms / self.period_ms(), ms % self.period_ms());
        // The end of one round is the beginning of the next: opportunities at both are looked up at the end.
        let (rounds, rest) = match (rounds, rest) {
            (1.., 0) => (rounds - 1, self.period_ms()),
            other => other,
        };
        let place = self.times_ms.partition_point(|time| u64::from(*time) < rest) as u64;
        rounds * self.count() + place
    }

    fn count(&self) -> u64 {
        self.times_ms.len() as u64
    }
}

/// Octets that cross in one opportunity: Mahimahi's packet of an Ethernet frame's payload.
const OPPORTUNITY_BYTES: usize = 1_500;

/// The longest recording: 64 MiB of them, several hours of a fast network.
const OPPORTUNITIES_MAX: usize = 16 << 20;

/// The longest file: as many opportunities, each on a line of 16 octets.
const FILE_BYTES_MAX: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn departures(text: &str, packets: &[(u64, usize)]) -> Vec<u64> {
        let trace = Opportunities::parse(text).unwrap();
        let mut cursor = Cursor::default();
        let at = |(ms, octets): &(u64, usize)| {
            trace.departure(&mut cursor, Duration::from_millis(*ms), *octets).as_millis() as u64
        };
        packets.iter().map(at).collect()
    }

    #[test]
    fn packets_take_opportunities() {
        for (what, packets, want) in [
            ("one each", &[(0, 1500), (0, 1500), (0, 1500)][..], &[3, 3, 7][..]),
            ("small ones share", &[(0, 700), (0, 700), (0, 100), (0, 1400)], &[3, 3, 3, 3]),
            ("large ones take several", &[(0, 4000)], &[7]),
            ("what is not used is lost", &[(5, 1500), (9, 100)], &[7, 10]),
            ("and it starts again", &[(9, 1500), (9, 1500), (10, 1500)], &[10, 13, 13]),
            ("also far on", &[(1004, 10), (1007, 10)], &[1007, 1007]),
        ] {
            assert_eq!(departures("3\n3\n7\n10\n", packets), want, "{what}");
        }
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        for (text, line) in [("", 0), ("x", 1), ("5\n3", 2), ("0\n0\n", 0), ("-1", 1)] {
            assert_eq!(Opportunities::parse(text).unwrap_err().line, line, "{text:?}");
        }
        assert_eq!(Opportunities::parse("1\n\n2\n").unwrap().bits_per_second(), 12_000_000);
    }
}
