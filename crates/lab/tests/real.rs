//! Runs the experiments on real programs in their smallest setting: each program can be typed at over an emulated
//! link, and its samples become results. No check depends on the machine's speed.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use common::{lab_command, lab_program, not_checked, possible, retried, rove_program, say};
use rove_lab::testing::net::Net;
use rove_lab::testing::net::scenario::Scenario;
use rove_lab::testing::real::contender::{Contender, Kind, missing};
use rove_lab::testing::run::limited;
use rove_lab::testing::scratch::Scratch;
use serde_json::Value;

/// Whether this machine has networks for us; says why not.
fn has_networks(test: &str) -> bool {
    let calm = Scenario::alike(Default::default(), 1);
    possible(test, Net::open(&calm, None)).is_some()
}

/// Whether this machine lets us log in as root over TCP as it is compared; says why not.
fn has_ssh(test: &str) -> bool {
    for control in missing() {
        not_checked("ssh_over_each_congestion_control", control);
    }
    // sshd lets no user in whose password begins so (passwd(1), --lock).
    let users = std::fs::read_to_string("/etc/shadow").unwrap_or_default();
    let locked = users.lines().any(|user| user.starts_with("root:!"));
    if locked {
        not_checked(test, "root is locked, so that ssh lets it in nowhere");
    }
    let all = Contender::all();
    !locked && all.iter().any(|contender| matches!(contender.kind, Kind::Ssh(_)))
}

fn run(words: &[&str], results: &Path) -> Output {
    let mut command = lab_command();
    command.args(words).arg("--results").arg(results).env("ROVE_BIN", rove_program());
    command.output().unwrap()
}

/// The rows of one of a result's tables.
fn table(results: &Path, name: &str, number: usize) -> Vec<Vec<Value>> {
    let text = std::fs::read_to_string(results.join(format!("{name}.json"))).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let rows = json["tables"][number]["rows"].as_array().unwrap();
    rows.iter().map(|row| row.as_array().unwrap().clone()).collect()
}

/// The rows of a result's first table, after a check of the parts that every result has; `None`, with a message, if
/// the machine was too busy for the numbers to mean anything.
fn rows(results: &Path, name: &str, output: &Output) -> Option<Vec<Vec<Value>>> {
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let read = |ending: &str| std::fs::read_to_string(results.join(format!("{name}.{ending}")));
    let json: Value =
        serde_json::from_str(&read("json").unwrap_or_else(|_| panic!("{said}"))).unwrap();
    assert!(!said.contains("Failed:"), "{said}");
    assert_eq!(json["seed"], 1);
    assert!(json["versions"]["rove"].as_str().unwrap().starts_with("rove "), "{json}");
    let command = json["command"].as_str().unwrap();
    // The program under test is part of what is run again.
    assert!(command.starts_with("ROVE_BIN=") && command.contains(" rove-lab "), "{command}");
    assert!(command.contains(" --seed 1 "), "defaults are not left out: {command}");
    assert!(json["n"]["least"].as_u64().unwrap() >= 1 && json["recorded"]["date"].is_string());
    // A busy machine may make it invalid, and then it must say so.
    assert_eq!(json["valid"] == true, output.status.success(), "{said}");
    assert!(read("svg").unwrap().contains("<svg") && read("md").unwrap().contains("Versions: "));
    let rows = table(results, name, 0);
    assert!(!rows.is_empty(), "{said}");
    // The gate fails if too few of these count.
    say(&format!("MEASURED: {name}"));
    if json["valid"] == false {
        not_checked("numbers_over_late_links", name);
        return None;
    }
    Some(rows)
}

/// Each program's keys are all seen over a path that loses nothing, none sooner than light allows.
#[test]
fn every_program_is_measured_at_the_keyboard() {
    if !has_networks("every_program_is_measured_at_the_keyboard") {
        return;
    }
    // mosh, and rove on both wires; ssh over one congestion control at least.
    for (only, least) in [("mosh,rove", 3), ("ssh", 1)] {
        if only == "ssh" && !has_ssh("every_program_is_measured_at_the_keyboard") {
            continue;
        }
        let scratch = Scratch::new().unwrap();
        let words = ["cs244", "--quick", "--seconds", "3", "--sessions", "1", "--only", only];
        let output = run(&words, scratch.path());
        let Some(rows) = rows(scratch.path(), "cs244-quick", &output) else { continue };
        let mut programs = 0;
        for row in rows.iter().filter(|row| row[0].as_str().unwrap().starts_with("100 ms, 0 %")) {
            programs += 1;
            assert_eq!(row[14], 0, "all keys were seen: {row:?}");
            assert!(row[2].as_u64().unwrap() >= 5 && row[3].as_f64().unwrap() >= 100.0, "{row:?}");
        }
        assert!(programs >= least, "{only}: {rows:?}");
    }
}

