//! The way back to a session that UDP does not lead to any more: its keeper runs ssh again, and finds either the session
//! or that it is gone.

mod plan;

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use rove_session::Client;
use rove_ssp::{Remote, Session as _, StreamId, Time};

use self::plan::{Found, Plan};
use crate::client::way::WaySetting;
use crate::keeper::message::{Reply, Whereabouts, Wish};
use crate::keeper::{Answer, Asked, Keeper};
use crate::net::refusal::RefusalProbe;
use crate::net::stdio::Stdio;
use crate::sessions::age::span;
use crate::ssh::{Login, Reached, Secret};
use crate::trace::Trace;

/// What it takes to come back.
#[derive(Debug)]
pub struct WayBack {
    /// Runs ssh.
    pub(crate) keeper: Keeper,
    /// The login that the session began by.
    pub(crate) login: Login,
}

/// The same while the session runs.
#[derive(Debug)]
pub(super) struct Returning {
    /// `None`: it has ended, and there is no way back.
    keeper: Option<Asked>,
    login: Login,
    wish: Wish,
    /// The machine that the session is on.
    machine: String,
    /// Where the server was heard last by UDP.
    server: SocketAddr,
    began: Time,
    plan: Plan,
    probe: Option<RefusalProbe>,
    /// Streams so far.
    streams: u32,
    /// A way that nobody uses yet.
    fresh: Option<Stdio>,
}

impl Returning {
    /// A way back to this session. `None` where the server could not go on over ssh at the beginning: it finds no
    /// client again.
    pub(super) fn new(
        now: Time,
        back: WayBack,
        found: &Reached,
        server: SocketAddr,
        way: WaySetting,
    ) -> Option<io::Result<Returning>> {
        let WayBack { keeper, login } = back;
        let Secret::Native(_, conn) = found.secret else { return None };
        let machine = found.stream.as_ref()?.machine().to_owned();
        let wish = Wish { conn, port: server.port() };
        let returning = |keeper| Returning {
            keeper: Some(keeper),
            login,
            wish,
            machine,
            server,
            began: now,
            plan: Plan::new(now, way),
            probe: None,
            // The one that the session began by has number 0.
            streams: 1,
            fresh: None,
        };
        Some(keeper.watch().map(returning))
    }

    /// The network is another, or may be.
    pub(super) fn network_changed(&mut self, now: Time) {
        self.plan.network_changed(now);
    }

    /// A key was typed.
    pub(super) fn typed(&mut self, now: Time) {
        self.plan.typed(now);
    }

    /// The server was heard, by UDP from here.
    pub(super) fn heard(&mut self, from: Remote, at: Option<SocketAddr>) {
        match from {
            Remote::Udp(_) => self.server = at.unwrap_or(self.server),
            Remote::Stream(stream) => self.plan.heard_by(stream),
        }
    }

    /// A stream has ended.
    pub(super) fn stream_ended(&mut self, stream: StreamId) {
        self.plan.stream_ended(stream);
    }

    /// Ready with what the keeper says.
    pub(super) fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Answer>> {
        match &mut self.keeper {
            Some(keeper) => keeper.poll_answer(cx),
            None => Poll::Pending,
        }
    }

    /// Does what is due: looks whether the port refuses, and asks the keeper.
    pub(super) fn advance(&mut self, now: Time, client: &mut Client, trace: &Trace) {
        // Before the first contact there is nothing to come back to. And without its word that the session can be
        // found, nothing is to be learnt from not finding it.
        let session = client.view().session().filter(|session| session.can_detach);
        let is_open = session.is_some() && client.endpoint().last_new_state().is_some();
        let awaits = client.endpoint().awaits_since().filter(|_| is_open);
        self.plan.awaits(awaits);
        if awaits.is_none() {
            self.probe = None;
            client.remedy(None);
            return;
        }
        if self.plan.takes_probe(now, client.peer()) {
            let is_refused = self.probe.take().is_some_and(|probe| probe.is_refused());
            if self.plan.probed(is_refused) {
                let (host, port) = (self.host(), self.server.port());
                trace.step(format_args!("nothing listens at {} any more", self.server));
                client.suspect(&format!("Nothing listens on {host}'s UDP port {port} any more."));
            }
            self.probe = RefusalProbe::send(self.server).ok();
        }
        if self.plan.takes_question(now)
            && let Some(keeper) = &self.keeper
        {
            trace.step(format_args!("asking ssh for a way"));
            match keeper.ask(self.wish) {
                Ok(()) => client.remedy(Some("asking ssh for a way".into())),
                Err(error) => self.lost(&error, client, trace),
            }
        }
    }

