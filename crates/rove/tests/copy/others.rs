//! Other users of the machine, who may write to the directory that files go to.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rove::testing::copy::Watch;
use rove::testing::copy::message::{Kind, Mark, Message};
use rove::testing::copy::receiver::{Job, Over};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::ends::{Copy, Scratch, noise};
use crate::faults::copied;
use crate::gate::not_checked;
use crate::hostile::{digest, entry, job, octets, pushed, tell};

/// Somebody else.
const OTHER: u32 = 4141;

/// A directory in which all may make, rename and remove files.
fn shared(scratch: &Scratch) -> std::path::PathBuf {
    let shared = scratch.directory("shared");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    shared
}

/// What another user is receiving under the same name stays, though its directory would let us remove it.
#[test]
fn a_part_of_another_user_is_not_removed() {
    let scratch = Scratch::new();
    let part = shared(&scratch).join(".file.rove-part");
    fs::write(&part, "half").unwrap();
    fs::set_permissions(&part, fs::Permissions::from_mode(0o600)).unwrap();
    if chown(&part, Some(OTHER), None).is_err() {
        return not_checked(
            "a_part_of_another_user_is_not_removed",
            "needs root, to give files away",
        );
    }
    fs::write(scratch.join("file"), noise(1, 1000)).unwrap();
    let unable = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"];
    let to = format!("h:{}", shared(&scratch).display());
    let Some(output) =
        copied("a_part_of_another_user_is_not_removed", &scratch, &unable, &["file", &to])
    else {
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("is not ours"), "{told}");
    assert_eq!(fs::read(&part).unwrap(), b"half");
    assert!(!shared(&scratch).join("file").exists());
}

/// A file that another user has put into a directory for all does not pass for ours, though it has the same
/// contents: its owner could change it afterwards.
#[test]
fn a_planted_file_with_the_right_contents_is_replaced() {
    for (mode, is_ours) in [(0o777, true), (0o1777, true), (0o755, false)] {
        let scratch = Scratch::new();
        fs::write(scratch.join("f"), "contents").unwrap();
        let target = shared(&scratch);
        fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
        fs::write(target.join("f"), "contents").unwrap();
        if chown(target.join("f"), Some(OTHER), None).is_err() {
            return not_checked(
                "a_planted_file_with_the_right_contents_is_replaced",
                "needs root, to give files away",
            );
        }
        let result = Copy::new(&scratch.join("f"), &target).run();
        assert_eq!((result.receiver, result.lines), (Over::Complete, vec![]));
        let stat = fs::metadata(target.join("f")).unwrap();
        assert_eq!(
            (stat.uid() != OTHER, result.received.spared == 0),
            (is_ours, is_ours),
            "{mode:o}"
        );
    }
}

/// A lock that another user holds on a file of theirs is not waited for.
#[test]
fn the_lock_of_another_user_is_not_waited_for() {
    let scratch = Scratch::new();
    let job = job(&scratch, vec![]);
    let part = scratch.join("root/target/.f.rove-part");
    let file = fs::File::create(&part).unwrap();
    fs::set_permissions(&part, fs::Permissions::from_mode(0o666)).unwrap();
    if chown(&part, Some(OTHER), None).is_err() {
        return not_checked(
            "the_lock_of_another_user_is_not_waited_for",
            "needs root, to give files away",
        );
    }
    file.lock().unwrap();
    let mut messages = vec![entry(0, b"f", Kind::File { size: 5 })];
    messages.extend(pushed(1));
    messages.push(Message::Listed);
    let (over, lines) = tell(job, octets(&messages));
    assert_eq!(over, Over::Complete);
    // After a wait it would be "another copy is writing it".
    assert!(lines[0].contains("is not ours"), "{lines:?}");
}

