//! `rove doctor`, and programs that run ssh over `rove-ssh`.

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use rove_lab::testing::clock::Clock;
use rove_lab::testing::run::look_again_later;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{rove_program, say};
use crate::contact::{Scene, ends_with, shows};
use crate::host::{Case, Outcome, Running, bounded, clean, output, run_cases, same, until, words};

const CASES: [Case<Scene>; 9] = [
    ("row-22-well", all_is_well),
    ("row-22-blocked", udp_does_not_get_through),
    ("row-22-ports", ports_and_directories),
    ("row-22-none", no_server_is_there),
    ("row-22-broken", a_server_does_not_run),
    ("row-22-noise", login_scripts_print),
    ("row-22-here", this_machine_alone),
    ("row-25-sftp", files_by_sftp_and_scp_over_a_pause),
    ("row-25-sshfs", a_file_system_over_a_pause),
];

#[test]
fn doctor() {
    let scene = Scene::start("rovelab-dr");
    let failures = run_cases("doctor", &CASES, &scene);
    assert!(failures.is_empty(), "{}\nsshd's log:\n{}", failures.join("\n"), scene.log());
}

/// What `rove doctor` says. Each line must be one of a check.
fn lines(command: Command, status: i32) -> Result<Vec<String>, String> {
    let Output { status: ended, stdout, stderr } = output(command);
    let said = String::from_utf8_lossy(&stdout).into_owned();
    let errors = String::from_utf8_lossy(&stderr);
    let lines: Vec<String> = said.lines().map(String::from).collect();
    let is_check = |line: &String| ["ok ", "-- ", "NO "].iter().any(|it| line.starts_with(it));
    match ended.code() == Some(status) && lines.iter().all(is_check) && lines.len() > 5 {
        true => Ok(lines),
        false => Err(format!("{ended}, not {status}\n{said}{errors}")),
    }
}

/// Of all lines exactly one says NO, and has these texts.
fn one_fails(lines: &[String], texts: &[&str]) -> Outcome {
    let failing: Vec<_> = lines.iter().filter(|line| line.starts_with("NO ")).collect();
    match failing[..] {
        [line] if texts.iter().all(|text| line.contains(text)) => Ok(()),
        _ => Err(format!("not one NO with {texts:?}:\n{}", lines.join("\n"))),
    }
}

fn has(lines: &[String], begins: &str) -> Outcome {
    match lines.iter().any(|line| line.starts_with(begins)) {
        true => Ok(()),
        false => Err(format!("no line begins with {begins:?}:\n{}", lines.join("\n"))),
    }
}

fn all_is_well(scene: &Scene) -> Outcome {
    let lines = lines(scene.command(&["doctor", "here"]), 0)?;
    for begins in [
        "ok locale: ",
        "ok ssh here: OpenSSH_",
        "ok sandbox: ",
        "ok ssh: logged in and answered in ",
        "ok login scripts: print nothing",
        "ok server: rove ",
        "ok machine: Linux ",
        "ok clock: as here",
        "ok mosh-server: ",
        "ok sftp-server: /usr/lib",
        "ok UDP 60",
        "ok round trip by IPv4: ",
        "ok datagrams by IPv4: up to 1452 octets",
        "ok QUIC: a command ran there in ",
        "ok sessions: none of yours are there",
        "ok UDP ports: 60",
        "ok stream over ssh: answered after ",
        "ok way back over ssh: ssh logs in again without asking, in ",
    ] {
        has(&lines, begins)?;
    }
    // The same for programs.
    let told = output(scene.command(&["doctor", "--json", "here"]));
    let told: Value = serde_json::from_slice(&told.stdout).map_err(words)?;
    same(told["host"].as_str().unwrap_or_default(), "here")?;
    let checks = told["checks"].as_array().ok_or("no checks")?;
    let find = |name| checks.iter().find(|check| check["check"] == name);
    for (name, figure) in
        [("sessions", "sockets"), ("udp-ports", "port"), ("stream", "answered_ms")]
    {
        let check = find(name).ok_or(format!("nothing of {name}"))?;
        check["figures"][figure].as_f64().ok_or(format!("no {figure}: {check}"))?;
    }
    let path = find("path-ipv4").ok_or("no round trip")?;
    let figure = |name: &str| path["figures"][name].as_f64().unwrap_or(f64::NAN);
    match figure("probes") >= 50.0 && figure("lost_there") == 0.0 && figure("median_ms") >= 0.0 {
        true => same(checks.len().to_string(), lines.len().to_string()),
        false => Err(path.to_string()),
    }
}

