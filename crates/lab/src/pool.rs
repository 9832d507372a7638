//! Runs the same work for many items on a few threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The results of `work` for all items, in the order of the items; this number of threads take one item after the
/// other.
pub(crate) fn each<I: Sync, O: Send>(
    threads: usize,
    items: &[I],
    work: impl Fn(&I) -> O + Sync,
) -> Vec<O> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<O>>> = Mutex::new(items.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(place) else { break };
                    let result = work(item);
                    done.lock().expect("no thread panics with it")[place] = Some(result);
                }
            });
        }
    });
    let done = done.into_inner().expect("no thread panics with it");
    done.into_iter().map(|result| result.expect("each item was worked on")).collect()
}
