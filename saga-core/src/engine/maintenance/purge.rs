//! One batch of sagas whose time is over.

use std::collections::{BTreeMap, BTreeSet};

use super::maintenance::{Maintenance, PassError};
use super::refused_sagas::RefusedSagas;
use crate::engine::commit::changes;
use crate::engine::message::CLOSED_MAX;
use crate::engine::store_calls::{catch_panic, store_error};
use crate::env::{Activity, during, timeout};
use crate::key::{Key, Tenant};
use crate::log;
use crate::store::{ArchiveBatch, ExpiredSaga, KeptFor, Purged, SagaId, SagaWithSteps, Store, StoreErrorKind};
use crate::unwind::caught_while;

impl<S: Store> Maintenance<S> {
    /// Archives and purges up to `size` sagas, those last that the archive refused; answers whether more may be due.
    pub(super) async fn purge_batch(
        &self,
        epoch: u64,
        size: usize,
        refused: &mut RefusedSagas,
    ) -> Result<bool, PassError> {
        let looked_at = size + refused.count(self.ctx.env.now());
        let expired = refused.next(catch_panic("expired", self.ctx.store.expired(looked_at)).await?, size);
        let Some(first) = expired.first().map(|saga| (saga.id, saga.key.clone())) else { return Ok(false) };
        let retry_interval = self.ctx.settings.purge_retry_interval;
        let archived = match self.archive(expired, refused).await {
            Err(PassError::Archive(error)) if size == 1 => {
                let (id, saga) = first;
                log::warn!(%saga, %error, "saga not archived");
                refused.add(id, self.ctx.env.now().saturating_add(retry_interval));
                return Err(PassError::Archive(error));
            }
            archived => archived?,
        };
        self.tell_hosts(&archived).await?;
        let purged = catch_panic("purge", self.ctx.store.purge(epoch, &archived, retry_interval)).await?;
        log_batch(&purged);
        // What was skipped is looked at in the next pass.
        Ok(archived.len() == size && !is_nothing(&purged))
    }

    /// Archives those that are still whole. A saga that moved meanwhile is left for a later pass. So is one with a sub-saga that has not
    /// ended: that could end between its archive and its purge.
    async fn archive(
        &self,
        expired: Vec<ExpiredSaga>,
        refused: &mut RefusedSagas,
    ) -> Result<Vec<ExpiredSaga>, PassError> {
        let Some(archive) = &self.archive else { return Ok(expired) };
        // A tombstone was archived when it became one.
        let ids: Vec<SagaId> = expired.iter().map(|saga| saga.id).collect();
        let whole = match catch_panic("whole_sagas", self.ctx.store.whole_sagas(&ids)).await {
            // One of them cannot be read, so it cannot be archived either.
            Err(error) if error.kind() == StoreErrorKind::Corrupt => return Err(PassError::Archive(error.into())),
            whole => whole?,
        };
        let families = families(&expired, whole);
        let (finished, unfinished): (Vec<_>, Vec<_>) = families.into_iter().partition(|family| is_finished(family));
        self.put_off(&unfinished, refused);
        let outermost = |family: &Vec<SagaWithSteps>| family.first().map(|whole| (whole.saga.id, whole.saga.version));
        let seen: BTreeMap<SagaId, u64> = finished.iter().filter_map(outermost).collect();
        let whole: Vec<_> = finished.into_iter().flatten().filter(|whole| !whole.saga.is_tombstone()).collect();
        if !whole.is_empty() {
            let batch = ArchiveBatch::new(whole);
            // Afterwards another process may have the lease, and would archive them too.
            let limit = self.ctx.settings.lease_ttl;
            let storing = timeout(&*self.ctx.env, limit, caught_while(archive.store(&batch)));
            let stored = match during(&*self.ctx.env, Activity::Store, storing).await {
                Ok(Ok(stored)) => stored,
                Ok(Err(panic)) => Err(format!("the archive panicked: {panic}").into()),
                Err(_) => Err(format!("the archive took longer than {limit:?}, which is `lease_ttl`").into()),
            };
            stored.map_err(PassError::Archive)?;
        }
        Ok(expired.into_iter().filter(|saga| seen.get(&saga.id) == Some(&saga.version)).collect())
    }

    /// Others are archived before these, as long as the store would keep what cannot be purged yet.
    fn put_off(&self, unfinished: &[Vec<SagaWithSteps>], refused: &mut RefusedSagas) {
        if unfinished.is_empty() {
            return;
        }
        log::info!(count = unfinished.len(), reason = ?KeptFor::Unfinished, "expired sagas kept");
        let until = self.ctx.env.now().saturating_add(self.ctx.settings.purge_retry_interval);
        for outermost in unfinished.iter().filter_map(|family| family.first()) {
            refused.add(outermost.saga.id, until);
        }
    }

    /// Tells the services that did steps of these sagas that nothing more will be asked for them. A crash before the purge
    /// repeats it.
    async fn tell_hosts(&self, expired: &[ExpiredSaga]) -> Result<(), PassError> {
        let mut closed: BTreeMap<(&Tenant, &str), Vec<&Key>> = BTreeMap::new();
        for saga in expired {
            for host in &saga.hosts {
                closed.entry((&saga.tenant, host)).or_default().push(&saga.key);
            }
        }
        let mut messages = Vec::new();
        for ((tenant, host), keys) in closed {
            let parts = keys.chunks(CLOSED_MAX);
            messages.extend(parts.map(|part| self.messages.closed_message(tenant, host, part)));
        }
        if messages.is_empty() {
            return Ok(());
        }
        let recorded = self.committer.recorder.record(changes::send(messages)).await;
        recorded.map_err(|error| store_error(&error))?.ok();
        self.committer.outbox.wake_relay();
        Ok(())
    }
}

/// Each of the expired sagas with its sub-sagas, which follow it in `whole`.
fn families(expired: &[ExpiredSaga], whole: Vec<SagaWithSteps>) -> Vec<Vec<SagaWithSteps>> {
    let outermost: BTreeSet<SagaId> = expired.iter().map(|saga| saga.id).collect();
    let mut families: Vec<Vec<SagaWithSteps>> = Vec::new();
    for saga in whole {
        match families.last_mut() {
            Some(family) if !outermost.contains(&saga.saga.id) => family.push(saga),
            _ => families.push(vec![saga]),
        }
    }
    families
}

/// Whether nothing of a family moves any more.
fn is_finished(family: &[SagaWithSteps]) -> bool {
    family.iter().all(|whole| whole.saga.status.is_ended() && whole.work.is_empty())
}

fn is_nothing(purged: &Purged) -> bool {
    purged.tombstones.is_empty() && purged.deleted.is_empty() && purged.kept.is_empty()
}

fn log_batch(purged: &Purged) {
    log::debug!(count = purged.tombstones.len() + purged.deleted.len(), "sagas purged");
    if let Some((_, why)) = purged.kept.first() {
        log::info!(count = purged.kept.len(), reason = ?why, "expired sagas kept");
    }
}
