//! Where a result comes from: the command of this process, the commit and the machine that made it, and the date.
//!
//! Every result holds this beside its numbers, so that a reader can run it again and [`crate::stale`] can tell
//! whether the code has changed since. Numbers of virtual time are compared without it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Value, json};

use crate::clock;

/// Where a result comes from, as it stands in the JSON of the result under `recorded`.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance(Value);

impl Provenance {
    /// Of a result that this process makes, with the checkout in the current directory. `depends` are the files and
    /// directories, from the root of the repository, of the code that the numbers come from.
    pub(crate) fn of_this_process<'a>(depends: impl IntoIterator<Item = &'a str>) -> Provenance {
        let mut depends: Vec<&str> = depends.into_iter().collect();
        depends.sort_unstable();
        depends.dedup();
        Provenance(json!({
            "commit": git(&["rev-parse", "HEAD"]).ok(),
            "changed": changed(&depends),
            "date": clock::date(),
            "machine": machine(),
            "depends": depends,
        }))
    }

    /// That of a result; `None` for one that was recorded without.
    pub fn of_result(result: &Value) -> Option<Provenance> {
        result.get("recorded").cloned().map(Provenance)
    }

    /// That of a result without JSON, from the comment that [`Provenance::to_markdown`] put into its text.
    pub(crate) fn of_markdown(text: &str) -> Option<Provenance> {
        let rest = text.lines().find_map(|line| line.strip_prefix(COMMENT))?;
        serde_json::from_str(rest.strip_suffix(COMMENT_END)?).ok().map(Provenance)
    }

    /// As a part of the JSON of its result.
    pub(crate) fn to_json(&self) -> Value {
        self.0.clone()
    }

    /// The commit whose code was run; `None` if that was no checkout.
    pub(crate) fn commit(&self) -> Option<&str> {
        self.0["commit"].as_str()
    }

    /// When the result was written, in UTC.
    pub(crate) fn date(&self) -> &str {
        self.0["date"].as_str().unwrap_or("at no date")
    }

    /// The files and directories that the numbers come from.
    pub(crate) fn depends(&self) -> Vec<&str> {
        self.0["depends"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// What differed from the commit.
    pub(crate) fn changed(&self) -> Vec<&str> {
        self.0["changed"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// For a reader, in one sentence.
    pub fn sentence(&self) -> String {
        let machine = &self.0["machine"];
        let part = |name: &str| machine[name].as_str().unwrap_or("?").to_owned();
        let commit =
            self.commit().map_or("no checkout", |commit| commit.get(..12).unwrap_or(commit));
        let mut text = format!("Recorded {} at commit {commit}", self.date());
        let changed = self.changed();
        if !changed.is_empty() {
            let _ = write!(text, ", changed ({})", changed.join(", "));
        }
        let (cores, cpu, kernel) = (&machine["cores"], part("cpu"), part("kernel"));
        let _ = write!(text, ", on {cores} cores, {cpu}, Linux {kernel}.");
        text
    }

    /// The head of a result without JSON: the command, the sentence, and all of it as a comment.
    pub(crate) fn to_markdown(&self, command: &str) -> String {
        let json = self.0.to_string();
        format!("Made by `{command}`.\n\n{}\n\n{COMMENT}{json}{COMMENT_END}\n", self.sentence())
    }
}

/// Remembers the command line of this process, as [`spelled`] has it.
pub(crate) fn begin(command: String) {
    // Only `main` begins, and it does so once.
    let _ = COMMAND.set(command);
}

/// The command that makes the results of this process again; that of the name alone where a test makes them.
pub(crate) fn command(name: &str) -> String {
    COMMAND.get().cloned().unwrap_or_else(|| format!("rove-lab {name}"))
}

/// A command line with each argument that was given or has a default, in words for a shell.
pub(crate) fn spelled(command: &clap::Command, matches: &ArgMatches, rove: Option<&str>) -> String {
    let mut words: Vec<String> =
        rove.map(|rove| format!("ROVE_BIN={}", quoted(rove))).into_iter().collect();
    words.push(command.get_name().to_owned());
    let (mut command, mut matches) = (command, matches);
    while let Some((name, inner)) = matches.subcommand() {
        words.push(name.to_owned());
        let found = command.find_subcommand(name);
        command = found.expect("clap found the same subcommand");
        matches = inner;
    }
    let (last, others): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().partition(|arg| arg.is_last_set() || arg.is_trailing_var_arg_set());
    // Options may take several words, which would swallow those behind them.
    let (positions, options): (Vec<&Arg>, Vec<&Arg>) =
        others.into_iter().partition(|arg| arg.is_positional());
    for arg in positions.into_iter().chain(options).chain(last) {
        let id = arg.get_id().as_str();
        let Some(values) = matches.try_get_raw(id).ok().flatten() else { continue };
        let values = values.map(|value| quoted(&value.to_string_lossy()));
        let name = arg.get_long().map(|long| format!("--{long}"));
        match (arg.get_action(), name) {
            (ArgAction::SetTrue, name) => words.extend(name.filter(|_| matches.get_flag(id))),
            (_, Some(name)) => words.extend([name].into_iter().chain(values)),
            (_, None) => {
                words.extend(arg.is_last_set().then(|| "--".into()).into_iter().chain(values))
            }
        }
    }
    words.join(" ")
}

/// A word that a shell reads as this.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/.,:=+@%_-".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// What git is asked for these files and directories: what their numbers come from. Unit tests in files of their own make
/// none, but where tests in `tests/` make the numbers they do so as well.
pub(crate) fn numbers_from<'a>(depends: &[&'a str]) -> Vec<&'a str> {
    let is_of_tests = depends.iter().any(|path| path.split('/').any(|name| name == "tests"));
    let others = if is_of_tests { &[][..] } else { &NO_UNIT_TESTS };
    [depends, others].concat()
}