    /// Takes what the keeper says. Why the session is gone, if it is.
    pub(super) fn answered(
        &mut self,
        now: Time,
        answer: io::Result<Answer>,
        client: &mut Client,
        trace: &Trace,
    ) -> Option<String> {
        client.remedy(None);
        match answer {
            Ok(Answer::Way(output, input, first)) => {
                trace.step(format_args!("ssh has found the session"));
                self.plan.answered(now, Found::Way);
                let id = StreamId::new(self.streams);
                self.streams = self.streams.wrapping_add(1);
                match Stdio::new(id, output, input, &first) {
                    Ok(stream) => self.fresh = Some(stream),
                    Err(error) => trace.step(format_args!("cannot go on over ssh: {error}")),
                }
            }
            Ok(Answer::Other(Reply::Gone(there))) => {
                let is_heard = self.plan.is_heard_since(client.endpoint().last_heard());
                self.plan.answered(now, Found::Nothing);
                if !is_heard {
                    return self.is_gone(now, &there, trace);
                }
                trace.step(format_args!("ssh has not found the session, which was heard since"));
            }
            Ok(Answer::Other(Reply::NeedsUser)) => {
                trace.step(format_args!("ssh was not let in without its user"));
                self.plan.answered(now, Found::Refusal);
                let name = client.view().session().map_or("", |session| session.name.as_str());
                let line = self.login.session_line("attach", &[], name);
                client.remedy(Some(format!("ssh needs you: in another window, {line}")));
            }
            Ok(Answer::Other(Reply::Later(seconds))) => {
                trace.step(format_args!("ssh may run again in {seconds} s"));
                self.plan.answered(now, Found::Later(Duration::from_secs(seconds.into())));
            }
            Ok(Answer::Other(reply)) => {
                let found =
                    if reply == Reply::Unreached { "not reached the host" } else { "found no way" };
                trace.step(format_args!("ssh has {found}"));
                self.plan.answered(now, Found::Nothing);
            }
            Err(error) => self.lost(&error, client, trace),
        }
        None
    }

    /// A name may lead to another machine than the one that the session is on.
    fn is_gone(&self, now: Time, there: &Whereabouts, trace: &Trace) -> Option<String> {
        if there.machine != self.machine {
            trace.step(format_args!("{} leads to another machine now", self.host()));
            return None;
        }
        Some(match there.uptime < now.since(self.began).as_secs() {
            true => format!("{} was started {} ago", self.host(), span(there.uptime)),
            false => {
                "its program ended while nothing came through, or its server was killed".into()
            }
        })
    }

    fn lost(&mut self, error: &io::Error, client: &mut Client, trace: &Trace) {
        trace.step(format_args!("there is no way back over ssh any more: {error}"));
        client.remedy(None);
        self.keeper = None;
    }

    /// A way that has been found.
    pub(super) fn take_stream(&mut self) -> Option<Stdio> {
        self.fresh.take()
    }

    /// When something is due while the server is there.
    pub(super) fn due(&self, peer: Option<Remote>) -> Option<Time> {
        self.keeper.as_ref().and_then(|_| self.plan.due(peer))
    }

    fn host(&self) -> &str {
        let host = self.login.host.as_str();
        host.rsplit_once('@').map_or(host, |(_, host)| host)
    }
}
