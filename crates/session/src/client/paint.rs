//! Paints the server's screen and the layers over it on the user's terminal.
//!
//! [`Painter`] knows every cell of that terminal and writes no more than what changes. It does not know
//! where screens come from.

mod handover;

use alloc::string::String;
use alloc::vec::Vec;

use core::time::Duration;

use rove_ssp::{StateNum, Time};
use rove_term::probe::{CursorReport, DeviceReports};
use rove_term::screen::{Buffer, Palette};
use rove_term::{Ability, Dialect, Mouse, Screen, Size, feed, frame, repaint_below, scroll_out};

use crate::client::backlog::Backlog;
use crate::client::inline::{self, Question, Unknown};
use crate::client::late_size::LateSize;
use crate::client::notify::NotificationLimit;
use crate::client::overlay::{self, Corner, TtyScreen};
use crate::client::scrollback::TtyScrollback;
use crate::client::source::{Sharing, Source};
use crate::past::Past;
use crate::work::LINK_OCTETS_MAX;

/// Between two paints that bring missed lines: a terminal that can be held shows none of them, and another shows all.
const LINES_PAUSE: Duration = Duration::from_millis(1);
const LINES_PAUSE_UNHELD: Duration = Duration::from_millis(100);

/// Whether a paint brings lines that are missing to the terminal's history.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lines {
    Come,
    Wait,
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
    /// The session's picture on it, before it was moved below what is the user's.
    plain: Option<Screen>,
    /// That without the bar and the panel, while there is one of them.
    covered: Option<Screen>,
    /// Colours of it that were ever changed.
    colors: Palette,
    scrollback: TtyScrollback,
    /// Where the picture is, if that is to be learnt.
    question: Question,
    /// The next picture leaves none of the rows above it.
    takes_all: bool,
    /// The lines above the screen, if the server tells of them.
    pub(super) backlog: Option<Backlog>,
    /// The terminal's history stays when a program erases the one on the host.
    keeps_history: bool,
    /// No more lines above the first screen were asked for than those that come: none are missing there.
    pub(super) wants_fewer: bool,
    /// The user asked for their own shell.
    is_suspended: bool,
    /// The state that told of them last.
    told: Option<StateNum>,
    /// When more of them are to be brought.
    more_at: Option<Time>,
    late_size: LateSize,
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
        let mut question = Question::default();
        if window == TtyScreen::Inline {
            question.start();
        }
        Self {
            window,
            title_prefix,
            tty,
            size,
            corner: Corner::default(),
            shown: None,
            plain: None,
            covered: None,
            colors: Palette::default(),
            scrollback: TtyScrollback::default(),
            question,
            takes_all: false,
            backlog: None,
            keeps_history: false,
            wants_fewer: false,
            is_suspended: false,
            told: None,
            more_at: None,
            late_size: LateSize::new(now),
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
        self.late_size.painted();
        if !self.is_news(now, &source) {
            return false;
        }
        let mut wanted = picture();
        // Until the server's screen has the window's size, too, it is not known which lines stand above it.
        let is_settled = wanted.size() == self.size || source.sharing == Sharing::WithOthers;
        let may_come = is_settled || source.leaves;
        if !may_come {
            self.more_at = None;
        } else if let Some(time) = self.late_size.sure_from(now).filter(|_| self.brings(&source)) {
            self.more_at = Some(time);
        }
        let lines = match may_come {
            true if self.more_at.is_none_or(|time| time <= now) => Lines::Come,
            _ => Lines::Wait,
        };
        overlay::prefix_title(&mut wanted, &self.title_prefix);
        match source.sharing {
            Sharing::Alone => overlay::cut(&mut wanted, self.size),
            Sharing::WithOthers => self.corner.cut(&mut wanted, self.size),
        }
        wanted.bound_links(LINK_OCTETS_MAX);
        let tty = self.dialect();
        let announced = self.notifications.admit(now, &mut wanted);
        if source.depth.is_some() {
            // Nothing of it scrolls off by itself.
            self.covered = None;
        }
        let leave = self.leaving(lines, &wanted, &source, &tty);
        self.leave(leave, &tty, out);
        let above = self.scrollback.theirs();
        self.plain = (above > 0).then(|| wanted.clone());
        wanted = wanted.lowered(above);
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
            // On the alternate screen no row is the user's.
            let row = if wanted.buffer() == Buffer::Primary { above } else { 0 };
            overlay::bar(&mut wanted, row, text);
        }
        match (&self.shown, source.depth) {
            (Some(_), Some(_)) => {}
            (Some(shown), None) => {
                self.scrollback.scrolled(shown, &wanted);
                frame(shown, &wanted, &tty, out);
            }
            (None, _) => {
                repaint_below(&wanted, above, &tty, out);
                // A repaint announces no events, and gives no colours back.
                let mut before = wanted.clone();
                before.set_announced(&announced);
                before.palette_mut().add(&self.colors);
                frame(&before, &wanted, &tty, out);
                self.shown = Some(wanted.clone());
            }
        }
        if let Some(depth) = source.depth {
            self.paint_below(now, lines, depth, &wanted, &tty, out);
        }
        let colors_changed = self.colors.add(wanted.palette());
        self.shown = Some(wanted);
        self.painted = Some(source);
        colors_changed
    }

    /// Whether anything is to be done for the terminal's history.
    fn brings(&self, source: &Source) -> bool {
        let backlog = self.backlog.as_ref().zip(source.depth);
        backlog.is_some_and(|(backlog, depth)| backlog.brings(depth))
    }

    /// Whether a paint from this has anything to write.
    fn is_news(&self, now: Time, source: &Source) -> bool {
        self.painted.as_ref() != Some(source) || self.due().is_some_and(|time| time <= now)
    }

    /// How many of the user's rows above the picture must leave: it needs their room, or lines of the session are to
    /// come between.
    fn leaving(&mut self, lines: Lines, wanted: &Screen, source: &Source, tty: &Dialect) -> u16 {
        let theirs = self.scrollback.theirs();
        let keeps = self.window == TtyScreen::Inline && !core::mem::take(&mut self.takes_all);
        if theirs == 0 || !keeps || self.window.switches(tty) {
            return theirs;
        }
        let is_primary = wanted.buffer() == Buffer::Primary;
        let brings = is_primary && lines == Lines::Come && self.brings(source);
        // A terminal tells places of the mouse on its whole screen, and one that has no other screen shows a program's there.
        let points = is_primary && wanted.modes().mouse != Mouse::Off;
        let covers = !is_primary && !tty.can(Ability::Alternate);
        if points || covers || brings {
            return theirs;
        }
        let panel = source.panel.as_ref().map_or(0, |lines| lines.len() as u16);
        let needed = wanted.primary_rows_needed().max(panel.min(self.size.rows));
        (needed + theirs).saturating_sub(self.size.rows)
    }

    /// Sends as many of the user's rows to the terminal's history.
    fn leave(&mut self, rows: u16, tty: &Dialect, out: &mut Vec<u8>) {
        if rows == 0 {
            return;
        }
        let above = self.scrollback.theirs();
        self.scrollback.set_theirs(above - rows);
        match &mut self.shown {
            Some(shown) if shown.buffer() == Buffer::Primary => {
                scroll_out(rows.into(), out);
                let raised = |screen: &Screen| match &self.plain {
                    Some(plain) => screen.raised_in(rows, plain, above),
                    None => screen.raised(rows),
                };
                *shown = raised(shown);
                shown.set_cursor(self.size.rows - 1, 0);
                self.covered = self.covered.take().map(|covered| raised(&covered));
            }
            // The alternate screen is left for that.
            _ => {
                self.window.give_back_lines(rows, tty, out);
                self.shown = None;
            }
        }
    }

    /// Whether to ask the terminal where its cursor is, which must be known before the next picture. Asked once.
    pub(crate) fn asks(&mut self) -> bool {
        let asks = self.question.asks();
        if asks {
            self.late_size.asked();
        }
        asks
    }

    /// Whether to ask the terminal for its size before a paint from this, since it tells of a new one late. Asked once.
    pub(crate) fn must_look(&mut self, now: Time, source: &Source) -> bool {
        // No line comes back onto the alternate screen.
        let is_primary = |screen: &Screen| screen.buffer() == Buffer::Primary;
        let has_lines =
            self.window != TtyScreen::Alternate && self.shown.as_ref().is_none_or(is_primary);
        has_lines && self.is_news(now, source) && self.late_size.asks(now)
    }

    /// Whether the window has another size already, as such an answer shows: nothing is painted before that is told.
    pub(crate) fn awaits_size(&mut self, now: Time, report: Option<CursorReport>) -> bool {
        if let Some((row, col)) = report.and_then(|report| report.end) {
            self.late_size.answered(now, Size::clamped(row + 1, col + 1) != self.size);
        }
        self.late_size.is_other()
    }

    /// Does what has become due.
    pub(crate) fn tick(&mut self, now: Time) {
        if self.late_size.expire(now) {
            // What the answer said of the cursor was left aside.
            self.question.ask_again();
        }
    }

    /// The cursor is there, row and column from 0; `None` if the terminal does not tell. Appends what makes room.
    pub(crate) fn locate(
        &mut self,
        cursor: Option<(u16, u16)>,
        told: &DeviceReports,
        out: &mut Vec<u8>,
    ) {
        // What a terminal says of a larger window it has no more is no row of this one.
        let cursor = cursor.map(|(row, col)| (row.min(self.size.rows - 1), col));
        match (self.question.take(), cursor) {
            (None, _) => {}
            (Some(Unknown::Start), Some((row, col))) => {
                let mut row = if col > 0 { row + 1 } else { row };
                if row >= self.size.rows {
                    out.extend_from_slice(b"\r\n");
                    row = self.size.rows - 1;
                }
                self.scrollback.set_theirs(row);
                self.forget();
            }
            (Some(Unknown::Start), None) => {
                overlay::scroll_away(self.size, out);
                self.forget();
            }
            (Some(Unknown::Resized { shown, top }), Some((row, _))) => {
                let above = self.scrollback.theirs();
                let row = inline::top(&shown, above, self.size, row, told.wraps_anew());
                let back = inline::back(&shown, self.size, told.takes_lines_back());
                self.rearranged(top, |scrollback| scrollback.moved_to(row, back));
            }
            (Some(Unknown::Resized { shown, top }), None) => {
                self.guess(shown.size(), used(&shown), top);
            }
        }
    }

    /// Brings lines that are missing to the terminal's history, and the picture below them.
    fn paint_below(
        &mut self,
        now: Time,
        lines: Lines,
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
        if backlog.take_erases() && !self.keeps_history {
            out.extend_from_slice(b"\x1b[3J");
        }
        let waits = lines == Lines::Wait;
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
            None => self.backlog = Some(Backlog::new(past, self.wants_fewer)),
        }
    }

    /// The terminal's history stays when a program erases the one on the host.
    pub(crate) fn keep_history(&mut self) {
        self.keeps_history = true;
    }

    /// How many lines above a screen of this depth have not arrived.
    pub(crate) fn missing(&self, depth: u64) -> u64 {
        self.backlog.as_ref().map_or(0, |backlog| backlog.lacks(depth))
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
    pub(crate) fn resized(&mut self, now: Time, size: Size) {
        self.late_size.told(now);
        // Terminals rearrange what they show when they are resized, each in its own way.
        let old = core::mem::replace(&mut self.size, size);
        self.covered = None;
        let top = self.backlog.as_ref().and_then(Backlog::top);
        match self.shown.take() {
            Some(shown)
                if self.window == TtyScreen::Inline && shown.buffer() == Buffer::Primary =>
            {
                self.used = used(&shown);
                self.question.resized(shown, top);
            }
            shown => {
                self.used = shown.as_ref().map_or(self.used, used);
                if !self.question.ask_again() {
                    self.guess(old, self.used, top);
                }
            }
        }
        if size == old {
            // There and back again, with one signal for both: no answer of the server will come.
            self.repaint_once();
        }
    }

    /// The terminal does not tell what it did with `used` rows of a window of this size.
    fn guess(&mut self, old: Size, used: u16, top: Option<u64>) {
        let size = self.size;
        self.used = self.rearranged(top, |scrollback| scrollback.resized(old, size, used));
    }

    /// The terminal has taken lines to its history, or back from there, when the picture had this [top](Backlog::top).
    fn rearranged<T>(&mut self, top: Option<u64>, how: impl FnOnce(&mut TtyScrollback) -> T) -> T {
        if let Some(backlog) = &self.backlog {
            self.scrollback.set_ours(backlog.printed());
        }
        let result = how(&mut self.scrollback);
        if let Some(backlog) = &mut self.backlog {
            backlog.moved(self.scrollback.ours(), top);
        }
        result
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
        let was_given_back = core::mem::take(&mut self.is_suspended);
        let above = self.scrollback.theirs();
        if self.window != TtyScreen::Inline || was_given_back {
            self.scrollback = TtyScrollback::default();
        }
        match was_given_back {
            true if self.window == TtyScreen::Inline => self.question.start(),
            true => {}
            // Where others have written is not known either.
            false => self.takes_all = !self.question.is_start(),
        }
        // The picture went to the terminal's history, but for the last line, which is likely to go on.
        if let (true, Some(shown), Some(backlog)) = (was_given_back, &self.shown, &mut self.backlog)
        {
            let used = u64::from(shown.primary_rows_used().saturating_sub(above));
            backlog.moved(backlog.printed() + used.saturating_sub(1), backlog.top());
        }
        self.forget();
    }

    /// Nothing is painted now, since the picture's place is to be learnt.
    pub(crate) fn hold(&mut self, now: Time) {
        self.painted_at = now;
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

    /// How many rows at the top of the terminal are none of the session's.
    pub(crate) fn rows_above(&self) -> u16 {
        if self.window.switches(&self.tty) { 0 } else { self.scrollback.theirs() }
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

    /// When something is to be announced, or lines or a picture are to be brought, that had to wait.
    pub(crate) fn due(&self) -> Option<Time> {
        let waits = || self.notifications.due().into_iter().chain(self.more_at).min();
        self.late_size.due().or_else(waits)
    }

    /// When lines or a picture are to be brought that had to wait.
    pub(crate) fn lines_due(&self) -> Option<Time> {
        self.late_size.due().or(self.more_at)
    }
}

/// Rows in use of a picture that a terminal shows.
fn used(shown: &Screen) -> u16 {
    shown.primary_rows_used().max(shown.cursor().row + 1)
}