/// The paths among these that differ from the commit, and whether a program is older than its source.
fn changed(depends: &[&str]) -> Vec<String> {
    let asked = [&["status", "--porcelain", "--"], &*numbers_from(depends)].concat();
    let told = git(&asked).unwrap_or_default();
    let paths = told.lines().filter_map(|line| line.trim_start().split_once(' '));
    let mut changed: Vec<String> = paths.map(|(_, path)| path.trim().to_owned()).collect();
    changed.extend(std::env::current_exe().ok().and_then(|program| outdated(&program)));
    changed
}

/// Says so if a program is older than a file that it was built from, by the list of them that cargo writes beside it.
fn outdated(program: &Path) -> Option<String> {
    let modified = |path: &Path| -> io::Result<SystemTime> { fs::metadata(path)?.modified() };
    let built = modified(program).ok()?;
    let list = fs::read_to_string(program.with_extension("d")).ok()?;
    let (_, sources) = list.lines().next()?.split_once(": ")?;
    // Blanks within a name are escaped.
    let sources = sources.replace("\\ ", "\0");
    let newer = sources
        .split(' ')
        .map(|name| name.replace('\0', " "))
        .find(|name| modified(Path::new(name)).is_ok_and(|written| written > built))?;
    let name = newer.rsplit_once("/crates/").map_or(newer.as_str(), |(_, rest)| rest);
    Some(format!("the program is older than {name}"))
}

/// What git prints, of the checkout in the current directory and by paths from its root.
///
/// # Errors
/// What git says, in a line.
pub(crate) fn git(words: &[&str]) -> io::Result<String> {
    let top = Command::new("git").args(["rev-parse", "--show-cdup"]).output()?;
    let up = String::from_utf8_lossy(&top.stdout).trim().to_owned();
    let mut command = Command::new("git");
    if !up.is_empty() {
        command.args(["-C", &up]);
    }
    let output = command.args(words).output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => {
            let said = text(&output.stderr);
            Err(io::Error::other(said.lines().next().unwrap_or("git failed").to_owned()))
        }
    }
}

fn machine() -> Value {
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = file("/proc/cpuinfo");
    let cpu = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    json!({
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "cpu": cpu.map(|(_, model)| model),
        "kernel": file("/proc/sys/kernel/osrelease").trim(),
        "load": file("/proc/loadavg").split(' ').next(),
    })
}

/// The command line of this process: it has one, as it has one number.
static COMMAND: OnceLock<String> = OnceLock::new();

