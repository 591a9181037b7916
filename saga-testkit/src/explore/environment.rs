use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use saga_core::env::{BoxFuture, Environment};
use tokio::task::AbortHandle;

/// The factor by which the time of an explored runtime runs faster than real time.
pub const SPEED: u32 = 20;

/// The environment of one life of a process: tokio's tasks, faster, and all of them can be ended at once.
#[derive(Debug)]
pub(super) struct Mortal {
    origin: tokio::time::Instant,
    tasks: Mutex<Vec<AbortHandle>>,
    drawn: Mutex<u64>,
}

impl Mortal {
    pub(super) fn new(seed: u64) -> Self {
        Self { origin: tokio::time::Instant::now(), tasks: Mutex::default(), drawn: Mutex::new(seed) }
    }

    /// Ends every task at its await, as SIGKILL would.
    pub(super) fn kill(&self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}

impl Environment for Mortal {
    fn now(&self) -> Duration {
        self.origin.elapsed() * SPEED
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration / SPEED))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let handle = tokio::spawn(task).abort_handle();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push(handle);
    }

    fn random(&self) -> u64 {
        crate::sim::splitmix64(&mut self.drawn.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
