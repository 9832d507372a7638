//! Parses the colours that operating system commands name, and holds the defaults of those that nobody changed.

mod names;
mod spaces;

use alloc::string::String;

use names::NAMES;

/// xterm's first sixteen colours.
const BASE: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

/// A palette entry nobody changed: xterm's sixteen, the 6x6x6 cube, the greys.
pub(crate) fn default_palette(index: u8) -> (u8, u8, u8) {
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    match index {
        0..16 => BASE[usize::from(index)],
        16..232 => {
            let cube = index - 16;
            (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232.. => {
            let grey = 8 + 10 * (index - 232);
            (grey, grey, grey)
        }
    }
}

/// A dynamic colour (OSC 10 to 19) nobody changed: light text on black.
pub(crate) fn default_dynamic(number: u16) -> (u8, u8, u8) {
    match number {
        11 | 14 | 16 | 19 => (0, 0, 0),
        _ => (229, 229, 229),
    }
}

/// As XParseColor reads: `rgb:r/g/b` with one to four digits each, `#rgb` with one to four digits each, the
/// names of X11, and the spaces that belong to no device.
pub(crate) fn parse(spec: &str) -> Option<(u8, u8, u8)> {
    match spec.split_once(':') {
        Some((space, rest)) if space.eq_ignore_ascii_case("rgb") => three(rest, scaled),
        Some((space, rest)) => spaces::parse(space, rest),
        None => spec.strip_prefix('#').map_or_else(|| named(spec), digits),
    }
}

fn three(words: &str, part: fn(&str) -> Option<u8>) -> Option<(u8, u8, u8)> {
    let mut words = words.split('/').map(part);
    let rgb = (words.next()??, words.next()??, words.next()??);
    words.next().is_none().then_some(rgb)
}

fn digits(digits: &str) -> Option<(u8, u8, u8)> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(3) || !(3..=12).contains(&digits.len()) {
        return None;
    }
    let each = digits.len() / 3;
    let part = |n: usize| {
        let value = u32::from_str_radix(&digits[n * each..(n + 1) * each], 16).ok()?;
        // Unlike rgb:, the digits are the most significant ones.
        Some(match each {
            1 => (value << 4) as u8,
            _ => (value >> (4 * (each - 2))) as u8,
        })
    };
    Some((part(0)?, part(1)?, part(2)?))
}

fn scaled(digits: &str) -> Option<u8> {
    if !(1..=4).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    let most = (1u32 << (4 * digits.len())) - 1;
    Some((value * 255 / most) as u8)
}

/// A name of rgb.txt; case and spaces do not matter.
fn named(name: &str) -> Option<(u8, u8, u8)> {
    let name: String = name.chars().filter(|c| *c != ' ').map(|c| c.to_ascii_lowercase()).collect();
    if let Ok(found) = NAMES.binary_search_by(|(known, _)| (*known).cmp(name.as_str())) {
        let [_, red, green, blue] = NAMES[found].1.to_be_bytes();
        return Some((red, green, blue));
    }
    let hundredths = name.strip_prefix("gray").or_else(|| name.strip_prefix("grey"))?;
    let is_plain = hundredths.bytes().all(|byte| byte.is_ascii_digit());
    let hundredths = hundredths.parse::<u32>().ok().filter(|n| is_plain && *n <= 100)?;
    let level = ((hundredths * 255 + 50) / 100) as u8;
    Some((level, level, level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs() {
        for (spec, want) in [
            ("rgb:ff/80/00", Some((255, 128, 0))),
            ("rgb:ffff/8080/0000", Some((255, 128, 0))),
            ("rgb:f/8/0", Some((255, 136, 0))),
            ("#ff8000", Some((255, 128, 0))),
            ("#f80", Some((240, 128, 0))),
            ("#ffff80800000", Some((255, 128, 0))),
            ("RGB:ff/80/00", Some((255, 128, 0))),
            ("Red", Some((255, 0, 0))),
            ("Gray", Some((190, 190, 190))),
            ("gray0", Some((0, 0, 0))),
            ("grey10", Some((26, 26, 26))),
            ("gray50", Some((127, 127, 127))),
            ("GREY100", Some((255, 255, 255))),
            ("light goldenrod yellow", Some((250, 250, 210))),
            ("LightGoldenrodYellow", Some((250, 250, 210))),
            ("DarkOliveGreen3", Some((162, 205, 90))),
            ("alice blue", Some((240, 248, 255))),
            ("YellowGreen", Some((154, 205, 50))),
            ("gray101", None),
            ("gray+5", None),
            ("", None),
            ("rgb:1/2", None),
            ("rgb:1/2/3/4", None),
            ("rgb:/2/3", None),
            ("rgb:+1/2/3", None),
            ("#12345", None),
            ("#\u{e9}\u{e9}\u{e9}", None),
            ("nonsense", None),
        ] {
            assert_eq!(parse(spec), want, "{spec}");
        }
    }

    #[test]
    fn names_are_sorted() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        for (name, rgb) in &NAMES {
            let [_, red, green, blue] = rgb.to_be_bytes();
            assert_eq!(parse(name), Some((red, green, blue)), "{name}");
        }
    }

    #[test]
    fn palette() {
        for (index, want) in [
            (1, (205, 0, 0)),
            (16, (0, 0, 0)),
            (21, (0, 0, 255)),
            (231, (255, 255, 255)),
            (232, (8, 8, 8)),
            (255, (238, 238, 238)),
        ] {
            assert_eq!(default_palette(index), want, "{index}");
        }
    }
}
