//! The forwardings that the user asked for, and their listening sockets once they are ready.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::notice::OnFailure;
use crate::services::forward::listen::Listener;
use crate::services::forward::spec::{Bind, Listen, Spec};
use crate::services::status::reason;

/// Which end listens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The user's: `-L` and `-D`.
    Local,
    /// The server's: `-R`.
    Remote,
}

/// What the user wants forwarded.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ForwardRequests {
    /// Which end listens, and what it joins.
    pub forwards: Vec<(Side, Spec)>,
    /// The socket of the agent that the server's programs may use.
    pub agent: Option<PathBuf>,
    /// What a forwarding that cannot be set up means for the rest.
    pub on_failure: OnFailure,
}

/// Forwardings whose local sockets listen.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) local: Vec<(Listener, Spec)>,
    pub(crate) remote: Vec<Spec>,
    pub(crate) agent: Option<PathBuf>,
    /// What could not be set up.
    pub failures: Vec<String>,
    /// What a failure that is yet to come means.
    pub on_failure: OnFailure,
}

impl Ready {
    /// Whether nothing of it is at the host.
    pub(crate) fn is_here(&self) -> bool {
        self.remote.is_empty() && self.agent.is_none()
    }
}

impl ForwardRequests {
    /// Starts to listen at this end; what comes in waits for [`Ready::serve`].
    ///
    /// # Errors
    /// A socket that cannot be had, if that is to end everything.
    pub(crate) async fn listen(self) -> Result<Ready, Failure> {
        let (mut local, mut remote, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for (side, spec) in self.forwards {
            if side == Side::Remote {
                remote.push(spec);
                continue;
            }
            match Listener::bind(&spec.listen).await {
                Ok(listener) => local.push((listener, spec)),
                Err(error) => {
                    let what = format!("cannot listen on {}: {}", spec.listen, reason(&error));
                    if self.on_failure == OnFailure::Exit {
                        return Err(Failure::new(what, "ExitOnForwardFailure is set."));
                    }
                    failures.push(what);
                }
            }
        }
        Ok(Ready { local, remote, agent: self.agent, failures, on_failure: self.on_failure })
    }
}

/// Whether a forwarding is for more than the machine that listens.
pub fn is_public(listen: &Listen) -> bool {
    match listen {
        Listen::Unix(_) => false,
        Listen::Tcp { bind: Bind::Unsaid | Bind::Loopback, .. } => false,
        Listen::Tcp { bind: Bind::Any, .. } => true,
        Listen::Tcp { bind: Bind::Host(host), .. } => {
            !host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
    }
}
