//! The slots and permits of all definitions and steps.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::capacity::{Capacity, PoolSizes};
use super::claim_plan::ClaimPlan;
use super::concurrency_key::{ConcurrencyKey, ConcurrencyLimits, Pool};
use crate::env::Environment;
use crate::saga::Definition;
use crate::store::{DefinitionId, Store};
use crate::unwind::caught;

/// Counts the commands that this process holds and runs, by pool, definition and step.
pub(crate) struct Bulkheads {
    pub(crate) limits: Arc<ConcurrencyLimits>,
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
    pub(super) capacity: Capacity,
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
        let limits = Arc::new(ConcurrencyLimits::of(definitions));
        let state = State { capacity: Capacity::new(Arc::clone(&limits), sizes), is_work_left: false };
        Arc::new(Self { limits, env, state: Mutex::new(state), freed: Notify::new(), queues, outside })
    }

    /// What to claim; `None` if no slot is free. `is_fair`: each definition gets a part of the claim, however long the work of
    /// others has been due.
    pub(crate) fn plan(&self, known: &[DefinitionId], is_fair: bool) -> Option<ClaimPlan> {
        let mut state = self.lock();
        let plan = ClaimPlan::new(known, &self.limits, is_fair, |key| state.capacity.room(key));
        state.is_work_left = plan.is_work_left;
        (!plan.is_empty()).then_some(plan)
    }

    /// By definition, how many slots are no longer worth having because calls became slow. Up to twice what is worth having is
    /// kept, since releasing a command and claiming it again costs two statements.
    pub(crate) fn surplus(&self) -> Vec<usize> {
        self.lock().capacity.surplus()
    }

    /// Waits for a free slot for which the store may have work.
    ///
    /// # Cancel safety
    /// When dropped, no notification is lost.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    pub(crate) fn release_slot(&self, key: ConcurrencyKey, is_outside: bool) {
        let mut state = self.lock();
        state.capacity.return_slot(key, is_outside);
        let is_work_left = state.is_work_left;
        drop(state);
        if is_work_left {
            self.freed.notify_one();
        }
    }

    /// Counts a slot outside its pool; false where there are too many such slots, so that it stays there.
    pub(crate) fn move_slot_outside_pool(&self, key: ConcurrencyKey) -> bool {
        let mut state = self.lock();
        let has_left = state.capacity.move_slot_outside_pool(key);
        let is_wanted = has_left && state.is_work_left;
        drop(state);
        if is_wanted {
            self.freed.notify_one();
        }
        has_left
    }

    pub(crate) fn leave_pool(&self, key: ConcurrencyKey) {
        self.lock().capacity.leave_pool(key);
        self.queues[key.pool as usize].notify_one();
    }

    pub(crate) fn release_permit(&self, key: ConcurrencyKey, began: Option<Duration>) {
        let took = began.map(|began| self.time().saturating_sub(began));
        self.lock().capacity.return_permit(key, took);
        if self.limits.is_limited(key) {
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
        f.debug_struct("Bulkheads").field("state", &self.state).finish_non_exhaustive()
    }
}
