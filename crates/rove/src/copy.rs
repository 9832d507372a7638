//! `rove cp`: files between two machines over one byte stream in each direction.
//!
//! Both ends run the same code: a sender lists and sends, a receiver decides and asks. Neither
//! knows what carries the octets, nor which of them is the client.

pub mod client;
pub mod disk;
mod hashed;
pub mod location;
pub mod message;
pub mod name;
pub mod order;
mod part;
pub mod pipe;
pub mod receiver;
pub mod relay;
pub mod sender;
mod service;
mod show;
mod target;
mod walk;
pub mod watch;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::signal::unix::{SignalKind, signal};

pub use self::service::serve;
pub use self::target::Expected;
pub use self::walk::Sources;

use self::receiver::Job;
use self::watch::Watch;

/// Sends the sources over a channel; `limit` is how many octets a second at most, 0 for any number.
pub async fn send(
    channel: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    sources: Sources,
    limit: u64,
    is_heard: impl Fn() -> bool,
    watch: Arc<Watch>,
) -> sender::Over {
    let (inbox, out, moving) = pipe::join(channel.0, channel.1, limit, is_heard);
    watch.count_queue(out.queued());
    let work = tokio::task::spawn_blocking(move || sender::send(&sources, inbox, out, &watch));
    let ((), over) = tokio::join!(moving, work);
    over.unwrap_or(sender::Over::Ended)
}

/// Receives what the other end of a channel sends. Must be called within a runtime that handles signals.
pub async fn receive(
    channel: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
    job: Job,
    is_heard: impl Fn() -> bool,
    watch: Arc<Watch>,
) -> receiver::Over {
    outlive_size_limits();
    let (inbox, out, moving) = pipe::join(channel.0, channel.1, 0, is_heard);
    let work = tokio::task::spawn_blocking(move || receiver::receive(&job, inbox, out, &watch));
    let ((), over) = tokio::join!(moving, work);
    over.unwrap_or(receiver::Over::Ended)
}

/// Has a write beyond RLIMIT_FSIZE fail, which is told, where by itself it ends the process. A handler, which
/// stays for good, and not `SIG_IGN`: programs that are started get the default back.
fn outlive_size_limits() {
    // Without one the process ends as it would have.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}
