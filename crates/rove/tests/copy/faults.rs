//! Every write fails once, each way a disk can fail: no half file under a final name, and a line
//! that says so.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rove::testing::copy::Disk;
use rove::testing::copy::receiver;
use rustix::io::Errno;

use crate::ends::{Copy, Scratch, noise, snapshot, tree};
use crate::gate::not_checked;

#[test]
fn each_write_fails_once() {
    let scratch = Scratch::new();
    let top = tree(&scratch);
    let ways = [
        (Errno::NOSPC, "the disk is full"),
        (Errno::IO, "the disk reports an error"),
        (Errno::DQUOT, "the quota is used up"),
    ];
    // Side by side: what they wait for is the disk.
    std::thread::scope(|scope| {
        for (errno, says) in ways {
            let target = scratch.directory(says);
            let top = &top;
            scope.spawn(move || each_write_fails(top, &target, errno, says));
        }
    });
}

fn each_write_fails(top: &Path, target: &Path, errno: Errno, says: &str) {
    let whole = snapshot(top);
    let attempt = |disk: &Disk| {
        let mut copy = Copy::new(&top.join("."), target);
        copy.job.receive.preserve = true;
        copy.job.disk = disk.clone();
        copy.run()
    };
    let counting = Disk::failing(0..0, Errno::IO);
    assert_eq!(attempt(&counting).receiver, receiver::Over::Complete);
    assert!(counting.calls() > 60, "{} calls", counting.calls());
    for call in 0..counting.calls() {
        fs::remove_dir_all(target).unwrap();
        fs::create_dir(target).unwrap();
        let disk = Disk::failing(call..call + 1, errno);
        let result = attempt(&disk);
        // How data is cut into pieces, hence how many writes there are, is a matter of the moment.
        if disk.calls() <= call {
            continue;
        }
        let told = match &result.receiver {
            receiver::Over::Complete => result.lines.join("\n"),
            receiver::Over::Failed(why) => why.clone(),
            over => panic!("call {call}: {over:?}"),
        };
        assert!(told.contains(says), "call {call}: {told:?}");
        for (path, (mode, contents)) in snapshot(target) {
            let is_part = path.to_string_lossy().ends_with(".rove-part");
            let is_file = mode & 0o170_000 == 0o100_000;
            assert!(
                is_part || !is_file || whole.get(&path).is_some_and(|(_, all)| *all == contents),
                "call {call}, {errno:?} left half of {}",
                path.display()
            );
        }
        // And the next try mends everything.
        let result = attempt(&Disk::default());
        assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]), "{call}");
        assert_eq!(snapshot(target), whole, "after call {call}, {errno:?}");
    }
}

/// What keeps one file out need not keep out others: a disk of its own, mounted below, or a quota that is a
/// directory's. A full disk does.
#[test]
fn one_file_that_fails_is_not_all() {
    let scratch = Scratch::new();
    let files = scratch.directory("files");
    for number in 0..4 {
        fs::write(files.join(number.to_string()), noise(number, 1000)).unwrap();
    }
    let attempt = |disk: &Disk, target: &Path| {
        let mut copy = Copy::new(&files.join("."), target);
        copy.job.disk = disk.clone();
        copy.run()
    };
    for (errno, missing) in [(Errno::ROFS, 2), (Errno::DQUOT, 2), (Errno::NOSPC, 4)] {
        let target = scratch.directory(&format!("{errno:?}"));
        // The first calls: the parts of two files are to be made.
        let result = attempt(&Disk::failing(0..2, errno), &target);
        let is_whole = result.receiver == receiver::Over::Complete;
        assert_eq!(is_whole, missing == 2, "{errno:?}: {:?}", result.receiver);
        assert!(!is_whole || !result.lines.is_empty(), "{errno:?}");
        assert_eq!(fs::read_dir(&target).unwrap().count(), 4 - missing, "{errno:?}");
    }
}

