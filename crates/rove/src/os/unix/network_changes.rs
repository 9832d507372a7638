//! Notices that this machine's network has changed: an interface came or went, an address, a route.
//!
//! The kernel reports every such change, and many that change nothing; `net::routes` decides
//! whether it matters to a session.

use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use rustix::net::{RecvFlags, recv};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::os::system;
use crate::os::unix::watch::watch;

/// Messages taken before the socket is asked whether there are more. Tokio bounds how often a task may ask that in
/// one turn; the rest waits in the kernel, which reports when it had to drop some.
const MESSAGES_MAX: usize = 256;

/// A source of network changes.
#[derive(Debug)]
pub struct NetworkChanges {
    socket: AsyncFd<OwnedFd>,
}

impl NetworkChanges {
    /// Starts to listen. Needs a tokio runtime with I/O; a sandbox may forbid it.
    pub(crate) fn watch() -> io::Result<NetworkChanges> {
        NetworkChanges::told_by(system::changes::open()?)
    }

    /// Takes what comes from this socket, which does not block, for the kernel's messages. Needs a tokio runtime
    /// with I/O.
    pub fn told_by(socket: OwnedFd) -> io::Result<NetworkChanges> {
        Ok(NetworkChanges { socket: watch(socket, Interest::READABLE)? })
    }

    /// Waits for a change, and takes all messages about it.
    pub fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut changed = false;
        while let Poll::Ready(ready) = self.socket.poll_read_ready(cx) {
            let Ok(mut guard) = ready else { return Poll::Pending };
            let taken = guard.try_io(|socket| {
                let mut message = [0; 8192];
                for _ in 0..MESSAGES_MAX {
                    match recv(socket.get_ref(), &mut message, RecvFlags::empty()) {
                        // What it says is looked up again anyway, so it is not read.
                        Ok(_) | Err(rustix::io::Errno::NOBUFS) => changed = true,
                        Err(error) => return Err::<(), _>(error.into()),
                    }
                }
                Ok(())
            });
            // When nothing is left, the socket is asked once more: only then does it wake this task at the next
            // message. It may be called readable for one that was taken with those before it.
            if let Ok(Err(_)) = taken {
                break;
            }
        }
        if changed { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use rove_streams::clock;
    use std::future::poll_fn;
    use std::io::Write as _;
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    /// A message may be taken before its arrival is noticed, with those before it: the next one is told all the same.
    #[test]
    fn a_message_after_one_that_was_taken_is_news() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (kernel, ours) = UnixDatagram::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            let same = ours.try_clone().unwrap();
            let mut changes = NetworkChanges::told_by(ours.into()).unwrap();
            kernel.send(b"taken").unwrap();
            tokio::task::yield_now().await;
            same.recv(&mut [0]).unwrap();
            // A task of its own is not polled again before it is woken.
            let told = tokio::spawn(poll_fn(move |cx| changes.poll_change(cx)));
            tokio::task::yield_now().await;
            kernel.send(b"told").unwrap();
            clock::within(Duration::from_secs(30), told).await.unwrap().unwrap();
        });
    }

    #[test]
    fn a_new_address_is_news() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut links = NetworkChanges::watch().unwrap();
            // What else has changed on this machine until now.
            let _ = poll_fn(|cx| Poll::Ready(links.poll_change(cx))).await;
            let address = |verb: &str| {
                let words = ["address", verb, "127.77.0.1/32", "dev", "lo"];
                Command::new("ip").args(words).status().is_ok_and(|status| status.success())
            };
            if !address("add") {
                // Past the test harness, which keeps the words of tests that pass to itself.
                let why = "may not add an address here, so no change is seen";
                let _ = writeln!(io::stderr(), "NOT CHECKED: a_new_address_is_news: {why}");
                return;
            }
            let change = poll_fn(|cx| links.poll_change(cx));
            let seen = clock::within(Duration::from_secs(30), change).await;
            address("del");
            seen.expect("the new address was told");
        });
    }
}
