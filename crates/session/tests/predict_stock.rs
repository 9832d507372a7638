//! Stock's rules against what a stock client was seen to show (`prediction` in the vectors).

mod desk;

use desk::Desk;
use rove_session::predict::{Display, Editing, Settings};
use rove_term::Screen;
use rove_term::style::Underline;
use serde_json::Value;

/// Holds what is shown against the observation of this name.
fn check(desk: &Desk, observed: &Value, mode: &str, name: &str) {
    let found = observed.as_array().expect("the observations are a list").iter();
    let mut found = found.filter(|entry| entry[0] == mode && entry[1] == name);
    let want = &found.next().unwrap_or_else(|| panic!("no observation {mode}: {name}"))[2];
    let shown = desk.shown();
    let parts = match want {
        Value::Array(parts) => parts.clone(),
        part => vec![part.clone()],
    };
    for (part, row) in parts.iter().zip(0..) {
        match part {
            Value::String(text) => {
                let shown = rendered(&shown, row);
                assert!(shown.ends_with(text), "{mode}: {name}: row {row} is {shown:?}");
            }
            cursor => {
                let is = shown.cursor();
                let want = (cursor[0].as_u64(), cursor[1].as_u64());
                let is = (Some(u64::from(is.row)), Some(u64::from(is.col)));
                assert_eq!(is, want, "{mode}: {name}: cursor");
            }
        }
    }
}

/// A row with where its underline begins, as the observations write it.
fn rendered(screen: &Screen, row: u16) -> String {
    let mut out = String::new();
    let mut before = Underline::None;
    for (c, col) in screen.row_text(row).chars().zip(0..) {
        let underline = screen.cell_style(row, col).attrs.underline();
        if underline != before {
            out.push_str(if underline == Underline::Single { "\x1b[4m" } else { "\x1b[0m" });
            before = underline;
        }
        out.push(c);
    }
    out
}

fn observed() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../ssp/tests/vectors/mosh-vectors.json");
    let text = std::fs::read_to_string(path).expect("the vectors are there");
    let mut vectors: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    vectors["prediction"].take()
}

/// A path on which guesses are shown but not marked.
const MIDDLING_MS: u64 = 40;
/// A path on which they are marked too.
const LONG_MS: u64 = 250;

#[test]
fn always() {
    let observed = observed();
    let mut desk = Desk::new(Settings::STOCK.with_display(Display::Always), 1);
    let check = |desk: &Desk, name: &str| check(desk, &observed, "always", name);
    check(desk.types(b"a"), "first key, no echo, no ack");
    check(desk.echoes(b"a").types(b"b"), "second key after first confirmed, unacked");
    check(desk.types(b"cd"), "more keys");
    check(desk.types(b"\x7f"), "DEL key");
    check(desk.reads(b"\x1b[D"), "left arrow");
    check(desk.types(b"Z"), "insert in the middle");
    check(desk.echoes(b""), "echo ack without echo: wrong guesses gone");
    desk.terminal.advance(b"bc");
    desk.types(b"Z");
    assert_eq!(desk.shown().row_text(0), "$ abc", "tentative");
    check(desk.echoes(b"Z"), "key after a miss: tentative again");
}

#[test]
fn long_path() {
    let observed = observed();
    let mut desk = Desk::new(Settings::STOCK, LONG_MS);
    let check = |desk: &Desk, name: &str| check(desk, &observed, "long path adaptive", name);
    check(desk.settles(b"a").types(b"bc"), "confirmed epoch: shown and underlined");
    check(desk.types(b"\r"), "after CR, cursor prediction tentative");
    check(desk.types(b"x"), "key after CR hidden");
    check(desk.echoes(b"bc\r\nx").types(b"y"), "after x confirmed, y shown");
}

#[test]
fn glitches() {
    let observed = observed();
    let mut desk = Desk::new(Settings::STOCK, MIDDLING_MS);
    let check = |desk: &Desk, name: &str| check(desk, &observed, "adaptive short", name);
    check(desk.settles(b"a").types(b"b").wait(120), "pending about 120 ms");
    check(desk.wait(350), "pending about 470 ms");
    check(desk.wait(4_600).wait(1), "pending over 5 s: underlined");

    let mut desk = Desk::new(Settings::STOCK, 1);
    desk.settles(b"a").types(b"b").wait(200);
    assert_eq!(desk.shown().row_text(0), "$ a", "a short path shows nothing ...");
    assert_eq!(desk.wait(60).shown().row_text(0), "$ ab", "... before a glitch");
}

#[test]
fn pastes_and_margins() {
    let observed = observed();
    let always = Settings::STOCK.with_display(Display::Always);
    let mut desk = Desk::new(always, 1);
    desk.settles(b"a").reads(&[b'p'; 150]);
    check(&desk, &observed, "bulk paste of 150", "nothing predicted");
    let mut desk = Desk::new(always, 1);
    desk.settles(&[b'm'; 75]).types(b"abcd");
    check(&desk, &observed, "margin", "typed past column 80");
}

#[test]
fn modes() {
    let observed = observed();
    for (display, mode) in [(Display::Experimental, "experimental"), (Display::Never, "never")] {
        let mut desk = Desk::new(Settings::STOCK.with_display(display), 1);
        check(desk.types(b"a"), &observed, mode, "first key, no ack");
        let mut desk = Desk::new(Settings::STOCK.with_display(display), 1);
        desk.types(b"\rp");
        let Display::Experimental = display else {
            check(&desk, &observed, mode, "after CR");
            continue;
        };
        assert_eq!(desk.shown().row_text(1), "p");
        // For the observation `a` was typed before.
        let mut desk = Desk::new(Settings::STOCK.with_display(display), 1);
        check(desk.types(b"a\rp"), &observed, mode, "after CR");
    }
    let overwrite = Settings::STOCK.with_display(Display::Always).with_editing(Editing::Overwrite);
    let mut desk = Desk::new(overwrite, 1);
    desk.terminal.advance(b"abcdef\x1b[6D");
    let check = |desk: &Desk, name: &str| check(desk, &observed, "overwrite", name);
    check(desk.settles(b"X").types(b"YZ"), "replaces in place");
}

#[test]
fn a_cursor_elsewhere_clears_all() {
    let mut desk = Desk::new(Settings::STOCK.with_display(Display::Always), 1);
    desk.settles(b"a").types(b"b");
    assert_eq!(desk.shown().row_text(0), "$ ab");
    desk.echoes(b"b\x1b[5;5H");
    let cursor = desk.shown().cursor();
    assert_eq!((cursor.row, cursor.col), (4, 4));
    desk.predictor.reset();
    assert_eq!(desk.types(b"c").shown().row_text(4), "", "a new epoch");
}
