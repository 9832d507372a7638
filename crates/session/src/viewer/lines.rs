//! Decides which of the lines that left the screen a client is told, and when: with frames as far as they cost little,
//! and alone while nothing else is to be said: on lossy and metered paths mostly while nobody types.

use core::time::Duration;

use rove_ssp::{Endpoint, Time, Timing};
use rove_term::{History, Screen};

use crate::input::Input;
use crate::past::{LINES_MAX, Past};
use crate::view::View;

/// Octets of lines that a frame takes along beside those that the client shows: with them it fits into a datagram.
const FRAME_OCTETS_MAX: usize = 900;
/// Octets of one state with lines alone soon after a key, whose answer may have to wait for it.
const ALONE_TYPING_OCTETS_MAX: usize = 2 << 10;
/// The share of datagrams lost from which a path counts as lossy.
const LOSSY: f64 = 0.02;
/// No lines go alone so soon after a key.
const KEY_PAUSE: Duration = Duration::from_millis(100);
/// How long somebody counts as typing after a key.
const TYPING: Duration = Duration::from_secs(1);
/// Who types on and on gets some lines this often.
const STARVED: Duration = Duration::from_secs(5);
/// A client that does not answer for this long is told of no lines before it does. Twice as long each time that lines
/// were taken back: what a path carries in bursts alone would else never bring one.
const SILENCE: Duration = Duration::from_secs(2);
/// The longest such wait. One burst a minute is no path to work on.
const SILENCE_MAX: Duration = Duration::from_secs(32);
/// A client that was not silent for so long while lines were on their way is waited for as briefly as at first.
const STEADY: Duration = Duration::from_secs(30);
/// How long the end of a program waits for lines while none can be told.
const DRAIN_WAIT: Duration = Duration::from_secs(10);

/// What one client is told of lines.
#[derive(Debug)]
pub(crate) struct LineTelling {
    tariff: Tariff,
    /// How many missed lines it wants; `None` if it did not ask.
    wanted: Option<u64>,
    /// How many of those before its first screen it is told at most, if it has less use for them.
    fill: Option<u64>,
    /// The last state tells of lines alone.
    is_alone: bool,
    /// When a key came last.
    typed: Option<Time>,
    /// When lines were told last.
    told: Option<Time>,
    /// The next line is not to be had before there is a new screen.
    is_stuck: bool,
    /// Since when the client has not acknowledged what it was sent last.
    unanswered: Option<Time>,
    /// It does not answer at all.
    is_paused: bool,
    /// How long it may be silent before lines are taken back.
    silence_max: Duration,
    /// When it was silent for [`SILENCE`] last, with lines on their way.
    silent_at: Option<Time>,
}

/// What octets cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tariff {
    Flat,
    Metered,
}

/// How many lines go, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Octets of lines that may be on their way.
    unacked: usize,
    /// Octets of one state with lines alone.
    alone: usize,
    /// No lines go alone so soon after a key.
    pause: Duration,
    /// Such states are short so soon after a key.
    rest: Duration,
}

impl Limits {
    const CLEAN: Limits =
        Limits { unacked: 64 << 10, alone: 16 << 10, pause: KEY_PAUSE, rest: TYPING };
    /// Where datagrams are lost: a screen that starts from an older state has to tell lines again that are on their way.
    const LOSSY: Limits =
        Limits { unacked: 16 << 10, alone: 16 << 10, pause: TYPING, rest: Duration::from_secs(3) };
    /// Where each octet costs.
    const METERED: Limits =
        Limits { unacked: 8 << 10, alone: 8 << 10, pause: TYPING, rest: TYPING };
}

impl LineTelling {
    /// Nothing is asked for yet.
    pub(crate) fn new(timing: &Timing) -> Self {
        let is_metered = timing.send_policy == Timing::METERED.send_policy;
        Self {
            tariff: if is_metered { Tariff::Metered } else { Tariff::Flat },
            wanted: None,
            fill: None,
            is_alone: false,
            typed: None,
            told: None,
            is_stuck: false,
            unanswered: None,
            is_paused: false,
            silence_max: SILENCE,
            silent_at: None,
        }
    }

