//! Work is counted, all of it, and can be cut: what threats rows 1 and 2, and the limits of diffs and turns
//! above this crate, are made of.

use rove_term::history::Keeping;
use rove_term::{Dialect, SavesErased, Size, Terminal, TerminalProperties};

fn terminal(rows: i64, cols: i64) -> Terminal {
    Terminal::new(Size::clamped(rows, cols), Dialect::ROVE)
}

/// The cells that `octets` touch after `set_up`, with a snapshot held that shares all rows.
fn cells(size: (i64, i64), set_up: &str, octets: &str) -> u64 {
    let mut terminal = terminal(size.0, size.1);
    terminal.advance(set_up.as_bytes());
    let _snapshot = terminal.screen().clone();
    let before = terminal.cells_touched();
    terminal.advance(octets.as_bytes());
    terminal.cells_touched() - before
}

/// What writes no cell, or one, and takes as long as many.
#[test]
fn what_takes_long_is_counted() {
    let all_tabs = "\x1bH\x1b[C".repeat(1000);
    let link = |letter: &str| format!("\x1b]8;;http://{}\x07x", letter.repeat(2000));
    let links = format!("{}{}", link("a"), link("b")).repeat(500);
    for (size, set_up, octets, least) in [
        // Rows that a snapshot shares are copied: 100 here.
        ((100, 1000), "\x1b#8", "x\r\n".repeat(99), 99_000),
        // And again once an update has begun.
        ((10, 1000), "\x1b#8", "\x1b[?2026h\rx\x1b[?2026l".repeat(5), 5000),
        ((10, 10), "", "\x1b[?2026h\x1b]0;\x07\x1b[?2026l".repeat(5), 2500),
        // A blank screen is made, and made again.
        ((100, 100), "", "\x1b[?1047h\x1b[?1047l".repeat(5), 50_000),
        // Lines one cell wide.
        ((1000, 1), "", "\x1bc".to_owned(), 16_000),
        ((1000, 10), "\x1b[?69h\x1b[2;3s\x1b[999B", "xxxx".to_owned(), 16_000),
        ((1000, 10), "\x1b[999H\x1b]133;C\x07\x1b[H", "\x1b]133;A\x07".to_owned(), 900),
        ((1000, 10), "\x1b#6", "\x1b[?69h".to_owned(), 10_000),
        // Rows are mended, tables of renditions swept.
        ((10, 1000), "\x1bV", "\x1b[X".repeat(10), 10_000),
        (
            (100, 100),
            "\x1b#8",
            (0..9000).map(|n| format!("\x1b[58;5;{};38;2;0;{};0mx", n / 256, n % 256)).collect(),
            30_000,
        ),
        // Every cell with another rendition is looked up.
        (
            (1, 100),
            "\x1b[?7l",
            (0..99).map(|n| format!("\x1b[38;5;{n}mx")).collect::<String>() + "\x1b[;;;;1$t",
            1600,
        ),
        ((10, 1000), &all_tabs, "\r\x1b[999I".to_owned(), 999),
        ((10, 1000), &all_tabs, "\x1b[999G\x1b[999Z".to_owned(), 990),
        // Answers, also those that are dropped.
        ((10, 1000), &all_tabs, "\x1b[2$w".repeat(50), 50 * 1000 * 8),
        ((10, 10), "", "\x1bP+q436F\x1b\\".to_owned(), 100),
        ((10, 10), "", "\x1b[#P".repeat(10), 10_000),
        // Links are packed with the line that leaves.
        ((2, 1000), &links, "\r\n\n".to_owned(), 30_000),
    ] {
        let touched = cells(size, set_up, &octets);
        let shown = &octets[..octets.len().min(30)];
        assert!(touched >= least, "{shown:?} on {size:?}: {touched} cells");
    }
}

/// A screen that is saved when it is erased is searched for its last line in use, and its lines are packed.
#[test]
fn saving_what_is_erased_is_counted() {
    for (set_up, least) in [
        // Written over with blanks, which takes a look at each cell.
        ("\x1b#8\x1b[44m\x1b[2J\x1b[m\x1b[2J", 2 * 100 * 1000),
        ("\x1b#8", 2 * 100 * 1000),
        ("", 100 * 1000),
    ] {
        let mut terminal = terminal(100, 1000);
        let saves_erased = SavesErased::All;
        terminal
            .set_properties(TerminalProperties { saves_erased, ..TerminalProperties::default() });
        terminal.advance(set_up.as_bytes());
        let lines = terminal.history().len();
        let before = terminal.cells_touched();
        terminal.advance(b"\x1b[2J");
        let touched = terminal.cells_touched() - before;
        let saved = terminal.history().len() - lines;
        assert!(touched >= least, "{set_up:?}: {touched} cells for {saved} lines");
    }
}

