//! A session on a user's terminal, which is our own emulator here: its two screens, its history, its
//! answers.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod gate;
mod terminal;

use std::process::Command;
use std::time::{Duration, Instant};

use rove_term::{Dialect, Size, Underline};
use terminal::{Directory, ROVE, Terminal};

/// A shell on a terminal where a line was shown already; its prompt is `$ `.
fn shell() -> Terminal {
    let set = [("PS1", "$ ")];
    let mut terminal = Terminal::run("bash", &["--norc", "--noprofile", "-i"], &set).answering();
    terminal.type_keys("echo ear''lier\n");
    terminal.expect("earlier");
    terminal
}

fn rows(terminal: &Terminal) -> Vec<String> {
    let rows = terminal.screen().screen().text();
    rows.into_iter().filter(|row| !row.is_empty()).collect()
}

fn history(terminal: &Terminal) -> Vec<String> {
    let history = terminal.screen().history();
    (0..history.len()).map(|line| history.text(line).unwrap()).collect()
}

/// A shell on the host: what it shows, on which screen, and what stays of it.
#[test]
fn a_session_on_the_users_own_screen() {
    let mut terminal = shell();
    terminal.type_keys(&format!(
        "{ROVE} --local --server={ROVE} 127.0.0.1 'PS1=\"host$ \" bash --norc --noprofile -i'\n"
    ));
    let shows = |terminal: &rove_term::Terminal, wanted: &str| {
        terminal.screen().text().iter().any(|row| row == wanted)
    };
    terminal.expect_screen("a prompt", |seen| shows(seen, "host$"));
    let all = [history(&terminal), rows(&terminal)].concat();
    assert!(all.iter().any(|line| line == "earlier"), "{all:?}");
    terminal.type_keys("printf '\\e[4:3mcur''ly\\e[m\\n'\n");
    terminal.expect_screen("a curly underline", |seen| {
        let row = seen.screen().text().iter().position(|row| row == "curly");
        row.is_some_and(|row| {
            let style = seen.screen().cell_style(row as u16, 0);
            style.attrs.underline() == Underline::Curly
        })
    });
    terminal.type_keys("printf '\\e[?1049hfull'; read; printf '\\e[?1049l'\n");
    terminal.expect_screen("the alternate screen", |seen| {
        seen.screen().text().concat() == "full" && seen.screen().modes().cursor_visible
    });
    terminal.resize(100, 30);
    terminal.type_keys("\n");
    terminal.expect_screen("the shell again", |seen| shows(seen, "curly"));
    terminal.type_keys("exit 3\n");
    terminal.expect("\x1b[?2031l");
    terminal.type_keys("echo status $?\n");
    terminal.expect_screen("the shell before", |seen| {
        seen.screen().text().iter().any(|row| row == "status 3")
    });
    let seen = rows(&terminal);
    let place = |text: &str| seen.iter().position(|row| row.starts_with(text));
    assert!(place("curly") < place("exit") && place("exit") < place("status 3"), "{seen:#?}");
    terminal.type_keys("exit\n");
    assert_eq!(terminal.finish(), 0);
    terminal.assert_given_back();
}

/// What the terminal answers is not typed, and what is typed meanwhile is.
#[test]
fn answers_are_not_keys() {
    let mut terminal = shell();
    let remote = "stty -echo -icanon; echo ready; cat -v";
    terminal.type_keys(&format!("{ROVE} --local --server={ROVE} 127.0.0.1 '{remote}'\n"));
    terminal.expect("\x1b[c");
    terminal.type_keys("typed\x1b[A");
    // The line echoes it until stty forbids that, and then cat does.
    let below_the_command = |rows: &[String]| {
        let command = rows.iter().rposition(|row| row.ends_with("cat -v'"));
        rows[command.map_or(0, |row| row + 1)..].concat()
    };
    terminal.expect_screen("what was typed", |seen| {
        let shown = below_the_command(&seen.screen().text());
        shown.find("ready") < shown.rfind("typed^[[A") && shown.contains("ready")
    });
    let shown = below_the_command(&rows(&terminal));
    assert_eq!(shown.replace("typed^[[A", "").replace("ready", ""), "");
    terminal.type_keys("\x1e.");
    terminal.expect("\x1b[?2031l");
    terminal.type_keys("exit\n");
    terminal.finish();
    terminal.assert_given_back();
}

