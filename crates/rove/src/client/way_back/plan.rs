//! When ssh is run again. It knows times alone.

use std::time::Duration;

use rove_ssp::Time;

use crate::client::way::WaySetting;

/// How long an answer is awaited before ssh is run.
const SILENCE: Duration = Duration::from_secs(10);

/// The same where UDP is not used, so that nothing else can come.
const SILENCE_OF_SSH: Duration = Duration::from_secs(1);

/// How long a network that is new has to bring an answer by itself.
const NETWORK_SETTLES: Duration = Duration::from_secs(3);

/// The least time from the end of one ssh to the next.
const EACH: Duration = Duration::from_secs(10);

/// How long an answer is awaited before the server's port is looked at, how often it is, and for how long.
const PROBE_AFTER: Duration = Duration::from_secs(3);
const PROBE_EACH: Duration = Duration::from_secs(1);
const PROBES_MAX: u32 = 8;

/// Refusals of which the user is told. One may have been meant for another datagram.
const REFUSALS: u32 = 2;

/// What ssh has found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Found {
    /// The session.
    Way,
    /// sshd, which did not let it in: on this network it is not asked again, since hosts count that.
    Refusal,
    /// Neither.
    Nothing,
}

/// When to look at the server's port, and when to run ssh.
///
/// ssh is run by itself once in each network, and then only after somebody has typed: each run is a login on the host.
#[derive(Debug)]
pub(super) struct Plan {
    silence: Duration,
    /// Since when an answer is awaited.
    awaits: Option<Time>,
    /// When the network became what it is.
    network: Time,
    /// ssh runs.
    is_asking: bool,
    /// When it ended in this network.
    asked: Option<Time>,
    is_refused: bool,
    /// When a key was typed last.
    typed: Option<Time>,
    /// When the port was looked at last in this silence, how often, and how often it refused.
    probe: Option<Time>,
    probes: u32,
    refusals: u32,
}

impl Plan {
    pub(super) fn new(now: Time, way: WaySetting) -> Plan {
        Plan {
            silence: if way == WaySetting::Ssh { SILENCE_OF_SSH } else { SILENCE },
            awaits: None,
            network: now,
            is_asking: false,
            asked: None,
            is_refused: false,
            typed: None,
            probe: None,
            probes: 0,
            refusals: 0,
        }
    }

    pub(super) fn network_changed(&mut self, now: Time) {
        (self.network, self.asked, self.is_refused) = (now, None, false);
        (self.probe, self.probes, self.refusals) = (None, 0, 0);
    }

    pub(super) fn typed(&mut self, now: Time) {
        self.typed = Some(now);
    }

    /// A stream that ended was of use until now: the next may be had at once.
    pub(super) fn stream_ended(&mut self) {
        if self.silence == SILENCE_OF_SSH {
            self.asked = None;
        }
    }

    /// Since when an answer is awaited; `None` if none is.
    pub(super) fn awaits(&mut self, since: Option<Time>) {
        if since.is_none() {
            (self.probe, self.probes, self.refusals) = (None, 0, 0);
        }
        self.awaits = since;
    }

    /// Whether the port is to be looked at now.
    pub(super) fn takes_probe(&mut self, now: Time) -> bool {
        let is_due = self.probe_at().is_some_and(|at| at <= now);
        if is_due {
            self.probe = Some(now);
            self.probes += 1;
        }
        is_due
    }

    /// Notes what the look before has shown. Whether the user is to be told that the port refuses.
    pub(super) fn probed(&mut self, is_refused: bool) -> bool {
        self.refusals += u32::from(is_refused);
        is_refused && self.refusals == REFUSALS
    }

    /// Whether ssh is to be run now; then it runs until [`answered`](Self::answered).
    pub(super) fn takes_question(&mut self, now: Time) -> bool {
        let is_due = self.question_at().is_some_and(|at| at <= now);
        self.is_asking |= is_due;
        is_due
    }

