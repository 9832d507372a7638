//! The screen as the two ends share it (`mosh-protocol.md` §5): what the emulator shows, which keys it
//! answers, and, between two roves, how the program ended.
//!
//! Cells and escape sequences are `rove-term`'s business; this file puts them into messages and back.

use rove_ssp::{BadDiff, State, StateNum};
use rove_term::{Dialect, Screen, Size, announces, frame, same};

use crate::messages::{HostEvent, read_host, write_host};
use crate::stub::Terminal;

/// Who the other end is, as far as it matters to what can be said to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Peer {
    /// A stock mosh 1.4.0 program, or one that must be taken for it.
    Stock,
    /// A rove of this version's family.
    Rove,
}

impl Peer {
    /// What the client's copy of the screen understands.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::Stock => Dialect::MOSH,
            Self::Rove => Dialect::ROVE,
        }
    }
}

/// One state of the shared screen.
///
/// Both ends hold it, and see it through the client's [`Dialect`]: two views are equal if a reader of
/// that dialect cannot tell them apart, and hears no bell between them.
#[derive(Clone, Debug)]
pub struct View {
    screen: Screen,
    dialect: Dialect,
    echo_ack: StateNum,
    exit_status: Option<i32>,
    ignored: u64,
}

impl View {
    /// State 0: a blank screen.
    pub fn new(size: Size, peer: Peer) -> Self {
        Self {
            screen: Screen::new(size),
            dialect: peer.dialect(),
            echo_ack: StateNum::ZERO,
            exit_status: None,
            ignored: 0,
        }
    }

    /// What the screen shows.
    pub fn screen(&self) -> &Screen {
        &self.screen
    }

    /// The newest user state whose keys the program was given 50 ms and more before this screen.
    pub fn echo_ack(&self) -> StateNum {
        self.echo_ack
    }

    /// How the program ended, as a shell would put it into `$?`. `None` while it runs, and for ever from
    /// a stock server.
    pub fn exit_status(&self) -> Option<i32> {
        self.exit_status
    }

    /// Events of the peer that were skipped: a size of zero, a falling echo ack, a query.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Replaces the screen.
    pub(crate) fn show(&mut self, screen: Screen) {
        self.screen = screen;
    }

    /// Raises the echo ack. It never falls: a stock client aborts at that.
    pub(crate) fn acknowledge_echo(&mut self, newest: StateNum) {
        self.echo_ack = self.echo_ack.max(newest);
    }

    /// Says how the program ended; only for a peer that is told such things.
    pub(crate) fn end(&mut self, status: i32) {
        self.exit_status = Some(status);
    }
}

impl State for View {
    /// In stock's order: echo ack, resize, screen; ours comes last.
    fn diff_from(&self, base: &Self, out: &mut Vec<u8>) {
        if self.echo_ack != base.echo_ack {
            write_host(HostEvent::EchoAck(self.echo_ack.get()), out);
        }
        if self.screen.size() != base.screen.size() {
            write_host(HostEvent::Resize(self.screen.size().into()), out);
        }
        let mut octets = Vec::new();
        frame(&base.screen, &self.screen, &self.dialect, &mut octets);
        if !octets.is_empty() {
            write_host(HostEvent::Bytes(&octets), out);
        }
        if let Some(status) = self.exit_status
            && base.exit_status != self.exit_status
        {
            write_host(HostEvent::ExitStatus(status), out);
        }
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        let events = read_host(diff)?;
        // Rows are shared with the state this one starts from; the emulator copies what it changes.
        let mut terminal = Terminal::resume(self.screen.clone(), self.dialect);
        for event in events {
            match event {
                HostEvent::Bytes(octets) => {
                    terminal.advance(octets);
                    self.ignored += u64::from(!terminal.take_replies().is_empty());
                }
                HostEvent::Resize(dimensions) => match dimensions.to_size() {
                    Some(size) => terminal.resize(size),
                    None => self.ignored += 1,
                },
                HostEvent::EchoAck(number) => {
                    let number = StateNum::from(number);
                    self.ignored += u64::from(number < self.echo_ack);
                    self.echo_ack = self.echo_ack.max(number);
                }
                HostEvent::ExitStatus(status) => self.exit_status = Some(status),
            }
        }
        self.screen = terminal.into_screen();
        Ok(())
    }
}

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.echo_ack == other.echo_ack
            && self.exit_status == other.exit_status
            && same(&self.screen, &other.screen, &self.dialect)
            && !announces(&self.screen, &other.screen, &self.dialect)
    }
}
