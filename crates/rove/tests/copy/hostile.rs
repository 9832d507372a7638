//! Tests a lying sender: the receiver writes nothing outside the target, and nothing unasked.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rove::testing::copy::Expected;
use rove::testing::copy::message::{Digest, Entry, Kind, Mark, Message, Outcome, Parser, Times};
use rove::testing::copy::receiver::{Job, Over};
use rove::testing::copy::{Watch, Workers};
use rove::testing::os::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ends::{Copy, Scratch, noise, snapshot};

/// Sends these octets to a receiver and hears it out. Returns how it ended, and its lines.
pub fn tell(job: Job, told: Vec<u8>) -> (Over, Vec<String>) {
    let (over, _, lines) = converse(job, told);
    (over, lines)
}

/// The same, and returns what the receiver said.
fn tell_and_hear(job: Job, told: Vec<u8>) -> (Over, Vec<u8>) {
    let (over, heard, _) = converse(job, told);
    (over, heard)
}

fn converse(job: Job, told: Vec<u8>) -> (Over, Vec<u8>, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let watch = Arc::new(Watch::default());
        let (mut from, mut to) = tokio::io::split(ours);
        let liar = async {
            let _ = to.write_all(&told).await;
            let _ = to.shutdown().await;
            let mut heard = Vec::new();
            let _ = from.read_to_end(&mut heard).await;
            heard
        };
        let receiving = rove::testing::copy::receive(
            tokio::io::split(theirs),
            job,
            || true,
            Arc::clone(&watch),
        );
        let (heard, over) = tokio::join!(liar, receiving);
        (over, heard, watch.take_lines())
    })
}

pub fn entry<'a>(parent: u32, name: &'a [u8], kind: Kind<'a>) -> Message<'a> {
    let times = Times::default();
    Message::Entry(Entry { parent, source: 0, name, kind, mode: 0o777, times })
}

