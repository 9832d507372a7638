//! Tests commands, forwardings and the agent over a network that goes away and comes back with another address:
//! they pause, and go on. It uses two network namespaces, as tests/link.rs does; without them the test says so and
//! ends.
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;
#[path = "common/host.rs"]
mod host;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::Stdio;

use common::{lab_program, possible, rove_program};
use host::{
    LIMIT, Outcome, Running, bounded, converse, echo_on, output, run_cases, same, until, words,
};
use rove_lab::testing::link::Profile;
use rove_lab::testing::net::scenario::{Happening, Scenario};
use rove_lab::testing::net::{End, FAR, Net};
use rove_lab::testing::real::stage::Networks;
use rove_lab::testing::rng::Chance;
use rove_lab::testing::run::Stranger;
use rove_lab::testing::scratch::Scratch;

/// Two networks, a directory, and a real agent in it.
struct Setup {
    net: Net,
    networks: Networks,
    scratch: Scratch,
    _agent: Running,
}

#[test]
fn pauses_and_goes_on() {
    let calm = Scenario::alike(Profile::default(), 1);
    let Some(net) = possible("pauses_and_goes_on", Net::open(&calm, None)) else { return };
    let setup = Setup::new(net);
    let failures =
        run_cases("forward over a link", &[("outage", outage), ("agent", agent)], &setup);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

impl Setup {
    fn new(net: Net) -> Setup {
        let (networks, scratch) = (Networks::of(&net).unwrap(), Scratch::new().unwrap());
        let mut agent = bounded("ssh-agent");
        agent.args(["-D", "-a"]).arg(scratch.join("agent")).stdout(Stdio::null());
        let agent = Running::start(agent);
        let setup = Setup { net, networks, scratch, _agent: agent };
        let mut keygen = bounded("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(setup.scratch.join("key"));
        assert!(output(keygen).status.success());
        until("the agent takes a key", || {
            let mut add = bounded("ssh-add");
            add.arg("-q").arg(setup.scratch.join("key")).stderr(Stdio::null());
            add.env("SSH_AUTH_SOCK", setup.scratch.join("agent"));
            output(add).status.success().then_some(())
        })
        .unwrap();
        setup
    }

    /// `rove exec` near, to a server far, with these words.
    fn rove(&self, words: &[&str]) -> Running {
        let far = self.net.network(End::Far).as_raw_fd();
        let entry = format!("/proc/{}/fd/{far}", std::process::id());
        let mut command = bounded(rove_program());
        command.arg("exec");
        command.arg(format!("--ssh={} there --network {entry}", lab_program().display()));
        command.arg(format!("--server={}", rove_program().display())).args(words);
        command.env("HOME", self.scratch.path()).env("SHELL", "/bin/sh");
        command.env("SSH_AUTH_SOCK", self.scratch.join("agent"));
        self.net.place(End::Near, &mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Running::start(command)
    }

    /// Cleans up after an earlier case: programs, with their ports, and a dead path.
    fn clear(&self) {
        for end in [End::Near, End::Far] {
            for pid in self.networks.processes(end).unwrap_or_default() {
                // It may have ended by itself.
                drop(Stranger::open(pid));
            }
        }
        self.heal();
    }

    /// Lets nothing pass from now on.
    fn cut(&self) {
        let dead = Profile::default().loss(Chance::percent(100));
        self.net.follow(&Scenario::alike(dead, 2));
    }

    fn heal(&self) {
        self.net.follow(&Scenario::alike(Profile::default(), 3));
    }

    /// A listener on loopback of one of the networks that says everything back; its port.
    fn echo(&self, end: End) -> u16 {
        let listener =
            self.net.within(end, || TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        echo_on(move || Ok(Box::new(listener.accept()?.0)));
        port
    }

    /// A connection to loopback of one of the networks.
    fn connect(&self, end: End, port: u16) -> Result<TcpStream, String> {
        let connect = move || TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let stream = until("somebody listens", || self.net.within(end, connect).ok())?;
        stream.set_read_timeout(Some(LIMIT)).map_err(words)?;
        Ok(stream)
    }

    /// Whether an agent answers at this path, with the key.
    fn has_agent(&self, path: &str) -> bool {
        let mut list = bounded("ssh-add");
        list.arg("-l").env("SSH_AUTH_SOCK", path).stderr(Stdio::null());
        output(list).status.success()
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A pipe, -L, -R and SOCKS through an outage and a new address: open connections stay open, new ones wait, and not
/// an octet is lost.
fn outage(setup: &Setup) -> Outcome {
    setup.clear();
    let (far, near) = (setup.echo(End::Far), setup.echo(End::Near));
    let local = format!("7000:127.0.0.1:{far}");
    let remote = format!("7001:127.0.0.1:{near}");
    let there = FAR.to_string();
    let words_of =
        ["-A", "-L", &local, "-D", "7002", "-R", &remote, &there, "echo $SSH_AUTH_SOCK; exec cat"];
    let mut rove = setup.rove(&words_of);
    let agent = rove.line()?;
    let mut open = [setup.connect(End::Near, 7000)?, setup.connect(End::Far, 7001)?];
    for stream in &mut open {
        converse(stream, "before\n")?;
    }
    piped(&mut rove, "before")?;
    setup.cut();
    // Not before both ends know of the outage: then the server answers for the agent.
    until("the outage is noticed", || (!setup.has_agent(&agent)).then_some(()))?;
    let mut late = [setup.connect(End::Near, 7000)?, setup.connect(End::Far, 7001)?];
    for stream in open.iter_mut().chain(&mut late) {
        stream.write_all(b"meanwhile\n").map_err(words)?;
    }
    rove.0.stdin.as_mut().ok_or("no input")?.write_all(b"meanwhile\n").map_err(words)?;
    let mut asked = setup.connect(End::Near, 7002)?;
    let [high, low] = far.to_be_bytes();
    asked.write_all(&[4, 1, high, low, 127, 0, 0, 1, 0]).map_err(words)?;
    asked.write_all(b"meanwhile\n").map_err(words)?;
    setup.net.happen(Happening::Roam).map_err(words)?;
    setup.heal();
    same(rove.line()?, "meanwhile")?;
    for stream in open.iter_mut().chain(&mut late) {
        heard(stream, "meanwhile\n")?;
        converse(stream, "after\n")?;
    }
    let mut answer = [0; 8];
    asked.read_exact(&mut answer).map_err(words)?;
    same(format!("{:?}", &answer[..2]), "[0, 90]")?;
    heard(&mut asked, "meanwhile\n")?;
    piped(&mut rove, "after")?;
    drop(rove.0.stdin.take());
    same(format!("{:?}", rove.status()?), "Some(0)")
}

fn heard(stream: &mut TcpStream, line: &str) -> Outcome {
    let mut heard = vec![0; line.len()];
    stream.read_exact(&mut heard).map_err(words)?;
    same(String::from_utf8_lossy(&heard), line)
}

/// A line to the command, and back.
fn piped(rove: &mut Running, line: &str) -> Outcome {
    let stdin = rove.0.stdin.as_mut().ok_or("no input")?;
    stdin.write_all(format!("{line}\n").as_bytes()).map_err(words)?;
    same(rove.line()?, line)
}

/// The agent's path is good for the session's life; while the client is silent it fails, and does not hang.
fn agent(setup: &Setup) -> Outcome {
    setup.clear();
    let there = FAR.to_string();
    let mut rove = setup.rove(&["-A", &there, "echo $SSH_AUTH_SOCK; exec cat"]);
    let path = rove.line()?;
    if !setup.has_agent(&path) {
        return Err("no agent at first".into());
    }
    for _ in 0..2 {
        setup.cut();
        // Each of these ends while the path is dead.
        until("failure", || (!setup.has_agent(&path)).then_some(()))?;
        if setup.has_agent(&path) {
            return Err("it was answered over a dead path".into());
        }
        setup.net.happen(Happening::Roam).map_err(words)?;
        setup.heal();
        until("the agent again", || setup.has_agent(&path).then_some(()))?;
    }
    drop(rove);
    until("its socket goes", || (!std::path::Path::new(&path).exists()).then_some(()))
}
