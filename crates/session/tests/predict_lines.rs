//! Enter: no confidence is carried over it, wherever it was typed; and text found elsewhere than foreseen.

mod desk;

use desk::Desk;
use rove_session::predict::{Display, LineMode, Settings};
use rove_term::Size;

/// Before an editor that keeps a bar at the foot of the screen, with this text below the cursor.
fn editor(below: &str) -> Desk {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.echoes(format!("\x1b[H\x1b[2J\r\n{below}\x1b[24H^G Help\x1b[H").as_bytes());
    desk
}

/// The same after a line that Enter ended, opening a row.
fn taught(below: &str) -> Desk {
    let mut desk = editor(below);
    desk.settles(b"one").types(b"\r").echoes(OPENS).settles(b"two");
    desk
}

/// What an editor answers to Enter.
const OPENS: &[u8] = b"\r\n\x1b7\x1b[1;20r\x1b8\x1b[L\x1b7\x1b[r\x1b8";

/// Types a secret after Enter, ahead of whatever comes, and checks that none of it is shown.
fn check_nothing_is_carried(desk: &mut Desk, what: &str) {
    for key in b"\rhunter2".chunks(1) {
        desk.types(key);
        let (shown, real) = (desk.shown(), desk.terminal.screen().clone());
        assert!(!shown.text().concat().contains("hu"), "{what}: {:?}", shown.text());
        assert_eq!(shown.text()[1..], real.text()[1..], "{what}");
    }
}

#[test]
fn nothing_is_carried_over_enter() {
    check_nothing_is_carried(&mut editor(""), "an editor's first line");
    check_nothing_is_carried(&mut taught(""), "an editor's third line");
    let mut shell = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    for _ in 0..8 {
        shell.settles(b"ls").types(b"\r").echoes(b"\r\n");
    }
    shell.settles(b"sudo x");
    shell.types(b"\rhunter2");
    assert_eq!(shown_text(&shell), real_text(&shell), "lines without prompt, nothing below them");
    for (what, then) in [
        ("at a prompt", &b"\r\n$ "[..]),
        ("where text stands left of the line", b"\x1b[2;1H> \x1b[2;3H"),
        ("on the last row", b"\x1b[24H\x1b[K"),
        ("above the last row", b"\x1b[23H"),
    ] {
        let mut desk = taught("");
        desk.echoes(then).settles(b"sudo x").types(b"\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{what}");
    }
    for key in [&b"\x18"[..], b"\x1b", b"\x1bx", b"\t"] {
        let mut desk = taught("");
        desk.reads(key).types(b"word\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "after {key:?}");
    }
}

fn shown_text(desk: &Desk) -> Vec<String> {
    desk.shown().text()
}

fn real_text(desk: &Desk) -> Vec<String> {
    desk.terminal.screen().text()
}

/// A paste in many reads is more than is followed: Enter behind it is under way all the same.
#[test]
fn nothing_is_carried_over_enter_behind_a_long_paste() {
    for reads in [10, 255, 256, 300] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.settles(b"ls");
        (0..reads).for_each(|_| {
            desk.reads(&[b'x'; 200]);
        });
        desk.types(b"\r");
        // What was typed before Enter is there, and nothing shows of it.
        desk.acks(reads - 1);
        desk.types(b"hunter2").writes(b"\r\nh");
        assert_eq!(shown_text(&desk), real_text(&desk), "{reads} reads");
        desk.acks(2).writes(b"u");
        assert_eq!(shown_text(&desk), real_text(&desk), "{reads} reads");
    }
}

#[test]
fn an_imitated_editor_that_asks_for_a_password_gets_none_shown() {
    let mut desk = taught("");
    // A program that has imitated an editor, and now asks.
    for _ in 0..5 {
        desk.types(b"\r").echoes(OPENS).settles(b"x");
    }
    desk.types(b"\r").echoes(b"\r\nPassword: ");
    for key in b"hunter2\rhunter2".chunks(1) {
        desk.types(key);
        assert_eq!(shown_text(&desk), real_text(&desk), "the question is there");
        desk.acks(1);
    }
    desk.echoes(b"\r\n\r\n").settles(b"y");
    desk.types(b"\rhunter2");
    assert_eq!(shown_text(&desk), real_text(&desk), "nor after its answer");
}

#[test]
fn no_report_of_the_line_carries_anything_over_enter() {
    for line in [None, Some(LineMode::Raw), Some(LineMode::Cooked), Some(LineMode::Hidden)] {
        let mut desk = taught("below");
        desk.line = line;
        desk.types(b"\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{line:?}");
        // The report may come while it is on its way.
        let mut late = taught("below");
        late.types(b"\rhunter2");
        late.line = line;
        late.wait(1);
        assert_eq!(shown_text(&late), real_text(&late), "{line:?}, later");
    }
}

