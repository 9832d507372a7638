//! The screen as the two ends share it (`mosh-protocol.md` §5): the emulator's screen, the echo
//! ack, and, between two roves, how the program ended.
//!
//! `rove-term` knows cells and escape sequences; this file puts them into messages and back.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use rove_ssp::{Applied, BadDiff, State, StateNum};
use rove_term::history::Keeping;
use rove_term::{Dialect, Screen, Size, Terminal, announces, frame, same};

use crate::line_mode::{LineMode, LineReport};
use crate::messages::{DepthFields, HostEvent, read_host, write_host};
use crate::past::{Past, Reading};
use crate::session_info::SessionInfo;
use crate::work::{TURN_CELLS, TURN_OCTETS, diff_cells_max};

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
    line: Option<LineReport>,
    exit_status: Option<i32>,
    session: Option<Arc<SessionInfo>>,
    past: Option<Past>,
    ignored: u64,
    /// The diff that is being applied.
    applying: Option<Box<Applying>>,
    cells_touched: u64,
}

/// A diff that is applied in part.
#[derive(Clone, Debug)]
struct Applying {
    terminal: Terminal,
    lines: Reading,
    /// Cells that it may touch.
    cells_max: u64,
    /// The event that is next, and how many of its octets are done.
    event: usize,
    octets: usize,
}

