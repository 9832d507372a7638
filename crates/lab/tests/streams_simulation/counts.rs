//! Counts over all seeds. Each rare thing must have happened.

use std::fmt;
use std::time::Duration;

use rove::testing::copy;
use rove_lab::testing::link::Counters;
use rove_ssp::Time;
use rove_streams::buggify;

use crate::network::Passed;

/// Counts of one seed, or of many.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    pub simulated: Duration,
    pub links: Counters,
    pub stale: u64,
    pub one_way_cuts: u64,
    pub roams: u64,
    /// Of the client and of the server.
    pub deaths: [u64; 2],
    /// Connections of streams after the first.
    pub reconnects: u64,
    /// Channels, octets that were read from them, readers that went away, directions cut short by a death.
    pub channels: u64,
    pub forwarded: u64,
    pub given_up: u64,
    pub cut_short: u64,
    /// Keys that were typed beside channels.
    pub keys: u64,
    /// Trees that were copied, octets of them, octets that receivers took, and those that were there already.
    pub copies: u64,
    pub octets_to_copy: u64,
    pub copied: u64,
    pub resumed: u64,
    pub full_disks: u64,
    /// Parts of files from which a copy went on, and copies begun while a dead client's receiver was there.
    pub parts: u64,
    pub left: u64,
    /// Rare branches that streams and copies took by choice.
    pub chosen_by_streams: [u64; buggify::Point::ALL.len()],
    pub chosen_by_copies: [u64; copy::Point::ALL.len()],
    /// A hash of the lengths and times of all datagrams.
    pub trace: u64,
}

impl Counts {
    pub fn add_network(&mut self, lasted: Time, passed: Passed) {
        self.simulated += lasted.since(Time::ZERO);
        self.links.add(&passed.links);
        self.stale += passed.stale;
        self.one_way_cuts += passed.one_way_cuts;
        self.add_trace(passed.trace);
    }

    pub fn add_trace(&mut self, part: u64) {
        self.trace = (self.trace.rotate_left(17) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub fn add_choices_of_streams(&mut self, taken: [u64; buggify::Point::ALL.len()]) {
        self.chosen_by_streams.iter_mut().zip(taken).for_each(|(all, taken)| *all += taken);
    }

    pub fn add_choices_of_copies(&mut self, taken: [u64; copy::Point::ALL.len()]) {
        self.chosen_by_copies.iter_mut().zip(taken).for_each(|(all, taken)| *all += taken);
    }

    pub fn add(&mut self, other: &Counts) {
        self.simulated += other.simulated;
        self.links.add(&other.links);
        self.stale += other.stale;
        self.one_way_cuts += other.one_way_cuts;
        self.roams += other.roams;
        self.deaths = [0, 1].map(|end| self.deaths[end] + other.deaths[end]);
        self.reconnects += other.reconnects;
        self.channels += other.channels;
        self.forwarded += other.forwarded;
        self.given_up += other.given_up;
        self.cut_short += other.cut_short;
        self.keys += other.keys;
        self.copies += other.copies;
        self.octets_to_copy += other.octets_to_copy;
        self.copied += other.copied;
        self.resumed += other.resumed;
        self.full_disks += other.full_disks;
        self.parts += other.parts;
        self.left += other.left;
        self.add_choices_of_streams(other.chosen_by_streams);
        self.add_choices_of_copies(other.chosen_by_copies);
    }

    /// The rare things that must happen to forwardings, by name.
    pub fn of_forwardings(&self) -> Vec<(&'static str, u64)> {
        let own = [
            ("readers that went away", self.given_up),
            ("directions cut short by a death", self.cut_short),
        ];
        [&own[..], &self.of_paths(), &self.of_choices()].concat()
    }

    /// The same of keys beside them.
    pub fn of_keys(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("keys", self.keys),
            ("octets forwarded", self.forwarded),
            ("datagrams lost", self.links.lost),
            ("datagrams cut by outages", self.links.cut),
            ("sent to an address that was left", self.stale),
            ("reconnects", self.reconnects),
        ]
    }

    /// The same of copies.
    pub fn of_copies(&self) -> Vec<(&'static str, u64)> {
        let own = [
            ("octets that were there already", self.resumed),
            ("full disks", self.full_disks),
            ("parts of files", self.parts),
            ("receivers left by a dead client", self.left),
        ];
        let choices = copy::Point::ALL.map(|point| {
            let name = match point {
                copy::Point::PieceCut => "pieces cut",
                copy::Point::Silence => "silences that are none",
                copy::Point::FlushEarly => "messages sent early",
                copy::Point::BlockCut => "blocks cut",
                copy::Point::MarksCut => "lists of hashes cut",
                copy::Point::BeginningSent => "files sent from their beginning",
                copy::Point::BeginningWanted => "files wanted from their beginning",
                copy::Point::LockBusy => "locks taken",
                copy::Point::PartDisturbed => "parts disturbed",
            };
            (name, self.chosen_by_copies[point as usize])
        });
        [&own[..], &self.of_paths(), &self.of_choices(), &choices].concat()
    }

    /// What streams do seldom, and here by choice.
    fn of_choices(&self) -> [(&'static str, u64); buggify::Point::ALL.len()] {
        buggify::Point::ALL.map(|point| {
            let name = match point {
                buggify::Point::WriteCut => "writes cut",
                buggify::Point::ReadCut => "reads cut",
                buggify::Point::TurnCut => "turns cut",
                buggify::Point::FramesCut => "batches of frames cut",
                buggify::Point::AckEarly => "acknowledgments sent early",
                buggify::Point::WindowSmall => "windows opened by an octet",
                buggify::Point::ResumptionEarlier => "resumptions at an earlier octet",
            };
            (name, self.chosen_by_streams[point as usize])
        })
    }

    fn of_paths(&self) -> Vec<(&'static str, u64)> {
        let links = &self.links;
        vec![
            ("datagrams lost", links.lost),
            ("queues overflowed", links.overflowed),
            ("datagrams cut by outages", links.cut),
            ("datagrams cut one way alone", self.one_way_cuts),
            ("datagrams too long", links.oversized),
            ("duplicates", links.duplicated),
            ("reordered", links.reordered),
            ("corrupted", links.corrupted),
            ("sent to an address that was left", self.stale),
            ("roams", self.roams),
            ("deaths of the client", self.deaths[0]),
            ("deaths of the server", self.deaths[1]),
            ("reconnects", self.reconnects),
        ]
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.simulated.as_secs_f64() / 3_600.0;
        let megabytes = self.forwarded as f64 / 1e6;
        write!(
            f,
            "{hours:.1} simulated hours, {} datagrams, {} ends of channels, {megabytes:.0} MB forwarded, {} trees \
             copied of {:.0} MB",
            self.links.offered,
            self.channels,
            self.copies,
            self.octets_to_copy as f64 / 1e6
        )
    }
}