#[test]
fn a_line_found_again_in_its_middle_goes_on_to_the_left() {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    // The program does more than was typed; from then on nobody knows where its line begins.
    desk.settles(b"ab").types(b"\t").echoes(b"cdef").settles(b"g");
    desk.types(b"\x7f\x7f");
    assert_eq!(desk.shown().row_text(0), "$ abcde");
    // After Enter the line begins where it is typed: no shell goes left of its prompt.
    desk.echoes(b"\x08\x08\x1b[K").types(b"\r").echoes(b"\r\n$ ").settles(b"g");
    desk.types(b"\x7f\x7f");
    assert_eq!(desk.shown().row_text(1), "$");
}

/// A frame that shows what was typed at another place: enough of it, and not by the kernel's hand.
#[test]
fn moved_text_confirms_only_if_it_is_told_apart() {
    for (line, typed, acks, frame, shown) in [
        (None, &b"horse"[..], 5, "\r\n\n> horse", "> horse!"),
        (None, b"ab", 2, "\r\n\n> ab", "> ab"),
        (Some(LineMode::Cooked), b"horse", 5, "\r\n\n> horse", "> horse"),
    ] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.line = line;
        desk.types(typed);
        desk.terminal.advance(frame.as_bytes());
        desk.acks(acks).types(b"!");
        assert_eq!(desk.shown().row_text(2), shown, "{line:?} {frame:?}");
    }
}

/// A question whose last blank comes by itself, as if a blank typed at it had been echoed.
#[test]
fn the_blank_of_a_question_is_no_echo() {
    for (line, ahead) in [None, Some(LineMode::Raw)].into_iter().zip([1, 2]) {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.line = line;
        desk.settles(b"sudo x").types(b"\r").echoes(b"\r\nPassword:");
        desk.types(&b"  "[..ahead]).writes(b" ");
        for key in b"hunter2".chunks(1) {
            assert_eq!(shown_text(desk.acks(1)), real_text(&desk), "{line:?}: acknowledged");
            assert_eq!(shown_text(desk.types(key)), real_text(&desk), "{line:?}: typed");
        }
    }
}

/// In raw mode, in a window with a bar at its foot as tmux draws it: two lines of `ed`, a key each.
fn in_a_window() -> Desk {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.line = Some(LineMode::Raw);
    desk.echoes(b"\x1b[H\x1b[2J\x1b[24H[0] 0:ed\x1b[1;23r\x1b[H");
    desk.settles(b"a").types(b"\r").echoes(b"\r\n").settles(b"x").types(b"\r").echoes(b"\r\n");
    desk.settles(b".").types(b"\r").echoes(b"\r\n").settles(b"!").settles(b"s");
    desk
}

/// A question may come in a frame that acknowledges none of the keys before it.
#[test]
fn a_question_that_comes_before_its_echo_ack_gets_no_answer_shown() {
    let mut desk = in_a_window();
    desk.types(b"\r").writes(b"\r\n[sudo] password for me: ");
    for key in b"hunter2\r".chunks(1) {
        desk.types(key);
        assert_eq!(shown_text(&desk), real_text(&desk), "the question is there");
    }
    desk.acks(1);
    assert_eq!(shown_text(&desk), real_text(&desk), "and now its echo ack");
    // The same with the answer typed ahead of the question.
    let mut desk = taught("below");
    desk.types(b"\rhu").writes(b"\r\nPassword: ").types(b"nter2");
    assert_eq!(shown_text(&desk), real_text(&desk), "typed ahead in part");
}

/// A reader of cooked lines without a prompt opens rows as an editor does, where nothing tells of the line.
#[test]
fn lines_without_a_prompt_are_not_an_editors() {
    for line in [None, Some(LineMode::Raw)] {
        let mut desk = in_a_window();
        desk.line = line;
        desk.types(b"\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{line:?}");
    }
}

/// What an editor did with Enter says nothing of the shell that it leaves behind, at once or later.
#[test]
fn leaving_an_editor_ends_what_it_taught() {
    for leaves in [&b"\x1b[?1049l\x1b[2;1H"[..], b"\x1b[H\x1b[2J\x1b[24Hbar\x1b[2H"] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.echoes(b"\x1b[24Hbar\x1b[H\x1b[?1049h\x1b[H\x1b[2J\r\nbelow\x1b[24H^G Help\x1b[H");
        desk.settles(b"one").types(b"\r").echoes(OPENS).settles(b"two");
        desk.types(b"\x1b").echoes(b"").types(b":").echoes(b"\x1b[24H\x1b[K:");
        desk.settles(b"wq").types(b"\r").acks(1);
        desk.writes(leaves).settles(b"su").types(b"\rhunter2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{leaves:?}");
    }
}

