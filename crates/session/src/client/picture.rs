//! The picture on the user's terminal, and what is written before the first one and after the last.

use alloc::vec::Vec;

use rove_ssp::Time;
use rove_term::screen::Buffer;
use rove_term::{Dialect, History, Screen, Size, Terminal};

use crate::client::Client;
use crate::client::backlog::Backlog;
use crate::client::interface::Event;
use crate::client::partial::observe;
use crate::client::source::{Sharing, Source};
use crate::past::Past;

impl Client {
    /// Appends to `out` what brings the user's terminal up to date. `false`: it is.
    ///
    /// Call before each sleep: [`poll_timeout`](rove_ssp::Machine::poll_timeout) counts on it. The layers, from the
    /// ground up: the newest screen of the server, guesses at what typed keys will do, the bar. All is cut
    /// to the window and painted as one frame.
    pub fn poll_paint(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        self.tick(now);
        self.take_lines();
        self.painter.tick(now);
        let is_over = self.connection.is_over();
        if !is_over {
            if self.painter.asks() {
                self.queries.ask_cursor(now, out);
            }
            // Before the picture, which paints over what a terminal shows of a question.
            self.queries.ask(now, out);
        }
        self.predictor.frame(now, observe(self.connection.endpoint(), &self.parts));
        if self.cursor_due().is_some() {
            self.painter.hold(now);
            return out.len() > before;
        }
        let report = self.queries.take_cursor();
        if self.painter.awaits_size(now, report) {
            self.painter.hold(now);
            return out.len() > before;
        }
        let cursor = report.map(|report| report.cursor);
        self.painter.locate(cursor, self.queries.told(), out);
        self.bar.waits(self.endpoint().local().octets_held());
        let depth = self.view().past().map(Past::depth);
        let ended = self.view().exit_status().is_some();
        let missing = depth.filter(|_| ended).map_or(0, |depth| self.painter.missing(depth));
        self.bar.drains(now, missing);
        self.leaves_alternate |=
            self.connection.is_over() && depth.is_some_and(|depth| self.painter.is_behind(depth));
        let source = Source {
            newest: self.endpoint().remote_num(),
            // The last picture stays on the user's terminal, so it has neither bar nor panel.
            bar: if self.connection.is_over() { None } else { self.bar.text(now) },
            panel: self.panel.clone().filter(|_| !self.connection.is_over()),
            guesses: self.predictor.revision(),
            sharing: Sharing::of(self.view().session()),
            depth,
            leaves: self.leaves_alternate,
        };
        let tells_late = self.queries.told().tells_size_late();
        if !is_over && tells_late && self.painter.must_look(now, &source) {
            self.queries.ask_cursor(now, out);
            self.painter.hold(now);
            return true;
        }
        let picture = || {
            let mut screen = self.connection.endpoint().remote().screen().clone();
            if self.leaves_alternate && screen.buffer() == Buffer::Alternate {
                // Lines that wait are lines of the other screen.
                let mut terminal = Terminal::resume(screen, Dialect::ROVE);
                terminal.advance(b"\x1b[?1049l");
                return terminal.into_screen();
            }
            self.predictor.overlay(&mut screen);
            screen
        };
        if self.painter.paint(now, source, picture, out) {
            self.events.push(Event::TerminalKnown);
        }
        out.len() > before
    }

    /// What to write to the terminal before the first paint, and when it is taken again after it was given
    /// back.
    pub fn tty_open(&self) -> Vec<u8> {
        self.painter.open(self.queries.told())
    }

    /// What to write to a terminal that was never given back, but that others may have used.
    pub fn tty_reopen(&self) -> Vec<u8> {
        self.painter.reopen()
    }

    /// What to write to the terminal after the last paint, and before suspending: all that was switched on
    /// is off then.
    pub fn tty_close(&self) -> Vec<u8> {
        self.painter.close(self.queries.told())
    }

    /// The same for a crash, when nobody knows what the terminal shows.
    pub fn tty_abandon(&self) -> Vec<u8> {
        self.painter.abandon(self.queries.told())
    }

    /// Until when the terminal may be answering; `None` if it is not. Hand over what comes before giving
    /// the terminal back: it would be typed into the user's shell.
    pub fn answers_due(&self) -> Option<Time> {
        self.queries.answers_due().max(self.queries.cursor_due())
    }

    /// Until when no picture is painted, since the terminal may tell where its cursor is; `None` if none waits for that.
    pub fn cursor_due(&self) -> Option<Time> {
        self.queries.cursor_due()
    }

    /// How many rows at the top of the terminal are none of the session's.
    pub fn rows_above(&self) -> u16 {
        self.painter.rows_above()
    }

    /// When to paint once more, even if the session is over, because lines wait for the terminal's history. `None`: none
    /// do.
    pub fn lines_due(&self) -> Option<Time> {
        self.painter.lines_due()
    }

    /// Whether the next paint may bring lines to the terminal's history. They are pushed out of a window of the size that is
    /// known: ask for it first.
    pub fn pushes_lines(&self) -> bool {
        self.lines_behind() > 0
    }

    /// The position up to which the session's lines are in the terminal's history.
    pub fn lines_printed(&self) -> u64 {
        self.painter.backlog.as_ref().map_or(0, Backlog::printed_to)
    }

    /// The window got another size while the terminal took the lines from this position on: they may be wrapped elsewhere, or
    /// are lost. They are brought again, since a line is better there twice than not at all.
    pub fn print_again(&mut self, position: u64) {
        if let Some(backlog) = &mut self.painter.backlog {
            backlog.unprint(position);
            self.painter.repaint_once();
        }
    }

    /// How many lines above the newest screen are not in the terminal's history, also of those that have not arrived.
    pub(super) fn lines_behind(&self) -> u64 {
        let backlog = self.painter.backlog.as_ref();
        self.view().past().zip(backlog).map_or(0, |(past, backlog)| backlog.behind(past.depth()))
    }

    /// The size of the window, as it was told last.
    pub fn window_size(&self) -> Size {
        self.painter.size()
    }

    /// The lines that the server told last, by their positions: as many as a history keeps. `None` if it tells none.
    pub fn lines_told(&self) -> Option<&History> {
        self.painter.backlog.as_ref().map(Backlog::lines)
    }

    /// The last picture; `None` before the first, or when the terminal may show something else.
    pub fn shown(&self) -> Option<&Screen> {
        self.painter.shown()
    }

    /// The sequences that pictures are painted with: the part of the terminal's repertoire that is used.
    pub fn dialect(&self) -> Dialect {
        self.painter.dialect()
    }
}
