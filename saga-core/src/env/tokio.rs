use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{BoxFuture, Environment};

/// The environment of production: the tokio runtime that it was made in.
#[derive(Debug)]
pub struct TokioEnvironment {
    handle: tokio::runtime::Handle,
    origin: tokio::time::Instant,
    seed: RandomState,
    drawn: AtomicU64,
}

impl TokioEnvironment {
    /// The environment of the tokio runtime that runs the caller.
    ///
    /// # Errors
    /// When the caller does not run inside a tokio runtime.
    pub fn current() -> Result<Self, tokio::runtime::TryCurrentError> {
        let handle = tokio::runtime::Handle::try_current()?;
        Ok(Self { handle, origin: tokio::time::Instant::now(), seed: RandomState::new(), drawn: AtomicU64::new(0) })
    }
}

impl Environment for TokioEnvironment {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.handle.spawn(task);
    }

    /// Drawn from the standard library's randomly keyed hasher: good enough for jitter and for ids that must differ,
    /// and no secret depends on it.
    fn random(&self) -> u64 {
        let mut hasher = self.seed.build_hasher();
        hasher.write_u64(self.drawn.fetch_add(1, Ordering::Relaxed));
        hasher.finish()
    }
}
