//! The keys of a hidden line, which the client keeps until the line ends: while the host's terminal gathers a line
//! and does not echo, nobody can see what was typed before Enter, and each key that is sent by itself tells a listener
//! when it was typed, and all together how long the password is.
//!
//! It knows octets and the numbers of lines and states, and no frames.

use alloc::vec::Vec;
use core::fmt;
use core::mem::take;

use rove_ssp::StateNum;
use zeroize::{Zeroize, Zeroizing};

use crate::line_mode::{LineReport, is_part_of_line};

/// Octets that are kept. A line that reaches this goes to the host, which has room for 4096.
const OCTETS_MAX: usize = 240;

/// Where they are kept: a buffer that never grows, since a buffer that moves leaves its octets behind.
const ROOM: usize = 256;

/// Keys that are kept.
pub(super) struct HeldLine {
    octets: Zeroizing<Vec<u8>>,
    /// Which line they are of.
    line: Option<u64>,
    /// A line ended by itself while keys were kept. Nothing is kept before a line was seen to echo again: a script that
    /// reads keys with echo off loses them once at most.
    waits_for_echo: bool,
    /// The last state with typed keys, and whether any were typed since.
    keys: StateNum,
    unsent: bool,
}

impl HeldLine {
    pub(super) fn new() -> Self {
        Self {
            octets: Zeroizing::new(Vec::with_capacity(ROOM)),
            line: None,
            waits_for_echo: false,
            keys: StateNum::ZERO,
            unsent: false,
        }
    }

    /// Whether these octets are kept on this line, of which an echo ack has come: then they are.
    pub(super) fn keep(&mut self, octets: &[u8], line: LineReport, echo_ack: StateNum) -> bool {
        let is_answered = !self.unsent && self.keys <= echo_ack;
        let fits = self.octets.len() + octets.len() < OCTETS_MAX;
        let keeps = line.may_be_kept
            && !self.waits_for_echo
            && is_answered
            && fits
            && octets.iter().all(|octet| is_part_of_line(*octet));
        if keeps {
            self.octets.extend_from_slice(octets);
            self.line = line.hidden;
        }
        keeps
    }

    /// Takes them out, to be sent.
    pub(super) fn release(&mut self) -> Zeroizing<Vec<u8>> {
        let kept = self.octets.clone();
        self.wipe();
        kept
    }

    /// Forgets them.
    pub(super) fn wipe(&mut self) {
        // Also zeroes what an earlier line has left in the buffer.
        self.octets.zeroize();
        self.line = None;
    }

    /// Keys go to the host with the next state.
    pub(super) fn on_keys(&mut self) {
        self.unsent = true;
    }

    /// This state has gone out, with all that was typed.
    pub(super) fn on_sent(&mut self, num: StateNum) {
        if take(&mut self.unsent) {
            self.keys = num;
        }
    }

    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Which line they are of.
    pub(super) fn line(&self) -> Option<u64> {
        self.line
    }

    /// The line has ended by itself. Whether the line that is there now echoes.
    pub(super) fn on_lost(&mut self, echoes: bool) {
        self.wipe();
        self.waits_for_echo = !echoes;
    }

    /// A line that echoes was seen.
    pub(super) fn on_echo(&mut self) {
        self.waits_for_echo = false;
    }
}

/// Without the octets, and without how many they are.
impl fmt::Debug for HeldLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLine").field("line", &self.line).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line_mode::LineMode;

    fn report(number: u64) -> LineReport {
        LineReport { mode: LineMode::Hidden, hidden: Some(number), may_be_kept: true }
    }

    #[test]
    fn each_octet_is_kept_or_sent() {
        for octet in 0..=u8::MAX {
            let kept = HeldLine::new().keep(&[octet], report(1), StateNum::ZERO);
            let edits = [0x08, 0x15, 0x17, 0x7f].contains(&octet);
            assert_eq!(kept, octet >= 0x20 || edits, "{octet:#x}");
        }
    }

    #[test]
    fn what_keeps_a_key_from_being_kept() {
        let raw = LineMode::Raw.into();
        let soon = LineReport { may_be_kept: false, ..report(1) };
        for (line, acked, kept) in
            [(report(1), 7, true), (report(1), 6, false), (raw, 7, false), (soon, 7, false)]
        {
            let mut held = HeldLine::new();
            held.on_keys();
            held.on_sent(7.into());
            assert_eq!(held.keep(b"a", line, StateNum::from(acked)), kept, "{line:?} {acked}");
        }
        let mut held = HeldLine::new();
        held.on_keys();
        assert!(!held.keep(b"a", report(1), StateNum::from(9)), "keys before it wait");
    }

    #[test]
    fn the_buffer_never_grows_and_is_wiped() {
        let mut held = HeldLine::new();
        let place = held.octets.as_ptr();
        let mut kept = 0;
        while held.keep(b"x", report(1), StateNum::ZERO) {
            kept += 1;
        }
        assert_eq!((kept, held.octets.len()), (OCTETS_MAX - 1, OCTETS_MAX - 1));
        assert_eq!(held.release().len(), OCTETS_MAX - 1);
        assert!(held.octets.is_empty() && held.octets.as_ptr() == place);
        assert!(held.octets.spare_capacity_mut().len() >= OCTETS_MAX);
        assert!(!format!("{held:?}").contains('x'));
    }
}
