//! Which slots and permits are taken, and how many more there may be.

use std::sync::Arc;
use std::time::Duration;

use super::call_duration::CallDuration;
use super::concurrency_key::{ConcurrencyKey, ConcurrencyLimits, Pool};
use super::usage::{SHARES, Usage};

/// How many slots and permits a process has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolSizes {
    /// Slots of each pool.
    pub(crate) slots: usize,
    /// Permits for transactions.
    pub(crate) transactions: usize,
    /// Permits for the external calls of one definition.
    pub(crate) calls: usize,
    /// How many commands one transaction carries.
    pub(crate) batch_max: usize,
}

impl PoolSizes {
    /// The permits of a pool that `users` definitions share. One definition can have all the calls of the setting; a seventh
    /// more is left for the others.
    fn permits(&self, pool: Pool, users: usize) -> usize {
        match pool {
            Pool::Transactions => self.transactions,
            Pool::Calls if users > 1 => self.calls + self.calls.div_ceil(SHARES),
            Pool::Calls => self.calls,
        }
    }

    /// How many of them one definition can have.
    fn permits_of_one(&self, pool: Pool) -> usize {
        match pool {
            Pool::Transactions => self.transactions,
            Pool::Calls => self.calls,
        }
    }

    /// How many slots to keep for commands that a limit lets run `limit` at a time.
    fn slots_for(&self, pool: Pool, limit: usize) -> usize {
        match pool {
            Pool::Transactions => limit.saturating_add(1).saturating_mul(self.batch_max),
            Pool::Calls => limit.saturating_mul(2),
        }
    }
}

/// The slots and permits of a process, against its limits.
#[derive(Debug)]
pub(super) struct Capacity {
    limits: Arc<ConcurrencyLimits>,
    sizes: PoolSizes,
    slots: Usage,
    /// How many slots count in no pool.
    outside: usize,
    permits: Usage,
    call_durations: Vec<CallDuration>,
}

impl Capacity {
    pub(super) fn new(limits: Arc<ConcurrencyLimits>, sizes: PoolSizes) -> Self {
        let (definitions, steps) = (limits.definition_limits.len(), limits.step_limits.len());
        Self {
            limits,
            sizes,
            slots: Usage::new(definitions, steps),
            outside: 0,
            permits: Usage::new(definitions, steps),
            call_durations: vec![CallDuration::default(); definitions],
        }
    }

    /// How many more commands with this key may have a slot.
    pub(super) fn room(&self, key: ConcurrencyKey) -> usize {
        let users = self.limits.users[key.pool as usize];
        let mut room = self.slots.fair_room(key, self.sizes.slots, users);
        if let (Pool::Calls, Some(duration)) = (key.pool, self.call_durations.get(key.definition as usize)) {
            let worth = duration.slots(self.sizes.calls);
            room = room.min(worth.saturating_sub(self.slots.of_definition(key)));
        }
        if let Some(limit) = self.limits.of_definition(key) {
            let most = self.sizes.slots_for(key.pool, limit);
            room = room.min(most.saturating_sub(self.slots.of_limited(key, false)));
        }
        if let Some(step) = key.step {
            let most = self.sizes.slots_for(key.pool, self.limits.of_step(step));
            room = room.min(most.saturating_sub(self.slots.of_step(step)));
        }
        room
    }

    pub(super) fn take_slot(&mut self, key: ConcurrencyKey) {
        self.slots.enter_pool(key);
        self.slots.enter_limits(key);
    }

    /// Counts a slot in its pool no longer, but still against the limits. There are as many such slots as a pool has: false where
    /// all are taken.
    pub(super) fn move_slot_outside_pool(&mut self, key: ConcurrencyKey) -> bool {
        if self.outside >= self.sizes.slots {
            return false;
        }
        self.outside += 1;
        self.slots.leave_pool(key);
        true
    }

    pub(super) fn return_slot(&mut self, key: ConcurrencyKey, is_outside: bool) {
        if is_outside {
            self.outside -= 1;
        } else {
            self.slots.leave_pool(key);
        }
        self.slots.leave_limits(key);
    }

    /// By definition, how many slots are no longer worth having because calls became slow.
    pub(super) fn surplus(&self) -> Vec<usize> {
        let of = |(definition, duration): (u32, &CallDuration)| {
            let held = self.slots.of_definition(ConcurrencyKey { pool: Pool::Calls, definition, step: None });
            let worth = duration.slots(self.sizes.calls);
            if held > worth.saturating_mul(2) { held - worth } else { 0 }
        };
        (0..).zip(&self.call_durations).map(of).collect()
    }

    /// Whether a command with this key may run now, in its pool.
    pub(super) fn may_run(&self, key: ConcurrencyKey) -> bool {
        let users = self.limits.users[key.pool as usize];
        self.permits.of_definition(key) < self.sizes.permits_of_one(key.pool)
            && self.permits.fair_room(key, self.sizes.permits(key.pool, users), users) > 0
            && self.may_run_outside_pool(key)
    }

    /// Whether the limits of the step and of the definition let a command with this key run now.
    pub(super) fn may_run_outside_pool(&self, key: ConcurrencyKey) -> bool {
        key.step.is_none_or(|step| self.permits.of_step(step) < self.limits.of_step(step))
            && self.limits.of_definition(key).is_none_or(|limit| self.permits.of_limited(key, true) < limit)
    }

    /// Counts a command that runs: in its pool, and against the limits of its step and of its definition.
    pub(super) fn take_permit(&mut self, key: ConcurrencyKey) {
        self.permits.enter_pool(key);
        self.permits.enter_limits(key);
    }

    /// Counts a command that runs outside its pool.
    pub(super) fn take_permit_outside_pool(&mut self, key: ConcurrencyKey) {
        self.permits.enter_limits(key);
    }

    /// Counts a command that runs in its pool no longer there, but still against the limits.
    pub(super) fn leave_pool(&mut self, key: ConcurrencyKey) {
        self.permits.leave_pool(key);
    }

    /// The command no longer runs. `took`: how long it did, if it ran in its pool to the end.
    pub(super) fn return_permit(&mut self, key: ConcurrencyKey, took: Option<Duration>) {
        self.permits.leave_limits(key);
        let Some(took) = took else { return };
        self.permits.leave_pool(key);
        if let (Pool::Calls, Some(duration)) = (key.pool, self.call_durations.get_mut(key.definition as usize)) {
            duration.took(took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    #[test]
    fn calls_outside_their_pool_take_no_slot_of_another_pool() {
        let sizes = PoolSizes { slots: 2, transactions: 1, calls: 1, batch_max: 1 };
        let mut capacity = Capacity::new(Arc::new(ConcurrencyLimits::of::<MemoryStore>([])), sizes);
        let key = |pool| ConcurrencyKey { pool, definition: 0, step: None };
        for _ in 0..2 {
            capacity.take_slot(key(Pool::Calls));
            assert!(capacity.move_slot_outside_pool(key(Pool::Calls)));
        }
        assert_eq!((capacity.room(key(Pool::Calls)), capacity.room(key(Pool::Transactions))), (2, 2));
        capacity.take_slot(key(Pool::Calls));
        assert!(!capacity.move_slot_outside_pool(key(Pool::Calls)), "there are as many outside as a pool has");
        assert_eq!(capacity.room(key(Pool::Calls)), 1);
        capacity.return_slot(key(Pool::Calls), true);
        assert!(capacity.move_slot_outside_pool(key(Pool::Calls)));
    }
}
