//! Purging: what ended long ago becomes a tombstone, and then is deleted.

use std::time::Duration;

use async_trait::async_trait;

use super::{
    DefinitionId, Expiry, KnownSaga, MemberId, SagaId, SagaRow, SagaWithSteps, Status, StoreError, Unclosed,
    UnclosedFilter,
};
use crate::key::{Key, Tenant};

/// What becomes of an ended saga when its time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextAge {
    /// Its payloads, step records and history are deleted; its key, input hash, outcome, times and audit log stay.
    Tombstone,
    /// All of it is deleted. Its key is new again.
    Deleted,
}

/// A saga whose time is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredSaga {
    /// The saga.
    pub id: SagaId,
    /// Its tenant.
    pub tenant: Tenant,
    /// Its key.
    pub key: Key,
    /// Its version, by which a saga is recognised that was reopened since.
    pub version: u64,
    /// What becomes of it.
    pub next: NextAge,
    /// The services that did steps of it.
    pub hosts: Vec<String>,
}

impl ExpiredSaga {
    /// A saga whose row this is.
    pub fn of_row(row: &SagaRow, next: NextAge, hosts: Vec<String>) -> Self {
        Self { id: row.id, tenant: row.tenant.clone(), key: row.key.clone(), version: row.version, next, hosts }
    }
}

/// Why a saga whose time is over cannot be purged yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptFor {
    /// An open dead letter names it.
    DeadLetter,
    /// A message in the outbox names it.
    Outbox,
    /// A sub-saga of it has not ended, or a work row of it is left.
    Unfinished,
}

/// The answer of [`Purge::purge`]. A saga in none of the lists has moved, or another process holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// The sagas that are tombstones now.
    pub tombstones: Vec<SagaId>,
    /// The sagas that were deleted.
    pub deleted: Vec<SagaId>,
    /// The sagas that cannot be purged yet, and why. They are due again after the retry interval.
    pub kept: Vec<(SagaId, KeptFor)>,
}

/// Which ended sagas get another expiry.
#[derive(Debug, Clone)]
pub struct ExpireEnded {
    /// Their definition.
    pub definition: DefinitionId,
    /// How they ended.
    pub status: Status,
    /// How long they are kept from now on. Those that have become tombstones are only kept longer or shorter.
    pub expiry: Expiry,
    /// Only sagas with an id above this one: the next call begins here.
    pub after: Option<SagaId>,
    /// The most sagas to look at.
    pub limit: usize,
}

/// The answer of [`Purge::expire_ended`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndedExpired {
    /// How many sagas got the expiry.
    pub sagas: u64,
    /// The last saga that was looked at, if there are more behind it.
    pub next: Option<SagaId>,
}

/// How many sagas of a definition are due to be purged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredCount {
    /// The definition.
    pub definition: DefinitionId,
    /// What becomes of them.
    pub next: NextAge,
    /// How many they are.
    pub sagas: u64,
    /// The bytes of their inputs, states and step records.
    pub bytes: u64,
}

