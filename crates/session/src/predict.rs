//! Speculative local echo: shows what a key will do before the server has said so.
//!
//! The [`Predictor`] is told what was typed and what frames arrived, and lays its guesses over a clone
//! of the newest frame. It owns which guesses are made, when they count as confirmed and when they are
//! worth showing. It knows no clock and no network: the send interval and the echo ack are told.
//!
//! Two sets of rules make the guesses: stock mosh's (`stock`, mosh-protocol.md §9), and ours
//! (`replay`), which replays the keys in flight on every frame.

mod keys;
mod look;
mod margin;
mod replay;
mod scene;
mod standing;
mod stock;
mod triggers;
mod window;

use std::time::Duration;

use rove_ssp::{StateNum, Time};
use rove_term::Screen;

pub use crate::line::LineMode;

use keys::{Key, Keys, Reading};
use replay::Replay;
use stock::Stock;
use triggers::{Flagging, Triggers};

/// When guesses are shown (`--predict`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Display {
    /// On slow paths, and after a glitch.
    #[default]
    Adaptive,
    /// Always, once confirmed.
    Always,
    /// Never; nothing is guessed either.
    Never,
    /// As always; motions of the cursor show without any confirmation, too. Text does as in the other modes. By stock's
    /// rules, which only the lab runs, nothing waits for a confirmation, and nothing shows while echo is reported to be off.
    Experimental,
}

/// What typing does to text right of the cursor (`--predict-overwrite`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Editing {
    /// It moves right.
    #[default]
    Insert,
    /// It is overwritten.
    Overwrite,
}

/// Whose rules make the guesses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rules {
    /// Those of stock mosh 1.4.0.
    Stock,
    /// Ours.
    Rove,
}

/// What our rules foresee beyond stock's. An experiment leaves one out to learn what it is worth
/// (`rove-lab predict --skills`).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Skill {
    /// Lines that wrap or scroll at a margin they were seen to have.
    Margins,
    /// Text right of the cursor moves when something is typed before it.
    Insertion,
    /// A shell's suggestion is typed over.
    Suggestions,
    /// What stands apart at the right stays when the line before it changes.
    RightPrompts,
    /// Ctrl-U and Ctrl-K.
    KillLine,
    /// Ctrl-W and Alt-DEL.
    KillWord,
    /// Ctrl-A, Ctrl-E, Home and End.
    LineEnds,
    /// Alt-B, Alt-F, and arrows with a modifier.
    WordMotion,
    /// Delete and Ctrl-D.
    DeleteForward,
    /// Up, Down, Ctrl-P and Ctrl-N are no motions until they were seen to be.
    History,
    /// Characters of two columns, and those that combine.
    WideText,
    /// Short text that is pasted.
    Paste,
    /// Keys and columns that were foreseen wrongly are not trusted again until they have been right.
    Learning,
}

/// Everything that can be chosen about predictions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Whose rules make the guesses.
    pub rules: Rules,
    /// When they are shown.
    pub display: Display,
    /// What they do to text right of the cursor.
    pub editing: Editing,
    /// What ours do without, for experiments.
    pub lacks: Option<Skill>,
}

impl Settings {
    /// What stock mosh 1.4.0 does by default.
    pub const STOCK: Self = Self {
        rules: Rules::Stock,
        display: Display::Adaptive,
        editing: Editing::Insert,
        lacks: None,
    };
    /// What rove does by default.
    pub const ROVE: Self = Self { rules: Rules::Rove, ..Self::STOCK };

    /// These settings with guesses shown at other times.
    pub const fn with_display(self, display: Display) -> Self {
        Self { display, ..self }
    }

    /// These settings without one of our skills.
    pub const fn without(self, skill: Skill) -> Self {
        Self { lacks: Some(skill), ..self }
    }

    fn confidence(self) -> Confidence {
        match self.display {
            Display::Experimental => Confidence::Blind,
            _ => Confidence::Earned,
        }
    }

    /// These settings with typing overwriting, or not.
    pub const fn with_editing(self, editing: Editing) -> Self {
        Self { editing, ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::ROVE
    }
}

/// What is known when keys or frames come.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The newest frame received, without overlays.
    pub screen: &'a Screen,
    /// Its echo ack: the frame shows whatever the keys up to this state did within 50 ms.
    pub echo_ack: StateNum,
    /// The last state sent; keys typed now go out with the next. Neither this nor the echo ack is ever a part
    /// of something long, with which they might not.
    pub sent: StateNum,
    /// The transport's send interval: half of SRTT, within bounds.
    pub interval: Duration,
    /// The terminal line's mode as of that frame; `None` from a server that does not report it.
    pub line: Option<LineMode>,
}

/// Octets of one read beyond which it is a paste that nobody wants to see guessed (§9.4).
const BULK_OCTETS: usize = 100;

