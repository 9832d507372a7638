//! Finds pending keys in a frame that equals none of the predicted screens.

use alloc::vec::Vec;

use rove_term::Screen;

use crate::predict::epoch::EpochEngine;
use crate::predict::epoch::pending::PendingKey;
use crate::predict::evidence::is_no_mask;
use crate::predict::keys::Key;
use crate::predict::line::margin::{Displaced, Reflow};
use crate::predict::line::{Effect, PredictedScreen};
use crate::predict::look::{Appearance, Clusters};
use crate::predict::settings::Rule;
use crate::predict::window::cursor_of;

/// Keys that a frame may show ahead of its echo ack when it is found anew: as many as are typed in
/// 50 ms.
const AHEAD_MAX: usize = 4;
/// Keys in a row that a frame found anew must show for its program to be believed to echo.
const FOUND_ECHOES_MIN: u32 = 3;
/// Keys that are looked for left of the cursor.
const RUN_MAX: usize = 8;

impl EpochEngine {
    /// The frame is none of the predicted screens: what the echo ack covers is taken as shown, the
    /// rest replayed.
    pub(super) fn resynchronise(&mut self, acked: usize, screen: &Screen) {
        self.line.set_end(self.kept_end(screen));
        if self.finds_late(acked, screen) || self.finds_moved(acked, screen) {
            return;
        }
        let lost = self.first_unknown().unwrap_or(usize::MAX);
        let reflected = self.pending.reflected;
        if self.pending.keys.len() <= reflected {
            // Nothing was guessed: the program draws by itself.
            self.doubt_question(screen);
            self.mend_begin(screen);
            self.drop_acked(acked, reflected, screen);
            return;
        }
        if acked <= reflected {
            // The answer is not due yet. A frame that contradicts a guess is believed at once, as
            // is one that a key of unknown effect may have made; else the program may be halfway
            // through.
            self.doubt_question(screen);
            let last = self.pending.predicted(lost.min(self.pending.keys.len()));
            let contradicted = match (self.pending.base(), last) {
                (Some(base), Some(last)) => last.contradicts(base, screen, &mut self.clusters),
                _ => true,
            };
            self.unsynced = self.unsynced || contradicted || lost < self.pending.keys.len();
            return;
        }
        // The effect of a key of unknown effect is no miss of those before it.
        if lost >= acked {
            self.miss(reflected, acked);
        }
        self.guard.on_resync();
        let (ahead, echoes) = self.ahead(acked, screen);
        // One letter may stand there by chance.
        if echoes >= FOUND_ECHOES_MIN {
            self.guard.confirm(self.pending.keys[acked + ahead - 1].epoch);
        }
        self.pending.silent.clear();
        match self.pending.keys.range(..acked).rposition(|key| key.key == Key::Enter) {
            Some(enter) => {
                let origin = self.begin_after(enter, acked + ahead, screen);
                self.line.begin(origin);
            }
            None => self.line.find_within(),
        }
        self.drop_acked(acked, acked + ahead, screen);
    }

    /// The first pending key of unknown effect.
    fn first_unknown(&self) -> Option<usize> {
        self.pending.keys.iter().position(|key| key.effect == Effect::Unknown)
    }

    /// No key explains where the cursor is: it may be at a question that came by itself, and the
    /// next keys its answer.
    fn doubt_question(&mut self, screen: &Screen) {
        if self.pending.base().is_some_and(|base| cursor_of(base) != cursor_of(screen)) {
            self.guard.on_unexplained(self.pending.keys.get(self.pending.reflected));
        }
    }

    /// A frame came that no key explains: the line goes on elsewhere, or its prompt came after the
    /// first keys, and it begins behind that.
    fn mend_begin(&mut self, screen: &Screen) {
        let Some(base) = self.pending.base() else { return };
        let (row, col) = cursor_of(base);
        let unprompted = !self.evidence.is_prompted(row, col, base);
        self.line.keep_begin(screen.cursor().row, unprompted.then_some((row, col)));
    }