/// From a network of its own ssh gets out by another way, and UDP does not.
fn udp_does_not_get_through(scene: &Scene) -> Outcome {
    let mut command = bounded("unshare");
    command.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    command.arg(rove_program()).args(["doctor", "-F", scene.config(), "blocked"]);
    scene.settle(&mut command);
    let lines = lines(command, 1)?;
    has(&lines, "ok server: rove ")?;
    // Where UDP does not get through ssh does.
    has(&lines, "ok stream over ssh: answered after ")?;
    let open = "nothing came back; the server listens there. A firewall between: allow UDP \
                60001:60999, or name ports it lets through with --udp-port";
    one_fails(&lines, &["UDP 60", " to 127.0.0.1: sent ", open])
}

/// Of ports that are named the one that was taken is told, and a directory of sessions that is not fit for them.
fn ports_and_directories(scene: &Scene) -> Outcome {
    let range = lines(scene.command(&["doctor", "--udp-port=61000:61009", "here"]), 0)?;
    has(&range, "ok UDP ports: 610")?;
    let one = lines(scene.command(&["doctor", "--udp-port=61010", "here"]), 0)?;
    has(&one, "-- UDP ports: 61010, the only one. A second session there finds none: ")?;
    let mut id = bounded("stat");
    id.args(["-c", "%u"]).arg(scene.home());
    let usual = format!("/tmp/rove-{}", clean(id)?.trim());
    let _ = fs::remove_dir_all(&usual);
    std::os::unix::fs::symlink(scene.directory(), &usual).map_err(words)?;
    let told = lines(scene.command(&["doctor", "here"]), 0);
    fs::remove_file(&usual).map_err(words)?;
    let says = "is a link, so they are found in another directory. Remove it on here: rm ";
    has(&told?, &format!("-- sessions: {usual} {says}{usual}"))
}

fn no_server_is_there(scene: &Scene) -> Outcome {
    let lines = lines(scene.command(&["doctor", "none"]), 1)?;
    has(&lines, "ok ssh: ")?;
    one_fails(&lines, &["server: none has neither rove nor mosh-server in ", "rove install -F "])
}

/// Datagrams of the mosh wire are looked at, too.
fn a_server_does_not_run(scene: &Scene) -> Outcome {
    let lines = lines(scene.command(&["doctor", "broken"]), 1)?;
    one_fails(&lines, &["does not run (GLIBC_2.99 not found)", "A static one: rove install -F "])?;
    has(&lines, "ok UDP 60")?;
    has(&lines, "ok round trip by IPv4: ")
}

fn login_scripts_print(scene: &Scene) -> Outcome {
    let script = scene.home().join(".bashrc");
    fs::write(&script, "echo Welcome to the host\necho and to more\n").map_err(words)?;
    let told = lines(scene.command(&["doctor", "here"]), 0);
    fs::remove_file(&script).map_err(words)?;
    let begins = "-- login scripts: print 2 lines before a command runs, first \"Welcome to the \
                  host\". Begin what prints on here with: ";
    has(&told?, begins)
}

