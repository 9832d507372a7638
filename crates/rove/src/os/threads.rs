//! Threads beside the first, which alone is interrupted by signals.

use std::io;
use std::thread::{Builder, JoinHandle};

use crate::os::family::signals;

/// Begins a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let work = move || {
        signals::leave_to_first();
        work()
    };
    Builder::new().name(name.to_owned()).spawn(work)
}
