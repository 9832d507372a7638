//! Copies of a tree, broken off by the death of either end and by full disks, and begun again until all is there. No
//! file under its own name is ever half there, and the tree that results is compared octet by octet.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rove::testing::copy::receiver::{self, Job, Waits};
use rove::testing::copy::{
    self, Disk, Expected, Links, Receive, Sources, Tally, Watch, Workers, sender,
};
use rove_lab::testing::rng::{Chance, Rng};
use rove_ssp::Time;
use rove_streams::clock;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::counts::Counts;
use crate::network::{Net, SECOND};
use crate::paths::{Course, HOSTILE};
use crate::session::{self, End, HELD_MAX};

/// A copy that nobody breaks off ends within this time over a fair path. It may wait for 30 s for the lock of a part
/// that the receiver of a dead client holds, and the rest takes seconds.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// Attempts that may be broken off; the one after them is left alone.
const BROKEN_MAX: u64 = 4;

/// How an attempt goes.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Alone,
    /// This end dies, 0 for the client, this long after the beginning.
    Death(usize, Duration),
    /// The receiver's disk has room for this many octets.
    Full(u64),
}

/// The trees, and the end that has the first.
struct Plan {
    from: PathBuf,
    to: PathBuf,
    /// The place of the end that sends.
    sender: usize,
}

/// Both ends' results of an attempt.
struct Results {
    sender: sender::Over,
    receiver: receiver::Over,
    lines: Vec<String>,
    received: Tally,
}

/// Runs the copies of this seed.
pub async fn run(mut rng: Rng, counts: &mut Counts) {
    let scratch = Scratch::new();
    let plan = Plan {
        from: scratch.0.join("from"),
        to: scratch.0.join("to"),
        sender: rng.below(2) as usize,
    };
    fs::create_dir(&plan.to).unwrap();
    counts.octets_to_copy += make_tree(&plan.from, &mut rng);
    let course = Course::hostile(&mut rng);
    let net = Net::new(course.profile.clone(), &mut rng);
    let (networks, _) = watch::channel(0);
    let mut world = JoinSet::new();
    world.spawn(Arc::clone(&net).run());
    let moves = course.moves.clone();
    world.spawn(course.run(Arc::clone(&net), networks.clone()));

    // Ends that outlive the other: they go on, and may be in the way.
    let mut left = Vec::new();
    for _ in 0..rng.below(BROKEN_MAX + 1) {
        let fate = fate(&mut rng);
        left.extend(attempt(&net, &mut rng, &networks, &plan, fate, counts).await);
        counts.left += u64::from(!left.is_empty() && plan.sender == 0);
        clock::sleep(rng.pick(&[Duration::ZERO, SECOND, 30 * SECOND])).await;
    }
    attempt(&net, &mut rng, &networks, &plan, Fate::Alone, counts).await;
    compare_trees(&plan);
    counts.copies += 1;
    counts.roams += moves.iter().filter(|(at, _)| *at < net.now()).count() as u64;
    counts.add_network(net.now(), net.passed());
    for end in &mut left {
        end.kill().await;
    }
}

fn fate(rng: &mut Rng) -> Fate {
    // Small trees are copied soon.
    let longest = rng.pick(&[SECOND, 5 * SECOND, 30 * SECOND]);
    match rng.below(3) {
        0 => {
            let most = 1 << rng.within(1, 21);
            Fate::Full(rng.below(most))
        }
        _ => Fate::Death(rng.below(2) as usize, rng.span_below(longest)),
    }
}

