//! Tells the user that a host does not answer, where there is no screen and so no bar for it.

use std::time::Duration;

use rove_streams::Streams;
use rove_streams::clock;
use thiserror::Error;
use tokio::sync::mpsc;

use crate::notice::Notice;

/// How often to look, where something may be wrong.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// How long a host may be silent before a command or a copy gives it up, unless the user says otherwise, and how long a
/// server waits for the client of one: a closed laptop's night. A copy goes on after that without another login, and keeps
/// nobody waiting: another copy that wants its part gets it at once (RELEASE, `docs/wire.md` §13).
pub const COMMAND_KEPT: Duration = Duration::from_secs(12 * 3600);

/// The same for forwardings alone, where nothing runs: a weekend.
pub(crate) const FORWARDINGS_KEPT: Duration = Duration::from_secs(72 * 3600);

/// A shorter silence looks like the pauses of an idle host.
pub(crate) const GIVE_UP_MIN: Duration = Duration::from_secs(20);

/// Where nobody watches, only a silence of this length is reported.
const LONG: Duration = Duration::from_secs(60);

/// How long QUIC may take to come through where the session's datagrams do. A handshake takes two round trips.
const CUT_AFTER: Duration = Duration::from_secs(15);

/// How long it may take from there to a proof of who the other end is, over a path that is slow and loses much.
const UNPROVEN_AFTER: Duration = Duration::from_secs(60);

/// Tells a shell's user about forwardings that fail while only the shell's own datagrams arrive.
pub(crate) async fn tell_of_cuts(streams: Streams, host: String, news: mpsc::Sender<Notice>) {
    loop {
        streams.cut_off(CUT_AFTER).await;
        let line = format!("UDP comes through to {host}, but not QUIC: what is forwarded waits");
        if news.send(Notice::Warning(line)).await.is_err() {
            return;
        }
        while streams.is_cut_off(CUT_AFTER) {
            clock::sleep(CUT_AFTER).await;
        }
    }
}

/// Whether a host answers, as far as the user knows.
#[derive(Debug)]
pub(crate) struct Silence {
    host: String,
    /// A shorter silence is not told.
    least: Duration,
    /// After a longer one the host is given up.
    most: Duration,
    seen: Seen,
    /// The user knows that only the session's datagrams arrive.
    is_cut: bool,
    /// It was silent for longer than that when it was looked at last. Once is not enough: this process may have been
    /// stopped, and the answers wait to be read.
    is_late: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Seen {
    Answering,
    /// Once: its answer may be on its way.
    Silent,
    /// The user knows; the last reported length.
    Told(Duration),
}

/// Why a host is given up.
#[derive(Debug, Error)]
pub(crate) enum GaveUp {
    /// It was silent for so long.
    #[error("nothing was heard from {host} for {} s", after.as_secs())]
    Silent { host: String, after: Duration },
    /// QUIC never came through; this program does without.
    #[error(
        "UDP comes through to {host}, but not QUIC, which carries this: \
         something on the way drops it; {instead} does without"
    )]
    NoQuic { host: String, instead: &'static str },
}

impl Silence {
    /// A host that answers; it is given up after so long a silence, of at least 20 s.
    pub(crate) fn of(host: &str, most: Duration) -> Silence {
        let (host, least) = (host.to_owned(), Duration::ZERO);
        let most = most.max(GIVE_UP_MIN);
        Silence { host, least, most, seen: Seen::Answering, is_cut: false, is_late: false }
    }

    /// The same where nobody watches.
    pub(crate) fn unwatched(self) -> Silence {
        Silence { least: LONG, ..self }
    }

    /// Waits until it is time to look.
    pub(crate) async fn pause(streams: &Streams) {
        clock::sleep(streams.calm().max(LOOK)).await;
    }

    /// What there is to tell now.
    pub(crate) fn look(&mut self, streams: &Streams) -> Vec<String> {
        let cut = self.see_way(streams.is_cut_off(CUT_AFTER));
        [self.see(streams.silence()), cut].into_iter().flatten().collect()
    }

