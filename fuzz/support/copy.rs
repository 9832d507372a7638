//! What both targets of the copy protocol need: a directory in memory, and a peer that says what it likes.

use std::fs;
use std::future::Future;
use std::path::PathBuf;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, WriteHalf};

/// A file that an honest copy has, and its beginning as an earlier copy left it.
pub const OWNED: &[u8] = b"owned";
/// A directory of one run, in memory where the system has such a place: files are synced.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        let memory = PathBuf::from("/dev/shm");
        let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let path = parent.join(format!("rove-fuzz-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a place for files");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs both ends of a conversation to their end.
pub fn converse<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}

/// Says all this, and nothing more.
pub async fn say(mut to: WriteHalf<DuplexStream>, told: &[u8]) {
    // An end that has heard enough reads no more.
    let _ = to.write_all(told).await;
    let _ = to.shutdown().await;
}

/// Hears until the other end has said all.
pub async fn hear(mut from: impl AsyncReadExt + Unpin, heard: &mut Vec<u8>) {
    while from.read_buf(heard).await.is_ok_and(|read| read > 0) {}
}

/// Octets of which none repeats what is before it for long.
pub fn noise(length: usize) -> Vec<u8> {
    let mut noise = vec![0; length];
    blake3::Hasher::new().finalize_xof().fill(&mut noise);
    noise
}
