//! Decides which size the terminal has: of viewers' windows, which differ, and how often it changes.

use core::time::Duration;

use rove_ssp::Time;
use rove_term::Size;

/// The shortest time between two changes of the pty's size (threats row 9: at most 20 a second). Of
/// those that come sooner the latest counts.
const RESIZE_INTERVAL: Duration = Duration::from_millis(50);

/// Which size a terminal with several viewers has. A viewer with a smaller window sees a part of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SizePolicy {
    /// That of the window whose user typed, came or resized it last.
    Latest,
    /// As many rows and columns as every window has.
    Smallest,
    /// As many rows and columns as any window has.
    Largest,
    /// This one.
    Fixed(Size),
}

impl SizePolicy {
    /// The size for these windows, the latest last; `None` if there is no window to go by.
    pub(super) fn choose(self, mut windows: impl Iterator<Item = Size>) -> Option<Size> {
        let each_side = |side: fn(u16, u16) -> u16| {
            move |a: Size, b: Size| Size::clamped(side(a.rows, b.rows), side(a.cols, b.cols))
        };
        match self {
            Self::Latest => windows.last(),
            Self::Smallest => windows.reduce(each_side(u16::min)),
            Self::Largest => windows.reduce(each_side(u16::max)),
            Self::Fixed(size) => windows.next().map(|_| size),
        }
    }
}

/// A size on its way to the pty.
#[derive(Debug, Default)]
pub(super) struct ResizeQueue {
    wanted: Option<Size>,
    applied: Option<Time>,
}

impl ResizeQueue {
    /// Replaces a size that still waits: the pty's size is no queue.
    pub(super) fn want(&mut self, size: Size) {
        self.wanted = Some(size);
    }

    /// When a size is due.
    pub(super) fn due(&self) -> Option<Time> {
        self.wanted?;
        Some(self.applied.map_or(Time::ZERO, |applied| applied + RESIZE_INTERVAL))
    }

    /// The size that is due.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Size> {
        self.due().filter(|&due| due <= now)?;
        self.applied = Some(now);
        self.wanted.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_several_windows() {
        let size = |(rows, cols): (u16, u16)| Size::clamped(rows, cols);
        for (policy, windows, chosen) in [
            (SizePolicy::Latest, &[][..], None),
            (SizePolicy::Latest, &[(24, 80), (50, 60)], Some((50, 60))),
            (SizePolicy::Smallest, &[(24, 80), (50, 60)], Some((24, 60))),
            (SizePolicy::Largest, &[(24, 80), (50, 60)], Some((50, 80))),
            (SizePolicy::Fixed(size((30, 90))), &[(24, 80), (50, 60)], Some((30, 90))),
        ] {
            let windows = windows.iter().copied().map(size);
            assert_eq!(policy.choose(windows), chosen.map(size), "{policy:?}");
        }
    }
}
