//! Types by a script as a person would: gaps between keys are log-normal as in the shared recordings, words are
//! mistyped and corrected, and the typist waits for prompts.
//!
//! A script has one step a line:
//!
//! ```text
//! program NAME    the program that owns the screen from here on
//! type TEXT       types it, with a slip now and then
//! exact TEXT      types it without one
//! secret TEXT     types it without one; no part of it may be shown
//! keys NAME...    enter tab esc up down left right home end delete backspace
//!                 alt-backspace space, ctrl-X, alt-X
//! paste TEXT      pastes it, in brackets
//! prompt TEXT     waits until the text left of the cursor ends with this
//! see TEXT        waits until some row of the screen holds this
//! quiet           waits until the screen has not changed for 300 ms
//! think           looks at the screen for a while
//! pace MS         the median gap from here on
//! ```
//!
//! Empty lines and those that begin with `#` are ignored.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use rove_ssp::Time;
use rove_term::Screen;

use crate::rng::{Chance, Rng};

/// A typist's action.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Deal {
    /// Types a key.
    Key(Stroke),
    /// Another program has the screen from here on.
    Program(String),
}

/// A key typed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stroke {
    /// Its octets.
    pub octets: Vec<u8>,
    /// Whether it may be shown.
    pub secrecy: Secrecy,
}

/// Whether typed text may be shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Secrecy {
    /// It is text.
    Open,
    /// It is a password.
    Secret,
}

/// A line of a script.
#[derive(Clone, Debug)]
pub enum Step {
    /// Another program has the screen from here on.
    Program(String),
    /// Types these keys.
    Strokes(Vec<Stroke>),
    /// Waits until the text left of the cursor ends with this.
    Prompt(String),
    /// Waits until some row of the screen holds this.
    See(String),
    /// Waits until the screen has not changed for 300 ms.
    Quiet,
    /// Looks at the screen for a while.
    Think,
    /// The median gap between keys from here on.
    Pace(Duration),
}

/// Why a script goes no further.
#[derive(Clone, Debug)]
pub enum ScriptError {
    /// A line is not a step.
    NoStep {
        /// From 1.
        number: usize,
        /// The line.
        line: String,
    },
    /// The screen does not show the text that the step waits for.
    Overdue {
        /// The step.
        step: Step,
        /// The screen at that time.
        screen: Vec<String>,
    },
}

impl fmt::Display for ScriptError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptError::NoStep { number, line } => {
                write!(out, "line {number}: {line:?} is no step of a script")
            }
            ScriptError::Overdue { step, screen } => {
                write!(out, "{step:?} did not come; the screen: {screen:#?}")
            }
        }
    }
}

impl std::error::Error for ScriptError {}

/// A typist that follows a script.
#[derive(Debug)]
pub struct Typist {
    steps: VecDeque<Step>,
    strokes: VecDeque<Stroke>,
    rng: Rng,
    /// The median of the gaps between keys.
    gap: Duration,
    /// Not before this.
    next: Time,
    /// Since when the present step is waited for.
    waiting: Option<Time>,
}

/// The median gap between keys, the deviation of its logarithm, and how often a letter is mistyped: the averages in
/// the headers of the shared recordings.
const GAP: Duration = Duration::from_millis(160);
const GAP_SIGMA: f64 = 0.42;
const SLIPS: Chance = Chance::percent(3);

/// The screen rests when it has not changed for this long.
const QUIET: Duration = Duration::from_millis(300);

/// How long a prompt may take: programs start slowly on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(40);

