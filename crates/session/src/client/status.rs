//! What the status panel is told of the session and of the path.

use rove_ssp::{Remote, Session as _, Time};

use crate::client::Client;
use crate::client::gauge::Sample;
use crate::client::panel::Figures;
use crate::escape::ServerState;

impl Client {
    /// What the panel shows.
    pub(super) fn figures(&self) -> Figures<'_> {
        let (endpoint, stats) = (self.endpoint(), self.endpoint().stats());
        Figures {
            gauge: &self.gauge,
            session: self.view().session(),
            server: self.server,
            on_stream: self.connection.peer().is_some_and(Remote::is_stream),
            sent: stats.sent,
            received: stats.received,
            waiting: endpoint.local().octets_held(),
            behind: self.lines_behind(),
            guesses: (self.predictor.right(), self.predictor.counted_resets()),
            versions: self.server_name.versions(),
            escape: self.bar.escape(),
        }
    }

    /// How many octets were typed.
    pub fn typed(&self) -> u64 {
        self.typed
    }

    /// How many guesses at what typed keys do were right, shown or not.
    pub fn right_guesses(&self) -> u64 {
        self.predictor.right()
    }

    /// Takes a sample of the path, once a second.
    pub(super) fn take_sample(&mut self, now: Time) {
        let taken = self.gauge.tick(now, || {
            let endpoint = self.connection.endpoint();
            let answers = self.bar.server(now) == ServerState::Answers;
            let (rtt, path) = (endpoint.rtt(), endpoint.path_stats());
            let sent = path.sent.unwrap_or_default();
            answers.then(|| Sample {
                round_trip: (rtt.samples() > 0).then(|| rtt.srtt()),
                sent_loss: path.sent.map(|sent| sent.loss),
                received_loss: path.received.loss,
                queue: sent.queue.max(path.received.queue),
            })
        });
        if taken && self.panel.is_some() {
            self.panel = Some(self.figures().lines());
        }
    }
}
