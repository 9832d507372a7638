//! Symbolic links: those that a sender may have made, and those that a target may lead through.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rove::testing::copy::Expected;
use rove::testing::copy::Links;
use rove::testing::copy::message::{Kind, Message};
use rove::testing::copy::receiver::Over;

use crate::ends::{Copy, Scratch, snapshot};
use crate::hostile::{entry, job, octets, pushed, tell};

const LINK: Kind<'static> = Kind::Link { target: b"../secret" };

/// At the top nobody may send a link: with -r and without, for one name, a pattern, a directory and a home, into a
/// directory and under a name, from the user's own end too.
#[test]
fn no_link_comes_at_the_top() {
    for recursive in [false, true] {
        for target in ["root/target", "root/target/new"] {
            for (asked, name) in [
                (Some(&b"notes.txt"[..]), &b"notes.txt"[..]),
                (Some(b"*.txt"), b"notes.txt"),
                (Some(b"~other"), b"~other"),
                (Some(b"dir/"), b"notes.txt"),
                (None, b"notes.txt"),
            ] {
                let scratch = Scratch::new();
                fs::write(scratch.0.join("secret"), "secret").unwrap();
                let expected = asked.map(Expected::of).into_iter().collect();
                let mut job = job(&scratch, expected);
                job.target = scratch.join(target).as_os_str().as_bytes().to_vec();
                job.receive.recursive = recursive;
                job.receive.links = Links::All;
                let before = snapshot(&scratch.0);
                let messages = [entry(0, name, LINK), Message::Listed];
                let (over, _) = tell(job, octets(&messages));
                let Over::Failed(why) = over else { panic!("{asked:?} {target}: {over:?}") };
                assert!(why.contains("which was not asked for"), "{why}");
                assert_eq!(snapshot(&scratch.0), before, "{asked:?} {target} {recursive}");
            }
        }
    }
}

/// A hostile host leaves a link where the user's file goes; the user asks again, and gets an honest answer.
#[test]
fn a_second_copy_writes_through_no_link_of_the_first() {
    let scratch = Scratch::new();
    let secret = scratch.0.join("root/secret");
    fs::create_dir(scratch.0.join("root")).unwrap();
    fs::write(&secret, "secret").unwrap();
    let job = || {
        let mut job = job(&scratch, vec![Expected::of(b"notes.txt")]);
        job.target = scratch.join("root/target/notes.txt").as_os_str().as_bytes().to_vec();
        job.receive.recursive = false;
        job
    };
    let _ = tell(job(), octets(&[entry(0, b"notes.txt", LINK), Message::Listed]));
    let mut honest = vec![entry(0, b"notes.txt", Kind::File { size: 5 })];
    honest.extend(pushed(1));
    honest.push(Message::Listed);
    assert_eq!(tell(job(), octets(&honest)).0, Over::Complete);
    assert_eq!(fs::read(&secret).unwrap(), b"secret");
    assert_eq!(fs::read(scratch.0.join("root/target/notes.txt")).unwrap(), b"owned");
}

/// Without -r there is no directory that a link could be in.
#[test]
fn no_link_comes_without_r() {
    let scratch = Scratch::new();
    let mut job = job(&scratch, vec![]);
    job.receive.recursive = false;
    for parent in [0, 1, 7] {
        let messages =
            [entry(0, b"f", Kind::File { size: 0 }), entry(parent, b"l", LINK), Message::Listed];
        let (over, _) = tell(job.clone(), octets(&messages));
        assert!(matches!(over, Over::Failed(_)), "{parent}: {over:?}");
    }
    assert_eq!(fs::read_dir(scratch.join("root/target")).unwrap().count(), 0);
}

