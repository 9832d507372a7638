//! First contact: hosts whose server is missing or does not run, words and pipes, and ways out.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rove_lab::testing::run::Program;
use rove_lab::testing::sshd::Sshd;
use rove_term::Size;

use crate::common::rove_program;
use crate::host::{Case, LIMIT, Outcome, bounded, clean, output, run_cases, same, until, words};

/// A host with several users, and how to get there.
pub struct Scene {
    sshd: Sshd,
    config: String,
    /// The home of the user without a server.
    bare: PathBuf,
    /// rove as a package has it, with a program for this machine beside it.
    packaged: PathBuf,
}

const CASES: [Case<Scene>; 6] = [
    ("row-08", one_line_and_no_cleared_screen),
    ("row-09", words_are_expanded_there),
    ("row-20", a_host_without_a_server),
    ("row-20-faults", copies_that_fail),
    ("row-21", a_server_that_does_not_run),
    ("row-23", the_way_out_while_nothing_answers),
];

#[test]
fn first_contact() {
    let scene = Scene::start("rovelab");
    let failures = run_cases("contact", &CASES, &scene);
    assert!(failures.is_empty(), "{}\nsshd's log:\n{}", failures.join("\n"), scene.sshd.log());
}

impl Scene {
    /// `here` has rove; `broken` has one that does not run, and the machine's mosh-server; `none` has no server.
    pub fn start(prefix: &str) -> Scene {
        let mut sshd = Sshd::start().unwrap();
        let rove = fs::read(rove_program()).unwrap();
        let mut names = Vec::new();
        let mut bare = PathBuf::new();
        for name in ["here", "broken", "none"] {
            let user = sshd.add_user(&format!("{prefix}-{name}"), "/bin/bash").unwrap();
            user.write(".hushlogin", "", 0o644).unwrap();
            names.push((name, user.name().to_owned()));
            match name {
                "here" => user.write(".local/bin/rove", &rove, 0o755).unwrap(),
                "broken" => user.write(".local/bin/rove", BROKEN, 0o755).unwrap(),
                _ => {
                    bare = user.home().to_owned();
                    user.write(".bashrc", "PATH=$HOME/tools; PS1='$ '\n", 0o644).unwrap();
                    user.write(".bash_profile", ". ~/.bashrc\n", 0o644).unwrap();
                    user.write("tools/.keep", "", 0o644).unwrap();
                    for tool in TOOLS {
                        let found = clean({
                            let mut which = bounded("which");
                            which.arg(tool);
                            which
                        });
                        symlink(found.unwrap().trim(), bare.join("tools").join(tool)).unwrap();
                    }
                }
            }
        }
        // ssh gets there from a network without a way out, and nothing else does.
        let pid = std::process::id();
        // ssh may end without what it started: that holds no pipe of a test's then, and ends by itself.
        let talk = "exec 3<>/dev/tcp/127.0.0.1/%p; timeout 120 cat <&3 2>/dev/null & exec cat >&3";
        let proxy = format!("  ProxyCommand nsenter --net=/proc/{pid}/ns/net bash -c '{talk}'\n");
        let mut hosts: Vec<_> =
            names.iter().map(|(host, user)| (*host, user.as_str(), "")).collect();
        hosts.push(("blocked", &names[0].1, &proxy));
        let config = sshd.client_config(&hosts).unwrap().to_str().unwrap().to_owned();
        let packaged = package(sshd.directory(), &rove);
        Scene { sshd, config, bare, packaged }
    }

    /// `rove install` as a package has it.
    fn install(&self, words: &[&str]) -> Command {
        let mut command = bounded(&self.packaged);
        command.args(["install", "-F", &self.config]).args(words);
        self.settle(&mut command);
        command
    }

    /// Removes what was copied to the user without a server.
    fn wipe(&self) {
        let _ = fs::remove_dir_all(self.bare.join(".local"));
    }

    /// The program that is in place there.
    fn placed(&self) -> Option<Vec<u8>> {
        fs::read(self.bare.join(".local/bin/rove")).ok()
    }

    /// sshd's log.
    pub fn log(&self) -> String {
        self.sshd.log()
    }

    /// Where files of the user's side are.
    pub fn directory(&self) -> &Path {
        self.sshd.directory()
    }

    /// The configuration of ssh.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// The home of the user who has rove.
    pub fn home(&self) -> PathBuf {
        self.bare.with_file_name(
            self.bare.file_name().unwrap().to_string_lossy().replacen("-none-", "-here-", 1),
        )
    }

