//! What was purged, as the stores show it: what stood there before, and what is left.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::{Purge, Records, SagaId, SagaRow, SagaWithSteps, Sagas, Status};
use saga_core::{Key, Tenant};

use crate::checker::{Age, Standing, What};
use crate::sim::sagas::{SimInput, place_of};

/// A purge whose commit is unknown is decided within this time.
const DECIDED_WITHIN: Duration = Duration::from_secs(15);

/// Looks at the stores around each purge. Nothing disturbs these looks.
#[derive(Debug)]
pub(crate) struct PurgeLog {
    /// By the numbers of the services.
    stores: Vec<MemoryStore>,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// Sagas in full as they stood before a purge, by service and id: as they stood before the last one.
    seen: BTreeMap<(u8, SagaId), SagaWithSteps>,
    /// Purges of which it is not known yet what became of them.
    expected: Vec<Expected>,
    /// The sagas of the scenario that are tombstones or deleted.
    ages: BTreeMap<u32, Age>,
    is_hosted_kept: bool,
}

/// A saga that is about to be purged.
#[derive(Debug, Clone)]
struct Expected {
    service: u8,
    /// The saga, and its sub-sagas behind it.
    family: Vec<SagaWithSteps>,
    until: Duration,
}

impl PurgeLog {
    pub(crate) fn new(stores: Vec<MemoryStore>) -> Self {
        Self { stores, book: Mutex::default() }
    }

    /// The data of a service.
    pub(crate) fn store(&self, service: u8) -> &MemoryStore {
        &self.stores[usize::from(service)]
    }

    /// Looks at what is about to be purged.
    pub(crate) async fn expect(&self, now: Duration, service: u8, sagas: impl Iterator<Item = SagaId>) {
        let until = now + DECIDED_WITHIN;
        for id in sagas {
            let family = self.store(service).whole_sagas(&[id]).await.unwrap_or_default();
            let mut book = self.lock();
            for whole in family.iter().filter(|whole| !whole.saga.is_tombstone()) {
                book.seen.insert((service, whole.saga.id), whole.clone());
            }
            book.expected.retain(|other| other.service != service || other.id() != Some(id));
            book.expected.push(Expected { service, family, until });
        }
    }

    /// Looks at what has become of it, and says what is gone, once.
    pub(crate) async fn settle(&self, now: Duration) -> Vec<What> {
        let expected = self.lock().expected.clone();
        let mut gone = Vec::new();
        for purge in expected {
            let Some(entries) = self.outcome(now, &purge).await else { continue };
            let mut book = self.lock();
            let before = book.expected.len();
            book.expected.retain(|other| other.service != purge.service || other.id() != purge.id());
            // Another task has seen it meanwhile.
            if book.expected.len() == before {
                continue;
            }
            for entry in &entries {
                if let What::Purged { service: 0, saga, row: 0, age, .. } = entry {
                    book.ages.insert(*saga, *age);
                }
            }
            gone.extend(entries);
        }
        gone
    }

    /// Whether a host keeps a closed step for another hour, which is longer than a schedule, since an open dead letter or a
    /// message names it. The store is asked, since the process that purged may have crashed behind its commit.
    pub(crate) fn is_hosted_kept(&self) -> bool {
        self.lock().is_hosted_kept
    }

    /// What is gone of it; nothing while it may still be purged.
    async fn outcome(&self, now: Duration, purge: &Expected) -> Option<Vec<What>> {
        let over = (now > purge.until).then(Vec::new);
        let Some((outer, subs)) = purge.family.split_first() else { return Some(Vec::new()) };
        let (tenant, key) = (&outer.saga.tenant, &outer.saga.key);
        let row = self.row(purge.service, tenant, key).await.filter(|row| row.id == outer.saga.id);
        let age = match &row {
            None => Age::Deleted,
            Some(row) if row.is_tombstone() && !outer.saga.is_tombstone() => Age::Tombstone,
            Some(row) if purge.service > 0 && !self.is_due(purge.service, row.id).await => {
                self.lock().is_hosted_kept = true;
                return Some(Vec::new());
            }
            Some(_) => return over,
        };
        let mut entries = vec![self.entry(purge.service, outer, age).await];
        for sub in subs {
            entries.push(self.entry(purge.service, sub, Age::Deleted).await);
        }
        Some(entries)
    }

