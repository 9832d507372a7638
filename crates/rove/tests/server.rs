//! The server's start-up as its callers meet it: the built program, its words, its answer, its end.
#![cfg(unix)]
#![allow(clippy::unwrap_used)] // A check that fails says where.

mod visitor;

use std::fs;
use std::net::{Ipv6Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use visitor::{Host, Visitor, is_alive, rove, wait_until};

#[test]
fn prints_one_line_and_leaves_the_login() {
    // `output` returns when both streams are closed: the server has let go of them.
    let output = rove().args(["server", "new", "-p", "0"]).output().unwrap();
    assert!(output.status.success());
    let stdout = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = stdout.split_whitespace().collect();
    let ["MOSH", "CONNECT", port, key] = words[..] else { panic!("{stdout}") };
    assert_eq!(stdout, format!("MOSH CONNECT {port} {key}\n"));
    assert_eq!(key.len(), 22);
    let host = Host::found(&output.stderr, port.parse().unwrap(), key);
    assert!(is_alive(host.pid));

    let stat = fs::read_to_string(format!("/proc/{}/stat", host.pid)).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    assert_eq!(fields[3], host.pid.to_string(), "it leads a session");
    assert_eq!(fields[4], "0", "without a terminal");

    // Nobody is there to be told, so it ends at once.
    host.signal(Signal::TERM);
    host.wait_for_end();
}

/// ssh brings the words of the starting process and the server's line to the same place: one cut in two by the other
/// is not found. Each write to a datagram socket is a datagram.
#[test]
fn words_and_line_are_written_in_one_piece_each() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let status = rove()
        .args(["server", "new", "-p", "0", "-i", "127.0.0.1"])
        .env("ROVE_SERVER_UNCLAIMED_TMOUT", "1")
        .stdout(OwnedFd::from(theirs.try_clone().unwrap()))
        .stderr(OwnedFd::from(theirs))
        .status();
    assert!(status.unwrap().success());
    let mut pieces = [0; 2].map(|_| {
        let mut piece = [0; 4096];
        let length = ours.recv(&mut piece).unwrap();
        String::from_utf8_lossy(&piece[..length]).into_owned()
    });
    pieces.sort();
    let [words, line] = pieces;
    assert!(words.starts_with("\nmosh-server (rove ") && words.ends_with("]\n"), "{words:?}");
    assert!(line.starts_with("MOSH CONNECT ") && line.ends_with('\n'), "{line:?}");
}

/// What stock's server tolerates on its command line, as it was seen to (the `tolerance` vectors).
#[test]
fn tolerates_the_options_that_stock_does() {
    let file = include_str!("../../ssp/tests/vectors/mosh-vectors.json");
    let mut tried = 0;
    for rest in file.split("\"server option ").skip(1) {
        let option = rest.split('"').next().unwrap();
        let option = option.split(" under ").next().unwrap().trim_end_matches(" (unknown)");
        let words: Vec<&str> = ["new", "-p", "0"].into_iter().chain(option.split(' ')).collect();
        let script = ["--", "sh", "-c", "echo \"seen=$MOSHX=\"; exec cat"];
        let host = Host::start(&[&words[..], &script].concat(), &[("LC_ALL", "C.UTF-8")]);
        let mut visitor = Visitor::new(&host);
        visitor.wait_for("seen==");
        tried += 1;
    }
    assert_eq!(tried, 3);
}