/// Nor are they typed into the shell after a session that ends, or is suspended, before they are read.
#[test]
fn answers_do_not_outlive_the_session() {
    let mut terminal = shell();
    let rove = format!("{ROVE} --local --server={ROVE} 127.0.0.1");
    for (remote, keys) in [("true", ""), ("cat", "\x1e\x1a")] {
        terminal.type_keys(&format!("{rove} {remote}\n"));
        terminal.expect("\x1b[c");
        terminal.type_keys(keys);
        terminal.expect("\x1b[?1l");
        terminal.type_keys(&format!("echo af''ter {remote}\n"));
        let after = format!("after {remote}");
        terminal.expect_screen("the shell", |seen| seen.screen().text().contains(&after));
        let all = [history(&terminal), rows(&terminal)].concat().concat();
        assert!(!all.contains("rgb:") && !all.contains("2026;"), "{all}");
    }
    terminal.type_keys("kill %1; fg; exit\n");
    terminal.finish();
    terminal.assert_given_back();
}

/// Answers that come when the session is over already, for two signals make it end at once, are taken all
/// the same. A second after the questions nobody waits for them any more, which on a busy machine can be too
/// soon: an attempt that has lasted so long says nothing.
#[test]
fn late_answers_are_not_typed_either() {
    const ANSWERS: &str = "\x1b[?2026;2$y\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62c";
    const WAITED: Duration = Duration::from_secs(1);
    let directory = Directory::new("late");
    let pid_file = directory.script("pid", "");
    let rove = format!("{ROVE} --local --server={ROVE} 127.0.0.1 sleep 100");
    let line =
        format!("sh -c 'echo $$ >{pid_file}; exec {rove}'; echo ov''er; stty -icanon; cat -v");
    for attempt in 0..20 {
        let began = Instant::now();
        let mut terminal = Terminal::run("sh", &["-c", &line], &[]);
        terminal.expect("\x1b[c");
        let pid = std::fs::read_to_string(&pid_file).unwrap();
        let pid = pid.trim();
        let kill = format!("kill -TERM {pid}; kill -INT {pid} 2>/dev/null; :");
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        terminal.type_keys(ANSWERS);
        terminal.expect("over");
        // The questions came after it had begun, and the client has ended before that was read.
        let lasted = began.elapsed();
        terminal.type_keys("next");
        terminal.expect("next");
        let typed = terminal.text().rsplit("over").next().unwrap().to_owned();
        if !typed.contains("rgb") {
            if attempt > 0 {
                gate::retried("late_answers_are_not_typed_either", "answers came too late");
            }
            return;
        }
        assert!(lasted >= WAITED, "answers were typed after {lasted:?}: {typed:?}");
    }
    panic!("no session was over within {WAITED:?}");
}

/// Which screen a session takes, and how that is chosen.
#[test]
fn the_screen_is_chosen() {
    let directory = Directory::new("init");
    let stock = directory.link("mosh-server", ROVE);
    let none = ("MOSH_NO_TERM_INIT", "1");
    for (server, words, set, alternate) in [
        (ROVE, &[][..], &[][..], false),
        (ROVE, &["--init"], &[], true),
        (ROVE, &["--no-init"], &[], false),
        (&stock, &[], &[], true),
        (&stock, &["--no-init"], &[], false),
        (&stock, &["--no-init", "--init"], &[], true),
        (&stock, &[], &[none], false),
        (&stock, &["--init"], &[none], true),
    ] {
        let server_word = format!("--server={server}");
        let words = [&["--local", &server_word], words, &["127.0.0.1", "echo here; cat"]].concat();
        let mut terminal = Terminal::run(ROVE, &words, set);
        terminal.expect("here");
        let entered = terminal.text().contains("\x1b[?1049h");
        assert_eq!(entered, alternate, "{words:?} {set:?}: {}", terminal.text());
        terminal.type_keys("\x1e.");
        assert_eq!(terminal.finish(), 0, "{words:?} {set:?}: {}", terminal.text());
        terminal.assert_given_back();
        let left = terminal.screen().screen().text().iter().any(|row| row == "here");
        assert_eq!(left, !alternate, "{words:?} {set:?}");
    }
}

/// A program's every switch, thrown: keys, mouse, paste, focus, cursor, colours, margins, charset.
const SWITCHES: &str = concat!(
    r"\033[?1h\033=\033[?1000h\033[?1006h\033[?2004h\033[?1004h\033[>1u\033[>4;2m",
    r"\033[?5h\033[?25l\033[4 q\033]12;red\007\033[3;9r\033[4h\033[31;1m\033(0"
);

