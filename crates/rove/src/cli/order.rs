//! The order of the user's words: ssh takes options before the host and after it, until the command begins.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command, Id};

use crate::os::ffi::{OsStrExt, OsStringExt};

/// An option as the user wrote it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Given {
    /// Its argument in the table of options; `None`: there is none.
    pub(super) id: Option<Id>,
    /// The words without the value: `-p`, `--udp-port`.
    flag: OsString,
    value: Option<OsString>,
    /// The value stands in the word of the flag.
    is_joined: bool,
}

impl Given {
    /// The flag without its value.
    pub(super) fn flag(&self) -> &OsStr {
        &self.flag
    }

    /// The option of the table's whose long name and id are this, with a value if it takes one.
    pub(super) fn long(name: &'static str, value: Option<&str>) -> Given {
        Given {
            id: Some(Id::from(name)),
            flag: format!("--{name}").into(),
            value: value.map(OsString::from),
            is_joined: false,
        }
    }

    /// The words, as they were written.
    pub(super) fn words(&self) -> Vec<OsString> {
        self.words_of(self.flag.clone(), self.flag.as_bytes().starts_with(b"--"))
    }

    /// The words with the flag that another command has for the same argument.
    pub(super) fn words_for(&self, other: &Arg) -> Vec<OsString> {
        match (other.get_long(), other.get_short()) {
            (Some(long), _) => self.words_of(format!("--{long}").into(), true),
            (None, Some(short)) => self.words_of(format!("-{short}").into(), false),
            (None, None) => Vec::new(),
        }
    }

    fn words_of(&self, mut flag: OsString, is_long: bool) -> Vec<OsString> {
        match &self.value {
            None => vec![flag],
            Some(value) if is_long || self.is_joined => {
                if is_long {
                    flag.push("=");
                }
                flag.push(value);
                vec![flag]
            }
            Some(value) => vec![flag, value.clone()],
        }
    }
}

/// What the user's words are.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Ordered {
    pub(super) options: Vec<Given>,
    pub(super) host: Option<OsString>,
    pub(super) command: Vec<OsString>,
    /// `--` stands between host and command: the words are a program's and not a line's.
    pub(super) is_program: bool,
}

impl Ordered {
    /// Reads words, whose options are those of `table`.
    pub(super) fn of(table: &Command, words: &[OsString]) -> Ordered {
        let mut ordered = Ordered::default();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            if word == "--" && ordered.host.is_none() {
                ordered.host = rest.next().cloned();
                ordered.is_program = rest.as_slice().first().is_some_and(|word| word == "--");
                ordered.command = rest.skip(usize::from(ordered.is_program)).cloned().collect();
                break;
            } else if word == "--" {
                ordered.is_program = true;
                ordered.command = rest.cloned().collect();
                break;
            } else if is_option(word) {
                ordered.options.extend(options(table, word, &mut rest));
            } else if ordered.host.is_none() {
                ordered.host = Some(word.clone());
            } else {
                ordered.command = std::iter::once(word).chain(rest).cloned().collect();
                break;
            }
        }
        ordered
    }

    /// The words for clap, options first, after the program's name.
    pub(super) fn words(&self, program: &str) -> Vec<OsString> {
        let mut words = vec![OsString::from(program)];
        words.extend(self.options.iter().flat_map(Given::words));
        if let Some(host) = &self.host {
            words.extend(["--".into(), host.clone()]);
        }
        words.extend(self.command.iter().cloned());
        words
    }
}

/// The options before the first other word, that word, and the words after it; `None` if there is no such
/// word, or `--` before it.
pub(super) fn first_word<'a>(
    table: &Command,
    words: &'a [OsString],
) -> Option<(Vec<Given>, &'a OsStr, &'a [OsString])> {
    let mut given = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if word == "--" {
            return None;
        } else if !is_option(word) {
            return Some((given, word, rest.as_slice()));
        }
        given.extend(options(table, word, &mut rest));
    }
    None
}

fn is_option(word: &OsStr) -> bool {
    word.len() > 1 && word.as_bytes().starts_with(b"-")
}

