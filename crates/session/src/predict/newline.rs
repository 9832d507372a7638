//! What Enter does in the text of a full-screen editor, learnt from Enters that did it: the next row
//! opens, and the cursor goes there.
//!
//! Everywhere else whatever follows Enter may be a password, so nothing is expected of it. Knows nothing
//! of screens, frames or epochs.

/// How the line ends on which Enter was pressed: editors indent the next one by it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// In text.
    Plain,
    /// In what opens a block: a colon or a bracket.
    Opener,
}

impl Ending {
    pub(crate) fn of(last: Option<char>) -> Self {
        match last {
            Some(':' | '{' | '(' | '[') => Self::Opener,
            _ => Self::Plain,
        }
    }
}

/// The row that Enter opens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Opening {
    /// Columns the next line is indented beyond this one.
    pub(crate) deeper: i16,
    /// The last row that moves down; what stands below it stays.
    pub(crate) last: u16,
}

/// Enters that must have opened a row, none having done anything else since, before the next is foreseen.
const NEWLINES_MIN: u32 = 1;

/// What is known of Enter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Newlines {
    /// Enters in a row that opened a row.
    seen: u32,
    plain: Option<Opening>,
    opener: Option<Opening>,
}

impl Newlines {
    /// As if Enter had opened rows like this before.
    pub(crate) fn supposing(opening: Opening) -> Self {
        Self { seen: NEWLINES_MIN, plain: Some(opening), opener: Some(opening) }
    }

    /// What Enter will do after a line that ends so; `None` if that is not known.
    pub(crate) fn expected(&self, ending: Ending) -> Option<Opening> {
        let known = match ending {
            // No editor indents deeper after text than after what opens a block.
            Ending::Plain => self.plain.or(self.opener.filter(|known| known.deeper == 0)),
            Ending::Opener => self.opener,
        };
        known.filter(|_| self.seen >= NEWLINES_MIN)
    }

    /// Enter opened a row.
    pub(crate) fn opened(&mut self, ending: Ending, opening: Opening) {
        self.seen = self.seen.saturating_add(1);
        match ending {
            Ending::Plain => self.plain = Some(opening),
            Ending::Opener => self.opener = Some(opening),
        }
    }

    /// Enter did something else, or nobody knows what.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_other_enter_and_all_is_forgotten() {
        let opening = Opening { deeper: 0, last: 20 };
        let mut newlines = Newlines::default();
        assert_eq!(newlines.expected(Ending::Plain), None);
        (0..NEWLINES_MIN).for_each(|_| newlines.opened(Ending::Plain, opening));
        assert_eq!(newlines.expected(Ending::Plain), Some(opening));
        assert_eq!(newlines.expected(Ending::of(Some('{'))), None);
        newlines.forget();
        assert_eq!(newlines.expected(Ending::Plain), None);
    }
}
