//! Writes the sequences before a client's first paint and after its last, which leave the user's terminal as it was.

use alloc::vec::Vec;

use crate::dialect::{Ability, Dialect};
use crate::render::extras;
use crate::render::modes::{self, Extent};
use crate::screen::modes::Modes;
use crate::screen::{Buffer, Palette, Screen};

/// Appends the sequences before the first [`repaint`](crate::repaint). The caller sets raw mode, application cursor
/// keys and, if the client wants a screen of its own, that screen.
pub fn enter(dialect: &Dialect, out: &mut Vec<u8>) {
    if dialect.can(Ability::Titles) {
        out.extend_from_slice(b"\x1b[22;0t");
    }
}

/// Appends the sequences that undo all changes of frames to a terminal: modes, pen, margins, link, colours, cursor,
/// titles, progress, directory, and the alternate screen if `shown` is on it.
///
/// `None` for `shown` when that is unknown, as after a crash: then the terminal leaves the alternate screen to be
/// safe. `colors` are those that frames and repaints have ever changed; others may be as the user set them. More than
/// stock mosh undoes (mosh-protocol.md §11, weakness 10).
pub fn leave(shown: Option<&Screen>, colors: &Palette, dialect: &Dialect, out: &mut Vec<u8>) {
    if dialect.can(Ability::Links) {
        out.extend_from_slice(b"\x1b]8;;\x07");
    }
    out.extend_from_slice(b"\x1b[r\x1b[0m");
    let alternate = shown.is_none_or(|screen| screen.buffer() == Buffer::Alternate);
    if alternate && dialect.can(Ability::Alternate) {
        modes::write_keyboard(0, dialect, out);
        out.extend_from_slice(b"\x1b[?1049l");
    }
    modes::write_keyboard(0, dialect, out);
    modes::write(&Modes::RESET, &Modes::RESET, Extent::Everything, dialect, out);
    if dialect.can(Ability::Palette) {
        extras::reset_palette(colors, out);
    }
    extras::write_end(shown, dialect, out);
    if dialect.can(Ability::Titles) {
        out.extend_from_slice(b"\x1b[23;0t");
    }
    modes::write_visibility(true, out);
    out.extend_from_slice(b"\x1b[?7h");
    if dialect.can(Ability::Synchronized) {
        out.extend_from_slice(b"\x1b[?2026l");
    }
}
