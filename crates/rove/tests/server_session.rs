//! The built server as a client meets it: it is claimed, typed at, and watched.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // A check that fails says where.

mod visitor;

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

use rove::testing::os::Clock;
use rove_ssp::Time;
use rustix::process::Signal;
use visitor::{Host, Visitor};

/// A directory of its own for one test, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("rove-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_shell_finds_good_surroundings() {
    let scratch = Scratch::new("surroundings");
    let script = "printf '%s|' start $LANG $TERM $COLORTERM $NCURSES_NO_UTF8_ACS \"$PWD\" \
                  \"$STY$TMUX$TMUX_PANE\" $(stty size) $(ulimit -c) $(ps -o sid= -p $$) $$; \
                  grep SigIgn /proc/self/status; stty -a | grep -o iutf8; read end";
    let home = scratch.path("");
    let home = home.trim_end_matches('/');
    let host = Host::start_native(
        &["-p", "0", "--", "sh", "-c", script],
        &[
            ("HOME", home),
            ("LC_ALL", "C"),
            ("TMUX", "x"),
            ("TMUX_PANE", "%0"),
            ("STY", "y"),
            ("TERM", "dumb"),
        ],
    );
    let mut visitor = Visitor::new(&host);
    let text = visitor.wait_for("iutf8");
    let cores = Command::new("sh").args(["-c", "ulimit -c"]).output().unwrap().stdout;
    let cores = String::from_utf8(cores).unwrap();
    let joined = text.concat();
    let words: Vec<&str> = joined.split('|').collect();
    assert_eq!(words[..6], ["start", "C.UTF-8", "xterm-256color", "truecolor", "1", home]);
    assert_eq!(words[6..9], ["", "24", "80"]);
    assert_eq!(words[9], cores.trim(), "core files as they were");
    assert_eq!(words[10], words[11], "it leads a session: TIOCSTI reaches no other terminal");
    let ignored = joined.split("SigIgn:").nth(1).unwrap().split("iutf8").next().unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    assert_eq!(ignored & 0x7fff_ffff, 0, "the classic signals: {ignored:x}");
    assert!(text[0].starts_with("start|"), "no blank line before the first words: {text:?}");
}

#[test]
fn the_status_reaches_a_rove_client() {
    for (words, status) in [
        (&["exit 7"][..], 7),
        (&["sh", "-c", "exit 0"], 0),
        (&["sh", "-c", "kill -TERM $$"], 128 + 15),
        (&["/no/such/program", "word"], 127),
        (&["/etc/passwd", "word"], 126),
        // What is left in the background holds the terminal, and nobody waits for it.
        (&["setsid sleep 20 & exit 3"], 3),
        // Nobody holds the terminal while it runs; it is waited for all the same.
        (&["exec sh -c 'sleep 1; exit 3' >/dev/null 2>&1 </dev/null"], 3),
    ] {
        let host = Host::start_native(&[&["-p", "0", "--"], words].concat(), &[]);
        let mut visitor = Visitor::new(&host);
        let exit = visitor.wait_for_exit();
        assert_eq!((exit.status, exit.clean), (Some(status), true), "{words:?}");
        host.wait_for_end();
    }
}

#[test]
fn the_last_words_are_seen() {
    let words = ["--nonce=x", "-p", "0", "--", "seq 100000; printf farewell"];
    let host = Host::start(&words, &[]);
    let mut visitor = Visitor::new(&host);
    let exit = visitor.wait_for_exit();
    assert!(exit.clean);
    assert_eq!(visitor.text()[23], "farewell");
}

#[test]
fn unread_input_stops_nothing() {
    for script in ["echo ready; exec sleep 1000", "stty raw; echo ready; exec sleep 1000"] {
        let host = Host::start_native(&["-p", "0", "--", "sh", "-c", script], &[]);
        let mut visitor = Visitor::new(&host);
        visitor.wait_for("ready");
        visitor.keys(&b"0123456789abcdefghijklmnopqrstu\r".repeat(200_000 / 32));
        visitor.wait_until_typed();
        host.signal(Signal::TERM);
        let exit = visitor.wait_for_exit();
        assert!(exit.clean, "{script}");
        host.wait_for_end();
    }
}

#[test]
fn ctrl_c_overtakes_unread_input() {
    let script = "trap 'echo caught' INT; echo ready; sleep 1000; read line; echo got $line";
    let host = Host::start_native(&["-p", "0", "--", "bash", "-c", script], &[]);
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("ready");
    visitor.keys(&b"0123456789abcdefghijklmnopqrstu\r".repeat(200_000 / 32));
    visitor.wait_until_typed();
    visitor.keys(b"\x03");
    visitor.wait_for("caught");
    // As at any terminal, what was typed before is forgotten, and what comes after is not.
    visitor.keys(b"this\r");
    visitor.wait_for("got this");
}

