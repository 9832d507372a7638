//! UDP that is blocked, and comes and goes: a session goes on over ssh. Client, sshd and server are in a network of
//! their own, in which nftables drops what it is told to.
#![allow(clippy::disallowed_methods, reason = "tests are steered by their environment")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rove_lab::testing::clock::Clock;
use rove_lab::testing::link::Profile;
use rove_lab::testing::net::scenario::Scenario;
use rove_lab::testing::net::{End, FAR, Net};
use rove_lab::testing::run::Program;
use rove_lab::testing::sshd::Sshd;
use rove_term::Size;

use crate::common::rove_program;
use crate::host::{Case, LIMIT, Outcome, bounded, run_cases, until, words};

/// An sshd in a network of its own, or at the far end of a path.
pub struct Scene {
    sshd: Sshd,
    home: PathBuf,
    config: PathBuf,
    net: Net,
}

const CASES: [Case<Scene>; 8] = [
    ("row-16", udp_is_dropped_from_the_start),
    ("row-16-attach", a_session_is_attached_to_without_udp),
    ("row-17", udp_comes_and_goes_under_typing),
    ("row-17-ssh", a_session_on_udp_does_not_need_ssh),
    ("row-17-way", one_way_alone),
    ("row-18", copies_and_commands_without_udp),
    ("row-18-turn", a_copy_while_udp_comes_and_goes),
    ("ends", many_sessions_end_over_ssh),
];

/// Sessions that end at once over ssh, and how often.
const ENDS: (usize, usize) = (6, 5);

/// As a row shows it, without the blank behind it.
pub const PROMPT: &str = "ready>";

#[test]
fn ways() {
    let scene = Scene::start("rovelab-ways");
    let failures = run_cases("ways", &CASES, &scene);
    assert!(failures.is_empty(), "{}\nsshd's log:\n{}", failures.join("\n"), scene.sshd.log());
}

impl Scene {
    pub fn start(user: &str) -> Scene {
        Scene::between(user, End::Near, Profile::default())
    }

    /// With the sshd at one end, the person at the near one, and this path between the two ends.
    pub fn between(user: &str, at: End, path: Profile) -> Scene {
        let net = Net::open(&Scenario::alike(path, 1), None).unwrap();
        let start = move || match at {
            End::Near => Sshd::start(),
            End::Far => Sshd::start_at(FAR),
        };
        let mut sshd = net.within(at, start).unwrap();
        let rove = std::fs::read(rove_program()).unwrap();
        let user = sshd.add_user(user, "/bin/bash").unwrap();
        user.write(".local/bin/rove", &rove, 0o755).unwrap();
        user.write(".hushlogin", "", 0o644).unwrap();
        user.write(".bash_profile", "PS1='ready> '\n", 0o644).unwrap();
        let (name, home) = (user.name().to_owned(), user.home().to_owned());
        let config = sshd.client_config(&[("here", &name, "")]).unwrap();
        Scene { sshd, home, config, net }
    }

    /// Whether datagrams to and from servers pass from now on.
    pub fn let_udp(&self, passes: bool) -> Outcome {
        self.net.let_udp(passes).map_err(words)
    }

    /// Runs a program in the network.
    pub fn run(&self, command: &mut Command) -> Outcome {
        self.net.place(End::Near, command);
        let status = command.status().map_err(words)?;
        if status.success() { Ok(()) } else { Err(format!("it ended with {status}")) }
    }

    /// Whether sshd lets anybody in from now on.
    pub fn admit(&self, admits: bool) -> Outcome {
        let keys = self.sshd.authorized_keys();
        let away = keys.with_extension("away");
        let (from, to) = if admits { (&away, &keys) } else { (&keys, &away) };
        fs::rename(from, to).map_err(words)
    }

    /// Where things of the test can be put, and the keys are.
    pub fn directory(&self) -> &Path {
        self.sshd.directory()
    }

    /// sshd's port.
    pub fn port(&self) -> u16 {
        self.sshd.port()
    }

    /// ssh's configuration.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// What sshd has said.
    pub fn log(&self) -> String {
        self.sshd.log()
    }

    /// A session with these words before the host.
    pub fn session(&self, options: &[&str]) -> Result<Program, String> {
        self.session_by(&self.config, options)
    }

