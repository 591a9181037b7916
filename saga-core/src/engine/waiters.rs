use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use super::outcome::{Outcome, outcome_of};
use super::shared::Shared;
use crate::machine::SagaState;
use crate::store::{SagaId, SagaRow, Store};

/// How many sagas are asked for at a time.
const CHUNK: usize = 500;

/// Who waits for which saga.
#[derive(Debug)]
pub(super) struct Waiters {
    slots: Mutex<BTreeMap<SagaId, Weak<Slot>>>,
}

/// Where the outcome of one saga arrives.
#[derive(Debug)]
pub(super) struct Slot {
    outcome: Mutex<Option<Outcome>>,
    changed: Notify,
}

impl Waiters {
    pub(super) fn new() -> Self {
        Self { slots: Mutex::default() }
    }

    /// The slot of a saga; it is kept as long as somebody holds it.
    pub(super) fn slot(&self, saga: SagaId) -> Arc<Slot> {
        let mut slots = self.lock();
        if let Some(slot) = slots.get(&saga).and_then(Weak::upgrade) {
            return slot;
        }
        let slot = Arc::new(Slot { outcome: Mutex::default(), changed: Notify::new() });
        slots.insert(saga, Arc::downgrade(&slot));
        slot
    }

    pub(super) fn tell(&self, saga: SagaId, outcome: Option<Outcome>) {
        let slot = self.lock().get(&saga).and_then(Weak::upgrade);
        if let Some(slot) = slot {
            slot.set(outcome);
        }
    }

    fn open(&self) -> Vec<SagaId> {
        let mut slots = self.lock();
        slots.retain(|_, slot| slot.strong_count() > 0);
        let is_open = |slot: &Weak<Slot>| slot.upgrade().is_some_and(|slot| !slot.has_ended());
        slots.iter().filter(|(_, slot)| is_open(slot)).map(|(saga, _)| *saga).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SagaId, Weak<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The outcome that satisfies the condition, as soon as there is one.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(super) async fn outcome(&self, is_enough: impl Fn(&Outcome) -> bool) -> Outcome {
        loop {
            let changed = self.changed.notified();
            if let Some(outcome) = self.lock().as_ref().filter(|outcome| is_enough(outcome)) {
                return outcome.clone();
            }
            changed.await;
        }
    }

    fn set(&self, outcome: Option<Outcome>) {
        *self.lock() = outcome;
        self.changed.notify_waiters();
    }

    fn has_ended(&self) -> bool {
        self.lock().as_ref().is_some_and(|outcome| !matches!(outcome, Outcome::Stuck { .. }))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outcome>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> Shared<S> {
    /// Asks the store what became of sagas that somebody waits for and that others may have ended.
    pub(super) async fn watch(&self) {
        // What ends in this process is told at once; the store is asked for the rest.
        let pause = if self.store.capabilities().shared { 1 } else { 10 };
        loop {
            self.env.sleep(pause * self.settings.poll_interval).await;
            let open = self.waiters.open();
            for chunk in open.chunks(CHUNK) {
                match self.store.sagas_by_id(chunk).await {
                    Ok(rows) => {
                        self.store_works("watch");
                        for row in &rows {
                            self.tell_of(row);
                        }
                    }
                    Err(error) => self.store_failed("watch", &error),
                }
            }
        }
    }

    pub(super) fn tell_of(&self, row: &SagaRow) {
        let outcome = self.outcome_of_row(row);
        if outcome.is_some() {
            self.waiters.tell(row.id, outcome);
        }
    }

    pub(super) fn outcome_of_row(&self, row: &SagaRow) -> Option<Outcome> {
        let definition = self.definitions.get(&row.definition)?;
        match SagaState::decode(&row.state, definition.steps.len()) {
            Ok(state) => outcome_of(&definition.shape, &state),
            Err(reason) => Some(Outcome::Stuck { step: String::new(), reason }),
        }
    }
}
