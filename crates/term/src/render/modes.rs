//! Writes the sequences that switch a reader's modes, for those that it can have at all.

use alloc::vec::Vec;

use crate::dialect::{Ability, Dialect, Reader};
use crate::render::pen::put;
use crate::screen::modes::{CursorShape, Modes, Mouse, MouseEncoding};

/// Which modes a frame states.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Extent {
    /// Those that changed.
    Changes,
    /// All: what the reader had may be lost.
    Everything,
}

/// A mode that is on or off.
struct ModeAction {
    ability: Ability,
    number: u16,
    of: fn(&mut Modes) -> &mut bool,
}

impl ModeAction {
    const fn new(ability: Ability, number: u16, of: fn(&mut Modes) -> &mut bool) -> Self {
        Self { ability, number, of }
    }

    fn is_on(&self, mut modes: Modes) -> bool {
        *(self.of)(&mut modes)
    }
}

/// Terminals disagree on this mode's state after a reset, and users like theirs: a program that
/// never asked for it leaves it alone.
const ALTERNATE_SCROLL: u16 = 1007;

/// In the order in which they are written.
const SWITCHES: [ModeAction; 8] = [
    ModeAction::new(Ability::ReverseVideo, 5, |modes| &mut modes.reverse_video),
    ModeAction::new(Ability::FocusAndPaste, 2004, |modes| &mut modes.bracketed_paste),
    ModeAction::new(Ability::FocusAndPaste, 1004, |modes| &mut modes.focus_events),
    ModeAction::new(Ability::AlternateScroll, ALTERNATE_SCROLL, |modes| {
        &mut modes.alternate_scroll
    }),
    ModeAction::new(Ability::ApplicationKeys, 1, |modes| &mut modes.application_cursor),
    ModeAction::new(Ability::ApplicationKeys, 66, |modes| &mut modes.application_keypad),
    ModeAction::new(Ability::ApplicationKeys, 67, |modes| &mut modes.backarrow),
    ModeAction::new(Ability::SchemeReports, 2031, |modes| &mut modes.scheme_reports),
];

/// The modes of a program as a reader has them: those it cannot have are as after a reset.
pub(crate) fn seen(modes: &Modes, dialect: &Dialect) -> Modes {
    let mut seen = Modes { cursor_visible: modes.cursor_visible, ..Modes::RESET };
    for switch in &SWITCHES {
        if dialect.can(switch.ability) {
            *(switch.of)(&mut seen) = switch.is_on(*modes);
        }
    }
    if dialect.can(Ability::CursorShape) {
        (seen.cursor_shape, seen.cursor_blink) = (modes.cursor_shape, modes.cursor_blink);
    }
    if dialect.can(Ability::Mouse) {
        let pixels = modes.mouse_encoding == MouseEncoding::SgrPixels;
        seen.mouse = modes.mouse;
        seen.mouse_encoding = match pixels && !dialect.can(Ability::MousePixels) {
            true => MouseEncoding::Sgr,
            false => modes.mouse_encoding,
        };
    }
    see_keyboard(modes, dialect, &mut seen);
    seen
}

/// The level for a terminal that has only modifyOtherKeys, in place of kitty's flags: all keys with modifiers.
const MODIFIERS_FOR_KITTY: u8 = 2;
/// And the other way round: unambiguous keys, with the character that Shift gives.
const KITTY_FOR_MODIFIERS: u8 = 1 | 4;

/// Protocols of keys. The user's terminal is asked for the one it has: [`crate::Keyboard`] writes what it
/// sends in the one that is wanted.
fn see_keyboard(modes: &Modes, dialect: &Dialect, seen: &mut Modes) {
    let (kitty, modify) = (Ability::KittyKeys, Ability::ModifyOtherKeys);
    let instead = dialect.reader() == Reader::Tty;
    if dialect.can(modify) {
        seen.modify_other_keys = match modes.keyboard_flags {
            1.. if instead && !dialect.can(kitty) => MODIFIERS_FOR_KITTY,
            _ => modes.modify_other_keys,
        };
    }
    if dialect.can(kitty) {
        seen.keyboard_flags = match (modes.keyboard_flags, modes.modify_other_keys) {
            (0, 1..) if instead && !dialect.can(modify) => KITTY_FOR_MODIFIERS,
            (flags, _) => flags,
        };
    }
}

