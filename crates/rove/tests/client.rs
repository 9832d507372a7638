//! Tests the client on a terminal: how the system shows it, and faults of the terminal.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod terminal;

use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use terminal::{Directory, ROVE, Terminal};

const KEY: &str = "AAECAwQFBgcICQoLDA0ODw";

fn local(words: &[&str]) -> Terminal {
    let server = format!("--server={ROVE}");
    let words = [&["--local", &server, "127.0.0.1"], words].concat();
    Terminal::run(ROVE, &words, &[])
}

fn signal(terminal: &Terminal, name: &str) {
    let kill = format!("kill -{name} {}", terminal.pid());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// No rove need be installed where this one is.
#[test]
fn a_session_here_is_served_by_this_very_program() {
    let words = ["--local", "127.0.0.1", "echo status; exit 7"];
    let mut terminal = Terminal::run(ROVE, &words, &[("PATH", "/usr/bin:/bin")]);
    assert_eq!(terminal.finish(), 7, "{}", terminal.text());
    assert!(terminal.text().contains("status"), "{}", terminal.text());
}

/// Called by stock's name it takes stock's words and environment. `secrets.rs` looks for the key.
#[test]
fn mosh_client_takes_stocks_words() {
    let directory = Directory::new("applet");
    let program = directory.link("mosh-client", ROVE);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let words = ["-# --ssh=x host |", "127.0.0.1", &port];
    let mut terminal = Terminal::run(&program, &words, &[("MOSH_KEY", KEY)]);
    terminal.expect("\x1b[?1h");
    signal(&terminal, "TERM");
    signal(&terminal, "TERM");
    assert_eq!(terminal.finish(), 1);
    assert!(terminal.text().contains("[mosh is exiting.]"), "{}", terminal.text());
    terminal.assert_given_back();
}

#[test]
fn mosh_client_refuses_what_stock_refuses() {
    let directory = Directory::new("refusals");
    let program = directory.link("mosh-client", ROVE);
    let key = ("MOSH_KEY", KEY);
    for (words, set, status, text) in [
        (&["127.0.0.1", "60001"][..], &[][..], 1, "MOSH_KEY"),
        (&["127.0.0.1", "60001"], &[("MOSH_KEY", "short")], 1, "22 base64"),
        (&["127.0.0.1", "60001"], &[key, ("MOSH_PREDICTION_DISPLAY", "x")], 1, "prediction"),
        (&["localhost", "60001"], &[key], 1, "not a numeric IP"),
        (&["127.0.0.1"], &[key], 1, "Usage"),
        (&["-c"], &[], 0, "256"),
        (&["--help"], &[], 0, "Usage"),
        (&["--version"], &[], 0, "mosh 1.4.0"),
    ] {
        let mut terminal = Terminal::run(&program, words, set);
        assert_eq!(terminal.finish(), status, "{words:?}: {}", terminal.text());
        assert!(terminal.text().contains(text), "{words:?}: {}", terminal.text());
        terminal.assert_given_back();
    }
}

/// A terminal that nobody reads from keeps neither the machine nor the way out.
#[test]
fn a_terminal_that_takes_nothing() {
    let mut terminal = local(&["while :; do seq 100000; done"]);
    terminal.expect("99999");
    signal(&terminal, "TERM");
    assert_eq!(terminal.finish_unread(), 143);
    terminal.assert_modes_given_back();
}

/// The end of what is typed is the end of the session, as is a terminal that is gone.
#[test]
fn a_terminal_that_goes_away() {
    let mut terminal = local(&["echo here; sleep 100"]);
    terminal.expect("here");
    assert_eq!(terminal.hang_up(), 129);
}

#[test]
fn the_escape_key_suspends_and_a_shell_continues() {
    let mut terminal = Terminal::run("bash", &["--norc", "--noprofile", "-i"], &[("PS1", "$ ")]);
    terminal.expect("$ ");
    terminal.type_keys(&format!("{ROVE} --local --server={ROVE} 127.0.0.1 'echo he''re; cat'\n"));
    terminal.expect("here");
    terminal.type_keys("\x1e\x1a");
    terminal.expect("\x1b[?1l");
    terminal.expect("Stopped");
    terminal.type_keys("stty -a | grep -c -w -- -icanon; fg\n");
    terminal.expect("0\r\n");
    terminal.expect("\x1b[?1h");
    terminal.expect("here");
    terminal.type_keys("ty\x1e^ped\n");
    terminal.expect("ty^^ped");
    terminal.type_keys("\x1e.");
    terminal.expect("\x1b[?1l");
    terminal.type_keys("echo status $?; exit\n");
    terminal.expect("status 0");
    let shown = terminal.text();
    assert_eq!(shown.matches("rove: ended the session on 127.0.0.1").count(), 1, "{shown}");
    assert_eq!(terminal.finish(), 0);
    terminal.assert_given_back();
}

/// A program that ends by itself says what it says; rove adds nothing.
#[test]
fn a_program_that_ends_leaves_no_words() {
    let mut terminal = local(&["echo here; exit 3"]);
    assert_eq!(terminal.finish(), 3);
    assert!(!terminal.text().contains("ended the session"), "{}", terminal.text());
}

/// A session that ends before its program does is a failure; one that its user ends is none.
#[test]
fn a_server_that_is_told_to_end() {
    for (signal, ends) in [("TERM", "kill -TERM $PPID"), ("USR1", "kill -USR1 $PPID")] {
        let mut terminal = local(&[&format!("echo here; {ends}; sleep 100")]);
        assert_eq!(terminal.finish(), 255, "{signal}: {}", terminal.text());
        let shown = terminal.text();
        assert!(shown.contains("was ended on 127.0.0.1 before its program"), "{signal}: {shown}");
        assert!(shown.contains("start again"), "{signal}: {shown}");
        terminal.assert_given_back();
    }
}

/// Stopped and continued from outside, it takes the terminal again.
#[test]
fn a_stop_from_outside() {
    let mut terminal = local(&["echo here; cat"]);
    terminal.expect("here");
    signal(&terminal, "STOP");
    signal(&terminal, "CONT");
    terminal.expect("here");
    terminal.type_keys("typed\n");
    terminal.expect("typed");
    terminal.type_keys("\x1e.");
    assert_eq!(terminal.finish(), 0, "{}", terminal.text());
    terminal.assert_given_back();
}

/// Without a shell to come back to, the terminal's stop has no effect; a later one has.
#[test]
fn a_suspend_that_does_not_stop() {
    let mut terminal = local(&["echo here; cat"]);
    terminal.expect("here");
    terminal.type_keys("\x1e\x1a");
    terminal.expect("\x1b[?1l");
    terminal.expect("\x1b[?1h");
    terminal.expect("here");
    for _ in 0..2 {
        signal(&terminal, "STOP");
        signal(&terminal, "CONT");
        terminal.expect("\x1b[?1h");
        terminal.expect("here");
    }
    terminal.type_keys("typed\n");
    terminal.expect("typed");
    terminal.type_keys("\x1e.");
    assert_eq!(terminal.finish(), 0, "{}", terminal.text());
    terminal.assert_given_back();
}

#[test]
fn the_window_follows() {
    let mut terminal = local(&["stty size; trap 'stty size' WINCH; while :; do sleep 0.1; done"]);
    terminal.expect("24 80");
    terminal.resize(100, 30);
    terminal.expect("30 100");
    terminal.type_keys("\x1e.");
    assert_eq!(terminal.finish(), 0, "{}", terminal.text());
}

/// The name by which the test below knows itself when it is run again, on a terminal: how it is to crash.
const CRASHES: &str = "THIS_TEST_CRASHES";

/// The next number, with a stack that never ends.
#[expect(unconditional_recursion, reason = "that is how a stack overflows")]
fn overflow(number: &mut u64) -> u64 {
    *number += 1;
    let mut next = *number;
    std::hint::black_box(overflow(&mut next)) + next
}

/// More than a terminal takes in one piece, with what matters at its end.
fn long_farewell() -> Vec<u8> {
    [&[0; 1500][..], b"\x1b[?1049l"].concat()
}

#[test]
fn a_crash_gives_the_terminal_back() {
    if let Ok(crash) = std::env::var(CRASHES) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut tty = rove::testing::os::Tty::open().unwrap();
            tty.borrow(b"\x1b[?1049h", long_farewell()).unwrap();
            std::future::poll_fn(|cx| tty.poll_flush(cx)).await;
            match crash.as_str() {
                "unread" => {
                    tty.frame().resize(1 << 20, b'x');
                    let flush = std::future::poll_fn(|cx| tty.poll_flush(cx));
                    let waited = tokio::time::timeout(Duration::from_millis(200), flush).await;
                    assert!(waited.is_err(), "it takes everything");
                    std::process::abort();
                }
                "abort" => std::process::abort(),
                "overflow" => drop(overflow(&mut 1)),
                signal => drop(Command::new("sh").args(["-c", signal]).status()),
            }
            // Another thread may be the one that dies of it.
            loop {
                std::thread::park();
            }
        });
    }
    let program = std::env::current_exe().unwrap().into_os_string().into_string().unwrap();
    let words = ["--exact", "a_crash_gives_the_terminal_back", "--nocapture"];
    for (crash, status) in
        [("abort", 134), ("overflow", 134), ("kill -SEGV $PPID", 139), ("kill -FPE $PPID", 136)]
    {
        let mut terminal = Terminal::run(&program, &words, &[(CRASHES, crash)]);
        assert_eq!(terminal.finish(), status, "{crash}: {}", terminal.text());
        assert!(terminal.text().contains("\x1b[?1049l"), "{crash}: {}", terminal.text());
        terminal.assert_given_back();
    }
    // Nobody takes what it has to say.
    let mut terminal = Terminal::run(&program, &words, &[(CRASHES, "unread")]);
    assert_eq!(terminal.finish_unread(), 134);
    terminal.assert_modes_given_back();
}

/// The other end is told that octets cost.
#[test]
fn a_metered_session_is_one_at_the_server_too() {
    for (option, count) in [(&["--metered"][..], "told 1"), (&[], "told 0")] {
        let server = format!("--server={ROVE}");
        let script =
            r#"echo "told $(tr '\0' '\n' </proc/$PPID/cmdline | grep -c -x -e --metered)""#;
        let words = [option, &["--local", &server, "127.0.0.1", script]].concat();
        let mut terminal = Terminal::run(ROVE, &words, &[]);
        terminal.expect(count);
        assert_eq!(terminal.finish(), 0);
    }
}
