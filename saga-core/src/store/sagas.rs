//! The duty of keeping sagas.

use async_trait::async_trait;

use super::{
    DefinitionId, Expiry, Failing, HistoryEntry, NewWork, SagaId, Status, StepRecord, StoreError, Timestamp, WorkStatus,
};
use crate::key::{Key, Tenant};

/// A saga to start, with its first command.
#[derive(Debug, Clone)]
pub struct NewSaga {
    /// The row's id.
    pub id: SagaId,
    /// The saga's tenant.
    pub tenant: Tenant,
    /// The caller's idempotency key.
    pub key: Key,
    /// The definition it is started with.
    pub definition: DefinitionId,
    /// The digest of the definition's shape.
    pub digest: [u8; 32],
    /// The encoded input.
    pub input: Vec<u8>,
    /// The hash of the input in canonical order, with the version of the rule in front.
    pub input_hash: Vec<u8>,
    /// Its status: running, compensating, or ended for a saga that is only a tombstone for its key.
    pub status: Status,
    /// The machine's state, opaque to the store.
    pub state: Vec<u8>,
    /// The first commands.
    pub commands: Vec<NewWork>,
    /// How long it is kept, if it has ended and is not kept for ever.
    pub expiry: Option<Box<Expiry>>,
}

impl NewSaga {
    /// A running saga, still without input, state and commands.
    pub(crate) fn new(id: SagaId, tenant: &Tenant, key: Key, definition: DefinitionId, digest: [u8; 32]) -> Self {
        Self {
            id,
            tenant: tenant.clone(),
            key,
            definition,
            digest,
            input: Vec::new(),
            input_hash: Vec::new(),
            status: Status::Running,
            state: Vec::new(),
            commands: Vec::new(),
            expiry: None,
        }
    }

    /// The same saga without its first commands.
    #[must_use]
    pub fn without_commands(&self) -> Self {
        Self {
            commands: Vec::new(),
            id: self.id,
            tenant: self.tenant.clone(),
            key: self.key.clone(),
            definition: self.definition.clone(),
            digest: self.digest,
            input: self.input.clone(),
            input_hash: self.input_hash.clone(),
            status: self.status,
            state: self.state.clone(),
            expiry: self.expiry.clone(),
        }
    }
}

/// The result of a start.
#[derive(Debug, Clone)]
pub enum Started {
    /// The saga is new.
    New,
    /// The key was taken, by this saga. The caller compares definition and hash.
    AlreadyExists(Box<SagaRow>),
}

/// A saga as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SagaRow {
    /// The row's id.
    pub id: SagaId,
    /// The saga's tenant.
    pub tenant: Tenant,
    /// The caller's idempotency key.
    pub key: Key,
    /// The definition it was started with.
    pub definition: DefinitionId,
    /// The digest of the definition's shape.
    pub digest: [u8; 32],
    /// The status.
    pub status: Status,
    /// Counts the saga's advances, for the compare-and-set. A new saga has version 1.
    pub version: u64,
    /// The machine's state.
    pub state: Vec<u8>,
    /// The encoded input.
    pub input: Vec<u8>,
    /// The hash of the input in canonical order.
    pub input_hash: Vec<u8>,
    /// When it was started.
    pub started_at: Timestamp,
    /// When it was last advanced.
    pub advanced_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl SagaRow {
    /// A saga as it is stored when it starts.
    pub fn started(saga: &NewSaga, at: Timestamp) -> Self {
        Self {
            id: saga.id,
            tenant: saga.tenant.clone(),
            key: saga.key.clone(),
            definition: saga.definition.clone(),
            digest: saga.digest,
            status: saga.status,
            version: 1,
            state: saga.state.clone(),
            input: saga.input.clone(),
            input_hash: saga.input_hash.clone(),
            started_at: at,
            advanced_at: at,
            ended_at: saga.status.is_ended().then_some(at),
        }
    }

    /// Whether only its key, outcome and times are kept.
    pub fn is_tombstone(&self) -> bool {
        self.state.is_empty() && self.status.is_ended()
    }
}

/// How far a saga is, without what it carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SagaProgress {
    /// The saga.
    pub saga: SagaId,
    /// The status.
    pub status: Status,
    /// Counts the saga's advances, as [`SagaRow::version`] does.
    pub version: u64,
}

/// Which sagas to list. All conditions that are set must hold.
#[derive(Debug, Clone)]
pub struct SagaFilter {
    /// The tenant of the sagas. The default filter lists the default tenant's.
    pub tenant: Tenant,
    /// Only sagas of this status.
    pub status: Option<Status>,
    /// Only sagas of definitions with this name.
    pub definition: Option<String>,
    /// Only sagas that are no sub-sagas or hosted steps.
    pub top_level: bool,
    /// Only sagas with a step, or a compensation, that is failing.
    pub failing: Option<Failing>,
    /// Only sagas with an id above this one: the next page begins here.
    pub after: Option<SagaId>,
    /// The most sagas to return. The default is 100.
    pub limit: usize,
}

impl Default for SagaFilter {
    fn default() -> Self {
        Self {
            tenant: Tenant::default(),
            status: None,
            definition: None,
            top_level: false,
            failing: None,
            after: None,
            limit: 100,
        }
    }
}

