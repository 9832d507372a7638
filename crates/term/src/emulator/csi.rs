//! Carries out control sequences: each function of the table is a method of the emulator.

use self::functions::Function as F;
use self::functions::Stock::{KeepsWrap, Known};
use self::functions::{Function, level_of, lookup};
use crate::emulator::Emulator;
use crate::emulator::edit::{Extent, Selective};
use crate::emulator::modes::ModeAction;
use crate::emulator::profile::{DeferredWrap, Functions};
use crate::parser::{Params, Sequence};
use crate::screen::SavedCursor;
use crate::screen::modes::LEVEL_MAX;

pub(crate) mod functions;

impl Emulator<'_> {
    /// Carries out a control sequence.
    #[inline]
    pub(crate) fn control_sequence(&mut self, sequence: &Sequence) {
        let found = lookup(sequence);
        if self.profile.deferred_wrap == DeferredWrap::Controls {
            let keeps = matches!(found, Some((_, KeepsWrap)));
            self.state.cursor.pending_wrap &= keeps;
        }
        match (found, self.profile.functions) {
            (Some((function, _)), Functions::All) => {
                let follows = self.state.last_cell.take().is_some();
                // Only what was written just before can be repeated, and only renditions have parts (xterm).
                let joined = sequence.params.has_parts() && function != F::Rendition;
                if !joined && (function != F::Repeat || follows) {
                    self.perform(function, sequence);
                }
            }
            (None, Functions::All) => self.state.last_cell = None,
            (Some((function, Known | KeepsWrap)), Functions::Stock) => {
                self.perform(function, sequence);
            }
            _ => {}
        }
    }

    fn perform(&mut self, function: Function, sequence: &Sequence) {
        let params = &sequence.params;
        let count = params.get_or(0, 1);
        match function {
            F::CursorUp | F::RowUp => self.up(count),
            F::CursorDown => self.down(count),
            F::CursorRight => self.right(count),
            F::CursorLeft | F::ColumnLeft => self.left(count),
            F::NextLine => {
                self.down(count);
                self.carriage_return();
            }
            F::PreviousLine => {
                self.up(count);
                self.carriage_return();
            }
            F::Column => self.address_column(count - 1),
            F::Row => self.address_row(count - 1),
            F::Position => self.address(count - 1, params.get_or(1, 1) - 1),
            F::ColumnRight => {
                let col = self.state.cursor.col.saturating_add(count);
                self.address_relative(self.state.cursor.row, col);
            }
            F::RowDown => {
                let row = self.state.cursor.row.saturating_add(count);
                self.address_relative(row, self.state.cursor.col);
            }
            F::TabForward => self.tab(count),
            F::TabBack => self.tab_back(count),
            F::ClearTabs => self.clear_tabs(params.get(0)),
            F::TabsEveryEight if params.get(0) == 5 => {
                self.extras_mut().tabs = crate::screen::default_tabs();
            }
            F::Repeat => self.repeat(count),
            F::Rendition => self.set_rendition(params),
            F::Margins => self.set_margins(params),
            F::SaveOrSideMargins => self.save_or_set_side_margins(params),
            F::RestoreCursor => {
                self.restore_cursor();
                self.text_rules_changed();
            }
            // With more parameters `CSI T` starts xterm's highlight tracking, which we do not have; a 0 it
            // takes for that, too.
            F::ScrollDown if sequence.last == b'T' && !self.scrolls_down(params) => {}
            _ => self.perform_edit(function, params, count),
        }
    }

    fn scrolls_down(&self, params: &Params) -> bool {
        self.profile.functions == Functions::Stock
            || params.is_empty()
            || params.all()[0] > 0 && params.len() == 1
    }

    fn perform_edit(&mut self, function: Function, params: &Params, count: u16) {
        if self.state.modes.level < LEVEL_MAX && self.state.modes.level < level_of(function) {
            return;
        }
        match function {
            F::InsertCharacters => self.insert_characters(count),
            F::DeleteCharacters => self.delete_characters(count),
            F::EraseCharacters => self.erase_characters(count),
            F::InsertLines => self.insert_lines(count),
            F::DeleteLines => self.delete_lines(count),
            F::InsertColumns => self.insert_columns(count),
            F::DeleteColumns => self.delete_columns(count),
            F::ScrollUp => self.scroll_text(count),
            F::ScrollDown => self.scroll_down(self.state.margins.top, count),
            F::ScrollLeft => self.scroll_columns(count, Self::delete_cells),
            F::ScrollRight => self.scroll_columns(count, Self::insert_cells),
            F::EraseDisplay if params.get(0) == 3 => self.history.clear(),
            F::EraseDisplay => {
                if let Some(extent) = Extent::of(params.get(0)) {
                    self.erase_display(extent, Selective::Guarded);
                }
            }
            F::EraseLine => {
                if let Some(extent) = Extent::of(params.get(0)) {
                    self.erase_line(extent, Selective::Guarded);
                }
            }
            F::SelectiveEraseDisplay => {
                if let Some(extent) = Extent::of(params.get(0)) {
                    self.erase_display(extent, Selective::Protected);
                }
            }
            F::SelectiveEraseLine => {
                if let Some(extent) = Extent::of(params.get(0)) {
                    self.erase_line(extent, Selective::Protected);
                }
            }
            F::CopyRectangle => self.copy_rectangle(params),
            F::FillRectangle => self.fill_rectangle(params),
            F::EraseRectangle => self.erase_rectangle(params),
            F::SelectiveEraseRectangle => self.selectively_erase_rectangle(params),
            F::ChangeRectangle => self.change_rectangle(params),
            F::ReverseRectangle => self.reverse_rectangle(params),
            F::RectangleExtent if params.get(0) <= 2 => {
                self.state.modes.rectangle_extent = params.get(0) as u8;
            }
            _ => self.perform_rest(function, params),
        }
    }

    fn perform_rest(&mut self, function: Function, params: &Params) {
        match function {
            F::SetMode => self.set_modes(params, ModeAction::Set),
            F::ResetMode => self.set_modes(params, ModeAction::Reset),
            F::SetPrivate => self.set_private_modes(params, ModeAction::Set),
            F::ResetPrivate => self.set_private_modes(params, ModeAction::Reset),
            F::SavePrivate => self.save_private_modes(params),
            F::RestorePrivate => self.restore_private_modes(params),
            F::SoftReset => self.soft_reset(),
            F::LinesPerScreen => match params.get(0) {
                0 => {}
                rows => self.set_size(rows, self.state.size.cols),
            },
            F::ColumnsPerPage => {
                if let cols @ (80 | 132) = params.get_or(0, 80) {
                    self.set_size(self.state.size.rows, cols);
                }
            }
            F::Conformance => self.set_level(params.get(0)),
            F::CursorStyle => self.set_cursor_style(params.get(0)),
            F::Protect => self.set_protection(params.get(0)),
            F::KeyModifiers => self.set_key_modifiers(params),
            F::ResetKeyModifiers => self.reset_key_modifiers(params),
            F::PushKeyboard => self.push_keyboard(params.get(0)),
            F::PopKeyboard => self.pop_keyboard(params.get_or(0, 1)),
            F::SetKeyboard => self.set_keyboard(params),
            F::PushRendition => self.push_rendition(),
            F::PopRendition => self.pop_rendition(),
            F::PushColors => self.push_colors(params.get(0)),
            F::PopColors => self.pop_colors(params.get(0)),
            F::ReportColors => self.report_colors(),
            _ => self.perform_report(function, params),
        }
        self.text_rules_changed();
    }

    pub(crate) fn extras_mut(&mut self) -> &mut crate::screen::Extras {
        triomphe::Arc::make_mut(self.extras)
    }

    /// HPR, VPR: in origin mode within the margins, else the screen.
    fn address_relative(&mut self, row: u16, col: u16) {
        let margins = self.state.margins;
        let (row, col) = if self.state.modes.origin {
            (row.min(margins.bottom - 1), col.min(margins.right - 1))
        } else {
            (row, col)
        };
        self.move_to(row, col);
    }

    fn clear_tabs(&mut self, which: u16) {
        match which {
            0 => {
                let col = usize::from(self.state.cursor.col);
                self.extras_mut().tabs[col / 64] &= !(1 << (col % 64));
            }
            3 => self.extras_mut().tabs = [0; 16],
            _ => {}
        }
    }

    /// DECSTBM.
    fn set_margins(&mut self, params: &Params) {
        let rows = self.state.size.rows;
        let top = params.get_or(0, 1) - 1;
        let bottom = params.get_or(1, rows);
        // Stock ignores a bottom below the screen; xterm takes the last line instead.
        let bottom = match self.profile.functions {
            Functions::All => bottom.min(rows),
            Functions::Stock => bottom,
        };
        let valid = match self.profile.functions {
            Functions::All => top + 1 < bottom,
            Functions::Stock => top + 1 < bottom && top < rows,
        };
        if !valid {
            return;
        }
        self.state.margins.top = top;
        self.state.margins.bottom = bottom.min(rows);
        self.address(0, 0);
    }

    /// DECSLRM. While left and right margins are off, the sequence is SCOSC.
    fn save_or_set_side_margins(&mut self, params: &Params) {
        if !self.state.modes.left_right_margins {
            return self.save_cursor();
        }
        let cols = self.state.size.cols;
        let left = params.get_or(0, 1) - 1;
        let right = params.get_or(1, cols).min(cols);
        if left + 1 < right {
            self.state.margins.left = left;
            self.state.margins.right = right;
            self.address(0, 0);
        }
    }

    /// SL and SR: shift the region sideways.
    fn scroll_columns(&mut self, count: u16, shift: fn(&mut Self, u16, u16, u16)) {
        if !self.inside_margins() {
            return;
        }
        for row in self.state.margins.top..self.state.margins.bottom {
            shift(self, row, self.state.margins.left, count);
        }
    }

    /// DECSC.
    pub(crate) fn save_cursor(&mut self) {
        let saved = SavedCursor {
            cursor: self.state.cursor,
            pen: self.state.pen,
            charsets: self.state.charsets,
            origin: self.state.modes.origin,
            autowrap: self.state.modes.autowrap,
        };
        let buffer = self.state.buffer as usize;
        self.extras_mut().saved[buffer] = saved;
    }

    /// DECRC.
    pub(crate) fn restore_cursor(&mut self) {
        let saved = self.extras.saved[self.state.buffer as usize];
        self.state.pen = crate::screen::Pen {
            link: self.state.pen.link,
            semantic: self.state.pen.semantic,
            ..saved.pen
        };
        self.pen_changed();
        self.state.charsets = saved.charsets;
        self.state.modes.origin = saved.origin;
        if self.profile.functions == Functions::Stock {
            self.state.modes.autowrap = saved.autowrap;
        }
        self.move_to(saved.cursor.row, saved.cursor.col);
        if self.profile.deferred_wrap == DeferredWrap::Moves {
            let at_edge = self.state.cursor.col + 1 == self.state.margins.right
                || self.state.cursor.col + 1 == self.state.size.cols;
            self.state.cursor.pending_wrap = saved.cursor.pending_wrap && at_edge;
        }
    }
}
