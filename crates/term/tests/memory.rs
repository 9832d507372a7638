//! Memory under endless input. Alone in its process, so that nothing else grows.

use rove_term::{Dialect, Size, Terminal};

/// Resident memory in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("VmRSS");
    line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number")
}

#[test]
fn memory_stays_flat() {
    let chunk = |head: &str, body: &str| {
        let mut terminal = Terminal::new(Size::DEFAULT, Dialect::ROVE);
        terminal.advance(head.as_bytes());
        let body = body.repeat((1 << 20) / body.len());
        terminal.advance(body.as_bytes());
        let before = resident();
        for _ in 0..24 {
            terminal.advance(body.as_bytes());
        }
        let grown = resident().saturating_sub(before);
        assert!(grown < 8 << 10, "{head:?} {:?}...: {grown} KiB", &body[..8]);
    };
    chunk("a", "\u{301}");
    chunk("", "a\u{200d}");
    chunk("\x1b]0;", "title");
    chunk("\x1b]52;c;", "QUJD");
    chunk("\x1b]nonsense", "x");
    chunk("\x1bP+q", "4142;");
    chunk("\x1bPx", "4142;");
    chunk("\x1b_G", "kitty");
    chunk("\x1b[", "1;");
    chunk("\x1b[", "1:");
    chunk("", "\x1b[22t");
    chunk("", "\x1b[>5u");
    chunk("", "\x1b[#{");
    chunk("", "\x1b[c");
    chunk("", "\x1b]4;1;?\x07");
}