/// One session with one copy. Returns an end that is left when the other has died.
async fn attempt(
    net: &Arc<Net>,
    rng: &mut Rng,
    networks: &watch::Sender<u64>,
    plan: &Plan,
    fate: Fate,
    counts: &mut Counts,
) -> Option<End> {
    let parts = snapshot(&plan.to).into_keys().filter(|path| is_part(path)).count() as u64;
    counts.parts += parts;
    let mut ends = session::start(net, rng, networks);
    let began = net.now();
    let disk = match fate {
        Fate::Full(room) => Disk::with_room(room),
        Fate::Alone | Fate::Death(..) => Disk::default(),
    };
    // Copies take other branches than the streams that carry them.
    let watches = ends.each_ref().map(|end| {
        Arc::new(end.choices.map_or_else(Watch::default, |seed| Watch::buggified(!seed)))
    });
    let copied = copy(&mut ends, plan, disk, &watches);
    let limit = began.max(Time::ZERO + HOSTILE) + ENDS_WITHIN;
    let streams = ends.each_ref().map(|end| end.streams.clone());
    let results = tokio::select! {
        biased;
        results = copied => results,
        () = die(fate) => None,
        () = session::hold_within(streams.clone(), HELD_MAX) => None,
        () = net.until(limit) => panic!(
            "a copy takes too long, {fate:?}; kept for the peers: {:?}",
            streams.each_ref().map(|streams| streams.on_the_way())
        ),
    };
    compare_whole_files(plan);
    counts.reconnects += ends[0].streams.connections().saturating_sub(1);
    ends.iter().for_each(|end| counts.add_choices_of_streams(end.streams.buggified()));
    watches.iter().for_each(|watch| counts.add_choices_of_copies(watch.taken()));
    let mut left = None;
    match results {
        Some(results) => judge(&results, fate, counts),
        None => {
            let Fate::Death(place, _) = fate else { panic!("{fate:?} ends without a result") };
            let [client, server] = &mut ends;
            counts.deaths[place] += 1;
            match place {
                0 => client.kill().await,
                _ => {
                    server.kill().await;
                    // Its user does not wait for ever.
                    clock::sleep(5 * SECOND).await;
                    client.kill().await;
                }
            }
        }
    }
    let [mut client, mut server] = ends;
    if matches!(fate, Fate::Death(0, _)) {
        left = Some(server);
    } else {
        server.kill().await;
    }
    client.kill().await;
    left
}

/// Starts a copy over a channel of this session, as the program's two ends do. Returns its results; `None` if one of
/// the ends has died.
fn copy(
    ends: &mut [End; 2],
    plan: &Plan,
    disk: Disk,
    watches: &[Arc<Watch>; 2],
) -> impl Future<Output = Option<Results>> + use<> {
    let [client, server] = ends.each_ref().map(|end| end.streams.clone());
    let (tell_sender, sender) = oneshot::channel();
    let (tell_receiver, receiver) = oneshot::channel();
    let path = |path: &Path| path.as_os_str().as_bytes().to_vec();
    // What is in the directory, not the directory.
    let from = path(&plan.from.join("."));
    let expected = vec![Expected::of(&from)];
    let sources = Sources { paths: vec![from], recursive: true, patterns: false };
    let receive = Receive { recursive: true, preserve: true, several: false, links: Links::Inside };
    let (target, workers) = (path(&plan.to), Workers::Inline);
    let job = Job { target, receive, expected, umask: 0, disk, workers, waits: Waits::Told };
    let channel = |place: usize| {
        let (client, server) = (client.clone(), server.clone());
        async move {
            match place {
                0 => client.open(b"copy").await.ok(),
                _ => server.accept().await.map(|(_, channel)| channel),
            }
        }
    };
    let sends = channel(plan.sender);
    let streams = ends[plan.sender].streams.clone();
    let watch = Arc::clone(&watches[plan.sender]);
    ends[plan.sender].spawn(async move {
        let Some(channel) = sends.await else { return };
        let is_heard = || streams.is_heard();
        let over = copy::send(channel.split(), sources, 0, is_heard, watch, Workers::Inline).await;
        let _ = tell_sender.send(over);
    });
    let receives = channel(1 - plan.sender);
    let streams = ends[1 - plan.sender].streams.clone();
    let watch = Arc::clone(&watches[1 - plan.sender]);
    ends[1 - plan.sender].spawn(async move {
        let Some(channel) = receives.await else { return };
        let is_heard = || streams.is_heard();
        let over = copy::receive(channel.split(), job, is_heard, Arc::clone(&watch)).await;
        let _ = tell_receiver.send((over, watch));
    });
    async {
        let sender = sender.await.ok()?;
        let (receiver, watch) = receiver.await.ok()?;
        Some(Results { sender, receiver, lines: watch.take_lines(), received: watch.tally() })
    }
}

async fn die(fate: Fate) {
    match fate {
        Fate::Death(_, after) => clock::sleep(after).await,
        Fate::Alone | Fate::Full(_) => std::future::pending().await,
    }
}