/// The prediction engine. Deterministic: what it shows depends on what it was told alone.
#[derive(Clone, Debug)]
pub struct Predictor {
    settings: Settings,
    keys: Keys,
    engine: Engine,
    triggers: Triggers,
    /// Guesses count without an echo (stock's rules), and the newest report says that there is none.
    hidden: bool,
    /// When pending guesses are to be looked at again.
    redraw: Option<Time>,
    /// Counts whatever may have changed what is shown.
    revision: u64,
}

#[derive(Clone, Debug)]
enum Engine {
    Stock(Stock),
    Rove(Box<Replay>),
}

/// Whether an epoch must be confirmed before its guesses count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Confidence {
    Earned,
    /// The experimental mode: by stock's rules every guess counts at once, by ours those of motions.
    Blind,
}

impl Predictor {
    /// An engine that has guessed nothing yet.
    pub fn new(settings: Settings) -> Self {
        let confidence = settings.confidence();
        let (reading, engine) = match settings.rules {
            Rules::Rove => {
                let replay = Replay::new(settings.editing, confidence, settings.lacks);
                (Reading::Whole, Engine::Rove(Box::new(replay)))
            }
            Rules::Stock => {
                (Reading::Stock, Engine::Stock(Stock::new(settings.editing, confidence)))
            }
        };
        let (keys, triggers) = (Keys::new(reading), Triggers::new());
        Self { settings, keys, engine, triggers, hidden: false, redraw: None, revision: 0 }
    }

    /// Takes one read of the tty, before its octets are sent.
    pub fn keys(&mut self, now: Time, octets: &[u8], facts: Facts<'_>) {
        if self.settings.display == Display::Never {
            return;
        }
        if octets.len() > BULK_OCTETS {
            self.engine.bulk(now, facts);
            return;
        }
        for &octet in octets {
            self.judge(now, facts);
            if let Some(key) = self.keys.octet(octet) {
                self.engine.key(now, key, facts);
            }
        }
        if let Some(key) = self.keys.end() {
            self.engine.key(now, key, facts);
        }
        self.schedule(now);
    }

    /// Judges the guesses: after each new frame, and before each paint.
    pub fn frame(&mut self, now: Time, facts: Facts<'_>) {
        if self.settings.display == Display::Never {
            return;
        }
        self.judge(now, facts);
        self.schedule(now);
    }

    /// Drops every guess, as when the window changes its size.
    pub fn reset(&mut self) {
        self.revision += u64::from(self.engine.is_active());
        match &mut self.engine {
            Engine::Stock(stock) => stock.reset(),
            Engine::Rove(replay) => replay.reset(),
        }
    }

    /// Lays the guesses over a clone of the newest frame.
    pub fn overlay(&self, screen: &mut Screen) {
        let show = match self.settings.display {
            Display::Never => false,
            Display::Adaptive => self.triggers.show(),
            Display::Always | Display::Experimental => true,
        };
        if !show || self.hidden {
            return;
        }
        match &self.engine {
            Engine::Stock(stock) => stock.overlay(screen, self.triggers.flagging()),
            Engine::Rove(replay) => replay.overlay(screen, self.triggers.flagging()),
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

    fn judge(&mut self, now: Time, facts: Facts<'_>) {
        // What counts without an echo would show a password. Our rules see to that themselves.
        let blind =
            self.settings.rules == Rules::Stock && self.settings.confidence() == Confidence::Blind;
        let hidden = blind && facts.line == Some(LineMode::Hidden);
        if std::mem::replace(&mut self.hidden, hidden) || hidden {
            self.reset();
        }
        // Without guesses before, judging makes none.
        self.revision += u64::from(self.engine.is_active());
        self.triggers.path(facts.interval, self.engine.is_active());
        match &mut self.engine {
            Engine::Stock(stock) => stock.cull(now, facts, &mut self.triggers),
            Engine::Rove(replay) => replay.frame(now, facts, &mut self.triggers),
        }
    }

    fn schedule(&mut self, now: Time) {
        let pending = self.engine.is_active();
        self.revision += u64::from(pending);
        self.redraw = self.triggers.redraw().filter(|_| pending).map(|wait| now + wait);
    }
}

impl Engine {
    fn key(&mut self, now: Time, key: Key, facts: Facts<'_>) {
        match self {
            Self::Stock(stock) => stock.key(now, key, facts),
            Self::Rove(replay) => replay.key(now, key, facts),
        }
    }

    fn bulk(&mut self, now: Time, facts: Facts<'_>) {
        match self {
            Self::Stock(stock) => stock.reset(),
            Self::Rove(replay) => replay.key(now, Key::Other, facts),
        }
    }

    fn is_active(&self) -> bool {
        match self {
            Self::Stock(stock) => stock.is_active(),
            Self::Rove(replay) => replay.is_active(),
        }
    }
}