/// What could not be synced is in the page cache, and nobody knows what the disk has: another try must
/// not take it for what is there. What could only not get its name is.
#[test]
fn after_a_failed_sync_a_file_is_begun_anew() {
    let scratch = Scratch::new();
    let size = 1000;
    fs::write(scratch.join("file"), noise(1, size)).unwrap();
    let target = scratch.join("copy");
    let attempt = |disk: &Disk| {
        let mut copy = Copy::new(&scratch.join("file"), &target);
        copy.job.disk = disk.clone();
        copy.run()
    };
    let counting = Disk::failing(0..0, Errno::IO);
    assert_eq!(attempt(&counting).receiver, receiver::Over::Complete);
    // The last calls: the file is synced, gets its name, and so does the directory it is in.
    let calls = counting.calls();
    for (call, spared) in [(calls - 3, 0), (calls - 2, size as u64)] {
        fs::remove_file(&target).unwrap();
        let result = attempt(&Disk::failing(call..call + 1, Errno::IO));
        assert_eq!(result.receiver, receiver::Over::Complete);
        assert!(
            result.lines.join("\n").contains("the disk reports an error"),
            "{:?}",
            result.lines
        );
        assert!(!target.exists(), "call {call}");
        let result = attempt(&Disk::default());
        assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
        assert_eq!(result.received.spared, spared, "after call {call}");
        assert_eq!(fs::read(&target).unwrap(), noise(1, size));
    }
}

/// Up to its name a part is ours and for us alone; root goes on with one that it was killed after giving away.
#[test]
fn a_part_of_another_owner() {
    if !rustix::process::geteuid().is_root() {
        return not_checked("a_part_of_another_owner", "needs root, to give files away");
    }
    let scratch = Scratch::new();
    let size = 1000;
    fs::write(scratch.join("file"), noise(1, size)).unwrap();
    let (target, part) = (scratch.join("copy"), scratch.join(".copy.rove-part"));
    let attempt = |disk: &Disk| {
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        chown(&target, Some(4141), Some(4242)).unwrap();
        let mut copy = Copy::new(&scratch.join("file"), &target);
        copy.job.disk = disk.clone();
        copy.run()
    };
    let owner = |path: &Path| {
        let stat = fs::metadata(path).unwrap();
        (stat.uid(), stat.gid(), stat.mode() & 0o7777)
    };
    let counting = Disk::failing(0..0, Errno::IO);
    assert_eq!(attempt(&counting).receiver, receiver::Over::Complete);
    // The last calls: the file is given away, gets its permissions and its name; the directory is synced.
    let calls = counting.calls();
    for (call, mode) in [(calls - 3, 0o600), (calls - 2, 0o640)] {
        let result = attempt(&Disk::failing(call..call + 1, Errno::IO));
        assert!(!result.lines.is_empty());
        let stat = fs::metadata(&part).unwrap();
        assert_eq!((stat.uid(), stat.mode() & 0o7777), (0, mode), "call {call}");
        // As if there had been no time to take it back.
        chown(&part, Some(4141), Some(4242)).unwrap();
        let result = attempt(&Disk::default());
        assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
        assert_eq!((result.received.spared, owner(&target)), (size as u64, (4141, 4242, 0o640)));
    }
}

/// CIFS, and NFS that squashes users, give all files to one user, which need not be us.
#[test]
fn a_disk_that_gives_files_to_another() {
    if !rustix::process::geteuid().is_root() {
        return not_checked("a_disk_that_gives_files_to_another", "needs root, to give files away");
    }
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target"));
    for name in ["new", "there"] {
        fs::write(from.join(name), name).unwrap();
    }
    fs::write(target.join("there"), "something older").unwrap();
    chown(target.join("there"), Some(4141), None).unwrap();
    let mut copy = Copy::new(&from.join("."), &target);
    copy.job.disk = Disk::owned_by(4141);
    let result = copy.run();
    assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
    assert_eq!(snapshot(&target), snapshot(&from));
    for name in ["new", "there"] {
        assert_eq!(fs::metadata(target.join(name)).unwrap().uid(), 4141, "{name}");
    }
}

/// Runs `rove cp` with these words in a place that the program `within` makes; `None`, which is told, where
/// that cannot be had.
pub fn copied(test: &str, scratch: &Scratch, within: &[&str], words: &[&str]) -> Option<Output> {
    let run = |program: &[&str]| {
        let mut command = Command::new(within[0]);
        command.args(&within[1..]).args(program).current_dir(&scratch.0);
        command.env("HOME", &scratch.0).stdin(Stdio::null()).output()
    };
    if !run(&["true"]).is_ok_and(|tried| tried.status.success()) {
        not_checked(test, &format!("needs the right to {within:?}"));
        return None;
    }
    let rove = env!("CARGO_BIN_EXE_rove");
    let server = format!("--server={rove}");
    let usual = [rove, "cp", "--local", &server, "--give-up", "60"];
    Some(run(&[&usual[..], words].concat()).unwrap())
}

