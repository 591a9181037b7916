//! What a store keeps of one tenant, with a runtime in this process or without one.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::commit::Committer;
use crate::engine::decide::Decider;
use crate::key::Tenant;
use crate::store::{Hint, Store};

/// One tenant's part of a store.
pub(crate) struct TenantStore<S: Store> {
    pub(crate) store: Arc<S>,
    /// The runtime that follows up at once, where one runs in this process.
    runtime: Option<AdminRuntime<S>>,
    pub(crate) tenant: Tenant,
}

/// The components of a runtime that an administrator's actions use.
pub(crate) struct AdminRuntime<S: Store> {
    pub(crate) committer: Arc<Committer<S>>,
    pub(crate) decider: Arc<Decider<S>>,
}

impl<S: Store> TenantStore<S> {
    /// The default tenant's.
    pub(crate) fn new(store: Arc<S>) -> Self {
        Self { store, runtime: None, tenant: Tenant::default() }
    }

    pub(crate) fn of(runtime: AdminRuntime<S>, tenant: &Tenant) -> Self {
        Self { store: Arc::clone(&runtime.committer.ctx.store), runtime: Some(runtime), tenant: tenant.clone() }
    }

    pub(crate) fn runtime(&self) -> Option<&AdminRuntime<S>> {
        self.runtime.as_ref()
    }

    /// The longest payload, where a runtime says so.
    pub(crate) fn payload_bytes_max(&self) -> Option<usize> {
        self.runtime.as_ref().map(|runtime| runtime.decider.settings.payload_bytes_max)
    }

    /// Says that there is work that no process has: here, and to other processes.
    pub(crate) fn wake_workers(&self) {
        match &self.runtime {
            Some(runtime) => runtime.committer.scheduler.announce_unclaimed(Duration::ZERO),
            None => self.store.hint(Hint::Work),
        }
    }

    /// Says that there are rows in the outbox: here, and to other processes.
    pub(crate) fn wake_relay(&self) {
        if let Some(runtime) = &self.runtime {
            runtime.committer.outbox.filled.notify_one();
        }
        self.store.hint(Hint::Outbox);
    }

    /// Says that there are messages in the inbox: here, and to other processes.
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
