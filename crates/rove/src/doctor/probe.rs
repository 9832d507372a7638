//! Finds out with datagrams of a session what the network does to them, by each family of addresses, and whether
//! streams work.
//!
//! A thread of its own does it, which keeps nothing but UDP: what comes from the network is hostile.

mod end;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rove_session::client::Cause;
use rove_session::{Escape, Peer};
use rove_streams::client::{self, PathHints};
use rove_streams::{Streams, clock};
use tokio::sync::{mpsc, oneshot};

use crate::bootstrap::Ports;
use crate::client::client_stream;
use crate::doctor::check::{Check, Report};
use crate::doctor::host::{self, listens};
use crate::doctor::probe::end::{Job, Probed, Prober, Probing};
use crate::driver;
use crate::net::carrier::Carrier;
use crate::net::port::Port;
use crate::net::routes::{Datagrams, Routes};
use crate::net::stdio::Stdio;
use crate::os::clock::Clock;
use crate::os::locked;
use crate::os::sandbox::{Reach, confine};
use crate::os::threads;
use crate::services::Run;
use crate::services::calls::Callbacks;
use crate::services::exec::{self, Command, End as Ended, Ends, Input};
use crate::ssh::{Candidates, Login, Reached, Secret};
use crate::trace::Trace;

/// How long a command over streams may take to answer.
const QUIC_WAIT: Duration = Duration::from_secs(15);

/// How long an answer over ssh's own connection may take.
const WAY_WAIT: Duration = Duration::from_secs(10);

/// How long the server may take to confirm the end.
const GOODBYE_WAIT: Duration = Duration::from_secs(2);

/// The ports that a server tries, unless it is told others.
const USUAL_PORTS: Ports = Ports { low: 60001, high: 60999 };

/// What the thread has found out.
enum Finding {
    /// By one family of addresses.
    Probed(Box<Probed>),
    /// How long a command took that was run over streams, or why it did not.
    Streams(Result<Duration, String>),
    /// How long an answer took over ssh's own connection, or why there was none.
    Way(Result<Duration, String>),
    /// There are no more. The server is there until it is to be ended.
    All,
}

/// Looks at the network between here and the server, and ends the server.
pub(super) async fn examine(
    clock: Clock,
    login: &Login,
    reached: Reached,
    report: &mut Report,
    trace: &Trace,
) {
    let port = reached.candidates.addresses[0].port();
    // A mosh-server has no other way.
    let has_ways = reached.kind == Peer::Rove;
    let carries = reached.stream.is_some();
    let (tell, mut news) = mpsc::unbounded_channel();
    let (end, ending) = oneshot::channel();
    let work = move || {
        if let Err(error) = probe(clock, reached, &tell, ending) {
            // Whoever waits learns of it by what is missing.
            let _ = tell.send(Finding::Streams(Err(error.to_string())));
        }
    };
    let Ok(thread) = threads::spawn("probe", work) else { return };
    let (mut probed, mut streams, mut way) = (Vec::new(), None, None);
    while let Some(news) = news.recv().await {
        match news {
            Finding::Probed(path) => probed.push(*path),
            Finding::Streams(outcome) => streams = Some(outcome),
            Finding::Way(outcome) => way = Some(outcome),
            Finding::All => break,
        }
    }
    let is_reached = probed.iter().any(|path| path.answered.is_some());
    let listens = if is_reached { None } else { listens(login, port, trace).await };
    drop(end);
    let _ = thread.join();
    let ports = login.request.ports.unwrap_or(USUAL_PORTS);
    report.add(host::port(port, login.request.ports, USUAL_PORTS));
    let is_tried = probed.iter().any(|path| path.failed.is_none());
    let instead = matches!(way, Some(Ok(_)));
    for path in &probed {
        for check in checks(path, (is_reached, is_tried), instead, listens, ports) {
            report.add(check);
        }
    }
    if let Some(outcome) = streams.filter(|_| is_reached) {
        report.add(quic(outcome));
    }
    if has_ways && login.request.carry {
        let outcome = carries.then(|| way.unwrap_or_else(|| Err("it was not looked at".into())));
        report.add(stream(outcome, &login.install_line(&[])));
    }
}