/// Switches a reader's modes from `old` to `new`, both as seen; all but the cursor's visibility. Whether
/// that reset the pen.
pub(super) fn write(
    old: &Modes,
    new: &Modes,
    extent: Extent,
    dialect: &Dialect,
    out: &mut Vec<u8>,
) -> bool {
    for switch in &SWITCHES {
        let on = switch.is_on(*new);
        let changes = on != switch.is_on(*old);
        let stated = match extent {
            Extent::Changes => changes,
            Extent::Everything => changes || on || switch.number != ALTERNATE_SCROLL,
        };
        if stated && dialect.can(switch.ability) {
            write_private(switch.number, on, out);
        }
    }
    if dialect.can(Ability::Mouse) {
        write_mouse(old, new, extent, dialect, out);
    }
    if dialect.can(Ability::CursorShape) {
        write_cursor(old, new, extent, out);
    }
    let changed = extent == Extent::Everything || old.modify_other_keys != new.modify_other_keys;
    if !changed || !dialect.can(Ability::ModifyOtherKeys) {
        return false;
    }
    let level = new.modify_other_keys;
    if dialect.reader() != Reader::Tty {
        put(out, format_args!("\x1b[>4;{level}m"));
        return false;
    }
    match level {
        // As the user had it.
        0 => out.extend_from_slice(b"\x1b[>4m"),
        1.. => put(out, format_args!("\x1b[>4;{level}m")),
    }
    // A terminal that overlooks the `>` underlines from now on.
    out.extend_from_slice(b"\x1b[0m");
    true
}

/// Sets the flags of the kitty keyboard protocol, of which each screen has its own.
pub(super) fn write_keyboard(flags: u8, dialect: &Dialect, out: &mut Vec<u8>) {
    if dialect.can(Ability::KittyKeys) {
        put(out, format_args!("\x1b[={flags};1u"));
    }
}

/// Shows or hides the cursor.
pub(super) fn write_visibility(on: bool, out: &mut Vec<u8>) {
    write_private(25, on, out);
}

/// Mouse modes exclude one another in stock's emulator and in ours, but not in every terminal: the
/// old one is switched off first.
fn write_mouse(old: &Modes, new: &Modes, extent: Extent, dialect: &Dialect, out: &mut Vec<u8>) {
    let all_modes = [Mouse::Any, Mouse::Button, Mouse::Highlight, Mouse::Normal, Mouse::X10];
    let known = extent == Extent::Changes;
    if !known || old.mouse != new.mouse {
        for mouse in all_modes {
            if !known || mouse == old.mouse {
                mouse.mode().into_iter().for_each(|mode| write_private(mode, false, out));
            }
        }
        new.mouse.mode().into_iter().for_each(|mode| write_private(mode, true, out));
    }
    let pixels = dialect.can(Ability::MousePixels).then_some(MouseEncoding::SgrPixels);
    let all_encodings = [MouseEncoding::Urxvt, MouseEncoding::Sgr, MouseEncoding::Utf8];
    if !known || old.mouse_encoding != new.mouse_encoding {
        for encoding in pixels.into_iter().chain(all_encodings) {
            if !known || encoding == old.mouse_encoding {
                encoding.mode().into_iter().for_each(|mode| write_private(mode, false, out));
            }
        }
        new.mouse_encoding.mode().into_iter().for_each(|mode| write_private(mode, true, out));
    }
}

fn write_cursor(old: &Modes, new: &Modes, extent: Extent, out: &mut Vec<u8>) {
    let look = |modes: &Modes| (modes.cursor_shape, modes.cursor_blink);
    if extent == Extent::Changes && look(old) == look(new) {
        return;
    }
    let shape = match (new.cursor_shape, new.cursor_blink) {
        (CursorShape::Default, _) => 0,
        (CursorShape::Block, true) => 1,
        (CursorShape::Block, false) => 2,
        (CursorShape::Underline, true) => 3,
        (CursorShape::Underline, false) => 4,
        (CursorShape::Bar, true) => 5,
        (CursorShape::Bar, false) => 6,
    };
    put(out, format_args!("\x1b[{shape} q"));
    if new.cursor_shape == CursorShape::Default && new.cursor_blink {
        write_private(12, true, out);
    }
}

fn write_private(mode: u16, on: bool, out: &mut Vec<u8>) {
    put(out, format_args!("\x1b[?{mode}{}", if on { 'h' } else { 'l' }));
}