/// A module `tests`, as `mod tests;` finds it, and all below it.
const NO_UNIT_TESTS: [&str; 2] =
    [":(exclude,glob)crates/*/src/**/tests.rs", ":(exclude,glob)crates/*/src/**/tests/**"];

/// Around the JSON in a text.
const COMMENT: &str = "<!-- recorded ";
const COMMENT_END: &str = " -->";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;
    use crate::scratch::Scratch;

    #[derive(Parser)]
    #[command(name = "lab")]
    enum Lab {
        Bulk(Bulk),
    }

    #[derive(clap::Args)]
    struct Bulk {
        #[arg(long = "trace", num_args = 1..)]
        _traces: Vec<String>,
        #[arg(long = "results", default_value = "results")]
        _results: String,
        #[arg(long = "quick")]
        _quick: bool,
        #[arg(long = "only")]
        _only: Option<String>,
        _parts: Vec<String>,
        #[arg(last = true)]
        _words: Vec<String>,
    }

    #[test]
    fn nothing_of_a_command_is_elided() {
        for (given, spelled_out) in [
            ("bulk", "lab bulk --results results"),
            (
                "bulk --trace a b --only rove,ssh keys",
                "lab bulk keys --trace a b --results results --only rove,ssh",
            ),
            (
                "bulk --quick --only a;b -- yes -n",
                "lab bulk --results results --quick --only 'a;b' -- yes -n",
            ),
        ] {
            let given = given.replace(" keys", "");
            let parts = spelled_out.contains("bulk keys").then_some("keys");
            let words = ["lab"].into_iter().chain(given.split(' '));
            let words = words.flat_map(|word| [Some(word), parts.filter(|_| word == "bulk")]);
            let matches = Lab::command().get_matches_from(words.flatten());
            assert_eq!(spelled(&Lab::command(), &matches, None), spelled_out);
            let named = spelled(&Lab::command(), &matches, Some("a rove"));
            assert_eq!(named, format!("ROVE_BIN='a rove' {spelled_out}"));
        }
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn what_is_recorded_is_read_again() {
        let made = Provenance::of_this_process(["crates/ssp/src", "Cargo.lock"]);
        assert_eq!(made.depends(), ["Cargo.lock", "crates/ssp/src"]);
        let text = format!("# A\n\n{}\nmore\n", made.to_markdown("rove-lab a"));
        assert_eq!(Provenance::of_markdown(&text).as_ref(), Some(&made));
        assert_eq!(Provenance::of_result(&json!({ "recorded": made.to_json() })), Some(made));
        assert_eq!(
            (Provenance::of_markdown("# A\n"), Provenance::of_result(&json!({}))),
            (None, None)
        );
    }

    #[test]
    fn changes_are_told() {
        let recorded = |changed: Value| {
            let machine = json!({ "cores": 2, "cpu": "x", "kernel": "6.1" });
            let commit = "0123456789abcdef";
            Provenance(
                json!({ "commit": commit, "date": "D", "changed": changed, "machine": machine }),
            )
        };
        let said = recorded(json!([])).sentence();
        assert_eq!(said, "Recorded D at commit 0123456789ab, on 2 cores, x, Linux 6.1.");
        let said = recorded(json!(["a", "b"])).sentence();
        assert_eq!(
            said,
            "Recorded D at commit 0123456789ab, changed (a, b), on 2 cores, x, Linux 6.1."
        );
    }

    #[test]
    fn a_program_older_than_its_source_is_told() {
        let scratch = Scratch::new().unwrap();
        let [program, source] = ["lab", "a b.rs"].map(|name| scratch.join(name));
        fs::write(&source, "").unwrap();
        let escaped = source.display().to_string().replace(' ', "\\ ");
        fs::write(scratch.join("lab.d"), format!("{}: {escaped}\n", program.display())).unwrap();
        for (file, seconds) in [(&program, 2_000), (&source, 1_000)] {
            fs::write(file, "").unwrap();
            set_modified(file, seconds);
        }
        assert_eq!(outdated(&program), None);
        set_modified(&source, 3_000);
        assert!(outdated(&program).unwrap().ends_with("a b.rs"));
    }

    fn set_modified(path: &Path, seconds: u64) {
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    }
}