impl Typist {
    /// A typist for this script.
    ///
    /// # Errors
    /// The number of the line that is not a step.
    pub fn new(script: &str, seed: u64) -> Result<Self, ScriptError> {
        let mut rng = Rng::new(seed);
        let mut steps = VecDeque::new();
        for (number, line) in script.lines().enumerate() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let wrong = || ScriptError::NoStep { number: number + 1, line: line.to_owned() };
            steps.push_back(match word {
                "" | "#" => continue,
                "program" => Step::Program(rest.to_owned()),
                "type" => Step::Strokes(with_slips(rest, &mut rng)),
                "exact" => Step::Strokes(rest.chars().map(open).collect()),
                "secret" => Step::Strokes(
                    rest.chars().map(|c| Stroke { secrecy: Secrecy::Secret, ..open(c) }).collect(),
                ),
                "keys" => {
                    let keys: Option<Vec<Stroke>> = rest.split_whitespace().map(key).collect();
                    Step::Strokes(keys.ok_or_else(wrong)?)
                }
                "paste" => {
                    let octets = format!("\x1b[200~{rest}\x1b[201~").into_bytes();
                    Step::Strokes(vec![Stroke { octets, secrecy: Secrecy::Open }])
                }
                "prompt" => Step::Prompt(rest.trim_end().to_owned()),
                "see" => Step::See(rest.to_owned()),
                "quiet" => Step::Quiet,
                "think" => Step::Think,
                "pace" => {
                    Step::Pace(Duration::from_millis(rest.trim().parse().map_err(|_| wrong())?))
                }
                _ => return Err(wrong()),
            });
        }
        Ok(Self { steps, strokes: VecDeque::new(), rng, gap: GAP, next: Time::ZERO, waiting: None })
    }

    /// The next action at the sight of this screen, which last changed at `changed`; call until `None`.
    ///
    /// # Errors
    /// That the screen did not come to show the text of a step.
    pub fn poll(
        &mut self,
        now: Time,
        screen: &Screen,
        changed: Time,
    ) -> Result<Option<Deal>, ScriptError> {
        loop {
            if now < self.next {
                return Ok(None);
            }
            if let Some(stroke) = self.strokes.pop_front() {
                self.next = now + self.pause();
                return Ok(Some(Deal::Key(stroke)));
            }
            let Some(step) = self.steps.front() else { return Ok(None) };
            let since = *self.waiting.get_or_insert(now);
            let there = match step {
                Step::Prompt(text) => left_of_cursor(screen).ends_with(text.as_str()),
                Step::See(text) => crate::run::shows(screen, text),
                Step::Quiet => now.since(changed.max(since)) >= QUIET,
                _ => true,
            };
            if !there {
                if now.since(since) > WAIT_MAX {
                    return Err(ScriptError::Overdue { step: step.clone(), screen: screen.text() });
                }
                return Ok(None);
            }
            self.waiting = None;
            match self.steps.pop_front() {
                Some(Step::Program(name)) => return Ok(Some(Deal::Program(name))),
                Some(Step::Strokes(strokes)) => self.strokes = strokes.into(),
                Some(Step::Pace(gap)) => self.gap = gap,
                Some(Step::Think) => {
                    let (low, high) = (Duration::from_millis(500), Duration::from_millis(1800));
                    self.next = now + self.rng.span_within(low, high);
                }
                // A person who has waited sees it first, and types then.
                Some(Step::Prompt(_) | Step::See(_) | Step::Quiet) => {
                    self.next = now + self.pause()
                }
                None => {}
            }
        }
    }

    /// All is typed.
    pub fn is_done(&self) -> bool {
        self.steps.is_empty() && self.strokes.is_empty()
    }

    /// The time to the next key: log-normal.
    fn pause(&mut self) -> Duration {
        let deviate = self.rng.normal_us(Duration::from_secs(1)) as f64 / 1e6;
        self.gap.mul_f64(libm::exp(GAP_SIGMA * deviate))
    }
}

/// The text left of the cursor, without blanks at its end.
pub(crate) fn left_of_cursor(screen: &Screen) -> String {
    let cursor = screen.cursor();
    let text: String = screen.row_text(cursor.row).chars().take(cursor.col.into()).collect();
    text.trim_end().to_owned()
}

fn open(c: char) -> Stroke {
    Stroke { octets: c.to_string().into_bytes(), secrecy: Secrecy::Open }
}

/// The text, with a neighbour of the letter typed first now and then, and taken back a little later.
fn with_slips(text: &str, rng: &mut Rng) -> Vec<Stroke> {
    let mut strokes = Vec::new();
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let wrong = NEIGHBOURS.iter().find(|(letter, _)| *letter == c).map(|(_, wrong)| *wrong);
        if let Some(wrong) = wrong.filter(|_| rng.happens(SLIPS)) {
            // Noticed at once, or a letter or two later.
            let more = chars[at + 1..].iter().take(rng.below(3) as usize).copied();
            let typed: Vec<char> = std::iter::once(wrong).chain(more).collect();
            strokes.extend(typed.iter().copied().map(open));
            strokes.extend(typed.iter().map(|_| open('\x7f')));
        }
        strokes.push(open(c));
        at += 1;
    }
    strokes
}

