//! The program a session runs and the surroundings it finds: its environment, its directory, and the
//! message of the day before its first prompt. Pure but for reading files; nothing here runs anything.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::Access;

use crate::os::account::Account;
use crate::server::options::{Greeting, Options};
use crate::sessions::name::SessionId;

/// A set of environment variables.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The value of a variable; `None` if it is not set.
    pub(super) fn value(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.0.insert(name.into(), value.into());
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Environment(variables.into_iter().collect())
    }
}

/// What a session runs, ready to be started on a terminal.
#[derive(Debug)]
pub(super) struct Login {
    /// The program, its words, environment and directory; no standard streams yet.
    pub command: Command,
    /// What the screen shows before the program's first output, as it stands in the files.
    pub motd: Vec<u8>,
    /// Nothing of our own is to be shown: a command runs, or the user wants no messages.
    pub is_silent: bool,
}

/// The surroundings of a session's programs: the user's environment, home and shell.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    /// On a terminal.
    environment: Environment,
    /// Without a terminal: as inherited, with its locale, as with ssh.
    plain: Environment,
    home: PathBuf,
    shell: PathBuf,
}

impl Surroundings {
    /// Those of this user. `inherited` is the environment the server was started in; `codeset` names the
    /// character set of a locale this machine has ([`super::locale::codeset`]).
    pub(super) fn of(
        options: &Options,
        inherited: &Environment,
        account: Option<&Account>,
        codeset: impl Fn(&OsStr) -> Option<String>,
    ) -> Surroundings {
        let home = home(inherited, account);
        let shell = shell(inherited, account);
        let mut environment = environment(options, inherited, codeset);
        let mut plain = inherited.clone();
        for name in FOREIGN.iter().chain(&["TERM", "COLORTERM"]) {
            plain.0.remove(OsStr::new(name));
        }
        for environment in [&mut environment, &mut plain] {
            environment.set("HOME", &home);
            environment.set("PWD", &home);
            environment.set("SHELL", &shell);
            for name in ["USER", "LOGNAME"] {
                if let Some(account) = account
                    && environment.value(name).is_none()
                {
                    environment.set(name, &account.name);
                }
            }
        }
        Surroundings { environment, plain, home, shell }
    }

    /// The home directory.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// Tells programs which session they are in.
    pub(super) fn set_session(&mut self, id: SessionId) {
        for environment in [&mut self.environment, &mut self.plain] {
            environment.set("ROVE_SESSION", id.to_string());
        }
    }

    /// Tells programs where the user's agent is.
    pub(super) fn set_agent(&mut self, socket: &Path) {
        for environment in [&mut self.environment, &mut self.plain] {
            environment.set("SSH_AUTH_SOCK", socket);
        }
    }

    /// A line for the login shell, or that shell itself if it is empty, with a terminal of this name or
    /// without one.
    pub(super) fn command(&self, line: &OsStr, term: Option<&str>) -> Command {
        let mut command = match line.is_empty() {
            true => login_shell(&self.shell),
            false => shell_line(&self.shell, line),
        };
        command.env_clear().current_dir(&self.home);
        match term {
            Some(term) => command.envs(&self.environment.0).env("TERM", term),
            None => command.envs(&self.plain.0),
        };
        command
    }
}

/// Prepares what `options` ask for.
pub(super) fn prepare(options: &Options, surroundings: &Surroundings) -> Login {
    let Surroundings { environment, home, shell, .. } = surroundings;
    let is_silent = !options.command.is_empty() || home.join(HUSHLOGIN).exists();
    let motd = if is_silent { Vec::new() } else { motd(&MOTD_FILES) };
    let mut command = program(options, shell);
    command.env_clear().envs(&environment.0).current_dir(home);
    Login { command, motd, is_silent }
}

