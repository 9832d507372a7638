//! Tests that everything arrives, and that the sender does not resend present octets.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rove::testing::copy::{Expected, receiver};

use crate::ends::{Copy, Scratch, noise, snapshot, tree};
use crate::gate::not_checked;

#[test]
fn a_tree_arrives() {
    let scratch = Scratch::new();
    let top = tree(&scratch);
    let target = scratch.directory("target");
    let result = Copy::new(&top, &target).run();
    assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
    assert!(matches!(result.sender, rove::testing::copy::sender::Over::Complete));
    let mut expected = snapshot(&top);
    assert_eq!(snapshot(&target.join("tree")), expected);
    assert_eq!(
        result.received.files as usize,
        expected.values().filter(|(mode, _)| mode & 0o170000 == 0o100000).count()
    );
    assert_eq!(result.sent, result.received);

    // Under another name, and with a target that is not there yet.
    let result = Copy::new(&top, &scratch.join("renamed")).run();
    assert_eq!(result.receiver, receiver::Over::Complete);
    assert_eq!(snapshot(&scratch.join("renamed")), expected);

    // Again: only the list goes over.
    fs::write(top.join("a/text"), "changed").unwrap();
    let result = Copy::new(&top, &target).run();
    assert_eq!(result.receiver, receiver::Over::Complete);
    expected = snapshot(&top);
    assert_eq!(snapshot(&target.join("tree")), expected);
    assert!(result.carried < 20_000, "{}", result.carried);

    // The contents of a directory.
    let into = scratch.directory("into");
    let result = Copy::new(&top.join("."), &into).run();
    assert_eq!(result.receiver, receiver::Over::Complete);
    assert_eq!(snapshot(&into), expected);
}

#[test]
fn permissions_pass_the_umask_and_no_setuid() {
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target"));
    for (name, mode) in [("plain", 0o666), ("set", 0o6777), ("closed", 0o400), ("kept", 0o777)] {
        fs::write(from.join(name), name).unwrap();
        fs::set_permissions(from.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(target.join("kept"), "old").unwrap();
    fs::set_permissions(target.join("kept"), fs::Permissions::from_mode(0o640)).unwrap();
    scratch.directory("from/sub");
    fs::set_permissions(from.join("sub"), fs::Permissions::from_mode(0o7577)).unwrap();
    let mut copy = Copy::new(&from.join("."), &target);
    copy.job.umask = 0o022;
    let result = copy.run();
    assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
    for (name, mode) in
        [("plain", 0o644), ("set", 0o755), ("closed", 0o400), ("kept", 0o640), ("sub", 0o555)]
    {
        let stat = fs::metadata(target.join(name)).unwrap();
        assert_eq!(stat.mode() & 0o7777, mode, "{name}");
    }
}

/// With -p all files get the permissions of their source, under any umask, new or not.
#[test]
fn permissions_are_kept_if_asked_for() {
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target"));
    scratch.directory("from/sub");
    fs::write(from.join("key"), "secret").unwrap();
    for (key, sub, preserve, there) in [
        (0o664, 0o775, true, (0o664, 0o775)),
        (0o600, 0o700, true, (0o600, 0o700)),
        (0o777, 0o577, true, (0o777, 0o577)),
        (0o600, 0o700, false, (0o777, 0o577)),
    ] {
        let mode = fs::Permissions::from_mode;
        fs::set_permissions(from.join("key"), mode(key)).unwrap();
        fs::set_permissions(from.join("sub"), mode(sub)).unwrap();
        let mut copy = Copy::new(&from.join("."), &target);
        copy.job.receive.preserve = preserve;
        copy.job.umask = 0o022;
        let result = copy.run();
        assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
        let found = |name| fs::metadata(target.join(name)).unwrap().mode() & 0o7777;
        assert_eq!((found("key"), found("sub")), there);
    }
    // A directory's own setgid stays.
    fs::set_permissions(target.join("sub"), fs::Permissions::from_mode(0o2755)).unwrap();
    let mut copy = Copy::new(&from.join("."), &target);
    copy.job.receive.preserve = true;
    assert_eq!(copy.run().receiver, receiver::Over::Complete);
    assert_eq!(fs::metadata(target.join("sub")).unwrap().mode() & 0o7777, 0o2700);
}

/// A file that gives way to another leaves it its user and group, as far as we may give them away: root may.
#[test]
fn a_file_that_was_there_keeps_its_owner() {
    if !rustix::process::geteuid().is_root() {
        return not_checked(
            "a_file_that_was_there_keeps_its_owner",
            "needs root, to have files of others",
        );
    }
    let scratch = Scratch::new();
    let target = scratch.join("there");
    fs::write(scratch.join("new"), "new").unwrap();
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&target).unwrap();
    let owner = (before.uid() + 1, before.gid() + 2);
    std::os::unix::fs::chown(&target, Some(owner.0), Some(owner.1)).unwrap();
    let result = Copy::new(&scratch.join("new"), &target).run();
    assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
    let after = fs::metadata(&target).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert_eq!((after.uid(), after.gid(), after.mode() & 0o7777), (owner.0, owner.1, 0o640));
}

/// Without the right to give files away the group is kept alone; if not even that, what only it could do
/// is not for ours.
#[test]
fn a_file_that_was_there_keeps_its_group() {
    let rove = env!("CARGO_BIN_EXE_rove");
    let unable = ["--groups=0,4242", "--bounding-set=-chown"];
    let tried = std::process::Command::new("setpriv").args(unable).arg("true").output();
    if !rustix::process::geteuid().is_root() || !tried.is_ok_and(|tried| tried.status.success()) {
        return not_checked(
            "a_file_that_was_there_keeps_its_group",
            "needs root and setpriv, to have files of others and give none away",
        );
    }
    let scratch = Scratch::new();
    fs::write(scratch.join("new"), "new").unwrap();
    for (group, there) in [(4242, (0, 4242, 0o664)), (4343, (0, 0, 0o644))] {
        let target = scratch.join(&group.to_string());
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o664)).unwrap();
        std::os::unix::fs::chown(&target, Some(4141), Some(group)).unwrap();
        let status = std::process::Command::new("setpriv")
            .args(unable)
            .args([rove, "cp", "--local"])
            .arg(format!("--server={rove}"))
            .args([scratch.join("new").as_os_str(), format!("h:{}", target.display()).as_ref()])
            .env("HOME", &scratch.0)
            .stdin(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        let after = fs::metadata(&target).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!((after.uid(), after.gid(), after.mode() & 0o7777), there);
    }
}

