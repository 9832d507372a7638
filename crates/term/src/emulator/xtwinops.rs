//! The window around the screen: XTWINOPS, and the sizes that programs ask for.
//!
//! A session has no window: its size belongs to the user, so operations that would move or resize it are ignored. A
//! terminal outside a session may have one, as conformance suites expect ([`Resizing::Obeyed`]).

use alloc::borrow::ToOwned;
use alloc::format;

use crate::emulator::Emulator;
use crate::parser::Params;
use crate::screen::cell::Cell;
use crate::screen::{Margins, Size, TITLE_STACK_MAX};

/// How a program's request for another size is treated (XTWINOPS, DECCOLM, DECSCPP, DECSLPP, DECSNLS).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Resizing {
    /// It is ignored: the size is the user's.
    #[default]
    Ignored,
    /// The screen gets the size, as in a window on a display of its own.
    Obeyed,
}

/// The largest window of an obeying terminal: 2000 by 1500 pixels.
const DISPLAY: Size = Size { rows: 75, cols: 200 };
/// XTWINOPS from this number on ask for as many lines (DECSLPP).
const LINES_MIN: u16 = 24;

/// How far a maximised window grows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sides {
    Both,
    Rows,
    Cols,
}

impl Emulator<'_> {
    /// XTWINOPS.
    pub(crate) fn window(&mut self, params: &Params) {
        let size = self.state.size;
        let window = self.window.unwrap_or_default();
        let display = if self.window.is_some() { DISPLAY } else { size };
        let (width, height) = self.around.cell_pixels();
        let pixels = |size: Size| (u32::from(size.rows) * height, u32::from(size.cols) * width);
        let answer = match params.get(0) {
            11 => format!("\x1b[{}t", if window.iconified { 2 } else { 1 }),
            13 => format!("\x1b[3;{};{}t", window.position.0, window.position.1),
            14 => {
                let (height, width) = pixels(size);
                format!("\x1b[4;{height};{width}t")
            }
            15 => {
                let (height, width) = pixels(display);
                format!("\x1b[5;{height};{width}t")
            }
            16 => format!("\x1b[6;{height};{width}t"),
            18 => format!("\x1b[8;{};{}t", size.rows, size.cols),
            19 => format!("\x1b[9;{};{}t", display.rows, display.cols),
            20 => "\x1b]L\x1b\\".to_owned(),
            21 => "\x1b]l\x1b\\".to_owned(),
            22 => return self.push_titles(params.get(1)),
            23 => return self.pop_titles(params.get(1)),
            _ => return self.change_window(params),
        };
        self.reply(answer.as_bytes());
    }

    /// The operations that move or resize, if there is a window.
    fn change_window(&mut self, params: &Params) {
        let (cell_width, cell_height) = self.around.cell_pixels();
        let Some(window) = self.window.as_mut() else { return };
        let (first, second) = (params.get(1), params.get(2));
        match params.get(0) {
            1 => window.iconified = false,
            2 => window.iconified = true,
            3 => window.position = (first, second),
            4 => {
                let cells = |pixels: u16, cell: u32| match u32::from(pixels) / cell {
                    0 => pixels.min(1),
                    cells => cells as u16,
                };
                self.ask_for_size(params, cells(first, cell_height), cells(second, cell_width));
            }
            8 => self.ask_for_size(params, first, second),
            9 => self.maximise(match first {
                1 => Some(Sides::Both),
                2 => Some(Sides::Rows),
                3 => Some(Sides::Cols),
                _ => None,
            }),
            10 => {
                let enters = first == 1 || first == 2 && window.restore.is_none();
                self.maximise(enters.then_some(Sides::Both));
            }
            rows @ LINES_MIN.. => self.set_size(rows, self.state.size.cols),
            _ => {}
        }
    }

    /// Rows and columns; a missing one stays as it is, and 0 means all of the display.
    fn ask_for_size(&mut self, params: &Params, rows: u16, cols: u16) {
        let now = self.state.size;
        let side = |given: bool, wanted: u16, now: u16, most: u16| match wanted {
            _ if !given => now,
            0 => most,
            wanted => wanted,
        };
        let rows = side(params.is_given(1), rows, now.rows, DISPLAY.rows);
        let cols = side(params.is_given(2), cols, now.cols, DISPLAY.cols);
        self.set_size(rows, cols);
    }

    /// To the display's size, or back.
    fn maximise(&mut self, sides: Option<Sides>) {
        let now = self.state.size;
        let Some(window) = self.window.as_mut() else { return };
        let size = match sides {
            None => window.restore.take().unwrap_or(now),
            Some(sides) => {
                window.restore.get_or_insert(now);
                let rows = if sides == Sides::Cols { now.rows } else { DISPLAY.rows };
                let cols = if sides == Sides::Rows { now.cols } else { DISPLAY.cols };
                Size { rows, cols }
            }
        };
        self.set_size(size.rows, size.cols);
    }

    /// Gives the screen another size, if programs may: at most the display's, cut or extended at the right and the
    /// bottom, as xterm does.
    pub(crate) fn set_size(&mut self, rows: u16, cols: u16) {
        let now = self.state.size;
        let rows = rows.min(DISPLAY.rows.max(now.rows));
        let size = Size::clamped(rows, cols.min(DISPLAY.cols.max(now.cols)));
        if self.window.is_none() || size == now {
            return;
        }
        // The line of the cursor stays.
        let above = (self.state.cursor.row + 1).saturating_sub(size.rows);
        if above > 0 {
            let (grid, mut fill) = self.fill();
            grid.scroll_up(0, now.rows.into(), above.into(), &mut fill);
            self.state.cursor.row -= above;
        }
        let blank = self.blank();
        let next_line = &mut self.state.next_line;
        let touched = self.grid.take_touched();
        *self.grid = self.grid.resized(size, blank, next_line);
        self.grid.touch(touched as usize);
        if let Some(hidden) = self.hidden {
            *hidden = triomphe::Arc::new(hidden.resized(size, Cell::BLANK, next_line));
        }
        self.updates.forget();
        self.state.size = size;
        self.state.margins = Margins::whole(size);
        let cursor = self.state.cursor;
        self.move_to(cursor.row, cursor.col);
        self.grid.touch_rows(2 * usize::from(size.rows), size.cols.into());
        if self.state.modes.resize_reports {
            self.reply(&crate::screen::encode::in_band_size(size, self.around));
        }
    }

    fn push_titles(&mut self, which: u16) {
        if which > 2 {
            return;
        }
        let extras = self.extras_mut();
        if extras.title_stack.len() == TITLE_STACK_MAX {
            extras.title_stack.remove(0);
        }
        extras.title_stack.push(extras.titles.clone());
    }

    fn pop_titles(&mut self, which: u16) {
        if which > 2 {
            return;
        }
        let extras = self.extras_mut();
        let Some(titles) = extras.title_stack.pop() else { return };
        if which != 1 {
            extras.titles.window = titles.window;
        }
        if which != 2 {
            extras.titles.icon = titles.icon;
        }
    }
}