pub fn octets(messages: &[Message<'_>]) -> Vec<u8> {
    let mut octets = Vec::new();
    messages.iter().for_each(|message| message.encode(&mut octets));
    octets
}

/// A file that is sent without being waited for.
pub fn pushed(index: u32) -> [Message<'static>; 3] {
    let digest = *blake3::hash(b"owned").as_bytes();
    [Message::Begin { index, offset: 0 }, Message::Data(b"owned"), Message::End(digest)]
}

pub fn job(scratch: &Scratch, expected: Vec<Expected>) -> Job {
    let mut job = Copy::new(Path::new("x"), &scratch.directory("root/target")).job;
    job.expected = expected;
    job
}

/// Two thousand names that no receiver may follow, made from what has fooled others.
fn hostile_names() -> Vec<Vec<u8>> {
    let stems: [&[u8]; 20] = [
        b"..",
        b".",
        b"",
        b"/",
        b"../x",
        b"../../x",
        b"/etc/passwd",
        b"a/../../x",
        b"a/b",
        b"x/",
        b"./x",
        b"\0",
        b"x\0y",
        b"..\0",
        b"//x",
        b"...//../x",
        b"a/./b",
        b"../.ssh/authorized_keys",
        b".x.rove-part",
        b"/../x",
    ];
    let tails: [&[u8]; 10] =
        [b"", b"/", b"/.", b"/..", b"/x", b"\0", b"//", b"/../x", b"/.x.rove-part", b"/\xff"];
    let mut names: Vec<Vec<u8>> = Vec::new();
    for stem in stems {
        for tail in tails {
            names.push([stem, tail].concat());
            for head in
                [&b"../"[..], b"/", b"a/", b"./", b"\0", b"..//", b"~/../", b"x/../", b"/./"]
            {
                names.push([head, stem, tail].concat());
            }
        }
    }
    for length in [256, 300, 1000, 4096] {
        names.push(vec![b'n'; length]);
    }
    names
}

#[test]
fn hostile_names_go_nowhere() {
    let scratch = Scratch::new();
    let names = hostile_names();
    assert!(names.len() >= 2000, "{}", names.len());
    let job = job(&scratch, vec![]);
    fs::write(scratch.join("root/x"), "untouched").unwrap();
    let before = snapshot(&scratch.0);
    for name in &names {
        for depth in 0..2 {
            let file = Kind::File { size: 5 };
            for kind in [file, Kind::Directory, Kind::Link { target: b"/etc" }] {
                let mut messages = vec![];
                if depth == 1 {
                    messages.push(entry(0, b"", Kind::Directory));
                }
                messages.push(entry(depth, name, kind));
                if kind == file {
                    messages.extend(pushed(depth + 1));
                }
                messages.push(Message::Listed);
                let (over, _) = tell(job.clone(), octets(&messages));
                let is_contents = name.is_empty() && depth == 0 && kind == Kind::Directory;
                assert_eq!(over == Over::Complete, is_contents, "{name:?} {kind:?}: {over:?}");
            }
        }
    }
    assert_eq!(snapshot(&scratch.0), before);
}

/// The name that the user asked for is the only one that comes (CVE-2019-6111).
#[test]
fn nothing_comes_that_was_not_asked_for() {
    let scratch = Scratch::new();
    let pattern = |pattern: &[u8]| vec![Expected::of(pattern)];
    for (expected, name, is_asked) in [
        (pattern(b"dir/file"), &b"file"[..], true),
        (pattern(b"dir/file"), b".bashrc", false),
        (pattern(b"*.log"), b"a.log", true),
        (pattern(b"*.log"), b".bashrc", false),
        (pattern(b"*"), b".bashrc", false),
        (pattern(b"dir/."), b"file", false),
        (pattern(b"~other"), b"~other", true),
        (pattern(b"~other"), b".bashrc", false),
        (pattern(b"~*"), b"~other", true),
        (pattern(b"~*"), b".bashrc", false),
    ] {
        let mut messages = vec![entry(0, name, Kind::File { size: 5 })];
        messages.extend(pushed(1));
        messages.push(Message::Listed);
        let (over, _) = tell(job(&scratch, expected), octets(&messages));
        assert_eq!(over == Over::Complete, is_asked, "{name:?}: {over:?}");
        let target = scratch.join("root/target");
        assert_eq!(fs::read_dir(&target).unwrap().count(), usize::from(is_asked), "{name:?}");
        fs::remove_dir_all(target).unwrap();
    }
    // What is in a directory, in the place of a directory.
    for (path, is_asked) in [
        ("~", true),
        ("~other/", true),
        ("x/..", true),
        ("*", false),
        ("x", false),
        ("~*", false),
        ("~other/~", false),
    ] {
        let messages = [entry(0, b"", Kind::Directory), Message::Listed];
        let (over, _) = tell(job(&scratch, pattern(path.as_bytes())), octets(&messages));
        assert_eq!(over == Over::Complete, is_asked, "{path}: {over:?}");
    }
    // A directory without -r, and one under the name of a file.
    let mut plain = job(&scratch, pattern(b"file"));
    plain.receive.recursive = false;
    let messages = [entry(0, b"file", Kind::Directory), Message::Listed];
    assert!(matches!(tell(plain, octets(&messages)).0, Over::Failed(_)));
}

/// The receiver does not walk through an entry listed as a link, new or old.
#[test]
fn links_are_not_walked_through() {
    let scratch = Scratch::new();
    let job = job(&scratch, vec![]);
    let outside = scratch.directory("root/outside");
    symlink(&outside, scratch.join("root/target/old")).unwrap();
    let link = Kind::Link { target: outside.as_os_str().as_bytes() };
    for (first, second) in [(link, Kind::Directory), (Kind::Directory, Kind::Directory)] {
        for name in [&b"new"[..], b"old"] {
            let mut messages = vec![
                entry(0, name, first),
                entry(0, name, second),
                entry(2, b"file", Kind::File { size: 5 }),
                entry(2, b"sub", Kind::Directory),
                entry(2, b"link", link),
                Message::Listed,
            ];
            messages.splice(5..5, pushed(3));
            let _ = tell(job.clone(), octets(&messages));
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{name:?} {first:?}");
        }
    }
    // A file replaces a link and is not written through it.
    symlink(outside.join("file"), scratch.join("root/target/there")).unwrap();
    let mut messages = vec![entry(0, b"there", Kind::File { size: 5 })];
    messages.extend(pushed(1));
    messages.push(Message::Listed);
    assert_eq!(tell(job.clone(), octets(&messages)).0, Over::Complete);
    assert_eq!(fs::read(scratch.join("root/target/there")).unwrap(), b"owned");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    // Nor is a part that somebody has put there as one.
    symlink(outside.join("file"), scratch.join("root/target/.next.rove-part")).unwrap();
    let mut messages = vec![entry(0, b"next", Kind::File { size: 5 })];
    messages.extend(pushed(1));
    messages.push(Message::Listed);
    let (over, lines) = tell(job, octets(&messages));
    assert_eq!(over, Over::Complete);
    assert!(lines[0].contains("is not ours"), "{lines:?}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn lies_about_sizes_hashes_and_order_come_to_nothing() {
    let scratch = Scratch::new();
    let file = |size| entry(0, b"f", Kind::File { size });
    let [begin, data, end] = pushed(1);
    let begin_at = |index, offset| Message::Begin { index, offset };
    let wrong = Message::End([7; 32]);
    let huge = Message::Hole(u64::MAX);
    let bomb = Message::Packed { length: 5, block: &[0xff; 100] };
    let short = Message::Packed { length: 9, block: b"\x10a" };
    for (name, messages, is_clean) in [
        ("a wrong hash", vec![file(5), begin.clone(), data.clone(), wrong], true),
        ("half a file", vec![file(5), begin.clone(), data.clone()], false),
        ("an offset not offered", vec![file(5), begin_at(1, 3), data.clone(), end.clone()], false),
        ("a file not listed", vec![begin_at(7, 0), data.clone(), end.clone()], false),
        ("a file twice", vec![file(5), begin.clone(), begin.clone()], false),
        ("data of nothing", vec![data.clone()], false),
        ("an end of nothing", vec![end.clone()], false),
        ("a hole to the end of the world", vec![file(5), begin.clone(), huge, end.clone()], true),
        ("a block that is none", vec![file(5), begin.clone(), bomb], false),
        ("a block that lies", vec![file(5), begin.clone(), short], false),
        ("a wish", vec![Message::Want { index: 1, offset: 0 }], false),
        ("a late entry", vec![file(5), Message::Listed, file(5)], false),
        ("a parent that is a file", vec![file(5), entry(1, b"x", Kind::File { size: 1 })], false),
        ("a parent to come", vec![entry(9, b"x", Kind::File { size: 1 })], false),
    ] {
        let mut messages = messages;
        if is_clean {
            messages.push(Message::Listed);
        }
        let (over, lines) = tell(job(&scratch, vec![]), octets(&messages));
        assert_eq!(over == Over::Complete, is_clean, "{name}: {over:?}");
        assert_eq!(is_clean, !lines.is_empty(), "{name}: {lines:?}");
        assert!(!scratch.join("root/target/f").exists(), "{name}");
        fs::remove_dir_all(scratch.join("root/target")).unwrap();
    }
    // The size in the list is for show: what comes is what is there.
    for size in [0, 1, u64::MAX] {
        let messages = [file(size), begin.clone(), data.clone(), end.clone(), Message::Listed];
        assert_eq!(tell(job(&scratch, vec![]), octets(&messages)).0, Over::Complete);
        assert_eq!(fs::read(scratch.join("root/target/f")).unwrap(), b"owned");
    }
}

#[test]
fn more_than_is_asked_for_ends_it() {
    let scratch = Scratch::new();
    let mut told = Vec::new();
    for number in 0..70_000_u32 {
        entry(0, number.to_string().as_bytes(), Kind::File { size: 1 }).encode(&mut told);
    }
    let (over, _) = tell(job(&scratch, vec![]), told);
    assert!(matches!(over, Over::Failed(_)), "{over:?}");
}

/// A receiver that asks for an unlisted file, or again and again, gets nothing.
#[test]
fn wishes_for_what_is_not_listed() {
    let scratch = Scratch::new();
    fs::write(scratch.join("file"), noise(1, 100_000)).unwrap();
    for wishes in [vec![2], vec![0], vec![u32::MAX], vec![1; 6]] {
        let said: Vec<_> = wishes.iter().map(|&index| Message::Want { index, offset: 0 }).collect();
        let over = sent_to(&scratch, &said, Arc::default());
        assert!(
            matches!(over, rove::testing::copy::sender::Over::Malformed),
            "{wishes:?}: {over:?}"
        );
    }
}

/// A receiver that says twice that a file waits, or of one that it has not asked for, is not believed.
#[test]
fn waits_are_told_once() {
    let scratch = Scratch::new();
    fs::write(scratch.join("file"), noise(1, 100_000)).unwrap();
    let want = Message::Want { index: 1, offset: 0 };
    let waiting = |seconds| Message::Waiting { index: 1, heard: Some(seconds) };
    for (said, is_honest, notes) in [
        (vec![want.clone(), waiting(2)], true, vec!["file (its client was heard 2 s ago)"]),
        (vec![want.clone(), waiting(0)], true, vec!["file (its client was heard just now)"]),
        (vec![want, waiting(2), waiting(3)], false, vec!["file (its client was heard 2 s ago)"]),
        (vec![waiting(2)], false, vec![]),
    ] {
        let watch = Arc::new(Watch::default());
        let over = sent_to(&scratch, &said, Arc::clone(&watch));
        let is_malformed = matches!(over, rove::testing::copy::sender::Over::Malformed);
        assert_eq!(is_malformed, !is_honest, "{said:?}: {over:?}");
        let there = scratch.0.display();
        let notes = notes.iter().map(|note| format!("waiting for another copy of {there}/{note}"));
        assert_eq!(watch.take_notes(), notes.collect::<Vec<_>>(), "{said:?}");
    }
}

/// Sends a file to a receiver that says this once the file is listed, and hears no more then.
fn sent_to(
    scratch: &Scratch,
    said: &[Message<'_>],
    watch: Arc<Watch>,
) -> rove::testing::copy::sender::Over {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let copy = Copy::new(&scratch.join("file"), &scratch.0);
        let liar = async {
            let (mut from, mut to) = tokio::io::split(ours);
            // The list is there before anything is said of it.
            let mut heard = vec![0; 1 << 16];
            let mut have = 0;
            let mut parser = Parser::default();
            while !matches!(next(&mut parser, &heard[..have]), Some(Message::Entry(_))) {
                have += from.read(&mut heard[have..]).await.unwrap();
            }
            to.write_all(&octets(said)).await.unwrap();
            let _ = to.shutdown().await;
            let mut rest = Vec::new();
            let _ = from.read_to_end(&mut rest).await;
        };
        let sending = rove::testing::copy::send(
            tokio::io::split(theirs),
            copy.sources,
            0,
            || true,
            watch,
            Workers::Threads,
        );
        tokio::join!(sending, liar).0
    })
}

fn next<'a>(parser: &mut Parser, bytes: &'a [u8]) -> Option<Message<'a>> {
    let length = parser.extent(bytes).unwrap()?;
    Some(parser.read(&bytes[..length]).unwrap())
}

