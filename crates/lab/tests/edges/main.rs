//! Checks the allowed imports: the floors of ARCHITECTURE.md against the dependencies that cargo links, and the
//! imports within each crate.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod cycles;
mod depends;
mod sizes;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use source::CRATES;

/// Each crate of the workspace and the crates of the workspace that it may name, dev-dependencies included.
const EDGES: [(&str, &[&str]); 6] = [
    ("rove-ssp", &[]),
    ("rove-term", &[]),
    ("rove-session", &["rove-ssp", "rove-term"]),
    ("rove-streams", &[]),
    ("rove-shell", &["rove-session", "rove-ssp", "rove-streams", "rove-term"]),
    ("rove-lab", &["rove-session", "rove-shell", "rove-ssp", "rove-streams", "rove-term"]),
];

/// Crates that bring in the system (sockets, threads, clocks, randomness): none may be named below floor 2.
const SYSTEM: [&str; 12] = [
    "tokio",
    "async-std",
    "smol",
    "mio",
    "socket2",
    "rustix",
    "nix",
    "libc",
    "getrandom",
    "rand",
    "quinn",
    "tracing",
];

const BELOW_FLOOR_2: [&str; 3] = ["rove-ssp", "rove-term", "rove-session"];

#[test]
fn crates_import_only_floors_below() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: BTreeSet<&str> = packages.iter().map(name).collect();
    assert_eq!(ours, EDGES.iter().map(|(name, _)| *name).collect(), "the crates of the workspace");
    let allowed: BTreeMap<&str, &[&str]> = EDGES.into();
    for package in packages {
        for dependency in dependencies(package).filter(|dependency| ours.contains(name(dependency)))
        {
            let (from, to) = (name(package), name(dependency));
            assert!(allowed[from].contains(&to), "{from} must not know {to}");
        }
    }
}

#[test]
fn the_lower_floors_name_nothing_of_the_system() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    for package in packages.iter().filter(|package| BELOW_FLOOR_2.contains(&name(package))) {
        // A test may draw numbers or read a file; code that is linked into the library may not.
        for dependency in dependencies(package).filter(|dependency| dependency["kind"].is_null()) {
            let (from, to) = (name(package), name(dependency));
            assert!(!SYSTEM.contains(&to), "{from} must not name {to}");
            let ours = to.starts_with("rove-");
            assert!(
                ours || dependency["uses_default_features"] == Value::Bool(false),
                "{from} takes {to} with its default features, which may bring in the system"
            );
        }
    }
}

/// The lower floors forbid unsafe code outright; the workspace denies it, except in `rove/os/{unix,linux,bsd,windows}`, `rove/os/locked.rs` and
/// `lab/sys`.
#[test]
fn unsafe_code_is_where_it_may_be() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for name in ["ssp", "term", "session", "streams"] {
        let lib = std::fs::read_to_string(format!("{root}/crates/{name}/src/lib.rs")).unwrap();
        assert!(lib.contains("#![forbid(unsafe_code)]"), "{name}");
    }
    for (name, allowed) in [
        ("rove", &["os/unix", "os/linux", "os/bsd", "os/windows", "os/locked.rs"][..]),
        ("lab", &["sys.rs"]),
    ] {
        let source = PathBuf::from(format!("{root}/crates/{name}/src"));
        let allowed: Vec<PathBuf> = allowed.iter().map(|path| source.join(path)).collect();
        let mut directories = vec![source];
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path: PathBuf = entry.unwrap().path();
                if allowed.contains(&path) {
                    continue;
                }
                if path.is_dir() {
                    directories.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains("allow(unsafe_code)"), "{}", path.display());
            }
        }
    }
}

/// Which system a program is built for is asked in `rove/os` alone, and there where the system is chosen, or between
/// those that share `os/bsd` or `os/linux`; and where the crate lists its modules. All else has one form everywhere, but
/// for tests of what only Linux or a Unix has: a whole file of `tests`, or one test, above which it stands.
#[test]
fn only_os_asks_for_the_system() {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates"));
    let allowed = [
        "rove/src/os.rs",
        // Which modules a system has: on Windows there is a client alone.
        "rove/src/lib.rs",
        "rove/src/os/family.rs",
        "rove/src/os/system.rs",
        "rove/src/os/bsd",
        "rove/src/os/linux",
    ];
    let allowed: Vec<PathBuf> = allowed.iter().map(|path| root.join(path)).collect();
    let tests = root.join("rove/tests");
    let mut left: Vec<PathBuf> =
        CRATES.iter().map(|name| root.join(name)).filter(|path| path.is_dir()).collect();
    let mut read = 0;
    while let Some(path) = left.pop() {
        if allowed.contains(&path) {
            continue;
        }
        if path.is_dir() {
            left.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            read += 1;
            let lines: Vec<&str> = text.lines().collect();
            for (number, line) in lines.iter().enumerate() {
                let asks = SYSTEM_ASKED.iter().any(|word| {
                    line.contains(&format!("cfg({word}"))
                        || line.contains(&format!("cfg_attr({word}"))
                        || line.contains("cfg") && line.contains(&format!("{word} ="))
                });
                let is_of_test = SYSTEMS_OF_TESTS.iter().any(|system| match line.trim() {
                    whole if whole == format!("#![cfg({system})]") => path.starts_with(&tests),
                    one if one == format!("#[cfg({system})]") => lines
                        .get(number + 1)
                        .is_some_and(|next| ["#[test]", "#[tokio::test]"].contains(&next.trim())),
                    _ => false,
                });
                let number = number + 1;
                assert!(
                    !asks || is_of_test,
                    "{}:{number} asks for the system: {line}",
                    path.display()
                );
            }
        }
    }
    assert!(read > 300, "{read} files");
}

/// The words of `cfg` that ask for a system. Which C library it has is `target_env`, and how wide its numbers are
/// `target_pointer_width`: they are no systems.
const SYSTEM_ASKED: [&str; 5] = ["target_os", "target_vendor", "target_family", "unix", "windows"];

/// What a test of one system may ask.
const SYSTEMS_OF_TESTS: [&str; 2] = ["target_os = \"linux\"", "unix"];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    package["dependencies"].as_array().unwrap().iter()
}

fn name(value: &Value) -> &str {
    value["name"].as_str().unwrap()
}
