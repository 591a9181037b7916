use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saga_core::key::{Key, Tenant};
use saga_core::memory::MemoryStore;
use saga_core::store::{
    Changes, ClaimedWork, DeadLetterId, DefinitionId, Hint, Hints, KeptLock, LeasedLane, Listener, LockRequest,
    MemberId, MessageId, NewWork, StepId, WorkId, WorkRef,
};

use super::StoreFlaw;
use super::clock::ManualClock;
use crate::VirtualTime;

/// A memory store with a flaw, or with none.
#[derive(Debug, Clone)]
pub struct FaultyStore {
    pub(super) inner: MemoryStore,
    pub(super) clock: Arc<ManualClock>,
    pub(super) flaw: Option<StoreFlaw>,
    pub(super) noted: Arc<Mutex<Noted>>,
}

/// What a flaw has to remember.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) tenants: BTreeSet<Tenant>,
    pub(super) definitions: BTreeSet<DefinitionId>,
    /// The newest epoch of each row.
    pub(super) epochs: BTreeMap<WorkId, u64>,
    /// By how much the epochs that are shown lag behind.
    pub(super) lags: BTreeMap<WorkId, u64>,
    pub(super) last_claim: Vec<ClaimedWork>,
    pub(super) running: Vec<ClaimedWork>,
    /// The rows whose steps have no record, by step key.
    pub(super) waiting: BTreeMap<(Tenant, Key, StepId), ClaimedWork>,
    pub(super) recorded: Vec<ClaimedWork>,
    pub(super) lanes: BTreeMap<u8, LeasedLane>,
    /// Who a member that was revived is now.
    pub(super) revived: BTreeMap<MemberId, MemberId>,
    /// The newest note on each dead letter.
    pub(super) notes: BTreeMap<DeadLetterId, String>,
    /// The ids of the messages that were given to the outbox.
    pub(super) sent: BTreeSet<MessageId>,
    /// The newest epoch of the maintenance lease.
    pub(super) maintenance: u64,
    /// The requests for semantic locks that wait.
    pub(super) waits: Vec<LockRequest>,
    /// The locks that were granted.
    pub(super) granted: Vec<LockRequest>,
    /// The locks that are kept behind the transaction.
    pub(super) kept: Vec<KeptLock>,
    /// What is to be written behind the transaction.
    pub(super) stashed: Vec<Changes>,
}

impl FaultyStore {
    pub(super) fn new(flaw: Option<StoreFlaw>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let inner = MemoryStore::with_environment(Arc::<ManualClock>::clone(&clock)).with_hints();
        Self { inner, clock, flaw, noted: Arc::default() }
    }

    /// A store with this flaw, or with none, on this time: for explorations. The suites have a clock of their own.
    pub fn on_time(time: &VirtualTime, flaw: Option<StoreFlaw>) -> Self {
        Self { inner: MemoryStore::with_environment(time.environment()).with_hints(), ..Self::new(flaw) }
    }

    /// What is in it.
    pub fn memory(&self) -> &MemoryStore {
        &self.inner
    }

    pub(super) fn has(&self, flaw: StoreFlaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub(super) fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The row as the inner store knows it.
    pub(super) fn inward(&self, work: WorkRef) -> WorkRef {
        let noted = self.noted();
        if self.has(StoreFlaw::IgnoresTheEpoch) || self.has(StoreFlaw::GrantsAnyEpoch) {
            return WorkRef { epoch: noted.epochs.get(&work.id).copied().unwrap_or(work.epoch), ..work };
        }
        WorkRef { epoch: work.epoch + noted.lags.get(&work.id).copied().unwrap_or(0), ..work }
    }

    /// Remembers a command that is inserted.
    pub(super) fn note_command(&self, command: &NewWork) {
        let mut noted = self.noted();
        noted.epochs.insert(command.id, 1);
        let row = ClaimedWork {
            work: WorkRef { id: command.id, epoch: 2 },
            kind: command.kind,
            saga: command.saga,
            step: command.step.clone(),
            attempts: 0,
            in_doubt: false,
            recovered: false,
            began: false,
            retrying_for: None,
            payload: None,
            late: None,
            reported: None,
        };
        noted.waiting.insert((command.tenant.clone(), command.key.clone(), command.step.clone()), row);
    }
}

impl Hints for FaultyStore {
    fn hint(&self, hint: Hint) {
        if !self.has(StoreFlaw::LosesHints) {
            self.inner.hint(hint);
        }
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        self.inner.listen()
    }
}