/// A busy host: keys and then Enter are acknowledged before any of them shows. That what came before Enter
/// shows at last says nothing of what comes after it.
#[test]
fn a_late_echo_of_the_line_before_shows_nothing_after_enter() {
    for acked in [0, 1, 2] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.settles(b"s").settles(b"u").types(b"d").acks(1);
        desk.types(b"\r").acks(1).types(b"hu").acks(acked).types(b"nt");
        desk.writes(b"d").types(b"er2");
        assert_eq!(shown_text(&desk), real_text(&desk), "{acked} acknowledged");
    }
}

/// An echo that comes later than its echo ack, with Enter under way meanwhile, as through an ssh in the session.
#[test]
fn a_late_echo_with_enter_under_way_shows_nothing_after_enter() {
    let mut ahead = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    ahead.settles(b"s").settles(b"u").types(b"d").acks(1).types(b"\r").writes(b"d");
    let mut asked = ahead.clone();
    ahead.types(b"hunter2");
    assert_eq!(shown_text(&ahead), real_text(&ahead), "typed ahead");
    asked.acks(1).writes(b"\r\nPassword: ").types(b"h");
    assert_eq!(shown_text(&asked), real_text(&asked), "typed at the question");
}

/// A line and its Enter in one read, of which a frame shows the line alone.
#[test]
fn an_echo_of_what_came_along_with_enter_shows_nothing_after_it() {
    for (before, read, after) in [("", "su\r", ""), ("", "su", "\r"), ("s", "u\r", "")] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.types(before.as_bytes()).reads(read.as_bytes()).types(after.as_bytes());
        desk.types(b"hunter2");
        for frame in ["s", "u", "", "\r\n", "", "Password: "] {
            desk.writes(frame.as_bytes());
            assert!(!shown_text(&desk).concat().contains('h'), "{read:?}: {frame:?}");
            desk.acks(u64::from(frame.is_empty()));
            assert!(!shown_text(&desk).concat().contains('h'), "{read:?}: {frame:?}");
        }
    }
}

/// Typed ahead of a row that an editor opens, where no line has a prompt: its own echo confirms it.
#[test]
fn a_line_without_a_prompt_is_confirmed_by_its_own_echo() {
    for line in [None, Some(LineMode::Raw)] {
        let mut desk = editor("");
        desk.line = line;
        desk.settles(b"one").types(b"\rtwo").writes(OPENS).acks(1);
        assert_eq!(shown_text(&desk), real_text(&desk), "{line:?}: nothing of it has echoed");
        assert_eq!(desk.writes(b"t").shown().row_text(1), "two", "{line:?}");
    }
    // Below a shell's line the kernel echoes what is typed ahead; the same where the frame that shows
    // Enter done shows some of it.
    for shown in 1..=3 {
        let (password, mut desk) =
            (b"hunter2", Desk::new(Settings::ROVE.with_display(Display::Always), 250));
        desk.settles(b"ssh host").types(b"\r").types(password);
        desk.writes(&[b"\r\n", &password[..shown]].concat()).acks(1 + shown as u64);
        desk.writes(&password[shown..=shown]).writes(&password[shown + 1..shown + 2]);
        assert_eq!(shown_text(&desk), real_text(&desk), "{shown} with Enter");
    }
}

/// What is typed, key by key, each with what the kernel echoes of it (termios: ECHOE, ECHOCTL, VWERASE).
fn kernel_echoes(typed: &str) -> Vec<(String, String)> {
    let (mut keys, mut line, mut rest) = (Vec::new(), String::new(), typed);
    while let Some(first) = rest.chars().next() {
        let (key, after) = rest.split_at(if first == '\x1b' { 3 } else { first.len_utf8() });
        let word = line.len() - line.trim_end_matches(|c| c != ' ').len();
        let erased = match key {
            "\x7f" => 1,
            "\x17" => word,
            _ => 0,
        };
        line.truncate(line.len() - erased);
        let echo = match key {
            "\x7f" | "\x17" => "\x08 \x08".repeat(erased),
            "\r" => "\r\n".to_owned(),
            "\x04" => String::new(),
            "\t" => key.to_owned(),
            _ if first.is_control() => key.replacen(first, &caret(first), 1),
            _ => key.to_owned(),
        };
        match key {
            "\r" => line.clear(),
            "\x04" => {}
            _ if erased == 0 => line.push_str(key),
            _ => {}
        }
        keys.push((key.to_owned(), echo));
        rest = after;
    }
    keys
}

