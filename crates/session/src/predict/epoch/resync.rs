//! Finds pending keys in a frame that equals none of the foreseen screens.

use alloc::vec::Vec;

use rove_term::Screen;

use crate::line_mode::LineMode;
use crate::predict::epoch::evidence::tells;
use crate::predict::epoch::pending::{EchoBasis, PendingKey};
use crate::predict::epoch::{EpochEngine, is_step};
use crate::predict::keys::Key;
use crate::predict::line::context::{LineContext, LineStart, RightText};
use crate::predict::line::margin::{Opens, Reflow};
use crate::predict::line::{Effect, Match, PredictedScreen};
use crate::predict::look::{Appearance, Clusters};
use crate::predict::settings::Rule;

/// Keys that a frame may show ahead of its echo ack when it is found anew: what is typed in 50 ms.
const AHEAD_MAX: usize = 4;
/// Keys in a row that a frame found anew must show for its program to be believed to echo.
const FOUND_ECHOES_MIN: u32 = 3;
/// Keys that are looked for left of the cursor.
const RUN_MAX: usize = 8;

impl EpochEngine {
    /// The frame is none of the scenes: what the echo ack covers is taken as shown, the rest replayed.
    pub(super) fn resynchronise(&mut self, acked: usize, screen: &Screen) {
        self.reach = self.kept_reach(screen);
        if self.finds_late(acked, screen) || self.finds_moved(acked, screen) {
            return;
        }
        let mut pending = self.pending.iter();
        let lost = pending.position(|key| key.effect == Effect::Unknown).unwrap_or(usize::MAX);
        if self.pending.len() <= self.reflected {
            self.doubt_question(screen);
            self.mend_origin(screen);
            self.unsynced = false;
            self.forget(acked, self.reflected, screen);
            return;
        }
        if acked <= self.reflected {
            // No verdict yet. What contradicts a guess is believed at once, as is a frame that
            // a key of unknown effect may have made; else the program may be halfway through.
            self.doubt_question(screen);
            let last = self.scene(lost.min(self.pending.len()));
            let clusters = &mut self.clusters;
            let contradicted = match (&self.base, last) {
                (Some(base), Some(last)) => last.contradicts(base, screen, clusters),
                _ => true,
            };
            self.unsynced = self.unsynced || contradicted || lost < self.pending.len();
            return;
        }
        if lost >= acked {
            self.miss(self.reflected, acked);
        }
        self.doubt = self.doubt.map(|(epoch, _)| (epoch, EchoBasis::Given));
        let (ahead, echoes) = self.ahead(acked, screen);
        if echoes >= FOUND_ECHOES_MIN {
            let last = self.pending[acked + ahead - 1].epoch;
            self.confirmed = self.confirmed.max(last);
        }
        self.unsynced = false;
        self.silent.clear();
        let entered = self.pending.range(..acked).rposition(|pressed| pressed.key == Key::Enter);
        self.origin = entered.and_then(|enter| self.begin_after(enter, acked + ahead, screen));
        self.wall = if entered.is_some() { LineStart::Prompt } else { LineStart::Text };
        self.tail = RightText::Text;
        self.pending.drain(..acked);
        self.rebase(screen, ahead);
    }

    /// No key explains where the cursor is: it may be at a question that came by itself, and what is typed now at it.
    fn doubt_question(&mut self, screen: &Screen) {
        let at = |screen: &Screen| (screen.cursor().row, screen.cursor().col);
        if self.base.as_ref().is_some_and(|base| at(base) != at(screen)) {
            // Of one epoch are those that nothing set apart from what comes next, but for such frames.
            let next = self.pending.get(self.reflected).map(|pressed| pressed.epoch);
            let one = next == Some(self.epoch) || self.doubt.is_some_and(|it| it.0 == self.epoch);
            self.distrust();
            self.doubt = one.then_some((self.epoch, EchoBasis::Due));
        }
    }

