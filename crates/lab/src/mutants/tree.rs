//! A copy of the checkout that holds mutants, and its builds. The checkout itself is never changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::ops::Range;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::mutant::{Mutant, Mutated};

/// The copy. It stays for the next run, whose build is shorter then.
pub(crate) struct Tree {
    root: PathBuf,
    /// Where the copy is, and what it was built to.
    copy: PathBuf,
    target: PathBuf,
    /// By file: what it holds now.
    mutated: BTreeMap<String, Mutated>,
    /// A digest of the files under `crates`.
    code: u64,
}

/// A test program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub package: String,
    /// The name of its target; of the library's own tests that is the library's.
    pub name: String,
    pub path: PathBuf,
    /// Where cargo would run it.
    pub directory: PathBuf,
}

impl Tree {
    /// Copies all files of a checkout that git does not ignore into a directory.
    ///
    /// # Errors
    /// Errors of git and of the file system.
    pub(crate) fn copy(root: &Path, work: &Path) -> io::Result<Tree> {
        let (root, work) = (fs::canonicalize(root)?, std::path::absolute(work)?);
        let mut git = Command::new("git");
        git.arg("-C").arg(&root).args(["ls-files", "-z", "--cached", "--others"]);
        let listed = git.arg("--exclude-standard").output()?;
        if !listed.status.success() {
            return Err(io::Error::other("git ls-files failed: this is no checkout"));
        }
        let mut tree = Tree {
            copy: work.join("tree"),
            target: work.join("target"),
            root,
            mutated: BTreeMap::new(),
            code: 0,
        };
        let mut code = DefaultHasher::new();
        let names = String::from_utf8_lossy(&listed.stdout);
        let names: BTreeSet<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
        for name in &names {
            let path = tree.root.join(name);
            if let Ok(to) = fs::read_link(&path) {
                tree.link(name, &to)?;
                continue;
            }
            match fs::read(path) {
                Ok(octets) => {
                    if is_judged(name) {
                        (name, &octets).hash(&mut code);
                    }
                    tree.write(name, &octets)?;
                }
                // Deleted and not yet committed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io::Error::other(format!("{name}: {error}"))),
            }
        }
        tree.remove_others(&tree.copy, &names)?;
        tree.code = code.finish();
        Ok(tree)
    }

    /// A digest of the code that mutants and tests are made of.
    pub(crate) fn code(&self) -> u64 {
        self.code
    }

