//! The user's end of a session on a terminal: its settings, and how it ended.

mod headless;
mod lingering;
mod screen;
pub(crate) mod session;
pub(crate) mod streams;
mod way;
mod way_back;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rove_session::client::{Config, Exit, Obscure, TtyScreen};
use rove_session::predict::Settings as Guesses;
use rove_session::{Client, Escape, Peer, SessionInfo};
use rove_ssp::{MoshWire, NativeWire, Role, Session as _, SlotTiming, Time, Timing, Wire};
use rove_term::{Dialect, Size};

use crate::bootstrap::CostProfile;
use crate::client::screen::{Screen, window};
use crate::client::streams::StreamsHandle;
pub use crate::client::way::WaySetting;
use crate::client::way::WayWatch;
pub(crate) use crate::client::way::client_stream;
use crate::client::way_back::Returning;
pub use crate::client::way_back::WayBack;
use crate::failure::Failure;
use crate::net::carrier::Carrier;
use crate::net::port::Port;
use crate::net::routes::{Datagrams, Routes};
use crate::os;
use crate::os::clock::Clock;
use crate::os::locked::within;
use crate::os::network_changes::NetworkChanges;
use crate::os::sandbox::{Reach, confine, confine_all};
use crate::os::signals::{Signal, Signals};
use crate::os::tty::Tty;
use crate::ssh::{Reached, Secret};
use crate::trace::Trace;

/// The signals that a session on a terminal handles.
const WATCHED: [Signal; 6] =
    [Signal::WINCH, Signal::CONT, Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];

/// How a session looks and feels to the user.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The abilities of the terminal.
    pub tty: Dialect,
    /// The key that begins a command to the client.
    pub escape: Escape,
    /// Which of the terminal's screens to use; `None` for the server's default.
    pub window: Option<TtyScreen>,
    /// The program's name in the bar.
    pub name: &'static str,
    /// The prefix of window titles.
    pub title_prefix: &'static str,
    /// Which guesses local echo shows, and when.
    pub guesses: Guesses,
    /// What a listener is kept from learning of typed keys, if anything was said of it.
    pub obscure: Option<Obscure>,
    /// How long slots are, if that was said.
    pub obscure_slot: Option<Duration>,
    /// How many missed lines the terminal's history is to get at most.
    pub history: u64,
    /// The lines above the first screen that come are all that were asked for.
    pub wants_fewer: bool,
    /// Whether the terminal's history is erased when a program erases the one on the host.
    pub clear_history: bool,
    /// Whether the terminal's history gets what a program erases, if the terminal would save that itself.
    pub keep_cleared: bool,
    /// The price of datagrams.
    pub tariff: CostProfile,
    /// Closing the window leaves a session that can go on, also one without a name.
    pub detaches_on_close: bool,
    /// Which ways to the server are used.
    pub way: WaySetting,
    /// ssh may be run again where none of them answers any more.
    pub falls_back: bool,
}

/// How a session ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How the session reports its end.
    pub exit: Exit,
    /// What the server last said of the session.
    pub session: Option<SessionInfo>,
    /// Which server it was.
    pub kind: Peer,
    /// The signal that asked for the end.
    pub signal: Option<Signal>,
    /// Datagrams that did not decrypt.
    pub refused: u64,
    /// Why the session is gone, if its host has said so.
    pub gone: Option<String>,
}

