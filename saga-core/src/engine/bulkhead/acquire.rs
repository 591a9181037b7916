//! Taking slots and permits.

use std::sync::Arc;

use super::bulkheads::Bulkheads;
use super::concurrency_key::ConcurrencyKey;
use super::permits::{ConcurrencyPermit, QueueSlot};

impl Bulkheads {
    /// A slot, if one is free.
    pub(crate) fn try_acquire_slot(self: &Arc<Self>, key: ConcurrencyKey) -> Option<QueueSlot> {
        let mut state = self.lock();
        if state.capacity.room(key) == 0 {
            state.is_work_left = true;
            return None;
        }
        state.capacity.take_slot(key);
        drop(state);
        Some(QueueSlot::new(self, key, None))
    }

    /// A slot for a command that this process has claimed, whether or not one is free.
    pub(crate) fn acquire_slot(self: &Arc<Self>, key: ConcurrencyKey) -> QueueSlot {
        self.lock().capacity.take_slot(key);
        QueueSlot::new(self, key, None)
    }

    /// A permit, if one is free for this command.
    pub(crate) fn try_acquire_permit(self: &Arc<Self>, key: ConcurrencyKey) -> Option<ConcurrencyPermit> {
        let mut state = self.lock();
        if !state.capacity.may_run(key) {
            return None;
        }
        state.capacity.take_permit(key);
        drop(state);
        Some(ConcurrencyPermit::new(self, key, Some(self.time())))
    }

    /// A permit that does not count in the pool, if the limits of the step and of the definition allow it.
    pub(crate) fn try_acquire_outside_pool(self: &Arc<Self>, key: ConcurrencyKey) -> Option<ConcurrencyPermit> {
        let mut state = self.lock();
        if !state.capacity.may_run_outside_pool(key) {
            return None;
        }
        state.capacity.take_permit_outside_pool(key);
        drop(state);
        Some(ConcurrencyPermit::new(self, key, None))
    }
}
