//! Our guesses: the pending keys, replayed on the newest frame.
//!
//! The echo ack says which keys a frame must show. To find which later keys it shows too, the
//! engine compares it with the screen predicted after each key, and replays the rest on top. So a
//! wrong guess costs only the keys up to the next frame, however many are pending.
//!
//! The engine asks `line` what a key does, `evidence` who echoed it, `confidence` whether to trust
//! it, and `password` whether its guess may be shown. It does not know when guesses are worth
//! showing.

pub(super) mod confidence;
pub(super) mod pending;
mod resync;

use alloc::vec::Vec;
use core::time::Duration;

use rove_ssp::{StateNum, Time};
use rove_term::Screen;

use crate::line_mode::LineMode;
use crate::predict::display::{DisplayPolicy, Flagging};
use crate::predict::epoch::confidence::{EDGE_COLS, KeyConfidence};
use crate::predict::epoch::pending::{PENDING_MAX, PendingKey, PendingKeys};
use crate::predict::evidence::EchoEvidence;
use crate::predict::keys::Key;
use crate::predict::line::context::{EditedLine, LineContext, RightText};
use crate::predict::line::{Effect, PredictedScreen};
use crate::predict::look::Clusters;
use crate::predict::observation::Observation;
use crate::predict::password::{PasswordGuard, Standing};
use crate::predict::settings::Settings;
use crate::predict::window::{Borders, Window};

/// Acknowledged keys without an effect that may still turn up in a late frame.
const SILENT_MAX: usize = 16;
/// Keys in flight from which on a path is deep: more than a second of typing.
const DEEP_KEYS: usize = 8;
/// Keys that come as fast as this were not typed one by one.
const BURST: Duration = Duration::from_millis(10);

/// Guesses by key.
#[derive(Clone, Debug)]
pub(crate) struct EpochEngine {
    settings: Settings,
    pending: PendingKeys,
    line: EditedLine,
    evidence: EchoEvidence,
    guard: PasswordGuard,
    confidence: KeyConfidence,
    /// The newest frame fits no predicted screen, and its echo ack does not say why: nothing is
    /// shown.
    unsynced: bool,
    /// The echo ack of the newest frame.
    echo_ack: StateNum,
    clusters: Clusters,
    /// How often guesses were dropped at once.
    resets: u64,
}

/// How a frame compares with the predicted screens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Finding {
    /// The predicted screen after this many keys.
    Foreseen(usize),
    /// The predicted screen after this many keys, though more are acknowledged.
    Behind(usize),
    /// None of the predicted screens.
    Unforeseen,
}

