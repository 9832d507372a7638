//! What suites that judge the emulator from outside see of it: `vtdump`'s cases and frames.

#[path = "../examples/vtdump/protocol.rs"]
mod protocol;

use rove_term::Size;
use serde_json::{Value, json};

fn frame(kind: u8, payload: &str) -> Vec<u8> {
    let len = (payload.len() as u32).to_le_bytes();
    [&[kind], &len[..], payload.as_bytes()].concat()
}

/// What comes back for frames, as kinds and texts.
fn served(frames: &[(u8, &str)]) -> Vec<(char, String)> {
    let input: Vec<u8> = frames.iter().flat_map(|(kind, payload)| frame(*kind, payload)).collect();
    let mut out = Vec::new();
    protocol::serve(Size::clamped(2, 7), input.as_slice(), &mut out).expect("frames");
    let mut answers = Vec::new();
    let mut rest = out.as_slice();
    while let Some((head, after)) = rest.split_first_chunk::<5>() {
        let [kind, len @ ..] = *head;
        let (payload, later) = after.split_at(u32::from_le_bytes(len) as usize);
        answers.push((char::from(kind), String::from_utf8_lossy(payload).into_owned()));
        rest = later;
    }
    assert!(rest.is_empty(), "{rest:?}");
    answers
}

#[test]
fn every_case_gets_a_fresh_terminal() {
    // a wide character, a pending wrap, replies, a mark, a screen of one cell
    let cases = [
        (
            10,
            3,
            "YeS4lmIbWzI7MTBIeOS4lg==",
            json!([2, 2]),
            "",
            json!(["a\u{4e16}b", "         x", "\u{4e16}"]),
        ),
        (5, 2, "YWJjZGU=", json!([0, 4]), "", json!(["abcde", ""])),
        (5, 2, "YQpiICA=", json!([1, 4]), "", json!(["a", " b"])),
        (5, 2, "G1s2bng=", json!([0, 1]), "G1sxOzFS", json!(["x", ""])),
        (1, 1, "", json!([0, 0]), "", json!([""])),
    ];
    let lines = cases.iter().map(|(cols, rows, input, ..)| {
        format!("{}\n", json!({"cols": cols, "rows": rows, "input_b64": input}))
    });
    let mut out = Vec::new();
    protocol::batch(lines.collect::<String>().as_bytes(), &mut out).expect("cases");
    let out = String::from_utf8(out).expect("UTF-8");
    let got: Vec<Value> =
        out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(got.len(), cases.len());
    for ((.., input, cursor, reply, rows), got) in cases.iter().zip(got) {
        assert_eq!(got, json!({"cursor": cursor, "reply_b64": reply, "rows": rows}), "{input}");
    }
}

#[test]
fn one_stream_is_one_case() {
    let mut out = Vec::new();
    protocol::plain(Size::clamped(2, 7), "a\nb\u{301}c".as_bytes(), &mut out).expect("a stream");
    let got: Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(got, json!({"cursor": [1, 3], "reply_b64": "", "rows": ["a", " b\u{301}c"]}));
}

/// However many there are: a terminal on its own keeps 64 KiB.
#[test]
fn all_replies_of_a_case() {
    const QUERIES: usize = 10_000;
    let input = "\x1b[18t".repeat(QUERIES);
    let want = "\x1b[8;3;9t".repeat(QUERIES);
    let len = want.len();
    assert!(len > 64 << 10);
    assert_eq!(served(&[(b'Z', "9x3"), (b'D', &input)]).last(), Some(&('R', want)));
    let mut out = Vec::new();
    protocol::plain(Size::clamped(3, 9), input.as_bytes(), &mut out).expect("a stream");
    let got: Value = serde_json::from_slice(&out).expect("JSON");
    // In base64, a third longer.
    let reply = got["reply_b64"].as_str().expect("replies");
    assert_eq!(reply.len(), len.div_ceil(3) * 4);
}

#[test]
fn every_frame_gets_one_answer() {
    let screen = r#"{"cursor":[0,3],"reply_b64":"G1sxOzRS","rows":["abc","",""]}"#;
    let asked = [(b'D', "abc\x1b[6n"), (b'D', ""), (b'Z', "9x3"), (b'Q', ""), (b'D', "\x1b[18t")];
    let want = [('R', "\x1b[1;4R"), ('R', ""), ('R', ""), ('S', screen), ('R', "\x1b[8;3;9t")];
    let want = want.map(|(kind, text)| (kind, text.to_owned()));
    assert_eq!(served(&asked), want);
    // Sequences and characters may be cut anywhere.
    let cut = [(b'D', "\x1b"), (b'D', "[3"), (b'D', "1mx\x1b[6"), (b'D', "n")];
    assert_eq!(served(&cut).last(), Some(&('R', "\x1b[1;2R".to_owned())));
}

#[test]
fn other_frames_are_an_error() {
    for bad in
        [frame(b'X', ""), frame(b'Z', "9"), frame(b'Z', "ax3"), vec![b'D', 255, 255, 255, 255]]
    {
        let mut out = Vec::new();
        assert!(protocol::serve(Size::clamped(2, 7), bad.as_slice(), &mut out).is_err(), "{bad:?}");
    }
}