/// Probes each family, then streams by the first that works, then ssh's own connection, and says goodbye once it is to.
fn probe(
    clock: Clock,
    reached: Reached,
    tell: &mpsc::UnboundedSender<Finding>,
    ending: oneshot::Receiver<()>,
) -> io::Result<()> {
    let Reached { kind, secret, candidates, stream, .. } = reached;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let streams = match &secret {
            Secret::Native(secrets, _) => Some(client::start(secrets.streams(), locked::MEMORY)),
            Secret::Mosh(_) => None,
        };
        let mut probing = Probing::new(clock.now(), kind, secret, candidates.addresses[0])?;
        // What is confined cannot make its files non-blocking.
        let stream = stream.map(client_stream).transpose()?;
        // Nothing was read from the peer yet. A kernel that cannot is no reason to look at nothing.
        let _ = confine(&Reach::Datagrams);
        let mut at = None;
        for family in families(&candidates) {
            let mut port = open(clock, &family, kind)?;
            probing.session().network_changed(clock.now());
            let job = Job::Probe(Probed::new(family.addresses[0]));
            let mut end = Prober::new(&mut probing, clock.now(), None, job);
            driver::run(&mut port, &mut end).await?;
            let Some(probed) = end.probed() else { continue };
            if probed.answered.is_some() {
                at.get_or_insert(probed.at);
            }
            let _ = tell.send(Finding::Probed(Box::new(probed)));
        }
        if at.is_none() && stream.is_none() {
            return Ok(());
        }
        let one = Candidates { addresses: vec![at.unwrap_or(candidates.addresses[0])], named: 1 };
        let mut port = open(clock, &one, kind)?;
        probing.session().network_changed(clock.now());
        if let (Some((streams, link, connector)), Some(at)) = (streams, at) {
            let connector = tokio::spawn(connector.run());
            link.expect(at);
            let outcome = run(clock, &mut probing, &mut port, &streams, &link).await;
            let outcome = outcome.unwrap_or_else(|error| Err(error.to_string()));
            let _ = tell.send(Finding::Streams(outcome));
            link.close();
            connector.abort();
        }
        if let Some(stream) = stream {
            let outcome = ask_by_stream(clock, &mut probing, &mut port, stream).await;
            let outcome = outcome.unwrap_or_else(|error| Err(error.to_string()));
            let answers = outcome.is_ok();
            let _ = tell.send(Finding::Way(outcome));
            // The goodbye goes by what works.
            if !answers {
                if let Some(stream) = port.drop_stream() {
                    probing.session().stream_closed(clock.now(), stream);
                }
                port = open(clock, &one, kind)?;
            }
        }
        let _ = tell.send(Finding::All);
        let _ = ending.await;
        let until = clock.now() + GOODBYE_WAIT;
        probing.close(clock.now(), Cause::Closed);
        let mut end = Prober::new(&mut probing, clock.now(), None, Job::Leave { until });
        driver::run(&mut port, &mut end).await
    })
}

/// How long the server takes to answer over ssh's own connection, or why it does not.
async fn ask_by_stream(
    clock: Clock,
    probing: &mut Probing,
    port: &mut Port<'_>,
    stream: Stdio,
) -> io::Result<Result<Duration, String>> {
    let id = port.add_stream(stream);
    // UDP would be used for as long as it answers.
    port.refuse_udp();
    let now = clock.now();
    probing.session().stream_opened(now, id);
    let job = Job::Way { until: now + WAY_WAIT, asked: None, answered: None };
    let mut end = Prober::new(probing, now, None, job);
    driver::run(port, &mut end).await?;
    Ok(match (end.answered(), port.has_stream()) {
        (Some(took), _) => Ok(took),
        (None, true) => Err(format!("no answer within {} s", WAY_WAIT.as_secs())),
        (None, false) => Err("it ended, or something else than the server writes to it".into()),
    })
}