/// A control character as the kernel echoes it.
fn caret(c: char) -> String {
    format!("^{}", char::from(c as u8 ^ 0x40))
}

/// Types this, so many keys ahead of their echo, and checks that nothing is shown that the kernel has not echoed.
fn check_kernels_line(desk: &mut Desk, typed: &str, ahead: usize, what: &str) {
    let keys = kernel_echoes(typed);
    for (at, (key, _)) in keys.iter().enumerate() {
        desk.reads(key.as_bytes());
        assert_eq!(shown_text(desk), real_text(desk), "{what}, {typed:?}: typed");
        if let Some(echoed) = (at + 1).checked_sub(ahead) {
            desk.writes(keys[echoed].1.as_bytes());
            assert_eq!(shown_text(desk), real_text(desk), "{what}, {typed:?}: echoed");
            desk.acks(1);
            assert_eq!(shown_text(desk), real_text(desk), "{what}, {typed:?}: known");
        }
    }
}

/// Two windows, one above the other, with a prompt in the upper.
const UPPER: &str = "\x1b[7H\u{2500}\u{2500}\u{2500}\r\nbelow\x1b[3H$ ";

/// The bars of one multiplexer in another.
const BARS: &str =
    "\x1b[23H\x1b[7m[0] 0:a\x1b[m\x1b[24H\x1b[30;42m[0] 0:b\x1b[K\x1b[m\x1b[1;22r\x1b[3H$ ";

/// In a multiplexer, or under a stock server, nobody knows that a command is slow to switch echo off: the kernel echoes
/// the first letters of a password that is typed one by one after Enter was acknowledged.
#[test]
fn what_a_slow_command_leaves_to_the_kernel_confirms_nothing() {
    let starts: [(&str, &str, &str); 12] = [
        ("below the prompt", "", "\r\n"),
        ("behind what it says", "", "\r\nWarning: new host\r\n"),
        ("where the screen scrolls", "\x1b[24H$ ", "\r\n"),
        ("where the prompt has scrolled away", "\x1b[12H$ ", &"\r\n".repeat(40)),
        ("where the shell sets the keys", "\x1b[?1h\x1b[24H$ ", "\r\n"),
        ("where the keys are set above the last row", "", "\x1b[?1h\r\n"),
        ("in the upper of two windows", "\x1b[7H\u{2500}\u{2500}\u{2500}\r\nbelow\x1b[H$ ", "\r\n"),
        ("where it has scrolled out of that", UPPER, "\x1b[1;6r\x1b[6H\n\n\n\n"),
        ("above two bars", BARS, "\r\n"),
        (
            "above a window with a title",
            "\x1b[7H\u{2500} 0 \"bash\" \u{2500}\r\nbelow\x1b[H$ ",
            "\r\n",
        ),
        ("where the command clears the screen", "\x1b[12H$ ", "\x1b[H\x1b[2J"),
        (
            "the same, above the bar of a multiplexer",
            "\x1b[24Hbar\x1b[5H$ ",
            "\x1b[23H\x1b[1J\x1b[H",
        ),
    ];
    let secrets = [
        "hunter3\x7f2 hunter2 hunter2", // A slip is taken back: the kernel erases it.
        "yes\rhunter2",
        "make\r\rls\rhunter2",
        "\x1b[Ahunter2",
        "hun\x1b[Dter2\rhunter2",
        "\thunter2",
        "correct horsf\x17battery",
        "\x03hunter2",
        "\u{5bc6}\u{7801}\u{5bc6}\u{7801}hunter2",
        "e\u{301}hunter2",
        "  hunter2",
        "hun\x04ter2 \x04hunter2",
    ];
    for (line, (what, before, start)) in [None, Some(LineMode::Raw), Some(LineMode::Cooked)]
        .into_iter()
        .flat_map(|line| starts.map(|start| (line, start)))
    {
        for (secret, ahead) in secrets.iter().flat_map(|secret| (1..=12).map(move |n| (secret, n)))
        {
            let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
            desk.line = line;
            desk.echoes(before.as_bytes()).settles(b"ssh host").types(b"\r");
            desk.echoes(start.as_bytes());
            check_kernels_line(
                &mut desk,
                secret,
                ahead,
                &format!("{what}, {line:?}, {ahead} ahead"),
            );
        }
    }
}

