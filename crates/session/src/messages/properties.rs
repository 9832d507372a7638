//! The message that says what the user's terminal looks like and saves: our extension 18 of the user's diff.
//! It holds numbers alone; values out of bounds are left out.

use alloc::vec::Vec;

use rove_ssp::BadDiff;
use rove_term::properties::{Rgb, SavesErased, Scheme, TerminalProperties};

use crate::messages::fields::{EXT_PROPERTIES, Value, each_field, write_numbers};

// Field numbers. Colours are 0xRRGGBB; a palette entry's number is added to the first one's.
const FOREGROUND: u32 = 1;
const BACKGROUND: u32 = 2;
const CURSOR: u32 = 3;
/// 1 dark, 2 light, as the report 997 has it.
const SCHEME: u32 = 4;
const CELL_WIDTH: u32 = 5;
const CELL_HEIGHT: u32 = 6;
/// What puts a screen into the history: 1 ED 2, 2 also ED 0 from the first cell.
const SAVES_ERASED: u32 = 7;
const PALETTE: u32 = 16;

pub(super) fn read(message: &[u8]) -> Result<TerminalProperties, BadDiff> {
    let mut around = TerminalProperties::default();
    let (mut width, mut height) = (0, 0);
    each_field(message, |number, value| {
        let Value::Number(value) = value else { return Ok(()) };
        let pixels = u16::try_from(value).unwrap_or(0);
        match number {
            FOREGROUND => around.foreground = color(value),
            BACKGROUND => around.background = color(value),
            CURSOR => around.cursor = color(value),
            SCHEME => {
                around.scheme = match value {
                    1 => Some(Scheme::Dark),
                    2 => Some(Scheme::Light),
                    _ => None,
                }
            }
            CELL_WIDTH => width = pixels,
            CELL_HEIGHT => height = pixels,
            SAVES_ERASED => {
                around.saves_erased = match value {
                    1 => SavesErased::All,
                    2 => SavesErased::FromHome,
                    _ => SavesErased::Never,
                }
            }
            PALETTE.. => {
                if let Some(entry) = around.palette.get_mut((number - PALETTE) as usize) {
                    *entry = color(value);
                }
            }
            _ => {}
        }
        Ok(())
    })?;
    around.cell = (width > 0 && height > 0).then_some((width, height));
    Ok(around)
}

pub(super) fn write(around: &TerminalProperties, out: &mut Vec<u8>) {
    let number = |rgb: Rgb| u64::from(u32::from_be_bytes([0, rgb.0, rgb.1, rgb.2]));
    let scheme = around.scheme.map(|scheme| match scheme {
        Scheme::Dark => 1,
        Scheme::Light => 2,
    });
    let saves_erased = match around.saves_erased {
        SavesErased::Never => None,
        SavesErased::All => Some(1),
        SavesErased::FromHome => Some(2),
    };
    let known = [
        (FOREGROUND, around.foreground.map(number)),
        (BACKGROUND, around.background.map(number)),
        (CURSOR, around.cursor.map(number)),
        (SCHEME, scheme),
        (CELL_WIDTH, around.cell.map(|(width, _)| width.into())),
        (CELL_HEIGHT, around.cell.map(|(_, height)| height.into())),
        (SAVES_ERASED, saves_erased),
    ];
    let entries = (PALETTE..).zip(around.palette.map(|entry| entry.map(number)));
    let fields = known.into_iter().chain(entries);
    let fields: Vec<(u32, u64)> =
        fields.filter_map(|(field, value)| Some((field, value?))).collect();
    write_numbers(EXT_PROPERTIES, &fields, out);
}

fn color(number: u64) -> Option<Rgb> {
    let [0, red, green, blue] = u32::try_from(number).ok()?.to_be_bytes() else { return None };
    Some(Rgb(red, green, blue))
}
