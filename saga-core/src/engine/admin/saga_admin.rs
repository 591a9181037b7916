//! Where a person works on the sagas of a store.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::audit::AuditEntry;
use super::tenant_store::{AdminRuntime, TenantStore};
use crate::engine::commit::notify_parent;
use crate::engine::context::{RuntimeError, Settings};
use crate::engine::decide::Decider;
use crate::engine::instance::{NextSlot, NextWork, PendingCommit, SagaInstance};
use crate::env::TokioEnvironment;
use crate::key::{Key, Tenant};
use crate::saga::{Definition, Saga};
use crate::service::Service;
use crate::store::{Applied, Changes, DefinitionId, Hint, SagaRow, SagaWithSteps, Status, Store};

/// What people can do with sagas: cancel, pause and resume them, send them signals, and act on those that are stuck. It needs no runtime, only
/// a store that can be written, and the definitions: what follows is done where a runtime works on the store.
///
/// Each action leaves a line in the saga's history that says what was done, why, and by whom where that is
/// [said](SagaAdmin::actor).
pub struct SagaAdmin<S: Store> {
    pub(crate) desk: TenantStore<S>,
    pub(crate) definitions: BTreeMap<DefinitionId, Arc<Definition<S>>>,
    actor: Option<String>,
    /// The name that other services reply to.
    replies_to: Option<String>,
    /// The plan that is carried out.
    plan: Option<String>,
}

impl<S: Store> SagaAdmin<S> {
    /// The desk of the default tenant's sagas in this store.
    pub fn new(store: impl Into<Arc<S>>) -> Self {
        Self {
            desk: TenantStore::new(store.into()),
            definitions: BTreeMap::new(),
            actor: None,
            replies_to: None,
            plan: None,
        }
    }

    pub(crate) fn of(runtime: AdminRuntime<S>, tenant: &Tenant) -> Self {
        let definitions = runtime.committer.ctx.definitions.clone();
        Self { desk: TenantStore::of(runtime, tenant), definitions, actor: None, replies_to: None, plan: None }
    }

    /// Adds a definition, whose sagas can be worked on then.
    #[must_use]
    pub fn saga<I>(mut self, saga: &Saga<S, I>) -> Self {
        for definition in Definition::with_children(saga.definition()) {
            self.definitions.insert(definition.id.clone(), Arc::clone(definition));
        }
        self
    }

    /// Adds the steps that a service hosts: what it does for others is a saga of one step, under `key>step`.
    #[must_use]
    pub fn service(mut self, service: &Service<S>) -> Self {
        for definition in service.hosted().map(|(_, definition)| definition).chain(service.choreographed()) {
            self.definitions.insert(definition.id.clone(), Arc::clone(definition));
        }
        self
    }

    /// Works on the sagas of this tenant.
    #[must_use]
    pub fn tenant(mut self, tenant: Tenant) -> Self {
        self.desk.tenant = tenant;
        self
    }

    /// Says who acts. The name is kept with each action.
    #[must_use]
    pub fn actor(mut self, who: impl Into<String>) -> Self {
        self.actor = Some(who.into());
        self
    }

    /// The service whose sagas these are, where other services do steps of them: the name that its runtimes have in
    /// [`Settings::service`]. A desk of a runtime has it from there.
    #[must_use]
    pub fn replies_to(mut self, service: impl Into<String>) -> Self {
        self.replies_to = Some(service.into());
        self
    }

    /// The same desk while it carries out a plan.
    pub(crate) fn carrying_out(self, plan: &str) -> Self {
        Self { plan: Some(plan.to_owned()), ..self }
    }

    pub(crate) fn act(&self, what: &str, reason: &str) -> AuditEntry {
        AuditEntry { plan: self.plan.clone(), ..AuditEntry::new(what, self.actor.as_deref(), reason) }
    }

    /// The saga with that key. If `seen` is given, the saga must still be at that revision.
    pub(crate) async fn stored(&self, key: &Key, seen: Option<u64>) -> Result<SagaWithSteps, RuntimeError> {
        let stored = self.desk.store.saga_with_steps(&self.desk.tenant, key).await?;
        let stored = stored.ok_or_else(|| RuntimeError::NoSaga(key.to_string()))?;
        if seen.is_some_and(|seen| seen != stored.saga.version) {
            return Err(moved(&stored.saga));
        }
        Ok(stored)
    }

    pub(crate) fn definition_of(&self, row: &SagaRow) -> Result<&Arc<Definition<S>>, RuntimeError> {
        self.definitions.get(&row.definition).ok_or_else(|| {
            let (key, definition) = (row.key.to_string(), row.definition.to_string());
            RuntimeError::UnknownDefinition { key, definition }
        })
    }

