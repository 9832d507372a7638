//! Tests the law of frames on recorded sessions: between any two of their screens a frame leads every dialect's
//! reader to the second one.

use std::path::Path;

use rove_lab::testing::predict::trace::{Kind, Trace};
use rove_term::{Ability, Dialect, Screen, Terminal, announces, frame, project, same};

fn dialects() -> Vec<(&'static str, Dialect)> {
    let ttys =
        ["xterm-256color", "xterm-kitty", "alacritty", "tmux-256color", "screen", "linux", ""];
    let mut all = vec![("mosh", Dialect::MOSH), ("rove", Dialect::ROVE)];
    all.extend(ttys.map(|term| (term, Dialect::tty(term, "truecolor"))));
    all
}

/// The screens after each output of the programs.
fn screens(trace: &Trace) -> Vec<Screen> {
    let mut program = Terminal::new(trace.size, Dialect::ROVE);
    let mut screens = vec![program.screen().clone()];
    for event in &trace.events {
        if let Kind::Output(bytes) = &event.kind {
            program.advance(bytes);
            screens.push(program.screen().clone());
        }
    }
    screens
}

#[test]
fn frames_lead_every_reader_through_the_recordings() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/traces/keystrokes");
    let (mut recordings, mut frames) = (0, 0);
    for entry in std::fs::read_dir(directory).expect("the recordings are there") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|ending| ending != "cast") {
            continue;
        }
        recordings += 1;
        let screens = screens(&Trace::load(Path::new(&path)).expect("a recording"));
        frames += screens.len() - 1;
        for (name, dialect) in dialects() {
            follow(&format!("{} {name:?}", path.display()), &screens, dialect);
        }
    }
    assert_eq!(recordings, 10);
    assert!(frames > 5000, "{frames} frames");
}

/// One reader from the first screen to the last, by frames alone.
fn follow(name: &str, screens: &[Screen], dialect: Dialect) {
    let mut reader = Terminal::resume(project(&screens[0], &dialect), dialect);
    if !dialect.can(Ability::SoftWrap) {
        reader.advance(b"\x1b[?7l");
    }
    let mut bytes = Vec::new();
    for (index, pair) in screens.windows(2).enumerate() {
        bytes.clear();
        frame(&pair[0], &pair[1], &dialect, &mut bytes);
        reader.advance(&bytes);
        let shown = bytes.escape_ascii();
        assert!(same(reader.screen(), &pair[1], &dialect), "{name}: frame {index}: {shown}");
        let quiet = same(&pair[0], &pair[1], &dialect) && !announces(&pair[0], &pair[1], &dialect);
        assert_eq!(bytes.is_empty(), quiet, "{name}: frame {index}: {shown}");
    }
}
