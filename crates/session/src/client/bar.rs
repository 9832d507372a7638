//! The status bar: the line over the screen's top row that says for how long the server has been
//! silent, and carries the client's own messages (`mosh-protocol.md` §8.3).
//!
//! It knows times and words. [`Client`](crate::Client) paints it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::time::Duration;

use rove_ssp::Time;

use crate::escape::{Commands, Escape, ServerState, pass_key};
use crate::exit::Cause;
use crate::session_info::SessionInfo;

/// Silence before the bar appears: two keep-alives of 3 s missed.
pub const CONTACT_QUIET: Duration = Duration::from_millis(6500);
/// How long an answer that was asked for is awaited first. A session in use asks each 3 s, so that this adds
/// nothing; one at rest asks each 10 s, and its silence until then means nothing.
const ANSWER_QUIET: Duration = Duration::from_millis(3500);
/// Age of the newest acknowledged state from which the way *to* the server is in doubt.
pub const REPLY_QUIET: Duration = Duration::from_secs(10);
/// Time without any contact after which the user is told which port is silent.
const FIRST_CONTACT_QUIET: Duration = Duration::from_millis(250);
/// How long a message stays that nothing renews.
pub const MESSAGE_STAYS: Duration = Duration::from_secs(1);
/// How long a warning stays that the user must not miss.
pub const WARNING_STAYS: Duration = Duration::from_secs(10);
/// How long a network error stays: one retry of 3 s, and a little.
pub const NETWORK_ERROR_STAYS: Duration = Duration::from_millis(3100);

/// The bar counts seconds, and after a minute of silence every third one.
const REFRESH: Duration = Duration::from_secs(1);
const REFRESH_SLOW: Duration = Duration::from_secs(3);
const REFRESH_SLOW_AFTER: Duration = Duration::from_secs(60);

/// A message, if there is one, and the times from which the bar counts silence.
#[derive(Clone, Debug)]
pub struct StatusBar {
    /// The program's name, which every bar begins with.
    name: &'static str,
    escape: Escape,
    message: Option<Message>,
    heard: Time,
    acked: Time,
    /// Since when an answer is awaited.
    awaits: Option<Time>,
    contact: Contact,
    /// How many typed octets the server has not acknowledged.
    waiting: u64,
    /// Since when the command has ended, and how many of its lines have not arrived; `None`: none, or it goes on.
    drains: Option<(Time, u64)>,
    /// Shown once the server was heard.
    warning: Option<String>,
    /// The remedy for its silence that is being tried, or that is left to the user.
    remedy: Option<String>,
}

/// Whether the server was ever heard.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Contact {
    /// It was not, and the bar says so at this time.
    NoneBy(Time),
    /// It was not, and the bar says so.
    Awaited,
    Made,
}

#[derive(Clone, Debug)]
struct Message {
    text: String,
    stays: Lifetime,
}

/// When a message goes away.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lifetime {
    /// At this time.
    Until(Time),
    /// With the first contact.
    UntilContact,
    /// When it is cleared: the commands of the escape key.
    UntilCleared,
    /// With the client.
    Forever,
}

impl StatusBar {
    /// Nothing to say yet. Silence counts from `now`.
    pub fn new(now: Time, name: &'static str, escape: Escape) -> Self {
        Self {
            name,
            escape,
            message: None,
            heard: now,
            acked: now,
            awaits: Some(now),
            contact: Contact::NoneBy(now + FIRST_CONTACT_QUIET),
            waiting: 0,
            drains: None,
            warning: None,
            remedy: None,
        }
    }

    /// A new state of the server was received.
    pub fn heard(&mut self, at: Time) {
        self.heard = self.heard.max(at);
        self.contact = Contact::Made;
        self.message.take_if(|m| m.stays == Lifetime::UntilContact);
        if let Some(warning) = self.warning.take() {
            self.warn(at, &warning);
        }
    }

    /// When to call [`no_contact`](Self::no_contact), unless the server is heard before.
    pub fn contact_due(&self) -> Option<Time> {
        let Contact::NoneBy(due) = self.contact else { return None };
        Some(due)
    }

