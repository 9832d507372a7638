//! Speculative local echo: shows what a key will do before the server has said so
//! (docs/predict.md).
//!
//! The driver tells the [`Predictor`] which keys were typed and which frames arrived; it lays its
//! guesses over a clone of the newest frame. It decides which guesses to make, when they are
//! confirmed, and when they are worth showing. It knows no clock and no network: the driver tells
//! it the send interval and the echo ack.
//!
//! Two sets of rules make the guesses: stock mosh's (`mosh`, mosh-protocol.md §9), and ours
//! (`epoch`), which replay the pending keys on every frame. By ours `password` has the last word on
//! each guess.

mod display;
mod epoch;
mod evidence;
mod keys;
mod line;
mod look;
mod mosh;
mod observation;
mod password;
mod settings;
mod window;

use alloc::boxed::Box;

use rove_ssp::Time;
use rove_term::Screen;

pub use crate::line_mode::LineMode;
pub use observation::Observation;
pub use settings::{Display, Editing, Rule, Rules, Settings};

use display::DisplayPolicy;
use epoch::EpochEngine;
use keys::{Key, Keys};
use mosh::Stock;

/// Octets of one read beyond which it is a paste, which is not guessed (§9.4).
const BULK_OCTETS: usize = 100;

/// The prediction engine. It is deterministic: the same calls give the same overlay.
#[derive(Clone, Debug)]
pub struct Predictor {
    settings: Settings,
    keys: Keys,
    engine: Engine,
    policy: DisplayPolicy,
    /// Guesses need no echo by stock's rules, and the terminal line is reported not to echo.
    hidden: bool,
    /// When pending guesses are to be looked at again.
    redraw: Option<Time>,
    /// Counts every event that may have changed the overlay.
    revision: u64,
}

#[derive(Clone, Debug)]
enum Engine {
    Stock(Stock),
    Rove(Box<EpochEngine>),
}

impl Predictor {
    /// An engine that has guessed nothing yet.
    pub fn new(settings: Settings) -> Self {
        let engine = match settings.rules {
            Rules::Rove => Engine::Rove(Box::new(EpochEngine::new(settings))),
            Rules::Stock => Engine::Stock(Stock::new(settings)),
        };
        let (keys, policy) = (Keys::new(settings.rules), DisplayPolicy::default());
        Self { settings, keys, engine, policy, hidden: false, redraw: None, revision: 0 }
    }

    /// Takes one read of the tty, before its octets are sent.
    pub fn keys(&mut self, now: Time, octets: &[u8], seen: Observation<'_>) {
        if self.settings.display == Display::Never {
            return;
        }
        // A paste is not worth guessing, and behind it the cursor may be anywhere.
        if octets.len() > BULK_OCTETS {
            match &mut self.engine {
                Engine::Stock(stock) => stock.reset(),
                Engine::Rove(epochs) => epochs.key(now, Key::Other, seen),
            }
            return;
        }
        for &octet in octets {
            // A frame may have come since the last paint; the key is predicted on what it shows.
            self.judge(now, seen);
            if let Some(key) = self.keys.octet(octet) {
                self.engine.key(now, key, seen);
            }
        }
        if let Some(key) = self.keys.end() {
            self.engine.key(now, key, seen);
        }
        self.schedule(now);
    }

    /// Judges the guesses: after each new frame, and before each paint.
    pub fn frame(&mut self, now: Time, seen: Observation<'_>) {
        if self.settings.display == Display::Never {
            return;
        }
        self.judge(now, seen);
        self.schedule(now);
    }

    /// Drops every guess, as when the window changes its size.
    pub fn reset(&mut self) {
        self.revision += u64::from(self.engine.is_active());
        match &mut self.engine {
            Engine::Stock(stock) => stock.reset(),
            Engine::Rove(epochs) => epochs.reset(),
        }
    }

    /// How many guesses were right, shown or not.
    pub fn right(&self) -> u64 {
        self.policy.right()
    }

    /// How often guesses were dropped at once, by our rules.
    pub fn resets(&self) -> u64 {
        self.counted_resets().unwrap_or(0)
    }

    /// The same; `None` by stock's rules, of which nobody counts it.
    pub(crate) fn counted_resets(&self) -> Option<u64> {
        match &self.engine {
            Engine::Stock(_) => None,
            Engine::Rove(epochs) => Some(epochs.resets()),
        }
    }

    /// Lays the guesses over a clone of the newest frame.
    pub fn overlay(&self, screen: &mut Screen) {
        let show = match self.settings.display {
            Display::Never => false,
            Display::Adaptive => self.policy.show(),
            Display::Always | Display::Experimental => true,
        };
        // Guesses go on when they are not shown, so that they are confirmed once they are.
        if !show || self.hidden {
            return;
        }
        match &self.engine {
            Engine::Stock(stock) => stock.overlay(screen, self.policy.flagging()),
            Engine::Rove(epochs) => epochs.overlay(screen, self.policy.flagging()),
        }
    }

