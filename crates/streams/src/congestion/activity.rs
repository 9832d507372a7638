//! Tells the controller that the user types beside the bulk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether the user types beside the bulk. The shell marks it, the controllers read it; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Activity(Arc<AtomicU64>);

impl Activity {
    /// A key was typed, or answered.
    pub fn mark_interactive(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