    /// Whether the frame shows what was typed, but elsewhere: the line scrolled, or wrapped.
    pub(super) fn finds_moved(&mut self, acked: usize, screen: &Screen) -> bool {
        let Some(base) = &self.base else { return false };
        let lost = self.pending.iter().position(|key| key.effect == Effect::Unknown);
        let least = acked.max(self.reflected + 1);
        let (mut best, mut longest) = (None, 0);
        let most = lost.unwrap_or(self.pending.len()).min(least + AHEAD_MAX);
        for shown in least..=most {
            let last = &self.pending[shown - 1];
            let (Some(scene), Key::Char(_)) = (&last.scene, last.key) else { continue };
            let letters = scene.moved(base, screen, &mut self.clusters);
            if letters < longest || letters == 0 {
                continue;
            }
            // Two that fit equally well tell nothing.
            best = (letters > longest).then_some(shown);
            longest = letters;
        }
        let Some(shown) = best else { return false };
        let last = self.pending[shown - 1].clone();
        if let (Key::Char(c), Effect::Writes(row, col)) = (last.key, last.effect) {
            self.standing.bounced(c, col, self.borders.window(row, col));
        }
        self.learn_margin(shown, screen);
        let at = screen.cursor();
        // Where a question may come behind what was typed ahead of it, see `credits`.
        let cooked = self.line == Some(LineMode::Cooked);
        let tells = matches!(last.key, Key::Char(c) if tells(c));
        if tells && !cooked && !self.kernel_echoes(at.row, at.col, screen) {
            self.confirmed = self.confirmed.max(last.epoch);
        }
        self.unsynced = false;
        self.silent.clear();
        self.origin = None;
        self.wall = LineStart::Text;
        self.forget(acked, shown, screen);
        true
    }

    /// What the line did at its margin, when the frame shows these first keys elsewhere than foreseen.
    pub(super) fn learn_margin(&mut self, shown: usize, screen: &Screen) {
        let keys = self.pending.range(self.reflected..shown);
        let places = keys.filter_map(|pressed| match (pressed.key, pressed.effect) {
            (Key::Char(c), Effect::Writes(row, col)) => Some((c, row, col)),
            _ => None,
        });
        let typed: Vec<(char, u16, u16)> = places.collect();
        let (Some(base), Some(mut scene)) = (&self.base, self.scene(shown)) else { return };
        let (row, col) = scene.next();
        let real = screen.cursor();
        // Keys that were edits or motions tell nothing of margins, nor does a margin that was foreseen.
        let plain = typed.len() == shown - self.reflected && typed.iter().all(|at| at.1 == row);
        let margin = *self.standing.margin();
        self.standing.margin().forget();
        if !plain || self.lacks == Some(Rule::Margins) {
            return;
        }
        let setting = LineContext {
            base,
            borders: &self.borders,
            editing: self.editing,
            origin: self.origin,
            wall: self.wall,
            tail: self.tail,
            reach: self.reach,
            margin,
            lacks: self.lacks,
        };
        let spaces = typed.iter().filter(|at| at.0 == ' ').count();
        let mut opens = Opens::Unknown;
        let reflow = if real.row == row && real.col < col {
            let kept = scene.kept(screen, setting, &mut self.clusters);
            // The first of these keys did it; those behind it went on from there.
            let Some(to) = real.col.checked_sub(typed.len() as u16 - 1) else { return };
            Reflow::Scrolls { kept: kept.min(to), to }
        } else if real.row == row + 1 {
            // The word went along, and what was typed since.
            let trailing = if typed[0].0 == ' ' { typed.len() as u16 } else { 0 };
            scene.back(trailing);
            let begin = scene.last_word(setting, &mut self.clusters);
            let Some(indent) = real.col.checked_sub(col - begin) else { return };
            opens = opened(base, screen, real.row);
            match (spaces, trailing) {
                (0, _) => Reflow::LetterWraps(indent),
                (1, 1..) => Reflow::SpaceWraps(indent),
                // Either kind: the last letters of the word may have done it, or the space.
                _ => return,
            }
        } else {
            return;
        };
        let mut heeded = typed.iter().filter(|at| reflow.heeds(at.0)).map(|at| at.2);
        let Some(first) = heeded.next() else { return };
        *self.standing.margin() = margin;
        self.standing.margin().moved(reflow, first, heeded.next_back().unwrap_or(first));
        self.standing.margin().opened(opens);
    }

