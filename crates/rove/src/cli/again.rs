//! Lines that the user may run instead, with the options that the user gave.

use std::ffi::{OsStr, OsString};

use crate::cli::order::{Given, Ordered};
use crate::cli::target::Target;
use crate::quoted::quoted;

/// The user's words, for hints.
#[derive(Clone, Debug, Default)]
pub(super) struct Again {
    ordered: Ordered,
}

impl Again {
    pub(super) fn of(ordered: &Ordered) -> Again {
        Again { ordered: ordered.clone() }
    }

    /// The words for the host alone, where the user has named a session on it.
    pub(super) fn of_host(&self) -> Again {
        let mut ordered = self.ordered.clone();
        let word = ordered.host.as_ref().and_then(|word| word.to_str());
        if let Some(Ok((Some(host), Some(_)))) = word.map(Target::split) {
            ordered.host = Some(host.into());
        }
        Again { ordered }
    }

    pub(super) fn ordered(&self) -> &Ordered {
        &self.ordered
    }

    /// The same line.
    pub(super) fn line(&self) -> String {
        let options = self.ordered.options.iter().flat_map(Given::words);
        self.whole(["rove".into()].into_iter().chain(options))
    }

    /// The same command by `rove exec`, whose options `table` has. What it does not take is left out.
    pub(super) fn exec(&self, table: &clap::Command, flag: &str) -> String {
        let start = ["rove", "exec", flag].map(OsString::from);
        self.whole(start.into_iter().chain(moved_all(&self.ordered.options, table)))
    }

    /// A program of `ssh`'s words: an option, and those of the user's that `keeps` names.
    pub(super) fn ssh(&self, flag: &str, keeps: impl Fn(&str) -> bool) -> String {
        let kept = self.ordered.options.iter();
        let kept = kept.filter(|given| given.id.as_ref().is_some_and(|id| keeps(id.as_str())));
        let start = ["ssh", flag].map(OsString::from);
        self.whole(start.into_iter().chain(kept.flat_map(Given::words)))
    }

    fn whole(&self, start: impl Iterator<Item = OsString>) -> String {
        let host = self.ordered.host.as_deref().unwrap_or(OsStr::new("HOST")).to_owned();
        let dashes = self.ordered.is_program.then(|| OsString::from("--"));
        let end = std::iter::once(host).chain(dashes).chain(self.ordered.command.iter().cloned());
        quoted(start.chain(end))
    }
}

/// The words of those options that the command with this table has.
pub(super) fn moved_all(options: &[Given], table: &clap::Command) -> Vec<OsString> {
    options.iter().flat_map(|given| moved(given, table).unwrap_or_default()).collect()
}

/// An option's words for the command that has this table; `None` if it has no such option.
pub(super) fn moved(given: &Given, table: &clap::Command) -> Option<Vec<OsString>> {
    let id = given.id.as_ref()?;
    let other = table.get_arguments().find(|arg| arg.get_id() == id)?;
    Some(given.words_for(other))
}
