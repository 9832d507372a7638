//! The modes of a terminal as both ends say them. They have the numbers of RFC 4254 §8, as with ssh, since systems differ
//! in their own.

/// A terminal's modes: pairs of a mode's number and its value, at most [`Modes::COUNT_MAX`] of them. Unknown
/// modes change nothing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Modes(Vec<(u8, u8)>);

impl Modes {
    /// More pairs are not sent; each number has one octet.
    pub const COUNT_MAX: usize = 255;

    /// These pairs, cut to [`Modes::COUNT_MAX`].
    pub fn from_pairs(pairs: impl IntoIterator<Item = (u8, u8)>) -> Modes {
        Modes(pairs.into_iter().take(Modes::COUNT_MAX).collect())
    }

    /// The pairs.
    pub fn pairs(&self) -> &[(u8, u8)] {
        &self.0
    }
}
