//! Tells the user which server was found.

use std::net::SocketAddr;

use rove_session::Peer;

use crate::bootstrap::Facts;
use crate::ssh::{Login, Secret, SshStream, Wires};
use crate::trace::Trace;

impl Login {
    /// Names the abilities that were asked for and that the server lacks, since it is older.
    pub(super) fn lacks(&self, secret: &Secret, stream: Option<&SshStream>) -> Vec<&'static str> {
        let is_native = matches!(secret, Secret::Native(..));
        let carries = self.request.carry && self.wires != Wires::Mosh;
        let wanted = [
            (self.wires != Wires::Mosh && !is_native, "the native wire"),
            (carries && stream.is_none(), "a second way over ssh"),
        ];
        wanted.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, what)| what).collect()
    }

    /// Says which server it is. All is well with a rove, so that only `-v` tells of it.
    pub(super) fn tell(
        &self,
        kind: Peer,
        version: Option<&str>,
        lacks: &[&str],
        at: SocketAddr,
        facts: &Facts,
        trace: &Trace,
    ) {
        let host = &self.host;
        match (kind, self.broken(facts)) {
            (Peer::Rove, _) => {
                let (version, own) = (version.unwrap_or("rove"), env!("CARGO_PKG_VERSION"));
                trace.step(format_args!("{host} runs {version}, this is rove {own}"));
                if !lacks.is_empty() {
                    trace.step(format_args!("it goes on without {}", lacks.join(" and ")));
                }
                trace.step(format_args!("going on by UDP with {at}"));
            }
            (Peer::Stock, Some(broken)) => {
                let line = self.install_line(&[]);
                trace.note(format_args!(
                    "{broken}; going on with mosh-server. A static one: {line}"
                ));
            }
            (Peer::Stock, None) => {
                trace.step(format_args!("{host} has no rove; its mosh-server is at UDP {at}"));
            }
        }
    }
}
