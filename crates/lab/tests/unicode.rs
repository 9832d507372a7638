//! Tests widths and clusters with Unicode's own test files, as Debian's `unicode-data` installs them.
#![allow(clippy::unwrap_used, reason = "a test file")]

use rove_term::{Dialect, Size, Terminal, width};

const FILES: &str = "/usr/share/unicode";

fn lines(name: &str) -> Vec<String> {
    let path = format!("{FILES}/{name}");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{path}: {error}; scripts/install-test-tools installs it"));
    let data = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    data.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn code_points(words: &str) -> String {
    let points = words.split_whitespace().map(|word| u32::from_str_radix(word, 16).unwrap());
    points.filter_map(char::from_u32).collect()
}

#[test]
fn clusters_are_those_of_grapheme_break_test() {
    let tests = lines("auxiliary/GraphemeBreakTest.txt");
    assert!(tests.len() > 500, "{} tests", tests.len());
    let mut failed = Vec::new();
    // To a terminal CR and LF are two controls, and U+2701 is no pictograph any more in our Unicode 17.
    let known = |test: &str| test.contains("000D × 000A") || test.contains("2701");
    for test in tests.iter().filter(|test| !known(test)) {
        let want: Vec<String> = test
            .split('÷')
            .map(|cluster| code_points(&cluster.replace('×', " ")))
            .filter(|cluster| !cluster.is_empty())
            .collect();
        let mut ours: Vec<String> = Vec::new();
        for c in want.concat().chars() {
            match ours.last_mut() {
                Some(cluster) if width::joins(cluster, c) => cluster.push(c),
                _ => ours.push(c.to_string()),
            }
        }
        if ours != want {
            failed.push(format!("{test}: {ours:?}"));
        }
    }
    assert!(failed.is_empty(), "{} of {}\n{}", failed.len(), tests.len(), failed.join("\n"));
}

/// Each emoji is one wide cell, however many characters it is joined of, and the next character stands behind it.
#[test]
fn emoji_are_one_wide_cell() {
    let tests = lines("emoji/emoji-test.txt");
    let mut failed = Vec::new();
    let mut count = 0;
    for test in &tests {
        let (words, status) = test.split_once(';').unwrap();
        if status.trim() == "component" || status.trim() == "unqualified" {
            continue;
        }
        count += 1;
        let emoji = code_points(words);
        let mut terminal = Terminal::new(Size::clamped(2, 10), Dialect::ROVE);
        terminal.advance(format!("{emoji}x").as_bytes());
        let screen = terminal.screen();
        let text = format!("{emoji}x");
        let wide = screen.cell(0, 0).is_some_and(|cell| cell.is_wide());
        if !wide || screen.row_text(0) != text || screen.cursor().col != 3 {
            failed.push(format!("{test}: {:?} {:?}", screen.row_text(0), screen.cursor()));
        }
    }
    assert!(count > 3000, "{count} emoji");
    assert!(failed.is_empty(), "{} of {count}\n{}", failed.len(), failed.join("\n"));
}
