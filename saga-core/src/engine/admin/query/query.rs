//! Reading sagas: one of them step by step, lists, counts and the audit log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::outline::Outline;
use super::saga_moves::SagaMoves;
use super::status::{SagaStatus, SagaSummary};
use crate::engine::admin::admin_context::AdminContext;
use crate::engine::admin::audit::{AuditEntry, AuditRecord};
use crate::engine::admin::tenant_store::{AdminRuntime, TenantStore};
use crate::engine::context::{RuntimeError, outside_step};
use crate::engine::message::TIMELINES;
use crate::key::{Key, Tenant};
use crate::saga::Definition;
use crate::store::{
    AuditFilter, AuditRow, DefinitionId, SagaFilter, SagaId, SagaProgress, SagaRow, Status, Store, StoredDefinition,
};

/// A definition that is not registered here and for which commands wait.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unregistered {
    /// Its name.
    pub saga: String,
    /// Its version.
    pub version: u32,
    /// How many commands of it wait.
    pub commands: u64,
}

impl fmt::Display for Unregistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { saga, version, commands } = self;
        let (noun, verb) = if *commands == 1 { ("command", "waits") } else { ("commands", "wait") };
        write!(f, "{commands} {noun} of {saga} version {version} {verb}, which is not registered here")
    }
}

/// Reads sagas, their histories and the audit log of one tenant: [`SagaAdmin::query`](crate::engine::admin::SagaAdmin::query) returns it. A
/// store that can only be read is enough.
pub struct SagaQuery<S: Store> {
    pub(in crate::engine::admin) store: Arc<S>,
    pub(in crate::engine::admin) tenant: Tenant,
    runtime: Option<AdminRuntime<S>>,
    definitions: Arc<BTreeMap<DefinitionId, Arc<Definition<S>>>>,
}

impl<S: Store> SagaQuery<S> {
    pub(in crate::engine::admin) fn new(ctx: &AdminContext<S>) -> Self {
        let TenantStore { store, tenant, .. } = &ctx.tenant_store;
        let runtime = ctx.tenant_store.runtime().cloned();
        Self { store: Arc::clone(store), tenant: tenant.clone(), runtime, definitions: Arc::clone(&ctx.definitions) }
    }