/// The next message, as octets.
async fn hear(from: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let (mut heard, mut parser) = (Vec::new(), Parser::default());
    while next(&mut parser, &heard).is_none() {
        heard.push(from.read_u8().await.unwrap());
    }
    heard
}

/// The messages of a stream, each as octets.
fn split(mut stream: &[u8]) -> Vec<Vec<u8>> {
    let (mut messages, parser) = (Vec::new(), Parser::default());
    while let Some(length) = parser.extent(stream).unwrap() {
        messages.push(stream[..length].to_vec());
        stream = &stream[length..];
    }
    messages
}

/// The hash of a beginning of at most 1 MiB.
pub fn digest(octets: &[u8]) -> Digest {
    *blake3::hash(blake3::hash(octets).as_bytes()).as_bytes()
}

/// A host that names a file here and its length does not get its hash in any form: not of the file, and not
/// of the part of an earlier copy. It learns that it has the same octets if it has.
#[test]
fn no_hash_of_a_file_here_is_told() {
    let secret = noise(7, 3000);
    for (name, guess) in [
        ("f", None),
        ("f", Some(digest(b"wrong"))),
        (".f.rove-part", Some(digest(b"wrong"))),
        (".f.rove-part", None),
    ] {
        let scratch = Scratch::new();
        let job = job(&scratch, vec![Expected::of(b"f")]);
        fs::write(scratch.join("root/target").join(name), &secret).unwrap();
        let marks = guess.map(|digest| Mark { length: 3000, digest }).into_iter().collect();
        let mut messages =
            vec![entry(0, b"f", Kind::File { size: 3000 }), Message::Marks { index: 1, marks }];
        messages.extend(pushed(1));
        messages.push(Message::Listed);
        let (over, heard) = tell_and_hear(job, octets(&messages));
        assert_eq!(over, Over::Complete, "{name} {guess:?}");
        let said = [
            Message::Ask { index: 1, lengths: vec![3000] },
            Message::Want { index: 1, offset: 0 },
            Message::Done { index: 1, outcome: Outcome::Done },
            Message::Complete,
        ];
        let mut said = said.map(|message| octets(&[message]));
        said.sort();
        let mut heard = split(&heard);
        heard.sort();
        assert_eq!(heard, said, "{name} {guess:?}");
    }
}

