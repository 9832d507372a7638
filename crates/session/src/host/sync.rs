//! Versions of the picture, and updates that a program brackets (mode 2026).

use core::time::Duration;

use rove_ssp::Time;

/// How long a program's update is not shown before it is whole. A program that was stopped in the middle
/// must not freeze the screen.
const UPDATE_MAX: Duration = Duration::from_millis(150);

/// Which picture of a host it is. The first, a blank one, is `Version::default()`.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version(u64);

impl Version {
    /// Makes it that of the next picture.
    pub(super) fn advance(&mut self) -> Self {
        self.0 += 1;
        *self
    }
}

/// An update that is not whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncUpdate {
    pub(super) since: Time,
    /// The version of the picture before it, which the emulator keeps.
    pub(super) before: Version,
}

impl SyncUpdate {
    /// Until when the picture before it is shown in its place.
    pub(super) fn hidden_until(&self) -> Time {
        self.since + UPDATE_MAX
    }
}
