//! What the handlers of one application share.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use saga_core::store::IdempotencyKeys;
use saga_core::{Runtime, Tenant};
use tokio::sync::Semaphore;

use super::ttl;

/// The longest request that is read, in bytes: 1 MiB.
const REQUEST_BYTES_MAX: usize = 1 << 20;
/// The longest response that is kept, in bytes: 256 KiB.
const RESPONSE_BYTES_MAX: usize = 256 << 10;
/// How long a handler may take.
const TIME_MAX: Duration = Duration::from_secs(30);
/// How long a key is leased by a handler without the store's transaction.
const LEASE_TTL: Duration = Duration::from_mins(1);
/// How many clients wait for a response at the same time.
const WAITING_MAX: usize = 1_000;

pub(super) type PrincipalOf = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type TenantOf = dyn Fn(&Parts) -> Option<Tenant> + Send + Sync;

/// What the handlers of one `Idempotency` share.
pub(super) struct Settings<S: IdempotencyKeys> {
    pub(super) store: Arc<S>,
    pub(super) runtime: Option<Runtime<S>>,
    pub(super) principal: Arc<PrincipalOf>,
    pub(super) tenant: Option<Arc<TenantOf>>,
    pub(super) required: bool,
    pub(super) strict: bool,
    pub(super) canonical_json: bool,
    pub(super) ttl: Duration,
    pub(super) time_max: Duration,
    pub(super) lease_ttl: Duration,
    pub(super) request_bytes_max: usize,
    pub(super) response_bytes_max: usize,
    pub(super) sagas_at: Arc<str>,
    /// A place for each client that waits.
    pub(super) places: Arc<Semaphore>,
}

impl<S: IdempotencyKeys> Settings<S> {
    pub(super) fn new(store: Arc<S>, runtime: Option<Runtime<S>>, principal: Arc<PrincipalOf>) -> Self {
        let ttl = ttl::usual(runtime.as_ref());
        Self {
            store,
            runtime,
            principal,
            tenant: None,
            required: false,
            strict: false,
            canonical_json: false,
            ttl,
            time_max: TIME_MAX,
            lease_ttl: LEASE_TTL,
            request_bytes_max: REQUEST_BYTES_MAX,
            response_bytes_max: RESPONSE_BYTES_MAX,
            sagas_at: "/sagas".into(),
            places: Arc::new(Semaphore::new(WAITING_MAX)),
        }
    }
}

impl<S: IdempotencyKeys> Clone for Settings<S> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            runtime: self.runtime.clone(),
            principal: Arc::clone(&self.principal),
            tenant: self.tenant.clone(),
            sagas_at: Arc::clone(&self.sagas_at),
            places: Arc::clone(&self.places),
            ..*self
        }
    }
}
