//! Tests that documents quote the recorded results as `rove-lab headlines` writes them.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::lab_command;
use rove_lab::testing::scratch::Scratch;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn headlines(words: &[&str]) -> (Option<i32>, String) {
    let output = lab_command().arg("headlines").args(words).current_dir(root()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// Where it fails: `rove-lab headlines` in the repository's root.
#[test]
fn documents_quote_the_results() {
    assert_eq!(headlines(&["--check"]), (Some(0), String::new()));
}

#[test]
fn a_figure_that_drifted_is_told_and_mended() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let scratch = Scratch::new().unwrap();
    let file = scratch.join("README.md");
    let name = file.to_str().unwrap();
    let figure = readme.lines().find(|line| line.starts_with("| Ctrl-C in a flood")).unwrap();
    let (drifted, last) = (figure.replace(" ms |", "9 ms |"), figure.replace(" ms |", " s |"));
    for line in [drifted, last] {
        assert_ne!(line, figure);
        fs::write(&file, readme.replace(figure, &line)).unwrap();
        let (code, said) = headlines(&["--check", name]);
        assert_eq!((code, said), (Some(1), format!("{name} differs from the results\n")));
        assert_eq!(headlines(&[name]), (Some(0), format!("{name}\n")));
        assert_eq!(fs::read_to_string(&file).unwrap(), readme);
    }
    fs::write(&file, "no figures").unwrap();
    let (code, said) = headlines(&[name]);
    assert!(code == Some(255) && said.contains("no region for figures"), "{said}");
}
