//! Runs one end of a copy over a channel.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::copy::pipe;
use crate::copy::receiver::Job;
use crate::copy::walk::Sources;
use crate::copy::watch::Watch;
use crate::copy::workers::Workers;
use crate::os::signals::outlive_size_limits;

/// Sends the sources over a channel; `limit` is in octets a second, 0 for none.
pub async fn send(
    channel: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    sources: Sources,
    limit: u64,
    is_heard: impl Fn() -> bool,
    watch: Arc<Watch>,
    workers: Workers,
) -> crate::copy::outgoing::Over {
    let buggify = watch.buggify().clone();
    let (inbox, out, moving) = pipe::join(channel.0, channel.1, limit, is_heard, buggify);
    watch.count_queue(out.queued());
    let work = workers
        .run(async move { crate::copy::sender::send(&sources, inbox, out, &watch, workers).await });
    let ((), over) = tokio::join!(moving, work);
    over.unwrap_or(crate::copy::outgoing::Over::Ended)
}

/// Receives from the other end of a channel. Needs a runtime that handles signals.
pub async fn receive(
    channel: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    job: Job,
    is_heard: impl Fn() -> bool,
    watch: Arc<Watch>,
) -> crate::copy::receiver::Over {
    outlive_size_limits();
    let buggify = watch.buggify().clone();
    let (inbox, out, moving) = pipe::join(channel.0, channel.1, 0, is_heard, buggify);
    let workers = job.workers;
    let work =
        workers.run(async move { crate::copy::receiver::receive(&job, inbox, out, &watch).await });
    let ((), over) = tokio::join!(moving, work);
    over.unwrap_or(crate::copy::receiver::Over::Ended)
}
