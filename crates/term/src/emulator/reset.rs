//! Soft and full reset: DECSTR and RIS.

use crate::emulator::Emulator;
use crate::emulator::edit::{Extent, Selective};
use crate::emulator::profile::Functions;
use crate::screen::modes::{CursorShape, Guard, Modes};
use crate::screen::{Buffer, Charsets, Cursor, Extras, Pen, SavedCursor, Titles, default_tabs};

impl Emulator<'_> {
    /// DECSTR.
    pub(crate) fn soft_reset(&mut self) {
        let modes = &mut self.state.modes;
        modes.insert = false;
        modes.origin = false;
        modes.cursor_visible = true;
        modes.application_cursor = false;
        self.state.pen = Pen::default();
        self.pen_changed();
        let buffer = self.state.buffer as usize;
        self.extras_mut().saved[buffer] = SavedCursor::default();
        self.reset_margins();
        if self.profile.functions == Functions::Stock {
            return;
        }
        let modes = &mut self.state.modes;
        modes.application_keypad = false;
        modes.keyboard_locked = false;
        modes.autowrap = true;
        modes.reverse_wrap = false;
        modes.extended_reverse_wrap = false;
        modes.left_right_margins = false;
        modes.guard = Guard::Dec;
        modes.modify_other_keys = 0;
        modes.keyboard_flags = 0;
        modes.rectangle_extent = 0;
        modes.cursor_shape = CursorShape::Default;
        modes.cursor_blink = false;
        modes.synchronized = false;
        self.updates.forget();
        self.state.charsets = Charsets::default();
        self.keyboard_stack().clear();
        self.extras_mut().sgr_stack.clear();
        // The colours of OSC 4, not those of OSC 5 and 10 to 19 (xterm).
        if !self.extras.palette.entries.is_empty() {
            self.palette_mut().entries.clear();
        }
    }

    /// RIS.
    pub(crate) fn full_reset(&mut self) {
        if self.state.buffer == Buffer::Alternate {
            self.show(Buffer::Primary);
        }
        *self.hidden = None;
        if self.state.modes.columns_132 {
            self.set_size(self.state.size.rows, 80);
        }
        let stock = self.profile.functions == Functions::Stock;
        self.state.modes = Modes::RESET;
        self.updates.forget();
        self.state.pen = Pen::default();
        self.pen_changed();
        self.erase_display(Extent::All, Selective::Guarded);
        self.state.cursor = Cursor::default();
        self.state.charsets = Charsets::default();
        self.state.last_cell = None;
        self.state.last_char = None;
        self.state.double_lines = false;
        self.reset_margins();
        self.history.clear();
        let extras = self.extras_mut();
        let mut fresh = Extras { tabs: default_tabs(), ..Default::default() };
        fresh.notification = extras.notification.clone();
        fresh.directory = extras.directory.clone();
        fresh.titles = extras.titles.clone();
        fresh.clipboard = extras.clipboard.clone();
        fresh.saved_modes = extras.saved_modes.clone();
        if stock {
            // Stock forgets the title and empties the clipboard, which is then an event of its own.
            fresh.titles = Titles { window: None, icon: extras.titles.icon.clone() };
            fresh.clipboard = alloc::sync::Arc::new(extras.clipboard.cleared());
        }
        *extras = fresh;
    }
}
