//! Converts the device-independent colour spaces of X11, as XParseColor reads them, to the colours of an uncalibrated
//! screen, which xterm answers.
//!
//! The screen is the one that X11 assumes. Its curves were measured at xterm 379, from its answers to `rgbi` of
//! 131,073 greys; between two knots they are straight. Colours that it cannot show lose chroma, in TekHVC, and keep
//! hue and value.

/// From CIE XYZ to the screen's intensities.
const TO_RGB: [[f64; 3]; 3] = [
    [3.483_404_812_535_39, -1.521_763_749_272_852, -0.559_231_333_540_497_8],
    [-1.071_527_513_061_93, 1.965_937_952_043_724, 0.036_736_913_395_534_62],
    [0.063_511_797_904_977_88, -0.200_205_010_004_964_8, 0.810_709_420_316_482_2],
];
/// The screen's white, all three intensities at their most.
const WHITE: [f64; 3] = [0.949_664_4, 1.0, 1.406_040_3];
/// Beyond 0 and 1 by so much a colour still counts as one that can be shown.
const TOLERANCE: f64 = 0.000_01;
/// Halvings of the chroma that a colour keeps: to well below one level.
const HALVINGS: usize = 60;
/// Below this L* lightness is linear, and below this Y (CIE 15).
const DARK_LIGHTNESS: f64 = 7.999_536_24;
const DARK_LUMINANCE: f64 = 0.008_856;
/// The slope of that line.
const DARK_SLOPE: f64 = 903.29;
/// TekHVC: where hue 0 is, in u' and v', and how much chroma a unit of distance is.
const BEST_RED: (f64, f64) = (0.7127, 0.4931);
const CHROMA_SCALE: f64 = 7.50725;

/// One phosphor: the level of the first knot, and at what intensity, in hundred-thousandths, each knot lies. The
/// later ones are at the multiples of five.
struct Curve {
    first: u8,
    knots: &'static [u32],
}

#[rustfmt::skip]
const CURVES: [Curve; 3] = [
    Curve { first: 9, knots: &[
        0, 93, 148, 233, 353, 513, 717, 970, 1276, 1639, 2064, 2554, 3112, 3743, 4451, 5238, 6107,
        7063, 8107, 9244, 10_475, 11_803, 13_231, 14_762, 16_396, 18_138, 19_988, 21_948, 24_021,
        26_208, 28_510, 30_929, 33_466, 36_122, 38_898, 41_796, 44_815, 47_957, 51_222, 54_610,
        58_121, 61_757, 65_516, 69_399, 73_405, 77_534, 81_785, 86_159, 90_653, 95_268, 100_000,
    ] },
    Curve { first: 19, knots: &[
        0, 83, 200, 361, 574, 843, 1175, 1574, 2046, 2596, 3228, 3945, 4752, 5652, 6649, 7744,
        8941, 10_242, 11_649, 13_163, 14_786, 16_518, 18_361, 20_314, 22_379, 24_554, 26_839,
        29_234, 31_736, 34_345, 37_059, 39_876, 42_793, 45_808, 48_918, 52_119, 55_408, 58_781,
        62_234, 65_762, 69_360, 73_024, 76_748, 80_525, 84_350, 88_218, 92_120, 96_051, 100_000,
    ] },
    Curve { first: 14, knots: &[
        0, 134, 208, 319, 473, 677, 936, 1256, 1643, 2101, 2634, 3249, 3948, 4736, 5616, 6591,
        7664, 8838, 10_115, 11_497, 12_987, 14_585, 16_292, 18_110, 20_039, 22_080, 24_231, 26_495,
        28_868, 31_351, 33_942, 36_640, 39_443, 42_350, 45_356, 48_461, 51_660, 54_951, 58_330,
        61_794, 65_338, 68_957, 72_647, 76_403, 80_219, 84_091, 88_011, 91_974, 95_973, 100_000,
    ] },
];

/// A colour of a space of that name, whose coordinates are separated by slashes.
pub(super) fn parse(space: &str, coordinates: &str) -> Option<(u8, u8, u8)> {
    let color = numbers(coordinates)?;
    let is = |name: &str| space.eq_ignore_ascii_case(name);
    if is("rgbi") {
        return color.iter().all(|part| (0.0..=1.0).contains(part)).then(|| levels(color));
    }
    let xyz = match () {
        () if is("CIEXYZ") => color,
        () if is("CIEuvY") => from_uvy(color)?,
        () if is("CIExyY") => from_xyy(color)?,
        () if is("CIELab") => from_lab(color)?,
        () if is("CIELuv") => from_luv(color)?,
        () if is("TekHVC") => from_hvc(color)?,
        () => return None,
    };
    let shown = showable(xyz)?;
    shown.iter().all(|part| part.is_finite()).then(|| levels(shown))
}

