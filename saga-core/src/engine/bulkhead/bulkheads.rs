//! The slots and permits of all definitions and steps.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::call_duration::CallDuration;
use super::claim_plan::ClaimPlan;
use super::concurrency_key::{ConcurrencyKey, ConcurrencyLimits, Pool};
use super::usage::{SHARES, Usage};
use crate::env::Environment;
use crate::machine::Effect;
use crate::saga::Definition;
use crate::store::{DefinitionId, Store};
use crate::unwind::caught;

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
    pub(super) fn permits(&self, pool: Pool, users: usize) -> usize {
        match pool {
            Pool::Transactions => self.transactions,
            Pool::Calls if users > 1 => self.calls + self.calls.div_ceil(SHARES),
            Pool::Calls => self.calls,
        }
    }

    /// How many of them one definition can have.
    pub(super) fn permits_of_one(&self, pool: Pool) -> usize {
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

/// Counts the commands that this process holds and runs, by pool, definition and step.
pub(crate) struct Bulkheads {
    pub(super) limits: ConcurrencyLimits,
    pub(super) sizes: PoolSizes,
    env: Arc<dyn Environment>,
    state: Mutex<State>,
    /// Notified when a slot is released while the store has work that found none.
    freed: Notify,
    /// By pool, the queue whose commands wait for permits.
    queues: [Arc<Notify>; 2],
    /// The queues whose commands run outside the pools.
    outside: [Arc<Notify>; 2],
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) slots: Usage,
    pub(super) permits: Usage,
    pub(super) call_durations: Vec<CallDuration>,
    /// Whether the store may have work that found no slot here.
    pub(super) is_work_left: bool,
}

