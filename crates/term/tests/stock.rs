//! `Terminal::new(size, Dialect::MOSH)` against what stock mosh 1.4.0 was seen to do.
#![allow(clippy::unwrap_used, reason = "a test file")]
use rove_term::{Attrs, ColorKind, Dialect, Screen, Size, Style, Terminal, Underline};
use serde_json::Value;

/// The parameters stock mosh restates a rendition with.
fn rendition(style: Style) -> String {
    let mut out = String::from("0");
    let attrs = style.attrs;
    let codes = [
        (attrs.contains(Attrs::BOLD), ";1"),
        (attrs.contains(Attrs::ITALIC), ";3"),
        (attrs.underline() != Underline::None, ";4"),
        (attrs.contains(Attrs::BLINK), ";5"),
        (attrs.contains(Attrs::INVERSE), ";7"),
        (attrs.contains(Attrs::INVISIBLE), ";8"),
    ];
    out.extend(codes.iter().filter(|(set, _)| *set).map(|(_, code)| *code));
    for (color, base) in [(style.fg, 30), (style.bg, 40)] {
        match color.kind() {
            ColorKind::Default => {}
            ColorKind::Indexed(n @ 0..8) => out.push_str(&format!(";{}", base + u32::from(n))),
            ColorKind::Indexed(n) => out.push_str(&format!(";{};5;{n}", base + 8)),
            ColorKind::Rgb(r, g, b) => out.push_str(&format!(";{};2;{r};{g};{b}", base + 8)),
        }
    }
    out
}

/// A row as runs of text and rendition, trailing plain blanks cut.
fn runs(screen: &Screen, row: u16) -> Vec<(String, String)> {
    let mut runs: Vec<(String, String)> = Vec::new();
    let mut hidden = false;
    for cell in screen.row(row).cells() {
        if std::mem::replace(&mut hidden, cell.is_wide()) {
            continue;
        }
        let rendition = rendition(screen.pool().style(cell.style()));
        if runs.last().is_none_or(|(_, last)| *last != rendition) {
            runs.push((String::new(), rendition));
        }
        let (text, _) = runs.last_mut().expect("just pushed");
        screen.pool().push_text(*cell, text);
    }
    if let Some((text, rendition)) = runs.last_mut()
        && rendition == "0"
    {
        text.truncate(text.trim_end_matches(' ').len());
        if text.is_empty() {
            runs.pop();
        }
    }
    runs
}

fn modes_on(screen: &Screen) -> Vec<u64> {
    let modes = screen.modes();
    let mut on: Vec<u64> = Vec::new();
    on.extend(modes.mouse.mode().filter(|mode| *mode == 9).map(u64::from));
    on.extend(modes.reverse_video.then_some(5));
    on.extend(modes.cursor_visible.then_some(25));
    on.extend(modes.mouse.mode().filter(|mode| *mode != 9).map(u64::from));
    on.extend(modes.focus_events.then_some(1004));
    on.extend(modes.mouse_encoding.mode().map(u64::from));
    on.extend(modes.bracketed_paste.then_some(2004));
    on.sort_unstable();
    on
}

fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("hex")).collect()
}

/// The failure of one case, if any.
fn check(case: &Value, size: Size) -> Result<(), String> {
    let mut terminal = Terminal::new(size, Dialect::MOSH);
    terminal.advance(b"\x1bc\x1b]0;\x07");
    terminal.take_replies();
    let before = terminal.screen().clone();
    terminal.advance(&unhex(case["input"].as_str().unwrap()));
    let screen = terminal.screen();
    let equal = |what: &str, have: String, want: String| {
        if have == want { Ok(()) } else { Err(format!("{what}: have {have}, want {want}")) }
    };
    for row in 0..size.rows {
        let want: Vec<(String, String)> = case["rows"][usize::from(row)]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default()
            .iter()
            .map(|run| (run[0].as_str().unwrap().to_owned(), run[1].as_str().unwrap().to_owned()))
            .collect();
        let have = runs(screen, row);
        equal(&format!("row {row}"), format!("{have:?}"), format!("{want:?}"))?;
    }
    let cursor = screen.cursor();
    equal("cursor", format!("[{},{}]", cursor.row, cursor.col), case["cursor"].to_string())?;
    equal("pen", rendition(screen.pen().style), case["pen"].as_str().unwrap().to_owned())?;
    let modes: Value = modes_on(screen).into();
    equal("modes", modes.to_string(), case["modes_on"].to_string())?;
    equal("bell", (screen.bells() > before.bells()).to_string(), case["bell"].to_string())?;
    for (what, have) in [
        ("title", screen.title()),
        ("icon", screen.icon()),
        ("clipboard", Some(screen.clipboard().data.as_str())),
    ] {
        if let Some(want) = case[what].as_str() {
            equal(what, have.unwrap_or_default().to_owned(), want.to_owned())?;
        }
    }
    let reply: String = terminal.take_replies().iter().map(|byte| format!("{byte:02x}")).collect();
    equal("reply", reply, case["reply"].as_str().unwrap().to_owned())
}

#[test]
fn all_emulation_vectors() {
    let vectors: Value = serde_json::from_str(include_str!("vectors/emulation.json")).unwrap();
    let side = |name: &str| u16::try_from(vectors[name].as_u64().unwrap()).unwrap();
    let size = Size::new(side("height"), side("width")).unwrap();
    let cases = vectors["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 125);
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| check(case, size).err().map(|why| format!("{}: {why}", case["name"])))
        .collect();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
}
