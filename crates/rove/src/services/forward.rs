//! The user's end of forwardings: listens for `-L` and `-D`, has the server listen for `-R`, and answers the
//! server's calls.
//!
//! A server never chooses where to connect: it names the number of a forwarding that the user has asked for,
//! and this end looks up the target.

pub(crate) mod wishes;

pub(crate) mod agent;
pub(crate) mod apart;
pub(crate) mod config;
pub(crate) mod listen;
pub(crate) mod socks;
pub(crate) mod spec;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rove_streams::clock;
use rove_streams::{Channel, Streams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc};

use self::listen::{CONNECTIONS_MAX, Duplex, Listener, connect, connect_unix, relay};
use self::socks::{Outcome, Step, Version};
use self::spec::{Endpoint, Listen, Spec, Target};
use crate::notice::Notice;
use crate::os::sandbox::{Named, Ports};
use crate::printable::printable;
use crate::services::calls::{CALLED_BACK_MAX, Callbacks};
use crate::services::forward::wishes::Ready;
use crate::services::status::{CONNECTED, FULL, GIVEN_UP, reason};
use crate::services::{Id, Request};

/// How long a program may take to say by SOCKS where it wants to go.
const SOCKS_WAIT: Duration = Duration::from_secs(30);

/// Interval of checks whether the peer is heard meanwhile.
const HEARD_LOOK: Duration = Duration::from_secs(1);

/// Longest reason that a server gives.
const REASON_BYTES_MAX: u64 = 1024;

impl Ready {
    /// Whether there is nothing to serve.
    pub(crate) fn is_empty(&self) -> bool {
        self.local.is_empty() && self.remote.is_empty() && self.agent.is_none()
    }

    /// The TCP ports that listen here, 0 for Unix sockets, in the order in which they were wished for.
    #[cfg(test)]
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.local.iter().map(|(listener, _)| listener.port()).collect()
    }

    /// What serving needs, besides the channels and the listening sockets.
    pub(crate) fn named(&self) -> Named {
        let mut named = Named { unix: self.agent.is_some(), ..Named::default() };
        for (_, spec) in &self.local {
            if let Listen::Unix(path) = &spec.listen {
                named.places.push(path.clone());
            }
        }
        for spec in &self.remote {
            match &spec.target {
                Target::Unix(_) => named.unix = true,
                Target::Socks => (named.ports, named.names) = (Ports::All, true),
                Target::Tcp(to) => {
                    named.names |= to.host.parse::<IpAddr>().is_err();
                    if let Ports::These(ports) = &mut named.ports {
                        ports.insert(to.port);
                    }
                }
            }
        }
        named
    }

    /// The same for the runtime that this is called in.
    fn moved_here(self) -> io::Result<Ready> {
        let moved = |(listener, spec): (Listener, Spec)| Ok((listener.moved_here()?, spec));
        let local = self.local.into_iter().map(moved).collect::<io::Result<_>>()?;
        Ok(Ready { local, ..self })
    }

    /// Serves all forwardings until the session is over.
    pub(crate) async fn serve(
        self,
        streams: Streams,
        calls: Callbacks,
        news: mpsc::Sender<Notice>,
    ) {
        let mut tasks = tokio::task::JoinSet::new();
        let served = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        for (listener, spec) in self.local {
            let (streams, served, news) = (streams.clone(), Arc::clone(&served), news.clone());
            tasks.spawn(serve_local(listener, spec, streams, served, news));
        }
        let told = self.remote.into_iter().map(|spec| {
            let (tell, told) = tokio::sync::oneshot::channel();
            tasks.spawn(serve_remote(spec, streams.clone(), calls.clone(), news.clone(), tell));
            told
        });
        let told: Vec<_> = told.collect();
        tasks.spawn(calls.answer(streams, self.agent, news.clone()));
        for told in told {
            // A forwarding that ended untold has told its failure.
            let _ = told.await;
        }
        // Whoever does not listen any more has what they wanted.
        let _ = news.send(Notice::Settled).await;
        while tasks.join_next().await.is_some() {}
    }
}

/// Has connections to a local socket go on from the server.
async fn serve_local(
    listener: Listener,
    spec: Spec,
    streams: Streams,
    served: Arc<Semaphore>,
    news: mpsc::Sender<Notice>,
) {
    let mut tasks = tokio::task::JoinSet::new();
    let mut is_told = false;
    loop {
        while tasks.try_join_next().is_some() {}
        // Before it takes a place: who listens and serves nobody keeps none from others.
        let connection = listener.accept().await;
        if served.available_permits() == 0 && !std::mem::replace(&mut is_told, true) {
            let _ = news.try_send(Notice::Warning(full(&spec.listen)));
        }
        // Never closed.
        let Ok(permit) = Arc::clone(&served).acquire_owned().await else { return };
        let (streams, target, news) = (streams.clone(), spec.target.clone(), news.clone());
        tasks.spawn(async move {
            let _permit = permit;
            if let Err(error) = go_on(connection, target, &streams, &news).await {
                let _ =
                    news.try_send(Notice::Step(format!("a forwarded connection ended: {error}")));
            }
        });
    }
}

