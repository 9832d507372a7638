//! Turns a program's bytes into a screen, and two screens into the shortest bytes between them.
#![forbid(unsafe_code)]
// The emulator that drives the data model follows in the next change.
#![allow(dead_code)]

pub mod cell;
pub mod dialect;
pub mod grid;
pub mod modes;
pub mod pool;
mod render;
pub mod row;
pub mod screen;
pub mod style;
pub mod width;

pub use cell::{Cell, Glyph, Semantic, Width};
pub use dialect::{Ability, Colors, Dialect, Emulation};
pub use modes::{CursorShape, Modes, Mouse, MouseEncoding};
pub use pool::{Link, Pool};
pub use render::{announces, enter, frame, leave, project, repaint, same};
pub use row::{LineId, LineSize, Row};
pub use screen::{Cursor, Screen, Size};
pub use style::{Attrs, Color, ColorKind, Style, Underline};