fn numbers(words: &str) -> Option<[f64; 3]> {
    let is_number = |byte: u8| byte.is_ascii_digit() || b".eE+-".contains(&byte);
    let number = |word: &str| {
        let value: f64 = word.parse().ok().filter(|_| word.bytes().all(is_number))?;
        value.is_finite().then_some(value)
    };
    let mut words = words.split('/').map(number);
    let triple = [words.next()??, words.next()??, words.next()??];
    words.next().is_none().then_some(triple)
}

fn from_xyy([x, y, luminance]: [f64; 3]) -> Option<[f64; 3]> {
    (y != 0.0).then(|| [x * luminance / y, luminance, (1.0 - x - y) * luminance / y])
}

fn from_uvy([u, v, luminance]: [f64; 3]) -> Option<[f64; 3]> {
    let scale = luminance / (4.0 * v);
    (v != 0.0).then_some([scale * 9.0 * u, luminance, scale * (12.0 - 3.0 * u - 20.0 * v)])
}

/// In X11's library a* and b* are hundredths of CIE's, and what is dark is a hundred times as bright.
fn from_lab([lightness, a, b]: [f64; 3]) -> Option<[f64; 3]> {
    if !(0.0..=100.0).contains(&lightness) {
        return None;
    }
    let root = (lightness + 16.0) / 116.0;
    if cube(root) < DARK_LUMINANCE {
        let dark = 100.0 * lightness / 903.292;
        return Some([WHITE[0] * (a / 3893.5 + dark), dark, WHITE[2] * (dark - b / 1557.4)]);
    }
    let [x, y, z] = [root + a / 5.0, root, root - b / 2.0].map(cube);
    Some([WHITE[0] * x, y, WHITE[2] * z])
}

/// u* and v* are hundredths of CIE's, too.
fn from_luv([lightness, u, v]: [f64; 3]) -> Option<[f64; 3]> {
    if !(0.0..=100.0).contains(&lightness) {
        return None;
    }
    if lightness == 0.0 {
        return Some([0.0; 3]);
    }
    let scale = 13.0 * lightness / 100.0;
    let (white_u, white_v) = chromaticity(WHITE);
    from_uvy([u / scale + white_u, v / scale + white_v, luminance(lightness)])
}

fn cube(root: f64) -> f64 {
    root * root * root
}

fn from_hvc([hue, value, chroma]: [f64; 3]) -> Option<[f64; 3]> {
    if !(0.0..=100.0).contains(&value) {
        return None;
    }
    if value == 0.0 {
        return Some([0.0; 3]);
    }
    let (sin, cos) = libm::sincos(hue.to_radians() + hue_origin());
    let distance = chroma / (value * CHROMA_SCALE);
    let (white_u, white_v) = chromaticity(WHITE);
    from_uvy([distance * cos + white_u, distance * sin + white_v, luminance(value)])
}

/// The angle of hue 0 around the white point.
fn hue_origin() -> f64 {
    let (u, v) = chromaticity(WHITE);
    libm::atan((BEST_RED.1 - v) / (BEST_RED.0 - u))
}

fn to_hvc(color: [f64; 3]) -> [f64; 3] {
    let (u, v) = chromaticity(color);
    let (white_u, white_v) = chromaticity(WHITE);
    let (u, v) = (u - white_u, v - white_v);
    let value = match color[1] < DARK_LUMINANCE {
        true => DARK_SLOPE * color[1],
        false => 116.0 * libm::cbrt(color[1]) - 16.0,
    };
    let turned = (libm::atan2(v, u) - hue_origin()).to_degrees() % 360.0;
    let hue = if turned < 0.0 { turned + 360.0 } else { turned };
    [hue, value, value * CHROMA_SCALE * libm::hypot(u, v)]
}

/// u' and v' of CIE 1976.
fn chromaticity([x, y, z]: [f64; 3]) -> (f64, f64) {
    match x + 15.0 * y + 3.0 * z {
        0.0 => chromaticity(WHITE),
        sum => (4.0 * x / sum, 9.0 * y / sum),
    }
}

/// Y of an L*.
fn luminance(lightness: f64) -> f64 {
    match lightness < DARK_LIGHTNESS {
        true => lightness / DARK_SLOPE,
        false => cube((lightness + 16.0) / 116.0),
    }
}

fn intensities(color: [f64; 3]) -> [f64; 3] {
    TO_RGB.map(|row| row.iter().zip(color).map(|(a, b)| a * b).sum())
}

fn is_shown(intensities: &[f64; 3]) -> bool {
    intensities.iter().all(|part| (-TOLERANCE..=1.0 + TOLERANCE).contains(part))
}

/// The intensities of the nearest colour that the screen has.
fn showable(color: [f64; 3]) -> Option<[f64; 3]> {
    let exact = intensities(color);
    if is_shown(&exact) {
        return Some(exact.map(lit));
    }
    let [hue, value, chroma] = to_hvc(color);
    if value >= 100.0 {
        return Some([1.0; 3]);
    }
    let (mut kept, mut lost) = (0.0, chroma);
    for _ in 0..HALVINGS {
        let middle = (kept + lost) / 2.0;
        match is_shown(&intensities(from_hvc([hue, value, middle])?)) {
            true => kept = middle,
            false => lost = middle,
        }
    }
    Some(intensities(from_hvc([hue, value, kept])?).map(lit))
}

