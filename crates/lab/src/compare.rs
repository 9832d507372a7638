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

#[cfg(test)]
mod tests {
    use rove_term::{Size, Terminal};

    use super::*;
    use crate::random_output::RandomOutput;

    /// Compares the last screens that a stream leaves with each other, and with screens that differ from them in little.
    #[test]
    fn screens_are_the_same_if_nothing_differs() {
        let little: [&[u8]; 6] = [b"", b"x", b" ", b"\x1b[1mx", b"\x1b[K", b"\x1b[?25l\x1b[3C"];
        let mut seen = [0, 0];
        for seed in 0..200 {
            let mut terminal = Terminal::new(Size::clamped(6, 20), Dialect::ROVE);
            let mut screens = Vec::new();
            for piece in RandomOutput::new(seed).pieces.iter().take(40) {
                terminal.advance(piece);
                screens.push(terminal.screen().clone());
            }
            screens.drain(..screens.len().saturating_sub(3));
            for more in little {
                let mut other = terminal.clone();
                other.advance(more);
                screens.push(other.screen().clone());
            }
            for (a, b) in screens.iter().flat_map(|a| screens.iter().map(move |b| (a, b))) {
                let all = differences(a, b);
                let is_same = are_same(a, b);
                assert_eq!(is_same, all.is_empty(), "seed {seed}: {:?}", all.first());
                seen[usize::from(is_same)] += 1;
            }
        }
        assert!(seen.iter().all(|count| *count > 1_000), "{seen:?}");
    }
}