/// Resizing goes through both grids, as they were and as they are.
#[test]
fn resizing_is_counted() {
    let (small, large) = (Size::clamped(10, 10), Size::clamped(100, 100));
    for (set_up, grids) in [("", 1), ("\x1b[?1049h", 2)] {
        let mut terminal = terminal(10, 10);
        terminal.advance(set_up.as_bytes());
        let before = terminal.cells_touched();
        terminal.resize(large);
        let touched = terminal.cells_touched() - before;
        assert_eq!(touched, grids * (small.work() + large.work()), "{set_up:?}");
    }
}

/// Threats row 2: REP of 65,535 writes no more than what the screen can show of it, and scrolls and moves aside no
/// more than that takes.
#[test]
fn repeating_fills_the_screen_once() {
    for (rows, cols) in [(24, 80), (2, 10), (1, 1), (100, 2), (3, 1000)] {
        // Written, scrolled in, moved aside, and copied, since the snapshot shares the rows; and a line more.
        let most = 4 * Size::clamped(rows, cols).work() + 4 * cols as u64;
        for last in ["x", "\u{4e16}"] {
            for state in ["", "\x1b[4h", "\x1b[999;999H", "\x1b[?7l", "\x1b[2;2r", "\x1b#6"] {
                for count in [1000, 65_535, 99_999] {
                    let touched = cells((rows, cols), "", &format!("{state}{last}\x1b[{count}b"));
                    let shown = format!("{count} of {last:?} after {state:?} on {rows}x{cols}");
                    assert!(touched <= most, "{shown}: {touched} of {most}");
                }
            }
        }
    }
}

/// Programs of all kinds: text in lines and in columns, wide and joined characters, sequences and strings.
const PROGRAMS: [&str; 6] = [
    "plain text that runs over the end of the line, and over it again\r\n",
    "\x1b[?69h\x1b[3;5sdown and down in three columns\x1b[?69l\r\n",
    "\u{4e16}\u{754c} e\u{301} \u{1f468}\u{200d}\u{1f469} na\u{ef}ve \u{442}\u{435}\u{43a}\u{441}\u{442}",
    "\x1b[4hinserted\x1b[4l\x1b[2J\x1b#8\x1b[;;;;1;7$t\x1b[5;5H\x1b[3L\x1b[2M",
    "\x1b]0;title\x07\x1bP$qm\x1b\\\x1b[31;1mred\x1b[m\x1b[20b\x1b(0lqqk\x1b(B",
    "\x1b[?7lthis is cut at the last column, which its last letter gets\x1b[?7h\r\n",
];

/// Reading stops behind the sequence, or in the text, that spends the work, and goes on there; and the screen
/// is the same however often it stopped.
#[test]
fn reading_stops_where_the_work_is_spent() {
    let octets = PROGRAMS.concat().repeat(3);
    let octets = octets.as_bytes();
    for dialect in [Dialect::ROVE, Dialect::MOSH] {
        let size = Size::clamped(12, 20);
        let mut whole = Terminal::new(size, dialect);
        whole.advance(octets);
        for room in [0, 1, 7, 50, 300, 5000, u64::MAX] {
            let mut cut = Terminal::new(size, dialect);
            let (mut rest, mut stops) = (octets, 0);
            while !rest.is_empty() {
                let before = cut.cells_touched();
                let read = cut.advance_within(rest, room);
                assert!((1..=rest.len()).contains(&read), "{room}");
                let touched = cut.cells_touched() - before;
                // One sequence, or the characters that are decoded together.
                let beyond = 4 * size.work() + 4096;
                assert!(touched <= room.saturating_add(beyond), "{room}: {touched}");
                assert!(read == rest.len() || touched >= room, "{room}: {read} for {touched}");
                rest = &rest[read..];
                stops += 1;
            }
            assert_eq!(cut.cells_touched(), whole.cells_touched(), "{room}");
            assert_eq!(format!("{:?}", cut.screen()), format!("{:?}", whole.screen()), "{room}");
            assert_eq!(cut.take_replies(), whole.clone().take_replies(), "{room}");
            assert!(stops > 3 || room >= 5000, "{room}: {stops}");
        }
    }
}

#[test]
fn a_reader_may_do_without_a_history() {
    let mut reader = terminal(3, 10);
    reader.set_history(Keeping::Nothing);
    for clear in ["", "\x1b[3J", "\x1bc"] {
        reader.advance(format!("{clear}1\r\n2\r\n3\r\n4\r\n5\x1b[2S").as_bytes());
        reader.resize(Size::clamped(2, 5));
        reader.resize(Size::clamped(3, 10));
        assert_eq!(reader.history().len(), 0, "{clear:?}");
    }
}
