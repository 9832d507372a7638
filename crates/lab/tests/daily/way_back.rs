//! The way back to a session whose ssh was let go, or has died: a new ssh finds the session, or that it is gone. As in
//! `ways.rs` all is in a network of its own, whose nftables drop or refuse what they are told to.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rove_lab::testing::clock::Clock;
use rove_lab::testing::run::{Program, Stranger};

use crate::host::{Case, LIMIT, Outcome, bounded, clean, run_cases, until, words};
use crate::ways::{PROMPT, Scene, leave, none_is_left, see};

const CASES: [Case<Scene>; 8] = [
    ("row-17-later", udp_stops_when_ssh_was_let_go),
    ("row-19", a_killed_server_is_told_from_a_silent_network),
    ("row-19-joined", a_client_that_joined_is_told_as_the_first_is),
    ("row-19-forged", refusals_end_no_session),
    ("row-17-asks", an_ssh_that_would_ask_is_left_to_the_user),
    ("row-17-jump", a_jump_host_that_would_ask_is_left_to_the_user),
    ("row-17-off", no_fallback_is_wanted),
    ("row-14-status", a_program_ends_when_nothing_comes_through),
];

/// How long keys may be unseen that have to wait for a new ssh: eight seconds, and an ssh.
const BACK: Duration = Duration::from_secs(12);

/// How long a session may look alive whose server was killed.
const GONE: Duration = Duration::from_secs(15);

/// Added to such bars on a machine that does much else.
const BUSY: Duration = Duration::from_secs(8);

#[test]
fn ways_back() {
    let scene = Scene::start("rovelab-back");
    let failures = run_cases("ways back", &CASES, &scene);
    assert!(failures.is_empty(), "{}\nsshd's log:\n{}", failures.join("\n"), scene.log());
}

/// The processes whose command line has all of these.
fn processes(parts: &[&str]) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_meant = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        parts.iter().all(|part| line.contains(part))
    };
    pids.filter(is_meant).collect()
}

/// The ssh of our clients: this scene's configuration is among its words.
fn sshs(scene: &Scene) -> Vec<u32> {
    let config = scene.config().display().to_string();
    let is_ssh = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim() == "ssh"
    };
    processes(&["ROVE BEGIN", &config]).into_iter().filter(is_ssh).collect()
}

/// A session by UDP whose ssh has died, as after sleep.
fn by_udp_alone(scene: &Scene, options: &[&str]) -> Result<Program, String> {
    by_udp_alone_and(scene, scene.config(), options)
}

fn by_udp_alone_and(scene: &Scene, config: &Path, options: &[&str]) -> Result<Program, String> {
    scene.let_udp(true)?;
    let mut session = scene.session_by(config, options)?;
    see(&mut session, PROMPT)?;
    session.send("\x1es");
    see(&mut session, "UDP 127.0.0.1")?;
    session.send("s");
    for ssh in sshs(scene) {
        Stranger::open(ssh).and_then(|ssh| ssh.kill()).map_err(words)?;
    }
    until("the end of ssh", || sshs(scene).is_empty().then_some(()))?;
    session.send("echo $((6*7))-udp\r");
    see(&mut session, "42-udp")?;
    Ok(session)
}

/// UDP works for more than half a minute, so that ssh is let go. Then it is dropped under typing, and works again: keys
/// are seen again by a new ssh, and none is lost, twice or out of order.
fn udp_stops_when_ssh_was_let_go(scene: &Scene) -> Outcome {
    scene.let_udp(true)?;
    let mut session = scene.session(&[])?;
    see(&mut session, PROMPT)?;
    session.send("stty -echo; cat -v\r");
    let since = Clock::start();
    while !sshs(scene).is_empty() {
        if since.elapsed() > LIMIT {
            return Err("ssh was not let go".into());
        }
        session.pump(Duration::from_millis(500)).map_err(words)?;
    }
    println!("row-17-later: ssh was let go after {:?}", since.elapsed());
    let mut slowest = [Duration::ZERO; 4];
    for (turn, passes) in [true, false, true, false].into_iter().enumerate() {
        match passes {
            true => scene.let_udp(true)?,
            false => scene.rule("input", "drop")?,
        }
        let since = Clock::start();
        for line in 0..6 {
            // Keys go on while nothing comes back.
            let word = format!("word{turn}x{line}");
            session.send(format!("{word}\r"));
            session.pump(Duration::from_millis(100)).map_err(words)?;
        }
        see(&mut session, &format!("word{turn}x5"))?;
        slowest[turn] = since.elapsed();
        session.pump(Duration::from_millis(500)).map_err(words)?;
    }
    println!("row-17-later: the turns took {slowest:?}");
    let lines: Vec<String> =
        session.lines().into_iter().filter(|line| line.starts_with("word")).collect();
    let meant: Vec<String> =
        (0..4).flat_map(|turn| (0..6).map(move |line| format!("word{turn}x{line}"))).collect();
    if !meant.ends_with(&lines) || lines.len() < 18 {
        return Err(format!("lines are {lines:?}"));
    }
    if slowest[1] > BACK + BUSY {
        return Err(format!("keys were not seen for {:?}", slowest[1]));
    }
    scene.let_udp(true)?;
    session.send("\x04");
    session.send("\x1es");
    see(&mut session, "UDP 127.0.0.1")?;
    session.send("s");
    leave(&mut session)
}