#[test]
fn many_interrupts_after_much_unread_input() {
    let script = "stty -icanon -echo noflsh; trap 'echo caught' INT; echo ready; while :; do sleep 1000; done";
    let host = Host::start_native(&["-p", "0", "--", "bash", "-c", script], &[]);
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("ready");
    // The client holds 1 MiB at a time.
    for _ in 0..4 {
        visitor.keys(&vec![b'x'; 512 << 10]);
        visitor.wait_until_typed();
    }
    visitor.keys(&[3; 256 << 10]);
    visitor.wait_for("caught");
    visitor.wait_until_typed();
    host.signal(Signal::TERM);
    assert!(visitor.wait_for_exit().clean);
    host.wait_for_end();
}

#[test]
fn the_shell_is_hung_up_when_the_client_leaves() {
    let scratch = Scratch::new("hangup");
    let file = scratch.path("hup");
    let script =
        format!("trap 'echo hup >{file}; exit' HUP; echo ready; while :; do sleep 1; done");
    let host = Host::start_native(&["-p", "0", "--", "sh", "-c", &script], &[]);
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("ready");
    visitor.leave();
    assert!(visitor.wait_for_exit().clean);
    host.wait_for_end();
    visitor::wait_until("the trap ran", || fs::read(&file).is_ok_and(|text| text == b"hup\n"));
}

#[test]
fn sigusr1_respects_a_client_that_speaks() {
    for (timeout, obeyed) in [(None, true), (Some("1000"), false)] {
        let environment: Vec<_> =
            timeout.map(|seconds| ("MOSH_SERVER_SIGNAL_TMOUT", seconds)).into_iter().collect();
        let words = ["--nonce=x", "-p", "0", "--", "sh", "-c", "echo ready; cat"];
        let host = Host::start(&words, &environment);
        let mut visitor = Visitor::new(&host);
        visitor.wait_for("ready");
        host.signal(Signal::USR1);
        if obeyed {
            assert!(visitor.wait_for_exit().clean);
            host.wait_for_end();
        } else {
            visitor.keys(b"still here\r");
            visitor.wait_for("still here");
        }
    }
}

/// For ten seconds, not for the minute in which a client may come back to a program that has ended.
#[test]
fn sigusr1_does_not_wait_long_for_a_silent_client() {
    let host = Host::start_native(&["-p", "0", "--", "sh", "-c", "echo ready; cat"], &[]);
    Visitor::new(&host).wait_for("ready");
    host.signal(Signal::USR1);
    let clock = Clock::start();
    host.wait_for_end();
    assert!(clock.now() < Time::from_millis(40_000), "{:?}", clock.now());
}

#[test]
fn a_silent_client_is_given_up() {
    let words = ["--nonce=x", "-p", "0", "--", "sh", "-c", "echo ready; cat"];
    let host = Host::start(&words, &[("MOSH_SERVER_NETWORK_TMOUT", "5")]);
    Visitor::new(&host).wait_for("ready");
    host.wait_for_end();
}

/// One whose client was killed is no session for ever, and what it runs is hung up on.
#[test]
fn streams_whose_client_was_killed_are_given_up() {
    for variable in ["ROVE_SERVER_ORPHAN_TMOUT", "MOSH_SERVER_NETWORK_TMOUT"] {
        let host = Host::start_native(&["-p", "0", "--streams"], &[(variable, "5")]);
        let mut visitor = Visitor::new(&host);
        visitor.keys(b"x");
        visitor.wait_until_typed();
        drop(visitor);
        host.wait_for_end();
    }
}

/// Its last words and its status wait for a client that is away, and the terminal does not.
#[test]
fn a_program_that_has_ended_has_no_terminal_any_more() {
    let scratch = Scratch::new("ended");
    let go = scratch.path("go");
    // What is left in the background holds the terminal, and bears the hangup.
    let script = format!(
        "echo ready; (trap '' HUP; until test -e {go}; do sleep 0.1; done; exec sleep 30) & \
         until test -e {go}; do sleep 0.1; done; echo last words; exit 3"
    );
    let directory = scratch.path("");
    let host = Host::start_native(
        &["-p", "0", "-@", "host=h", "--", "sh", "-c", &script],
        &[("ROVE_TMPDIR", &directory)],
    );
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("ready");
    let masters = || {
        let open = fs::read_dir(format!("/proc/{}/fd", host.pid)).unwrap().flatten();
        let to = open.filter_map(|file| fs::read_link(file.path()).ok());
        to.filter(|to| to.ends_with("ptmx")).count()
    };
    assert!(masters() > 0);
    // The client hears nothing from here on.
    fs::write(&go, "").unwrap();
    visitor::wait_until("the terminal is let go", || masters() == 0);
    assert!(visitor::is_alive(host.pid));
    visitor.wait_for("last words");
    assert_eq!(visitor.wait_for_exit().status, Some(3));
    host.wait_for_end();
}