impl View {
    /// State 0: a blank screen.
    pub fn new(size: Size, peer: Peer) -> Self {
        Self {
            screen: Screen::new(size),
            dialect: peer.dialect(),
            echo_ack: StateNum::ZERO,
            line: None,
            exit_status: None,
            session: None,
            past: None,
            ignored: 0,
            applying: None,
            cells_touched: 0,
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

    /// What the program's terminal line did with keys when this screen was taken. `None` from a server
    /// that does not report it.
    pub fn line(&self) -> Option<LineMode> {
        self.line.map(|line| line.mode)
    }

    /// The same, and whether its keys may be kept.
    pub fn line_report(&self) -> Option<LineReport> {
        self.line
    }

    /// How the program ended, as a shell would put it into `$?`. `None` while it runs, and for ever from
    /// a stock server.
    pub fn exit_status(&self) -> Option<i32> {
        self.exit_status
    }

    /// The session, and who else is in it. `None` from a server that cannot keep a session without its client.
    pub fn session(&self) -> Option<&SessionInfo> {
        self.session.as_deref()
    }

    /// The lines above the screen. `None` from a server that was not asked for them.
    pub fn past(&self) -> Option<&Past> {
        self.past.as_ref()
    }

    /// Events of the peer that were skipped: a size of zero, a falling echo ack, a query.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// How many cells the last diff has touched, of those it [may](diff_cells_max).
    pub fn cells_touched(&self) -> u64 {
        self.cells_touched
    }

    /// Replaces the screen.
    pub(crate) fn show(&mut self, screen: Screen) {
        self.screen = screen;
    }

    /// Raises the echo ack, if there is a newer one. It never falls: a stock client aborts at that.
    pub(crate) fn acknowledge_echo(&mut self, newest: Option<StateNum>) {
        self.echo_ack = self.echo_ack.max(newest.unwrap_or(self.echo_ack));
    }

    /// Says what the terminal line does with keys and how the program ended, as far as there is news. Only for
    /// a peer that understands these extensions.
    pub(crate) fn report(&mut self, line: Option<LineReport>, exit_status: Option<i32>) {
        self.line = line.or(self.line);
        self.exit_status = exit_status.or(self.exit_status);
    }

    /// The lines above the screen, to be changed. Only for a client that asked for them.
    pub(crate) fn past_mut(&mut self) -> &mut Option<Past> {
        &mut self.past
    }

    /// Says what the session is. Only for a client that asked for it.
    pub(crate) fn describe(&mut self, session: Arc<SessionInfo>) {
        self.session = Some(session);
    }
}

impl State for View {
    /// In stock's order: echo ack, resize, screen; ours come last, but for lines, some of which stand on the base's
    /// screen.
    fn diff_from(&self, base: &Self, out: &mut Vec<u8>) {
        if self.echo_ack != base.echo_ack {
            write_host(HostEvent::EchoAck(self.echo_ack.get()), out);
        }
        if self.screen.size() != base.screen.size() {
            write_host(HostEvent::Resize(self.screen.size().into()), out);
        }
        if let Some(past) = &self.past {
            past.diff_from(base.past.as_ref(), &base.screen, out);
        }
        let mut octets = Vec::new();
        frame(&base.screen, &self.screen, &self.dialect, &mut octets);
        if !octets.is_empty() {
            write_host(HostEvent::Bytes(&octets), out);
        }
        if let Some(line) = self.line
            && base.line != self.line
        {
            write_host(HostEvent::Line(line), out);
        }
        if let Some(status) = self.exit_status
            && base.exit_status != self.exit_status
        {
            write_host(HostEvent::ExitStatus(status), out);
        }
        if let Some(session) = &self.session
            && base.session != self.session
        {
            write_host(HostEvent::Session(session.fields()), out);
        }
    }

    fn apply(&mut self, diff: &[u8]) -> Result<(), BadDiff> {
        while self.apply_part(diff)? == Applied::Part {}
        Ok(())
    }

    fn apply_part(&mut self, diff: &[u8]) -> Result<Applied, BadDiff> {
        let events = read_host(diff)?;
        let mut applying = match self.applying.take() {
            Some(applying) => applying,
            None => Box::new(Applying::begin(self, &events, diff.len())?),
        };
        let mut turn = Turn::default();
        while let Some(event) = events.get(applying.event) {
            match *event {
                HostEvent::Bytes(octets) => {
                    if applying.advance(octets, &mut turn)? == Applied::Part {
                        self.applying = Some(applying);
                        return Ok(Applied::Part);
                    }
                    self.ignored += u64::from(!applying.terminal.take_replies().is_empty());
                }
                HostEvent::Resize(dimensions) => match dimensions.to_size() {
                    Some(size) => applying.terminal.resize(size),
                    None => self.ignored += 1,
                },
                HostEvent::EchoAck(number) => {
                    let number = StateNum::from(number);
                    self.ignored += u64::from(number < self.echo_ack);
                    self.echo_ack = self.echo_ack.max(number);
                }
                HostEvent::Line(line) => self.line = Some(line),
                HostEvent::ExitStatus(status) => self.exit_status = Some(status),
                HostEvent::Session(fields) => self.session = Some(Arc::new(fields.into())),
                HostEvent::Depth(fields) => applying.lines.depth(fields),
                HostEvent::Rows(_) if turn.is_over() => {
                    self.applying = Some(applying);
                    return Ok(Applied::Part);
                }
                HostEvent::Rows(fields) => {
                    let depth = self.past.as_ref().map_or(0, Past::depth);
                    let taken = applying.lines.rows(&fields, (&self.screen, depth));
                    self.ignored += u64::from(!taken);
                    turn.octets += fields.text.len();
                    turn.cells += applying.lines.take_work();
                }
            }
            applying.event += 1;
        }
        self.cells_touched = applying.terminal.cells_touched();
        self.screen = applying.terminal.into_screen();
        match (applying.lines.finish(), &mut self.past) {
            (Some((fields, news)), past) => past.get_or_insert_default().receive(fields, news),
            (None, Some(past)) => past.forget_news(),
            (None, None) => {}
        }
        Ok(Applied::Whole)
    }

    fn weight(&self) -> usize {
        self.screen.weight() + self.past.as_ref().map_or(0, Past::weight)
    }

    fn subtract(&mut self, known: &Self) {
        if let (Some(past), Some(known)) = (&mut self.past, &known.past) {
            past.subtract(known);
        }
    }
}

/// The work done in one turn.
#[derive(Debug, Default)]
struct Turn {
    cells: u64,
    octets: usize,
}

impl Turn {
    fn is_over(&self) -> bool {
        self.cells >= TURN_CELLS || self.octets >= TURN_OCTETS
    }
}

impl Applying {
    /// A diff resizes once at most: the peer's sizes are the user's, of which the last counts.
    fn begin(view: &View, events: &[HostEvent<'_>], octets: usize) -> Result<Self, BadDiff> {
        let mut sizes = events.iter().filter_map(|event| match event {
            HostEvent::Resize(dimensions) => dimensions.to_size(),
            _ => None,
        });
        let old = view.screen.size();
        let new = sizes.next().unwrap_or(old);
        if sizes.next().is_some() {
            return Err(BadDiff("the screen is resized twice"));
        }
        // Rows are shared with the state this one starts from; the emulator copies what it changes.
        let mut terminal = Terminal::resume(view.screen.clone(), view.dialect);
        // The lines would be gone with the terminal.
        terminal.set_history(Keeping::Nothing);
        let cells_max = diff_cells_max(old, new, octets);
        let told = view.past.as_ref().map_or_else(DepthFields::default, Past::fields);
        Ok(Self { terminal, lines: Reading::new(told), cells_max, event: 0, octets: 0 })
    }

    /// Reads on in host bytes, until they or the turn end.
    fn advance(&mut self, bytes: &[u8], turn: &mut Turn) -> Result<Applied, BadDiff> {
        while let Some(rest) = bytes.get(self.octets..).filter(|rest| !rest.is_empty()) {
            let before = self.terminal.cells_touched();
            if turn.is_over() {
                return Ok(Applied::Part);
            }
            let piece = &rest[..rest.len().min(TURN_OCTETS - turn.octets)];
            let room = (TURN_CELLS - turn.cells).min(self.cells_max.saturating_sub(before));
            let read = self.terminal.advance_within(piece, room);
            let touched = self.terminal.cells_touched();
            if touched > self.cells_max {
                return Err(BadDiff("it takes more work than a screen can need"));
            }
            self.octets += read;
            turn.octets += read;
            turn.cells += touched - before;
        }
        self.octets = 0;
        Ok(Applied::Whole)
    }
}

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.echo_ack == other.echo_ack
            && self.line == other.line
            && self.exit_status == other.exit_status
            && self.session == other.session
            && self.past == other.past
            && same(&self.screen, &other.screen, &self.dialect)
            && !announces(&self.screen, &other.screen, &self.dialect)
    }
}

#[cfg(test)]
mod tests {
    use rove_ssp::state::laws;