    pub(super) fn answered(&mut self, now: Time, found: Found) {
        self.is_asking = false;
        self.asked = Some(now);
        self.is_refused |= found == Found::Refusal;
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.probe_at().into_iter().chain(self.question_at()).min()
    }

    fn probe_at(&self) -> Option<Time> {
        let first = self.awaits? + PROBE_AFTER;
        let at = self.probe.map_or(first, |last| last + PROBE_EACH);
        (self.probes < PROBES_MAX).then_some(at)
    }

    fn question_at(&self) -> Option<Time> {
        let awaits = self.awaits.filter(|_| !self.is_asking && !self.is_refused)?;
        // Whether the port refuses is for the host to say, which it can at once.
        let wait = if self.refusals >= REFUSALS { Duration::ZERO } else { self.silence };
        let silent = (awaits + wait).max(self.network + NETWORK_SETTLES);
        match self.asked {
            None => Some(silent),
            Some(asked) => {
                let typed = self.typed.filter(|typed| *typed > asked)?;
                Some(silent.max(typed).max(asked + EACH))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn plan() -> Plan {
        Plan::new(s(0), WaySetting::Auto)
    }

    #[test]
    fn ssh_is_run_once_and_then_for_who_types() {
        let mut plan = plan();
        assert_eq!(plan.question_at(), None, "nothing is awaited");
        plan.awaits(Some(s(100)));
        plan.typed(s(101));
        assert_eq!(plan.question_at(), Some(s(110)));
        assert!(!plan.takes_question(s(109)) && plan.takes_question(s(110)));
        assert_eq!(plan.question_at(), None, "it runs");
        plan.answered(s(113), Found::Nothing);
        assert_eq!(plan.question_at(), None, "nobody has typed since");
        plan.typed(s(115));
        assert_eq!(plan.question_at(), Some(s(123)));
        plan.typed(s(140));
        assert_eq!(plan.question_at(), Some(s(140)));
        // Who is not let in does not knock again, until the network is another.
        assert!(plan.takes_question(s(140)));
        plan.answered(s(141), Found::Refusal);
        plan.typed(s(160));
        assert_eq!(plan.question_at(), None);
        plan.network_changed(s(170));
        assert_eq!(plan.question_at(), Some(s(173)));
        // The server answers meanwhile.
        plan.awaits(None);
        assert_eq!((plan.question_at(), plan.due()), (None, None));
        plan.awaits(Some(s(200)));
        assert_eq!(plan.question_at(), Some(s(210)));
    }

    #[test]
    fn a_port_that_refuses_twice_is_asked_about_at_once() {
        let mut plan = plan();
        plan.awaits(Some(s(100)));
        assert_eq!(plan.due(), Some(s(103)));
        assert!(!plan.takes_probe(s(102)) && plan.takes_probe(s(103)));
        assert!(!plan.probed(false), "there was none before");
        assert!(plan.takes_probe(s(104)));
        assert!(!plan.probed(true), "once");
        assert!(plan.takes_probe(s(105)));
        assert!(plan.probed(true));
        assert_eq!(plan.question_at(), Some(s(100)));
        assert!(plan.takes_probe(s(106)));
        assert!(!plan.probed(true), "it was told");
        // An answer in between takes all of that back.
        plan.awaits(None);
        plan.awaits(Some(s(110)));
        assert_eq!((plan.probe_at(), plan.question_at()), (Some(s(113)), Some(s(120))));
        let looks = (113..200).filter(|second| plan.takes_probe(s(*second))).count();
        assert_eq!(looks, PROBES_MAX as usize);
    }

    #[test]
    fn without_udp_nothing_else_can_come() {
        let mut plan = Plan::new(s(0), WaySetting::Ssh);
        plan.awaits(Some(s(100)));
        assert_eq!(plan.question_at(), Some(s(101)));
        assert!(plan.takes_question(s(101)));
        plan.answered(s(102), Found::Way);
        plan.stream_ended();
        plan.awaits(Some(s(300)));
        assert_eq!(plan.question_at(), Some(s(301)));
    }
}