/// A user who is not root measures the programs that need no login, in a user namespace, and gets a note on those
/// that are missing.
#[test]
fn nobody_measures_too() {
    if !rustix::process::geteuid().is_root() {
        return not_checked("nobody_measures_too", "only root can change to another user");
    }
    if !has_networks("nobody_measures_too") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    for (name, program) in [("rove", rove_program()), ("rove-lab", lab_program())] {
        std::fs::copy(program, scratch.join(name)).unwrap();
        std::fs::set_permissions(scratch.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(scratch.path(), Permissions::from_mode(0o777)).unwrap();
    // A device that every user may open, in a namespace of its own: on most systems it is so.
    let script = format!(
        "cd {0} && mknod tun c 10 200 && chmod 666 tun && mount --bind tun /dev/net/tun || exit 77\n\
         export HOME={0} TMPDIR={0} ROVE_BIN={0}/rove\n\
         exec setpriv --reuid=65534 --regid=65534 --clear-groups \
         ./rove-lab cs244 --quick --seconds 2 --sessions 1 --results found",
        scratch.path().display(),
    );
    let mut command = limited("unshare", 200);
    let output = command.args(["--mount", "sh", "-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if matches!(output.status.code(), Some(77 | 127)) || said.contains("needs root, or a user") {
        not_checked(
            "nobody_measures_too",
            format!("no device, no setpriv, or no namespace: {said}"),
        );
        return;
    }
    let found = scratch.join("found");
    rows(&found, "cs244-quick", &output);
    let rows = table(&found, "cs244-quick", 0);
    let programs: BTreeSet<&str> = rows.iter().filter_map(|row| row[1].as_str()).collect();
    assert_eq!(programs, BTreeSet::from(["mosh", "rove", "rove (mosh's wire)"]));
    let text = std::fs::read_to_string(found.join("cs244-quick.md")).unwrap();
    assert!(text.contains("ssh is missing"), "{text}");
}

/// Any other program is a file of one line: one that starts its server through an ssh of the lab's, and one that
/// logs in.
#[test]
fn any_other_program_is_measured() {
    if !has_networks("any_other_program_is_measured") {
        return;
    }
    let mosh = r#"{"name": "eager", "client": ["mosh", "--ssh={ssh}", "--experimental-remote-ip=local",
        "--family=inet", "--predict-overwrite", "{host}", "--", "{command}"]}"#;
    let ssh = r#"{"name": "eager", "client": ["ssh", "-F", "{config}", "-o", "Ciphers=aes256-ctr", "-tt", "{host}",
        "--", "{line}"]}"#;
    for (program, possible) in [(mosh, true), (ssh, has_ssh("any_other_program_is_measured"))] {
        if !possible {
            continue;
        }
        let scratch = Scratch::new().unwrap();
        let file = scratch.join("program.json");
        std::fs::write(&file, program).unwrap();
        let words = ["cs244", "--quick", "--seconds", "3", "--sessions", "1", "--only", "eager"];
        let output =
            run(&[&words[..], &["--program", file.to_str().unwrap()]].concat(), scratch.path());
        let Some(rows) = rows(scratch.path(), "cs244-quick", &output) else { continue };
        assert_eq!(rows.len(), 2, "no loss and much: {rows:?}");
        for row in &rows {
            assert!(row[1] == "eager" && row[3].as_f64().unwrap() >= 100.0, "{row:?}");
        }
        assert_eq!(rows[0][14], 0, "all keys were seen: {rows:?}");
    }
}

/// Packets and octets of typing are counted for both ends.
#[test]
fn keystrokes_are_counted() {
    if !has_networks("keystrokes_are_counted") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let words = ["keystroke", "--quick", "--seconds", "3", "--only", "mosh,rove"];
    let output = run(&words, scratch.path());
    let Some(against) = rows(scratch.path(), "keystroke-quick", &output) else { return };
    assert_eq!(against.len(), 2, "both wires against mosh: {against:?}");
    for row in &against {
        assert!(row[4].as_f64().unwrap() > 1.0 && row[6].as_f64().unwrap() > 1.0, "{row:?}");
    }
    for row in table(scratch.path(), "keystroke-quick", 1) {
        for number in &row[3..8] {
            assert!(number.as_f64().unwrap() > 0.5, "{row:?}");
        }
    }
}

