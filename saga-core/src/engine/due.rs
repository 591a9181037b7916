use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::env::Environment;

/// When to look for work next: the earliest moment that somebody announced.
#[derive(Debug)]
pub(super) struct Due {
    at: Mutex<Duration>,
    earlier: Notify,
}

impl Due {
    pub(super) fn new() -> Self {
        Self { at: Mutex::new(Duration::ZERO), earlier: Notify::new() }
    }

    /// There is something to do at that moment.
    pub(super) fn announce(&self, at: Duration) {
        let mut planned = self.lock();
        if at < *planned {
            *planned = at;
            drop(planned);
            self.earlier.notify_one();
        }
    }

    /// Plans the next look, and waits for it or for an earlier one that is announced meanwhile.
    ///
    /// What is announced between a look and its plan would be lost, so the plan is made before the look: see
    /// [`Due::begin`].
    pub(super) async fn wait(&self, env: &dyn Environment) {
        loop {
            let at = *self.lock();
            let now = env.now();
            if at <= now {
                return;
            }
            tokio::select! {
                biased;
                () = self.earlier.notified() => {}
                () = env.sleep(at.saturating_sub(now)) => {}
            }
        }
    }

    /// Before a look: from now on an announcement is for the next one, which is planned for `at` at the latest.
    pub(super) fn begin(&self, at: Duration) {
        *self.lock() = at;
    }

    fn lock(&self) -> MutexGuard<'_, Duration> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
