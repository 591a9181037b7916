//! Requests that take effect once: keys that clients chose, and the responses that are kept under them.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::{StartIn, StoreError};
use crate::env::BoxFuture;
use crate::key::Tenant;

/// The longest key of a request, in bytes.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
/// The longest name of a principal, in bytes.
pub const PRINCIPAL_BYTES_MAX: usize = 255;

/// Why the key of a request, or its principal, was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidIdempotencyKey {
    /// The key is empty, too long, or has a byte that is not visible ASCII.
    #[error("an idempotency key is 1 to 255 bytes of visible ASCII")]
    Key,
    /// The principal is empty, too long, or has a control character.
    #[error("a principal is 1 to 255 bytes without control characters")]
    Principal,
}

/// The key of a request: what a client chose, unique for one principal of one tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey {
    tenant: Tenant,
    principal: Box<str>,
    key: Box<str>,
}

impl IdempotencyKey {
    /// A key of 1 to 255 bytes of visible ASCII, which this principal sent.
    ///
    /// # Errors
    /// Says which of the two is not as it must be.
    pub fn new(tenant: Tenant, principal: &str, key: &str) -> Result<Self, InvalidIdempotencyKey> {
        if key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidIdempotencyKey::Key);
        }
        if principal.is_empty() || principal.len() > PRINCIPAL_BYTES_MAX || principal.chars().any(char::is_control) {
            return Err(InvalidIdempotencyKey::Principal);
        }
        Ok(Self { tenant, principal: principal.into(), key: key.into() })
    }

    /// The tenant.
    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Whose key it is.
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// What the client sent.
    pub fn as_str(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)
    }
}

/// A request that is to take effect once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedRequest {
    /// Its key.
    pub key: IdempotencyKey,
    /// Tells this request from another one under the same key.
    pub fingerprint: [u8; 32],
    /// How long the key is kept, by the store's clock.
    pub ttl: Duration,
}

/// Whether a request may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission<T> {
    /// It runs, or has run.
    Granted(T),
    /// It ran before: the response that was kept.
    Replay(Vec<u8>),
    /// The same key is in use by another call.
    InFlight,
    /// The key belongs to a request with another fingerprint.
    OtherRequest,
}

/// What becomes of the writes of a [`KeyedBody`], and of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyVerdict {
    /// The writes and this response are kept.
    Keep(Vec<u8>),
    /// The writes are undone; this response is kept.
    RollBackAndKeep(Vec<u8>),
    /// Nothing is kept: the key is as if the request had not been made.
    RollBack,
    /// The body was dropped before its end: nothing is kept, and the connection is not used again.
    Abandon,
}

/// What runs in the transaction of a request. The body keeps its own answer; only what is to be replayed is in the verdict.
pub trait KeyedBody<C>: Send {
    /// Runs. A store that runs the transaction again from its start calls this again; the body then forgets the earlier
    /// run.
    fn run<'a>(&'a mut self, conn: &'a mut C) -> BoxFuture<'a, KeyVerdict>;
}

/// Keeps which requests were answered, and with what.
///
/// # Contract
/// - `S-KEY-1` [`run_once`](IdempotencyKeys::run_once) runs the body in one transaction. Its writes and the response of its verdict commit together or not at all; after [`Keep`](KeyVerdict::Keep) and an answer of the store both are there.
/// - `S-KEY-2` Where a response is kept under the key, the body does not run: the answer is the response, byte for byte, if the fingerprint is that of the kept request, and [`OtherRequest`](Admission::OtherRequest) otherwise.
/// - `S-KEY-3` While another call has the key, the answer is [`InFlight`](Admission::InFlight) at once: the call does not wait. A store that runs one transaction at a time has no such call, and answers when its turn comes.
/// - `S-KEY-4` After [`RollBackAndKeep`](KeyVerdict::RollBackAndKeep) the writes of the body are gone, and the response is kept.
/// - `S-KEY-5` After [`RollBack`](KeyVerdict::RollBack) and [`Abandon`](KeyVerdict::Abandon) neither writes nor a response are kept, and the key is free.
/// - `S-KEY-6` One key of two tenants, or of two principals, is two keys.
/// - `S-KEY-7` [`claim_key`](IdempotencyKeys::claim_key) leases the key in a commit of its own and answers an epoch above all that the key ever had. As long as the lease lasts, the key is in flight for all other calls. After it the same request is granted again, under a higher epoch, and another request is [`OtherRequest`](Admission::OtherRequest).
/// - `S-KEY-8` [`complete_key`](IdempotencyKeys::complete_key) and [`release_key`](IdempotencyKeys::release_key) do so only under the epoch that the key has, and answer whether they did. They wait for a transaction that has the key. A released key is free.
/// - `S-KEY-9` A key is kept for its time to live, by the store's clock, counted from the commit that wrote it first. After that it is new, also before it is deleted.
/// - `S-KEY-10` [`delete_expired_keys`](IdempotencyKeys::delete_expired_keys) deletes keys whose time is over, at most `limit` of them and no others, and answers how many.
/// - `S-KEY-11` A body that ended its transaction is found: the call fails with the kind `Misuse`, and no response is kept.
/// - `S-KEY-12` Without a request the body runs in a transaction all the same, and no response is kept.
/// - `S-KEY-13` When the answer to the commit is lost, the call fails with the kind `UnknownCommit`; the same call finds out, and has at most one effect.
#[async_trait]
pub trait IdempotencyKeys: StartIn {
    /// Runs the body in one transaction, unless the request was answered before, is in flight, or is another one.
    async fn run_once(
        &self,
        request: Option<KeyedRequest>,
        body: Box<dyn KeyedBody<Self::Conn>>,
    ) -> Result<Admission<()>, StoreError>;

    /// Leases the key for this long, for a call outside of the store's transactions. The epoch is for the calls below.
    async fn claim_key(&self, request: &KeyedRequest, lease_ttl: Duration) -> Result<Admission<u64>, StoreError>;

    /// Keeps the response of a call whose key was claimed.
    async fn complete_key(&self, key: &IdempotencyKey, epoch: u64, response: &[u8]) -> Result<bool, StoreError>;

    /// Frees a key that was claimed: nothing of the call is kept.
    async fn release_key(&self, key: &IdempotencyKey, epoch: u64) -> Result<bool, StoreError>;

    /// Deletes keys whose time to live is over.
    async fn delete_expired_keys(&self, limit: usize) -> Result<u64, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_visible_ascii_of_a_principal() {
        let of = |principal: &str, key: &str| IdempotencyKey::new(Tenant::default(), principal, key).map(drop);
        assert_eq!(of("ada", "8e03978e-40d5-43dd-bc93-6894a57f9324"), Ok(()));
        assert_eq!(of("ada", &"k".repeat(255)), Ok(()));
        for key in ["", "a b", "a\n", "ä", &"k".repeat(256)] {
            assert_eq!(of("ada", key), Err(InvalidIdempotencyKey::Key), "{key:?}");
        }
        for principal in ["", "a\0", &"p".repeat(256)] {
            assert_eq!(of(principal, "k"), Err(InvalidIdempotencyKey::Principal), "{principal:?}");
        }
    }
}
