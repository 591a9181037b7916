//! What an operator can see of retention, and do about it.

use std::fmt;

use serde::Serialize;

use super::admin_context::{AdminContext, refused};
use crate::engine::context::{RuntimeError, outside_step};
use crate::key::{Key, Tenant};
use crate::machine::SagaState;
use crate::saga::{Definition, Retention};
use crate::store::{
    Changes, DefinitionId, ExpireEnded, Expiry, NextAge, SagaFilter, SagaId, SagaRow, Status, Store, Timestamp,
};

/// How many sagas one statement dates.
const AT_A_TIME: usize = 1_000;

/// How many due sagas are counted at most.
const COUNTED_MAX: usize = 50_000;

/// The retention of the sagas of a store, which [`SagaAdmin::retention`](super::SagaAdmin::retention) returns.
///
/// Sagas are purged by the maintenance task of the runtimes on the store; what is done here takes effect with its next pass.
pub struct RetentionAdmin<S: Store>(AdminContext<S>);

/// The retention that a definition has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetentionPolicy {
    /// The definition's name.
    pub saga: String,
    /// The definition's version.
    pub version: u32,
    /// How long its sagas are kept; `None` if for ever.
    pub retention: Option<Retention>,
}

/// Sagas of one definition that are due to be purged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RetentionDue {
    /// The definition's name.
    pub saga: String,
    /// The definition's version.
    pub version: u32,
    /// Whether they are deleted; otherwise a tombstone of each is kept.
    pub deleted: bool,
    /// How many they are: among the 50,000 that are due longest, of all tenants.
    pub sagas: u64,
    /// The bytes of their payloads.
    pub bytes: u64,
}

impl<S: Store> RetentionAdmin<S> {
    pub(super) fn new(ctx: AdminContext<S>) -> Self {
        Self(ctx)
    }

    /// The retention of each definition that is known here, by name and version.
    pub fn policies(&self) -> Vec<RetentionPolicy> {
        let own = self.0.definitions.values().filter(|definition| !definition.is_hosted());
        let policy = |id: &DefinitionId, retention| RetentionPolicy {
            saga: id.name.to_string(),
            version: id.version,
            retention,
        };
        own.map(|definition| policy(&definition.id, definition.retention.or(self.0.settings.default_retention)))
            .collect()
    }

    /// What is due to be purged, by definition.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// It only reads.
    pub async fn due(&self) -> Result<Vec<RetentionDue>, RuntimeError> {
        outside_step()?;
        let counts = self.0.tenant_store.store.count_expired(COUNTED_MAX).await?;
        let due = counts.into_iter().map(|count| RetentionDue {
            saga: count.definition.name.to_string(),
            version: count.definition.version,
            deleted: count.next == NextAge::Deleted,
            sagas: count.sagas,
            bytes: count.bytes,
        });
        Ok(due.collect())
    }

    /// Applies the retention of this definition to sagas of all tenants that ended before it was set, or under another one:
    /// to those of each version that is known here the retention of that version. Returns how many it dated. Sagas that were
    /// exempted are dated too.
    ///
    /// # Errors
    /// When no version of the definition is known here, all of them keep sagas for ever, or the store fails.
    ///
    /// # Cancel safety
    /// When dropped, some sagas are dated; the same call again dates all.
    pub async fn apply(&self, saga: &str) -> Result<u64, RuntimeError> {
        outside_step()?;
        let versions: Vec<_> = self.0.definitions.values().filter(|version| *version.id.name == *saga).collect();
        if versions.is_empty() {
            return Err(RuntimeError::Retention { saga: saga.to_owned(), problem: "it is not registered here" });
        }
        let expiries: Vec<_> = versions.iter().flat_map(|version| self.expiries_of(version)).collect();
        if expiries.is_empty() {
            return Err(kept_for_ever(saga));
        }
        let mut dated = 0;
        for (version, status, expiry) in expiries {
            let mut request =
                ExpireEnded { definition: version.clone(), status, expiry, after: None, limit: AT_A_TIME };
            loop {
                let answer = self.0.tenant_store.store.expire_ended(&request).await?;
                dated += answer.sagas;
                let Some(next) = answer.next else { break };
                request.after = Some(next);
            }
        }
        Ok(dated)
    }

    /// Keeps this ended saga until it is unexempted or reopened, or its definition is [applied](Self::apply) again.
    ///
    /// # Errors
    /// When there is no such saga, it has not ended, it is a step of another saga, no reason is given, or the store fails.
    ///
    /// # Cancel safety
    /// When dropped, it was exempted or not; the same call again exempts it.
    pub async fn exempt(&self, key: &str, reason: &str) -> Result<(), RuntimeError> {
        self.date(key, "exempt", reason, |_| Ok(None)).await
    }

    /// Lets this ended saga age again, as the retention of its definition says.
    ///
    /// # Errors
    /// Those of [`exempt`](Self::exempt); and when the definition is unknown here or keeps sagas for ever.
    ///
    /// # Cancel safety
    /// When dropped, it ages or not; the same call again lets it age.
    pub async fn unexempt(&self, key: &str, reason: &str) -> Result<(), RuntimeError> {
        self.date(key, "unexempt", reason, |row| {
            let definition = self.0.definition_of(row)?;
            let expiry = definition.expiry(row.status, self.0.settings.default_retention);
            expiry.map(Some).ok_or_else(|| kept_for_ever(&definition.id.name))
        })
        .await
    }

