//! Hostile input: every count is bounded, work is linear, memory is flat (threats rows 1 to 5, 7, 9).
//! Work is counted in cells touched, not timed.

use rove_term::{Checksums, Dialect, Resizing, SavesErased, Size, Terminal, TerminalProperties};

const NUMBERS: [&str; 6] = ["", "0", "1", "65536", "2147483648", "9223372036854775808"];
const SIZES: [(i64, i64); 3] = [(24, 80), (100, 30), (1, 1)];

/// States a sequence may meet.
const STATES: [&str; 5] = [
    "",
    "\x1b[4h",
    "\x1b[?69h\x1b[3;20s\x1b[2;20r\x1b[4;4H",
    "\x1b[?69h\x1b[2;20r\x1b[?6h\x1b[4h\x1b[?45h\x1b[?1045h",
    "\x1b[?1049h\x1b[46m\x1b#6",
];

fn terminal(size: (i64, i64)) -> Terminal {
    let mut terminal = Terminal::new(Size::clamped(size.0, size.1), Dialect::ROVE);
    terminal.set_checksums(Checksums::Answered);
    terminal.set_properties(TerminalProperties {
        saves_erased: SavesErased::FromHome,
        ..TerminalProperties::default()
    });
    terminal
}

/// Every marker and intermediate that means anything, and one that does not, with every last byte.
fn heads() -> impl Iterator<Item = (String, String)> {
    let markers = ["", "?", ">", "=", "<"];
    let middles = ["", " ", "!", "\"", "#", "$", "'", "*", "+"];
    let lasts = 0x40u8..=0x7e;
    lasts.flat_map(move |last| {
        markers.into_iter().flat_map(move |marker| {
            middles
                .into_iter()
                .map(move |middle| (marker.to_owned(), format!("{middle}{}", char::from(last))))
        })
    })
}

/// What a sequence may cost beside four screens, in cells: copies of colours and other state, and an answer.
const SEQUENCE_CELLS: u64 = 4096;
/// And for each of its octets: a short name is answered with a long one.
const OCTET_CELLS: u64 = 64;

#[test]
fn no_sequence_touches_more_than_four_screens() {
    for size in SIZES {
        for state in STATES {
            let mut terminal = terminal(size);
            let cells = terminal.screen().size().work();
            terminal.advance(b"\x1b#8");
            for (marker, tail) in heads() {
                for number in NUMBERS {
                    let many = [number; 8].join(";");
                    for params in
                        [number.to_owned(), format!("1;{number}"), format!("65;{many}"), many]
                    {
                        let sequence = format!("\x1b[{marker}{params}{tail}");
                        terminal.advance(b"\x1bc");
                        terminal.advance(state.as_bytes());
                        terminal.advance(b"x");
                        let before = terminal.cells_touched();
                        terminal.advance(sequence.as_bytes());
                        let touched = terminal.cells_touched() - before;
                        assert!(
                            touched <= 4 * cells + SEQUENCE_CELLS,
                            "{sequence:?} after {state:?} touched {touched} of {cells} cells"
                        );
                        terminal.take_replies();
                    }
                }
            }
        }
    }
}

/// Octets that one sequence may be answered with, and that it may add to what a screen holds.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const GROWTH_BYTES_MAX: usize = 1 << 20;

/// Writes a sequence to a screen full of text and looks at what it costs: cells touched, answers, memory. What
/// follows it is read again.
fn check_cost(terminal: &mut Terminal, sequence: &[u8]) {
    let screens = 4 * terminal.screen().size().work() + SEQUENCE_CELLS;
    terminal.take_replies();
    let (touched, held) = (terminal.cells_touched(), terminal.screen().weight());
    terminal.advance(sequence);
    let shown = || String::from_utf8_lossy(&sequence[..sequence.len().min(60)]);
    let touched = terminal.cells_touched() - touched;
    let octets = OCTET_CELLS * sequence.len() as u64;
    assert!(touched <= screens + octets, "{:?} touched {touched} cells", shown());
    let answer = terminal.take_replies().len();
    assert!(answer <= ANSWER_BYTES_MAX, "{:?}: {answer} octets", shown());
    let grown = terminal.screen().weight().saturating_sub(held);
    assert!(grown <= GROWTH_BYTES_MAX, "{:?}: {grown} octets", shown());
    terminal.advance(b"\x18\x1b\\");
    assert!(terminal.is_idle(), "{:?}", shown());
}

/// Two octets of the kinds 0x20 to 0x2F, then any last one.
#[test]
fn no_escape_sequence_costs_more_than_a_screen() {
    for state in STATES {
        let mut terminal = terminal((24, 80));
        terminal.advance(format!("\x1b#8{state}").as_bytes());
        for last in 0x30u8..=0x7e {
            check_cost(&mut terminal, &[0x1b, last]);
            for first in 0x20u8..=0x2f {
                check_cost(&mut terminal, &[0x1b, first, last]);
                (0x20u8..=0x2f).for_each(|next| {
                    check_cost(&mut terminal, &[0x1b, first, next, last]);
                });
            }
        }
    }
}

