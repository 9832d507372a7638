//! How the workers of a copy run: each in a thread of its own, or all of them in the task that runs the copy,
//! for simulations in virtual time. They wait in futures alone, so both run the same code.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use rove_streams::clock;

/// Where the workers of a copy run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Workers {
    /// In threads, so that they wait for disks, hash and pack at the same time.
    #[default]
    Threads,
    /// In the task that runs the copy. Its runtime stands still while they use the disk.
    Inline,
}

impl Workers {
    /// Runs the work of one end of a copy, which may block in threads only.
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        match self {
            Workers::Threads => tokio::task::spawn_blocking(|| wait(work)).await.ok(),
            Workers::Inline => Some(work.await),
        }
    }

    /// Does `own` and all `others` at the same time, and returns once all are done. `None` beside the result
    /// means that one of the others died.
    pub(super) async fn join<T>(
        self,
        own: impl Future<Output = T>,
        others: Vec<impl Future<Output = ()> + Send>,
    ) -> (T, Option<()>) {
        match self {
            Workers::Threads => thread::scope(|scope| {
                let others: Vec<_> =
                    others.into_iter().map(|other| scope.spawn(|| wait(other))).collect();
                let own = wait(own);
                // All of them are joined, also after one that died.
                let ends: Vec<_> = others.into_iter().map(|other| other.join().ok()).collect();
                (own, ends.into_iter().collect())
            }),
            Workers::Inline => {
                let others = async { all(others).await };
                let (own, ()) = tokio::join!(own, others);
                (own, Some(()))
            }
        }
    }

    /// Waits this long.
    pub(super) async fn pause(self, span: Duration) {
        match self {
            Workers::Threads => thread::park_timeout(span),
            Workers::Inline => clock::sleep(span).await,
        }
    }
}

/// Waits until all are done.
async fn all(works: Vec<impl Future<Output = ()>>) {
    let mut works: Vec<Pin<Box<_>>> = works.into_iter().map(Box::pin).collect();
    poll_fn(|cx| {
        works.retain_mut(|work| work.as_mut().poll(cx).is_pending());
        if works.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Does this work in the thread that calls, which sleeps while the work waits.
pub(super) fn wait<T>(work: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut cx) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

/// Wakes a thread.
struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
