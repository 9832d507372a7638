//! Paints the server's screen and the layers over it on the user's terminal.
//!
//! [`Painter`] knows every cell of that terminal and writes no more than what changes. It does not know
//! where screens come from.

use alloc::string::String;
use alloc::vec::Vec;

use core::time::Duration;

use rove_ssp::{StateNum, Time};
use rove_term::probe::DeviceReports;
use rove_term::screen::{Buffer, Palette};
use rove_term::{Ability, Dialect, Screen, Size, feed, frame, repaint};

use crate::client::backlog::Backlog;
use crate::client::notify::NotificationLimit;
use crate::client::overlay::{self, Corner, Found, TtyScreen};
use crate::client::scrollback::TtyScrollback;
use crate::past::Past;
use crate::session_info::SessionInfo;
use crate::work::LINK_OCTETS_MAX;

/// What a picture is made from: while it is the same, so is the picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Source {
    /// The server's state.
    pub(crate) newest: StateNum,
    /// The text of the bar, if there is one.
    pub(crate) bar: Option<String>,
    /// The lines of the status panel, if it is shown.
    pub(crate) panel: Option<Vec<String>>,
    /// The revision of the guesses.
    pub(crate) guesses: u64,
    pub(crate) sharing: Sharing,
    /// How deep the screen is, if the server tells of the lines above it.
    pub(crate) depth: Option<u64>,
    /// The last picture of a session that was on the alternate screen while lines of the other one wait.
    pub(crate) leaves: bool,
}

/// Between two paints that bring missed lines: a terminal that can be held shows none of them, and another shows all.
const LINES_PAUSE: Duration = Duration::from_millis(1);
const LINES_PAUSE_UNHELD: Duration = Duration::from_millis(100);

/// Who decides on the size of the screen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sharing {
    /// This window alone, so that the two sizes differ for a moment only.
    Alone,
    /// Other windows as well.
    WithOthers,
}

impl Sharing {
    /// As a server tells it.
    pub(crate) fn of(session: Option<&SessionInfo>) -> Self {
        match session {
            Some(session) if session.others > 0 || session.view_only => Self::WithOthers,
            _ => Self::Alone,
        }
    }
}

/// The user's terminal: what stands on it, and how it is written to.
pub(crate) struct Painter {
    window: TtyScreen,
    title_prefix: String,
    /// What the terminal understands.
    tty: Dialect,
    /// The size of its window.
    size: Size,
    /// The part of a larger screen that it shows.
    corner: Corner,
    /// What stands on it; `None` when that is not known.
    shown: Option<Screen>,
    /// That without the bar and the panel, while there is one of them.
    covered: Option<Screen>,
    /// Colours of it that were ever changed.
    colors: Palette,
    scrollback: TtyScrollback,
    /// The lines above the screen, if the server tells of them.
    backlog: Option<Backlog>,
    /// The user asked for their own shell.
    is_suspended: bool,
    /// The state that told of them last.
    told: Option<StateNum>,
    /// When more of them are to be brought.
    more_at: Option<Time>,
    notifications: NotificationLimit,
    /// Rows of it in use when they were last known.
    used: u16,
    /// What it was painted from; `None` asks for the next picture even if it is the same.
    painted: Option<Source>,
    painted_at: Time,
}

impl Painter {
    /// Nothing is painted yet. `title_prefix` stands before each window title.
    pub(crate) fn new(
        now: Time,
        tty: Dialect,
        window: TtyScreen,
        size: Size,
        title_prefix: String,
    ) -> Self {
        Self {
            window,
            title_prefix,
            tty,
            size,
            corner: Corner::default(),
            shown: None,
            covered: None,
            colors: Palette::default(),
            scrollback: TtyScrollback::default(),
            backlog: None,
            is_suspended: false,
            told: None,
            more_at: None,
            notifications: NotificationLimit::default(),
            used: 0,
            painted: None,
            painted_at: now,
        }
    }

