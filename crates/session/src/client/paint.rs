//! Paints the picture and its layers, and the sequences before and after them. It does not know
//! where screens come from.

use alloc::vec::Vec;

use rove_ssp::Time;
use rove_term::{Dialect, Screen, frame, repaint};

use crate::client::overlay::{self, Found};
use crate::client::source::Source;
use crate::client::{Client, Event, Phase, facts};
use crate::work::LINK_OCTETS_MAX;

impl Client {
    /// Appends to `out` what makes the user's terminal show what it should. `false`: it does already.
    ///
    /// Call before each sleep: [`poll_timeout`](rove_ssp::Machine::poll_timeout) counts on it. The layers, from
    /// the ground up: the newest screen of the server, guesses at what typed keys will do, the bar. All
    /// is cut to the window and painted as one frame.
    pub fn poll_paint(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let before = out.len();
        self.tick(now);
        if self.phase != Phase::Over {
            // Before the picture, which paints over what a terminal shows of a question.
            self.inquiry.ask(now, out);
        }
        self.painted_at = now;
        self.predictor.frame(now, facts(&self.endpoint, &self.parts));
        let source = Source {
            newest: self.endpoint.remote_num(),
            // What is left on the terminal in the end is the program's.
            bar: if self.phase == Phase::Over { None } else { self.notice.text(now) },
            guesses: self.predictor.revision(),
        };
        let announces = self.herald.due().is_some_and(|time| time <= now);
        if self.painted.as_ref() == Some(&source) && !announces {
            return out.len() > before;
        }
        let mut wanted = self.endpoint.remote().screen().clone();
        self.predictor.overlay(&mut wanted);
        overlay::prefix_title(&mut wanted, &self.title_prefix);
        overlay::cut(&mut wanted, self.size);
        wanted.bound_links(LINK_OCTETS_MAX);
        let tty = self.window.narrow(self.tty);
        let announced = self.herald.admit(now, &mut wanted);
        self.uncover(&wanted, &tty, out);
        if let Some(text) = &source.bar {
            self.covered = Some(wanted.clone());
            overlay::bar(&mut wanted, text);
        }
        match &self.shown {
            Some(shown) => {
                self.above.scrolled(shown, &wanted);
                frame(shown, &wanted, &tty, out);
            }
            None => {
                self.window.give_back_lines(self.above.take_theirs(), self.size, &tty, out);
                repaint(&wanted, &tty, out);
                // A repaint tells of no events, and gives no colours back.
                let mut before = wanted.clone();
                before.set_announced(&announced);
                before.palette_mut().add(&self.colors);
                frame(&before, &wanted, &tty, out);
            }
        }
        if self.colors.add(wanted.palette()) {
            self.report(Event::TerminalKnown);
        }
        self.shown = Some(wanted);
        self.painted = Some(source);
        out.len() > before
    }

    /// Takes the bar off first when its row is about to leave the screen: what scrolls off goes to the
    /// terminal's history, where no bar belongs.
    fn uncover(&mut self, wanted: &Screen, tty: &Dialect, out: &mut Vec<u8>) {
        let (Some(plain), Some(shown)) = (self.covered.take(), &self.shown) else { return };
        if plain.row(0).id() != wanted.row(0).id() {
            frame(shown, &plain, tty, out);
            self.shown = Some(plain);
        }
    }

    /// What to write to the terminal before the first paint, and when it is taken again after it was
    /// given back.
    pub fn tty_open(&self) -> Vec<u8> {
        let mut out = self.window.open(Found::Theirs, self.size, &self.tty);
        overlay::listen(self.inquiry.told(), &mut out);
        out
    }

    /// What to write to a terminal that was never given back, but that others may have used.
    pub fn tty_reopen(&self) -> Vec<u8> {
        self.window.open(Found::Ours, self.size, &self.tty)
    }

    /// What to write to the terminal after the last paint, and before suspending: all that was switched
    /// on is off then.
    pub fn tty_close(&self) -> Vec<u8> {
        let mut out = self.window.close(self.shown.as_ref(), &self.colors, self.size, &self.tty);
        overlay::restore(self.inquiry.told(), self.window, &mut out);
        out
    }

    /// The same, for whoever cannot know what is shown by then: a crash.
    pub fn tty_abandon(&self) -> Vec<u8> {
        let mut out = self.window.close(None, &self.colors, self.size, &self.tty);
        overlay::restore(self.inquiry.told(), self.window, &mut out);
        out
    }

    pub(super) fn forget_picture(&mut self) {
        self.shown = None;
        self.painted = None;
    }
}