/// Purging ended sagas, and what else is kept for a time only.
///
/// An ended saga with an [`Expiry`] has three ages: it is kept in full, then as a tombstone, then it is deleted. A
/// tombstone has an empty input and an empty state ([`SagaRow::is_tombstone`](super::SagaRow::is_tombstone)). A saga
/// without an expiry is kept. The sub-sagas of a saga, whose keys begin with its key and `>`, have no expiry of their own.
///
/// # Contract
/// - `S-PURGE-1` The commit that ends a saga dates it by the store's clock and the [`Expiry`] of its [`Advance`](super::Advance) or [`NewSaga`](super::NewSaga). An advance without an expiry, such as one that reopens the saga, clears the date. A saga that has not ended has none.
/// - `S-PURGE-2` [`expired`](Purge::expired) lists at most `limit` ended sagas whose time is over by the store's clock, those that are over longest first, and no others.
/// - `S-PURGE-3` [`purge`](Purge::purge) takes each saga whole or not at all, with its sub-sagas, in one commit. A tombstone keeps id, tenant, key, definition, digest, input hash, status, version, times and the history entries of the kind [`HistoryKind::Operator`](super::HistoryKind::Operator), also those of its sub-sagas; it has no hosts any more. A tombstone is kept for `delete_in` less `tombstone_in` from the moment at which it becomes one, however late that is. Of a deleted saga nothing is left: a [`record`](super::Records::record) that names it in its history leaves that entry out, and writes the rest.
/// - `S-PURGE-4` [`purge`](Purge::purge) looks again at each saga under its lock: one whose version has moved, whose time is not over, or which has not ended is left as it is. So is one that another transaction holds; the call does not wait for it long.
/// - `S-PURGE-5` [`purge`](Purge::purge) keeps for another `retry_interval`, counted from the call, and says why, a saga that an open dead letter names, one that a message in the outbox names, and one with a work row or a sub-saga that has not ended. The header `saga-cause` names a saga by its key, by that of a sub-saga, or, for a hosted step, by the key of the saga that it is a step of.
/// - `S-PURGE-6` [`lease_maintenance`](Purge::lease_maintenance) gives one living member at a time the lease, with an epoch above every earlier one; the same member renews it under the same epoch. A [`purge`](Purge::purge) under an older epoch fails with the kind `Conflict` and changes nothing.
/// - `S-PURGE-7` A start under the key of a tombstone is answered with [`Started::AlreadyExists`](super::Started::AlreadyExists) and its row; under the key of a deleted saga it is [`Started::New`](super::Started::New).
/// - `S-PURGE-8` [`expire_hosted`](Purge::expire_hosted) dates the ended sagas of the given definitions whose keys begin with one of the given keys and `>`, of the same tenant, and no others: they are deleted that long after the call.
/// - `S-PURGE-9` [`set_expiry`](Purge::set_expiry) and [`expire_ended`](Purge::expire_ended) date by the end of the saga, and change no saga that has not ended. [`expire_ended`](Purge::expire_ended) dates no saga of another definition or version, and no step of another saga. A tombstone stays one. A saga that has ended and has no date gets none from a commit that leaves it ended.
/// - `S-PURGE-10` [`forget_dead_letters`](Purge::forget_dead_letters) deletes letters that were decided longer ago than that, and no open one. [`forget_published`](Purge::forget_published) deletes the counters of ordering keys under which nothing was published for that long and no message is in the outbox. Each deletes at most `limit` and answers how many.
/// - `S-PURGE-11` [`unclosed`](Purge::unclosed) walks through all sagas in the order of their ids, part by part, and lists of each part the sagas of the given definitions that ended at least `interval` ago, are no tombstones and have no date, each once. It keeps where it stopped, and begins again no sooner than `interval` after the last walk ended. Under an older epoch of the maintenance lease it fails with the kind `Conflict` and changes nothing.
/// - `S-PURGE-12` [`known`](Purge::known) answers for each of the given keys of the tenant under which there is a saga, once, in any order, and for no others.
#[async_trait]
pub trait Purge: Send + Sync {
    /// Takes or renews the lease of the maintenance task; answers its epoch, or nothing while another member has it.
    async fn lease_maintenance(&self, owner: MemberId, ttl: Duration) -> Result<Option<u64>, StoreError>;

    /// Sagas whose time is over.
    async fn expired(&self, limit: usize) -> Result<Vec<ExpiredSaga>, StoreError>;

    /// These sagas with all that is known of them, each followed by its sub-sagas in the order of their keys.
    async fn whole_sagas(&self, sagas: &[SagaId]) -> Result<Vec<SagaWithSteps>, StoreError>;

    /// Makes tombstones of these sagas, or deletes them. Those that cannot be purged yet are due again after `retry_interval`.
    async fn purge(&self, epoch: u64, sagas: &[ExpiredSaga], retry_interval: Duration) -> Result<Purged, StoreError>;

    /// How many sagas are due, by definition: among the first `limit` that are.
    async fn count_expired(&self, limit: usize) -> Result<Vec<ExpiredCount>, StoreError>;

    /// Gives an ended saga another expiry, or none; answers whether there is such a saga.
    async fn set_expiry(&self, tenant: &Tenant, key: &Key, expiry: Option<&Expiry>) -> Result<bool, StoreError>;

    /// Gives sagas that ended before another expiry, in the order of their ids.
    async fn expire_ended(&self, request: &ExpireEnded) -> Result<EndedExpired, StoreError>;

    /// Dates the steps that are hosted for sagas whose records are gone; answers how many it dated.
    async fn expire_hosted(
        &self,
        definitions: &[DefinitionId],
        closed: &[(Tenant, Key)],
        delete_in: Duration,
    ) -> Result<u64, StoreError>;

    /// The next part of the hosted steps that no message has closed.
    async fn unclosed(&self, epoch: u64, filter: &UnclosedFilter) -> Result<Unclosed, StoreError>;

    /// Which of these sagas the store has.
    async fn known(&self, tenant: &Tenant, keys: &[Key]) -> Result<Vec<KnownSaga>, StoreError>;

    /// Deletes decided dead letters.
    async fn forget_dead_letters(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError>;

    /// Deletes the keys of requests whose time to live is over: see [`IdempotencyKeys`](super::IdempotencyKeys).
    async fn delete_expired_keys(&self, limit: usize) -> Result<u64, StoreError>;

    /// Deletes the counters of ordering keys.
    async fn forget_published(&self, older_than: Duration, limit: usize) -> Result<u64, StoreError>;
}