    /// What happened to the saga with this key, step by step; `None` if there is no such saga.
    ///
    /// # Errors
    /// When the key is not a legal one, neither this process nor the store knows the definition, what is stored cannot be
    /// read, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn status(&self, key: impl AsRef<str>) -> Result<Option<SagaStatus>, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        let Some(stored) = self.store.saga_with_steps(&self.tenant, &key).await? else { return Ok(None) };
        let kept = self.kept(std::slice::from_ref(&stored.saga)).await?;
        let Some(outline) = self.outline(&stored.saga, &kept) else {
            let definition = stored.saga.definition.to_string();
            return Err(RuntimeError::UnknownDefinition { key: key.to_string(), definition });
        };
        let mut status = SagaStatus::of(stored, &outline)
            .map_err(|problem| RuntimeError::Unreadable { key: key.to_string(), problem })?;
        for child in status.steps.iter_mut().filter_map(|step| step.child.as_mut()) {
            let Some(row) = self.store.saga(&self.tenant, &child.key).await? else { continue };
            let kept = self.kept(std::slice::from_ref(&row)).await?;
            let outline = self.outline(&row, &kept);
            let summary = SagaSummary::of(row, outline.as_ref());
            (child.status, child.outcome) = (Some(summary.status), summary.outcome);
        }
        self.add_locks(&mut status, &outline).await?;
        Ok(Some(status))
    }

    /// The saga with this key as a list shows it; `None` if there is no such saga. It is read also where its definition is not
    /// known here.
    ///
    /// # Errors
    /// When the key is not a legal one, or the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn summary(&self, key: impl AsRef<str>) -> Result<Option<SagaSummary>, RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key.as_ref())?;
        let Some(row) = self.store.saga(&self.tenant, &key).await? else { return Ok(None) };
        let kept = self.kept(std::slice::from_ref(&row)).await?;
        let outline = self.outline(&row, &kept);
        Ok(Some(SagaSummary::of(row, outline.as_ref())))
    }

    /// How far these sagas are, of any tenant and in any order. A saga that is not in the store is left out. It is what a
    /// caller polls that waits for sagas without a runtime.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn progress(&self, sagas: &[SagaId]) -> Result<Vec<SagaProgress>, RuntimeError> {
        outside_step()?;
        Ok(self.store.progress(sagas).await?)
    }

    /// Waits for changes of this saga, with the runtime in this process; `None` on a bare store. The saga must have been read
    /// from the store before.
    pub fn moves(&self, saga: SagaId) -> Option<SagaMoves<S>> {
        self.runtime.as_ref().map(|runtime| SagaMoves::new(&runtime.committer, saga))
    }

    /// The sagas that pass the filter, by the order of their starts. The tenant of the filter is ignored: it is that of the admin.
    ///
    /// A step that reacts to an event is listed as a saga of one step, under `key>step`. The [timeline](Self::timeline) that
    /// joins the steps of one key is no saga: [`timelines`](Self::timelines) lists timelines.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn list(&self, filter: SagaFilter) -> Result<Vec<SagaSummary>, RuntimeError> {
        outside_step()?;
        let filter = SagaFilter { tenant: self.tenant.clone(), ..filter };
        let rows = self.rows(filter).await?;
        let kept = self.kept(&rows).await?;
        let summary = |row: SagaRow| {
            let outline = self.outline(&row, &kept);
            SagaSummary::of(row, outline.as_ref())
        };
        Ok(rows.into_iter().map(summary).collect())
    }

    /// The rows of sagas: those that keep timelines are left out, and the page is filled all the same.
    async fn rows(&self, mut filter: SagaFilter) -> Result<Vec<SagaRow>, RuntimeError> {
        let limit = filter.limit;
        let mut found: Vec<SagaRow> = Vec::new();
        loop {
            let rows = self.store.list(&filter).await?;
            let is_last = rows.len() < filter.limit;
            filter.after = rows.last().map(|row| row.id).or(filter.after);
            found.extend(rows.into_iter().filter(|row| row.definition.name != TIMELINES.name));
            filter.limit = limit.saturating_sub(found.len());
            if is_last || filter.limit == 0 {
                return Ok(found);
            }
        }
    }

    /// Definitions that are not registered in this process and for which commands wait, of any tenant. The commands
    /// run once a process registers the definition, or once their sagas are migrated to another version.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn unregistered(&self) -> Result<Vec<Unregistered>, RuntimeError> {
        outside_step()?;
        let known: Vec<DefinitionId> = self.definitions.keys().cloned().collect();
        let waiting = self.store.unknown_work(&known).await?;
        let unregistered = |(id, commands): (DefinitionId, u64)| Unregistered {
            saga: id.name.to_string(),
            version: id.version,
            commands,
        };
        Ok(waiting.into_iter().map(unregistered).collect())
    }

    /// What the store keeps of definitions, where some of these sagas have one that is not known here.
    async fn kept(&self, rows: &[SagaRow]) -> Result<Vec<StoredDefinition>, RuntimeError> {
        if rows.iter().all(|row| self.definitions.contains_key(&row.definition)) {
            return Ok(Vec::new());
        }
        Ok(self.store.definitions().await?)
    }

    fn outline(&self, row: &SagaRow, kept: &[StoredDefinition]) -> Option<Outline> {
        if let Some(definition) = self.definitions.get(&row.definition) {
            return Some(Outline::of(definition));
        }
        let kept = kept.iter().find(|kept| kept.id == row.definition && kept.digest == row.digest);
        kept.and_then(Outline::of_kept)
    }

    /// How many sagas there are in each status; every status is listed. If a service follows choreographed sagas, each of
    /// their timelines counts as a completed saga.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn count(&self) -> Result<BTreeMap<Status, u64>, RuntimeError> {
        outside_step()?;
        let mut counts: BTreeMap<Status, u64> = Status::ALL.into_iter().map(|status| (status, 0)).collect();
        counts.extend(self.store.count(&self.tenant).await?);
        Ok(counts)
    }

    /// What operators did with the sagas, the latest first. The tenant of the filter is ignored: it is that of the admin.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn audit_log(&self, filter: AuditFilter) -> Result<Vec<AuditRecord>, RuntimeError> {
        outside_step()?;
        let filter = AuditFilter { tenant: self.tenant.clone(), ..filter };
        let acts = self.store.audit_log(&filter).await?;
        let acted = |row: AuditRow| AuditRecord {
            number: row.number,
            key: row.key,
            at: row.at,
            entry: AuditEntry::read(&row.entry.detail),
        };
        Ok(acts.into_iter().map(acted).collect())
    }

    /// Sagas of any tenant that wait for nothing. There should be none (G11).
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn orphaned(&self, limit: usize) -> Result<Vec<SagaId>, RuntimeError> {
        outside_step()?;
        Ok(self.store.orphaned(limit).await?)
    }
}

impl<S: Store> fmt::Debug for SagaQuery<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SagaQuery")
            .field("tenant", &self.tenant)
            .field("definitions", &self.definitions.keys())
            .finish_non_exhaustive()
    }
}
