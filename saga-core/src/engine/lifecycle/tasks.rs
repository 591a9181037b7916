//! Counts the work in flight, so that a shutdown can wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The count of the work in flight.
#[derive(Debug, Clone)]
pub(crate) struct Tasks {
    shared: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    under_way: AtomicUsize,
    idle: Notify,
}

/// Counts as work in flight until it is dropped.
#[derive(Debug)]
pub(crate) struct TaskGuard(Arc<Inner>);

impl Tasks {
    pub(crate) fn new() -> Self {
        Self { shared: Arc::new(Inner { under_way: AtomicUsize::new(0), idle: Notify::new() }) }
    }

    pub(crate) fn enter(&self) -> TaskGuard {
        self.shared.under_way.fetch_add(1, Ordering::AcqRel);
        TaskGuard(Arc::clone(&self.shared))
    }

    /// Whether no work is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.under_way.load(Ordering::Acquire) == 0
    }

    /// Waits until no work is in flight.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.shared.idle.notified();
            if self.shared.under_way.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
