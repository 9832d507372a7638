//! Modes: SM, RM, DECSET and its relatives, and the alternate screen.

use triomphe::Arc;

use crate::emulator::Emulator;
use crate::emulator::edit::{Extent, Selective};
use crate::emulator::profile::Functions;
use crate::parser::Params;
use crate::screen::Buffer;
use crate::screen::grid::Grid;
use crate::screen::modes::{CursorShape, Guard, Modes, Mouse, MouseEncoding};

/// Whether a mode is being set or reset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ModeAction {
    Set,
    Reset,
}

impl ModeAction {
    fn is_on(self) -> bool {
        self == Self::Set
    }
}

/// The private modes stock mosh knows (`mosh-protocol.md` §6).
const STOCK_MODES: [u16; 17] =
    [1, 3, 5, 6, 7, 9, 25, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 2004];

/// The number under which XTSAVE keeps a mode and XTRESTORE sets it again.
fn saved_as(number: u16) -> u16 {
    match number {
        1047 | 1049 => 47,
        number => number,
    }
}

/// The flag of a private mode that has no other effect.
fn private_flag(modes: &mut Modes, number: u16) -> Option<&mut bool> {
    Some(match number {
        1 => &mut modes.application_cursor,
        5 => &mut modes.reverse_video,
        6 => &mut modes.origin,
        7 => &mut modes.autowrap,
        8 => &mut modes.auto_repeat,
        12 => &mut modes.cursor_blink,
        25 => &mut modes.cursor_visible,
        40 => &mut modes.allow_columns,
        41 => &mut modes.more_fix,
        45 => &mut modes.reverse_wrap,
        66 => &mut modes.application_keypad,
        67 => &mut modes.backarrow,
        69 => &mut modes.left_right_margins,
        95 => &mut modes.keep_on_columns,
        1004 => &mut modes.focus_events,
        1007 => &mut modes.alternate_scroll,
        1045 => &mut modes.extended_reverse_wrap,
        2004 => &mut modes.bracketed_paste,
        2026 => &mut modes.synchronized,
        2027 => &mut modes.graphemes,
        2031 => &mut modes.scheme_reports,
        2048 => &mut modes.resize_reports,
        _ => return None,
    })
}

/// Private modes that programs set and query, but that change nothing here, and whether a fresh xterm has them on:
/// smooth scroll, print form feed and extent, scroll bar, font shifting, national sets, margin bell, scrolling on
/// output and on a key, the effects of Meta, Alt, Num Lock and Delete, selections, and readline's clicks and pastes.
const KEPT: [(u16, bool); 24] = [
    (4, false),
    (18, false),
    (19, false),
    (30, false),
    (35, true),
    (42, false),
    (44, false),
    (1010, true),
    (1011, false),
    (1034, true),
    (1035, true),
    (1036, false),
    (1037, false),
    (1039, false),
    (1040, true),
    (1041, false),
    (1042, false),
    (1043, false),
    (1044, false),
    (2001, false),
    (2002, false),
    (2003, false),
    (2005, false),
    (2006, false),
];

/// The bit of `Modes::kept`, and whether the mode is on without it.
fn kept_bit(number: u16) -> Option<(u32, bool)> {
    let index = KEPT.iter().position(|(kept, _)| *kept == number)?;
    Some((1 << index, KEPT[index].1))
}

/// ANSI modes that a VT520 knows and can never set: GATM, SRTM, VEM, HEM, PUM, FEAM to EBM.
const NEVER_SET: [u16; 12] = [1, 5, 7, 10, 11, 13, 14, 15, 16, 17, 18, 19];

/// A mode's state as DECRQM reports it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum ModeState {
    Unknown = 0,
    Set = 1,
    Reset = 2,
    AlwaysSet = 3,
    NeverSet = 4,
}

impl ModeState {
    fn of(on: Option<bool>) -> Self {
        match on {
            None => Self::Unknown,
            Some(true) => Self::Set,
            Some(false) => Self::Reset,
        }
    }
}

fn mouse(number: u16) -> Option<Mouse> {
    [Mouse::X10, Mouse::Normal, Mouse::Highlight, Mouse::Button, Mouse::Any]
        .into_iter()
        .find(|mouse| mouse.mode() == Some(number))
}

fn mouse_encoding(number: u16) -> Option<MouseEncoding> {
    [MouseEncoding::Utf8, MouseEncoding::Sgr, MouseEncoding::Urxvt, MouseEncoding::SgrPixels]
        .into_iter()
        .find(|encoding| encoding.mode() == Some(number))
}

