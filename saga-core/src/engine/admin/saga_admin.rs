//! The administration of the sagas of a store.

use std::fmt;
use std::sync::Arc;

use super::admin_context::AdminContext;
use super::control::saga_control::SagaControl;
use super::dead_letters::DeadLetterAdmin;
use super::outbox::OutboxAdmin;
use super::query::query::SagaQuery;
use super::retention::RetentionAdmin;
use crate::engine::context::Settings;
use crate::key::Tenant;
use crate::saga::{Definition, Saga};
use crate::service::Service;
use crate::store::Store;

/// Everything that an operator does: read sagas, act on one of them or on many, replay and discard messages.
///
/// [`Runtime::admin`](crate::Runtime::admin) opens it on the store and the definitions of a runtime. [`new`](Self::new)
/// opens it on a bare store, beside the processes that work on it: it writes what was decided, and a runtime on the same
/// store does what follows. For reading only, a store that cannot be written is enough.
///
/// Each action on a saga is recorded in the history of the saga, with its reason and the [`actor`](Self::actor).
///
/// # Examples
/// ```
/// use saga_core::engine::{ControlOutcome, SagaAdmin};
/// use saga_core::memory::MemoryStore;
/// use saga_core::store::{SagaFilter, Status};
/// use saga_core::{Runtime, Saga, StepError, saga_step};
///
/// #[saga_step]
/// async fn remind(_customer: String) -> Result<(), StepError> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let reminder = Saga::named("reminder").input::<String>().step::<remind>().build()?;
/// let store = MemoryStore::new();
/// let runtime = Runtime::builder(store.clone()).saga(&reminder).start().await?;
/// let tomorrow = std::time::Duration::from_hours(24);
/// runtime.start(&reminder, "reminder-1", "Ada".to_owned()).after(tomorrow).await?;
///
/// // In another process, this is all that is needed.
/// let admin = SagaAdmin::new(store).saga(&reminder).actor("ann");
/// let paused = admin.control("reminder-1").pause("is this address right?").await?;
/// assert_eq!(paused, ControlOutcome::Applied);
/// let paused = SagaFilter { status: Some(Status::Paused), ..SagaFilter::default() };
/// assert_eq!(admin.query().list(paused).await?.len(), 1);
/// # runtime.shutdown().await;
/// # Ok(())
/// # }
/// ```
pub struct SagaAdmin<S: Store> {
    pub(super) ctx: AdminContext<S>,
}

impl<S: Store> SagaAdmin<S> {
    /// The default tenant of this store.
    pub fn new(store: impl Into<Arc<S>>) -> Self {
        Self { ctx: AdminContext::new(store.into()) }
    }

    /// Adds a definition: its sagas can be acted on, and their steps have names.
    #[must_use]
    pub fn saga<I, R>(mut self, saga: &Saga<S, I, R>) -> Self {
        for definition in Definition::with_children(saga.definition()) {
            self.ctx.add_definition(definition);
        }
        self
    }

    /// Adds the steps that a service hosts. Each call of such a step is a saga of one step under `key>step`.
    #[must_use]
    pub fn service(mut self, service: &Service<S>) -> Self {
        for definition in service.hosted().map(|(_, definition)| definition).chain(service.choreographed()) {
            self.ctx.add_definition(definition);
        }
        self
    }

    /// Reads and acts on the sagas of this tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: Tenant) -> Self {
        self.ctx.tenant_store.tenant = tenant;
        self
    }

    /// Sets the name of the operator, which is recorded with each action.
    #[must_use]
    pub fn actor(mut self, name: impl Into<String>) -> Self {
        self.ctx.actor = Some(name.into());
        self
    }

    /// Changes the settings by which it decides. Make the changes that the runtimes on the store make. If other services do steps
    /// of the sagas, it needs the [`service`](Settings::service) that they reply to. How long a saga is kept that ends by an
    /// action can depend on [`default_retention`](Settings::default_retention). The admin of a runtime decides by the settings
    /// of that runtime.
    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        if self.ctx.tenant_store.runtime().is_none() {
            change(Arc::make_mut(&mut self.ctx.settings));
        }
        self
    }

    /// Acts on the saga with this key. A step that is hosted for another service has the key `key>step`.
    pub fn control(&self, key: impl AsRef<str>) -> SagaControl<S> {
        SagaControl { ctx: self.ctx.clone(), key: key.as_ref().to_owned(), seen: None }
    }

    /// Reads sagas, their histories and the audit log.
    pub fn query(&self) -> SagaQuery<S> {
        SagaQuery::new(&self.ctx)
    }

    /// The messages that could not be handled.
    pub fn dead_letters(&self) -> DeadLetterAdmin<S> {
        DeadLetterAdmin::new(self.ctx.tenant_store.clone())
    }

    /// The messages that wait to be sent.
    pub fn outbox(&self) -> OutboxAdmin<S> {
        OutboxAdmin::new(self.ctx.tenant_store.clone())
    }

    /// How long ended sagas are kept, and what is due to be purged.
    pub fn retention(&self) -> RetentionAdmin<S> {
        RetentionAdmin::new(self.ctx.clone())
    }
}

impl<S: Store> From<AdminContext<S>> for SagaAdmin<S> {
    fn from(ctx: AdminContext<S>) -> Self {
        Self { ctx }
    }
}

impl<S: Store> Clone for SagaAdmin<S> {
    fn clone(&self) -> Self {
        Self { ctx: self.ctx.clone() }
    }
}

impl<S: Store> fmt::Debug for SagaAdmin<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaAdmin")
            .field("tenant", &self.ctx.tenant_store.tenant)
            .field("actor", &self.ctx.actor)
            .finish_non_exhaustive()
    }
}
