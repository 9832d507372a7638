//! The client's end of `rove cp`: opens the channels and reports to the user.

use std::sync::Arc;
use std::time::Duration;

use rove_streams::Channel;
use rove_streams::clock;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::copy::disk::Disk;
use crate::copy::order::Order;
use crate::copy::outgoing;
use crate::copy::receiver::{self, Job, Waits};
use crate::copy::relay::{self, End, relay};
use crate::copy::show::{Ending, LOOK, Show};
use crate::copy::target::Expected;
use crate::copy::transfer;
use crate::copy::transfer_error::TransferError;
use crate::copy::walk::{Sources, matches};
use crate::copy::watch::Watch;
use crate::copy::workers::Workers;
use crate::failure::Failure;
use crate::os::clock::Clock;
use crate::os::file_names::SHELL_EXPANDS;
use crate::os::process::umask;
use crate::os::signals::asked_to_end;
use crate::services::Request;
use crate::services::silence::{self, Silence};

pub use crate::copy::plan::{Direction, Host, Plan, Status, Style};

impl Plan {
    /// Refuses local sources that cannot be copied, before ssh asks for a password.
    pub fn check_sources(&self) -> Result<(), Failure> {
        let sources = match SHELL_EXPANDS {
            true => self.sources.clone(),
            false => self.sources.iter().flat_map(|path| matches(path)).collect(),
        };
        let why = crate::copy::walk::check(&sources, self.receive.recursive);
        why.map_or(Ok(()), |why| Err(Failure::new(why, "")))
    }

    /// The same for a local target.
    pub fn check_target(&self) -> Result<(), Failure> {
        receiver::check(&self.job()).map_err(|error| Failure::new(error.to_string(), ""))
    }

    fn order_to_send(&self) -> Order {
        let recursive = self.receive.recursive;
        Order::Send { recursive, limit: self.limit, sources: self.sources.clone() }
    }

    /// The order to receive; `sources` limit the names to accept, and are empty if this end sends.
    fn order_to_receive(&self, sources: Vec<Vec<u8>>) -> Order {
        Order::Receive { receive: self.receive, target: self.target.clone(), sources }
    }

    fn job(&self) -> Job {
        Job {
            target: self.target.clone(),
            receive: self.receive,
            expected: self.sources.iter().map(|source| Expected::of(source)).collect(),
            umask: umask(),
            disk: Disk::default(),
            workers: Workers::Threads,
            waits: Waits::Silent,
        }
    }
}

/// Copies over the streams of sessions, and shows progress.
pub async fn run(clock: Clock, way: Direction<'_>, plan: &Plan) -> Result<Status, Failure> {
    match way {
        Direction::There(host) => {
            let channel = open(host, &plan.order_to_receive(Vec::new())).await?;
            let watch = Arc::new(Watch::new(host.name));
            let sending = send(host, channel, plan, Arc::clone(&watch));
            show(clock, plan, &watch, way, sending).await
        }
        Direction::Here(host) => {
            let channel = open(host, &plan.order_to_send()).await?;
            let watch = Arc::new(Watch::new(host.name));
            let receiving = receive(host, channel, plan, Arc::clone(&watch));
            show(clock, plan, &watch, way, receiving).await
        }
        Direction::Between { from, to } => {
            let receiver = open(to, &plan.order_to_receive(plan.sources.clone())).await?;
            let sender = open(from, &plan.order_to_send()).await?;
            let watch = Arc::new(Watch::default());
            let end = |host: Host<'_>, channel: Channel| End {
                host: host.name.to_owned(),
                channel: channel.split(),
            };
            let passing = pass_on(end(from, sender), end(to, receiver), Arc::clone(&watch));
            show(clock, plan, &watch, way, passing).await
        }
    }
}

async fn open(host: Host<'_>, order: &Order) -> Result<Channel, Failure> {
    let order = order.encode().ok_or_else(|| {
        Failure::new("too many sources, or too long ones, for one copy", "Copy them in several.")
    })?;
    let channel = host.streams.open(&Request::Copy(order).encode()).await;
    channel.map_err(|ended| Failure::new(format!("the session ended: {ended}"), ""))
}

/// How long UDP may take to answer before a copy is said to go over ssh.
const UDP_WAIT: Duration = Duration::from_secs(2);

