//! The clock: what goes on, who sleeps until when, and how both change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use super::kinds::{SleepId, SleepKind, TimeStatistics, UnitId, UnitKind, Woken};
use super::state::{Sleep, State, UnitState, Within};
use crate::sim::splitmix64;

/// One clock. Wakers are called and dropped while it is not locked: both may run code that uses it.
pub(crate) struct Clock {
    state: Mutex<State>,
}

impl Clock {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State::default()) })
    }

    pub(crate) fn now(&self) -> Duration {
        self.lock().now
    }

    pub(super) fn statistics(&self) -> TimeStatistics {
        self.lock().statistics
    }

    /// How far the clock is about to move, while every process is made to look once before that.
    pub(super) fn next_jump(&self) -> Duration {
        let state = self.lock();
        state.looked_until.map_or(Duration::ZERO, |until| until.saturating_sub(state.now))
    }

    /// A look found something: there may be more.
    pub(super) fn has_found(&self) {
        self.lock().has_moved();
    }

    pub(super) fn next_seed(&self) -> u64 {
        let mut state = self.lock();
        splitmix64(&mut state.seed)
    }

    pub(super) fn begin(&self, kind: UnitKind, parent: Option<UnitId>) -> UnitId {
        let mut state = self.lock();
        let id = UnitId(state.next_id());
        let within = match parent.and_then(|parent| Some((parent, state.units.get(&parent)?.kind))) {
            None => Within::Test,
            Some((parent, UnitKind::Call)) => Within::Call(parent),
            Some(_) => Within::Task,
        };
        let unit = UnitState::new(kind, within);
        if kind == UnitKind::Store {
            state.statistics.calls += 1;
        }
        if unit.lets_pass() {
            state.waiting += 1;
            state.has_moved();
        }
        if let (UnitKind::Waiting, Within::Call(step)) = (kind, within) {
            state.fall_asleep(step);
        }
        state.units.insert(id, unit);
        state.update(id);
        id
    }

    pub(super) fn end(&self, id: UnitId) {
        let mut state = self.lock();
        let Some(unit) = state.units.remove(&id) else { return };
        state.active -= usize::from(unit.is_active);
        state.waiting -= usize::from(unit.lets_pass());
        if let (UnitKind::Waiting, Within::Call(step)) = (unit.kind, unit.within) {
            state.wake_up(step);
        }
        settle(state);
    }

    pub(super) fn begin_poll(&self, id: UnitId) {
        let mut state = self.lock();
        if let Some(unit) = state.units.get_mut(&id) {
            (unit.is_polled, unit.is_woken) = (true, false);
            state.update(id);
        }
    }

    pub(super) fn end_poll(&self, id: UnitId) {
        let mut state = self.lock();
        if let Some(unit) = state.units.get_mut(&id) {
            unit.is_polled = false;
            state.update(id);
        }
        settle(state);
    }

    /// A unit is ready to run.
    pub(super) fn woken(&self, id: UnitId) {
        self.lock().wake_unit(id);
    }

    pub(super) fn add_sleep(&self, until: Duration, kind: SleepKind, owner: Option<UnitId>) -> SleepId {
        let mut state = self.lock();
        let owner = owner.and_then(|owner| Some((owner, state.units.get(&owner)?.kind)));
        let id = SleepId(state.next_id());
        let mut sleep = Sleep::new(until, kind, owner.map(|(owner, _)| owner));
        match (kind, owner) {
            (SleepKind::OfStep | SleepKind::Advance, Some((owner, UnitKind::Call | UnitKind::Transaction))) => {
                sleep.of_call = Some(owner);
                state.fall_asleep(owner);
            }
            (SleepKind::Advance, _) | (SleepKind::OfStep, None) => {
                sleep.lets_pass = true;
                state.waiting += 1;
                state.has_moved();
            }
            _ => {}
        }
        state.sleeps.insert(id, sleep);
        id
    }

    pub(super) fn poll_sleep(&self, id: SleepId, waker: &Waker) -> Woken {
        let mut state = self.lock();
        let now = state.now;
        let Some(sleep) = state.sleeps.get_mut(&id) else { return Woken::AtEnd };
        if let Some(woken) = sleep.woken_at(now) {
            let old = state.remove_sleep(id);
            settle(state);
            drop(old);
            return woken;
        }
        let old = sleep.waker.replace(waker.clone());
        // A test that awaits it is no task, whose poll would end.
        settle(state);
        drop(old);
        Woken::NotYet
    }

    pub(super) fn drop_sleep(&self, id: SleepId) {
        let mut state = self.lock();
        let old = state.remove_sleep(id);
        settle(state);
        drop(old);
    }

    /// Whether a unit runs inside a transaction of a store that waits for it.
    pub(super) fn has_store_waiting(&self, unit: Option<UnitId>) -> bool {
        let state = self.lock();
        let is_in_transaction =
            unit.and_then(|unit| state.units.get(&unit)).is_some_and(|unit| unit.kind == UnitKind::Transaction);
        is_in_transaction && state.units.values().any(|unit| unit.kind == UnitKind::Store)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets time pass if it may.
fn settle(mut state: MutexGuard<'_, State>) {
    let woken = state.pass();
    drop(state);
    woken.into_iter().for_each(Waker::wake);
}