    /// Whether the frame shows the typed text, but elsewhere: the line scrolled, or wrapped.
    fn finds_moved(&mut self, acked: usize, screen: &Screen) -> bool {
        let Some(base) = self.pending.base() else { return false };
        let least = acked.max(self.pending.reflected + 1);
        let (mut best, mut longest) = (None, 0);
        let most = self.first_unknown().unwrap_or(self.pending.keys.len()).min(least + AHEAD_MAX);
        for shown in least..=most {
            let last = &self.pending.keys[shown - 1];
            let (Some(predicted), Key::Char(_)) = (&last.predicted, last.key) else { continue };
            let letters = predicted.moved(base, screen, &mut self.clusters);
            if letters < longest || letters == 0 {
                continue;
            }
            // Two that fit equally well tell nothing.
            best = (letters > longest).then_some(shown);
            longest = letters;
        }
        let Some(shown) = best else { return false };
        let last = self.pending.keys[shown - 1].clone();
        if let (Key::Char(c), Effect::Writes(row, col)) = (last.key, last.effect) {
            self.confidence.displaced(c, col, self.pending.borders.window(row, col));
        }
        self.learn_margin(shown, screen);
        // Letters that moved together are an echo, unless masks or the kernel draw alike.
        let echoed = matches!(last.key, Key::Char(c) if is_no_mask(c));
        if echoed && !self.evidence.kernel_echoes_at_cursor(screen) {
            self.guard.confirm(last.epoch);
        }
        self.pending.silent.clear();
        self.line.lose_begin();
        self.drop_acked(acked, shown, screen);
        true
    }

    /// Learns how the line behaves at its margin, when the frame shows these first keys elsewhere
    /// than predicted.
    fn learn_margin(&mut self, shown: usize, screen: &Screen) {
        let keys = self.pending.keys.range(self.pending.reflected..shown);
        let places = keys.filter_map(|key| match (key.key, key.effect) {
            (Key::Char(c), Effect::Writes(row, col)) => Some((c, row, col)),
            _ => None,
        });
        let typed: Vec<(char, u16, u16)> = places.collect();
        let Some(mut predicted) = self.pending.predicted(shown) else { return };
        let (row, col) = predicted.next();
        let real = screen.cursor();
        // Keys that were edits or motions tell nothing of margins.
        let count = shown - self.pending.reflected;
        let plain = typed.len() == count && typed.iter().all(|at| at.1 == row);
        let margin = *self.confidence.margin();
        // Whatever was known of the margin did not come true.
        self.confidence.margin().forget();
        let Some(mut context) = self.context() else { return };
        if !plain || context.lacks(Rule::Margins) {
            return;
        }
        context.margin = margin;
        let spaces = typed.iter().filter(|at| at.0 == ' ').count();
        let mut displaced = Displaced::Unknown;
        let reflow = if real.row == row && real.col < col {
            let kept = predicted.kept(screen, &mut context);
            // The first of these keys did it; those behind it went on from there.
            let Some(to) = real.col.checked_sub(typed.len() as u16 - 1) else { return };
            Reflow::Scrolls { kept: kept.min(to), to }
        } else if real.row == row + 1 {
            // The word went along, and the text typed since.
            let trailing = if typed[0].0 == ' ' { typed.len() as u16 } else { 0 };
            predicted.back(trailing);
            let begin = predicted.last_word(&mut context);
            let Some(indent) = real.col.checked_sub(col - begin) else { return };
            displaced = displaced_text(context.base, screen, real.row);
            match (spaces, trailing) {
                (0, _) => Reflow::LetterWraps(indent),
                (1, 1..) => Reflow::SpaceWraps(indent),
                // Either kind: the last letters of the word may have done it, or the space.
                _ => return,
            }
        } else {
            return;
        };
        let mut triggers = typed.iter().filter(|at| reflow.is_triggered_by(at.0)).map(|at| at.2);
        let Some(first) = triggers.next() else { return };
        let last = triggers.next_back().unwrap_or(first);
        *self.confidence.margin() = margin;
        self.confidence.margin().moved(reflow, first, last);
        self.confidence.margin().note_displaced(displaced);
    }

