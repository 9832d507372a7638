//! The reader's pen: the rendition and hyperlink of what it prints next, changed by the fewest
//! bytes.

use alloc::vec::Vec;
use core::fmt::{self, Write};

use crate::dialect::{Colors, Dialect};
use crate::screen::pool::Link;
use crate::screen::style::{Attrs, Color, ColorKind, Style, Underline};

/// The reader's pen. Its style is as the reader sees it, never as the program set it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Pen<'a> {
    pub style: Style,
    pub link: Option<Link<'a>>,
}

impl<'a> Pen<'a> {
    /// The pen of a fresh emulator, and after `CSI 0 m`.
    pub(super) const PLAIN: Self = Self { style: Style::PLAIN, link: None };

    /// Changes the rendition.
    pub(super) fn set_style(&mut self, to: Style, dialect: &Dialect, out: &mut Vec<u8>) {
        if self.style == to {
            return;
        }
        write_cheaper(self.style, to, dialect, out);
        self.style = to;
    }

    /// Opens, changes or closes the hyperlink.
    pub(super) fn set_link(&mut self, to: Option<Link<'a>>, out: &mut Vec<u8>) {
        if self.link == to {
            return;
        }
        match to {
            None => out.extend_from_slice(b"\x1b]8;;\x07"),
            Some(Link { id: "", uri }) => put(out, format_args!("\x1b]8;;{uri}\x07")),
            Some(Link { id, uri }) => put(out, format_args!("\x1b]8;id={id};{uri}\x07")),
        }
        self.link = to;
    }
}

/// `write!` into a vector, which cannot fail.
pub(super) fn put(out: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    struct Octets<'a>(&'a mut Vec<u8>);
    impl Write for Octets<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    let _ = Octets(out).write_fmt(text);
}

/// Appends a number in decimal: the one formatting that is frequent enough to be written out.
pub(super) fn put_number(out: &mut Vec<u8>, number: usize) {
    let digit = |unit: usize| b'0' + (number / unit % 10) as u8;
    match number {
        0..10 => out.push(digit(1)),
        10..100 => out.extend_from_slice(&[digit(10), digit(1)]),
        100..1000 => out.extend_from_slice(&[digit(100), digit(10), digit(1)]),
        _ => put(out, format_args!("{number}")),
    }
}

/// How many octets [`put_number`] writes.
pub(super) fn number_len(number: usize) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// The shorter of what changed and of everything.
fn write_cheaper(from: Style, to: Style, dialect: &Dialect, out: &mut Vec<u8>) {
    if to == Style::PLAIN {
        out.extend_from_slice(b"\x1b[m");
        return;
    }
    let start = out.len();
    let one_color = (from.fg == to.fg) != (from.bg == to.bg);
    if one_color && from.attrs == to.attrs && from.underline_color == to.underline_color {
        // The most frequent change; to state everything takes no less.
        let (color, ground) = match from.fg == to.fg {
            true => (to.bg, Ground::Back),
            false => (to.fg, Ground::Front),
        };
        match short_color(color, ground, dialect) {
            Some(number @ 10..100) => {
                out.extend_from_slice(&[0x1b, b'[', b'0' + number / 10, b'0' + number % 10, b'm']);
            }
            _ => {
                out.push(0x1b);
                push_color(color, ground, dialect, out);
                // In the place of the semicolon.
                out[start + 1] = b'[';
                out.push(b'm');
            }
        }
        return;
    }
    out.extend_from_slice(b"\x1b[");
    push_changes(from, to, dialect, out);
    let changed = out.len();
    // A first parameter left empty is 0.
    push_parameters(Style::PLAIN, to, dialect, out);
    // Each parameter was written after a semicolon, which the first change does without.
    let (changes, restated) = (changed - start - 3, out.len() - changed);
    if changes <= restated {
        out.truncate(changed);
        out.remove(start + 2);
    } else {
        out.drain(start + 2..changed);
    }
    out.push(b'm');
}

/// SGR parameters that switch single attributes on and off.
const SWITCHES: [(Attrs, u8, u8); 8] = [
    (Attrs::BOLD, 1, 22),
    (Attrs::FAINT, 2, 22),
    (Attrs::ITALIC, 3, 23),
    (Attrs::BLINK, 5, 25),
    (Attrs::INVERSE, 7, 27),
    (Attrs::INVISIBLE, 8, 28),
    (Attrs::STRIKE, 9, 29),
    (Attrs::OVERLINE, 53, 55),
];

/// The parameters that lead from `from` to `to`, each after a semicolon.
fn push_changes(from: Style, to: Style, dialect: &Dialect, out: &mut Vec<u8>) {
    let mut kept = from;
    let gone = from.attrs.without(to.attrs);
    for (attr, _, off) in SWITCHES {
        if gone.contains(attr) && kept.attrs.contains(attr) {
            push_number(off, out);
            kept.attrs = kept.attrs.without(attr);
            if off == 22 {
                // 22 ends bold and faint both.
                kept.attrs = kept.attrs.without(Attrs::BOLD).without(Attrs::FAINT);
            }
        }
    }
    if to.attrs.underline() == Underline::None && from.attrs.underline() != Underline::None {
        push_number(24, out);
        kept.attrs = kept.attrs.with_underline(Underline::None);
    }
    push_parameters(kept, to, dialect, out);
}

