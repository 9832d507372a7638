//! Counts the rare things that simulated sessions must come across: a simulation in which one of them never happens
//! proves nothing of it.

use std::fmt;

use rove_ssp::{Point, Stats};

/// Something rare.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rare {
    /// A guess of the terminal's answer to a key was painted, and was wrong.
    WrongGuess,
    /// A letter of a password was typed.
    SecretLetter,
    /// The user's terminal answered the client's questions.
    TerminalAnswer,
    /// The client learnt late of another size of its window.
    LateSize,
    /// A machine slept.
    Sleep,
    /// A client's machine slept for minutes.
    LongSleep,
    /// A link was cut in one direction only.
    OneWayOutage,
    /// A policer or a full queue dropped a datagram.
    QueueDrop,
    /// A datagram waited until a radio found its tower.
    Hold,
    /// A datagram waited for the next burst.
    Bursts,
    /// The client was killed.
    ClientDeath,
    /// The server was killed.
    ServerDeath,
    /// The server moved to another address.
    ServerMove,
    /// The client chose another address of the server than the first.
    AddressChange,
    /// A datagram was longer than the path takes.
    OversizedDatagram,
    /// A datagram came a second time, and was refused.
    SecondCopy,
    /// An attacker's replay was refused.
    Replay,
    /// An instruction came that changed nothing.
    Duplicate,
    /// The peer's address changed.
    Roam,
    /// The client sent from a new port since it heard nothing.
    PortHop,
    /// An end sealed with another key.
    KeyPhase,
    /// An address that the peer had moved to proved itself.
    RoamProven,
    /// A stream came into use.
    ToStream,
    /// UDP came into use in place of a stream.
    ToUdp,
    /// UDP was tried while a stream was in use.
    UdpTry,
    /// What went by UDP overtook what went by the stream before.
    StreamOvertaken,
    /// A stream ended in the middle of a session.
    StreamCut,
    /// A datagram of parity was sent.
    Parity,
    /// Parity stood in for fragments that were lost.
    FecRepair,
    /// Datagrams became shorter, since the path takes no longer ones.
    MtuShrunk,
    /// Long datagrams vanished while short ones arrived.
    BlackHole,
    /// Guesses were dropped at once.
    GuessReset,
    /// The congestion window became smaller.
    WindowShrunk,
    /// A state that was sent was forgotten before it was acknowledged.
    StateForgotten,
    /// A diff came whose base is not held.
    Baseless,
    /// A change waited with others.
    Collection,
    /// Both ends closed before either knew of the other.
    ShutdownRace,
    /// A screen that the program cleared went into the history.
    ScreenSaved,
    /// A point of [`Point`]: a state was refused.
    ChosenStateRefused,
    /// A base was dropped.
    ChosenBaseDropped,
    /// A timeout came early.
    ChosenSpuriousTimeout,
    /// A change did not wait.
    ChosenCollectionCut,
    /// A probe was lost.
    ChosenProbeLost,
    /// Keys moved on early.
    ChosenKeyPhaseEarly,
    /// The screen's budget was spent.
    ChosenFrameRefused,
}

impl Rare {
    /// All of them.
    pub const ALL: [Rare; 45] = [
        Rare::WrongGuess,
        Rare::SecretLetter,
        Rare::TerminalAnswer,
        Rare::LateSize,
        Rare::Sleep,
        Rare::LongSleep,
        Rare::OneWayOutage,
        Rare::QueueDrop,
        Rare::Hold,
        Rare::Bursts,
        Rare::ClientDeath,
        Rare::ServerDeath,
        Rare::ServerMove,
        Rare::AddressChange,
        Rare::OversizedDatagram,
        Rare::SecondCopy,
        Rare::Replay,
        Rare::Duplicate,
        Rare::Roam,
        Rare::PortHop,
        Rare::KeyPhase,
        Rare::RoamProven,
        Rare::ToStream,
        Rare::ToUdp,
        Rare::UdpTry,
        Rare::StreamOvertaken,
        Rare::StreamCut,
        Rare::Parity,
        Rare::FecRepair,
        Rare::MtuShrunk,
        Rare::BlackHole,
        Rare::GuessReset,
        Rare::WindowShrunk,
        Rare::StateForgotten,
        Rare::Baseless,
        Rare::Collection,
        Rare::ShutdownRace,
        Rare::ScreenSaved,
        Rare::ChosenStateRefused,
        Rare::ChosenBaseDropped,
        Rare::ChosenSpuriousTimeout,
        Rare::ChosenCollectionCut,
        Rare::ChosenProbeLost,
        Rare::ChosenKeyPhaseEarly,
        Rare::ChosenFrameRefused,
    ];

    /// The rare branch that is taken at this point.
    fn chosen(point: Point) -> Rare {
        match point {
            Point::StateRefused => Rare::ChosenStateRefused,
            Point::BaseDropped => Rare::ChosenBaseDropped,
            Point::SpuriousTimeout => Rare::ChosenSpuriousTimeout,
            Point::CollectionCut => Rare::ChosenCollectionCut,
            Point::ProbeLost => Rare::ChosenProbeLost,
            Point::KeyPhaseEarly => Rare::ChosenKeyPhaseEarly,
            Point::FrameRefused => Rare::ChosenFrameRefused,
        }
    }
}

/// How often each was seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Counters([u64; Rare::ALL.len()]);

impl Default for Counters {
    fn default() -> Counters {
        Counters([0; Rare::ALL.len()])
    }
}

impl Counters {
    /// Adds to one of them.
    pub fn count(&mut self, rare: Rare, times: u64) {
        self.0[rare as usize] += times;
    }

    /// Adds the counts of one end.
    pub fn count_stats(&mut self, stats: &Stats) {
        self.count(Rare::Duplicate, stats.stale);
        self.count(Rare::Roam, stats.roams);
        self.count(Rare::PortHop, stats.hops);
        self.count(Rare::KeyPhase, stats.key_phases);
        self.count(Rare::RoamProven, stats.addresses_proven);
        self.count(Rare::ToStream, stats.to_stream);
        self.count(Rare::ToUdp, stats.to_udp);
        self.count(Rare::UdpTry, stats.udp_tries);
        self.count(Rare::StreamOvertaken, stats.overtaken);
        self.count(Rare::Parity, stats.parity_sent);
        self.count(Rare::FecRepair, stats.repaired);
        self.count(Rare::MtuShrunk, stats.mtu_shrunk);
        self.count(Rare::BlackHole, stats.black_holes);
        self.count(Rare::WindowShrunk, stats.window_shrunk);
        self.count(Rare::StateForgotten, stats.states_forgotten);
        self.count(Rare::Baseless, stats.baseless);
        self.count(Rare::Collection, stats.collected);
        self.count(Rare::ShutdownRace, stats.shutdowns_raced);
        for point in Point::ALL {
            self.count(Rare::chosen(point), stats.buggified[point as usize]);
        }
    }

    /// Adds the counts of another session.
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
        for line in Rare::ALL.chunks(COUNTERS_A_LINE) {
            let counts: Vec<String> =
                line.iter().map(|rare| format!("{rare:?} {}", self.0[*rare as usize])).collect();
            writeln!(out, "{}", counts.join(", "))?;
        }
        Ok(())
    }
}

/// A line of them is as long as a line of a terminal.
const COUNTERS_A_LINE: usize = 5;
