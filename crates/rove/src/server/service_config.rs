//! The parts of a session that its services use.

use crate::copy::receiver::Waits;
use crate::os::process::CoreLimit;
use crate::server::agent::Socket;
use crate::server::login::Surroundings;

/// The settings of services.
#[derive(Debug)]
pub(super) struct ServiceConfig {
    /// The surroundings of programs.
    pub surroundings: Surroundings,
    /// For programs: core files as they were.
    pub cores: CoreLimit,
    /// Where programs reach the user's agent, if the user lets them.
    pub agent: Option<Socket>,
    /// Whether the client is told which file waits for another copy.
    pub waits: Waits,
}
