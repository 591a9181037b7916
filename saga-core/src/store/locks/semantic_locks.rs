//! The duty of keeping semantic locks, and who waits for them.

use std::time::Duration;

use async_trait::async_trait;

use crate::key::{Key, Tenant};
use crate::store::{Entity, SagaId, StoreError, Timestamp, WorkId, WorkRef};

/// A saga asks for a semantic lock: all of its entities, or none of them.
#[derive(Debug, Clone)]
pub struct LockRequest {
    /// The saga's tenant.
    pub tenant: Tenant,
    /// The saga.
    pub saga: SagaId,
    /// The saga's key.
    pub key: Key,
    /// The owner: the key of the outermost saga. Sagas of one owner never wait for each other.
    pub owner: Key,
    /// The name of the lock. A saga asks for each name once; the same request again changes nothing.
    pub name: String,
    /// The entities in the order of their bytes, each once.
    pub entities: Vec<Entity>,
    /// The work row that falls due when the lock is granted.
    pub work: WorkRef,
    /// How long the saga waits, from the first request.
    pub within: Duration,
}

impl LockRequest {
    /// A request of the saga with this tenant and key. The owner is the outermost saga.
    pub fn new(
        saga: SagaId,
        (tenant, key): (&Tenant, &Key),
        name: &str,
        entities: Vec<Entity>,
        work: WorkRef,
        within: Duration,
    ) -> Self {
        Self {
            tenant: tenant.clone(),
            saga,
            key: key.clone(),
            owner: key.outermost(),
            name: name.to_owned(),
            entities,
            work,
            within,
        }
    }
}

impl LockRequest {
    /// A request for the lock of a step, which is an owner of its own: it asks for nothing while it has its entities.
    pub(crate) fn of_step(
        saga: SagaId,
        (tenant, key): (&Tenant, &Key),
        step: &str,
        entities: Vec<Entity>,
        work: WorkRef,
        within: Duration,
    ) -> Self {
        let entities = entities.into_iter().map(Entity::of_step).collect();
        let owner = key.hosted(step);
        Self { owner, ..Self::new(saga, (tenant, key), step, entities, work, within) }
    }

    /// Whether it is for the lock of a step, which ends with the step.
    pub(crate) fn is_of_step(&self) -> bool {
        self.entities.iter().any(Entity::is_of_step)
    }
}

/// The answer to a [`LockRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockAnswer {
    /// The saga has the lock. These are the fencing tokens of its entities, in the order of the request.
    Granted(Vec<u64>),
    /// The saga waits. Its work row is free, and is due when the lock is granted, or after this time.
    Waits(Duration),
    /// The saga has waited as long as it may, and does not wait any more. The owner that has one of the entities, or
    /// waits in front of it.
    TimedOut(Key),
    /// The saga and this owner wait for each other, and the saga does not wait any more.
    Deadlock(Key),
    /// The work row is gone, or another owner took it. Nothing was changed.
    Gone,
}

/// Which semantic locks end with a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlock {
    /// All locks and requests of an owner.
    Owner(Tenant, Key),
    /// The lock or the request of this name of one saga.
    Lock(Tenant, SagaId, String),
}

/// A semantic lock, or a request for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLock {
    /// Its number: requests of one entity are granted in the order of their numbers.
    pub number: u64,
    /// The saga's tenant.
    pub tenant: Tenant,
    /// The saga.
    pub saga: SagaId,
    /// The saga's key.
    pub key: Key,
    /// The owner: the key of the outermost saga.
    pub owner: Key,
    /// The name of the lock.
    pub name: String,
    /// Its entities, with the fencing tokens of a lock that was granted. A request that does not wait any more has none.
    pub entities: Vec<(Entity, Option<u64>)>,
    /// Whether it is granted, waits, or does not wait any more.
    pub state: LockState,
    /// The work row that falls due when the state changes.
    pub work: WorkId,
    /// When the saga asked for it.
    pub asked_at: Timestamp,
    /// When it was granted.
    pub granted_at: Option<Timestamp>,
    /// The owners that it waits for, if it waits.
    pub waits_for: Vec<Key>,
}

impl StoredLock {
    /// A request, without its entities and without the owners that it waits for.
    pub fn new(number: u64, request: &LockRequest, state: LockState, asked_at: Timestamp) -> Self {
        Self {
            number,
            tenant: request.tenant.clone(),
            saga: request.saga,
            key: request.key.clone(),
            owner: request.owner.clone(),
            name: request.name.clone(),
            entities: Vec::new(),
            state,
            work: request.work.id,
            asked_at,
            granted_at: None,
            waits_for: Vec::new(),
        }
    }
}

