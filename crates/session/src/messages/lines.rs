//! The lines above the screen on the wire (host extensions 19 and 20).

use alloc::vec::Vec;

use rove_ssp::BadDiff;

use crate::messages::fields::{
    DEPTH_DEPTH, DEPTH_ERASED, DEPTH_FALLS, DEPTH_TOLD, EXT_DEPTH, EXT_ROWS, ROWS_COLS, ROWS_COUNT,
    ROWS_FIRST, ROWS_KEPT, ROWS_OPEN, ROWS_TEXT, Value, each_field, numbers_of, octets_of,
    write_fields,
};

/// The depth of a screen on the wire.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DepthFields {
    /// The position of the screen's row 0.
    pub depth: u64,
    /// Lines before this position are told.
    pub told: u64,
    /// Lines before this position were erased.
    pub erased: u64,
    /// How often lines that were told are to be told again.
    pub falls: u64,
}

/// Lines on the wire.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RowsFields<'a> {
    /// The position of the first, if that is not the next after what the base was told, or after the event before.
    pub first: Option<u64>,
    /// How many, from the first on, stood unchanged on the base's screen.
    pub kept: u64,
    /// The others, as a program prints them.
    pub text: &'a [u8],
    /// How many lines that are.
    pub count: u64,
    /// Columns of their rows.
    pub cols: u64,
    /// The line of the last one goes on in the next row.
    pub open: bool,
}

pub(super) fn read_depth(message: &[u8]) -> Result<DepthFields, BadDiff> {
    let [depth, told, erased, falls] =
        numbers_of(message, [DEPTH_DEPTH, DEPTH_TOLD, DEPTH_ERASED, DEPTH_FALLS])?;
    Ok(DepthFields { depth, told, erased, falls })
}

pub(super) fn write_depth(fields: &DepthFields, out: &mut Vec<u8>) {
    let &DepthFields { depth, told, erased, falls } = fields;
    let numbers =
        [(DEPTH_DEPTH, depth), (DEPTH_TOLD, told), (DEPTH_ERASED, erased), (DEPTH_FALLS, falls)];
    write_fields(EXT_DEPTH, &present(&numbers).collect::<Vec<_>>(), &[], out);
}

pub(super) fn read_rows(message: &[u8]) -> Result<RowsFields<'_>, BadDiff> {
    let [text] = octets_of(message, [ROWS_TEXT])?;
    let [cols, count, kept, open] =
        numbers_of(message, [ROWS_COLS, ROWS_COUNT, ROWS_KEPT, ROWS_OPEN])?;
    let mut first = None;
    each_field(message, |number, value| {
        if let (ROWS_FIRST, Value::Number(position)) = (number, value) {
            first = Some(position);
        }
        Ok(())
    })?;
    Ok(RowsFields { first, cols, count, kept, text: text.unwrap_or_default(), open: open != 0 })
}

pub(super) fn write_rows(rows: &RowsFields<'_>, out: &mut Vec<u8>) {
    let &RowsFields { first, cols, count, kept, text, open } = rows;
    let numbers =
        [(ROWS_COLS, cols), (ROWS_COUNT, count), (ROWS_KEPT, kept), (ROWS_OPEN, open.into())];
    let first = first.map(|first| (ROWS_FIRST, first));
    let numbers: Vec<_> = first.into_iter().chain(present(&numbers)).collect();
    let text: &[_] = if text.is_empty() { &[] } else { &[(ROWS_TEXT, text)] };
    write_fields(EXT_ROWS, &numbers, text, out);
}

/// The fields that are not 0.
fn present(numbers: &[(u32, u64)]) -> impl Iterator<Item = (u32, u64)> {
    numbers.iter().copied().filter(|(_, n)| *n != 0)
}
