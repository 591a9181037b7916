//! Slots in memory and permits to run; both are given back when they are dropped.

use std::sync::Arc;
use std::time::Duration;

use super::bulkheads::Bulkheads;
use super::concurrency_key::{ConcurrencyKey, Pool};

/// A slot in the memory of this process, and the permit of its command once that may run. The next command of the saga inherits
/// both if it has the same concurrency key.
#[derive(Debug)]
pub(crate) struct QueueSlot {
    bulkheads: Arc<Bulkheads>,
    key: ConcurrencyKey,
    /// Whether it counts in no pool.
    is_outside: bool,
    permit: Option<ConcurrencyPermit>,
}

impl QueueSlot {
    pub(crate) fn new(bulkheads: &Arc<Bulkheads>, key: ConcurrencyKey, permit: Option<ConcurrencyPermit>) -> Self {
        Self { bulkheads: Arc::clone(bulkheads), key, is_outside: false, permit }
    }

    /// Whether the next command of the saga may have it.
    pub(crate) fn is_inheritable(&self) -> bool {
        !self.is_outside
    }

    pub(crate) fn concurrency_key(&self) -> ConcurrencyKey {
        self.key
    }

    pub(crate) fn has_permit(&self) -> bool {
        self.permit.is_some()
    }

    /// Lets the command in this slot run.
    pub(crate) fn set_permit(&mut self, permit: Option<ConcurrencyPermit>) {
        self.permit = permit;
    }

    pub(crate) fn take_permit(&mut self) -> Option<ConcurrencyPermit> {
        self.permit.take()
    }

    /// Takes a call out of its pool: no other call waits for it. The limits of its step and of its definition still count
    /// it. Where very many calls have left, it stays, so that the memory of the process is bounded.
    pub(crate) fn leave_pool(&mut self) {
        if self.is_outside || self.key.pool != Pool::Calls || !self.bulkheads.move_slot_outside_pool(self.key) {
            return;
        }
        self.is_outside = true;
        if let Some(permit) = &mut self.permit {
            permit.leave_pool();
        }
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.permit = None;
        self.bulkheads.release_slot(self.key, self.is_outside);
    }
}

/// Whether a command may run now.
#[derive(Debug)]
pub(crate) enum Admission {
    /// No: no permit is free, or a limit is reached.
    Waits,
    /// Yes, with the permit that it holds while it runs, if it needs its own.
    Runs(Option<ConcurrencyPermit>),
}

impl Admission {
    /// Runs if there is a permit.
    pub(crate) fn with(permit: Option<ConcurrencyPermit>) -> Self {
        permit.map_or(Self::Waits, |permit| Self::Runs(Some(permit)))
    }
}

/// The right of a command to run now.
#[derive(Debug)]
pub(crate) struct ConcurrencyPermit {
    bulkheads: Arc<Bulkheads>,
    key: ConcurrencyKey,
    /// When the command began to run; none for one that runs outside the pool.
    began: Option<Duration>,
}

impl ConcurrencyPermit {
    pub(crate) fn new(bulkheads: &Arc<Bulkheads>, key: ConcurrencyKey, began: Option<Duration>) -> Self {
        Self { bulkheads: Arc::clone(bulkheads), key, began }
    }

    fn leave_pool(&mut self) {
        if self.began.take().is_some() {
            self.bulkheads.leave_pool(self.key);
        }
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.bulkheads.release_permit(self.key, self.began);
    }
}
