//! Tests `rove exec` through a real sshd: in the place of ssh for rsync, git and tar, and by hand.
#![allow(clippy::unwrap_used, reason = "what is missing fails the test")]

mod common;
#[path = "common/host.rs"]
mod host;

use std::process::{Command, Stdio};

use common::rove_program;
use host::{
    Case, Host, LIMIT, Outcome, Running, bounded, clean, output, run_cases, same, until, words,
};
use rove_lab::testing::run::Program;
use rove_lab::testing::sshd::Sshd;
use rove_term::Size;
use rustix::process::Signal;

const CASES: [Case<Host>; 17] = [
    ("status", statuses),
    ("streams", three_streams),
    ("words", words_of_ssh),
    ("refused", words_that_are_refused),
    ("bare", without_rove),
    ("clean", every_octet),
    ("unread", streams_that_fail),
    ("signals", signals_are_passed_on),
    ("alone", commands_left_alone),
    ("terminal", terminal),
    ("modes", the_users_modes),
    ("tar", tar),
    ("rsync", rsync),
    ("git", git),
    ("proxy", proxy_command),
    ("subsystems", subsystems),
    ("pipes", commands_of_a_session),
];

#[test]
fn real_tools_through_a_real_sshd() {
    let host = Host::start("rovelab-exec", &[]);
    host.assert_none(&run_cases("exec", &CASES, &host));
}

fn statuses(host: &Host) -> Outcome {
    for (line, status) in [
        ("true", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("no-such-program 2>/dev/null", 127),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let output = output(host.rove(&["here", line]));
        if output.status.code() != Some(status) {
            return Err(format!("{line}: {output:?}"));
        }
    }
    Ok(())
}

fn three_streams(host: &Host) -> Outcome {
    let both = output(host.rove(&["here", "echo out; echo err >&2"]));
    same(String::from_utf8_lossy(&both.stdout), "out\n")?;
    same(String::from_utf8_lossy(&both.stderr), "err\n")?;
    same(clean(host.rove(&["here", "echo", "a", " b", "*nothing*"]))?, "a b *nothing*\n")?;
    same(clean(host.shell("echo 'echo from a shell' | $ROVE here"))?, "from a shell\n")?;
    same(clean(host.shell("echo x | $ROVE -n here 'cat; echo none'"))?, "none\n")?;
    // Output without a reader ends the command.
    same(clean(host.shell("set +o pipefail; $ROVE here yes | head -n 1"))?, "y\n")
}

fn words_of_ssh(host: &Host) -> Outcome {
    let given = ["-x", "-T", "-q", "-o", "BatchMode=yes", "-oSendEnv=LC_X", "here", "-C", "echo"];
    same(clean(host.rove(&[&given[..], &["-n", "yes"]].concat()))?, "yes")?;
    let config = clean(host.rove(&["-G", "here"]))?;
    match config.contains("hostname 127.0.0.1") {
        true => Ok(()),
        false => Err(format!("-G printed {config}")),
    }
}

fn words_that_are_refused(host: &Host) -> Outcome {
    for word in ["-f", "-M", "-X", "-Y"] {
        let output = output(host.rove(&[word, "here", "true"]));
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(255) || !said.contains(word) || said.lines().count() > 2 {
            return Err(format!("{word}: {output:?}"));
        }
    }
    Ok(())
}

fn without_rove(host: &Host) -> Outcome {
    let output = output(host.rove(&["bare", "true"]));
    let said = String::from_utf8_lossy(&output.stderr);
    let one_line = said.trim_end().lines().count() == 1 && said.contains("ssh");
    match (output.status.code(), one_line) {
        (Some(255), true) => Ok(()),
        _ => Err(format!("{output:?}")),
    }
}

/// 64 MiB of noise there and back at once.
fn every_octet(host: &Host) -> Outcome {
    let line = "head -c 67108864 /dev/urandom >clean.in; $ROVE here cat <clean.in >clean.out; \
        cmp clean.in clean.out; rm clean.in clean.out; echo same";
    same(clean(host.shell(line))?, "same\n")
}

/// An input that cannot be read ends the command, which must not take half an input for the whole, and so does an
/// output that cannot be written; without a terminal there is no input.
fn streams_that_fail(host: &Host) -> Outcome {
    for (line, told) in [
        ("exec $ROVE here cat <.", "cannot read standard input"),
        ("exec $ROVE here yes >/dev/full", "cannot write standard output"),
    ] {
        let output = output(host.shell(line));
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(255) || !said.contains(told) {
            return Err(format!("{output:?}"));
        }
    }
    same(clean(host.shell("$ROVE here 'cat; echo none' 0>/dev/null"))?, "none\n")
}

fn signals_are_passed_on(host: &Host) -> Outcome {
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::INT, "INT"), (Signal::QUIT, "QUIT")] {
        let line =
            format!("trap 'echo got it; exit 5' {name}; echo ready; while :; do sleep 0.1; done");
        let mut running = started(host, &line)?;
        running.signal(signal);
        same(running.line()?, "got it")?;
        same(format!("{:?}", running.status()?), "Some(5)")?;
    }
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut running = started(host, "echo ready; exec sleep 1000")?;
        running.signal(signal);
        same(format!("{:?}", running.status()?), format!("Some({status})"))?;
    }
    // A signal that rove was started to ignore does not reach the command either.
    let line = "trap '' INT; $ROVE here 'echo ready; read line; echo $line' <ignored.in & \
        exec 9>ignored.in; until grep -q ready ignored.out; do sleep 0.1; done; \
        kill -INT $!; echo went on >&9; exec 9>&-; wait $!";
    let line =
        format!("rm -f ignored.*; mkfifo ignored.in; ( {line} ) >ignored.out; cat ignored.out");
    same(clean(host.shell(&line))?, "ready\nwent on\n")
}

