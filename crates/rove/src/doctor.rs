//! `rove doctor`: looks at everything that a session needs, here and on a host, and says what to do about what is amiss.
//!
//! The host tells of itself in the conversation that starts a server for streams alone, so that the user logs in once.
//! Datagrams of that session then find out what the network does.

mod check;
mod host;
mod probe;

pub(crate) use check::{Check, Form, Report};

use rove_session::Peer;

use crate::bootstrap::Reader;
use crate::os::clock::Clock;
use crate::ssh::{Found, Login};
use crate::trace::Trace;

/// Looks at a host. `login` asks for [`Purpose::Checks`](crate::bootstrap::Purpose::Checks).
pub(crate) async fn examine(clock: Clock, login: &Login, report: &mut Report, trace: &Trace) {
    let mut reader = Reader::new(login.request.nonce.clone());
    let begun = clock.now();
    let found = login.search_by(&mut reader, trace).await;
    let took = clock.now().since(begun);
    report.add(host::ssh(reader.begun(), &found, took));
    if !reader.begun() {
        return;
    }
    report.add(host::noise(&login.host, reader.noise()));
    let facts = reader.facts();
    report.add(host::server(login, &found, facts));
    for check in host::of_facts(login, facts) {
        report.add(check);
    }
    if let Ok(Found::Server(reached)) = found {
        let is_rove = reached.kind == Peer::Rove;
        probe::examine(clock, login, reached, report, trace).await;
        if is_rove {
            report.add(host::way_back(clock, login, trace).await);
        }
    }
}