/// The home directory if it can be entered, else the root directory.
fn home(inherited: &Environment, account: Option<&Account>) -> PathBuf {
    let known = inherited.value("HOME").map(PathBuf::from);
    let home = known.or_else(|| account.map(|account| account.home.clone()));
    home.filter(|home| home.is_absolute() && rustix::fs::access(home, Access::EXEC_OK).is_ok())
        .unwrap_or_else(|| "/".into())
}

fn shell(inherited: &Environment, account: Option<&Account>) -> PathBuf {
    let known = inherited.value("SHELL").map(PathBuf::from);
    known
        .into_iter()
        .chain(account.map(|account| account.shell.clone()))
        .find(|shell| !shell.as_os_str().is_empty())
        .unwrap_or_else(|| "/bin/sh".into())
}

/// The login shell; or the words given. One single word for rove's own client is a line for the shell,
/// as with ssh (`rove host 'ls | wc'`); several are run as they are, as with mosh.
fn program(options: &Options, shell: &Path) -> Command {
    match (&options.greeting, options.command.as_slice()) {
        (_, []) => login_shell(shell),
        (Greeting::Rove { .. } | Greeting::Native { .. }, [line]) => shell_line(shell, line),
        (_, [program, words @ ..]) => {
            let mut command = Command::new(program);
            command.args(words);
            command
        }
    }
}

/// The shell, to run a line.
fn shell_line(shell: &Path, line: &OsStr) -> Command {
    let mut command = Command::new(shell);
    command.arg("-c").arg(line);
    command
}

/// The shell under the name that makes it a login's.
fn login_shell(shell: &Path) -> Command {
    let mut name = OsString::from("-");
    name.push(shell.file_name().unwrap_or(shell.as_os_str()));
    let mut command = Command::new(shell);
    std::os::unix::process::CommandExt::arg0(&mut command, name);
    command
}

fn environment(
    options: &Options,
    inherited: &Environment,
    codeset: impl Fn(&OsStr) -> Option<String>,
) -> Environment {
    let mut environment = with_utf8(inherited, &options.locale, codeset);
    for name in FOREIGN {
        environment.0.remove(OsStr::new(name));
    }
    environment.set("TERM", options.term);
    // Without this ncurses draws boxes with letters when it meets a UTF-8 terminal it mistrusts.
    environment.set("NCURSES_NO_UTF8_ACS", "1");
    if options.greeting != Greeting::Mosh {
        environment.set("COLORTERM", "truecolor");
    }
    environment
}

/// Variables that describe another terminal than the program's, or another session.
const FOREIGN: [&str; 8] =
    ["STY", "WINDOW", "TMUX", "TMUX_PANE", "COLUMNS", "LINES", "TERMCAP", "ROVE_SESSION"];

/// The environment with a UTF-8 locale: as inherited if that has one, else with the client's locale if
/// this machine has it, else with C.UTF-8. Locale variables that name locales which this machine lacks
/// are left out: they only make programs complain.
fn with_utf8(
    inherited: &Environment,
    clients: &[(OsString, OsString)],
    codeset: impl Fn(&OsStr) -> Option<String>,
) -> Environment {
    let is_utf8 = |environment: &Environment| {
        codeset(character_locale(environment)).is_some_and(|set| {
            set.eq_ignore_ascii_case("UTF-8") || set.eq_ignore_ascii_case("utf8")
        })
    };
    if is_utf8(inherited) {
        return inherited.clone();
    }
    let mut bare = inherited.clone();
    bare.0.retain(|name, _| name != "LANGUAGE" && !names_locale(name));
    let mut environment = bare.clone();
    environment.0.extend(clients.iter().cloned());
    environment
        .0
        .retain(|name, value| !names_locale(name) || value.is_empty() || codeset(value).is_some());
    if is_utf8(&environment) {
        return environment;
    }
    bare.set("LANG", "C.UTF-8");
    bare
}

/// The name of the locale that decides what characters are (locale(7)); "C" if none is named.
fn character_locale(environment: &Environment) -> &OsStr {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| environment.value(name))
        .find(|value| !value.is_empty())
        .unwrap_or(OsStr::new("C"))
}

