//! `rove-lab again`: compares a result with a second run of the same command. Each result predicts an interval for
//! the median of another run; this checks whether the second median lies in it.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::experiments::report::Table;
use crate::files::read_text;

/// Holds a result against a second run of the same command: are its medians where the first one said?
#[derive(Args, Clone, Debug)]
pub(crate) struct RepeatabilityFlags {
    /// The first run's JSON
    first: PathBuf,
    /// The second run's JSON
    second: PathBuf,
}

/// Prints a row for each median; the exit status is 1 if fewer than 9 of 10 are inside.
///
/// # Errors
/// If a file cannot be read, or they are not of the same command.
pub(crate) fn run(flags: &RepeatabilityFlags) -> io::Result<i32> {
    let [first, second] = [load(&flags.first)?, load(&flags.second)?];
    if first["command"] != second["command"] {
        return Err(io::Error::other("these are not of the same command"));
    }
    let table = compare(&first, &second);
    let inside = table.rows.iter().filter(|row| row.last() == Some(&json!("yes"))).count();
    print!("# Two runs of `{}`\n\n", first["command"].as_str().unwrap_or_default());
    println!("Made by `rove-lab again`: {inside} of {} medians are inside.\n", table.rows.len());
    print!("{}", table.to_markdown());
    Ok(i32::from(inside * 10 < table.rows.len() * 9 || table.rows.is_empty()))
}

/// A row for each row of the first run that has a median, in any table.
fn compare(first: &Value, second: &Value) -> Table {
    let columns = "table | which | first median | again from | again to | second median | inside";
    let mut table = Table::new("medians of two runs", 2, columns);
    let tables = |result: &'_ Value| result["tables"].as_array().cloned().unwrap_or_default();
    for one in tables(first) {
        let caption = one["caption"].as_str().unwrap_or_default();
        let same = tables(second).into_iter().find(|other| other["caption"] == one["caption"]);
        for (keys, median, from, to) in medians(&one) {
            let again = same.iter().flat_map(medians).find(|row| row.0 == keys).map(|row| row.1);
            let inside = match again {
                None => "missing",
                Some(median) if (from..=to).contains(&median) => "yes",
                Some(_) => "no",
            };
            table.rows.push(vec![
                json!(caption),
                json!(keys),
                json!(median),
                json!(from),
                json!(to),
                json!(again),
                json!(inside),
            ]);
        }
    }
    table
}

/// The row's name, its median, and the interval for a second run's.
fn medians(table: &Value) -> Vec<(String, f64, f64, f64)> {
    let list = |name: &str| table[name].as_array().cloned().unwrap_or_default();
    let columns = list("columns");
    let place = |name: &str| columns.iter().position(|column| column == name);
    let places = (place("median"), place("again from"), place("again to"));
    let (Some(median), Some(from), Some(to)) = places else { return Vec::new() };
    let keys = table["keys"].as_u64().unwrap_or(0) as usize;
    let row = |row: &Value| {
        let number = |at: usize| row.get(at).and_then(Value::as_f64);
        let words = row.as_array()?.iter().take(keys).filter_map(Value::as_str);
        // Whether a link was late is no part of which row it is.
        let words = words.map(|word| word.split(" (INVALID").next().unwrap_or(word));
        let words = words.collect::<Vec<&str>>().join(", ");
        Some((words, number(median)?, number(from)?, number(to)?))
    };
    list("rows").iter().filter_map(row).collect()
}

fn load(path: &Path) -> io::Result<Value> {
    let text = read_text(path, FILE_BYTES_MAX)?;
    serde_json::from_str(&text)
        .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// The longest result.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_found_inside_outside_or_not_at_all() {
        let result = |rows: Value| {
            json!({"command": "x", "tables": [
                {"caption": "a", "keys": 2, "rows": rows,
                 "columns": ["path", "program", "median", "again from", "again to"]},
                {"caption": "b", "keys": 1, "columns": ["claim", "n"], "rows": [["c", 1]]},
            ]})
        };
        let first =
            json!([["p", "q", 5.0, 4.0, 6.0], ["p", "r", 5.0, 4.0, 6.0], ["p", "s", 1, 0, 2]]);
        let second = json!([["p (INVALID: late)", "q", 5.9, 0, 0], ["p", "r", 6.1, 0, 0]]);
        let table = compare(&result(first), &result(second));
        let said: Vec<&str> =
            table.rows.iter().filter_map(|row| row.last().and_then(Value::as_str)).collect();
        assert_eq!(said, ["yes", "no", "missing"]);
        assert_eq!(table.rows[0][1], "p, q");
        assert!(compare(&json!({}), &json!([])).rows.is_empty());
    }
}
