//! The server's end of `rove cp`: does what an order says, in the user's home directory.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use rove_streams::{Channel, Streams};
use tokio::io::AsyncWriteExt;

use crate::copy::disk::{Disk, umask};
use crate::copy::message::Message;
use crate::copy::order::Order;
use crate::copy::receiver::Job;
use crate::copy::target::Expected;
use crate::copy::walk::Sources;
use crate::copy::watch::Watch;

/// Serves one copy until it is over, as its order says. What becomes of it is told over the channel.
pub async fn serve(order: &[u8], mut channel: Channel, streams: &Streams, home: &Path) {
    let is_heard = || streams.is_heard();
    let watch = Arc::new(Watch::default());
    match Order::decode(order) {
        Ok(Order::Send { recursive, limit, sources }) => {
            let paths = sources.iter().map(|path| at_home(home, path)).collect();
            let sources = Sources { paths, recursive, patterns: true };
            crate::copy::send(channel.split(), sources, limit, is_heard, watch).await;
        }
        Ok(Order::Receive { receive, target, sources }) => {
            let job = Job {
                target: at_home(home, &target),
                receive,
                expected: sources.iter().map(|source| Expected::of(source)).collect(),
                umask: umask(),
                disk: Disk::default(),
            };
            crate::copy::receive(channel.split(), job, is_heard, watch).await;
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

/// A path that is relative to the home directory, or begins with `~`.
fn at_home(home: &Path, path: &[u8]) -> Vec<u8> {
    let below = match path {
        b"" | b"~" | b"~/" => b".",
        [b'~', b'/', below @ ..] => below,
        [b'/', ..] => return path.to_vec(),
        _ => path,
    };
    [home.as_os_str().as_bytes(), b"/", below].concat()
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
            ("~user/x", "/h/~user/x"),
            ("..", "/h/.."),
        ] {
            let found = at_home(Path::new("/h"), path.as_bytes());
            assert_eq!(found, expected.as_bytes(), "{path}");
        }
    }
}
