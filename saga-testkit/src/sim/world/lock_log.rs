//! What the store answered to those that asked for locks.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use saga_core::store::{LockAnswer, SagaId};

use super::fault::Fault;

/// Who waits for a lock: the service, the saga, the name of the lock.
pub(crate) type Asked = (u8, SagaId, String);

/// The requests that wait.
#[derive(Debug, Default)]
pub(crate) struct LockLog {
    waiting: Mutex<BTreeSet<Asked>>,
}

impl LockLog {
    /// Notes an answer, and says what it shows.
    pub(crate) fn note(&self, asked: Asked, answer: &LockAnswer) -> Option<Fault> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let has_waited = waiting.remove(&asked);
        match answer {
            LockAnswer::Granted(_) => has_waited.then_some(Fault::LockHandedOver),
            LockAnswer::Waits(_) => {
                waiting.insert(asked);
                (!has_waited).then_some(Fault::LockWaited)
            }
            LockAnswer::TimedOut(_) => Some(Fault::LockTimedOut),
            LockAnswer::Deadlock(_) => Some(Fault::Deadlock),
            LockAnswer::Gone => None,
        }
    }
}
