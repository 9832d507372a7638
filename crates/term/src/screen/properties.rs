//! Holds the properties of the user's terminal that a program may learn, even on another host: colours, the colour
//! scheme, the size of a cell. The emulator answers queries from them, and with constants where they are unknown.

use crate::color;
use crate::screen::size::Size;

/// A colour.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// Whether the user reads dark on light or light on dark.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Scheme {
    /// Light text on a dark ground.
    Dark,
    /// Dark text on a light ground.
    Light,
}

/// Which erasures of the whole primary screen put its lines into the history.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum SavesErased {
    /// None: erased lines are gone.
    #[default]
    Never,
    /// ED 2.
    All,
    /// ED 2, and ED 0 with the cursor in the first cell.
    FromHome,
}

/// Entries of the palette that users choose: the first sixteen.
pub const PALETTE_ENTRIES: usize = 16;

/// A cell in pixels, where a program insists on pixels and nobody knows.
const CELL: (u16, u16) = (10, 20);

/// The properties of the user's terminal; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TerminalProperties {
    /// The colour of text (OSC 10).
    pub foreground: Option<Rgb>,
    /// The colour of the ground (OSC 11).
    pub background: Option<Rgb>,
    /// The cursor's colour (OSC 12).
    pub cursor: Option<Rgb>,
    /// The palette's first entries (OSC 4).
    pub palette: [Option<Rgb>; PALETTE_ENTRIES],
    /// The colour scheme.
    pub scheme: Option<Scheme>,
    /// A cell's width and height in pixels, neither 0.
    pub cell: Option<(u16, u16)>,
    /// What becomes of a screen that is erased. Never unless the terminal's history is to have its lines.
    pub saves_erased: SavesErased,
}

impl TerminalProperties {
    /// The scheme, or what the ground's colour makes of it; dark if nothing is known.
    pub fn scheme(&self) -> Scheme {
        // Rec. 709 weights, in thousandths.
        let is_light = |Rgb(red, green, blue): Rgb| {
            let light = 213 * u32::from(red) + 715 * u32::from(green) + 72 * u32::from(blue);
            light > 128 * 1000
        };
        let seen = match self.background.is_some_and(is_light) {
            true => Scheme::Light,
            false => Scheme::Dark,
        };
        self.scheme.unwrap_or(seen)
    }

    /// A palette entry as it is when no program changed it.
    pub(crate) fn palette_color(&self, index: u8) -> (u8, u8, u8) {
        let entry = self.palette.get(usize::from(index)).copied().flatten();
        entry.map_or_else(|| color::default_palette(index), |Rgb(r, g, b)| (r, g, b))
    }

    /// A dynamic colour (OSC 10 to 19) as it is when no program changed it.
    pub(crate) fn dynamic_color(&self, number: u16) -> (u8, u8, u8) {
        let known = match number {
            10 => self.foreground,
            11 => self.background,
            12 => self.cursor,
            _ => None,
        };
        known.map_or_else(|| color::default_dynamic(number), |Rgb(r, g, b)| (r, g, b))
    }

    /// A cell's width and height, with a default if they are unknown.
    pub(crate) fn cell_pixels(&self) -> (u32, u32) {
        let (width, height) = self.cell.unwrap_or(CELL);
        (width.into(), height.into())
    }

    /// Width and height of `size` in pixels, 0 if unknown.
    pub(crate) fn known_pixels(&self, size: Size) -> (u32, u32) {
        let (width, height) = self.cell.unwrap_or((0, 0));
        (u32::from(width) * u32::from(size.cols), u32::from(height) * u32::from(size.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_is_what_the_ground_looks_like() {
        let ground =
            |rgb| TerminalProperties { background: Some(rgb), ..TerminalProperties::default() };
        for (around, scheme) in [
            (TerminalProperties::default(), Scheme::Dark),
            (ground(Rgb(0, 43, 54)), Scheme::Dark),
            (ground(Rgb(253, 246, 227)), Scheme::Light),
            (ground(Rgb(0, 0, 255)), Scheme::Dark),
            (ground(Rgb(0, 255, 0)), Scheme::Light),
            (
                TerminalProperties { scheme: Some(Scheme::Dark), ..ground(Rgb(255, 255, 255)) },
                Scheme::Dark,
            ),
        ] {
            assert_eq!(around.scheme(), scheme, "{around:?}");
        }
    }
}
