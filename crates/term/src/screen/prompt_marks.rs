//! Holds the marks of a shell in its lines (OSC 133): where prompts, input and output begin, and how commands ended.
//! A mark belongs to a line and moves with it. A terminal decides on its own how to use it.

/// The marks of one line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Marks {
    /// A command ended here (`D`).
    pub ended: Option<Ended>,
    /// A prompt begins here (`A`).
    pub prompt: Option<Prompt>,
    /// The column, from 0, where what the user types begins (`B`).
    pub input: Option<u16>,
    /// The column, from 0, where a command's output begins (`C`).
    pub output: Option<u16>,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// The shell did not tell.
    Untold,
    /// With this exit status.
    With(u8),
}

/// Which line of a prompt begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Prompt {
    /// The first: a new command.
    First,
    /// A continuation (`k=s`).
    Next,
}

impl Marks {
    /// No mark.
    pub const NONE: Self = Self { ended: None, prompt: None, input: None, output: None };

    /// These marks in a line of `cols` columns.
    #[must_use]
    pub(crate) fn clamped(self, cols: usize) -> Self {
        let last = cols.saturating_sub(1) as u16;
        let clamp = |col: u16| col.min(last);
        Self { input: self.input.map(clamp), output: self.output.map(clamp), ..self }
    }

    /// There is no mark. Faster than a comparison.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        let rare = self.ended.is_some() | self.prompt.is_some();
        !(rare | self.input.is_some() | self.output.is_some())
    }

    /// Setting the missing marks turns these into `wanted`.
    pub(crate) fn is_part_of(&self, wanted: &Self) -> bool {
        let part = |held: bool, same: bool| !held || same;
        part(self.ended.is_some(), self.ended == wanted.ended)
            && part(self.prompt.is_some(), self.prompt == wanted.prompt)
            && part(self.input.is_some(), self.input == wanted.input)
            && part(self.output.is_some(), self.output == wanted.output)
    }
}