/// A host cannot find out a file here octet by octet: it may guess at each file once. A right guess about
/// the whole file does not count, since nothing is left to guess.
#[test]
fn a_file_here_is_guessed_at_once() {
    let secret = noise(7, 3000);
    for (name, length, is_right, asks) in [
        (".f.rove-part", 1, false, 1),
        (".f.rove-part", 1, true, 1),
        (".f.rove-part", 3000, false, 1),
        ("f", 3000, false, 1),
        ("f", 3000, true, 2),
    ] {
        let scratch = Scratch::new();
        let job = job(&scratch, vec![Expected::of(b"f")]);
        let there = scratch.join("root/target").join(name);
        fs::write(&there, &secret).unwrap();
        let file = entry(0, b"f", Kind::File { size: length });
        let guess = if is_right { digest(&secret[..length as usize]) } else { digest(b"wrong") };
        let marks = vec![Mark { length, digest: guess }];
        let gone = |index| Message::Gone { index, why: b"a guess" };
        // Two at once, and one after what came of them is known.
        let messages = [
            file.clone(),
            file.clone(),
            gone(2),
            Message::Marks { index: 1, marks },
            gone(1),
            file,
            gone(3),
            Message::Listed,
        ];
        let (over, heard) = tell_and_hear(job, octets(&messages));
        assert_eq!(over, Over::Complete, "{name} {length} {is_right}");
        let heard = split(&heard);
        let is_ask = |octets: &&Vec<u8>| {
            matches!(next(&mut Parser::default(), octets), Some(Message::Ask { .. }))
        };
        assert_eq!(heard.iter().filter(is_ask).count(), asks, "{name} {length} {is_right}");
        assert_eq!(fs::read(there).unwrap(), secret);
    }
}