/// Runs a session on the user's terminal until it ends. `beside` passes on the session's knowledge of the
/// path to the streams beside it.
pub async fn run(
    clock: Clock,
    found: Reached,
    settings: &Settings,
    beside: Option<StreamsHandle>,
    host: &str,
    back: Option<WayBack>,
    trace: &Trace,
) -> Result<Ended, Failure> {
    let failed = |what: &str, error: io::Error| Failure::new(format!("{what}: {error}"), "");
    let now = clock.now();
    let datagrams = match found.secret {
        Secret::Mosh(_) => Datagrams::MayBeCut,
        Secret::Native(..) => Datagrams::Whole,
    };
    let paths = Routes::open(now, found.candidates.clone(), datagrams)
        .map_err(|e| failed("cannot open a UDP socket", e))?;
    let tty = Tty::open().map_err(|e| failed("cannot use this terminal", e))?;
    let signals = Signals::watch(WATCHED).map_err(|e| failed("cannot watch signals", e))?;
    let changes = NetworkChanges::watch();
    if let Err(error) = &changes {
        trace.step(format_args!("no news of the network to be had: {error}"));
    }
    let (kind, server) = (found.kind, paths.server());
    let back = back.and_then(|back| Returning::new(now, back, &found, server, settings.way));
    let back = back.transpose().map_err(|e| failed("cannot keep a way back", e))?;
    let stream = found.stream.map(client_stream).transpose();
    let stream = stream.map_err(|e| failed("cannot go on over ssh", e))?;
    if stream.is_none() && settings.way == WaySetting::Ssh {
        return Err(Failure::new(
            format!("the server on {host} cannot go on over ssh"),
            format!("A newer one can: rove install {host}"),
        ));
    }
    let mut client = machine(now, kind, found.secret, server, window(trace), settings)
        .map_err(|e| failed("no randomness", e))?;
    client.name_server(
        host.rsplit_once('@').map_or(host, |(_, host)| host),
        found.version.as_deref(),
    );
    if let Some(warning) = &found.warning {
        client.warn(now, warning);
    }
    let carrier = Carrier::Client(paths);
    let note = |what: fmt::Arguments<'_>| trace.step(what);
    let mut port = Port::new(clock, carrier, changes.ok(), &note)
        .map_err(|e| failed("cannot make a timer", e))?;
    if let Some(beside) = &beside {
        port.carry_quic(beside.ports.clone());
    }
    if let Some(stream) = stream {
        let id = port.add_stream(stream);
        client.stream_opened(now, id);
    }
    if settings.way == WaySetting::Ssh {
        port.refuse_udp();
    }
    // All that a session needs is open. Threads beside it have confined themselves by now, each to its own.
    let confined = match &beside {
        None => confine_all(&Reach::Datagrams),
        Some(_) => confine(&Reach::Datagrams),
    };
    trace.step(format_args!("confined: {confined}"));
    let ways = WayWatch::new(now, host, server, settings.way);
    let mut screen = Screen::new(clock, trace, client, tty, signals, beside, ways);
    screen.return_by(back);
    let result = screen.run(&mut port).await.map_err(|e| failed("the session broke off", e));
    let session = screen.session_info();
    let gone = screen.gone();
    let (failure, signal, refused) = screen.end();
    trace.release();
    match failure {
        Some(what) => Err(Failure::new(what, "ExitOnForwardFailure is set.")),
        None => result.map(|exit| Ended { exit, session, kind, signal, refused, gone }),
    }
}

/// A session with this server, before it has sent anything.
fn machine(
    now: Time,
    peer: Peer,
    secret: Secret,
    server: SocketAddr,
    size: Size,
    settings: &Settings,
) -> io::Result<Client> {
    let wire: Box<dyn Wire> = within(|| match &secret {
        Secret::Mosh(key) => Box::new(MoshWire::new(key.clone(), Role::Client)) as _,
        Secret::Native(secrets, conn) => {
            Box::new(NativeWire::new(secrets, *conn, Role::Client)) as _
        }
    });
    drop(secret);
    let config = Config {
        wire,
        timing: Timing { slots: slots(settings), ..timing(peer, settings.tariff) },
        server,
        peer,
        size,
        tty: settings.tty,
        window: match (settings.window, peer) {
            // What a stock server does not tell is what asking for the cursor is good for.
            (Some(TtyScreen::Main), Peer::Stock) => TtyScreen::Main,
            (None | Some(TtyScreen::Main), _) => TtyScreen::of(peer),
            (Some(window), _) => window,
        },
        escape: settings.escape,
        name: settings.name,
        title_prefix: settings.title_prefix.to_owned(),
        obscure: settings.obscure.unwrap_or_default(),
        history_lines: settings.history,
        seed: u64::from_ne_bytes(*os::random()?),
    };
    let has_history = config.history_lines > 0
        && config.peer == Peer::Rove
        && config.window != TtyScreen::Alternate;
    let mut client = Client::new(now, config);
    client.apply_in_parts();
    if !settings.clear_history {
        client.keep_history();
    }
    if settings.keep_cleared && has_history {
        client.save_erased();
    }
    if settings.wants_fewer {
        client.want_fewer();
    }
    client.predict(settings.guesses);
    if settings.detaches_on_close {
        client.detach_on_close();
    }
    Ok(client)
}

/// How this end sends to such a peer.
fn timing(peer: Peer, tariff: CostProfile) -> Timing {
    match peer {
        Peer::Rove => tariff.timing(),
        Peer::Stock => Timing::ROVE_TO_STOCK,
    }
}

/// The slots in which keys go, if the user wants that.
fn slots(settings: &Settings) -> Option<SlotTiming> {
    let usual = match settings.tariff {
        CostProfile::Flat => SlotTiming::ROVE,
        CostProfile::Metered => SlotTiming::METERED,
    };
    let slots = match settings.obscure_slot {
        Some(slot) => usual.with_slot(slot),
        None => usual,
    };
    (settings.obscure == Some(Obscure::Always)).then_some(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// tests/client.rs tests that the server learns it too.
    #[test]
    fn who_pays_for_octets_sends_fewer_to_a_rove() {
        for (peer, tariff, expected) in [
            (Peer::Rove, CostProfile::Flat, Timing::ROVE),
            (Peer::Rove, CostProfile::Metered, Timing::METERED),
            (Peer::Stock, CostProfile::Metered, Timing::ROVE_TO_STOCK),
        ] {
            assert_eq!(timing(peer, tariff), expected, "{peer:?} {tariff:?}");
        }
        assert_ne!(Timing::ROVE, Timing::METERED);
    }
}
