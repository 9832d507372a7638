//! The keyboard protocols that a program asks for: xterm's key modifiers and kitty's flags.

use alloc::vec::Vec;

use crate::emulator::Emulator;
use crate::parser::Params;
use crate::screen::KEYBOARD_STACK_MAX;

impl Emulator<'_> {
    /// XTMODKEYS. Only modifyOtherKeys (4) changes what is sent.
    pub(crate) fn set_key_modifiers(&mut self, params: &Params) {
        match (params.len(), params.get(0)) {
            (0, _) | (1, 4) => self.state.modes.modify_other_keys = 0,
            (_, 4) => self.state.modes.modify_other_keys = params.get(1).min(3) as u8,
            _ => {}
        }
    }

    /// `CSI > n n`: disables a key modifier option.
    pub(crate) fn reset_key_modifiers(&mut self, params: &Params) {
        if params.get_or(0, 2) == 4 {
            self.state.modes.modify_other_keys = 0;
        }
    }

    pub(crate) fn keyboard_stack(&mut self) -> &mut Vec<u8> {
        let buffer = self.state.buffer as usize;
        &mut self.extras_mut().keyboard[buffer]
    }

    /// Kitty: `CSI > flags u`.
    pub(crate) fn push_keyboard(&mut self, flags: u16) {
        let current = self.state.modes.keyboard_flags;
        let stack = self.keyboard_stack();
        if stack.len() == KEYBOARD_STACK_MAX {
            stack.remove(0);
        }
        stack.push(current);
        self.state.modes.keyboard_flags = (flags & 31) as u8;
    }

    /// Kitty: `CSI < n u`. Popping more than there is clears the flags.
    pub(crate) fn pop_keyboard(&mut self, count: u16) {
        let stack = self.keyboard_stack();
        let keep = stack.len().saturating_sub(count.into());
        let flags = stack.get(keep).copied();
        let overdrawn = usize::from(count) > stack.len();
        stack.truncate(keep);
        self.state.modes.keyboard_flags = if overdrawn { 0 } else { flags.unwrap_or(0) };
    }

    /// Kitty: `CSI = flags ; how u`.
    pub(crate) fn set_keyboard(&mut self, params: &Params) {
        let flags = (params.get(0) & 31) as u8;
        let current = &mut self.state.modes.keyboard_flags;
        match params.get_or(1, 1) {
            1 => *current = flags,
            2 => *current |= flags,
            3 => *current &= !flags,
            _ => {}
        }
    }
}
