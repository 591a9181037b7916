//! Callers in this process that wait for the outcome of a saga.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use super::outcome::Outcome;
use crate::store::{SagaId, SagaProgress, Status};

/// How many sagas are asked for at a time.
pub(crate) const CHUNK: usize = 500;

/// The store is polled again after this fraction of the time that a caller has waited.
const PATIENCE: u32 = 100;

/// The longest pause between two questions about one saga.
const LOOK_MAX: Duration = Duration::from_secs(2);

/// After how many reads without its row a saga counts as lost: one of them may have gone to a server that lags behind.
const ABSENT_MAX: u32 = 3;

/// Who waits for which saga.
#[derive(Debug)]
pub(crate) struct Waiters {
    slots: Mutex<BTreeMap<SagaId, Weak<OutcomeSlot>>>,
}

/// Where the outcome of one saga arrives.
#[derive(Debug, Default)]
pub(crate) struct OutcomeSlot {
    outcome: Mutex<Option<Outcome>>,
    changed: Notify,
    watched: Mutex<Watched>,
    /// Whether a caller waits that knows the saga to be durable.
    is_awaited: AtomicBool,
    /// How many reads in turn did not find its row.
    absent: AtomicU32,
    /// How often this process learned that the saga moved.
    moves: AtomicU64,
}

/// What is known of a saga that a caller waits for.
#[derive(Debug, Default)]
struct Watched {
    /// Since when the store is asked for it.
    since: Option<Duration>,
    /// When it is asked again.
    next: Duration,
    /// The version whose outcome was read last.
    version: u64,
    /// The version that the store was last seen to have.
    seen: u64,
}

/// The saga is not in the store any more.
#[derive(Debug)]
pub(crate) struct Gone;

impl Waiters {
    pub(crate) fn new() -> Self {
        Self { slots: Mutex::default() }
    }

    /// The slot of a saga. It exists as long as a caller holds it.
    pub(crate) fn slot(&self, saga: SagaId) -> Arc<OutcomeSlot> {
        let mut slots = self.lock();
        if let Some(slot) = slots.get(&saga).and_then(Weak::upgrade) {
            return slot;
        }
        let slot = Arc::new(OutcomeSlot::default());
        slots.insert(saga, Arc::downgrade(&slot));
        slot
    }

    pub(crate) fn tell(&self, saga: SagaId, outcome: Option<Outcome>) {
        let slot = self.lock().get(&saga).and_then(Weak::upgrade);
        if let Some(slot) = slot {
            slot.set(outcome);
        }
    }

    /// The saga goes on: that it was stuck is no longer true.
    pub(crate) fn goes_on(&self, saga: SagaId) {
        if let Some(slot) = self.lock().get(&saga).and_then(Weak::upgrade) {
            slot.goes_on();
        }
    }

    /// Takes note of which of the sagas asked for have a row; answers how many turn out to be lost.
    pub(crate) fn looked_for(&self, asked: &[SagaId], found: &[SagaProgress]) -> usize {
        let found: BTreeSet<SagaId> = found.iter().map(|standing| standing.saga).collect();
        let slots = self.lock();
        let slot = |saga: &SagaId| Some((slots.get(saga)?.upgrade()?, found.contains(saga)));
        asked.iter().filter_map(slot).filter(|(slot, is_there)| slot.looked_for(*is_there)).count()
    }

    /// Tells the callers that wait for a change of these sagas, where one has moved since the store was asked before.
    pub(crate) fn moved(&self, found: &[SagaProgress]) {
        for standing in found {
            let slot = self.lock().get(&standing.saga).and_then(Weak::upgrade);
            if let Some(slot) = slot.filter(|slot| slot.is_ahead(standing.version)) {
                if goes_on(standing.status) {
                    slot.goes_on();
                }
                slot.count_move();
            }
        }
    }

    /// The sagas that the store is to be asked for now; with `all`, also those for which it was asked a short time ago.
    pub(crate) fn due(&self, now: Duration, all: bool) -> Vec<SagaId> {
        let mut slots = self.lock();
        slots.retain(|_, slot| slot.strong_count() > 0);
        let is_due = |slot: &Weak<OutcomeSlot>| {
            slot.upgrade().is_some_and(|slot| !slot.has_ended() && (slot.is_due(now) || all))
        };
        slots.iter().filter(|(_, slot)| is_due(slot)).map(|(saga, _)| *saga).collect()
    }

