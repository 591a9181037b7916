//! The health of the store and of the transport, as the calls of this runtime find it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::tracker::{Call, HealthTracker};
use crate::env::Environment;
use crate::log;
use crate::store::{StoreError, StoreErrorKind};
use crate::transport::{TransportError, TransportErrorKind};

/// Gets the result of each call of the store and of the transport.
pub(crate) struct HealthMonitor {
    env: Arc<dyn Environment>,
    pub(crate) store: HealthTracker,
    pub(crate) transport: HealthTracker,
}

impl HealthMonitor {
    pub(crate) fn new(env: Arc<dyn Environment>) -> Self {
        Self { env, store: HealthTracker::new("store"), transport: HealthTracker::new("transport") }
    }
}

impl HealthMonitor {
    /// A call of the store failed, and is tried again.
    pub(crate) fn store_failed(&self, doing: &'static str, error: &StoreError) {
        if error.kind() == StoreErrorKind::Conflict {
            return log::debug!(operation = doing, %error, "store call met a conflict");
        }
        let is_outage = matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::UnknownCommit);
        self.store.failed(self.env.now(), Call { operation: doing, service: None }, is_outage, error);
    }

    /// A call of the store worked.
    pub(crate) fn store_works(&self, doing: &'static str) {
        // Usually the store is healthy already.
        if self.store.is_failing.load(Ordering::Acquire) {
            self.store.works(self.env.now(), &Call { operation: doing, service: None });
        }
    }

    /// A call of the transport failed, and is tried again.
    pub(crate) fn transport_failed(&self, doing: &'static str, error: &TransportError) {
        self.transport_call_failed(Call { operation: doing, service: None }, error);
    }

    /// A subscription of a service failed, and is tried again.
    pub(crate) fn subscription_failed(&self, doing: &'static str, service: &str, error: &TransportError) {
        self.transport_call_failed(Call { operation: doing, service: Some(service.to_owned()) }, error);
    }

    /// Whether a call of the transport fails.
    pub(crate) fn transport_is_failing(&self) -> bool {
        self.transport.is_failing.load(Ordering::Acquire)
    }

    /// A call of the transport worked.
    pub(crate) fn transport_works(&self, doing: &'static str) {
        if self.transport_is_failing() {
            self.transport.works(self.env.now(), &Call { operation: doing, service: None });
        }
    }

    /// A subscription of a service worked, or is not needed.
    pub(crate) fn subscription_works(&self, doing: &'static str, service: &str) {
        if self.transport_is_failing() {
            self.transport.works(self.env.now(), &Call { operation: doing, service: Some(service.to_owned()) });
        }
    }

    fn transport_call_failed(&self, call: Call, error: &TransportError) {
        let is_outage = error.kind() != TransportErrorKind::Refused;
        self.transport.failed(self.env.now(), call, is_outage, error);
    }
}