    /// Says that no datagram of the server was received from its port; `refused` others were.
    pub fn no_contact(&mut self, port: u16, refused: u64) {
        self.contact = Contact::Awaited;
        let text = match refused {
            0 => format!("Nothing received from server on UDP port {port}."),
            // A wrong key looks like a blocked port otherwise.
            _ => format!("What comes from UDP port {port} is not sealed with this session's key."),
        };
        self.say(text, Lifetime::UntilContact);
    }

    /// Shows a warning long enough to be read, once the server was heard: before, other messages would
    /// replace it.
    pub fn warn(&mut self, now: Time, warning: &str) {
        match self.contact {
            Contact::Made => self.say(warning, Lifetime::Until(now + WARNING_STAYS)),
            Contact::NoneBy(_) | Contact::Awaited => self.warning = Some(warning.to_owned()),
        }
    }

    /// Says why this end ends the session.
    pub fn ends(&mut self, cause: Cause) {
        let text = match cause {
            Cause::Quit => "Exiting on user request...",
            Cause::Detached => "Detaching...",
            Cause::Signal => "Signal received, shutting down...",
            Cause::NoContact => "Timed out waiting for server...",
            _ => "Exiting...",
        };
        self.say(text, Lifetime::Forever);
    }

    /// The newest state that the server acknowledged was sent at `sent`.
    pub fn acked(&mut self, sent: Time) {
        self.acked = self.acked.max(sent);
    }

    /// Since when an answer is awaited; `None` if none is.
    pub fn awaits(&mut self, since: Option<Time>) {
        self.awaits = since;
    }

    /// How many typed octets the server has not acknowledged: told beside its silence. Stock's bar does not tell.
    pub fn waits(&mut self, octets: u64) {
        self.waiting = if Commands::of(self.name) == Commands::Rove { octets } else { 0 };
    }

    /// Names the remedy beside the server's silence. `None`: there is none.
    pub fn remedy(&mut self, remedy: Option<String>) {
        self.remedy = remedy;
    }

    /// The command has ended, and this number of its lines has not arrived.
    pub fn drains(&mut self, now: Time, lines: u64) {
        let since = self.drains.map_or(now, |(since, _)| since);
        self.drains = (lines > 0).then_some((since, lines));
    }

    /// Shows a message in place of the one before. A message that stays forever is never replaced by
    /// one that does not.
    pub fn say(&mut self, text: impl Into<String>, stays: Lifetime) {
        let stands = |m: &Message| m.stays == Lifetime::Forever && stays != Lifetime::Forever;
        if !self.message.as_ref().is_some_and(stands) {
            self.message = Some(Message { text: text.into(), stays });
        }
    }

    /// The key that begins a command.
    pub fn escape(&self) -> Escape {
        self.escape
    }

    /// Shows the commands of the escape key, until [`clear_help`](Self::clear_help).
    pub fn help(&mut self, session: Option<&SessionInfo>) {
        let (Some(pass), key) = (pass_key(self.escape), self.escape) else { return };
        let detach = if session.is_some_and(|it| it.can_detach) { "d detaches, " } else { "" };
        let text = match Commands::of(self.name) {
            Commands::Stock => {
                format!("Commands: Ctrl-Z suspends, \".\" quits, \"{pass}\" gives literal {key}")
            }
            Commands::Rove => {
                format!("Commands: . quits, {detach}s status, Ctrl-Z suspends, {pass} types {key}")
            }
        };
        self.say(text, Lifetime::UntilCleared);
    }

    /// Shows the way out of a session that stands still, until [`clear_help`](Self::clear_help).
    pub fn help_stuck(&mut self, session: Option<&SessionInfo>) {
        let detach = if session.is_some_and(|it| it.can_detach) { ", ~d detaches" } else { "" };
        self.say(format!("~. quits{detach}, anything else is sent"), Lifetime::UntilCleared);
    }

    /// Whether the user is told that the server does not answer.
    pub(crate) fn server(&self, now: Time) -> ServerState {
        match self.silence_at(now) {
            Some(_) => ServerState::Silent,
            None => ServerState::Answers,
        }
    }

