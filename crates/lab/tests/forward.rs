//! Tests forwardings as people use them, through a real sshd: ports, sockets, SOCKS and the agent, beside a
//! command, beside a shell, and alone. tests/forward_link.rs tests them over a bad network.
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;
#[path = "common/host.rs"]
mod host;

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use common::rove_program;
use host::{
    Case, Host, LIMIT, Outcome, Running, SECONDS_MAX, bounded, clean, connect, converse, echo,
    echo_on, free_port, is_echoed, output, run_cases, same, until, words,
};
use rove_lab::testing::run::Program;
use rove_lab::testing::sshd::Sshd;
use rove_term::Size;
use rustix::process::Signal;

const CASES: [Case<Host>; 9] = [
    ("local", local_and_socks),
    ("unix", unix_sockets),
    ("remote", remote),
    ("passes", a_port_passes_on),
    ("config", configuration),
    ("taken", what_cannot_be_had),
    ("shell", beside_a_shell),
    ("agent", agent),
    ("signature", agent_signs),
];

#[test]
fn real_tools_through_a_real_sshd() {
    let host = Host::start("rovelab-fwd", &[]);
    host.assert_none(&run_cases("forward", &CASES, &host));
}

/// `rove exec -N` with these words.
fn forwarding(host: &Host, words: &[&str]) -> Running {
    Running::start(host.rove(&[&["-N"], words, &["here"]].concat()))
}

fn local_and_socks(host: &Host) -> Outcome {
    let (there, here, socks, web) = (echo(), free_port(), free_port(), free_port());
    let (local, dynamic) = (format!("{here}:localhost:{there}"), socks.to_string());
    let _forwarding = forwarding(host, &["-L", &local, "-D", &dynamic]);
    is_echoed(here)?;
    fs::create_dir_all(host.near().join("web")).map_err(words)?;
    fs::write(host.near().join("web/page"), "a page\n").map_err(words)?;
    let line = format!(
        "python3 -m http.server -b 127.0.0.1 -d web {web} >/dev/null 2>&1 & pid=$!; \
         trap 'kill $pid' EXIT; \
         for proxy in '--socks5 ' '--socks5-hostname ' '-x socks4://' '-x socks4a://'; do \
         curl -4 -sS --retry 20 --retry-connrefused --retry-all-errors --max-time 100 \
         ${{proxy}}127.0.0.1:{socks} http://localhost:{web}/page; done; \
         ! curl -sS --max-time 100 --socks5 127.0.0.1:{socks} http://127.0.0.1:1/ 2>/dev/null"
    );
    same(clean(host.shell(&line))?, "a page\n".repeat(4))
}

/// An echo server on a Unix socket that every user may use.
fn echo_at(path: &std::path::Path) -> Outcome {
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path).map_err(words)?;
    fs::set_permissions(path, Permissions::from_mode(0o777)).map_err(words)?;
    echo_on(move || Ok(Box::new(listener.accept()?.0)));
    Ok(())
}

fn unix_sockets(host: &Host) -> Outcome {
    let path = |name: &str| host.near().join(name);
    let (near, far, local) = (path("near.sock"), path("far.sock"), path("local.sock"));
    let (remote, here) = (host.home.join("remote.sock"), free_port());
    echo_at(&near)?;
    echo_at(&far)?;
    let to = |from: &str, to: &std::path::Path| format!("{from}:{}", to.display());
    let forwarding = forwarding(
        host,
        &[
            "-L",
            &to(&local.display().to_string(), &far),
            "-L",
            &to(&here.to_string(), &far),
            "-R",
            &to(&remote.display().to_string(), &near),
        ],
    );
    is_echoed(here)?;
    for path in [&local, &remote] {
        let mut stream = until("the socket", || UnixStream::connect(path).ok())?;
        stream.set_read_timeout(Some(LIMIT)).map_err(words)?;
        converse(&mut stream, "by a path\n")?;
        let mode = fs::symlink_metadata(path).map_err(words)?.permissions().mode();
        same(format!("{:o}", mode & 0o777), "600")?;
    }
    drop(forwarding);
    for path in [&local, &remote] {
        until("the socket goes", || (!path.exists()).then_some(()))?;
    }
    Ok(())
}

