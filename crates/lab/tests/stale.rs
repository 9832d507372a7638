//! Tests that results name where they come from, and that `rove-lab stale` finds those older than their code.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::lab_command;
use rove_lab::testing::run::limited;
use rove_lab::testing::scratch::Scratch;
use serde_json::{Value, json};

/// A checkout with results.
struct Checkout(Scratch);

impl Checkout {
    fn new() -> Checkout {
        let checkout = Checkout(Scratch::new().unwrap());
        checkout.git(&["init", "-q"]);
        fs::create_dir(checkout.0.join("results")).unwrap();
        checkout
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = limited("git", 60);
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        let output = git.current_dir(self.0.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits a file; returns the commit.
    fn commit(&self, file: &str, text: &str) -> String {
        self.write(file, text);
        self.git(&["add", "."]);
        self.git(&["commit", "-q", "-m", &format!("{file}: {text}")]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn record(&self, name: &str, result: &Value) {
        fs::write(self.0.join("results").join(name), result.to_string()).unwrap();
    }

    fn stale(&self) -> (Option<i32>, String) {
        said(lab_command().arg("stale").current_dir(self.0.path()))
    }
}

fn said(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn said_in_this_checkout(words: &[&str]) -> (Option<i32>, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    said(lab_command().args(words).current_dir(root))
}

fn recorded(commit: &str, depends: &[&str]) -> Value {
    json!({ "recorded": {
        "commit": commit, "date": "2026-01-02T03:04:05Z", "changed": [], "depends": depends,
    } })
}

#[test]
fn results_older_than_their_code_are_listed() {
    let checkout = Checkout::new();
    checkout.commit("a", "1");
    let old = checkout.commit("b", "1");
    checkout.record("of-a.json", &recorded(&old, &["a"]));
    checkout.record("of-both.json", &recorded(&old, &["a", "b"]));
    checkout.record("undated.json", &json!({}));
    let text = recorded(&old, &["b"])["recorded"].to_string();
    let text = format!("# A\n\n<!-- recorded {text} -->\n");
    fs::write(checkout.0.join("results/text.md"), text).unwrap();
    let (code, said) = checkout.stale();
    let last = |said: &str| said.lines().last().unwrap().to_owned();
    assert_eq!((code, last(&said).as_str()), (Some(0), "0 stale, 1 undated, 3 as the code is"));
    assert!(said.contains("undated  undated\n"), "{said}");

    checkout.commit("unrelated", "1");
    assert_eq!(checkout.stale().0, Some(0));
    let new = checkout.commit("b", "2");
    let newest = checkout.commit("b", "3");
    let (code, said) = checkout.stale();
    assert_eq!((code, last(&said).as_str()), (Some(1), "2 stale, 1 undated, 1 as the code is"));
    let at = format!("recorded 2026-01-02T03:04:05Z at {}", &old[..12]);
    for name in ["of-both", "text"] {
        let head = format!("stale    {name}: {at}\n  {}", &new[..7]);
        assert!(said.contains(&head), "{said}");
    }
    assert!(said.contains("b: 2: b\n") && !said.contains(&newest[..7]), "{said}");
    assert!(!said.contains("of-a"), "{said}");
}

/// Unit tests make no numbers, unless tests make them all.
#[test]
fn results_are_not_older_than_their_unit_tests() {
    let tests = ["crates/x/src/tests.rs", "crates/x/src/a/tests.rs", "crates/x/src/a/tests/b.rs"];
    let checkout = Checkout::new();
    let old = checkout.commit("crates/x/src/a.rs", "1");
    checkout.record("of-code.json", &recorded(&old, &["crates/x/src"]));
    checkout.record("of-tests.json", &recorded(&old, &["crates/x/src", "crates/x/tests"]));
    let first = checkout.commit(tests[0], "1");
    tests[1..].iter().for_each(|file| drop(checkout.commit(file, "1")));
    let (code, listed) = checkout.stale();
    assert!(
        code == Some(1) && listed.ends_with("1 stale, 0 undated, 1 as the code is\n"),
        "{listed}"
    );
    let of_tests = format!("stale    of-tests: recorded 2026-01-02T03:04:05Z at {}", &old[..12]);
    assert!(listed.starts_with(&of_tests) && listed.contains(&first[..7]), "{listed}");

    let changed = |depends: &[&str]| {
        let mut command = lab_command();
        command.args(["provenance", "--made-by", "x"]).args(depends);
        let (code, said) = said(command.current_dir(checkout.0.path()));
        assert_eq!(code, Some(0), "{said}");
        let json = said.lines().find_map(|line| line.strip_prefix("<!-- recorded ")).unwrap();
        let json: Value = serde_json::from_str(json.strip_suffix(" -->").unwrap()).unwrap();
        let paths = json["changed"].clone();
        let mut paths: Vec<String> = serde_json::from_value(paths).unwrap();
        // A program that is older than its source is another matter.
        paths.retain(|path| path.starts_with("crates/"));
        paths
    };
    tests.iter().for_each(|file| checkout.write(file, "2"));
    assert_eq!(changed(&["crates/x/src"]), [""; 0]);
    assert_eq!(changed(&["crates/x/src", "crates/x/tests"]), [tests[1], tests[2], tests[0]]);
    checkout.write("crates/x/src/a/latest.rs", "1");
    assert_eq!(changed(&["crates/x/src"]), ["crates/x/src/a/latest.rs"]);

    let new = checkout.commit("crates/x/src/a.rs", "2");
    let (code, said) = checkout.stale();
    assert!(code == Some(1) && said.contains(&new[..7]) && said.contains("2 stale"), "{said}");
}

#[test]
fn what_was_made_from_no_commit_is_stale() {
    let checkout = Checkout::new();
    let commit = checkout.commit("a", "1");
    let mut result = recorded(&commit, &["a"]);
    result["recorded"]["changed"] = json!(["a"]);
    checkout.record("dirty.json", &result);
    let (code, said) = checkout.stale();
    assert!(code == Some(1) && said.contains("made from what is no commit: a\n"), "{said}");
}

#[test]
fn without_the_commit_nothing_is_said_to_be_fresh() {
    let checkout = Checkout::new();
    checkout.commit("a", "1");
    let away = "0123456789012345678901234567890123456789";
    checkout.record("x.json", &recorded(away, &["a"]));
    let (code, said) = checkout.stale();
    assert_eq!(code, Some(255), "{said}");
    assert!(said.contains(&format!("x, commit {away}: this checkout does not have it")), "{said}");

    fs::remove_dir_all(checkout.0.join(".git")).unwrap();
    let (code, said) = checkout.stale();
    assert!(code == Some(255) && said.contains("not a git repository"), "{said}");

    let scratch = Scratch::new().unwrap();
    let results = scratch.path().display().to_string();
    let (code, said) = said_in_this_checkout(&["stale", "--results", &results]);
    assert!(code == Some(255) && said.contains("no results in"), "{said}");
}

/// The program writes the commit, the date, the machine and its whole command, and says so in the Markdown.
#[test]
fn a_result_names_where_it_comes_from() {
    let scratch = Scratch::new().unwrap();
    let results = scratch.path().display().to_string();
    let words = ["collection", "--small", "--results", &results];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = lab_command();
    command.args(words).current_dir(root).env_remove("ROVE_BIN");
    let (code, printed) = said(&mut command);
    assert_eq!(code, Some(0), "{printed}");
    let json = fs::read_to_string(scratch.join("collection.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["command"], format!("rove-lab collection --results {results} --small"));
    let recorded = &json["recorded"];
    let head = limited("git", 60).args(["rev-parse", "HEAD"]).output().unwrap();
    assert_eq!(recorded["commit"], String::from_utf8(head.stdout).unwrap().trim());
    let date = recorded["date"].as_str().unwrap();
    assert!(date.len() == 20 && date.starts_with("20") && date.ends_with('Z'), "{date}");
    assert!(recorded["machine"]["cores"].as_u64().unwrap() > 0, "{recorded}");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(recorded["machine"]["kernel"], kernel.trim());
    let depends = recorded["depends"].as_array().unwrap();
    assert!(depends.contains(&json!("crates/lab/src/experiments/collection.rs")), "{depends:?}");
    let markdown = fs::read_to_string(scratch.join("collection.md")).unwrap();
    assert_eq!(printed, markdown);
    assert!(markdown.contains(&format!("\nRecorded {date} at commit ")), "{markdown}");
}