/// Nothing is sent to a directory that may not be written to, or on a read-only mount.
#[test]
fn what_has_no_place_is_not_sent() {
    let scratch = Scratch::new();
    fs::write(scratch.join("file"), noise(1, 3 << 20)).unwrap();
    let target = scratch.directory("target");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o555)).unwrap();
    let to = format!("h:{}", target.display());
    let read_only = r#"mount -t tmpfs -o ro none target && exec "$@""#;
    for (within, says) in [
        (&["setpriv", "--bounding-set=-dac_override"][..], "permission denied to write in"),
        (&["unshare", "-m", "sh", "-c", read_only, "sh"], "the file system is read-only"),
    ] {
        let Some(output) =
            copied("what_has_no_place_is_not_sent", &scratch, within, &["--json", "file", &to])
        else {
            continue;
        };
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(told.contains(says), "{told}");
        let summary = told.lines().last().unwrap();
        assert!(summary.contains(r#""files":0,"bytes":0,"#), "{summary}");
    }
}

/// Where the disk itself is read-only by now, as after an error, what is still to come need not.
#[test]
fn a_target_that_is_read_only_ends_the_copy() {
    let scratch = Scratch::new();
    for name in ["one", "two"] {
        fs::write(scratch.join(name), "new").unwrap();
    }
    let target = scratch.directory("target");
    // Files of the same size are in their places, so that others are asked for.
    let within = r#"mount -t tmpfs none target && echo -n old >target/one && echo -n old >target/two &&
        mount -o remount,ro target && exec "$@""#;
    let words = ["one", "two", &format!("h:{}", target.display())];
    let Some(output) = copied(
        "a_target_that_is_read_only_ends_the_copy",
        &scratch,
        &["unshare", "-m", "sh", "-c", within, "sh"],
        &words,
    ) else {
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(255), "{told}");
    assert_eq!(told.matches("the file system is read-only").count(), 1, "{told}");
}

/// A limit of the process's on the size of files keeps one out; by itself it ends the process.
#[test]
fn a_limit_on_sizes_is_told() {
    let scratch = Scratch::new();
    fs::write(scratch.join("large"), noise(1, 3 << 20)).unwrap();
    fs::write(scratch.join("small"), "small").unwrap();
    for (name, is_there) in [("there", true), ("here", false)] {
        let target = scratch.directory(name);
        let path = |path: &Path, is_far: bool| match is_far {
            true => format!("h:{}", path.display()),
            false => path.display().to_string(),
        };
        let sources = ["large", "small"].map(|source| path(&scratch.join(source), !is_there));
        let to = path(&target, is_there);
        let words = [&sources[0], &sources[1], &to].map(String::as_str);
        let within = ["sh", "-c", r#"ulimit -f 1024 && exec "$@""#, "sh"];
        let output = copied("a_limit_on_sizes_is_told", &scratch, &within, &words)
            .expect("every sh has ulimit");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {told}");
        assert!(told.contains("large: larger than a file may be there"), "{name}: {told}");
        assert_eq!(fs::read(target.join("small")).unwrap(), b"small", "{name}");
        assert!(!target.join("large").exists(), "{name}");
    }
}

/// A file that is a mount point, as a container's /etc/hosts is, cannot be replaced.
#[test]
fn a_mount_point_stays() {
    let scratch = Scratch::new();
    fs::write(scratch.join("hosts"), "new").unwrap();
    let target = scratch.directory("target");
    fs::write(target.join("hosts"), "old").unwrap();
    let within = r#"mount --bind target/hosts target/hosts && exec "$@""#;
    let words = ["-q", "hosts", &format!("h:{}", target.display())];
    let Some(output) = copied(
        "a_mount_point_stays",
        &scratch,
        &["unshare", "-m", "sh", "-c", within, "sh"],
        &words,
    ) else {
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("hosts: something is mounted there"), "{told}");
    assert!(told.ends_with("rove: 1 thing failed\n"), "{told}");
    assert_eq!(fs::read(target.join("hosts")).unwrap(), b"old");
}