/// What another has put into a directory for all gets our contents neither to own nor to read.
#[test]
fn a_file_that_was_planted_keeps_nothing() {
    if !rustix::process::geteuid().is_root() {
        return not_checked(
            "a_file_that_was_planted_keeps_nothing",
            "needs root, to have files of others",
        );
    }
    let scratch = Scratch::new();
    let directory = scratch.directory("all");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(scratch.join("new"), "secret").unwrap();
    fs::set_permissions(scratch.join("new"), fs::Permissions::from_mode(0o600)).unwrap();
    let target = directory.join("planted");
    fs::write(&target, "old").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o666)).unwrap();
    std::os::unix::fs::chown(&target, Some(4141), Some(4242)).unwrap();
    let result = Copy::new(&scratch.join("new"), &target).run();
    assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
    let after = fs::metadata(&target).unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"secret");
    assert_eq!((after.uid(), after.mode() & 0o7777), (0, 0o600));
    assert_ne!(after.gid(), 4242);
}

/// Directories at both ends, each with a file that is awaited, beyond what a process may have open.
#[test]
fn more_directories_than_open_files() {
    const DIRECTORIES: usize = 800;
    let rove = env!("CARGO_BIN_EXE_rove");
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target"));
    for number in 0..DIRECTORIES {
        let directory = scratch.directory(&format!("from/{number}"));
        fs::write(directory.join("file"), number.to_string()).unwrap();
    }
    let line =
        format!("ulimit -n 320; exec {rove} cp --local --server={rove} -r * \"localhost:$TARGET\"");
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", &line])
        .env("TARGET", &target)
        .env("HOME", &scratch.0)
        .current_dir(&from)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(snapshot(&target), snapshot(&from));
}

#[test]
fn times_are_kept_if_asked_for() {
    let scratch = Scratch::new();
    let top = tree(&scratch);
    let past = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for path in ["file 3", "a/b", "a"] {
        let times = fs::FileTimes::new().set_modified(past).set_accessed(past);
        File::open(top.join(path)).unwrap().set_times(times).unwrap();
    }
    let target = scratch.directory("target");
    for _once_more in 0..2 {
        let mut copy = Copy::new(&top, &target);
        copy.job.receive.preserve = true;
        let result = copy.run();
        assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
        for path in ["file 3", "a/b", "a"] {
            let stat = fs::metadata(target.join("tree").join(path)).unwrap();
            assert_eq!(stat.modified().unwrap(), past, "{path}");
        }
    }
}

