//! The line being edited: where it begins, which text is right of the cursor, and where its typed
//! blanks end.
//!
//! It knows neither keys nor epochs.

use rove_term::Screen;

use crate::predict::line::margin::Margin;
use crate::predict::look::Clusters;
use crate::predict::settings::{Rule, Settings};
use crate::predict::window::Borders;

/// The line being edited, as far as it is known from one frame to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct EditedLine {
    /// Where it begins, after the prompt.
    pub(super) origin: Option<(u16, u16)>,
    pub(super) start: LineStart,
    pub(super) right: RightText,
    /// How far the text of a row goes that ends in typed blanks. A frame does not tell them from
    /// empty cells.
    pub(super) typed_end: Option<(u16, u16)>,
}

/// Everything that a key's effect depends on besides the screen it acts on.
#[derive(Debug)]
pub(crate) struct LineContext<'a> {
    pub(crate) base: &'a Screen,
    /// Those of the base.
    pub(crate) borders: &'a Borders,
    pub(crate) clusters: &'a mut Clusters,
    pub(crate) margin: Margin,
    pub(crate) line: &'a EditedLine,
    pub(crate) settings: Settings,
}

/// The text before the place where the line was found to begin.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum LineStart {
    /// A prompt, or the edge: the line was empty there after Enter.
    #[default]
    Prompt,
    /// Perhaps more of the line: it was found again somewhere in it.
    Text,
}

/// The text right of the cursor.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum RightText {
    /// Text that was typed, or nothing.
    #[default]
    Text,
    /// A suggestion: it came by itself, and typing writes over it.
    Suggestion,
}

impl EditedLine {
    /// Forgets where the line is, as when the screen changes its size.
    pub(crate) fn reset(&mut self) {
        (self.origin, self.typed_end) = (None, None);
        self.start = LineStart::Prompt;
    }

    /// A character is typed here: if no beginning is known, this is it.
    pub(crate) fn type_at(&mut self, cursor: (u16, u16)) {
        self.origin.get_or_insert(cursor);
    }

    /// The line was found again after Enter, perhaps where it begins.
    pub(crate) fn begin(&mut self, origin: Option<(u16, u16)>) {
        (self.origin, self.start, self.right) = (origin, LineStart::Prompt, RightText::Text);
    }

    /// The cursor was found somewhere in the line: its beginning is not known.
    pub(crate) fn lose_begin(&mut self) {
        (self.origin, self.start) = (None, LineStart::Text);
    }

    /// The cursor was found in the line, perhaps not where it begins.
    pub(crate) fn find_within(&mut self) {
        self.lose_begin();
        self.right = RightText::Text;
    }

    /// A frame came that no key explains, with the cursor in `row`. A line that was in another row
    /// goes on elsewhere, and one that began before its prompt was drawn begins behind that.
    pub(crate) fn keep_begin(&mut self, row: u16, unprompted: Option<(u16, u16)>) {
        self.origin = self.origin.filter(|at| at.0 == row && Some(*at) != unprompted);
    }

    pub(crate) fn set_right(&mut self, right: RightText) {
        self.right = right;
    }

    /// The end of a row, if the row is as it was: a changed row may end elsewhere.
    pub(crate) fn kept_end(&self, base: &Screen, screen: &Screen) -> Option<(u16, u16)> {
        self.typed_end.filter(|(row, _)| base.row_text(*row) == screen.row_text(*row))
    }

    pub(crate) fn set_end(&mut self, typed_end: Option<(u16, u16)>) {
        self.typed_end = typed_end;
    }
}

impl LineContext<'_> {
    /// An experiment leaves this rule out.
    pub(crate) fn lacks(&self, rule: Rule) -> bool {
        self.settings.lacks == Some(rule)
    }
}
