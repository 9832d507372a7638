//! Turns a program's bytes into a screen, and two screens into the shortest bytes between them.
#![forbid(unsafe_code)]

pub mod cell;
mod cluster;
mod color;
mod csi;
pub mod dialect;
mod edit;
mod emulator;
mod escape;
pub mod grid;
pub mod history;
mod memo;
pub mod modes;
mod motion;
mod osc;
mod overlay;
pub mod parser;
pub mod pool;
mod profile;
mod rectangle;
mod reflow;
mod render;
mod repeat;
mod report;
pub mod row;
pub mod screen;
mod sgr;
pub mod style;
mod switch;
pub mod terminal;
mod text;
pub mod utf8;
pub mod width;
mod window;

pub use cell::{Cell, Glyph, Semantic, Width};
pub use dialect::{Ability, Colors, Dialect, Emulation};
pub use history::History;
pub use modes::{CursorShape, Modes, Mouse, MouseEncoding};
pub use pool::{Link, Pool};
pub use render::{announces, enter, frame, leave, project, repaint, same};
pub use row::{LineId, LineSize, Row};
pub use screen::{Cursor, Screen, Size};
pub use style::{Attrs, Color, ColorKind, Style, Underline};
pub use terminal::{Checksums, Terminal};
pub use window::Resizing;
