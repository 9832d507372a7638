//! The kernel's echo, where nobody knows that a command is slow to switch it off: a shell's line is remembered, and
//! what shows below it confirms nothing.

mod desk;

use desk::{Desk, real_text, shown_text};
use rove_session::predict::{Display, LineMode, Settings};
use rove_term::Size;

/// The typed keys, each with its echo by the kernel (termios: ECHOE, ECHOCTL, VWERASE).
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

/// Types this, `ahead` keys ahead of their echo, and checks that nothing is shown that the kernel has not echoed.
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

/// A pager leaves what stood on the screen, and asks in the last row. A line that ends as the
/// typed text is no question, in any mode of the keys.
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
