//! Conversations of a copy that are damaged on purpose, at either end: nothing outside the target is touched, no
//! final name has half a file, nothing hangs and nothing panics.
//!
//! A seed is a conversation. `SEED=17 cargo test -p rove-shell --test copy mutations` runs one of each kind;
//! `CONVERSATIONS=1000000` runs as many, from `SEED` on if that is given too.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use rove::testing::copy::Expected;
use rove::testing::copy::Links;
use rove::testing::copy::message::{Digest, Entry, Kind, Mark, Message, Times};
use rove::testing::copy::receiver::Job;
use rove::testing::copy::{Watch, Workers};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ends::{Copy, Scratch, noise, snapshot};

/// Conversations of each kind in one run.
const CONVERSATIONS: u64 = 1_000;

/// No conversation takes a tenth of a second; one that takes this long hangs.
const LONGEST: Duration = Duration::from_secs(60);

const OWNED: &[u8] = b"owned";
const OLD: &[u8] = b"older";
const SECRET: &[u8] = b"secret";

#[test]
fn a_receiver_keeps_to_its_target_whatever_it_is_told() {
    watch_for_panics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scratch = Scratch::new();
    let large = noise(3, 3_000);
    for seed in seeds() {
        let mut dice = Dice(seed);
        let job = set_up(&scratch, &mut dice);
        let told = mutated(&mut dice, sender_says(&large));
        let ended =
            runtime.block_on(async { tokio::time::timeout(LONGEST, receive(job, told)).await });
        assert!(ended.is_ok(), "SEED={seed}: it hangs");
        let panics = PANICS.lock().unwrap().clone();
        assert!(panics.is_empty(), "SEED={seed}: {panics:?}");
        look(&scratch, &large, seed);
    }
}

#[test]
fn a_sender_ends_whatever_it_is_told() {
    watch_for_panics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let scratch = Scratch::new();
    let tree = scratch.directory("tree");
    fs::write(tree.join("a"), OWNED).unwrap();
    fs::write(tree.join("b"), noise(3, 3_000)).unwrap();
    symlink("a", tree.join("l")).unwrap();
    let before = snapshot(&scratch.0);
    for seed in seeds() {
        let mut dice = Dice(seed);
        let told = mutated(&mut dice, receiver_says());
        let sources = Copy::new(&tree, Path::new("x")).sources;
        let ended = runtime.block_on(async {
            tokio::time::timeout(LONGEST, async {
                let (ours, theirs) = tokio::io::duplex(1 << 16);
                let watch = Arc::new(Watch::default());
                let (theirs, threads) = (tokio::io::split(theirs), Workers::Threads);
                let sending =
                    rove::testing::copy::send(theirs, sources, 0, || true, watch, threads);
                tokio::join!(sending, say(ours, told)).0
            })
            .await
        });
        assert!(ended.is_ok(), "SEED={seed}: it hangs");
        let panics = PANICS.lock().unwrap().clone();
        assert!(panics.is_empty(), "SEED={seed}: {panics:?}");
    }
    assert_eq!(snapshot(&scratch.0), before);
}

/// What threads of a copy have panicked with, which the copy itself takes for an end of the connection.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn watch_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A test that fails has a name of its own.
            let thread = std::thread::current();
            if thread.name().is_none_or(|name| !name.contains("::")) {
                PANICS.lock().unwrap().push(panic.to_string());
            }
            usual(panic);
        }));
    });
}

/// The target, with files of the user's in it, links that lead out, and what is not to be touched beside it.
fn set_up(scratch: &Scratch, dice: &mut Dice) -> Job {
    let root = scratch.join("root");
    let _ = fs::remove_dir_all(&root);
    let target = scratch.directory("root/target");
    fs::create_dir(target.join("tree")).unwrap();
    fs::write(root.join("secret"), SECRET).unwrap();
    fs::write(target.join("f"), OWNED).unwrap();
    fs::write(target.join("g"), OLD).unwrap();
    fs::write(target.join("tree/.a.rove-part"), &OWNED[..3]).unwrap();
    symlink("../secret", target.join("out")).unwrap();
    symlink("..", target.join("up")).unwrap();
    let mut job = Copy::new(Path::new("x"), &target).job;
    let asked = ["tree", "f", "g", "out", "*"];
    job.expected = match dice.below(3) {
        0 => vec![],
        _ => vec![Expected::of(asked[dice.below(5)].as_bytes())],
    };
    job.receive.recursive = dice.below(4) > 0;
    job.receive.preserve = dice.below(2) == 0;
    if dice.below(4) == 0 {
        let name = ["f", "new", "tree", "new/"][dice.below(4)];
        job.target = target.join(name).as_os_str().as_bytes().to_vec();
    }
    job.receive.links = Links::Inside;
    job
}

