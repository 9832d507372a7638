//! Every control function: bytes, the rows they leave on a screen of 10 columns and 5 rows, and the cursor.
//! xterm's behaviour is the arbiter.

use rove_term::{Dialect, Size, Terminal, TerminalProperties};

/// Rows `aaaaaaaaaa` to `eeeeeeeeee`, cursor home.
const FULL: &str = "aaaaaaaaaa\r\nbbbbbbbbbb\r\ncccccccccc\r\ndddddddddd\r\neeeeeeeeee\x1b[H";

/// The longest of the flags that fonts have.
const ENGLAND: &str = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
const FLAG_AND_TAG: &[&str] = &["\u{1f3f4}\u{e0061}"];

type Case = (&'static str, &'static str, &'static [&'static str], (u16, u16));

fn check(cases: &[Case]) {
    let mut failed = Vec::new();
    for (name, input, rows, cursor) in cases {
        let mut terminal = Terminal::new(Size::clamped(5, 10), Dialect::ROVE);
        terminal.advance(input.replace("{full}", FULL).as_bytes());
        let screen = terminal.screen();
        let mut text = screen.text();
        text.truncate(text.iter().rposition(|row| !row.is_empty()).map_or(0, |last| last + 1));
        let at = screen.cursor();
        if text != *rows || (at.row, at.col) != *cursor || screen.fault().is_some() {
            failed.push(format!(
                "{name}: {text:?} {:?} {:?}, want {rows:?} {cursor:?}",
                (at.row, at.col),
                screen.fault()
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn motion() {
    check(&[
        ("CUP", "\x1b[3;4Hx", &["", "", "   x"], (2, 4)),
        ("CUP clamps", "\x1b[99;99Hx", &["", "", "", "", "         x"], (4, 9)),
        ("CUP of 0", "\x1b[0;0Hx", &["x"], (0, 1)),
        ("HVP", "\x1b[2;2fx", &["", " x"], (1, 2)),
        ("CUU", "\x1b[4;4H\x1b[2Ax", &["", "   x"], (1, 4)),
        ("CUU stops at the margin", "\x1b[2;4r\x1b[4;1H\x1b[9Ax", &["", "x"], (1, 1)),
        ("CUU above the margin", "\x1b[3;4r\x1b[2;1H\x1b[9Ax", &["x"], (0, 1)),
        ("CUD", "\x1b[2Bx", &["", "", "x"], (2, 1)),
        ("CUD stops at the margin", "\x1b[2;4r\x1b[9Bx", &["", "", "", "x"], (3, 1)),
        ("CUF", "\x1b[3Cx", &["   x"], (0, 4)),
        ("CUF stops at the margin", "\x1b[?69h\x1b[2;5s\x1b[1;3H\x1b[9Cx", &["    x"], (0, 4)),
        ("CUB", "abc\x1b[2Dx", &["axc"], (0, 2)),
        ("CUB stops at the margin", "\x1b[?69h\x1b[3;6s\x1b[1;5H\x1b[9Dx", &["  x"], (0, 3)),
        ("CNL", "ab\x1b[2Ex", &["ab", "", "x"], (2, 1)),
        ("CPL", "\x1b[3;3Hab\x1b[2Fx", &["x", "", "  ab"], (0, 1)),
        ("CHA", "abc\x1b[2Gx", &["axc"], (0, 2)),
        ("HPA", "abc\x1b[2`x", &["axc"], (0, 2)),
        ("HPR", "a\x1b[3ax", &["a   x"], (0, 5)),
        ("HPB", "abcd\x1b[3jx", &["axcd"], (0, 2)),
        ("VPA", "a\x1b[3dx", &["a", "", " x"], (2, 2)),
        ("VPR", "a\x1b[2ex", &["a", "", " x"], (2, 2)),
        ("VPB", "\x1b[4;1Ha\x1b[2kx", &["", " x", "", "a"], (1, 2)),
        ("BS", "ab\x08\x08\x08x", &["xb"], (0, 1)),
        ("HT, CBT", "\tx\x1b[Zy", &["        y"], (0, 9)),
        ("CHT ends at the last column", "\x1b[9Ix", &["         x"], (0, 9)),
        ("HTS, TBC", "\x1b[4G\x1bH\x1b[1G\x1b[9G\x1b[g\r\tx", &["   x"], (0, 4)),
        ("TBC 3", "\x1b[3g\tx", &["         x"], (0, 9)),
        ("DECST8C", "\x1b[3g\x1b[?5W\tx", &["        x"], (0, 9)),
        ("IND, NEL, RI", "a\x1bDb\x1bEc\x1bMd", &["a", " d", "c"], (1, 2)),
        (
            "RI scrolls",
            "{full}\x1bMx",
            &["x", "aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc", "dddddddddd"],
            (0, 1),
        ),
        (
            "LF scrolls",
            "{full}\x1b[5;1H\nx",
            &["bbbbbbbbbb", "cccccccccc", "dddddddddd", "eeeeeeeeee", "x"],
            (4, 1),
        ),
        ("LNM", "\x1b[20hab\nc", &["ab", "c"], (1, 1)),
        ("DECSC, DECRC", "ab\x1b7\x1b[4;4H\x1b8x", &["abx"], (0, 3)),
        ("SCOSC, SCORC", "ab\x1b[s\x1b[4;4H\x1b[ux", &["abx"], (0, 3)),
        ("DECRC unsaved is home", "\x1b[3;3H\x1b8x", &["x"], (0, 1)),
        ("DECOM", "\x1b[2;4r\x1b[?6h\x1b[1;1Hx\x1b[9;1Hy", &["", "x", "", "y"], (3, 1)),
        ("DECOM homes", "\x1b[3;4r\x1b[?6hx", &["", "", "x"], (2, 1)),
        (
            "DECFI scrolls",
            "{full}\x1b[1;10H\x1b9x",
            &["aaaaaaaaax", "bbbbbbbbb", "ccccccccc", "ddddddddd", "eeeeeeeee"],
            (0, 9),
        ),
        (
            "DECBI scrolls",
            "{full}\x1b6x",
            &["xaaaaaaaaa", " bbbbbbbbb", " ccccccccc", " ddddddddd", " eeeeeeeee"],
            (0, 1),
        ),
    ]);
}

#[test]
fn wrapping() {
    check(&[
        ("deferred", "0123456789", &["0123456789"], (0, 9)),
        ("next wraps", "0123456789x", &["0123456789", "x"], (1, 1)),
        ("CR forgets", "0123456789\rx", &["x123456789"], (0, 1)),
        ("CUB counts from the last column", "0123456789\x1b[Dx", &["01234567x9"], (0, 9)),
        ("EL clears the last column", "0123456789\x1b[K", &["012345678"], (0, 9)),
        ("autowrap off", "\x1b[?7l0123456789xyz", &["012345678z"], (0, 9)),
        ("DECRC restores it", "0123456789\x1b7\x1b[3;3H\x1b8x", &["0123456789", "x"], (1, 1)),
        ("SGR keeps it", "0123456789\x1b[1mx", &["0123456789", "x"], (1, 1)),
        (
            "scrolls",
            "{full}\x1b[5;1H0123456789x",
            &["bbbbbbbbbb", "cccccccccc", "dddddddddd", "0123456789", "x"],
            (4, 1),
        ),
        ("at the right margin", "\x1b[?69h\x1b[3;6s\x1b[1;3Habcdef", &["  abcd", "  ef"], (1, 4)),
        ("wide at the edge", "\x1b[1;10H\u{4e16}", &["", "\u{4e16}"], (1, 2)),
        ("wide, autowrap off", "\x1b[?7l\x1b[1;10H\u{4e16}", &[], (0, 9)),
        ("reverse", "\x1b[?45h0123456789ab\r\x08x", &["012345678x", "ab"], (0, 9)),
        ("reverse", "\x1b[?45hab\r\nc\x08\x08\x08x", &["ab      x", "c"], (0, 9)),
        ("reverse from the first line", "\x1b[?45h\x08x", &["", "", "", "", "         x"], (4, 9)),
        ("extended reverse", "\x1b[?1045hab\r\nc\x08\x08x", &["ab       x", "c"], (0, 9)),
    ]);
}

#[test]
fn erasing_and_editing() {
    check(&[
        ("EL 0", "abcdef\x1b[3D\x1b[K", &["abc"], (0, 3)),
        ("EL 1", "abcdef\x1b[3D\x1b[1K", &["    ef"], (0, 3)),
        ("EL 2", "abcdef\x1b[3D\x1b[2K", &[], (0, 3)),
        ("ED 0", "{full}\x1b[3;5H\x1b[J", &["aaaaaaaaaa", "bbbbbbbbbb", "cccc"], (2, 4)),
        (
            "ED 1",
            "{full}\x1b[3;5H\x1b[1J",
            &["", "", "     ccccc", "dddddddddd", "eeeeeeeeee"],
            (2, 4),
        ),
        ("ED 2", "{full}\x1b[3;5H\x1b[2J", &[], (2, 4)),
        ("ED 3 spares the screen", "abc\x1b[3J", &["abc"], (0, 3)),
        ("ECH", "abcdef\x1b[2G\x1b[3X", &["a   ef"], (0, 1)),
        ("ICH", "abcdef\x1b[2G\x1b[2@", &["a  bcdef"], (0, 1)),
        ("ICH pushes out", "0123456789\x1b[2G\x1b[3@", &["0   123456"], (0, 1)),
        ("DCH", "abcdef\x1b[2G\x1b[2P", &["adef"], (0, 1)),
        ("DCH too many", "abcdef\x1b[2G\x1b[99P", &["a"], (0, 1)),
        (
            "ICH in margins",
            "{full}\x1b[?69h\x1b[3;6s\x1b[1;4H\x1b[2@",
            &["aaa  aaaaa", "bbbbbbbbbb", "cccccccccc", "dddddddddd", "eeeeeeeeee"],
            (0, 3),
        ),
        ("DCH in margins", "0123456789\x1b[?69h\x1b[3;6s\x1b[1;4H\x1b[1P", &["01245 6789"], (0, 3)),
        (
            "DCH outside margins",
            "0123456789\x1b[?69h\x1b[3;6s\x1b[1;1H\x1b[1P",
            &["0123456789"],
            (0, 0),
        ),
        (
            "IL",
            "{full}\x1b[2;3H\x1b[2L",
            &["aaaaaaaaaa", "", "", "bbbbbbbbbb", "cccccccccc"],
            (1, 0),
        ),
        ("DL", "{full}\x1b[2;3H\x1b[2M", &["aaaaaaaaaa", "dddddddddd", "eeeeeeeeee"], (1, 0)),
        (
            "IL in margins",
            "{full}\x1b[2;4r\x1b[3;1H\x1b[9L",
            &["aaaaaaaaaa", "bbbbbbbbbb", "", "", "eeeeeeeeee"],
            (2, 0),
        ),
        (
            "IL outside margins",
            "{full}\x1b[2;4r\x1b[1;3H\x1b[L",
            &["aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc", "dddddddddd", "eeeeeeeeee"],
            (0, 2),
        ),
        (
            "DL between side margins",
            "{full}\x1b[?69h\x1b[2;4s\x1b[2;3H\x1b[M",
            &["aaaaaaaaaa", "bcccbbbbbb", "cdddcccccc", "deeedddddd", "e   eeeeee"],
            (1, 1),
        ),
        ("IRM", "abc\r\x1b[4hxy", &["xyabc"], (0, 2)),
        ("IRM wide", "abc\r\x1b[4h\u{4e16}", &["\u{4e16}abc"], (0, 2)),
        (
            "IRM in margins",
            "0123456789\x1b[?69h\x1b[3;6s\x1b[1;3H\x1b[4hx",
            &["01x2346789"],
            (0, 3),
        ),
        ("REP", "ab\x1b[3bc", &["abbbbc"], (0, 6)),
        ("REP wraps", "a\x1b[12b", &["aaaaaaaaaa", "aaa"], (1, 3)),
        ("REP in insert mode", "xyz\x1b[4h\ra\x1b[2b", &["aaaxyz"], (0, 3)),
        ("REP of a cluster, as xterm", "e\u{301}\x1b[2b", &["e\u{301}ee"], (0, 3)),
        ("REP of a wide one", "\u{4e16}\x1b[2b", &["\u{4e16}\u{4e16}\u{4e16}"], (0, 6)),
        ("SU", "{full}\x1b[2S", &["cccccccccc", "dddddddddd", "eeeeeeeeee"], (0, 0)),
        ("SD", "{full}\x1b[2T", &["", "", "aaaaaaaaaa", "bbbbbbbbbb", "cccccccccc"], (0, 0)),
        ("SD, the other spelling", "{full}\x1b[4^", &["", "", "", "", "aaaaaaaaaa"], (0, 0)),
        (
            "SU in margins",
            "{full}\x1b[2;4r\x1b[S",
            &["aaaaaaaaaa", "cccccccccc", "dddddddddd", "", "eeeeeeeeee"],
            (0, 0),
        ),
        (
            "SU between side margins",
            "{full}\x1b[?69h\x1b[2;3s\x1b[2;4r\x1b[S",
            &["aaaaaaaaaa", "bccbbbbbbb", "cddccccccc", "d  ddddddd", "eeeeeeeeee"],
            (0, 0),
        ),
        ("SL", "0123456789\x1b[2 @", &["23456789"], (0, 9)),
        ("SR", "0123456789\x1b[2 A", &["  01234567"], (0, 9)),
        (
            "DECIC",
            "{full}\x1b[1;3H\x1b[2'}",
            &["aa  aaaaaa", "bb  bbbbbb", "cc  cccccc", "dd  dddddd", "ee  eeeeee"],
            (0, 2),
        ),
        ("DECDC", "0123456789\x1b[1;3H\x1b[2'~", &["01456789"], (0, 2)),
        ("DECALN", "\x1b#8", &["EEEEEEEEEE"; 5], (0, 0)),
        ("half of a wide overwritten, right", "\u{4e16}\x1b[2Gx", &[" x"], (0, 2)),
        ("half of a wide overwritten, left", "\u{4e16}y\rx", &["x y"], (0, 1)),
        ("half of a wide erased", "\u{4e16}y\x1b[2G\x1b[X", &["  y"], (0, 1)),
    ]);
}

#[test]
fn rectangles_and_protection() {
    check(&[
        ("DECFRA", "\x1b[88;2;3;4;5$x", &["", "  XXX", "  XXX", "  XXX"], (0, 0)),
        ("DECFRA takes no line separator", "\x1b[8232;1;1;5;40$x", &[], (0, 0)),
        ("nor an interlinear annotation", "\x1b[65529;1;1;5;40$x", &[], (0, 0)),
        (
            "DECERA",
            "{full}\x1b[2;3;4;5$z",
            &["aaaaaaaaaa", "bb   bbbbb", "cc   ccccc", "dd   ddddd", "eeeeeeeeee"],
            (0, 0),
        ),
        ("DECCRA", "0123456789\x1b[1;2;1;4;1;3;6;1$v", &["0123456789", "", "     123"], (0, 9)),
        ("DECCRA over itself", "0123456789\x1b[1;1;1;5;1;1;3;1$v", &["0101234789"], (0, 9)),
        (
            "DECERA in origin mode",
            "{full}\x1b[2;4r\x1b[?6h\x1b[1;1;1;2$z",
            &["aaaaaaaaaa", "  bbbbbbbb", "cccccccccc", "dddddddddd", "eeeeeeeeee"],
            (1, 0),
        ),
        ("DECSED spares", "a\x1b[1\"qb\x1b[0\"qc\x1b[?2J", &[" b"], (0, 3)),
        ("DECSEL spares", "a\x1b[1\"qb\x1b[2\"qc\x1b[?2K", &[" b"], (0, 3)),
        ("DECSERA spares", "a\x1b[1\"qb\x1b[0\"qc\x1b[1;1;1;3${", &[" b"], (0, 3)),
        ("ED ignores DECSCA", "a\x1b[1\"qb\x1b[2J", &[], (0, 2)),
        ("ED obeys SPA", "a\x1bVb\x1bWc\x1b[2J", &[" b"], (0, 3)),
        ("ECH obeys SPA", "a\x1bVb\x1bWc\r\x1b[3X", &[" b"], (0, 0)),
    ]);
}

#[test]
fn characters() {
    check(&[
        ("graphics", "\x1b(0lqk\x1b(B.", &["┌─┐."], (0, 4)),
        ("SO and SI", "\x1b)0a\x0eq\x0fq", &["a─q"], (0, 3)),
        ("SS2", "\x1b*0q\x1bNqq", &["q─q"], (0, 3)),
        ("SS3", "\x1b+0\x1bOxx", &["│x"], (0, 2)),
        ("LS2", "\x1b*0\x1bnq\x0fq", &["─q"], (0, 2)),
        ("UK", "\x1b(A#\x1b(B#", &["£#"], (0, 2)),
        ("wide", "\u{4e16}\u{754c}!", &["\u{4e16}\u{754c}!"], (0, 5)),
        ("combining", "e\u{301}x", &["e\u{301}x"], (0, 2)),
        ("combining at the edge", "012345678e\u{301}x", &["012345678e\u{301}", "x"], (1, 1)),
        ("combining after a move", "ab\x1b[2G\u{301}", &["a\u{301}b"], (0, 1)),
        ("combining first", "\u{301}x", &["x"], (0, 1)),
        ("joined emoji", "\u{1f468}\u{200d}\u{1f469}x", &["\u{1f468}\u{200d}\u{1f469}x"], (0, 3)),
        (
            "joined emoji, mode off",
            "\x1b[?2027l\u{1f468}\u{200d}\u{1f469}x",
            &["\u{1f468}\u{1f469}x"],
            (0, 5),
        ),
        ("flag", "\u{1f1e9}\u{1f1ea}x", &["\u{1f1e9}\u{1f1ea}x"], (0, 3)),
        (
            "two flags",
            "\u{1f1e9}\u{1f1ea}\u{1f1eb}\u{1f1f7}",
            &["\u{1f1e9}\u{1f1ea}\u{1f1eb}\u{1f1f7}"],
            (0, 4),
        ),
        ("a move parts a flag", "\u{1f1e9}\x1b[2G\u{1f1ea}", &["\u{1f1e9}\u{1f1ea}"], (0, 2)),
        ("presentation selector widens", "\u{2764}\u{fe0f}x", &["\u{2764}\u{fe0f}x"], (0, 3)),
        (
            "and wraps where it must",
            "012345678\u{2764}\u{fe0f}x",
            &["012345678", "\u{2764}\u{fe0f}x"],
            (1, 3),
        ),
        ("modifier", "\u{1f44d}\u{1f3fd}x", &["\u{1f44d}\u{1f3fd}x"], (0, 3)),
        ("jamo", "\u{1112}\u{1161}\u{11ab}x", &["\u{1112}\u{1161}\u{11ab}x"], (0, 3)),
        ("controls of bidi are dropped", "a\u{202e}b", &["ab"], (0, 2)),
        ("tags are dropped", "a\u{e0061}\u{e007f}b\u{e0001}\x1b[9G\u{e0061}", &["ab"], (0, 8)),
        ("except in a flag", ENGLAND, &[ENGLAND], (0, 2)),
        ("except in a flag, mode off", "\x1b[?2027l\u{1f3f4}\u{e0061}", FLAG_AND_TAG, (0, 2)),
        ("tags behind a flag", "\u{1f3f4}\u{e0041}\u{e0061}\u{e0020}", FLAG_AND_TAG, (0, 2)),
        ("tags behind a marked flag", "\u{1f3f4}\u{301}\u{e0061}", &["\u{1f3f4}\u{301}"], (0, 2)),
        ("tags behind a flag after a move", "\u{1f3f4}\x1b[3G\u{e0061}", &["\u{1f3f4}"], (0, 2)),
        ("soft hyphen", "a\u{ad}b", &["a\u{ad}b"], (0, 3)),
        ("ill-formed", "a", &["a"], (0, 1)),
        ("NUL and DEL", "a\0b\x7fc", &["abc"], (0, 3)),
        ("C1 as characters", "a\u{85}b\u{9b}3Cx\x1b[\u{9b}2\u{9c}Cy", &["ab3Cx  y"], (0, 8)),
        ("double width halves the line", "\x1b#6abcdefg", &["abcde", "fg"], (1, 2)),
    ]);
}

#[test]
fn screens_and_strings() {
    check(&[
        ("1049", "ab\x1b[?1049hxy\x1b[?1049lc", &["abc"], (0, 3)),
        ("1049 starts blank", "ab\x1b[?1049hx\x1b[?1049l\x1b[?1049h", &[], (0, 2)),
        ("47 keeps", "ab\x1b[?47h\x1b[HX\x1b[?47l\x1b[?47h", &["X"], (0, 1)),
        ("1047 clears on leaving", "ab\x1b[?1047h\x1b[HX\x1b[?1047l\x1b[?1047h", &[], (0, 1)),
        ("1048", "ab\x1b[?1048h\x1b[4;4H\x1b[?1048lc", &["abc"], (0, 3)),
        ("RIS", "\x1b[4hab\x1b[3;3H\x1b[?6h\x1bcx", &["x"], (0, 1)),
        ("DECSTR keeps the screen", "ab\x1b[4h\x1b[!p\rx", &["xb"], (0, 1)),
        ("OSC ends with BEL", "\x1b]0;t\x07x", &["x"], (0, 1)),
        ("OSC ends with ST", "\x1b]0;t\x1b\\x", &["x"], (0, 1)),
        ("OSC does not end with C1", "\x1b]0;t\u{9c}\u{9b}x\x07y", &["y"], (0, 1)),
        ("OSC with U+9C inside a character", "\x1b]0;\u{271c}\x07x", &["x"], (0, 1)),
        ("CAN cancels", "\x1b]0;t\x18x\x1b[3\x18x", &["xx"], (0, 2)),
        ("ESC cancels", "\x1b]0;t\x1b[3Cx", &["   x"], (0, 4)),
        (
            "DCS, APC, PM, SOS",
            "a\x1bPq#1\x1b\\b\x1b_G\x1b\\c\x1b^p\x1b\\d\x1bXs\x1b\\e",
            &["abcde"],
            (0, 5),
        ),
        ("controls inside a sequence", "ab\x1b[\r3Cx", &["ab x"], (0, 4)),
        ("a marker in the wrong place", "\x1b[3?Cx", &["x"], (0, 1)),
        ("unknown", "\x1b[5;5~\x1b[99z\x1b%G\x1b F\x1blx", &["x"], (0, 1)),
    ]);
}

#[test]
fn replies() {
    for (ask, answer) in [
        ("\x1b[c", "\x1b[?65;6;17;21;22;28;52c"),
        ("\x1bZ", "\x1b[?65;6;17;21;22;28;52c"),
        ("\x1b[1c", ""),
        ("\x1b[>c", "\x1b[>64;379;0c"),
        ("\x1b[=c", "\x1bP!|00000000\x1b\\"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[2;3H\x1b[6n", "\x1b[2;3R"),
        ("\x1b[2;4r\x1b[?6h\x1b[2;3H\x1b[6n", "\x1b[2;3R"),
        ("\x1b[2;3H\x1b[?6n", "\x1b[?2;3;1R"),
        ("\x1b[?7$p\x1b[?6$p\x1b[?9999$p", "\x1b[?7;1$y\x1b[?6;2$y\x1b[?9999;0$y"),
        ("\x1b[4$p\x1b[4h\x1b[4$p", "\x1b[4;2$y\x1b[4;1$y"),
        ("\x1b[?2026h\x1b[?2026$p", "\x1b[?2026;1$y"),
        ("\x1b[1;3;4:3;38;2;1;2;3m\x1bP$qm\x1b\\", "\x1bP1$r0;1;4:3;3;38:2::1:2:3m\x1b\\"),
        ("\x1b[2;4r\x1bP$qr\x1b\\", "\x1bP1$r2;4r\x1b\\"),
        ("\x1b[5 q\x1bP$q q\x1b\\", "\x1bP1$r5 q\x1b\\"),
        ("\x1bP$qx\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1bP+q436f\x1b\\", "\x1bP1+r436f=323536\x1b\\"),
        ("\x1bP+q4d73\x1b\\", "\x1bP1+r4d73=1B5D35323B25703125733B257032257307\x1b\\"),
        ("\x1bP+q536d6F6C\x1b\\", "\x1bP1+r536d6F6C=1B5B35336D\x1b\\"),
        ("\x1b[>4;2m\x1b[?4m\x1b[?9m", "\x1b[>4;2m"),
        ("\x1bP+q58\x1b\\", "\x1bP0+r\x1b\\"),
        ("\x1b[18t\x1b[19t", "\x1b[8;5;10t\x1b[9;5;10t"),
        ("\x1b]2;secret\x07\x1b[21t\x1b[20t", "\x1b]l\x1b\\\x1b]L\x1b\\"),
        ("\x1b]11;?\x07", "\x1b]11;rgb:0000/0000/0000\x07"),
        ("\x1b]11;#102030\x07\x1b]11;?\x1b\\", "\x1b]11;rgb:1010/2020/3030\x1b\\"),
        (
            "\x1b]10;red;blue\x07\x1b]10;?;?\x07",
            "\x1b]10;rgb:ffff/0000/0000\x07\x1b]11;rgb:0000/0000/ffff\x07",
        ),
        ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]4;1;#123456\x07\x1b]104;1\x07\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b[>1u\x1b[?u\x1b[<u\x1b[?u", "\x1b[?1u\x1b[?0u"),
        ("\x1b[=5u\x1b[=2;2u\x1b[=1;3u\x1b[?u", "\x1b[?6u"),
        // Sixteen are kept: the oldest makes room.
        (
            "\x1b[>1u\x1b[>2u\x1b[>3u\x1b[>4u\x1b[>5u\x1b[>6u\x1b[>7u\x1b[>8u\x1b[>9u\x1b[>10u\x1b[>11u\
             \x1b[>12u\x1b[>13u\x1b[>14u\x1b[>15u\x1b[>16u\x1b[>17u\x1b[<15u\x1b[?u\x1b[<1u\x1b[?u",
            "\x1b[?2u\x1b[?1u",
        ),
        ("\x1b[>3u\x1b[?1049h\x1b[?u\x1b[?1049l\x1b[?u", "\x1b[?0u\x1b[?3u"),
        ("\x1b[>4;2m\x1b[?4m", "\x1b[>4;2m"),
        ("\x1b[?2048h", "\x1b[48;5;10;0;0t"),
        ("\x1b[?996n", "\x1b[?997;1n"),
        ("\x1b[2$w", "\x1bP2$u1/9\x1b\\"),
        ("\x1bP2$t3/5\x1b\\\x1b[2$w", "\x1bP2$u3/5\x1b\\"),
        ("\x1bP1$t2;3;1;J;A;@;0;2;@;B0AB\x1b\\\x1b[1$w", "\x1bP1$u2;3;1;J;A;@;0;2;@;B0AB\x1b\\"),
        ("\x1bP1$t2;10;1;@;@;I;1;2;@;BBBB\x1b\\\x1b[1$w", "\x1bP1$u2;10;1;@;@;I;1;2;@;BBBB\x1b\\"),
        ("\x1bP1$t1;1;1;H;@;@;0;2;@;BBBB\x1b\\\x1b[1$w", "\x1bP1$u1;1;1;H;@;@;0;2;@;BBBB\x1b\\"),
        ("\x1b[1;3mab\x1b[22mc\x1b[1;1;1;2#|\x1b[1;1;1;3#|", "\x1b[0;1;3m\x1b[0;3m"),
        ("\x1b[62\"p\x1b[?55n\x1b[63\"p\x1b[?55n", "\x1b[?50n"),
        ("\x1bN\x1b[1$w", "\x1bP1$u1;1;1;@;@;B;0;2;@;BBBB\x1b\\"),
        ("\x1bO\x1b[1$w", "\x1bP1$u1;1;1;@;@;D;0;2;@;BBBB\x1b\\"),
        ("\x1bP1$t2;99\x1b\\\x1bP1$t2;3;x\x1b\\\x1b[6n", "\x1b[2;3R"),
        ("\x1b[#P\x1b[#P\x1b[#R\x1b[#Q\x1b[#R", "\x1b[?2;2#Q\x1b[?1;2#Q"),
        ("\x1b[3#P\x1b[#R\x1b[11#P\x1b[#Q\x1b[#Q\x1b[#R", "\x1b[?3;0#Q\x1b[?2;0#Q"),
        (
            "\x1b]4;1;#102030\x07\x1b[#P\x1b]4;1;#405060\x07\x1b[#Q\x1b]4;1;?\x07",
            "\x1b]4;1;rgb:1010/2020/3030\x07",
        ),
        ("\x1b[2#P\x1b]4;1;#405060\x07\x1b[2#Q\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b[?1034$p\x1b[?1034l\x1b[?1034$p", "\x1b[?1034;1$y\x1b[?1034;2$y"),
        ("\x1b[1;1;1;1;1;1*y", ""),
        ("\x05", ""),
    ] {
        let mut terminal = Terminal::new(Size::clamped(5, 10), Dialect::ROVE);
        terminal.advance(ask.as_bytes());
        let have = String::from_utf8(terminal.take_replies()).expect("ASCII");
        assert_eq!(have, answer, "{ask:?}");
    }
}

/// The next row is no part of the line any more.
#[test]
fn a_row_whose_end_is_pushed_off_ends_its_line() {
    for (edit, goes_on) in [("\x1b[X", true), ("\x1b[@", false), ("\x1b[P", false)] {
        let mut terminal = Terminal::new(Size::clamped(5, 10), Dialect::ROVE);
        terminal.advance(b"0123456789ab");
        assert!(terminal.screen().row(0).is_wrapped());
        terminal.advance(format!("\x1b[H{edit}").as_bytes());
        assert_eq!(terminal.screen().row(0).is_wrapped(), goes_on, "{edit:?}");
    }
}

/// What a screen of 4 rows leaves in the history when it is erased.
#[test]
fn an_erased_screen_is_saved() {
    use rove_term::SavesErased::{All, FromHome, Never};
    let all = "a b c";
    for (saves, input, saved) in [
        (Never, "\x1b[2J", ""),
        (All, "\x1b[2J", all),
        (All, "\x1b[2J\x1b[2J", all),
        (All, "\x1b[H\x1b[J", ""),
        (FromHome, "\x1b[H\x1b[J", all),
        (FromHome, "\x1b[2J", all),
        // The cursor is elsewhere, and the screen is not erased whole.
        (FromHome, "\x1b[2H\x1b[J", ""),
        (FromHome, "\x1b[H\x1b[1J", ""),
        // Margins bound no erasing.
        (All, "\x1b[2;3r\x1b[2J", all),
        (All, "\x1b[?69h\x1b[5;9s\x1b[2J", all),
        // Blank lines in between are lines.
        (All, "\x1b[2H\x1b[2K\x1b[2J", "a  c"),
        // What protects cells erases no whole screen, and no other screen has a history.
        (All, "\x1b[?2J", ""),
        (All, "\x1bV\x1b[2J", ""),
        (All, "\x1b[?1049h\x1b[2J", ""),
        (All, "\x1b[2J\x1b[3J", ""),
    ] {
        let mut terminal = Terminal::new(Size::clamped(4, 20), Dialect::ROVE);
        terminal.set_properties(TerminalProperties {
            saves_erased: saves,
            ..TerminalProperties::default()
        });
        terminal.advance(b"a\r\nb\r\nc\r\n");
        terminal.advance(input.as_bytes());
        let history = terminal.history();
        let lines: Vec<_> = (0..history.len()).filter_map(|line| history.text(line)).collect();
        let lines: Vec<_> = lines.iter().map(|line| line.trim_end()).collect();
        assert_eq!(lines.join(" "), saved, "{saves:?} {input:?}");
        if terminal.screen().buffer() == rove_term::screen::Buffer::Primary && saved == all {
            assert!(terminal.screen().text().iter().all(|row| row.trim_end().is_empty()));
            assert_eq!(terminal.screen().depth(), history.end());
        }
    }
}