/// The parameters that add to `from` what `to` has, each after a semicolon. Nothing in `from` but
/// colours and the underline's shape may be missing in `to`.
fn push_parameters(from: Style, to: Style, dialect: &Dialect, out: &mut Vec<u8>) {
    let new = to.attrs.without(from.attrs);
    for (attr, on, _) in &SWITCHES[..3] {
        if new.contains(*attr) {
            push_number(*on, out);
        }
    }
    if to.attrs.underline() != from.attrs.underline() {
        push_underline(to.attrs.underline(), out);
    }
    for (attr, on, _) in &SWITCHES[3..] {
        if new.contains(*attr) {
            push_number(*on, out);
        }
    }
    if to.fg != from.fg {
        push_color(to.fg, Ground::Front, dialect, out);
    }
    if to.bg != from.bg {
        push_color(to.bg, Ground::Back, dialect, out);
    }
    if to.underline_color != from.underline_color {
        push_underline_color(to.underline_color, out);
    }
}

fn push_number(parameter: u8, out: &mut Vec<u8>) {
    out.push(b';');
    put_number(out, parameter.into());
}

fn push_underline(underline: Underline, out: &mut Vec<u8>) {
    out.extend_from_slice(match underline {
        Underline::None => b";24",
        Underline::Single => b";4",
        Underline::Double => b";4:2",
        Underline::Curly => b";4:3",
        Underline::Dotted => b";4:4",
        Underline::Dashed => b";4:5",
    });
}

#[derive(Clone, Copy)]
enum Ground {
    Front = 30,
    Back = 40,
}

/// The one number of a colour that has one.
fn short_color(color: Color, ground: Ground, dialect: &Dialect) -> Option<u8> {
    let base = ground as u8;
    let short = if dialect.colors() == Colors::Eight { 8 } else { 16 };
    match color.kind() {
        ColorKind::Default => Some(base + 9),
        ColorKind::Indexed(index) if index < 8 => Some(base + index),
        ColorKind::Indexed(index) if index < short => Some(base + 60 + index - 8),
        _ => None,
    }
}

fn push_color(color: Color, ground: Ground, dialect: &Dialect, out: &mut Vec<u8>) {
    if let Some(number) = short_color(color, ground, dialect) {
        return push_number(number, out);
    }
    push_number(ground as u8 + 8, out);
    match color.kind() {
        ColorKind::Default => {}
        ColorKind::Indexed(index) => push_numbers(&[5, index], out),
        ColorKind::Rgb(red, green, blue) => push_numbers(&[2, red, green, blue], out),
    }
}

fn push_numbers(parameters: &[u8], out: &mut Vec<u8>) {
    parameters.iter().for_each(|parameter| push_number(*parameter, out));
}

/// With colons: with semicolons a terminal that does not know 58 would take the rest for
/// attributes.
fn push_underline_color(color: Color, out: &mut Vec<u8>) {
    match color.kind() {
        ColorKind::Default => out.extend_from_slice(b";59"),
        ColorKind::Indexed(index) => put(out, format_args!(";58:5:{index}")),
        ColorKind::Rgb(r, g, b) => put(out, format_args!(";58:2::{r}:{g}:{b}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bold_red() -> Style {
        Style { fg: Color::indexed(1), attrs: Attrs::BOLD, ..Style::PLAIN }
    }

    fn check(from: Style, to: Style, dialect: &Dialect, want: &str) {
        let mut out = Vec::new();
        let mut pen = Pen { style: from, link: None };
        pen.set_style(to, dialect, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), want, "{from:?} -> {to:?}");
    }

    #[test]
    fn the_shorter_change() {
        let red = Style { fg: Color::indexed(1), ..Style::PLAIN };
        let bold = Style { attrs: Attrs::BOLD, ..Style::PLAIN };
        let busy = Style {
            fg: Color::rgb(10, 20, 30),
            bg: Color::rgb(40, 50, 60),
            attrs: Attrs::BOLD.with(Attrs::ITALIC),
            ..Style::PLAIN
        };
        let busy_faint = Style { attrs: Attrs::FAINT.with(Attrs::ITALIC), ..busy };
        let curly = Style {
            underline_color: Color::indexed(9),
            attrs: Attrs::NONE.with_underline(Underline::Curly),
            ..Style::PLAIN
        };
        for (from, to, want) in [
            (bold_red(), Style::PLAIN, "\x1b[m"),
            (Style::PLAIN, bold_red(), "\x1b[1;31m"),
            (bold_red(), red, "\x1b[22m"),
            (bold_red(), bold, "\x1b[39m"),
            (busy, busy_faint, "\x1b[22;2m"),
            (busy, bold, "\x1b[;1m"),
            (Style::PLAIN, curly, "\x1b[4:3;58:5:9m"),
        ] {
            check(from, to, &Dialect::ROVE, want);
            if !want.contains(':') {
                check(from, to, &Dialect::MOSH, want);
            }
        }
    }

    #[test]
    fn numbers() {
        for number in [0, 1, 9, 10, 99, 100, 65535] {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
            assert_eq!(number_len(number), out.len());
        }
    }
}
