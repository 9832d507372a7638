//! Turns a program's bytes into a screen, and two screens into the shortest bytes between them.
//!
//! A [`Terminal`] reads what a program writes and holds its [`Screen`]. [`frame`] writes the shortest
//! sequences that turn one screen into another, for a reader that understands what its [`Dialect`]
//! says. [`project`] is that reader's view of a screen.
//!
//! ```
//! use rove_term::{Dialect, Size, Terminal, frame};
//!
//! let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
//! terminal.advance(b"one\r\ntwo\r\n\x1b[1mthree\x1b[0m");
//! let before = terminal.screen().clone();
//! terminal.advance(b"\x1b[H\x1b[2Kone, and more\x1b[3;6H");
//!
//! // What a reader that has the screen before needs in order to have the one after.
//! let mut diff = Vec::new();
//! frame(&before, terminal.screen(), &Dialect::ROVE, &mut diff);
//! assert!(diff.len() < 40, "{} octets", diff.len());
//!
//! let mut reader = Terminal::new(Size::DEFAULT, Dialect::ROVE);
//! diff.clear();
//! frame(reader.screen(), &before, &Dialect::ROVE, &mut diff);
//! reader.advance(&diff);
//! diff.clear();
//! frame(&before, terminal.screen(), &Dialect::ROVE, &mut diff);
//! reader.advance(&diff);
//! assert_eq!(reader.screen().row_text(0), "one, and more");
//! assert_eq!(reader.screen().row_text(2), "three");
//! ```
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

extern crate alloc;

mod color;
pub mod dialect;
mod emulator;
mod flag;
pub mod keyboard;
pub mod parser;
pub mod probe;
mod render;
pub mod screen;
pub mod terminal;
pub mod uri;
pub mod utf8;
pub mod width;

pub use dialect::terminfo::{self, Terminfo};
pub use dialect::{Ability, Colors, Dialect, Emulation};
pub use emulator::xtwinops::Resizing;
pub use keyboard::{Keyboard, KeyboardProtocol, Typed, is_mouse_motion};
pub use probe::Listener;
pub use render::{
    LineEdge, announces, enter, feed, frame, leave, project, repaint, repaint_below, same,
    scroll_out, unlike_row, write_line,
};
pub use screen::cell::{Cell, Glyph, Semantic, Width};
pub use screen::history::History;
pub use screen::modes::{CursorShape, Modes, Mouse, MouseEncoding};
pub use screen::overlay::Announced;
pub use screen::pool::{Link, Pool};
pub use screen::properties::{Rgb, SavesErased, Scheme, TerminalProperties};
pub use screen::row::{LineId, LineSize, Row};
pub use screen::style::{Attrs, Color, ColorKind, Style, Underline};
pub use screen::{Cursor, Screen, Size};
pub use screen::{cell, grid, history, modes, pool, prompt_marks, properties, row, style};
pub use terminal::{Checksums, Terminal};
pub use uri::LocalNames;
