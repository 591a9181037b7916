//! Where a person works on what a store keeps of one tenant: with a runtime in this process, or without one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::outcome::Outcome;
use super::shared::EngineContext;
use crate::key::Tenant;
use crate::store::{Hint, SagaId, Store};

/// One tenant's part of a store.
pub(super) struct TenantStore<S: Store> {
    pub(super) store: Arc<S>,
    /// The runtime that is told at once, where it runs in this process.
    runtime: Option<Arc<EngineContext<S>>>,
    pub(super) tenant: Tenant,
}

impl<S: Store> TenantStore<S> {
    /// The default tenant's.
    pub(super) fn new(store: Arc<S>) -> Self {
        Self { store, runtime: None, tenant: Tenant::default() }
    }

    pub(super) fn of(shared: &Arc<EngineContext<S>>, tenant: &Tenant) -> Self {
        Self { store: Arc::clone(&shared.store), runtime: Some(Arc::clone(shared)), tenant: tenant.clone() }
    }

    pub(super) fn runtime(&self) -> Option<&Arc<EngineContext<S>>> {
        self.runtime.as_ref()
    }

    /// Tells whoever waits for the saga in this process.
    pub(super) fn tell(&self, saga: SagaId, outcome: Option<Outcome>) {
        if let Some(runtime) = &self.runtime {
            runtime.waiters.tell(saga, outcome);
        }
    }

    /// The longest payload, where a runtime says so.
    pub(super) fn payload_bytes_max(&self) -> Option<usize> {
        self.runtime.as_ref().map(|runtime| runtime.settings.payload_bytes_max)
    }

    /// Tells whoever does work that there is some which nobody has: here, and in other processes.
    pub(super) fn wake_workers(&self) {
        match &self.runtime {
            Some(runtime) => runtime.announce_unclaimed(Duration::ZERO),
            None => self.store.hint(Hint::Work),
        }
    }

    /// Tells whoever waits for such rows that there are some: here, and in other processes.
    pub(super) fn wake(&self, waiting: fn(&EngineContext<S>) -> &Notify, hint: Hint) {
        if let Some(runtime) = &self.runtime {
            waiting(runtime).notify_one();
        }
        self.store.hint(hint);
    }
}

impl<S: Store> Clone for TenantStore<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), runtime: self.runtime.clone(), tenant: self.tenant.clone() }
    }
}