    /// Whether the frame shows keys at last that were acknowledged earlier without effect.
    pub(super) fn finds_late(&mut self, acked: usize, screen: &Screen) -> bool {
        if self.silent.is_empty() || self.base.is_none() {
            return false;
        }
        let mut late = core::mem::take(&mut self.silent);
        let count = late.len();
        late.extend(self.pending.iter().cloned());
        let mut scene = self.base.as_ref().map(PredictedScreen::of);
        let mut echoed = false;
        for (at, pressed) in late.iter_mut().enumerate() {
            let Some(before) = scene.take() else { break };
            self.press(before, pressed);
            scene.clone_from(&pressed.scene);
            echoed = echoed || self.credits(pressed, screen);
            let Some(after) = &pressed.scene else { break };
            if !echoed || after.likeness(screen, &mut self.clusters) == Match::Other {
                continue;
            }
            let shown = (at + 1).saturating_sub(count);
            if shown < acked {
                continue;
            }
            let left = late[..count].iter().find(|pressed| is_step(pressed.key));
            let left = left.map(|pressed| pressed.epoch);
            self.silent = late.drain(..count).skip(at + 1).collect();
            if self.silent.is_empty() {
                // All that was waited for has come, as foreseen: what was typed since counts, up to a key after which
                // another program may read, or that left the row.
                let ends = |it: &&PendingKey| it.effect == Effect::Unknown || is_step(it.key);
                let last = self.pending.iter().find(ends).map_or(self.epoch, |it| it.epoch);
                let epoch = left.unwrap_or(last);
                self.confirmed = self.confirmed.max(epoch);
            }
            self.unsynced = false;
            self.forget(acked, shown, screen);
            return true;
        }
        late.truncate(count);
        self.silent = late;
        false
    }

    /// How many keys in flight the frame shows beyond those acknowledged, by what stands left of the
    /// cursor; and how many keys in a row, back from there, are echoed so.
    pub(super) fn ahead(&mut self, acked: usize, screen: &Screen) -> (usize, u32) {
        let (mut best, mut longest) = ((0, 0), 0);
        for ahead in 0..=(self.pending.len() - acked).min(AHEAD_MAX) {
            let (run, echoes) = self.run(acked + ahead, screen);
            if run >= ahead && run > longest {
                (best, longest) = ((ahead, echoes), run);
            }
        }
        best
    }

    /// Where the line begins that the first `shown` keys have typed since Enter, if all of them stand left
    /// of the cursor.
    fn begin_after(&mut self, enter: usize, shown: usize, screen: &Screen) -> Option<(u16, u16)> {
        let typed = shown - enter - 1;
        let cursor = screen.cursor();
        let col = cursor.col.checked_sub(typed as u16)?;
        (typed == 0 || self.run(shown, screen).0 >= typed).then_some((cursor.row, col))
    }

    /// How many of the first `count` keys, back from the last, stand left of the cursor; and how many
    /// of those a program must have echoed.
    pub(super) fn run(&mut self, count: usize, screen: &Screen) -> (usize, u32) {
        let cursor = screen.cursor();
        let (mut run, mut echoes) = (0, 0);
        for pressed in self.pending.range(..count).rev().take(RUN_MAX) {
            let Some(col) = cursor.col.checked_sub(run as u16 + 1) else { break };
            let mark = |screen: &Screen, clusters: &mut Clusters| {
                screen.cell(cursor.row, col).map(|cell| clusters.mark(screen, cell))
            };
            let is = mark(screen, &mut self.clusters);
            let Key::Char(c) = pressed.key else { break };
            if is != Some(Appearance::of(c)) || run == 0 && c == ' ' {
                break;
            }
            run += 1;
            let was = self.base.as_ref().and_then(|base| mark(base, &mut self.clusters));
            if tells(c) && was != is && pressed.uncontended {
                echoes += 1;
            }
        }
        let kernels = self.line == Some(LineMode::Cooked)
            || self.kernel_echoes(cursor.row, cursor.col, screen);
        (run, if kernels { 0 } else { echoes })
    }
}

/// What became of the text that stood in this row before a word was taken there.
fn opened(base: &Screen, screen: &Screen, row: u16) -> Opens {
    let below = base.row_text(row);
    if below.trim().is_empty() {
        return Opens::Unknown;
    }
    match row + 1 < screen.size().rows && screen.row_text(row + 1) == below {
        true => Opens::ARow,
        false => Opens::Nothing,
    }
}
