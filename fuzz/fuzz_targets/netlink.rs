//! Messages of the kernel's about networks, of any number, contents and length: any at all is told as one change,
//! and none is told twice; what somebody else has taken meanwhile is not told, and the next one still is.
#![no_main]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use libfuzzer_sys::fuzz_target;
use rove::testing::os::NetworkChanges;

/// A step that takes the next message away before it is looked for.
const TAKE: u8 = 0xff;
/// A step that looks for changes.
const LOOK: u8 = 0xfe;
/// Messages that wait at once: half of what the system's shortest queue holds.
const WAITING_MAX: usize = 5;

/// Whether the task was woken.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fuzz_target!(|octets: &[u8]| {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(messages(octets)));
});

async fn messages(mut octets: &[u8]) {
    let (kernel, ours) = UnixDatagram::pair().expect("two sockets");
    kernel.set_nonblocking(true).expect("a socket's mode");
    ours.set_nonblocking(true).expect("a socket's mode");
    let thief = ours.try_clone().expect("another of the same");
    let mut changes = NetworkChanges::told_by(OwnedFd::from(ours)).expect("a runtime with I/O");
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut waiting = 0;
    let mut look = |waiting: &mut usize| {
        bell.0.store(false, Ordering::SeqCst);
        let mut told = 0;
        while changes.poll_change(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
            told += 1;
        }
        assert_eq!(told, usize::from(std::mem::take(waiting) > 0));
    };
    look(&mut waiting);
    while let Some((&step, rest)) = octets.split_first() {
        octets = rest;
        match step {
            TAKE => {
                let taken = thief.recv(&mut [0]);
                assert_eq!(taken.is_ok(), waiting > 0);
                waiting = waiting.saturating_sub(1);
            }
            LOOK => {
                turn().await;
                look(&mut waiting);
            }
            length if waiting < WAITING_MAX => {
                // Up to twice as long as what is read of one.
                let length = usize::from(length) * 64 + rest.len() % 64;
                let message: Vec<u8> = rest.iter().cycle().take(length).copied().collect();
                kernel.send(&message).expect("there is room");
                waiting += 1;
                turn().await;
                assert!(bell.0.load(Ordering::SeqCst), "it is told of");
            }
            _ => {}
        }
    }
    turn().await;
    look(&mut waiting);
}

/// Gives the runtime a turn to hear what has come.
async fn turn() {
    tokio::task::yield_now().await;
}
