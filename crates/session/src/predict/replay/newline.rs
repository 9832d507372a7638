//! Confidence carried over Enter, in text that an editor keeps.
//!
//! Whatever is typed after Enter may be a password, typed ahead of its question. So nothing is carried
//! but where all of this holds: the line that Enter ends was typed by the user from its beginning, with
//! nothing left of it; something stands below the text, and stayed there when Enter was pressed; the
//! last Enter opened a row in just this way; and the terminal line is raw, if the server tells of it.
//! At a shell's prompt, at a question, and where the kernel echoes, one of these fails.

use rove_term::Screen;

use super::super::LineMode;
use super::super::keys::Key;
use super::super::newline::{Ending, Newlines, Opening};
use super::super::scene::{Effect, Likeness, Setting};
use super::resync::AHEAD_MAX;
use super::{Finding, Replay};

/// By how much editors indent a line more than the one before it, or less.
const DEEPER: [i16; 6] = [0, 4, 2, 8, -4, -2];

impl Replay {
    /// Nothing says that the kernel has the terminal line.
    pub(super) fn is_raw(&self) -> bool {
        matches!(self.line, None | Some(LineMode::Raw))
    }

    /// Learns what the acknowledged Enters did.
    pub(super) fn learn_newlines(&mut self, finding: Finding, acked: usize, screen: &Screen) {
        let mut acknowledged = self.flight.iter().take(acked).skip(self.reflected);
        let foreseen = matches!(finding, Finding::Scene(_));
        if foreseen || acknowledged.all(|pressed| pressed.key != Key::Enter) {
            return;
        }
        let opened = DEEPER.into_iter().find_map(|deeper| self.opened(deeper, acked, screen));
        match opened.filter(|_| self.is_raw()) {
            Some((endings, opening)) => {
                endings.into_iter().for_each(|ending| self.newlines.opened(ending, opening));
            }
            None if self.at_the_foot(screen) => {}
            None => self.newlines.forget(),
        }
    }

    /// Nothing changed but the last row, where the cursor was: a command line has done its work, and the
    /// text above is what it was. In a shell's window the text would have moved up.
    fn at_the_foot(&mut self, screen: &Screen) -> bool {
        let Some(base) = &self.base else { return false };
        let last = screen.size().rows - 1;
        let mut same = |row: u16| {
            let mut cells = base.row(row).cells().iter().zip(screen.row(row).cells());
            cells.all(|(was, is)| {
                self.clusters.mark(base, *was).matches(self.clusters.mark(screen, *is))
            })
        };
        base.cursor().row == last && (0..last).all(&mut same)
    }

    /// What the Enters did, if the frame shows rows opened by them that are so much deeper.
    fn opened(
        &mut self,
        deeper: i16,
        acked: usize,
        screen: &Screen,
    ) -> Option<(Vec<Ending>, Opening)> {
        let mut scene = self.scene(self.reflected)?;
        let base = self.base.as_ref()?;
        let mut opening = Opening { deeper, last: screen.size().rows - 1 };
        let mut setting = Setting {
            base,
            editing: self.editing,
            origin: self.origin,
            text_from: self.text_from,
            wall: self.wall,
            tail: self.tail,
            margin: *self.standing.margin(),
            newlines: Newlines::supposing(opening),
        };
        let mut endings = Vec::new();
        let keys = self.flight.iter().map(|pressed| pressed.key).enumerate();
        for (at, key) in keys.skip(self.reflected).take_while(|(at, _)| *at < acked + AHEAD_MAX) {
            if matches!(key, Key::Char(_)) {
                setting.text_from = setting.text_from.or_else(|| Some(scene.cursor()));
            }
            if key == Key::Enter {
                endings.push(scene.ending(setting, &mut self.clusters));
            }
            if scene.press(key, setting, &mut self.clusters) == Effect::Lost {
                return None;
            }
            let seen = at + 1 >= acked;
            if seen && scene.likeness(screen, &mut self.clusters) == Likeness::Same {
                opening.last = scene.last_moved(base, screen, &mut self.clusters)?;
                return Some((endings, opening));
            }
        }
        None
    }

    /// What follows an Enter that was carried, and is not foreseen to open a row any more, counts only
    /// once it has echoed.
    pub(super) fn part(&mut self) {
        let raw = self.is_raw();
        let mut parted = 0;
        for pressed in self.flight.iter_mut().skip(self.reflected) {
            pressed.epoch += parted;
            if pressed.carried && !(raw && pressed.effect == Effect::Opens) {
                pressed.carried = false;
                parted += 2;
            }
        }
        self.epoch += parted;
    }
}