impl EpochEngine {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            pending: PendingKeys::default(),
            settings,
            line: EditedLine::default(),
            evidence: EchoEvidence::default(),
            guard: PasswordGuard::new(settings.display),
            confidence: KeyConfidence::new(settings.lacks),
            unsynced: false,
            echo_ack: StateNum::ZERO,
            clusters: Clusters::default(),
            resets: 0,
        }
    }

    /// How often guesses were dropped at once.
    pub(crate) fn resets(&self) -> u64 {
        self.resets
    }

    /// Drops every guess and begins an epoch.
    pub(crate) fn reset(&mut self) {
        self.resets += u64::from(self.is_active());
        if self.pending.keys.iter().any(|key| key.key.changes_reader()) {
            // Where the line behind it begins will not be seen.
            if let Some(base) = self.pending.base.clone() {
                let all = self.pending.keys.len();
                self.evidence.note_lines(&mut self.pending, all, &base);
            }
            self.evidence.lose_track();
        }
        self.pending = PendingKeys::default();
        self.unsynced = false;
        self.line.reset();
        self.evidence.reset();
        self.evidence.forget_typed(self.pending.unseen_mut());
        self.clusters.clear();
        self.guard.require_echo();
    }

    /// Takes one key, after [`frame`](Self::frame) has taken the same observation.
    pub(crate) fn key(&mut self, now: Time, key: Key, seen: Observation<'_>) {
        // A key of unknown effect may start another program, which reads this one then.
        let uncontended = self.pending.keys.iter().all(|key| key.effect != Effect::Unknown);
        let echo_unknown = self.evidence.on_key(key, uncontended, self.pending.base());
        if self.pending.keys.len() >= PENDING_MAX {
            self.follow_no_more(seen);
            return;
        }
        // No prediction is left that names a cluster.
        if self.pending.keys.is_empty() {
            self.clusters.clear();
        }
        let before = self.pending.predicted(self.pending.keys.len());
        let (row, window) = match &before {
            Some(before) => (before.cursor().0, before.window(&self.pending.borders)),
            None => (0, Window::whole(seen.screen.size().cols)),
        };
        let unplaced = before.is_none();
        let (effect, predicted) =
            before.map_or((Effect::Unknown, None), |before| self.press(before, key));
        if self.may_wrap(key, effect) {
            self.guard.require_echo();
        }
        let wraps = matches!(effect, Effect::Writes(to, _) if to != row);
        if wraps && window.is_one_of_several(seen.screen) {
            // Which window has the keys, and how its lines go on, shows only in an echo there.
            self.guard.require_echo();
        }
        let trusted = self.confidence.trusts(key, effect, window.right);
        let standing = match trusted {
            _ if key.changes_reader() => Standing::Boundary,
            // Behind a key of unknown effect all are unknown: those are no boundaries of their own.
            _ if effect == Effect::Unknown && !(unplaced && trusted) => Standing::Boundary,
            true => Standing::Trusted,
            false => Standing::Untrusted,
        };
        let epoch = self.guard.on_key(key, standing);
        if key == Key::Enter {
            let burst = |key: &&mut PendingKey| now.since(key.at) < BURST;
            self.guard.on_enter(self.pending.keys.iter_mut().rev().take_while(burst));
        }
        self.pending.keys.push_back(PendingKey {
            key,
            at: now,
            state: seen.sent.next(),
            epoch,
            effect,
            predicted,
            uncontended,
            echo_unknown,
            prompted: false,
        });
    }

    /// The last key that is followed stands for all later ones: their effects count as unknown.
    fn follow_no_more(&mut self, seen: Observation<'_>) {
        self.guard.require_echo();
        self.evidence.lose_track();
        self.pending.reflected = self.pending.reflected.min(PENDING_MAX - 1);
        let last = self.pending.keys.back_mut().expect("many are in flight");
        (last.key, last.effect, last.predicted) = (Key::Other, Effect::Unknown, None);
        (last.state, last.echo_unknown) = (seen.sent.next(), true);
    }

    /// Compares with the newest frame.
    pub(crate) fn frame(&mut self, now: Time, seen: Observation<'_>, policy: &mut DisplayPolicy) {
        let screen = seen.screen;
        let hidden = seen.line == Some(LineMode::Hidden);
        self.evidence.on_mode(seen.line);
        self.guard.on_mode(hidden);
        if self.pending.base().is_none_or(|base| base.size() != screen.size()) {
            self.reset();
            self.rebase(screen, 0);
        }
        if hidden {
            self.suspect(0);
            // The line that started the question is found by its text, which is dropped next.
            self.evidence.note_lines_ahead(&mut self.pending, 0, screen);
            self.evidence.forget_typed(self.pending.unseen_mut());
        }
        if let Some(oldest) = self.pending.keys.get(self.pending.reflected) {
            policy.pending(now, oldest.at);
        }
        // Most calls come before a paint, with nothing new.
        let same = |base: &Screen| base.shares_grid(screen) && base.cursor() == screen.cursor();
        if self.pending.base().is_some_and(same) && seen.echo_ack == self.echo_ack {
            return;
        }
        if !screen.modes().cursor_visible {
            // The program is halfway through drawing, or draws a cursor of its own. Such a frame
            // shows neither the effect of keys nor where the next will act.
            let oldest = self.pending.keys.get(self.pending.reflected);
            self.unsynced |= oldest.is_some_and(|oldest| oldest.state <= seen.echo_ack);
            return;
        }
        self.echo_ack = seen.echo_ack;
        // The server acknowledges a key 50 ms after the program got it: its echo should be there.
        let acked = self.pending.keys.iter().take_while(|key| key.state <= seen.echo_ack).count();
        let begins_line = self.pending.begins_line(acked);
        self.evidence.note_lines(&mut self.pending, acked, screen);
        self.evidence.note_frame(screen);
        match self.find(screen, acked) {
            Finding::Foreseen(shown) => {
                self.follow(now, shown, screen, policy);
                self.drop_acked(acked, shown, screen);
            }
            Finding::Behind(shown) => self.wait(shown, acked, screen),
            Finding::Unforeseen => {
                self.evidence.note_lines_ahead(&mut self.pending, acked, screen);
                self.resynchronise(acked, screen);
            }
        }
        if begins_line {
            self.evidence.on_line_begun(&self.pending.silent);
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.pending.keys.len() > self.pending.reflected
    }

    /// Lays the guesses that may be shown over a clone of the newest frame.
    pub(crate) fn overlay(&self, screen: &mut Screen, flagging: Flagging) {
        if let Some(predicted) = self.shown() {
            predicted.paint(screen, &self.clusters, flagging);
        }
    }

    /// The only predicted screen that is ever painted. It has the effects of all keys before its
    /// own, so the guard must allow each of them.
    fn shown(&self) -> Option<&PredictedScreen> {
        if self.unsynced {
            return None;
        }
        let unshown = self.pending.unshown(self.pending.keys.len());
        let allowed = unshown.take_while(|key| self.guard.allows(key));
        allowed.map_while(|key| key.predicted.as_ref()).last()
    }

    /// Predicts the effect of a key on `before`.
    fn press(
        &mut self,
        mut before: PredictedScreen,
        key: Key,
    ) -> (Effect, Option<PredictedScreen>) {
        if matches!(key, Key::Char(_)) {
            self.line.type_at(before.cursor());
        }
        let Some(mut context) = self.context() else { return (Effect::Unknown, None) };
        let effect = before.press(key, &mut context);
        (effect, (effect != Effect::Unknown).then_some(before))
    }

    /// Everything that a key's prediction depends on besides the screen before it.
    fn context(&mut self) -> Option<LineContext<'_>> {
        Some(LineContext {
            base: self.pending.base.as_ref()?,
            borders: &self.pending.borders,
            clusters: &mut self.clusters,
            margin: *self.confidence.margin(),
            line: &self.line,
            settings: self.settings,
        })
    }

    /// Deep in flight, text in the columns where editors fill paragraphs may break the line. That
    /// takes along all that follows, and the frame that says so is far off: there each letter
    /// waits for its own echo.
    fn may_wrap(&self, key: Key, effect: Effect) -> bool {
        let (Key::Char(_), Effect::Writes(row, col)) = (key, effect) else { return false };
        if self.pending.keys.len() < self.pending.reflected + DEEP_KEYS
            || self.confidence.stays(col)
        {
            return false;
        }
        // Behind a shell's prompt no program fills paragraphs.
        let shells = |base: &Screen| {
            col + EDGE_COLS < self.pending.borders.window(row, col).right
                && self.evidence.is_shell_line(row, col, base)
        };
        !self.pending.base().is_some_and(shells)
    }

    /// Which predicted screen the frame is, the fewest keys first.
    fn find(&mut self, screen: &Screen, acked: usize) -> Finding {
        let mut fits = None;
        let reflected = self.pending.reflected;
        // A frame often shows keys before their echo ack.
        for shown in acked.max(reflected)..=self.pending.keys.len() {
            let predicted = self.pending.predicted(shown);
            let (Some(predicted), Some(base)) = (predicted, self.pending.base()) else { continue };
            if predicted.agrees(screen, &mut self.clusters) {
                // Of several that fit, the one whose line is as in the frame to the last cell: the
                // cursor does not tell how often Delete was pressed.
                if predicted.line_is(base, screen, &mut self.clusters) {
                    return Finding::Foreseen(shown);
                }
                fits = fits.or(Some(shown));
            }
        }
        if let Some(shown) = fits {
            return Finding::Foreseen(shown);
        }
        // A key without an effect leaves the screen as it was before.
        for shown in (reflected..acked).rev() {
            let Some(predicted) = self.pending.predicted(shown) else { continue };
            if predicted.agrees(screen, &mut self.clusters) {
                return Finding::Behind(shown);
            }
        }
        Finding::Unforeseen
    }

    /// The frame shows the first `shown` keys as predicted.
    fn follow(&mut self, now: Time, shown: usize, screen: &Screen, policy: &mut DisplayPolicy) {
        for at in self.pending.reflected..shown {
            let key = &self.pending.keys[at];
            let Some(base) = self.pending.base() else { break };
            if self.evidence.credits(key, base, screen, &mut self.clusters)
                || self.evidence.credits_blank(key, base, screen)
            {
                policy.confirmed(now, key.at);
                self.guard.on_echo(key.epoch);
            }
            if key.predicted.is_none() {
                continue;
            }
            // The columns where characters stay are no margin.
            if let (Key::Char(c), Effect::Writes(_, col)) = (key.key, key.effect) {
                self.confidence.stayed(c, col);
            } else {
                self.confidence.was_right(key.key);
            }
            if !matches!(key.key, Key::Char(c) if c != ' ') {
                self.guard.carry_over(key.epoch);
            }
        }
        if let Some(predicted) = self.pending.predicted(shown) {
            // Once this frame is the base, the blanks that keys have left at the end of a line look
            // like empty cells.
            let kept = self.kept_end(screen).filter(|(row, _)| !predicted.edits(*row));
            self.line.set_end(predicted.typed_end().or(kept));
        }
        if shown > self.pending.reflected {
            self.pending.silent.clear();
            let last = &self.pending.keys[shown - 1];
            let edits = matches!(last.key, Key::Char(_) | Key::Backspace);
            match &last.predicted {
                // Text that comes up by itself right of typed text is a suggestion.
                Some(predicted)
                    if edits && predicted.shows_suggestion(screen, &mut self.clusters) =>
                {
                    self.line.set_right(RightText::Suggestion);
                }
                // A motion may have taken the suggestion, or left it.
                _ if !edits => self.line.set_right(RightText::Text),
                _ => {}
            }
        }
    }

    /// The typed end of a line, if this frame shows its row as it was.
    fn kept_end(&self, screen: &Screen) -> Option<(u16, u16)> {
        self.line.kept_end(self.pending.base()?, screen)
    }

    /// Drops the acknowledged keys; the frame shows `shown` of those in flight.
    fn drop_acked(&mut self, acked: usize, shown: usize, screen: &Screen) {
        self.unsynced = false;
        self.pending.keys.drain(..acked);
        self.rebase(screen, shown - acked);
    }

    /// Replays the keys that are not `reflected` on this frame.
    fn rebase(&mut self, screen: &Screen, reflected: usize) {
        let at = screen.cursor();
        let borders = Borders::of(screen);
        self.confidence.enter_window(screen.size().cols, borders.window(at.row, at.col));
        (self.pending.base, self.pending.borders) = (Some(screen.clone()), borders);
        self.pending.reflected = reflected;
        let mut before = Some(PredictedScreen::of(screen));
        for at in reflected..self.pending.keys.len() {
            let key = self.pending.keys[at].key;
            // The effect of a key behind one of unknown effect stays as it was predicted.
            let Some(screen) = before.take() else {
                self.pending.keys[at].predicted = None;
                continue;
            };
            let (effect, predicted) = self.press(screen, key);
            before.clone_from(&predicted);
            let key = &mut self.pending.keys[at];
            (key.effect, key.predicted) = (effect, predicted);
        }
    }

    /// The keys after `shown` are acknowledged, and nothing shows of them: they have no effect, or
    /// the program is slow.
    fn wait(&mut self, shown: usize, acked: usize, screen: &Screen) {
        let mut unseen = self.pending.keys.range(shown..acked);
        let missed = unseen.any(|key| matches!(key.effect, Effect::Writes(..)));
        if missed {
            self.miss(shown, acked);
        } else {
            self.doubt_motions(shown, acked);
        }
        // Behind a key that may show late every key may, an Enter above all: a late echo of keys
        // before it confirms none behind it.
        let PendingKeys { keys, silent, .. } = &mut self.pending;
        if missed || !silent.is_empty() {
            silent.extend(keys.range(shown..acked).cloned());
            let excess = silent.len().saturating_sub(SILENT_MAX);
            silent.drain(..excess);
        }
        self.drop_acked(acked, acked, screen);
    }

    /// A motion among the keys from `from` to `acked` was shown, and the cursor stays. If it had to
    /// earn its trust, it may be a multiplexer's prefix: the next key may show another program.
    fn doubt_motions(&mut self, from: usize, acked: usize) {
        let strayed = |at: &usize| {
            let key = &self.pending.keys[*at];
            let (before, after) = (self.pending.predicted(*at), &key.predicted);
            let moves = before.zip(after.as_ref()).is_some_and(|(a, b)| a.cursor() != b.cursor());
            moves && self.guard.is_confirmed(key) && !KeyConfidence::is_innate(key.key)
        };
        let strayed: Vec<Key> =
            (from..acked).filter(strayed).map(|at| self.pending.keys[at].key).collect();
        strayed.iter().for_each(|key| self.confidence.was_wrong(*key));
        if !strayed.is_empty() {
            self.suspect(acked);
        }
    }

    /// The keys from `from` to `acked` did not do as predicted.
    fn miss(&mut self, from: usize, acked: usize) {
        // Of guesses that were not shown nothing is learnt: an editor takes letters for commands,
        // and the keys behind those were predicted from a wrong screen.
        let shown = |key: &&PendingKey| self.guard.is_confirmed(key) && key.predicted.is_some();
        for key in self.pending.keys.range(from..acked).filter(shown) {
            match (key.key, key.effect) {
                (Key::Char(c), Effect::Writes(row, col)) => {
                    self.confidence.displaced(c, col, self.pending.borders.window(row, col));
                }
                (Key::Char(_), _) => {}
                _ => self.confidence.was_wrong(key.key),
            }
        }
        self.suspect(acked);
    }

    /// Keys in flight from this one on, and those to come, are shown only once they have echoed.
    fn suspect(&mut self, from: usize) {
        self.guard.suspect(self.pending.keys.iter_mut().skip(from));
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use rove_term::{Dialect, Size, Terminal};

    use super::*;
    use crate::predict::settings::Display;
    use crate::predict::window::cursor_of;

    /// xorshift64*: a stream of chance that is the same everywhere.
    fn chance(state: &mut u64, below: u64) -> u64 {
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    fn painted(engine: &EpochEngine, screen: &Screen) -> (Vec<String>, (u16, u16)) {
        let mut painted = screen.clone();
        engine.overlay(&mut painted, Flagging::Off);
        (painted.text(), cursor_of(&painted))
    }

    /// The overlay is the same without the keys from the first on that the guard refuses.
    #[test]
    fn a_refused_guess_is_not_painted() {
        let (mut guessed, mut refused) = (0, 0);
        for seed in 1..=400 {
            let display = [Display::Always, Display::Experimental][seed as usize % 2];
            let mut engine = EpochEngine::new(Settings::ROVE.with_display(display));
            let mut policy = DisplayPolicy::default();
            let mut terminal = Terminal::new(Size::clamped(6, 20), Dialect::ROVE);
            terminal.advance(b"$ ");
            let (mut state, mut now, mut echoes) = (seed, Time::ZERO, VecDeque::new());
            let (mut sent, mut echo_ack, mut line) = (0_u64, 0_u64, None);
            for _ in 0..100 {
                now = now + Duration::from_millis(20);
                let mut typed = None;
                match chance(&mut state, 8) {
                    0..4 => {
                        let (left, down) = ((Key::Left, "\x08"), (Key::Down, "\n"));
                        let (letter, enter) = ((Key::Char('a'), "a"), (Key::Enter, "\r\n$ "));
                        let keys = [left, down, enter, letter, letter, letter, letter, letter];
                        let (key, echo) = keys[chance(&mut state, 8) as usize];
                        typed = Some(key);
                        echoes.push_back(echo);
                    }
                    4..6 => terminal.advance(echoes.pop_front().unwrap_or("").as_bytes()),
                    6 => echo_ack = (echo_ack + 1 + chance(&mut state, 2)).min(sent),
                    _ if chance(&mut state, 5) == 0 => {
                        line = [None, Some(LineMode::Hidden)][chance(&mut state, 2) as usize];
                    }
                    _ => {}
                }
                let screen = terminal.screen().clone();
                let (echo_ack, interval) = (echo_ack.into(), Duration::from_millis(250));
                let sent_before = sent.into();
                let seen =
                    Observation { screen: &screen, echo_ack, sent: sent_before, interval, line };
                engine.frame(now, seen, &mut policy);
                if let Some(key) = typed {
                    engine.key(now, key, seen);
                    sent += 1;
                }
                let mut allowed = engine.clone();
                let PendingKeys { keys, reflected, .. } = &mut allowed.pending;
                let first = keys.iter().skip(*reflected).position(|key| !engine.guard.allows(key));
                keys.truncate(first.map_or(keys.len(), |first| *reflected + first));
                let shown = painted(&engine, &screen);
                assert_eq!(shown, painted(&allowed, &screen), "seed {seed}");
                guessed += u32::from(shown != (screen.text(), cursor_of(&screen)));
                refused += u32::from(first.is_some());
            }
        }
        assert!(guessed > 1000 && refused > 1000, "{guessed} guessed, {refused} refused");
    }
}
