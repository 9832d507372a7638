//! Reads the environment; only `os` reads it besides.

use std::ffi::OsString;

use clap::ValueEnum;
use rove_session::Escape;
use rove_session::client::Obscure;
use rove_session::predict::{Display, Editing};
use rove_term::{Dialect, Terminfo};

use crate::cli::values::{ObscureWord, Predict};
use crate::failure::Failure;
use crate::os::ffi::OsStrExt;
use crate::os::{environment, names, terminfo, tty};

/// The locale variables that stock's wrapper passes on, in its order (mosh-protocol.md §1.1).
const LOCALE_VARIABLES: [&str; 15] = [
    "LANG",
    "LANGUAGE",
    "LC_CTYPE",
    "LC_NUMERIC",
    "LC_TIME",
    "LC_COLLATE",
    "LC_MONETARY",
    "LC_MESSAGES",
    "LC_PAPER",
    "LC_NAME",
    "LC_ADDRESS",
    "LC_TELEPHONE",
    "LC_MEASUREMENT",
    "LC_IDENTIFICATION",
    "LC_ALL",
];

/// When guesses are shown, by mosh's variable, if it is set.
pub(super) fn display_variable() -> Result<Option<Display>, Failure> {
    let Some(word) = variable("MOSH_PREDICTION_DISPLAY") else { return Ok(None) };
    parse_display(&word).map(Some).ok_or_else(|| {
        Failure::new(
            format!("MOSH_PREDICTION_DISPLAY={word} is no prediction mode"),
            "It can be adaptive, always, never or experimental.",
        )
    })
}

/// The prediction mode of this name.
pub(crate) fn parse_display(word: &str) -> Option<Display> {
    Predict::from_str(word, false).ok().map(Display::from)
}

/// The setting of what a listener is kept from learning, by its name.
pub(super) fn parse_obscure(word: &str) -> Option<Obscure> {
    ObscureWord::from_str(word, false).ok().map(Obscure::from)
}

/// Whether guesses overwrite, by the environment.
pub(crate) fn editing_variable() -> Editing {
    match either("PREDICTION_OVERWRITE") {
        Some(word) if word == "yes" => Editing::Overwrite,
        _ => Editing::Insert,
    }
}

/// The escape key by the environment, if it is set there.
pub(super) fn escape_variable() -> Option<Escape> {
    either("ESCAPE_KEY").map(|key| Escape::from_setting(key.as_bytes()))
}

/// The escape key of a setting, if it names one.
pub(crate) fn escape(setting: Option<OsString>) -> Escape {
    setting.map_or(Escape::default(), |key| Escape::from_setting(key.as_bytes()))
}

/// The user's terminal: its entry in the database of terminals, or built-in knowledge by its name if it has
/// none. The database is this machine's.
pub(crate) fn terminal() -> Dialect {
    let term = term();
    let colorterm = variable("COLORTERM").unwrap_or_default();
    let dialect = match entry(&term) {
        Some(entry) => Dialect::tty_described(&term, &colorterm, &entry),
        None => Dialect::tty(&term, &colorterm),
    };
    match names::names() {
        Some(names) => dialect.with_local_names(names),
        None => dialect,
    }
}

/// The name of the user's terminal; empty if nothing names it.
pub(super) fn term() -> String {
    variable("TERM").unwrap_or_else(|| tty::TERM_UNNAMED.to_owned())
}

/// The database entry of the terminal of this name.
pub(super) fn entry(term: &str) -> Option<Terminfo> {
    let [own, home, list] = ["TERMINFO", environment::HOME, "TERMINFO_DIRS"].map(variable_os);
    terminfo::find(term, &terminfo::places(own, home, list))
}

/// This end's locale, for a server without a UTF-8 one. If this end has none either, C.UTF-8 replaces it.
pub(super) fn locale() -> Vec<(String, String)> {
    let set =
        LOCALE_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?)));
    let set: Vec<(String, String)> = set.filter(|(_, value)| !value.is_empty()).collect();
    let named = |name: &str| set.iter().find(|(set, _)| set == name).map(|(_, value)| value);
    let effective = named("LC_ALL").or(named("LC_CTYPE")).or(named("LANG"));
    let letters = |value: &String| value.to_ascii_lowercase().replace('-', "");
    match effective.is_some_and(|value| letters(value).ends_with("utf8")) {
        true => set,
        false => vec![("LC_ALL".to_owned(), "C.UTF-8".to_owned())],
    }
}

/// rove's variable of this name, or mosh's.
pub(super) fn either(name: &str) -> Option<OsString> {
    variable_os(&format!("ROVE_{name}")).or_else(|| variable_os(&format!("MOSH_{name}")))
}

/// An environment variable, if it is set to text.
pub(crate) fn variable(name: &str) -> Option<String> {
    variable_os(name).and_then(|value| value.into_string().ok())
}

/// An environment variable, if it is set.
#[expect(clippy::disallowed_methods, reason = "this module reads the environment for the programs")]
pub(crate) fn variable_os(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
