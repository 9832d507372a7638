//! A figure of a result, as a template names it: `FILE#TABLE: KEY; KEY; COLUMN | UNIT`, with the table's number (from 0)
//! and the keys of its row; `*` is any key. Of several rows `least` or `most` before it takes one, and `A / B` is a ratio.
//!
//! `FILE.md: WORDS; NUMBER | UNIT` is a number of the first line of a text that begins with these words.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A directory of results.
pub(super) struct Results {
    directory: PathBuf,
}

impl Results {
    pub(super) fn new(directory: &Path) -> Results {
        Results { directory: directory.to_owned() }
    }

    /// The figure in words.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn figure(&self, figure: &str) -> Result<String, String> {
        let (figure, unit) = figure.split_once(" | ").ok_or("no unit")?;
        let number = match figure.split_once(" / ") {
            Some((one, other)) => self.number(one)? / self.number(other)?,
            None => self.number(figure)?,
        };
        in_words(number, unit)
    }

    fn number(&self, figure: &str) -> Result<f64, String> {
        let (which, figure) = match figure.split_once(' ') {
            Some(("least", figure)) => (Which::Least, figure),
            Some(("most", figure)) => (Which::Most, figure),
            _ => (Which::Only, figure),
        };
        let (place, keys) = figure.split_once(": ").ok_or("no keys")?;
        let keys: Vec<&str> = keys.split("; ").collect();
        let found = match place.split_once('#') {
            Some((file, table)) => self.in_table(file, table, &keys)?,
            None => vec![self.in_text(place, &keys)?],
        };
        match (which, found.as_slice()) {
            (_, []) => Err("no such row".to_owned()),
            (Which::Only, [number]) => Ok(*number),
            (Which::Only, _) => Err("several rows".to_owned()),
            (Which::Least, all) => Ok(all.iter().copied().fold(f64::INFINITY, f64::min)),
            (Which::Most, all) => Ok(all.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        }
    }

    fn read(&self, file: &str) -> Result<String, String> {
        let path = self.directory.join(file);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The numbers of a column in the rows with these keys; the last of `keys` is the column.
    fn in_table(&self, file: &str, table: &str, keys: &[&str]) -> Result<Vec<f64>, String> {
        let json: Value = serde_json::from_str(&self.read(&format!("{file}.json"))?)
            .map_err(|error| error.to_string())?;
        let table: usize = table.parse().map_err(|_| "no number of a table")?;
        let Numbers { columns, rows } = match &json["quantities"] {
            Value::Array(quantities) => of_quantities(quantities),
            _ => of_table(&json["tables"][table]).ok_or("no such table")?,
        };
        let (column, keys) = keys.split_last().ok_or("no column")?;
        let at = columns.iter().position(|name| name == column).ok_or("no such column")?;
        let is_meant = |row: &&Vec<Value>| {
            keys.len() < row.len()
                && row.iter().zip(keys).all(|(cell, key)| *key == "*" || text(cell) == *key)
        };
        let numbers = rows.iter().filter(is_meant).map(|row| row.get(at)?.as_f64());
        numbers.collect::<Option<Vec<f64>>>().ok_or("a cell without a number".to_owned())
    }

    /// A number of a text's first line that begins with these words.
    fn in_text(&self, file: &str, keys: &[&str]) -> Result<f64, String> {
        let [words, number] = keys else { return Err("not words and a number".to_owned()) };
        let number: usize = number.parse().map_err(|_| "not the number of a number")?;
        let text = self.read(file)?;
        let line =
            text.lines().find_map(|line| line.trim_start_matches(['|', ' ']).strip_prefix(words));
        let numbers = line.ok_or("no such line")?.split_whitespace();
        let mut numbers =
            numbers.filter_map(|word| word.trim_end_matches("ns").parse::<f64>().ok());
        numbers.nth(number).ok_or("no such number".to_owned())
    }
}

#[derive(Clone, Copy)]
enum Which {
    Only,
    Least,
    Most,
}

fn text(cell: &Value) -> String {
    cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)
}