/// A file with two names, which are both there, is looked at under both.
#[test]
fn both_names_of_a_file_that_is_there_are_spared() {
    let scratch = Scratch::new();
    let (from, target) = (scratch.directory("from"), scratch.directory("target"));
    for directory in [&from, &target] {
        fs::write(directory.join("a"), noise(1, 3000)).unwrap();
        fs::hard_link(directory.join("a"), directory.join("b")).unwrap();
    }
    let result = Copy::new(&from.join("."), &target).run();
    assert_eq!((result.receiver, result.lines), (Over::Complete, vec![]));
    assert_eq!(result.received.spared, 6000);
}

/// Marks that the receiver did not ask for, or of other lengths, end the copy.
#[test]
fn marks_that_were_not_asked_for_end_it() {
    let file = entry(0, b"f", Kind::File { size: 5 });
    let mark = |length| Mark { length, digest: digest(b"owned") };
    let marks = |index, marks| Message::Marks { index, marks };
    for (is_there, told) in [
        (false, vec![file.clone(), marks(1, vec![])]),
        (true, vec![marks(1, vec![])]),
        (true, vec![file.clone(), marks(2, vec![mark(5)])]),
        (true, vec![file.clone(), marks(1, vec![mark(4)])]),
        (true, vec![file.clone(), marks(1, vec![mark(5), mark(5)])]),
        (true, vec![file.clone(), marks(1, vec![mark(5)]), marks(1, vec![mark(5)])]),
        (true, vec![file.clone(), Message::Begin { index: 1, offset: 0 }]),
        (true, vec![file.clone(), marks(1, vec![]), Message::Begin { index: 1, offset: 5 }]),
    ] {
        let scratch = Scratch::new();
        let job = job(&scratch, vec![]);
        if is_there {
            fs::write(scratch.join("root/target/f"), "there").unwrap();
        }
        let (over, _) = tell(job, octets(&told));
        assert!(matches!(over, Over::Failed(_)), "{told:?}: {over:?}");
    }
}

