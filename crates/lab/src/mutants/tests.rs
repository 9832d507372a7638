use std::fs;
use std::process::Command;

use super::find::find;
use super::trial::Fate;
use super::*;
use crate::scratch::Scratch;

/// A checkout with one crate, `a`, in `crates/a`.
fn checkout(source: &str) -> Scratch {
    let scratch = Scratch::new().unwrap();
    let package = scratch.join("crates/a");
    fs::create_dir_all(package.join("src")).unwrap();
    fs::write(scratch.join("Cargo.toml"), "[workspace]\nresolver = '3'\nmembers = ['crates/a']\n")
        .unwrap();
    let manifest = "[package]\nname = 'a'\nversion = '0.1.0'\nedition = '2024'\n";
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::write(package.join("src/lib.rs"), source).unwrap();
    let git = Command::new("git").args(["init", "-q"]).current_dir(scratch.path()).status();
    assert!(git.unwrap().success());
    scratch
}

fn found(source: &str) -> Vec<(String, String)> {
    let scratch = checkout(source);
    let found = find(scratch.path(), LIBRARY, &[String::new()]).unwrap();
    found.mutants.into_iter().map(|mutant| (mutant.original, mutant.mutated)).collect()
}

const LIBRARY: &str = "crates/a/src/lib.rs";

#[test]
fn faults_are_found_where_they_can_be() {
    for (code, want) in [
        ("a < b;", "a < b -> a <= b, a < b -> a >= b"),
        ("a == b;", "a == b -> a != b"),
        ("x = a + b;", "x = a + b; -> , a + b -> a - b"),
        ("x += ä;", "x += ä -> x -= ä"),
        ("if a { }", "a -> !(a)"),
        ("if let Some(a) = b && a == b { }", "a == b -> a != b"),
        ("while a && b { }", "a && b -> a || b"),
        ("match a { 1 if b => c, 2..=9 => d }", "b -> !(b)"),
        ("f(7_u8);", "f(7_u8); -> , 7_u8 -> 8u8, 7_u8 -> 6u8"),
        ("f()?;", "f()?; -> "),
        ("a.min(b);", "a.min(b); -> , a.min(b) -> a.max(b)"),
        ("let x = !true;", "!true -> true, true -> false"),
        // Computed when the program is built, or no expression.
        (
            "const A: u8 = 1 + 2; static B: u8 = 3; let c: [u8; 4]; [x; 5]; assert!(a < 6); let 7 = x;",
            "",
        ),
    ] {
        let all = found(&format!("fn f() -> T {{ {code} }}"));
        let all: Vec<String> =
            all.into_iter().map(|(from, to)| format!("{from} -> {to}")).collect();
        assert_eq!(all.join(", "), want, "{code}");
    }
}

#[test]
fn functions_return_at_once_if_that_is_simple() {
    let source = "
        fn a() { b() }
        fn b() -> bool { c }
        impl C { fn d(&self) -> Option<u8> { e } const fn f() -> u8 { g } }
        fn h() -> Vec<u8> { i }
        fn empty() {}
    ";
    let want = [
        ("fn a", "return"),
        ("fn b", "return false"),
        ("fn b", "return true"),
        ("fn d", "return None"),
    ];
    assert_eq!(found(source), want.map(|(from, to)| (from.to_owned(), to.to_owned())));
}

#[test]
fn tests_and_texts_are_left_alone() {
    let source = "
        #[cfg(test)] mod tests { fn a() -> bool { b < c } }
        #[cfg(feature = \"x\")] fn d() -> bool { e < f }
        #[test] fn g() { h(1); }
        impl Debug for I { fn fmt(&self) -> Result<(), E> { j(1); } }
        impl fmt::Display for I { fn fmt(&self) -> Result<(), E> { j(1); } }
    ";
    assert_eq!(found(source), []);
}

/// The whole way: mutants that a test notices, hang it, change nothing, or are reached by no test.
#[test]
fn what_tests_notice_is_killed_and_what_they_cannot_survives() {
    let scratch = checkout(
        "#![no_std]
pub fn is_small(a: u8) -> bool { let b = a.min(250); b < 9 }
pub fn count(n: u8) -> u8 { let mut i: u8 = 0; while i != n { i = i.wrapping_add(one()); } i }
fn one() -> u8 { 1 }
pub fn unseen(a: u8, b: u8) -> bool { a == b }
pub fn is_top(a: u8) -> bool { a == 255 }
#[cfg(test)]
mod tests {
    #[test]
    fn small() { assert!(super::is_small(8) && !super::is_small(9) && !super::is_small(255)); }
    #[test]
    fn counted() { assert_eq!(super::count(3), 3); assert!(super::is_top(255) && !super::is_top(254)); }
}
",
    );
    let plan = Plan {
        root: scratch.path().to_owned(),
        work: scratch.join("work"),
        groups: vec![Group {
            name: "a",
            package: "a",
            library: LIBRARY,
            within: vec![LIBRARY.to_owned()],
            judges: &["a"],
        }],
        words: vec!["--lib".to_owned()],
        is_judge: |program| program.package == "a",
        least_seconds: 1,
    };
    fs::write(scratch.join(".gitignore"), "/work\n").unwrap();
    // One of mutants that change the same octets is drawn, so that two seeds see more.
    let mut seen = BTreeMap::new();
    for seed in 1..=2 {
        let flags = MutantsFlags {
            seed,
            count: 100,
            only: Vec::new(),
            quick: false,
            results: scratch.join("results"),
        };
        let mutants = plan.judge(&flags).unwrap().remove(0).mutants;
        // The second time all is known.
        assert_eq!(plan.judge(&flags).unwrap().remove(0).mutants, mutants);
        for (_, mutant, fate) in mutants {
            let change = format!("{} -> {}", mutant.original, mutant.mutated);
            if let Some(before) = seen.insert((mutant.line, change), fate.clone()) {
                assert_eq!(before, fate, "{}", mutant.place());
            }
        }
    }
    // No number that is asked for tells these apart, and `count` comes to its argument by any way.
    let equivalent = [
        "250 -> 249",
        "250 -> 251",
        "0 -> 1",
        "i.wrapping_add(one()) -> i.wrapping_sub(one())",
        "fn one -> return 1",
    ];
    let killed = |by: &str| Fate::Killed { by: format!("a a: {by}") };
    let unlike = [
        (2, "b < 9 -> b <= 9", killed("tests::small")),
        (3, "i != n -> i == n", killed("tests::counted")),
        (4, "1 -> 0", killed("does not end")),
        (5, "a == b -> a != b", Fate::Unreached),
        (6, "255 -> 254", killed("tests::counted")),
    ];
    // Of faults at one place only one is drawn.
    let unlike = unlike.map(|(line, change, want)| ((line, change.to_owned()), want));
    let met = unlike.iter().filter_map(|(key, want)| Some((key, seen.get(key)?, want)));
    let met: Vec<_> = met.collect();
    assert!(met.len() >= 3, "{seen:#?}");
    for (key, fate, want) in met {
        assert_eq!(fate, want, "{key:?}");
    }
    for ((_, change), fate) in &seen {
        assert_eq!(*fate == Fate::Survived, equivalent.contains(&change.as_str()), "{change}");
        // It does not compile: 256 is no u8.
        assert_ne!(change, "255 -> 256");
    }
}
