//! What was painted last, and by what.

use alloc::string::String;

use rove_ssp::StateNum;

/// What a painted picture was made from: as long as that is the same, so is the picture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Source {
    pub(super) newest: StateNum,
    pub(super) bar: Option<String>,
    pub(super) guesses: u64,
}
