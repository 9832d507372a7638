//! Which of a host's viewers one is.

/// One of a host's viewers. Its driver gives each a number of its own.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct ViewerId(u32);

impl From<u32> for ViewerId {
    fn from(number: u32) -> Self {
        Self(number)
    }
}
