//! Sessions and copies where a kernel refuses the calls that it is too old for, or a container's filter does: the real
//! program, under a filter of system calls that answers as those do.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod terminal;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::process::Command;
use std::thread;
use std::time::Duration;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use terminal::{Directory, ROVE, Terminal};

/// A call that is refused: its number, the argument and its value if only that one is, and the error.
#[derive(Clone, Copy)]
struct Refused {
    call: libc::c_long,
    with: Option<(u8, u64)>,
    error: i32,
}

const fn refused(call: libc::c_long, error: i32) -> Refused {
    Refused { call, with: None, error }
}

/// Linux before 4.13 does not know this request of a terminal's master; a container's filter may forbid it.
const TIOCGPTPEER: u64 = 0x5441;
const NO_PEER: Refused =
    Refused { call: libc::SYS_ioctl, with: Some((1, TIOCGPTPEER)), error: libc::ENOTTY };
const PEER_FORBIDDEN: Refused = Refused { error: libc::EPERM, ..NO_PEER };
/// Before 5.6.
const NO_OPENAT2: Refused = refused(libc::SYS_openat2, libc::ENOSYS);
const OPENAT2_FORBIDDEN: Refused = refused(libc::SYS_openat2, libc::EPERM);
/// Before 5.9.
const NO_CLOSE_RANGE: Refused = refused(libc::SYS_close_range, libc::ENOSYS);
/// Before 5.13.
const NO_LANDLOCK: Refused = refused(libc::SYS_landlock_create_ruleset, libc::ENOSYS);
/// Before 3.17.
const NO_SECCOMP: Refused = refused(libc::SYS_seccomp, libc::ENOSYS);
const NO_GETRANDOM: Refused = refused(libc::SYS_getrandom, libc::ENOSYS);
/// Before 3.15, and where a sandbox plays the kernel.
const NO_BOOTTIME_TIMER: Refused = Refused {
    call: libc::SYS_timerfd_create,
    with: Some((0, libc::CLOCK_BOOTTIME as u64)),
    error: libc::EINVAL,
};
const NO_RENAMEAT2: Refused = refused(libc::SYS_renameat2, libc::ENOSYS);
/// Before 4.4.
const NO_MLOCK2: Refused = refused(libc::SYS_mlock2, libc::ENOSYS);

/// All that Linux 3.10 has not, the oldest kernel with glibc 2.17.
const OLD: [Refused; 9] = [
    NO_PEER,
    NO_OPENAT2,
    NO_CLOSE_RANGE,
    NO_LANDLOCK,
    NO_GETRANDOM,
    NO_BOOTTIME_TIMER,
    NO_RENAMEAT2,
    NO_MLOCK2,
    // Last: after it no filter can be set.
    NO_SECCOMP,
];

/// Does work in a thread for which, and for whose programs, these calls are refused.
fn without<T: Send + 'static>(calls: &[Refused], work: impl FnOnce() -> T + Send + 'static) -> T {
    let calls = calls.to_vec();
    let confined = move || {
        // A filter refuses with one error: each has its own.
        for Refused { call, with, error } in calls {
            let rules = with.map(|(index, value)| {
                let length = SeccompCmpArgLen::Dword;
                let condition = SeccompCondition::new(index, length, SeccompCmpOp::Eq, value);
                SeccompRule::new(vec![condition.unwrap()]).unwrap()
            });
            let filter = SeccompFilter::new(
                [(call, rules.into_iter().collect())].into(),
                SeccompAction::Allow,
                SeccompAction::Errno(error.unsigned_abs()),
                std::env::consts::ARCH.try_into().unwrap(),
            );
            let program: BpfProgram = filter.unwrap().try_into().unwrap();
            apply_filter(&program).unwrap();
        }
        work()
    };
    thread::Builder::new().spawn(confined).unwrap().join().unwrap()
}

