//! What the user's other processes ask of a session by its control socket.

use std::io;
use std::net::IpAddr;

use rove_session::server::{Full, Joining, Others, PRESENT_FOR, Rights, SCREEN_RATE, VIEWERS_MAX};
use rove_ssp::{ConnId, Session as _, Time, Timing};

use super::carried::WAYS_MAX;
use super::{Running, Shell};
use crate::bootstrap::CostProfile;
use crate::os;
use crate::os::locked::within;
use crate::server::control::{Asker, Control};
use crate::server::limits::{GOODBYE_WAIT, GOODBYES};
use crate::server::options::Greeting;
use crate::server::secret::{Secret, announcement};
use crate::sessions::line::{Attach, Clients, Request, Session, State, refusal};

impl Shell {
    /// Answers all who have said what they want.
    pub(super) fn answer_requests(&mut self, now: Time) {
        while let Some((asker, request)) = self.control.as_mut().and_then(|it| it.take(now)) {
            self.answer(now, asker, request);
        }
    }

    /// Looks whether the session can be found. Returns whether it could not, and can from now on.
    pub(super) fn restore_control(&mut self) -> bool {
        match self.control.as_mut().map(Control::restore) {
            None | Some(Ok(false)) => return false,
            Some(Ok(true)) => self.note(&"the control socket was gone, and is made again"),
            Some(Err(why)) => {
                self.note(&format_args!("no control socket: {why}"));
                return false;
            }
        }
        true
    }

    fn answer(&mut self, now: Time, asker: Asker, request: Request) {
        match request {
            Request::List => {
                if let Some(session) = self.describe(now) {
                    asker.answer(&session.to_string());
                }
            }
            Request::Attach(attach) => match self.attach(now, &attach) {
                Ok(line) => asker.answer(line.trim_end()),
                Err(why) => asker.answer(&refusal(why)),
            },
            Request::Carry(conn, from) => self.carry(asker, conn, from),
            // A session with a screen copies nothing.
            Request::Release(..) => asker.answer(&refusal("no such part is held here")),
            Request::Kill => {
                self.note(&"told to end by its user");
                self.kill(now);
                asker.answer("OK");
            }
        }
    }

    /// A client is to be reached by another stream as well.
    fn carry(&mut self, asker: Asker, conn: ConnId, from: Option<IpAddr>) {
        if !self.conns.iter().any(|(_, known)| *known == conn) {
            return asker.answer(&refusal("there is no such client"));
        }
        if !self.carried.has_room() {
            return asker.answer(&refusal(format_args!("{WAYS_MAX} ways are open")));
        }
        match asker.carry() {
            Ok(socket) => self.carried.add(socket, from),
            Err(error) => self.note(&format_args!("no other way over ssh: {error}")),
        }
    }

    /// What the session is.
    fn describe(&self, now: Time) -> Option<Session> {
        let control = self.control.as_ref()?;
        let seconds = |since: Time| now.since(since).as_secs();
        let (pid, command) = self.foreground();
        Some(Session {
            name: control.name().clone(),
            id: control.id(),
            kind: self.life.kind,
            age: seconds(self.life.begun),
            used: seconds(self.life.used),
            size: self.session.screen().size(),
            state: match (&self.program, self.session.exit_status()) {
                (_, Some(status)) => State::Ended(status),
                (Running::Waiting(_), None) => State::Waiting,
                _ => State::Running,
            },
            clients: self.clients(now),
            pid,
            command,
        })
    }

    fn clients(&self, now: Time) -> Clients {
        let there = self.session.viewers().filter(|viewer| viewer.was_heard(now, PRESENT_FOR));
        let addresses = there.filter_map(|viewer| self.ip_of(viewer.endpoint().peer()?));
        let addresses: Vec<_> = addresses.collect();
        if !addresses.is_empty() {
            return Clients::There(addresses);
        }
        let left = self.life.left.map(|left| Clients::Left(now.since(left).as_secs()));
        let lost = self.last_heard().map(|heard| Clients::Lost(now.since(heard).as_secs()));
        lost.or(left).unwrap_or(Clients::None)
    }

    /// The process that keys go to, and its program's name.
    fn foreground(&self) -> (u32, Vec<u8>) {
        let pid = match &self.program {
            Running::Started(child) => {
                let group = self.pty.as_ref().and_then(|pty| pty.get_ref().foreground());
                group.map_or(child.id(), |group| group.as_raw_pid().unsigned_abs())
            }
            _ => 0,
        };
        // What is gone meanwhile has no name any more.
        let name = if pid > 0 { os::process::program_name(pid) } else { Vec::new() };
        (pid, if name.is_empty() { self.life.program.clone() } else { name })
    }

    /// Makes room for a client with keys of its own. Returns the line that it waits for.
    fn attach(&mut self, now: Time, attach: &Attach) -> Result<String, String> {
        let Attach { nonce, key, terms, .. } = attach;
        if self.closing && self.session.exit_status().is_none() {
            return Err("the session is ending".into());
        }
        let failed = |error: io::Error| format!("no keys to be had: {error}");
        let mut secret = within(|| Secret::native(nonce, key)).map_err(failed)?;
        while self.conns.iter().any(|(_, conn)| Some(*conn) == secret.conn()) {
            secret = within(|| Secret::native(nonce, key)).map_err(failed)?;
        }
        let tariff = if terms.is_metered { CostProfile::Metered } else { CostProfile::Flat };
        let seed = os::random().map_err(failed)?;
        let joining = Joining {
            wire: within(|| secret.wire()),
            timing: Timing {
                final_acks: GOODBYES,
                answers_slots: true,
                close_time_max: GOODBYE_WAIT,
                ..tariff.timing()
            },
            rights: if terms.views { Rights::Look } else { Rights::Type },
            others: if terms.takes { Others::Leave } else { Others::Stay },
            size_policy: terms.size,
            fill: terms.fill,
            screen_rate: Some(SCREEN_RATE),
            seed: u64::from_ne_bytes(*seed),
        };
        let id = self
            .session
            .join(now, joining)
            .map_err(|Full| format!("{VIEWERS_MAX} clients are attached"))?;
        self.conns.retain(|(id, _)| self.session.knows(*id));
        // Those that were expected and never came have keys there.
        self.besides.keep(|client| self.session.knows(client));
        self.conns.extend(secret.conn().map(|conn| (id, conn)));
        self.besides.add(id, secret.streams());
        let greeting = Greeting::Native { nonce: nonce.clone(), key: *key };
        self.note(&"another client may come");
        Ok(announcement(&greeting, self.bound, &secret, false).to_string())
    }
}