#[test]
fn holes_stay_holes() {
    let scratch = Scratch::new();
    let file = File::create(scratch.join("sparse")).unwrap();
    file.set_len(3 << 30).unwrap();
    file.write_all_at(&noise(1, 100_000), 1 << 30).unwrap();
    file.write_all_at(b"end", (2 << 30) + 5).unwrap();
    let target = scratch.join("copy");
    let result = Copy::new(&scratch.join("sparse"), &target).run();
    assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
    let (from, to) = (file.metadata().unwrap(), fs::metadata(&target).unwrap());
    assert_eq!((to.len(), to.blocks()), (from.len(), from.blocks()));
    assert!(result.carried < 150_000, "{}", result.carried);
    let copy = File::open(&target).unwrap();
    let mut read = vec![0; 100_000];
    copy.read_exact_at(&mut read, 1 << 30).unwrap();
    assert_eq!(read, noise(1, 100_000));
    copy.read_exact_at(&mut read[..3], (2 << 30) + 5).unwrap();
    assert_eq!(&read[..3], b"end");
    // What is there already is found to be the same, holes and all.
    let result = Copy::new(&scratch.join("sparse"), &target).run();
    assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
    assert!(result.carried < 1_000, "{}", result.carried);
}

#[test]
fn patterns_are_expanded_at_the_sender() {
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target"));
    for name in ["a.log", "b.log", ".c.log", "d.txt", "[x].log"] {
        fs::write(from.join(name), name).unwrap();
    }
    for (pattern, names) in [
        ("*.log", &["[x].log", "a.log", "b.log"][..]),
        ("[x].log", &["[x].log"]),
        ("?.t*", &["d.txt"]),
        (".*", &[".c.log"]),
    ] {
        let mut copy = Copy::new(&from.join(pattern), &target);
        copy.sources.patterns = true;
        let result = copy.run();
        assert_eq!(
            (result.receiver, result.lines),
            (receiver::Over::Complete, vec![]),
            "{pattern}"
        );
        let copied: Vec<_> = snapshot(&target).into_keys().collect();
        assert_eq!(copied, names.iter().map(std::path::PathBuf::from).collect::<Vec<_>>());
        fs::remove_dir_all(&target).unwrap();
        fs::create_dir(&target).unwrap();
    }
}

/// Of the sources that a pattern stands for not even the first takes the place of a file, or its name.
#[test]
fn a_pattern_for_several_and_a_target_for_one() {
    let scratch = Scratch::new();
    let from = scratch.directory("from");
    for name in ["a.log", "b.log", "only.txt"] {
        fs::write(from.join(name), name).unwrap();
    }
    for (pattern, there, after) in [
        ("*.log", Some("all"), Some("all")),
        ("*.log", Some("a.log"), Some("a.log")),
        ("*.log", None, None),
        ("*.txt", Some("all"), Some("only.txt")),
    ] {
        let target = scratch.join("target");
        let _ = fs::remove_file(&target);
        there.map_or(Ok(()), |there| fs::write(&target, there)).unwrap();
        let mut copy = Copy::new(&from.join(pattern), &target);
        copy.sources.patterns = true;
        let result = copy.run();
        assert_eq!(result.receiver, receiver::Over::Complete);
        let says = format!("{}: not a directory, and there are several sources", target.display());
        let is_told = pattern == "*.log";
        assert_eq!(result.lines, vec![says; if is_told { 2 } else { 0 }], "{pattern} {there:?}");
        assert_eq!(fs::read_to_string(&target).ok().as_deref(), after, "{pattern} {there:?}");
        assert_eq!(snapshot(&scratch.0).len(), 4 + usize::from(after.is_some()));
    }
}