    /// When to call [`frame`](Self::frame) and paint again though nothing came.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.redraw
    }

    /// Two equal answers, and the same frame below: the overlay is the same.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn judge(&mut self, now: Time, seen: Observation<'_>) {
        // A guess that needs no echo would show a password. Ours pass `PasswordGuard`.
        let Settings { rules, display, .. } = self.settings;
        let blind = rules == Rules::Stock && display == Display::Experimental;
        let hidden = blind && seen.line == Some(LineMode::Hidden);
        if core::mem::replace(&mut self.hidden, hidden) || hidden {
            self.reset();
        }
        // Without guesses before, judging makes none.
        self.revision += u64::from(self.engine.is_active());
        match &mut self.engine {
            Engine::Stock(stock) => {
                self.policy.path(seen.interval, stock.is_active());
                stock.cull(now, seen, &mut self.policy);
            }
            Engine::Rove(epochs) => {
                epochs.frame(now, seen, &mut self.policy);
                // By what the frame has shown of glitches, so that a second look changes nothing.
                self.policy.path(seen.interval, epochs.is_active());
            }
        }
    }

    fn schedule(&mut self, now: Time) {
        let pending = self.engine.is_active();
        self.revision += u64::from(pending);
        self.redraw = self.policy.redraw().filter(|_| pending).map(|wait| now + wait);
    }
}

impl Engine {
    fn key(&mut self, now: Time, key: Key, seen: Observation<'_>) {
        match self {
            Self::Stock(stock) => stock.key(now, key, seen),
            Self::Rove(epochs) => epochs.key(now, key, seen),
        }
    }

    fn is_active(&self) -> bool {
        match self {
            Self::Stock(stock) => stock.is_active(),
            Self::Rove(epochs) => epochs.is_active(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::time::Duration;

    use rove_ssp::StateNum;
    use rove_term::{Dialect, Size, Terminal};

    use super::epoch::pending::PENDING_MAX;
    use super::window::CELLS_READ;
    use super::*;

    const ROWS: u16 = 200;
    const COLS: u16 = 1000;
    const SCREEN_CELLS: u64 = ROWS as u64 * COLS as u64;

    /// A screen whose cells in these rows are all vertical bars, with the cursor in the middle.
    fn bars(rows: Range<u16>) -> Terminal {
        let mut terminal = Terminal::new(Size::clamped(ROWS, COLS), Dialect::ROVE);
        for row in rows {
            let bars = "|".repeat(usize::from(COLS));
            terminal.advance(format!("\x1b[{};1H{bars}", row + 1).as_bytes());
        }
        terminal.advance(b"\x1b[100;500H");
        terminal
    }

    fn seen(screen: &Screen, sent: usize) -> Observation<'_> {
        let (echo_ack, sent) = (StateNum::ZERO, (sent as u64).into());
        Observation { screen, echo_ack, sent, interval: Duration::from_millis(250), line: None }
    }

    /// The cells that the predictor looks at to find windows and prompts: for one read of the tty,
    /// and for one frame.
    fn cells_read(keys: &[u8], terminal: &mut Terminal) -> (u64, u64) {
        let settings = Settings::ROVE.with_display(Display::Always);
        let (mut predictor, now) = (Predictor::new(settings), Time::ZERO);
        predictor.frame(now, seen(terminal.screen(), 0));
        let mut most = 0;
        for (key, sent) in keys.iter().zip(0..) {
            CELLS_READ.set(0);
            predictor.keys(now, &[*key], seen(terminal.screen(), sent));
            most = most.max(CELLS_READ.get());
        }
        assert!(predictor.engine.is_active());
        terminal.advance(b"\x1b7\x1b[H12:00\x1b8");
        CELLS_READ.set(0);
        predictor.frame(now, seen(terminal.screen(), keys.len()));
        (most, CELLS_READ.get())
    }

    /// Two paints in one turn are the same, also when a guess was unanswered for long, and when quick answers have
    /// made up for that.
    #[test]
    fn a_second_look_changes_no_flag() {
        let settings = Settings::ROVE.with_display(Display::Always);
        let mut predictor = Predictor::new(settings);
        let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
        terminal.advance(b"$ ");
        fn look(screen: &Screen, known: u64) -> Observation<'_> {
            let (echo_ack, sent) = (StateNum::from(known), StateNum::from(known));
            let interval = Duration::from_millis(20);
            Observation { screen, echo_ack, sent, interval, line: None }
        }
        let (mut now, mut flagged) = (0, Vec::new());
        predictor.frame(Time::ZERO, look(terminal.screen(), 0));
        for key in 0..30 {
            // One key is always in flight, the third one for long.
            let letter = [b'a' + (key % 26) as u8];
            predictor.keys(Time::from_millis(now), &letter, look(terminal.screen(), key));
            now += if key == 2 { 5_200 } else { 200 };
            let painted = [(); 2].map(|()| {
                predictor.frame(Time::from_millis(now), look(terminal.screen(), key));
                let mut screen = terminal.screen().clone();
                predictor.overlay(&mut screen);
                (0..40).map(|col| screen.cell_style(0, col)).collect::<Vec<_>>()
            });
            assert_eq!(painted[0], painted[1], "key {key}");
            flagged.push(painted[0].iter().any(|style| *style != Default::default()));
            terminal.advance(&letter);
        }
        assert!(!flagged[1] && flagged[2] && !flagged[29], "{flagged:?}");
    }

    /// The host chooses what the screen shows, and each frame replays all keys in flight.
    #[test]
    fn a_frame_takes_two_screens_of_work_at_most() {
        let typed = [b'x'; PENDING_MAX];
        let moved = b"x\x0e\x7f\x10".repeat(PENDING_MAX / 4);
        for rows in [2..ROWS - 2, 0..ROWS, 0..ROWS - 2, 0..0] {
            for keys in [&typed[..], &moved] {
                let (key, frame) = cells_read(keys, &mut bars(rows.clone()));
                assert!(key <= 2 * SCREEN_CELLS, "{rows:?}: {key} for a key");
                assert!(frame <= 2 * SCREEN_CELLS, "{rows:?}: {frame} for a frame");
            }
        }
    }
}