/// Commands by number, with numbers, colours, base64 and nonsense for an argument, short and too long.
#[test]
fn no_operating_system_command_costs_more_than_its_limit() {
    let long = "0;".repeat(100_000);
    let mut arguments: Vec<String> =
        ["?", "#123456", "QUJD", "c;QUJD", "file:///x", "id=a;http://x/"]
            .iter()
            .flat_map(|word| [(*word).to_owned(), format!("{word};").repeat(40_000)])
            .collect();
    for number in NUMBERS {
        arguments.push(format!("{number};{number};{number}"));
        arguments.push(format!("{number};?;").repeat(4));
        arguments.push(format!("{number}:{number}"));
        arguments.push(format!("{number};#102030;").repeat(20_000));
    }
    arguments.push(long);
    let numbers = (0..=140).map(|number: u64| number.to_string());
    let odd = NUMBERS.iter().map(|number| (*number).to_owned());
    let named = ["777", "1337", "L", "l", "I"].map(str::to_owned);
    for number in numbers.chain(odd).chain(named) {
        let mut terminal = terminal((24, 80));
        for argument in &arguments {
            for end in ["\x07", "\x1b\\"] {
                let command = format!("\x1b]{number};{argument}{end}");
                check_cost(&mut terminal, command.as_bytes());
            }
        }
    }
}

/// Device control strings of every name, with numbers before it and all kinds of data; and the other strings.
#[test]
fn no_string_costs_more_than_its_limit() {
    let mut data: Vec<String> =
        ["m", "r", "*x", "436F", "544E;436F;", "1;2/3/4", "!~0000", "#0;2;0;0;0~"]
            .iter()
            .flat_map(|word| [(*word).to_owned(), word.repeat(20_000)])
            .collect();
    data.extend(NUMBERS.map(|number| format!("{number}/{number};{number}$r!{number}~")));
    let mut terminal = terminal((24, 80));
    for (marker, tail) in heads() {
        for number in NUMBERS {
            for data in &data {
                // The long ones once for each name.
                if data.len() < 1000 || number.is_empty() {
                    let string = format!("\x1bP{marker}{number};{number}{tail}{data}\x1b\\");
                    check_cost(&mut terminal, string.as_bytes());
                }
            }
        }
    }
    for introducer in ["_", "^", "X"] {
        for data in &data {
            let string = format!("\x1b{introducer}{data}\x1b\\");
            check_cost(&mut terminal, string.as_bytes());
        }
    }
}

#[test]
fn styles_links_and_clusters_are_collected() {
    let mut terminal = terminal((24, 80));
    for n in 0..400_000u32 {
        let (r, g, b) = (n >> 16, n >> 8 & 255, n & 255);
        terminal.advance(format!("\x1b[38;2;{r};{g};{b}mx").as_bytes());
        if n % 4 == 0 {
            terminal.advance(format!("\x1b]8;;http://x/{n}\x07y").as_bytes());
            let mark = char::from_u32(0x300 + n % 112).expect("a mark");
            let base = char::from_u32(0x3041 + n / 112 % 80).expect("a letter");
            terminal.advance(format!("{base}{mark}").as_bytes());
        }
    }
    let held = terminal.screen().pool().lens();
    assert!(held.styles <= 20_000, "{held:?}");
    assert!(held.links <= 8_000, "{held:?}");
    assert!(held.clusters <= 20_000, "{held:?}");
}

#[test]
fn one_cell_takes_sixteen_code_points_and_sixty_four_bytes() {
    let mut terminal = terminal((2, 10));
    terminal.advance(b"a");
    for _ in 0..10_000_000 / 1000 {
        terminal.advance("\u{301}".repeat(1000).as_bytes());
    }
    terminal.advance(b"b");
    let text = terminal.screen().row_text(0);
    assert_eq!(text.chars().count(), 17, "{text:?}");
    terminal.advance("\r\n\u{1f468}".as_bytes());
    terminal.advance("\u{200d}\u{1f469}".repeat(40).as_bytes());
    assert!(terminal.screen().row_text(1).split('\u{1f469}').next().is_some());
    for cell in terminal.screen().row(1).cells() {
        let mut text = String::new();
        terminal.screen().pool().push_text(*cell, &mut text);
        assert!(text.chars().count() <= 16 && text.len() <= 64, "{text:?}");
    }
}

#[test]
fn sizes_from_outside() {
    for rows in [-1i64, 0, 1, 1000, 65535, 1 << 31] {
        for cols in [-1i64, 0, 1, 1000, 65535, 1 << 31] {
            let mut terminal = terminal((24, 80));
            terminal.advance("\x1b[31mwide \u{4e16}\u{754c} text\x1b[20;70Hx".as_bytes());
            let size = Size::clamped(rows, cols);
            terminal.resize(size);
            assert!((1..=1000).contains(&size.rows) && (1..=1000).contains(&size.cols));
            terminal.advance("\x1b[999;999H\u{4e16}x\r\n\x1bM\x1b[?1049h\u{4e16}".as_bytes());
            terminal.resize(Size::clamped(cols, rows));
            terminal.advance(b"\x1b[?1049lx");
        }
    }
}

