//! Tests the reach of faults: a panic in a client, and servers that crash beside others (threats row 39).
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod terminal;
mod visitor;

use rove::testing::bootstrap::CostProfile;
use rove::testing::client::{Settings, WaySetting};
use rove::testing::os::Clock;
use rove::testing::{Trace, Verbosity};
use rove_session::Escape;
use rove_session::predict::Settings as Guesses;
use rove_term::Dialect;
use rustix::process::{Pid, Signal, kill_process};
use terminal::Terminal;
use tokio::signal::unix::{SignalKind, signal};
use visitor::{Host, Visitor, is_alive, wait_until};

/// The name by which the test below knows itself when it is run again, on a terminal: the way to its server.
const PANICS: &str = "THIS_TEST_PANICS";

/// A session whose client panics in a thread and in a task beside the session when it is sent SIGUSR1, and in the
/// session at SIGUSR2.
async fn session_that_panics(way: &str) {
    let mut beside = signal(SignalKind::user_defined1()).unwrap();
    let mut within = signal(SignalKind::user_defined2()).unwrap();
    let clock = Clock::start();
    let trace = Trace::new(clock, Verbosity::Quiet);
    let settings = settings();
    let session = rove::testing::client::run(
        clock,
        Host::found_by(way),
        &settings,
        None,
        "here",
        None,
        &trace,
    );
    let faults = async {
        beside.recv().await;
        let thread = std::thread::spawn(|| panic!("as planned, in a thread"));
        assert!(thread.join().is_err());
        let task = tokio::spawn(async { panic!("as planned, in a task") });
        assert!(task.await.is_err());
        within.recv().await;
        panic!("as planned, in the session")
    };
    tokio::select! {
        ended = session => panic!("{ended:?}"),
        () = faults => {}
    }
}

fn settings() -> Settings {
    Settings {
        tty: Dialect::tty("xterm-256color", ""),
        escape: Escape::default(),
        window: None,
        name: "rove",
        title_prefix: "",
        obscure: None,
        obscure_slot: None,
        history: 10_000,
        wants_fewer: false,
        clear_history: true,
        keep_cleared: true,
        guesses: Guesses::ROVE,
        tariff: CostProfile::Flat,
        detaches_on_close: false,
        way: WaySetting::Udp,
        falls_back: false,
    }
}

/// A session, confined as each is, lives through what panics beside it; what panics in it gives the terminal back
/// before anything is said.
#[test]
fn a_panic_gives_the_terminal_back() {
    if let Ok(way) = std::env::var(PANICS) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(session_that_panics(&way));
    }
    let script = "echo begun; read line; echo goes on; read line";
    let host = Host::start_native(&["-p", "0", "--", "sh", "-c", script], &[]);
    let program = std::env::current_exe().unwrap().into_os_string().into_string().unwrap();
    let words = ["--exact", "a_panic_gives_the_terminal_back", "--nocapture"];
    let mut terminal = Terminal::run(&program, &words, &[(PANICS, &host.way())]);
    let client = Pid::from_raw(terminal.pid().cast_signed()).unwrap();
    terminal.expect("begun");
    kill_process(client, Signal::USR1).unwrap();
    terminal.type_keys("\r");
    terminal.expect("goes on");
    assert!(!terminal.text().contains("as planned"), "{}", terminal.text());
    kill_process(client, Signal::USR2).unwrap();
    assert_eq!(terminal.finish(), 101, "{}", terminal.text());
    let shown = terminal.text();
    let left = shown.find("\x1b[?1l");
    for place in ["in a thread", "in a task", "in the session"] {
        let said = shown.find(&format!("as planned, {place}"));
        assert!(left.is_some() && left < said, "{place}: {shown}");
    }
    terminal.assert_given_back();
}

/// Sessions at a time on one host.
const SESSIONS: usize = 24;

/// Each session is a process: of those that crash or are killed nothing is left, and the others answer on.
#[test]
fn servers_that_crash_take_no_other_session() {
    let ends = [None, Some(Signal::ABORT), None, Some(Signal::ILL), None, Some(Signal::KILL)];
    let mut sessions: Vec<(Host, Visitor, u32)> = Vec::new();
    for _ in 0..SESSIONS {
        let words =
            ["-p", "0", "--", "sh", "-c", "echo shell=$$=ready; while read line; do $line; done"];
        let host = Host::start_native(&words, &[]);
        let mut visitor = Visitor::new(&host);
        let text = visitor.wait_for("=ready").concat();
        let shell = text.split('=').nth(1).unwrap().parse().unwrap();
        sessions.push((host, visitor, shell));
    }
    for ((host, _, shell), end) in sessions.iter().zip(ends.iter().cycle()) {
        let Some(signal) = end else { continue };
        host.signal(*signal);
        host.wait_for_end();
        wait_until("its program has ended", || !is_alive(*shell));
    }
    for ((host, visitor, shell), end) in sessions.iter_mut().zip(ends.iter().cycle()) {
        if end.is_none() {
            visitor.keys(b"expr 40 + 2\r");
            visitor.wait_for("42");
            assert!(is_alive(host.pid) && is_alive(*shell));
        }
    }
}
