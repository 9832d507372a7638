//! A window that has another size before that is told. tmux tells a program of one resize in 250 ms at most, and a paint for
//! the size before would replace lines that have come back from the history, so it is asked how large it is.

use core::time::Duration;

use rove_ssp::Time;

/// For so long after a resize the window may have another size already.
const RESIZES_WAIT: Duration = Duration::from_millis(300);

/// While an edge is dragged each size may be another one by the time it is told. No picture waits longer for that.
const OTHER_SIZE_WAIT: Duration = Duration::from_millis(600);

/// The window's size, as far as it may be another than the one told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LateSize {
    /// From then on it is the one told.
    sure_from: Time,
    /// The terminal was asked for the next picture.
    is_asked: bool,
    /// It has answered that it is another one.
    is_other: bool,
    /// Since when no picture was painted for that reason.
    since: Option<Time>,
}

impl LateSize {
    pub(crate) fn new(now: Time) -> Self {
        Self { sure_from: now, is_asked: false, is_other: false, since: None }
    }

    /// A size was told, which may be followed by others.
    pub(crate) fn told(&mut self, now: Time) {
        *self = Self { since: self.since, ..Self::new(now + RESIZES_WAIT) };
    }

    /// From when on the size is the one told, if it may be another one now.
    pub(crate) fn sure_from(&self, now: Time) -> Option<Time> {
        (now < self.sure_from).then_some(self.sure_from)
    }

    /// The terminal was asked for another reason.
    pub(crate) fn asked(&mut self) {
        self.is_asked = true;
    }

    /// Whether to ask for the next picture. Asked once.
    pub(crate) fn asks(&mut self, now: Time) -> bool {
        now < self.sure_from && !core::mem::replace(&mut self.is_asked, true)
    }

    /// The terminal has answered whether it is another one.
    pub(crate) fn answered(&mut self, now: Time, is_other: bool) {
        // What was asked for the picture before, or for the window before, is old.
        if self.is_asked && is_other {
            self.is_other = true;
            self.since.get_or_insert(now);
            self.expire(now);
        }
    }

    /// Whether it is another one, which will be told.
    pub(crate) fn is_other(&self) -> bool {
        self.is_other
    }

    /// Until when a picture waits for that.
    pub(crate) fn due(&self) -> Option<Time> {
        let since = self.since.filter(|_| self.is_other)?;
        Some(self.sure_from.min(since + OTHER_SIZE_WAIT))
    }

    /// Whether that time is over. Asked once.
    pub(crate) fn expire(&mut self, now: Time) -> bool {
        let is_over = self.due().is_some_and(|due| due <= now);
        self.is_other &= !is_over;
        is_over
    }

    /// A picture was painted, or there was none to paint: the next one asks anew.
    pub(crate) fn painted(&mut self) {
        (self.is_asked, self.since) = (false, None);
    }
}