    /// The same by another configuration of ssh.
    pub fn session_by(&self, config: &Path, options: &[&str]) -> Result<Program, String> {
        let mut command = bounded(rove_program());
        command.arg("-F").arg(config).args(options).arg("here");
        self.settle(&mut command);
        Program::start(command, Size::DEFAULT).map_err(words)
    }

    /// One of rove's other commands, on a terminal.
    pub fn on_terminal(&self, name: &str, words_after: &[&str]) -> Result<Program, String> {
        Program::start(self.command(name, words_after), Size::DEFAULT).map_err(words)
    }

    /// One of rove's other commands, with these words.
    fn command(&self, name: &str, words: &[&str]) -> Command {
        let mut command = bounded(rove_program());
        command.arg(name).arg("-F").arg(&self.config).args(words);
        self.settle(&mut command);
        command
    }

    /// scp with ssh's configuration.
    fn scp(&self, from: &str, to: &str) -> Command {
        let mut command = bounded("scp");
        command.arg("-q").arg("-F").arg(&self.config).args([from, to]);
        self.settle(&mut command);
        command
    }

    fn settle(&self, command: &mut Command) {
        let home = self.sshd.directory();
        command.current_dir(home).env("HOME", home).env("TERM", "xterm-256color");
        command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME").env("LANG", "C.UTF-8");
        command.env("ROVE_PREDICT", "never").env_remove("ROVE_WAY");
        self.net.place(End::Near, command);
    }
}

/// Waits until the screen shows a text.
pub fn see(session: &mut Program, text: &str) -> Outcome {
    let shown = session.wait_for(text, LIMIT, |session| session.shows(text));
    shown.map_err(|missed| format!("{missed}"))
}

pub fn leave(session: &mut Program) -> Outcome {
    session.send("exit\r");
    session.wait_exit(LIMIT).map(drop).map_err(words)
}

/// The bar says it once. Keys and the exit status arrive.
fn udp_is_dropped_from_the_start(scene: &Scene) -> Outcome {
    scene.let_udp(false)?;
    let mut session = scene.session(&[])?;
    see(&mut session, PROMPT)?;
    let since = Clock::start();
    see(&mut session, "does not answer on UDP 6")?;
    see(&mut session, "; going on over ssh")?;
    println!("row-16: the user was told {:?} after the prompt", since.elapsed());
    session.send("echo $((6*7))-there\r");
    see(&mut session, "42-there")?;
    session.send("seq 1 2000 | tail -n 1; exit 9\r");
    let status = session.wait_exit(LIMIT).map_err(words)?;
    scene.let_udp(true)?;
    match status.code() {
        Some(9) => Ok(()),
        other => Err(format!("the session ended with {other:?}")),
    }
}

/// Clients come back and join over ssh alone, several at a time, and go on by UDP when that is back.
fn a_session_is_attached_to_without_udp(scene: &Scene) -> Outcome {
    scene.let_udp(false)?;
    let mut first = scene.on_terminal("new", &["-s", "work", "here"])?;
    see(&mut first, PROMPT)?;
    first.send("echo $((6*7))-first\r");
    see(&mut first, "42-first")?;
    first.send("\x1ed");
    first.wait_exit(LIMIT).map_err(words)?;

    let mut second = scene.on_terminal("attach", &["here:work"])?;
    see(&mut second, "42-first")?;
    see(&mut second, "does not answer on UDP 6")?;
    let mut third = scene.on_terminal("attach", &["here:work"])?;
    see(&mut third, "42-first")?;
    let mut old = scene.on_terminal("new", &["-A", "-s", "work", "here"])?;
    see(&mut old, "42-first")?;
    second.send("echo $((6*7))-second\r");
    for client in [&mut second, &mut third, &mut old] {
        see(client, "42-second")?;
    }
    // The way of one that leaves ends alone.
    third.send("\x1ed");
    third.wait_exit(LIMIT).map_err(words)?;
    old.send("echo $((6*7))-old\r");
    // What is typed is written while that one is waited for.
    for client in [&mut old, &mut second] {
        see(client, "42-old")?;
    }
    scene.let_udp(true)?;
    old.send("\x1es");
    see(&mut old, "UDP 127.0.0.1")?;
    old.send("x\x15");
    leave(&mut old)?;
    second.wait_exit(LIMIT).map(drop).map_err(words)
}