/// A copy that ends is whole, or both ends name the reason.
fn judge(results: &Results, fate: Fate, counts: &mut Counts) {
    let Results { sender, receiver, lines, received } = results;
    counts.copied += received.bytes;
    counts.resumed += received.spared;
    counts.add_trace(received.bytes ^ received.spared << 32);
    match (sender, receiver) {
        (sender::Over::Complete, receiver::Over::Complete) => {
            assert!(lines.is_empty(), "{fate:?}: {lines:?}");
        }
        (sender::Over::Refused(there), receiver::Over::Failed(here)) => {
            assert!(matches!(fate, Fate::Full(_)), "{fate:?}: {here}");
            assert!(here.ends_with("the disk is full"), "{here}");
            assert_eq!(there, here, "both ends name the same reason");
            counts.full_disks += 1;
        }
        other => panic!("{fate:?}: {other:?}"),
    }
}

/// Every file under its own name is the sender's.
fn compare_whole_files(plan: &Plan) {
    let whole = snapshot(&plan.from);
    for (path, there) in snapshot(&plan.to) {
        // Directories get their times and permissions at the end.
        if let Content::File(_) | Content::Link(_) = &there.content
            && !is_part(&path)
        {
            let here = whole.get(&path).unwrap_or_else(|| panic!("{} is nobody's", path.display()));
            assert!(*here == there, "{} is not what it was", path.display());
        }
    }
}

/// Both trees are the same.
fn compare_trees(plan: &Plan) {
    let (here, there) = (snapshot(&plan.from), snapshot(&plan.to));
    let paths: BTreeSet<_> = here.keys().chain(there.keys()).collect();
    let differs = |path: &&&PathBuf| here.get(**path) != there.get(**path);
    let different: Vec<_> = paths.iter().filter(differs).collect();
    assert!(different.is_empty(), "the tree is not what it was: {different:?}");
}

/// Whether a file waits for the rest of it.
fn is_part(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".rove-part")
}

/// A file, directory or link.
#[derive(Debug, Eq, PartialEq)]
struct There {
    mode: u32,
    modified: Option<(i64, i64)>,
    content: Content,
}

#[derive(Debug, Eq, PartialEq)]
enum Content {
    Directory,
    File(Vec<u8>),
    Link(PathBuf),
}

fn snapshot(directory: &Path) -> BTreeMap<PathBuf, There> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let stat = fs::symlink_metadata(&path).unwrap();
            let kind = stat.file_type();
            let content = if kind.is_symlink() {
                Content::Link(fs::read_link(&path).unwrap())
            } else if kind.is_dir() {
                waiting.push(path.clone());
                Content::Directory
            } else {
                Content::File(fs::read(&path).unwrap())
            };
            let modified = kind.is_file().then(|| (stat.mtime(), stat.mtime_nsec()));
            let there = There { mode: stat.mode(), modified, content };
            found.insert(path.strip_prefix(directory).unwrap().to_owned(), there);
        }
    }
    found
}

/// Makes a tree; returns the octets of its files.
fn make_tree(top: &Path, rng: &mut Rng) -> u64 {
    fs::create_dir_all(top.join("deep/er")).unwrap();
    fs::create_dir(top.join("empty")).unwrap();
    let mut total = 0;
    let mut write = |name: &str, octets: &[u8]| {
        fs::write(top.join(name), octets).unwrap();
        total += octets.len() as u64;
    };
    for number in 0..rng.pick(&[0, 3, 40]) {
        let place = rng.pick(&["", "deep/", "deep/er/"]);
        let length = rng.pick(&[0, 1, 100, 5_000]);
        write(&format!("{place}small {number}"), &noise(rng, length));
    }
    let large = 1 << rng.within(10, 20);
    let large = rng.below(large);
    write("large", &noise(rng, large));
    if rng.happens(Chance::percent(30)) {
        write("deep/text", "compressible ".repeat(20_000).as_bytes());
    }
    if rng.happens(Chance::percent(30)) {
        let mut sparse = File::create(top.join("sparse")).unwrap();
        for _ in 0..3 {
            sparse.seek(SeekFrom::Current(rng.below(2 << 20) as i64)).unwrap();
            sparse.write_all(&noise(rng, 3_000)).unwrap();
        }
        let length = sparse.metadata().unwrap().len() + rng.below(1 << 20);
        sparse.set_len(length).unwrap();
        total += length;
    }
    symlink("small 1", top.join("link")).unwrap();
    total
}

fn noise(rng: &mut Rng, length: u64) -> Vec<u8> {
    (0..length).map(|_| rng.next_u64() as u8).collect()
}

/// A directory of a seed's own, in memory where the system has such. All names are of one length, since they are in
/// what the two ends say.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = place.join(format!("rove-copies-{:08}-{number:08}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