fn remote(host: &Host) -> Outcome {
    let (here, there, socks) = (echo(), free_port(), free_port());
    let running =
        forwarding(host, &["-R", &format!("{there}:localhost:{here}"), "-R", &socks.to_string()]);
    is_echoed(there)?;
    // SOCKS without a name: version 5, no secret, connect, to an address and port.
    let mut stream = connect(socks)?;
    let [high, low] = here.to_be_bytes();
    stream.write_all(&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, high, low]).map_err(words)?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).map_err(words)?;
    same(format!("{:?}", &answer[..4]), "[5, 0, 5, 0]")?;
    converse(&mut stream, "through socks\n")?;
    drop(running);
    // A command finds the host listening.
    for there in [(); 5].map(|()| free_port()) {
        let forward = format!("{there}:localhost:{here}");
        let line = format!("exec 3<>/dev/tcp/127.0.0.1/{there}; echo at once >&3; head -n 1 <&3");
        same(clean(host.rove(&["-R", &forward, "here", &line]))?, "at once\n")?;
    }
    let chosen = format!("0:localhost:{here}");
    let mut running = host.rove(&["-R", &chosen, "here", "exec sleep 1000"]);
    running.stderr(Stdio::piped());
    let mut running = Running::start(running);
    let line = told(&mut running, "listens on port")?;
    let port = line.split_once("port ").and_then(|(_, rest)| rest.split(' ').next());
    is_echoed(port.and_then(|port| port.parse().ok()).ok_or(line.clone())?)?;
    for public in ["0.0.0.0", "*", "192.0.2.1"] {
        let forward = format!("{public}:{there}:localhost:{here}");
        let output = output(host.rove(&["-N", "-R", &forward, "here"]));
        if output.status.code() != Some(255) {
            return Err(format!("-R {forward}: {output:?}"));
        }
    }
    Ok(())
}

/// A port on the host belongs to one session; after its client is gone the next session gets it. If that client
/// comes back after all, its connections go on, and it gets a message.
fn a_port_passes_on(host: &Host) -> Outcome {
    let (near, nearer, port) = (echo(), echo(), free_port());
    let start = |mut command: Command, words: &[&str], to: u16| {
        command.args(["exec", "-v", "-N", "-F"]).arg(&host.config).env("HOME", host.near());
        command.args(words).args(["-R", &format!("{port}:localhost:{to}"), "here"]);
        Running::start(command.stdin(Stdio::null()).stderr(Stdio::piped()))
    };
    // Not by way of timeout(1), which stops only itself.
    let mut first = start(Command::new(rove_program()), &[], near);
    let another = || bounded(rove_program());
    let passes = |first: &mut Running| {
        let mut before = connect(port)?;
        converse(&mut before, "before\n")?;
        let mut refused = start(another(), &["-o", "ExitOnForwardFailure=yes"], nearer);
        told(&mut refused, "the host cannot listen on")?;
        same(format!("{:?}", refused.status()?), "Some(255)")?;
        first.signal(Signal::STOP);
        let mut second = start(another(), &[], nearer);
        told(&mut second, "the host listens on")?;
        is_echoed(port)?;
        first.signal(Signal::CONT);
        converse(&mut before, "goes on\n")?;
        told(first, "another session of yours listens on")?;
        is_echoed(port)
    };
    let outcome = passes(&mut first);
    first.signal(Signal::CONT);
    outcome
}

