//! What goes out in a slot of a run, or as an answer to one: something always does. It must not know when slots are.

use crate::path::Path;
use crate::sender::adaptive::AdaptivePolicy;
use crate::sender::core::{Core, DIFF_BYTES_MAX, Number, Prepared};
use crate::state::State;
use crate::stats::Stats;
use crate::time::Time;
use crate::wire::Flags;

/// How much a slot may carry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Room {
    /// At most this many octets of a diff that can be sent in parts. Its datagram always has the same length.
    Short(usize),
    /// All there is.
    Any,
}

/// A diff up to this length is repeated in each slot until it is acknowledged. A longer one is repeated when its answer is late.
const REPEATED_MAX: usize = 400;

impl AdaptivePolicy {
    /// Sends new or unacknowledged changes, or else an idle instruction.
    pub(crate) fn poll_slot<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        path: &Path,
        room: Room,
        stats: &mut Stats,
    ) -> Prepared {
        self.acks.on_sent(now);
        let said = self.poll_news(now, core, path, room, stats);
        // A beat makes a state equal to the known one: it would take back what is on its way.
        let is_told = !core.history.is_pending();
        let beats = is_told && core.heartbeat_at(self.rest()).is_some_and(|at| at <= now);
        match said {
            Some(said) => said,
            None if beats => core.send_nothing(now, Number::New, stats).into(),
            None => core.only_acknowledge(),
        }
    }

    fn poll_news<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        path: &Path,
        room: Room,
        stats: &mut Stats,
    ) -> Option<Prepared> {
        let is_new = !core.history.last().current;
        if core.too_long || !is_new && !core.history.is_pending() {
            return None;
        }
        // A full window keeps news out of a slot, though not the slot. In a stream what went before comes anyway, so
        // that it need not be repeated there either.
        let is_full = room == Room::Any && self.open_at(path) > now;
        if is_full && (is_new || path.is_on_stream()) {
            return None;
        }
        if let Room::Short(octets) = room
            && !core.history.is_ahead_of_part(octets)
            && let Some((version, diff)) = core.history.part(octets)
        {
            if core.history.last_is(&version) {
                return Some(self.repeat(now, core, path, diff, stats));
            }
            stats.states_sent += 1;
            self.redundancy.sent_new(now);
            return Some(core.send_part(now, diff, version).into());
        }
        let mut base = 0;
        let mut diff = core.history.known_diff();
        if diff.is_empty() || diff.len() > REPEATED_MAX {
            if !is_new && self.redundancy.again_at(&path.rtt) > now {
                return None;
            }
            (base, diff) = core.choose(now, self.redundancy.pto(&path.rtt));
        }
        if diff.len() > DIFF_BYTES_MAX {
            core.keep_back(stats);
            return None;
        }
        if diff.is_empty() {
            core.adopt(base);
            return None;
        }
        if !is_new {
            if base == 0 {
                return Some(self.repeat(now, core, path, diff, stats));
            }
            return None;
        }
        stats.states_sent += 1;
        self.redundancy.sent_new(now);
        Some(core.send(now, base, diff, Number::New).into())
    }

    fn repeat<L: State>(
        &mut self,
        now: Time,
        core: &mut Core<L>,
        path: &Path,
        diff: alloc::vec::Vec<u8>,
        stats: &mut Stats,
    ) -> Prepared {
        stats.resends += 1;
        let again = self.redundancy.again_at(&path.rtt) <= now;
        if again {
            self.redundancy.sent_again(now, &path.rtt);
        }
        let flags = Flags { again, ack_only: false };
        Prepared { flags, ..core.send(now, 0, diff, Number::Last).into() }
    }
}