    /// rove with these words, or one of its commands.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = bounded(rove_program());
        let (name, rest) = match words {
            [name @ ("exec" | "install" | "doctor"), rest @ ..] => (Some(*name), rest),
            rest => (None, rest),
        };
        command.args(name).args(["-F", &self.config]).args(rest);
        self.settle(&mut command);
        command
    }

    /// Nothing of the user who runs the tests counts.
    pub fn settle(&self, command: &mut Command) {
        let home = self.sshd.directory();
        command.current_dir(home).env("HOME", home).env("TERM", "xterm-256color");
        command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME").env("LANG", "C.UTF-8");
    }

    /// A shell on a terminal that runs this line, in which `$ROVE` is rove with ssh's configuration.
    pub fn shell(&self, line: &str) -> Result<Program, String> {
        let mut command = bounded("bash");
        command.args(["--norc", "-c", line]);
        let rove = format!("{} -F {}", rove_program().display(), self.config);
        let packaged = format!("{} -F {}", self.packaged.display(), self.config);
        self.settle(command.env("ROVE", rove).env("PACKAGED", packaged));
        Program::start(command, Size::DEFAULT).map_err(words)
    }
}

/// All that the user without a server has on the PATH, but for what is searched besides.
const TOOLS: [&str; 22] = [
    "bash",
    "sh",
    "cat",
    "chmod",
    "cut",
    "expr",
    "head",
    "ln",
    "ls",
    "mkdir",
    "mv",
    "readlink",
    "rm",
    "rmdir",
    "sha256sum",
    "sleep",
    "stty",
    "tail",
    "touch",
    "uname",
    "wc",
    "id",
];

/// Puts rove into a directory as a package does, with the same program for hosts like this machine.
fn package(directory: &Path, rove: &[u8]) -> PathBuf {
    let servers = directory.join("pkg/lib/rove/servers");
    fs::create_dir_all(&servers).unwrap();
    fs::create_dir_all(directory.join("pkg/bin")).unwrap();
    let name = format!("rove-linux-{}", std::env::consts::ARCH);
    for path in [servers.join(&name), directory.join("pkg/bin/rove")] {
        fs::write(&path, rove).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut sums = bounded("sha256sum");
    sums.arg(&name).current_dir(&servers);
    fs::write(servers.join("SHA256SUMS"), clean(sums).unwrap()).unwrap();
    directory.join("pkg/bin/rove")
}

/// A small file system in memory; gone when dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn on(path: PathBuf, options: &str) -> Mounted {
        fs::create_dir_all(&path).unwrap();
        let mut mount = bounded("mount");
        clean({
            mount.args(["-t", "tmpfs", "-o", &format!("mode=777,{options}"), "tmpfs"]).arg(&path);
            mount
        })
        .unwrap();
        Mounted(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = bounded("umount").arg("-l").arg(&self.0).status();
    }
}

/// What glibc's loader says on a machine with an older glibc.
const BROKEN: &str = "#!/bin/sh\necho \"$0: /lib/libc.so.6: version \\`GLIBC_2.99' not found (required by $0)\" >&2; exit 1\n";

/// Ends the program, whose screen must show all of `texts`, each on a row.
pub fn ends_with(client: &mut Program, texts: &[&str]) -> Outcome {
    client.wait_exit(LIMIT).map_err(words)?;
    shows(client, texts)
}

pub fn shows(client: &mut Program, texts: &[&str]) -> Outcome {
    for text in texts {
        let bare = text.replace(' ', "");
        let is_there = |client: &Program| joined(client).replace(' ', "").contains(&bare);
        client.wait_for(text, LIMIT, is_there).map_err(words)?;
    }
    Ok(())
}

/// The screen's text, with wrapped lines whole but for blanks where they wrap.
fn joined(client: &Program) -> String {
    client.screen().text().concat()
}

/// Before and after the command's line stands what stood there: nothing is said.
fn one_line_and_no_cleared_screen(scene: &Scene) -> Outcome {
    let mut client = scene.shell("echo before; $ROVE here echo between; echo after $?")?;
    ends_with(&mut client, &["between", "after 0"])?;
    if joined(&client).contains("rove:") {
        return Err(format!("{:?}", client.screen().text()));
    }
    let piped = output(scene.command(&["here", "seq 1 3"]));
    same(String::from_utf8_lossy(&piped.stdout), "1\n2\n3\n")?;
    same(String::from_utf8_lossy(&piped.stderr), "")
}

