//! Carries out SGR, which sets the rendition of later text.

use crate::emulator::Emulator;
use crate::emulator::profile::Functions;
use crate::parser::Params;
use crate::screen::style::{Attrs, Color, Style, Underline};

/// Renditions kept by XTPUSHSGR, as xterm keeps.
const RENDITION_STACK_MAX: usize = 10;

impl Emulator<'_> {
    /// SGR.
    #[inline]
    pub(crate) fn set_rendition(&mut self, params: &Params) {
        let mut style = self.state.pen.style;
        match self.profile.functions {
            Functions::All => apply(&mut style, params),
            Functions::Stock => apply_stock(&mut style, params),
        }
        self.state.pen.style = style;
        self.pen_changed();
        self.sweep_if_due();
    }

    /// XTPUSHSGR, whole.
    pub(crate) fn push_rendition(&mut self) {
        let style = self.state.pen.style;
        let stack = &mut self.extras_mut().sgr_stack;
        if stack.len() < RENDITION_STACK_MAX {
            stack.push(style);
        }
    }

    /// XTPOPSGR.
    pub(crate) fn pop_rendition(&mut self) {
        if let Some(style) = self.extras_mut().sgr_stack.pop() {
            self.state.pen.style = style;
            self.pen_changed();
        }
    }
}

/// Changes `style` as SGR says. An empty list resets.
#[inline]
pub(crate) fn apply(style: &mut Style, params: &Params) {
    if params.is_empty() {
        *style = Style::PLAIN;
    } else if params.has_parts() {
        apply_parts(style, params);
    } else {
        let all = params.all();
        let mut at = 0;
        while at < all.len() {
            at += apply_separate(style, &all[at..]);
        }
    }
}

/// Parameters without colons: does what the first says and returns how many it took.
#[inline]
fn apply_separate(style: &mut Style, rest: &[u16]) -> usize {
    let code = rest[0];
    if !matches!(code, 38 | 48 | 58) {
        apply_one(style, code);
        return 1;
    }
    let (color, used) = separate_color(&rest[1..]);
    if let Some(color) = color {
        *color_slot(style, code) = color;
    }
    1 + used
}

/// Parameters with colons in some place.
fn apply_parts(style: &mut Style, params: &Params) {
    let all = params.all();
    let mut at = 0;
    while at < all.len() {
        let parts = params.group_len(at);
        let group = &all[at..at + parts];
        at += match (all[at], parts) {
            (_, 1) => apply_separate(style, &all[at..]),
            (38 | 48 | 58, _) => {
                if let Some(color) = joined_color(&group[1..]) {
                    *color_slot(style, all[at]) = color;
                }
                parts
            }
            (4, _) => {
                style.attrs = style.attrs.with_underline(underline(group[1]));
                parts
            }
            _ => parts,
        };
    }
}

/// SGR as far as stock mosh knows it (`mosh-protocol.md` §6).
fn apply_stock(style: &mut Style, params: &Params) {
    if params.is_empty() {
        *style = Style::PLAIN;
        return;
    }
    let all = params.all();
    let mut at = 0;
    while at < all.len() {
        at += match all[at] {
            code @ (38 | 48) => {
                let (color, used) = stock_color(&all[at + 1..]);
                if let Some(color) = color {
                    *color_slot(style, code) = color;
                }
                used
            }
            code @ (0 | 1 | 3 | 4 | 5 | 7 | 8 | 22..=25 | 27 | 28 | 30..=37 | 39..=47 | 49) => {
                apply_one(style, code);
                1
            }
            code @ (90..=97 | 100..=107) => {
                apply_one(style, code);
                1
            }
            _ => 1,
        };
    }
}

fn color_slot(style: &mut Style, code: u16) -> &mut Color {
    match code {
        38 => &mut style.fg,
        48 => &mut style.bg,
        _ => &mut style.underline_color,
    }
}

/// A colour's channels are cut to their low octet, and an index beyond 255 is no colour.
fn stock_color(rest: &[u16]) -> (Option<Color>, usize) {
    match *rest {
        [2, red, green, blue, ..] => {
            let [red, green, blue] = [red, green, blue].map(|channel| channel as u8);
            (Some(Color::rgb(red, green, blue)), 5)
        }
        [5, index, ..] => (u8::try_from(index).ok().map(Color::indexed), 3),
        // Cut short, it is passed over, and what follows counts for itself.
        _ => (None, 1),
    }
}

fn channel(value: u16) -> u8 {
    value.min(255) as u8
}

/// The colour after `38;`, and how many numbers it took.
fn separate_color(rest: &[u16]) -> (Option<Color>, usize) {
    match *rest {
        [5, index, ..] => (u8::try_from(index).ok().map(Color::indexed), 2),
        [2, red, green, blue, ..] => {
            (Some(Color::rgb(channel(red), channel(green), channel(blue))), 4)
        }
        [2 | 5, ..] => (None, rest.len()),
        [_, ..] => (None, 1),
        [] => (None, 0),
    }
}

/// The colour after `38:`: index, or direct with or without a colour space (ITU-T T.416).
fn joined_color(rest: &[u16]) -> Option<Color> {
    match *rest {
        [5, index, ..] => u8::try_from(index).ok().map(Color::indexed),
        [2, red, green, blue] | [2, _, red, green, blue, ..] => {
            Some(Color::rgb(channel(red), channel(green), channel(blue)))
        }
        _ => None,
    }
}

fn underline(kind: u16) -> Underline {
    match kind {
        0 => Underline::None,
        2 => Underline::Double,
        3 => Underline::Curly,
        4 => Underline::Dotted,
        5 => Underline::Dashed,
        _ => Underline::Single,
    }
}

#[inline]
fn apply_one(style: &mut Style, code: u16) {
    let attrs = &mut style.attrs;
    match code {
        0 => *style = Style::PLAIN,
        1 => *attrs = attrs.with(Attrs::BOLD),
        2 => *attrs = attrs.with(Attrs::FAINT),
        3 => *attrs = attrs.with(Attrs::ITALIC),
        4 => *attrs = attrs.with_underline(Underline::Single),
        5 | 6 => *attrs = attrs.with(Attrs::BLINK),
        7 => *attrs = attrs.with(Attrs::INVERSE),
        8 => *attrs = attrs.with(Attrs::INVISIBLE),
        9 => *attrs = attrs.with(Attrs::STRIKE),
        21 => *attrs = attrs.with_underline(Underline::Double),
        22 => *attrs = attrs.without(Attrs::BOLD.with(Attrs::FAINT)),
        23 => *attrs = attrs.without(Attrs::ITALIC),
        24 => *attrs = attrs.with_underline(Underline::None),
        25 => *attrs = attrs.without(Attrs::BLINK),
        27 => *attrs = attrs.without(Attrs::INVERSE),
        28 => *attrs = attrs.without(Attrs::INVISIBLE),
        29 => *attrs = attrs.without(Attrs::STRIKE),
        30..=37 => style.fg = Color::indexed((code - 30) as u8),
        39 => style.fg = Color::DEFAULT,
        40..=47 => style.bg = Color::indexed((code - 40) as u8),
        49 => style.bg = Color::DEFAULT,
        53 => *attrs = attrs.with(Attrs::OVERLINE),
        55 => *attrs = attrs.without(Attrs::OVERLINE),
        59 => style.underline_color = Color::DEFAULT,
        90..=97 => style.fg = Color::indexed((code - 90 + 8) as u8),
        100..=107 => style.bg = Color::indexed((code - 100 + 8) as u8),
        _ => {}
    }
}