/// A command that has printed that it is ready.
fn started(host: &Host, line: &str) -> Result<Running, String> {
    let mut command = host.rove(&["here", line]);
    command.stdout(Stdio::piped());
    let mut running = Running::start(command);
    same(running.line()?, "ready")?;
    Ok(running)
}

/// A command that does not end when asked is left alone, and gets SIGHUP.
fn commands_left_alone(host: &Host) -> Outcome {
    for twice in [true, false] {
        let mark = host.home.join("hung-up");
        let _ = std::fs::remove_file(&mark);
        let mut running = started(
            host,
            "trap 'touch hung-up; exit' HUP; trap '' TERM; exec 2>/dev/null; echo ready; \
             while :; do sleep 0.1; done",
        )?;
        running.signal(Signal::TERM);
        if twice {
            running.signal(Signal::TERM);
        }
        same(format!("{:?}", running.status()?), "Some(143)")?;
        until("the command hears of it", || mark.exists().then_some(()))?;
    }
    Ok(())
}

/// A shell on a terminal of 11 rows by 47, which runs this line with the words of `rove exec -t here` in `$ROVE`.
fn on_terminal(host: &Host, line: &str) -> Result<Program, String> {
    let mut command = Command::new("bash");
    let rove = format!("{} exec -t -F {} here", rove_program().display(), host.config.display());
    command.args(["-c", line]).env("ROVE", rove).env("TERM", "xterm-256color");
    Program::start(command, Size::clamped(11, 47)).map_err(words)
}

fn shows(client: &mut Program, text: &str) -> Outcome {
    client.wait_for(text, LIMIT, |client| client.shows(text)).map_err(words)
}

fn terminal(host: &Host) -> Outcome {
    let line = "$ROVE 'trap \"echo winched\" WINCH; stty size; \
        until test \"$(stty size)\" = \"13 51\"; do sleep 0.1; done; stty size; \
        trap \"echo broken; exit 9\" INT; read line; echo \"<$line>\"; echo waits; \
        while :; do sleep 0.1; done'; echo \"status $?\"; stty -a | grep -q -- -icanon || echo cooked";
    let mut client = on_terminal(host, line)?;
    shows(&mut client, "11 47")?;
    client.resize(Size::clamped(13, 51)).map_err(words)?;
    shows(&mut client, "13 51")?;
    shows(&mut client, "winched")?;
    client.send("typed\r");
    shows(&mut client, "<typed>")?;
    shows(&mut client, "waits")?;
    client.send("\x03");
    for text in ["broken", "status 9", "cooked"] {
        shows(&mut client, text)?;
    }
    client.wait_exit(LIMIT).map(drop).map_err(words)
}

/// The terminal there begins as the one here is set.
fn the_users_modes(host: &Host) -> Outcome {
    let line = "stty erase ^H intr ^X -ixon -echoctl; \
        $ROVE 'stty -a | grep -oE \"(erase|intr) = [^;]*|-ixon|-echoctl\"; \
        trap \"echo broken; exit 9\" INT; echo waits; while :; do sleep 0.1; done'";
    let mut client = on_terminal(host, line)?;
    for text in ["erase = ^H", "intr = ^X", "-ixon", "-echoctl", "waits"] {
        shows(&mut client, text)?;
    }
    client.send("\x18");
    shows(&mut client, "broken")?;
    client.wait_exit(LIMIT).map(drop).map_err(words)
}

