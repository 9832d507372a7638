//! Compares two screens cell by cell, by the rules of a stock mosh client: attributes that it cannot hold are
//! ignored.

use std::fmt;

use rove_term::{Dialect, Screen, Style, project, unlike_row};

/// One place where two screens differ.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Difference {
    place: String,
    shown: String,
    wanted: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: shown {}, wanted {}", self.place, self.shown, self.wanted)
    }
}

/// The differences of cells, cursor or size, at most [`DIFFERENCES_MAX`] of them. Titles, bells and modes are
/// ignored: clients put their own name into titles, and keep bells and modes for the user's terminal.
pub(crate) fn differences(shown: &Screen, wanted: &Screen) -> Vec<Difference> {
    let shown = &project(shown, &Dialect::MOSH);
    let wanted = &project(wanted, &Dialect::MOSH);
    let difference =
        |place: String, shown: String, wanted: String| Difference { place, shown, wanted };
    if shown.size() != wanted.size() {
        let sizes = [shown, wanted].map(|screen| format!("{:?}", screen.size()));
        let [shown, wanted] = sizes;
        return vec![difference("size".into(), shown, wanted)];
    }
    let mut all = Vec::new();
    let mut texts = [String::new(), String::new()];
    for row in 0..shown.size().rows {
        for col in 0..shown.size().cols {
            let [was, must] = &mut texts;
            let looks = [cell(shown, row, col, was), cell(wanted, row, col, must)];
            if (looks[0] != looks[1] || was != must) && all.len() < DIFFERENCES_MAX {
                let place = format!("row {row} column {col}");
                let told = |text: &str, look| format!("{text:?} {look:?}");
                all.push(difference(place, told(was, looks[0]), told(must, looks[1])));
            }
        }
    }
    let cursors = [shown, wanted].map(cursor);
    if cursors[0] != cursors[1] {
        let [shown, wanted] = cursors.map(|cursor| format!("{cursor:?}"));
        all.push(difference("cursor".into(), shown, wanted));
    }
    all
}

/// Whether there are none. Rows are compared as a painter compares them, which copies neither screen.
pub(crate) fn are_same(shown: &Screen, wanted: &Screen) -> bool {
    // A cursor that is not shown may be anywhere.
    let both_point = shown.modes().cursor_visible && wanted.modes().cursor_visible;
    match both_point && shown.size() == wanted.size() {
        true => unlike_row(shown, wanted, &Dialect::MOSH, 0..shown.size().rows).is_none(),
        false => differences(shown, wanted).is_empty(),
    }
}

/// The columns and the style of a cell, whose text takes the place of `text`.
fn cell(screen: &Screen, row: u16, col: u16, text: &mut String) -> (u8, Style) {
    text.clear();
    let Some(cell) = screen.cell(row, col) else { return (0, Style::default()) };
    screen.pool().push_text(cell, text);
    let columns = if cell.is_tail() { 0 } else { 1 + u8::from(cell.is_wide()) };
    (columns, screen.cell_style(row, col))
}

/// Row and column of a cursor that is shown.
fn cursor(screen: &Screen) -> Option<(u16, u16)> {
    let cursor = screen.cursor();
    screen.modes().cursor_visible.then_some((cursor.row, cursor.col))
}

/// The most differences listed; a screen that is all wrong needs no longer list.
pub(crate) const DIFFERENCES_MAX: usize = 12;