    /// Appends to `out` what makes the terminal show the screen that `picture` makes, under the bar of
    /// `source`. If it was painted from the same source already, `picture` is not called.
    ///
    /// Returns whether it has changed colours of the terminal that no paint before had: giving the terminal
    /// back takes more then.
    pub(crate) fn paint(
        &mut self,
        now: Time,
        source: Source,
        picture: impl FnOnce() -> Screen,
        out: &mut Vec<u8>,
    ) -> bool {
        self.painted_at = now;
        let announces = self.notifications.due().is_some_and(|time| time <= now);
        let brings_lines = self.more_at.is_some_and(|time| time <= now);
        if self.painted.as_ref() == Some(&source) && !announces && !brings_lines {
            return false;
        }
        let mut wanted = picture();
        overlay::prefix_title(&mut wanted, &self.title_prefix);
        match source.sharing {
            Sharing::Alone => overlay::cut(&mut wanted, self.size),
            Sharing::WithOthers => self.corner.cut(&mut wanted, self.size),
        }
        wanted.bound_links(LINK_OCTETS_MAX);
        let tty = self.dialect();
        let announced = self.notifications.admit(now, &mut wanted);
        if source.depth.is_none() {
            self.uncover(&wanted, &tty, out);
            if source.bar.is_some() || source.panel.is_some() {
                self.covered = Some(wanted.clone());
            }
        }
        if let Some(lines) = &source.panel {
            overlay::panel(&mut wanted, lines);
        }
        if let Some(text) = &source.bar {
            overlay::bar(&mut wanted, text);
        }
        match (&self.shown, source.depth) {
            (Some(_), Some(_)) => {}
            (Some(shown), None) => {
                self.scrollback.scrolled(shown, &wanted);
                frame(shown, &wanted, &tty, out);
            }
            (None, _) => {
                self.window.give_back_lines(self.scrollback.take_theirs(), self.size, &tty, out);
                repaint(&wanted, &tty, out);
                // A repaint announces no events, and gives no colours back.
                let mut before = wanted.clone();
                before.set_announced(&announced);
                before.palette_mut().add(&self.colors);
                frame(&before, &wanted, &tty, out);
                self.shown = Some(wanted.clone());
            }
        }
        if let Some(depth) = source.depth {
            self.paint_below(now, depth, &wanted, &tty, out);
        }
        let colors_changed = self.colors.add(wanted.palette());
        self.shown = Some(wanted);
        self.painted = Some(source);
        colors_changed
    }

    /// Brings lines that are missing to the terminal's history, and the picture below them.
    fn paint_below(
        &mut self,
        now: Time,
        depth: u64,
        wanted: &Screen,
        tty: &Dialect,
        out: &mut Vec<u8>,
    ) {
        let (Some(backlog), Some(shown)) = (&mut self.backlog, &self.shown) else { return };
        let is_primary = |screen: &Screen| screen.buffer() == Buffer::Primary;
        if !is_primary(wanted) {
            self.more_at = None;
            return feed(shown, backlog.lines(), 0..0, wanted, tty, out);
        }
        let mut shown = shown;
        if !is_primary(shown) || shown.size() != wanted.size() {
            feed(shown, backlog.lines(), 0..0, wanted, tty, out);
            shown = wanted;
        }
        if backlog.take_erases() {
            out.extend_from_slice(b"\x1b[3J");
        }
        let waits = self.more_at.is_some_and(|time| time > now);
        let due = if waits { 0..0 } else { backlog.due(depth) };
        if !waits && let Some(gap) = backlog.take_gap(wanted.size()) {
            feed(shown, &gap, gap.first()..gap.end(), wanted, tty, out);
            shown = wanted;
        }
        feed(shown, backlog.lines(), due.clone(), wanted, tty, out);
        if !waits {
            backlog.print(due.end);
            let pause = match tty.can(Ability::Synchronized) {
                true => LINES_PAUSE,
                false => LINES_PAUSE_UNHELD,
            };
            self.more_at = (!backlog.due(depth).is_empty()).then(|| now + pause);
        }
    }

    /// The server's state of this number tells of the lines above the screen. Asked once for each.
    pub(crate) fn tell(&mut self, num: StateNum, past: &Past) {
        if self.told.replace(num) == Some(num) {
            return;
        }
        match &mut self.backlog {
            Some(backlog) => backlog.take(past),
            None => self.backlog = Some(Backlog::new(past)),
        }
    }

    /// Whether lines are missing above a screen of this depth that are here already.
    pub(crate) fn is_behind(&self, depth: u64) -> bool {
        self.backlog.as_ref().is_some_and(|backlog| !backlog.due(depth).is_empty())
    }

