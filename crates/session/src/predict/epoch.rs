//! Our guesses: the pending keys, replayed on the newest frame.
//!
//! The echo ack says which keys a frame must show. To find which later keys it shows too, the
//! engine compares it with the screen foreseen after each key, and replays the rest on top. So a
//! wrong guess costs only the keys up to the next frame, however many are pending.
//!
//! An *epoch* begins with a key whose effect is not trusted. Its guesses are shown once the program
//! has echoed one of its keys as foreseen. The engine does not know when guesses are worth showing.

pub(super) mod confidence;
mod evidence;
mod misses;
pub(super) mod pending;
mod prompt;
mod resync;
mod typed;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use rove_ssp::{StateNum, Time};
use rove_term::Screen;

use crate::line_mode::LineMode;
use crate::predict::display::{DisplayPolicy, Flagging};
use crate::predict::epoch::confidence::{EDGE_COLS, KeyConfidence};
use crate::predict::epoch::pending::{EchoBasis, Finding, PENDING_MAX, PendingKey};
use crate::predict::keys::Key;
use crate::predict::line::context::{LineContext, LineStart, RightText};
use crate::predict::line::{Effect, Match, PredictedScreen};
use crate::predict::look::Clusters;
use crate::predict::observation::Observation;
use crate::predict::settings::{Confidence, Editing, Rule};
use crate::predict::window::{Borders, Window};
use prompt::Prompt;
use typed::Typed;

/// Acknowledged keys without an effect that may still turn up in a late frame.
const SILENT_MAX: usize = 16;
/// Keys in flight from which on a path is deep: more than a second of typing.
const DEEP_KEYS: usize = 8;
/// Keys that come as fast as this were not typed one by one.
const BURST: Duration = Duration::from_millis(10);

/// Guesses by key.
#[derive(Clone, Debug)]
pub(crate) struct EpochEngine {
    editing: Editing,
    confidence: Confidence,
    lacks: Option<Rule>,
    /// Keys not acknowledged, oldest first.
    pending: VecDeque<PendingKey>,
    /// How many of them the base shows already.
    reflected: usize,
    /// Keys acknowledged without any effect, which the next frame may show all the same.
    silent: Vec<PendingKey>,
    /// The frame that scenes are built on.
    base: Option<Screen>,
    /// Where its windows end.
    borders: Borders,
    /// The newest frame fits no scene, and its echo ack does not say why: nothing is shown.
    unsynced: bool,
    /// The echo ack of the newest frame.
    echo_ack: StateNum,
    epoch: u64,
    confirmed: u64,
    /// Since the cursor left its row, nothing but motions and erasures was typed: the epoch of those. They show
    /// nothing that was typed; what is typed next has one of its own.
    walk: Option<u64>,
    /// The epoch begun since a frame came that no key explains. Once it was taken as it is, a key that was under way
    /// then and is echoed behind it confirms that too.
    doubt: Option<(u64, EchoBasis)>,
    standing: KeyConfidence,
    /// Where the line being edited begins, after the prompt.
    origin: Option<(u16, u16)>,
    wall: LineStart,
    tail: RightText,
    /// How far the text of a row goes: at its end stand blanks that were typed.
    reach: Option<(u16, u16)>,
    line: Option<LineMode>,
    /// Some of this line was typed before anybody could see where it goes.
    typed_ahead: bool,
    /// Enter may be among what was not followed: nobody knows where this line begins.
    lost_track: bool,
    /// Nothing stood left of the line that Enter ended: whoever reads lines here asks with no prompt.
    unprompted: bool,
    /// Where the next blank would stand, behind one that was seen to take the cursor along.
    blank: Option<(u16, u16)>,
    /// Before the last line of a shell that Enter ended, as long as what was started there may be running.
    prompt: Option<Prompt>,
    /// The same of a window that another has taken the place of.
    away: Option<Prompt>,
    typed: Typed,
    clusters: Clusters,
}

