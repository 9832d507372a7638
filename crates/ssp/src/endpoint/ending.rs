//! How an endpoint's session ends, and how its owner learns that.

use super::{Endpoint, Event};
use crate::state::{State, StateNum};
use crate::time::Time;

impl<L: State, R: State> Endpoint<L, R> {
    /// Whether the session is over, but for the acknowledgment of its end. Drive this end until it has no more
    /// [timeout](crate::Machine::poll_timeout), and it repeats the acknowledgment, which may have been lost.
    pub fn lingers(&self) -> bool {
        self.lingers && !self.over
    }

    /// Ends a shutdown that has waited long enough, or that nobody can be told of.
    pub(super) fn end_if_due(&mut self, now: Time) {
        // The peer has left by a stream, which ended with it: it waits for no acknowledgment, or has it.
        if self.remote_num() == StateNum::SHUTDOWN && self.path.peer().is_none() {
            return self.finish(Event::Closed { clean: self.final_acks > 0 });
        }
        let unreachable = self.sender.waits_briefly() && self.path.peer().is_none();
        if unreachable || self.sender.close_deadline(&self.path.rtt).is_some_and(|at| at <= now) {
            self.finish(Event::Closed { clean: false });
        }
    }

    pub(super) fn finish(&mut self, event: Event) {
        if !self.over {
            self.over = true;
            self.applying = None;
            (self.outgoing, self.repairs) = (None, None);
            if !self.lingers {
                self.report(event);
            }
        }
    }

    /// The session is over for its owner.
    pub(super) fn linger(&mut self) {
        if !self.lingers {
            self.lingers = true;
            self.report(Event::Closed { clean: true });
        }
    }
}
