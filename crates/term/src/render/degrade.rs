//! Degrades styles for a reader: each colour and attribute becomes the nearest one that the reader has.

use crate::dialect::{Ability, Colors, Dialect};
use crate::screen::style::{Attrs, Color, ColorKind, Style, Underline};

/// Attributes that not every reader has. Without them a reader loses emphasis, never text.
const OPTIONAL_ATTRS: [(Ability, Attrs); 6] = [
    (Ability::Faint, Attrs::FAINT),
    (Ability::Italic, Attrs::ITALIC),
    (Ability::Blink, Attrs::BLINK),
    (Ability::Invisible, Attrs::INVISIBLE),
    (Ability::Strike, Attrs::STRIKE),
    (Ability::Overline, Attrs::OVERLINE),
];

/// `style` as a reader of `dialect` shows it.
pub(super) fn style(style: Style, dialect: &Dialect) -> Style {
    if dialect.colors() == Colors::Direct && is_common(&style) {
        return style;
    }
    let mut attrs = style.attrs;
    for (ability, attr) in OPTIONAL_ATTRS {
        if !dialect.can(ability) {
            attrs = attrs.without(attr);
        }
    }
    if attrs.underline() != Underline::None && !dialect.can(Ability::UnderlineStyles) {
        attrs = attrs.with_underline(Underline::Single);
    }
    if dialect.colors() == Colors::Eight && is_bright(style.fg) {
        // Eight-colour terminals have shown bold as bright since the VGA; the console still does.
        attrs = attrs.with(Attrs::BOLD);
    }
    let underline_color = match dialect.can(Ability::UnderlineColor) {
        true => color(style.underline_color, dialect.colors()),
        false => Color::DEFAULT,
    };
    Style {
        fg: color(style.fg, dialect.colors()),
        bg: color(style.bg, dialect.colors()),
        underline_color,
        attrs,
    }
}

/// Colours, bold and inverse alone, as most styles: every reader that tells all colours apart has those.
fn is_common(style: &Style) -> bool {
    let common = Attrs::BOLD.with(Attrs::INVERSE);
    style.attrs.without(common) == Attrs::NONE && style.underline_color == Color::DEFAULT
}

fn color(color: Color, colors: Colors) -> Color {
    match (color.kind(), colors) {
        (ColorKind::Default, _) | (_, Colors::Monochrome) => Color::DEFAULT,
        (_, Colors::Direct) => color,
        (ColorKind::Indexed(_), Colors::Indexed) => color,
        (ColorKind::Rgb(r, g, b), Colors::Indexed) => Color::indexed(nearest_indexed([r, g, b])),
        (ColorKind::Indexed(index), Colors::Sixteen) if index < 16 => color,
        (ColorKind::Indexed(index), Colors::Eight) if index < 16 => Color::indexed(index % 8),
        (ColorKind::Indexed(index), Colors::Sixteen | Colors::Eight) => {
            Color::indexed(nearest_named(palette(index), colors))
        }
        (ColorKind::Rgb(r, g, b), Colors::Sixteen | Colors::Eight) => {
            Color::indexed(nearest_named([r, g, b], colors))
        }
    }
}

fn is_bright(color: Color) -> bool {
    matches!(color.kind(), ColorKind::Indexed(8..16))
}

/// xterm's first sixteen colours, the ones most terminals started from.
const NAMED: [[u8; 3]; 16] = [
    [0, 0, 0],
    [205, 0, 0],
    [0, 205, 0],
    [205, 205, 0],
    [0, 0, 238],
    [205, 0, 205],
    [0, 205, 205],
    [229, 229, 229],
    [127, 127, 127],
    [255, 0, 0],
    [0, 255, 0],
    [255, 255, 0],
    [92, 92, 255],
    [255, 0, 255],
    [0, 255, 255],
    [255, 255, 255],
];

/// The intensities of the 6x6x6 cube at 16..=231.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// An entry of xterm's palette.
fn palette(index: u8) -> [u8; 3] {
    match index {
        0..16 => NAMED[usize::from(index)],
        16..232 => {
            let cube = usize::from(index - 16);
            [CUBE[cube / 36], CUBE[cube / 6 % 6], CUBE[cube % 6]]
        }
        232..=255 => [8 + 10 * (index - 232); 3],
    }
}

/// The nearest entry among the cube and the greys; the first sixteen differ between terminals.
fn nearest_indexed(rgb: [u8; 3]) -> u8 {
    let step = |value: u8| -> u8 {
        // Midpoints between neighbouring intensities.
        [48, 115, 155, 195, 235].iter().filter(|&&midpoint| value >= midpoint).count() as u8
    };
    let [r, g, b] = rgb.map(step);
    let in_cube = 16 + 36 * r + 6 * g + b;
    let mean = (u16::from(rgb[0]) + u16::from(rgb[1]) + u16::from(rgb[2])) / 3;
    let in_greys = 232 + (mean.saturating_sub(3) / 10).min(23) as u8;
    let nearer_grey = distance(palette(in_greys), rgb) < distance(palette(in_cube), rgb);
    if nearer_grey { in_greys } else { in_cube }
}

fn nearest_named(rgb: [u8; 3], colors: Colors) -> u8 {
    let count = if colors == Colors::Eight { 8 } else { 16 };
    let by_distance = (0..count).min_by_key(|&index| distance(palette(index), rgb));
    by_distance.unwrap_or(0)
}

fn distance(a: [u8; 3], b: [u8; 3]) -> u32 {
    a.iter().zip(b).map(|(&a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_the_nearest() {
        let rgb = |r, g, b| Color::rgb(r, g, b);
        for (from, colors, to) in [
            (Color::DEFAULT, Colors::Eight, Color::DEFAULT),
            (rgb(1, 2, 3), Colors::Direct, rgb(1, 2, 3)),
            (rgb(255, 0, 0), Colors::Indexed, Color::indexed(196)),
            (rgb(0, 95, 135), Colors::Indexed, Color::indexed(24)),
            (rgb(128, 128, 128), Colors::Indexed, Color::indexed(244)),
            (rgb(255, 255, 255), Colors::Indexed, Color::indexed(231)),
            (rgb(250, 10, 10), Colors::Sixteen, Color::indexed(9)),
            (rgb(250, 10, 10), Colors::Eight, Color::indexed(1)),
            (Color::indexed(196), Colors::Sixteen, Color::indexed(9)),
            (Color::indexed(12), Colors::Eight, Color::indexed(4)),
            (Color::indexed(12), Colors::Sixteen, Color::indexed(12)),
            (Color::indexed(1), Colors::Monochrome, Color::DEFAULT),
        ] {
            assert_eq!(color(from, colors), to, "{from:?} {colors:?}");
        }
    }

    #[test]
    fn every_palette_entry_is_nearest_to_itself() {
        for index in 16..=255 {
            let nearest = nearest_indexed(palette(index));
            assert_eq!(palette(nearest), palette(index), "{index}");
        }
    }

    #[test]
    fn attributes_fall_back() {
        let curly = Attrs::FAINT.with(Attrs::BOLD).with_underline(Underline::Curly);
        let from = Style { attrs: curly, underline_color: Color::indexed(1), ..Style::PLAIN };
        let shown = style(from, &Dialect::MOSH);
        assert_eq!(shown.attrs, Attrs::BOLD.with_underline(Underline::Single));
        assert_eq!(shown.underline_color, Color::DEFAULT);
        assert_eq!(style(from, &Dialect::ROVE), from);
    }
}