/// Which links of a tree are made, by what they say and how deep they are.
#[test]
fn links_out_of_the_tree_are_made_only_if_asked_for() {
    for (depth, text, stays) in [
        (0, &b"file"[..], true),
        (0, b"./sub/../x", false),
        (0, b"sub/deep", true),
        (0, b".", true),
        (0, b"..", false),
        (0, b"../tree", false),
        (0, b"/etc/passwd", false),
        (0, b"//x", false),
        (0, b"", true),
        (1, b"..", true),
        (1, b"../..", false),
        (1, b"./.././file", true),
        (1, b"../sub/../..", false),
        (2, b"../../file", true),
        (2, b"../../../file", false),
        (2, b"..//..//..", false),
        (2, b"../...", true),
    ] {
        for (links, is_contents) in
            [(Links::Inside, false), (Links::All, false), (Links::Inside, true), (Links::All, true)]
        {
            let scratch = Scratch::new();
            let mut job = job(&scratch, vec![]);
            job.receive.links = links;
            let top = if is_contents { &b""[..] } else { b"tree" };
            let mut messages = vec![entry(0, top, Kind::Directory)];
            for parent in 1..=depth {
                messages.push(entry(parent, b"sub", Kind::Directory));
            }
            messages.push(entry(depth + 1, b"link", Kind::Link { target: text }));
            messages.push(Message::Listed);
            let (over, lines) = tell(job, octets(&messages));
            assert_eq!(over, Over::Complete);
            let mut path = scratch.join("root/target").join(std::str::from_utf8(top).unwrap());
            (0..depth).for_each(|_| path.push("sub"));
            // No system makes one of no text.
            let is_made = !text.is_empty() && (stays || links == Links::All);
            let case = format!("{depth} {:?} {links:?}", String::from_utf8_lossy(text));
            assert_eq!(fs::symlink_metadata(path.join("link")).is_ok(), is_made, "{case}");
            assert_eq!(lines.is_empty(), is_made, "{case}: {lines:?}");
            if !stays && !is_made {
                assert!(lines[0].contains("--links=all"), "{case}: {lines:?}");
            }
        }
    }
}

/// The user's own link to a file is followed by the system, and the file that it leads to is replaced.
#[test]
fn the_users_own_link_is_followed() {
    let scratch = Scratch::new();
    let there = scratch.directory("elsewhere/deep");
    fs::write(there.join("file"), "old").unwrap();
    let target = scratch.directory("root/target");
    symlink("../../elsewhere/deep/file", target.join("hop")).unwrap();
    symlink("hop", target.join("link")).unwrap();
    let mut honest = vec![entry(0, b"f", Kind::File { size: 5 })];
    honest.extend(pushed(1));
    honest.push(Message::Listed);
    for (name, path) in [("link", there.join("file")), ("to-dir", there.join("f"))] {
        symlink(&there, target.join("to-dir")).ok();
        let mut job = job(&scratch, vec![Expected::of(b"f")]);
        job.target = target.join(name).as_os_str().as_bytes().to_vec();
        assert_eq!(tell(job, octets(&honest)).0, Over::Complete, "{name}");
        assert_eq!(fs::read(path).unwrap(), b"owned", "{name}");
        assert!(target.join(name).is_symlink());
    }
}

/// A link of another user's chooses nothing, be it to a file or to a directory. Only root can make one.
#[test]
fn another_users_link_is_not_followed() {
    assert!(rustix::process::geteuid().is_root(), "this test needs root, to give a link away");
    let scratch = Scratch::new();
    let outside = scratch.directory("outside");
    fs::write(outside.join("file"), "secret").unwrap();
    let shared = scratch.directory("shared");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    for (name, leads) in [("file", outside.join("file")), ("directory", outside.clone())] {
        let link = shared.join(name);
        symlink(leads, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(12_345), Some(12_345)).unwrap();
        for end in ["", "/"] {
            let source = scratch.join("source");
            fs::write(&source, "copied").unwrap();
            let mut copy = Copy::new(&source, Path::new("x"));
            copy.job.target = format!("{}{end}", link.display()).into_bytes();
            let result = copy.run();
            let Over::Failed(why) = result.receiver else {
                panic!("{name}: {:?}", result.receiver)
            };
            assert!(why.contains("another user"), "{why}");
        }
    }
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}