/// A part that another copy of the user's own writes is waited for, and both ends can say so.
#[test]
fn a_wait_for_another_copy_is_told() {
    let scratch = Scratch::new();
    let job = job(&scratch, vec![]);
    let file = fs::File::create(scratch.join("root/target/.f.rove-part")).unwrap();
    file.lock().unwrap();
    let mut messages = vec![entry(0, b"f", Kind::File { size: 5 })];
    messages.extend(pushed(1));
    messages.push(Message::Listed);
    let waiting = octets(&[Message::Waiting { index: 1, heard: None }]);
    let watch = Arc::new(Watch::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let over = runtime.block_on(async {
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let sender = async {
            ours.write_all(&octets(&messages)).await.unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(&waiting) {
                heard.push(ours.read_u8().await.unwrap());
            }
            file.unlock().unwrap();
            ours.shutdown().await.unwrap();
            ours.read_to_end(&mut Vec::new()).await.unwrap();
        };
        let (read, write) = tokio::io::split(theirs);
        let shown = Arc::clone(&watch);
        let receiving = rove::testing::copy::receive((read, write), job, || true, shown);
        tokio::join!(sender, receiving).1
    });
    assert_eq!((over, watch.take_lines()), (Over::Complete, vec![]));
    let part = scratch.join("root/target/f");
    let told = format!("waiting for another copy of {}", part.display());
    assert_eq!(watch.take_notes(), [told]);
    assert_eq!(fs::read(scratch.join("root/target/f")).unwrap(), b"owned");
}

/// Another copy that writes to a part while its lock is waited for makes the file begin anew, where the sender knows how;
/// else it fails.
#[test]
fn a_part_that_grows_while_it_is_waited_for_begins_anew() {
    for is_new in [true, false] {
        let scratch = Scratch::new();
        let job = job(&scratch, vec![]);
        let part = scratch.join("root/target/.f.rove-part");
        let mut file = fs::File::create(&part).unwrap();
        file.write_all(b"own").unwrap();
        file.lock().unwrap();
        let mut listed = entry(0, b"f", Kind::File { size: 5 });
        if let (true, Message::Entry(entry)) = (is_new, &mut listed) {
            entry.mode |= 1 << 15;
        }
        let marks = |octets: &[u8]| {
            let mark = Mark { length: octets.len() as u64, digest: digest(octets) };
            Message::Marks { index: 1, marks: vec![mark] }
        };
        let end = |octets: &[u8]| Message::End(*blake3::hash(octets).as_bytes());
        let begin = |offset| Message::Begin { index: 1, offset };
        let ask = |length| Message::Ask { index: 1, lengths: vec![length] };
        let want = |offset| Message::Want { index: 1, offset };
        let waiting = Message::Waiting { index: 1, heard: None };
        let watch = Arc::new(Watch::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let over = runtime.block_on(async {
            let (mut ours, theirs) = tokio::io::duplex(1 << 20);
            let sender = async {
                let begun = [listed, marks(b"own"), begin(3), Message::Data(b"ed")];
                ours.write_all(&octets(&begun)).await.unwrap();
                hear(&mut ours, &[ask(3), want(3), waiting]).await;
                file.write_all(b"e").unwrap();
                file.unlock().unwrap();
                let mut rest = vec![Message::Gone { index: 1, why: b"" }];
                if is_new {
                    hear(&mut ours, &[ask(4)]).await;
                    rest.extend([marks(b"owne"), begin(4), Message::Data(b"d"), end(b"d")]);
                }
                rest.push(Message::Listed);
                ours.write_all(&octets(&rest)).await.unwrap();
                ours.shutdown().await.unwrap();
                ours.read_to_end(&mut Vec::new()).await.unwrap();
            };
            let shown = Arc::clone(&watch);
            let receiving =
                rove::testing::copy::receive(tokio::io::split(theirs), job, || true, shown);
            tokio::join!(sender, receiving).1
        });
        let lines = watch.take_lines();
        assert_eq!((over, lines.is_empty()), (Over::Complete, is_new), "{lines:?}");
        assert!(
            lines.iter().all(|line| line.ends_with("has written to it meanwhile")),
            "{lines:?}"
        );
        let there = fs::read(scratch.join("root/target/f")).ok();
        assert_eq!(there.as_deref(), is_new.then_some(&b"owned"[..]));
        if is_new {
            let tally = watch.tally();
            assert_eq!((tally.bytes, tally.spared), (5, 4));
        }
    }
}

/// A copy that is killed leaves an empty part beside a file that another one finishes. The next one removes it.
#[test]
fn an_empty_part_beside_a_whole_file_goes() {
    for is_locked in [false, true] {
        let scratch = Scratch::new();
        fs::write(scratch.join("f"), "contents").unwrap();
        let target = scratch.directory("target");
        fs::write(target.join("f"), "contents").unwrap();
        let part = target.join(".f.rove-part");
        fs::write(&part, "").unwrap();
        let file = fs::File::open(&part).unwrap();
        if is_locked {
            file.lock().unwrap();
        }
        let result = Copy::new(&scratch.join("f"), &target).run();
        assert_eq!((result.receiver, result.lines), (Over::Complete, vec![]));
        assert_eq!((result.received.spared, part.exists()), (8, is_locked));
    }
}

/// Hears exactly this.
async fn hear(from: &mut (impl AsyncRead + Unpin), messages: &[Message<'_>]) {
    let said = octets(messages);
    let mut heard = vec![0; said.len()];
    from.read_exact(&mut heard).await.unwrap();
    assert_eq!(heard, said, "{messages:?}");
}

/// A part that somebody has replaced does not get the name in its place: it may be half a file.
#[test]
fn a_part_that_is_replaced_gets_no_name() {
    let scratch = Scratch::new();
    let target = scratch.join("root/target");
    let (ends, lines) = converse_with_a_pause(&scratch, || {
        fs::write(target.join("other"), "half").unwrap();
        fs::rename(target.join("other"), target.join(".f.rove-part")).unwrap();
    });
    assert_eq!(ends, Over::Complete);
    assert!(lines.iter().any(|line| line.contains("meanwhile")), "{lines:?}");
    assert!(!target.join("f").exists());
    assert_eq!(fs::read(target.join(".f.rove-part")).unwrap(), b"half");
}

/// Who may write to the target's directory moves a private directory of ours to the place of one that was copied, which would
/// open it to all.
#[test]
fn a_directory_that_is_replaced_keeps_its_permissions_and_times() {
    // The second are those of the directory that was copied, so that only the times differ.
    for mode in [0o700, 0o777] {
        check_replaced_directory(mode);
    }
}

fn check_replaced_directory(mode: u32) {
    let scratch = Scratch::new();
    let private = scratch.directory("private");
    fs::set_permissions(&private, fs::Permissions::from_mode(mode)).unwrap();
    let times = |directory: &Path| fs::metadata(directory).unwrap().modified().unwrap();
    let mut kept = Vec::new();
    let mut job = job(&scratch, vec![]);
    job.receive.preserve = true;
    let target = scratch.join("root/target");
    let [_, data, end] = pushed(3);
    let messages = [
        entry(0, b"d", Kind::Directory),
        entry(1, b"empty", Kind::Directory),
        entry(0, b"f", Kind::File { size: 5 }),
        Message::Begin { index: 3, offset: 0 },
        data,
    ];
    let (over, lines) = interrupted(job, &messages, &[end], &target.join(".f.rove-part"), || {
        fs::rename(target.join("d"), scratch.join("aside")).unwrap();
        fs::rename(&private, target.join("d")).unwrap();
        fs::create_dir(target.join("d/empty")).unwrap();
        fs::set_permissions(target.join("d/empty"), fs::Permissions::from_mode(mode)).unwrap();
        kept.extend(["d", "d/empty"].map(|name| times(&target.join(name))));
    });
    assert_eq!(over, Over::Complete);
    for (name, kept) in ["d", "d/empty"].into_iter().zip(kept) {
        let there = fs::metadata(target.join(name)).unwrap().mode() & 0o777;
        assert_eq!(there, mode, "{name}: {lines:?}");
        assert_eq!(times(&target.join(name)), kept, "{name}: {lines:?}");
    }
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines.iter().all(|line| line.contains("it was replaced")), "{lines:?}");
}

/// Receives a file, and does something once its part is there and before its end is told.
fn converse_with_a_pause(scratch: &Scratch, between: impl FnOnce()) -> (Over, Vec<String>) {
    let [begin, data, end] = pushed(1);
    let begun = [entry(0, b"f", Kind::File { size: 5 }), begin, data];
    let part = scratch.join("root/target/.f.rove-part");
    interrupted(job(scratch, vec![]), &begun, &[end], &part, between)
}

/// Tells a receiver this, does something once this part is there, and tells it the rest.
fn interrupted(
    job: Job,
    begun: &[Message<'_>],
    rest: &[Message<'_>],
    part: &Path,
    between: impl FnOnce(),
) -> (Over, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let watch = Arc::new(Watch::default());
        let sender = async {
            ours.write_all(&octets(begun)).await.unwrap();
            wait_for(part).await;
            between();
            ours.write_all(&octets(rest)).await.unwrap();
            ours.write_all(&octets(&[Message::Listed])).await.unwrap();
            ours.shutdown().await.unwrap();
            ours.read_to_end(&mut Vec::new()).await.unwrap();
        };
        let receiving = rove::testing::copy::receive(
            tokio::io::split(theirs),
            job,
            || true,
            Arc::clone(&watch),
        );
        let ((), over) = tokio::join!(sender, receiving);
        (over, watch.take_lines())
    })
}

async fn wait_for(path: &Path) {
    let waiting = async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap();
}
