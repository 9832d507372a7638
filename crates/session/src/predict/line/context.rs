//! The state of the line being edited: where it begins, and what stands right of the cursor.

use rove_term::Screen;

use crate::predict::line::margin::Margin;
use crate::predict::settings::{Editing, Rule};
use crate::predict::window::Borders;

/// What a scene needs to know of its surroundings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineContext<'a> {
    pub(crate) base: &'a Screen,
    /// Those of the base.
    pub(crate) borders: &'a Borders,
    pub(crate) editing: Editing,
    /// Where the line being edited begins, after the prompt.
    pub(crate) origin: Option<(u16, u16)>,
    /// Whether keys can go further left than that.
    pub(crate) wall: LineStart,
    /// What the text right of the cursor is.
    pub(crate) tail: RightText,
    /// How far the text of a row goes: at its end stand blanks that were typed.
    pub(crate) reach: Option<(u16, u16)>,
    /// What lines do at their margin.
    pub(crate) margin: Margin,
    /// What is done without.
    pub(crate) lacks: Option<Rule>,
}

/// What stands where the line was found to begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LineStart {
    /// A prompt, or the edge: the line was empty there after Enter.
    Prompt,
    /// Perhaps more of the line: it was found again somewhere in it.
    Text,
}

/// What stands right of the cursor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RightText {
    /// Text that was typed, or nothing.
    Text,
    /// A suggestion: it came by itself, and typing writes over it.
    Suggestion,
}
