//! When ssh is run again. It knows times, and which way the server is heard.

use std::time::Duration;

use rove_ssp::{Remote, StreamId, Time};

use crate::client::way::WaySetting;

/// How long an answer is awaited before ssh is run.
const SILENCE: Duration = Duration::from_secs(10);

/// The same where a key waits for that answer. With a login of two seconds it is seen within twelve. An outage that ends
/// between these two costs one login.
const SILENCE_TYPED: Duration = Duration::from_secs(8);

/// How long before the first datagram without an answer a key may have been typed that waits for it.
const TYPED_BEFORE: Duration = Duration::from_millis(100);

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
    /// ssh was not run: its pause lasts this much longer.
    Later(Duration),
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
    /// Since when ssh runs in this network.
    asking: Option<Time>,
    /// When one that ran in this network began, and when it ended.
    asked: Option<(Time, Time)>,
    /// Before this time nobody runs it.
    later: Option<Time>,
    is_refused: bool,
    /// The stream by which the server was heard last.
    heard_by: Option<StreamId>,
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
            asking: None,
            asked: None,
            later: None,
            is_refused: false,
            heard_by: None,
            typed: None,
            probe: None,
            probes: 0,
            refusals: 0,
        }
    }

    /// An ssh that runs meanwhile is of the network before, and may stand still: the next does not wait for it.
    pub(super) fn network_changed(&mut self, now: Time) {
        (self.network, self.asking, self.asked, self.is_refused) = (now, None, None, false);
        (self.probe, self.probes, self.refusals) = (None, 0, 0);
    }

    pub(super) fn typed(&mut self, now: Time) {
        self.typed = Some(now);
    }

    /// The server was heard by this stream.
    pub(super) fn heard_by(&mut self, stream: StreamId) {
        self.heard_by = Some(stream);
    }

    /// A stream that was of use until it ended: the next may be had at once.
    pub(super) fn stream_ended(&mut self, stream: StreamId) {
        if self.heard_by == Some(stream) && self.silence == SILENCE_OF_SSH {
            (self.heard_by, self.asked) = (None, None);
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
    pub(super) fn takes_probe(&mut self, now: Time, peer: Option<Remote>) -> bool {
        let is_due = self.probe_at(peer).is_some_and(|at| at <= now);
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
        if is_due {
            self.asking = Some(now);
        }
        is_due
    }

    /// Whether a server that was heard last at this time was heard since ssh runs. Then it is there, even if ssh has not
    /// found it. An ssh of the network before tells nothing of that.
    pub(super) fn is_heard_since(&self, last_heard: Option<Time>) -> bool {
        self.asking.is_none_or(|asking| last_heard >= Some(asking))
    }

    pub(super) fn answered(&mut self, now: Time, found: Found) {
        let Some(began) = self.asking.take() else { return };
        match found {
            Found::Later(wait) => self.later = Some(now + wait),
            Found::Way | Found::Nothing => self.asked = Some((began, now)),
            Found::Refusal => (self.asked, self.is_refused) = (Some((began, now)), true),
        }
    }

    /// When something is due while the server is there.
    pub(super) fn due(&self, peer: Option<Remote>) -> Option<Time> {
        self.probe_at(peer).into_iter().chain(self.question_at()).min()
    }

    /// Never while UDP is not in use.
    fn probe_at(&self, peer: Option<Remote>) -> Option<Time> {
        let awaits = self.awaits.filter(|_| peer.is_some_and(|peer| !peer.is_stream()))?;
        let first = awaits + PROBE_AFTER;
        let at = self.probe.map_or(first, |last| last + PROBE_EACH);
        (self.probes < PROBES_MAX).then_some(at)
    }

    fn question_at(&self) -> Option<Time> {
        let awaits = self.awaits.filter(|_| self.asking.is_none() && !self.is_refused)?;
        // Whether the port refuses is for the host to say, which it can at once.
        let wait = if self.refusals >= REFUSALS { Duration::ZERO } else { self.silence(awaits) };
        let silent = (awaits + wait).max(self.network + NETWORK_SETTLES);
        let silent = silent.max(self.later.unwrap_or(Time::ZERO));
        match self.asked {
            None => Some(silent),
            Some((began, ended)) => {
                // Also while it ran: whoever typed then still waits.
                let typed = self.typed.filter(|typed| *typed > began)?;
                Some(silent.max(typed).max(ended + EACH))
            }
        }
    }

    /// How long an answer that is awaited since then may take.
    fn silence(&self, awaits: Time) -> Duration {
        match self.typed {
            Some(typed) if typed + TYPED_BEFORE >= awaits => self.silence.min(SILENCE_TYPED),
            _ => self.silence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Time {
        Time::from_millis(seconds * 1000)
    }

    fn udp() -> Option<Remote> {
        Some(Remote::Udp(([192, 0, 2, 1], 60_001).into()))
    }

    fn plan() -> Plan {
        Plan::new(s(0), WaySetting::Auto)
    }

    #[test]
    fn ssh_is_run_once_and_then_for_who_types() {
        let mut plan = plan();
        assert_eq!(plan.question_at(), None, "nothing is awaited");
        plan.typed(s(99));
        plan.awaits(Some(s(100)));
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
        assert_eq!((plan.question_at(), plan.due(udp())), (None, None));
        plan.awaits(Some(s(200)));
        assert_eq!(plan.question_at(), Some(s(210)));
    }

    #[test]
    fn who_types_waits_less() {
        let ms = Time::from_millis;
        for (typed, expected) in
            [(99_899, 110_000), (99_900, 108_000), (100_000, 108_000), (109_000, 108_000)]
        {
            let mut plan = plan();
            plan.awaits(Some(s(100)));
            plan.typed(ms(typed));
            assert_eq!(plan.question_at(), Some(ms(expected)), "{typed}");
        }
        let mut plan = Plan::new(s(0), WaySetting::Ssh);
        plan.awaits(Some(s(100)));
        plan.typed(s(100));
        assert_eq!(plan.question_at(), Some(s(101)));
    }

    #[test]
    fn a_key_that_is_typed_while_ssh_runs_counts() {
        let mut plan = plan();
        plan.awaits(Some(s(100)));
        assert!(plan.takes_question(s(110)));
        plan.typed(s(111));
        plan.answered(s(113), Found::Nothing);
        assert_eq!(plan.question_at(), Some(s(123)));
    }

    #[test]
    fn an_ssh_of_the_network_before_is_not_waited_for() {
        let mut plan = plan();
        plan.awaits(Some(s(100)));
        assert!(plan.takes_question(s(110)));
        plan.network_changed(s(112));
        assert_eq!(plan.question_at(), Some(s(115)));
        // What it still says, if anything, changes nothing.
        assert!(plan.is_heard_since(None));
        plan.answered(s(113), Found::Refusal);
        assert_eq!(plan.question_at(), Some(s(115)));
        assert!(plan.takes_question(s(115)));
        plan.answered(s(116), Found::Way);
        assert_eq!(plan.question_at(), None);
    }

    #[test]
    fn an_ssh_that_was_not_run_takes_no_key() {
        let mut plan = plan();
        plan.awaits(Some(s(100)));
        assert!(plan.takes_question(s(110)));
        plan.answered(s(110), Found::Later(Duration::from_secs(7)));
        assert_eq!(plan.question_at(), Some(s(117)));
        assert!(!plan.takes_question(s(116)) && plan.takes_question(s(117)));
    }

    #[test]
    fn a_port_that_refuses_twice_is_asked_about_at_once() {
        let mut plan = plan();
        plan.awaits(Some(s(100)));
        assert_eq!(plan.due(udp()), Some(s(103)));
        assert!(!plan.takes_probe(s(102), udp()) && plan.takes_probe(s(103), udp()));
        assert!(!plan.probed(false), "there was none before");
        assert!(plan.takes_probe(s(104), udp()));
        assert!(!plan.probed(true), "once");
        assert!(plan.takes_probe(s(105), udp()));
        assert!(plan.probed(true));
        assert_eq!(plan.question_at(), Some(s(100)));
        assert!(plan.takes_probe(s(106), udp()));
        assert!(!plan.probed(true), "it was told");
        // An answer in between takes all of that back.
        plan.awaits(None);
        plan.awaits(Some(s(110)));
        assert_eq!((plan.probe_at(udp()), plan.question_at()), (Some(s(113)), Some(s(120))));
        let looks = (113..200).filter(|second| plan.takes_probe(s(*second), udp())).count();
        assert_eq!(looks, PROBES_MAX as usize);
    }

    #[test]
    fn without_udp_nothing_else_can_come() {
        let mut plan = Plan::new(s(0), WaySetting::Ssh);
        plan.awaits(Some(s(100)));
        assert_eq!(plan.question_at(), Some(s(101)));
        assert!(plan.takes_question(s(101)));
        plan.answered(s(102), Found::Way);
        plan.heard_by(StreamId::new(1));
        plan.stream_ended(StreamId::new(0));
        plan.awaits(Some(s(300)));
        assert_eq!(plan.question_at(), None, "another has ended");
        plan.stream_ended(StreamId::new(1));
        assert_eq!(plan.question_at(), Some(s(301)));
        // The next one is of no use: it costs a login as often as somebody types, and no more often.
        assert!(plan.takes_question(s(301)));
        plan.answered(s(302), Found::Way);
        plan.stream_ended(StreamId::new(2));
        assert_eq!(plan.question_at(), None);
        plan.typed(s(303));
        assert_eq!(plan.question_at(), Some(s(312)));
    }

    #[test]
    fn a_stream_is_not_looked_at_and_hides_no_question() {
        let mut plan = plan();
        plan.awaits(Some(s(100)));
        let stream = Some(Remote::Stream(StreamId::new(0)));
        for peer in [stream, None] {
            assert!(!plan.takes_probe(s(105), peer));
            assert_eq!(plan.due(peer), Some(s(110)));
        }
        assert_eq!(plan.due(udp()), Some(s(103)));
    }

    #[test]
    fn a_server_that_is_heard_meanwhile_is_there() {
        let mut plan = plan();
        plan.awaits(Some(s(100)));
        assert!(plan.is_heard_since(Some(s(100))), "nothing was asked");
        assert!(plan.takes_question(s(110)));
        for (heard, expected) in [(None, false), (Some(s(109)), false), (Some(s(111)), true)] {
            assert_eq!(plan.is_heard_since(heard), expected, "{heard:?}");
        }
    }
}
