//! Tests that the recorded JSON of `results/` makes the recorded Markdown, letter for letter.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

use std::fs;
use std::path::Path;

use rove_lab::testing::experiments::report::{Report, Table};
use rove_lab::testing::plot::Figure;
use rove_lab::testing::provenance::Provenance;
use serde_json::Value;

#[test]
fn markdown_is_made_from_the_recorded_json() {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let (mut whole, mut without_notes) = (0, 0);
    for entry in fs::read_dir(results).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        // Others have a form of their own.
        let (Some(title), Some(tables)) = (json["title"].as_str(), json["tables"].as_array())
        else {
            continue;
        };
        let name = path.file_stem().unwrap().to_str().unwrap();
        let notes = json["notes"].as_array();
        let report = Report {
            name: "recorded",
            title: title.to_owned(),
            command: text(&json["command"]),
            depends: Vec::new(),
            recorded: Provenance::of_result(&json),
            notes: notes.into_iter().flatten().map(text).collect(),
            tables: tables.iter().map(table).collect(),
            figure: Figure { title: String::new(), panels: Vec::new() },
        };
        let recorded = fs::read_to_string(path.with_extension("md")).unwrap();
        let made = report.to_markdown(name);
        if notes.is_some() {
            assert_eq!(recorded, made, "{name}");
            whole += 1;
        } else {
            // Notes of experiments in virtual time stand in their code alone, between the heading and the figure.
            let (heading, rest) = made.split_once("![").unwrap();
            assert!(recorded.starts_with(heading), "{name}: {heading}");
            assert!(recorded.ends_with(&format!("![{rest}")), "{name}: {rest}");
            without_notes += 1;
        }
    }
    assert!(whole >= 15 && without_notes >= 5, "{whole} and {without_notes} results were read");
}

fn table(json: &Value) -> Table {
    let list = |value: &Value| value.as_array().unwrap().clone();
    // Columns are constants of the program.
    let column = |name: &Value| -> &'static str { text(name).leak() };
    Table {
        caption: text(&json["caption"]),
        columns: list(&json["columns"]).iter().map(column).collect(),
        keys: json["keys"].as_u64().unwrap() as usize,
        rows: list(&json["rows"]).iter().map(list).collect(),
    }
}

fn text(json: &Value) -> String {
    json.as_str().unwrap().to_owned()
}