#[test]
fn goes_on_where_it_broke_off() {
    let scratch = Scratch::new();
    let size = 24 << 20;
    fs::write(scratch.join("big"), noise(7, size)).unwrap();
    let target = scratch.join("copy");
    for cut in [1, 100_000, 5 << 20, 12 << 20] {
        let mut copy = Copy::new(&scratch.join("big"), &target);
        copy.breaks_after = Some(cut);
        let result = copy.run();
        assert_eq!(result.receiver, receiver::Over::Ended, "cut at {cut}");
        assert!(!target.exists(), "cut at {cut}");
    }
    let part = scratch.join(".copy.rove-part");
    let stat = fs::metadata(&part).unwrap();
    assert_eq!(stat.mode() & 0o777, 0o600);
    let have = stat.len();
    let result = Copy::new(&scratch.join("big"), &target).run();
    assert_eq!(result.receiver, receiver::Over::Complete);
    assert_eq!(fs::read(&target).unwrap(), noise(7, size));
    assert!(!part.exists());
    assert_eq!(result.received.spared, have);
    assert!(result.carried as u64 <= size as u64 - have + 10_000, "{} of {have}", result.carried);

    // A part of something else is found out, and begun anew; a damaged end costs that end.
    fs::remove_file(&target).unwrap();
    fs::write(&part, noise(8, 1 << 20)).unwrap();
    let result = Copy::new(&scratch.join("big"), &target).run();
    assert_eq!((result.receiver, result.received.spared), (receiver::Over::Complete, 0));
    assert_eq!(fs::read(&target).unwrap(), noise(7, size));

    fs::remove_file(&target).unwrap();
    let mut damaged = noise(7, 20 << 20);
    damaged[(19 << 20) + 5] ^= 1;
    fs::write(&part, damaged).unwrap();
    let result = Copy::new(&scratch.join("big"), &target).run();
    assert_eq!((result.receiver, result.received.spared), (receiver::Over::Complete, 12 << 20));
    assert_eq!(fs::read(&target).unwrap(), noise(7, size));
}

/// Many small files: a copy that is broken off repeats none that were there.
#[test]
fn a_tree_goes_on_where_it_broke_off() {
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target"));
    for number in 0..500 {
        fs::write(from.join(number.to_string()), noise(number, 4096)).unwrap();
    }
    let mut copy = Copy::new(&from, &target);
    copy.breaks_after = Some(1 << 20);
    assert_eq!(copy.run().receiver, receiver::Over::Ended);
    let result = Copy::new(&from, &target).run();
    assert_eq!((result.receiver, result.lines), (receiver::Over::Complete, vec![]));
    assert_eq!(snapshot(&target.join("from")), snapshot(&from));
    assert!(result.carried < (500 * 4300) - (1 << 20) + 300_000, "{}", result.carried);
}

#[test]
fn what_cannot_be_copied_is_told_and_the_rest_copied() {
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target/from"));
    for name in ["a", "b", "pipe", "dir"] {
        fs::write(from.join(name), name).unwrap();
    }
    pipe(&from.join("fifo"));
    std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
    fs::write(from.join(".x.rove-part"), "unfinished").unwrap();
    // What is there already is in the way.
    pipe(&target.join("pipe"));
    fs::create_dir(target.join("dir")).unwrap();
    symlink(scratch.join("b"), target.join("b")).unwrap();
    let result = Copy::new(&from, &scratch.join("target")).run();
    assert_eq!(result.receiver, receiver::Over::Complete);
    let mut lines: Vec<_> =
        result.lines.iter().map(|line| line.replace(scratch.0.to_str().unwrap(), "")).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "/from/.x.rove-part: part of an unfinished copy, not copied",
            "/from/fifo: a named pipe, not copied",
            "/from/socket: a socket, not copied",
            "/target/from/dir: there is a directory of that name",
            "/target/from/pipe: there is a device, pipe or socket of that name",
        ]
    );
    assert_eq!((result.received.failed, result.received.files), (5, 2));
    assert_eq!(result.sent.failed, 5);
    assert_eq!(fs::read(target.join("b")).unwrap(), b"b");
    assert!(!scratch.join("b").exists(), "the link was not followed");
}

/// Makes a named pipe.
fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Devices are neither read nor written, wherever they stand.
#[test]
fn devices_are_left_alone() {
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target/from"));
    let result = Copy::new(Path::new("/dev/zero"), &target).run();
    assert_eq!(result.receiver, receiver::Over::Complete);
    assert_eq!(result.lines, ["/dev/zero: a device, not copied"]);

    let null = |path: &Path| {
        let made = Command::new("mknod").arg(path).args(["c", "1", "3"]).output();
        made.is_ok_and(|made| made.status.success())
    };
    if !null(&from.join("source")) {
        return not_checked("devices_are_left_alone", "needs the right to make a device");
    }
    let there = target.join("there");
    assert!(null(&there));
    fs::write(from.join("there"), "contents").unwrap();
    let result = Copy::new(&from, &scratch.join("target")).run();
    assert_eq!(result.receiver, receiver::Over::Complete);
    let mut lines = result.lines;
    lines.sort();
    let source = format!("{}: a device, not copied", from.join("source").display());
    let taken = format!("{}: there is a device, pipe or socket of that name", there.display());
    assert_eq!(lines, [source, taken]);
    // As the one target that the user names, and by a link.
    symlink(&there, scratch.join("link")).unwrap();
    for name in [&there, &scratch.join("link")] {
        let result = Copy::new(&from.join("there"), name).run();
        let why = "a device, pipe or socket, which is not overwritten";
        let over = receiver::Over::Failed(format!("{}: {why}", name.display()));
        assert_eq!(result.receiver, over);
    }
    assert!(fs::symlink_metadata(&there).unwrap().file_type().is_char_device());
}