/// Letters are typed all the time, while UDP works, is dropped, works, and is dropped again: each arrives once and in
/// order.
fn udp_comes_and_goes_under_typing(scene: &Scene) -> Outcome {
    scene.let_udp(true)?;
    let mut session = scene.session(&[])?;
    see(&mut session, PROMPT)?;
    session.send("stty -echo; cat -v\r");
    session.pump(Duration::from_millis(700)).map_err(words)?;
    let mut typed = String::new();
    let mut slowest = Duration::ZERO;
    for (turn, passes) in [true, false, true, false].into_iter().enumerate() {
        scene.let_udp(passes)?;
        for line in 0..12 {
            let word = format!("word{turn}x{line}");
            session.send(format!("{word}\r"));
            typed = word.clone();
            let since = Clock::start();
            see(&mut session, &word)?;
            slowest = slowest.max(since.elapsed());
            session.pump(Duration::from_millis(150)).map_err(words)?;
        }
    }
    scene.let_udp(true)?;
    // Each line is on the screen once, below the one before.
    let lines: Vec<String> = (0..session.screen().size().rows)
        .map(|row| session.screen().row_text(row).trim_end().to_owned())
        .filter(|line| line.starts_with("word"))
        .collect();
    let last = lines.iter().position(|line| *line == typed).ok_or("the last line is not there")?;
    let all = |turn: usize| (0..12).map(move |line| format!("word{turn}x{line}"));
    let meant: Vec<String> = (0..4).flat_map(all).collect();
    if last + 1 != lines.len() || !meant.ends_with(&lines) {
        return Err(format!("lines are {lines:?}"));
    }
    session.send("\x04");
    leave(&mut session)?;
    println!("row-17: the slowest line took {slowest:?}");
    Ok(())
}

/// With UDP in use ssh is let go after half a minute, and the session goes on.
fn a_session_on_udp_does_not_need_ssh(scene: &Scene) -> Outcome {
    scene.let_udp(true)?;
    let mut session = scene.session(&[])?;
    see(&mut session, PROMPT)?;
    let relays = || {
        let mut pgrep = bounded("pgrep");
        pgrep.args(["-f", "rove server.*-@ carry"]);
        let found = pgrep.output().map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&found).lines().count()
    };
    let before = relays();
    let since = Clock::start();
    while relays() >= before.max(2) {
        if since.elapsed() > LIMIT {
            return Err(format!("{} processes of {before} are left", relays()));
        }
        session.pump(Duration::from_millis(500)).map_err(words)?;
    }
    session.send("echo $((6*7))-still\r");
    see(&mut session, "42-still")?;
    leave(&mut session)
}

fn one_way_alone(scene: &Scene) -> Outcome {
    scene.let_udp(true)?;
    for way in ["--way=udp", "--way=ssh"] {
        let mut session = scene.session(&[way])?;
        see(&mut session, PROMPT)?;
        session.send("\x1es");
        see(&mut session, if way.ends_with("ssh") { "ssh 127.0.0.1" } else { "UDP 127.0.0.1" })?;
        session.send("sx");
        session.send("\x15");
        leave(&mut session)?;
    }
    Ok(())
}

/// The servers of all hear that their clients know of the end, and none is listed as ended.
fn many_sessions_end_over_ssh(scene: &Scene) -> Outcome {
    scene.let_udp(true)?;
    for _ in 0..ENDS.1 {
        let start = |_| scene.session(&["--way=ssh"]);
        let mut sessions = (0..ENDS.0).map(start).collect::<Result<Vec<_>, String>>()?;
        for session in &mut sessions {
            see(session, PROMPT)?;
        }
        for session in &mut sessions {
            session.send("exit 7\r");
        }
        for session in &mut sessions {
            let status = session.wait_exit(LIMIT).map_err(words)?;
            if status.code() != Some(7) {
                return Err(format!("a session ended with {status}"));
            }
        }
    }
    done(scene.command("exec", &["--way=ssh", "here", "true"]))?;
    none_is_left(scene)
}

/// Waits until the host has no session.
pub fn none_is_left(scene: &Scene) -> Outcome {
    let mut said = String::new();
    let none = until("the end of all sessions", || {
        said = done(scene.command("ls", &["here"])).map_or_else(|error| error, |(_, said)| said);
        said.contains("no sessions of yours").then_some(())
    });
    none.map_err(|error| format!("{error}: {said}"))
}

