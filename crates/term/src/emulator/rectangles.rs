//! Copies, fills, erases, restyles and checksums rectangular areas (DECCRA and its family).

use alloc::format;
use alloc::vec;

use crate::emulator::Emulator;
use crate::emulator::edit::Selective;
use crate::parser::Params;
use crate::screen::Margins;
use crate::screen::cell::{Cell, Glyph, StyleId, Width};
use crate::screen::style::{Attrs, Style, Underline};
use crate::width;

/// The attributes that DECCARA and DECRARA change, besides the underline.
const CHANGED_BY_RECTANGLE: [Attrs; 3] = [Attrs::BOLD, Attrs::BLINK, Attrs::INVERSE];

/// Renditions that an area may have before some are made anew, each time they come.
const RENDITIONS: usize = 64;
/// The cost of making one, in cells, beside each of the codes.
const RENDITION_CELLS: usize = 16;

/// Rows and columns from 0; the ends are one past the last.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Area {
    top: usize,
    left: usize,
    bottom: usize,
    right: usize,
}

impl Emulator<'_> {
    /// The area that rectangles are counted in and cut to: the margins' in origin mode.
    fn addressable(&self) -> Area {
        let margins = if self.state.modes.origin {
            self.state.margins
        } else {
            Margins::whole(self.state.size)
        };
        Area {
            top: margins.top.into(),
            left: margins.left.into(),
            bottom: margins.bottom.into(),
            right: margins.right.into(),
        }
    }

    /// The area that four parameters from `first` on name; `None` when it is empty.
    fn area(&self, params: &Params, first: usize) -> Option<Area> {
        let within = self.addressable();
        let start = |index, offset: usize| usize::from(params.get_or(index, 1) - 1) + offset;
        let end = |index, offset: usize, limit: usize| match params.get(index) {
            0 => limit,
            value => (usize::from(value) + offset).min(limit),
        };
        let area = Area {
            top: start(first, within.top),
            left: start(first + 1, within.left),
            bottom: end(first + 2, within.top, within.bottom),
            right: end(first + 3, within.left, within.right),
        };
        (area.top < area.bottom && area.left < area.right).then_some(area)
    }

    /// DECFRA. Without a character it does nothing (xterm).
    pub(crate) fn fill_rectangle(&mut self, params: &Params) {
        let Some(c) = char::from_u32(params.get(0).into()) else { return };
        if width::is_dropped(c) || width::of(c) != 1 {
            return;
        }
        if let Some(area) = self.area(params, 1) {
            self.fill_area(area, c);
        }
    }

    /// DECERA. Blanks come in the rendition of what is written (xterm).
    pub(crate) fn erase_rectangle(&mut self, params: &Params) {
        if let Some(area) = self.area(params, 0) {
            self.fill_area(area, ' ');
        }
    }

    fn fill_area(&mut self, area: Area, c: char) {
        let cell = self.written(c);
        for row in area.top..area.bottom {
            let row = self.grid.row_mut(row);
            row.split(area.left);
            row.split(area.right);
            row.cells[area.left..area.right].fill(cell);
            row.occupy(area.right);
        }
        self.grid.touch_rows(area.bottom - area.top, area.right - area.left);
    }

    /// DECSERA.
    pub(crate) fn selectively_erase_rectangle(&mut self, params: &Params) {
        let Some(area) = self.area(params, 0) else { return };
        for row in area.top..area.bottom {
            self.erase(row, area.left, area.right, Selective::ProtectedByDec);
        }
    }

    /// DECCRA. There is one page, so the page parameters are ignored.
    pub(crate) fn copy_rectangle(&mut self, params: &Params) {
        let Some(from) = self.area(params, 0) else { return };
        let within = self.addressable();
        let to_top = usize::from(params.get_or(5, 1) - 1) + within.top;
        let to_left = usize::from(params.get_or(6, 1) - 1) + within.left;
        let height = (from.bottom - from.top).min(within.bottom.saturating_sub(to_top));
        let width = (from.right - from.left).min(within.right.saturating_sub(to_left));
        if height == 0 || width == 0 {
            return;
        }
        let down = to_top > from.top;
        let mut cells = vec![Cell::BLANK; width];
        for step in 0..height {
            let line = if down { height - 1 - step } else { step };
            cells.copy_from_slice(
                &self.grid.row(from.top + line).cells[from.left..from.left + width],
            );
            blank_halves(&mut cells);
            let row = self.grid.row_mut(to_top + line);
            row.split(to_left);
            row.split(to_left + width);
            row.cells[to_left..to_left + width].copy_from_slice(&cells);
            row.occupy(to_left + width);
        }
        self.grid.touch_rows(height, 2 * width);
    }

    /// DECCARA.
    pub(crate) fn change_rectangle(&mut self, params: &Params) {
        self.restyle(params, |style, code| match code {
            0 => {
                for attr in CHANGED_BY_RECTANGLE {
                    style.attrs = style.attrs.without(attr);
                }
                style.attrs = style.attrs.with_underline(Underline::None);
            }
            1 => style.attrs = style.attrs.with(Attrs::BOLD),
            4 => style.attrs = style.attrs.with_underline(Underline::Single),
            5 => style.attrs = style.attrs.with(Attrs::BLINK),
            7 => style.attrs = style.attrs.with(Attrs::INVERSE),
            22 => style.attrs = style.attrs.without(Attrs::BOLD),
            24 => style.attrs = style.attrs.with_underline(Underline::None),
            25 => style.attrs = style.attrs.without(Attrs::BLINK),
            27 => style.attrs = style.attrs.without(Attrs::INVERSE),
            _ => {}
        });
    }

    /// DECRARA.
    pub(crate) fn reverse_rectangle(&mut self, params: &Params) {
        self.restyle(params, |style, code| {
            let toggle = |style: &mut Style, attr| style.attrs = style.attrs.toggled(attr);
            let underline = |style: &mut Style| {
                let toggled = match style.attrs.underline() {
                    Underline::None => Underline::Single,
                    _ => Underline::None,
                };
                style.attrs = style.attrs.with_underline(toggled);
            };
            match code {
                0 => {
                    for attr in CHANGED_BY_RECTANGLE {
                        toggle(style, attr);
                    }
                    underline(style);
                }
                1 => toggle(style, Attrs::BOLD),
                4 => underline(style),
                5 => toggle(style, Attrs::BLINK),
                7 => toggle(style, Attrs::INVERSE),
                _ => {}
            }
        });
    }

    /// Changes the renditions in an area, or in the stream of text between its corners (DECSACE).
    fn restyle(&mut self, params: &Params, change: impl Fn(&mut Style, u16)) {
        let Some(area) = self.area(params, 0) else { return };
        self.sweep_if_due();
        let codes = params.all().get(4..).unwrap_or_default();
        let mut renditions = [(StyleId::PLAIN, None); RENDITIONS];
        let mut made = 0;
        for row in area.top..area.bottom {
            let exact = self.state.modes.rectangle_extent == 2;
            let left = if exact || row == area.top { area.left } else { 0 };
            let right = if exact || row + 1 == area.bottom { area.right } else { self.cols() };
            if left >= right {
                continue;
            }
            let row = self.grid.row_mut(row);
            for cell in &mut row.cells[left..right] {
                let old = cell.style();
                let known = &mut renditions[old.index() % RENDITIONS];
                if known.0 != old || known.1.is_none() {
                    let mut style = self.pool.style(old);
                    codes.iter().for_each(|code| change(&mut style, *code));
                    *known = (old, Some(self.pool.intern_style(style)));
                    made += 1;
                }
                *cell = cell.with_style(known.1.unwrap_or(old));
            }
            row.occupy(right);
            self.grid.touch_rows(1, right - left);
        }
        self.touched(made * (RENDITION_CELLS + codes.len()));
    }

    /// DECRQCRA, where allowed: programs could read the screen with it.
    pub(crate) fn checksum_rectangle(&mut self, params: &Params) {
        if !self.checksums {
            return;
        }
        let mut total = 0u16;
        if let Some(area) = self.area(params, 2) {
            let mut trimmed = 0u16;
            for row in area.top..area.bottom {
                for cell in &self.grid.row(row).cells[area.left..area.right] {
                    let (code, extra) = self.checksum_parts(*cell);
                    let first = total == 0;
                    total = total.wrapping_add(code).wrapping_add(extra);
                    if first || code != 0x20 || extra != 0 {
                        trimmed = total;
                    }
                }
            }
            self.touched((area.bottom - area.top) * (area.right - area.left));
            total = trimmed;
        }
        let id = params.get(0);
        self.reply(format!("\x1bP{id}!~{:04X}\x1b\\", total.wrapping_neg()).as_bytes());
    }

    /// A cell's share of a checksum: the low octet of its code point, as xterm counts, and its attributes as a VT420
    /// does. Protection is none of them, and hidden text counts as blank.
    fn checksum_parts(&self, cell: Cell) -> (u16, u16) {
        const TAIL: u16 = 0xff;
        let code = match cell.glyph() {
            _ if cell.is_tail() => TAIL,
            Glyph::Char(c) => c as u32 as u16 & 0xff,
            Glyph::Cluster(id) => {
                let mut codes = self.pool.cluster(id).chars().map(|c| c as u32 as u16 & 0xff);
                codes.next().unwrap_or(0x20)
            }
        };
        let attrs = self.pool.style(cell.style()).attrs;
        let mut extra = 0;
        for (attr, value) in [(Attrs::INVERSE, 0x20), (Attrs::BLINK, 0x40), (Attrs::BOLD, 0x80)] {
            if attrs.contains(attr) {
                extra += value;
            }
        }
        if attrs.underline() == Underline::Single {
            extra += 0x10;
        }
        (if attrs.contains(Attrs::INVISIBLE) { 0x20 } else { code }, extra)
    }

    /// XTREPORTSGR: reports the attributes that all cells of an area have in common.
    pub(crate) fn report_rectangle_rendition(&mut self, params: &Params) {
        let Some(area) = self.area(params, 0) else { return };
        let first = self.pool.style(self.grid.row(area.top).cells[area.left].style());
        let mut common = first;
        for row in area.top..area.bottom {
            for cell in &self.grid.row(row).cells[area.left..area.right] {
                let style = self.pool.style(cell.style());
                if style.fg != common.fg {
                    common.fg = crate::screen::style::Color::DEFAULT;
                }
                if style.bg != common.bg {
                    common.bg = crate::screen::style::Color::DEFAULT;
                }
                if style.attrs.underline() != common.attrs.underline() {
                    common.attrs = common.attrs.with_underline(Underline::None);
                }
                let missing = common.attrs.toggled(style.attrs);
                common.attrs = common.attrs.without(missing.with_underline(Underline::None));
            }
        }
        self.touched((area.bottom - area.top) * (area.right - area.left));
        self.reply(format!("\x1b[{}m", crate::screen::encode::describe(&common)).as_bytes());
    }
}

/// Halves of wide cells at either end of a piece of a row become blanks.
fn blank_halves(cells: &mut [Cell]) {
    let space = |cell: Cell| cell.with_glyph(Glyph::Char(' '), Width::Narrow);
    if let Some(first) = cells.first_mut().filter(|cell| cell.is_tail()) {
        *first = space(*first);
    }
    if let Some(last) = cells.last_mut().filter(|cell| cell.is_wide()) {
        *last = space(*last);
    }
}
