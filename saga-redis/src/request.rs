//! A request for a lock, and a lock.

use std::time::Duration;

use saga_core::store::LOCKED_ENTITIES_MAX;
use saga_core::{Entity, Tenant};

use crate::error::LockError;

/// The shortest `lease_ttl` and `wait_ttl`.
pub const TTL_MIN: Duration = Duration::from_millis(1);

/// The longest `lease_ttl` and `wait_ttl`.
pub const TTL_MAX: Duration = Duration::from_hours(24);

const HOLDER_BYTES_MAX: usize = 200;
const KIND_BYTES_MAX: usize = 40;
const ID_BYTES_MAX: usize = 200;

/// A request for a lock on 1 to 64 entities.
///
/// ```
/// use std::time::Duration;
///
/// use saga_core::Entity;
/// use saga_redis::AcquireRequest;
///
/// let request = AcquireRequest::new([Entity::new("account", 7)], "order-1/charge/1").lease_ttl(Duration::from_secs(10));
/// assert_eq!(request.holder(), "order-1/charge/1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcquireRequest {
    tenant: Tenant,
    entities: Vec<Entity>,
    holder: String,
    lease_ttl: Duration,
    wait_ttl: Duration,
}

impl AcquireRequest {
    /// Asks for these entities, for a holder. The name of the holder is 1 to 200 bytes without control characters and belongs
    /// to one attempt: after a release or a withdrawal it is not used again. Whether the names are legal is checked when the
    /// request is made.
    pub fn new(entities: impl IntoIterator<Item = Entity>, holder: impl Into<String>) -> Self {
        let mut entities: Vec<Entity> = entities.into_iter().collect();
        entities.sort_unstable();
        entities.dedup();
        let (lease_ttl, wait_ttl) = (Duration::from_secs(30), Duration::from_secs(10));
        Self { tenant: Tenant::default(), entities, holder: holder.into(), lease_ttl, wait_ttl }
    }

    /// Asks for a tenant. Without it, for the default tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: Tenant) -> Self {
        self.tenant = tenant;
        self
    }

    /// How long the holder has an entity without a renewal. The default is 30 seconds.
    #[must_use]
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// Within which time the holder asks again while it waits, to keep its place. The default is 10 seconds.
    #[must_use]
    pub fn wait_ttl(mut self, ttl: Duration) -> Self {
        self.wait_ttl = ttl;
        self
    }

    /// The entities in the order of their bytes, each once.
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// The name of the holder.
    pub fn holder(&self) -> &str {
        &self.holder
    }

    pub(crate) fn of_tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(crate) fn lease_ttl_given(&self) -> Duration {
        self.lease_ttl
    }

    pub(crate) fn wait_ttl_given(&self) -> Duration {
        self.wait_ttl
    }

    /// Says what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), LockError> {
        let count = self.entities.len();
        if count == 0 || count > LOCKED_ENTITIES_MAX {
            let problem = format!("it names {count} entities, and a lock has 1 to {LOCKED_ENTITIES_MAX}");
            return Err(LockError::Invalid(problem));
        }
        check_name("holder", &self.holder, HOLDER_BYTES_MAX)?;
        for entity in &self.entities {
            check_name("kind of an entity", entity.kind(), KIND_BYTES_MAX)?;
            check_name("id of an entity", entity.id(), ID_BYTES_MAX)?;
        }
        for (name, ttl) in [("lease_ttl", self.lease_ttl), ("wait_ttl", self.wait_ttl)] {
            if !(TTL_MIN..=TTL_MAX).contains(&ttl) {
                let problem = format!("its {name} is {ttl:?}, and must be from {TTL_MIN:?} to 24 hours");
                return Err(LockError::Invalid(problem));
            }
        }
        Ok(())
    }
}

fn check_name(what: &str, text: &str, max: usize) -> Result<(), LockError> {
    if (1..=max).contains(&text.len()) && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let problem = format!("the {what} {text:?} is not 1 to {max} bytes of text without control characters");
    Err(LockError::Invalid(problem))
}

/// A lock that was granted: who has which entities with which tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    request: AcquireRequest,
    tokens: Vec<u64>,
}

impl HeldLock {
    /// What was granted to a request: the tokens of its entities, in the order of [`AcquireRequest::entities`].
    ///
    /// # Panics
    /// When there are not as many tokens as entities.
    pub fn new(request: AcquireRequest, tokens: Vec<u64>) -> Self {
        assert_eq!(request.entities.len(), tokens.len(), "each entity has one token");
        Self { request, tokens }
    }

    /// The request that was granted.
    pub fn request(&self) -> &AcquireRequest {
        &self.request
    }

    /// The entities with their fencing tokens, in the order of their bytes.
    pub fn tokens(&self) -> impl Iterator<Item = (&Entity, u64)> {
        self.request.entities.iter().zip(self.tokens.iter().copied())
    }

    /// The fencing token of an entity, if it belongs to the lock.
    pub fn token_of(&self, entity: &Entity) -> Option<u64> {
        self.tokens().find(|(named, _)| *named == entity).map(|(_, token)| token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(request: &AcquireRequest) -> String {
        request.check().unwrap_err().to_string()
    }

    #[test]
    fn a_request_that_cannot_be_served_says_why() {
        let account = || [Entity::new("account", 7)];
        assert!(AcquireRequest::new(account(), "a").check().is_ok());
        assert!(problem(&AcquireRequest::new([], "a")).contains("0 entities"));
        assert!(
            problem(&AcquireRequest::new((0..65).map(|id| Entity::new("account", id)), "a")).contains("65 entities")
        );
        assert!(problem(&AcquireRequest::new([Entity::new("account", "a\nb")], "a")).contains("the id of an entity"));
        assert!(problem(&AcquireRequest::new(account(), "")).contains("the holder \"\""));
        assert!(problem(&AcquireRequest::new(account(), "a").lease_ttl(Duration::ZERO)).contains("lease_ttl is 0ns"));
        assert!(problem(&AcquireRequest::new(account(), "a").wait_ttl(TTL_MAX * 2)).contains("wait_ttl"));
    }

    #[test]
    fn each_entity_has_its_token() {
        let (account, order) = (Entity::new("account", 7), Entity::new("order", 1));
        let request = AcquireRequest::new([order.clone(), account.clone(), order.clone()], "a");
        let lock = HeldLock::new(request, vec![3, 5]);
        assert_eq!((lock.token_of(&account), lock.token_of(&order)), (Some(3), Some(5)));
        assert_eq!(lock.token_of(&Entity::new("order", 2)), None);
    }
}
