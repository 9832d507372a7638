//! A sweep for many machines, run by GNU parallel on this one, as docs/lab.md shows it.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::io::Write as _;
use std::process::Stdio;

use common::{lab_command, lab_program, say};
use rove_lab::run::limited;
use rove_lab::scratch::Scratch;
use serde_json::Value;

const SWEEP: [&str; 11] = [
    "sweep",
    "--print",
    "--seeds",
    "2",
    "--rtt-ms",
    "100",
    "--loss",
    "0,29",
    "--program",
    "mosh,rove",
    "--seconds=10",
];

#[test]
fn parallel_runs_the_lines_and_the_results_merge() {
    let lab = lab_program();
    let lines = lab_command().args(SWEEP).output().unwrap().stdout;
    let lines = String::from_utf8(lines).unwrap();
    assert_eq!(lines.lines().count(), 8, "{lines}");
    let version = limited("parallel", 20).arg("--version").output().unwrap();
    if version.status.code() == Some(127) {
        say("skipped: GNU parallel is not installed");
        return;
    }
    let scratch = Scratch::new().unwrap();
    // The lines name the program and no path: it is found as on any machine of a sweep.
    let path = format!("{}:/usr/bin:/bin", lab.parent().unwrap().display());
    let (log, merged) = (scratch.join("joblog"), scratch.join("results"));
    let run = || {
        let mut command = limited("parallel", 120);
        command.args(["--will-cite", "-j2", "--resume", "--joblog"]).arg(&log);
        command.env("PATH", &path).env("HOME", scratch.path());
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
    let mut merge = lab_command();
    merge.args(["sweep", "--merge"]).arg(&file).arg("--results").arg(&merged);
    let output = merge.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json = std::fs::read_to_string(merged.join("sweep.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["tables"][0]["rows"].as_array().unwrap();
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
