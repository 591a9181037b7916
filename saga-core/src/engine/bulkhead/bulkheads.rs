//! The slots and permits of all definitions and steps.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::call_duration::CallDuration;
use super::claim_plan::ClaimPlan;
use super::concurrency_key::{ConcurrencyKey, Pool, Seats};
use super::usage::{SHARES, Usage};
use crate::env::Environment;
use crate::machine::Effect;
use crate::saga::Definition;
use crate::store::{DefinitionId, Store};
use crate::unwind::caught;

/// How much there is of everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Places of each pool.
    pub(crate) places: usize,
    /// Lines for transactions.
    pub(crate) transactions: usize,
    /// Lines for calls.
    pub(crate) calls: usize,
    /// How many commands one transaction carries.
    pub(crate) batch_max: usize,
}

impl Sizes {
    /// How many lines there are for so many definitions. Of calls each definition can have all that were asked for; beside
    /// these there are some that none can take alone.
    pub(super) fn lines(&self, pool: Pool, users: usize) -> usize {
        match pool {
            Pool::Transactions => self.transactions,
            Pool::Calls if users > 1 => self.calls + self.calls.div_ceil(SHARES),
            Pool::Calls => self.calls,
        }
    }

    /// How many of them one definition can have.
    pub(super) fn lines_of_one(&self, pool: Pool) -> usize {
        match pool {
            Pool::Transactions => self.transactions,
            Pool::Calls => self.calls,
        }
    }

    /// How many commands have a place of which only `limit` run at a time: those that come next wait here.
    fn places_for(&self, pool: Pool, limit: usize) -> usize {
        match pool {
            Pool::Transactions => limit.saturating_add(1).saturating_mul(self.batch_max),
            Pool::Calls => limit.saturating_mul(2),
        }
    }
}

/// Who has a place in this process, and who runs.
pub(crate) struct Bulkheads {
    pub(super) seats: Seats,
    pub(super) sizes: Sizes,
    env: Arc<dyn Environment>,
    state: Mutex<State>,
    /// A place was given back while there was work that had found none.
    freed: Notify,
    /// By pool, where commands wait for a line.
    queues: [Arc<Notify>; 2],
    /// Where those wait that hold no line of a pool.
    beside: [Arc<Notify>; 2],
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) places: Usage,
    pub(super) lines: Usage,
    pub(super) paces: Vec<CallDuration>,
    /// Whether there may be work in the store that found no place here.
    pub(super) is_short: bool,
}