fn words_are_expanded_there(scene: &Scene) -> Outcome {
    let home = output(scene.command(&["here", "echo", "$HOME", "*nothing*"]));
    let told = String::from_utf8_lossy(&home.stdout).into_owned();
    if !(told.contains("rovelab-here") && told.ends_with(" *nothing*\n")) {
        return Err(told);
    }
    let literal = output(scene.command(&["here", "--", "echo", "$HOME"]));
    same(String::from_utf8_lossy(&literal.stdout), "$HOME\n")
}

fn a_server_that_does_not_run(scene: &Scene) -> Outcome {
    let line = "$ROVE --no-init broken 'echo by $((1 + 1)) servers; sleep 1'";
    let mut client = scene.shell(line)?;
    shows(&mut client, &["by 2 servers"])?;
    client.wait_exit(LIMIT).map_err(words)?;
    let mut client = scene.shell(&line.replace("--no-init", "--init"))?;
    let told = [".local/bin/rove on broken does not run (GLIBC_2.99 not found)", "mosh-server"];
    ends_with(&mut client, &told)?;
    let mut client = scene.shell("$ROVE --native broken; echo status $?")?;
    ends_with(&mut client, &[told[0], "status 255"])?;
    let copied = output(scene.command(&["exec", "broken", "true"]));
    let said = String::from_utf8_lossy(&copied.stderr).into_owned();
    match copied.status.code() == Some(255) && said.contains("does not run (GLIBC_2.99") {
        true => Ok(()),
        false => Err(said),
    }
}

/// No is remembered; yes leads to a session in one go; the third time nothing is asked.
fn a_host_without_a_server(scene: &Scene) -> Outcome {
    scene.wipe();
    let question = "Copy rove";
    let mut client =
        scene.shell("$PACKAGED none; echo status $?; $PACKAGED none; echo again $?")?;
    shows(&mut client, &["none has no rove (looked in ", question, "[y/N]"])?;
    client.send("n\r");
    ends_with(&mut client, &["has neither", "rove install -F", "status 255", "again 255"])?;
    same(joined(&client).matches(question).count().to_string(), "1")?;
    let mut client = scene.shell("$PACKAGED -q none </dev/null; echo status $?")?;
    ends_with(&mut client, &["status 255"])?;
    same(joined(&client).matches(question).count().to_string(), "0")?;
    let line = "export XDG_STATE_HOME=$PWD/yes; $PACKAGED --no-install none; $PACKAGED none; echo status $?";
    let mut client = scene.shell(line)?;
    shows(&mut client, &["has neither", "[y/N]"])?;
    client.send("y\r");
    shows(&mut client, &["none has rove "])?;
    client.send("expr 20 + 22; exit 7\r");
    ends_with(&mut client, &["42", "status 7"])?;
    let copied = output(scene.install(&["none"]));
    let said = String::from_utf8_lossy(&copied.stderr).into_owned();
    match copied.status.success() && said.contains("already") {
        true => Ok(()),
        false => Err(said),
    }
}