/// Looks for what must not be: anything changed beside the target, a link that leads out of its tree, and contents that no
/// sender has shown to be whole.
fn look(scratch: &Scratch, large: &[u8], seed: u64) {
    let root = scratch.join("root");
    let mut names: Vec<_> =
        fs::read_dir(&root).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["secret", "target"], "SEED={seed}");
    assert_eq!(fs::read(root.join("secret")).unwrap(), SECRET, "SEED={seed}");
    let mut open = vec![root.join("target")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let shown = path.display();
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_symlink() {
                let ours = [root.join("target/out"), root.join("target/up")].contains(&path);
                let leads = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                assert!(ours || leads.starts_with(root.join("target")), "SEED={seed}: {shown}");
            } else if path.extension().is_none_or(|it| it != "rove-part") {
                // What was there before, or a whole run of data that the sender has told the hash of, be it for another
                // file: what a file holds is the sender's to say.
                let there = fs::read(&path).unwrap();
                let rest = there.strip_prefix(&OWNED[..3]).unwrap_or(&there);
                let whole = [&b""[..], &OWNED[3..], OWNED, large];
                let known =
                    there == OLD || whole.contains(&rest) || whole.contains(&there.as_slice());
                assert!(known, "SEED={seed}: {shown} has {} octets", there.len());
            }
        }
    }
}

async fn receive(job: Job, told: Vec<u8>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let watch = Arc::new(Watch::default());
    let receiving = rove::testing::copy::receive(tokio::io::split(theirs), job, || true, watch);
    tokio::join!(receiving, say(ours, told));
}

/// Says this and hears the rest out.
async fn say(end: tokio::io::DuplexStream, told: Vec<u8>) {
    let (mut from, mut to) = tokio::io::split(end);
    let saying = async move {
        let _ = to.write_all(&told).await;
        let _ = to.shutdown().await;
    };
    let hearing = async move {
        let mut heard = vec![0; 1 << 16];
        while from.read(&mut heard).await.is_ok_and(|read| read > 0) {}
    };
    tokio::join!(saying, hearing);
}

/// What an honest sender says of a tree and two files, of which one is there already.
fn sender_says(large: &[u8]) -> Vec<Message<'_>> {
    let entry = |parent, name, kind| {
        let times = Times::default();
        Message::Entry(Entry { parent, source: 0, name, kind, mode: 0o644, times })
    };
    let file = |size: usize| Kind::File { size: size as u64 };
    let mark = |octets: &[u8]| Mark { length: octets.len() as u64, digest: beginning(octets) };
    let end = |octets: &[u8]| Message::End(*blake3::hash(octets).as_bytes());
    vec![
        entry(0, b"tree", Kind::Directory),
        entry(1, b"a", file(OWNED.len())),
        entry(1, b"sub", Kind::Directory),
        entry(3, b"b", file(large.len())),
        entry(3, b"l", Kind::Link { target: b"../a" }),
        entry(0, b"f", file(OWNED.len())),
        entry(0, b"g", file(OWNED.len())),
        Message::Listed,
        Message::Marks { index: 2, marks: vec![mark(&OWNED[..3])] },
        Message::Marks { index: 6, marks: vec![mark(OWNED)] },
        Message::Marks { index: 7, marks: vec![mark(OWNED)] },
        Message::Begin { index: 4, offset: 0 },
        Message::Data(&large[..1_000]),
        Message::Data(&large[1_000..]),
        end(large),
        Message::Begin { index: 2, offset: 3 },
        Message::Data(&OWNED[3..]),
        end(&OWNED[3..]),
        Message::Begin { index: 6, offset: 5 },
        end(b""),
        Message::Begin { index: 7, offset: 0 },
        Message::Data(OWNED),
        end(OWNED),
    ]
}