    use super::*;

    fn shown(start: &View, size: Size, octets: &str, echo_ack: u64) -> View {
        let mut terminal = Terminal::resume(start.screen.clone(), Dialect::ROVE);
        terminal.resize(size);
        terminal.advance(octets.as_bytes());
        let mut view = start.clone();
        view.show(terminal.into_screen());
        view.acknowledge_echo(Some(StateNum::from(echo_ack)));
        view
    }

    fn check_laws(peer: Peer, first: &str, size: Size, then: &str, echo_ack: u64) {
        let start = View::new(Size::DEFAULT, peer);
        let a = shown(&start, Size::DEFAULT, first, 3);
        laws(&start, &a);
        laws(&a, &shown(&a, size, then, echo_ack));
    }

    #[test]
    fn the_laws_hold() {
        let (same, wide, small) =
            (Size::DEFAULT, Size::clamped(30_i32, 120_i32), Size::clamped(5_i32, 10_i32));
        for peer in [Peer::Stock, Peer::Rove] {
            for (first, size, then, echo_ack) in [
                ("", same, "", 3),
                ("", same, "", 4),
                ("hello", same, " world", 9),
                ("hello", wide, "", 3),
                ("hello", small, "\x1b[3;3Hx", 3),
                ("\x1b[31mred\r\n", same, "\x1b[1;44m日本\x1b[m\x1b[?25l", 3),
                ("\x1b]0;title\x07", wide, "\x1b]2;other\x07\x1b[?2004h", 7),
                ("one\r\ntwo", same, "\x1b[?1049hfull screen", 3),
                ("\x1b[?1049hfull screen", same, "\x1b[?1049l", 3),
                (&"line\r\n".repeat(30), same, "\x1b[2;20r\x1b[20;1H\n\n\x1b[r", 3),
            ] {
                check_laws(peer, first, size, then, echo_ack);
            }
        }
    }

    /// Both ends hold a blank state 0, each of its own size (`mosh-protocol.md` §4.5).
    #[test]
    fn ends_that_begin_with_different_sizes() {
        for peer in [Peer::Stock, Peer::Rove] {
            let server = View::new(Size::DEFAULT, peer);
            let size = Size::clamped(30_i32, 100_i32);
            let mut client = View::new(size, peer);
            let next = shown(&server, size, "hello\x1b[30;100H!", 1);
            let mut diff = Vec::new();
            next.diff_from(&server, &mut diff);
            assert_eq!(client.apply(&diff), Ok(()));
            assert!(client == next, "{peer:?}");
        }
    }

    #[test]
    fn the_order_is_stocks_and_ours_comes_last() {
        let start = View::new(Size::DEFAULT, Peer::Rove);
        let mut end = shown(&start, Size::clamped(10_i32, 20_i32), "hello", 5);
        end.report(Some(LineMode::Raw.into()), Some(-1));
        end.describe(Arc::new(SessionInfo { name: "work".into(), ..SessionInfo::default() }));
        let mut diff = Vec::new();
        end.diff_from(&start, &mut diff);
        let events = read_host(&diff).map(|events| {
            let order = |event: &HostEvent<'_>| match event {
                HostEvent::EchoAck(_) => 'e',
                HostEvent::Resize(_) => 'r',
                HostEvent::Bytes(_) => 'b',
                HostEvent::Line(_) => 'l',
                HostEvent::ExitStatus(_) => 'x',
                HostEvent::Session(_) => 's',
                HostEvent::Depth(_) => 'd',
                HostEvent::Rows(_) => 'p',
            };
            events.iter().map(order).collect::<String>()
        });
        assert_eq!(events.as_deref(), Ok("erblxs"));
        laws(&start, &end);
        assert_ne!(start, end);
    }

    #[test]
    fn an_echo_ack_never_falls() {
        let mut view = View::new(Size::DEFAULT, Peer::Stock);
        for (newest, expected) in [(5, 5), (3, 5), (6, 6)] {
            view.acknowledge_echo(Some(StateNum::from(newest)));
            assert_eq!(view.echo_ack(), StateNum::from(expected));
        }
    }
}