/// Octets of a copy.
const BIG: usize = 24_000_000;

/// Octets that no compression makes fewer, by xorshift64.
fn octets(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()
    };
    std::iter::from_fn(|| Some(next())).flatten().take(count).collect()
}

/// A command that ends well, and how long it took.
fn done(command: Command) -> Result<(Duration, String), String> {
    let (took, end) = timed(command)?;
    let said = String::from_utf8_lossy(&end.stdout).into_owned();
    let errors = String::from_utf8_lossy(&end.stderr).into_owned();
    match end.status.code() {
        Some(0) => Ok((took, format!("{said}{errors}"))),
        other => Err(format!("ended with {other:?} after {took:?}: {said}{errors}")),
    }
}

fn timed(mut command: Command) -> Result<(Duration, Output), String> {
    let since = Clock::start();
    let end = command.output().map_err(words)?;
    Ok((since.elapsed(), end))
}

/// Where no datagram by UDP arrives, copies, commands and forwardings go over ssh, at no less than half of ssh's speed.
fn copies_and_commands_without_udp(scene: &Scene) -> Outcome {
    scene.let_udp(false)?;
    let near = scene.sshd.directory();
    let (big, back) = (near.join("big"), near.join("back"));
    let whole = octets(BIG);
    fs::write(&big, &whole).map_err(words)?;
    // On loopback, what scp does and no more.
    let mut ssh = bounded("ssh");
    ssh.arg("-F").arg(&scene.config).args(["here", "cat > by-ssh"]);
    scene.settle(&mut ssh);
    ssh.stdin(fs::File::open(&big).map_err(words)?);
    let (ssh, _) = done(ssh)?;
    let (up, _) = done(scene.command("cp", &["big", "here:"]))?;
    let (down, _) = done(scene.command("cp", &["here:big", "back"]))?;
    println!("row-18: {BIG} octets in {up:?} and back in {down:?}; by ssh in {ssh:?}");
    if fs::read(&back).map_err(words)? != whole {
        return Err("what came back is not what was sent".into());
    }
    if up.max(down) > ssh * 2 + START {
        return Err(format!("{up:?} and {down:?} are more than twice ssh's {ssh:?}"));
    }
    let (_, said) = done(scene.command("cp", &["-l", "40000", "big", "here:slow"]))?;
    if !said.contains("; over ssh: UDP does not answer") {
        return Err(format!("a copy does not say that it went over ssh: {said}"));
    }
    let mut sum = scene.command("exec", &["here", "wc -c; echo there >&2"]);
    sum.stdin(fs::File::open(&big).map_err(words)?);
    let (took, said) = done(sum)?;
    if !said.contains(&BIG.to_string()) || !said.contains("there") {
        return Err(format!("a command said {said:?}"));
    }
    println!("row-18: a command that read them took {took:?}");
    let mut exits = scene.command("exec", &["--way=ssh", "here", "exit 7"]);
    match exits.status().map_err(words)?.code() {
        Some(7) => {}
        other => return Err(format!("a command ended with {other:?}, not 7")),
    }
    forwarded(scene)?;
    scene.let_udp(true)?;
    // And over ssh alone where UDP would be had.
    done(scene.command("cp", &["--way=ssh", "here:big", "back"])).map(drop)
}

/// The same over 100 ms, beside scp itself, each way and in turn. One pair within the bound is enough: what slows one down
/// may be what else the machine does. `RTT_MS=300 ROUNDS=5` compares them over 300 ms, five times, and a command's input
/// and output as well.
#[test]
fn copies_over_ssh_beside_scp() {
    let path = Profile::delay(Duration::from_millis(number("RTT_MS", 100).unwrap()) / 2);
    let scene = Scene::between("rovelab-far", End::Far, path);
    let failures = run_cases("ways", &[("row-18-far", beside_scp)], &scene);
    assert!(failures.is_empty(), "{}\nsshd's log:\n{}", failures.join("\n"), scene.sshd.log());
}