    /// Takes the commands away again.
    pub fn clear_help(&mut self) {
        self.message.take_if(|m| m.stays == Lifetime::UntilCleared);
    }

    /// The bar's text at `now`; `None` when there is nothing to say.
    pub fn text(&self, now: Time) -> Option<String> {
        let message = self.message_at(now);
        let silence = self.silence_at(now);
        let drains = self.drains_at(now);
        let said = match (message.map(|it| &it.text).or(drains.as_ref()), silence) {
            (None, None) => return None,
            (None, Some((what, age))) => {
                format!("Last {what} {} ago{}.", spell(age, Unit::Long), self.more())
            }
            (Some(text), None) => text.clone(),
            (Some(text), Some((what, age))) => {
                let age = spell(age, Unit::Short);
                format!("{text} ({age} without {what}{}.)", self.more())
            }
        };
        // The commands themselves say how to quit.
        let is_help = message.is_some_and(|m| m.stays == Lifetime::UntilCleared);
        let quit = match self.escape.key().filter(|_| !is_help) {
            Some(_) => format!(" [To quit: {} .]", self.escape),
            None => String::new(),
        };
        Some(format!("{}: {said}{quit}", self.name))
    }

    /// The keys that wait, and what is done about that, as the end of a sentence; nothing if there is neither.
    fn more(&self) -> String {
        let keys = match self.waiting {
            0 => String::new(),
            1 => "; 1 key waits".into(),
            more => format!("; {more} keys wait"),
        };
        match &self.remedy {
            Some(remedy) => format!("{keys}; {remedy}"),
            None => keys,
        }
    }

    /// The first time after `now` at which [`text`](Self::text) may differ from what it is at `now`,
    /// if nothing happens till then.
    pub fn next_change(&self, now: Time) -> Option<Time> {
        let expires = self.message.as_ref().and_then(|message| match message.stays {
            Lifetime::Until(time) => Some(time),
            _ => None,
        });
        // The bar tells of a late reply only while the contact is recent.
        let speaks = self.awaits.into_iter().flat_map(|since| {
            let quiet = [self.heard + CONTACT_QUIET, self.acked + REPLY_QUIET];
            quiet.map(|at| at.max(since + ANSWER_QUIET) + TICK)
        });
        let refresh = self
            .silence_at(now)
            .map(|(_, age)| now + (counted(age) + step(age)).saturating_sub(age));
        let drains = self.drains.map(|(since, _)| since + DRAINS_QUIET);
        let others = speaks.chain(refresh).chain(drains);
        expires.into_iter().chain(others).filter(|&time| time > now).min()
    }

    /// The words about lines that have not arrived.
    fn drains_at(&self, now: Time) -> Option<String> {
        let (since, lines) = self.drains?;
        let are = if lines == 1 { "line is" } else { "lines are" };
        let said = format!("the command has ended; {lines} {are} still to come");
        (now >= since + DRAINS_QUIET).then_some(said)
    }

    fn message_at(&self, now: Time) -> Option<&Message> {
        self.message.as_ref().filter(|message| match message.stays {
            Lifetime::Until(time) => now < time,
            _ => true,
        })
    }

    /// Which of contact and reply is late, and by how much; `None` if neither is.
    fn silence_at(&self, now: Time) -> Option<(&'static str, Duration)> {
        let awaited = now.since(self.awaits?);
        if awaited <= ANSWER_QUIET {
            return None;
        }
        let (contact, reply) = (now.since(self.heard), now.since(self.acked));
        if contact > CONTACT_QUIET {
            Some(("contact", contact))
        } else if reply > REPLY_QUIET {
            Some(("reply", reply))
        } else {
            None
        }
    }
}

/// How long lines of a command that has ended may be on their way before anything is said of them.
const DRAINS_QUIET: Duration = Duration::from_secs(1);

/// Ages are compared with `>`, so they first count this much later.
const TICK: Duration = Duration::from_micros(1);

/// How often the bar counts on at this age.
fn step(age: Duration) -> Duration {
    if age < REFRESH_SLOW_AFTER { REFRESH } else { REFRESH_SLOW }
}

