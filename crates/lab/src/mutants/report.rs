//! The report: how many mutants tests killed, by crate, and each that survived.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::mutant::Mutant;
use super::trial::Fate;
use crate::experiments::report::{Table, save, save_json, tenths};
use crate::provenance;

/// What became of a group's mutants.
pub(crate) struct Judged {
    pub name: &'static str,
    /// How many there are to draw from, and in how many lines.
    pub found: usize,
    pub lines: usize,
    /// How many of those drawn did not compile.
    pub faulty: usize,
    pub mutants: Vec<(usize, Mutant, Fate)>,
}

impl Judged {
    /// How many of its mutants tests killed.
    pub(crate) fn killed(&self) -> usize {
        let killed = |fate: &Fate| matches!(fate, Fate::Killed { .. });
        self.mutants.iter().filter(|(.., fate)| killed(fate)).count()
    }
}

/// Writes `mutants.json` and `mutants.md` into a directory, and prints the second.
///
/// # Errors
/// Errors of the file system.
pub(crate) fn write(judged: &[Judged], seed: u64, quick: bool, directory: &Path) -> io::Result<()> {
    let rates = rates(judged);
    let all: Vec<Value> = judged.iter().flat_map(|group| group.mutants.iter().map(one)).collect();
    let command = provenance::command("mutants");
    let json = json!({
        "command": command,
        "seed": seed,
        "n": all.len(),
        "rates": rates.to_json(),
        "mutants": all,
    });
    let recorded = save_json(directory, "mutants", json, DEPENDS.iter().copied())?;
    let left_out = if quick { QUICK } else { "" };
    let mut text = format!("# Faults that tests notice\n\nMade by `{command}`.\n\n");
    let _ =
        writeln!(text, "{}\n\n{NOTE}{left_out}\n\n{}", recorded.sentence(), rates.to_markdown());
    text.push_str(&survivors(judged));
    save(directory, "mutants.md", &text)?;
    print!("{text}");
    Ok(())
}

/// The rates by group, and in sum.
pub(crate) fn rates(judged: &[Judged]) -> Table {
    let columns = "crate | lines | possible | not compiled | n | killed | survived | % killed";
    let mut table = Table::new("Mutants by crate; a survivor may be equivalent", 1, columns);
    let mut sum = [0; 5];
    for group in judged {
        let counts = [group.lines, group.found, group.faulty, group.mutants.len(), group.killed()];
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
        table.rows.push(row(group.name, counts));
    }
    table.rows.push(row("all", sum));
    table
}

fn row(name: &str, [lines, found, faulty, count, killed]: [usize; 5]) -> Vec<Value> {
    let rate = tenths(killed as f64 * 100.0 / count.max(1) as f64);
    vec![
        json!(name),
        json!(lines),
        json!(found),
        json!(faulty),
        json!(count),
        json!(killed),
        json!(count - killed),
        rate,
    ]
}

fn one((number, mutant, fate): &(usize, Mutant, Fate)) -> Value {
    let (fate, by) = match fate {
        Fate::Unreached => ("unreached", None),
        Fate::Survived => ("survived", None),
        Fate::Killed { by } => ("killed", Some(by)),
    };
    json!({
        "number": number,
        "place": mutant.place(),
        "operator": mutant.operator,
        "original": mutant.original,
        "mutated": mutant.mutated,
        "fate": fate,
        "by": by,
    })
}

fn survivors(judged: &[Judged]) -> String {
    let mut out = String::from("\n## Survivors\n\n");
    let mutants = judged.iter().flat_map(|group| &group.mutants);
    for (number, mutant, fate) in mutants {
        let reached = match fate {
            Fate::Killed { .. } => continue,
            Fate::Survived => "",
            Fate::Unreached => ", which no test reaches",
        };
        let (original, mutated) = (short(&mutant.original), short(&mutant.mutated));
        let change = match mutated.as_str() {
            "" => format!("without `{original}`"),
            _ => format!("`{original}` → `{mutated}`"),
        };
        let (place, operator) = (mutant.place(), mutant.operator);
        let _ = writeln!(out, "- {number}: {place} ({operator}{reached}): {change}");
    }
    out
}

/// A text on one line, cut where it is long.
fn short(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// What the numbers come from.
pub(crate) const DEPENDS: &[&str] = &[
    "Cargo.lock",
    "crates/lab/src/mutants",
    "crates/lab/src/mutants.rs",
    "crates/lab/tests/golden.rs",
    "crates/lab/tests/simulation.rs",
    "crates/lab/tests/streams_simulation",
    "crates/rove/src/copy",
    "crates/session/src",
    "crates/session/tests",
    "crates/ssp/src",
    "crates/ssp/tests",
    "crates/streams/src",
    "crates/streams/tests",
    "crates/term/src",
    "crates/term/tests",
];

const NOTE: &str = "\
Each mutant is one small fault at a random place. All of them are built into one set of test programs, and one at a
time is switched on. The tests that reach it run: first those of its own crate, then those of crates above. A test that
fails, or a program that does not end, kills it. `rove-lab mutants --help` says more.";

const QUICK: &str = " Copies, the simulations and
the longest tests were left out, by which streams' machines are mostly tested: this is the least that is noticed.";
