//! The streams of each client of a session. They end with their client.

use std::io;

use rove_session::ViewerId;
use rove_ssp::Remote;

use crate::copy::receiver::Waits;
use crate::net::udp::Socket;
use crate::os::process::CoreLimit;
use crate::os::threads;
use crate::server::login::Surroundings;
use crate::server::service_config::ServiceConfig;
use crate::server::streams::StreamService;

/// The streams of a session's clients, those that began and those that may.
#[derive(Debug)]
pub(super) struct Besides {
    surroundings: Surroundings,
    cores: CoreLimit,
    services: Vec<(ViewerId, StreamService)>,
}

impl Besides {
    /// Those of the first client.
    pub(super) fn new(
        surroundings: Surroundings,
        cores: CoreLimit,
        first: StreamService,
    ) -> Besides {
        Besides { surroundings, cores, services: vec![(ViewerId::from(0), first)] }
    }

    /// Another client may want streams, whose secret is this.
    pub(super) fn add(&mut self, client: ViewerId, secret: Option<&[u8; 32]>) {
        let surroundings = self.surroundings.clone();
        // The agent of the session is the first client's.
        let config =
            ServiceConfig { surroundings, cores: self.cores, agent: None, waits: Waits::Silent };
        self.services.push((client, StreamService::new(secret, config)));
    }

    /// Programs wait for the first client's agent, which is there now.
    pub(super) fn begin_agent(&mut self, port: &Socket) -> io::Result<()> {
        for (_, service) in self.services.iter_mut().filter(|(_, it)| it.has_agent()) {
            service.begin(port, None)?;
        }
        self.admit(port);
        Ok(())
    }

    /// A datagram of QUIC's came that may begin a connection: of the streams that it is for, which take it and all that
    /// follow.
    pub(super) fn quic(&mut self, port: &Socket, from: Remote, datagram: &[u8]) -> io::Result<()> {
        self.admit(port);
        let asked = self.services.iter_mut().find(|(_, it)| it.is_asked_for(datagram));
        match asked {
            Some((_, service)) => {
                service.begin(port, Some((from, datagram)))?;
                self.admit(port);
            }
            None => port.hand_on(from, datagram),
        }
        Ok(())
    }

    /// Other clients' connections may begin while streams run.
    pub(super) fn admit(&self, port: &Socket) {
        port.admit(self.services.iter().any(|(_, service)| service.is_idle()));
    }

    /// An authentic datagram of this client has come.
    pub(super) fn heard(&self, client: ViewerId) {
        for (_, service) in self.services.iter().filter(|(id, _)| *id == client) {
            service.heard();
        }
    }

    /// A key has come: bulk yields for a moment.
    pub(super) fn stir(&self) {
        for (_, service) in &self.services {
            service.stir();
        }
    }

    /// Ends the streams of clients that are gone.
    pub(super) fn keep(&mut self, is_there: impl Fn(ViewerId) -> bool) {
        let (kept, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.services).into_iter().partition(|(id, _)| is_there(*id));
        self.services = kept;
        if !gone.is_empty() {
            // What runs for them is given up in good order, which takes its time. Without a thread it takes ours.
            let _ = threads::spawn("ending", move || drop(gone));
        }
    }
}