fn this_machine_alone(scene: &Scene) -> Outcome {
    let mut alone = bounded(rove_program());
    alone.args(["doctor", "--ssh=/nowhere/ssh"]);
    scene.settle(&mut alone);
    let said = output(alone);
    let lines: Vec<_> = String::from_utf8_lossy(&said.stdout).lines().map(String::from).collect();
    one_fails(&lines, &["ssh here: cannot run /nowhere/ssh: ", "Install OpenSSH's client"])?;
    same(format!("{:?}", said.status.code()), "Some(1)")?;
    // On a terminal that answers.
    let line = "${ROVE%% *} doctor | cat; ${ROVE%% *} doctor | grep -c NO; ${ROVE%% *} doctor; \
                echo status $?";
    let mut client = scene.shell(line)?;
    shows(&mut client, &["ok terminal: xterm-256color (rove), 80x24", "status 0"])?;
    ends_with(&mut client, &["0"])
}

/// How long a client sleeps.
const PAUSE: Duration = Duration::from_secs(3);

/// Lets the clients of `rove-ssh` with this configuration sleep for a while.
fn pause(scene: &Scene) -> Outcome {
    let is_client = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("rove-ssh\0") && line.contains(scene.config()) && !line.starts_with("timeout")
    };
    let clients = until("a client of rove-ssh", || {
        let all = fs::read_dir("/proc").ok()?.flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let clients: Vec<i32> = pids.filter(is_client).collect();
        (!clients.is_empty()).then_some(clients)
    })?;
    let signal = |signal| {
        for pid in clients.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _ = kill_process(pid, signal);
        }
    };
    signal(Signal::STOP);
    let clock = Clock::start();
    while clock.elapsed() < PAUSE {
        look_again_later().map_err(words)?;
    }
    signal(Signal::CONT);
    Ok(())
}

/// A line for bash in which `$R` is rove-ssh.
fn by_rove_ssh(scene: &Scene, line: &str) -> Command {
    let link = scene.directory().join("rove-ssh");
    let _ = std::os::unix::fs::symlink(rove_program(), &link);
    let mut command = bounded("bash");
    command.args(["-c", &format!("set -euo pipefail; {line}")]);
    command.env("R", link).env("F", scene.config());
    scene.settle(&mut command);
    command
}

fn files_by_sftp_and_scp_over_a_pause(scene: &Scene) -> Outcome {
    clean(by_rove_ssh(scene, "head -c 60000000 /dev/urandom >big"))?;
    for (name, line) in [
        ("sftp", "echo 'put big got' | sftp -q -b - -F $F -S $R here >/dev/null"),
        ("scp", "scp -q -F $F -S $R big here:got"),
        ("scp back", "scp -q -F $F -S $R here:got back && cmp big back"),
    ] {
        let mut running = Running::start(by_rove_ssh(scene, line));
        pause(scene)?;
        same(format!("{name} {:?}", running.status()?), format!("{name} Some(0)"))?;
        let (sent, got) = (scene.directory().join("big"), scene.home().join("got"));
        let is_same = fs::read(sent).map_err(words)? == fs::read(got).map_err(words)?;
        same(format!("{name} {is_same}"), format!("{name} true"))?;
    }
    Ok(())
}

fn a_file_system_over_a_pause(scene: &Scene) -> Outcome {
    if !fs::exists("/dev/fuse").unwrap_or(false) {
        say("NOT CHECKED: sshfs: this machine has no /dev/fuse");
        return Ok(());
    }
    let at = scene.directory().join("mounted");
    fs::create_dir_all(&at).map_err(words)?;
    clean(by_rove_ssh(scene, "head -c 60000000 /dev/urandom >big"))?;
    let mount = "sshfs -o ssh_command=\"$R -F $F\" here: mounted";
    clean(by_rove_ssh(scene, &format!("{mount} && mountpoint -q mounted")))?;
    let used = || {
        let write =
            "cd mounted; seq 1 100000 >numbers; mkdir -p d; mv numbers d/n; cat d/n | wc -l";
        same(clean(by_rove_ssh(scene, write))?.trim(), "100000")?;
        let mut running =
            Running::start(by_rove_ssh(scene, "cp big mounted/copy; cmp big mounted/copy"));
        pause(scene)?;
        same(format!("{:?}", running.status()?), "Some(0)")
    };
    let outcome = used();
    clean(by_rove_ssh(scene, "umount -l mounted"))?;
    outcome
}
