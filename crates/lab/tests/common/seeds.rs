//! Which seeds a simulation runs: those that the environment names, or those of the gate.

use std::ops::RangeInclusive;
use std::process::Command;

use rove_lab::testing::rng::Rng;

use crate::common::say;

/// The seeds that run each time, and those of this commit, which are printed.
pub fn of_the_gate(kind: &str, fixed: RangeInclusive<u64>, of_commit: usize) -> Vec<u64> {
    let commit = commit();
    let digits = commit.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    // Outside a repository they are the same each time as well.
    let mut rng = Rng::new(digits.unwrap_or(0));
    let (first, last) = (fixed.start(), fixed.end());
    let own: Vec<u64> = (0..of_commit).map(|_| last + 1 + (rng.next_u64() >> 32)).collect();
    let list: Vec<String> = own.iter().map(u64::to_string).collect();
    say(&format!("{kind}: seeds {first} to {last}, and of commit {commit}: {}", list.join(" ")));
    fixed.chain(own).collect()
}

/// The seeds that the environment names, if it names any.
pub fn chosen() -> Option<Vec<u64>> {
    let [one, several] = ["SEED", "SEEDS"].map(variable);
    seeds_named(one.as_deref(), several.as_deref()).unwrap_or_else(|fault| panic!("{fault}"))
}

/// The seeds that these values of `SEED` and `SEEDS` name. Without either all run, with what must happen in them.
fn seeds_named(one: Option<&str>, several: Option<&str>) -> Result<Option<Vec<u64>>, String> {
    match (one, several) {
        (None, None) => Ok(None),
        (Some(text), None) => {
            let seed = text.parse().map_err(|_| format!("SEED={text} is no number"));
            seed.map(|seed| Some(vec![seed]))
        }
        (None, Some(text)) => {
            let wanted = format!("SEEDS={text} is no span of seeds, as 20 or 2001-9000");
            span(text).map(Some).ok_or(wanted)
        }
        (Some(_), Some(_)) => Err("name SEED or SEEDS, not both".to_owned()),
    }
}

#[test]
fn seeds_that_make_no_sense_are_refused() {
    assert_eq!(seeds_named(None, None), Ok(None));
    assert_eq!(seeds_named(Some("17"), None), Ok(Some(vec![17])));
    assert_eq!(seeds_named(None, Some("3")), Ok(Some(vec![1, 2, 3])));
    assert_eq!(seeds_named(None, Some("7-9")), Ok(Some(vec![7, 8, 9])));
    for (one, several) in [(Some("1-3"), None), (Some(""), None), (Some("1"), Some("1-3"))] {
        assert!(seeds_named(one, several).is_err(), "{one:?} {several:?}");
    }
    for several in ["", "1-", "-3", "9-7", "0", "1,2", "1..3", "all"] {
        assert!(seeds_named(None, Some(several)).is_err(), "{several:?}");
    }
}

/// `20` is the seeds 1 to 20, and `2001-9000` those from the first to the last.
fn span(text: &str) -> Option<Vec<u64>> {
    let (first, last) = text.split_once('-').unwrap_or(("1", text));
    let seeds: Vec<u64> = (first.parse().ok()?..=last.parse().ok()?).collect();
    (!seeds.is_empty()).then_some(seeds)
}

/// The commit that is tested; empty outside a repository.
#[allow(clippy::disallowed_methods, reason = "the commit chooses the seeds")]
fn commit() -> String {
    let told = Command::new("git").args(["rev-parse", "HEAD"]).output();
    let told = told.ok().and_then(|told| String::from_utf8(told.stdout).ok());
    told.unwrap_or_default().trim().to_owned()
}

#[allow(clippy::disallowed_methods, reason = "the environment chooses the seeds")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
