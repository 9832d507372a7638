//! Colours as the operating system commands name them, and what they are when nobody changed them.

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

/// `rgb:r/g/b` with one to four digits each, `#rgb` with one to four digits each (XParseColor), and the
/// names of the eight colours with black and white.
pub(crate) fn parse(spec: &str) -> Option<(u8, u8, u8)> {
    if let Some(rest) = spec.strip_prefix("rgb:") {
        let mut words = rest.split('/').map(scaled);
        let rgb = (words.next()??, words.next()??, words.next()??);
        return words.next().is_none().then_some(rgb);
    }
    if let Some(digits) = spec.strip_prefix('#') {
        if !digits.is_ascii() || digits.len() % 3 != 0 || !(3..=12).contains(&digits.len()) {
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
        return Some((part(0)?, part(1)?, part(2)?));
    }
    named(spec)
}

fn scaled(digits: &str) -> Option<u8> {
    if !(1..=4).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    let most = (1u32 << (4 * digits.len())) - 1;
    Some((value * 255 / most) as u8)
}

fn named(name: &str) -> Option<(u8, u8, u8)> {
    const NAMES: [(&str, (u8, u8, u8)); 9] = [
        ("black", (0, 0, 0)),
        ("red", (255, 0, 0)),
        ("green", (0, 255, 0)),
        ("yellow", (255, 255, 0)),
        ("blue", (0, 0, 255)),
        ("magenta", (255, 0, 255)),
        ("cyan", (0, 255, 255)),
        ("white", (255, 255, 255)),
        ("gray", (190, 190, 190)),
    ];
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, rgb)| *rgb)
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
            ("Red", Some((255, 0, 0))),
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