fn names_locale(variable: &OsStr) -> bool {
    variable == "LANG" || variable.as_bytes().starts_with(b"LC_")
}

/// With this file in their home the user asks for silence at login.
const HUSHLOGIN: &str = ".hushlogin";

/// The administrators' message at login.
fn motd(files: &[&str]) -> Vec<u8> {
    let mut text = Vec::new();
    for file in files {
        if let Ok(file) = File::open(file) {
            // A file that cannot be read to its end is shown as far as it goes.
            let _ = file.take(MOTD_BYTES_MAX).read_to_end(&mut text);
        }
    }
    text
}

/// Where Debian's login (pam_motd) leaves what its scripts said, and what the administrator wrote.
const MOTD_FILES: [&str; 2] = ["/run/motd.dynamic", "/etc/motd"];

/// Longest message of the day shown, for each file; the rest is cut.
const MOTD_BYTES_MAX: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::super::options::{Request, parse};
    use super::*;
    use crate::server::program::Program;

    fn environment_of(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    /// A machine with three locales.
    fn codeset(locale: &OsStr) -> Option<String> {
        match locale.to_str()? {
            "C" => Some("ANSI_X3.4-1968".into()),
            "C.UTF-8" | "de_DE.utf8" => Some("UTF-8".into()),
            "de_DE" => Some("ISO-8859-1".into()),
            _ => None,
        }
    }

    fn options(program: Program, line: &str) -> Options {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match parse(program, &words) {
            Ok(Request::Serve(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn locales() {
        let table: [[&[(&str, &str)]; 3]; 8] = [
            // inherited, the client's, the program's
            [&[], &[], &[("LANG", "C.UTF-8")]],
            [&[("LANG", "C.UTF-8")], &[("LANG", "de_DE.utf8")], &[("LANG", "C.UTF-8")]],
            [&[("LANG", "C")], &[("LANG", "de_DE.utf8")], &[("LANG", "de_DE.utf8")]],
            [&[("LANG", "de_DE")], &[("LANG", "xx.UTF-8")], &[("LANG", "C.UTF-8")]],
            [&[("LC_ALL", "C"), ("LANG", "C.UTF-8")], &[], &[("LANG", "C.UTF-8")]],
            [
                &[("LC_CTYPE", "UTF-8")],
                &[("LC_CTYPE", "UTF-8"), ("LANG", "de_DE.utf8")],
                &[("LANG", "de_DE.utf8")],
            ],
            [
                &[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")],
                &[],
                &[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")],
            ],
            [&[("LC_TIME", "de_DE")], &[("LC_TIME", "de_DE")], &[("LANG", "C.UTF-8")]],
        ];
        for [inherited, clients, wanted] in table {
            let clients: Vec<_> = environment_of(clients).0.into_iter().collect();
            let found = with_utf8(&environment_of(inherited), &clients, codeset);
            assert_eq!(found, environment_of(wanted), "{inherited:?} {clients:?}");
        }
    }

    #[test]
    fn surroundings() {
        let inherited = environment_of(&[
            ("HOME", "/"),
            ("LANG", "C.UTF-8"),
            ("TMUX", "/tmp/tmux-0/default,1,0"),
            ("TMUX_PANE", "%0"),
            ("STY", "1.pts"),
            ("WINDOW", "0"),
            ("TERMCAP", "x"),
            ("COLUMNS", "1"),
            ("LINES", "1"),
            ("TERM", "dumb"),
            ("PATH", "/bin"),
        ]);
        let stock = environment(&options(Program::Mosh, "new -c 256"), &inherited, codeset);
        let wanted = [
            ("HOME", "/"),
            ("LANG", "C.UTF-8"),
            ("NCURSES_NO_UTF8_ACS", "1"),
            ("PATH", "/bin"),
            ("TERM", "xterm-256color"),
        ];
        assert_eq!(stock, environment_of(&wanted));
        let rove = environment(&options(Program::Rove, "--nonce=x"), &inherited, codeset);
        assert_eq!(rove.value("COLORTERM"), Some(OsStr::new("truecolor")));
    }

    /// A command without a terminal gets the environment that ssh would have given it.
    #[test]
    fn only_a_terminal_changes_what_is_found() {
        let pairs = [("HOME", "/"), ("LC_ALL", "C"), ("TMUX", "x"), ("TERM", "dumb"), ("X", "y")];
        let options = options(Program::Rove, "--nonce=x");
        let mut surroundings = Surroundings::of(&options, &environment_of(&pairs), None, codeset);
        surroundings.set_agent(Path::new("/agent"));
        let found = |term| {
            let command = surroundings.command(OsStr::new("x"), term);
            let set =
                command.get_envs().filter_map(|(name, value)| Some((name.into(), value?.into())));
            set.collect::<Environment>()
        };
        let plain = [
            ("HOME", "/"),
            ("LC_ALL", "C"),
            ("PWD", "/"),
            ("SHELL", "/bin/sh"),
            ("SSH_AUTH_SOCK", "/agent"),
            ("X", "y"),
        ];
        assert_eq!(found(None), environment_of(&plain));
        let on_terminal = found(Some("vt220"));
        for (name, value) in [("LANG", "C.UTF-8"), ("TERM", "vt220"), ("SSH_AUTH_SOCK", "/agent")] {
            assert_eq!(on_terminal.value(name), Some(OsStr::new(value)));
        }
    }

    #[test]
    fn homes_and_shells() {
        let account =
            Account { name: "ann".into(), home: "/usr".into(), shell: "/bin/bash".into() };
        for (pairs, account, wanted_home, wanted_shell) in [
            (&[("HOME", "/tmp"), ("SHELL", "/bin/zsh")][..], Some(&account), "/tmp", "/bin/zsh"),
            (&[], Some(&account), "/usr", "/bin/bash"),
            (&[("HOME", "/no/such/place"), ("SHELL", "")], Some(&account), "/", "/bin/bash"),
            (&[("HOME", "relative")], None, "/", "/bin/sh"),
        ] {
            let inherited = environment_of(pairs);
            assert_eq!(home(&inherited, account), Path::new(wanted_home), "{pairs:?}");
            assert_eq!(shell(&inherited, account), Path::new(wanted_shell), "{pairs:?}");
        }
    }

    #[test]
    fn programs() {
        let shell = Path::new("/bin/zsh");
        for (program_of, line, wanted) in [
            (Program::Mosh, "new -- vi", r#""vi""#),
            (Program::Rove, "--nonce=x -- vi", r#""/bin/zsh" "-c" "vi""#),
            (Program::Rove, "--nonce=x -- vi a", r#""vi" "a""#),
            (Program::Mosh, "new", r#"["/bin/zsh"] "-zsh""#),
        ] {
            let command = program(&options(program_of, line), shell);
            assert_eq!(format!("{command:?}"), wanted, "{line}");
        }
    }

    #[test]
    fn hushed() {
        let home = std::env::temp_dir().join(format!("rove-motd-{}", std::process::id()));
        std::fs::create_dir_all(&home).unwrap();
        let file = home.join("motd");
        std::fs::write(&file, "hello\n").unwrap();
        assert_eq!(motd(&[file.to_str().unwrap(), "/no/such/file"]), b"hello\n");
        let silent = |line| {
            let options = options(Program::Rove, line);
            let inherited = environment_of(&[("HOME", home.to_str().unwrap())]);
            prepare(&options, &Surroundings::of(&options, &inherited, None, codeset)).is_silent
        };
        assert!(!silent("--nonce=x") && silent("--nonce=x -- ls"));
        std::fs::write(home.join(HUSHLOGIN), "").unwrap();
        assert!(silent("--nonce=x"));
        std::fs::remove_dir_all(&home).unwrap();
    }
}
