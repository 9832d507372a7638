//! Keeps what is typed on a hidden line until its end, and sends it as one state that does not tell how long it is.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::vec::Vec;

use rove_ssp::Time;
use rove_term::is_mouse_motion;
use zeroize::{Zeroize, Zeroizing};

use crate::client::bar::{Lifetime, WARNING_STAYS};
use crate::client::keys::Step;
use crate::client::partial::observe;
use crate::client::{Client, Obscure};
use crate::line_mode::LineMode;
use crate::view::Peer;

/// What comes in one read and is longer is a paste: slots need not carry it piece by piece.
const PASTED_MIN: usize = 32;

impl Client {
    /// Tells the user, once, where the other end cannot do what was asked for.
    pub(super) fn check_obscuring(&mut self, now: Time) {
        if self.obscure != Obscure::Always || self.told_of_obscuring {
            return;
        }
        self.told_of_obscuring = true;
        if self.connection.endpoint().answers_slots() != Some(true) {
            let text = match self.peer {
                Peer::Stock => "mosh-server cannot hide typing".to_owned(),
                // The host may be as new as this end.
                Peer::Rove if !self.connection.endpoint().wire_has_slots() => {
                    "the mosh wire cannot hide typing".to_owned()
                }
                Peer::Rove => {
                    let there =
                        self.server_name.version().map(|version| format!(" ({version} there)"));
                    format!("this host cannot hide typing{}", there.unwrap_or_default())
                }
            };
            self.bar.warn(now, &text);
        }
    }

    /// Whether datagrams leave in slots at present.
    pub fn is_in_run(&self, now: Time) -> bool {
        self.connection.endpoint().is_in_run(now)
    }

    /// The time between two datagrams of a run of slots, while one is on: where much is lost they are half as far apart.
    pub fn slots_apart(&self) -> Option<core::time::Duration> {
        self.connection.endpoint().slots_apart()
    }

    /// Whether streams beside the session are to leave room, since this was asked last: keys came, or in a run a slot's
    /// datagram left. In a run keys do not count, so that streams tell no more of them than slots do. For after all is sent.
    pub fn take_activity(&mut self) -> bool {
        core::mem::take(&mut self.is_active)
    }

    /// How many typed octets wait for the end of a hidden line.
    pub fn keys_held(&self) -> usize {
        self.held_line.octets().len()
    }

    /// Takes typed keys: `plain` as a terminal without any protocol sends them. Keeps those that may be, and else sends
    /// what was kept ahead of them.
    pub(super) fn take_keys(&mut self, now: Time, plain: &[u8], steps: &mut [Step]) {
        let mut sent = steps.iter().filter_map(|step| match step {
            Step::Typed(octets) | Step::Untyped(octets) => Some(octets),
            _ => None,
        });
        if sent.clone().any(|octets| !is_mouse_motion(octets)) {
            self.connection.typed(now);
        } else if sent.next().is_some() {
            self.connection.mouse_moved(now);
        }
        let mut told = Zeroizing::new(self.held_line.octets().to_vec());
        told.extend_from_slice(plain);
        let sends = steps.iter_mut().any(|step| {
            let (Step::Typed(octets) | Step::Untyped(octets)) = step else { return false };
            if self.keep(octets) {
                octets.zeroize();
            }
            !octets.is_empty()
        });
        if !sends || told.is_empty() {
            return;
        }
        self.predictor.keys(now, &told, observe(self.connection.endpoint(), &self.parts));
    }

    fn keep(&mut self, octets: &[u8]) -> bool {
        let view = self.connection.endpoint().remote();
        let line = view.line_report().filter(|_| self.obscure != Obscure::Never);
        line.is_some_and(|line| self.held_line.keep(octets, line, view.echo_ack()))
    }

    /// Sends octets, and what was kept ahead of them in the same state.
    pub(super) fn send(&mut self, now: Time, octets: &[u8]) {
        let mut whole = self.held_line.release();
        if whole.is_empty() && octets.is_empty() {
            return;
        }
        self.typed += (whole.len() + octets.len()) as u64;
        self.held_line.on_keys();
        // A password that is pasted with its Enter, or typed before the host said that it may be kept, is one, too.
        let is_open =
            self.view().line() != Some(LineMode::Hidden) || self.obscure == Obscure::Never;
        if octets.len() > PASTED_MIN && is_open {
            self.connection.pasted();
        }
        if whole.is_empty() && is_open {
            return self.connection.update(now, |input| input.push_keys(octets));
        }
        let mut all = Zeroizing::new(Vec::with_capacity(whole.len() + octets.len()));
        all.extend_from_slice(&whole);
        all.extend_from_slice(octets);
        whole.zeroize();
        self.connection.update_hidden(now, |input| input.push_secret(&all));
    }

    /// The newest frame says this of the line. Keys of a line that has ended by itself are forgotten: the program that
    /// reads now is another.
    pub(super) fn look_at_line(&mut self, now: Time) {
        let Some(line) = self.view().line_report() else { return };
        let echoes = line.mode == LineMode::Cooked;
        if echoes {
            self.held_line.on_echo();
        }
        if self.held_line.octets().is_empty() {
            return;
        }
        if line.hidden.is_none() || line.hidden != self.held_line.line() {
            self.held_line.on_lost(echoes);
            let text = "the hidden line ended; what was typed there was not sent";
            self.bar.say(text, Lifetime::Until(now + WARNING_STAYS));
        } else if !line.may_be_kept {
            // One of them may be a special character by now.
            self.send(now, &[]);
        }
    }
}