impl EpochEngine {
    pub(crate) fn new(editing: Editing, confidence: Confidence, lacks: Option<Rule>) -> Self {
        Self {
            editing,
            confidence,
            lacks,
            pending: VecDeque::new(),
            reflected: 0,
            silent: Vec::new(),
            base: None,
            borders: Borders::default(),
            unsynced: false,
            echo_ack: StateNum::ZERO,
            epoch: 2,
            confirmed: 0,
            walk: None,
            doubt: None,
            standing: KeyConfidence::new(lacks),
            origin: None,
            wall: LineStart::Prompt,
            tail: RightText::Text,
            reach: None,
            line: None,
            typed_ahead: false,
            lost_track: false,
            unprompted: false,
            blank: None,
            prompt: None,
            away: None,
            typed: Typed::default(),
            clusters: Clusters::default(),
        }
    }

    /// Drops every guess and begins an epoch.
    pub(crate) fn reset(&mut self) {
        if self.pending.iter().any(|pressed| is_boundary(pressed.key)) {
            // Where the line behind it begins will not be seen.
            if let Some(base) = self.base.clone() {
                self.note_lines(self.pending.len(), &base);
            }
            (self.typed_ahead, self.lost_track, self.unprompted) = (true, true, false);
        }
        if let Some(prompt) = &mut self.prompt {
            prompt.lose_text(); // The row may be wrapped anew, or the window be elsewhere.
        }
        self.pending.clear();
        self.silent.clear();
        self.reflected = 0;
        (self.base, self.borders) = (None, Borders::default());
        self.unsynced = false;
        self.origin = None;
        self.reach = None;
        self.wall = LineStart::Prompt;
        self.unprompted = false;
        self.forget_typed();
        self.clusters.clear();
        self.distrust();
    }

    /// Takes one key; `frame` has been told of `facts` before.
    pub(crate) fn key(&mut self, now: Time, key: Key, facts: Observation<'_>) {
        let uncontended = self.pending.iter().all(|pressed| pressed.effect != Effect::Unknown);
        let echo_unknown = self.note_typed(key, uncontended);
        if self.pending.len() >= PENDING_MAX {
            self.follow_no_more(facts);
            return;
        }
        if self.pending.is_empty() {
            self.clusters.clear();
        }
        self.typed_ahead = key != Key::Enter && (self.typed_ahead || !uncontended);
        self.lost_track &= key != Key::Enter;
        let mut pressed = PendingKey {
            key,
            at: now,
            state: facts.sent.next(),
            epoch: self.epoch,
            effect: Effect::Unknown,
            scene: None,
            uncontended,
            echo_unknown,
            asked: false,
        };
        let placed = self.scene(self.pending.len());
        let cols = facts.screen.size().cols;
        let (from, window) = match &placed {
            Some(scene) => (scene.cursor().0, scene.window(&self.borders)),
            None => (0, Window::whole(cols)),
        };
        let unplaced = placed.is_none();
        if let Some(scene) = placed {
            self.press(scene, &mut pressed);
        }
        self.shy_away(&mut pressed);
        let wraps = matches!(pressed.effect, Effect::Writes(row, _) if row != from);
        if wraps && window.is_one_of_several(facts.screen) {
            // Which window has the keys, and how its lines go on, is not known before an echo in the row itself.
            self.distrust();
            pressed.epoch = self.epoch;
        }
        let trusted = self.standing.trusts(key, pressed.effect, window.right);
        if is_boundary(key) || pressed.effect == Effect::Unknown && !(unplaced && trusted) {
            self.distrust();
        } else {
            pressed.epoch = self.go_on(key, trusted);
        }
        if key == Key::Enter {
            // What came along with it is scrolled away before anybody sees it there.
            let burst = |pressed: &&mut PendingKey| now.since(pressed.at) < BURST;
            for pressed in self.pending.iter_mut().rev().take_while(burst) {
                pressed.epoch = self.epoch;
            }
            // An echo of that is none of what follows Enter.
            self.distrust();
        }
        self.pending.push_back(pressed);
    }

