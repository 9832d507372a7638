//! Tests `rove-lab record` and `rove-lab replay` on terminals, as a person uses them: a recording holds all keys
//! except those of a password, and its replay answers a person who types the same.

#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::process::Command;
use std::time::Duration;

use common::lab_program;
use rove_lab::testing::run::Program;
use rove_lab::testing::scratch::Scratch;
use rove_term::Size;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

/// Asks for a name and, without echo, for a word; tells both but the word.
const ASKS: &str = "printf 'name: '; read name; stty -echo; printf 'word: '; read word; stty echo; \
                    echo; echo \"$name knows ${#word} letters\"; read end";

/// Answers its questions, each once it is on the screen.
fn answer(program: &mut Program, word: &str) {
    let until = |program: &mut Program, text: &str| {
        program.wait_for(text, LIMIT, |program| program.shows(text)).unwrap();
    };
    until(program, "name:");
    assert!(!program.shows("word:"), "nobody has answered yet");
    program.send("ann\r");
    until(program, "word:");
    assert!(!program.shows("knows"), "nobody has answered yet");
    program.send(format!("{word}\r"));
    until(program, "ann knows 6 letters");
    program.send("\r");
}

#[test]
fn a_session_is_recorded_and_answers_again() {
    let scratch = Scratch::new().unwrap();
    let recording = scratch.join("session.cast");
    let mut record = Command::new(lab_program());
    record.arg("record").arg(&recording).args(["sh", "-c", ASKS]);
    let mut record = Program::start(record, Size::DEFAULT).unwrap();
    answer(&mut record, "secret");
    assert!(record.wait_exit(LIMIT).unwrap().success());

    let text = std::fs::read_to_string(&recording).unwrap();
    assert!(!text.contains("secret"), "{text}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["version"], &lines[0]["width"]), (&2.into(), &80.into()));
    let events = |kind: &str| -> String {
        let these = lines[1..].iter().filter(|event| event[1] == kind);
        these.map(|event| event[2].as_str().unwrap()).collect()
    };
    assert_eq!(events("i"), "ann\r******\r\r");
    assert!(events("o").contains("ann knows 6 letters"), "{text}");
    assert!(events("x").contains("cookedhiddencooked"), "{text}");

    let mut replay = Command::new(lab_program());
    replay.arg("replay").arg(&recording);
    answer(&mut Program::start(replay, Size::DEFAULT).unwrap(), "******");
}
