//! The names that integration tests, fuzz targets and the lab use, by module. No program uses this file.

pub use crate::cli::command;
pub use crate::failure::Failure;
pub use crate::net::port::HELD_LATE_MAX;
pub use crate::os::pty::look_at_line;
pub use crate::server::line_poll::LinePoller;
pub use crate::trace::{Trace, Verbosity};

pub mod bootstrap {
    pub use crate::bootstrap::nonce::Nonce;
    pub use crate::bootstrap::{
        Answer, Bind, CostProfile, Goal, Ports, Purpose, Reader, Refusal, Request, Server, Wire,
    };
}

pub mod cli {
    pub use crate::cli::config::{Config, ConfigError, HostConfig};
    pub use crate::cli::copy::{CopyArgs, CopyPlan};
    pub use crate::cli::exec::ExecArgs;
    pub use crate::cli::words::RoveArgs;

    pub mod mosh_client {
        pub use crate::cli::mosh_client::{Request, parse};
    }
}

pub mod client {
    pub use crate::client::session::Session;
    pub use crate::client::streams::beside;
    pub use crate::client::{Settings, WayBack, WaySetting, run};
}

pub mod copy {
    pub use crate::copy::buggify::Point;
    pub use crate::copy::disk::Disk;
    pub use crate::copy::name::{Name, fits};
    pub use crate::copy::order::{Links, Order, Receive};
    pub use crate::copy::transfer::{receive, send};
    pub use crate::copy::watch::{Tally, Watch};
    pub use crate::copy::workers::Workers;
    pub use crate::copy::{Expected, Sources};
    pub use crate::server::services::copies::serve;

    pub mod client {
        pub use crate::copy::client::{Direction, Host, Plan, Status, Style, run};
    }
    pub mod message {
        pub use crate::copy::message::{
            Digest, Entry, Kind, Malformed, Mark, Message, Outcome, Parser, Times,
        };
    }
    pub mod receiver {
        pub use crate::copy::receiver::{Job, Over, Waits};
    }
    pub mod sender {
        pub use crate::copy::outgoing::Over;
    }
}

pub mod install {
    pub use crate::install::executable::Executable;
}

pub mod keeper {
    pub use crate::keeper::message::{NoReply, Reply, Whereabouts, Wish};
}

pub mod net {
    pub use crate::net::choice::AddressChoice;
    pub use crate::net::frames::{FrameKind, FrameQueue, FrameReader};
}

pub mod os {
    pub use crate::os::clock::Clock;
    pub use crate::os::network_changes::NetworkChanges;
    pub use crate::os::process::harden;
    pub use crate::os::random;
    pub use crate::os::sandbox;
    pub use crate::os::sandbox::{Named, Ports, Reach, confine, confine_all};
    pub use crate::os::tty::Tty;
}

pub mod server {
    pub use crate::server::options::{Greeting, Options, Request, parse};
    pub use crate::server::program::Program;
}

pub mod services {
    pub use crate::services::silence::COMMAND_KEPT;
    pub use crate::services::{Call, Request};

    pub mod agent {
        pub use crate::services::forward::agent::{MESSAGE_BYTES_MAX, Question, read, write};
    }
    pub mod exec {
        pub use crate::services::exec::frame::{Frame, HEAD_BYTES, length};
    }
    pub mod forward {
        pub use crate::services::forward::config::Config;
        pub use crate::services::forward::wishes::{Side, is_public};
    }
    pub mod socks {
        pub use crate::services::forward::socks::{OCTETS_MAX, Reader, Step};
    }
    pub mod spec {
        pub use crate::services::forward::spec::{Endpoint, Spec};
    }
}

pub mod sessions {
    pub use crate::sessions::line::{Request, Session};
    pub use crate::sessions::words::{octets, word};
}

pub mod ssh {
    pub use crate::ssh::report::{against_hindrances, host_name};
    pub use crate::ssh::{Candidates, Family, Login, Reached, Secret, SshStream, Via, Wires};
}

pub mod udp {
    pub use crate::net::udp::{DATAGRAM_BYTES_MAX, is_quic};
}
