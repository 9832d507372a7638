//! The program of a recording: it waits for the recorded keys and then writes the recorded output after the
//! recorded delay. It takes the time as an argument, so that it runs in virtual time and under a real server alike.

use std::collections::VecDeque;
use std::time::Duration;

use rove_session::predict::LineMode;
use rove_ssp::Time;

use super::trace::{Event, Kind};

/// The program's next action.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Act {
    /// It writes this.
    Write(Vec<u8>),
    /// It sets the terminal line's mode.
    Line(LineMode),
}

/// A program that follows a recording.
#[derive(Clone, Debug)]
pub struct Script {
    events: VecDeque<Event>,
    /// When the last event happened here, and in the recording.
    last: (Time, Duration),
    /// Octets of keys that the program has not asked for yet.
    input: usize,
    /// The keys that have been read.
    read: usize,
    /// The newest key was answered: later output is the program's own.
    answered: bool,
    /// When the next output is due.
    due: Option<Time>,
}

impl Script {
    /// The program of these events.
    pub fn new(events: &[Event]) -> Self {
        Self {
            events: events.iter().cloned().collect(),
            last: (Time::ZERO, Duration::ZERO),
            input: 0,
            read: 0,
            answered: false,
            due: None,
        }
    }

    /// Keys of this many octets reached its terminal.
    pub fn arrived(&mut self, octets: usize) {
        self.input += octets;
    }

    /// Keys that have reached the terminal whole, read or not.
    pub fn delivered(&self) -> usize {
        let mut waiting = self.input;
        let mut count = self.read;
        for octets in self.events.iter().filter_map(Event::key_octets) {
            let Some(left) = waiting.checked_sub(octets) else { break };
            waiting = left;
            count += 1;
        }
        count
    }

    /// Its next action, if that is due; call until `None`.
    pub fn next(&mut self, now: Time) -> Option<Act> {
        self.due = None;
        loop {
            let event = self.events.front()?;
            let mut happened = self.last.0 + event.at.saturating_sub(self.last.1);
            match &event.kind {
                // A reader's speed does not depend on other output that is shown meanwhile.
                Kind::Output(_) | Kind::Line(_)
                    if happened > now && !(self.answered && self.key_waits()) =>
                {
                    self.due = Some(happened);
                    return None;
                }
                Kind::Output(_) | Kind::Line(_) => happened = happened.min(now),
                Kind::Key(key) => {
                    self.input = self.input.checked_sub(key.len())?;
                    self.read += 1;
                    self.answered = false;
                    happened = now;
                }
                Kind::Program(_) => {}
            }
            self.last = (happened, event.at);
            match self.events.pop_front()?.kind {
                Kind::Output(output) => {
                    self.answered = true;
                    return Some(Act::Write(output));
                }
                Kind::Line(mode) => return Some(Act::Line(mode)),
                Kind::Key(_) | Kind::Program(_) => {}
            }
        }
    }

    /// When [`next`](Self::next) is to be called though no keys came.
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// All of the recording has happened.
    pub fn is_over(&self) -> bool {
        self.events.is_empty()
    }

    /// The next key of the recording is there already.
    fn key_waits(&self) -> bool {
        let key = self.events.iter().find_map(Event::key_octets);
        key.is_some_and(|octets| octets <= self.input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(millis: u64, kind: Kind) -> Event {
        Event { at: Duration::from_millis(millis), kind }
    }

    #[test]
    fn keys_are_waited_for_and_answered_at_the_recorded_delay() {
        let output = |text: &str| Kind::Output(text.into());
        let mut script = Script::new(&[
            event(0, output("$ ")),
            event(1000, Kind::Key(b"a".to_vec())),
            event(1003, output("a")),
            event(2000, Kind::Key(b"\x1b[A".to_vec())),
            event(2010, Kind::Line(LineMode::Hidden)),
            event(2020, output("later")),
        ]);
        let at = |millis| Time::from_millis(millis);
        assert_eq!(script.next(at(5)), Some(Act::Write(b"$ ".to_vec())));
        assert_eq!((script.next(at(5)), script.due()), (None, None));
        script.arrived(2);
        assert_eq!(script.delivered(), 1);
        assert_eq!((script.next(at(50)), script.due()), (None, Some(at(53))));
        assert_eq!(script.next(at(53)), Some(Act::Write(b"a".to_vec())));
        assert_eq!(script.next(at(53)), None);
        script.arrived(2);
        assert_eq!(script.delivered(), 2);
        assert_eq!((script.next(at(60)), script.due()), (None, Some(at(70))));
        assert_eq!(script.next(at(70)), Some(Act::Line(LineMode::Hidden)));
        assert_eq!((script.next(at(70)), script.due()), (None, Some(at(80))));
        assert_eq!(script.next(at(81)), Some(Act::Write(b"later".to_vec())));
        assert!(script.is_over());
    }
}