    /// The client wants this number of missed lines at most.
    pub(crate) fn want(&mut self, lines: u64) {
        self.wanted = Some(lines.min(LINES_MAX)).filter(|lines| *lines > 0);
    }

    /// Of the lines before the first screen this number is told at most.
    pub(crate) fn fill(&mut self, lines: u64) {
        self.fill = Some(lines);
    }

    /// A key came.
    pub(crate) fn typed(&mut self, now: Time) {
        self.typed = Some(now);
    }

    /// The program has ended: keys have no answers that lines could delay, and what is told last is to be whole.
    pub(crate) fn end(&mut self) {
        self.typed = None;
        self.is_paused = false;
    }

    /// Tells no lines while the client does not answer. Returns whether those on their way are to be
    /// [taken back](Self::take_back): each repetition of the state would have all of them. Not to be called when the program
    /// has ended: then the last state is to have what it can.
    pub(crate) fn pause(&mut self, now: Time, endpoint: &Endpoint<View, Input>) -> bool {
        self.unanswered = match endpoint.acked() == endpoint.sent_num() {
            true => None,
            false => self.unanswered.or(Some(now)),
        };
        let heard = endpoint.last_heard().unwrap_or(Time::ZERO);
        let repeats = 3 * endpoint.rtt().rto();
        let is_silent = |wait: Duration| {
            self.unanswered.is_some_and(|at| now > at.max(heard) + wait.max(repeats))
        };
        let was_paused = self.is_paused;
        self.is_paused = is_silent(if was_paused { SILENCE } else { self.silence_max });
        let past = endpoint.local().past();
        let has_lines = past.is_some_and(|past| past.octets() > FRAME_OCTETS_MAX);
        // Where there are none on their way, nobody has to answer.
        match has_lines && is_silent(SILENCE) {
            true => self.silent_at = Some(now),
            false if self.silent_at.is_none_or(|at| now > at + STEADY) => {
                self.silence_max = SILENCE;
            }
            false => {}
        }
        let takes_back = self.is_paused && has_lines;
        if takes_back && !was_paused {
            self.silence_max = (2 * self.silence_max).min(SILENCE_MAX);
        }
        takes_back
    }

    /// Takes back the lines that the client may not have. They are told again once it answers.
    pub(crate) fn take_back(&mut self, view: &mut View) {
        if let Some(past) = view.past_mut() {
            past.shed();
        }
    }

    /// What holds on this path.
    pub(crate) fn limits(&self, endpoint: &Endpoint<View, Input>) -> Limits {
        match self.tariff {
            Tariff::Metered => Limits::METERED,
            Tariff::Flat if is_lossy(endpoint) => Limits::LOSSY,
            Tariff::Flat => Limits::CLEAN,
        }
    }

    /// Whether the last state tells of lines alone, which no budget of screens is charged for.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Whether the client is to learn how deep its screen is.
    pub(crate) fn is_news(&self, told: &View) -> bool {
        self.wanted.is_some() != told.past().is_some()
    }

