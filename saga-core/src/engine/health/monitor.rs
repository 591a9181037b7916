//! Which of the two ports answers, as the calls of this runtime found it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::tracker::HealthTracker;
use crate::env::Environment;
use crate::log;
use crate::store::{StoreError, StoreErrorKind};
use crate::transport::{TransportError, TransportErrorKind};

/// Whether the store and the transport answer.
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
    /// A call of the store failed that is tried again.
    pub(crate) fn store_failed(&self, doing: &'static str, error: &StoreError) {
        if error.kind() == StoreErrorKind::Conflict {
            return log::debug!(operation = doing, %error, "store call met a conflict");
        }
        let is_outage = matches!(error.kind(), StoreErrorKind::Unavailable | StoreErrorKind::UnknownCommit);
        self.store.failed(self.env.now(), doing, is_outage, error);
    }

    /// A call of the store worked.
    pub(crate) fn store_works(&self, doing: &'static str) {
        // Nearly always there is nothing to say.
        if self.store.is_failing.load(Ordering::Acquire) {
            self.store.works(self.env.now(), doing);
        }
    }

    /// A call of the transport failed that is tried again.
    pub(crate) fn transport_failed(&self, doing: &'static str, error: &TransportError) {
        let is_outage = error.kind() != TransportErrorKind::Refused;
        self.transport.failed(self.env.now(), doing, is_outage, error);
    }

    /// Whether something that the transport was asked for fails.
    pub(crate) fn transport_is_failing(&self) -> bool {
        self.transport.is_failing.load(Ordering::Acquire)
    }

    /// A call of the transport worked.
    pub(crate) fn transport_works(&self, doing: &'static str) {
        if self.transport_is_failing() {
            self.transport.works(self.env.now(), doing);
        }
    }
}