/// What happens around a shell's line, or while its command starts, makes the kernel's echo no program's.
#[test]
fn the_line_that_started_a_command_is_remembered() {
    let command = [&b"ssh "[..], &[b'h'; 120], b"\r"].concat();
    let echoed = [&command[..], b"\n"].concat();
    let list = b"\r\nhost  hosts\x1b[H$ ssh ho";
    type Story<'a> = &'a dyn Fn(&mut Desk);
    let stories: [(&str, Story<'_>); 22] = [
        ("a list of completions", &|desk| {
            desk.settles(b"ssh ho").reads(b"\t").echoes(list).settles(b"st").types(b"\r");
            desk.echoes(b"\x1b[J\r\n");
        }),
        ("another size", &|desk| {
            desk.settles(b"ssh host").types(b"\r").echoes(b"\r\n").predictor.reset();
        }),
        ("another size, some of it typed", &|desk| {
            desk.settles(b"ssh host").types(b"\r").echoes(b"\r\n").settles(b"hu");
            desk.predictor.reset();
        }),
        ("another size, in which its row is wrapped anew", &|desk| {
            desk.echoes(b"\x1b[5;50Hme@host:~$ ").settles(b"ssh host").types(b"\r");
            desk.echoes(b"\r\n").terminal.resize(Size::clamped(24, 45));
            desk.predictor.reset();
            desk.wait(1);
        }),
        ("a prompt that is drawn anew with Enter", &|desk| {
            desk.echoes(b"\x1b[5Hme ~/src > ").settles(b"ssh host").types(b"\r");
            desk.echoes(b"\r> ssh host\x1b[K\r\n");
        }),
        ("the same, of two rows", &|desk| {
            desk.echoes(b"\x1b[5H~/src\r\nme $ ").settles(b"ssh host").types(b"\r");
            desk.echoes(b"\x1b[5H\x1b[J> ssh host\r\n");
        }),
        ("another size with Enter under way", &|desk| {
            desk.settles(b"ssh host").types(b"\r").predictor.reset();
            desk.echoes(b"\r\n");
        }),
        ("a frame of another window", &|desk| {
            desk.echoes(b"\x1b[12H$ ").settles(b"ssh host").types(b"\r").echoes(b"\r\n");
            desk.writes(b"\x1b[H").writes(b"\x1b[13H");
        }),
        ("a line typed ahead of its prompt, on a busy host", &|desk| {
            desk.settles(b"ls").types(b"\r").echoes(b"\r\n").types(b"ssh b\r");
            desk.echoes(b"$ ssh b").writes(b"\r\n");
        }),
        ("another window that takes the screen", &|desk| {
            desk.settles(b"ssh host").types(b"\r").echoes(b"\r\n");
            desk.writes(b"\x1b[?1049h\x1b[2J\x1b[20Htext\x1b[3H").writes(b"\x1b[?1049l");
        }),
        ("Ctrl-J", &|desk| {
            desk.settles(b"ssh host").reads(b"\n").echoes(b"\r\n");
        }),
        ("Ctrl-O at the foot", &|desk| {
            desk.echoes(b"\x1b[24H$ ").settles(b"ssh host").reads(b"\x0f").echoes(b"\r\n");
        }),
        ("a pasted line", &|desk| {
            desk.reads(&command).echoes(&echoed);
        }),
        ("a pasted line, echoed late", &|desk| {
            desk.reads(&command).writes(&echoed).acks(1);
        }),
        ("a pasted line, acknowledged before it shows", &|desk| {
            desk.reads(&command).acks(1).writes(&echoed);
        }),
        ("another size, and a host that is slow with Enter", &|desk| {
            desk.settles(b"ssh").types(b" x").predictor.reset();
            desk.acks(2).types(b"\r").writes(b" x").acks(1).types(b"h").writes(b"\r\nh").acks(1);
            desk.types(b"\x7f").echoes(b"\x08 \x08");
        }),
        ("a frame that shows Enter before its echo ack", &|desk| {
            desk.settles(b"ssh hos").types(b"t\r").writes(b"t\r\n").acks(1).acks(1);
        }),
        ("a frame that shows it with the echo ack of the key before", &|desk| {
            desk.settles(b"ssh hos").types(b"t\r").terminal.advance(b"t\r\n");
            desk.acks(1).acks(1);
        }),
        ("Ctrl-J, the same", &|desk| {
            desk.settles(b"ssh hos").types(b"t").reads(b"\n").terminal.advance(b"t\r\n");
            desk.acks(1).acks(1);
        }),
        ("a connection that dropped with the keys set", &|desk| {
            desk.echoes(b"\x1b[24H$ ").settles(b"ssh host").types(b"\r");
            desk.echoes(b"\r\n\x1b[?1hBroken pipe\r\n$ ");
            desk.settles(b"ssh host").types(b"\r").echoes(b"\r\n");
        }),
        ("the same, and a prompt that tells its status", &|desk| {
            desk.echoes(b"\x1b[24H$ ").settles(b"ssh host").types(b"\r");
            desk.echoes(b"\r\n\x1b[?1hBroken pipe\r\n255 $ ");
            desk.settles(b"ssh host").types(b"\r").echoes(b"\r\n");
        }),
        ("a multiplexer that sets the keys and has no bar", &|desk| {
            desk.echoes(b"\x1b[24H$ ").settles(b"tmux").types(b"\r");
            desk.echoes(b"\x1b[?1049h\x1b[?1h\x1b[H\x1b[2J\x1b[24H% ");
            desk.settles(b"ssh host").types(b"\r").echoes(b"\r\n");
        }),
    ];
    for (line, (what, story)) in
        [None, Some(LineMode::Raw)].into_iter().flat_map(|line| stories.map(|story| (line, story)))
    {
        for ahead in 1..=4 {
            let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
            desk.line = line;
            story(&mut desk);
            check_kernels_line(&mut desk, "hunter2", ahead, &format!("{what}, {line:?}"));
        }
    }
}

/// A shell's line that has wrapped is one all the same: in its last row stands nothing but what was typed.
#[test]
fn a_shells_line_that_has_wrapped_is_remembered() {
    let host = "h".repeat(120);
    // Up to the margin, beyond it, and where a blank or half a character would stand at the margin.
    let commands = [
        format!("ssh {}", &host[..74]),
        format!("ssh {}", &host[..75]),
        format!("ssh {host}"),
        format!("ssh {host}{host}"),
        format!("ssh -o{} host", &host[..71]),
        format!("ssh {}\u{4e3b}\u{673a}", &host[..73]),
    ];
    for (line, before) in [None, Some(LineMode::Raw)]
        .into_iter()
        .flat_map(|line| ["", "\x1b[22H$ ", "\x1b[24H$ "].map(|before| (line, before)))
    {
        for (command, ahead) in
            commands.iter().flat_map(|command| (1..=4).map(move |n| (command, n)))
        {
            let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
            desk.line = line;
            desk.echoes(before.as_bytes());
            let mut late = desk.clone();
            for c in command.chars() {
                let c = c.to_string();
                desk.reads(c.as_bytes()).echoes(c.as_bytes());
                late.reads(c.as_bytes());
            }
            desk.types(b"\r").echoes(b"\r\n");
            late.types(b"\r").echoes(format!("{command}\r\n").as_bytes());
            let what = format!("{line:?}, {before:?}, {} letters", command.len());
            check_kernels_line(&mut desk, "hunter2", ahead, &what);
            check_kernels_line(&mut late, "hunter2", ahead, &format!("{what}, late"));
        }
    }
}

/// The same in either of two windows: there the line goes on at the window's edge.
#[test]
fn a_shells_line_that_has_wrapped_in_a_window_is_remembered() {
    for left in [1, 41] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.line = Some(LineMode::Raw);
        let border = (1..=24).map(|row| format!("\x1b[{row};40H\u{2502}")).collect::<String>();
        desk.echoes(format!("\x1b[H\x1b[2J{border}\x1b[5;{left}H$ ").as_bytes());
        let (command, cols) = (format!("ssh {}", "h".repeat(60)), if left == 1 { 39 } else { 40 });
        for (at, c) in command.bytes().enumerate() {
            let (row, col) = (5 + (at + 2) / cols, left + (at + 2) % cols);
            desk.types(&[c]).echoes(format!("\x1b[{row};{col}H{}", char::from(c)).as_bytes());
        }
        desk.types(b"\r").echoes(format!("\x1b[7;{left}H").as_bytes());
        check_kernels_line(&mut desk, "hunter2", 1, &format!("the window at {left}"));
    }
}