/// What an honest receiver says of a tree of two files and a link.
fn receiver_says() -> Vec<Message<'static>> {
    use rove::testing::copy::message::Outcome;
    let done = |index| Message::Done { index, outcome: Outcome::Done };
    vec![
        Message::Ask { index: 2, lengths: vec![3, 5] },
        Message::Ask { index: 3, lengths: vec![1_000, 3_000] },
        Message::Want { index: 2, offset: 3 },
        Message::Want { index: 3, offset: 0 },
        Message::Waiting { index: 3, heard: Some(2) },
        Message::Trouble(b"line"),
        done(2),
        Message::Done { index: 3, outcome: Outcome::Failed(b"full") },
        Message::Done { index: 4, outcome: Outcome::Skipped },
        done(4),
        Message::Complete,
    ]
}

/// BLAKE3 of the BLAKE3 of a beginning of at most 1 MiB.
fn beginning(octets: &[u8]) -> Digest {
    *blake3::hash(blake3::hash(octets).as_bytes()).as_bytes()
}

/// The conversation as octets, with one to four mutations.
fn mutated(dice: &mut Dice, mut messages: Vec<Message<'_>>) -> Vec<u8> {
    for _ in 0..=dice.below(4) {
        let (one, other) = (dice.below(messages.len()), dice.below(messages.len()));
        match dice.below(6) {
            0 if messages.len() > 1 => drop(messages.remove(one)),
            1 => messages.insert(other, messages[one].clone()),
            2 => messages.swap(one, other),
            _ => change(dice, &mut messages[one]),
        }
    }
    let mut octets = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut octets));
    if dice.below(8) == 0 {
        let at = dice.below(octets.len());
        octets[at] ^= 1 << dice.below(8);
    }
    if dice.below(8) == 0 {
        octets.truncate(dice.below(octets.len()));
    }
    octets
}

fn change(dice: &mut Dice, message: &mut Message<'_>) {
    const NAMES: [&[u8]; 12] = [
        b"..",
        b".",
        b"",
        b"/",
        b"../secret",
        b"a/b",
        b"up",
        b"out",
        b"f",
        b"tree",
        b"a\0b",
        b"x.rove-part",
    ];
    const LINKS: [&[u8]; 8] = [
        b"..",
        b"../secret",
        b"/etc/passwd",
        b"sub/../../..",
        b"../../secret",
        b"l",
        b"../up",
        b".",
    ];
    match message {
        Message::Entry(entry) => match dice.below(4) {
            0 => entry.name = NAMES[dice.below(NAMES.len())],
            1 => entry.parent = dice.below(9) as u32,
            2 => entry.mode = 0o7777,
            _ => {
                let link = Kind::Link { target: LINKS[dice.below(LINKS.len())] };
                let file = Kind::File { size: [0, 5, u64::MAX][dice.below(3)] };
                entry.kind = [Kind::Directory, file, link][dice.below(3)];
            }
        },
        Message::Begin { index, offset } | Message::Want { index, offset } => match dice.below(2) {
            0 => *index = dice.below(9) as u32,
            _ => *offset = [0, 1, 3, 5, 3_000, u64::MAX][dice.below(6)],
        },
        Message::Data(data) => *data = &data[..1 + dice.below(data.len())],
        Message::Marks { marks, .. } if dice.below(2) == 0 => {
            marks.iter_mut().for_each(|mark| mark.length ^= 1 << dice.below(4));
        }
        Message::Ask { lengths, .. } if dice.below(2) == 0 => {
            lengths.iter_mut().for_each(|length| *length ^= 1 << dice.below(12));
        }
        Message::Marks { index, .. }
        | Message::Ask { index, .. }
        | Message::Waiting { index, .. }
        | Message::Done { index, .. } => {
            *index = dice.below(9) as u32;
        }
        Message::End(digest) => digest[dice.below(32)] ^= 1,
        other => *other = Message::Hole([1, 5, u64::MAX][dice.below(3)]),
    }
}

fn seeds() -> impl Iterator<Item = u64> {
    let (first, few) = number("SEED").map_or((1, CONVERSATIONS), |seed| (seed, 1));
    (first..).zip(0..number("CONVERSATIONS").unwrap_or(few)).map(|(seed, _)| seed)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// A generator whose stream is fixed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}
