//! The ways of a trial's session: how UDP and the stream are at its beginning, in its middle, and when all is well again.

use std::time::Duration;

use rove_ssp::{Session as _, Time};

use super::{ROUND_TRIP, Trial};
use crate::byte_stream::StreamProfile;
use crate::link::Profile;
use crate::rng::Chance;
use crate::scenario::Scenario;
use crate::session::Session;
use crate::ways::Ways;
use crate::world::Fault;

/// Octets on their way by a stream: its window, the first fragments of one more instruction, and what is about the path.
const STREAM_OCTETS_MAX: usize = 32 << 10;

/// Those of slots that say nothing new: 36 a second, of 512 octets where the slots before said that much, for a round trip of
/// three seconds and three of silence.
const SLOT_OCTETS_MAX: usize = 36 * 512 * 6;

/// A datagram each 250 ms to an end that does not answer.
const ASKED_OCTETS_A_SECOND: usize = 4 * 150;

impl Trial<'_> {
    /// ssh is there from the first moment, or is started later.
    pub(super) fn open_stream(&mut self) {
        let Some(ways) = &self.scenario.ways else { return };
        let Session { world, client_id, server_id } = &mut self.session;
        if ways.opens > Time::ZERO {
            world.open_stream_at(ways.opens, *client_id, *server_id);
            return;
        }
        world.set_stream_profile(&StreamProfile::delay(ways.stream.delay));
        let stream = world.open_stream(*client_id, *server_id);
        let now = world.local_now(*client_id);
        self.session.client_mut().client.stream_opened(now, stream);
        let path = Profile::delay(self.scenario.up.delay);
        self.set_paths([&path, &path]);
    }

    /// How UDP is from now on.
    pub(super) fn set_paths(&mut self, paths: [&Profile; 2]) {
        let own = || paths.map(Profile::clone);
        let [up, down] = self.scenario.ways.as_ref().map_or_else(own, |ways| ways.udp(paths));
        let Session { world, client_id, server_id } = &mut self.session;
        world.set_profile(*client_id, *server_id, up);
        world.set_profile(*server_id, *client_id, down);
    }

    /// Little waits in a stream, so that nothing in it is old, but for what asks for an answer while none can come, and
    /// slots, which leave whether they are answered or not.
    pub(super) fn measure_stream(&self) -> Result<(), Fault> {
        let Scenario { client_sleeps, server_sleeps, ways, sender, .. } = self.scenario;
        let asleep: Duration =
            client_sleeps.iter().chain(server_sleeps).map(|(_, span)| *span).sum();
        let outages = ways.iter().flat_map(|ways| &ways.stream.outages);
        let cut: Duration = outages.map(|outage| outage.end.since(outage.start)).sum();
        let asked = ASKED_OCTETS_A_SECOND * (asleep + cut).as_secs() as usize;
        let slots = if sender.client.slots.is_some() { SLOT_OCTETS_MAX } else { 0 };
        match self.session.world.stream_octets_most() {
            most if most > STREAM_OCTETS_MAX + slots + asked => {
                self.fault(format!("{most} octets were on their way by a stream"))
            }
            _ => Ok(()),
        }
    }

    /// Heals the link, and stops the attacker.
    pub(super) fn heal_link(&mut self) {
        let Session { world, client_id, server_id } = &mut self.session;
        world.set_stream_profile(&StreamProfile::delay(ROUND_TRIP / 2));
        world.set_attacker(Chance::NEVER);
        let fair = Profile::delay(ROUND_TRIP / 2);
        match self.scenario.ways.as_ref().is_some_and(Ways::stays) {
            true => self.set_paths([&fair, &fair]),
            false => {
                world.set_profile(*client_id, *server_id, fair.clone());
                world.set_profile(*server_id, *client_id, fair);
            }
        }
    }
}
