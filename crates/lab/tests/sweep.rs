//! Runs a sweep for many machines on this one, by GNU parallel and as Slurm's arrays would, as docs/lab.md shows.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::{lab_command, lab_program, not_checked};
use rove_lab::testing::run::limited;
use rove_lab::testing::scratch::Scratch;
use serde_json::Value;

const SWEEP: &str = "sweep --print --seeds 2 --rtt-ms 100 --program mosh,rove --seconds 10";

/// The lines of a sweep, this many.
fn lines(loss: &str, count: usize) -> String {
    let lines = lab_command().args(SWEEP.split(' ')).args(["--loss", loss]).output().unwrap();
    let lines = String::from_utf8(lines.stdout).unwrap();
    assert_eq!(lines.lines().count(), count, "{lines}");
    lines
}

/// PATH on a machine of a sweep: the lines name the program and no directory.
fn path() -> String {
    format!("{}:/usr/bin:/bin", lab_program().parent().unwrap().display())
}

/// The rows of the table that the lines become.
fn merged(found: &[PathBuf], results: &Path) -> Vec<Value> {
    let mut merge = lab_command();
    merge.args(["sweep", "--merge"]).args(found).arg("--results").arg(results);
    let output = merge.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json = std::fs::read_to_string(results.join("sweep.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    json["tables"][0]["rows"].as_array().unwrap().clone()
}

/// Slurm runs a script once for each number of an array, and says which.
#[test]
fn an_array_runs_the_lines() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let script = docs.split_once("--wrap '").and_then(|(_, rest)| rest.split_once('\''));
    let (script, _) = script.expect("docs/lab.md shows an array");
    let scratch = Scratch::new().unwrap();
    let lines = lines("0", 4);
    std::fs::write(scratch.join("lines"), lines).unwrap();
    for task in ["1", "2", "3", "4"] {
        let mut shell = limited("sh", 120);
        shell.args(["-c", script]).current_dir(scratch.path()).env("PATH", path());
        assert!(shell.env("SLURM_ARRAY_TASK_ID", task).status().unwrap().success());
    }
    let found: Vec<PathBuf> = (1..=4).map(|task| scratch.join(&format!("found.{task}"))).collect();
    let rows = merged(&found, &scratch.join("results"));
    assert_eq!(rows.len(), 2, "two programs: {rows:?}");
    assert!(rows.iter().all(|row| row[4] == 2), "seeds: {rows:?}");
}

#[test]
fn parallel_runs_the_lines_and_the_results_merge() {
    let lines = lines("0,29", 8);
    let version = limited("parallel", 20).arg("--version").output().unwrap();
    if version.status.code() == Some(127) {
        not_checked(
            "parallel_runs_the_lines_and_the_results_merge",
            "GNU parallel is not installed",
        );
        return;
    }
    let scratch = Scratch::new().unwrap();
    let log = scratch.join("joblog");
    let run = || {
        let mut command = limited("parallel", 120);
        command.args(["--will-cite", "-j2", "--resume", "--joblog"]).arg(&log);
        command.env("PATH", path()).env("HOME", scratch.path());
        let mut parallel = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        parallel.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = parallel.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let found = run();
    assert_eq!(found.lines().count(), 8, "{found}");
    assert_eq!(run(), "", "all is done already");
    let file = scratch.join("lines");
    // Lines that came twice count once.
    std::fs::write(&file, format!("{found}{found}")).unwrap();
    let rows = merged(&[file], &scratch.join("results"));
    assert_eq!(rows.len(), 4, "two programs, two losses: {rows:?}");
    for row in rows {
        assert_eq!(row[4], 2, "seeds: {row}");
        assert!(row[5].as_u64().unwrap() > 20 && row[6].as_f64().unwrap() >= 50.0, "{row}");
    }
    // The same line is the same run.
    let first = lines.lines().next().unwrap();
    let words = first.split(' ').skip(1);
    let again = lab_command().args(words).output().unwrap().stdout;
    let again = String::from_utf8(again).unwrap();
    assert!(found.lines().any(|line| line == again.trim()), "{first}");
}