/// A listener is judged: rove's secret lines leave with their Enter, and slots have one length.
#[test]
fn listeners_are_judged() {
    if !has_networks("listeners_are_judged") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let words = ["privacy", "--quick", "--seconds", "8", "--only", "rove,mosh"];
    let traces = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/keystrokes/writer.cast");
    let output = run(&[&words[..], &["--trace", traces]].concat(), scratch.path());
    let Some(learnt) = rows(scratch.path(), "privacy-quick", &output) else { return };
    assert_eq!(learnt.len(), 5, "{learnt:?}");
    let of = |rows: &[Vec<Value>], program: &str, column: usize| {
        let row = rows.iter().find(|row| row[1] == program);
        row.unwrap_or_else(|| panic!("{program}: {rows:?}"))[column].as_f64().unwrap()
    };
    assert_eq!(of(&learnt, "rove --obscure", 8), 1.0, "{learnt:?}");
    assert!(of(&learnt, "rove --obscure=never", 8) > 1.0, "{learnt:?}");
    let costs = table(scratch.path(), "privacy-quick", 1);
    let (slots, plain) = (of(&costs, "rove --obscure", 3), of(&costs, "rove", 3));
    assert!(slots > 1.5 * plain, "{costs:?}");
    let passwords = table(scratch.path(), "privacy-quick", 2);
    // Beats and acknowledgments leave before Enter as well, but no keys.
    let (held, sent) = (of(&passwords, "rove", 4), of(&passwords, "mosh", 4));
    assert!(sent > held + 5.0, "{passwords:?}");
}

/// A session outlives its address: every key typed around the change is seen in the end.
#[test]
fn rove_outlives_its_address() {
    if !has_networks("rove_outlives_its_address") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let output = run(&["roam", "--real", "--quick", "--only", "rove"], scratch.path());
    let Some(rows) = rows(scratch.path(), "roam-real-quick", &output) else { return };
    assert_eq!(rows.len(), 2, "both wires");
    for row in rows {
        assert_eq!(row[14], 0, "{row:?}");
    }
}

/// A session whose datagrams are dropped starts, echoes and is interrupted over ssh, and one that loses them goes on.
#[test]
fn rove_goes_on_over_ssh() {
    if !(has_networks("rove_goes_on_over_ssh") && has_ssh("rove_goes_on_over_ssh")) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let output = run(&["ways", "--quick"], scratch.path());
    let Some(rows) = rows(scratch.path(), "ways-quick", &output) else { return };
    // One of UDP that is lost, two of keys, and one of each of the others.
    assert_eq!(rows.len(), 6, "{rows:?}");
    for row in table(scratch.path(), "ways-quick", 1) {
        assert_eq!(row.last().unwrap(), 0, "all were seen: {row:?}");
    }
}

