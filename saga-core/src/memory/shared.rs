//! What the handles and the connections of a store share.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::clock::Clock;
use super::tables::data::Data;
use crate::store::Timestamp;

/// The data, the clock, and the signal that a transaction has ended.
pub(super) struct Shared {
    data: Mutex<Data>,
    unlocked: Notify,
    pub(super) clock: Clock,
}

impl Shared {
    pub(super) fn new(clock: Clock) -> Self {
        Self { data: Mutex::new(Data::default()), unlocked: Notify::new(), clock }
    }

    /// The data. A panic leaves it consistent, because every change is made after all checks.
    pub(super) fn lock(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A transaction has ended: calls that wait for its locks try again.
    pub(super) fn wake(&self) {
        self.unlocked.notify_waiters();
    }

    /// Repeats the attempt until it returns a value. The data is not locked while it waits.
    pub(super) async fn when_unlocked<T>(&self, mut attempt: impl FnMut(&mut Data, Timestamp) -> Option<T>) -> T {
        if let Some(answer) = attempt(&mut self.lock(), self.now()) {
            return answer;
        }
        loop {
            let mut unlocked = pin!(self.unlocked.notified());
            // Registered before the attempt, so that the end of a transaction in between is not missed.
            unlocked.as_mut().enable();
            if let Some(answer) = attempt(&mut self.lock(), self.now()) {
                return answer;
            }
            unlocked.await;
        }
    }
}
