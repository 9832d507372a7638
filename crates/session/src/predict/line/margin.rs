//! Learns at which column programs break or scroll a line.
//!
//! Editors that fill paragraphs move the last word to the next row, some when a letter no longer
//! fits, some at the space after it; input lines scroll left. The column is known once the text
//! that stayed and the text that moved leave no other. It knows nothing of screens, frames or
//! epochs.

/// How a program reflows a line that reaches the margin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reflow {
    /// A letter that no longer fits takes its word to this column of the next row.
    LetterWraps(u16),
    /// A space beyond the margin takes the word before it there.
    SpaceWraps(u16),
    /// The line moves left, but for its first `kept` columns, until the cursor is at column `to`.
    Scrolls { kept: u16, to: u16 },
}

impl Reflow {
    /// Whether typing `c` may set it off.
    pub(crate) fn is_triggered_by(self, c: char) -> bool {
        match self {
            Self::LetterWraps(_) => c != ' ',
            Self::SpaceWraps(_) => c == ' ',
            Self::Scrolls { .. } => true,
        }
    }

    fn is_like(self, other: Self) -> bool {
        core::mem::discriminant(&self) == core::mem::discriminant(&other)
    }
}

/// The expected effect of a character typed at some column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MarginEffect {
    /// It stays where it is typed, as far as is known.
    Remains,
    /// It may reflow the line, or may not.
    Unclear,
    /// It does.
    Reflows(Reflow),
}

/// Where the text goes that stands in the row to which a word is taken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Displaced {
    /// That was not seen yet.
    #[default]
    Unknown,
    /// It moves down: a row is opened before it.
    MovesDown,
    /// Something else.
    Otherwise,
}

/// The margin of the line that is edited.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Margin {
    known: Option<Known>,
    displaced: Displaced,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    reflow: Reflow,
    /// Below this column characters were seen to stay.
    stays: u16,
    /// From this column on they were seen to move.
    moves: u16,
    /// In between they were seen to do both.
    both: bool,
}

/// Columns that are as near as this belong to one margin, which then does not go by columns alone.
const NEAR_COLS: u16 = 4;

impl Margin {
    /// The expected effect of `c` typed at this column.
    pub(crate) fn effect_of(&self, c: char, col: u16) -> MarginEffect {
        match self.known.filter(|known| known.reflow.is_triggered_by(c)) {
            Some(known) if col >= known.moves => MarginEffect::Reflows(known.reflow),
            // Between the two nothing was seen yet.
            Some(known) if col >= known.stays => MarginEffect::Unclear,
            _ => MarginEffect::Remains,
        }
    }

    /// The line did this when a character was typed, at the first of these columns or a later one
    /// up to the last.
    pub(crate) fn moved(&mut self, reflow: Reflow, first: u16, last: u16) {
        // Another kind of reflow is of another program: its columns say nothing here.
        let before = self.known.filter(|known| known.reflow.is_like(reflow));
        // Each sighting narrows the columns between which the margin lies.
        let (stays, moves) = match before {
            Some(known) => (known.stays.max(first), known.moves.min(last)),
            None => (first, last),
        };
        let (stays, moves, both) = match stays.checked_sub(moves) {
            None | Some(0) => (stays, moves, false),
            // Irssi's input line scrolls a column earlier the second time.
            Some(1..NEAR_COLS) => (moves, stays, true),
            // Columns that contradict each other are of two programs, or of two windows.
            Some(_) => (first, last, false),
        };
        let both = both || before.is_some_and(|known| known.both && known.stays <= first);
        self.known = Some(Known { reflow, stays, moves, both });
    }

    /// A word was taken to a row where this became of the text.
    pub(crate) fn note_displaced(&mut self, displaced: Displaced) {
        // A word taken to an empty row says nothing of text below.
        if displaced != Displaced::Unknown {
            self.displaced = displaced;
        }
    }

    /// Where the text goes that stands in the row to which a word is taken.
    pub(crate) fn displaced(&self) -> Displaced {
        self.displaced
    }

    /// A character stayed there.
    pub(crate) fn stayed(&mut self, c: char, col: u16) {
        let Some(known) = self.known.as_mut().filter(|known| known.reflow.is_triggered_by(c))
        else {
            return;
        };
        // Where lines were seen to break this one did not: the program has changed.
        if col >= known.moves {
            self.known = None;
        } else if !known.both {
            known.stays = known.stays.max(col + 1);
        }
    }

    /// Something is known of where lines end.
    pub(crate) fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// It did not do what was expected.
    pub(crate) fn forget(&mut self) {
        self.known = None;
        self.displaced = Displaced::Unknown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_is_found_between_what_stays_and_what_moves() {
        let wraps = Reflow::LetterWraps(0);
        let mut margin = Margin::default();
        assert_eq!(margin.effect_of('x', 79), MarginEffect::Remains);
        margin.moved(wraps, 70, 74);
        for (c, col, at_margin) in [
            ('x', 69, MarginEffect::Remains),
            ('x', 70, MarginEffect::Unclear),
            ('x', 74, MarginEffect::Reflows(wraps)),
            (' ', 74, MarginEffect::Remains),
        ] {
            assert_eq!(margin.effect_of(c, col), at_margin, "{c:?} at {col}");
        }
        margin.stayed('x', 71);
        margin.moved(wraps, 68, 72);
        assert_eq!(margin.effect_of('x', 71), MarginEffect::Remains);
        assert_eq!(margin.effect_of('x', 72), MarginEffect::Reflows(wraps));
        margin.stayed(' ', 75);
        assert_eq!(margin.effect_of('x', 72), MarginEffect::Reflows(wraps));
        margin.stayed('x', 72);
        assert_eq!(margin.effect_of('x', 72), MarginEffect::Remains, "nothing is known any more");
    }

    #[test]
    fn another_program_has_another_margin() {
        let mut margin = Margin::default();
        margin.moved(Reflow::LetterWraps(0), 70, 70);
        margin.moved(Reflow::LetterWraps(4), 40, 41);
        assert_eq!(margin.effect_of('x', 40), MarginEffect::Unclear);
        assert_eq!(margin.effect_of('x', 41), MarginEffect::Reflows(Reflow::LetterWraps(4)));
        margin.moved(Reflow::SpaceWraps(0), 60, 60);
        assert_eq!(margin.effect_of('x', 79), MarginEffect::Remains);
        assert_eq!(margin.effect_of(' ', 60), MarginEffect::Reflows(Reflow::SpaceWraps(0)));
    }
    #[test]
    fn columns_that_disagree_by_little_are_unclear() {
        let scrolls = Reflow::Scrolls { kept: 2, to: 57 };
        let mut margin = Margin::default();
        margin.moved(scrolls, 78, 78);
        margin.moved(scrolls, 77, 77);
        for typed_before in [76, 77] {
            margin.stayed('x', typed_before);
            assert_eq!(margin.effect_of('x', 76), MarginEffect::Remains);
            assert_eq!(margin.effect_of('x', 77), MarginEffect::Unclear);
            assert_eq!(margin.effect_of('x', 78), MarginEffect::Reflows(scrolls));
        }
        margin.stayed('x', 78);
        assert_eq!(margin.effect_of('x', 78), MarginEffect::Remains, "nothing is known any more");
    }
}