    async fn entry(&self, service: u8, before: &SagaWithSteps, age: Age) -> What {
        let (tenant, key) = (&before.saga.tenant, &before.saga.key);
        let row = self.row(service, tenant, key).await.filter(|row| row.id == before.saga.id);
        let is_gone = match age {
            Age::Deleted => row.is_none(),
            Age::Tombstone => row.is_some_and(|row| row.is_tombstone()),
        };
        let records = self.store(service).records_of(tenant, key).await.unwrap_or_default();
        let is_left = |record| before.records.contains(record);
        What::Purged {
            service,
            saga: self.saga_of(service, before),
            row: row_of(service, key),
            revision: before.saga.version,
            age,
            was_tombstone: before.saga.is_tombstone(),
            standing: standing_of(before.saga.status),
            is_whole: is_gone && !records.iter().any(is_left),
        }
    }

    async fn is_due(&self, service: u8, id: SagaId) -> bool {
        let due = self.store(service).expired(usize::MAX).await.unwrap_or_default();
        due.iter().any(|expired| expired.id == id)
    }

    async fn row(&self, service: u8, tenant: &Tenant, key: &Key) -> Option<SagaRow> {
        self.store(service).saga(tenant, key).await.ok().flatten()
    }

    /// The place in the scenario of the saga that a row is about. A tombstone has lost its input.
    fn saga_of(&self, service: u8, row: &SagaWithSteps) -> u32 {
        let book = self.lock();
        let full = book.seen.get(&(service, row.saga.id)).unwrap_or(row);
        saga_in(&full.saga.input).unwrap_or(u32::MAX)
    }

    /// A saga of the scenario, or a step that is hosted for it, as it stood in full before it was purged.
    pub(crate) fn before(&self, service: u8, tenant: &Tenant, key: &Key, saga: u32) -> Option<SagaWithSteps> {
        let book = self.lock();
        let mut seen = book.seen.iter().filter(|((of, _), _)| *of == service).map(|(_, whole)| whole);
        let is_it = |whole: &&SagaWithSteps| {
            (&whole.saga.tenant, &whole.saga.key) == (tenant, key) && saga_in(&whole.saga.input) == Some(saga)
        };
        seen.find(is_it).cloned()
    }

    /// How much of that saga of the scenario is left, where it was purged.
    pub(crate) fn age(&self, saga: u32) -> Option<Age> {
        self.lock().ages.get(&saga).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Expected {
    fn id(&self) -> Option<SagaId> {
        self.family.first().map(|whole| whole.saga.id)
    }
}

/// The saga of the scenario that an input belongs to.
pub(crate) fn saga_in(input: &[u8]) -> Option<u32> {
    serde_json::from_slice::<SimInput>(input).ok().map(|input| input.saga)
}

/// The number of a row in the ledger: 0 is a saga, the last one its sub-saga, and the others are hosted steps.
pub(crate) fn row_of(service: u8, key: &Key) -> u8 {
    match key.as_str().rsplit_once('>') {
        None => 0,
        Some(_) if service == 0 => u8::MAX,
        Some((_, step)) => place_of(step).map_or(u8::MAX, |place| place + 1),
    }
}

fn standing_of(status: Status) -> Standing {
    match status {
        Status::Completed => Standing::Completed,
        Status::Compensated => Standing::Compensated,
        Status::Stuck => Standing::Stuck,
        Status::Running | Status::Compensating | Status::Paused => Standing::Unfinished,
    }
}
