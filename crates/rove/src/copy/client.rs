//! The client's end of `rove cp`: a session of its own, one channel, and what the user is told.

use std::process::ExitCode;
use std::sync::Arc;

use rove_streams::{Channel, Streams};

use crate::clock::Clock;
use crate::copy::disk::{Disk, umask};
use crate::copy::order::{Order, Receive};
use crate::copy::receiver::{self, Job};
use crate::copy::sender;
use crate::copy::show::{Ending, LOOK, Show};
use crate::copy::target::Expected;
use crate::copy::walk::Sources;
use crate::copy::watch::Watch;
use crate::failure::Failure;
use crate::services::Request;

pub use crate::copy::show::Style;

/// Which way the files go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// To the host.
    There,
    /// From it.
    Here,
}

/// One copy between this machine and a host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// The host, as it is called before paths there.
    pub host: String,
    /// Which way.
    pub direction: Direction,
    /// Paths at the one end.
    pub sources: Vec<Vec<u8>>,
    /// A path at the other.
    pub target: Vec<u8>,
    /// Directories too.
    pub recursive: bool,
    /// With their times.
    pub preserve: bool,
    /// The target must be a directory.
    pub several: bool,
    /// Octets a second at most; 0 for any number.
    pub limit: u64,
    /// What is shown.
    pub style: Style,
}

/// How a copy went, the worst last.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Status {
    /// Everything was copied.
    Copied,
    /// Something was not, which was told.
    Failed,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        match status {
            Status::Copied => ExitCode::SUCCESS,
            Status::Failed => ExitCode::FAILURE,
        }
    }
}

impl Plan {
    fn receive(&self) -> Receive {
        Receive { recursive: self.recursive, preserve: self.preserve, several: self.several }
    }

    fn order(&self) -> Order {
        match self.direction {
            Direction::There => {
                Order::Receive { receive: self.receive(), target: self.target.clone() }
            }
            Direction::Here => Order::Send {
                recursive: self.recursive,
                limit: self.limit,
                sources: self.sources.clone(),
            },
        }
    }

    fn job(&self) -> Job {
        Job {
            target: self.target.clone(),
            receive: self.receive(),
            expected: self.sources.iter().map(|source| Expected::of(source)).collect(),
            umask: umask(),
            disk: Disk::default(),
        }
    }

    /// Refuses what cannot work before ssh asks for a password.
    pub fn check(&self) -> Result<(), Failure> {
        let why = match self.direction {
            Direction::Here => receiver::check(&self.job()).err(),
            Direction::There => crate::copy::walk::check(&self.sources, self.recursive),
        };
        why.map_or(Ok(()), |why| Err(Failure::new(why, "")))
    }
}

/// Copies over a session's streams, and shows it.
pub async fn run(clock: Clock, streams: &Streams, plan: &Plan) -> Result<Status, Failure> {
    let order = plan.order().encode().ok_or_else(|| {
        Failure::new("too many sources, or too long ones, for one copy", "Copy them in several.")
    })?;
    let channel = streams.open(&Request::Copy(order).encode()).await;
    let channel =
        channel.map_err(|ended| Failure::new(format!("the session ended: {ended}"), ""))?;
    let watch = Arc::new(Watch::new(&plan.host));
    let start = clock.now();
    let mut show = Show::new(plan.style);
    let is_heard = || streams.is_heard();
    let work = work(plan, channel, is_heard, Arc::clone(&watch));
    tokio::pin!(work);
    let mut looks = tokio::time::interval(LOOK);
    let end = loop {
        tokio::select! {
            biased;
            end = &mut work => break end,
            _ = looks.tick() => show.look(&watch, clock.now().since(start)),
            interrupt = tokio::signal::ctrl_c() => {
                let why = interrupt.map_or_else(|error| error.to_string(), |()| "interrupted".into());
                break Err(why);
            }
        }
    };
    let ending = if end.is_ok() { Ending::Whole } else { Ending::BrokenOff };
    show.end(&watch, clock.now().since(start), ending);
    match end {
        Ok(()) if watch.tally().failed == 0 => Ok(Status::Copied),
        Ok(()) => Ok(Status::Failed),
        Err(why) => {
            let next = "The same command goes on where this one ended.";
            Err(Failure::new(why, next))
        }
    }
}

/// Runs this end of the copy. An error is why it ended before its time.
async fn work(
    plan: &Plan,
    channel: Channel,
    is_heard: impl Fn() -> bool,
    watch: Arc<Watch>,
) -> Result<(), String> {
    let host = &plan.host;
    let ended = || format!("the session with {host} ended before the copy");
    let channel = channel.split();
    match plan.direction {
        Direction::There => {
            let sources =
                Sources { paths: plan.sources.clone(), recursive: plan.recursive, patterns: false };
            match crate::copy::send(channel, sources, plan.limit, is_heard, watch).await {
                sender::Over::Complete => Ok(()),
                sender::Over::Refused(why) => Err(format!("{host}:{why}")),
                sender::Over::Ended => Err(ended()),
                sender::Over::Malformed => Err(format!("{host} does not keep to the protocol")),
                sender::Over::TooMany => Err("more files than one copy can number".to_owned()),
            }
        }
        Direction::Here => match crate::copy::receive(channel, plan.job(), is_heard, watch).await {
            receiver::Over::Complete => Ok(()),
            receiver::Over::Failed(why) => Err(why),
            receiver::Over::Refused(why) => Err(format!("{host}:{why}")),
            receiver::Over::Ended => Err(ended()),
        },
    }
}