/// A session whose client was killed is attached to, two clients share one, and sessions are listed.
#[test]
fn sessions_outlive_their_clients() {
    let test = "sessions_outlive_their_clients";
    if !(has_networks(test) && has_ssh(test)) {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let output = run(&["attach", "--quick"], scratch.path());
    let Some(rows) = rows(scratch.path(), "attach-quick", &output) else { return };
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in table(scratch.path(), "attach-quick", 1) {
        assert_eq!(row.last().unwrap(), 0, "all were seen: {row:?}");
    }
}

/// The film shows what each client painted, and its count ends at all keys.
#[test]
fn a_film_is_shot() {
    if !has_networks("a_film_is_shot") {
        return;
    }
    let scratch = Scratch::new().unwrap();
    let out = scratch.join("film.svg");
    let mut command = lab_command();
    command.args(["film", "--quick", "--only", "mosh,rove", "--rtt-ms", "100", "--out"]).arg(&out);
    let output = command.env("ROVE_BIN", rove_program()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let svg = std::fs::read_to_string(&out).unwrap();
    for name in ["mosh", "rove"] {
        assert!(said.contains(&format!("{name}: 32 keys, seen after ")), "{said}");
        assert!(svg.contains(&format!(">{name}</text>")), "{svg}");
    }
    assert_eq!(svg.matches(">0 of 32 keys on the screen<").count(), 2, "{said}");
    assert_eq!(svg.matches("32 keys, seen after ").count(), 2, "{said}");
    let json = std::fs::read_to_string(scratch.join("film.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["command"].as_str().unwrap().contains(" --rtt-ms 100"), "{json}");
    assert_eq!(json["n"]["least"], 32);
    assert!(json["recorded"]["date"].is_string() && json["recorded"]["machine"].is_object());
    let whole = ">ready$ cd rove &amp;&amp; git log -1 --oneline</text>";
    assert!(svg.matches(whole).count() >= 2, "each shows the whole command in the end: {svg}");
}

/// Floors of quick runs, in Mbit/s: half of the least that three of each gave on two lent cores beside eight to sixteen
/// other busy processes (goodput 63.1, `-L` beside keys 77.9, a copy that comes to a shared path 7.2, both on it 82.6).
/// Results of full runs on an idle machine are in `results/bulk*.json`.
const GOODPUT_MIN: f64 = 31.5;
const CARRIED_MIN: f64 = 38.9;
const CAME_MIN: f64 = 3.6;
const SHARED_MIN: f64 = 41.3;

/// Seconds until a copy goes on after trouble: twice the most in the same runs (0.43).
const BACK_MAX: f64 = 0.86;

/// A quick run of one part of `bulk`: the rows of its first table.
fn bulk(part: &str, file: &str, only: &str) -> Option<Vec<Vec<Value>>> {
    if !(has_networks(part) && has_ssh(part)) {
        return None;
    }
    let scratch = Scratch::new().unwrap();
    let output = run(&["bulk", part, "--quick", "--only", only], scratch.path());
    rows(scratch.path(), &format!("{file}-quick"), &output)
}

/// A quick run of one part of `bulk` whose rows are all good. They tell of real time: on a machine whose processors come
/// back late one may be bad, but not twice.
fn good_bulk(
    test: &str,
    part: &str,
    file: &str,
    only: &str,
    is_good: impl Fn(&[Value]) -> bool,
) -> Option<Vec<Vec<Value>>> {
    let mut bad = Vec::new();
    for _ in 0..2 {
        let rows = bulk(part, file, only)?;
        let before = std::mem::take(&mut bad);
        bad.extend(rows.iter().filter(|row| !is_good(row)).cloned());
        if bad.is_empty() {
            if !before.is_empty() {
                retried(test, format!("not good: {before:?}"));
            }
            return Some(rows);
        }
    }
    panic!("{test}: twice not good: {bad:?}");
}

/// Processor time near and far: both are given and above zero, or neither is, for a copy that was soon over.
fn is_weighed(row: &[Value], near: usize) -> bool {
    let cpu = [&row[near], &row[near + 1]];
    cpu.iter().all(|cpu| cpu.is_null()) || cpu.iter().all(|cpu| cpu.as_f64().unwrap() > 0.0)
}

/// Each program's copy over a long pipe arrives, and its processes are counted at both ends.
#[test]
fn copies_are_measured() {
    let Some(rows) = bulk("goodput", "bulk", "rove") else { return };
    assert_eq!(rows.len(), 4, "`rove cp` and a pipe, with and without loss: {rows:?}");
    for row in &rows {
        assert!(
            row[3].as_f64().unwrap() >= GOODPUT_MIN && row[9].as_f64().unwrap() >= 100.0,
            "{row:?}"
        );
        assert!(is_weighed(row, 7), "{row:?}");
    }
    let Some(rows) = bulk("loopback", "bulk-loopback", "scp,rove") else { return };
    assert_eq!(rows.len(), 3, "{rows:?}");
    for row in &rows {
        assert!(is_weighed(row, 5), "{row:?}");
        // The verdict needs the time of both: scp's row is the first.
        let is_judged = row[0] == "rove cp" && !row[5].is_null() && !rows[0][5].is_null();
        assert_eq!(row[8].is_string(), is_judged, "{row:?}");
    }
    let Some(rows) = bulk("ciphers", "bulk-ciphers", "aes128-gcm,rove cp") else { return };
    assert_eq!(rows.len(), 2, "{rows:?}");
}

/// A shell's keys are seen while its own session, or a copy beside it, fills the path.
#[test]
fn keys_are_typed_beside_bulk() {
    let Some(rows) = bulk("keys", "bulk-keys", "its own -L,rove cp") else { return };
    assert_eq!(rows.len(), 3, "rove's and ssh's -L, and `rove cp`: {rows:?}");
    for row in &rows {
        assert!(row[2].as_u64().unwrap() > 5, "{row:?}");
        assert!(row[4].as_f64().unwrap() >= CARRIED_MIN, "{row:?}");
    }
}

/// Two that share a path are both counted, and many small files all arrive.
#[test]
fn paths_are_shared_and_trees_arrive() {
    let is_shared = |row: &[Value]| {
        let [theirs, ours] = [3, 4].map(|column| row[column].as_f64().unwrap());
        theirs + ours >= SHARED_MIN && ours >= CAME_MIN && row[6].as_f64().unwrap() >= 0.5
    };
    let test = "paths_are_shared_and_trees_arrive";
    if good_bulk(test, "shares", "bulk-shares", "rove cp,TCP", is_shared).is_none() {
        return;
    }
    let Some(rows) = bulk("files", "bulk-files", "rove") else { return };
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in &rows {
        assert!(row[1] == 200 && row[2] == "yes", "{row:?}");
    }
}

/// rove's copies go on after an outage, with another address, and behind a translator that forgot.
#[test]
fn copies_go_on_after_trouble() {
    let is_back = |row: &[Value]| {
        row[3] == "1 of 1" && row[5].as_f64().is_some_and(|worst| worst <= BACK_MAX)
    };
    let test = "copies_go_on_after_trouble";
    let Some(rows) = good_bulk(test, "outages", "bulk-outages", "rove", is_back) else { return };
    assert_eq!(rows.len(), 6, "{rows:?}");
}