/// What an operator did with a saga, from its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// Its number among the entries of all histories: the next page begins here.
    pub number: i64,
    /// The saga's key.
    pub key: Key,
    /// When the operator acted.
    pub at: Timestamp,
    /// The line.
    pub entry: HistoryEntry,
}

/// Which entries of the audit log to list.
#[derive(Debug, Clone)]
pub struct AuditFilter {
    /// The tenant of the sagas. The default filter lists the default tenant's.
    pub tenant: Tenant,
    /// Only entries with a number below this one: the next page begins here.
    pub before: Option<i64>,
    /// The most entries to return. The default is 100.
    pub limit: usize,
}

impl Default for AuditFilter {
    fn default() -> Self {
        Self { tenant: Tenant::default(), before: None, limit: 100 }
    }
}

/// Keeping sagas.
///
/// # Contract
/// - `S-SAGA-1` [`start`](Sagas::start) inserts the saga with version 1, the given status (a saga that has ended has ended then) and its commands together or not at all. When it returns, both are as durable as the store is.
/// - `S-SAGA-2` Of several starts of one (tenant, key), in one call, in two at once or years apart, exactly one is [`Started::New`]; the others get the stored row and change nothing.
/// - `S-SAGA-3` The answers have the order of the request. A taken key does not prevent the other starts of the call.
/// - `S-SAGA-4` The same key under two tenants is two sagas. No read crosses tenants, except `sagas_by_id` and `progress`, whose ids the engine got from the store.
/// - `S-SAGA-5` [`list`](Sagas::list) orders by id, obeys every field of the filter, and never returns more than `limit`.
/// - `S-SAGA-12` A saga passes [`SagaFilter::failing`] if one of its work rows has a failed attempt, and as many attempts as the filter says or its first failed attempt that long ago by the store's clock.
/// - `S-SAGA-6` [`count`](Sagas::count) counts every saga of the tenant in exactly one status.
/// - `S-SAGA-7` [`orphaned`](Sagas::orphaned) finds every saga of the store that is neither ended nor stuck nor paused and has no work row except that of its deadline (G11).
/// - `S-SAGA-8` Keys of steps that are hosted for another service, `key>step`, are stored like all other keys: read a stored key with [`Key::from_stored`].
/// - `S-SAGA-9` [`audit_log`](Sagas::audit_log) lists the entries of the kind [`HistoryKind::Operator`](super::HistoryKind::Operator) of one tenant's sagas, the latest first, obeys every field of the filter, and never returns more than `limit`. No number is given twice, and a later entry has a higher number.
/// - `S-SAGA-11` [`progress`](Sagas::progress) answers for each of the given sagas that exists, once, the status and the version that [`sagas_by_id`](Sagas::sagas_by_id) would.
/// - `S-SAGA-10` A [`start`](Sagas::start) does not wait long for a key that an open transaction is about to take: within a second it fails with the kind `Conflict`, and nothing of the call is written. Many callers share one call; the engine tries the start that waits again in a call of its own.
#[async_trait]
pub trait Sagas: Send + Sync {
    /// Starts sagas.
    async fn start(&self, sagas: Vec<NewSaga>) -> Result<Vec<Started>, StoreError>;

    /// The saga of that key.
    async fn saga(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaRow>, StoreError>;

    /// The saga of that key, with its step records in the order of their positions and its history, oldest first.
    async fn saga_with_steps(&self, tenant: &Tenant, key: &Key) -> Result<Option<SagaWithSteps>, StoreError>;

    /// The sagas of these ids that exist, in any order.
    async fn sagas_by_id(&self, ids: &[SagaId]) -> Result<Vec<SagaRow>, StoreError>;

    /// How far these sagas are, in any order. The engine asks repeatedly while a caller waits for them, so that it
    /// neither inputs nor states.
    /// neither inputs nor states.
    async fn progress(&self, ids: &[SagaId]) -> Result<Vec<SagaProgress>, StoreError>;

    /// The sagas that pass the filter.
    async fn list(&self, filter: &SagaFilter) -> Result<Vec<SagaRow>, StoreError>;

    /// How many sagas of a tenant are in each status. A status without sagas may be left out.
    async fn count(&self, tenant: &Tenant) -> Result<Vec<(Status, u64)>, StoreError>;

    /// Sagas that wait for nothing: at most `limit` of them. There should be none.
    async fn orphaned(&self, limit: usize) -> Result<Vec<SagaId>, StoreError>;

    /// What operators did with the sagas of a tenant.
    async fn audit_log(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, StoreError>;
}

/// A saga with all that is known of its steps.
#[derive(Debug, Clone)]
pub struct SagaWithSteps {
    /// The saga.
    pub saga: SagaRow,
    /// Its step records, by position.
    pub records: Vec<StepRecord>,
    /// Its history, oldest first.
    pub history: Vec<(Timestamp, HistoryEntry)>,
    /// Its work rows.
    pub work: Vec<WorkStatus>,
    /// When they were read, by the store's clock.
    pub read_at: Timestamp,
}
