//! Two ends of a copy in one process, and trees to copy.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rove::testing::copy::Disk;
use rove::testing::copy::receiver::{self, Job, Waits};
use rove::testing::copy::{Expected, Sources};
use rove::testing::copy::{Links, Receive};
use rove::testing::copy::{Tally, Watch, Workers};

/// A directory of a test's own that goes away with it.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rove-copy-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A directory in it, new.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What each path below a directory is: its type, permissions and the hash of its contents.
pub fn snapshot(directory: &Path) -> BTreeMap<PathBuf, (u32, String)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let stat = fs::symlink_metadata(&path).unwrap();
            let contents = match stat.file_type() {
                kind if kind.is_symlink() => {
                    fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
                }
                kind if kind.is_file() => fs::read(&path).unwrap(),
                kind if kind.is_dir() => {
                    waiting.push(path.clone());
                    Vec::new()
                }
                _ => Vec::new(),
            };
            let hash = blake3::hash(&contents).to_hex()[..8].to_owned();
            found.insert(path.strip_prefix(directory).unwrap().to_owned(), (stat.mode(), hash));
        }
    }
    found
}

/// Octets that do not shrink, the same for each seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut contents = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut contents);
    contents
}

/// A tree with something of everything; returns its top.
pub fn tree(scratch: &Scratch) -> PathBuf {
    let top = scratch.directory("tree");
    for (number, size) in
        [0, 1, 100, 4096, 65_537, 262_144, 262_145, 3 << 20].into_iter().enumerate()
    {
        fs::write(top.join(format!("file {number}")), noise(number as u64, size)).unwrap();
    }
    let deep = scratch.directory("tree/a/b/c/d");
    fs::write(deep.join("deep"), "deep").unwrap();
    fs::write(top.join("a/text"), "compressible ".repeat(200_000)).unwrap();
    scratch.directory("tree/empty");
    symlink("../elsewhere", top.join("a/link")).unwrap();
    symlink("nowhere", top.join("dangling")).unwrap();
    fs::set_permissions(top.join("file 1"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(top.join("file 2"), fs::Permissions::from_mode(0o400)).unwrap();
    fs::write(top.join(std::ffi::OsStr::from_bytes(b"\xff\nodd")), "odd").unwrap();
    top
}

/// A copy as it is asked for.
pub struct Copy {
    pub sources: Sources,
    pub job: Job,
    /// Octets after which the connection breaks, on its way to the receiver.
    pub breaks_after: Option<usize>,
}

/// What came of it.
pub struct Result {
    pub sender: rove::testing::copy::sender::Over,
    pub receiver: receiver::Over,
    pub sent: Tally,
    pub received: Tally,
    pub lines: Vec<String>,
    /// Octets that went to the receiver.
    pub carried: usize,
}

impl Copy {
    pub fn new(source: &Path, target: &Path) -> Copy {
        let path = |path: &Path| path.as_os_str().as_bytes().to_vec();
        Copy {
            sources: Sources { paths: vec![path(source)], recursive: true, patterns: false },
            job: Job {
                target: path(target),
                receive: Receive {
                    recursive: true,
                    preserve: false,
                    several: false,
                    links: Links::Inside,
                },
                expected: vec![Expected::of(&path(source))],
                umask: 0,
                disk: Disk::default(),
                workers: Workers::Threads,
                waits: Waits::Told,
            },
            breaks_after: None,
        }
    }

    pub fn run(self) -> Result {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.run_async())
    }

    async fn run_async(self) -> Result {
        let (ours, near) = tokio::io::duplex(1 << 16);
        let (far, theirs) = tokio::io::duplex(1 << 16);
        let (sent, received) = (Arc::new(Watch::default()), Arc::new(Watch::default()));
        let limit = self.breaks_after.unwrap_or(usize::MAX);
        let wire = async {
            let (mut from_sender, mut to_sender) = tokio::io::split(near);
            let (mut from_receiver, mut to_receiver) = tokio::io::split(far);
            let there = carry(&mut from_sender, &mut to_receiver, limit);
            let back = carry(&mut from_receiver, &mut to_sender, usize::MAX);
            tokio::pin!(there, back);
            let carried;
            tokio::select! {
                done = &mut there => {
                    carried = done;
                    if limit == usize::MAX {
                        back.await;
                    }
                }
                _ = &mut back => carried = there.await,
            }
            carried
        };
        let (s, r) = (Arc::clone(&sent), Arc::clone(&received));
        let threads = Workers::Threads;
        let (sender, receiver, carried) = tokio::join!(
            rove::testing::copy::send(tokio::io::split(ours), self.sources, 0, || true, s, threads),
            rove::testing::copy::receive(tokio::io::split(theirs), self.job, || true, r),
            wire,
        );
        Result {
            sender,
            receiver,
            sent: sent.tally(),
            received: received.tally(),
            lines: received.take_lines(),
            carried,
        }
    }
}

async fn carry(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    to: &mut (impl tokio::io::AsyncWrite + Unpin),
    limit: usize,
) -> usize {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut carried = 0;
    let mut block = vec![0; 1 << 16];
    while carried < limit {
        let most = block.len().min(limit - carried);
        match from.read(&mut block[..most]).await {
            Ok(0) | Err(_) => break,
            Ok(read) => {
                if to.write_all(&block[..read]).await.is_err() {
                    break;
                }
                carried += read;
            }
        }
    }
    let _ = to.shutdown().await;
    carried
}