fn tar(host: &Host) -> Outcome {
    let line = "rm -rf tar.in tar.out; mkdir -p tar.in tar.out; seq 1 100000 >tar.in/numbers; \
        ln -s numbers tar.in/link; tar cf - tar.in | $ROVE here 'rm -rf tar.in; tar xf -'; \
        $ROVE here 'tar cf - tar.in' | tar xf - -C tar.out; \
        diff -r --no-dereference tar.in tar.out/tar.in; echo same";
    same(clean(host.shell(line))?, "same\n")
}

fn rsync(host: &Host) -> Outcome {
    let line = "rm -rf rsync.in rsync.out; $ROVE here rm -rf rsync.in; mkdir rsync.in; \
        for n in $(seq 50); do seq $n 2000 >rsync.in/$n; done; \
        rsync -a -e \"$ROVE\" rsync.in here:; echo changed >>rsync.in/7; \
        rsync -az -e \"$ROVE\" rsync.in here:; rsync -a -e \"$ROVE\" here:rsync.in/ rsync.out; \
        diff -r rsync.in rsync.out; ! rsync -a -e \"$ROVE\" here:missing . 2>/dev/null; echo same";
    same(clean(host.shell(line))?, "same\n")
}

fn git(host: &Host) -> Outcome {
    let line = "rm -rf mine theirs; $ROVE here 'rm -rf work.git; git init -q --bare work.git'; \
        git init -q -b main mine; cd mine; git config user.name t; \
        git config user.email t@example.org; seq 1 20000 >file; git add file; \
        git commit -qm one; git push -q here:work.git main; cd ..; \
        git clone -q -b main here:work.git theirs; cmp mine/file theirs/file; \
        cd mine; echo two >>file; git commit -qam two; git push -q here:work.git main; \
        cd ../theirs; git pull -q; cmp ../mine/file file; echo same";
    same(clean(host.shell(line))?, "same\n")
}

/// By the name `rove-ssh`, for programs that run ssh for its subsystems.
fn subsystems(host: &Host) -> Outcome {
    let line = format!(
        "ln -sf {} rove-ssh; seq 1 100000 >sub.in; \
         printf 'put sub.in sub.there\nget sub.there sub.out\n' | \
         sftp -q -F {config} -S $PWD/rove-ssh here >/dev/null; cmp sub.in sub.out; \
         scp -q -F {config} -S $PWD/rove-ssh sub.in here:sub.scp; \
         scp -q -F {config} -S $PWD/rove-ssh here:sub.scp sub.out; cmp sub.in sub.out; echo same",
        rove_program().display(),
        config = host.config.display()
    );
    same(clean(host.shell(&line))?, "same\n")?;
    for (words, told) in [
        (&["-s", "here", "nosuch"][..], "no subsystem called nosuch"),
        (&["-s", "here"], "which subsystem?"),
    ] {
        let output = output(host.rove(words));
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(255) || !said.contains(told) {
            return Err(format!("{output:?}"));
        }
    }
    Ok(())
}

/// `rove host command` without a terminal is what `rove exec host command` is.
fn commands_of_a_session(host: &Host) -> Outcome {
    let line = format!(
        "rove=\"{} -F {}\"; $rove here 'echo out; echo err >&2; exit 3' 2>pipes.err || echo $?; \
         cat pipes.err; head -c 1000000 /dev/urandom >pipes.in; $rove here cat <pipes.in >pipes.out; \
         cmp pipes.in pipes.out; $rove here -- echo '$HOME' '*'; $rove here echo '$((1 + 1))'",
        rove_program().display(),
        host.config.display()
    );
    same(clean(host.shell(&line))?, "out\n3\nerr\n$HOME *\n2\n")
}

/// Through `-W` into a second sshd, as ssh's ProxyCommand.
fn proxy_command(host: &Host) -> Outcome {
    let mut second = Sshd::start().map_err(words)?;
    let user = second.add_user("rovelab-second", "/bin/sh").map_err(words)?.name().to_owned();
    let config = second.client_config(&[("second", &user, "")]).map_err(words)?;
    let line = format!(
        "ssh -F {} -o ProxyCommand=\"$ROVE -W %h:%p here\" second 'id -un; cat' <<<through",
        config.display()
    );
    same(clean(host.shell(&line))?, format!("{user}\nthrough\n"))?;
    let mut nowhere = bounded(rove_program());
    nowhere.args(["exec", "-F"]).arg(&host.config).args(["-W", "127.0.0.1:1", "here"]);
    let refused = output(nowhere);
    let said = String::from_utf8_lossy(&refused.stderr);
    match (refused.status.code(), said.contains("refused")) {
        (Some(255), true) => Ok(()),
        _ => Err(format!("{refused:?}")),
    }
}
