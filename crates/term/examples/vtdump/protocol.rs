//! The protocol of `vtdump` with the program that judges the emulator: screens as JSON, and its frames.

use std::error::Error;
use std::io::{BufRead, Read, Write};

use rove_term::{Checksums, Dialect, Resizing, Rgb, Size, Terminal, TerminalProperties};
use serde_json::{Value, json};

#[path = "base64.rs"]
mod base64;

/// A frame longer than this is a mistake of the other side.
const FRAME_BYTES_MAX: u32 = 1 << 30;
/// Octets read at a time, so that no answer is dropped: a terminal keeps 64 KiB of those that nobody takes.
const PIECE_BYTES: usize = 512;

pub type Outcome = Result<(), Box<dyn Error>>;

fn terminal(size: Size) -> Terminal {
    let mut terminal = Terminal::new(size, Dialect::ROVE);
    terminal.set_checksums(Checksums::Answered);
    terminal.set_resizing(Resizing::Obeyed);
    // As an xterm that nobody configured: suites set these two and then expect resets to be no change.
    terminal.set_properties(TerminalProperties {
        foreground: Some(Rgb(0, 0, 0)),
        background: Some(Rgb(255, 255, 255)),
        ..TerminalProperties::default()
    });
    terminal
}

/// Reads all of `input`; every answer to it goes to `replies`.
fn advance(terminal: &mut Terminal, input: &[u8], replies: &mut Vec<u8>) {
    for piece in input.chunks(PIECE_BYTES) {
        terminal.advance(piece);
        replies.extend(terminal.take_replies());
    }
}

fn dump(terminal: &Terminal, replies: &[u8]) -> Value {
    let screen = terminal.screen();
    let cursor = screen.cursor();
    json!({
        "rows": screen.text(),
        "cursor": [cursor.row, cursor.col.min(screen.size().cols - 1)],
        "reply_b64": base64::encode(replies),
    })
}

/// All of one stream.
pub fn plain(size: Size, mut stdin: impl Read, mut out: impl Write) -> Outcome {
    let mut terminal = terminal(size);
    let mut replies = Vec::new();
    let mut chunk = vec![0; 64 << 10];
    loop {
        let len = stdin.read(&mut chunk)?;
        if len == 0 {
            break;
        }
        advance(&mut terminal, &chunk[..len], &mut replies);
    }
    writeln!(out, "{}", dump(&terminal, &replies))?;
    Ok(())
}

/// One case a line, each on a terminal of its own.
pub fn batch(stdin: impl BufRead, mut out: impl Write) -> Outcome {
    for line in stdin.lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let case: Value = serde_json::from_str(&line)?;
        let side = |name: &str, default| case[name].as_i64().unwrap_or(default);
        let mut terminal = terminal(Size::clamped(side("rows", 24), side("cols", 80)));
        let input = case["input_b64"].as_str().ok_or("a case without input_b64")?;
        let mut replies = Vec::new();
        advance(&mut terminal, &base64::decode(input)?, &mut replies);
        writeln!(out, "{}", dump(&terminal, &replies))?;
        out.flush()?;
    }
    Ok(())
}

/// Frames, until there are no more.
pub fn serve(size: Size, mut stdin: impl Read, mut out: impl Write) -> Outcome {
    let mut terminal = terminal(size);
    let mut all_replies = Vec::new();
    let mut head = [0; 5];
    while stdin.read_exact(&mut head).is_ok() {
        let [kind, len @ ..] = head;
        let len = u32::from_le_bytes(len);
        if len > FRAME_BYTES_MAX {
            return Err(format!("a frame of {len} bytes").into());
        }
        let mut payload = vec![0; len as usize];
        stdin.read_exact(&mut payload)?;
        let mut replies = Vec::new();
        match kind {
            b'D' => advance(&mut terminal, &payload, &mut replies),
            b'Z' => {
                let text = String::from_utf8(payload)?;
                let (cols, rows) = text.trim().split_once('x').ok_or("a size is CxR")?;
                terminal.resize(Size::clamped(rows.parse::<i64>()?, cols.parse::<i64>()?));
            }
            b'Q' => {
                let text = dump(&terminal, &all_replies).to_string();
                send(&mut out, b'S', text.as_bytes())?;
                continue;
            }
            _ => return Err(format!("a frame of type {kind:#x}").into()),
        }
        replies.extend(terminal.take_replies());
        send(&mut out, b'R', &replies)?;
        all_replies.extend(replies);
    }
    Ok(())
}

fn send(out: &mut impl Write, kind: u8, payload: &[u8]) -> Outcome {
    out.write_all(&[kind])?;
    out.write_all(&u32::try_from(payload.len())?.to_le_bytes())?;
    out.write_all(payload)?;
    out.flush()?;
    Ok(())
}