    /// Deletes this ended saga, its key and its history included, with the next pass of the maintenance task. A pass comes
    /// within ten minutes, or within six hours if nothing has a retention. An open dead letter or an unsent message delays it,
    /// and an archive gets the saga first. A start with the key is a new saga then. The other services keep what they did for it.
    ///
    /// # Errors
    /// Those of [`exempt`](Self::exempt).
    ///
    /// # Cancel safety
    /// When dropped, it is due or not; the same call again makes it due.
    pub async fn purge(&self, key: &str, reason: &str) -> Result<(), RuntimeError> {
        self.date(key, "purge", reason, |_| Ok(Some(Expiry::default()))).await
    }

    /// Lets the steps age that this store hosts for a service which is gone and will never say that its sagas are closed:
    /// those that ended before `before`. Returns how many it dated. The definitions of the steps must be known here.
    ///
    /// # Errors
    /// When the store fails.
    ///
    /// # Cancel safety
    /// When dropped, some are dated; the same call again dates all.
    pub async fn close_hosted(&self, service: &str, before: Timestamp) -> Result<u64, RuntimeError> {
        outside_step()?;
        let (store, keep_for) = (&self.0.tenant_store.store, self.0.settings.hosted_retention());
        let mut dated = 0;
        for definition in self.0.definitions.values().filter(|definition| definition.is_hosted()) {
            let mut after = None;
            loop {
                let rows = store.list(&self.hosted_page(&definition.id, after)).await?;
                let Some(last) = rows.last() else { break };
                after = Some(last.id);
                let is_meant = |row: &&SagaRow| {
                    let state = SagaState::decode(&row.state, definition.steps.len()).ok();
                    let asked_by = state.and_then(|state| state.caller).map(|caller| caller.reply_to);
                    row.ended_at.is_some_and(|at| at < before) && asked_by.as_deref() == Some(service)
                };
                let closed = rows.iter().filter(is_meant).map(|row| (row.tenant.clone(), row.key.asked_for()));
                let closed: Vec<(Tenant, Key)> = closed.collect();
                dated += store.expire_hosted(std::slice::from_ref(&definition.id), &closed, keep_for).await?;
            }
        }
        Ok(dated)
    }

    fn hosted_page(&self, definition: &DefinitionId, after: Option<SagaId>) -> SagaFilter {
        SagaFilter {
            tenant: self.0.tenant_store.tenant.clone(),
            definition: Some(definition.name.to_string()),
            after,
            limit: AT_A_TIME,
            ..SagaFilter::default()
        }
    }

    /// Dates an ended saga, and records the action in its history.
    async fn date(
        &self,
        key: &str,
        action: &str,
        reason: &str,
        expiry_of: impl FnOnce(&SagaRow) -> Result<Option<Expiry>, RuntimeError>,
    ) -> Result<(), RuntimeError> {
        outside_step()?;
        let key = Key::from_stored(key)?;
        let entry = self.0.audit_entry(action, reason);
        if let Some(problem) = entry.problem() {
            return Err(refused(&key, problem));
        }
        let tenant = &self.0.tenant_store.tenant;
        let row = self.0.tenant_store.store.saga(tenant, &key).await?;
        let row = row.ok_or_else(|| RuntimeError::NoSaga(key.to_string()))?;
        if let Some((outer, step)) = key.of_step() {
            let problem =
                format!("it is the step `{step}` of `{outer}`, and is kept as long as that saga; name `{outer}`");
            return Err(refused(&key, problem));
        }
        let expiry = expiry_of(&row)?;
        let not_ended = || refused(&key, format!("it is {}, and only a saga that has ended ages", row.status));
        if !row.status.is_ended() {
            return Err(not_ended());
        }
        // Recorded first: a crash leaves an entry without its effect, and no effect without its entry.
        _ = self.0.record(Changes { history: vec![entry.entry(row.id)], ..Changes::default() }).await?;
        let is_dated = self.0.tenant_store.store.set_expiry(tenant, &key, expiry.as_ref()).await?;
        is_dated.then_some(()).ok_or_else(not_ended)
    }

    /// How long the definition keeps its sagas, by how they ended; nothing if for ever.
    fn expiries_of<'a>(
        &self,
        definition: &'a Definition<S>,
    ) -> impl Iterator<Item = (&'a DefinitionId, Status, Expiry)> + use<'a, S> {
        let default = self.0.settings.default_retention;
        [Status::Completed, Status::Compensated]
            .into_iter()
            .filter_map(move |status| Some((&definition.id, status, definition.expiry(status, default)?)))
    }
}

fn kept_for_ever(saga: &str) -> RuntimeError {
    let problem = "it keeps its sagas for ever, as far as is known here; if the runtimes have a `default_retention`, give the \
                   admin their settings with `.settings(..)`";
    RuntimeError::Retention { saga: saga.to_owned(), problem }
}

impl<S: Store> fmt::Debug for RetentionAdmin<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetentionAdmin").field("tenant", &self.0.tenant_store.tenant).finish_non_exhaustive()
    }
}
