//! Parsers of option values.

use std::ffi::OsString;
use std::path::MAIN_SEPARATOR;
use std::time::Duration;

use clap::ValueEnum;
use rove_ssp::{SLOT_MAX, SLOT_MIN};

use crate::bootstrap::Bind;
use crate::client::WaySetting;
use crate::failure::Failure;

/// When local echo shows its guesses.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum Predict {
    /// On slow links.
    Adaptive,
    /// On all links.
    Always,
    /// Not at all.
    Never,
    /// On all links, motions of the cursor at once.
    Experimental,
}

/// What a listener is kept from learning of typed keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum ObscureWord {
    /// The keys of a line that does not echo go with its Enter.
    Secrets,
    /// The same, and all other keys go in slots.
    Always,
    /// Each key goes at once.
    Never,
}

/// Reads the milliseconds of a slot.
pub(super) fn parse_slot(word: &str) -> Result<Duration, String> {
    let span = word.parse().ok().map(Duration::from_millis);
    let (least, most) = (SLOT_MIN.as_millis(), SLOT_MAX.as_millis());
    span.filter(|span| (SLOT_MIN..=SLOT_MAX).contains(span))
        .ok_or_else(|| format!("a slot is a number of milliseconds from {least} to {most}"))
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum FamilyWord {
    Inet,
    Inet6,
    #[value(alias = "auto")]
    All,
    PreferInet,
    PreferInet6,
}

/// Which ways to the server are used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(super) enum WayWord {
    /// UDP, and ssh where UDP does not answer.
    Auto,
    /// UDP alone.
    Udp,
    /// ssh alone.
    Ssh,
}

impl From<WayWord> for WaySetting {
    fn from(word: WayWord) -> WaySetting {
        match word {
            WayWord::Auto => WaySetting::Auto,
            WayWord::Udp => WaySetting::Udp,
            WayWord::Ssh => WaySetting::Ssh,
        }
    }
}

pub(super) fn parse_host(word: &str) -> Result<String, &'static str> {
    match word {
        "" => Err("the host is empty"),
        _ if word.starts_with('-') => Err("a host cannot begin with a dash"),
        _ => Ok(word.to_owned()),
    }
}

pub(crate) fn parse_bind(word: &str) -> Result<Bind, &'static str> {
    match word {
        "ssh" => Ok(Bind::Ssh),
        "any" => Ok(Bind::Any),
        _ => word.parse().map(Bind::Address).map_err(|_| "not ssh, any or an IP address"),
    }
}

/// Reads `10m` as ten minutes.
pub(super) fn parse_span(word: &str) -> Result<Duration, &'static str> {
    let (digits, seconds) = match word.char_indices().last() {
        Some((end, 'm')) => (&word[..end], 60),
        Some((end, 'h')) => (&word[..end], 3600),
        Some((end, 'd')) => (&word[..end], 24 * 3600),
        _ => (word, 1),
    };
    let number = digits.parse::<u32>().ok().filter(|number| *number > 0);
    let span = number.map(|number| Duration::from_secs(u64::from(number) * seconds));
    span.ok_or("a time is a number above 0 of seconds, or of m, h or d after it")
}

/// Splits a command line as a shell would, as far as words and quotes go.
pub(super) fn split_words(line: &str) -> Result<Vec<OsString>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (None, ' ' | '\t' | '\n') => words.extend(word.take().map(OsString::from)),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if c == open => quote = None,
            // Where directories are separated by it, it is a part of the name.
            (None | Some('"'), '\\') if MAIN_SEPARATOR != '\\' => {
                word.get_or_insert_default().extend(rest.next())
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from));
    match (words.is_empty(), quote) {
        (false, None) => Ok(words),
        (true, _) => Err(Failure::new("--ssh names no program", "Leave it away to use ssh.")),
        (_, Some(quote)) => Err(Failure::new(format!("--ssh={line} has an open {quote}"), "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_of(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[cfg(unix)]
    #[test]
    fn words_of_a_command_line() {
        for (line, expected) in [
            ("ssh", Some(&["ssh"][..])),
            (" ssh  -p 22 ", Some(&["ssh", "-p", "22"])),
            ("a 'b c' \"d e\"f g\\ h ''", Some(&["a", "b c", "d ef", "g h", ""])),
            (r#"'a\b' "c\"d""#, Some(&[r"a\b", r#"c"d"#])),
            ("", None),
            ("  ", None),
            ("'a", None),
        ] {
            let words = split_words(line).ok();
            assert_eq!(words, expected.map(command_of), "{line:?}");
        }
    }

    #[test]
    fn spans() {
        for (word, seconds) in [
            ("1", Some(1)),
            ("90", Some(90)),
            ("10m", Some(600)),
            ("2h", Some(7200)),
            ("7d", Some(604_800)),
            ("0", None),
            ("m", None),
            ("", None),
            ("1.5h", None),
            ("-1", None),
            ("1w", None),
        ] {
            assert_eq!(parse_span(word).ok(), seconds.map(Duration::from_secs), "{word}");
        }
    }
}
