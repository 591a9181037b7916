//! What a lock service does.

use std::time::Duration;

use async_trait::async_trait;
use saga_core::Entity;

use crate::error::LockError;
use crate::request::{AcquireRequest, HeldLock};

/// How long [`LockServiceExt::acquire_within`] pauses at most before it asks again.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// A third of the time within which a waiter must ask: one lost question does not cost it its place.
const ASKS_WITHIN_WAIT_TTL: u32 = 3;

/// Locks on entities, with leases and fencing tokens.
///
/// A holder *has* an entity from the grant until it releases it, or until its lease ends. A lock alone does not keep a
/// holder from writing that was stopped past its lease: what it writes to must refuse a token below the highest it saw.
///
/// # Contract
/// - `L-1` At most one holder has an entity. The same entity of two tenants is two entities.
/// - `L-2` The token of each grant of an entity is higher than all tokens that were granted on it before, also after the
///   service lost what it knew.
/// - `L-3` A holder that asks again while it has an entity gets the same token, and its lease begins anew. So a call without
///   an answer is repeated.
/// - `L-4` Requests for one entity are granted in the order in which they began to wait.
/// - `L-5` A waiter that has not asked for `wait_ttl` when its turn comes is passed over, and no other is.
/// - `L-6` A renewal lets the lease begin anew. If the holder does not have an entity with this token any more, the renewal
///   says so and changes nothing about this entity.
/// - `L-7` A release ends what this holder has with these tokens, and a withdrawal what this holder has or waits for. Neither
///   changes anything for other holders.
/// - `L-8` A request is granted when its holder has all its entities. They are taken in one order, which is the same for all
///   requests, so that requests cannot wait for each other in a ring.
///
/// If the service cannot be reached, each call fails and says so. Nothing is ever granted without it.
///
/// # Cancel safety
/// A dropped call takes effect or does not, entity by entity. Repeat it, or [`withdraw`](LockService::withdraw) the request.
#[async_trait]
pub trait LockService: Send + Sync + 'static {
    /// Asks once for all entities of the request, and does not wait. A request that is not granted keeps its places if it
    /// is asked again within its `wait_ttl`; it keeps the entities that it has already for their `lease_ttl`.
    ///
    /// # Errors
    /// When the service does not answer or refuses. It may have taken effect.
    async fn acquire(&self, request: &AcquireRequest) -> Result<Acquired, LockError>;

    /// Lets the lease of each entity begin anew.
    ///
    /// # Errors
    /// [`LockError::Lost`] when the holder does not have one of the entities any more. The leases of the others have begun
    /// anew: release them. And when the service does not answer.
    async fn renew(&self, lock: &HeldLock) -> Result<(), LockError>;

    /// Ends a lock. It is no error if it was lost before.
    ///
    /// # Errors
    /// When the service does not answer or refuses. The lock then ends with its lease at the latest.
    async fn release(&self, lock: &HeldLock) -> Result<(), LockError>;

    /// Takes back a request, granted or not. Its holder's name is not used again, since a question that is still on its way
    /// may arrive later.
    ///
    /// # Errors
    /// When the service does not answer or refuses. The request then ends with its times at the latest.
    async fn withdraw(&self, request: &AcquireRequest) -> Result<(), LockError>;
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquired {
    /// The holder has all entities.
    Granted(HeldLock),
    /// The holder waits.
    Waits {
        /// The first entity, in the service's order, that it does not have.
        entity: Entity,
        /// How many holders are before it there, at most.
        ahead: u64,
        /// The rest of the lease of the holder that has the entity, if there is one.
        lease_left: Option<Duration>,
    },
}

impl Acquired {
    /// The lock, if it was granted.
    pub fn granted(self) -> Option<HeldLock> {
        match self {
            Self::Granted(lock) => Some(lock),
            Self::Waits { .. } => None,
        }
    }
}

/// Waiting for a lock.
#[async_trait]
pub trait LockServiceExt: LockService {
    /// Asks until the request is granted, for `limit` at most, and then withdraws it.
    ///
    /// # Errors
    /// [`LockError::TimedOut`] at the limit, and the errors of [`acquire`](LockService::acquire).
    ///
    /// # Cancel safety
    /// Dropped, the request waits on until its `wait_ttl`, and what it has ends with its leases. Withdraw it.
    async fn acquire_within(&self, request: &AcquireRequest, limit: Duration) -> Result<HeldLock, LockError> {
        let mut last = None;
        let asking = async {
            loop {
                match self.acquire(request).await? {
                    Acquired::Granted(lock) => return Ok(lock),
                    Acquired::Waits { entity, lease_left, .. } => {
                        let pause = PAUSE_MAX.min(request.wait_ttl_given() / ASKS_WITHIN_WAIT_TTL);
                        let pause = lease_left.map_or(pause, |left| pause.min(left));
                        last = Some(entity);
                        tokio::time::sleep(pause).await;
                    }
                }
            }
        };
        if let Ok(answer) = tokio::time::timeout(limit, asking).await {
            return answer;
        }
        self.withdraw(request).await?;
        Err(LockError::TimedOut { entity: last, limit })
    }
}

impl<L: LockService + ?Sized> LockServiceExt for L {}