/// Typed behind what ends another program, a shell's line is seen for the first time when it is done.
#[test]
fn a_line_typed_behind_what_ends_an_editor_is_remembered() {
    let back = ["\x1b[?1049l", "\x1b[H\x1b[2J", "\x1b[24H\x1b[K"];
    for (line, (ends, back)) in [None, Some(LineMode::Raw)].into_iter().flat_map(|line| {
        ["ZZ", ":q\r", ":wq\rls\r"]
            .into_iter()
            .flat_map(move |ends| back.map(|b| (line, (ends, b))))
    }) {
        for (acked, ahead) in [2, 3, 7, 9, 14].into_iter().flat_map(|n| [(n, 1), (n, 2)]) {
            let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
            desk.line = line;
            desk.settles(b"vim").types(b"\r");
            desk.echoes(b"\r\n\x1b[?1049h\x1b[H\x1b[2Jtext\r\n~\r\n~\x1b[24Htext\x1b[H");
            desk.types(ends.as_bytes()).types(b"ssh b\r");
            let typed = ends.len() as u64 + 6;
            desk.terminal.advance(format!("{back}$ ssh b\r\n").as_bytes());
            desk.acks(typed.min(acked));
            let what = format!("{line:?}, {ends:?}, {back:?}, {acked} acknowledged");
            check_kernels_line(&mut desk, "hunter2", ahead, &what);
        }
    }
}