/// Letters, and their neighbours typed by mistake.
const NEIGHBOURS: [(char, char); 12] = [
    ('a', 's'),
    ('e', 'r'),
    ('i', 'o'),
    ('o', 'p'),
    ('u', 'i'),
    ('t', 'r'),
    ('n', 'm'),
    ('s', 'd'),
    ('r', 't'),
    ('l', 'k'),
    ('c', 'v'),
    ('d', 'f'),
];

fn key(name: &str) -> Option<Stroke> {
    let octets = match name {
        "enter" => "\r",
        "tab" => "\t",
        "esc" => "\x1b",
        "space" => " ",
        "backspace" => "\x7f",
        "alt-backspace" => "\x1b\x7f",
        "delete" => "\x1b[3~",
        "up" => "\x1b[A",
        "down" => "\x1b[B",
        "right" => "\x1b[C",
        "left" => "\x1b[D",
        "home" => "\x1b[H",
        "end" => "\x1b[F",
        _ => {
            let letter = |c: char| c.is_ascii_graphic().then_some(c);
            let (kind, c) = name.split_once('-')?;
            let c = letter(c.parse().ok()?)?;
            let octets = match kind {
                "ctrl" => vec![c.to_ascii_uppercase() as u8 & 0x1f],
                "alt" => vec![0x1b, c as u8],
                _ => return None,
            };
            return Some(Stroke { octets, secrecy: Secrecy::Open });
        }
    };
    Some(Stroke { octets: octets.into(), secrecy: Secrecy::Open })
}

#[cfg(test)]
mod tests {
    use rove_term::{Dialect, Size, Terminal};

    use super::*;

    /// The keys typed within ten seconds at a screen that shows this.
    fn typed(script: &str, shown: &str) -> String {
        let mut terminal = Terminal::new(Size::clamped(4, 40), Dialect::ROVE);
        terminal.advance(shown.as_bytes());
        let mut typist = Typist::new(script, 1).unwrap();
        let mut out = String::new();
        for millis in 0..10_000 {
            let now = Time::from_millis(millis);
            while let Some(deal) = typist.poll(now, terminal.screen(), Time::ZERO).unwrap() {
                if let Deal::Key(stroke) = deal {
                    out.push_str(&String::from_utf8(stroke.octets).unwrap());
                }
            }
        }
        out
    }

    #[test]
    fn scripts() {
        for (script, shown, want) in [
            ("exact ls\nkeys enter ctrl-c alt-b up", "", "ls\r\x03\x1bb\x1b[A"),
            ("paste ls", "", "\x1b[200~ls\x1b[201~"),
            ("prompt $ \nexact x", "user $ ", "x"),
            ("prompt $\nexact x", "user $ y", ""),
            ("see ready\nexact x", "ready\r\n", "x"),
            ("# all\n\nthink\nquiet\npace 20\nsecret ab", "", "ab"),
        ] {
            assert_eq!(typed(script, shown), want, "{script}");
        }
        for bad in ["jump", "keys enterr", "pace soon"] {
            assert!(Typist::new(bad, 1).is_err(), "{bad}");
        }
    }

    #[test]
    fn slips_are_taken_back() {
        let text = "a sentence that is long enough to be mistyped somewhere, surely and certainly";
        for seed in 0..20 {
            let mut left = String::new();
            for stroke in with_slips(text, &mut Rng::new(seed)) {
                match stroke.octets.as_slice() {
                    b"\x7f" => drop(left.pop()),
                    octets => left.push_str(std::str::from_utf8(octets).unwrap()),
                }
            }
            assert_eq!(left, text);
        }
        let slips = |seed| with_slips(text, &mut Rng::new(seed)).len() > text.len();
        assert!((0..20).any(slips), "nobody slips");
    }

    #[test]
    fn what_does_not_come_is_said() {
        let screen = Screen::new(Size::clamped(4, 40));
        let mut typist = Typist::new("prompt $", 1).unwrap();
        assert_eq!(typist.poll(Time::ZERO, &screen, Time::ZERO).unwrap(), None);
        let late = Time::ZERO + WAIT_MAX + Duration::from_secs(1);
        assert!(typist.poll(late, &screen, Time::ZERO).is_err());
    }
}