    /// Why waiting longer is useless; `instead` works without us. Ask it at each look.
    pub(crate) fn is_over(&mut self, streams: &Streams, instead: &'static str) -> Option<GaveUp> {
        if let Some(after) = self.gives_up(streams.silence()) {
            return Some(GaveUp::Silent { host: self.host.clone(), after });
        }
        let patience = if streams.has_met() { UNPROVEN_AFTER } else { CUT_AFTER };
        let is_refused = !streams.was_carried() && streams.is_cut_off(patience);
        is_refused.then(|| GaveUp::NoQuic { host: self.host.clone(), instead })
    }

    fn gives_up(&mut self, silence: Option<Duration>) -> Option<Duration> {
        let silence = silence.filter(|silence| *silence >= self.most);
        let was_late = std::mem::replace(&mut self.is_late, silence.is_some());
        silence.filter(|_| was_late)
    }

    fn see_way(&mut self, is_cut: bool) -> Option<String> {
        let host = &self.host;
        let line = match (self.is_cut, is_cut) {
            (false, true) => {
                format!("UDP comes through to {host}, but not QUIC any more; still trying")
            }
            (true, false) => format!("QUIC comes through to {host} again"),
            _ => return None,
        };
        self.is_cut = is_cut;
        Some(line)
    }

    fn see(&mut self, silence: Option<Duration>) -> Option<String> {
        let Silence { host, seen, least, .. } = self;
        let (next, line) = match (*seen, silence) {
            (Seen::Answering, Some(_)) => (Seen::Silent, None),
            (Seen::Silent, Some(silence)) if silence >= *least => {
                let seconds = silence.as_secs();
                let line = format!("no answer from {host} for {seconds} s; still trying");
                (Seen::Told(silence), Some(line))
            }
            (Seen::Silent, Some(_)) => (Seen::Silent, None),
            (Seen::Told(_), Some(silence)) => (Seen::Told(silence), None),
            (Seen::Told(longest), None) => {
                let seconds = longest.as_secs();
                let line = format!("{host} answers again, after {seconds} s");
                (Seen::Answering, Some(line))
            }
            (Seen::Answering | Seen::Silent, None) => (Seen::Answering, None),
        };
        *seen = next;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that was stopped beyond the limit first reads the datagrams that came meanwhile.
    #[test]
    fn one_late_look_gives_nothing_up() {
        let mut silence = Silence::of("h", Duration::from_secs(5));
        for (seconds, gives_up) in [
            (None, false),
            (Some(500), false),
            (None, false),
            (Some(19), false),
            (Some(20), false),
            (Some(21), true),
        ] {
            let found = silence.gives_up(seconds.map(Duration::from_secs));
            assert_eq!(found.is_some(), gives_up, "{seconds:?}");
        }
    }

    /// Checks the reports at each look, after this many seconds of silence.
    fn check_told(mut silence: Silence, looks: &[(u64, &str)]) {
        for (seconds, line) in looks {
            let seen = (*seconds > 0).then(|| Duration::from_secs(*seconds));
            assert_eq!(silence.see(seen).unwrap_or_default(), *line, "{seconds} s");
        }
    }

    #[test]
    fn it_is_told_once_and_taken_back() {
        check_told(
            Silence::of("h", COMMAND_KEPT),
            &[
                (0, ""),
                (10, ""),
                (0, ""),
                (10, ""),
                (11, "no answer from h for 11 s; still trying"),
                (12, ""),
                (90, ""),
                (0, "h answers again, after 90 s"),
                (0, ""),
                (17, ""),
                (18, "no answer from h for 18 s; still trying"),
            ],
        );
    }

    #[test]
    fn where_nobody_watches_only_long_ones_are_told() {
        check_told(
            Silence::of("h", COMMAND_KEPT).unwatched(),
            &[
                (17, ""),
                (59, ""),
                (0, ""),
                (59, ""),
                (60, "no answer from h for 60 s; still trying"),
                (0, "h answers again, after 60 s"),
            ],
        );
    }

    #[test]
    fn a_way_that_is_cut_is_told_once_and_taken_back() {
        let mut silence = Silence::of("h", COMMAND_KEPT);
        for (is_cut, line) in [
            (false, ""),
            (true, "UDP comes through to h, but not QUIC any more; still trying"),
            (true, ""),
            (false, "QUIC comes through to h again"),
            (false, ""),
        ] {
            assert_eq!(silence.see_way(is_cut).unwrap_or_default(), line);
        }
    }
}