/// The state of a semantic lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// The saga waits for it.
    Waiting,
    /// The saga has it.
    Granted,
    /// The saga waited as long as it may. The owner that was in front of it.
    TimedOut(Key),
    /// The saga and this owner waited for each other.
    Deadlock(Key),
}

/// Which semantic locks are listed.
#[derive(Debug, Clone)]
pub struct LockFilter {
    /// Of this tenant.
    pub tenant: Tenant,
    /// Only those of this saga.
    pub saga: Option<SagaId>,
    /// Only those on this entity.
    pub entity: Option<Entity>,
    /// Only those behind this number.
    pub after: Option<u64>,
    /// The most to list, by their numbers.
    pub limit: usize,
}

/// Keeping semantic locks, and who waits for them. They end by [`Changes::unlocked`](crate::store::Changes::unlocked).
///
/// An owner *has* an entity while a granted lock of it names the entity. A request is *blocked* at an entity if its owner
/// does not have the entity, and another owner has it or asked for it earlier and still waits.
///
/// # Contract
/// - `S-LOCK-1` [`ask_for_locks`](SemanticLocks::ask_for_locks) grants a request that is blocked at none of its entities, and no other: two owners never have one entity. All entities of a request are granted in one commit, or none.
/// - `S-LOCK-2` The token of an entity is higher than each one that was granted on it before, also before a crash. An owner that has the entity gets the same token again.
/// - `S-LOCK-3` Requests of one entity are granted in the order in which the waits were committed; no later one overtakes one that still waits.
/// - `S-LOCK-4` A request that is not granted waits: in the same commit its work row is freed, keeps its attempts, and is due after the rest of its time. The same request again gets the same answer.
/// - `S-LOCK-5` [`Changes::unlocked`](crate::store::Changes::unlocked) ends locks and requests in the commit of the changes, and grants in the same commit what is not blocked any more; the work rows of these requests are due at once. Changes that miss end nothing.
/// - `S-LOCK-6` When a request waits and thereby closes a ring of owners that wait for each other, one of them stops waiting in the same commit: the youngest, whose first lock has the highest number; an owner that has nothing of the ring and is only in front in a queue gives up last. Its work row is due at once, and its request is answered with [`LockAnswer::Deadlock`].
/// - `S-LOCK-7` A request that has waited as long as it may, and is asked again, stops waiting and is answered with [`LockAnswer::TimedOut`]. It is never granted afterwards, and blocks no other.
/// - `S-LOCK-8` A request whose work row does not have the given epoch is answered with [`LockAnswer::Gone`] and leaves nothing.
/// - `S-LOCK-9` Tenants never meet: the same entity of two tenants is two entities.
/// - `S-LOCK-10` A step transaction ([`Claim::locks`](crate::store::Claim::locks)) takes a lock if its request was granted before and names the same entities, or if there is no such request, no row of a request names one of its entities, and no other open transaction has one. It may wait for such a transaction, but only shortly ([`TakenLock::has_waited`](crate::store::TakenLock::has_waited)), and for no request. Steps of one transaction may lock the same entity, since they run one after the other; an entity of a semantic lock belongs to one claim. A claim is not granted without a lock that it requires. Until the transaction ends, the entity is granted to no other. A call that asks for it waits only shortly, and fails as a `Conflict`. With the transaction the lock ends and leaves no row, unless the transaction keeps it (`S-LOCK-12`). All locks that a transaction takes have one token ([`share_token`](crate::store::share_token)), which is higher than each one that was granted before.
/// - `S-LOCK-11` [`end_abandoned_locks`](SemanticLocks::end_abandoned_locks) ends the locks and requests of steps whose row of `work` is gone, as [`Changes::unlocked`](crate::store::Changes::unlocked) does, at most `limit` of them, and answers how many. Those of steps name entities whose kinds begin with `step:`. It ends no other.
/// - `S-LOCK-12` [`Changes::locked`](crate::store::Changes::locked) keeps a lock that the step transaction took, in the commit of the transaction: from then on it is granted with those tokens, as if it had been asked for, and no other was granted one of its entities in between. A transaction that does not commit keeps none.
#[async_trait]
pub trait SemanticLocks: Send + Sync {
    /// Asks for locks. Each request is answered as if it were made alone, in their order.
    async fn ask_for_locks(&self, requests: Vec<LockRequest>) -> Result<Vec<LockAnswer>, StoreError>;

    /// Ends the locks of steps whose commands are gone.
    async fn end_abandoned_locks(&self, limit: usize) -> Result<u64, StoreError>;

    /// The locks that pass the filter, by their numbers.
    async fn locks(&self, filter: &LockFilter) -> Result<Vec<StoredLock>, StoreError>;
}