/// The words of ssh_config, as `ssh -G` reports them.
fn configuration(host: &Host) -> Outcome {
    let (there, local, remote, socks) = (echo(), free_port(), free_port(), free_port());
    let public = free_port();
    let config = host.near().join("forwards_config");
    let text = fs::read_to_string(&host.config).map_err(words)?;
    let lines = format!(
        "Host here\n  LocalForward {local} 127.0.0.1:{there}\n  DynamicForward {socks}\n  \
         RemoteForward {remote} 127.0.0.1:{there}\n  RemoteForward *:{public} 127.0.0.1:{there}\n  \
         ForwardAgent yes\n  ExitOnForwardFailure yes\n{text}"
    );
    fs::write(&config, lines).map_err(words)?;
    let rove = |words: &[&str]| {
        let mut command = bounded(rove_program());
        command.args(["exec", "-F"]).arg(&config).args(words).stdin(Stdio::null());
        command
    };
    let running = Running::start(rove(&["here", "exec sleep 1000"]));
    for port in [local, remote, public] {
        is_echoed(port)?;
    }
    if TcpStream::connect((Ipv4Addr::new(127, 0, 0, 2), public)).is_ok() {
        return Err("what is public in the configuration is so on the host".into());
    }
    connect(socks)?;
    // The same once more: its ports are taken, and the configuration says that this ends everything.
    let output = output(rove(&["here", "true"]));
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(255) || !said.contains("taken") {
        return Err(format!("with taken ports: {output:?}"));
    }
    clean(rove(&["-o", "ClearAllForwardings=yes", "here", "true"]))?;
    drop(running);
    let asks = format!(
        "eval $(ssh-agent) >/dev/null; trap 'ssh-agent -k >/dev/null' EXIT; \
         {} exec -F {} here 'ssh-add -l || echo status $?'",
        rove_program().display(),
        config.display()
    );
    // An agent that answers, without keys.
    let said = clean(host.shell(&asks))?;
    same(said, "The agent has no identities.\nstatus 1\n")
}

