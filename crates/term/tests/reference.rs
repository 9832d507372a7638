//! The recordings of `tests/ref`: what a program writes, the screen it leaves, and the answers. xterm's are
//! recorded from xterm itself (`RECORD=1 cargo test -p rove-lab --test xterm`).

#[path = "ref/cases.rs"]
mod cases;

use cases::{Case, Seen};
use rove_term::{Checksums, Dialect, Resizing, Size, Terminal};

/// As `vtdump` shows it.
fn ours(case: &Case, chunk: usize) -> Seen {
    let (rows, cols) = case.size;
    let mut terminal = Terminal::new(Size::clamped(rows, cols), Dialect::ROVE);
    terminal.set_checksums(Checksums::Answered);
    terminal.set_resizing(Resizing::Obeyed);
    for bytes in case.input.chunks(chunk) {
        terminal.advance(bytes);
    }
    let screen = terminal.screen();
    assert_eq!(screen.fault(), None, "{}", case.name);
    let cursor = screen.cursor();
    Seen { rows: screen.text(), cursor: (cursor.row, cursor.col), reply: terminal.take_replies() }
}

#[test]
fn recordings() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ref");
    let mut count = 0;
    let mut failed = Vec::new();
    for entry in std::fs::read_dir(directory).expect("tests/ref") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a text");
        let (comment, all) = cases::parse(&text);
        assert_eq!(cases::format(&comment, &all), text, "{} in its own format", path.display());
        for case in &all {
            count += 1;
            for chunk in [usize::MAX, 1] {
                if let Some(difference) = cases::difference(case, &ours(case, chunk)) {
                    failed.push(format!("{}: {difference}", path.display()));
                    break;
                }
            }
        }
    }
    assert!(count > 300, "only {count} cases found");
    assert!(failed.is_empty(), "{} of {count} cases\n{}", failed.len(), failed.join("\n"));
}
