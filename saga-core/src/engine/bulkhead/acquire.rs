//! Taking slots and permits.

use std::sync::Arc;

use super::bulkheads::Bulkheads;
use super::concurrency_key::ConcurrencyKey;
use super::permits::{ConcurrencyPermit, QueueSlot};

impl Bulkheads {
    /// A slot, if one is free.
    pub(crate) fn try_acquire_slot(self: &Arc<Self>, key: ConcurrencyKey) -> Option<QueueSlot> {
        let mut state = self.lock();
        if self.room(&state, key) == 0 {
            state.is_work_left = true;
            return None;
        }
        state.slots.enter_pool(key);
        state.slots.enter_limits(key);
        drop(state);
        Some(QueueSlot::new(self, key, None))
    }

    /// A slot for a command that this process has claimed, whether or not one is free.
    pub(crate) fn acquire_slot(self: &Arc<Self>, key: ConcurrencyKey) -> QueueSlot {
        let mut state = self.lock();
        state.slots.enter_pool(key);
        state.slots.enter_limits(key);
        drop(state);
        QueueSlot::new(self, key, None)
    }

    /// A permit, if one is free for this command.
    pub(crate) fn try_acquire_permit(self: &Arc<Self>, key: ConcurrencyKey) -> Option<ConcurrencyPermit> {
        let mut state = self.lock();
        let users = self.limits.users[key.pool as usize];
        let has_share = state.permits.of_definition(key) < self.sizes.permits_of_one(key.pool)
            && state.permits.fair_room(key, self.sizes.permits(key.pool, users), users) > 0;
        if !has_share || !self.is_within_limits(&state, key) {
            return None;
        }
        state.permits.enter_pool(key);
        state.permits.enter_limits(key);
        drop(state);
        Some(ConcurrencyPermit::new(self, key, Some(self.time())))
    }

    /// A permit that does not count in the pool, if the limits of the step and of the definition allow it.
    pub(crate) fn try_acquire_outside_pool(self: &Arc<Self>, key: ConcurrencyKey) -> Option<ConcurrencyPermit> {
        let mut state = self.lock();
        if !self.is_within_limits(&state, key) {
            return None;
        }
        state.permits.enter_limits(key);
        drop(state);
        Some(ConcurrencyPermit::new(self, key, None))
    }
}