    /// The saga as the engine decides about it.
    pub(crate) fn instance(&self, stored: &SagaWithSteps) -> Result<SagaInstance<S>, RuntimeError> {
        let definition = self.definition_of(&stored.saga)?;
        let mut saga = SagaInstance::of_row(&stored.saga, stored.records.clone(), definition)
            .map_err(|problem| unreadable(&stored.saga, &problem))?;
        saga.remember_rows(&stored.work);
        Ok(saga)
    }

    /// What decides: the decider of the runtime in this process, or one that works on a bare store.
    pub(crate) fn decider(&self) -> Result<Arc<Decider<S>>, RuntimeError> {
        if let Some(runtime) = self.desk.runtime() {
            return Ok(Arc::clone(&runtime.decider));
        }
        let settings = Settings { service: self.replies_to.clone(), ..Settings::default() };
        Ok(Arc::new(Decider::without_runtime(Arc::new(TokioEnvironment::current()?), Arc::new(settings))))
    }

    /// So many ids in a row that no other row has.
    pub(crate) async fn take_ids(&self, count: usize) -> Result<Range<i64>, RuntimeError> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        Ok(match self.desk.runtime() {
            Some(runtime) => runtime.committer.store_calls.ids.take(&*self.desk.store, count).await?,
            None => self.desk.store.reserve_ids(count).await?,
        })
    }

    /// Ids for the commands that may follow from a decision.
    pub(crate) async fn next_work(&self, saga: &SagaInstance<S>) -> Result<NextWork, RuntimeError> {
        let ids = self.take_ids(saga.definition.width).await?;
        Ok(NextWork { ids: ids.start, slot: NextSlot::Nowhere })
    }

    /// Writes changes that give out no commands.
    pub(crate) async fn record(&self, changes: Changes) -> Result<Applied, RuntimeError> {
        let applied = self.desk.store.record(vec![changes]).await?;
        // A store answers each.
        Ok(applied.into_iter().next().unwrap_or(Ok(())))
    }

    /// Writes what was decided.
    pub(crate) async fn commit(&self, key: &Key, mut prepared: PendingCommit<S>) -> Result<Applied, RuntimeError> {
        if prepared.awaits_reply && !self.has_name_to_reply_to() {
            let problem = "a step of it is done by another service, which needs a name to reply to; give the desk that of \
                           this service with `.replies_to(..)`";
            return Err(refused(key, problem));
        }
        let applied = self.record(prepared.take_changes()).await?;
        if applied.is_ok() {
            if let Some(runtime) = self.desk.runtime() {
                runtime.committer.after_commit(prepared, None);
            } else {
                for (is_there, hint) in
                    [(prepared.has_messages, Hint::Outbox), (prepared.unclaimed_due_in.is_some(), Hint::Work)]
                {
                    if is_there {
                        self.desk.store.hint(hint);
                    }
                }
                if let Some(saga) = &prepared.saga {
                    self.notify_parent(&saga.key, &saga.definition, saga.state.status()).await;
                }
            }
        }
        Ok(applied)
    }

    fn has_name_to_reply_to(&self) -> bool {
        match self.desk.runtime() {
            Some(runtime) => runtime.decider.settings.service.is_some(),
            None => self.replies_to.is_some(),
        }
    }

    /// A saga has this status now: where it is a step of another one, and has ended, that one goes on.
    pub(crate) async fn notify_parent(&self, key: &Key, definition: &Definition<S>, status: Status) {
        if notify_parent(&*self.desk.store, &self.desk.tenant, key, definition, status).await {
            self.desk.wake_workers();
        }
    }
}

pub(crate) fn refused(key: &Key, problem: impl Into<String>) -> RuntimeError {
    RuntimeError::Refused { key: key.to_string(), problem: problem.into() }
}

pub(crate) fn moved(row: &SagaRow) -> RuntimeError {
    RuntimeError::Moved { key: row.key.to_string(), status: row.status, version: row.version }
}

pub(crate) fn unreadable(row: &SagaRow, problem: &str) -> RuntimeError {
    RuntimeError::Unreadable { key: row.key.to_string(), problem: problem.to_owned() }
}

impl<S: Store> Clone for SagaAdmin<S> {
    fn clone(&self) -> Self {
        Self {
            desk: self.desk.clone(),
            definitions: self.definitions.clone(),
            actor: self.actor.clone(),
            replies_to: self.replies_to.clone(),
            plan: self.plan.clone(),
        }
    }
}

impl<S: Store> fmt::Debug for SagaAdmin<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaAdmin").field("tenant", &self.desk.tenant).field("by", &self.actor).finish_non_exhaustive()
    }
}