/// A signal to `rove` leaves the terminal as it was found, with any mode that a program has switched on, and
/// so does a crash.
#[test]
fn a_signal_gives_the_whole_terminal_back() {
    let found = rove_term::Terminal::new(Size::DEFAULT, Dialect::ROVE);
    let found = found.screen();
    for (words, grid, signal, status) in [
        (&[][..], "", "TERM", 143),
        (&[], r"\033[?1049h", "TERM", 143),
        (&["--init"], "", "TERM", 143),
        (&["--init"], r"\033[?1049h", "TERM", 143),
        (&["--mosh-wire"], r"\033[?1049h", "TERM", 143),
        (&[], "", "SEGV", 139),
        (&[], r"\033[?1049h", "SEGV", 139),
        (&["--init"], r"\033[?1049h", "SEGV", 139),
    ] {
        let server = format!("--server={ROVE}");
        let remote = format!("printf '{grid}{SWITCHES}'; printf '\\033(Bhere'; exec sleep 100");
        let words = [&["--local", &server], words, &["127.0.0.1", &remote]].concat();
        let mut terminal = Terminal::run(ROVE, &words, &[]).answering();
        terminal.expect_screen("the switches", |seen| {
            let (text, modes) = (seen.screen().text().concat(), seen.screen().modes());
            text.contains("here") && modes.bracketed_paste && !modes.cursor_visible
        });
        let kill = format!("kill -{signal} {}", terminal.pid());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(terminal.finish(), status, "{words:?}: {}", terminal.text());
        terminal.assert_given_back();
        let left = terminal.screen().screen();
        assert_eq!(left.modes(), found.modes(), "{words:?}");
        assert_eq!((left.buffer(), left.cursor().col), (found.buffer(), 0), "{words:?}");
        assert_eq!((left.pen(), left.margins()), (found.pen(), found.margins()), "{words:?}");
        assert_eq!(left.charsets(), found.charsets(), "{words:?}");
        assert_eq!(left.palette(), found.palette(), "{words:?}");
    }
}

/// What a host says of files, notifications and hidden text reaches the user's terminal only as far as it is
/// harmless there: this machine's name is read, and no file of it is named.
#[test]
fn a_host_names_no_file_of_this_machine() {
    let directory = Directory::new("uris");
    let link = |uri: &str, text: &str| format!(r"\033]8;;{uri}\007{text}\033]8;;\007");
    let links = [
        ("file://$own/etc/passwd", "a", None),
        ("file://$own.example.org./etc/passwd", "b", None),
        ("file:///etc/passwd", "c", None),
        ("file://127.0.0.1/etc/passwd", "d", None),
        ("javascript:x", "e", None),
        ("file://elsewhere/a", "f", Some("file://elsewhere/a")),
        ("https://elsewhere/a", "g", Some("https://elsewhere/a")),
    ];
    let drawn: String = links.iter().map(|(uri, text, _)| link(uri, text)).collect();
    let script = format!(
        r#"own=$(uname -n)
        printf "\033]7;file://elsewhere/a\007{drawn}one"; read line
        printf "\033]7;file://$own/b\007\033]9;2;message\007hid\363\240\201\241den"; read line
        printf "\033]7;file://elsewhere/c\007\033]9;hello\007three"; read line"#
    );
    let program = directory.script("program", &script);
    let server = format!("--server={ROVE}");
    let mut terminal = Terminal::run(ROVE, &["--local", &server, "127.0.0.1", &program], &[]);
    terminal.expect("\x1b]7;file://elsewhere/a\x07");
    terminal.expect_screen("links", |seen| seen.screen().row_text(0) == "abcdefgone");
    let screen = terminal.screen().screen();
    for (cell, (uri, _, want)) in screen.row(0).cells().iter().zip(links) {
        let shown = screen.pool().link(cell.link()).map(|link| link.uri);
        assert_eq!(shown, want, "{uri}");
    }
    terminal.type_keys("\n");
    terminal.expect("\x1b]7;\x07");
    terminal.expect_screen("no tags", |seen| seen.screen().text().concat().contains("hidden"));
    terminal.type_keys("\n");
    terminal.expect("\x1b]777;notify;;hello\x07");
    terminal.expect("\x1b]7;file://elsewhere/c\x07");
    terminal.type_keys("\n");
    assert_eq!(terminal.finish(), 0, "{}", terminal.text());
    let text = terminal.text();
    let own = Command::new("uname").arg("-n").output().unwrap().stdout;
    let own = String::from_utf8(own).unwrap();
    for absent in ["passwd", "message", "\u{e0061}", &format!("file://{}", own.trim())] {
        assert!(!text.contains(absent), "{absent:?} in {text:?}");
    }
}