/// An age as the bar counts it, in whole steps.
fn counted(age: Duration) -> Duration {
    let step = step(age).as_secs();
    Duration::from_secs(age.as_secs() / step * step)
}

/// How seconds are written below a minute.
#[derive(Clone, Copy)]
enum Unit {
    Long,
    Short,
}

/// `7 seconds` or `7 s`, `1:03`, `1:00:03`.
fn spell(age: Duration, unit: Unit) -> String {
    let seconds = counted(age).as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    match unit {
        _ if hours > 0 => format!("{hours}:{:02}:{:02}", minutes % 60, seconds % 60),
        _ if minutes > 0 => format!("{minutes}:{:02}", seconds % 60),
        Unit::Long => format!("{seconds} seconds"),
        Unit::Short => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(s: f64) -> Time {
        Time::from_micros((s * 1e6) as u64)
    }

    fn notice() -> StatusBar {
        StatusBar::new(Time::ZERO, "rove", Escape::Default)
    }

    #[test]
    fn lines_that_are_still_to_come() {
        let mut bar = notice();
        bar.awaits(None);
        bar.drains(secs(5.0), 7300);
        assert_eq!(bar.text(secs(5.9)), None);
        assert_eq!(bar.next_change(secs(5.0)), Some(secs(6.0)));
        bar.drains(secs(6.0), 1);
        let said = "rove: the command has ended; 1 line is still to come [To quit: Ctrl-^ .]";
        assert_eq!(bar.text(secs(6.0)).as_deref(), Some(said));
        bar.drains(secs(7.0), 0);
        assert_eq!(bar.text(secs(7.0)), None);
    }

    #[test]
    fn silence() {
        for (heard, acked, now, expected) in [
            (0.0, 0.0, 6.5, None),
            (0.0, 0.0, 6.6, Some("rove: Last contact 6 seconds ago. [To quit: Ctrl-^ .]")),
            (0.0, 0.0, 59.9, Some("rove: Last contact 59 seconds ago. [To quit: Ctrl-^ .]")),
            (0.0, 0.0, 65.9, Some("rove: Last contact 1:03 ago. [To quit: Ctrl-^ .]")),
            (0.0, 0.0, 3603.1, Some("rove: Last contact 1:00:03 ago. [To quit: Ctrl-^ .]")),
            (0.0, 0.0, 360_000.0, Some("rove: Last contact 100:00:00 ago. [To quit: Ctrl-^ .]")),
            (12.0, 2.0, 12.0, None),
            (12.0, 2.0, 12.1, Some("rove: Last reply 10 seconds ago. [To quit: Ctrl-^ .]")),
            (12.0, 2.0, 18.6, Some("rove: Last contact 6 seconds ago. [To quit: Ctrl-^ .]")),
        ] {
            let mut notice = notice();
            notice.heard(secs(heard));
            notice.acked(secs(acked));
            assert_eq!(notice.text(secs(now)).as_deref(), expected, "{heard} {acked} {now}");
        }
    }

    #[test]
    fn what_is_done_about_silence() {
        let mut bar = notice();
        bar.waits(2);
        bar.remedy(Some("asking ssh for a way".into()));
        assert_eq!(bar.text(secs(6.0)), None, "there is none");
        let said = "rove: Last contact 10 seconds ago; 2 keys wait; asking ssh for a way. [To quit: Ctrl-^ .]";
        assert_eq!(bar.text(secs(10.5)).as_deref(), Some(said));
        bar.say("Nothing listens there.", Lifetime::UntilContact);
        let said = "rove: Nothing listens there. (10 s without contact; 2 keys wait; asking ssh for a way.) \
                    [To quit: Ctrl-^ .]";
        assert_eq!(bar.text(secs(10.5)).as_deref(), Some(said));
        bar.remedy(None);
        bar.heard(secs(11.0));
        bar.awaits(None);
        assert_eq!(bar.text(secs(12.0)), None);
    }

    /// A session at rest is asked each 10 s whether it is there: silence before that is none.
    #[test]
    fn silence_that_nobody_asked_to_be_broken() {
        let mut notice = notice();
        for (awaits, now, silent) in [
            (None, 3600.0, false),
            (Some(0.0), 6.5, false),
            (Some(0.0), 6.6, true),
            (Some(10.0), 13.5, false),
            (Some(10.0), 13.6, true),
        ] {
            notice.awaits(awaits.map(secs));
            assert_eq!(notice.text(secs(now)).is_some(), silent, "{awaits:?} {now}");
            let next = notice.next_change(Time::ZERO);
            assert_eq!(next.is_some(), awaits.is_some(), "{awaits:?}");
        }
    }

    #[test]
    fn messages() {
        let mut notice = notice();
        notice.say("Network is unreachable", Lifetime::Until(secs(3.1)));
        let text = "rove: Network is unreachable [To quit: Ctrl-^ .]";
        assert_eq!(notice.text(secs(3.0)).as_deref(), Some(text));
        assert_eq!(notice.text(secs(3.1)), None);
        notice.say("Network is unreachable", Lifetime::Until(secs(9.0)));
        let text = "rove: Network is unreachable (8 s without contact.) [To quit: Ctrl-^ .]";
        assert_eq!(notice.text(secs(8.0)).as_deref(), Some(text));
        notice.heard(secs(8.0));
        let text = "rove: Network is unreachable [To quit: Ctrl-^ .]";
        assert_eq!(notice.text(secs(8.5)).as_deref(), Some(text));
        notice.help(None);
        let text = "rove: Commands: . quits, s status, Ctrl-Z suspends, ^ types Ctrl-^";
        assert_eq!(notice.text(secs(8.5)).as_deref(), Some(text));
        notice.clear_help();
        assert_eq!(notice.text(secs(8.5)), None);
        notice.say("Exiting...", Lifetime::Forever);
        notice.say("Network is unreachable", Lifetime::Until(secs(20.0)));
        let text = "rove: Exiting... (reply) [To quit: Ctrl-^ .]".replace(" (reply)", "");
        assert_eq!(notice.text(secs(9.0)).as_deref(), Some(&*text));
        let text = "rove: Exiting... (12 s without reply.) [To quit: Ctrl-^ .]";
        assert_eq!(notice.text(secs(12.0)).as_deref(), Some(text));
    }

    #[test]
    fn keys_that_wait() {
        let ago = "Last contact 8 seconds ago";
        for (name, octets, want) in [
            ("rove", 0, format!("rove: {ago}.")),
            ("rove", 1, format!("rove: {ago}; 1 key waits.")),
            ("rove", 12, format!("rove: {ago}; 12 keys wait.")),
            ("mosh", 12, format!("mosh: {ago}.")),
        ] {
            let mut notice = StatusBar::new(Time::ZERO, name, Escape::None);
            notice.waits(octets);
            assert_eq!(notice.text(secs(6.0)), None, "nothing is said before the server is silent");
            assert_eq!(notice.text(secs(8.0)), Some(want));
        }
        let mut notice = notice();
        notice.waits(2);
        notice.say("No network here", Lifetime::Until(secs(9.0)));
        let text = "rove: No network here (8 s without contact; 2 keys wait.) [To quit: Ctrl-^ .]";
        assert_eq!(notice.text(secs(8.0)).as_deref(), Some(text));
    }

    #[test]
    fn no_escape_key_no_hint() {
        let mut notice = StatusBar::new(Time::ZERO, "mosh", Escape::None);
        notice.help(None);
        assert_eq!(notice.text(secs(1.0)), None);
        assert_eq!(notice.text(secs(8.0)).as_deref(), Some("mosh: Last contact 8 seconds ago."));
    }

    #[test]
    fn the_next_change_is_when_the_text_changes() {
        let mut notice = notice();
        notice.say("hello", Lifetime::Until(secs(2.0)));
        let mut now = Time::ZERO;
        let mut text = notice.text(now);
        for _ in 0..100 {
            let next = notice.next_change(now).expect("silence always counts on");
            assert!(next > now);
            assert_eq!(notice.text(next - TICK), text, "just before {next:?}");
            now = next;
            text = notice.text(now);
        }
        assert!(now > secs(120.0), "{now:?}");
    }
}
