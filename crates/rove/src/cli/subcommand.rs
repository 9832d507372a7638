//! The commands behind rove's first word: found where options stand before them, and guessed where one is
//! misspelt.

use std::ffi::OsString;

use clap::CommandFactory;

use crate::cli::again::{moved, moved_all};
use crate::cli::order::{Given, Ordered, first_word};
use crate::cli::words::RoveArgs;
use crate::cli::{attach, copy, doctor, exec, install, sessions};
use crate::failure::Failure;
use crate::quoted::quoted;

/// A command that the first word names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Subcommand {
    Server,
    Copy,
    Doctor,
    Exec,
    Install,
    List,
    Attach,
    New,
    Kill,
    Help,
}

impl Subcommand {
    const ALL: [Subcommand; 10] = [
        Subcommand::Server,
        Subcommand::Copy,
        Subcommand::Doctor,
        Subcommand::Exec,
        Subcommand::Install,
        Subcommand::List,
        Subcommand::Attach,
        Subcommand::New,
        Subcommand::Kill,
        Subcommand::Help,
    ];

    fn name(self) -> &'static str {
        match self {
            Subcommand::Server => "server",
            Subcommand::Copy => "cp",
            Subcommand::Doctor => "doctor",
            Subcommand::Exec => "exec",
            Subcommand::Install => "install",
            Subcommand::List => "ls",
            Subcommand::Attach => "attach",
            Subcommand::New => "new",
            Subcommand::Kill => "kill",
            Subcommand::Help => "help",
        }
    }

    /// Its options, where they are clap's.
    fn table(self) -> Option<clap::Command> {
        match self {
            Subcommand::Server | Subcommand::Help => None,
            Subcommand::Copy => Some(copy::command()),
            Subcommand::Doctor => Some(doctor::command()),
            Subcommand::Exec => Some(exec::command()),
            Subcommand::Install => Some(install::command()),
            Subcommand::List => Some(sessions::ls_command()),
            Subcommand::Attach => Some(attach::command()),
            Subcommand::New => Some(attach::new_command()),
            Subcommand::Kill => Some(sessions::kill_command()),
        }
    }

    /// The words of options that stand before it.
    fn take(self, given: &[Given]) -> Result<Vec<OsString>, Failure> {
        let Some(table) = self.table() else {
            return Ok(given.iter().flat_map(Given::words).collect());
        };
        let mut words = Vec::new();
        for option in given {
            // One that nobody knows is for clap to name.
            let unknown = option.id.is_none().then(|| option.words());
            words.extend(unknown.or_else(|| moved(option, &table)).ok_or_else(|| {
                let (flag, name) = (option.flag().display(), self.name());
                Failure::new(
                    format!("{flag} is an option for sessions, and rove {name} has none like it"),
                    format!("Leave it out; rove {name} --help tells the others."),
                )
            })?);
        }
        Ok(words)
    }
}

/// The command that the first word names which is no option, and its words. `None`: the word is a host.
///
/// # Errors
/// If an option before it is none of the command's.
pub(crate) fn subcommand(
    words: &[OsString],
) -> Result<Option<(Subcommand, Vec<OsString>)>, Failure> {
    let Some((given, word, rest)) = first_word(&RoveArgs::command(), words) else {
        return Ok(None);
    };
    let Some(command) = Subcommand::ALL.into_iter().find(|command| word == command.name()) else {
        return Ok(None);
    };
    let mut words = command.take(&given)?;
    words.extend(rest.iter().cloned());
    Ok(Some((command, words)))
}

/// The line that was meant if the host is a misspelt command with words after it.
pub(super) fn meant(ordered: &Ordered) -> Option<String> {
    let host = ordered.host.as_ref()?.to_str()?;
    let command = Subcommand::ALL.into_iter().find(|command| is_slip(host, command.name()))?;
    let options = command.table().map(|table| moved_all(&ordered.options, &table));
    if ordered.command.is_empty() {
        return None;
    }
    let words = ["rove".into(), command.name().into()].into_iter();
    let words = words.chain(options.unwrap_or_default());
    Some(quoted(words.chain(ordered.command.iter().cloned())))
}

/// Whether one letter too many, too few, wrong, or changed for its neighbour tells the two apart.
fn is_slip(word: &str, meant: &str) -> bool {
    let (word, meant) = (word.as_bytes(), meant.as_bytes());
    let same = word.iter().zip(meant).take_while(|(a, b)| a == b).count();
    let (word, meant) = (&word[same..], &meant[same..]);
    match (word, meant) {
        ([], [_]) | ([_], []) => true,
        ([a, b, rest @ ..], [c, d, other @ ..]) if (a, b, rest) == (d, c, other) => true,
        ([_, rest @ ..], [_, other @ ..]) if rest == other => true,
        ([_, rest @ ..], _) if rest == meant => true,
        (_, [_, other @ ..]) => word == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn options_may_stand_before_the_command() {
        for (line, expected) in [
            ("cp -r a h:", Ok(Some((Subcommand::Copy, "-r a h:")))),
            ("-v cp a h:", Ok(Some((Subcommand::Copy, "-v a h:")))),
            ("-vp 2222 -l u cp a h:", Ok(Some((Subcommand::Copy, "-v -P 2222 --user=u a h:")))),
            ("-p2222 exec h ls", Ok(Some((Subcommand::Exec, "-p2222 h ls")))),
            ("--frobnicate cp a h:", Ok(Some((Subcommand::Copy, "--frobnicate a h:")))),
            ("-v server --help", Ok(Some((Subcommand::Server, "-v --help")))),
            ("--predict=always cp a h:", Err("--predict is an option for sessions")),
            ("h cp a", Ok(None)),
            ("-- cp a", Ok(None)),
            ("-v -- cp a", Ok(None)),
            ("-v h", Ok(None)),
            ("-l cp h", Ok(None)),
            ("", Ok(None)),
        ] {
            let found = subcommand(&words(line));
            match (found, expected) {
                (Ok(found), Ok(expected)) => {
                    let expected = expected.map(|(command, line)| (command, words(line)));
                    assert_eq!(found, expected, "{line}");
                }
                (Err(failure), Err(text)) => assert!(failure.what.starts_with(text), "{failure}"),
                (found, expected) => panic!("{line}: {found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn slips() {
        for (word, meant, expected) in [
            ("exe", "exec", true),
            ("eexec", "exec", true),
            ("exce", "exec", true),
            ("exac", "exec", true),
            ("xec", "exec", true),
            ("execs", "exec", true),
            ("exec", "exec", false),
            ("exceed", "exec", false),
            ("cepx", "exec", false),
            ("pc", "cp", true),
            ("scp", "cp", true),
            ("c", "cp", true),
            ("x", "cp", false),
            ("ssh", "cp", false),
        ] {
            assert_eq!(is_slip(word, meant), expected, "{word}");
        }
    }

    #[test]
    fn the_line_that_was_meant() {
        for (line, expected) in [
            ("-p 22 -a exce h ls -l", Some("rove exec -p 22 h ls -l")),
            ("-p 22 pc a h:", Some("rove cp -P 22 a h:")),
            ("hlep cp", Some("rove help cp")),
            ("exce", None),
            ("u@exce h", None),
            ("build7 ls", None),
        ] {
            let ordered = Ordered::of(&RoveArgs::command(), &words(line));
            assert_eq!(meant(&ordered).as_deref(), expected, "{line}");
        }
    }
}
