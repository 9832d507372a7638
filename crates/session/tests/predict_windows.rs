//! Several windows on one screen, as tmux draws its panes: keys typed in one leave the others as they are.

mod desk;

use desk::{Desk, row};
use rove_session::predict::{Display, LineMode, Settings};

/// Two panes side by side, 40 and 39 columns wide, over a status line; each has a prompt in its third row, with text
/// above and below it in the right one.
fn panes() -> Desk {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.line = Some(LineMode::Raw);
    let mut screen = String::from("\x1b[H\x1b[2J");
    for row in 1..=23 {
        screen += &format!("\x1b[{row};41H\u{2502}right {row}");
    }
    screen += "\x1b[24;1H\x1b[42m[0] 0:bash*";
    screen += &" ".repeat(61);
    screen += "08:00:00\x1b[m\x1b[3;42H\x1b[Kright$ \x1b[3;1Hleft$ ";
    desk.echoes(screen.as_bytes());
    desk
}

/// The clock in the status line ticks; the cursor goes back to this row and column.
fn ticks(desk: &mut Desk, second: u16, row: u16, col: u16) {
    let frame = format!("\x1b[24;73H\x1b[42m08:00:{second:02}\x1b[m\x1b[{row};{col}H");
    desk.writes(frame.as_bytes());
}

/// The text of the right pane.
fn right(desk: &Desk) -> Vec<String> {
    desk.shown().text().iter().map(|row| row.chars().skip(40).collect()).collect()
}

#[test]
fn typing_moves_nothing_in_the_next_pane() {
    let mut desk = panes();
    desk.settles(b"echo some words that go there");
    let before = right(&desk);
    for key in [&b"g"[..], b"\x7f", b"\x7f", b"\x1b[D", b"x", b"\x7f", b"\x1b[C"] {
        desk.reads(key);
        assert_eq!(right(&desk), before, "{key:?}");
    }
    assert_eq!(row(&desk, 2), "left$ echo some words that go ther|      \u{2502}right$");
}

/// Where text ends in a row, and where it begins, is known from the pane that is typed in.
#[test]
fn motions_stay_within_the_pane() {
    for (pane, shown) in [
        ("\x1b[3;7H", ["left$ ls -l abc|", "left$ |ls -l abc"]),
        ("\x1b[3;49H", ["\u{2502}right$ ls -l abc|", "\u{2502}right$ |ls -l abc"]),
    ] {
        let mut desk = panes();
        desk.echoes(pane.as_bytes()).settles(b"ls -l abc");
        for (key, shown) in [("\x1b[D\x1b[D\x1b[F", shown[0]), ("\x1b[H", shown[1])] {
            desk.reads(key.as_bytes());
            assert!(row(&desk, 2).contains(shown), "{key:?}: {}", row(&desk, 2));
        }
    }
}

/// Ctrl-K and Ctrl-W, once they were seen to do it.
#[test]
fn what_kills_text_stays_within_the_pane() {
    let mut desk = panes();
    desk.settles(b"one two three four five six seven");
    let before = right(&desk);
    desk.reads(b"\x17").echoes(b"\x1b[5D     \x1b[5D");
    desk.reads(b"\x17");
    assert!(row(&desk, 2).starts_with("left$ one two three four five |  "), "{}", row(&desk, 2));
    desk.echoes(b"\x1b[4D    \x1b[4D").reads(b"\x1b[D\x1b[D\x1b[D").echoes(b"\x1b[3D");
    desk.reads(b"\x0b").echoes(b"   \x1b[3D").settles(b"ab").reads(b"\x1b[D\x0b");
    assert!(row(&desk, 2).starts_with("left$ one two three four fia|   "), "{}", row(&desk, 2));
    assert_eq!(right(&desk), before);
}

/// The last column waits as that of a screen does; what goes on below waits for an echo in its own row.
#[test]
fn a_line_goes_on_in_its_pane_once_it_was_echoed_there() {
    let mut desk = panes();
    let line = "xw".repeat(16);
    desk.settles(line.as_bytes()).types(b"yz");
    assert_eq!(row(&desk, 2), format!("left$ {line}y| \u{2502}right$"));
    let begin = |desk: &Desk| desk.shown().row_text(3).chars().take(3).collect::<String>();
    desk.types(b"ab");
    assert_eq!(begin(&desk), "   ", "it is not known to go on there");
    desk.writes(b"yz\x1b[4;1H").acks(2);
    assert_eq!(begin(&desk), "   ", "nothing was echoed there");
    desk.types(b"c").writes(b"ab").acks(2);
    assert_eq!(begin(&desk), "abc");
}

/// A clock that ticks while keys are under way takes nothing away, nor does text that comes in the next pane.
#[test]
fn what_others_draw_takes_nothing_away() {
    let mut desk = panes();
    desk.settles(b"ec").types(b"ho");
    ticks(&mut desk, 1, 3, 9);
    assert_eq!(row(&desk, 2), "left$ echo|                              \u{2502}right$");
    desk.writes(b"\x1b[5;42Hsomething new\x1b[3;9H");
    assert_eq!(row(&desk, 2), "left$ echo|                              \u{2502}right$");
    desk.types(b"!").echoes(b"ho!");
    assert_eq!(row(&desk, 2), "left$ echo!|                             \u{2502}right$");
}

/// After a change of panes nothing is shown before the row that the cursor came to was seen to echo.
#[test]
fn another_pane_confirms_anew() {
    for switch in [&b"\x02o"[..], b"\x02\x1b[C"] {
        let mut desk = panes();
        desk.settles(b"ls").reads(&switch[..1]).reads(&switch[1..]).types(b"SECRET");
        assert!(!desk.shown().text().concat().contains('S'), "{switch:?}: ahead");
        desk.echoes(b"\x1b[3;49H").types(b"SECRET");
        assert!(!desk.shown().text().concat().contains('S'), "{switch:?}: behind");
        desk.acks(6).settles(b"p").types(b"wd");
        assert!(row(&desk, 2).ends_with("right$ pwd|"), "{switch:?}: {}", row(&desk, 2));
    }
}

/// Home and Ctrl-U in the right pane leave alone the line that began in the same row of the left one.
#[test]
fn a_line_does_not_begin_in_the_next_pane() {
    let mut desk = panes();
    // Ctrl-U is foreseen once it was seen to kill the line.
    desk.settles(b"ab").reads(b"\x15").echoes(b"\x1b[2D  \x1b[2D").settles(b"ls");
    let left = |desk: &Desk| -> Vec<String> {
        desk.shown().text().iter().map(|row| row.chars().take(41).collect()).collect()
    };
    let before = left(&desk);
    // The prefix of tmux is acknowledged alone; then the host goes to the other pane.
    desk.reads(b"\x02").echoes(b"").writes(b"\x1b[3;49H").settles(b"ef").settles(b"gh");
    assert!(row(&desk, 2).ends_with("right$ efgh|"), "{}", row(&desk, 2));
    for key in [&b"\x1b[H"[..], b"\x15"] {
        let mut desk = desk.clone();
        for key in [key, b"x", b"\x7f"] {
            desk.reads(key);
            assert_eq!(left(&desk), before, "{key:?}");
            assert!(desk.shown().cursor().col > 40, "{key:?}: {}", row(&desk, 2));
        }
    }
}

/// What looks like a border here and there is text, and moves.
#[test]
fn pipes_in_a_line_are_no_borders() {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.settles(b"ls | wc").reads(b"\x1b[D\x1b[D\x1b[D\x1b[D\x1b[D").types(b"x");
    assert_eq!(row(&desk, 0), "$ lsx| | wc");
}
