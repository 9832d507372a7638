//! What a real server does about the login that started it, before systems of the test's own: the login records that it
//! keeps by the helper of libutempter (threats row 37), and the scope that it has a real user's manager of systemd put
//! it in (row 36). Both need root, for a `/run` and cgroups that are nobody else's.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // Helpers of tests are tests.

mod visitor;

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use visitor::{Host, Visitor, is_alive, wait_until};

/// By this a test knows itself when it is run again, where these places are its own.
const APART: &str = "THIS_TEST_IS_APART";

/// Runs this test again with mounts of its own, amid what a script prepares: `$TEST` stands for the test.
fn apart(test: &str, needed: &[(&str, &str)], script: &str) {
    assert!(rustix::process::geteuid().is_root(), "not testable here: it needs root");
    for (places, package) in needed {
        let is_there = places.split(' ').any(|place| fs::exists(place).unwrap());
        assert!(is_there, "not testable here: apt-get install {package}");
    }
    let program = std::env::current_exe().unwrap().into_os_string().into_string().unwrap();
    let again = format!("{APART}=1 '{program}' --exact {test} --nocapture");
    let script = format!("set -e; mount -t tmpfs none /run; {}", script.replace("$TEST", &again));
    let run = Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    let said = [run.stdout, run.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

/// Who is logged in: what the records say, and not what `who` makes of their processes.
fn who() -> String {
    let output = Command::new("who").arg("/run/utmp").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A session, and how its record names the server.
fn recorded() -> (Host, Visitor, String) {
    let host = Host::start_native(&["-p", "0", "--", "sh", "-c", "echo ready; cat"], &[]);
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("ready");
    let name = format!("rove [{}]", host.pid);
    let whole = format!("127.0.0.1 via {name}");
    wait_until("where the client is stands in the record", || who().contains(&whole));
    (host, visitor, name)
}

#[test]
fn root_sees_the_record_of_a_killed_server_taken_back() {
    if std::env::var_os(APART).is_none() {
        let helpers = "/usr/lib/x86_64-linux-gnu/utempter/utempter \
                       /usr/lib/aarch64-linux-gnu/utempter/utempter /usr/libexec/utempter/utempter";
        return apart(
            "root_sees_the_record_of_a_killed_server_taken_back",
            &[(helpers, "libutempter0")],
            // Terminals of its own, too: another program must not be given the one that has become free.
            "mount -t devpts -o ptmxmode=0666 none /dev/pts
             : >/run/utmp; chgrp utmp /run/utmp; chmod 664 /run/utmp; $TEST",
        );
    }
    let (_living, _visitor, living) = recorded();
    let (killed, _gone, lost) = recorded();
    killed.signal(Signal::KILL);
    killed.wait_for_end();
    let records = who();
    let record = records.lines().find(|line| line.contains(&lost));
    let line = record.expect("nobody has taken it back").split_whitespace().nth(1).unwrap();
    // What it ran still has to let go of it.
    let terminal = format!("/dev/{line}");
    wait_until("the killed server's terminal is free", || !fs::exists(&terminal).unwrap());
    let (next, mut visitor, own) = recorded();
    assert!(!who().contains(&lost), "the next server takes it back: {}", who());
    assert!(who().contains(&living), "of those that live none is: {}", who());
    // One that ends in good order takes back its own.
    visitor.leave();
    visitor.wait_for_exit();
    next.wait_for_end();
    assert!(!who().contains(&own) && who().contains(&living), "{}", who());
}

/// The cgroups of the test: a login's, the manager's, and one beside them.
const CGROUPS: &str = "THIS_TESTS_CGROUPS";

const PREPARE_MANAGER: &str = r#"
    mkdir -p /run/systemd/system /run/user/0
    chmod 700 /run/user/0
    mount -t tmpfs none /var/lib/systemd
    mkdir /var/lib/systemd/linger
    : >/var/lib/systemd/linger/root
    mount -t cgroup2 none /sys/fs/cgroup
    top=/sys/fs/cgroup/rove-test-$$
    mkdir -p $top/user@0.service $top/session-1.scope $top/beside
    manager=$(ls /usr/lib/systemd/systemd /lib/systemd/systemd 2>/dev/null | head -n 1)
    unset DBUS_SESSION_BUS_ADDRESS
    sh -c "echo \$\$ >$top/user@0.service/cgroup.procs
           XDG_RUNTIME_DIR=/run/user/0 exec $manager --user" >/dev/null 2>&1 &
    manager=$!
    status=0
    THIS_TESTS_CGROUPS=$top $TEST || status=$?
    kill $manager
    wait $manager || :
    find $top -depth -type d -exec rmdir {} + || :
    exit $status
"#;

/// The cgroup of a process, as the one hierarchy of cgroups 2 has it.
fn cgroup(pid: u32) -> String {
    let all = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    all.lines().find_map(|line| line.strip_prefix("0::")).unwrap().to_owned()
}

/// A session that was started in a login, whose end this process is no part of.
fn logged_in(cgroups: &str, environment: &[(&str, &str)]) -> (Host, Visitor) {
    let enter = |name: &str| fs::write(format!("{cgroups}/{name}/cgroup.procs"), "0").unwrap();
    enter("session-1.scope");
    let words = ["-p", "0", "--", "sh", "-c", "echo shell=$$=ready; cat"];
    let host = Host::start_native(&words, environment);
    enter("beside");
    let mut visitor = Visitor::new(&host);
    visitor.wait_for("=ready");
    (host, visitor)
}

/// With lingering on, a server has the user's manager move it out of the login, and so all that it starts later, and
/// outlives what logind does at the login's end where `KillUserProcesses=yes`.
#[test]
fn root_sees_a_server_leave_its_login() {
    let Some(cgroups) = std::env::var_os(CGROUPS) else {
        let needed = [
            ("/usr/bin/busctl", "systemd"),
            ("/usr/bin/dbus-daemon /usr/bin/dbus-broker", "dbus"),
            ("/usr/lib/systemd/user/dbus.socket", "dbus-user-session"),
        ];
        return apart("root_sees_a_server_leave_its_login", &needed, PREPARE_MANAGER);
    };
    let cgroups = cgroups.into_string().unwrap();
    wait_until("the manager has a bus", || {
        let words = ["--user", "status", "org.freedesktop.systemd1"];
        let mut asked = Command::new("busctl");
        asked.args(words).env("XDG_RUNTIME_DIR", "/run/user/0").stdout(Stdio::null());
        asked.stderr(Stdio::null()).status().unwrap().success()
    });
    let (moved, mut visitor) = logged_in(&cgroups, &[("XDG_RUNTIME_DIR", "/run/user/0")]);
    let shell = visitor.text().concat().split('=').nth(1).unwrap().parse().unwrap();
    for pid in [moved.pid, shell] {
        let (place, manager) = (cgroup(pid), cgroups.trim_start_matches("/sys/fs/cgroup"));
        assert!(place.starts_with(&format!("{manager}/user@0.service/")), "{place}");
        assert!(place.contains("/rove-") && place.ends_with(".scope"), "{place}");
    }
    // One that finds no bus stays.
    let (stayed, _other) = logged_in(&cgroups, &[]);
    assert!(cgroup(stayed.pid).ends_with("/session-1.scope"), "{}", cgroup(stayed.pid));
    // What logind has systemd do when the login is over.
    fs::write(format!("{cgroups}/session-1.scope/cgroup.kill"), "1").unwrap();
    stayed.wait_for_end();
    visitor.keys(b"still here\r");
    visitor.wait_for("still here");
    assert!(is_alive(moved.pid));
    visitor.leave();
    visitor.wait_for_exit();
    moved.wait_for_end();
}