/// An editor and a pager run commands as a shell does, from a line that has no prompt.
#[test]
fn a_command_run_from_within_a_program_is_remembered() {
    let screen = "text\r\n".repeat(23);
    for (line, command) in [None, Some(LineMode::Raw)].into_iter().flat_map(|line| {
        [":!ssh host", "!ssh host", ":w !sudo tee %"].map(|command| (line, command))
    }) {
        for ahead in 1..=4 {
            let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
            desk.line = line;
            desk.settles(b"vim").types(b"\r");
            desk.echoes(format!("\x1b[H\x1b[2J{screen}\x1b[H").as_bytes());
            let mut fast = desk.clone();
            for (at, c) in command.bytes().enumerate() {
                let frame = format!("\x1b[24;{}H{}", at + 1, char::from(c));
                desk.types(&[c]).echoes(frame.as_bytes());
            }
            desk.types(b"\r").echoes(b"\r\n");
            fast.types(command.as_bytes()).types(b"\r");
            fast.echoes(format!("\x1b[24H{command}\r\n").as_bytes());
            let what = format!("{line:?}, {command:?}");
            check_kernels_line(&mut desk, "hunter2", ahead, &what);
            check_kernels_line(&mut fast, "hunter2", ahead, &format!("{what}, fast"));
        }
    }
}

/// Nor is a password remembered as typed once echo was seen switched off: what stands there of it is still no prompt.
#[test]
fn what_was_typed_without_echo_is_no_prompt_later() {
    for ahead in 1..=4 {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.settles(b"ssh host").types(b"\r").echoes(b"\r\n").types(b"hun").writes(b"hu");
        desk.line = Some(LineMode::Hidden);
        desk.acks(2).types(b"ter2");
        desk.line = Some(LineMode::Raw);
        desk.echoes(b"");
        check_kernels_line(&mut desk, "hunter2", ahead, "switched on again");
    }
}

/// A command that was broken off leaves the shell as it was.
#[test]
fn after_a_command_was_broken_off_the_shell_is_back() {
    for line in [None, Some(LineMode::Raw)] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.line = line;
        desk.settles(b"cat").types(b"\r").echoes(b"\r\n").reads(b"\x03").echoes(b"^C\r\n$ ");
        assert_eq!(desk.types(b"pwd").writes(b"p").shown().row_text(2), "$ pwd", "{line:?}");
    }
}

/// So does one that was broken off at its question, though what was typed is forgotten there.
#[test]
fn after_a_question_was_broken_off_the_shell_is_back() {
    let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
    desk.line = Some(LineMode::Raw);
    desk.settles(b"sudo x").types(b"\r");
    desk.line = Some(LineMode::Hidden);
    desk.echoes(b"\r\nPassword: ").types(b"hun").echoes(b"").reads(b"\x03");
    desk.line = Some(LineMode::Raw);
    desk.echoes(b"\r\n$ ").types(b"pwd");
    assert_eq!(shown_text(&desk), real_text(&desk), "before its own echo");
    assert_eq!(desk.writes(b"p").shown().row_text(2), "$ pwd");
}

/// The prompt of the shell behind a program that was left with an end of input is another's.
#[test]
fn after_an_end_of_input_the_shell_is_back() {
    for line in [None, Some(LineMode::Raw)] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.line = line;
        desk.settles(b"python3").types(b"\r").echoes(b"\r\n>>> ").settles(b"f ()");
        desk.types(b"\r").echoes(b"\r\n>>> ").types(b"\x04").echoes(b"\r\n$ ");
        assert_eq!(desk.types(b"pwd").writes(b"p").shown().row_text(3), "$ pwd", "{line:?}");
    }
}