    /// Puts these mutants, and no others, into the copy, and into the crates of these libraries the switch that chooses
    /// one. A mutant's number is its place.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn put(
        &mut self,
        libraries: &[&str],
        mutants: &BTreeMap<usize, Mutant>,
    ) -> io::Result<()> {
        let mut by_file: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
        let before: Vec<String> = self.mutated.keys().cloned().collect();
        for file in libraries.iter().copied().chain(before.iter().map(String::as_str)) {
            by_file.entry(file).or_default();
        }
        for (number, mutant) in mutants {
            by_file.entry(&mutant.file).or_default().push((*number, mutant));
        }
        for (file, mutants) in by_file {
            let source = fs::read_to_string(self.root.join(file))?;
            let mut mutated = Mutated::new(&source, &mutants);
            if libraries.contains(&file) {
                mutated.text.push_str(SWITCH);
            }
            self.write(file, mutated.text.as_bytes())?;
            self.mutated.insert(file.to_owned(), mutated);
        }
        Ok(())
    }

    /// Checks the packages; returns the mutants that do not compile, none if all does.
    ///
    /// # Errors
    /// If cargo cannot be run, or says nothing that tells which mutant is at fault.
    pub(crate) fn check(&self, packages: &[&str]) -> io::Result<BTreeSet<usize>> {
        let mut words = vec!["check", "--lib", "--keep-going"];
        words.extend(packages.iter().flat_map(|package| ["-p", package]));
        let (succeeded, messages) = self.cargo(&words)?;
        let mut faulty = BTreeSet::new();
        let mut said = String::new();
        for message in messages.iter().filter(|message| message["reason"] == "compiler-message") {
            let message = &message["message"];
            if message["level"] != "error" {
                continue;
            }
            let mut named = BTreeMap::new();
            spans(message, &mut named);
            for (file, spans) in named {
                if let Some(mutated) = self.mutated.get(&file) {
                    faulty.extend(mutated.about(&spans));
                }
            }
            said.push_str(message["rendered"].as_str().unwrap_or_default());
        }
        match succeeded {
            true => Ok(BTreeSet::new()),
            false if faulty.is_empty() => {
                Err(io::Error::other(format!("the copy does not build:\n{said}")))
            }
            false => Ok(faulty),
        }
    }

    /// Builds test programs: all that these words choose of `cargo test`.
    ///
    /// # Errors
    /// If cargo fails.
    pub(crate) fn build(&self, words: &[String]) -> io::Result<Vec<Program>> {
        let chosen = words.iter().map(String::as_str);
        let words: Vec<&str> = ["test", "--no-run"].into_iter().chain(chosen).collect();
        let (succeeded, messages) = self.cargo(&words)?;
        if !succeeded {
            let said = messages.iter().filter_map(|line| line["message"]["rendered"].as_str());
            let said: Vec<&str> = said.filter(|line| line.starts_with("error")).collect();
            return Err(io::Error::other(format!("the tests do not build:\n{}", said.concat())));
        }
        let programs = messages.iter().filter_map(|message| {
            let path = message["executable"].as_str()?;
            let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
            let is_test = message["profile"]["test"] == true;
            is_test.then(|| Program {
                package: directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                name: message["target"]["name"].as_str().unwrap_or_default().to_owned(),
                path: path.into(),
                directory: directory.to_owned(),
            })
        });
        Ok(programs.collect())
    }

    /// Runs cargo in the copy; returns whether it succeeded, and its messages.
    fn cargo(&self, words: &[&str]) -> io::Result<(bool, Vec<Value>)> {
        let mut command = Command::new("cargo");
        command.args(words).arg("--message-format=json");
        command.current_dir(&self.copy).env("CARGO_TARGET_DIR", &self.target);
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output()?;
        let lines = String::from_utf8_lossy(&output.stdout);
        let messages = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok((output.status.success(), messages.collect()))
    }

    /// Writes a file of the copy, if it does not hold this already: cargo builds what is newer.
    fn write(&self, name: &str, octets: &[u8]) -> io::Result<()> {
        let path = self.copy.join(name);
        if fs::read(&path).is_ok_and(|held| held == octets) {
            return Ok(());
        }
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&path, octets)?;
        let mode = fs::metadata(self.root.join(name))?.permissions();
        fs::set_permissions(path, mode)
    }

    /// Makes a symbolic link of the copy.
    fn link(&self, name: &str, to: &Path) -> io::Result<()> {
        let path = self.copy.join(name);
        if fs::read_link(&path).is_ok_and(|held| held == to) {
            return Ok(());
        }
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        if fs::symlink_metadata(&path).is_ok() {
            fs::remove_file(&path)?;
        }
        symlink(to, path)
    }

    /// Removes files that the checkout no longer has.
    fn remove_others(&self, directory: &Path, names: &BTreeSet<&str>) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                self.remove_others(&path, names)?;
            } else if let Some(name) = path.strip_prefix(&self.copy).ok().and_then(Path::to_str)
                && !names.contains(name)
            {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

/// Whether a file may change the fate of a mutant. The lab's own tools do not.
fn is_judged(name: &str) -> bool {
    name == "Cargo.lock" || name.starts_with("crates/") && !name.contains("/lab/src/mutants")
}

/// All places that an error names, by file.
fn spans(message: &Value, named: &mut BTreeMap<String, Vec<Range<usize>>>) {
    for span in message["spans"].as_array().into_iter().flatten() {
        let octet = |name: &str| span[name].as_u64().map(|at| at as usize);
        if let (Some(file), Some(start), Some(end)) =
            (span["file_name"].as_str(), octet("byte_start"), octet("byte_end"))
        {
            named.entry(file.to_owned()).or_default().push(start..end);
        }
    }
    for child in message["children"].as_array().into_iter().flatten() {
        spans(child, named);
    }
}

/// The names of a crate's test programs.
///
/// # Errors
/// If there is no such directory.
pub(crate) fn test_names(root: &Path, package: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("crates").join(package).join("tests"))? {
        let path = entry?.path();
        let is_program =
            path.extension() == Some(OsStr::new("rs")) || path.join("main.rs").exists();
        if let (true, Some(stem)) = (is_program, path.file_stem()) {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// What tells a mutant whether it is the chosen one, by the environment. With `ROVE_MUTANTS_REACHED` none is, and the
/// file of that name gets a line for each that a test reaches: its number, and the thread, which has the test's name.
const SWITCH: &str = r#"
#[allow(warnings)]
mod mutation {
    extern crate std;
    use std::io::Write as _;

    pub(crate) fn on(number: u32) -> bool {
        static CHOSEN: std::sync::OnceLock<(u32, Option<std::fs::File>)> = std::sync::OnceLock::new();
        let (chosen, reached) = CHOSEN.get_or_init(|| {
            let chosen = std::env::var("ROVE_MUTANT").ok().and_then(|text| text.parse().ok());
            let reached = std::env::var_os("ROVE_MUTANTS_REACHED").map(|path| {
                std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap()
            });
            (chosen.unwrap_or(0), reached)
        });
        if let Some(file) = reached {
            note(number, file);
        }
        *chosen == number
    }

    fn note(number: u32, mut file: &std::fs::File) {
        std::thread_local! {
            static NOTED: std::cell::RefCell<std::collections::BTreeSet<u32>> =
                const { std::cell::RefCell::new(std::collections::BTreeSet::new()) };
        }
        let is_new = NOTED.try_with(|noted| noted.borrow_mut().insert(number)).unwrap_or(true);
        if is_new {
            let thread = std::thread::current();
            let line = std::format!("{number} {}\n", thread.name().unwrap_or(""));
            file.write_all(line.as_bytes()).unwrap();
        }
    }
}
"#;