    /// The epoch of a key that is no boundary. One that is not trusted begins an epoch, and so does what is typed in
    /// another row: a form may have its question for a password there.
    fn go_on(&mut self, key: Key, trusted: bool) -> u64 {
        let doubt = u64::from(!trusted);
        self.epoch += doubt;
        let walk = self.walk.take().filter(|_| !matches!(key, Key::Char(_)));
        let epoch = walk.map_or(self.epoch, |epoch| epoch + doubt);
        if is_step(key) && walk.is_none() {
            self.distrust();
        }
        self.walk = (is_step(key) || walk.is_some()).then_some(epoch);
        epoch
    }

    /// The last key that is followed stands for all that come after it, whatever they do.
    fn follow_no_more(&mut self, facts: Observation<'_>) {
        self.distrust();
        (self.typed_ahead, self.lost_track, self.unprompted) = (true, true, false);
        self.reflected = self.reflected.min(PENDING_MAX - 1);
        let last = self.pending.back_mut().expect("many are in flight");
        (last.key, last.effect, last.scene) = (Key::Other, Effect::Unknown, None);
        (last.state, last.echo_unknown) = (facts.sent.next(), true);
    }

    /// Compares with the newest frame.
    pub(crate) fn frame(
        &mut self,
        now: Time,
        facts: Observation<'_>,
        triggers: &mut DisplayPolicy,
    ) {
        self.line = facts.line;
        if self.base.as_ref().is_none_or(|base| base.size() != facts.screen.size()) {
            self.reset();
            self.rebase(facts.screen, 0);
        }
        if self.line == Some(LineMode::Hidden) {
            self.suspect(0);
            // The line that started what asks is known as long as what was typed is.
            self.note_lines_ahead(0, facts.screen);
            self.forget_typed();
        }
        if let Some(oldest) = self.pending.get(self.reflected) {
            triggers.pending(now, oldest.at);
        }
        let same = |base: &Screen| {
            base.shares_grid(facts.screen) && base.cursor() == facts.screen.cursor()
        };
        if self.base.as_ref().is_some_and(same) && facts.echo_ack == self.echo_ack {
            return;
        }
        if !facts.screen.modes().cursor_visible {
            self.blink(facts);
            return;
        }
        self.echo_ack = facts.echo_ack;
        let acked = self.pending.iter().take_while(|key| key.state <= facts.echo_ack).count();
        let begins = self.begins_line(acked);
        self.note_lines(acked, facts.screen);
        self.note_frame(facts.screen);
        match self.find(facts.screen, acked) {
            Finding::PredictedScreen(shown) => {
                self.follow(now, shown, facts.screen, triggers);
                self.forget(acked, shown, facts.screen);
            }
            Finding::Behind(shown) => self.wait(shown, acked, facts.screen),
            Finding::Unforeseen => {
                self.note_lines_ahead(acked, facts.screen);
                self.resynchronise(acked, facts.screen);
            }
        }
        if begins {
            self.begin_line();
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.pending.len() > self.reflected
    }

    /// Lays the confirmed guesses over a clone of the newest frame.
    pub(crate) fn overlay(&self, screen: &mut Screen, flagging: Flagging) {
        if self.unsynced || self.line == Some(LineMode::Hidden) {
            return;
        }
        // A motion shows nothing that was typed behind the keys that count.
        let moves = |key: &PendingKey| {
            self.confidence == Confidence::Blind
                && key.effect == Effect::Moves
                && !matches!(key.key, Key::Char(_))
        };
        let counts =
            |key: &&PendingKey| (key.epoch <= self.confirmed || moves(key)) && key.scene.is_some();
        let shown = self.pending.iter().skip(self.reflected).take_while(counts).last();
        if let Some(scene) = shown.and_then(|key| key.scene.as_ref()) {
            scene.paint(screen, &self.clusters, flagging);
        }
    }

    /// The screen after the first `count` keys in flight.
    fn scene(&self, count: usize) -> Option<PredictedScreen> {
        if count <= self.reflected {
            return self.base.as_ref().map(PredictedScreen::of);
        }
        self.pending.get(count - 1)?.scene.clone()
    }

    /// Foresees what a key does to `scene`.
    fn press(&mut self, mut scene: PredictedScreen, pressed: &mut PendingKey) {
        let Some(base) = &self.base else { return };
        if matches!(pressed.key, Key::Char(_)) {
            self.origin = self.origin.or_else(|| Some(scene.cursor()));
        }
        let margin = *self.standing.margin();
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
        pressed.effect = scene.press(pressed.key, setting, &mut self.clusters);
        pressed.scene = (pressed.effect != Effect::Unknown).then_some(scene);
    }

    /// Deep in flight, text that comes where paragraphs are filled counts only once it has stayed there, each
    /// letter for itself: a line that breaks takes all that follows with it, and the frame that says so is far
    /// off. Behind a shell's prompt nobody fills paragraphs.
    fn shy_away(&mut self, pressed: &mut PendingKey) {
        let (Key::Char(_), Effect::Writes(row, col)) = (pressed.key, pressed.effect) else {
            return;
        };
        if self.pending.len() < self.reflected + DEEP_KEYS || self.standing.stays(col) {
            return;
        }
        let shells = |base: &Screen| {
            col + EDGE_COLS < self.borders.window(row, col).right && self.shells(row, col, base)
        };
        if !self.base.as_ref().is_some_and(shells) {
            self.distrust();
            pressed.epoch = self.epoch;
        }
    }

    /// Nothing typed from here on counts before an echo of its own.
    fn distrust(&mut self) {
        // By two: the epoch between can never be confirmed, so that motions cannot carry over it.
        self.epoch += 2;
        (self.walk, self.doubt) = (None, None);
    }

    /// The cursor is hidden: the program is halfway through drawing, or draws a cursor of its own. Such
    /// a frame shows neither what keys did nor where the next will act.
    fn blink(&mut self, facts: Observation<'_>) {
        let oldest = self.pending.get(self.reflected);
        if oldest.is_some_and(|oldest| oldest.state <= facts.echo_ack) {
            self.unsynced = true;
        }
    }

    /// Which scene the frame is, the fewest keys first; of several that fit, the one whose line is as in
    /// the frame to the last cell: the cursor does not tell how often Delete was pressed.
    fn find(&mut self, screen: &Screen, acked: usize) -> Finding {
        let mut fits = None;
        for shown in acked.max(self.reflected)..=self.pending.len() {
            let (Some(scene), Some(base)) = (self.scene(shown), &self.base) else { continue };
            if scene.likeness(screen, &mut self.clusters) == Match::Same {
                if scene.line_is(base, screen, &mut self.clusters) {
                    return Finding::PredictedScreen(shown);
                }
                fits = fits.or(Some(shown));
            }
        }
        if let Some(shown) = fits {
            return Finding::PredictedScreen(shown);
        }
        for shown in (self.reflected..acked).rev() {
            let Some(scene) = self.scene(shown) else { continue };
            if scene.likeness(screen, &mut self.clusters) == Match::Same {
                return Finding::Behind(shown);
            }
        }
        Finding::Unforeseen
    }

    /// The frame shows the first `shown` keys as foreseen.
    fn follow(&mut self, now: Time, shown: usize, screen: &Screen, triggers: &mut DisplayPolicy) {
        for at in self.reflected..shown {
            let pressed = self.pending[at].clone();
            let PendingKey { key, at: made, epoch, .. } = pressed;
            if self.credits(&pressed, screen) || self.credits_blank(&pressed, screen) {
                triggers.confirmed(now, made);
                let doubt = self.doubt.filter(|it| it.1 == EchoBasis::Given).map_or(0, |it| it.0);
                self.confirmed = self.confirmed.max(epoch).max(doubt);
            }
            if pressed.scene.is_none() {
                continue;
            }
            if let (Key::Char(c), Effect::Writes(_, col)) = (key, pressed.effect) {
                self.standing.stayed(c, col);
            } else {
                self.standing.right(key);
            }
            if !matches!(key, Key::Char(c) if c != ' ') && epoch == self.confirmed + 1 {
                self.confirmed = epoch;
            }
        }
        self.unsynced = false;
        self.note_reach(shown, screen);
        if shown > self.reflected {
            self.silent.clear();
            let last = &self.pending[shown - 1];
            let edits = matches!(last.key, Key::Char(_) | Key::Backspace);
            match &last.scene {
                Some(scene) if edits && scene.is_followed(screen, &mut self.clusters) => {
                    self.tail = RightText::Suggestion;
                }
                _ if !edits => self.tail = RightText::Text,
                _ => {}
            }
        }
    }

    /// The frame shows the first `shown` keys as foreseen: what they left at the end of a line is seen no more once it is
    /// the base.
    fn note_reach(&mut self, shown: usize, screen: &Screen) {
        let Some(scene) = self.scene(shown) else { return };
        let kept = self.kept_reach(screen).filter(|(row, _)| !scene.edits(*row));
        self.reach = scene.reach().or(kept);
    }

    /// What is known of the end of a line, if its row is as it was.
    fn kept_reach(&self, screen: &Screen) -> Option<(u16, u16)> {
        let base = self.base.as_ref()?;
        self.reach.filter(|(row, _)| base.row_text(*row) == screen.row_text(*row))
    }

    /// Drops the acknowledged keys; the frame shows `shown` of those in flight.
    fn forget(&mut self, acked: usize, shown: usize, screen: &Screen) {
        self.pending.drain(..acked);
        self.rebase(screen, shown - acked);
    }

    /// Replays the keys that are not `reflected` on this frame.
    fn rebase(&mut self, screen: &Screen, reflected: usize) {
        let at = screen.cursor();
        (self.base, self.borders) = (Some(screen.clone()), Borders::of(screen));
        self.standing.fit(screen.size().cols, self.borders.window(at.row, at.col));
        self.reflected = reflected;
        let mut scene = Some(PredictedScreen::of(screen));
        let mut pending = core::mem::take(&mut self.pending);
        for pressed in pending.iter_mut().skip(reflected) {
            pressed.scene = None;
            if let Some(before) = scene.take() {
                self.press(before, pressed);
                scene.clone_from(&pressed.scene);
            }
        }
        self.pending = pending;
    }

    /// The keys after `shown` are acknowledged, and nothing shows of them: they have no effect, or the
    /// program is slow.
    fn wait(&mut self, shown: usize, acked: usize, screen: &Screen) {
        let idle = self.pending.range(shown..acked);
        let missed = idle.clone().any(|key| matches!(key.effect, Effect::Writes(..)));
        let kept: Vec<PendingKey> = idle.cloned().collect();
        if missed {
            self.miss(shown, acked);
        } else {
            self.doubt_motions(shown, acked);
        }
        // After a key that may show late every key does, an Enter above all: what comes late before it
        // says nothing of what comes after.
        if missed || !self.silent.is_empty() {
            self.silent.extend(kept);
            let excess = self.silent.len().saturating_sub(SILENT_MAX);
            self.silent.drain(..excess);
        }
        self.unsynced = false;
        self.forget(acked, acked, screen);
    }
}

/// This key leaves the row, if it is a motion.
fn is_step(key: Key) -> bool {
    matches!(key, Key::Up | Key::Down | Key::PreviousLine | Key::NextLine)
}

/// After this key another program, or another mode of it, may be reading.
fn is_boundary(key: Key) -> bool {
    matches!(key, Key::Enter | Key::Escape | Key::Other)
}