/// A shell's next line is not held back by that, though its prompt comes late.
#[test]
fn a_prompt_that_comes_late_is_a_prompt() {
    for line in [None, Some(LineMode::Raw)] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.line = line;
        desk.settles(b"ls").types(b"\r").echoes(b"\r\n").writes(b"file\r\n").writes(b"$ ");
        assert_eq!(desk.types(b"pwd").writes(b"p").shown().row_text(2), "$ pwd", "{line:?}");
        // The line begins behind it.
        desk.echoes(b"wd").reads(b"\x1b[H").types(b"x");
        assert_eq!(desk.shown().row_text(2), "$ xpwd", "{line:?}");
        // The first letters are typed before it comes.
        desk.echoes(b"\x1b[2K\r$ pwd").types(b"\r").echoes(b"\r\n").types(b"ls ");
        desk.writes(b"$ ").writes(b"l").acks(1).writes(b"s").acks(1);
        assert_eq!(desk.types(b"-l").shown().row_text(3), "$ ls -l", "{line:?}");
    }
}

/// A program that takes the screen is no command that is about to ask.
#[test]
fn a_program_that_takes_the_screen_echoes_itself() {
    for (prompt, row) in [(1, 1), (1, 3), (12, 1), (24, 1), (24, 10)] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.echoes(format!("\x1b[H\x1b[2J\x1b[{prompt}H$ ").as_bytes()).settles(b"nano");
        desk.types(b"\r").echoes(format!("\x1b[H\x1b[2J\x1b[23H^G Help\x1b[{row}H").as_bytes());
        desk.types(b"text").writes(b"t");
        assert_eq!(desk.shown().row_text(row - 1), "text", "prompt at {prompt}, text at {row}");
    }
}

/// A pager leaves what stood on the screen, and asks in the last row. What ends as what was typed asks nothing, whatever
/// keys are set.
#[test]
fn a_pager_echoes_itself() {
    let keys = "\x1b[?1h\x1b=";
    for (keys, before, command, shown) in [
        (keys, "x", "less x", "/pattern"),
        ("", "x", "less x", "/pattern"),
        (keys, "x", "less (x)", "/p"),
        ("", "(x)", "less x", "/pattern"), // What was typed before the line cannot show now.
    ] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.echoes(b"\x1b[11H$ ").settles(before.as_bytes()).types(b"\r").echoes(b"\r\n$ ");
        desk.settles(command.as_bytes()).types(b"\r");
        desk.echoes(format!("{keys}{}(END)", "text\r\n".repeat(30)).as_bytes());
        for _ in 0..2 {
            desk.types(b"/").echoes(b"\r\x1b[K/").types(b"pattern").writes(b"p");
            assert_eq!(desk.shown().row_text(23), shown, "{command:?}, {keys:?}");
            desk.echoes(b"attern").types(b"\r").echoes(b"\r\x1b[K(END)");
        }
    }
}

/// In a window whose left neighbour shows text, what stands left of a line is not its prompt: a command that
/// is slow to switch echo off leaves it to the kernel to echo what is typed ahead of its question.
#[test]
fn the_window_to_the_left_is_no_prompt() {
    // The border, and what it is in the row of the password: another one may meet it there.
    for (border, here) in [
        ("\u{2502}", "\u{2502}"),
        ("|", "|"),
        ("#", "#"),
        ("\u{2502}", "\u{2524}"),
        ("\u{2502}", "\u{251c}"),
        ("\u{2503}", "\u{252b}"),
        ("\u{2551}", "\u{2563}"),
        ("|", "+"),
    ] {
        let mut desk = Desk::new(Settings::ROVE.with_display(Display::Always), 250);
        desk.line = Some(LineMode::Raw);
        let border = |row| if row == 6 { here } else { border };
        let rows = (1..=24).map(|row| format!("\x1b[{row}Hleft text{}", border(row)));
        desk.echoes(rows.collect::<String>().as_bytes()).echoes(b"\x1b[5;11H$ ");
        desk.settles(b"ssh host").types(b"\rhunter2");
        for letter in 0..3 {
            let at = format!("\x1b[6;{}H{}", 11 + letter, &"hunter2"[letter..=letter]);
            desk.writes(at.as_bytes());
            assert_eq!(shown_text(&desk), real_text(&desk), "{here}: the kernel echoes {letter}");
            desk.acks(1 + letter as u64);
            assert_eq!(shown_text(&desk), real_text(&desk), "{here}: acknowledged");
        }
    }
}