/// A table of a result.
struct Numbers {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

fn of_table(table: &Value) -> Option<Numbers> {
    let columns = table["columns"].as_array()?.iter().map(text).collect();
    let rows = table["rows"].as_array()?.iter().filter_map(Value::as_array).cloned().collect();
    Some(Numbers { columns, rows })
}

/// What `bench` measures as a table: quantity, program, n, median.
fn of_quantities(quantities: &[Value]) -> Numbers {
    let columns = ["quantity", "program", "n", "median"].map(str::to_owned).to_vec();
    let row = |quantity: &Value, program: &str| {
        let summary = &quantity[program]["summary"];
        vec![
            quantity["quantity"].clone(),
            program.into(),
            summary["n"].clone(),
            summary["median"].clone(),
        ]
    };
    let both =
        quantities.iter().flat_map(|quantity| ["rove", "mosh"].map(|name| row(quantity, name)));
    Numbers { columns, rows: both.collect() }
}

/// A number as documents write it.
fn in_words(number: f64, unit: &str) -> Result<String, String> {
    Ok(match unit {
        // A second and more in seconds, in three digits.
        "ms" if number.abs() >= 10_000.0 => format!("{:.1} s", number / 1e3),
        "ms" if number.abs() >= 1_000.0 => format!("{:.2} s", number / 1e3),
        "ms" => format!("{number:.0} ms"),
        "0" => thousands(number),
        "0.0" => format!("{number:.1}"),
        "0.00" => format!("{number:.2}"),
        // Rates over some powers of ten: two digits at least.
        "rate" if number.abs() >= 10.0 => format!("{number:.0}"),
        "rate" => format!("{number:.1}"),
        "KiB as MiB" => format!("{:.1}", number / 1024.0),
        "s as hours" => format!("{:.0}", number / 3600.0),
        _ => return Err(format!("no unit {unit}")),
    })
}

fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut out = String::from(if number < 0.0 { "-" } else { "" });
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn figures_are_found_or_missed() {
        let scratch = Scratch::new().unwrap();
        let table = json!({ "columns": ["path", "program", "ms"],
            "rows": [["a, 1 %", "rove", 1525.4], ["a, 1 %", "mosh", 3.0], ["b", "rove", 7.25]] });
        fs::write(scratch.join("x.json"), json!({ "tables": [table] }).to_string()).unwrap();
        let summary = |median: f64| json!({ "summary": { "n": 5, "median": median } });
        let quantity = json!({ "quantity": "q", "rove": summary(6844.0), "mosh": summary(2.0) });
        fs::write(scratch.join("y.json"), json!({ "quantities": [quantity] }).to_string()).unwrap();
        fs::write(scratch.join("z.md"), "a line\n| dense ASCII   1133 MB/s  81 MB/s\n").unwrap();
        let results = Results::new(scratch.path());
        for (figure, want) in [
            ("x#0: a, 1 %; rove; ms | ms", Ok("1.53 s")),
            ("x#0: b; rove; ms | 0.0", Ok("7.2")),
            ("least x#0: *; rove; ms | 0", Ok("7")),
            ("most x#0: *; rove; ms | 0", Ok("1,525")),
            ("x#0: a, 1 %; rove; ms / x#0: a, 1 %; mosh; ms | rate", Ok("508")),
            ("y#0: q; rove; median | KiB as MiB", Ok("6.7")),
            ("z.md: dense ASCII; 1 | 0", Ok("81")),
            ("x#0: *; rove; ms | 0", Err("several rows")),
            ("x#0: c; rove; ms | 0", Err("no such row")),
            ("x#1: b; rove; ms | 0", Err("no such table")),
            ("x#0: b; rove; s | 0", Err("no such column")),
            ("x#0: b; rove; program | 0", Err("a cell without a number")),
            ("x#0: b; rove; ms | m", Err("no unit m")),
            ("z.md: dense ASCII; 2 | 0", Err("no such number")),
        ] {
            let found = results.figure(figure);
            assert_eq!(found.as_deref().map_err(String::as_str), want, "{figure}");
        }
        assert!(results.figure("gone#0: a; b | 0").unwrap_err().contains("No such file"));
    }

    #[test]
    fn thousands_are_set_apart() {
        for (number, want) in
            [(0.0, "0"), (999.6, "1,000"), (359_532.0, "359,532"), (-1_234_567.0, "-1,234,567")]
        {
            assert_eq!(thousands(number), want);
        }
    }
}
