//! Writes the shortest octets in a reader's dialect that turn the screen it shows into the wanted one. Frames for the
//! network and paints for the user's terminal both come from here.
//!
//! Between frames every reader is in one known state, independent of the program's own emulator: margins unset,
//! autowrap on, origin and insert mode off, ASCII in use, no link open, the cursor firmly where the screen has it.
//! Peers keep the program's pen; a tty's is plain.

mod block;
mod damage;
mod degrade;
mod extras;
mod feed;
mod frame;
mod lines;
mod marks;
mod modes;
mod motion;
mod paint;
mod pen;
mod picture;
mod project;
mod row;
mod scroll;
mod shift;
mod tty;
mod view;

pub(crate) use crate::render::modes::seen as tty_modes;

pub use crate::render::extras::announces;
pub use crate::render::feed::{feed, scroll_out};
pub use crate::render::frame::{frame, repaint, repaint_below};
pub use crate::render::lines::{LineEdge, write_line};
pub use crate::render::project::{project, same, unlike_row};
pub use crate::render::tty::{enter, leave};