    /// Whether what the saga carries is to be read: it may have an outcome, and has moved since that was read last.
    pub(crate) fn is_news(&self, standing: &SagaProgress) -> bool {
        let slot = self.lock().get(&standing.saga).and_then(Weak::upgrade);
        !goes_on(standing.status) && slot.is_some_and(|slot| slot.watched().version != standing.version)
    }

    /// What the saga carried at this version was read.
    pub(crate) fn was_read(&self, saga: SagaId, version: u64) {
        if let Some(slot) = self.lock().get(&saga).and_then(Weak::upgrade) {
            slot.watched().version = version;
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<SagaId, Weak<OutcomeSlot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a saga in this status has no outcome.
pub(crate) fn goes_on(status: Status) -> bool {
    matches!(status, Status::Running | Status::Compensating)
}

impl OutcomeSlot {
    /// The outcome that satisfies the condition, as soon as there is one. Only who knows that the saga was committed may
    /// ask.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(crate) async fn outcome(&self, is_enough: impl Fn(&Outcome) -> bool) -> Result<Outcome, Gone> {
        self.is_awaited.store(true, Ordering::Release);
        loop {
            let changed = self.changed.notified();
            if let Some(outcome) = self.lock().as_ref().filter(|outcome| is_enough(outcome)) {
                return Ok(outcome.clone());
            }
            if self.is_lost() {
                return Err(Gone);
            }
            changed.await;
        }
    }

    /// How often this process has learned so far that the saga moved.
    pub(crate) fn moves(&self) -> u64 {
        self.moves.load(Ordering::Acquire)
    }

    /// Waits until this process has learned of more moves than these, or of the loss of the saga. Only a caller that knows
    /// that the saga was committed may ask.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(crate) async fn moved_since(&self, moves: u64) {
        self.is_awaited.store(true, Ordering::Release);
        loop {
            let changed = self.changed.notified();
            if self.moves() != moves || self.is_lost() {
                return;
            }
            changed.await;
        }
    }

    fn count_move(&self) {
        self.moves.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Whether the store has another version of the saga than before; it is remembered.
    fn is_ahead(&self, version: u64) -> bool {
        std::mem::replace(&mut self.watched().seen, version) != version
    }

    /// Takes note of whether the saga's row was found; answers whether it turns out to be lost.
    pub(crate) fn looked_for(&self, is_there: bool) -> bool {
        if is_there {
            self.absent.store(0, Ordering::Release);
            return false;
        }
        // A saga that is only being started has no row yet.
        if !self.is_awaited.load(Ordering::Acquire) {
            return false;
        }
        let is_new = self.absent.fetch_add(1, Ordering::AcqRel) + 1 == ABSENT_MAX;
        if is_new {
            self.changed.notify_waiters();
        }
        is_new
    }

    fn is_lost(&self) -> bool {
        self.absent.load(Ordering::Acquire) >= ABSENT_MAX
    }

    pub(crate) fn set(&self, outcome: Option<Outcome>) {
        *self.lock() = outcome;
        self.count_move();
    }

    /// Forgets that the saga was stuck.
    fn goes_on(&self) {
        _ = self.lock().take_if(|outcome| matches!(outcome, Outcome::Stuck { .. }));
    }

    fn has_ended(&self) -> bool {
        self.lock().as_ref().is_some_and(|outcome| !matches!(outcome, Outcome::Stuck { .. }))
    }

    /// Whether the store is to be polled now. The longer a caller has waited, the less a short delay matters.
    fn is_due(&self, now: Duration) -> bool {
        let mut watched = self.watched();
        let since = *watched.since.get_or_insert(now);
        let is_due = watched.next <= now;
        if is_due {
            watched.next = now.saturating_add((now.saturating_sub(since) / PATIENCE).min(LOOK_MAX));
        }
        is_due
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Outcome>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
