//! Watches what becomes of a screen that a simulated program erases whole: its lines go into the history as they stood
//! there, each once and in order, where the user's terminal keeps them, and else none does.

use std::ops::Range;

use rove_session::Server;
use rove_ssp::Time;
use rove_term::screen::Buffer;
use rove_term::{Cell, SavesErased, Screen};

/// What becomes of a screen that the program clears.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cleared {
    /// It is gone, and the program clears none beside what its kind does.
    Lost,
    /// It goes into the history, where the user's terminal puts it there (`KeepCleared`). The program clears now and then.
    Kept,
}

/// Screens that a program has erased.
#[derive(Clone, Debug)]
pub(crate) struct Erasures {
    cleared: Cleared,
    /// The erasures that have put lines into the history so far: from then on they all do.
    saves: SavesErased,
    saved: u64,
}

impl Erasures {
    /// None yet, in a session with such a terminal.
    pub(crate) fn new(cleared: Cleared) -> Erasures {
        Erasures { cleared, saves: SavesErased::Never, saved: 0 }
    }

    /// How many screens went into the history.
    pub(crate) fn saved(&self) -> u64 {
        self.saved
    }

    /// The server takes what its program has written.
    ///
    /// # Errors
    /// If an erased screen is not in the history, in part, or without reason.
    pub(crate) fn write(
        &mut self,
        now: Time,
        server: &mut Server,
        output: &[u8],
    ) -> Result<(), String> {
        let mut rest = output;
        while let Some((at, kind)) = first_erasure(rest) {
            server.handle_output(now, &rest[..at.start]);
            self.erase(now, server, &rest[at.clone()], kind)?;
            rest = &rest[at.end..];
        }
        server.handle_output(now, rest);
        Ok(())
    }

    fn erase(
        &mut self,
        now: Time,
        server: &mut Server,
        sequence: &[u8],
        kind: SavesErased,
    ) -> Result<(), String> {
        // The first octet ends a character that is not whole, which then stands there.
        let (escape, rest) = sequence.split_at(1);
        server.handle_output(now, escape);
        let before = server.screen().clone();
        let end = server.history().end();
        server.handle_output(now, rest);
        let saved = server.history().end() - end;
        let used = used_rows(&before, kind);
        // What comes after the end of the program is not taken.
        let is_due = kind <= self.saves && server.exit_status().is_none();
        if saved != used && (saved > 0 || is_due) || saved > 0 && self.cleared == Cleared::Lost {
            return Err(format!("of {used} rows that are erased {saved} go into the history"));
        }
        let mut pool = before.pool().clone();
        for row in 0..saved {
            let (was, position) = (before.row(row as u16), end + row);
            let line = server.history().row_at(position, before.size().cols, &mut pool);
            let is_same = line.is_some_and(|line| {
                line.cells() == was.cells() && line.is_wrapped() == was.is_wrapped()
            });
            if !is_same {
                let text = before.row_text(row as u16);
                return Err(format!("row {row} is another one in the history: {text:?}"));
            }
        }
        if saved > 0 {
            self.saves = self.saves.max(kind);
            self.saved += 1;
        }
        Ok(())
    }
}

/// The rows that an erasure of this kind takes off a screen with a history, if it takes all: down to the last one in use.
fn used_rows(screen: &Screen, kind: SavesErased) -> u64 {
    let cursor = screen.cursor();
    let is_whole = kind == SavesErased::All || (cursor.row, cursor.col) == (0, 0);
    if !is_whole || screen.buffer() != Buffer::Primary {
        return 0;
    }
    let is_used = |row: &u16| screen.row(*row).cells().iter().any(|cell| *cell != Cell::BLANK);
    (0..screen.size().rows).rfind(is_used).map_or(0, |last| u64::from(last) + 1)
}

/// Where ED 2 or ED 0 stands first.
fn first_erasure(octets: &[u8]) -> Option<(Range<usize>, SavesErased)> {
    let mut escapes = octets.iter().enumerate().filter(|(_, octet)| **octet == b'\x1b');
    escapes.find_map(|(at, _)| {
        let kinds = [(ED_2, SavesErased::All), (ED_0, SavesErased::FromHome)];
        let (sequence, kind) =
            kinds.into_iter().find(|(sequence, _)| octets[at..].starts_with(sequence))?;
        Some((at..at + sequence.len(), kind))
    })
}

const ED_2: &[u8] = b"\x1b[2J";
const ED_0: &[u8] = b"\x1b[J";