/// A program that outlives the time for which a silent client is waited for leaves its status all the same, for that time from
/// its end on.
#[test]
fn a_detached_program_that_runs_long_leaves_its_status() {
    let scratch = Scratch::new("detached");
    let go = scratch.path("go");
    let script = format!("echo ready; until test -e {go}; do sleep 0.1; done; exit 3");
    let directory = scratch.path("");
    let host = Host::start_native(
        &["-p", "0", "-@", "host=h", "--", "sh", "-c", &script],
        &[("ROVE_TMPDIR", &directory), ("MOSH_SERVER_NETWORK_TMOUT", "10")],
    );
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("ready");
    visitor.keys(b"\x1ed");
    assert!(visitor.wait_for_exit().clean);
    let clock = Clock::start();
    let wait = |millis| {
        visitor::wait_until("some time passes", || clock.now() >= Time::from_millis(millis));
    };
    wait(12_000);
    fs::write(&go, "").unwrap();
    wait(14_000);
    assert!(visitor::is_alive(host.pid));
    host.wait_for_end();
}

/// The control socket that a server has in this directory, if it has one.
fn control_socket(directory: &str) -> Option<PathBuf> {
    let inner = fs::read_dir(directory).ok()?.flatten().next()?.path();
    Some(fs::read_dir(inner).ok()?.flatten().next()?.path())
}

/// A control socket that is gone is made again on SIGUSR1, which ends nothing then, and by itself while a client is there.
#[test]
fn a_control_socket_that_is_gone_is_made_again() {
    for by_signal in [true, false] {
        let scratch = Scratch::new(if by_signal { "again-signal" } else { "again" });
        let directory = scratch.path("base");
        fs::create_dir(&directory).unwrap();
        let host = Host::start_native(
            &["-p", "0", "-@", "host=h", "--", "sh", "-c", "echo ready; cat"],
            &[("ROVE_TMPDIR", &directory)],
        );
        let mut visitor = Visitor::new(&host);
        visitor.wait_for("ready");
        let inner = control_socket(&directory).unwrap().parent().unwrap().to_owned();
        fs::remove_dir_all(inner).unwrap();
        if by_signal {
            host.signal(Signal::USR1);
            visitor::wait_until("the socket", || control_socket(&directory).is_some());
        } else {
            let clock = Clock::start();
            for word in 0.. {
                visitor.keys(format!("word {word}\r").as_bytes());
                visitor.wait_for(&format!("word {word}"));
                if control_socket(&directory).is_some() {
                    break;
                }
                assert!(clock.now() < Time::from_millis(120_000), "no socket");
            }
        }
        visitor.keys(b"still here\r");
        visitor.wait_for("still here");
    }
}

#[test]
fn resizes_reach_the_program() {
    let script = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done";
    let host = Host::start_native(&["-p", "0", "--", "bash", "-c", script], &[]);
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("ready");
    visitor.resize(33, 101);
    visitor.wait_for("33 101");
}

/// What a client said before it moved, and comes after it has, does not change the address that it is answered from: a NAT
/// before it lets in no other.
#[test]
fn answers_come_from_the_address_that_is_written_to() {
    let scratch = Scratch::new("answers");
    let go = scratch.path("go");
    let script = format!(
        "echo ready; read a; echo here; read b; echo again; \
         until test -e {go}; do sleep 0.1; done; echo there"
    );
    let host = Host::start_native(&["-p", "0", "--", "sh", "-c", &script], &[]);
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("ready");
    visitor.keys(b"x");
    let straggler = visitor.withhold();
    let there = Ipv4Addr::new(127, 0, 0, 3);
    let before = visitor.move_on(there);
    // With the second line the server knows for sure where the client is.
    for answer in ["here", "again"] {
        visitor.keys(b"\r");
        visitor.wait_for(answer);
    }
    before.send_to(&straggler, (Ipv4Addr::LOCALHOST, host.port)).unwrap();
    fs::write(&go, "").unwrap();
    for from in visitor.hear("there") {
        assert_eq!(from.ip(), there);
    }
}
