//! What every action of an operator uses: the store of one tenant, the definitions, and who acts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::audit::AuditEntry;
use super::tenant_store::{AdminRuntime, TenantStore};
use crate::engine::commit::notify_parent;
use crate::engine::context::{RuntimeError, Settings};
use crate::engine::decide::Decider;
use crate::engine::instance::{NextSlot, NextWork, PendingCommit, SagaInstance};
use crate::engine::store_calls::{LOCK_RETRIES_MAX, retry_locked};
use crate::env::{Environment, TokioEnvironment};
use crate::key::{Key, Tenant};
use crate::saga::Definition;
use crate::store::{Applied, Changes, DefinitionId, Hint, SagaRow, SagaWithSteps, Store};

/// The store of one tenant, the definitions of its sagas, and who acts on them.
pub(crate) struct AdminContext<S: Store> {
    pub(crate) tenant_store: TenantStore<S>,
    pub(crate) definitions: Arc<BTreeMap<DefinitionId, Arc<Definition<S>>>>,
    pub(super) actor: Option<String>,
    /// The settings of the runtimes on the store, as far as they are known here.
    pub(super) settings: Arc<Settings>,
    /// The id of the plan that is executed.
    pub(super) plan: Option<String>,
    /// How often a call that meets a lock is made again.
    pub(super) lock_retries_max: u32,
}

impl<S: Store> AdminContext<S> {
    /// The default tenant of a store, without a runtime.
    pub(crate) fn new(store: Arc<S>) -> Self {
        Self::with(TenantStore::new(store), Arc::default(), Arc::default())
    }

    /// A tenant of the store of a runtime in this process.
    pub(crate) fn of(runtime: AdminRuntime<S>, tenant: &Tenant) -> Self {
        let definitions = Arc::new(runtime.committer.ctx.definitions.clone());
        let settings = Arc::clone(&runtime.decider.settings);
        Self::with(TenantStore::of(runtime, tenant), definitions, settings)
    }

    fn with(
        tenant_store: TenantStore<S>,
        definitions: Arc<BTreeMap<DefinitionId, Arc<Definition<S>>>>,
        settings: Arc<Settings>,
    ) -> Self {
        Self { tenant_store, definitions, actor: None, settings, plan: None, lock_retries_max: LOCK_RETRIES_MAX }
    }

    /// For callers that do something else while a row is locked.
    pub(crate) fn without_lock_retries(self) -> Self {
        Self { lock_retries_max: 0, ..self }
    }

    pub(crate) fn add_definition(&mut self, definition: &Arc<Definition<S>>) {
        Arc::make_mut(&mut self.definitions).insert(definition.id.clone(), Arc::clone(definition));
    }

    pub(crate) fn audit_entry(&self, action: &str, reason: &str) -> AuditEntry {
        AuditEntry { plan: self.plan.clone(), ..AuditEntry::new(action, self.actor.as_deref(), reason) }
    }

    /// The saga with this key. If `seen` is given, the saga must still be at that revision.
    pub(crate) async fn stored(&self, key: &Key, seen: Option<u64>) -> Result<SagaWithSteps, RuntimeError> {
        let stored = self.tenant_store.store.saga_with_steps(&self.tenant_store.tenant, key).await?;
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
        not_tombstone(&stored.saga)?;
        let definition = self.definition_of(&stored.saga)?;
        let mut saga = SagaInstance::of_row(&stored.saga, stored.records.clone(), definition)
            .map_err(|problem| unreadable(&stored.saga, &problem))?;
        saga.remember_rows(&stored.work);
        Ok(saga)
    }

    /// The decider of the runtime in this process, or one that works on a bare store.
    pub(crate) fn decider(&self) -> Result<Arc<Decider<S>>, RuntimeError> {
        if let Some(runtime) = self.tenant_store.runtime() {
            return Ok(Arc::clone(&runtime.decider));
        }
        Ok(Arc::new(Decider::without_runtime(self.env()?, Arc::clone(&self.settings))))
    }

