//! Describes a connection that an experiment asks for: its congestion controller, its times, and its supply of data.

use std::time::Duration;

use rove_ssp::Time;

/// One connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Its congestion controller.
    pub control: Control,
    /// When it begins.
    pub begins: Time,
    /// When it has no more to send.
    pub ends: Option<Time>,
    /// Its supply of data, in octets a second; `None` is without a limit.
    pub supply: Option<u64>,
}

/// A congestion controller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Control {
    /// Ours.
    Pace,
    /// Ours, for a connection inside a stream.
    Stream,
    /// quinn's CUBIC.
    Cubic,
    /// quinn's BBR.
    Bbr,
}

impl Flow {
    /// One that has always more to send.
    pub fn of(control: Control) -> Flow {
        Flow { control, begins: Time::ZERO, ends: None, supply: None }
    }

    /// The same, beginning later.
    pub fn from(self, begins: Duration) -> Flow {
        Flow { begins: Time::ZERO + begins, ..self }
    }

    /// The same, ending then.
    pub fn until(self, ends: Duration) -> Flow {
        Flow { ends: Some(Time::ZERO + ends), ..self }
    }
}
