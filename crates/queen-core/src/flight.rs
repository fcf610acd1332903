//! What flies together. Requests that share a commit wait in a line of their own kind; a flight takes some of them, and the
//! next starts when it has ended.

use std::sync::{Arc, Weak};

use crate::broker::Inner;

/// A flight on its way. Whatever ends it, a panic included, `end` is called once, unless the broker is gone.
pub(crate) struct Flight<E: FnOnce(&Arc<Inner>)> {
    pub(crate) inner: Weak<Inner>,
    end: Option<E>,
}

impl<E: FnOnce(&Arc<Inner>)> Flight<E> {
    pub(crate) fn new(inner: &Arc<Inner>, end: E) -> Self {
        Flight { inner: Arc::downgrade(inner), end: Some(end) }
    }
}

impl<E: FnOnce(&Arc<Inner>)> Drop for Flight<E> {
    fn drop(&mut self) {
        if let (Some(inner), Some(end)) = (self.inner.upgrade(), self.end.take()) {
            end(&inner);
        }
    }
}
