//! Limits clipboard writes and notifications to the user's terminal to two a second; the latest one
//! wins. A program that sets the clipboard in a loop must not make the terminal, and programs that
//! watch the clipboard, copy megabytes a second.

use core::time::Duration;

use rove_ssp::Time;
use rove_term::{Announced, Screen};

/// The shortest time between two announcements. A person who copies twice in it gets the second one half a
/// second after the first.
const INTERVAL: Duration = Duration::from_millis(500);

/// What the terminal was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct NotificationLimit {
    told: Announced,
    told_at: Option<Time>,
    waiting: bool,
}

impl NotificationLimit {
    /// Has `wanted` announce what may be announced now. Returns what the terminal was told before.
    pub(crate) fn admit(&mut self, now: Time, wanted: &mut Screen) -> Announced {
        let (before, news) = (self.told.clone(), wanted.announced());
        self.waiting = false;
        if news != before {
            match self.free_at() {
                Some(free) if free > now => {
                    wanted.set_announced(&before);
                    self.waiting = true;
                }
                _ => (self.told, self.told_at) = (news, Some(now)),
            }
        }
        before
    }

    /// When what waits may be announced.
    pub(crate) fn due(&self) -> Option<Time> {
        self.free_at().filter(|_| self.waiting)
    }

    fn free_at(&self) -> Option<Time> {
        Some(self.told_at? + INTERVAL)
    }
}