/// A file in place that is replaced meanwhile, or grows at the sender, is reported and ends nothing.
#[test]
fn what_is_in_its_place_and_changes_is_told() {
    for (is_replaced, more) in [(false, None), (true, None), (false, Some(Message::Hole(3)))] {
        let scratch = Scratch::new();
        let job = job(&scratch, vec![]);
        let file = scratch.join("root/target/f");
        fs::write(&file, "owned").unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (over, lines) = runtime.block_on(async {
            let (ours, theirs) = tokio::io::duplex(1 << 20);
            let watch = Arc::new(Watch::default());
            let sender = async {
                let (mut from, mut to) = tokio::io::split(ours);
                let listed = [entry(0, b"f", Kind::File { size: 5 })];
                to.write_all(&octets(&listed)).await.unwrap();
                let asked = hear(&mut from).await;
                assert_eq!(asked, octets(&[Message::Ask { index: 1, lengths: vec![5] }]));
                let marks = vec![Mark { length: 5, digest: digest(b"owned") }];
                to.write_all(&octets(&[Message::Marks { index: 1, marks }])).await.unwrap();
                let wanted = hear(&mut from).await;
                assert_eq!(wanted, octets(&[Message::Want { index: 1, offset: 5 }]));
                if is_replaced {
                    fs::write(scratch.join("root/target/g"), "other").unwrap();
                    fs::rename(scratch.join("root/target/g"), &file).unwrap();
                }
                let begin = Message::Begin { index: 1, offset: 5 };
                let mut rest = vec![begin, Message::End([0; 32]), Message::Listed];
                rest.splice(1..1, more.clone());
                to.write_all(&octets(&rest)).await.unwrap();
                from.read_to_end(&mut Vec::new()).await.unwrap();
            };
            let receiving = rove::testing::copy::receive(
                tokio::io::split(theirs),
                job,
                || true,
                Arc::clone(&watch),
            );
            let ((), over) = tokio::join!(sender, receiving);
            (over, watch.take_lines())
        });
        assert_eq!(over, Over::Complete, "{is_replaced} {more:?}");
        let changed = "f: it changed while it was copied; copy it again";
        let is_changed = is_replaced || more.is_some();
        assert_eq!(lines.len(), usize::from(is_changed), "{is_replaced} {more:?}: {lines:?}");
        assert!(lines.iter().all(|line| line.ends_with(changed)), "{lines:?}");
    }
}

/// While copies run, somebody swaps a directory of the target for a link that leads outside.
#[test]
fn swapped_directories_lead_nowhere() {
    swap(20, SWAPPED_FILES, Duration::ZERO);
}