/// The program there is the server's child, so that its parent is the server.
fn server_of(session: &mut Program) -> Result<u32, String> {
    session.send("echo server-$PPID-\r");
    until("the server's number", || {
        session.pump(Duration::from_millis(100)).ok()?;
        session.lines().iter().find_map(|line| {
            let (number, _) = line.strip_prefix("server-")?.split_once('-')?;
            number.parse().ok()
        })
    })
}

/// With the words for it, and with ssh's status for its own failures.
fn a_killed_server_is_told_from_a_silent_network(scene: &Scene) -> Outcome {
    let mut session = by_udp_alone(scene, &[])?;
    let server = server_of(&mut session)?;
    Stranger::open(server).and_then(|server| server.kill()).map_err(words)?;
    let since = Clock::start();
    session.send("x");
    see(&mut session, "Nothing listens on here's UDP port 6")?;
    println!("row-19: the port was found to refuse after {:?}", since.elapsed());
    let status = session.wait_exit(LIMIT).map_err(words)?;
    let took = since.elapsed();
    println!("row-19: the session was found to be gone after {took:?}");
    let said = "rove: the session on here is gone: its program ended";
    if !session.shows(said) {
        return Err(format!("the screen says {:?}", session.lines()));
    }
    match status.code() {
        Some(255) if took <= GONE + BUSY => Ok(()),
        other => Err(format!("ended with {other:?} after {took:?}")),
    }
}

fn a_client_that_joined_is_told_as_the_first_is(scene: &Scene) -> Outcome {
    let mut session = by_udp_alone(scene, &[])?;
    let server = server_of(&mut session)?;
    let mut joined = scene.on_terminal("attach", &["here"])?;
    see(&mut joined, "42-udp")?;
    see(&mut session, "has attached too")?;
    Stranger::open(server).and_then(|server| server.kill()).map_err(words)?;
    for client in [&mut session, &mut joined] {
        client.send("x");
        let status = client.wait_exit(LIMIT).map_err(words)?;
        let is_told = client.shows("rove: the session on here is gone: its program ended");
        if !is_told || status.code() != Some(255) {
            return Err(format!("{status}, and the screen says {:?}", client.lines()));
        }
    }
    Ok(())
}

/// Datagrams are refused in the name of a server that is there: the client asks it, and goes on. The server hears by the
/// keeper's ssh that the client knows of its end.
fn refusals_end_no_session(scene: &Scene) -> Outcome {
    let mut session = by_udp_alone(scene, &[])?;
    scene.rule("input", "reject")?;
    let since = Clock::start();
    session.send("echo $((6*7))-refused\r");
    see(&mut session, "Nothing listens on here's UDP port 6")?;
    see(&mut session, "42-refused")?;
    println!("row-19-forged: the session went on after {:?}", since.elapsed());
    session.send("\x1es");
    see(&mut session, "ssh 127.0.0.1")?;
    session.send("s");
    session.send("exit 7\r");
    let status = session.wait_exit(LIMIT).map_err(words)?;
    scene.let_udp(true)?;
    match status.code() {
        Some(7) => none_is_left(scene),
        other => Err(format!("the session ended with {other:?}")),
    }
}

/// Nothing asks on the user's terminal. A client of the user's own may find the way, and UDP too.
fn an_ssh_that_would_ask_is_left_to_the_user(scene: &Scene) -> Outcome {
    let mut session = by_udp_alone(scene, &[])?;
    scene.admit(false)?;
    scene.rule("input", "drop")?;
    session.send("echo $((6*7))-later\r");
    see(&mut session, "asking ssh for a way")?;
    see(&mut session, "; ssh needs you: in another window,")?;
    scene.admit(true)?;
    scene.let_udp(true)?;
    see(&mut session, "42-later")?;
    leave(&mut session)
}

/// The ssh that ssh starts to get to a jump host is not told BatchMode: it has no terminal to ask on, neither for an
/// unknown key of the host's nor for the words of an encrypted one of the user's. No key that is typed is read by it.
fn a_jump_host_that_would_ask_is_left_to_the_user(scene: &Scene) -> Outcome {
    let jump = JumpHost::new(scene)?;
    for makes_it_ask in [JumpHost::forget_host, JumpHost::encrypt_key] {
        jump.ask_nothing()?;
        let mut session = by_udp_alone_and(scene, &jump.config, &[])?;
        makes_it_ask(&jump)?;
        scene.rule("input", "drop")?;
        session.send("echo $((6*7))-later\r");
        see(&mut session, "asking ssh for a way")?;
        let since = Clock::start();
        while !session.shows("; ssh needs you") {
            if let Some(asks) = ["authenticity", "passphrase", "assword", "continue connecting"]
                .into_iter()
                .find(|asks| session.shows(asks))
            {
                return Err(format!("ssh asks {asks:?}: {:?}", session.lines()));
            }
            if since.elapsed() > LIMIT {
                return Err(format!("nothing is said of ssh: {:?}", session.lines()));
            }
            session.pump(Duration::from_millis(50)).map_err(words)?;
        }
        println!("row-17-jump: ssh needs the user, as was found after {:?}", since.elapsed());
        let config = jump.config.display().to_string();
        until("the end of ssh", || processes(&[&config, "-W"]).is_empty().then_some(()))?;
        scene.let_udp(true)?;
        see(&mut session, "42-later")?;
        leave(&mut session)?;
    }
    Ok(())
}