/// Runs a command over streams while the session keeps in touch.
async fn run(
    clock: Clock,
    probing: &mut Probing,
    port: &mut Port<'_>,
    streams: &Streams,
    link: &PathHints,
) -> io::Result<Result<Duration, String>> {
    let mut end = Prober::new(probing, clock.now(), Some(link), Job::Keep);
    let (calls, (tell, _news)) = (Callbacks::default(), mpsc::channel(1));
    let answering = tokio::spawn(calls.clone().answer(streams.clone(), None, tell));
    let command = Command {
        run: Run::Line("exit 0".into()),
        input: Input::Nothing,
        terminal: None,
        escape: Escape::None,
    };
    let (output, errors) = (tokio::io::sink(), tokio::io::sink());
    let ends = Ends { input: tokio::io::empty(), output, errors };
    let begun = clock.now();
    let outcome = tokio::select! {
        driven = driver::run(port, &mut end) => {
            driven?;
            Err("the server has ended the session".into())
        }
        ended = clock::within(QUIC_WAIT, exec::run(streams, &calls, command, ends)) => match ended {
            Ok(Ok(Ended::Exited(0))) => Ok(clock.now().since(begun)),
            Ok(Ok(Ended::NotStarted(why))) => Err(format!("no command runs there: {why}")),
            Ok(Ok(_)) => Err("a command there did not end well".into()),
            Ok(Err(exec::Broken::Session(error))) => Err(error.to_string()),
            Ok(Err(_)) => Err("the command was broken off".into()),
            Err(_elapsed) => Err(format!("no answer within {} s", QUIC_WAIT.as_secs())),
        },
    };
    answering.abort();
    Ok(outcome)
}

fn open(clock: Clock, family: &Candidates, kind: Peer) -> io::Result<Port<'static>> {
    let datagrams = match kind {
        Peer::Stock => Datagrams::MayBeCut,
        Peer::Rove => Datagrams::Whole,
    };
    let routes = Routes::open(clock.now(), family.clone(), datagrams)?;
    Port::new(clock, Carrier::Client(routes), None, &|_| ())
}

/// The addresses by family, that of the likeliest address first.
fn families(all: &Candidates) -> Vec<Candidates> {
    let is_first = |address: &SocketAddr| address.is_ipv4() == all.addresses[0].is_ipv4();
    let named = |index: usize| index < all.named;
    let of = |wanted: bool| {
        let addresses = all.addresses.iter().copied().enumerate();
        let (named, other): (Vec<_>, Vec<_>) =
            addresses.filter(|(_, it)| is_first(it) == wanted).partition(|(at, _)| named(*at));
        let count = named.len();
        let addresses = named.into_iter().chain(other).map(|(_, address)| address).collect();
        Candidates { addresses, named: count }
    };
    [of(true), of(false)].into_iter().filter(|family| !family.addresses.is_empty()).collect()
}

/// The checks of a family of addresses. `others`: whether sessions get through by one of all families, and
/// whether datagrams leave by one. `instead`: whether they go over ssh.
fn checks(
    path: &Probed,
    others: (bool, bool),
    instead: bool,
    listens: Option<bool>,
    ports: Ports,
) -> Vec<Check> {
    let at = path.at;
    let v6 = at.ip().to_canonical().is_ipv6();
    let named = |four, six| if v6 { six } else { four };
    let title = format!("UDP {} to {}", at.port(), at.ip().to_canonical());
    let udp = |says: String| Check::ok(named("udp-ipv4", "udp-ipv6"), title, says);
    let Some(answered) = path.answered else {
        let mut says = format!("sent {}, nothing came back", path.sent);
        match (&path.failed, listens) {
            (Some(why), _) => says = format!("cannot send: {}", why.to_lowercase()),
            (None, Some(true)) => says += "; the server listens there",
            (None, Some(false)) => says += "; its server does not listen there any more",
            (None, None) => {}
        }
        let meanwhile = if instead { "; sessions go over ssh until then" } else { "" };
        let open = format!(
            "A firewall between: allow UDP {ports}, or name ports it lets through with \
             --udp-port{meanwhile}"
        );
        return vec![match (path.failed.is_some(), others) {
            (true, (true, _)) => udp(says).but("Sessions use the other family"),
            (true, (false, true)) => udp(says).but("This machine has no way there; see the other"),
            (true, (false, false)) => udp(says).fails("Look at this machine's network"),
            (false, (true, _)) => udp(says).but(format!("Sessions use the other family. {open}")),
            (false, (false, _)) => udp(says).fails(open),
        }];
    };
    let udp = udp(format!("answered after {}", span(answered)))
        .with([("answered_ms", answered.as_secs_f64() * 1e3)]);
    let family = named("IPv4", "IPv6");
    let mut checks = vec![udp];
    checks.extend(round_trip(path, named("path-ipv4", "path-ipv6"), family));
    if let Some(bytes) = path.datagram_bytes.filter(|_| path.is_reported) {
        let length = Check::ok(
            named("length-ipv4", "length-ipv6"),
            format!("datagrams by {family}"),
            format!("up to {bytes} octets"),
        );
        let length = match bytes {
            ..1200 => length.but("Something on the way takes only short ones, a tunnel perhaps"),
            _ => length,
        };
        checks.push(length.with([("bytes", bytes as f64)]));
    }
    checks
}

