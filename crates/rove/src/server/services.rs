//! A server's services to its client over channels: commands, connections, listening sockets, and
//! access to the user's agent. It acts only on the client's requests.

pub(crate) mod copies;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rove_streams::{Channel, Streams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::server::exec;
use crate::server::handover::{self, HandoverSocket};
use crate::server::service_config::ServiceConfig;
use crate::services::forward::listen::{
    CONNECTIONS_MAX, Duplex, Listener, connect, connect_unix, relay,
};
use crate::services::forward::spec::Listen;
use crate::services::silence::{COMMAND_KEPT, FORWARDINGS_KEPT};
use crate::services::status::{CONNECTED, FAILED, FULL, GIVEN_UP, reason};
use crate::services::{Call, Id, Request};

/// Remembers what a client has asked for.
#[derive(Debug, Default)]
pub(super) struct Requested {
    /// A command or a copy.
    works: AtomicBool,
}

impl Requested {
    fn note(&self, request: &Request) {
        if matches!(request, Request::Exec(_) | Request::Copy(_)) {
            self.works.store(true, Ordering::Relaxed);
        }
    }

    /// How long all that is kept for a client that is silent. A forwarding from the client's side asks for nothing before
    /// it is used.
    pub(super) fn kept(&self) -> Duration {
        match self.works.load(Ordering::Relaxed) {
            true => COMMAND_KEPT,
            false => FORWARDINGS_KEPT,
        }
    }
}

/// Serves the client's requests until the session is over. Unfinished work is then given up: programs get
/// SIGHUP.
pub(super) async fn serve(streams: Streams, mut config: ServiceConfig, asked: Arc<Requested>) {
    let mut tasks = JoinSet::new();
    if let Some(agent) = config.agent.take() {
        let streams = streams.clone();
        tasks.spawn(async move { agent.serve(streams).await });
    }
    let config = Arc::new(config);
    let served = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Some((request, channel)) = streams.accept().await {
        while tasks.try_join_next().is_some() {}
        // A request of a newer client's: the channel is given up, and it sees that.
        let Some(request) = Request::decode(&request) else { continue };
        asked.note(&request);
        let (streams, config, served) = (streams.clone(), Arc::clone(&config), Arc::clone(&served));
        // What becomes of a channel is told over it.
        tasks.spawn(async move { serve_one(request, channel, streams, &config, &served).await });
    }
}

async fn serve_one(
    request: Request,
    channel: Channel,
    streams: Streams,
    config: &ServiceConfig,
    served: &Arc<Semaphore>,
) -> io::Result<()> {
    match request {
        Request::Exec(command) => exec::serve(command, channel, &streams, config).await,
        Request::Copy(order) => {
            let home = config.surroundings.home();
            copies::serve(&order, channel, &streams, home, config.waits).await;
            Ok(())
        }
        Request::Connect(to) => join(channel, connect(&to).await).await,
        Request::ConnectUnix(path) => join(channel, connect_unix(&path).await).await,
        Request::Listen(id, listen) => listen_for(id, &listen, channel, streams, served).await,
    }
}

/// Tells the client whether a connection succeeded, and joins it with the channel.
async fn join(mut channel: Channel, reached: io::Result<Box<dyn Duplex>>) -> io::Result<()> {
    match reached {
        Ok(connection) => {
            channel.write_all(&[CONNECTED]).await?;
            relay(Box::new(channel), connection).await
        }
        Err(error) => refuse(channel, &error).await,
    }
}

/// Tells the client that a request failed, and why.
async fn refuse(mut channel: Channel, error: &io::Error) -> io::Result<()> {
    channel.write_all(&[FAILED]).await?;
    channel.write_all(reason(error).as_bytes()).await?;
    channel.shutdown().await
}

/// Listens until the client gives up the channel, and calls back with every connection. Another session of
/// the same user may take over the sockets while this one's client is away.
async fn listen_for(
    id: Id,
    listen: &Listen,
    mut control: Channel,
    streams: Streams,
    served: &Arc<Semaphore>,
) -> io::Result<()> {
    let bound = tokio::select! {
        bound = bind(listen) => bound,
        // What nobody wants any more is not taken from its holder.
        _ = control.read_u8() => return Ok(()),
    };
    let (listener, door) = match bound {
        Ok(bound) => bound,
        Err(error) => return refuse(control, &error).await,
    };
    control.write_all(&[CONNECTED]).await?;
    control.write_u16(listener.port()).await?;
    let mut tasks: JoinSet<io::Result<()>> = JoinSet::new();
    let mut is_told = false;
    {
        let passed = door.passed(&listener, &streams);
        tokio::pin!(passed);
        loop {
            while tasks.try_join_next().is_some() {}
            // Before it takes a place: who listens and serves nobody keeps none from others.
            let connection = tokio::select! {
                biased;
                () = &mut passed => break,
                _ = control.read_u8() => return Ok(()),
                connection = listener.accept() => connection,
            };
            if served.available_permits() == 0 && !std::mem::replace(&mut is_told, true) {
                control.write_u8(FULL).await?;
            }
            let permit = tokio::select! {
                biased;
                () = &mut passed => break,
                _ = control.read_u8() => return Ok(()),
                permit = Arc::clone(served).acquire_owned() => permit,
            };
            let streams = streams.clone();
            tasks.spawn(async move {
                let _permit = permit;
                let back = streams.open(&Call::Back(id).encode()).await;
                relay(Box::new(back.map_err(io::Error::other)?), connection).await
            });
        }
    }
    listener.leave();
    door.leave();
    control.write_u8(GIVEN_UP).await?;
    // The connections that there are go on as long as the client wants.
    let _ = control.read_u8().await;
    Ok(())
}

/// Starts to listen; asks another session of this user's for sockets that it holds.
async fn bind(listen: &Listen) -> io::Result<(Listener, HandoverSocket)> {
    match bind_free(listen).await {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            match handover::ask(listen).await {
                Some(passed) => Ok(passed),
                // Its holder may have ended meanwhile.
                None => bind_free(listen).await,
            }
        }
        bound => bound,
    }
}

/// Starts to listen where nobody does.
async fn bind_free(listen: &Listen) -> io::Result<(Listener, HandoverSocket)> {
    let listener = Listener::bind(listen).await?;
    let door = HandoverSocket::open(&listen.at(listener.port()));
    Ok((listener, door))
}

#[cfg(test)]
pub(super) mod tests;
