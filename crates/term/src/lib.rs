//! Turns a program's bytes into a screen, and two screens into the shortest bytes between them.
#![forbid(unsafe_code)]

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
pub use keyboard::{Keyboard, KeyboardProtocol, Typed};
pub use probe::Listener;
pub use render::{announces, enter, frame, leave, project, repaint, same};
pub use screen::cell::{Cell, Glyph, Semantic, Width};
pub use screen::history::History;
pub use screen::modes::{CursorShape, Modes, Mouse, MouseEncoding};
pub use screen::overlay::Announced;
pub use screen::pool::{Link, Pool};
pub use screen::properties::{Rgb, Scheme, TerminalProperties};
pub use screen::row::{LineId, LineSize, Row};
pub use screen::style::{Attrs, Color, ColorKind, Style, Underline};
pub use screen::{Cursor, Screen, Size};
pub use screen::{cell, grid, history, modes, pool, prompt_marks, properties, row, style};
pub use terminal::{Checksums, Terminal};
pub use uri::LocalNames;