    /// Whether the frame shows keys at last that were acknowledged earlier without effect.
    fn finds_late(&mut self, acked: usize, screen: &Screen) -> bool {
        if self.pending.silent.is_empty() {
            return false;
        }
        let mut late = core::mem::take(&mut self.pending.silent);
        let count = late.len();
        late.extend(self.pending.keys.iter().cloned());
        let mut before = self.pending.base().map(PredictedScreen::of);
        let mut echoed = false;
        for at in 0..late.len() {
            let Some(predicted) = before.take() else { break };
            let key = &mut late[at];
            (key.effect, key.predicted) = self.press(predicted, key.key);
            before.clone_from(&key.predicted);
            if let Some(base) = self.pending.base() {
                echoed = echoed || self.evidence.credits(key, base, screen, &mut self.clusters);
            }
            let Some(after) = &key.predicted else { break };
            // A cursor that happens to be there is no echo.
            if !echoed || !after.agrees(screen, &mut self.clusters) {
                continue;
            }
            let shown = (at + 1).saturating_sub(count);
            // The frame must show every acknowledged key.
            if shown < acked {
                continue;
            }
            let left = late[..count].iter().find(|key| key.key.changes_row());
            let left = left.map(|key| key.epoch);
            self.pending.silent = late.drain(..count).skip(at + 1).collect();
            if self.pending.silent.is_empty() {
                // All that was waited for has come as predicted, so what was typed since is
                // confirmed: up to a key behind which another program may read, or that left the
                // row.
                let ends =
                    |key: &&PendingKey| key.effect == Effect::Unknown || key.key.changes_row();
                let last = self.pending.keys.iter().find(ends);
                let last = last.map_or(self.guard.epoch(), |key| key.epoch);
                self.guard.confirm(left.unwrap_or(last));
            }
            self.drop_acked(acked, shown, screen);
            return true;
        }
        late.truncate(count);
        self.pending.silent = late;
        false
    }

    /// How many keys in flight the frame shows beyond those acknowledged, by what stands left of
    /// the cursor; and how many keys in a row, back from there, are echoed so.
    fn ahead(&mut self, acked: usize, screen: &Screen) -> (usize, u32) {
        let (mut best, mut longest) = ((0, 0), 0);
        for ahead in 0..=(self.pending.keys.len() - acked).min(AHEAD_MAX) {
            let (run, echoes) = self.run(acked + ahead, screen);
            // Keys beyond the echo ack count only if all of them are there.
            if run >= ahead && run > longest {
                (best, longest) = ((ahead, echoes), run);
            }
        }
        best
    }

    /// Where the line begins that the first `shown` keys have typed since Enter, if all of them
    /// stand left of the cursor.
    fn begin_after(&mut self, enter: usize, shown: usize, screen: &Screen) -> Option<(u16, u16)> {
        // Of a line begun by Enter the first column is where its first key went.
        let typed = shown - enter - 1;
        let (row, col) = cursor_of(screen);
        let col = col.checked_sub(typed as u16)?;
        (typed == 0 || self.run(shown, screen).0 >= typed).then_some((row, col))
    }

    /// How many of the first `count` keys, back from the last, stand left of the cursor; and how
    /// many of those a program must have echoed.
    fn run(&mut self, count: usize, screen: &Screen) -> (usize, u32) {
        let (row, end) = cursor_of(screen);
        let (mut run, mut echoes) = (0, 0);
        for key in self.pending.keys.range(..count).rev().take(RUN_MAX) {
            let Some(col) = end.checked_sub(run as u16 + 1) else { break };
            let text = |screen: &Screen, clusters: &mut Clusters| {
                screen.cell(row, col).map(|cell| clusters.text(screen, cell))
            };
            let is = text(screen, &mut self.clusters);
            let Key::Char(c) = key.key else { break };
            // A blank at the end may be an empty cell.
            if is != Some(Appearance::of(c)) || run == 0 && c == ' ' {
                break;
            }
            run += 1;
            let was = self.pending.base().and_then(|base| text(base, &mut self.clusters));
            if is_no_mask(c) && was != is && key.uncontended {
                echoes += 1;
            }
        }
        (run, if self.evidence.kernel_echoes_at_cursor(screen) { 0 } else { echoes })
    }
}

/// Where the text went that stood in this row before a word was taken there.
fn displaced_text(base: &Screen, screen: &Screen, row: u16) -> Displaced {
    let below = base.row_text(row);
    if below.trim().is_empty() {
        return Displaced::Unknown;
    }
    let moved = row + 1 < screen.size().rows && screen.row_text(row + 1) == below;
    if moved { Displaced::MovesDown } else { Displaced::Otherwise }
}
