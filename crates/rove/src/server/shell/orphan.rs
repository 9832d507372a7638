//! How long a session lasts that no client is heard of.

use std::time::Duration;

use rove_session::server::PRESENT_FOR;
use rove_session::{Viewer, ViewerId};
use rove_ssp::Time;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{Running, Shell};
use crate::os::process;
use crate::server::limits::{GOODBYE_WAIT, GOODBYE_WAIT_TOLD};
use crate::sessions::line::Kind;

/// How long an ended program's last screen, lines and status are kept for a client that is away.
const ENDED_COMMAND_KEPT: Duration = Duration::from_secs(24 * 3600);
const ENDED_SHELL_KEPT: Duration = Duration::from_secs(3600);

/// How long a login shell without a name is kept whose client is lost and that has nothing to do.
const IDLE_SHELL_KEPT: Duration = Duration::from_secs(24 * 3600);

/// How often it is looked at after that.
const IDLE_LOOK: Duration = Duration::from_secs(3600);

/// How long a killed session's program may take to end.
const HANGUP_WAIT: Duration = Duration::from_secs(5);

impl Shell {
    /// Since when no client has been heard; `None` while one is there.
    pub(super) fn lonely_since(&self, now: Time) -> Option<Time> {
        match self.last_heard() {
            Some(heard) if now < heard + PRESENT_FOR => None,
            Some(heard) => Some(self.life.left.map_or(heard, |left| left.max(heard))),
            None => Some(self.life.left.unwrap_or(self.life.begun)),
        }
    }

    /// Notes when a client has left.
    pub(super) fn watch_departures(&mut self, now: Time) {
        let heard = |viewer: &&Viewer| viewer.connection().has_contact();
        let clients: Vec<ViewerId> = self.session.viewers().filter(heard).map(Viewer::id).collect();
        // One may have made room for another.
        if self.life.clients.iter().any(|client| !clients.contains(client)) {
            self.life.left = Some(now);
            let there: Vec<ViewerId> = self.session.viewers().map(Viewer::id).collect();
            self.besides.keep(|client| there.contains(&client));
        }
        self.life.clients = clients;
    }

    /// Ends a session that has waited long enough, and what a killed one leaves.
    pub(super) fn watch_lifetime(&mut self, now: Time) {
        // One that is over for its user cannot be found any more.
        let is_over = self.life.killed.is_some() || self.life.goodbye_by.is_some();
        if self.control.is_none() && !is_over {
            return;
        }
        self.watch_departures(now);
        // Nobody comes back for an end that another has seen. One that is away may still be told, by UDP.
        if self.session.is_end_seen() && self.control.is_some() {
            self.tell_the_end(now + GOODBYE_WAIT);
        }
        let lonely = self.lonely_since(now);
        let killed_by = self.life.killed.map(|killed| killed + HANGUP_WAIT);
        if killed_by.is_some_and(|by| by <= now) && matches!(self.program, Running::Started(_)) {
            self.signal_program(Signal::KILL);
        }
        let goodbye_by = self.life.goodbye_by;
        if goodbye_by.is_some_and(|by| by <= now) {
            self.note(&"a client does not answer the goodbye");
            self.give_up(now);
        }
        let ends = lonely.and_then(|since| self.ends_at(now, since));
        let ends = ends.into_iter().chain(self.kept_until()).min();
        if ends.is_some_and(|ends| ends <= now) {
            self.note(&"no client has come for the end for as long as the session is kept");
            self.give_up(now);
        }
        let by_kill = killed_by.filter(|by| *by > now);
        // A client that falls silent is not heard of at some moment, which has to be looked at.
        let silent = self.last_heard().map(|heard| heard + PRESENT_FOR);
        let looks = [ends, by_kill, silent, goodbye_by].into_iter().flatten();
        self.life.due = looks.filter(|at| *at > now).min();
    }

    /// When a session ends of which no client has been heard since then.
    fn ends_at(&self, now: Time, lonely: Time) -> Option<Time> {
        let orphan = self.limits.orphan.map(|span| lonely + span);
        let own = match (&self.program, self.life.kind) {
            // It waits for its first client, and no longer than that is waited for.
            (Running::Waiting(_) | Running::Reported { .. }, _) => None,
            (_, Kind::Shell) if self.is_lost_shell() => {
                let by = lonely + IDLE_SHELL_KEPT;
                let is_busy = by <= now && self.has_children();
                Some(if is_busy { now + IDLE_LOOK } else { by })
            }
            _ => None,
        };
        // While the program runs, the session bounds the silence of its first client itself.
        let network = match self.program {
            Running::Reported { ended } => self.limits.network.map(|span| lonely.max(ended) + span),
            _ => None,
        };
        [orphan, network, own].into_iter().flatten().min()
    }

    /// Until when the end of the program is told: also to a client that is heard and never takes it in.
    fn kept_until(&self) -> Option<Time> {
        let Running::Reported { ended } = self.program else { return None };
        Some(match self.life.kind {
            Kind::Command => ended + ENDED_COMMAND_KEPT,
            Kind::Shell => ended + ENDED_SHELL_KEPT,
        })
    }

    /// Nobody gave the session a name, and its client did not leave it on purpose.
    fn is_lost_shell(&self) -> bool {
        let is_numbered = self.control.as_ref().is_some_and(|control| control.name().is_number());
        is_numbered && self.session.viewers().next().is_some()
    }

    /// Whether the shell has started something that runs.
    fn has_children(&self) -> bool {
        let Running::Started(child) = &self.program else { return false };
        process::has_children(child.id())
    }

    /// Ends the session of which nobody can be told.
    fn give_up(&mut self, now: Time) {
        self.closing = true;
        self.ended = true;
        self.session.close(now);
    }

    /// The user wants the session's end: its program is hung up on, and killed if that does not help.
    pub(super) fn kill(&mut self, now: Time) {
        self.life.killed.get_or_insert(now);
        match self.program {
            Running::Started(_) => {
                self.signal_program(Signal::HUP);
                // What is stopped must go on to hear it.
                self.signal_program(Signal::CONT);
            }
            Running::Waiting(_) => self.give_up(now),
            Running::Ended { .. } => {}
            Running::Reported { .. } => self.program_reported(now),
        }
    }

    /// The program has ended, and clients are being told. A session that was killed keeps nothing for others.
    pub(super) fn program_reported(&mut self, now: Time) {
        if self.life.killed.is_none() {
            return;
        }
        match self.lonely_since(now) {
            Some(_) => self.give_up(now),
            None => self.tell_the_end(now + GOODBYE_WAIT_TOLD),
        }
    }

    /// Clients are told the end until then. The socket goes at once, and with it the name: `rove kill` waits for that, and
    /// who begins a session of the same name does not wait for clients that are slow to confirm the end, or away.
    fn tell_the_end(&mut self, by: Time) {
        self.life.goodbye_by.get_or_insert(by);
        self.control = None;
    }

    /// Signals the program that was started, and the one that the terminal's keys go to.
    fn signal_program(&self, signal: Signal) {
        let Running::Started(child) = &self.program else { return };
        let leader = Pid::from_raw(child.id().cast_signed());
        let foreground = self.pty.as_ref().and_then(|pty| pty.get_ref().foreground());
        // One that has ended meanwhile needs no signal.
        for group in [foreground.filter(|it| Some(*it) != leader), leader].into_iter().flatten() {
            let _ = kill_process_group(group, signal);
        }
    }
}
