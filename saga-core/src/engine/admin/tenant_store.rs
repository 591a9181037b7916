//! The rows of one tenant in a store, with a runtime in this process or without one.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::commit::Committer;
use crate::engine::decide::Decider;
use crate::key::{Key, Tenant};
use crate::store::{Hint, Store};

/// The rows of one tenant in a store.
pub(crate) struct TenantStore<S: Store> {
    pub(crate) store: Arc<S>,
    /// The runtime of this process, which does at once what follows from a decision.
    runtime: Option<AdminRuntime<S>>,
    pub(crate) tenant: Tenant,
}

/// The components of a runtime that an administrator's actions use.
pub(crate) struct AdminRuntime<S: Store> {
    pub(crate) committer: Arc<Committer<S>>,
    pub(crate) decider: Arc<Decider<S>>,
}

impl<S: Store> TenantStore<S> {
    /// The rows of the default tenant.
    pub(crate) fn new(store: Arc<S>) -> Self {
        Self { store, runtime: None, tenant: Tenant::default() }
    }

    pub(crate) fn of(runtime: AdminRuntime<S>, tenant: &Tenant) -> Self {
        Self { store: Arc::clone(&runtime.committer.ctx.store), runtime: Some(runtime), tenant: tenant.clone() }
    }

    pub(crate) fn runtime(&self) -> Option<&AdminRuntime<S>> {
        self.runtime.as_ref()
    }

    /// The longest payload that the runtime of this process allows.
    pub(crate) fn payload_bytes_max(&self) -> Option<usize> {
        self.runtime.as_ref().map(|runtime| runtime.decider.settings.payload_bytes_max)
    }

    /// Tells the workers of this process and of others that there is work that no process holds.
    pub(crate) fn wake_workers(&self) {
        match &self.runtime {
            Some(runtime) => runtime.committer.scheduler.announce_unclaimed(Duration::ZERO),
            None => self.store.hint(Hint::Work),
        }
    }

    /// A saga that was written past the components of the runtime is no longer valid in its cache of waiting sagas.
    pub(crate) fn forget_waiting(&self, key: &Key) {
        if let Some(runtime) = &self.runtime {
            runtime.committer.waiting_cache.take(&self.tenant, key);
        }
    }

    /// Tells the relays of this process and of others that there are rows in the outbox.
    pub(crate) fn wake_relay(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.committer.outbox.filled.notify_one();
        }
        self.store.hint(Hint::Outbox);
    }

    /// Tells the inboxes of this process and of others that there are messages.
    pub(crate) fn wake_inbox(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.committer.inbox_filled.notify_one();
        }
        self.store.hint(Hint::Inbox);
    }
}

impl<S: Store> AdminRuntime<S> {
    pub(crate) fn new(committer: &Arc<Committer<S>>, decider: &Arc<Decider<S>>) -> Self {
        Self { committer: Arc::clone(committer), decider: Arc::clone(decider) }
    }
}

impl<S: Store> Clone for AdminRuntime<S> {
    fn clone(&self) -> Self {
        Self::new(&self.committer, &self.decider)
    }
}

impl<S: Store> Clone for TenantStore<S> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), runtime: self.runtime.clone(), tenant: self.tenant.clone() }
    }
}
