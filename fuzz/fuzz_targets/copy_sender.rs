//! A sender of a copy before a hostile receiver: it ends, and all that it says is what it was asked to send, as it
//! is, with the right hashes.
#![no_main]

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use rove::testing::copy::message::{Kind, Message, Outcome, Parser};
use rove::testing::copy::{Sources, Watch, Workers, send};
use tokio::io::AsyncReadExt;

#[path = "../support/copy.rs"]
mod support;
use support::{OWNED, Scratch, converse, hear, noise, say};

/// Octets of the larger file.
const LARGE: usize = 3_000;

fuzz_target!(|octets: &[u8]| {
    let scratch = Scratch::new();
    let tree = scratch.0.join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), OWNED).unwrap();
    fs::write(tree.join("b"), noise(LARGE)).unwrap();
    symlink("a", tree.join("l")).unwrap();
    fs::write(scratch.0.join("secret"), "secret").unwrap();
    let sources = Sources {
        paths: vec![tree.as_os_str().as_bytes().to_vec()],
        recursive: true,
        patterns: false,
    };
    let told = read(octets);
    let mut heard = Vec::new();
    converse(async {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (mut from, to) = tokio::io::split(ours);
        let watch = Arc::new(Watch::default());
        let sending =
            send(tokio::io::split(theirs), sources, 0, || true, watch, Workers::default());
        let receiver = async {
            // The numbers that it may ask for are told first.
            while !is_listed(&heard) && from.read_buf(&mut heard).await.is_ok_and(|read| read > 0) {
            }
            tokio::join!(say(to, &told), hear(from, &mut heard));
        };
        tokio::join!(sending, receiver);
    });
    check(&heard, &scratch.0);
});

/// What the receiver says.
fn read(mut steps: &[u8]) -> Vec<u8> {
    let mut told = Vec::new();
    while let [step, first, second, rest @ ..] = steps {
        steps = rest;
        // Four entries, and a few numbers beyond them.
        let index = u32::from(*first % 7);
        let number = match second {
            0xff => u64::MAX,
            0xf0.. => 1 << (second & 15),
            0x80.. => LARGE as u64 - 0xf0 + u64::from(*second),
            _ => u64::from(*second),
        };
        match step % 10 {
            0 | 1 => Message::Want { index, offset: number }.encode(&mut told),
            2 => {
                let mut lengths = vec![3, 5, LARGE as u64, number];
                lengths.rotate_left(usize::from(*first >> 4) % 4);
                lengths.truncate(1 + usize::from(*first >> 6));
                Message::Ask { index, lengths }.encode(&mut told);
            }
            3 => {
                let failed = Outcome::Failed(b"\x1b[2Jfull");
                let outcome = [Outcome::Done, failed, Outcome::Skipped][usize::from(*second) % 3];
                Message::Done { index, outcome }.encode(&mut told);
            }
            4 => Message::Trouble(b"line").encode(&mut told),
            5 => Message::Fatal(b"why").encode(&mut told),
            6 => Message::Complete.encode(&mut told),
            7 => Message::Begin { index, offset: number }.encode(&mut told),
            8 => Message::Gone { index, why: b"" }.encode(&mut told),
            _ => told.extend([*first, *second]),
        }
    }
    told
}

fn is_listed(heard: &[u8]) -> bool {
    let mut is_listed = false;
    each(heard, |message| is_listed |= message == &Message::Listed);
    is_listed
}

/// All whole messages in these octets.
fn each(mut heard: &[u8], mut hear: impl FnMut(&Message<'_>)) {
    let mut parser = Parser::default();
    while let Some(length) = parser.extent(heard).expect("ours are messages") {
        let (message, rest) = heard.split_at(length);
        hear(&parser.read(message).expect("ours are messages"));
        heard = rest;
    }
}

/// What the sender has said is true.
fn check(heard: &[u8], root: &Path) {
    let mut files: Vec<Option<Vec<u8>>> = vec![None];
    let mut run: Option<(usize, Vec<u8>, blake3::Hasher)> = None;
    let contents = |files: &[Option<Vec<u8>>], index: u32| -> Vec<u8> {
        files.get(index as usize).cloned().flatten().expect("only files that were listed")
    };
    each(heard, |message| match message {
        Message::Entry(entry) => {
            let path = root.join(if entry.parent == 0 { "" } else { "tree" });
            let path = path.join(str::from_utf8(entry.name).unwrap());
            files.push(match entry.kind {
                Kind::File { size } => {
                    let there = fs::read(&path).unwrap();
                    assert_eq!(size, there.len() as u64);
                    Some(there)
                }
                Kind::Link { target } => {
                    assert_eq!(fs::read_link(&path).unwrap().as_os_str().as_bytes(), target);
                    None
                }
                Kind::Directory => None,
            });
            assert!(path.starts_with(root.join("tree")) && files.len() <= 5, "{path:?}");
        }
        Message::Begin { index, offset } => {
            assert!(run.is_none(), "one file at a time");
            let rest = contents(&files, *index);
            let rest = rest[usize::try_from(*offset).unwrap()..].to_vec();
            run = Some((0, rest, blake3::Hasher::new()));
        }
        Message::Data(data) => {
            let (at, rest, hasher) = run.as_mut().expect("a file has begun");
            assert_eq!(&rest[*at..*at + data.len()], *data);
            hasher.update(data);
            *at += data.len();
        }
        Message::End(digest) => {
            let (at, rest, hasher) = run.take().expect("a file has begun");
            assert_eq!((at, hasher.finalize().as_bytes()), (rest.len(), digest));
        }
        Message::Marks { index, marks } => {
            let there = contents(&files, *index);
            for mark in marks {
                let beginning = &there[..usize::try_from(mark.length).unwrap()];
                let digest = blake3::hash(blake3::hash(beginning).as_bytes());
                assert_eq!(*digest.as_bytes(), mark.digest);
            }
        }
        Message::Gone { .. } => run = None,
        Message::Listed | Message::Trouble(_) | Message::Fatal(_) => {}
        Message::Packed { .. } | Message::Hole(_) => panic!("noise that shrinks"),
        Message::Ask { .. }
        | Message::Want { .. }
        | Message::Waiting { .. }
        | Message::Done { .. }
        | Message::Complete => panic!("a sender says no such thing"),
    });
}
