//! Finds where a prompt stands, and whether anything stands below it.

use alloc::vec::Vec;
use core::ops::Range;

use rove_ssp::StateNum;
use rove_term::Screen;

use crate::predict::evidence::typed::TypedPosition;
use crate::predict::window::{char_of, is_bar, is_blank, is_horizontal, is_vertical};

/// Rows at the foot of the screen where a window may end, above a bar. There a new line scrolls the
/// prompt away.
pub(super) const FOOT_ROWS: u16 = 3;

/// Columns of a prompt that are remembered, back from its end.
pub(super) const PROMPT_COLS: u16 = 8;

/// The prompt before a line that Enter ended: the command that runs was started there.
#[derive(Clone, Debug)]
pub(super) struct Prompt {
    pub(super) row: u16,
    pub(super) col: u16,
    /// Empty where it is not known.
    pub(super) text: Vec<char>,
    /// Where the cursor was seen last in its row: the effect of Enter may show later than its echo
    /// ack.
    pub(super) left: (u16, u16),
    /// The state that carried Enter.
    pub(super) entered: StateNum,
    /// Text typed before this is echoed already, as far as it ever is.
    pub(super) since: TypedPosition,
}

impl Prompt {
    /// The prompt before the typed text of this row, which begins at `begin`.
    pub(super) fn new(
        row: u16,
        begin: u16,
        screen: &Screen,
        left: (u16, u16),
        entered: StateNum,
    ) -> Self {
        let col = begin.saturating_sub(PROMPT_COLS);
        let text = screen.row(row).cells()[usize::from(col)..usize::from(begin)].iter();
        let text = text.copied().map(char_of).collect();
        Self { row, col, text, left, entered, since: TypedPosition::default() }
    }

    /// Its place is lost: it counts as above any row below which nothing stands.
    pub(super) fn lose_text(&mut self) {
        self.col = 0;
        self.text.clear();
    }

    /// Another line was ended.
    pub(super) fn goes_on(&mut self, entered: StateNum, screen: &Screen) {
        // A line whose prompt is not known may have been a shell's too.
        if self.text.is_empty() {
            (self.entered, self.left) = (entered, (screen.cursor().row, screen.cursor().col));
        }
    }

    /// This place is below it, also where it has scrolled out of the window, or was cleared away.
    pub(super) fn is_above(&self, row: u16, col: u16, screen: &Screen) -> bool {
        let stands = |rows: Range<u16>| !self.text.is_empty() && self.stands(rows, screen);
        let gone = || !stands(row..screen.size().rows) && is_last(row, col, screen);
        self.is_foot(row, screen) || stands(0..row) || gone()
    }

    /// This row is at the foot of the screen, where the rows above scroll away.
    pub(super) fn is_foot(&self, row: u16, screen: &Screen) -> bool {
        row >= self.row && row + FOOT_ROWS >= screen.size().rows
    }

    /// It stands in one of these rows.
    pub(super) fn stands(&self, rows: Range<u16>, screen: &Screen) -> bool {
        rows.into_iter().any(|row| self.end(row, screen).is_some())
    }

    /// One past its text in this row, if it stands there.
    pub(super) fn end(&self, row: u16, screen: &Screen) -> Option<u16> {
        let cells = screen.row(row).cells().iter().skip(usize::from(self.col));
        let cells = cells.take(self.text.len()).copied().map(char_of);
        cells.eq(self.text.iter().copied()).then_some(self.col + self.text.len() as u16)
    }
}

/// Below this row nothing stands in its window, in the columns of a prompt that ends at `begin` in
/// the row `top`.
pub(super) fn ends_window(top: u16, begin: u16, row: u16, screen: &Screen) -> bool {
    let border = (1..=begin).rev().find(|col| follows_border(screen, top, *col));
    let window = usize::from(border.unwrap_or(0))..usize::from(begin);
    // The last row may be a status line. Bars at the foot are those of nested multiplexers.
    let foot = (row + 1..screen.size().rows).rev().take_while(|row| is_bar(*row, screen));
    let below = (row + 1..screen.size().rows - (foot.count() as u16).max(1))
        .map(|row| &screen.row(row).cells()[window.clone()]);
    // The border of the window below begins with a line, and may have a title.
    let mut below =
        below.take_while(|cells| !cells.first().is_none_or(|c| is_horizontal(char_of(*c))));
    below.all(|cells| cells.iter().all(|cell| is_blank(*cell)))
}

/// Nothing stands below this place in its window.
pub(super) fn is_last(row: u16, col: u16, screen: &Screen) -> bool {
    ends_window(row, (col + PROMPT_COLS).min(screen.size().cols), row, screen)
}

/// In the column left of `begin` stands the border of another window.
pub(super) fn follows_border(screen: &Screen, row: u16, begin: u16) -> bool {
    let Some(col) = begin.checked_sub(1) else { return false };
    let at = |row: u16| screen.cell(row, col).map(char_of);
    let Some(here) = at(row).filter(|c| *c != ' ') else { return false };
    let above = row.checked_sub(1).and_then(at);
    let below = at(row + 1);
    let alike = |c: Option<char>| c == Some(here) || c.is_some_and(is_vertical);
    // Any character may draw a border that is repeated in the rows above and below.
    is_vertical(here) || (alike(above) && alike(below))
}