    /// Adds to a frame what it takes along. `shown` is the screen of the state before it, and the new one, if it has
    /// changed, is in `view` already.
    pub(crate) fn add(&mut self, now: Time, view: &mut View, frame: &Frame<'_>) {
        self.is_alone = false;
        self.is_stuck = false;
        let screen = view.screen().clone();
        let past = view.past_mut();
        let Some(wanted) = self.wanted else {
            *past = None;
            return;
        };
        match past {
            Some(past) if frame.is_new => past.follow(frame.history, &screen),
            Some(_) => {}
            None => {
                let first = self.fill.take().map_or(wanted, |fill| fill.min(wanted));
                *past = Some(Past::new(frame.history, &screen, first));
            }
        }
        let Some(past) = past else { return };
        if frame.is_path_poor && past.octets() > FRAME_OCTETS_MAX {
            past.shed();
        }
        past.give_up(frame.history, wanted);
        if self.is_paused {
            return;
        }
        // What answers a key is to be short where it is likely to be sent more than once, or costs.
        let is_short = frame.is_path_poor || self.tariff == Tariff::Metered;
        let takes_none = frame.is_ahead || is_short && self.has_typed(now, TYPING);
        let octets = if takes_none { 0 } else { FRAME_OCTETS_MAX };
        let before = past.told();
        past.tell(frame.history, frame.shown, octets, 0);
        self.note(now, before, past);
    }

    /// When lines are to be told alone, though the screen has not changed.
    pub(crate) fn due(&self, endpoint: &Endpoint<View, Input>) -> Option<Time> {
        let past = endpoint.local().past().filter(|past| past.is_behind())?;
        let limits = self.limits(endpoint);
        let is_full = past.is_full() || past.octets() >= limits.unacked;
        if self.is_stuck || self.is_paused || is_full || !endpoint.is_told() {
            return None;
        }
        let Some(typed) = self.typed else { return Some(Time::ZERO) };
        let starved = self.told.map_or(Time::ZERO, |told| told + STARVED);
        Some((typed + limits.pause).min(starved.max(typed + KEY_PAUSE)))
    }

    /// Tells lines alone.
    pub(crate) fn tell_alone(
        &mut self,
        now: Time,
        limits: Limits,
        view: &mut View,
        history: &History,
    ) {
        self.is_alone = true;
        let alone = match self.has_typed(now, limits.rest) {
            true => ALONE_TYPING_OCTETS_MAX,
            false => limits.alone,
        };
        let shown = view.screen().clone();
        if let Some(past) = view.past_mut() {
            let before = past.told();
            let octets = alone.min(limits.unacked.saturating_sub(past.octets()));
            past.tell(history, &shown, octets, 1);
            self.is_stuck = past.told() == before;
            self.note(now, before, past);
        }
    }

    /// Until when the end of the program waits for lines; `None` if all are told and few are on their way. The last state
    /// brings all that the client may not have, in one instruction, and of a long one some datagram is always lost where
    /// many are. `since`: the program has ended, and the client is there.
    pub(crate) fn drains_until(&self, view: &View, since: Time) -> Option<Time> {
        view.past().filter(|past| past.is_behind() || past.octets() > FRAME_OCTETS_MAX)?;
        Some(self.told.map_or(since, |told| told.max(since)) + DRAIN_WAIT)
    }

    /// Whether a key came within this time.
    fn has_typed(&self, now: Time, within: Duration) -> bool {
        self.typed.is_some_and(|typed| now < typed + within)
    }

    fn note(&mut self, now: Time, before: u64, past: &Past) {
        if past.told() > before {
            self.told = Some(now);
        }
    }
}

/// The frame that lines go along with.
pub(crate) struct Frame<'a> {
    pub(crate) history: &'a History,
    /// The screen of the state before.
    pub(crate) shown: &'a Screen,
    /// The screen is another than that.
    pub(crate) is_new: bool,
    /// Frames are ahead of their budget.
    pub(crate) is_ahead: bool,
    /// States are likely to start from one that is old.
    pub(crate) is_path_poor: bool,
}

/// Whether a state's diff is likely to start from an old one: datagrams are lost, or acknowledgments are late.
pub(crate) fn is_path_poor(now: Time, endpoint: &Endpoint<View, Input>) -> bool {
    let rtt = endpoint.rtt();
    is_lossy(endpoint) || endpoint.awaits_since().is_some_and(|since| now > since + rtt.rto())
}

fn is_lossy(endpoint: &Endpoint<View, Input>) -> bool {
    endpoint.path_stats().sent.is_some_and(|sent| sent.loss > LOSSY)
}
