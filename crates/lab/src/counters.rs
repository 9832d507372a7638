//! Counts the rare things that simulated sessions must come across: a simulation in which one of them never happens
//! proves nothing of it.

use std::fmt;

use rove_ssp::Stats;

/// Something rare.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rare {
    /// A guess of the terminal's answer to a key was painted, and was wrong.
    WrongGuess,
    /// A letter of a password was typed.
    SecretLetter,
    /// The user's terminal answered the client's questions.
    TerminalAnswer,
    /// A machine slept.
    Sleep,
    /// A link was cut in one direction only.
    OneWayOutage,
    /// A policer or a full queue dropped a datagram.
    QueueDrop,
    /// A datagram waited until a radio found its tower.
    Hold,
    /// The client was killed.
    ClientDeath,
    /// The server was killed.
    ServerDeath,
    /// A datagram was longer than the path takes.
    OversizedDatagram,
    /// A datagram came a second time, or was replayed, and was refused.
    Replay,
    /// An instruction came that changed nothing.
    Duplicate,
    /// The peer's address changed.
    Roam,
    /// The client sent from a new port since it heard nothing.
    PortHop,
}

impl Rare {
    /// All of them.
    pub const ALL: [Rare; 14] = [
        Rare::WrongGuess,
        Rare::SecretLetter,
        Rare::TerminalAnswer,
        Rare::Sleep,
        Rare::OneWayOutage,
        Rare::QueueDrop,
        Rare::Hold,
        Rare::ClientDeath,
        Rare::ServerDeath,
        Rare::OversizedDatagram,
        Rare::Replay,
        Rare::Duplicate,
        Rare::Roam,
        Rare::PortHop,
    ];
}

/// How often each was seen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters([u64; Rare::ALL.len()]);

impl Counters {
    /// It was seen so many times more.
    pub fn count(&mut self, rare: Rare, times: u64) {
        self.0[rare as usize] += times;
    }

    /// What one end has counted.
    pub fn count_stats(&mut self, stats: &Stats) {
        self.count(Rare::Replay, stats.rejected.replayed);
        self.count(Rare::Duplicate, stats.stale);
        self.count(Rare::Roam, stats.roams);
        self.count(Rare::PortHop, stats.hops);
    }

    /// What another session has counted.
    pub fn add(&mut self, other: &Counters) {
        for rare in Rare::ALL {
            self.count(rare, other.0[rare as usize]);
        }
    }

    /// Those that were never seen.
    pub fn missing(&self) -> Vec<Rare> {
        Rare::ALL.into_iter().filter(|rare| self.0[*rare as usize] == 0).collect()
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rare in Rare::ALL {
            writeln!(out, "{:>12} {rare:?}", self.0[rare as usize])?;
        }
        Ok(())
    }
}