/// The notice that connections to this address wait.
fn full(listen: &Listen) -> String {
    format!("{CONNECTIONS_MAX} connections are forwarded at a time; more to {listen} wait")
}

/// Joins a connection with a channel to where it goes on from the server.
async fn go_on(
    mut connection: Box<dyn Duplex>,
    target: Target,
    streams: &Streams,
    news: &mpsc::Sender<Notice>,
) -> io::Result<()> {
    let request = match &target {
        Target::Tcp(to) => Request::Connect(to.clone()),
        Target::Unix(path) => Request::ConnectUnix(path.clone()),
        Target::Socks => {
            let asked = clock::within(SOCKS_WAIT, converse(&mut *connection)).await;
            let Some(asked) = asked?? else { return Ok(()) };
            let reached = reach(streams, Request::Connect(asked.to)).await;
            answer(&mut *connection, asked.version, Outcome::of(&reached)).await?;
            let mut channel = reached?;
            channel.write_all(&asked.early).await?;
            return relay(connection, Box::new(channel)).await;
        }
    };
    match reach(streams, request).await {
        Ok(channel) => relay(connection, Box::new(channel)).await,
        // Whoever connected sees only that the connection is closed.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            let what = format!("the host cannot reach {target}: {error}");
            let _ = news.try_send(Notice::Warning(what));
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Opens a channel to what a request names at the server, and waits until it is reached.
pub(crate) async fn reach(streams: &Streams, request: Request) -> io::Result<Channel> {
    let mut channel = streams.open(&request.encode()).await.map_err(io::Error::other)?;
    match channel.read_u8().await? {
        CONNECTED => Ok(channel),
        _ => Err(io::Error::new(io::ErrorKind::ConnectionRefused, why_not(channel).await)),
    }
}

/// Why something cannot be had, as the server gives it after [`FAILED`].
async fn why_not(channel: Channel) -> String {
    let mut reason = Vec::new();
    // One that is broken off is a reason as well.
    let _ = channel.take(REASON_BYTES_MAX).read_to_end(&mut reason).await;
    printable(&reason, reason.len())
}

/// Has the server listen, and serves what comes in there.
async fn serve_remote(
    spec: Spec,
    streams: Streams,
    calls: Callbacks,
    news: mpsc::Sender<Notice>,
    told: tokio::sync::oneshot::Sender<()>,
) {
    let (id, mut back) = calls.expect();
    let tell = |what| drop(news.try_send(what));
    let (mut control, port) = match listen_there(&streams, id, &spec.listen).await {
        Ok(there) => there,
        Err(error) => {
            tell(Notice::Failed(format!("the host cannot listen on {}: {error}", spec.listen)));
            return;
        }
    };
    let Spec { listen, target } = &spec;
    tell(match listen {
        Listen::Tcp { port: 0, .. } => {
            Notice::Warning(format!("the host listens on port {port} for {target}"))
        }
        _ => Notice::Step(format!("the host listens on {listen} for {target}")),
    });
    let _ = told.send(());
    let served = Arc::new(Semaphore::new(CALLED_BACK_MAX));
    let mut tasks = tokio::task::JoinSet::new();
    let (mut given_up, mut is_full) = (false, false);
    loop {
        let channel = tokio::select! {
            channel = back.recv() => channel,
            said = control.read_u8() => match said {
                Ok(GIVEN_UP) if !given_up => {
                    given_up = true;
                    let what = "another session of yours listens on";
                    tell(Notice::Failed(format!("{what} {listen} of the host now")));
                    continue;
                }
                Ok(FULL) if !is_full => {
                    is_full = true;
                    tell(Notice::Warning(format!("on the host, {}", full(&listen.at(port)))));
                    continue;
                }
                _ => None,
            },
        };
        let Some(channel) = channel else {
            return tell(Notice::Step(format!("the host listens on {listen} no more")));
        };
        while tasks.try_join_next().is_some() {}
        let Ok(permit) = Arc::clone(&served).try_acquire_owned() else { continue };
        let (target, streams, news) = (spec.target.clone(), streams.clone(), news.clone());
        tasks.spawn(async move {
            let _permit = permit;
            if let Err(error) = come_out(channel, target, streams, &news).await {
                let _ =
                    news.try_send(Notice::Step(format!("a forwarded connection ended: {error}")));
            }
        });
    }
}

/// Asks the server to listen. It does until the channel is dropped. With the port it chose, if that
/// was its choice.
async fn listen_there(streams: &Streams, id: Id, listen: &Listen) -> io::Result<(Channel, u16)> {
    let request = Request::Listen(id, listen.clone()).encode();
    let mut control = streams.open(&request).await.map_err(io::Error::other)?;
    if control.read_u8().await? == CONNECTED {
        let port = control.read_u16().await?;
        return Ok((control, port));
    }
    Err(io::Error::other(why_not(control).await))
}

/// Joins a connection that came in at the server with its target here.
async fn come_out(
    mut channel: Channel,
    target: Target,
    streams: Streams,
    news: &mpsc::Sender<Notice>,
) -> io::Result<()> {
    let reached = match &target {
        Target::Tcp(to) => connect(to).await,
        Target::Unix(path) => connect_unix(path).await,
        Target::Socks => {
            let asked = tokio::select! {
                asked = converse(&mut channel) => asked?,
                () = heard_for(SOCKS_WAIT, &streams) => return Err(io::ErrorKind::TimedOut.into()),
            };
            let Some(asked) = asked else { return Ok(()) };
            let reached = connect(&asked.to).await;
            answer(&mut channel, asked.version, Outcome::of(&reached)).await?;
            let mut connection = reached?;
            connection.write_all(&asked.early).await?;
            return relay(Box::new(channel), connection).await;
        }
    };
    match reached {
        Ok(connection) => relay(Box::new(channel), connection).await,
        Err(error) => {
            let what = format!("cannot reach {target} for the host: {}", reason(&error));
            let _ = news.try_send(Notice::Warning(what));
            Ok(())
        }
    }
}

/// What a program asked for by SOCKS.
struct Asked {
    to: Endpoint,
    version: Version,
    /// What it sent without waiting for the answer.
    early: Vec<u8>,
}

/// Speaks SOCKS until the target of the connection is known. `None` if it asks for something that we lack;
/// it has had the refusal.
async fn converse(connection: &mut (impl Duplex + ?Sized)) -> io::Result<Option<Asked>> {
    let mut reader = socks::Reader::default();
    let mut octets = Vec::new();
    loop {
        let (used, step) = reader.next(&octets);
        octets.drain(..used);
        match step {
            Step::More => {
                if connection.read_buf(&mut octets).await? == 0 {
                    return Ok(None);
                }
            }
            Step::Say(words) => connection.write_all(words).await?,
            Step::Connect { to, version } => {
                return Ok(Some(Asked { to, version, early: octets }));
            }
            Step::Refuse(words) => {
                connection.write_all(words).await?;
                connection.shutdown().await?;
                return Ok(None);
            }
        }
    }
}

/// Waits for a span that only counts while the peer is heard: otherwise its answer may be on its way.
async fn heard_for(mut span: Duration, streams: &Streams) {
    while !span.is_zero() {
        clock::sleep(HEARD_LOOK).await;
        if streams.is_heard() {
            span = span.saturating_sub(HEARD_LOOK);
        }
    }
}

/// Tells a program that speaks SOCKS what became of its connection.
async fn answer(
    connection: &mut (impl Duplex + ?Sized),
    version: Version,
    outcome: Outcome,
) -> io::Result<()> {
    connection.write_all(version.answer(outcome)).await?;
    if outcome == Outcome::Failed {
        connection.shutdown().await?;
    }
    connection.flush().await
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;
    use crate::notice::NOTICES_MAX;
    use crate::services::Call;
    use crate::services::forward::wishes::{ForwardRequests, Side};

    /// Generous: machines that run tests are slow.
    const LIMIT: Duration = Duration::from_secs(60);

    /// A local forwarding connects from the host, and needs no access here.
    #[cfg(unix)]
    #[tokio::test]
    async fn forwardings_name_what_they_need() {
        let path = std::env::temp_dir().join(format!("rove-named-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let place = path.to_str().unwrap();
        let (local, there) = (Spec::local, Spec::remote);
        let these = |ports: &[u16]| Ports::These(ports.iter().copied().collect());
        let none = Named::default();
        let names = Named { names: true, ..none.clone() };
        let at = Named { places: vec![path.clone()], ..none.clone() };
        for (side, spec, named) in [
            (Side::Local, local(&format!("{place}:h:80")), at.clone()),
            (Side::Local, local(&format!("{place}:/far")), at),
            (Side::Remote, there("1:h:80"), Named { ports: these(&[80]), ..names.clone() }),
            (Side::Remote, there("1:[::1]:80"), Named { ports: these(&[80]), ..none.clone() }),
            (Side::Remote, there("1:192.0.2.1:80"), Named { ports: these(&[80]), ..none.clone() }),
            (Side::Remote, there("1:/s"), Named { unix: true, ..none.clone() }),
            (Side::Remote, there("1"), Named { ports: Ports::All, ..names }),
        ] {
            let forwards = vec![(side, spec.unwrap())];
            let what = format!("{forwards:?}");
            let ready =
                ForwardRequests { forwards, ..ForwardRequests::default() }.listen().await.unwrap();
            assert_eq!(ready.failures, [""; 0], "{what}");
            assert_eq!(ready.named(), named, "{what}");
        }
        let agent = ForwardRequests { agent: Some("/agent".into()), ..ForwardRequests::default() };
        assert_eq!(agent.listen().await.unwrap().named(), Named { unix: true, ..none });
    }

    #[tokio::test]
    async fn that_connections_wait_is_told() {
        let spec = Spec::local("1:h:1").unwrap();
        let listener = Listener::bind(&spec.listen.at(0)).await.unwrap();
        let port = listener.port();
        // Nobody says whether the one is reached: it stays.
        let (streams, _server) = rove_streams::in_memory();
        let (tell, mut news) = mpsc::channel(NOTICES_MAX);
        tokio::spawn(serve_local(listener, spec, streams, Arc::new(Semaphore::new(1)), tell));
        let connect = async || TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let _connections = [connect().await, connect().await];
        let told = clock::within(LIMIT, news.recv()).await.expect("it is told in time");
        let wanted = "192 connections are forwarded at a time; more to 1 wait";
        assert_eq!(told, Some(Notice::Warning(wanted.into())));
    }

    /// However many sockets listen, only connections take places.
    #[tokio::test]
    async fn sockets_that_listen_take_no_places() {
        let (streams, server) = rove_streams::in_memory();
        let served = Arc::new(Semaphore::new(1));
        let mut ports = Vec::new();
        for _ in 0..2 {
            let spec = Spec::local("1:h:1").unwrap();
            let listener = Listener::bind(&spec.listen.at(0)).await.unwrap();
            ports.push(listener.port());
            let (tell, _news) = mpsc::channel(NOTICES_MAX);
            let served = Arc::clone(&served);
            tokio::spawn(serve_local(listener, spec, streams.clone(), served, tell));
            // It waits for connections before the next one listens.
            tokio::task::yield_now().await;
        }
        let _connection = TcpStream::connect(("127.0.0.1", ports[1])).await.unwrap();
        let begun = clock::within(LIMIT, server.accept()).await.expect("it is served in time");
        assert!(begun.is_some());
    }

    /// What came in at the host during an outage comes all at once, before anybody has begun to serve it.
    #[tokio::test]
    async fn all_that_come_at_once_are_taken() {
        let (client, server) = rove_streams::in_memory();
        let calls = Callbacks::default();
        let (id, mut back) = calls.expect();
        let mut opened = Vec::new();
        for _ in 0..CALLED_BACK_MAX {
            opened.push(server.open(&Call::Back(id).encode()).await.unwrap());
        }
        let (tell, _news) = mpsc::channel(NOTICES_MAX);
        tokio::spawn(calls.answer(client, None, tell));
        let mut taken = Vec::new();
        while taken.len() < opened.len() {
            let channel = clock::within(LIMIT, back.recv()).await.expect("none is dropped");
            taken.push(channel.unwrap());
        }
    }

    /// A question that was given up while it waited for its turn is not put to the agent.
    #[cfg(unix)]
    #[tokio::test]
    async fn only_what_is_still_wanted_is_asked() {
        let path = std::env::temp_dir().join(format!("rove-asked-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let (client, server) = rove_streams::in_memory();
        let (tell, _news) = mpsc::channel(NOTICES_MAX);
        tokio::spawn(Callbacks::default().answer(client, Some(path.clone()), tell));
        let mut asked = Vec::new();
        for number in 1..=3 {
            let mut channel = server.open(&Call::Agent.encode()).await.unwrap();
            agent::write(&mut channel, &[13, number]).await.unwrap();
            asked.push(channel);
        }
        let mut heard = Vec::new();
        while heard.len() < 2 {
            let (mut asking, _) = clock::within(LIMIT, listener.accept()).await.unwrap().unwrap();
            let question = agent::read(&mut asking).await.unwrap().unwrap();
            heard.push(question[1]);
            // Once the first is under way, the second is given up.
            if heard.len() == 1 {
                drop(asked.remove(1));
            }
            agent::write(&mut asking, &[14]).await.unwrap();
        }
        assert_eq!(heard, [1, 3]);
        std::fs::remove_file(&path).unwrap();
    }
}
