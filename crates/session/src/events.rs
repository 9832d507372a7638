//! Events that wait to be polled.

use alloc::collections::VecDeque;
use core::mem::discriminant;

/// Events in the order in which they came. Of each kind only the newest waits, so there are never more than kinds.
#[derive(Debug)]
pub(crate) struct Events<E>(VecDeque<E>);

impl<E> Events<E> {
    pub(crate) fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(crate) fn push(&mut self, event: E) {
        self.0.retain(|queued| discriminant(queued) != discriminant(&event));
        self.0.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<E> {
        self.0.pop_front()
    }
}