    /// The environment of the runtime in this process, or that of the caller.
    fn env(&self) -> Result<Arc<dyn Environment>, RuntimeError> {
        if let Some(runtime) = self.tenant_store.runtime() {
            return Ok(Arc::clone(&runtime.decider.env));
        }
        Ok(Arc::new(TokioEnvironment::current()?))
    }

    /// Consecutive ids that no other row has.
    pub(crate) async fn take_ids(&self, count: usize) -> Result<Range<i64>, RuntimeError> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let store = &self.tenant_store.store;
        Ok(match self.tenant_store.runtime() {
            Some(runtime) => runtime.committer.store_calls.ids.take(&**store, count).await?,
            None => store.reserve_ids(count).await?,
        })
    }

    /// Ids for the commands that may follow from a decision.
    pub(crate) async fn next_work(&self, saga: &SagaInstance<S>) -> Result<NextWork, RuntimeError> {
        let ids = self.take_ids(saga.definition.width).await?;
        Ok(NextWork { ids: ids.start, slot: NextSlot::Nowhere })
    }

    /// Writes changes that give out no commands; again where another transaction holds a row of them.
    pub(crate) async fn record(&self, changes: Changes) -> Result<Applied, RuntimeError> {
        let (env, store) = (self.env()?, &self.tenant_store.store);
        let applied = retry_locked(&*env, self.lock_retries_max, || store.record(vec![changes.clone()])).await?;
        // A store returns one result for each of the changes.
        Ok(applied.into_iter().next().unwrap_or(Ok(())))
    }

    /// Writes what was decided, and starts what follows: here if a runtime is in this process, else by hints to others.
    pub(crate) async fn commit(&self, key: &Key, mut pending: PendingCommit<S>) -> Result<Applied, RuntimeError> {
        if pending.awaits_reply && self.settings.service.is_none() {
            let problem = "a step of it is done by another service, which needs a name to reply to; give the admin that of \
                           this service with `.settings(|settings| settings.service = ..)`";
            return Err(refused(key, problem));
        }
        let applied = self.record(pending.take_changes()).await?;
        if applied.is_ok() {
            if let Some(runtime) = self.tenant_store.runtime() {
                runtime.committer.after_commit(pending, None);
            } else {
                for (is_there, hint) in
                    [(pending.has_messages, Hint::Outbox), (pending.unclaimed_due_in.is_some(), Hint::Work)]
                {
                    if is_there {
                        self.tenant_store.store.hint(hint);
                    }
                }
                if let Some(saga) = &pending.saga {
                    self.notify_parent(saga).await;
                }
            }
        }
        Ok(applied)
    }

    /// Lets the parent of a sub-saga go on if the sub-saga has ended.
    async fn notify_parent(&self, saga: &SagaInstance<S>) {
        // The parent looks again by itself, and what was committed is no error.
        let Ok(env) = self.env() else { return };
        if notify_parent(&*self.tenant_store.store, &*env, &self.settings, saga).await {
            self.tenant_store.wake_workers();
        }
    }
}

impl<S: Store> Clone for AdminContext<S> {
    fn clone(&self) -> Self {
        Self {
            tenant_store: self.tenant_store.clone(),
            definitions: Arc::clone(&self.definitions),
            actor: self.actor.clone(),
            settings: Arc::clone(&self.settings),
            plan: self.plan.clone(),
            lock_retries_max: self.lock_retries_max,
        }
    }
}

pub(crate) fn refused(key: &Key, problem: impl Into<String>) -> RuntimeError {
    RuntimeError::Refused { key: key.to_string(), problem: problem.into() }
}

pub(crate) fn moved(row: &SagaRow) -> RuntimeError {
    RuntimeError::Moved { key: row.key.to_string(), status: row.status, version: row.version }
}

/// Refuses a tombstone.
pub(crate) fn not_tombstone(row: &SagaRow) -> Result<(), RuntimeError> {
    if row.is_tombstone() {
        return Err(RuntimeError::Tombstone { key: row.key.to_string(), status: row.status });
    }
    Ok(())
}

pub(crate) fn unreadable(row: &SagaRow, problem: &str) -> RuntimeError {
    RuntimeError::Unreadable { key: row.key.to_string(), problem: problem.to_owned() }
}