#[test]
fn a_login_script_that_opens_files_keeps_nobody_waiting() {
    let script = format!("exec 5>&1; exec {} server new -p 0", env!("CARGO_BIN_EXE_rove"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let port = line.split(' ').nth(2).unwrap().parse().unwrap();
    assert!(is_alive(Host::found(&output.stderr, port, "").pid));
}

#[test]
fn a_start_that_fails_is_told_and_not_announced() {
    // Room for one file more than the standard streams: a terminal takes two.
    let script = format!("ulimit -n 4; exec {} server new -p 0", env!("CARGO_BIN_EXE_rove"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(output.stdout, b"");
    assert!(stderr.starts_with("rove server: no terminal to be had: "), "{stderr}");
}

#[test]
fn answers_a_rove_client_in_one_line() {
    let output = rove()
        .args(["server", "--nonce=n-1", "-p", "0", "-i", "127.0.0.1"])
        .env("ROVE_SERVER_UNCLAIMED_TMOUT", "1")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = stdout.split(' ').collect();
    let ["ROVE", "0", "n-1", port, key, "127.0.0.1\n"] = words[..] else { panic!("{stdout}") };
    assert_eq!((port.parse::<u16>().is_ok(), key.len()), (true, 22), "{stdout}");
}

/// On the native wire nothing that is printed is secret, and each session has its own.
#[test]
fn answers_a_public_key_with_a_public_key() {
    const NONCE: &str = "00112233445566778899aabbccddeeff";
    let answers = [0; 2].map(|_| {
        let output = rove()
            .args([
                "server",
                &format!("--nonce={NONCE}"),
                &format!("--key={}", "A".repeat(42) + "E"),
            ])
            .args(["-p", "0", "-i", "127.0.0.1"])
            .env("ROVE_SERVER_UNCLAIMED_TMOUT", "1")
            .output()
            .unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let words: Vec<&str> = stdout.split(' ').collect();
        let ["ROVE", "1", NONCE, port, key, conn, "127.0.0.1\n"] = words[..] else {
            panic!("{stdout}{}", String::from_utf8_lossy(&output.stderr))
        };
        assert_eq!((port.parse::<u16>().is_ok(), key.len(), conn.len()), (true, 43, 8), "{stdout}");
        [key.to_owned(), conn.to_owned()]
    });
    assert!(answers[0].iter().zip(&answers[1]).all(|(one, other)| one != other), "{answers:?}");
}

/// As the original's client begins one, `--server=rove-server`.
#[test]
fn a_program_called_rove_server_serves() {
    let directory = std::env::temp_dir().join(format!("rove-called-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let program = directory.join("rove-server");
    let _ = fs::remove_file(&program);
    std::os::unix::fs::symlink(rove().get_program(), &program).unwrap();
    let nonce = "--nonce=00112233445566778899aabbccddeeff";
    for (words, begins) in [
        (&["new", "-c", "256", "-s", "-i", "127.0.0.1", "-p", "0"][..], "MOSH CONNECT "),
        (&[nonce, "-i", "127.0.0.1", "-p", "0"], "ROVE "),
    ] {
        let output = Command::new(&program)
            .args(words)
            .env("ROVE_SERVER_UNCLAIMED_TMOUT", "1")
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.starts_with(begins), "{output:?}");
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn refuses_what_it_cannot_do() {
    let busy = UdpSocket::bind("0.0.0.0:0").unwrap();
    let busy = busy.local_addr().unwrap().port().to_string();
    for (words, says) in [
        (&["new", "-p", "x"][..], "bad port range"),
        (&["new", "-p", "9:8"], "above"),
        (&["new", "-p", "0:9"], "cannot be part of a range"),
        (&["new", "-p", &busy], "no UDP port"),
        (&["new", "-c", "many"], "number of colors"),
        (&[], "--nonce"),
        (&["--nonce=x", "--colour"], "unknown option"),
        (&["--nonce=00112233445566778899aabbccddeeff", "--key=x"], "--key is a public key"),
        (&["--nonce=x", &format!("--key={}", "A".repeat(42) + "E")], "32 hexadecimal digits"),
        // A key of small order would leave nothing secret.
        (
            &["--nonce=00112233445566778899aabbccddeeff", &format!("--key={}", "A".repeat(43))],
            "gives no secret",
        ),
    ] {
        let output = rove().arg("server").args(words).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert_eq!(output.stdout, b"", "{words:?}");
        assert_eq!(stderr.lines().count(), 1, "{words:?}: {stderr}");
        assert!(stderr.starts_with("rove server: ") && stderr.contains(says), "{stderr}");
    }
}

/// All ports of a range taken by other sessions: the next is refused with the reason, and those are as they were. A
/// session that ends makes room.
#[test]
fn no_more_sessions_than_ports() {
    let range = free_ports(4);
    let words = ["new", "-p", &format!("{}:{}", range.start(), range.end())];
    let mut hosts: Vec<Host> = range.clone().map(|_| Host::start(&words, &[])).collect();
    let mut ports: Vec<u16> = hosts.iter().map(|host| host.port).collect();
    ports.sort();
    assert_eq!(ports, range.clone().collect::<Vec<_>>());
    for _ in 0..10 {
        let output = rove().arg("server").args(words).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
        let reason = format!("no UDP port to be had from {}:{}: ", range.start(), range.end());
        assert!(stderr.starts_with(&format!("rove server: {reason}")), "{stderr}");
    }
    assert!(hosts.iter().all(|host| is_alive(host.pid)), "the sessions that were there are");
    let last = hosts.pop().unwrap();
    last.signal(Signal::TERM);
    last.wait_for_end();
    assert_eq!(Host::start(&words, &[]).port, last.port);
}

/// Ports that follow each other, and that nobody had a moment ago; below those that the system gives away.
fn free_ports(count: u16) -> std::ops::RangeInclusive<u16> {
    let mut starts = (20_000..30_000).step_by(usize::from(count));
    let is_free = |port| UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).is_ok();
    let start = starts.find(|start| (*start..start + count).all(is_free)).unwrap();
    start..=start + count - 1
}

/// Starts whose client never comes leave nothing: each server ends by itself, lets go of its port, and removes the
/// socket that it made for the agent.
#[test]
fn many_starts_leave_nothing() {
    const STARTS: usize = 40;
    let unclaimed = [("ROVE_SERVER_UNCLAIMED_TMOUT", "10")];
    let start = |_| {
        let host = Host::start_native(&["-p", "0", "--agent"], &unclaimed);
        let made = agent_directory(&host);
        (host, made)
    };
    let hosts: Vec<(Host, PathBuf)> = (0..STARTS).map(start).collect();
    for (host, made) in &hosts {
        host.wait_for_end();
        // Another program may be given the port for a moment.
        let bind = || UdpSocket::bind((Ipv6Addr::UNSPECIFIED, host.port)).is_ok();
        wait_until("its port is free", bind);
        wait_until("its socket is removed", || !made.exists());
    }
}

/// The process that made this socket, if it listens still.
fn maker(path: &std::path::Path) -> Option<u32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let peer = runtime.block_on(async { tokio::net::UnixStream::connect(path).await?.peer_cred() });
    peer.ok()?.pid().map(i32::cast_unsigned)
}

/// Where this server has its socket for the agent: the one that its starter has made.
fn agent_directory(host: &Host) -> PathBuf {
    let is_its = |directory: &PathBuf| {
        let name = directory.file_name().unwrap().to_string_lossy();
        name.starts_with("rove-")
            && host.starter.is_some()
            && maker(&directory.join("agent")) == host.starter
    };
    let mut all = fs::read_dir("/tmp").unwrap().map(|entry| entry.unwrap().path());
    all.find(is_its).expect("a socket was made")
}

#[test]
fn takes_the_next_free_port() {
    let busy = UdpSocket::bind("0.0.0.0:0").unwrap();
    let busy = busy.local_addr().unwrap().port();
    let range = format!("{busy}:{}", busy.saturating_add(20));
    let host = Host::start(&["new", "-p", &range], &[]);
    assert!(host.port > busy);
}

#[test]
fn ends_when_nobody_comes() {
    let host = Host::start(&["new", "-p", "0"], &[("ROVE_SERVER_UNCLAIMED_TMOUT", "1")]);
    host.wait_for_end();
}

#[test]
fn an_unkeyed_datagram_gets_no_answer() {
    let host = Host::start(&["new", "-p", "0"], &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for length in [0, 1, 23, 24, 100, 1400, 2048, 9000] {
        socket.send_to(&vec![0x80; length], ("127.0.0.1", host.port)).unwrap();
    }
    assert!(socket.recv(&mut [0; 2048]).is_err());
    assert!(is_alive(host.pid));
}
