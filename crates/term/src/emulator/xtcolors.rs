//! Saves and restores a program's colours: XTPUSHCOLORS, XTPOPCOLORS, XTREPORTCOLORS.

use alloc::boxed::Box;
use alloc::format;

use crate::emulator::Emulator;
use crate::screen::palettes::{Palettes, Saved};

/// The cost of copying a palette, in cells.
const PALETTE_CELLS: usize = 1024;

impl Emulator<'_> {
    /// XTPUSHCOLORS: onto the stack, or into one of its slots, numbered from 1.
    pub(crate) fn push_colors(&mut self, slot: u16) {
        // The next change of a colour copies them all.
        self.touched(PALETTE_CELLS);
        let extras = self.extras_mut();
        let saved = Saved { palette: extras.palette.clone(), special: extras.special };
        let palettes = &mut extras.palettes;
        let index = usize::from(slot).checked_sub(1).unwrap_or(palettes.used);
        let Some(entry) = palettes.slots.get_mut(index) else { return };
        *entry = Some(Box::new(saved));
        palettes.used = index + 1;
        if slot == 0 {
            palettes.last = palettes.last.max(palettes.used);
        }
    }

    /// XTPOPCOLORS: from the stack, or from one of its slots, which keeps it.
    pub(crate) fn pop_colors(&mut self, slot: u16) {
        let extras = self.extras_mut();
        let palettes = &mut extras.palettes;
        let Some(index) = usize::from(slot).checked_sub(1).or(palettes.used.checked_sub(1)) else {
            return;
        };
        let Some(Some(saved)) = palettes.slots.get(index) else { return };
        extras.palette = saved.palette.clone();
        extras.special = saved.special;
        palettes.used = index;
    }

    /// XTREPORTCOLORS.
    pub(crate) fn report_colors(&mut self) {
        let Palettes { used, last, .. } = self.extras.palettes;
        self.reply(format!("\x1b[?{used};{last}#Q").as_bytes());
    }
}