/// Holds a session under these refusals. `is_right` looks at what the client tells with -v.
fn session(name: &'static str, calls: &'static [Refused], is_right: fn(&str) -> bool) {
    without(calls, move || {
        let directory = Directory::new(name);
        let ssh = format!("--ssh={}", directory.script("login", r#"exec sh -c "$2""#));
        let server = format!("--server={ROVE}");
        let trace = format!("{}/trace", directory.path());
        let script = "tty; read a; echo got-$a; exit 7";
        let program = format!("{ROVE} -v {ssh} {server} 127.0.0.1 -- sh -c '{script}' 2>{trace}");
        let mut terminal = Terminal::run("sh", &["-c", &program], &[]);
        terminal.expect("/dev/pts/");
        terminal.pause();
        terminal.type_keys("x\r");
        terminal.expect("got-x");
        assert_eq!(terminal.finish(), 7, "{name}: {}", terminal.text());
        let trace = fs::read_to_string(trace).unwrap();
        assert!(is_right(&trace), "{name}: {trace}");
    });
}

#[test]
fn a_session_needs_no_new_calls() {
    let filtered: fn(&str) -> bool = |said| said.contains("calls are refused");
    let unfiltered: fn(&str) -> bool =
        |said| said.contains("confined: ") && !said.contains("calls are refused");
    let unlocked: fn(&str) -> bool =
        |said| said.contains("Landlock: Nothing; seccomp: calls are refused");
    let neither: fn(&str) -> bool =
        |said| said.contains("confined: Landlock: Nothing; ") && !said.contains("are refused");
    for (name, calls, is_right) in [
        ("peer", &[NO_PEER][..], filtered),
        ("peer-forbidden", &[PEER_FORBIDDEN], filtered),
        ("landlock", &[NO_LANDLOCK], unlocked),
        ("filter", &[NO_SECCOMP], unfiltered),
        ("timer", &[NO_BOOTTIME_TIMER], filtered),
        ("chance", &[NO_GETRANDOM], filtered),
        ("lock", &[NO_MLOCK2], filtered),
        ("all", &OLD, neither),
    ] {
        session(name, calls, is_right);
    }
}

/// What a login script has left open is not held by the server, for as long as it lives.
#[test]
fn files_of_the_login_are_closed() {
    for (name, calls) in [("new", &[][..]), ("old", &[NO_CLOSE_RANGE])] {
        without(calls, move || {
            let directory = Directory::new(&format!("inherited-{name}"));
            let pipe = format!("{}/pipe", directory.path());
            assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let mut reader = OpenOptions::new();
            let mut reader = reader.read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).unwrap();
            let login = format!(r#"exec 7>"{pipe}" 9>&7; exec sh -c "$2""#);
            let ssh = format!("--ssh={}", directory.script("login", &login));
            let server = format!("--server={ROVE}");
            let words = [&ssh, &server, "127.0.0.1", "--", "sh", "-c", "echo he''re; read a"];
            let mut terminal = Terminal::run(ROVE, &words, &[]);
            terminal.expect("here");
            // The login has ended by now, or is about to.
            let ended = (0..500).any(|_| {
                thread::sleep(Duration::from_millis(20));
                match reader.read(&mut [0]) {
                    Ok(count) => count == 0,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        false
                    }
                }
            });
            assert!(ended, "{name}: the server holds a file of its login");
            terminal.type_keys("\r");
            assert_eq!(terminal.finish(), 0);
        });
    }
}

#[test]
fn a_copy_needs_no_new_calls() {
    for (name, calls) in [
        ("openat2", &[NO_OPENAT2][..]),
        ("openat2-forbidden", &[OPENAT2_FORBIDDEN]),
        ("renameat2", &[NO_RENAMEAT2]),
        ("all", &OLD),
    ] {
        without(calls, move || {
            let directory = Directory::new(&format!("copy-{name}"));
            let at = |path: &str| format!("{}/{path}", directory.path());
            fs::create_dir_all(at("from/below/deep")).unwrap();
            fs::write(at("from/below/deep/file"), "contents").unwrap();
            fs::set_permissions(at("from/below/deep/file"), PermissionsExt::from_mode(0o666))
                .unwrap();
            fs::create_dir(at("to")).unwrap();
            let ssh = format!("--ssh={}", directory.script("login", r#"exec sh -c "$2""#));
            let server = format!("--server={ROVE}");
            let target = format!("127.0.0.1:{}", at("to"));
            // Twice: the second time it is there already.
            for _ in 0..2 {
                let words =
                    ["-c", r#"umask 027; exec "$@""#, "sh", ROVE, "cp", "-r", &ssh, &server];
                let mut copy = Command::new("sh");
                copy.args(words).arg(at("from")).arg(&target).env("XDG_STATE_HOME", "/dev/null");
                let output = copy.env("XDG_CONFIG_HOME", "/dev/null").output().unwrap();
                assert!(output.status.success(), "{name}: {output:?}");
                let file = at("to/from/below/deep/file");
                assert_eq!(fs::read_to_string(&file).unwrap(), "contents");
                let mode = File::open(&file).unwrap().metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o640, "{name}: the umask of the login");
            }
        });
    }
}