fn beside_scp(scene: &Scene) -> Outcome {
    scene.let_udp(false)?;
    let near = scene.sshd.directory();
    let whole = octets(BIG);
    fs::write(near.join("big"), &whole).map_err(words)?;
    let rounds = number("ROUNDS", 1)? as usize;
    for (way, from, to, copy) in [
        ("up", "big", "here:", scene.home.join("big")),
        ("down", "here:big", "back", near.join("back")),
    ] {
        let copied = |command| {
            let _ = fs::remove_file(&copy);
            let (took, said) = done(command)?;
            match fs::read(&copy).map_err(words)? == whole {
                true => Ok((took, said)),
                false => Err(format!("what was copied {way} is not what was sent")),
            }
        };
        let mut turns = Vec::new();
        loop {
            let (scp, _) = copied(scene.scp(from, to))?;
            let (cp, said) = copied(scene.command("cp", &[from, to]))?;
            // One that is over in a second does not say it.
            if rounds == 1 && !said.contains("; over ssh: UDP does not answer") {
                return Err(format!("a copy {way} does not say that it went over ssh: {said}"));
            }
            println!("row-18: {BIG} octets {way}: {scp:?} by scp, {cp:?} by rove cp");
            turns.push((scp, cp));
            let is_met = turns.iter().any(|(scp, cp)| *cp <= *scp * 2 + START);
            if is_met && turns.len() >= rounds {
                break;
            }
            if turns.len() >= TURNS.max(rounds) {
                return Err(format!("{way}: more than twice what scp takes, each time: {turns:?}"));
            }
        }
    }
    for (way, command) in [("in", "cat > /dev/null"), ("out", "cat big")] {
        for _ in 1..rounds {
            let mut exec = scene.command("exec", &["here", command]);
            exec.stdin(fs::File::open(near.join("big")).map_err(words)?);
            let (took, end) = timed(exec)?;
            let expected = if way == "in" { &[][..] } else { &whole[..] };
            println!("row-18: {BIG} octets {way}: {took:?} by rove exec");
            if !end.status.success() || end.stdout != expected {
                return Err(format!("a command ended with {:?}", end.status));
            }
        }
    }
    scene.let_udp(true)
}

/// A number that the environment may have.
fn number(name: &str, usual: u64) -> Result<u64, String> {
    std::env::var(name).map_or(Ok(usual), |text| text.parse().map_err(words))
}

/// How often each program copies at most.
const TURNS: usize = 8;

/// Added to what a copy may take: two more round trips, and a program that begins.
const START: Duration = Duration::from_millis(1500);

/// A shell's forwarding to the sshd itself, which greets.
fn forwarded(scene: &Scene) -> Outcome {
    let to = format!("47211:127.0.0.1:{}", scene.sshd.port());
    let mut session = scene.session(&["-L", &to])?;
    see(&mut session, PROMPT)?;
    session.pump(Duration::from_millis(500)).map_err(words)?;
    let mut greeting = bounded("bash");
    greeting.args(["-c", "exec 3<>/dev/tcp/127.0.0.1/47211; head -c 4 <&3"]);
    scene.settle(&mut greeting);
    let (took, said) = done(greeting)?;
    println!("row-18: the other end of a forwarding greeted after {took:?}");
    if said != "SSH-" {
        return Err(format!("the other end of a forwarding said {said:?}"));
    }
    leave(&mut session)
}

/// A copy that begins over ssh goes on by UDP, and goes back to ssh when that stops.
fn a_copy_while_udp_comes_and_goes(scene: &Scene) -> Outcome {
    scene.let_udp(false)?;
    let near = scene.sshd.directory();
    let whole = octets(BIG);
    fs::write(near.join("big"), &whole).map_err(words)?;
    let mut copy = scene.command("cp", &["-l", "12000", "big", "here:turns"]);
    copy.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut copy = copy.spawn().map_err(words)?;
    let since = Clock::start();
    let mut turn = 0;
    let status = until("the end of a copy", || {
        if since.elapsed() > Duration::from_secs(4) * (turn + 1) {
            turn += 1;
            scene.let_udp(turn % 2 == 1).ok()?;
        }
        copy.try_wait().ok()?
    })?;
    println!("row-18: a copy of 16 s ended after {:?} and {turn} turns", since.elapsed());
    scene.let_udp(true)?;
    if !status.success() {
        return Err(format!("the copy ended with {status}"));
    }
    done(scene.command("cp", &["here:turns", "back"]))?;
    match fs::read(near.join("back")).map_err(words)? == whole {
        true => Ok(()),
        false => Err("what was copied is not what was sent".into()),
    }
}
