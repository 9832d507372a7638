//! What the line that is edited is like.

use rove_term::Screen;

use super::super::margin::Margin;
use super::super::settings::{Editing, Skill};
use super::super::window::Borders;

/// What a scene needs to know of its surroundings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'a> {
    pub(crate) base: &'a Screen,
    /// Those of the base.
    pub(crate) borders: &'a Borders,
    pub(crate) editing: Editing,
    /// Where the line being edited begins, after the prompt.
    pub(crate) origin: Option<(u16, u16)>,
    /// Whether keys can go further left than that.
    pub(crate) wall: Wall,
    /// What the text right of the cursor is.
    pub(crate) tail: Tail,
    /// How far the text of a row goes: at its end stand blanks that were typed.
    pub(crate) reach: Option<(u16, u16)>,
    /// What lines do at their margin.
    pub(crate) margin: Margin,
    /// What is done without.
    pub(crate) lacks: Option<Skill>,
}

/// What stands where the line was found to begin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wall {
    /// A prompt, or the edge: the line was empty there after Enter.
    Prompt,
    /// Perhaps more of the line: it was found again somewhere in it.
    Text,
}

/// What stands right of the cursor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tail {
    /// Text that was typed, or nothing.
    Text,
    /// A suggestion: it came by itself, and typing writes over it.
    Suggestion,
}
