//! The links and colours that a reader is given, by what it may have and can show.

use rove_term::{Colors, Dialect, Size, Terminal, frame};

use crate::grammar::tty;

/// The frame that shows a reader what a program has drawn.
fn shown(octets: &[u8], dialect: &Dialect) -> String {
    let mut terminal = Terminal::new(Size::clamped(2, 20), Dialect::ROVE);
    let before = terminal.screen().clone();
    terminal.advance(octets);
    let mut out = Vec::new();
    frame(&before, terminal.screen(), dialect, &mut out);
    String::from_utf8(out).expect("UTF-8")
}

/// A terminal gets those that its user may follow, a peer any that OSC 8 allows.
#[test]
fn links() {
    for (id, uri, terminal, peer) in [
        ("", "http://host/", true, true),
        ("a", "https://host/path?a=b;c", true, true),
        ("", "file://desk/etc/hosts", false, true),
        ("", "file://elsewhere/etc/hosts", true, true),
        ("", "http://host/\u{e9}", false, false),
        ("a b", "http://host/", false, false),
        ("\u{e9}", "http://host/", false, false),
    ] {
        let id = if id.is_empty() { String::new() } else { format!("id={id}") };
        let octets = format!("\x1b]8;{id};{uri}\x07link\x1b]8;;\x07");
        for (dialect, may) in [(tty("xterm-256color", ""), terminal), (Dialect::ROVE, peer)] {
            let out = shown(octets.as_bytes(), &dialect);
            assert!(out.contains("link"), "{out:?}");
            assert_eq!(out.contains(uri), may, "{uri}: {out:?}");
            assert_eq!(out.contains("\x1b]8;"), may, "{uri}: {out:?}");
        }
    }
}

/// The steps of the cube are 0, 95, 135, 175, 215 and 255; from the middle between two on the larger one is nearer.
#[test]
fn colours_of_the_cube() {
    let indexed = Dialect::tty("xterm", "").with_colors(Colors::Indexed);
    for (value, step) in [
        (0, 0),
        (47, 0),
        (48, 1),
        (114, 1),
        (115, 2),
        (154, 2),
        (155, 3),
        (194, 3),
        (195, 4),
        (234, 4),
        (235, 5),
        (255, 5),
    ] {
        // Between red and yellow there is no grey.
        let out = shown(format!("\x1b[38;2;255;{value};0mx").as_bytes(), &indexed);
        let index = 16 + 36 * 5 + 6 * step;
        assert!(out.contains(&format!("38;5;{index}m")), "{value}: {out:?}");
    }
}