/// Among the sources themselves what a broken-off copy has left is told and passed over, as in a tree.
#[test]
fn a_part_that_is_named_is_not_copied() {
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target"));
    for name in [".a.rove-part", ".b"] {
        fs::write(from.join(name), name).unwrap();
    }
    let mut copy = Copy::new(&from.join(".[a-z]*"), &target);
    copy.sources.patterns = true;
    let result = copy.run();
    assert_eq!(result.receiver, receiver::Over::Complete);
    let says = format!("{}/.a.rove-part: part of an unfinished copy, not copied", from.display());
    assert_eq!(result.lines, [says]);
    assert_eq!(snapshot(&target).into_keys().collect::<Vec<_>>(), [Path::new(".b")]);
}

#[test]
fn targets_that_cannot_be() {
    let scratch = Scratch::new();
    fs::write(scratch.join("file"), "x").unwrap();
    fs::write(scratch.join("other"), "y").unwrap();
    let from = scratch.directory("from");
    symlink("nowhere/at/all", scratch.join("dangling")).unwrap();
    pipe(&scratch.join("fifo"));
    for (source, target, several, says) in [
        ("file", "missing/x", false, "no such file or directory"),
        ("file", "other", true, "not a directory, and there are several sources"),
        ("file", "missing", true, "no such directory, and there are several sources"),
        ("file", "missing/", false, "no such directory"),
        ("file", "other/", false, "not a directory"),
        ("from", "other", false, "not a directory"),
        ("file", "fifo", false, "a device, pipe or socket, which is not overwritten"),
        ("file", "dangling", false, "a symbolic link that leads nowhere"),
    ] {
        let target = format!("{}/{target}", scratch.0.display());
        let mut copy = Copy::new(&scratch.join(source), Path::new(&target));
        copy.job.target = target.as_bytes().to_vec();
        copy.job.receive.several = several;
        let result = copy.run();
        let told = match result.receiver {
            receiver::Over::Failed(why) => why,
            over => format!("{over:?} {:?}", result.lines),
        };
        assert!(told.contains(says), "{source} to {target}: {told}");
        assert_eq!(fs::read(scratch.join("other")).unwrap(), b"y");
    }
    // Several sources under one name.
    let mut copy = Copy::new(&scratch.join("file"), &scratch.join("one"));
    copy.sources.paths.push(scratch.join("other").as_os_str().as_bytes().to_vec());
    copy.job.expected.push(Expected::Name(b"other".to_vec()));
    let result = copy.run();
    assert_eq!(result.lines.len(), 2, "{:?}", result.lines);
    assert!(!scratch.join("one").exists());
    drop(from);
}

/// `/proc` says of its files that they are empty, and they are not.
#[test]
fn a_file_that_tells_no_size_is_not_taken_for_empty() {
    let scratch = Scratch::new();
    let target = scratch.join("version");
    let result = Copy::new(Path::new("/proc/version"), &target).run();
    assert_eq!(result.receiver, receiver::Over::Complete);
    let told = result.lines.join("\n");
    assert!(told.contains("/proc/version: it has contents but tells no size"), "{told}");
    assert!(!target.exists());
}

#[test]
fn a_missing_source_and_a_directory_without_leave() {
    let scratch = Scratch::new();
    let from = scratch.directory("from");
    for (source, says) in [("missing", "no such file"), ("from", "-r copies it")] {
        let mut copy = Copy::new(&scratch.join(source), &scratch.directory("target"));
        copy.sources.recursive = false;
        let result = copy.run();
        assert_eq!(result.receiver, receiver::Over::Complete);
        assert!(result.lines.len() == 1 && result.lines[0].contains(says), "{:?}", result.lines);
    }
    drop(from);
}
