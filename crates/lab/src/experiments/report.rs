//! The results of an experiment: tables as Markdown and JSON, and a figure. The same numbers make the same bytes.

use std::fmt::{Display, Write as _};
use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::plot::Figure;
use crate::provenance::{self, Provenance};

/// One experiment's results.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name of its command and of its files.
    pub name: &'static str,
    /// The title.
    pub title: String,
    /// The command that makes it again.
    pub command: String,
    /// The files and directories, from the root of the repository, of the code that the numbers come from.
    pub depends: Vec<&'static str>,
    /// When and from which code it was recorded; [`Report::write`] fills it in.
    pub recorded: Option<Provenance>,
    /// Explanations for its readers, one paragraph each.
    pub notes: Vec<String>,
    /// The numbers.
    pub tables: Vec<Table>,
    /// The figure.
    pub figure: Figure,
}

/// Numbers under names.
#[derive(Clone, Debug)]
pub struct Table {
    /// The caption.
    pub caption: String,
    /// Names of columns: first `keys` that identify the row, then its results.
    pub columns: Vec<&'static str>,
    /// How many columns say which row it is.
    pub keys: usize,
    /// Rows, as long as `columns`.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// One without rows. `columns` are as they stand in Markdown: `path | program | n`.
    pub fn new(caption: impl Into<String>, keys: usize, columns: &'static str) -> Table {
        let columns = columns.split(" | ").collect();
        Table { caption: caption.into(), columns, keys, rows: Vec::new() }
    }

    /// A number of a row, found by its keys.
    pub fn number(&self, keys: &[Value], column: &str) -> Option<f64> {
        let place = self.columns.iter().position(|name| *name == column)?;
        let row = self.rows.iter().find(|row| row.starts_with(keys))?;
        row.get(place)?.as_f64()
    }

    /// How many samples each row rests on, if a column says so.
    fn samples(&self) -> impl Iterator<Item = u64> {
        let place = self.columns.iter().position(|name| COUNTS.contains(name));
        self.rows.iter().filter_map(move |row| row.get(place?)?.as_u64())
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "caption": self.caption,
            "keys": self.keys,
            "columns": self.columns,
            "rows": self.rows,
        })
    }

    /// As Markdown.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("**{}**\n\n", self.caption);
        let _ = writeln!(out, "| {} |", self.columns.join(" | "));
        let _ = writeln!(out, "|{}", "---|".repeat(self.columns.len()));
        for row in &self.rows {
            let cells = row.iter().map(|cell| match cell {
                Value::String(text) => text.clone(),
                Value::Null => "-".to_owned(),
                other => other.to_string(),
            });
            let _ = writeln!(out, "| {} |", cells.collect::<Vec<String>>().join(" | "));
        }
        out
    }
}

impl Report {
    /// The results of the command of this name; `text` explains them ([`paragraphs`]), and `depends` are the parts of
    /// the lab that they come from, besides those of all experiments in virtual time.
    pub(crate) fn new(
        name: &'static str,
        title: &str,
        text: &str,
        depends: &[&'static str],
        (tables, figure): (Vec<Table>, Figure),
    ) -> Report {
        Report {
            name,
            title: title.to_owned(),
            command: provenance::command(name),
            depends: [VIRTUAL, depends].concat(),
            recorded: None,
            notes: paragraphs(text, &[]),
            tables,
            figure,
        }
    }

    /// Writes `<name>.md`, `<name>.json` and `<name>.svg` into a directory, and prints the first.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn write(self, directory: &Path) -> io::Result<()> {
        let (name, json) = (self.name, self.to_json());
        self.write_as(directory, name, json)
    }

