//! Tests the gate's check of dependencies (`scripts/test deny`), the list that replaces it offline
//! (docs/advisories.md), its check of fuzz targets (`scripts/test fuzz`), and what it runs again and says last.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use common::check_golden;
use rove_lab::testing::capture::{decode, read};
use rove_lab::testing::net::scenario::Scenario;
use rove_lab::testing::opportunities::Opportunities;
use rove_lab::testing::predict::trace::Trace;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A step of the gate, with a `cargo` that does this.
fn gate(step: &str, name: &str, cargo: &str) -> Output {
    let directory = std::env::temp_dir().join(format!("rove-gate-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let program = directory.join("cargo");
    fs::write(&program, format!("#!/bin/sh\n{cargo}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.display());
    let output = Command::new("bash")
        .args([&format!("{ROOT}/scripts/test"), step])
        .env("PATH", path)
        .output()
        .unwrap();
    fs::remove_dir_all(directory).unwrap();
    output
}

/// Advisories that could not be fetched are no failure, but the last line says so.
#[test]
fn the_gate_says_last_what_it_could_not_check() {
    let output = gate("deny", "away", "case $* in *'fetch db') exit 1;; esac");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.starts_with("NOT CHECKED: advisories: "), "{said}");

    let asked = gate("deny", "here", "echo \"asked: $*\"");
    let said = String::from_utf8(asked.stdout).unwrap();
    assert!(asked.status.success() && !said.contains("NOT CHECKED"), "{said}");
    let advisories = said
        .lines()
        .filter(|line| line.starts_with("asked: ") && line.ends_with("check advisories"));
    assert_eq!(advisories.count(), 2, "the program's and the fuzz targets': {said}");

    let found = gate("deny", "found", "case $* in *'check advisories') exit 1;; esac");
    assert_eq!(found.status.code(), Some(1));
}

/// Tests that the gate prints at its end what was simulated, and the command that runs a seed that failed.
#[test]
fn the_gate_says_last_what_was_simulated() {
    let cargo = "case $* in *bans*) echo 'simulated: 3.0 hours'; \
                 echo 'test x ... simulated: failed: SEED=17 cargo test'; echo other;; esac";
    let output = gate("deny", "simulated", cargo);
    let said = String::from_utf8(output.stdout).unwrap();
    let summed = said.lines().skip_while(|line| !line.contains(" passed, 0 failed"));
    let told: Vec<&str> = summed.skip(1).collect();
    let failed = "simulated: failed: SEED=17 cargo test";
    assert_eq!(told, ["simulated: 3.0 hours", failed], "{said}");
}

/// What a release may leave undone is listed by its name, one by one. A start that is slow is none of that.
#[test]
fn the_list_has_each_thing_that_a_release_may_leave_undone() {
    let read = |file: &str| fs::read_to_string(format!("{ROOT}/scripts/{file}")).unwrap();
    let scripts = ["release", "package", "check-packages"].map(read).concat();
    let told = ["not_done \"", "echo \"NOT DONE: "].map(|begins| {
        let said = scripts.split(begins).skip(1);
        said.filter(|said| !said.starts_with("$*")).map(|said| said.split_once(": ").unwrap().0)
    });
    let told: Vec<&str> = told.into_iter().flatten().collect();
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    assert!(told.len() > 15 && told.iter().all(|name| is_name(name)), "{told:?}");

    let list = read("not-checked");
    let listed = list.lines().filter_map(|line| line.strip_prefix("release_"));
    let listed: Vec<&str> = listed.map(|line| line.split(' ').next().unwrap()).collect();
    let unknown: Vec<&&str> = listed.iter().filter(|name| !told.contains(name)).collect();
    assert!(unknown.is_empty(), "no script says {unknown:?}");
    let never =
        ["aarch64_boot", "no_start", "second_build", "start", "target", "windows_wine", "zip"];
    for name in never {
        assert!(told.contains(&name) && !listed.contains(&name), "{name}");
    }
    assert!(read("platforms").contains(r#"sub(/^NOT DONE: /, "NOT CHECKED: release_")"#));
}

/// A machine that nobody here has may be missing. A missing compiler, emulator or wine fails the bar: nothing was judged
/// then.
#[test]
fn a_platform_is_not_judged_without_its_tools() {
    let read = |file: &str| fs::read_to_string(format!("{ROOT}/scripts/{file}")).unwrap();
    let scripts = ["platforms", "wasm-client"].map(read).concat();
    let said = ["unchecked \"platforms_", "NOT CHECKED: platforms_"];
    let said = said.map(|begins| scripts.split(begins).skip(1));
    let said: Vec<&str> =
        said.into_iter().flatten().map(|said| said.split_once(": ").unwrap().0).collect();
    let list = read("not-checked");
    let listed = list.lines().filter_map(|line| line.strip_prefix("platforms_"));
    let listed: Vec<&str> = listed.map(|line| line.split(' ').next().unwrap()).collect();
    let unknown: Vec<&&str> = listed.iter().filter(|name| !said.contains(name)).collect();
    assert!(unknown.is_empty(), "no script says {unknown:?}");
    let tools = ["android", "freebsd", "macos", "processors", "wasm", "windows"];
    let tools = tools.map(|system| format!("{system}_compiler"));
    for name in tools.iter().map(String::as_str).chain(["aarch64", "glibc", "windows_wine"]) {
        assert!(said.contains(&name) && !listed.contains(&name), "{name}");
    }
}

/// A test in real time that fails is run again by itself before it counts; the last lines say how that ended, before
/// them stands how long each step took.
#[test]
fn what_fails_in_real_time_is_run_again_alone() {
    let cargo = r#"case $* in
        *--exact*) echo "asked: $*"; echo 'test result: FAILED. 0 passed; 1 failed; 0 ignored'; exit 101;;
        *--lib*)
            printf 'failures:\n\n---- scroll::back stdout ----\nit broke\n\n'
            printf 'failures:\n    scroll::back\n\n'
            printf 'test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured\n\n'
            printf 'error: test failed, to rerun pass `-p rove-lab --test daily`\n'
            printf 'error: 1 target failed:\n    `-p rove-lab --test daily`\n'
            exit 101;;
        esac"#;
    let output = gate("tests", "alone", cargo);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let asked = "alone: asked: test --locked --workspace --test daily -- --exact scroll::back --test-threads=1";
    assert!(said.lines().any(|line| line == asked), "{said}");
    let last: Vec<&str> = said.lines().skip_while(|line| !line.starts_with("took: ")).collect();
    assert!(last[0].starts_with("took: tests "), "{said}");
    assert!(
        last[1].contains("scroll::back: failed beside others, failed when run alone"),
        "{said}"
    );
    assert_eq!(
        last[2],
        "4 passed, 1 failed, 0 skipped, 0 passed only when run alone, 0 retried within"
    );
}

/// How a target is run: as it was built.
const RUN: &str = "asked: fuzz run -s none --no-trace-compares predict";

/// A fuzz target that begins from nothing fails before anything is built.
#[test]
fn a_fuzz_target_needs_inputs_to_begin_from() {
    let cargo = |targets: &str| {
        format!("case $* in 'fuzz list') printf '{targets}';; *) echo \"asked: $*\";; esac")
    };
    let output = gate("fuzz", "seeded", &cargo("predict\\nkeyboard\\n"));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains(RUN), "{said}");

    let output = gate("fuzz", "unseeded", &cargo("predict\\nno_such_target\\n"));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        !output.status.success() && said.contains("fuzz: no_such_target has no inputs"),
        "{said}"
    );
    assert!(!said.contains("asked: fuzz"), "{said}");
}

/// The inputs that fuzzing of the lab's files begins from get as far as `golden/reach.txt` says: most of them past every
/// check. `RECORD=1 cargo test -p rove-lab --test gate` records it again.
#[test]
fn inputs_for_fuzzing_reach_far() {
    let mut found = String::new();
    for (target, reach) in [
        ("capture", reach_of_capture as fn(&[u8]) -> String),
        ("recording", reach_of_recording),
        ("scenario", reach_of_scenario),
    ] {
        let directory = format!("{ROOT}/fuzz/regressions/{target}");
        let all = fs::read_dir(&directory).unwrap();
        let names = all.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names: BTreeSet<String> = names.filter(|name| name.starts_with("reach-")).collect();
        for name in &names {
            let octets = fs::read(format!("{directory}/{name}")).unwrap();
            writeln!(found, "{target} {name}: {}", reach(&octets)).unwrap();
        }
    }
    check_golden("reach", &found);
}

fn reach_of_capture(octets: &[u8]) -> String {
    match read(octets) {
        Ok(packets) => {
            let segments = packets.iter().filter_map(decode::segment).count();
            format!("{} packets, {segments} of them with a payload that is found", packets.len())
        }
        Err(error) => format!("refused: {error:?}"),
    }
}

fn reach_of_recording(octets: &[u8]) -> String {
    match Trace::parse(String::new(), std::str::from_utf8(octets).unwrap()) {
        Ok(trace) => {
            let keys = trace.events.iter().filter_map(|event| event.key_octets()).count();
            format!("{} events, {keys} of them keys", trace.events.len())
        }
        Err((line, what)) => format!("refused in line {line}: {what}"),
    }
}

fn reach_of_scenario(octets: &[u8]) -> String {
    let text = std::str::from_utf8(octets).unwrap();
    let mut traces = |_: &str| Opportunities::parse("1\n5\n").map_err(io::Error::other);
    match (Opportunities::parse(text), Scenario::parse(text, &mut traces)) {
        (Ok(_), _) => "a recorded bottleneck".to_owned(),
        (_, Ok(scenario)) => {
            let plain = Default::default();
            let first =
                [&scenario.up, &scenario.down].map(|course| course.at(Default::default()).0);
            let changed = first.iter().filter(|step| step.profile != plain).count();
            format!("{} events, {changed} directions that are no plain path", scenario.events.len())
        }
        (_, Err(error)) => format!("refused: {error}"),
    }
}

/// A list that was made by hand is as good as the versions that it was made for.
#[test]
fn the_list_of_advisories_is_of_what_is_locked() {
    let list = fs::read_to_string(format!("{ROOT}/docs/advisories.md")).unwrap();
    let locks = ["Cargo.lock", "fuzz/Cargo.lock"]
        .map(|name| fs::read_to_string(format!("{ROOT}/{name}")).unwrap());
    let mut count = 0;
    for line in list.lines().skip_while(|line| !line.starts_with("|---")).skip(1) {
        let words: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, package, locked, mended, _, _] = words[..] else { break };
        assert!(parts(locked) >= parts(mended), "{line}");
        let head = format!("name = \"{package}\"\nversion = \"");
        let versions: Vec<&str> = locks
            .iter()
            .flat_map(|lock| lock.split(&head).skip(1))
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert!(!versions.is_empty(), "{package} is no longer a dependency");
        assert!(versions.iter().all(|version| *version == locked), "{line}: {versions:?}");
        count += 1;
    }
    assert!(count > 30, "{count} rows are read");
}

/// The numbers of a version.
fn parts(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap()).collect()
}
