use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use saga_core::env::{BoxFuture, Environment};

/// A clock that goes on when it is told to.
#[derive(Debug, Default)]
pub(crate) struct ManualClock {
    micros: AtomicU64,
}

impl ManualClock {
    pub(crate) fn advance(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::SeqCst);
    }

    /// Sets it back by a duration by which it was advanced.
    pub(super) fn go_back(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_sub(micros, Ordering::SeqCst);
    }
}

impl Environment for ManualClock {
    fn now(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::SeqCst))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    fn random(&self) -> u64 {
        self.micros.load(Ordering::SeqCst)
    }
}