/// The scene's sshd as the host that it is got to through, with a key for it, and keys of hosts, of its own.
struct JumpHost {
    config: PathBuf,
    key: PathBuf,
    known: PathBuf,
    keys: [PathBuf; 2],
    port: u16,
}

impl JumpHost {
    fn new(scene: &Scene) -> Result<JumpHost, String> {
        let at = scene.directory();
        let [key, known] = ["jump_key", "jump_known"].map(|name| at.join(name));
        let direct = fs::read_to_string(scene.config()).map_err(words)?;
        let user = direct.lines().find(|line| line.trim().starts_with("User ")).ok_or("no user")?;
        let text = format!(
            "Host jump\n  HostName 127.0.0.1\n  Port {}\n{user}\n  IdentityFile {}\n  \
             UserKnownHostsFile {}\n  StrictHostKeyChecking ask\n  IdentityAgent none\n{}",
            scene.port(),
            key.display(),
            known.display(),
            direct.replace("Host here\n", "Host here\n  ProxyJump jump\n")
        );
        // With the name of the other, by which the test finds what runs.
        let config = PathBuf::from(format!("{}-jump", scene.config().display()));
        fs::write(&config, text).map_err(words)?;
        let keys = ["user_key", "host_key.pub"].map(|name| at.join(name));
        Ok(JumpHost { config, key, known, keys, port: scene.port() })
    }

    fn ask_nothing(&self) -> Outcome {
        let _ = fs::remove_file(&self.key);
        fs::copy(&self.keys[0], &self.key).map_err(words)?;
        fs::set_permissions(&self.key, fs::Permissions::from_mode(0o600)).map_err(words)?;
        let host_key = fs::read_to_string(&self.keys[1]).map_err(words)?;
        fs::write(&self.known, format!("[127.0.0.1]:{} {host_key}", self.port)).map_err(words)
    }

    fn forget_host(&self) -> Outcome {
        fs::write(&self.known, "").map_err(words)
    }

    fn encrypt_key(&self) -> Outcome {
        let mut keygen = bounded("ssh-keygen");
        keygen.args(["-q", "-p", "-P", "", "-N", "secret words", "-f"]).arg(&self.key);
        clean(keygen).map(drop)
    }
}

fn no_fallback_is_wanted(scene: &Scene) -> Outcome {
    let mut session = by_udp_alone(scene, &["--no-fallback"])?;
    scene.rule("input", "drop")?;
    session.send("echo $((6*7))-off\r");
    see(&mut session, "Last contact 12 seconds ago")?;
    if !sshs(scene).is_empty() || session.shows("ssh") {
        return Err(format!("ssh was run: {:?}", session.lines()));
    }
    scene.let_udp(true)?;
    see(&mut session, "42-off")?;
    leave(&mut session)
}

/// The way fails for longer than ten seconds exactly when the program ends. Its last words and its status arrive: by a
/// new ssh, and where that is not wanted when UDP is back.
fn a_program_ends_when_nothing_comes_through(scene: &Scene) -> Outcome {
    for options in [&[][..], &["--no-fallback"]] {
        let mut session = by_udp_alone(scene, options)?;
        session.send("sleep 1; echo $((6*7))-last; exit 9\r");
        see(&mut session, "sleep 1")?;
        scene.rule("input", "drop")?;
        let since = Clock::start();
        if options.is_empty() {
            session.send("x");
        } else {
            see(&mut session, "Last contact 20 seconds ago")?;
            scene.let_udp(true)?;
        }
        let status = session.wait_exit(LIMIT).map_err(words)?;
        println!("row-14-status: the client left after {:?}", since.elapsed());
        scene.let_udp(true)?;
        if status.code() != Some(9) || !session.shows("42-last") {
            return Err(format!("ended with {status}: {:?}", session.lines()));
        }
    }
    Ok(())
}

/// Another table beside the one of `ways.rs`.
impl Scene {
    /// What happens to datagrams to and from servers from now on; [`let_udp`](Scene::let_udp) ends it.
    fn rule(&self, chain: &str, verdict: &str) -> Outcome {
        let mut nft = bounded("nft");
        nft.arg(format!(
            "flush ruleset; table inet rove {{ chain back {{ type filter hook {chain} priority 0; \
             udp dport 60001-60999 {verdict}; udp sport 60001-60999 drop; }}; }}"
        ));
        self.run(&mut nft)
    }
}
