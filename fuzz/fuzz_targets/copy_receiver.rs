//! A receiver of a copy before a hostile sender (threats rows 28 and 29): nothing beside its target is touched, no
//! link leads out of its tree, and a file has its name only with what was there before, or with what the sender has
//! told the hash of.
#![no_main]

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use rove::testing::copy::message::{Entry, Kind, Mark, Message, Outcome, Times};
use rove::testing::copy::receiver::{Job, Waits};
use rove::testing::copy::{Disk, Expected, Links, Receive, Watch, Workers, receive};

#[path = "../support/copy.rs"]
mod support;
use support::{OWNED, Scratch, converse, hear, noise, say};

const OLD: &[u8] = b"older";
const SECRET: &[u8] = b"secret";

const ASKED: [&str; 6] = ["tree", "f", "g", "out", "*", "."];
const NAMES: [&[u8]; 16] = [
    b"tree",
    b"a",
    b"f",
    b"g",
    b"new",
    b"sub",
    b"..",
    b".",
    b"",
    b"/",
    b"../secret",
    b"a/b",
    b"up",
    b"out",
    b"a\0b",
    b"x.rove-part",
];
const LINKS: [&[u8]; 8] = [
    b"a",
    b"../secret",
    b"/etc/passwd",
    b"sub/../../..",
    b"../../secret",
    b"up/secret",
    b"../up",
    b".",
];

fuzz_target!(|octets: &[u8]| {
    let [options, asked, steps @ ..] = octets else { return };
    let scratch = Scratch::new();
    set_up(&scratch.0);
    let job = job(&scratch.0, *options, *asked);
    let mut conversation = Conversation::default();
    conversation.read(steps);
    converse(async {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (from, to) = tokio::io::split(ours);
        let watch = Arc::new(Watch::default());
        let receiving = receive(tokio::io::split(theirs), job, || true, watch);
        let mut heard = Vec::new();
        tokio::join!(receiving, say(to, &conversation.told), hear(from, &mut heard));
    });
    look(&scratch.0, &conversation.runs);
});

/// The target, with files of the user's in it, links that lead out, and what is not to be touched beside it.
fn set_up(root: &Path) {
    let target = root.join("target");
    fs::create_dir(&target).unwrap();
    fs::create_dir(target.join("tree")).unwrap();
    fs::write(root.join("secret"), SECRET).unwrap();
    fs::write(target.join("f"), OWNED).unwrap();
    fs::write(target.join("g"), OLD).unwrap();
    fs::write(target.join("tree/.a.rove-part"), &OWNED[..3]).unwrap();
    symlink("../secret", target.join("out")).unwrap();
    symlink("..", target.join("up")).unwrap();
}

fn job(root: &Path, options: u8, asked: u8) -> Job {
    let below = ["", "f", "new", "tree"][usize::from(options >> 4) % 4];
    let expected = ASKED.get(usize::from(asked) % 8).map(|asked| Expected::of(asked.as_bytes()));
    Job {
        target: root.join("target").join(below).as_os_str().as_bytes().to_vec(),
        receive: Receive {
            recursive: options & 1 == 0,
            preserve: options & 2 != 0,
            several: options & 4 != 0,
            links: Links::Inside,
        },
        expected: expected.into_iter().collect(),
        umask: 0o022,
        disk: Disk::default(),
        workers: Workers::default(),
        waits: Waits::Told,
    }
}

/// What the sender says.
#[derive(Default)]
struct Conversation {
    told: Vec<u8>,
    /// What it has said of the file that it sends, and a hash of that.
    run: Vec<u8>,
    hasher: blake3::Hasher,
    /// What it has told the right hash of.
    runs: Vec<Vec<u8>>,
}

