//! The clock of a store in a test: it moves when the test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use saga_core::env::{BoxFuture, Environment};

/// How far the clock was moved, in microseconds. A store in a database adds it to the database's clock; the store in memory
/// has no other one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock(pub(crate) Arc<AtomicI64>);

impl Clock {
    pub(crate) fn advance(&self, duration: Duration) {
        self.0.fetch_add(i64::try_from(duration.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

impl Environment for Clock {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::SeqCst).unsigned_abs())
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    fn random(&self) -> u64 {
        0
    }
}