    /// Takes the bar and the panel off first when a row is about to leave the screen: what scrolls off goes to the
    /// terminal's history, where neither belongs.
    fn uncover(&mut self, wanted: &Screen, tty: &Dialect, out: &mut Vec<u8>) {
        let (Some(plain), Some(shown)) = (self.covered.take(), &self.shown) else { return };
        if plain.row(0).id() != wanted.row(0).id() {
            frame(shown, &plain, tty, out);
            self.shown = Some(plain);
        }
    }

    /// The window has a new size, or had one for a moment.
    pub(crate) fn resized(&mut self, size: Size) {
        // Terminals rearrange what they show when they are resized, each in its own way.
        if let Some(shown) = self.shown.take() {
            self.used = shown.primary_rows_used().max(shown.cursor().row + 1);
        }
        if let Some(backlog) = &self.backlog {
            self.scrollback.set_ours(backlog.printed());
        }
        self.scrollback.resized(self.size, size, self.used);
        if let Some(backlog) = &mut self.backlog {
            backlog.moved(self.scrollback.ours());
        }
        if size == self.size {
            // There and back again, with one signal for both: no answer of the server will come.
            self.repaint_once();
        }
        self.size = size;
    }

    /// The terminal understands this. What it did with earlier paint is not known if that is news.
    pub(crate) fn set_dialect(&mut self, tty: Dialect) {
        if tty != self.tty {
            self.tty = tty;
            self.forget();
        }
    }

    /// The terminal is about to be given back for a while.
    pub(crate) fn suspends(&mut self) {
        self.is_suspended = true;
    }

    /// The terminal shows something else now, and whose lines are above it is not known.
    pub(crate) fn resumed(&mut self) {
        self.scrollback = TtyScrollback::default();
        let was_given_back = core::mem::take(&mut self.is_suspended);
        // The picture went to the terminal's history, but for the last line, which is likely to go on.
        if let (true, Some(shown), Some(backlog)) = (was_given_back, &self.shown, &mut self.backlog)
        {
            let used = u64::from(shown.primary_rows_used());
            backlog.moved(backlog.printed() + used.saturating_sub(1));
        }
        self.forget();
    }

    /// Forgets what the terminal shows: the next paint replaces all of it.
    pub(crate) fn forget(&mut self) {
        self.shown = None;
        self.repaint_once();
    }

    /// Paints the next picture even if it is made from what the last one was.
    pub(crate) fn repaint_once(&mut self) {
        self.painted = None;
    }

    /// The last picture; `None` before that, or when the terminal may show something else.
    pub(crate) fn shown(&self) -> Option<&Screen> {
        self.shown.as_ref()
    }

    /// The window's size.
    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// What pictures are painted in: the part of the terminal's abilities that the session may use.
    pub(crate) fn dialect(&self) -> Dialect {
        self.window.narrow(self.tty)
    }

    /// When the terminal was last brought up to date.
    pub(crate) fn painted_at(&self) -> Time {
        self.painted_at
    }

    /// When something is to be announced, or lines are to be brought, that had to wait.
    pub(crate) fn due(&self) -> Option<Time> {
        self.notifications.due().into_iter().chain(self.more_at).min()
    }

    /// When lines are to be brought that had to wait.
    pub(crate) fn lines_due(&self) -> Option<Time> {
        self.more_at
    }

    /// What to write before the first paint, and when the terminal is taken again after it was given back.
    pub(crate) fn open(&self, reports: &DeviceReports) -> Vec<u8> {
        let mut out = self.window.open(Found::Theirs, self.size, &self.tty);
        overlay::listen(reports, &mut out);
        out
    }

    /// What to write to a terminal that was never given back, but that others may have used.
    pub(crate) fn reopen(&self) -> Vec<u8> {
        self.window.open(Found::Ours, self.size, &self.tty)
    }

    /// What to write to give the terminal back as it was, when it shows this, or nobody knows what: all that was
    /// switched on is off then.
    pub(crate) fn close(&self, shown: Option<&Screen>, reports: &DeviceReports) -> Vec<u8> {
        let mut out = self.window.close(shown, &self.colors, self.size, &self.tty);
        overlay::restore(reports, self.window, &mut out);
        out
    }
}