/// The options of a word: several letters may stand together, and a value may be the next word.
fn options<'a>(
    table: &Command,
    word: &OsStr,
    rest: &mut impl Iterator<Item = &'a OsString>,
) -> Vec<Given> {
    let octets = word.as_bytes();
    let find = |wanted: &dyn Fn(&Arg) -> bool| table.get_arguments().find(|arg| wanted(arg));
    let given = |arg: Option<&Arg>, flag: &[u8], joined: Option<&[u8]>| Given {
        id: arg.map(|arg| arg.get_id().clone()),
        flag: OsString::from_vec(flag.to_vec()),
        value: joined.map(|value| OsString::from_vec(value.to_vec())),
        is_joined: joined.is_some(),
    };
    let takes = |arg: Option<&Arg>| arg.is_some_and(|arg| arg.get_action().takes_values());
    if let Some(long) = octets.strip_prefix(b"--") {
        let mut halves = long.splitn(2, |octet| *octet == b'=');
        let (name, value) = (halves.next().unwrap_or_default(), halves.next());
        let arg = find(&|arg| arg.get_long().is_some_and(|long| long.as_bytes() == name));
        let mut option = given(arg, &[b"--", name].concat(), value);
        // Some are whole without a value, and have one behind = alone.
        let is_whole = arg.is_some_and(Arg::is_require_equals_set);
        if takes(arg) && value.is_none() && !is_whole {
            option.value = rest.next().cloned();
        }
        return vec![option];
    }
    let mut found = Vec::new();
    for (index, &letter) in octets.iter().enumerate().skip(1) {
        let is_it = |arg: &Arg| {
            let aliases = arg.get_all_short_aliases().unwrap_or_default();
            arg.get_short().into_iter().chain(aliases).any(|short| short == char::from(letter))
        };
        let arg = find(&is_it);
        if !letter.is_ascii() {
            // No option has it, and a word is not cut within a letter.
            found.push(given(None, &[b"-", &octets[index..]].concat(), None));
            break;
        }
        let joined = Some(&octets[index + 1..]).filter(|rest| takes(arg) && !rest.is_empty());
        let mut option = given(arg, &[b'-', letter], joined);
        if takes(arg) && joined.is_none() {
            option.value = rest.next().cloned();
        }
        found.push(option);
        if takes(arg) {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use clap::ArgAction;

    use super::*;

    fn table() -> Command {
        let value = |short, long| Arg::new(long).short(short).long(long);
        let flag = |(short, name)| Arg::new(name).short(short).action(ArgAction::Count);
        let flags = [('T', "T"), ('x', "x"), ('q', "q"), ('t', "t"), ('N', "N")].map(flag);
        Command::new("x").disable_help_flag(true).args(flags).args([
            value('p', "port"),
            value('o', "option"),
            value('l', "login"),
            value('L', "local"),
            value('u', "udp-port"),
            Arg::new("obscure").long("obscure").num_args(0..=1).require_equals(true),
        ])
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn options_may_stand_after_the_host() {
        for (line, ordered) in [
            ("h", "-- h"),
            ("h ls -l", "-- h ls -l"),
            ("-l u h rsync --server -e.x . /a", "-l u -- h rsync --server -e.x . /a"),
            ("-p 22 u@h git-upload-pack 'x'", "-p 22 -- u@h git-upload-pack 'x'"),
            ("-o SendEnv=A -p22 h x", "-o SendEnv=A -p22 -- h x"),
            ("h -p 22 -x ls -p", "-p 22 -x -- h ls -p"),
            ("-Txq -tt h", "-T -x -q -t -t -- h"),
            ("-- h -p", "-- h -p"),
            ("h -- ls", "-- h ls"),
            ("-- h -- ls", "-- h ls"),
            ("h ls -- x", "-- h ls -- x"),
            ("--udp-port 0 h ls", "--udp-port=0 -- h ls"),
            ("--udp-port=0 h ls", "--udp-port=0 -- h ls"),
            ("--obscure h ls", "--obscure -- h ls"),
            ("h --obscure -x ls", "--obscure -x -- h ls"),
            ("--obscure=never h", "--obscure=never -- h"),
            ("-L 1:h:2 -N h", "-L 1:h:2 -N -- h"),
            ("--odd=1 -Tz -xp 5 h", "--odd=1 -T -z -x -p 5 -- h"),
            ("-p", "-p"),
        ] {
            let found = Ordered::of(&table(), &words(line)).words("rove");
            assert_eq!(found, words(&format!("rove {ordered}")), "{line}");
        }
    }

    #[test]
    fn words_of_a_line_and_of_a_program() {
        for (line, is_program) in [
            ("h ls -l", false),
            ("-- h ls", false),
            ("h ls -- x", false),
            ("h -- ls", true),
            ("-- h -- ls", true),
            ("-p 22 h -x -- ls", true),
        ] {
            assert_eq!(Ordered::of(&table(), &words(line)).is_program, is_program, "{line}");
        }
    }

    #[test]
    fn the_first_word_that_is_no_option() {
        for (line, expected) in [
            ("cp a b", Some((0, "cp", 2))),
            ("-q -p 22 cp a", Some((2, "cp", 1))),
            ("-p cp a", Some((1, "a", 0))),
            ("-- cp a", None),
            ("-q", None),
        ] {
            let words = words(line);
            let found = first_word(&table(), &words);
            let found = found
                .map(|(given, word, rest)| (given.len(), word.to_str().expect("text"), rest.len()));
            assert_eq!(found, expected, "{line}");
        }
    }
}
