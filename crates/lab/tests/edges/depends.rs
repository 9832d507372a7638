//! Checks the code that experiments in virtual time name as theirs: a result is stale once any of it has changed.

use std::collections::BTreeSet;

use rove_lab::testing::experiments::report::VIRTUAL;
use rove_lab::testing::experiments::{collection, flood, loss, pace, reference, roam, scrollback};

use crate::cycles::{graph, reached};
use crate::source::{Source, root};

/// Files that experiments use and that decide no number: figures, files of traces, the date, threads, and where results go.
const NO_NUMBERS: [&str; 6] =
    ["clock.rs", "files.rs", "plot.rs", "pool.rs", "process.rs", "provenance.rs"];

#[test]
fn experiments_name_the_code_that_they_depend_on() {
    let source = Source::read("lab");
    let graph = graph(&source, |file, _| file.to_owned());
    let mut missing = Vec::new();
    for (name, own) in [
        ("collection", collection::DEPENDS),
        ("scrollback", scrollback::DEPENDS),
        ("flood", flood::DEPENDS),
        ("loss", loss::DEPENDS),
        ("pace", pace::DEPENDS),
        ("reference", reference::DEPENDS),
        ("roam", roam::DEPENDS),
    ] {
        let named: BTreeSet<&str> = own.iter().chain(VIRTUAL).copied().collect();
        for path in &named {
            assert!(root().join(path).exists(), "{name}: there is no {path}");
        }
        for file in reached(&graph, &format!("experiments/{name}.rs")) {
            let path = format!("crates/lab/src/{file}");
            let is_named = named.iter().any(|named| path.starts_with(named));
            if !is_named && !NO_NUMBERS.contains(&file.as_str()) {
                missing.push(format!("{name}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "not named:\n{}", missing.join("\n"));
}
