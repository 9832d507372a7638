//! Who is in a session: others make room for a client that comes, and all are told of each other.

use alloc::string::String;

use rove_ssp::{Session as _, Time};

use crate::host::ViewerId;
use crate::server::{AWAY_MAX, Attached, Others, PRESENT_FOR, Rights, Server, VIEWERS_MAX};
use crate::session_info::{LetGo, SessionInfo, name_of};

impl Server {
    /// A client is there. The others make room for it or are told.
    pub(super) fn welcome(&mut self, now: Time, index: usize) -> bool {
        let is_alone = self.viewers.len() == 1;
        let attached = &mut self.viewers[index];
        attached.is_announced = true;
        let (id, who) = (attached.viewer.id(), name_of(attached.viewer.endpoint().peer()));
        match attached.others {
            Others::Leave => {
                let leaves =
                    |it: &Attached| it.viewer.id() != id && it.viewer.connection().is_open();
                while let Some(other) = self.viewers.iter().position(leaves) {
                    if self.viewers[other].is_announced {
                        self.let_go(now, other, LetGo::TakenOver, &who);
                    } else {
                        // It was never here, and may never come.
                        self.remove(other);
                    }
                }
            }
            Others::Stay => {
                while let Some(other) = self.surplus(id) {
                    self.let_go(now, other, LetGo::Replaced, &who);
                }
            }
        }
        self.tell(&who);
        !is_alone
    }

    /// Of more clients than a session may have the one that was not heard for longest, but for the one that has just come.
    fn surplus(&self, newest: ViewerId) -> Option<usize> {
        let there = self.viewers.iter().enumerate().filter(|(_, attached)| attached.is_announced);
        if there.clone().count() <= VIEWERS_MAX {
            return None;
        }
        let others = there.filter(|(_, attached)| attached.viewer.id() != newest);
        let longest = others.min_by_key(|(_, it)| it.viewer.endpoint().last_heard());
        longest.map(|(index, _)| index)
    }

    /// Ends the session for this client alone. One that is away is told when it is heard again, unless too many others are
    /// let go before that. Returns its name.
    fn let_go(&mut self, now: Time, index: usize, why: LetGo, other: &str) -> String {
        let mut viewer = self.remove(index).viewer;
        let name = name_of(viewer.endpoint().peer());
        viewer.let_go(now, why, other);
        if self.dismissed.len() == VIEWERS_MAX {
            self.dismissed.pop_front();
        }
        self.dismissed.push_back(viewer);
        name
    }

    /// Tells all clients that know of sessions about this one. `who` has come or left, if anybody has.
    pub(super) fn tell(&mut self, who: &str) {
        let Some(name) = &self.name else { return };
        let there = self.viewers.iter().filter(|attached| attached.is_announced).count();
        for Attached { viewer, is_announced, .. } in &mut self.viewers {
            let Some(told) = viewer.session().cloned() else { continue };
            let others = (there - usize::from(*is_announced)) as u64;
            let is_news = others != told.others && !who.is_empty();
            viewer.describe(SessionInfo {
                name: name.clone(),
                can_detach: true,
                view_only: viewer.rights() == Rights::Look,
                others,
                who: if is_news { who.into() } else { told.who.clone() },
                ..told
            });
        }
    }

    /// Lets clients go that were away for long while another is there.
    pub(super) fn let_lost_go(&mut self, now: Time) {
        let is_there = self.viewers().any(|viewer| viewer.was_heard(now, PRESENT_FOR));
        let is_lost = |it: &Attached| it.is_announced && !it.viewer.was_heard(now, AWAY_MAX);
        while is_there && let Some(index) = self.viewers.iter().position(is_lost) {
            let gone = self.let_go(now, index, LetGo::Replaced, "");
            self.tell(&gone);
        }
    }
}