/// Threats row 5: no answer holds text that a program stored.
#[test]
fn no_answer_holds_what_a_program_stored() {
    const EVIL: &str = "\r id \r";
    let printable = "SECRETid";
    let mut stores = String::new();
    for number in [0, 1, 2, 4, 7, 8, 9, 10, 11, 12, 17, 52, 99, 133, 777, 1337] {
        for text in [EVIL, printable] {
            stores += &format!("\x1b]{number};{text}\x07\x1b]{number};c;{text}\x07");
            stores += &format!("\x1b]{number};;{text}\x1b\\\x1b]{number};1;{text}\x1b\\");
        }
    }
    stores += &format!("{printable}\x1b[22t\x1bP$q{printable}\x1b\\\x1bP+q{printable}\x1b\\");
    stores += &format!("\x1bP+q{}\x1b\\", "5345435245546964");
    stores += &format!("\x1bP1$t{printable}\x1b\\\x1bP1!u{printable}\x1b\\\x1b_{printable}\x1b\\");
    let mut asks = String::from("\x05");
    for (marker, tail) in heads() {
        for number in 0..30 {
            asks += &format!("\x1b[{marker}{number}{tail}");
        }
    }
    for number in 0..200 {
        asks += &format!("\x1b]{number};?\x07\x1b]{number};c;?\x07\x1b]{number};1;?\x07");
    }
    for what in ["m", "r", "s", "t", " q", "\"q", "\"p", "$|", "*|", "*x"] {
        asks += &format!("\x1bP$q{what}\x1b\\");
    }
    for dialect in [Dialect::ROVE, Dialect::MOSH] {
        let mut terminal = Terminal::new(Size::DEFAULT, dialect);
        let mut replies = Vec::new();
        for piece in [stores.as_str(), asks.as_str()] {
            for chunk in piece.as_bytes().chunks(512) {
                terminal.advance(chunk);
                replies.extend(terminal.take_replies());
            }
        }
        let text = String::from_utf8(replies).expect("answers are ASCII");
        for needle in ["SECRET", "id ", "\r", "\n", "5345435245"] {
            assert!(!text.contains(needle), "{needle:?} came back");
        }
        assert!(text.bytes().all(|byte| matches!(byte, 0x1b | 0x07 | 0x20..=0x7e)));
    }
}

#[test]
fn the_clipboard_is_never_read_out() {
    for ask in ["\x1b]52;c;?\x07", "\x1b]52;;?\x1b\\", "\x1b]52;p0;?\x07"] {
        let mut terminal = terminal((2, 10));
        terminal.advance(b"\x1b]52;c;U0VDUkVU\x07");
        terminal.advance(ask.as_bytes());
        assert_eq!(terminal.take_replies(), b"", "{ask:?}");
        assert_eq!(terminal.screen().clipboard().data, "U0VDUkVU");
    }
}

#[test]
fn clipboard_takes_128_kib() {
    for (bytes, kept) in [(128 << 10, true), ((128 << 10) + 30, false)] {
        let data = "QUJD".repeat(bytes / 3);
        let mut terminal = terminal((2, 10));
        terminal.advance(format!("\x1b]52;c;{data}\x07").as_bytes());
        assert_eq!(terminal.screen().clipboard().data == data, kept, "{bytes}");
        terminal.advance(b"after");
        assert_eq!(terminal.screen().row_text(0), "after");
    }
}

/// A terminal that obeys grows to its display at most, and a session's not at all.
#[test]
fn sizes_that_programs_ask_for() {
    for ask in [
        "\x1b[8;65535;65535t",
        "\x1b[8;0;0t",
        "\x1b[4;65535;65535t",
        "\x1b[4;1;1t",
        "\x1b[9;1t",
        "\x1b[10;1t",
        "\x1b[65535t",
        "\x1b[65535*|",
        "\x1b[132$|",
        "\x1b[?40h\x1b[?3h",
        "\x1b[8;1;1t\x1b[?1049h\x1b[8;65535;65535t\x1b[?1049l",
    ] {
        let mut own = terminal((24, 80));
        own.set_resizing(Resizing::Obeyed);
        own.advance(ask.as_bytes());
        let size = own.screen().size();
        assert!(size.rows <= 75 && size.cols <= 200, "{ask:?}: {size:?}");
        assert_eq!(own.screen().fault(), None, "{ask:?}");
        let mut session = terminal((24, 80));
        session.advance(ask.as_bytes());
        assert_eq!(session.screen().size(), Size::clamped(24, 80), "{ask:?}");
    }
}
