//! Encodes parts of a screen as the sequences that report them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::screen::Size;
use crate::screen::properties::{Scheme, TerminalProperties};
use crate::screen::style::{Attrs, Color, ColorKind, Style, Underline};

/// The in-band report of a size (mode 2048); pixels are 0 where unknown.
pub(crate) fn in_band_size(size: Size, around: &TerminalProperties) -> Vec<u8> {
    let (width, height) = around.known_pixels(size);
    format!("\x1b[48;{};{};{height};{width}t", size.rows, size.cols).into_bytes()
}

/// The report of the colour scheme, asked for by DSR 996 or mode 2031.
pub(crate) fn scheme_report(scheme: Scheme) -> &'static [u8] {
    match scheme {
        Scheme::Dark => b"\x1b[?997;1n",
        Scheme::Light => b"\x1b[?997;2n",
    }
}

/// The parameters of an SGR that sets `style` from nothing, as DECRQSS answers.
pub(crate) fn describe(style: &Style) -> String {
    let mut out = String::from("0");
    let attrs = style.attrs;
    if attrs.contains(Attrs::BOLD) {
        out.push_str(";1");
    }
    out.push_str(match attrs.underline() {
        Underline::None => "",
        Underline::Single => ";4",
        // After the others.
        Underline::Double => "",
        Underline::Curly => ";4:3",
        Underline::Dotted => ";4:4",
        Underline::Dashed => ";4:5",
    });
    // In xterm's order.
    for (attr, code) in [
        (Attrs::BLINK, ";5"),
        (Attrs::INVERSE, ";7"),
        (Attrs::INVISIBLE, ";8"),
        (Attrs::FAINT, ";2"),
        (Attrs::ITALIC, ";3"),
        (Attrs::STRIKE, ";9"),
        (Attrs::OVERLINE, ";53"),
    ] {
        if attrs.contains(attr) {
            out.push_str(code);
        }
    }
    if attrs.underline() == Underline::Double {
        out.push_str(";21");
    }
    describe_color(&mut out, style.fg, 30);
    describe_color(&mut out, style.bg, 40);
    describe_color(&mut out, style.underline_color, 50);
    out
}

fn describe_color(out: &mut String, color: Color, base: u16) {
    let text = match color.kind() {
        ColorKind::Default => return,
        ColorKind::Indexed(index @ 0..8) if base < 50 => format!(";{}", base + u16::from(index)),
        ColorKind::Indexed(index @ 8..16) if base < 50 => {
            format!(";{}", base + 60 + u16::from(index) - 8)
        }
        ColorKind::Indexed(index) => format!(";{}:5:{index}", base + 8),
        ColorKind::Rgb(red, green, blue) => format!(";{}:2::{red}:{green}:{blue}", base + 8),
    };
    out.push_str(&text);
}