/// A taken or refused port leads to a message, and stops nothing else.
fn what_cannot_be_had(host: &Host) -> Outcome {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(words)?;
    let port = taken.local_addr().map_err(words)?.port();
    let forward = format!("{port}:localhost:1");
    for (side, text) in [("-L", "cannot listen on"), ("-R", "the host cannot listen on")] {
        // The command goes on after the message.
        let line = "mkfifo go; read line <go; rm go; echo $line";
        let mut command = host.rove(&[side, &forward, "here", line]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = Running::start(command);
        let said = told(&mut running, text)?;
        if !said.contains(&port.to_string()) {
            return Err(format!("{side}: {said}"));
        }
        clean(host.rove(&["here", "until test -p go; do sleep 0.1; done; echo ran >go"]))?;
        same(running.line()?, "ran")?;
        same(format!("{:?}", running.status()?), "Some(0)")?;
        let exits = ["-o", "ExitOnForwardFailure=yes", side, &forward, "here", "sleep 1000"];
        let output = output(host.rove(&exits));
        if output.status.code() != Some(255) {
            return Err(format!("{side} with ExitOnForwardFailure: {output:?}"));
        }
    }
    // No socket listens at its target.
    let here = free_port();
    let mut command = host.rove(&["-N", "-L", &format!("{here}:127.0.0.1:1"), "here"]);
    command.stderr(Stdio::piped());
    let mut running = Running::start(command);
    let mut closed = connect(here)?;
    let mut nothing = Vec::new();
    let _ = closed.read_to_end(&mut nothing);
    let line = told(&mut running, "the host cannot reach [127.0.0.1]:1: ")?;
    match nothing.is_empty() && line.contains("refused") {
        true => Ok(()),
        false => Err(format!("{nothing:?} and {line}")),
    }
}

/// The first line with this text that a program says on its standard error.
fn told(running: &mut Running, text: &str) -> Result<String, String> {
    let said = BufReader::new(running.0.stderr.take().ok_or("no stderr")?);
    let (tell, heard) = mpsc::channel();
    let wanted = text.to_owned();
    let look = move || {
        let line = said.lines().map_while(Result::ok).find(|line| line.contains(&wanted));
        // The peer may have waited long enough.
        let _ = tell.send(line);
    };
    std::thread::Builder::new().name("told".into()).spawn(look).map_err(words)?;
    match heard.recv_timeout(Duration::from_secs(SECONDS_MAX.into())) {
        Ok(Some(line)) => Ok(line),
        Ok(None) => Err(format!("nothing was said of: {text}")),
        Err(_) => Err(format!("waited in vain for: {text}")),
    }
}

/// Messages stand in the bar of a shell, and the shell goes on.
fn beside_a_shell(host: &Host) -> Outcome {
    let (there, here, nowhere) = (echo(), free_port(), free_port());
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(words)?;
    let taken = (taken.local_addr().map_err(words)?.port(), taken);
    let mut command = bounded(rove_program());
    command.arg("-F").arg(&host.config).env("TERM", "xterm-256color");
    command.args(["-L", &format!("{here}:localhost:{there}")]);
    command.args(["-L", &format!("{nowhere}:127.0.0.1:1")]);
    command.args(["-R", &format!("{}:localhost:1", taken.0), "here"]);
    let mut client = Program::start(command, Size::clamped(20, 100)).map_err(words)?;
    let mut shows = |what: &str, text: &str| {
        client.wait_for(what, LIMIT, |client| client.shows(text)).map_err(words)
    };
    shows("that a port is taken", "cannot listen on")?;
    is_echoed(here)?;
    let mut closed = connect(nowhere)?;
    let mut nothing = Vec::new();
    let _ = closed.read_to_end(&mut nothing);
    shows("that nobody listens", "cannot reach [127.0.0.1]:1: ")?;
    client.send("echo $((20 + 22))\r");
    client.wait_for("the shell", LIMIT, |client| client.shows("42")).map_err(words)?;
    client.send("exit\r");
    client.wait_exit(LIMIT).map(drop).map_err(words)
}

/// Programs on the host list keys and have things signed, and can do nothing else.
fn agent(host: &Host) -> Outcome {
    let line = "rm -f agent.key* sig; eval $(ssh-agent) >/dev/null; \
        trap 'ssh-agent -k >/dev/null' EXIT; \
        ssh-keygen -q -t ed25519 -N '' -C rove-test -f agent.key; ssh-add -q agent.key; \
        $ROVE -A here 'exec 2>/dev/null; ssh-add -l | grep -c rove-test; cat >k.pub; rm -f other*; \
          ssh-keygen -q -t ed25519 -N \"\" -f other; ssh-add -q other || echo no adding; \
          ssh-add -q -d k.pub || echo no removing; ssh-add -q -D || echo no emptying; \
          SSH_ASKPASS=/bin/true SSH_ASKPASS_REQUIRE=force ssh-add -x || echo no locking; \
          dirname \"$SSH_AUTH_SOCK\" | xargs stat -c %a' <agent.key.pub; \
        echo text | $ROVE -A here 'ssh-keygen -Y sign -q -f k.pub -n file' >sig; \
        sed 's/^/me /' agent.key.pub >signers; \
        echo text | ssh-keygen -Y verify -f signers -I me -n file -s sig >/dev/null && echo signed; \
        ssh-add -l | grep -c rove-test; $ROVE -a here 'echo \"${SSH_AUTH_SOCK-none}\"'";
    let wanted = "1\nno adding\nno removing\nno emptying\nno locking\n700\nsigned\n1\nnone\n";
    same(clean(host.shell(line))?, wanted)
}

/// ssh from the host to a second sshd, which takes a key that only the agent here has.
fn agent_signs(host: &Host) -> Outcome {
    let mut second = Sshd::start().map_err(words)?;
    let user = second.add_user("rovelab-third", "/bin/sh").map_err(words)?.name().to_owned();
    let line = format!(
        "eval $(ssh-agent) >/dev/null; trap 'ssh-agent -k >/dev/null' EXIT; ssh-add -q {}; \
         $ROVE -A here ssh -F none -o BatchMode=yes -o LogLevel=ERROR -o StrictHostKeyChecking=no \
         -o UserKnownHostsFile=/dev/null -p {} {user}@127.0.0.1 id -un",
        second.directory().join("user_key").display(),
        second.port()
    );
    same(clean(host.shell(&line))?, format!("{user}\n"))
}