/// A share of lost datagrams that people notice, in parts of one.
const LOSS_MANY: f64 = 0.1;

fn round_trip(path: &Probed, name: &'static str, family: &str) -> Option<Check> {
    let mut sorted = path.round_trips.clone();
    sorted.sort();
    let (least, most) = (*sorted.first()?, *sorted.last()?);
    let median = sorted[sorted.len() / 2];
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    // Datagrams tell whole milliseconds.
    let whole = |span: Duration| span.as_millis();
    let shown = match whole(median) {
        0 => "under 1 ms".to_owned(),
        median => format!("{median} ms"),
    };
    let mut says = format!("{shown} ({}..{})", whole(least), whole(most));
    let mut figures = vec![
        ("median_ms", millis(median)),
        ("least_ms", millis(least)),
        ("most_ms", millis(most)),
        ("probes", path.probes as f64),
    ];
    if path.is_reported {
        let (up, down) = (path.lost_there * 100.0, path.lost_back * 100.0);
        says += &format!("; of {} probes {up:.0} % lost there, {down:.0} % back", path.probes);
        figures.extend([("lost_there", path.lost_there), ("lost_back", path.lost_back)]);
    }
    let check = Check::ok(name, format!("round trip by {family}"), says).with(figures);
    Some(match path.lost_there.max(path.lost_back) > LOSS_MANY {
        true => check.but("Sessions bear that; a cable, or a place nearer to the radio, helps"),
        false => check,
    })
}

fn quic(outcome: Result<Duration, String>) -> Check {
    match outcome {
        Ok(took) => Check::ok("quic", "QUIC", format!("a command ran there in {}", span(took)))
            .with([("took_ms", took.as_secs_f64() * 1e3)]),
        Err(why) => Check::ok("quic", "QUIC", why)
            .fails("rove cp, rove exec and forwardings need it; scp and ssh do that without it"),
    }
}

/// The way over ssh's own connection. `None`: the server does not know it. `install` is the line that brings one that
/// does.
fn stream(outcome: Option<Result<Duration, String>>, install: &str) -> Check {
    let check = |says: String| Check::ok("stream", "stream over ssh", says);
    let then = "Where UDP is blocked there are no sessions";
    match outcome {
        Some(Ok(took)) => check(format!("answered after {}", span(took)))
            .with([("answered_ms", took.as_secs_f64() * 1e3)]),
        Some(Err(why)) => check(why)
            .but(format!("{then}; what ssh runs there must leave standard input and output alone")),
        None => check("the server does not go on over it".into())
            .but(format!("{then}. A newer rove knows that way: {install}")),
    }
}

/// A span for people.
fn span(span: Duration) -> String {
    let millis = span.as_secs_f64() * 1e3;
    if millis < 9.95 { format!("{millis:.1} ms") } else { format!("{millis:.0} ms") }
}

#[cfg(test)]
mod tests;
