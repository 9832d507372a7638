//! A desk for the prediction tests: a server's screen, a client's predictor, and the path between them.
#![allow(dead_code)] // Each test program uses its part.

use std::time::Duration;

use rove_session::predict::{LineMode, Observation, Predictor, Settings};
use rove_ssp::Time;
use rove_term::{Dialect, Screen, Size, Terminal};

/// A server's screen, a client's predictor, and the path between them.
#[derive(Clone)]
pub struct Desk {
    pub now: Time,
    pub terminal: Terminal,
    pub predictor: Predictor,
    pub interval: Duration,
    /// The last state sent.
    pub sent: u64,
    pub echo_ack: u64,
    pub line: Option<LineMode>,
}

impl Desk {
    /// A stock engine on a path of this send interval, before a prompt.
    pub fn new(settings: Settings, interval_ms: u64) -> Self {
        let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
        terminal.advance(b"$ ");
        let interval = Duration::from_millis(interval_ms);
        let predictor = Predictor::new(settings);
        let now = Time::ZERO;
        Self { now, terminal, predictor, interval, sent: 1, echo_ack: 0, line: None }
    }

    /// Lets time pass, and the predictor look at the newest frame.
    pub fn wait(&mut self, ms: u64) -> &mut Self {
        self.now = self.now + Duration::from_millis(ms);
        let screen = self.terminal.screen().clone();
        self.predictor.frame(self.now, self.facts(&screen));
        self
    }

    fn facts<'a>(&self, screen: &'a Screen) -> Observation<'a> {
        let (echo_ack, sent) = (self.echo_ack.into(), self.sent.into());
        Observation { screen, echo_ack, sent, interval: self.interval, line: self.line }
    }

    /// Types each octet as a read of its own.
    pub fn types(&mut self, octets: &[u8]) -> &mut Self {
        octets.iter().for_each(|octet| {
            self.reads(&[*octet]);
        });
        self
    }

    /// Types these octets in one read.
    pub fn reads(&mut self, octets: &[u8]) -> &mut Self {
        self.wait(1);
        let screen = self.terminal.screen().clone();
        self.predictor.keys(self.now, octets, self.facts(&screen));
        self.sent += 1;
        self
    }

    /// The server writes this; the frame comes before the echo ack of any further key.
    pub fn writes(&mut self, octets: &[u8]) -> &mut Self {
        self.terminal.advance(octets);
        self.wait(1)
    }

    /// The echo ack of this many more keys comes, without any change of the screen.
    pub fn acks(&mut self, keys: u64) -> &mut Self {
        self.echo_ack = self.echo_ack.max(1) + keys;
        self.wait(1)
    }

    /// The server writes this, and its frame covers every key typed.
    pub fn echoes(&mut self, octets: &[u8]) -> &mut Self {
        self.terminal.advance(octets);
        self.echo_ack = self.sent;
        self.wait(1)
    }

    /// Types a key that the server echoes at once.
    pub fn settles(&mut self, octets: &[u8]) -> &mut Self {
        self.types(octets).echoes(octets)
    }

    /// What the user sees.
    pub fn shown(&self) -> Screen {
        let mut screen = self.terminal.screen().clone();
        self.predictor.overlay(&mut screen);
        screen
    }
}

/// What the user sees, as text.
pub fn shown_text(desk: &Desk) -> Vec<String> {
    desk.shown().text()
}

/// What the server has shown, as text.
pub fn real_text(desk: &Desk) -> Vec<String> {
    desk.terminal.screen().text()
}

/// What the user sees of a row, with the cursor as `|`.
pub fn row(desk: &Desk, row: u16) -> String {
    let shown = desk.shown();
    let cursor = shown.cursor();
    let mut text = String::new();
    for (cell, col) in shown.row(row).cells().iter().zip(0..) {
        if (cursor.row, cursor.col) == (row, col) {
            text.push('|');
        }
        shown.pool().push_text(*cell, &mut text);
    }
    text.trim_end().to_owned()
}
