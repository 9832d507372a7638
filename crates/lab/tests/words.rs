//! Tests the words of the project: documents name only files that exist, replaced names are gone, and comments
//! avoid phrases that read like a translation.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

/// Each document names files of the source by crate and path, as `ssp/time.rs`, `ssp/src/time.rs` or `ssp/time`, and
/// several at a time as `ssp/{time,rng}.rs`.
#[test]
fn documents_name_files_that_exist() {
    let mut missing = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for quoted in text.split('`').skip(1).step_by(2).filter(|quoted| names_a_file(quoted)) {
            for path in alternatives(quoted) {
                if !exists(&path) {
                    missing.push(format!("{}: {path}", document.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "files that do not exist:\n{}", missing.join("\n"));
}

/// docs/predict.md names the test that fails without each rule.
#[test]
fn rules_of_local_echo_have_their_tests() {
    let mut files = Vec::new();
    list(&root().join("crates/session"), &mut files);
    let source: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let text = fs::read_to_string(root().join("docs/predict.md")).unwrap();
    let rules =
        text.lines().filter(|line| line.starts_with("| ") && line.matches('|').count() == 4);
    let rules =
        rules.skip_while(|line| !line.starts_with("| rule")).filter(|line| line.contains('`'));
    let mut missing = Vec::new();
    for rule in rules {
        let tests = rule.rsplit('|').nth(1).unwrap().split('`').skip(1).step_by(2);
        let tests: Vec<&str> = tests.filter(|name| !name.contains('/')).collect();
        assert!(!tests.is_empty(), "no test: {rule}");
        let missed = |test: &&str| !source.contains(&format!("fn {test}()"));
        missing.extend(tests.into_iter().filter(missed));
    }
    assert!(missing.is_empty(), "tests that do not exist: {missing:?}");
}

/// The table of threats has each of its numbers once, also those that are not answered.
#[test]
fn threats_have_all_their_rows() {
    let text = fs::read_to_string(root().join("docs/threats.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
    let mut rows: Vec<u32> = rows.filter_map(|row| row.parse().ok()).collect();
    rows.sort_unstable();
    assert_eq!(rows, (1..=46).collect::<Vec<_>>());
}

#[test]
fn names_in_braces_are_several_files() {
    assert_eq!(alternatives("a/{b,c/d}.rs"), ["a/b.rs", "a/c/d.rs"]);
    assert_eq!(alternatives("a/{b,c}/{d,e}"), ["a/b/d", "a/b/e", "a/c/d", "a/c/e"]);
    assert!(exists("lab/tests/words.rs") && exists("ssp/time") && exists("ssp/src/wire/"));
    assert!(!exists("ssp/no_such_file.rs"));
}

/// Names that were replaced, by crate: the word of RFC 9000, RFC 9002 or the Mosh paper stands in their place.
const REPLACED: &[(&str, &[&str])] = &[
    (
        "ssp",
        &[
            "Acquaintance",
            "Beat",
            "Blame",
            "Books",
            "Eager",
            "Fate",
            "Flight",
            "Held",
            "Hurry",
            "Mtu",
            "OVERTAKEN",
            "Pacer",
            "Pacing",
            "Place",
            "Said",
            "TOLD",
            "Trial",
            "Verdict",
            "Way",
            "acquaintance",
            "despair",
            "hurries",
            "is_acquainted",
            "owe_ack",
        ],
    ),
    (
        "streams",
        &[
            "Ease",
            "Gather",
            "Governor",
            "Losses",
            "Pace",
            "Place",
            "Stubborn",
            "Telling",
            "Tremble",
            "Verdict",
            "contested",
            "crowded",
            "stir",
            "truce",
            "uncrowded",
        ],
    ),
    (
        "term",
        &[
            "Brush",
            "Footing",
            "JoinMemo",
            "Lens",
            "Manner",
            "Place",
            "Spare",
            "Surroundings",
            "Switch",
            "Verdict",
        ],
    ),
    (
        "session",
        &[
            "Herald", "Inquiry", "Likeness", "Place", "Pressed", "Skill", "Stays", "Triggers",
            "Verdict", "Way", "adrift", "hasty",
        ],
    ),
    (
        "rove",
        &[
            "CopyWords",
            "Errand",
            "ForwardWords",
            "HowWords",
            "News",
            "Nowhere",
            "Place",
            "Seat",
            "Spot",
            "SshWords",
            "Tariff",
            "Verdict",
            "Wishes",
        ],
    ),
    (
        "lab",
        &[
            "AgainFlags",
            "Babble",
            "BadScenario",
            "Comer",
            "Ear",
            "Gate",
            "Place",
            "Trouble",
            "Verdict",
            "babble",
        ],
    ),
];

#[test]
fn replaced_names_are_gone() {
    let mut found = Vec::new();
    for (name, words) in REPLACED {
        let mut files = Vec::new();
        list(&root().join("crates").join(name), &mut files);
        // This file has them in its table.
        for file in files.into_iter().filter(|file| !file.ends_with("lab/tests/words.rs")) {
            let text = fs::read_to_string(&file).unwrap();
            let names: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            for word in words.iter().filter(|word| names.contains(word)) {
                found.push(format!("{}: {word}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "replaced names:\n{}", found.join("\n"));
}

/// Phrases that read like a translation: a noun says it better, and an actor better than a clause.
const PHRASES: &[&str] = &["whoever", "whomever", "so many", "what is ", "what was ", "whatever"];

/// Sentences with such phrases that are left in each crate's comments; `--help` prints those of rove and lab. The
/// numbers may only fall.
const LEFT: &[(&str, usize)] =
    &[("ssp", 0), ("term", 0), ("session", 0), ("streams", 0), ("rove", 0), ("lab", 0)];

/// Doc comments say who does what: none of [`PHRASES`], of which "what is" and "what was" count at the start of a
/// sentence, where the clause is its subject.
#[test]
fn comments_are_in_plain_english() {
    let mut over = Vec::new();
    for (name, left) in LEFT {
        let mut files = Vec::new();
        list(&root().join("crates").join(name), &mut files);
        let mut found = Vec::new();
        for file in files {
            let sentences = doc_comments(&fs::read_to_string(&file).unwrap());
            let bad = sentences.iter().filter(|sentence| has_phrase(sentence));
            found.extend(bad.map(|sentence| format!("{}: {sentence}", file.display())));
        }
        if found.len() > *left {
            over.push(format!("{name}: {}, not {left}:\n{}", found.len(), found.join("\n")));
        }
    }
    assert!(over.is_empty(), "sentences to rewrite in {}", over.join("\n"));
}

/// The sentences of a file's `//!` and `///` comments.
fn doc_comments(text: &str) -> Vec<String> {
    let mut joined = String::new();
    for line in text.lines().map(str::trim_start) {
        match line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
            Some(comment) if !comment.trim().is_empty() => joined += comment,
            _ => joined.push('\n'),
        }
    }
    let ends = |text: &str| {
        text.split_inclusive([':', ';']).map(|part| part.trim().to_owned()).collect::<Vec<_>>()
    };
    joined.lines().flat_map(|block| block.split(". ")).flat_map(ends).collect()
}

fn has_phrase(sentence: &str) -> bool {
    let words = format!("{} ", sentence.to_lowercase());
    PHRASES.iter().any(|phrase| match phrase.strip_prefix("what ") {
        Some(_) => words.starts_with(phrase),
        None => words
            .split(|c: char| !c.is_alphanumeric() && c != ' ')
            .any(|part| format!(" {part} ").contains(&format!(" {phrase} "))),
    })
}

#[test]
fn phrases_are_found() {
    let text = "//! What is sent is lost.\n//! Fine: whoever\n//! comes. It says what is lost.\n/// As many so many\n/// A.\n";
    let bad = |sentence: &&String| has_phrase(sentence);
    let sentences = doc_comments(text);
    let found: Vec<&String> = sentences.iter().filter(bad).collect();
    assert_eq!(found, ["What is sent is lost", "whoever comes", "As many so many A."]);
}

/// All files of Rust below a directory.
fn list(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => list(&path, files),
            false if path.extension().is_some_and(|extension| extension == "rs") => {
                files.push(path)
            }
            false => {}
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents() -> impl Iterator<Item = PathBuf> {
    let directories = [root(), root().join("docs"), root().join("docs/design")];
    let files = directories.into_iter().flat_map(|directory| fs::read_dir(directory).unwrap());
    files.map(|entry| entry.unwrap().path()).filter(|path| {
        path.extension().is_some_and(|extension| extension == "md")
            && !path.ends_with("CHANGELOG.md")
    })
}

fn names_a_file(text: &str) -> bool {
    let text = text.strip_prefix("crates/").unwrap_or(text);
    let Some((name, rest)) = text.split_once('/') else { return false };
    let in_path = |c: char| c.is_alphanumeric() || "_-./{},".contains(c);
    ["ssp", "term", "session", "streams", "rove", "lab"].contains(&name)
        && !rest.is_empty()
        && rest.chars().all(in_path)
}

/// Expands braces as a shell does.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (inner, after) = rest.split_once('}').unwrap();
    inner.split(',').flat_map(|one| alternatives(&format!("{before}{one}{after}"))).collect()
}

fn exists(path: &str) -> bool {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    let (name, rest) = path.split_once('/').unwrap();
    let crate_root = root().join("crates").join(name);
    ["", "src"].iter().any(|below| {
        let file = crate_root.join(below).join(rest);
        file.exists() || file.with_file_name(format!("{}.rs", stem(&file))).exists()
    })
}

fn stem(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