impl Bulkheads {
    pub(crate) fn new<'a, S: Store>(
        definitions: impl IntoIterator<Item = &'a Arc<Definition<S>>>,
        sizes: PoolSizes,
        env: Arc<dyn Environment>,
        queues: [Arc<Notify>; 2],
        outside: [Arc<Notify>; 2],
    ) -> Arc<Self> {
        let limits = ConcurrencyLimits::of(definitions);
        let (definitions, steps) = (limits.definition_limits.len(), limits.step_limits.len());
        let state = State {
            slots: Usage::new(definitions, steps),
            permits: Usage::new(definitions, steps),
            call_durations: vec![CallDuration::default(); definitions],
            is_work_left: false,
        };
        Arc::new(Self { limits, sizes, env, state: Mutex::new(state), freed: Notify::new(), queues, outside })
    }

    /// The concurrency key of a command for the step with this index, or for an item of it.
    pub(crate) fn concurrency_key(
        &self,
        definition: &DefinitionId,
        step: usize,
        is_undo: bool,
        effect: Effect,
    ) -> ConcurrencyKey {
        self.limits.concurrency_key(definition, step, is_undo, effect)
    }

    /// Whether the step or the definition sets a limit.
    pub(crate) fn is_limited(&self, key: ConcurrencyKey) -> bool {
        key.has_step_limit() || self.definition_limit(key).is_some()
    }

    /// What to claim; `None` if no slot is free. `is_fair`: each definition gets a part of the claim, however long the work of
    /// others has been due.
    pub(crate) fn plan(&self, known: &[DefinitionId], is_fair: bool) -> Option<ClaimPlan> {
        let mut state = self.lock();
        let plan = ClaimPlan::new(known, &self.limits, is_fair, |key| self.room(&state, key));
        state.is_work_left = plan.is_work_left;
        (!plan.is_empty()).then_some(plan)
    }

    /// By definition, how many slots are no longer worth having because calls became slow. Up to twice what is worth having is
    /// kept, since releasing a command and claiming it again costs two statements.
    pub(crate) fn surplus(&self) -> Vec<usize> {
        let state = self.lock();
        let of = |(definition, duration): (u32, &CallDuration)| {
            let held = state.slots.of_definition(ConcurrencyKey { pool: Pool::Calls, definition, step: None });
            let worth = duration.slots(self.sizes.calls);
            if held > worth.saturating_mul(2) { held - worth } else { 0 }
        };
        (0..).zip(&state.call_durations).map(of).collect()
    }

    /// Waits for a free slot for which the store may have work.
    ///
    /// # Cancel safety
    /// When dropped, no notification is lost.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// How many more commands with this key may have a slot.
    pub(super) fn room(&self, state: &State, key: ConcurrencyKey) -> usize {
        let users = self.limits.users[key.pool as usize];
        let mut room = state.slots.fair_room(key, self.sizes.slots, users);
        if let (Pool::Calls, Some(duration)) = (key.pool, state.call_durations.get(key.definition as usize)) {
            let worth = duration.slots(self.sizes.calls);
            room = room.min(worth.saturating_sub(state.slots.of_definition(key)));
        }
        if let Some(limit) = self.definition_limit(key) {
            let most = self.sizes.slots_for(key.pool, limit);
            room = room.min(most.saturating_sub(state.slots.of_limited(key, false)));
        }
        if let Some(step) = key.step {
            let most = self.sizes.slots_for(key.pool, self.step_limit(step));
            room = room.min(most.saturating_sub(state.slots.of_step(step)));
        }
        room
    }

    pub(super) fn is_within_limits(&self, state: &State, key: ConcurrencyKey) -> bool {
        key.step.is_none_or(|step| state.permits.of_step(step) < self.step_limit(step))
            && self.definition_limit(key).is_none_or(|limit| state.permits.of_limited(key, true) < limit)
    }

    fn step_limit(&self, step: u32) -> usize {
        self.limits.step_limits.get(step as usize).copied().unwrap_or(usize::MAX)
    }

    fn definition_limit(&self, key: ConcurrencyKey) -> Option<usize> {
        self.limits.definition_limits.get(key.definition as usize).copied().flatten()
    }

    pub(crate) fn release_slot(&self, key: ConcurrencyKey) {
        let mut state = self.lock();
        state.slots.leave_pool(key);
        state.slots.leave_limits(key);
        let is_work_left = state.is_work_left;
        drop(state);
        if is_work_left {
            self.freed.notify_one();
        }
    }

    /// Counts a slot of a call in the pool of transactions, for which no call waits.
    pub(crate) fn move_slot_outside_pool(&self, key: ConcurrencyKey) -> ConcurrencyKey {
        let outside = ConcurrencyKey { pool: Pool::Transactions, ..key };
        let mut state = self.lock();
        state.slots.leave_pool(key);
        state.slots.leave_limits(key);
        state.slots.enter_pool(outside);
        state.slots.enter_limits(outside);
        let is_work_left = state.is_work_left;
        drop(state);
        if is_work_left {
            self.freed.notify_one();
        }
        outside
    }

    pub(crate) fn leave_pool(&self, key: ConcurrencyKey) {
        self.lock().permits.leave_pool(key);
        self.queues[key.pool as usize].notify_one();
    }

    pub(crate) fn release_permit(&self, key: ConcurrencyKey, began: Option<Duration>) {
        let took = began.map(|began| self.time().saturating_sub(began));
        let mut state = self.lock();
        state.permits.leave_limits(key);
        if let Some(took) = took {
            state.permits.leave_pool(key);
            if let (Pool::Calls, Some(duration)) = (key.pool, state.call_durations.get_mut(key.definition as usize)) {
                duration.took(took);
            }
        }
        drop(state);
        if self.is_limited(key) {
            self.queues.iter().chain(&self.outside).for_each(|queue| queue.notify_one());
        } else if took.is_some() && key.pool == Pool::Calls {
            // The transaction workers notify their queue themselves.
            self.queues[key.pool as usize].notify_one();
        }
    }

    /// The time, even if the environment panics: a permit must be released in any case.
    pub(super) fn time(&self) -> Duration {
        caught(|| self.env.now()).unwrap_or_default()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Bulkheads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bulkheads").field("sizes", &self.sizes).field("state", &self.state).finish_non_exhaustive()
    }
}