/// Threats row 29: `cargo test -p rove-shell --test copy -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute"]
fn swapped_directories_lead_nowhere_for_a_minute() {
    swap(200, 100_000, Duration::from_secs(60));
}

/// Copies a directory of this many files while it is swapped for a symbolic link and back, until `files_min`
/// were copied in all, and for `span` at least.
fn swap(files: u32, files_min: u32, span: Duration) {
    let scratch = Scratch::new();
    let from = scratch.directory("from/d/e");
    for number in 0..files {
        fs::write(from.join(number.to_string()), "inside").unwrap();
    }
    let outside = scratch.directory("outside");
    let target = scratch.directory("target");
    let (aside, place) = (scratch.join("aside"), target.join("from/d"));
    let is_over = AtomicBool::new(false);
    let (mut copies, mut swaps) = (0, 0);
    std::thread::scope(|scope| {
        let swapping = scope.spawn(|| {
            let mut swaps = 0;
            while !is_over.load(Ordering::Relaxed) {
                if fs::rename(&place, &aside).is_ok() {
                    swaps += u32::from(symlink(&outside, &place).is_ok());
                    let _ = fs::remove_file(&place);
                    let _ = fs::rename(&aside, &place);
                    let _ = fs::remove_dir_all(&aside);
                }
            }
            swaps
        });
        let clock = Clock::start();
        let start = clock.now();
        while copies < files_min || clock.now().since(start) < span {
            let _ = Copy::new(&scratch.join("from"), &target).run();
            copies += files;
            let _ = fs::remove_dir_all(place.join("e"));
        }
        is_over.store(true, Ordering::Relaxed);
        swaps = swapping.join().unwrap();
    });
    assert!(swaps > 0, "nothing was swapped");
    println!("{copies} files copied, {swaps} swaps");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{copies} files, {swaps} swaps");
}

/// Files that are copied amid swaps in every run.
const SWAPPED_FILES: u32 = 2_000;

/// A client that was killed is not heard any more, and must not keep the next copy from the part.
#[test]
fn a_peer_that_is_not_heard_holds_no_lock() {
    let scratch = Scratch::new();
    let job = job(&scratch, vec![]);
    fs::write(scratch.join("f"), noise(1, 100_000)).unwrap();
    let next = Copy::new(&scratch.join("f"), &scratch.join("root/target"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lines = runtime.block_on(async {
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let watch = Arc::new(Watch::default());
        let half = noise(1, 50_000);
        let begun = [
            entry(0, b"f", Kind::File { size: 100_000 }),
            Message::Begin { index: 1, offset: 0 },
            Message::Data(&half),
        ];
        let killed = async {
            ours.write_all(&octets(&begun)).await.unwrap();
            // The next copy is to find a part that this one has begun.
            let begins = async {
                while fs::read_dir(scratch.join("root/target")).map_or(0, Iterator::count) == 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(Duration::from_secs(60), begins).await.unwrap();
            let next = tokio::task::spawn_blocking(|| next.run()).await.unwrap();
            assert_eq!((next.receiver, next.lines), (Over::Complete, vec![]));
            // As one that had only been asleep, it comes back.
            ours.write_all(&octets(&[pushed(1)[1].clone(), Message::Listed])).await.unwrap();
            ours.shutdown().await.unwrap();
            ours.read_to_end(&mut Vec::new()).await.unwrap();
        };
        let receiving = rove::testing::copy::receive(
            tokio::io::split(theirs),
            job,
            || false,
            Arc::clone(&watch),
        );
        tokio::join!(killed, receiving);
        watch.take_lines()
    });
    assert!(lines[0].contains("another copy has gone on with it"), "{lines:?}");
    assert_eq!(fs::read(scratch.join("root/target/f")).unwrap(), noise(1, 100_000));
}

#[test]
fn a_connection_that_ends_at_once() {
    let scratch = Scratch::new();
    assert_eq!(tell(job(&scratch, vec![]), vec![]).0, Over::Ended);
}
