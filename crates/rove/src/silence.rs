//! What a person is told while a host does not answer: without a screen there is no bar for it.

use std::time::Duration;

use rove_streams::Streams;

/// How often to look.
pub const LOOK: Duration = Duration::from_secs(1);

/// Whether a host answers, as far as the user was told.
#[derive(Debug)]
pub struct Silence {
    host: String,
    seen: Seen,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Seen {
    Answering,
    /// Once: its answer may be on its way.
    Silent,
    /// The user knows; so long, last.
    Told(Duration),
}

impl Silence {
    /// A host that answers.
    pub fn of(host: &str) -> Silence {
        Silence { host: host.to_owned(), seen: Seen::Answering }
    }

    /// What there is to tell now, if there is. To be called each [`LOOK`].
    pub fn look(&mut self, streams: &Streams) -> Option<String> {
        self.see(streams.silence())
    }

    fn see(&mut self, silence: Option<Duration>) -> Option<String> {
        let Silence { host, seen } = self;
        let (next, line) = match (*seen, silence) {
            (Seen::Answering, Some(_)) => (Seen::Silent, None),
            (Seen::Silent, Some(silence)) => {
                let seconds = silence.as_secs();
                let line = format!("no answer from {host} for {seconds} s; still trying");
                (Seen::Told(silence), Some(line))
            }
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

    #[test]
    fn it_is_told_once_and_taken_back() {
        let mut silence = Silence::of("h");
        for (seconds, line) in [
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
        ] {
            let seen = (seconds > 0).then(|| Duration::from_secs(seconds));
            assert_eq!(silence.see(seen).unwrap_or_default(), line, "{seconds} s");
        }
    }
}
