//! The user's choices: which guesses to make, and when to show them.

/// When guesses are shown (`--predict`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Display {
    /// On slow paths, and after a glitch.
    #[default]
    Adaptive,
    /// Always, once confirmed.
    Always,
    /// Never; nothing is guessed either.
    Never,
    /// As always; motions of the cursor show without any confirmation, too. Text does as in the
    /// other modes. By stock's rules, which only the lab runs, nothing waits for a confirmation, and
    /// nothing shows while echo is reported to be off.
    Experimental,
}

/// What typing does to text right of the cursor (`--predict-overwrite`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Editing {
    /// It moves right.
    #[default]
    Insert,
    /// It is overwritten.
    Overwrite,
}

/// Whose rules make the guesses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rules {
    /// Those of stock mosh 1.4.0.
    Stock,
    /// Ours.
    Rove,
}

/// A rule of ours beyond stock's. An experiment leaves one out to measure its worth
/// (`rove-lab predict --skills`).
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Rule {
    /// Lines that wrap or scroll at a margin they were seen to have.
    Margins,
    /// Text right of the cursor moves when something is typed before it.
    Insertion,
    /// A shell's suggestion is typed over.
    Suggestions,
    /// Text that stands apart at the right stays when the line before it changes.
    RightPrompts,
    /// Ctrl-U and Ctrl-K.
    KillLine,
    /// Ctrl-W and Alt-DEL.
    KillWord,
    /// Ctrl-A, Ctrl-E, Home and End.
    LineEnds,
    /// Alt-B, Alt-F, and arrows with a modifier.
    WordMotion,
    /// Delete and Ctrl-D.
    DeleteForward,
    /// Up, Down, Ctrl-P and Ctrl-N are no motions until they were seen to be.
    History,
    /// Characters of two columns, and those that combine.
    WideText,
    /// Short text that is pasted.
    Paste,
    /// Keys and columns that were predicted wrongly are trusted again once they have been right.
    Learning,
}

/// Everything that can be chosen about predictions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Whose rules make the guesses.
    pub rules: Rules,
    /// When they are shown.
    pub display: Display,
    /// What they do to text right of the cursor.
    pub editing: Editing,
    /// A rule of ours that an experiment leaves out.
    pub lacks: Option<Rule>,
}

impl Settings {
    /// What stock mosh 1.4.0 does by default.
    pub const STOCK: Self = Self {
        rules: Rules::Stock,
        display: Display::Adaptive,
        editing: Editing::Insert,
        lacks: None,
    };
    /// What rove does by default.
    pub const ROVE: Self = Self { rules: Rules::Rove, ..Self::STOCK };

    /// These settings with guesses shown at other times.
    pub const fn with_display(self, display: Display) -> Self {
        Self { display, ..self }
    }

    /// These settings without one of our skills.
    pub const fn without(self, rule: Rule) -> Self {
        Self { lacks: Some(rule), ..self }
    }

    /// These settings with typing overwriting, or not.
    pub const fn with_editing(self, editing: Editing) -> Self {
        Self { editing, ..self }
    }
}