impl Conversation {
    fn read(&mut self, mut steps: &[u8]) {
        let data = noise(4096);
        while let [step, first, second, rest @ ..] = steps {
            steps = rest;
            let (index, parent) = (u32::from(*first % 12), u32::from(*first >> 4));
            let number = match second {
                0xff => u64::MAX,
                0xf0.. => 1 << (second & 15),
                _ => u64::from(*second),
            };
            let name = NAMES[usize::from(*first) % NAMES.len()];
            let entry = |kind| {
                let (mode, times) = (u16::from(*second) * 16, Times::default());
                Message::Entry(Entry { parent, source: 0, name, kind, mode, times })
            };
            match step % 16 {
                0 => self.say(&entry(Kind::Directory)),
                1 | 2 => self.say(&entry(Kind::File { size: number })),
                3 => self.say(&entry(Kind::Link { target: LINKS[usize::from(*second) % 8] })),
                4 => self.say(&Message::Listed),
                5 | 6 => {
                    (self.run, self.hasher) = Default::default();
                    self.say(&Message::Begin { index, offset: number });
                }
                7 => self.data(&OWNED[usize::from(*first) % 5..]),
                8 => self.data(&data[..1 + usize::from(*first) * 16]),
                9 => {
                    let length = if *second == 0xff { u64::MAX } else { u64::from(*second) * 16 };
                    self.hasher.update(&length.to_le_bytes());
                    if length < u64::MAX {
                        self.run.resize(self.run.len() + length as usize, 0);
                    }
                    self.say(&Message::Hole(length));
                }
                10 => {
                    self.runs.push(self.run.clone());
                    self.say(&Message::End(*self.hasher.finalize().as_bytes()));
                }
                11 => {
                    // The right hash of what is there, or of what is not.
                    let there = [&OWNED[..3], OWNED, OLD, b"else"][usize::from(*second) % 4];
                    let digest = *blake3::hash(blake3::hash(there).as_bytes()).as_bytes();
                    let length = there.len() as u64 + u64::from(*second >> 7);
                    let marks = vec![Mark { length, digest }; usize::from(*second >> 2) % 3];
                    self.say(&Message::Marks { index, marks });
                }
                12 => self.say(&Message::Gone { index, why: &data[..usize::from(*second)] }),
                13 => {
                    let outcome = Outcome::Failed(b"no");
                    let others = [
                        Message::End([*second; 32]),
                        Message::Trouble(b"line\n\x1b[2J"),
                        Message::Want { index, offset: number },
                        Message::Done { index, outcome },
                        Message::Complete,
                        Message::Fatal(b"why"),
                    ];
                    self.say(&others[usize::from(*second) % others.len()]);
                }
                14 => {
                    let (block, rest) = rest.split_at(rest.len().min(usize::from(*first) % 32));
                    steps = rest;
                    // Whether it is a block, and of which octets, is for the receiver to find out: its hash is not told.
                    self.say(&Message::Packed { length: u32::from(*second) + 1, block });
                }
                _ => self.told.extend([*first, *second]),
            }
        }
    }

    fn say(&mut self, message: &Message<'_>) {
        message.encode(&mut self.told);
    }

    fn data(&mut self, data: &[u8]) {
        self.hasher.update(data);
        self.run.extend_from_slice(data);
        self.say(&Message::Data(data));
    }
}

/// Looks for what must not be.
fn look(root: &Path, runs: &[Vec<u8>]) {
    let mut names: Vec<_> = fs::read_dir(root).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["secret", "target"]);
    assert_eq!(fs::read(root.join("secret")).unwrap(), SECRET);
    let target = root.join("target");
    let mut open = vec![target.clone()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_symlink() {
                let ours = [target.join("out"), target.join("up")].contains(&path);
                let leads = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                assert!(ours || leads.starts_with(&target), "{path:?} leads to {leads:?}");
            } else if path.extension().is_none_or(|it| it != "rove-part") {
                let there = fs::read(&path).unwrap();
                // A copy may go on with the beginning that an earlier one left.
                let is_run = |rest: &[u8]| runs.iter().any(|run| run == rest);
                let is_whole = is_run(&there)
                    || there.strip_prefix(&OWNED[..3]).is_some_and(is_run)
                    || [OWNED, OLD].contains(&there.as_slice());
                assert!(is_whole, "{path:?} has {} octets", there.len());
            }
        }
    }
}
