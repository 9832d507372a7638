//! A long absence in a trial: for minutes nobody types and the program writes nothing, with the laptop open or closed.

use rove_session::past::Past;

use super::{MINUTE, Trial};
use crate::absence::{Absence, Lid};
use crate::world::{Fault, Notice};

impl Trial<'_> {
    /// Lets it pass. Neither end says much meanwhile.
    pub(super) fn be_away(&mut self) -> Result<(), Fault> {
        let Absence { span, lid } = self.scenario.absence;
        let past = self.session.server().server.endpoint().local().past();
        let on_way = past.map_or(0, Past::octets) as u64;
        let (world, client_id) = (&mut self.session.world, self.session.client_id);
        let start = world.now();
        let before = world.totals().sent;
        if lid != Lid::Open {
            world.suspend_at(start, client_id, span);
            self.long_sleeps += 1;
        }
        if lid == Lid::ClosedAndMoved {
            world.move_at(start + span / 2, client_id, Notice::None);
        }
        world.run_until(start + span)?;
        self.away = span;
        let sent = world.totals().sent - before;
        let minutes = span.as_secs().div_ceil(MINUTE.as_secs());
        // Lines that were on their way are repeated, until the client has not answered for long.
        match sent > DATAGRAMS_MAX * minutes + on_way / LINE_OCTETS_EACH {
            true => self.fault(format!(
                "{sent} datagrams in {minutes} minutes with nothing to say but {on_way} octets of lines"
            )),
            false => Ok(()),
        }
    }
}

/// Datagrams of both ends in a minute in which nothing happens. Who is not answered asks each 250 ms for a minute, and
/// each second from then on; a beat every three seconds and its answer, what searches the path or tries UDP are fewer.
const DATAGRAMS_MAX: u64 = 300;

/// Octets of lines for each of which one more may go: eight repetitions in datagrams of the shortest path.
const LINE_OCTETS_EACH: u64 = 50;