/// Each fault says what to do, and nothing half is in place; the next try works.
fn copies_that_fail(scene: &Scene) -> Outcome {
    let home = &scene.bare;
    let fails = |words: &[&str], texts: &[&str]| {
        let copied = output(scene.install(words));
        let said = String::from_utf8_lossy(&copied.stderr).into_owned();
        match copied.status.code() == Some(255) && texts.iter().all(|text| said.contains(text)) {
            true => Ok(()),
            false => Err(format!("{words:?}: {texts:?}: {said}")),
        }
    };
    let part = |directory: &Path| {
        let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
        let inside =
            entries(directory).flat_map(|entry| entries(&entry.path()).collect::<Vec<_>>());
        let is_part = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".part.");
        let mut parts = inside.filter(|entry| is_part(&entry.file_name()));
        parts.next().and_then(|entry| Some(entry.metadata().ok()?.len()))
    };
    scene.wipe();
    {
        let full = Mounted::on(home.join("full"), "size=1m");
        fails(&["--to", "full", "none"], &["cannot write on none", "No space", "--to DIR"])?;
        same(format!("{:?}", part(&full.0)), "None")?;
    }
    {
        let _noexec = Mounted::on(home.join("noexec"), "noexec");
        fails(&["--to", "noexec", "none"], &["does not run on none: ", "denied", "noexec"])?;
    }
    same(format!("{:?}", scene.placed().is_some()), "false")?;
    // The connection ends half-way.
    let ssh = |name: &str, then: &str| {
        let path = scene.sshd.directory().join(name);
        let config = &scene.config;
        let text = format!(
            "#!/bin/sh\n{{ head -c 1000000; {then}; }} | ssh -F {config} -- \"$1\" \"$2\"\n"
        );
        let mut file = fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        format!("--ssh={}", path.display())
    };
    fails(&[&ssh("short", "true"), "none"], &["not what was sent (length)"])?;
    // The client is killed half-way.
    let mut killed = Command::new(&scene.packaged);
    killed.args(["install", &ssh("stuck", "sleep 20"), "none"]).stdin(Stdio::null());
    scene.settle(&mut killed);
    let mut killed = killed.spawn().map_err(words)?;
    until("half a copy", || part(&home.join(".local/share/rove")).filter(|len| *len > 900_000))?;
    killed.kill().map_err(words)?;
    killed.wait().map_err(words)?;
    same(format!("{:?}", scene.placed().is_some()), "false")?;
    // Another's file is left alone.
    let own = home.join(".local/bin/rove");
    fs::create_dir_all(own.parent().unwrap()).map_err(words)?;
    let _ = clean({
        let mut own = bounded("chmod");
        own.args(["-R", "a+rwX"]).arg(home.join(".local"));
        own
    })?;
    fs::write(&own, "#!/bin/sh\necho rove 99.0.0\n").map_err(words)?;
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).map_err(words)?;
    fails(&["none"], &["was put there by somebody else", "--force none"])?;
    clean(scene.install(&["--force", "none"]))?;
    let rove = fs::read(rove_program()).map_err(words)?;
    same(format!("{:?}", scene.placed() == Some(rove)), "true")?;
    anothers_directory_is_not_used(scene)?;
    // Without a program for sums it makes its own.
    fs::remove_file(home.join("tools/sha256sum")).map_err(words)?;
    clean(scene.install(&["--force", "none"]))?;
    // An older one that comes first is named.
    let older = home.join("tools/rove");
    fs::write(&older, "#!/bin/sh\necho rove 0.0.1\n").map_err(words)?;
    fs::set_permissions(&older, fs::Permissions::from_mode(0o755)).map_err(words)?;
    let copied = output(scene.install(&["--force", "none"]));
    fs::remove_file(&older).map_err(words)?;
    let said = String::from_utf8_lossy(&copied.stderr).into_owned();
    match copied.status.success() && said.contains("tools/rove (rove 0.0.1), which comes first") {
        true => Ok(()),
        false => Err(said),
    }
}

/// Who else may write to the directory for programs may have made the copy's own before, and could replace the copy.
fn anothers_directory_is_not_used(scene: &Scene) -> Outcome {
    let placed = fs::canonicalize(scene.bare.join(".local/bin/rove")).map_err(words)?;
    let directory = placed.parent().unwrap();
    let owner = fs::metadata(directory).map_err(words)?.uid();
    chown(directory, Some(0), None).map_err(words)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).map_err(words)?;
    let copied = output(scene.install(&["--force", "none"]));
    chown(directory, Some(owner), None).map_err(words)?;
    let said = String::from_utf8_lossy(&copied.stderr).into_owned();
    match copied.status.code() == Some(255) && said.contains("is not yours") {
        true => Ok(()),
        false => Err(said),
    }
}

/// The keys go to the program while the server answers, and lead out of the session while it does not.
fn the_way_out_while_nothing_answers(scene: &Scene) -> Outcome {
    let mut client = scene
        .shell("$ROVE here 'echo ready; cat'; echo status $?; stty -a | grep -o -- -icanon")?;
    shows(&mut client, &["ready"])?;
    client.send("typed\r~.and more\r");
    shows(&mut client, &["~.and more"])?;
    let user = format!("rovelab-here-{}", std::process::id());
    let running = clean({
        let mut pgrep = bounded("pgrep");
        pgrep.args(["-x", "rove"]);
        pgrep
    })?;
    // By its program: the owner of what protects its memory is not told.
    let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let is_server = |pid: &&str| program(pid).to_string_lossy().contains(&user);
    let servers: Vec<&str> = running.split_whitespace().filter(is_server).collect();
    let signal = |name: &str| {
        let mut kill = bounded("kill");
        kill.arg(name).args(&servers);
        clean(kill)
    };
    signal("-STOP")?;
    shows(&mut client, &["Last contact"])?;
    client.send("\r~");
    shows(&mut client, &["~. quits"])?;
    client.send(".");
    let left = ends_with(&mut client, &["did not confirm the end", "status 255"]);
    signal("-CONT")?;
    left?;
    match joined(&client).contains("-icanon") {
        true => Err("the terminal was not given back".into()),
        false => Ok(()),
    }
}