/// What a program on the host puts on the clipboard reaches the user's terminal, unless the user refuses. It is sent with
/// the screen that shows the word behind it.
#[test]
fn the_clipboard_is_kept_if_the_user_asks() {
    let server = format!("--server={ROVE}");
    let program = r"printf '\033]52;c;cm92ZQ==\007'; echo af''ter; read line; exit 7";
    let refused = ("ROVE_NO_CLIPBOARD", "1");
    for (words, set, passes) in [
        (&[][..], &[][..], true),
        (&["--mosh-wire"], &[], true),
        (&["--no-clipboard"], &[], false),
        (&["--mosh-wire", "--no-clipboard"], &[], false),
        (&[], &[refused], false),
    ] {
        let words = [&["--local", &server], words, &["127.0.0.1", program]].concat();
        let mut terminal = Terminal::run(ROVE, &words, set);
        terminal.expect_screen("the word behind", |seen| {
            seen.screen().text().iter().any(|row| row == "after")
        });
        terminal.type_keys("\n");
        assert_eq!(terminal.finish(), 7, "{words:?}: {}", terminal.text());
        let text = terminal.text();
        assert_eq!(text.contains("\x1b]52;c;cm92ZQ=="), passes, "{words:?} {set:?}: {text:?}");
        assert_eq!(text.contains("\x1b]52;"), passes, "{words:?} {set:?}: {text:?}");
    }
}

/// A program that pushes input into its terminal (TIOCSTI) has a terminal of its own: it reads that there, and nothing
/// of it reaches the shell that started the session. Where the kernel lets nobody push, nothing would be shown.
#[test]
fn pushed_input_stays_in_the_session() {
    const TIOCSTI: &str = "0x5412";
    let directory = Directory::new("input");
    let push =
        format!("ioctl(STDIN, {TIOCSTI}, $_) or die qq(refused: $!\\n) for split //, $ARGV[0]");
    let script = format!(
        "push() {{ perl -e '{push}' \"$1\"; }}
         push \"own\n\" || exit 1
         read line
         echo \"got <$line>\"
         push \"echo pu''shed\n\"
         echo tried
         exit 0"
    );
    let push = directory.script("push", &script);
    let mut terminal = shell();
    terminal.type_keys(&format!("{ROVE} --local --server={ROVE} 127.0.0.1 {push}\n"));
    let shows = |seen: &rove_term::Terminal, text: &str| {
        seen.screen().text().iter().any(|row| row.starts_with(text))
    };
    terminal.expect_screen("what comes of TIOCSTI", |seen| {
        shows(seen, "refused") || shows(seen, "got <own>")
    });
    let setting = "/proc/sys/dev/tty/legacy_tiocsti";
    let setting = std::fs::read_to_string(setting).unwrap_or_else(|error| error.to_string());
    assert!(
        shows(terminal.screen(), "got <own>"),
        "not testable here: this kernel lets no program push input into its own terminal \
         (dev.tty.legacy_tiocsti: {}); as root: sysctl dev.tty.legacy_tiocsti=1",
        setting.trim()
    );
    terminal.expect("tried");
    terminal.expect("\x1b[?2031l");
    terminal.type_keys("echo af''ter\n");
    terminal.expect_screen("the shell", |seen| seen.screen().text().contains(&"after".to_owned()));
    let all = [history(&terminal), rows(&terminal)].concat().concat();
    assert!(!all.contains("pushed"), "{all}");
    terminal.type_keys("exit\n");
    terminal.finish();
    terminal.assert_given_back();
}

/// A paste reaches a program that asked for brackets as the terminal sends it, each octet once, and none of
/// it is a command to rove: also if the terminal lets the closing bracket through inside, and the octets
/// after it would leave or suspend the session. The program decides where the paste ends for it.
#[test]
fn pasted_text_commands_nothing() {
    let server = format!("--server={ROVE}");
    let script = r"stty -icanon -echo -isig; printf '\033[?2004hready\n'; exec cat -v";
    let words = ["--local", &server, "127.0.0.1", script];
    let mut terminal = Terminal::run(ROVE, &words, &[]);
    terminal.expect_screen("brackets are asked for", |seen| {
        seen.screen().modes().bracketed_paste && seen.screen().text().contains(&"ready".to_owned())
    });
    for (pasted, shown) in [
        ("\x1b[200~a\x1e.\x1e\x1ab\x1b[201~", "^[[200~a^^.^^^Zb^[[201~"),
        ("\x1b[200~c\x1b[201~\x1e.\x1e\x1ad\x1b[201~", "^[[200~c^[[201~^^.^^^Zd^[[201~"),
        ("\x1b[200~e\x1b[200~\x1e.\x1b[201~", "^[[200~e^[[200~^^.^[[201~"),
    ] {
        terminal.type_keys(pasted);
        terminal.expect_screen(shown, |seen| {
            let all = seen.screen().text().concat();
            all.ends_with(shown) && all.matches(shown).count() == 1
        });
    }
    // After a person's pause the escape key is one again.
    terminal.pause();
    terminal.type_keys("\x1e.");
    assert_eq!(terminal.finish(), 0, "{}", terminal.text());
    terminal.assert_given_back();
}
