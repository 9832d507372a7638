//! Tests `rove cp` as a user runs it: through a real sshd on loopback, both ways, with each end killed in the
//! middle, to a host without rove, and over an emulated path with an outage.
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use common::{possible, rove_program, say};
use rove_lab::testing::clock::Clock;
use rove_lab::testing::link::Profile;
use rove_lab::testing::net::scenario::Scenario;
use rove_lab::testing::net::{End as Network, FAR, NEAR, Net};
use rove_lab::testing::rng::Rng;
use rove_lab::testing::run::{Stranger, limited, look_again_later};
use rove_lab::testing::scratch::Scratch;
use rove_lab::testing::sshd::Sshd;

/// How long one copy may take, in seconds.
const COPY_SECONDS_MAX: u32 = 120;

/// How long something that must happen is waited for.
const LIMIT: Duration = Duration::from_secs(60);

/// A file that is killed in the middle, and when.
const BIG_BYTES: usize = 64 << 20;
const KILLED_AT_BYTES: u64 = 20 << 20;

/// Octets that may be sent again after a kill: 8 MiB.
const REPEATED_BYTES_MAX: u64 = 8 << 20;

/// A path of 20 Mbit/s has an outage of this length after some of the octets.
const BLACKOUT: Duration = Duration::from_secs(8);
const CUT_AT_BYTES: u64 = 1 << 20;
const CUT_BYTES: usize = 6 << 20;

struct Host {
    config: PathBuf,
    home: PathBuf,
    user: String,
    near: PathBuf,
}