/// Shows the work until it ends, and the result. An error says why it ended early.
async fn show(
    clock: Clock,
    plan: &Plan,
    watch: &Watch,
    way: Direction<'_>,
    work: impl Future<Output = Result<(), TransferError>>,
) -> Result<Status, Failure> {
    let start = clock.now();
    let mut show = Show::new(plan.style);
    let silence = |host: Host<'_>| Silence::of(host.name, plan.give_up);
    let mut silences: Vec<_> = way.hosts().map(|host| (silence(host), host.streams)).collect();
    let interrupt = asked_to_end();
    tokio::pin!(work, interrupt);
    let mut looks = clock::interval(LOOK);
    // After a stop, what came meanwhile is read before the looks that were missed.
    let mut seconds = clock::interval(silence::LOOK);
    let end = loop {
        tokio::select! {
            biased;
            end = &mut work => break end,
            _ = looks.tick() => {
                watch.on_the_way(way.to().map_or(0, |to| to.streams.on_the_way()));
                show.look(watch, clock.now().since(start));
            }
            _ = seconds.tick() => {
                let over = silences.iter_mut().find_map(|(silence, at)| silence.is_over(at, "scp"));
                if let Some(why) = over {
                    break Err(why.into());
                }
                for (silence, streams) in &mut silences {
                    silence.look(streams).iter().for_each(|line| show.note(line));
                }
            }
            interrupt = &mut interrupt => {
                break Err(match interrupt {
                    Ok(_) => TransferError::Interrupted,
                    Err(error) => TransferError::Signals(error),
                });
            }
        }
    };
    if end.is_ok() {
        watch.on_the_way(0);
    }
    let ending = if end.is_ok() { Ending::Whole } else { Ending::BrokenOff };
    let elapsed = clock.now().since(start);
    if elapsed >= UDP_WAIT && way.hosts().any(|host| host.streams.is_over_stream()) {
        show.over_ssh();
    }
    show.end(watch, elapsed, ending);
    match end {
        Ok(()) if watch.tally().failed == 0 => Ok(Status::Copied),
        Ok(()) => Ok(Status::Failed),
        Err(error) => {
            let has_begun = watch.tally().bytes > 0;
            let next = "The same command goes on where this one ended.";
            Err(Failure::new(error.to_string(), if has_begun { next } else { "" }))
        }
    }
}

async fn send(
    Host { name, streams }: Host<'_>,
    channel: Channel,
    plan: &Plan,
    watch: Arc<Watch>,
) -> Result<(), TransferError> {
    let (paths, recursive) = (plan.sources.clone(), plan.receive.recursive);
    let sources = Sources { paths, recursive, patterns: !SHELL_EXPANDS };
    let is_heard = || streams.is_heard();
    let over =
        transfer::send(channel.split(), sources, plan.limit, is_heard, watch, Workers::Threads)
            .await;
    let host = name.to_owned();
    match over {
        outgoing::Over::Complete => Ok(()),
        outgoing::Over::Refused(why) => Err(TransferError::Refused { host, why }),
        outgoing::Over::Ended => Err(TransferError::Ended { host }),
        outgoing::Over::Malformed => Err(TransferError::Malformed { host }),
        outgoing::Over::TooMany => Err(TransferError::TooMany),
    }
}

async fn receive(
    Host { name, streams }: Host<'_>,
    channel: Channel,
    plan: &Plan,
    watch: Arc<Watch>,
) -> Result<(), TransferError> {
    let is_heard = || streams.is_heard();
    let over = transfer::receive(channel.split(), plan.job(), is_heard, watch).await;
    let host = name.to_owned();
    match over {
        receiver::Over::Complete => Ok(()),
        receiver::Over::Failed(why) => Err(TransferError::Failed(why)),
        receiver::Over::Refused(why) => Err(TransferError::Refused { host, why }),
        receiver::Over::Ended => Err(TransferError::Ended { host }),
    }
}

async fn pass_on<R, W>(
    from: End<R, W>,
    to: End<R, W>,
    watch: Arc<Watch>,
) -> Result<(), TransferError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    match relay(from, to, watch).await {
        relay::Over::Complete => Ok(()),
        relay::Over::Refused(host, why) => Err(TransferError::Refused { host, why }),
        relay::Over::Ended(host) => Err(TransferError::Ended { host }),
        relay::Over::Malformed(host) => Err(TransferError::Malformed { host }),
    }
}