    /// The same under another name, and with this JSON.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(crate) fn write_as(mut self, directory: &Path, name: &str, json: Value) -> io::Result<()> {
        let depends = self.depends.iter().copied();
        self.recorded = Some(save_json(directory, name, json, depends)?);
        save(directory, &format!("{name}.svg"), &self.figure.to_svg())?;
        let markdown = self.to_markdown(name);
        save(directory, &format!("{name}.md"), &markdown)?;
        print!("{markdown}");
        Ok(())
    }

    /// The tables as JSON, and the least and the most that one of their rows rests on.
    pub fn to_json(&self) -> Value {
        let tables = self.tables.iter().map(Table::to_json);
        let samples = self.tables.iter().flat_map(Table::samples);
        json!({
            "title": self.title,
            "command": self.command,
            "n": range_of(samples),
            "tables": tables.collect::<Vec<Value>>(),
        })
    }

    /// As Markdown, with the figure in `<file>.svg`.
    pub fn to_markdown(&self, file: &str) -> String {
        let mut out = format!("# {}\n\nMade by `{}`.\n\n", self.title, self.command);
        if let Some(recorded) = &self.recorded {
            let _ = writeln!(out, "{}\n", recorded.sentence());
        }
        for note in &self.notes {
            let _ = writeln!(out, "{note}\n");
        }
        let _ = writeln!(out, "![{}]({file}.svg)\n", self.title);
        let tables = self.tables.iter().map(Table::to_markdown);
        out + &tables.collect::<Vec<String>>().join("\n")
    }
}

/// The least and the most of these, as results name how many samples a figure rests on; null without any.
pub(crate) fn range_of(counts: impl Iterator<Item = u64>) -> Value {
    let bounds = |(least, most): (u64, u64), count: u64| (least.min(count), most.max(count));
    match counts.map(|count| (count, count)).reduce(|all, (count, _)| bounds(all, count)) {
        Some((least, most)) => json!({ "least": least, "most": most }),
        None => Value::Null,
    }
}

/// Columns that count samples.
const COUNTS: [&str; 6] = ["n", "keys", "states", "writes", "runs", "outages"];

/// Writes the numbers of a result into `<name>.json`, with where they come from beside them, which is returned: no
/// result has numbers without it.
///
/// # Errors
/// Errors of the file system.
pub(crate) fn save_json<'a>(
    directory: &Path,
    name: &str,
    mut json: Value,
    depends: impl IntoIterator<Item = &'a str>,
) -> io::Result<Provenance> {
    let recorded = Provenance::of_this_process(depends);
    json["recorded"] = recorded.to_json();
    save(directory, &format!("{name}.json"), &format!("{json:#}\n"))?;
    Ok(recorded)
}

/// Writes a file of a directory of results, which is made if it is not there.
///
/// # Errors
/// Errors of the file system.
pub(crate) fn save(directory: &Path, name: &str, text: &str) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::write(directory.join(name), text)
}

/// The paragraphs of a text, the lines of each joined, with each `{name}` replaced by its value.
pub(crate) fn paragraphs(text: &str, values: &[(&str, &dyn Display)]) -> Vec<String> {
    let joined = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<&str>>().join(" ");
    let filled = |paragraph: &str| {
        values.iter().fold(joined(paragraph), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), &value.to_string())
        })
    };
    text.split("\n\n").map(filled).collect()
}

/// What the numbers of all experiments in virtual time come from.
pub const VIRTUAL: &[&str] = &[
    "Cargo.lock",
    "crates/lab/src/address.rs",
    "crates/lab/src/attacker.rs",
    "crates/lab/src/byte_stream.rs",
    "crates/lab/src/ends.rs",
    "crates/lab/src/experiments.rs",
    "crates/lab/src/experiments/report.rs",
    "crates/lab/src/internet.rs",
    "crates/lab/src/link",
    "crates/lab/src/link.rs",
    "crates/lab/src/local_clock.rs",
    "crates/lab/src/opportunities.rs",
    "crates/lab/src/rng.rs",
    "crates/lab/src/trace_hash.rs",
    "crates/lab/src/world.rs",
    "crates/lab/src/world/network.rs",
    "crates/lab/src/world/node.rs",
    "crates/session/src",
    "crates/ssp/src",
    "crates/term/src",
];

/// A number with one digit behind the point: what tables hold.
pub(crate) fn tenths(number: f64) -> Value {
    json!((number * 10.0).round() / 10.0)
}

/// A number with two digits behind the point.
pub(crate) fn hundredths(number: f64) -> Value {
    json!((number * 100.0).round() / 100.0)
}

/// The same with three.
pub(crate) fn thousandths(number: f64) -> Value {
    json!((number * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_joined_and_filled() {
        let text = "For {seconds} s\nof {seconds}: {what}.\n\nThe end.\n";
        let filled = paragraphs(text, &[("seconds", &12), ("what", &"all")]);
        assert_eq!(filled, ["For 12 s of 12: all.", "The end."]);
    }
}