#[test]
fn copies_through_a_real_sshd() {
    let mut sshd = Sshd::start().unwrap();
    let rove = fs::read(rove_program()).unwrap();
    let user = sshd.add_user("rovelab-copy", "/bin/bash").unwrap();
    user.write(".local/bin/rove", &rove, 0o755).unwrap();
    user.write(".bashrc", "echo noise\n", 0o644).unwrap();
    let (name, home) = (user.name().to_owned(), user.home().to_owned());
    let stock = sshd.add_user("rovelab-plain", "/bin/bash").unwrap().name().to_owned();
    let config = sshd.client_config(&[("far", &name, ""), ("plain", &stock, "")]).unwrap();
    let near = sshd.directory().join("near");
    fs::create_dir(&near).unwrap();
    let host = Host { config, home, user: name, near };
    host.tree_there_and_back();
    host.no_rove_there();
    host.killed_and_gone_on_with("the client, sending", &["big", "far:big"], "big", End::Near);
    host.killed_and_gone_on_with("the client, receiving", &["far:big", "back"], "back", End::Near);
    host.killed_and_gone_on_with("the server, receiving", &["big", "far:two"], "two", End::Far);
    host.killed_and_gone_on_with("the server, sending", &["far:two", "three"], "three", End::Far);
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum End {
    Near,
    Far,
}

impl Host {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = limited(rove_program(), COPY_SECONDS_MAX);
        command.arg("cp").arg("-F").arg(&self.config).args(words).current_dir(&self.near);
        command
    }

    fn copy(&self, words: &[&str]) -> Output {
        self.command(words).stdin(Stdio::null()).output().unwrap()
    }

    fn copied(&self, words: &[&str]) -> String {
        let output = self.copy(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {}: {said}", output.status);
        said + &String::from_utf8_lossy(&output.stdout)
    }

    fn tree_there_and_back(&self) {
        let tree = self.near.join("tree");
        fs::create_dir_all(tree.join("a/b")).unwrap();
        for number in 0..300 {
            fs::write(tree.join(format!("a/{number}")), noise(number, 4096)).unwrap();
        }
        fs::write(tree.join("a/b/large"), noise(7, 3 << 20)).unwrap();
        fs::set_permissions(tree.join("a/1"), fs::Permissions::from_mode(0o4755)).unwrap();
        symlink("nowhere", tree.join("link")).unwrap();
        let said = self.copied(&["-rp", "tree", "far:copies"]);
        assert!(said.contains("301 files"), "{said}");
        let there = self.home.join("copies");
        assert!(same(&tree, &there));
        assert_eq!(fs::metadata(there.join("a/1")).unwrap().mode() & 0o7777, 0o755);
        let times = [&tree, &there].map(|top| fs::metadata(top.join("a/2")).unwrap().mtime());
        assert_eq!(times[0], times[1]);

        let said = self.copied(&["-r", "--json", "far:copies/a", "far:copies/a/b/l*", "."]);
        assert!(same(&tree.join("a"), &self.near.join("a")));
        assert!(self.near.join("large").exists());
        assert!(said.lines().last().unwrap().starts_with(r#"{"type":"summary""#), "{said}");

        let output = self.copy(&["far:missing", "far:copies/a/3", "."]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("far:") && said.contains("missing: no such file"), "{said}");
        assert!(self.near.join("3").exists());

        let output = self.copy(&["tree/a/1", "far:/root-only/x"]);
        assert_eq!(output.status.code(), Some(255));
        say("copy: a tree there and back: ok");
    }

    /// Debian's mosh-server may be there: that is no rove.
    fn no_rove_there(&self) {
        let output = self.copy(&["tree/a/1", "plain:x"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(255), "{said}");
        assert!(said.contains("plain has no rove; scp works without it"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }

    fn killed_and_gone_on_with(&self, name: &str, paths: &[&str], to: &str, end: End) {
        let is_there = paths[1].starts_with("far:");
        let directory = if is_there { &self.home } else { &self.near };
        let big = self.near.join("big");
        if !big.exists() {
            fs::write(&big, noise(99, BIG_BYTES)).unwrap();
        }
        let slowly = [&["-q", "--limit", "10M"], paths].concat();
        let mut copy = self.command(&slowly).stdin(Stdio::null()).spawn().unwrap();
        let part = directory.join(format!(".{to}.rove-part"));
        wait_for("half of it", || {
            assert!(copy.try_wait().unwrap().is_none(), "{name}: it ended before it was killed");
            fs::metadata(&part).is_ok_and(|stat| stat.len() > KILLED_AT_BYTES)
        });
        if end == End::Far {
            let servers = servers_of(&self.user);
            assert!(!servers.is_empty(), "{name}: no server is seen");
            servers.iter().for_each(|server| server.kill().unwrap());
        }
        // `limited` puts timeout(1) before the program; the kill must reach the program itself.
        children_of(copy.id()).iter().for_each(|client| client.kill().unwrap());
        wait_end(&mut copy);
        let have = fs::metadata(&part).unwrap().len();
        assert!(!directory.join(to).exists(), "{name}: half a file under its final name");

        let said = self.copied(&[&["--json"], paths].concat());
        let there = number_in(&said, r#""bytes_there":"#);
        assert!(there + REPEATED_BYTES_MAX >= have, "{name}: {have} were there, {there} used");
        assert_eq!(fs::read(directory.join(to)).unwrap(), fs::read(&big).unwrap(), "{name}");
        assert!(!part.exists(), "{name}");
        say(&format!("copy: killed {name}: ok, {have} octets were there, {there} were used"));
    }
}

/// The path goes and comes back while a file is on its way: the same program, the same copy, to its end.
#[test]
fn a_blackout_is_outlived() {
    let pipe = Profile::delay(Duration::from_millis(20)).rate(20_000_000, 250_000);
    let Some(net) = possible("a_blackout_is_outlived", Net::open(&Scenario::alike(pipe, 1), None))
    else {
        return;
    };
    let scratch = Scratch::new().unwrap();
    let [source, target, login] = ["source", "target", "login"].map(|name| scratch.join(name));
    fs::write(&source, noise(5, CUT_BYTES)).unwrap();
    let far = net.network(Network::Far).as_raw_fd();
    let programs = rove_program().parent().unwrap().display().to_string();
    let script = format!(
        "#!/bin/sh\nexport PATH={programs}:$PATH SSH_CONNECTION='{NEAR} 1000 {FAR} 22'\n\
         exec nsenter --net=/proc/{}/fd/{far} sh -c \"$2\"\n",
        std::process::id()
    );
    fs::write(&login, script).unwrap();
    fs::set_permissions(&login, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = limited(rove_program(), COPY_SECONDS_MAX);
    command.args(["cp", "-q", "--ssh", login.to_str().unwrap()]);
    command.arg(&source).arg(format!("{FAR}:{}", target.display())).stdin(Stdio::null());
    net.place(Network::Near, &mut command);
    let mut copy = command.spawn().unwrap();
    let part = scratch.join(".target.rove-part");
    let length = || fs::metadata(&part).map_or(0, |stat| stat.len());
    wait_for("the beginning", || length() > CUT_AT_BYTES || target.exists());
    net.cut(BLACKOUT);
    let clock = Clock::start();
    // Octets that had arrived before are still written, and then none.
    wait_for("the blackout", || clock.elapsed() > BLACKOUT / 2);
    let before = length();
    wait_for("more of the blackout", || clock.elapsed() > BLACKOUT * 3 / 4);
    let then = length();
    // On a busy machine the look may have come after it.
    if clock.elapsed() < BLACKOUT {
        assert_eq!(then, before, "nothing passes in a blackout");
    }
    wait_for("more of it", || length() > before || target.exists());
    let late = clock.elapsed().saturating_sub(BLACKOUT);
    wait_end(&mut copy);
    assert!(copy.wait().unwrap().success());
    assert_eq!(fs::read(&target).unwrap(), fs::read(&source).unwrap());
    say(&format!("copy: went on {} ms after a blackout of {BLACKOUT:?}", late.as_millis()));
}

/// The `rove server` processes of a user.
fn servers_of(user: &str) -> Vec<Stranger> {
    let output = Command::new("id").args(["-u", user]).output().unwrap();
    let uid = String::from_utf8(output.stdout).unwrap();
    let is_server = |directory: &Path| {
        let text = |file: &str| fs::read_to_string(directory.join(file)).unwrap_or_default();
        let owner = text("status").lines().find_map(|line| {
            line.strip_prefix("Uid:")?.split_whitespace().next().map(str::to_owned)
        });
        owner.as_deref() == Some(uid.trim()) && text("cmdline").starts_with("rove\0server")
    };
    processes().filter(|(_, directory)| is_server(directory)).map(|(pid, _)| open(pid)).collect()
}

fn children_of(parent: u32) -> Vec<Stranger> {
    let is_child = |directory: &Path| {
        let stat = fs::read_to_string(directory.join("stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        fields.split_whitespace().nth(1).and_then(|pid| pid.parse().ok()) == Some(parent)
    };
    processes().filter(|(_, directory)| is_child(directory)).map(|(pid, _)| open(pid)).collect()
}

fn processes() -> impl Iterator<Item = (u32, PathBuf)> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let entry = entry.ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))
    })
}

fn open(pid: u32) -> Stranger {
    Stranger::open(pid).unwrap()
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = Clock::start();
    while !is_so() {
        assert!(clock.elapsed() < LIMIT, "{what} did not come");
        look_again_later().unwrap();
    }
}

fn wait_end(child: &mut Child) {
    wait_for("the end of a program", || child.try_wait().unwrap().is_some());
}

fn same(one: &Path, other: &Path) -> bool {
    let output = Command::new("diff").args(["-r", "--no-dereference"]).args([one, other]).output();
    let output = output.unwrap();
    say(&String::from_utf8_lossy(&output.stdout));
    output.status.success()
}

fn number_in(text: &str, key: &str) -> u64 {
    let rest = text.rsplit_once(key).unwrap_or_else(|| panic!("{key} in {text}")).1;
    rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// Octets that do not shrink, the same for each seed.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    (0..length.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(length).collect()
}
