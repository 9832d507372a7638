//! The minutes of a simulated session in which nobody types and the program writes nothing.

use std::time::Duration;

use crate::rng::{Chance, Rng};

/// When nobody is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Absence {
    pub span: Duration,
    pub lid: Lid,
}

/// What becomes of the client's machine meanwhile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lid {
    /// It stays on.
    Open,
    /// It sleeps.
    Closed,
    /// It sleeps, and wakes in another network.
    ClosedAndMoved,
}

impl Absence {
    /// One by chance.
    pub(crate) fn of(rng: &mut Rng) -> Absence {
        let lid = match rng.happens(Chance::percent(50)) {
            true => Lid::Open,
            false => rng.pick(&[Lid::Closed, Lid::ClosedAndMoved]),
        };
        Absence { span: rng.span_within(MINUTE, 5 * MINUTE), lid }
    }
}

const MINUTE: Duration = Duration::from_secs(60);
