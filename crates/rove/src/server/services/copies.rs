//! A server's end of `rove cp`: carries out an order in the user's home directory.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rove_streams::{Channel, Streams};
use tokio::io::AsyncWriteExt;

use crate::copy::disk::Disk;
use crate::copy::held;
use crate::copy::message::Message;
use crate::copy::order::Order;
use crate::copy::receiver::{Job, Waits};
use crate::copy::watch::Watch;
use crate::copy::workers::Workers;
use crate::copy::{Expected, Sources};
use crate::os;
use crate::os::process::umask;

/// Silence of the client after which a part is let go that another copy waits for. Bulk and its acknowledgments come
/// many times a second; who only waits for the network loses nothing, unless the other copy goes on.
const WANTED_SILENCE: Duration = Duration::from_secs(1);

/// Serves one copy until it is over, as its order says, and reports the result over the channel.
pub async fn serve(
    order: &[u8],
    mut channel: Channel,
    streams: &Streams,
    home: &Path,
    waits: Waits,
) {
    let is_there = || !held::is_wanted() || streams.is_heard_within(WANTED_SILENCE);
    let is_heard = || streams.is_heard() && is_there();
    let watch = Arc::new(Watch::default());
    match Order::decode(order) {
        Ok(Order::Send { recursive, limit, sources }) => {
            let Some(paths) = at_homes(home, sources).await else { return };
            let sources = Sources { paths, recursive, patterns: true };
            crate::copy::transfer::send(
                channel.split(),
                sources,
                limit,
                is_heard,
                watch,
                Workers::Threads,
            )
            .await;
        }
        Ok(Order::Receive { receive, target, sources }) => {
            let target = at_homes(home, vec![target]).await.and_then(|mut paths| paths.pop());
            let Some(target) = target else { return };
            let job = Job {
                target,
                receive,
                expected: sources.iter().map(|source| Expected::of(source)).collect(),
                umask: umask(),
                disk: Disk::default(),
                workers: Workers::Threads,
                waits,
            };
            crate::copy::transfer::receive(channel.split(), job, is_heard, watch).await;
        }
        Err(_) => {
            let mut told = Vec::new();
            Message::Fatal(b" this rove copies in another way; update the older of the two")
                .encode(&mut told);
            // Nobody is left to be told if this fails.
            let _ = channel.write_all(&told).await;
            let _ = channel.shutdown().await;
        }
    }
}

/// The absolute paths. Looking up a user may ask a remote directory, so a thread does it.
async fn at_homes(home: &Path, paths: Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>> {
    let home = home.to_owned();
    let found = tokio::task::spawn_blocking(move || {
        paths.iter().map(|path| at_home(&home, path, home_of)).collect()
    });
    found.await.ok()
}

/// Resolves a path that is relative to the home directory, or begins with `~` or `~user`.
fn at_home(home: &Path, path: &[u8], home_of: impl Fn(&[u8]) -> Option<PathBuf>) -> Vec<u8> {
    let beneath = |home: &Path, below: &[u8]| {
        let below = if below.is_empty() { b"." } else { below };
        [home.as_os_str().as_bytes(), b"/", below].concat()
    };
    match path {
        [b'/', ..] => path.to_vec(),
        [b'~', rest @ ..] => {
            let slash = rest.iter().position(|&octet| octet == b'/');
            let (user, below) = rest.split_at(slash.unwrap_or(rest.len()));
            let below = below.strip_prefix(b"/").unwrap_or_default();
            if user.is_empty() {
                return beneath(home, below);
            }
            match home_of(user) {
                Some(home) => beneath(&home, below),
                None => beneath(home, path),
            }
        }
        _ => beneath(home, path),
    }
}

fn home_of(user: &[u8]) -> Option<PathBuf> {
    let name = CString::new(user).ok()?;
    os::account::account_of(&name).map(|account| account.home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_at_home() {
        for (path, expected) in [
            ("", "/h/."),
            ("~", "/h/."),
            ("~/", "/h/."),
            ("~/x", "/h/x"),
            ("x/", "/h/x/"),
            ("/x", "/x"),
            ("~user/x", "/u/x"),
            ("~user", "/u/."),
            ("~other/x", "/h/~other/x"),
            ("x/~user", "/h/x/~user"),
            ("..", "/h/.."),
        ] {
            let home_of = |user: &[u8]| (user == b"user").then(|| PathBuf::from("/u"));
            let found = at_home(Path::new("/h"), path.as_bytes(), home_of);
            assert_eq!(found, expected.as_bytes(), "{path}");
        }
    }
}