fn ansi_flag(modes: &mut Modes, number: u16) -> Option<&mut bool> {
    Some(match number {
        2 => &mut modes.keyboard_locked,
        4 => &mut modes.insert,
        12 => &mut modes.send_receive,
        20 => &mut modes.newline,
        _ => return None,
    })
}

impl Emulator<'_> {
    /// SM and RM.
    pub(crate) fn set_modes(&mut self, params: &Params, switch: ModeAction) {
        for &number in params.all() {
            if self.profile.functions == Functions::Stock && number != 4 {
                continue;
            }
            if let Some(flag) = ansi_flag(&mut self.state.modes, number) {
                *flag = switch.is_on();
            }
        }
    }

    /// DECSET and DECRST.
    pub(crate) fn set_private_modes(&mut self, params: &Params, switch: ModeAction) {
        for &number in params.all() {
            if self.profile.functions == Functions::All || STOCK_MODES.contains(&number) {
                self.set_private_mode(number, switch);
            }
        }
    }

    /// National sets came with the VT200, left and right margins with the VT400, DECNCSM with the VT500.
    fn level_has(&self, number: u16) -> bool {
        match number {
            42 => self.state.modes.level >= 2,
            69 => self.state.modes.level >= 4,
            95 => self.state.modes.level >= 5,
            _ => true,
        }
    }

    fn set_private_mode(&mut self, number: u16, switch: ModeAction) {
        if !self.level_has(number) {
            return;
        }
        if number == 2026 {
            self.bracket_update(switch);
        }
        let on = switch.is_on();
        if let Some(flag) = private_flag(&mut self.state.modes, number) {
            *flag = on;
            return self.private_mode_was_set(number, switch);
        }
        if let Some((bit, usual)) = kept_bit(number) {
            let kept = &mut self.state.modes.kept;
            *kept = if on != usual { *kept | bit } else { *kept & !bit };
        } else if let Some(mouse) = mouse(number) {
            self.state.modes.mouse = if on { mouse } else { Mouse::Off };
        } else if let Some(encoding) = mouse_encoding(number) {
            self.state.modes.mouse_encoding = if on { encoding } else { MouseEncoding::Default };
        } else {
            self.set_screen_mode(number, switch);
        }
    }

    fn set_screen_mode(&mut self, number: u16, switch: ModeAction) {
        match (number, switch) {
            (3, _) => self.set_columns(switch),
            (47 | 1047, ModeAction::Set) => self.show(Buffer::Alternate),
            (47, ModeAction::Reset) => self.show(Buffer::Primary),
            (1047, ModeAction::Reset) => self.leave_alternate(),
            (1048, ModeAction::Set) => self.save_cursor(),
            (1048, ModeAction::Reset) => self.restore_cursor(),
            (1049, ModeAction::Set) => {
                self.save_cursor();
                self.show(Buffer::Alternate);
                self.erase_display(Extent::All, Selective::Guarded);
            }
            (1049, ModeAction::Reset) => {
                self.leave_alternate();
                self.restore_cursor();
            }
            _ => {}
        }
    }

    /// Side effects of some modes.
    fn private_mode_was_set(&mut self, number: u16, switch: ModeAction) {
        match number {
            6 => self.address(0, 0),
            69 if switch.is_on() => self.forget_double_lines(),
            69 => {
                self.state.margins.left = 0;
                self.state.margins.right = self.state.size.cols;
            }
            2048 if switch.is_on() => {
                let report = crate::screen::encode::in_band_size(self.state.size, self.around);
                self.reply(&report);
            }
            _ => {}
        }
    }

    /// DECCOLM. Where the size belongs to the user, only its other effects happen.
    fn set_columns(&mut self, switch: ModeAction) {
        if self.profile.functions == Functions::All && !self.state.modes.allow_columns {
            return;
        }
        self.state.modes.columns_132 = switch.is_on();
        self.set_size(self.state.size.rows, if switch.is_on() { 132 } else { 80 });
        let modes = &mut self.state.modes;
        if !modes.keep_on_columns {
            self.erase_display(Extent::All, Selective::Guarded);
        }
        if self.profile.functions == Functions::All {
            self.reset_margins();
        }
        self.address(0, 0);
    }

    /// Whether a private mode is set; `None` if there is no such mode.
    fn private_mode(&self, number: u16) -> Option<bool> {
        if !self.level_has(number) {
            return None;
        }
        let mut modes = self.state.modes;
        if let Some(flag) = private_flag(&mut modes, number) {
            return Some(*flag);
        }
        if let Some((bit, usual)) = kept_bit(number) {
            return Some((modes.kept & bit != 0) != usual);
        }
        if let Some(mouse) = mouse(number) {
            return Some(modes.mouse == mouse);
        }
        if let Some(encoding) = mouse_encoding(number) {
            return Some(modes.mouse_encoding == encoding);
        }
        match number {
            3 => Some(modes.columns_132),
            47 | 1047 | 1049 => Some(self.state.buffer == Buffer::Alternate),
            1048 => Some(true),
            _ => None,
        }
    }

    /// A private mode's state for DECRQM. Programs cannot enter VT52 mode (2 reset); 13 and 14 belong to xterm's menu
    /// for the blinking cursor.
    pub(crate) fn private_mode_state(&self, number: u16) -> ModeState {
        match number {
            2 | 14 => ModeState::AlwaysSet,
            13 => ModeState::Reset,
            46 => ModeState::NeverSet,
            _ => ModeState::of(self.private_mode(number)),
        }
    }

    /// An ANSI mode's state for DECRQM. CRM (3) is known, and refused.
    pub(crate) fn ansi_mode_state(&self, number: u16) -> ModeState {
        let mut modes = self.state.modes;
        if NEVER_SET.contains(&number) {
            return ModeState::NeverSet;
        }
        match number {
            3 => ModeState::Reset,
            _ => ModeState::of(ansi_flag(&mut modes, number).map(|flag| *flag)),
        }
    }

    /// DECSCL: a VT level, and a soft reset. The other parameter asks for 8-bit answers and is ignored: they would
    /// not be UTF-8.
    pub(crate) fn set_level(&mut self, level: u16) {
        if let 61..=65 = level {
            self.soft_reset();
            self.state.modes.level = (level - 60) as u8;
        }
    }

    /// XTSAVE. All modes of the alternate screen count as one mode, and 1048 is DECSC (xterm).
    pub(crate) fn save_private_modes(&mut self, params: &Params) {
        for &number in params.all() {
            if number == 1048 {
                self.save_cursor();
            } else if let Some(on) = self.private_mode(number) {
                self.extras_mut().saved_modes.insert(saved_as(number), on);
            }
        }
    }

    /// XTRESTORE. A mode that was never saved is reset, as in xterm.
    pub(crate) fn restore_private_modes(&mut self, params: &Params) {
        for &number in params.all() {
            let number = saved_as(number);
            let saved = self.extras.saved_modes.get(&number).copied().unwrap_or(false);
            self.set_private_mode(number, if saved { ModeAction::Set } else { ModeAction::Reset });
        }
    }

    /// Shows the other grid as the program left it, or blank the first time.
    pub(crate) fn show(&mut self, buffer: Buffer) {
        if self.state.buffer == buffer {
            return;
        }
        let mut other = match self.hidden.take() {
            Some(grid) => grid,
            None => {
                self.grid.touch_rows(self.rows(), self.cols());
                Arc::new(Grid::blank(self.rows(), self.cols(), &mut self.state.next_line))
            }
        };
        // One reference a row, and what was counted goes on.
        self.touched(self.rows());
        let touched = self.grid.take_touched();
        core::mem::swap(self.grid, Arc::make_mut(&mut other));
        self.touched(touched as usize);
        *self.hidden = Some(other);
        self.state.buffer = buffer;
        let flags = &mut self.state.modes.keyboard_flags;
        core::mem::swap(flags, &mut Arc::make_mut(self.extras).hidden_keyboard_flags);
        self.state.last_cell = None;
    }

    /// Returns to the primary screen. Forgets the alternate one and its deferred wrap.
    fn leave_alternate(&mut self) {
        if self.state.buffer == Buffer::Alternate {
            self.show(Buffer::Primary);
            *self.hidden = None;
            self.state.cursor.pending_wrap = false;
        }
    }

    /// DECSCUSR.
    pub(crate) fn set_cursor_style(&mut self, style: u16) {
        let modes = &mut self.state.modes;
        modes.cursor_shape = match style {
            0 => CursorShape::Default,
            1 | 2 => CursorShape::Block,
            3 | 4 => CursorShape::Underline,
            5 | 6 => CursorShape::Bar,
            _ => return,
        };
        modes.cursor_blink = style % 2 == 1;
    }

    /// DECSCA.
    pub(crate) fn set_protection(&mut self, param: u16) {
        match param {
            1 => self.state.pen.protected = true,
            0 | 2 => self.state.pen.protected = false,
            _ => return,
        }
        self.state.modes.guard = Guard::Dec;
        self.pen_changed();
    }

    /// SPA and EPA.
    pub(crate) fn set_guarded(&mut self, switch: ModeAction) {
        self.state.pen.protected = switch.is_on();
        if switch.is_on() {
            self.state.modes.guard = Guard::Iso;
        }
        self.pen_changed();
    }
}