impl Bulkheads {
    pub(crate) fn new<'a, S: Store>(
        definitions: impl IntoIterator<Item = &'a Arc<Definition<S>>>,
        sizes: Sizes,
        env: Arc<dyn Environment>,
        queues: [Arc<Notify>; 2],
        beside: [Arc<Notify>; 2],
    ) -> Arc<Self> {
        let seats = Seats::of(definitions);
        let (definitions, steps) = (seats.definition_limits.len(), seats.step_limits.len());
        let state = State {
            places: Usage::new(definitions, steps),
            lines: Usage::new(definitions, steps),
            paces: vec![CallDuration::default(); definitions],
            is_short: false,
        };
        Arc::new(Self { seats, sizes, env, state: Mutex::new(state), freed: Notify::new(), queues, beside })
    }

    /// The seat of a command for the step of that index, or for an item of it.
    pub(crate) fn seat(&self, definition: &DefinitionId, step: usize, is_undo: bool, effect: Effect) -> ConcurrencyKey {
        self.seats.seat(definition, step, is_undo, effect)
    }

    /// Whether its step or its saga set a limit.
    pub(crate) fn is_limited(&self, seat: ConcurrencyKey) -> bool {
        seat.has_step_limit() || self.definition_limit(seat).is_some()
    }

    /// What to claim: nothing where there is room for nothing. `is_fair`: each definition gets a part of the claim,
    /// however long the work of others has been due.
    pub(crate) fn plan(&self, known: &[DefinitionId], is_fair: bool) -> Option<ClaimPlan> {
        let mut state = self.lock();
        let plan = ClaimPlan::new(known, &self.seats, is_fair, |seat| self.room(&state, seat));
        state.is_short = plan.is_short;
        (!plan.is_empty()).then_some(plan)
    }

    /// By definition, how many commands have a place that is not worth it any more, because calls became slow. A little too
    /// much is kept: what is given back and taken again costs two statements.
    pub(crate) fn surplus(&self) -> Vec<usize> {
        let state = self.lock();
        let of = |(definition, pace): (u32, &CallDuration)| {
            let held = state.places.of_definition(ConcurrencyKey { pool: Pool::Calls, definition, step: None });
            let worth = pace.places(self.sizes.calls);
            if held > worth.saturating_mul(2) { held - worth } else { 0 }
        };
        (0..).zip(&state.paces).map(of).collect()
    }

    /// Ends when a place is free for which there may be work in the store.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped before it ended.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// How many more commands of that seat may have a place.
    pub(super) fn room(&self, state: &State, seat: ConcurrencyKey) -> usize {
        let users = self.seats.users[seat.pool as usize];
        let mut room = state.places.fair_room(seat, self.sizes.places, users);
        if let (Pool::Calls, Some(pace)) = (seat.pool, state.paces.get(seat.definition as usize)) {
            let worth = pace.places(self.sizes.calls);
            room = room.min(worth.saturating_sub(state.places.of_definition(seat)));
        }
        if let Some(limit) = self.definition_limit(seat) {
            let most = self.sizes.places_for(seat.pool, limit);
            room = room.min(most.saturating_sub(state.places.of_limited(seat, false)));
        }
        if let Some(step) = seat.step {
            let most = self.sizes.places_for(seat.pool, self.step_limit(step));
            room = room.min(most.saturating_sub(state.places.of_step(step)));
        }
        room
    }

    pub(super) fn is_within_limits(&self, state: &State, seat: ConcurrencyKey) -> bool {
        seat.step.is_none_or(|step| state.lines.of_step(step) < self.step_limit(step))
            && self.definition_limit(seat).is_none_or(|limit| state.lines.of_limited(seat, true) < limit)
    }

    fn step_limit(&self, step: u32) -> usize {
        self.seats.step_limits.get(step as usize).copied().unwrap_or(usize::MAX)
    }

    fn definition_limit(&self, seat: ConcurrencyKey) -> Option<usize> {
        self.seats.definition_limits.get(seat.definition as usize).copied().flatten()
    }

    pub(crate) fn leave_place(&self, seat: ConcurrencyKey) {
        let mut state = self.lock();
        state.places.leave_pool(seat);
        state.places.leave_limits(seat);
        let is_short = state.is_short;
        drop(state);
        if is_short {
            self.freed.notify_one();
        }
    }

    /// Counts a place among those that no call waits for.
    pub(crate) fn move_beside(&self, seat: ConcurrencyKey) -> ConcurrencyKey {
        let beside = ConcurrencyKey { pool: Pool::Transactions, ..seat };
        let mut state = self.lock();
        state.places.leave_pool(seat);
        state.places.leave_limits(seat);
        state.places.enter_pool(beside);
        state.places.enter_limits(beside);
        let is_short = state.is_short;
        drop(state);
        if is_short {
            self.freed.notify_one();
        }
        beside
    }

    pub(crate) fn leave_pool(&self, seat: ConcurrencyKey) {
        self.lock().lines.leave_pool(seat);
        self.queues[seat.pool as usize].notify_one();
    }

    pub(crate) fn leave_line(&self, seat: ConcurrencyKey, began: Option<Duration>) {
        let took = began.map(|began| self.time().saturating_sub(began));
        let mut state = self.lock();
        state.lines.leave_limits(seat);
        if let Some(took) = took {
            state.lines.leave_pool(seat);
            if let (Pool::Calls, Some(pace)) = (seat.pool, state.paces.get_mut(seat.definition as usize)) {
                pace.took(took);
            }
        }
        drop(state);
        if self.is_limited(seat) {
            self.queues.iter().chain(&self.beside).for_each(|queue| queue.notify_one());
        } else if took.is_some() && seat.pool == Pool::Calls {
            // A worker of transactions tells of its end itself.
            self.queues[seat.pool as usize].notify_one();
        }
    }

    /// The time where that cannot panic, whatever the environment does: a line that is taken is given back.
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