/// Within the screen's range, and not quite dark: what a curve gives there is its first level.
fn lit(intensity: f64) -> f64 {
    intensity.clamp(f64::MIN_POSITIVE, 1.0)
}

fn levels(intensities: [f64; 3]) -> (u8, u8, u8) {
    let [red, green, blue] = CURVES;
    let [r, g, b] = intensities;
    (red.level(r), green.level(g), blue.level(b))
}

impl Curve {
    /// The level nearest to an intensity between 0 and 1.
    fn level(&self, intensity: f64) -> u8 {
        if intensity <= 0.0 {
            return 0;
        }
        let wanted = intensity * 100_000.0;
        let after = self.knots.partition_point(|knot| f64::from(*knot) <= wanted);
        let knot = |at: usize| self.knots.get(at).map(|knot| f64::from(*knot));
        let (Some(low), Some(high)) = (after.checked_sub(1).and_then(knot), knot(after)) else {
            return u8::MAX;
        };
        let (from, to) = (self.knot_level(after - 1), self.knot_level(after));
        libm::round(from + (wanted - low) / (high - low) * (to - from)) as u8
    }

    fn knot_level(&self, at: usize) -> f64 {
        let later = 5 * (usize::from(self.first) / 5 + at);
        if at == 0 { f64::from(self.first) } else { later as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers of xterm 379.
    #[test]
    fn as_xterm_shows_them() {
        for (spec, want) in [
            ("rgbi:1/1/1", Some("ffffff")),
            ("rgbi:0.5/0.5/0.5", Some("c1bbbb")),
            ("rgbi:0/0/0", Some("000000")),
            ("rgbi:0.001/0.01/0.1", Some("0b2a64")),
            ("CIEXYZ:1/1/1", Some("ffffff")),
            ("CIEXYZ:0.5/0.5/0.5", Some("ddb5a0")),
            ("CIEuvY:1/1/1", Some("ffffff")),
            ("CIEuvY:0.5/0.5/0.5", Some("ffa3ae")),
            ("CIExyY:1/1/1", Some("ffffff")),
            ("CIExyY:0.5/0.5/0.5", Some("f7b30e")),
            ("CIELab:1/1/1", Some("6c6767")),
            ("CIELab:0.5/0.5/0.5", Some("524f4f")),
            ("CIELuv:1/1/1", Some("16140e")),
            ("CIELuv:0.5/0.5/0.5", Some("0e130e")),
            ("TekHVC:1/1/1", Some("1a130f")),
            ("TekHVC:0.5/0.5/0.5", Some("11130e")),
            ("CIEXYZ:0.463/0.373/0.152", Some("fb8b5b")),
            ("CIEuvY:0.527/0.203/0.503", Some("ff9bd9")),
            ("CIExyY:0.634/0.103/0.554", Some("ffacc8")),
            ("CIELab:61.67/-0.92/-0.10", Some("09a89f")),
            ("CIELuv:70.35/-0.10/0.45", Some("a8b582")),
            ("TekHVC:56.6/23.8/11.1", Some("554532")),
            ("CIEXYZ:0.506/0.924/0.649", Some("e1ffe7")),
            ("CIEuvY:0.476/0.353/0.746", Some("ffd3e4")),
            ("CIEXYZ:0.879/0.055/0.417", Some("8d135a")),
            ("CIEuvY:0.320/0.209/0.425", Some("f77cff")),
            ("CIExyY:0.639/0.123/0.597", Some("ffb6cd")),
            ("CIEXYZ:0.497/0.921/0.462", Some("e2ffe2")),
            ("CIEuvY:0.269/0.455/0.093", Some("8e4f5a")),
            ("CIExyY:0.427/0.162/0.609", Some("ffb7d6")),
            ("CIELab:95.83/-0.89/0.04", Some("cbffef")),
            ("CIELuv:60.64/-0.70/-0.46", Some("09a2af")),
            ("TekHVC:358.2/99.8/12.1", Some("fffefe")),
            ("rgbi:1.1/0/0", None),
            ("rgbi:-1/0/0", None),
            ("rgbi:nan/0/0", None),
            ("rgbi:1/0", None),
            ("CIEXYZ:1/1/1/1", None),
            ("CIEXYZ:1e999/0/0", None),
            ("CIExyY:0.3/0/1", None),
            ("TekHVC:0/101/0", None),
            ("CIELab:-1/0/0", None),
            ("CIEXYZ:", None),
            ("CMYK:1/1/1", None),
        ] {
            let (space, coordinates) = spec.split_once(':').expect("a space");
            let hex = |(r, g, b)| format!("{r:02x}{g:02x}{b:02x}");
            assert_eq!(parse(space, coordinates).map(hex).as_deref(), want, "{spec}");
        }
    }
}
