//! This machine's locales. We ask its own `locale` program: a statically linked rove brings its own
//! C library, which does not know the locales installed here.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use crate::server::helper;

/// The character set of a locale, such as `UTF-8`; `None` if this machine does not have that locale.
pub(super) fn codeset(locale: &OsStr) -> Option<String> {
    if locale == "C.UTF-8" {
        // Every system has it that has any UTF-8 locale, and it is our last resort anyway.
        return Some("UTF-8".into());
    }
    let mut charmap = Command::new("locale");
    charmap.arg("charmap").env("LC_ALL", locale);
    match helper::output(&mut charmap, CHARMAP_TIME_MAX) {
        Some(codeset) => known(locale, codeset.trim()),
        // Without the program there is only the name to go by.
        None => named(locale),
    }
}

/// For a locale that it cannot find the program answers as for "C".
fn known(locale: &OsStr, codeset: &str) -> Option<String> {
    let plain = locale == "C" || locale == "POSIX";
    (plain || codeset != ASCII).then(|| codeset.into())
}

/// What glibc calls the character set of "C".
const ASCII: &str = "ANSI_X3.4-1968";

/// What a locale's name says after the dot (`language.codeset@modifier`).
fn named(locale: &OsStr) -> Option<String> {
    let (_, codeset) = locale.to_str()?.split_once('.')?;
    codeset.split('@').next().map(String::from)
}

/// How long the program may take; it takes a millisecond or two.
const CHARMAP_TIME_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codesets() {
        for (locale, utf8) in [
            ("C.UTF-8", Some(true)),
            ("C", Some(false)),
            ("POSIX", Some(false)),
            ("xx_YY.nowhere", None),
            ("a\0b", None),
        ] {
            let codeset = codeset(OsStr::new(locale));
            assert_eq!(codeset.map(|codeset| codeset == "UTF-8"), utf8, "{locale}");
        }
    }

    #[test]
    fn names() {
        for (locale, codeset) in
            [("en_GB.UTF-8", Some("UTF-8")), ("de_DE.utf8@euro", Some("utf8")), ("C", None)]
        {
            assert_eq!(named(OsStr::new(locale)).as_deref(), codeset, "{locale}");
        }
    }
}
